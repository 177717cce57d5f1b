#include "cpu/gemm.h"

#include "cpu/dnnl.h"

typedef struct product {
    char trans_a, trans_b;
    int64_t m, n, k, lda, ldb, ldc;
    float alpha, beta;
    const float *a, *b;
    float *c;
} product;

static dnnl_status_t multiply(void *arg)
{
    const product *p = arg;
    return dnnl_sgemm(p->trans_a, p->trans_b, p->m, p->n, p->k, p->alpha, p->a, p->lda, p->b,
                      p->ldb, p->beta, p->c, p->ldc);
}

zc_status zc_sgemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                   const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                   int64_t ldc)
{
    product p = {.trans_a = trans_a ? 'T' : 'N',
                 .trans_b = trans_b ? 'T' : 'N',
                 .m = m,
                 .n = n,
                 .k = k,
                 .lda = lda,
                 .ldb = ldb,
                 .ldc = ldc,
                 .alpha = alpha,
                 .beta = beta,
                 .a = a,
                 .b = b,
                 .c = c};
    ZC_TRY(zc_dnnl_prepare_products());
    return zc_dnnl_call(ZC_DNNL_PRODUCT, multiply, &p);
}
