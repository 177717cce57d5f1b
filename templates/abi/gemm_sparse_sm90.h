/* Parameters of gemm_sparse_sm90.cu. */
#ifndef ZC_ABI_GEMM_SPARSE_SM90_H
#define ZC_ABI_GEMM_SPARSE_SM90_H

#include "abi/sparse_linear.h"
#include "abi/tensor_map.h"

struct zc_gemm_sparse_sm90_params {
    zc_tensor_map x; /* [k, m], innermost first */
    struct zc_sparse_linear_params g;
    int down, across; /* tiles of the result */
};

#endif
