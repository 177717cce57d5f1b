/* Parameters of gated_linear.cu: a product, and the one that it is multiplied by. */
#ifndef ZC_ABI_GATED_LINEAR_H
#define ZC_ABI_GATED_LINEAR_H

#include "abi/gemm.h"

struct zc_gated_linear_params {
    struct zc_gemm_params g;
    const void *gate, *gate_c; /* as b and c */
};

#endif
