/* Parameters of the quantised matrix products (gemm_quant.cu, gemm_quant_mma.cu): y[item][m][n],
 * contiguous. Strides are in elements; 0 along axes that broadcast. */
#ifndef ZC_ABI_GEMM_QUANT_H
#define ZC_ABI_GEMM_QUANT_H

#include "abi/gemm.h"

/* Operands that follow A's rows, then those that follow B's columns. */
enum { ZC_GQ_A, ZC_GQ_A_SCALE, ZC_GQ_A_ZERO, ZC_GQ_B, ZC_GQ_B_SCALE, ZC_GQ_B_ZERO, ZC_GQ_OPERANDS };
enum { ZC_GQ_SIDE = 16 }; /* threads along each side of a block of the general kernel */

struct zc_gemm_quant_params {
    const void *in[ZC_GQ_OPERANDS]; /* NULL: absent */
    const void *y_scale, *y_zero;
    const int *bias; /* of columns, of convolutions; NULL: none */
    void *y;
    long long m, n, k, batch;
    long long a_ld, b_ld; /* along the axis that is not contiguous */
    int batch_rank, aligned;
    long long line[ZC_GQ_OPERANDS]; /* strides of scales and zero points along rows (columns) */
    long long batch_dims[ZC_GEMM_BATCH];
    long long stride[ZC_GQ_OPERANDS][ZC_GEMM_BATCH];
};

#endif
