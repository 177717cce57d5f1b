/* Normalisations over the last axes: reference kernels. */
#include <math.h>

#include "cpu/copy.h"

/* Offset in a tensor of strides t that broadcasts to dims of element i there. */
static int64_t broadcast_at(int rank, const int64_t *dims, const int64_t *t, int64_t i)
{
    int64_t at = 0;
    for (int d = rank - 1; d >= 0; d--) {
        at += i % dims[d] * t[d];
        i /= dims[d];
    }
    return at;
}

/* An operand that broadcasts to x; absent: t is NULL. */
typedef struct operand {
    const zc_tensor *t;
    int64_t strides[ZC_MAX_RANK];
} operand;

typedef struct job {
    const zc_tensor *x;
    operand skip, skip_bias, scale, bias; /* (x + skip + skip_bias) normalised, * scale + bias */
    zc_tensor *y, *mean, *inv, *sum;
    int64_t n;
    double eps;
    bool rms; /* by the root mean square, without subtracting the mean */
} job;

static double operand_at(const job *j, const operand *o, int64_t i, double absent)
{
    if (!o->t) return absent;
    return zc_get(o->t, broadcast_at(j->x->rank, j->x->dims, o->strides, i));
}

static double source(const job *j, int64_t i)
{
    double v = zc_get(j->x, i);
    if (j->skip.t) v += operand_at(j, &j->skip, i, 0);
    if (j->skip_bias.t) v += operand_at(j, &j->skip_bias, i, 0);
    return v;
}

static void statistics(const job *j, int64_t at, double *mean, double *inv)
{
    double sum = 0, squares = 0;
    for (int64_t i = at; !j->rms && i < at + j->n; i++) sum += source(j, i);
    *mean = j->rms ? 0 : sum / (double)j->n;
    for (int64_t i = at; i < at + j->n; i++) {
        double d = source(j, i) - *mean;
        squares += d * d;
    }
    *inv = 1 / sqrt(squares / (double)j->n + j->eps);
}

static void rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    for (int64_t r = begin; r < end; r++) {
        double mean, inv;
        statistics(j, r * j->n, &mean, &inv);
        if (zc_present(j->mean)) zc_put(j->mean, r, mean);
        if (zc_present(j->inv)) zc_put(j->inv, r, inv);
        for (int64_t i = r * j->n; i < (r + 1) * j->n; i++) {
            double v = source(j, i);
            if (zc_present(j->sum)) zc_put(j->sum, i, v);
            double scaled = (v - mean) * inv * operand_at(j, &j->scale, i, 1);
            if (zc_present(j->y)) zc_put(j->y, i, scaled + operand_at(j, &j->bias, i, 0));
        }
    }
}

static zc_status use(zc_kctx *k, int i, operand *out)
{
    const zc_tensor *x = &k->in[0], *t = zc_input(k, i);
    if (!t) return ZC_OK;
    bool fits = t->rank <= x->rank;
    for (int d = 1; fits && d <= t->rank; d++) {
        int64_t have = t->dims[t->rank - d];
        fits = have == 1 || have == x->dims[x->rank - d];
    }
    if (!fits) {
        char a[128], b[128];
        return zc_kernel_fail(k, "input %d does not broadcast to the first (got %s and %s)", i,
                              zc_tensor_type_text(t, a, sizeof a),
                              zc_tensor_type_text(x, b, sizeof b));
    }
    out->t = t;
    zc_broadcast_strides(t, x, out->strides);
    return ZC_OK;
}

static zc_status run(zc_kctx *k, job *j, int axis)
{
    int64_t rows_count = zc_dims_span(k->in[0].dims, 0, axis);
    j->x = &k->in[0];
    j->y = &k->out[0];
    j->n = zc_dims_span(k->in[0].dims, axis, k->in[0].rank);
    if (rows_count <= 0 || j->n < 0) return ZC_OK;
    zc_parallel(k, rows_count, 1 + 1024 / (j->n + 1), rows, j);
    return ZC_OK;
}

zc_status zc_k_LayerNormalization(zc_kctx *k)
{
    const zc_attrs_LayerNormalization *a = ZC_ATTRS(k, LayerNormalization);
    job j = {.mean = zc_output(k, 1), .inv = zc_output(k, 2), .eps = a->epsilon};
    ZC_TRY(use(k, 1, &j.scale));
    ZC_TRY(use(k, 2, &j.bias));
    return run(k, &j, zc_axis(a->axis, k->in[0].rank));
}

zc_status zc_k_RMSNormalization(zc_kctx *k)
{
    const zc_attrs_RMSNormalization *a = ZC_ATTRS(k, RMSNormalization);
    job j = {.inv = zc_output(k, 1), .eps = a->epsilon, .rms = true};
    ZC_TRY(use(k, 1, &j.scale));
    return run(k, &j, zc_axis(a->axis, k->in[0].rank));
}

zc_status zc_k_SkipLayerNormalization(zc_kctx *k)
{
    job j = {.mean = zc_output(k, 1), .inv = zc_output(k, 2), .sum = zc_output(k, 3)};
    j.eps = ZC_ATTRS(k, SkipLayerNormalization)->epsilon;
    ZC_TRY(use(k, 1, &j.skip));
    ZC_TRY(use(k, 2, &j.scale));
    ZC_TRY(use(k, 3, &j.bias));
    ZC_TRY(use(k, 4, &j.skip_bias));
    return run(k, &j, k->in[0].rank - 1);
}

zc_status zc_k_SkipSimplifiedLayerNormalization(zc_kctx *k)
{
    job j = {.mean = zc_output(k, 1), .inv = zc_output(k, 2), .sum = zc_output(k, 3), .rms = true};
    j.eps = ZC_ATTRS(k, SkipSimplifiedLayerNormalization)->epsilon;
    ZC_TRY(use(k, 1, &j.skip));
    ZC_TRY(use(k, 2, &j.scale));
    ZC_TRY(use(k, 3, &j.skip_bias));
    return run(k, &j, k->in[0].rank - 1);
}
