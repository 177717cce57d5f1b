/* Parameters of the matrix product kernels (gemm_simt.cu, gemm_mma.cu): y[item][m][n], of
 * neighbouring columns, is alpha * a b + beta * c, a b times each column's scale. Strides are in
 * elements; 0 along axes that broadcast. */
#ifndef ZC_ABI_GEMM_H
#define ZC_ABI_GEMM_H

#include "abi/epilogue.h"

enum {
    ZC_GEMM_BATCH = 14, /* batch axes at most */
    ZC_GEMM_THREADS = 256,
    ZC_GEMM_SMALL_M = 8,       /* most rows of the kernels for few rows */
    ZC_GEMM_SPLITS = 32,       /* most parts of the summed axis */
    ZC_GEMM_NORM = 256,        /* threads of a block that normalises a long row */
    ZC_GEMM_NORM_SHORT = 1024, /* longest row of a warp */
    ZC_GEMM_NORM_WARPS = 4,    /* of a block that normalises short rows */
    ZC_GEMV_WARPS = 16,        /* of a block that shares the summed axis among its warps */
    ZC_GEMM_A_ALIGNED = 1,
    ZC_GEMM_B_ALIGNED = 2, /* pieces along the contiguous axis can be read at once */
    ZC_GEMM_Y_ALIGNED = 4
};

/* Rows of a product, normalised. */
struct zc_gemm_norm {
    const void *skip, *gamma, *beta; /* skip[m][n]; NULL: absent, but gamma */
    void *sum;                       /* what was normalised; NULL: not wanted */
    float epsilon, pad;
};

struct zc_gemm_params {
    const void *a, *b, *c;
    const float *scale; /* [n]; NULL: none */
    void *y;
    long long m, n, k, batch;
    long long a_ld, b_ld; /* along the axis that is not contiguous */
    long long y_ld;
    long long c_row, c_col; /* c_col: 0 or 1 */
    long long c_item;       /* from one item of the batch to the next */
    int batch_rank, aligned;
    float alpha, beta;
    void *partial;             /* sums of each part of the summed axis: [splits][m][n] */
    long long splits, split_k; /* parts, and the length of one */
    long long batch_dims[ZC_GEMM_BATCH], a_batch[ZC_GEMM_BATCH], b_batch[ZC_GEMM_BATCH],
        y_batch[ZC_GEMM_BATCH];
    struct zc_fused_params fused;
    struct zc_gemm_norm norm;
};

#endif
