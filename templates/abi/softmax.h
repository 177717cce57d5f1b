/* Parameters of softmax.cu. */
#ifndef ZC_ABI_SOFTMAX_H
#define ZC_ABI_SOFTMAX_H

#include "abi/epilogue.h"
#include "abi/groups.h"

enum { ZC_AXIS_SOFTMAX, ZC_AXIS_LOG_SOFTMAX, ZC_AXIS_HARDMAX, ZC_AXIS_L1, ZC_AXIS_L2 };

struct zc_softmax_params {
    struct zc_groups g; /* any axis */
    const void *in;
    void *out;
    long long rows, N; /* of N neighbours */
    struct zc_fused_params pre, fused;
};

#endif
