/* com.microsoft GroupQueryAttention on the device. */
#include <math.h>

#include "kernels/attention_form.h"

#define GQA(input) ZC_IN_MsGroupQueryAttention_##input

/* Views of query, key and value, separate or side by side in the query. */
static zc_status views(zc_attention *a)
{
    zc_launch *l = a->l;
    const zc_tensor *q = &l->in[GQA(q)];
    bool separate = zc_launch_has(l, GQA(k));
    int64_t heads = a->p.heads, kv = a->p.kv_heads, n = a->p.len.nq, cols = q->dims[2];
    int64_t all = separate ? heads : heads + 2 * kv;
    a->d = a->dv = cols / all;
    ZC_TRY(zc_attention_same(a, cols, all * a->d, "size of the query"));
    a->p.q = (struct zc_attention_view){q->data, n * cols, a->d, cols};
    if (!separate) {
        a->p.k = (struct zc_attention_view){zc_attention_at(q->data, a->type, heads * a->d),
                                            n * cols, a->d, cols};
        a->p.v = (struct zc_attention_view){zc_attention_at(q->data, a->type, (heads + kv) * a->d),
                                            n * cols, a->d, cols};
        return ZC_OK;
    }
    for (int i = GQA(k); i <= GQA(v); i++)
        ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->in[i]), a->p.batch * n * kv * a->d,
                                 "size of the key or value"));
    a->p.k = zc_attention_3d(l->in[GQA(k)].data, kv, n, a->d);
    a->p.v = zc_attention_3d(l->in[GQA(v)].data, kv, n, a->d);
    return ZC_OK;
}

/* The total length, the host's; the lengths of the sequences are checked on the device. */
static zc_status lengths(zc_attention *a)
{
    zc_launch *l = a->l;
    int64_t total[1];
    int n;
    ZC_TRY(zc_launch_ints(l, GQA(total), total, 1, &n));
    ZC_TRY(zc_attention_same(a, n, 1, "number of total sequence lengths"));
    ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->in[GQA(lengths)]), a->p.batch,
                             "number of lengths"));
    if (total[0] < a->p.len.nq)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "total_sequence_length is too small (got %lld, need %lld)",
                       (long long)total[0], a->p.len.nq);
    a->p.len.nk = total[0];
    a->p.len.past = zc_launch_has(l, GQA(past_k)) ? l->in[GQA(past_k)].dims[2] : 0;
    a->p.len.lengths = l->in[GQA(lengths)].data;
    return ZC_OK;
}

static zc_status use_rotary(zc_attention *a, struct zc_attention_rows_params *r)
{
    const zc_attrs_MsGroupQueryAttention *at = ZC_ATTRS(a->l, MsGroupQueryAttention);
    zc_launch *l = a->l;
    if (!at->do_rotary) return ZC_OK;
    const zc_tensor *cos = &l->in[GQA(cos)], *sin = &l->in[GQA(sin)];
    ZC_TRY(zc_attention_same(a, zc_tensor_numel(sin), zc_tensor_numel(cos), "size of sin_cache"));
    if (zc_launch_has(l, GQA(positions)))
        ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->in[GQA(positions)]),
                                 a->p.batch * a->p.len.nq, "number of position ids"));
    r->cos = cos->data;
    r->sin = sin->data;
    r->ids = zc_launch_in(l, GQA(positions));
    r->table = cos->dims[0];
    r->half = cos->dims[1];
    r->interleaved = at->rotary_interleaved != 0;
    if (2 * r->half <= a->d) return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                   "cos_cache has too many columns (got %lld, need at most %lld)", r->half,
                   (long long)a->d / 2);
}

static zc_status norm_of(zc_attention *a, int i, const void **out)
{
    *out = zc_launch_in(a->l, i);
    if (!zc_launch_has(a->l, i)) return ZC_OK;
    return zc_attention_same(a, zc_tensor_numel(&a->l->in[i]), a->d, "size of a norm's weight");
}

