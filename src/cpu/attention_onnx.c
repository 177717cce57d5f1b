/* ONNX's Attention. */
#include <math.h>

#include "cpu/attention.h"
#include "cpu/copy.h"
#include "cpu/fast.h"

#define IN(input) ZC_IN_Attention_##input

/* Sizes and views of q, k, v as they come in; nk counts the new keys. */
static void views(const zc_kctx *k, zc_attn *a)
{
    const zc_attrs_Attention *at = ZC_ATTRS(k, Attention);
    const zc_tensor *q = &k->in[IN(q)], *key = &k->in[IN(k)], *v = &k->in[IN(v)];
    a->batch = q->dims[0];
    if (q->rank == 4) {
        a->heads = q->dims[1];
        a->kv_heads = key->dims[1];
        a->nq = q->dims[2];
        a->nk = key->dims[2];
        a->d = q->dims[3];
        a->dv = v->dims[3];
        a->q = zc_heads_4d(q, a->heads, a->nq, a->d);
        a->k = zc_heads_4d(key, a->kv_heads, a->nk, a->d);
        a->v = zc_heads_4d(v, a->kv_heads, a->nk, a->dv);
        a->y_at = zc_heads_4d(a->y, a->heads, a->nq, a->dv);
        return;
    }
    a->heads = at->q_num_heads;
    a->kv_heads = at->kv_num_heads;
    a->nq = q->dims[1];
    a->nk = key->dims[1];
    a->d = q->dims[2] / a->heads;
    a->dv = v->dims[2] / a->kv_heads;
    a->q = zc_heads_3d(q, a->heads, a->nq, a->d);
    a->k = zc_heads_3d(key, a->kv_heads, a->nk, a->d);
    a->v = zc_heads_3d(v, a->kv_heads, a->nk, a->dv);
    a->y_at = zc_heads_3d(a->y, a->heads, a->nq, a->dv);
}

/* All that shape inference may have left open, so that no view leaves its tensor. */
static zc_status check(zc_kctx *k, const zc_attn *a)
{
    const zc_tensor *past = zc_input(k, IN(past_k));
    int64_t key[] = {a->batch, a->kv_heads, a->nk, a->d};
    int64_t value[] = {a->batch, a->kv_heads, a->nk, a->dv};
    if (a->kv_heads < 1 || a->heads % a->kv_heads)
        return zc_kernel_fail(k, "query heads are not a multiple of key heads (got %lld and %lld)",
                              (long long)a->heads, (long long)a->kv_heads);
    ZC_TRY(zc_check_length(k, zc_tensor_numel(&k->in[IN(k)]), zc_numel(4, key), "size of the key"));
    ZC_TRY(zc_check_length(k, zc_tensor_numel(&k->in[IN(v)]), zc_numel(4, value),
                           "size of the value"));
    if (!past) return ZC_OK;
    key[2] = value[2] = past->dims[2];
    ZC_TRY(zc_check_shape(k, past, 4, key, "past_key"));
    return zc_check_shape(k, &k->in[IN(past_v)], 4, value, "past_value");
}

/* past and new positions one after the other: in output `i` if it is wanted, or in scratch memory
 * if there are past ones. view becomes that of the whole. */
static zc_status append(zc_kctx *k, const zc_attn *a, int i, int64_t size, const zc_tensor *past,
                        int64_t total, zc_heads *view, zc_tensor *whole)
{
    int64_t dims[] = {a->batch, a->kv_heads, total, size}, old = total - a->nk;
    if (zc_output(k, i))
        *whole = *zc_output(k, i);
    else if (past)
        ZC_TRY(zc_scratch_tensor(k, view->t->dtype, 4, dims, whole));
    else
        return ZC_OK;
    zc_heads before = zc_heads_4d(past, a->kv_heads, old, size);
    if (past) zc_heads_store(k, &before, a->batch, a->kv_heads, old, size, whole, total, 0);
    zc_heads_store(k, view, a->batch, a->kv_heads, a->nk, size, whole, total, old);
    *view = zc_heads_4d(whole, a->kv_heads, total, size);
    return ZC_OK;
}

