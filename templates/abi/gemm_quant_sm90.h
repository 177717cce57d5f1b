/* Parameters of gemm_quant_sm90.cu: the product as the copy engine sees it, and what becomes of its
 * sums. A box of product.y is a panel of bytes: 64 rows of 128 columns, or of the 64 that tiles
 * have. */
#ifndef ZC_ABI_GEMM_QUANT_SM90_H
#define ZC_ABI_GEMM_QUANT_SM90_H

#include "abi/gemm_quant.h"
#include "abi/gemm_sm90.h"

/* Of a step's other pair of operands: QLinearConvChain's first, the others' second. */
struct zc_gq_second {
    const void *a_scale, *b_scale, *y_scale, *y_zero;
    const int *bias;        /* NULL: none */
    long long b_scale_step; /* from column to column */
};

struct zc_gemm_quant_sm90_params {
    struct zc_gemm_sm90_params product;
    struct zc_gemm_quant_params quant;
    struct zc_gq_second second;
};

#endif
