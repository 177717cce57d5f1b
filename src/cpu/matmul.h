/* Batched matrix products: what MatMul, Gemm, Linear and their kin have in common. */
#ifndef ZC_CPU_MATMUL_H
#define ZC_CPU_MATMUL_H

#include "cpu/kernel.h"

/* y[b][i][j] = alpha * sum over p of a[b][i][p] * b[b][p][j]  +  beta * c[i][j]; with a scale for
 * each column, that is alpha. y is contiguous; strides are in elements, 0 along broadcast axes. */
typedef struct zc_mm {
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col;
    int batch_rank;
    int64_t batch_dims[ZC_MAX_RANK], batch; /* batch: their product */
    int64_t a_batch[ZC_MAX_RANK], b_batch[ZC_MAX_RANK];
    double alpha, beta;
    const zc_tensor *c, *scale; /* NULL: none */
    int64_t c_row, c_col;
} zc_mm;

/* The product of in[i] and in[j] that the operation's attributes and shapes describe; checks that
 * the shapes fit each other, which symbolic inference may have left open. */
zc_status zc_mm_of(zc_kctx *k, int i, int j, zc_mm *mm);

/* Element offsets of batch item b in the operands. */
void zc_mm_offsets(const zc_mm *mm, int64_t b, int64_t *a_off, int64_t *b_off);

#endif
