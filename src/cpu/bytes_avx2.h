/* Products of bytes with AVX2, for processors that have no instruction for them: bytes become 16
 * bits, and the products of two are added at a time, which 32 bits always hold. */
#ifndef ZC_CPU_BYTES_AVX2_H
#define ZC_CPU_BYTES_AVX2_H

#include "cpu/bytes.h"

/* As zc_bytes_multiply; the panels are those from column `from` on. */
void zc_avx2_multiply(const zc_byte_product *p, const int8_t *panels, int64_t m, const uint8_t *a,
                      int64_t lda, int64_t from, int64_t to, void *y, int64_t ldy);
/* As zc_bytes_each, for whole fours of channels and w_zero 0: how many channels that were. */
int64_t zc_avx2_each(const zc_byte_each *e, const int8_t *w, const uint8_t *const *x, void *y);

#endif
