/* Parameters of gemm_few_sm90.cu: a product of few rows. */
#ifndef ZC_ABI_GEMM_FEW_SM90_H
#define ZC_ABI_GEMM_FEW_SM90_H

#include "abi/gemm_sm90.h"

struct zc_gemm_few_sm90_params {
    struct zc_gemm_sm90_params product;
    struct zc_divisor by_down, by_across; /* tiles; those below each other follow each other */
};

#endif
