/* LinearMoments: the product in f64, then its rows one by one. */
#include <math.h>

#include "cpu/kernel.h"

typedef struct norm { /* of a row: (v - mean) * inv */
    double mean, inv;
} norm;

typedef struct moments {
    const zc_tensor *t; /* NULL: rows are taken as they are */
    int64_t n;          /* columns of a row */
    double epsilon;
    bool rms;
} moments;

typedef struct job {
    const zc_tensor *product, *bias, *sums, *skip, *gamma, *beta;
    moments x, of_skip;
    zc_tensor *y, *out; /* out: moments of y, or NULL */
    int64_t n;
} job;

static int64_t parts_of(int64_t n)
{
    return (n + ZC_MOMENTS_COLUMNS - 1) / ZC_MOMENTS_COLUMNS;
}

static int64_t columns_of(int64_t n, int64_t part)
{
    int64_t left = n - part * ZC_MOMENTS_COLUMNS;
    return left < ZC_MOMENTS_COLUMNS ? left : ZC_MOMENTS_COLUMNS;
}

static norm norm_of(const moments *m, int64_t row)
{
    if (!m->t) return (norm){0, 1};
    int64_t parts = parts_of(m->n);
    double sum = 0, squares = 0, n = (double)m->n;
    for (int64_t p = row * parts; p < (row + 1) * parts; p++)
        sum += zc_get(m->t, 2 * p) * (double)columns_of(m->n, p - row * parts);
    double mean = m->rms ? 0 : sum / n;
    for (int64_t p = row * parts; p < (row + 1) * parts; p++) {
        double off = zc_get(m->t, 2 * p) - mean;
        squares += zc_get(m->t, 2 * p + 1) + (double)columns_of(m->n, p - row * parts) * off * off;
    }
    return (norm){mean, 1 / sqrt(squares / n + m->epsilon)};
}

static double at(const zc_tensor *t, int64_t i, double absent)
{
    return t ? zc_get(t, i) : absent;
}

static void save_moments(const job *j, int64_t row)
{
    for (int64_t p = 0; p < parts_of(j->n); p++) {
        int64_t first = row * j->n + p * ZC_MOMENTS_COLUMNS, n = columns_of(j->n, p);
        double sum = 0, squares = 0;
        for (int64_t i = first; i < first + n; i++) sum += zc_get(j->y, i);
        for (int64_t i = first; i < first + n; i++) {
            double off = zc_get(j->y, i) - sum / (double)n;
            squares += off * off;
        }
        zc_put(j->out, 2 * (row * parts_of(j->n) + p), sum / (double)n);
        zc_put(j->out, 2 * (row * parts_of(j->n) + p) + 1, squares);
    }
}

static void rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    for (int64_t row = begin; row < end; row++) {
        norm x = norm_of(&j->x, row), skip = norm_of(&j->of_skip, row);
        for (int64_t c = 0; c < j->n; c++) {
            int64_t i = row * j->n + c;
            double v = (zc_get(j->product, i) - x.mean * at(j->sums, c, 0)) * x.inv;
            v += at(j->bias, c, 0);
            if (j->skip)
                v += (zc_get(j->skip, i) - skip.mean) * skip.inv * at(j->gamma, c, 1) +
                     at(j->beta, c, 0);
            zc_put(j->y, i, v);
        }
        if (j->out) save_moments(j, row);
    }
}

/* Room for a tensor of t's shape in f64. */
static zc_status wide_like(zc_kctx *k, const zc_tensor *t, zc_tensor *out)
{
    size_t bytes;
    *out = *t;
    out->dtype = ZC_F64;
    if (!zc_tensor_bytes(out, &bytes) || !(out->data = zc_scratch_get(k->scratch, bytes)))
        return zc_fail_nomem(k->diag, "operands in f64", 0);
    return ZC_OK;
}

static zc_status widen(zc_kctx *k, const zc_tensor *t, zc_tensor *out)
{
    ZC_TRY(wide_like(k, t, out));
    for (int64_t i = 0; i < zc_tensor_numel(t); i++) zc_put(out, i, zc_get(t, i));
    return ZC_OK;
}

zc_status zc_k_LinearMoments(zc_kctx *k)
{
    const zc_attrs_LinearMoments *a = ZC_ATTRS(k, LinearMoments);
    const zc_attrs_Linear attrs = {.transB = a->transB, .alpha = 1};
    zc_tensor factors[2], product;
    ZC_TRY(widen(k, &k->in[ZC_IN_LinearMoments_x], &factors[0]));
    ZC_TRY(widen(k, &k->in[ZC_IN_LinearMoments_w], &factors[1]));
    ZC_TRY(wide_like(k, &k->out[0], &product));
    zc_kctx inner = zc_inner(k, ZC_OP_Linear, &attrs, 2, factors, &product);
    ZC_TRY(zc_kernel_run(&inner, true));
    const zc_tensor *x = &k->in[0], *y = &k->out[0];
    job j = {.product = &product,
             .bias = zc_input(k, ZC_IN_LinearMoments_bias),
             .sums = zc_input(k, ZC_IN_LinearMoments_sums),
             .skip = zc_input(k, ZC_IN_LinearMoments_skip),
             .gamma = zc_input(k, ZC_IN_LinearMoments_gamma),
             .beta = zc_input(k, ZC_IN_LinearMoments_beta),
             .x = {zc_input(k, ZC_IN_LinearMoments_moments), x->dims[x->rank - 1],
                   (double)a->epsilon, a->rms},
             .of_skip = {zc_input(k, ZC_IN_LinearMoments_skip_moments), y->dims[y->rank - 1],
                         (double)a->skip_epsilon, a->skip_rms},
             .y = &k->out[0],
             .out = zc_output(k, 1),
             .n = y->dims[y->rank - 1]};
    if (zc_tensor_numel(y) > 0) zc_parallel(k, zc_tensor_numel(y) / j.n, 1, rows, &j);
    return ZC_OK;
}
