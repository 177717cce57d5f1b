/* Poolings: the geometry their kernels share. */
#ifndef ZC_CPU_POOLING_H
#define ZC_CPU_POOLING_H

#include "cpu/window.h"

/* Planes (batch times channels) of in_plane elements become planes of out_plane elements. */
typedef struct zc_pooling {
    zc_window w;
    int64_t planes, in_plane, out_plane;
} zc_pooling;

/* Of AveragePool, MaxPool, LpPool or a global pooling, whose window is the whole plane. */
void zc_pooling_of(const zc_kctx *k, zc_pooling *p);

/* Taps of the window of the result at `at` that lie on the input or its padding (ceil_mode may
 * leave some beyond). */
int64_t zc_padded_taps(const zc_window *w, const int64_t *at);

#endif