/* The cache `out`: output i or scratch memory, with the past and the new rows. */
static zc_status fill_cache(zc_attention *a, bool values, int64_t room,
                            struct zc_attention_rows_params r, struct zc_attention_view *view)
{
    zc_launch *l = a->l;
    int past = values ? GQA(past_v) : GQA(past_k), out = values ? 2 : 1;
    int64_t elements = a->p.batch * a->p.kv_heads * room * a->d;
    r.x = *view;
    r.to = zc_attention_wanted(l, out);
    if (!r.to)
        ZC_TRY(zc_attention_room(a, a->type, a->p.kv_heads, room, a->d, &r.to));
    else
        ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->out[out]), elements,
                                 "size of the present key or value"));
    if (zc_launch_has(l, past))
        ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->in[past]),
                                 a->p.batch * a->p.kv_heads * a->p.len.past * a->d,
                                 "size of the past key or value"));
    r.past = zc_attention_4d(zc_launch_in(l, past), a->p.kv_heads, a->p.len.past, a->d);
    r.heads = a->p.kv_heads;
    r.fresh = a->p.len.nq;
    r.room = room;
    r.behind = 1;
    ZC_TRY(zc_attention_rows(a, values, &r));
    *view = zc_attention_4d(r.to, a->p.kv_heads, room, a->d);
    return ZC_OK;
}

static zc_status prepare(zc_attention *a)
{
    struct zc_attention_rows_params r = {.eps = ZC_ATTRS(a->l, MsGroupQueryAttention)
                                                    ->qk_norm_epsilon},
                                    plain = r;
    const void *q_norm;
    ZC_TRY(use_rotary(a, &r));
    ZC_TRY(norm_of(a, GQA(q_norm), &q_norm));
    ZC_TRY(norm_of(a, GQA(k_norm), &r.norm));
    int64_t room = a->p.len.past > a->p.len.nk ? a->p.len.past : a->p.len.nk;
    ZC_TRY(fill_cache(a, false, room, r, &a->p.k));
    ZC_TRY(fill_cache(a, true, room, plain, &a->p.v));
    if (!r.half && !q_norm) return ZC_OK;
    r.norm = q_norm;
    r.x = a->p.q;
    r.heads = a->p.heads;
    r.fresh = r.room = a->p.len.nq;
    ZC_TRY(zc_attention_room(a, a->type, r.heads, r.room, a->d, &r.to));
    ZC_TRY(zc_attention_rows(a, false, &r));
    a->p.q = zc_attention_4d(r.to, r.heads, r.room, a->d);
    return ZC_OK;
}

zc_status zc_attention_gqa(zc_attention *a)
{
    zc_launch *l = a->l;
    const zc_attrs_MsGroupQueryAttention *at = ZC_ATTRS(l, MsGroupQueryAttention);
    const zc_tensor *q = &l->in[GQA(q)];
    if (zc_tensor_numel(q) == 0) return ZC_OK;
    a->p.batch = q->dims[0];
    a->p.heads = at->num_heads;
    a->p.kv_heads = at->kv_num_heads;
    a->p.len.nq = q->dims[1];
    a->p.softcap = at->softcap;
    a->p.causal = at->causal != 0;
    a->p.window = at->local_window_size;
    a->p.sink = zc_launch_in(l, GQA(sink));
    a->p.zero_sink = at->smooth_softmax > 0;
    a->p.scores = at->qk_output ? zc_attention_wanted(l, 3) : NULL;
    ZC_TRY(views(a));
    a->p.scale = ZC_ATTR_GIVEN(MsGroupQueryAttention, at, scale) && at->scale != 0
                     ? at->scale
                     : 1 / sqrt((double)a->d);
    a->p.y = zc_attention_3d(zc_attention_wanted(l, 0), a->p.heads, a->p.len.nq, a->d);
    if (a->p.sink)
        ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->in[GQA(sink)]), a->p.heads,
                                 "size of head_sink"));
    ZC_TRY(lengths(a));
    ZC_TRY(prepare(a));
    if (!zc_launch_has(l, GQA(add))) return ZC_OK;
    ZC_TRY(zc_attention_same(a, l->in[GQA(add)].dims[3], a->p.len.nk,
                             "number of keys of the attention bias"));
    return zc_attention_bias(a, 1, &l->in[GQA(add)]);
}
