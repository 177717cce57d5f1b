/* Parameters of moments.cu. */
#ifndef ZC_ABI_MOMENTS_H
#define ZC_ABI_MOMENTS_H

#include "abi/epilogue.h"
#include "abi/groups.h"

/* Bytes of the largest state that a thread keeps. */
enum { ZC_MOMENTS_STATE = 24 };

/* Of elements that are taken at once: each has a channel of its own; all have the same; each has
 * the next. */
enum { ZC_MOMENTS_EACH, ZC_MOMENTS_SAME, ZC_MOMENTS_NEXT };

struct zc_moments_params {
    struct zc_groups g;                        /* outputs: what has a mean and a variance */
    const void *x, *scale, *bias, *mean, *var; /* mean, var: batch normalisation's */
    void *y, *mean_out, *var_out;              /* NULL: not wanted */
    void *states;                              /* [outputs, splits] */
    long long splits, total;                   /* total: elements of x */
    struct zc_divisor channels, inner; /* an element's channel is its offset / inner % channels */
    double eps, momentum;
    struct zc_fused_params pre, fused;
};

#endif
