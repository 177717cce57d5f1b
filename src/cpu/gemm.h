/* f32 matrix products through oneDNN, on the session's threads. */
#ifndef ZC_CPU_GEMM_H
#define ZC_CPU_GEMM_H

#include "cpu/kernel.h"

/* oneDNN generates code on first use. When memory runs out under it, it jumps to code that it could
 * not make or throws through C. What it takes at a time is less than this, so that much must be
 * there beforehand. */
#define ZC_CODE_ROOM ((size_t)32 << 20)
zc_status zc_check_code_room(zc_diag *diag);

/* c[m][n] = alpha * op(a) op(b) + beta * c, row-major with row lengths lda, ldb, ldc; trans: the
 * operand is stored transposed. On the calling thread. false: the library refused. */
bool zc_sgemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha,
              const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
              int64_t ldc);

#endif
