/* com.microsoft GroupQueryAttention. */
#include <math.h>
#include <string.h>

#include "cpu/attention_ms.h"
#include "cpu/copy.h"
#include "cpu/fast.h"
#include "cpu/rotary.h"

#define GQA(input) ZC_IN_MsGroupQueryAttention_##input

typedef struct gqa {
    zc_ms m;
    zc_rotary r; /* half 0: none */
    const zc_tensor *ids, *q_norm, *k_norm;
    double norm_eps;
    int64_t *past; /* tokens before the new ones, of each batch item */
    int64_t cap;   /* positions of the present key and value */
} gqa;

/* ---- preparing queries and keys: norm, rotation ---- */

typedef struct prepare_job {
    const gqa *g;
    zc_heads x;
    const zc_tensor *norm;
    int64_t heads;
    zc_tensor *to; /* laid out [batch, heads, room, size] */
    int64_t room;  /* positions; the new ones go behind the past ones if `behind` */
    bool behind, turn;
} prepare_job;

/* to = x * weight / rms(x) */
static void norm_head(const prepare_job *j, int64_t x, int64_t to, int64_t size)
{
    double squares = 0;
    for (int64_t e = 0; e < size; e++) squares += zc_get(j->x.t, x + e) * zc_get(j->x.t, x + e);
    double inv = 1 / sqrt(squares / (double)size + j->g->norm_eps);
    for (int64_t e = 0; e < size; e++)
        zc_put(j->to, to + e, zc_get(j->x.t, x + e) * inv * zc_get(j->norm, e));
}

static int64_t position_of(const gqa *g, int64_t b, int64_t s)
{
    return g->ids ? zc_geti(g->ids, b * g->m.a.nq + s) : g->past[b] + s;
}

static void prepare_rows(void *arg, int64_t begin, int64_t end)
{
    const prepare_job *j = arg;
    const gqa *g = j->g;
    int64_t length = g->m.a.nq, size = g->m.a.d;
    for (int64_t i = begin; i < end; i++) {
        int64_t s = i % length, h = i / length % j->heads, b = i / length / j->heads;
        int64_t x = j->x.at + b * j->x.batch + h * j->x.head + s * j->x.pos;
        int64_t to = ((b * j->heads + h) * j->room + s + (j->behind ? g->past[b] : 0)) * size;
        const zc_tensor *from = j->x.t;
        if (j->norm) {
            norm_head(j, x, to, size);
            from = j->to;
            x = to;
        }
        if (j->turn)
            zc_rotate(&g->r, position_of(g, b, s), from, x, j->to, to, size);
        else if (!j->norm)
            for (int64_t e = 0; e < size; e++) zc_put(j->to, to + e, zc_get(from, x + e));
    }
}

static void prepare(zc_kctx *k, prepare_job *j)
{
    const zc_attn *a = &j->g->m.a;
    zc_parallel(k, a->batch * j->heads * a->nq, 16, prepare_rows, j);
}

/* ---- cache ---- */

/* The past positions that count, then room for the new ones; the rest is cleared. */
static void begin_cache(zc_kctx *k, const gqa *g, const zc_tensor *past, zc_tensor *cache)
{
    const zc_attn *a = &g->m.a;
    size_t row = zc_elem_size(cache) * (size_t)a->d;
    int64_t old = past ? past->dims[2] : 0;
    for (int64_t h = 0; h < a->batch * a->kv_heads; h++) {
        int64_t used = g->past[h / a->kv_heads];
        char *to = zc_elem_at(cache, h * g->cap * a->d);
        if (used) memcpy(to, zc_elem_at(past, h * old * a->d), (size_t)used * row);
        memset(to + (size_t)used * row, 0, (size_t)(g->cap - used) * row);
    }
}

/* Output i, or scratch memory of its shape. */
static zc_status cache_room(zc_kctx *k, const gqa *g, int i, zc_tensor *out)
{
    const zc_attn *a = &g->m.a;
    const int64_t dims[] = {a->batch, a->kv_heads, g->cap, a->d};
    const zc_tensor *wanted = zc_output(k, i);
    if (!wanted) return zc_scratch_tensor(k, k->in[GQA(q)].dtype, 4, dims, out);
    *out = *wanted;
    return zc_check_shape(k, out, 4, dims, "present key or value");
}

