/* Parameters of reduce.cu. */
#ifndef ZC_ABI_REDUCE_H
#define ZC_ABI_REDUCE_H

#include "abi/epilogue.h"
#include "abi/groups.h"

enum {
    ZC_REDUCE_SUM,
    ZC_REDUCE_MEAN,
    ZC_REDUCE_MAX,
    ZC_REDUCE_MIN,
    ZC_REDUCE_PROD,
    ZC_REDUCE_L1,
    ZC_REDUCE_L2,
    ZC_REDUCE_LOG_SUM,
    ZC_REDUCE_LOG_SUM_EXP,
    ZC_REDUCE_SUM_SQUARE,
    ZC_REDUCE_ARG_MAX,
    ZC_REDUCE_ARG_MIN
};

/* Bytes of the largest state that a thread keeps. */
enum { ZC_REDUCE_STATE = 16 };

struct zc_reduce_params {
    struct zc_groups g;
    const void *in;
    void *out;
    void *states;               /* [outputs, splits]; NULL: an output is one block's */
    long long elements, splits; /* of the input in each output; of each output */
    struct zc_fused_params pre, fused;
};

#endif
