/* Products of bytes with AVX2, for processors that have no instruction for them: exact by sums of
 * two or four products in 16 bits where these hold them, else of bytes that become 16 bits. */
#ifndef ZC_CPU_BYTES_AVX2_H
#define ZC_CPU_BYTES_AVX2_H

#include "cpu/bytes.h"

/* Groups of four rows of a panel's 16 columns: so many together are a stretch. */
enum { ZC_AVX2_STRETCH = 64 };

/* Of how many products 16 bits hold the sum: the groups of a stretch, a bit each. Fours take two
 * groups at a time, and are an even number of them. */
typedef struct zc_avx2_order {
    uint64_t fours, pairs, singles;
} zc_avx2_order;

/* What is known of a stretch's weights. */
typedef struct zc_avx2_stretch {
    uint16_t reach[ZC_AVX2_STRETCH]; /* two neighbours' of one sign, at most, a group */
    zc_avx2_order order;             /* whatever the left operand's bytes are */
} zc_avx2_stretch;

/* Packed panels. */
typedef struct zc_avx2_panels {
    const int8_t *w;
    const zc_avx2_stretch *stretches; /* zc_avx2_stretches() a panel */
} zc_avx2_panels;

static inline int64_t zc_avx2_stretches(int64_t depth)
{
    return (depth / 4 + ZC_AVX2_STRETCH - 1) / ZC_AVX2_STRETCH;
}

/* Of n groups of a stretch, where the left operand's bytes are `greatest` at most, a group each;
 * both arrays can be read for a whole stretch. */
zc_avx2_order zc_avx2_order_of(const uint16_t *reach, const uint8_t *greatest, int64_t n);
/* Learns what is to be known of a panel. */
void zc_avx2_weigh(const int8_t *panel, int64_t depth, zc_avx2_stretch *to);

/* Of rows that it multiplies, at most. */
enum { ZC_AVX2_DEPTH = 1 << 16 };

/* As zc_bytes_multiply; the panels are those from column `from` on. */
void zc_avx2_multiply(const zc_avx2_panels *b, const zc_byte_product *p, int64_t m,
                      const uint8_t *a, int64_t lda, int64_t from, int64_t to, void *y,
                      int64_t ldy);
/* As zc_bytes_each, for whole fours of channels and w_zero 0: how many channels that were. */
int64_t zc_avx2_each(const zc_byte_each *e, const int16_t *w, const uint8_t *const *x, void *y);

#endif
