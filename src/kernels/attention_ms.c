/* com.microsoft Attention and MultiHeadAttention on the device. */
#include <math.h>

#include "kernels/attention_form.h"

enum { ENTRY_MASK = 4, ENTRY_PROJECT = 5 };

/* ---- shared ---- */

/* Bias 0 from a mask input, as cpu/attention_ms.c reads it; a masked key's score gets `filter`
 * added. */
static zc_status use_mask(zc_attention *a, int i, double filter)
{
    if (!zc_launch_has(a->l, i)) return ZC_OK;
    const zc_tensor *mask = &a->l->in[i];
    int64_t nk = a->p.len.nk, got = zc_tensor_numel(mask), batch = a->p.batch;
    if (mask->rank == 2 && mask->dims[1] == 1 && nk != 1) return ZC_OK; /* a dummy */
    int64_t rows = mask->rank == 3 ? a->p.len.nq : 1;
    const int64_t dims[] = {batch, rows, nk};
    bool ends = mask->rank == 1 && (got == batch || got == 2 * batch || got == 3 * batch + 2);
    if (!ends && (mask->rank == 1 || got != zc_numel(3, dims))) {
        char text[128];
        return zc_fail(a->l->diag, ZC_ERR_UNSUPPORTED, a->l->subject, "mask of this form (got %s)",
                       zc_tensor_type_text(mask, text, sizeof text));
    }
    void *room;
    ZC_TRY(zc_attention_room(a, ZC_F32, 1, rows, nk, &room));
    struct zc_attention_mask_params m = {.mask = mask->data,
                                         .bias = room,
                                         .batch = batch,
                                         .rows = rows,
                                         .nk = nk,
                                         .elements = got,
                                         .flat = mask->rank == 1,
                                         .filter = filter};
    a->p.bias[0] = room;
    a->p.bias_cols[0] = nk;
    a->p.bias_steps[0][0] = rows * nk;
    a->p.bias_steps[0][1] = 0;
    a->p.bias_steps[0][2] = rows == 1 ? 0 : nk;
    a->p.bias_steps[0][3] = 1;
    zc_dim3 grid = {zc_launch_blocks(zc_numel(3, dims), 256, 4096), 1, 1};
    return zc_launch_kernel(a->l, ENTRY_MASK, grid, 256, 0, &m, sizeof m);
}

static zc_status use_bias(zc_attention *a, int i)
{
    if (!zc_launch_has(a->l, i)) return ZC_OK;
    const zc_tensor *t = &a->l->in[i];
    ZC_TRY(zc_attention_same(a, t->dims[t->rank - 1], a->p.len.nk,
                             "number of keys of the attention bias"));
    ZC_TRY(
        zc_attention_same(a, t->dims[2], a->p.len.nq, "number of queries of the attention bias"));
    return zc_attention_bias(a, 1, t);
}

/* ---- Attention ---- */

enum { ATT_X, ATT_W, ATT_BIAS, ATT_MASK, ATT_PAST, ATT_ADD };

/* x weights + bias: [batch * length][cols] in scratch memory. */
static zc_status project(zc_attention *a, int64_t cols, void **qkv)
{
    zc_launch *l = a->l;
    const zc_tensor *x = &l->in[ATT_X], *w = &l->in[ATT_W];
    struct zc_attention_project_params m = {.x = x->data,
                                            .w = w->data,
                                            .bias = zc_launch_in(l, ATT_BIAS),
                                            .rows = x->dims[0] * x->dims[1],
                                            .cols = cols,
                                            .depth = w->dims[0]};
    ZC_TRY(zc_attention_same(a, x->dims[2], w->dims[0], "size of the input"));
    if (m.bias)
        ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->in[ATT_BIAS]), cols, "size of the bias"));
    ZC_TRY(zc_attention_room(a, a->type, 1, x->dims[1], cols, qkv));
    m.out = *qkv;
    zc_dim3 grid = {zc_launch_blocks((m.rows + 63) / 64 * ((cols + 63) / 64), 1, 0), 1, 1};
    return zc_launch_kernel(l, ENTRY_PROJECT, grid, 256, 0, &m, sizeof m);
}

