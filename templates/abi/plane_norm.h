/* Parameters of plane_norm.cu. */
#ifndef ZC_ABI_PLANE_NORM_H
#define ZC_ABI_PLANE_NORM_H

#include "abi/divisor.h"
#include "abi/epilogue.h"

/* Threads that join the states of a group, and how many of an image's parts each of them has at
 * most. */
#define ZC_PLANE_NORM_TEAM(groups) ((groups) <= 16 ? 32 : (groups) <= 32 ? 16 : 8)
enum { ZC_PLANE_NORM_EACH = 8 };

struct zc_plane_norm_params {
    const void *x, *scale, *bias;
    void *y, *states;          /* [images][groups][parts] of mean and sum of squared differences */
    long long pixels, chunk;   /* of an image; of a part of it, */
    long long chunk_of_result; /* and of a block that writes the result */
    long long parts;
    struct zc_divisor by_channels, by_width, by_lines; /* channels; those of a group; pixels that a
                                                        * block's threads have at once */
    float eps;
    int pad;
    struct zc_fused_params fused;
};

#endif
