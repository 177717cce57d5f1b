#include "cpu/gemm.h"

#include <string.h>

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

/* ---- bytes ---- */

typedef struct integer_product {
    char trans_a;
    int64_t m, n, k, lda, ldb, ldc;
    const uint8_t *a;
    const int8_t *b;
    uint8_t a_zero;
    int8_t b_zero;
    int32_t *c;
} integer_product;

static dnnl_status_t multiply_bytes(void *arg)
{
    const integer_product *p = arg;
    const int32_t nothing = 0;
    return dnnl_gemm_u8s8s32(p->trans_a, 'N', 'F', p->m, p->n, p->k, 1, p->a, p->lda, p->a_zero,
                             p->b, p->ldb, p->b_zero, 0, p->c, p->ldc, &nothing);
}

/* Where the library's sums would saturate. */
static void multiply_plainly(const integer_product *p)
{
    const int64_t row = p->trans_a == 'T' ? 1 : p->lda, col = p->trans_a == 'T' ? p->lda : 1;
    for (int64_t i = 0; i < p->m; i++) {
        int32_t *c = p->c + i * p->ldc;
        memset(c, 0, (size_t)p->n * sizeof *c);
        for (int64_t k = 0; k < p->k; k++) {
            const int32_t a = p->a[i * row + k * col] - p->a_zero;
            const int8_t *b = p->b + k * p->ldb;
            for (int64_t n = 0; n < p->n; n++) /* sums wrap */
                c[n] = (int32_t)((uint32_t)c[n] + (uint32_t)(a * (b[n] - p->b_zero)));
        }
    }
}

/* Machines without instructions for products of bytes let 16-bit sums saturate. */
static bool is_exact(void)
{
    const unsigned vnni = (unsigned)dnnl_cpu_isa_avx512_core_vnni;
    return ((unsigned)dnnl_get_effective_cpu_isa() & vnni) == vnni;
}

zc_status zc_igemm(bool trans_a, int64_t m, int64_t n, int64_t k, const uint8_t *a, int64_t lda,
                   int a_zero, const int8_t *b, int64_t ldb, int b_zero, int32_t *c, int64_t ldc)
{
    integer_product p = {.trans_a = trans_a ? 'T' : 'N',
                         .m = m,
                         .n = n,
                         .k = k,
                         .lda = lda,
                         .ldb = ldb,
                         .ldc = ldc,
                         .a = a,
                         .b = b,
                         .a_zero = (uint8_t)a_zero,
                         .b_zero = (int8_t)b_zero,
                         .c = c};
    if (is_exact()) return zc_dnnl_call(ZC_DNNL_INTEGER, multiply_bytes, &p);
    multiply_plainly(&p);
    return ZC_OK;
}
