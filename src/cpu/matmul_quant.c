/* Reference kernels of quantised matrix products. */
#include "cpu/matmul.h"
#include "cpu/quant_out.h"
#include "op/requant.h"

/* A scale or zero point seen along batch, rows and columns. */
typedef struct param {
    const zc_tensor *t; /* NULL: none, the value is 0 */
    int64_t row, col, batch[ZC_MAX_RANK];
} param;

static bool broadcasts(const zc_tensor *t, const zc_tensor *operand, int summed)
{
    if (t->rank != operand->rank) return false;
    for (int d = 0; d < t->rank; d++)
        if (t->dims[d] != 1 && (d == summed || t->dims[d] != operand->dims[d])) return false;
    return true;
}

/* Parameter i of `operand`: one element; or one a row (left) or column; or of the operand's rank,
 * broadcast to it. trans: its last two axes are exchanged. */
static zc_status param_of(zc_kctx *k, int i, const zc_tensor *operand, bool left, bool trans,
                          const zc_mm *mm, param *p)
{
    *p = (param){.t = i < k->nin && zc_present(&k->in[i]) ? &k->in[i] : NULL};
    if (!p->t || zc_tensor_numel(p->t) == 1) return ZC_OK;
    int rank = operand->rank, summed = rank - (left || trans ? 1 : 2),
        lines = 2 * rank - 3 - summed;
    if (p->t->rank == 1 && p->t->dims[0] == (left ? mm->m : mm->n)) {
        *(left ? &p->row : &p->col) = 1;
        return ZC_OK;
    }
    if (rank < 2 || !broadcasts(p->t, operand, summed)) {
        char text[128];
        return zc_kernel_fail(k, "input %d does not fit its operand (got %s)", i,
                              zc_tensor_type_text(p->t, text, sizeof text));
    }
    int64_t s[ZC_MAX_RANK];
    zc_broadcast_strides(p->t, operand, s);
    int shift = mm->batch_rank - (rank - 2);
    for (int d = 0; d < rank - 2; d++) p->batch[d + shift] = s[d];
    *(left ? &p->row : &p->col) = s[lines];
    return ZC_OK;
}

static int64_t param_at(const param *p, const zc_mm *mm, int64_t b, int64_t row, int64_t col)
{
    int64_t at = row * p->row + col * p->col;
    for (int d = mm->batch_rank - 1; d >= 0; d--) {
        at += b % mm->batch_dims[d] * p->batch[d];
        b /= mm->batch_dims[d];
    }
    return at;
}

typedef struct job {
    const zc_mm *mm;
    const zc_tensor *a, *b;
    zc_tensor *y;
    param a_zero, b_zero, a_scale, b_scale;
    double y_scale, y_zero;
} job;

static double zero_at(const param *p, const zc_mm *mm, int64_t b, int64_t row, int64_t col)
{
    return p->t ? zc_get(p->t, param_at(p, mm, b, row, col)) : 0;
}

/* Exact for integers: |a - z| * |b - z| < 2^17, so that a sum of 2^35 of them fits a double. */
static double dot(const job *j, int64_t a, int64_t b, double a_zero, double b_zero)
{
    double sum = 0;
    for (int64_t p = 0; p < j->mm->k; p++)
        sum += (zc_get(j->a, a + p * j->mm->a_col) - a_zero) *
               (zc_get(j->b, b + p * j->mm->b_row) - b_zero);
    return sum;
}

static void rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const zc_mm *mm = j->mm;
    for (int64_t r = begin; r < end; r++) {
        int64_t a, b, batch = r / mm->m, i = r % mm->m;
        zc_mm_offsets(mm, batch, &a, &b);
        for (int64_t n = 0; n < mm->n; n++) {
            double sum =
                dot(j, a + i * mm->a_row, b + n * mm->b_col, zero_at(&j->a_zero, mm, batch, i, 0),
                    zero_at(&j->b_zero, mm, batch, 0, n));
            if (!j->a_scale.t) { /* MatMulInteger: 32-bit wrap-around */
                zc_puti(j->y, r * mm->n + n, (int64_t)sum);
                continue;
            }
            double scale = zc_get(j->a_scale.t, param_at(&j->a_scale, mm, batch, i, 0)) *
                           zc_get(j->b_scale.t, param_at(&j->b_scale, mm, batch, 0, n)) /
                           j->y_scale;
            if (!zc_dtype_is_float(j->y->dtype)) scale = zc_requant_scale(scale);
            zc_put_quantised(j->y, r * mm->n + n, sum * scale, j->y_zero);
        }
    }
}

zc_status zc_k_MatMulInteger(zc_kctx *k)
{
    zc_mm mm;
    bool trans_b = ZC_ATTRS(k, MatMulInteger)->transB;
    ZC_TRY(zc_mm_of(k, ZC_IN_MatMulInteger_a, ZC_IN_MatMulInteger_b, &mm));
    job j = {.mm = &mm,
             .a = &k->in[ZC_IN_MatMulInteger_a],
             .b = &k->in[ZC_IN_MatMulInteger_b],
             .y = &k->out[0]};
    ZC_TRY(param_of(k, ZC_IN_MatMulInteger_a_zero, j.a, true, false, &mm, &j.a_zero));
    ZC_TRY(param_of(k, ZC_IN_MatMulInteger_b_zero, j.b, false, trans_b, &mm, &j.b_zero));
    zc_parallel(k, mm.batch * mm.m, 1, rows, &j);
    return ZC_OK;
}

zc_status zc_k_QLinearMatMul(zc_kctx *k)
{
    zc_mm mm;
    bool trans_b = ZC_ATTRS(k, QLinearMatMul)->transB;
    ZC_TRY(zc_mm_of(k, ZC_IN_QLinearMatMul_a, ZC_IN_QLinearMatMul_b, &mm));
    job j = {.mm = &mm,
             .a = &k->in[ZC_IN_QLinearMatMul_a],
             .b = &k->in[ZC_IN_QLinearMatMul_b],
             .y = &k->out[0],
             .y_scale = zc_get(&k->in[ZC_IN_QLinearMatMul_y_scale], 0),
             .y_zero = zc_get(&k->in[ZC_IN_QLinearMatMul_y_zero], 0)};
    ZC_TRY(param_of(k, ZC_IN_QLinearMatMul_a_scale, j.a, true, false, &mm, &j.a_scale));
    ZC_TRY(param_of(k, ZC_IN_QLinearMatMul_a_zero, j.a, true, false, &mm, &j.a_zero));
    ZC_TRY(param_of(k, ZC_IN_QLinearMatMul_b_scale, j.b, false, trans_b, &mm, &j.b_scale));
    ZC_TRY(param_of(k, ZC_IN_QLinearMatMul_b_zero, j.b, false, trans_b, &mm, &j.b_zero));
    zc_parallel(k, mm.batch * mm.m, 1, rows, &j);
    return ZC_OK;
}
