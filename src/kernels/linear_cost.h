/* What products of m rows of 16 bits by a constant matrix are held to take on Hopper's usual chip,
 * for passes, which choose between forms of the matrix. */
#ifndef ZC_KERNELS_LINEAR_COST_H
#define ZC_KERNELS_LINEAR_COST_H

#include <stdint.h>

typedef struct zc_linear_work {
    int64_t m, n, k;
} zc_linear_work;

/* Microseconds beyond what a launch takes anyhow, of the family that would serve it: by a dense
 * matrix; by one of which two of each four are stored (op/sparse.h), whose sides are whole tiles.
 * INFINITY: none does. */
double zc_linear_dense_us(const zc_linear_work *w);
double zc_linear_sparse_us(const zc_linear_work *w);

/* Sparse products of rows that are not certain have kernels for ranges of them, which end here; the
 * last one stands for rows without an end. */
enum { ZC_SPARSE_RANGES = 8 };
extern const int64_t zc_sparse_ranges[ZC_SPARSE_RANGES];

/* The same of single families. */
double zc_gemv_sm90_us(const zc_linear_work *w);
double zc_gemm_few_sm90_us(const zc_linear_work *w);
double zc_gemv_sparse_sm90_us(const zc_linear_work *w);
double zc_gemm_sparse_sm90_us(const zc_linear_work *w);

#endif