static zc_status fill_caches(zc_kctx *k, gqa *g)
{
    zc_attn *a = &g->m.a;
    ZC_TRY(cache_room(k, g, 1, &g->m.k));
    ZC_TRY(cache_room(k, g, 2, &g->m.v));
    begin_cache(k, g, zc_input(k, GQA(past_k)), &g->m.k);
    begin_cache(k, g, zc_input(k, GQA(past_v)), &g->m.v);
    prepare_job key = {g, a->k, g->k_norm, a->kv_heads, &g->m.k, g->cap, true, g->r.half > 0};
    prepare_job value = {g, a->v, NULL, a->kv_heads, &g->m.v, g->cap, true, false};
    prepare(k, &key);
    prepare(k, &value);
    a->k = zc_heads_4d(&g->m.k, a->kv_heads, g->cap, a->d);
    a->v = zc_heads_4d(&g->m.v, a->kv_heads, g->cap, a->d);
    return ZC_OK;
}

static zc_status turn_queries(zc_kctx *k, gqa *g)
{
    zc_attn *a = &g->m.a;
    const int64_t dims[] = {a->batch, a->heads, a->nq, a->d};
    if (!g->r.half && !g->q_norm) return ZC_OK;
    ZC_TRY(zc_scratch_tensor(k, g->m.work, 4, dims, &g->m.q));
    prepare_job query = {g, a->q, g->q_norm, a->heads, &g->m.q, a->nq, false, g->r.half > 0};
    prepare(k, &query);
    a->q = zc_heads_4d(&g->m.q, a->heads, a->nq, a->d);
    return ZC_OK;
}

/* ---- set-up ---- */

/* Views of query, key and value, separate or side by side in the query. */
static zc_status views(zc_kctx *k, gqa *g)
{
    zc_attn *a = &g->m.a;
    const zc_tensor *q = &k->in[GQA(q)], *key = zc_input(k, GQA(k)), *v = zc_input(k, GQA(v));
    int64_t heads = a->heads, kv = a->kv_heads, n = a->nq, cols = q->dims[2];
    a->d = a->dv = key ? cols / heads : cols / (heads + 2 * kv);
    const int64_t q_dims[] = {a->batch, n, key ? heads : heads + 2 * kv, a->d};
    const int64_t k_dims[] = {a->batch, n, kv, a->d};
    ZC_TRY(zc_check_length(k, zc_tensor_numel(q), zc_numel(4, q_dims), "size of the query"));
    a->q = (zc_heads){q, 0, n * cols, a->d, cols};
    if (!key) {
        a->k = (zc_heads){q, heads * a->d, n * cols, a->d, cols};
        a->v = (zc_heads){q, (heads + kv) * a->d, n * cols, a->d, cols};
        return ZC_OK;
    }
    ZC_TRY(zc_check_length(k, zc_tensor_numel(key), zc_numel(4, k_dims), "size of the key"));
    ZC_TRY(zc_check_length(k, zc_tensor_numel(v), zc_numel(4, k_dims), "size of the value"));
    a->k = zc_heads_3d(key, kv, n, a->d);
    a->v = zc_heads_3d(v, kv, n, a->d);
    return ZC_OK;
}

/* Lengths: of what is cached, of what is valid. With as many new tokens as there are in all,
 * nothing of the past counts. */
static zc_status lengths(zc_kctx *k, gqa *g)
{
    zc_attn *a = &g->m.a;
    const zc_tensor *past = zc_input(k, GQA(past_k)), *ends = &k->in[GQA(lengths)];
    int64_t total = zc_geti(&k->in[GQA(total)], 0), old = past ? past->dims[2] : 0;
    int64_t *v = zc_scratch_get(k->scratch, (size_t)a->batch * 2 * sizeof *v);
    if (!v) return zc_fail_nomem(k->diag, "lengths", 0);
    ZC_TRY(zc_check_length(k, zc_tensor_numel(ends), a->batch, "number of lengths"));
    g->cap = old > total ? old : total;
    a->nk = total;
    a->keys = v;
    a->position = g->past = v + a->batch;
    for (int64_t b = 0; b < a->batch; b++) {
        int64_t end = zc_geti(ends, b);
        bool fits = end >= 0 && end < total;
        int64_t used = !fits || total == a->nq ? 0 : end + 1 - a->nq;
        if (!fits || used < 0 || used > old)
            return zc_kernel_fail(k,
                                  "seqlens_k[%lld] does not fit the other lengths (got %lld with "
                                  "%lld new, %lld past and %lld total tokens)",
                                  (long long)b, (long long)end, (long long)a->nq, (long long)old,
                                  (long long)total);
        v[b] = end + 1;
        g->past[b] = used;
    }
    if (total < a->nq)
        return zc_kernel_fail(k, "total_sequence_length is too small (got %lld, need %lld)",
                              (long long)total, (long long)a->nq);
    return ZC_OK;
}