static zc_status attention_past(zc_attention *a)
{
    zc_launch *l = a->l;
    bool has = zc_launch_has(l, ATT_PAST);
    int64_t old = has ? l->in[ATT_PAST].dims[3] : 0, fresh = a->p.len.nk,
            all = a->p.batch * a->p.kv_heads;
    const void *past = zc_launch_in(l, ATT_PAST);
    void *present = zc_attention_wanted(l, 1);
    if (has)
        ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->in[ATT_PAST]), 2 * all * old * a->d,
                                 "size of the past"));
    if (has || present) ZC_TRY(zc_attention_same(a, a->dv, a->d, "head size of the value"));
    a->p.len.past = old;
    a->p.len.nk = old + fresh;
    const void *values = zc_attention_at(past, a->type, all * old * a->d);
    void *to = zc_attention_at(present, a->type, all * (old + fresh) * a->d);
    ZC_TRY(zc_attention_append(a, false, past, old, present, fresh, &a->p.k));
    return zc_attention_append(a, true, values, old, to, fresh, &a->p.v);
}

zc_status zc_attention_ms(zc_attention *a)
{
    zc_launch *l = a->l;
    const zc_attrs_MsAttention *at = ZC_ATTRS(l, MsAttention);
    const zc_tensor *x = &l->in[ATT_X];
    int64_t heads = at->num_heads, cols = l->in[ATT_W].dims[1], length = x->dims[1];
    int64_t hidden = at->qkv_hidden_sizes.n ? at->qkv_hidden_sizes.v[0] : cols / 3;
    void *qkv;
    a->d = hidden / heads;
    a->dv = (cols - 2 * hidden) / heads;
    a->p.batch = x->dims[0];
    a->p.heads = a->p.kv_heads = heads;
    a->p.len.nq = a->p.len.nk = length;
    a->p.causal = at->unidirectional != 0;
    a->p.scale = ZC_ATTR_GIVEN(MsAttention, at, scale) && at->scale != 0 ? at->scale
                                                                         : 1 / sqrt((double)a->d);
    ZC_TRY(project(a, cols, &qkv));
    a->p.q = (struct zc_attention_view){qkv, length * cols, a->d, cols};
    a->p.k = (struct zc_attention_view){zc_attention_at(qkv, a->type, hidden), length * cols, a->d,
                                        cols};
    a->p.v = (struct zc_attention_view){zc_attention_at(qkv, a->type, 2 * hidden), length * cols,
                                        a->dv, cols};
    a->p.y = zc_attention_3d(zc_attention_wanted(l, 0), heads, length, a->dv);
    ZC_TRY(attention_past(a));
    ZC_TRY(use_mask(a, ATT_MASK, at->mask_filter_value));
    return use_bias(a, ATT_ADD);
}

/* ---- MultiHeadAttention ---- */

enum { MHA_Q, MHA_K, MHA_V, MHA_BIAS, MHA_MASK, MHA_ADD, MHA_PAST_K, MHA_PAST_V };

/* query alone: [batch, length, heads, 3, size]. */
static void packed_views(zc_attention *a, const zc_tensor *q)
{
    a->p.len.nk = a->p.len.nq;
    a->d = a->dv = q->dims[4];
    int64_t head = 3 * a->d, pos = a->p.heads * head, batch = a->p.len.nq * pos;
    a->p.q = (struct zc_attention_view){q->data, batch, head, pos};
    a->p.k = (struct zc_attention_view){zc_attention_at(q->data, a->type, a->d), batch, head, pos};
    a->p.v =
        (struct zc_attention_view){zc_attention_at(q->data, a->type, 2 * a->d), batch, head, pos};
}

/* key is [batch, length, heads, 2, size] without value, [batch, heads, length, size] or [batch,
 * length, heads * size]. */
static void key_views(zc_attention *a, const zc_tensor *k, const zc_tensor *v)
{
    int64_t heads = a->p.heads, nk = a->p.len.nk = k->dims[k->rank == 4 ? 2 : 1];
    if (k->rank == 5) {
        int64_t head = 2 * a->d, pos = heads * head;
        a->dv = a->d;
        a->p.k = (struct zc_attention_view){k->data, nk * pos, head, pos};
        a->p.v = (struct zc_attention_view){zc_attention_at(k->data, a->type, a->d), nk * pos, head,
                                            pos};
    } else if (k->rank == 4) {
        a->dv = v->dims[3];
        a->p.k = zc_attention_4d(k->data, heads, nk, a->d);
        a->p.v = zc_attention_4d(v->data, heads, nk, a->dv);
    } else {
        a->dv = v->dims[2] / heads;
        a->p.k = zc_attention_3d(k->data, heads, nk, a->d);
        a->p.v = zc_attention_3d(v->data, heads, nk, a->dv);
    }
}

