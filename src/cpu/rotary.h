/* Rotary position embeddings of single heads. */
#ifndef ZC_CPU_ROTARY_H
#define ZC_CPU_ROTARY_H

#include "cpu/kernel.h"

typedef struct zc_rotary {
    const zc_tensor *cos, *sin; /* rows of `half` elements */
    int64_t half;               /* pairs that are turned; elements beyond stay as they are */
    bool interleaved;           /* pairs are neighbours, not halves */
} zc_rotary;

/* y[y_at..] = the head of `size` elements x[x_at..] turned by row `row` of the tables. x and y may
 * be the same memory. */
void zc_rotate(const zc_rotary *r, int64_t row, const zc_tensor *x, int64_t x_at, zc_tensor *y,
               int64_t y_at, int64_t size);

#endif
