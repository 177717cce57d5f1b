/* Convolutions of bytes with 3 x 3 taps by Winograd's F(2 x 2, 3 x 3), for processors with AVX2
 * alone: 16 products of 16 bits for four results, which have 36. It is exact, in whole numbers:
 * pixels become sums of up to 1,020, weights four times their transforms, up to 1,152, and what
 * comes of both is four times the results modulo 2^32, which hold that. */
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

/* Can it be computed so? And is that held to be faster, here? */
bool zc_winograd_fits(const zc_conv *c);
bool zc_winograd_pays(const zc_conv *c);
/* A constant's weights, which have no zero point, for zc_winograd_run. */
zc_status zc_winograd_packed(zc_kctx *k, int input, const zc_byte_matrix *m, const void **out);
zc_status zc_winograd_run(zc_kctx *k, const zc_winograd *w);

#endif
