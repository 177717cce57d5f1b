/* Convolutions of bytes with 3 x 3 taps by Winograd's F(2 x 2, 3 x 3) and F(4 x 4, 3 x 3), for
 * processors with AVX2 alone: 16 products of 16 bits for 4 results, or 36 for 16, where sums take
 * 36 and 144. It is exact, in whole numbers: pixels become sums of up to 1,020 (17,340), weights
 * some multiple of their transforms of up to 1,152 (6,272), and what comes of both is a multiple of
 * the results modulo 2^32: 2 x 2 times them; or up to 24 x 24, of which an inverse takes the odd
 * factor 9 away, and 64 is left. Where 32 bits hold that, a shift ends it. */
#ifndef ZC_CPU_BYTES_WINOGRAD_H
#define ZC_CPU_BYTES_WINOGRAD_H

#include "cpu/bytes.h"
#include "cpu/conv.h"

typedef struct zc_winograd {
    const zc_conv *c;
    const uint8_t *x;       /* [batch][pixels][channels] */
    const uint8_t *padding; /* a pixel of zero points */
    const void *w;          /* packed */
    const int32_t *offset;  /* as zc_bytes_offset has it */
    zc_byte_scaling s;
    uint8_t *y;                /* the same of results */
    const zc_finish *epilogue; /* NULL: none */
} zc_winograd;

/* Can it be computed so? */
bool zc_winograd_fits(const zc_conv *c);
/* Results of a tile along an axis, 2 or 4, that are held to be fastest, here; 0: windows are. */
int zc_winograd_step(const zc_conv *c);
/* A constant's weights, which have no zero point, for tiles of that step, or smaller ones where
 * weights are so large that those would not be exact. */
zc_status zc_winograd_packed(zc_kctx *k, int input, const zc_byte_matrix *m, int step,
                             const void **out);
/* The step that packed weights of n columns are for. */
int zc_winograd_step_of(const void *packed, int64_t n);
zc_status zc_winograd_run(zc_kctx *k, const zc_winograd *w);

#endif
