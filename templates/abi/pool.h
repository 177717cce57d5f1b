/* Parameters of pool.cu. */
#ifndef ZC_ABI_POOL_H
#define ZC_ABI_POOL_H

#include "abi/epilogue.h"
#include "abi/window.h"

struct zc_pool_params {
    const void *in;
    void *out;
    long long *index; /* of MaxPool, or NULL */
    long long total;  /* elements of the result */
    long long inner;  /* neighbours that share a window: 1, or the channels where they are last */
    long long plane;  /* elements of a whole plane, for global poolings */
    long long in_pitch, out_pitch; /* elements from one such group of neighbours to the next */
    struct zc_window_params window;
    struct zc_fused_params fused;
};

#endif
