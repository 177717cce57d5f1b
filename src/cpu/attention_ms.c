/* com.microsoft Attention and MultiHeadAttention. */
#include "cpu/attention_ms.h"

#include <math.h>

#include "cpu/copy.h"
#include "cpu/fast.h"

/* ---- shared ---- */

zc_status zc_ms_use_bias(zc_kctx *k, zc_ms *m, const zc_tensor *t)
{
    const zc_attn *a = &m->a;
    if (!t) return ZC_OK;
    int64_t own[ZC_MAX_RANK];
    int64_t need[] = {t->dims[0] == 1 ? 1 : a->batch, t->dims[1] == 1 ? 1 : a->heads, a->nq, a->nk};
    zc_tensor scores = {.rank = 4, .dims = {a->batch, a->heads, a->nq, a->nk}};
    ZC_TRY(zc_check_shape(k, t, 4, need, "attention bias"));
    zc_broadcast_strides(t, &scores, own);
    for (int d = 0; d < 4; d++) m->a.bias[1].strides[d] = own[d];
    m->a.bias[1].cols = a->nk;
    m->a.bias[1].t = t;
    return ZC_OK;
}

/* ---- masks ---- */

/* May key j of row r be seen, by a mask [batch] of numbers of valid keys, [2*batch] of their
 * exclusive ends and then their starts, [3*batch+2] of their numbers and offsets that say no more,
 * or [rows, nk] of zeros for masked keys? */
static bool is_seen(const zc_attn *a, const zc_tensor *mask, int64_t r, int64_t j)
{
    if (mask->rank > 1) return zc_geti(mask, r * a->nk + j) > 0;
    if (j >= zc_geti(mask, r)) return false;
    return mask->dims[0] != 2 * a->batch || j >= zc_geti(mask, a->batch + r);
}

/* bias[0] from a mask input; NULL: none. A masked key's score gets `filter` added. */
static zc_status use_mask(zc_kctx *k, zc_ms *m, const zc_tensor *mask, double filter)
{
    zc_attn *a = &m->a;
    if (!mask) return ZC_OK;
    if (mask->rank == 2 && mask->dims[1] == 1 && a->nk != 1) return ZC_OK; /* a dummy */
    int64_t rows = mask->rank == 3 ? a->nq : 1, got = zc_tensor_numel(mask);
    int64_t dims[] = {a->batch, rows, a->nk};
    bool ends =
        mask->rank == 1 && (got == a->batch || got == 2 * a->batch || got == 3 * a->batch + 2);
    if (!ends && (mask->rank == 1 || got != zc_numel(3, dims))) {
        char text[128];
        return zc_kernel_unsupported(k, "mask of this form (got %s)",
                                     zc_tensor_type_text(mask, text, sizeof text));
    }
    ZC_TRY(zc_scratch_tensor(k, ZC_F32, 3, dims, &m->mask));
    float *to = m->mask.data;
    for (int64_t r = 0; r < a->batch * rows; r++)
        for (int64_t j = 0; j < a->nk; j++)
            to[r * a->nk + j] = is_seen(a, mask, r, j) ? 0 : (float)filter;
    int64_t row = rows == 1 ? 0 : a->nk;
    a->bias[0] = (zc_attn_bias){&m->mask, {rows * a->nk, 0, row, 1}, a->nk};
    return ZC_OK;
}

/* ---- past ---- */

/* past and new positions one after the other: in `wanted` from element `at` on, or in scratch
 * memory when it is NULL and there is a past. *view covers n new positions and becomes that of the
 * whole. past->t is NULL without a past. */
static zc_status append(zc_kctx *k, zc_ms *m, const zc_heads *past, int64_t old, zc_tensor *wanted,
                        int64_t at, int64_t n, int64_t size, zc_heads *view, zc_tensor *room)
{
    const zc_attn *a = &m->a;
    int64_t total = old + n, dims[] = {a->batch, a->kv_heads, total, size};
    if (!wanted && !past->t) return ZC_OK;
    zc_tensor whole = {.dtype = ZC_NONE};
    if (wanted)
        whole = (zc_tensor){wanted->dtype, 4, {0}, zc_elem_at(wanted, at)};
    else
        ZC_TRY(zc_scratch_tensor(k, view->t->dtype, 4, dims, &whole));
    if (past->t) zc_heads_store(k, past, a->batch, a->kv_heads, old, size, &whole, total, 0);
    zc_heads_store(k, view, a->batch, a->kv_heads, n, size, &whole, total, old);
    *room = whole;
    *view = zc_heads_4d(room, a->kv_heads, total, size);
    return ZC_OK;
}