static zc_status use_rotary(zc_kctx *k, gqa *g)
{
    const zc_attrs_MsGroupQueryAttention *at = ZC_ATTRS(k, MsGroupQueryAttention);
    const zc_tensor *cos = zc_input(k, GQA(cos)), *sin = zc_input(k, GQA(sin));
    const zc_attn *a = &g->m.a;
    g->ids = zc_input(k, GQA(positions));
    if (g->ids)
        ZC_TRY(zc_check_length(k, zc_tensor_numel(g->ids), a->batch * a->nq,
                               "number of position ids"));
    if (!at->do_rotary) return ZC_OK;
    g->r = (zc_rotary){cos, sin, cos->dims[1], at->rotary_interleaved != 0};
    ZC_TRY(zc_check_shape(k, sin, 2, cos->dims, "sin_cache"));
    if (2 * g->r.half > a->d)
        return zc_kernel_fail(k, "cos_cache has too many columns (got %lld, need at most %lld)",
                              (long long)g->r.half, (long long)a->d / 2);
    for (int64_t i = 0; i < a->batch * a->nq; i++) {
        int64_t at_row = position_of(g, i / a->nq, i % a->nq);
        if (at_row < 0 || at_row >= cos->dims[0])
            return zc_kernel_fail(k, "position out of range (got %lld, need [0, %lld])",
                                  (long long)at_row, (long long)cos->dims[0] - 1);
    }
    return ZC_OK;
}

static zc_status use_norms(zc_kctx *k, gqa *g)
{
    g->norm_eps = ZC_ATTRS(k, MsGroupQueryAttention)->qk_norm_epsilon;
    g->q_norm = zc_input(k, GQA(q_norm));
    g->k_norm = zc_input(k, GQA(k_norm));
    if (g->q_norm)
        ZC_TRY(zc_check_length(k, zc_tensor_numel(g->q_norm), g->m.a.d, "size of q_norm_weight"));
    if (g->k_norm)
        ZC_TRY(zc_check_length(k, zc_tensor_numel(g->k_norm), g->m.a.d, "size of k_norm_weight"));
    return ZC_OK;
}

static zc_status run(zc_kctx *k, bool fast)
{
    const zc_attrs_MsGroupQueryAttention *at = ZC_ATTRS(k, MsGroupQueryAttention);
    const zc_tensor *q = &k->in[GQA(q)];
    gqa g = {.m.work = fast ? ZC_F32 : ZC_F64};
    zc_attn *a = &g.m.a;
    *a = (zc_attn){.batch = q->dims[0],
                   .heads = at->num_heads,
                   .kv_heads = at->kv_num_heads,
                   .nq = q->dims[1],
                   .y = &k->out[0],
                   .softcap = at->softcap,
                   .causal = at->causal != 0,
                   .window = at->local_window_size,
                   .sink = zc_input(k, GQA(sink)),
                   .zero_sink = at->smooth_softmax > 0,
                   .scores = at->qk_output ? zc_output(k, 3) : NULL,
                   .scores_mode = at->qk_output == 1 ? 2 : 3};
    ZC_TRY(views(k, &g));
    if (zc_tensor_numel(q) == 0) return ZC_OK;
    bool given = ZC_ATTR_GIVEN(MsGroupQueryAttention, at, scale) && at->scale != 0;
    a->scale = given ? at->scale : 1 / sqrt((double)a->d);
    a->y_at = zc_heads_3d(a->y, a->heads, a->nq, a->d);
    if (a->sink)
        ZC_TRY(zc_check_length(k, zc_tensor_numel(a->sink), a->heads, "size of head_sink"));
    ZC_TRY(lengths(k, &g));
    ZC_TRY(use_rotary(k, &g));
    ZC_TRY(use_norms(k, &g));
    ZC_TRY(fill_caches(k, &g));
    ZC_TRY(turn_queries(k, &g));
    ZC_TRY(zc_ms_use_bias(k, &g.m, zc_input(k, GQA(add))));
    return zc_attn_run(k, a, fast);
}

zc_status zc_k_MsGroupQueryAttention(zc_kctx *k)
{
    return run(k, false);
}

bool zc_fits_ms_gqa(const zc_kctx *k)
{
    return k->in[GQA(q)].dtype == ZC_F32;
}

zc_status zc_fast_ms_gqa(zc_kctx *k)
{
    return run(k, true);
}
