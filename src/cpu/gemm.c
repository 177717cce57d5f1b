#include "cpu/gemm.h"

#include <dnnl.h>
#include <omp.h>
#include <sys/mman.h>

zc_status zc_check_code_room(zc_diag *diag)
{
    void *p = mmap(NULL, ZC_CODE_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return zc_fail_nomem(diag, "oneDNN's generated code", ZC_CODE_ROOM);
    munmap(p, ZC_CODE_ROOM);
    return ZC_OK;
}

/* oneDNN takes its threads from OpenMP, as many as the calling thread's setting says. Here that is
 * one: the session's own threads each compute a part. The caller's setting is put back. */
bool zc_sgemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha,
              const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
              int64_t ldc)
{
    int before = omp_get_max_threads();
    if (before != 1) omp_set_num_threads(1);
    dnnl_status_t status = dnnl_sgemm(trans_a ? 'T' : 'N', trans_b ? 'T' : 'N', m, n, k, alpha, a,
                                      lda, b, ldb, beta, c, ldc);
    if (before != 1) omp_set_num_threads(before);
    return status == dnnl_success;
}