/* The queries stand behind `old` past keys. */
static zc_status behind_past(zc_kctx *k, zc_ms *m, int64_t old)
{
    int64_t *position = zc_scratch_get(k->scratch, (size_t)m->a.batch * sizeof *position);
    if (!position) return zc_fail_nomem(k->diag, "key positions", 0);
    for (int64_t b = 0; b < m->a.batch; b++) position[b] = old;
    m->a.position = position;
    m->a.nk += old;
    return ZC_OK;
}

/* ---- biases of the projections ---- */

typedef struct bias_job {
    zc_heads x;
    const zc_tensor *bias;
    int64_t bias_at, heads, length, size;
    zc_tensor *out;
} bias_job;

static void bias_rows(void *arg, int64_t begin, int64_t end)
{
    const bias_job *j = arg;
    bool plain = j->out->dtype == ZC_F32 && j->x.t->dtype == ZC_F32 && j->bias->dtype == ZC_F32;
    for (int64_t r = begin; r < end; r++) {
        int64_t s = r % j->length, h = r / j->length % j->heads, b = r / j->length / j->heads;
        int64_t x = j->x.at + b * j->x.batch + h * j->x.head + s * j->x.pos;
        int64_t bias = j->bias_at + h * j->size, to = r * j->size;
        if (plain) {
            const float *xs = (const float *)j->x.t->data + x;
            const float *bs = (const float *)j->bias->data + bias;
            float *ys = (float *)j->out->data + to;
            for (int64_t e = 0; e < j->size; e++) ys[e] = xs[e] + bs[e];
            continue;
        }
        for (int64_t e = 0; e < j->size; e++)
            zc_put(j->out, to + e, zc_get(j->x.t, x + e) + zc_get(j->bias, bias + e));
    }
}

/* view plus a part of the bias, in scratch memory; nothing without a bias. */
static zc_status add_bias(zc_kctx *k, const zc_ms *m, const zc_tensor *bias, int64_t bias_at,
                          int64_t length, int64_t size, zc_heads *view, zc_tensor *room)
{
    int64_t dims[] = {m->a.batch, m->a.heads, length, size};
    if (!bias) return ZC_OK;
    ZC_TRY(zc_scratch_tensor(k, m->work, 4, dims, room));
    bias_job j = {*view, bias, bias_at, m->a.heads, length, size, room};
    zc_parallel(k, zc_numel(3, dims), 64, bias_rows, &j);
    *view = zc_heads_4d(room, m->a.heads, length, size);
    return ZC_OK;
}

/* ---- Attention ---- */

#define ATT(input) ZC_IN_MsAttention_##input

/* out[rows, columns] = x weights + bias, through the Gemm kernels. */
static zc_status project(zc_kctx *k, zc_ms *m, bool fast, zc_tensor *out)
{
    const zc_tensor *x = &k->in[ATT(x)], *w = &k->in[ATT(w)], *bias = zc_input(k, ATT(bias));
    zc_attrs_Gemm attrs;
    zc_attrs_default(zc_op_get(ZC_OP_Gemm), &attrs);
    int64_t rows = x->dims[0] * x->dims[1], dims[] = {rows, w->dims[1]};
    ZC_TRY(zc_check_length(k, x->dims[2], w->dims[0], "size of the input"));
    if (bias) ZC_TRY(zc_check_length(k, zc_tensor_numel(bias), dims[1], "size of the bias"));
    ZC_TRY(zc_scratch_tensor(k, m->work, 2, dims, out));
    zc_tensor in[] = {{x->dtype, 2, {rows, x->dims[2]}, x->data}, *w, {.dtype = ZC_NONE}};
    if (bias) in[2] = *bias;
    zc_kctx inner = zc_inner(k, ZC_OP_Gemm, &attrs, 3, in, out);
    return zc_kernel_run(&inner, !fast);
}

static zc_status attention_past(zc_kctx *k, zc_ms *m)
{
    zc_attn *a = &m->a;
    const zc_tensor *past = zc_input(k, ATT(past));
    zc_tensor *present = zc_output(k, 1);
    int64_t old = past ? past->dims[3] : 0, n = a->nk, all = a->batch * a->kv_heads;
    int64_t need[] = {2, a->batch, a->kv_heads, old, a->d};
    if (past) ZC_TRY(zc_check_shape(k, past, 5, need, "past"));
    if ((past || present) && a->d != a->dv)
        return zc_kernel_fail(k, "head sizes of key and value differ (got %lld and %lld)",
                              (long long)a->d, (long long)a->dv);
    zc_heads keys = zc_heads_4d(past, a->kv_heads, old, a->d), values = keys;
    values.at = all * old * a->d;
    int64_t half = all * (old + n) * a->d;
    ZC_TRY(append(k, m, &keys, old, present, 0, n, a->d, &a->k, &m->k));
    ZC_TRY(append(k, m, &values, old, present, half, n, a->dv, &a->v, &m->v));
    return behind_past(k, m, old);
}

