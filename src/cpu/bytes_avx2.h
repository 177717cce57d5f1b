/* Products of bytes with AVX2, for processors that have no instruction for them: exact by sums of
 * two products in 16 bits where these hold them, else of bytes that become 16 bits. */
#ifndef ZC_CPU_BYTES_AVX2_H
#define ZC_CPU_BYTES_AVX2_H

#include "cpu/bytes.h"

/* Packed panels and the order of each. */
typedef struct zc_avx2_panels {
    const int8_t *w;
    const int32_t *order; /* zc_avx2_order_size() a panel */
} zc_avx2_panels;

static inline int64_t zc_avx2_order_size(int64_t depth)
{
    return depth / 4 + 1;
}

/* Puts a panel's groups of four rows in the order in which they are multiplied, and says so: how
 * many by bytes, then the first row of each group, of these and of the others. */
void zc_avx2_order(int8_t *panel, int64_t depth, int32_t *order);

/* Of rows that it multiplies, at most. */
enum { ZC_AVX2_DEPTH = 1 << 16 };

/* As zc_bytes_multiply; the panels are those from column `from` on. */
void zc_avx2_multiply(const zc_avx2_panels *b, const zc_byte_product *p, int64_t m,
                      const uint8_t *a, int64_t lda, int64_t from, int64_t to, void *y,
                      int64_t ldy);
/* As zc_bytes_each, for whole fours of channels and w_zero 0: how many channels that were. */
int64_t zc_avx2_each(const zc_byte_each *e, const int16_t *w, const uint8_t *const *x, void *y);

#endif
