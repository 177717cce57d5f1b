/* Parameters of products by sparse matrices: y[m][n] = x[m][k] w^T + bias, operands as SparseLinear
 * has them. */
#ifndef ZC_ABI_SPARSE_LINEAR_H
#define ZC_ABI_SPARSE_LINEAR_H

#include "abi/epilogue.h"

struct zc_sparse_linear_params {
    const void *x, *w, *places, *bias; /* bias: NULL without */
    void *y;
    long long m, n, k;
    struct zc_fused_params fused;
};

#endif