static zc_status attention(zc_kctx *k, bool fast)
{
    const zc_attrs_MsAttention *at = ZC_ATTRS(k, MsAttention);
    const zc_tensor *x = &k->in[ATT(x)];
    zc_ms m = {.work = fast ? ZC_F32 : ZC_F64};
    zc_tensor qkv;
    int64_t heads = at->num_heads, cols = k->in[ATT(w)].dims[1];
    int64_t hidden = at->qkv_hidden_sizes.n ? at->qkv_hidden_sizes.v[0] : cols / 3;
    int64_t length = x->dims[1], hidden_v = cols - 2 * hidden;
    m.a = (zc_attn){.batch = x->dims[0],
                    .heads = heads,
                    .kv_heads = heads,
                    .nq = length,
                    .nk = length,
                    .d = hidden / heads,
                    .dv = hidden_v / heads,
                    .y = &k->out[0],
                    .causal = at->unidirectional != 0};
    bool given = ZC_ATTR_GIVEN(MsAttention, at, scale) && at->scale != 0;
    m.a.scale = given ? at->scale : 1 / sqrt((double)m.a.d);
    ZC_TRY(project(k, &m, fast, &qkv));
    m.a.q = (zc_heads){&qkv, 0, length * cols, m.a.d, cols};
    m.a.k = (zc_heads){&qkv, hidden, length * cols, m.a.d, cols};
    m.a.v = (zc_heads){&qkv, 2 * hidden, length * cols, m.a.dv, cols};
    m.a.y_at = zc_heads_3d(m.a.y, heads, length, m.a.dv);
    ZC_TRY(attention_past(k, &m));
    ZC_TRY(use_mask(k, &m, zc_input(k, ATT(mask)), at->mask_filter_value));
    ZC_TRY(zc_ms_use_bias(k, &m, zc_input(k, ATT(add))));
    return zc_attn_run(k, &m.a, fast);
}

zc_status zc_k_MsAttention(zc_kctx *k)
{
    return attention(k, false);
}

bool zc_fits_ms_attention(const zc_kctx *k)
{
    return k->in[ATT(x)].dtype == ZC_F32;
}

zc_status zc_fast_ms_attention(zc_kctx *k)
{
    return attention(k, true);
}

/* ---- MultiHeadAttention ---- */

#define MHA(input) ZC_IN_MsMultiHeadAttention_##input

/* query alone: [batch, length, heads, 3, size]. */
static void packed_views(zc_attn *a, const zc_tensor *q)
{
    a->nq = a->nk = q->dims[1];
    a->d = a->dv = q->dims[4];
    int64_t head = 3 * a->d, pos = a->heads * head;
    a->q = (zc_heads){q, 0, a->nq * pos, head, pos};
    a->k = (zc_heads){q, a->d, a->nq * pos, head, pos};
    a->v = (zc_heads){q, 2 * a->d, a->nq * pos, head, pos};
}

/* key is [batch, length, heads, 2, size] without value, [batch, heads, length, size] or [batch,
 * length, heads * size]. */
static void key_views(zc_attn *a, const zc_tensor *key, const zc_tensor *v)
{
    int64_t head = 2 * a->d, pos = a->heads * head;
    a->nk = key->dims[key->rank == 4 ? 2 : 1];
    if (key->rank == 5) {
        a->dv = a->d;
        a->k = (zc_heads){key, 0, a->nk * pos, head, pos};
        a->v = (zc_heads){key, a->d, a->nk * pos, head, pos};
    } else if (key->rank == 4) {
        a->dv = v->dims[3];
        a->k = zc_heads_4d(key, a->heads, a->nk, a->d);
        a->v = zc_heads_4d(v, a->heads, a->nk, a->dv);
    } else {
        a->dv = v->dims[2] / a->heads;
        a->k = zc_heads_3d(key, a->heads, a->nk, a->d);
        a->v = zc_heads_3d(v, a->heads, a->nk, a->dv);
    }
}