static zc_status check_mha(zc_attention *a)
{
    zc_launch *l = a->l;
    bool key = zc_launch_has(l, MHA_K), value = zc_launch_has(l, MHA_V);
    int64_t q = a->p.batch * a->p.len.nq * a->p.heads * a->d,
            k = a->p.batch * a->p.len.nk * a->p.heads;
    ZC_TRY(
        zc_attention_same(a, zc_tensor_numel(&l->in[MHA_Q]), key ? q : 3 * q, "size of the query"));
    if (key)
        ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->in[MHA_K]), k * a->d * (value ? 1 : 2),
                                 "size of the key"));
    if (value)
        ZC_TRY(
            zc_attention_same(a, zc_tensor_numel(&l->in[MHA_V]), k * a->dv, "size of the value"));
    return ZC_OK;
}

/* *view plus the part of the bias from element `at` on, in scratch memory. */
static zc_status add_bias(zc_attention *a, bool values, int64_t at, int64_t length,
                          struct zc_attention_view *view)
{
    int64_t size = values ? a->dv : a->d;
    struct zc_attention_rows_params r = {
        .x = *view, .heads = a->p.heads, .fresh = length, .room = length};
    r.bias = zc_attention_at(a->l->in[MHA_BIAS].data, a->type, at);
    ZC_TRY(zc_attention_room(a, a->type, a->p.heads, length, size, &r.to));
    ZC_TRY(zc_attention_rows(a, values, &r));
    *view = zc_attention_4d(r.to, a->p.heads, length, size);
    return ZC_OK;
}

static zc_status mha_bias(zc_attention *a)
{
    int64_t hidden = a->p.heads * a->d;
    if (!zc_launch_has(a->l, MHA_BIAS)) return ZC_OK;
    ZC_TRY(zc_attention_same(a, zc_tensor_numel(&a->l->in[MHA_BIAS]),
                             2 * hidden + a->p.heads * a->dv, "size of the bias"));
    ZC_TRY(add_bias(a, false, 0, a->p.len.nq, &a->p.q));
    if (zc_launch_has(a->l, MHA_K) && a->l->in[MHA_K].rank == 4)
        return ZC_OK; /* ready-made keys and values */
    ZC_TRY(add_bias(a, false, hidden, a->p.len.nk, &a->p.k));
    return add_bias(a, true, 2 * hidden, a->p.len.nk, &a->p.v);
}

static zc_status mha_past(zc_attention *a)
{
    zc_launch *l = a->l;
    bool has = zc_launch_has(l, MHA_PAST_K);
    int64_t old = has ? l->in[MHA_PAST_K].dims[2] : 0, fresh = a->p.len.nk,
            all = a->p.batch * a->p.heads * old;
    if (has) {
        ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->in[MHA_PAST_K]), all * a->d,
                                 "size of past_key"));
        ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->in[MHA_PAST_V]), all * a->dv,
                                 "size of past_value"));
    }
    a->p.len.past = old;
    a->p.len.nk = old + fresh;
    ZC_TRY(zc_attention_append(a, false, zc_launch_in(l, MHA_PAST_K), old,
                               zc_attention_wanted(l, 1), fresh, &a->p.k));
    return zc_attention_append(a, true, zc_launch_in(l, MHA_PAST_V), old, zc_attention_wanted(l, 2),
                               fresh, &a->p.v);
}

zc_status zc_attention_mha(zc_attention *a)
{
    zc_launch *l = a->l;
    const zc_attrs_MsMultiHeadAttention *at = ZC_ATTRS(l, MsMultiHeadAttention);
    const zc_tensor *q = &l->in[MHA_Q];
    a->p.batch = q->dims[0];
    a->p.heads = a->p.kv_heads = at->num_heads;
    a->p.len.nq = q->dims[1];
    a->p.causal = at->unidirectional != 0;
    a->p.scores = zc_attention_wanted(l, 3);
    if (zc_launch_has(l, MHA_K)) {
        a->d = q->dims[2] / a->p.heads;
        a->p.q = zc_attention_3d(q->data, a->p.heads, a->p.len.nq, a->d);
        key_views(a, &l->in[MHA_K], zc_launch_has(l, MHA_V) ? &l->in[MHA_V] : NULL);
    } else {
        packed_views(a, q);
    }
    ZC_TRY(check_mha(a));
    a->p.scale = ZC_ATTR_GIVEN(MsMultiHeadAttention, at, scale) && at->scale != 0
                     ? at->scale
                     : 1 / sqrt((double)a->d);
    a->p.y = zc_attention_3d(zc_attention_wanted(l, 0), a->p.heads, a->p.len.nq, a->dv);
    ZC_TRY(mha_bias(a));
    ZC_TRY(mha_past(a));
    ZC_TRY(use_mask(a, MHA_MASK, at->mask_filter_value));
    return use_bias(a, MHA_ADD);
}
