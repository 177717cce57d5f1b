/* Parameters of plane_norm.cu. */
#ifndef ZC_ABI_PLANE_NORM_H
#define ZC_ABI_PLANE_NORM_H

#include "abi/epilogue.h"

/* States of an image's parts that a block joins in shared memory. */
enum { ZC_PLANE_NORM_STATES = 4096 };

struct zc_plane_norm_params {
    const void *x, *scale, *bias;
    void *y, *states;          /* [images][parts][groups] of mean and sum of squared differences */
    long long pixels, chunk;   /* of an image; of a part of it, */
    long long chunk_of_result; /* and of a block that writes the result */
    long long parts;
    float eps;
    int pad;
    struct zc_fused_params fused;
};

#endif
