/* f32 matrix products through oneDNN, on the session's threads. */
#ifndef ZC_CPU_GEMM_H
#define ZC_CPU_GEMM_H

#include "cpu/kernel.h"

/* c[m][n] = alpha * op(a) op(b) + beta * c, row-major with row lengths lda, ldb, ldc; trans: the
 * operand is stored transposed. On the calling thread. How it sums depends on the sizes. */
zc_status zc_sgemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                   const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                   int64_t ldc);

#endif
