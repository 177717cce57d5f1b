/* Parameters of linear_norm_sm90.cu. */
#ifndef ZC_ABI_LINEAR_NORM_SM90_H
#define ZC_ABI_LINEAR_NORM_SM90_H

#include "abi/gemm_sm90.h"

struct zc_linear_norm_sm90_params {
    struct zc_gemm_sm90_params product; /* its tile: skip */
    zc_tensor_map sum;                  /* what was normalised, where that is wanted: as y */
};

#endif
