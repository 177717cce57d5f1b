/* Operands of matrix products as matrices with batch axes: what MatMul's broadcasting means,
 * for concrete shapes. */
#ifndef ZC_OP_MATRIX_H
#define ZC_OP_MATRIX_H

#include "op/tensor.h"

/* Strides are in elements. */
typedef struct zc_matrix {
    int batch_rank;
    int64_t batch_dims[ZC_MAX_RANK], batch_strides[ZC_MAX_RANK];
    int64_t rows, cols, row, col; /* row, col: from one row, column to the next */
} zc_matrix;

/* The last two axes, the rest being batch axes. A vector is one row on the left, one column on the
 * right. trans exchanges the two; trans_batch: the rows are axis 0 (com.microsoft FusedMatMul). */
zc_matrix zc_matrix_of(const zc_tensor *t, bool left, bool trans, bool trans_batch);

/* The last axis, all others being rows. */
zc_matrix zc_matrix_flat(const zc_tensor *t);

/* Strides of m's batch axes along a product's, right-aligned, 0 where they broadcast; false: they
 * do not fit. */
bool zc_matrix_batch(const zc_matrix *m, int rank, const int64_t *dims, int64_t *strides);

#endif
