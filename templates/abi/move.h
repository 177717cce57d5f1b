/* Parameters of move.cu. Strides and offsets count units of 1, 2, 4, 8 or 16 bytes, which the entry
 * point decides. */
#ifndef ZC_ABI_MOVE_H
#define ZC_ABI_MOVE_H

#include "abi/divisor.h"

enum { ZC_MOVE_AXES = 32 };

struct zc_move_params {
    const void *in;
    void *out;
    long long total; /* units; of a transpose: tiles */
    int rank, pad;   /* axes, outermost first; of a transpose: those beside the two */
    struct zc_divisor dims[ZC_MOVE_AXES];
    long long to[ZC_MOVE_AXES], from[ZC_MOVE_AXES];
    /* Transpose: axis 0 is contiguous in the source, axis 1 in the result; the other's stride. */
    long long size[2], to_stride, from_stride;
    struct zc_divisor tiles[2];
};

#endif