zc_status zc_attn_use_mask(zc_kctx *k, zc_attn *a, const zc_tensor *mask)
{
    if (!mask) return ZC_OK;
    zc_tensor scores = {.rank = 4, .dims = {a->batch, a->heads, a->nq, a->nk}};
    int64_t own[ZC_MAX_RANK];
    int64_t cols = mask->dims[mask->rank - 1];
    bool fits = mask->rank >= 1 && mask->rank <= 4 && cols <= a->nk;
    for (int d = 2; fits && d <= mask->rank; d++) {
        int64_t have = mask->dims[mask->rank - d];
        fits = have == 1 || have == scores.dims[4 - d];
    }
    if (!fits) {
        char text[128];
        return zc_kernel_fail(k, "attn_mask does not broadcast to the scores (got %s)",
                              zc_tensor_type_text(mask, text, sizeof text));
    }
    zc_broadcast_strides(mask, &scores, own);
    for (int d = 0; d < 4; d++) a->bias[0].strides[d] = own[d];
    a->bias[0].strides[3] = 1;
    a->bias[0].cols = cols;
    a->bias[0].t = mask;
    return ZC_OK;
}

zc_status zc_attn_use_lengths(zc_kctx *k, zc_attn *a, const zc_tensor *lengths, const char *name)
{
    if (!lengths) return ZC_OK;
    int64_t *v = zc_scratch_get(k->scratch, (size_t)a->batch * sizeof *v);
    if (!v) return zc_fail_nomem(k->diag, name, 0);
    ZC_TRY(zc_check_length(k, zc_tensor_numel(lengths), a->batch, name));
    for (int64_t b = 0; b < a->batch; b++) {
        v[b] = zc_geti(lengths, b);
        if (v[b] < 0 || v[b] > a->nk)
            return zc_kernel_fail(k, "%s[%lld] out of range (got %lld, need [0, %lld])", name,
                                  (long long)b, (long long)v[b], (long long)a->nk);
    }
    a->keys = v;
    return ZC_OK;
}

/* Where the queries stand among the keys: behind the past ones, or at the end of the valid ones. */
static zc_status use_positions(zc_kctx *k, zc_attn *a, int64_t past)
{
    ZC_TRY(zc_attn_use_lengths(k, a, zc_input(k, IN(lengths)), "nonpad_kv_seqlen"));
    int64_t *v = zc_scratch_get(k->scratch, (size_t)a->batch * sizeof *v);
    if (!v) return zc_fail_nomem(k->diag, "key positions", 0);
    for (int64_t b = 0; b < a->batch; b++) v[b] = a->keys ? a->keys[b] - a->nq : past;
    a->position = v;
    return ZC_OK;
}

static zc_status run(zc_kctx *k, bool fast)
{
    const zc_attrs_Attention *at = ZC_ATTRS(k, Attention);
    const zc_tensor *past_k = zc_input(k, IN(past_k)), *past_v = zc_input(k, IN(past_v));
    zc_tensor keys, values;
    zc_attn a = {.y = &k->out[0],
                 .softcap = at->softcap,
                 .mask_value = at->mask_value,
                 .causal = at->is_causal != 0,
                 .scores = zc_output(k, 3),
                 .scores_mode = (int)at->qk_matmul_output_mode};
    views(k, &a);
    ZC_TRY(check(k, &a));
    bool given = ZC_ATTR_GIVEN(Attention, at, scale);
    a.scale = given ? at->scale : 1 / sqrt((double)a.d);
    int64_t past = past_k ? past_k->dims[2] : 0, total = past + a.nk;
    ZC_TRY(append(k, &a, 1, a.d, past_k, total, &a.k, &keys));
    ZC_TRY(append(k, &a, 2, a.dv, past_v, total, &a.v, &values));
    a.nk = total;
    ZC_TRY(zc_attn_use_mask(k, &a, zc_input(k, IN(mask))));
    ZC_TRY(use_positions(k, &a, past));
    return zc_attn_run(k, &a, fast);
}

zc_status zc_k_Attention(zc_kctx *k)
{
    return run(k, false);
}

bool zc_fits_attention(const zc_kctx *k)
{
    return k->in[IN(q)].dtype == ZC_F32 && k->in[IN(v)].dtype == ZC_F32;
}

zc_status zc_fast_attention(zc_kctx *k)
{
    return run(k, true);
}