static zc_status check_mha(zc_kctx *k, const zc_attn *a)
{
    const zc_tensor *key = zc_input(k, MHA(k)), *v = zc_input(k, MHA(v));
    int64_t q_dims[] = {a->batch, a->nq, a->heads, a->d, key ? 1 : 3};
    int64_t k_dims[] = {a->batch, a->nk, a->heads, a->d, v ? 1 : 2};
    int64_t v_dims[] = {a->batch, a->nk, a->heads, a->dv};
    ZC_TRY(zc_check_length(k, zc_tensor_numel(&k->in[MHA(q)]), zc_numel(5, q_dims),
                           "size of the query"));
    if (key)
        ZC_TRY(zc_check_length(k, zc_tensor_numel(key), zc_numel(5, k_dims), "size of the key"));
    if (v) ZC_TRY(zc_check_length(k, zc_tensor_numel(v), zc_numel(4, v_dims), "size of the value"));
    return ZC_OK;
}

static zc_status mha_bias(zc_kctx *k, zc_ms *m)
{
    zc_attn *a = &m->a;
    const zc_tensor *bias = zc_input(k, MHA(bias));
    int64_t hidden = a->heads * a->d;
    if (!bias) return ZC_OK;
    ZC_TRY(zc_check_length(k, zc_tensor_numel(bias), 2 * hidden + a->heads * a->dv,
                           "size of the bias"));
    ZC_TRY(add_bias(k, m, bias, 0, a->nq, a->d, &a->q, &m->q));
    if (zc_input(k, MHA(k)) && k->in[MHA(k)].rank == 4)
        return ZC_OK; /* ready-made keys and values */
    ZC_TRY(add_bias(k, m, bias, hidden, a->nk, a->d, &a->k, &m->k));
    return add_bias(k, m, bias, 2 * hidden, a->nk, a->dv, &a->v, &m->v);
}

static zc_status mha_past(zc_kctx *k, zc_ms *m)
{
    zc_attn *a = &m->a;
    const zc_tensor *past_k = zc_input(k, MHA(past_k)), *past_v = zc_input(k, MHA(past_v));
    int64_t old = past_k ? past_k->dims[2] : 0, n = a->nk;
    const int64_t key[] = {a->batch, a->heads, old, a->d},
                  value[] = {a->batch, a->heads, old, a->dv};
    if (past_k) ZC_TRY(zc_check_shape(k, past_k, 4, key, "past_key"));
    if (past_v) ZC_TRY(zc_check_shape(k, past_v, 4, value, "past_value"));
    zc_heads keys = zc_heads_4d(past_k, a->heads, old, a->d);
    zc_heads values = zc_heads_4d(past_v, a->heads, old, a->dv);
    ZC_TRY(append(k, m, &keys, old, zc_output(k, 1), 0, n, a->d, &a->k, &m->k));
    ZC_TRY(append(k, m, &values, old, zc_output(k, 2), 0, n, a->dv, &a->v, &m->v));
    return behind_past(k, m, old);
}

static zc_status mha(zc_kctx *k, bool fast)
{
    const zc_attrs_MsMultiHeadAttention *at = ZC_ATTRS(k, MsMultiHeadAttention);
    const zc_tensor *q = &k->in[MHA(q)], *key = zc_input(k, MHA(k)), *v = zc_input(k, MHA(v));
    zc_ms m = {.work = fast ? ZC_F32 : ZC_F64};
    m.a = (zc_attn){.batch = q->dims[0],
                    .heads = at->num_heads,
                    .kv_heads = at->num_heads,
                    .nq = q->dims[1],
                    .y = &k->out[0],
                    .causal = at->unidirectional != 0,
                    .scores = zc_output(k, 3),
                    .scores_mode = 2};
    if (key) {
        m.a.d = q->dims[2] / m.a.heads;
        m.a.q = zc_heads_3d(q, m.a.heads, m.a.nq, m.a.d);
        key_views(&m.a, key, v);
    } else {
        packed_views(&m.a, q);
    }
    ZC_TRY(check_mha(k, &m.a));
    bool given = ZC_ATTR_GIVEN(MsMultiHeadAttention, at, scale) && at->scale != 0;
    m.a.scale = given ? at->scale : 1 / sqrt((double)m.a.d);
    m.a.y_at = zc_heads_3d(m.a.y, m.a.heads, m.a.nq, m.a.dv);
    ZC_TRY(mha_bias(k, &m));
    ZC_TRY(mha_past(k, &m));
    ZC_TRY(use_mask(k, &m, zc_input(k, MHA(mask)), at->mask_filter_value));
    ZC_TRY(zc_ms_use_bias(k, &m, zc_input(k, MHA(add))));
    return zc_attn_run(k, &m.a, fast);
}

zc_status zc_k_MsMultiHeadAttention(zc_kctx *k)
{
    return mha(k, false);
}

bool zc_fits_ms_mha(const zc_kctx *k)
{
    return k->in[MHA(q)].dtype == ZC_F32;
}

zc_status zc_fast_ms_mha(zc_kctx *k)
{
    return mha(k, true);
}
