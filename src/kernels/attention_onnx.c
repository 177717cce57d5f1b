/* ONNX's Attention on the device. */
#include <math.h>

#include "kernels/attention_form.h"

enum { IN_Q, IN_K, IN_V, IN_MASK, IN_PAST_K, IN_PAST_V, IN_LENGTHS };

/* Sizes and views of q, k, v as they come in; returns the new keys. */
static int64_t views(zc_attention *a)
{
    const zc_attrs_Attention *at = ZC_ATTRS(a->l, Attention);
    const zc_tensor *q = &a->l->in[IN_Q], *k = &a->l->in[IN_K], *v = &a->l->in[IN_V];
    bool wide = q->rank == 4;
    a->p.batch = q->dims[0];
    a->p.heads = wide ? q->dims[1] : at->q_num_heads;
    a->p.kv_heads = wide ? k->dims[1] : at->kv_num_heads;
    a->p.len.nq = q->dims[wide ? 2 : 1];
    int64_t fresh = k->dims[wide ? 2 : 1];
    a->d = wide ? q->dims[3] : q->dims[2] / a->p.heads;
    a->dv = wide ? v->dims[3] : v->dims[2] / a->p.kv_heads;
    struct zc_attention_view (*view)(const void *, int64_t, int64_t, int64_t) =
        wide ? zc_attention_4d : zc_attention_3d;
    a->p.q = view(q->data, a->p.heads, a->p.len.nq, a->d);
    a->p.k = view(k->data, a->p.kv_heads, fresh, a->d);
    a->p.v = view(v->data, a->p.kv_heads, fresh, a->dv);
    a->p.y = view(zc_attention_wanted(a->l, 0), a->p.heads, a->p.len.nq, a->dv);
    return fresh;
}

/* All that shape inference may have left open, so that no view leaves its tensor. */
static zc_status check(zc_attention *a, int64_t fresh, int64_t old)
{
    zc_launch *l = a->l;
    int64_t kv = a->p.batch * a->p.kv_heads;
    if (a->p.kv_heads < 1 || a->p.heads % a->p.kv_heads)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "query heads are not a multiple of key heads (got %lld and %lld)",
                       a->p.heads, a->p.kv_heads);
    ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->in[IN_Q]),
                             a->p.batch * a->p.heads * a->p.len.nq * a->d, "size of the query"));
    ZC_TRY(
        zc_attention_same(a, zc_tensor_numel(&l->in[IN_K]), kv * fresh * a->d, "size of the key"));
    ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->in[IN_V]), kv * fresh * a->dv,
                             "size of the value"));
    if (zc_launch_has(l, IN_LENGTHS))
        ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->in[IN_LENGTHS]), a->p.batch,
                                 "nonpad_kv_seqlen length"));
    if (!zc_launch_has(l, IN_PAST_K)) return ZC_OK;
    ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->in[IN_PAST_K]), kv * old * a->d,
                             "size of past_key"));
    return zc_attention_same(a, zc_tensor_numel(&l->in[IN_PAST_V]), kv * old * a->dv,
                             "size of past_value");
}

zc_status zc_attention_onnx(zc_attention *a)
{
    zc_launch *l = a->l;
    const zc_attrs_Attention *at = ZC_ATTRS(l, Attention);
    a->v_type = l->in[IN_V].dtype;
    int64_t fresh = views(a), old = zc_launch_has(l, IN_PAST_K) ? l->in[IN_PAST_K].dims[2] : 0;
    ZC_TRY(check(a, fresh, old));
    a->p.causal = at->is_causal != 0;
    a->p.softcap = at->softcap;
    a->p.mask_value = at->mask_value;
    a->p.scale = ZC_ATTR_GIVEN(Attention, at, scale) ? at->scale : 1 / sqrt((double)a->d);
    a->p.scores = zc_attention_wanted(l, 3);
    a->p.len.past = old;
    a->p.len.nk = old + fresh;
    a->p.len.lengths = zc_launch_in(l, IN_LENGTHS);
    ZC_TRY(zc_attention_append(a, false, zc_launch_in(l, IN_PAST_K), old, zc_attention_wanted(l, 1),
                               fresh, &a->p.k));
    ZC_TRY(zc_attention_append(a, true, zc_launch_in(l, IN_PAST_V), old, zc_attention_wanted(l, 2),
                               fresh, &a->p.v));
    return zc_launch_has(l, IN_MASK) ? zc_attention_bias(a, 0, &l->in[IN_MASK]) : ZC_OK;
}
