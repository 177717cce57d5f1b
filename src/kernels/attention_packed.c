/* Attention of a projection that holds queries, keys and values side by side, on the device. */
#include <math.h>

#include "kernels/attention_form.h"

enum { IN_X, IN_MASK, IN_COS, IN_SIN, IN_LENGTHS };

/* Queries and keys turned, in scratch memory: they stand next to each other. */
static zc_status turn(zc_attention *a, bool interleaved)
{
    zc_launch *l = a->l;
    if (!zc_launch_has(l, IN_COS)) return ZC_OK;
    const zc_tensor *cos = &l->in[IN_COS], *sin = &l->in[IN_SIN];
    int64_t heads = a->p.heads + a->p.kv_heads, n = a->p.len.nq;
    int64_t each = cos->dims[0] == 1 ? 0 : n;
    struct zc_attention_rows_params r = {.x = a->p.q,
                                         .cos = cos->data,
                                         .sin = sin->data,
                                         .heads = heads,
                                         .fresh = n,
                                         .room = n,
                                         .half = cos->dims[2],
                                         .table = cos->dims[0] * n,
                                         .table_step = each,
                                         .interleaved = interleaved};
    ZC_TRY(zc_attention_same(a, zc_tensor_numel(cos), (each ? a->p.batch : 1) * n * r.half,
                             "size of the cosines"));
    ZC_TRY(zc_attention_same(a, zc_tensor_numel(sin), zc_tensor_numel(cos), "size of the sines"));
    if (2 * r.half > a->d)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "cosines have too many columns (got %lld, need at most %lld)", r.half,
                       (long long)a->d / 2);
    ZC_TRY(zc_attention_room(a, a->type, heads, n, a->d, &r.to));
    ZC_TRY(zc_attention_rows(a, false, &r));
    a->p.q = zc_attention_4d(r.to, heads, n, a->d);
    a->p.k = a->p.q;
    a->p.k.data = zc_attention_at(r.to, a->type, a->p.heads * n * a->d);
    return ZC_OK;
}

zc_status zc_attention_packed(zc_attention *a)
{
    zc_launch *l = a->l;
    const zc_attrs_PackedAttention *at = ZC_ATTRS(l, PackedAttention);
    const zc_tensor *x = &l->in[IN_X];
    int64_t heads = at->num_heads, kv = at->kv_num_heads, cols = x->dims[2], n = x->dims[1];
    a->d = a->dv = cols / (heads + 2 * kv);
    ZC_TRY(zc_attention_same(a, cols, (heads + 2 * kv) * a->d, "packed size"));
    if (zc_tensor_numel(x) == 0) return ZC_OK;
    a->p.batch = x->dims[0];
    a->p.heads = heads;
    a->p.kv_heads = kv;
    a->p.len.nq = a->p.len.nk = n;
    a->p.len.lengths = zc_launch_in(l, IN_LENGTHS);
    a->p.causal = at->is_causal != 0;
    a->p.softcap = at->softcap;
    a->p.mask_value = at->mask_value;
    a->p.scale = at->scale != 0 ? at->scale : 1 / sqrt((double)a->d);
    a->p.q = (struct zc_attention_view){x->data, n * cols, a->d, cols};
    a->p.k = a->p.v = a->p.q;
    a->p.k.data = zc_attention_at(x->data, a->type, heads * a->d);
    a->p.v.data = zc_attention_at(x->data, a->type, (heads + kv) * a->d);
    a->p.y = zc_attention_3d(zc_attention_wanted(l, 0), heads, n, a->d);
    if (zc_launch_has(l, IN_LENGTHS))
        ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->in[IN_LENGTHS]), a->p.batch, "lengths"));
    ZC_TRY(turn(a, at->interleaved != 0));
    return zc_launch_has(l, IN_MASK) ? zc_attention_bias(a, 0, &l->in[IN_MASK]) : ZC_OK;
}
