/* Walking over sliding windows. */
#ifndef ZC_CPU_WINDOW_H
#define ZC_CPU_WINDOW_H

#include "cpu/kernel.h"
#include "op/window.h"

/* The taps of one window that lie on the input, not on padding, in row-major order. */
typedef struct zc_taps {
    int axes;
    int64_t n[ZC_WINDOW_AXES], idx[ZC_WINDOW_AXES];
    int64_t x_step[ZC_WINDOW_AXES], tap_step[ZC_WINDOW_AXES];
    int64_t x;   /* offset of the tap's input element in its plane */
    int64_t tap; /* offset of the tap in the kernel */
    bool any;    /* false: none is left */
} zc_taps;

/* Taps of the window at out[axes]. */
void zc_taps_begin(const zc_window *w, const int64_t *out, zc_taps *t);
/* Moves to the next tap; clears `any` after the last. */
void zc_taps_next(zc_taps *t);

/* Product of n sizes that are known not to overflow together. */
static inline int64_t zc_window_count(const int64_t *v, int n)
{
    int64_t p = 1;
    for (int i = 0; i < n; i++) p *= v[i];
    return p;
}

/* Row-major coordinates of element i of dims[n]. */
static inline void zc_coords(int64_t i, int n, const int64_t *dims, int64_t *out)
{
    for (int d = n - 1; d >= 0; d--) {
        out[d] = i % dims[d];
        i /= dims[d];
    }
}

#endif
