/* Parameters of gemm_few_sm90.cu: a product of few rows. */
#ifndef ZC_ABI_GEMM_FEW_SM90_H
#define ZC_ABI_GEMM_FEW_SM90_H

#include "abi/gemm_sm90.h"
#include "abi/linear_moments.h"

struct zc_gemm_few_sm90_params {
    struct zc_gemm_sm90_params product;
    struct zc_row_moments_params moments;
    int down, across; /* tiles */
};

#endif
