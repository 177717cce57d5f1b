/* Attention: the reference computation. */
#include "cpu/attention.h"

#include <math.h>

void zc_attn_range(const zc_attn *a, int64_t b, int64_t i, int64_t *lo, int64_t *hi)
{
    int64_t at = (a->position ? a->position[b] : 0) + i;
    *lo = 0;
    *hi = a->keys && a->keys[b] < a->nk ? a->keys[b] : a->nk;
    if (zc_attn_even(a, b)) *hi = a->nk;
    if (a->causal && *hi > at + 1) *hi = at + 1;
    if (a->window > 0 && at + 1 > a->window) *lo = at + 1 - a->window;
    if (*hi < *lo) *hi = *lo;
}

/* ---- reference ---- */

typedef struct row {
    const zc_attn *a;
    int64_t b, h, i;
    double *p;   /* nk */
    double *sum; /* dv */
} row;

static double bias_at(const row *r, const zc_attn_bias *bias, int64_t j)
{
    const int64_t *s = bias->strides;
    if (!bias->t) return 0;
    if (j >= bias->cols) return -(double)INFINITY;
    int64_t at = r->b * s[0] + r->h * s[1] + r->i * s[2] + j * s[3];
    if (bias->t->dtype == ZC_BOOL) return zc_geti(bias->t, at) ? 0 : -(double)INFINITY;
    return zc_get(bias->t, at);
}

static double dot(const row *r, int64_t j)
{
    const zc_attn *a = r->a;
    int64_t kv = r->h / (a->heads / a->kv_heads);
    int64_t q = a->q.at + r->b * a->q.batch + r->h * a->q.head + r->i * a->q.pos;
    int64_t k = a->k.at + r->b * a->k.batch + kv * a->k.head + j * a->k.pos;
    double sum = 0;
    for (int64_t e = 0; e < a->d; e++) sum += zc_get(a->q.t, q + e) * zc_get(a->k.t, k + e);
    return zc_attn_even(a, r->b) ? 0 : sum * a->scale;
}

static void put_score(const row *r, int mode, int64_t j, double v)
{
    const zc_attn *a = r->a;
    if (!a->scores || a->scores_mode != mode) return;
    zc_put(a->scores, ((r->b * a->heads + r->h) * a->nq + r->i) * a->nk + j, v);
}

/* Scores with bias into p; a key that is masked gets minus infinity whatever its score. */
static void score_row(const row *r)
{
    const zc_attn *a = r->a;
    int64_t lo, hi;
    int64_t end = a->bias[0].t ? a->bias[0].cols : a->nk;
    zc_attn_range(a, r->b, r->i, &lo, &hi);
    for (int64_t j = 0; j < a->nk; j++) {
        bool seen = j >= lo && j < hi;
        double s = seen || a->scores ? dot(r, j) : 0;
        put_score(r, 0, j, s);
        if (a->softcap > 0) s = tanh(s / a->softcap) * a->softcap;
        put_score(r, 1, j, s);
        double one = bias_at(r, &a->bias[0], j), two = bias_at(r, &a->bias[1], j);
        bool hidden = one == -(double)INFINITY || two == -(double)INFINITY;
        bool in_range = seen && j < end;
        r->p[j] = !in_range ? -(double)INFINITY : hidden ? zc_attn_hidden(a) : s + one + two;
        put_score(r, 2, j, r->p[j]);
    }
}

static void softmax_row(const row *r)
{
    const zc_attn *a = r->a;
    bool has_sink = a->sink || a->zero_sink;
    double sink = a->sink ? zc_get(a->sink, r->h) : 0, sum = 0;
    double max = has_sink ? sink : -(double)INFINITY;
    for (int64_t j = 0; j < a->nk; j++)
        if (!(r->p[j] <= max)) max = r->p[j];
    if (max == -(double)INFINITY) max = 0;
    if (has_sink) sum = exp(sink - max);
    for (int64_t j = 0; j < a->nk; j++) sum += r->p[j] = exp(r->p[j] - max);
    for (int64_t j = 0; j < a->nk; j++) {
        r->p[j] = sum == 0 ? 0 : r->p[j] / sum;
        put_score(r, 3, j, r->p[j]);
    }
}

static void value_row(const row *r)
{
    const zc_attn *a = r->a;
    if (!zc_present(a->y)) return;
    int64_t kv = r->h / (a->heads / a->kv_heads);
    int64_t y = a->y_at.at + r->b * a->y_at.batch + r->h * a->y_at.head + r->i * a->y_at.pos;
    int64_t v = a->v.at + r->b * a->v.batch + kv * a->v.head;
    for (int64_t e = 0; e < a->dv; e++) r->sum[e] = 0;
    for (int64_t j = 0; j < a->nk; j++) {
        if (r->p[j] == 0) continue;
        for (int64_t e = 0; e < a->dv; e++)
            r->sum[e] += r->p[j] * zc_get(a->v.t, v + j * a->v.pos + e);
    }
    for (int64_t e = 0; e < a->dv; e++) zc_put(a->y, y + e, r->sum[e]);
}

typedef struct job {
    const zc_attn *a;
    double *room; /* nk + dv for every batch item and head */
} job;

static void heads(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const zc_attn *a = j->a;
    for (int64_t t = begin; t < end; t++) {
        double *p = j->room + t * (a->nk + a->dv);
        for (int64_t i = 0; i < a->nq; i++) {
            row r = {a, t / a->heads, t % a->heads, i, p, p + a->nk};
            score_row(&r);
            softmax_row(&r);
            value_row(&r);
        }
    }
}

zc_status zc_attn_run(zc_kctx *k, const zc_attn *a, bool fast)
{
    int64_t all[] = {a->batch, a->heads, a->nq};
    if (zc_numel(3, all) <= 0 || (!zc_present(a->y) && !a->scores)) return ZC_OK;
    if (fast && zc_attn_fast_fits(a)) return zc_attn_fast(k, a);
    size_t bytes;
    int64_t dims[] = {a->batch, a->heads, a->nk + a->dv};
    job j = {.a = a};
    if (zc_dtype_bytes(ZC_F64, zc_numel(3, dims), &bytes))
        j.room = zc_scratch_get(k->scratch, bytes);
    if (!j.room) return zc_fail_nomem(k->diag, "attention scores", 0);
    zc_parallel(k, a->batch * a->heads, 1, heads, &j);
    return ZC_OK;
}
