/* Parameters of gemm_quant_sm90.cu: the product as the copy engine sees it, and what becomes of its
 * sums. */
#ifndef ZC_ABI_GEMM_QUANT_SM90_H
#define ZC_ABI_GEMM_QUANT_SM90_H

#include "abi/gemm_quant.h"
#include "abi/gemm_sm90.h"

struct zc_gemm_quant_sm90_params {
    struct zc_gemm_sm90_params product;
    struct zc_gemm_quant_params quant;
};

#endif
