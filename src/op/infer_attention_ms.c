/* Types and shapes of com.microsoft's attention operations. */
#include "op/infer_attention.h"

#include <string.h>

#define GQA(input) ZC_IN_MsGroupQueryAttention_##input

#define zc_infer_refuse(f, ...) zc_fail((f)->diag, ZC_ERR_UNSUPPORTED, (f)->subject, __VA_ARGS__)

static zc_status missing(zc_infer *f, int i, const char *what)
{
    if (zc_in_present(f, i)) return ZC_OK;
    return zc_infer_fail(f, "input %d, the %s, is missing", i, what);
}

/* Input i has the shape [batch or 1, heads or 1, queries, keys]. */
static zc_status check_bias(zc_infer *f, int i, zc_dim batch, zc_dim heads, zc_dim nq, zc_dim nk)
{
    if (!zc_in_present(f, i)) return ZC_OK;
    ZC_TRY(zc_infer_need_float(f, i));
    ZC_TRY(zc_infer_need_rank(f, i, 4, 4));
    const zc_dim *d = zc_in(f, i)->dims, one = zc_dim_const(1);
    const zc_dim need[] = {zc_dim_is(d[0], 1) ? one : batch, zc_dim_is(d[1], 1) ? one : heads, nq,
                           nk};
    return zc_infer_need_shape(f, i, 4, need, "attention bias");
}

/* The mask's form is told from its shape at run time, where it is known; here only its type. */
static zc_status check_mask(zc_infer *f, int i)
{
    ZC_TRY(zc_infer_need_int(f, i, "mask"));
    if (zc_in_present(f, i)) ZC_TRY(zc_infer_need_rank(f, i, 1, 3));
    return ZC_OK;
}

/* ---- Attention ---- */

#define ATT(input) ZC_IN_MsAttention_##input

zc_status zc_dt_ms_attention(zc_infer *f)
{
    ZC_TRY(zc_infer_need_float(f, ATT(x)));
    for (int i = ATT(w); i < f->nin; i++)
        if (i != ATT(mask) && i != ATT(past_len)) ZC_TRY(zc_infer_need_alike(f, ATT(x), i));
    return zc_infer_set_dtype(f, f->in[ATT(x)].type.dtype);
}

/* Sizes of queries (and keys) and of values, all heads together. */
static zc_status hidden_sizes(zc_infer *f, zc_dim *hidden, zc_dim *hidden_v)
{
    zc_ints sizes = ZC_ATTRS(f, MsAttention)->qkv_hidden_sizes;
    zc_dim cols = zc_in(f, ATT(w))->dims[1];
    if (sizes.n == 0) {
        if (zc_dim_is_const(cols) && cols.k % 3)
            return zc_infer_fail(f, "weights' columns are not a multiple of 3 (got %lld)",
                                 (long long)cols.k);
        *hidden = *hidden_v = zc_dim_div(f->dims, cols, zc_dim_const(3));
        return ZC_OK;
    }
    if (sizes.n != 3)
        return zc_infer_fail(f, "qkv_hidden_sizes has a wrong length (got %d, need 3)", sizes.n);
    for (int i = 0; i < 3; i++)
        if (sizes.v[i] < 1 || sizes.v[i] > INT32_MAX || (i == 1 && sizes.v[1] != sizes.v[0]))
            return zc_infer_fail(f, "qkv_hidden_sizes[%d] is wrong (got %lld)", i,
                                 (long long)sizes.v[i]);
    *hidden = zc_dim_const(sizes.v[0]);
    *hidden_v = zc_dim_const(sizes.v[2]);
    return zc_infer_same(f, cols, zc_dim_const(2 * sizes.v[0] + sizes.v[2]),
                         "weights' columns and the sum of qkv_hidden_sizes");
}

static zc_status refuse_attention(zc_infer *f)
{
    const zc_attrs_MsAttention *a = ZC_ATTRS(f, MsAttention);
    if (a->do_rotary) return zc_infer_refuse(f, "Attention with do_rotary");
    if (a->past_present_share_buffer)
        return zc_infer_refuse(f, "Attention with past_present_share_buffer");
    return ZC_OK;
}

zc_status zc_infer_ms_attention(zc_infer *f)
{
    const zc_attrs_MsAttention *a = ZC_ATTRS(f, MsAttention);
    zc_dim hidden, hidden_v, size, size_v, heads = zc_dim_const(a->num_heads);
    ZC_TRY(refuse_attention(f));
    ZC_TRY(zc_infer_heads(f, "num_heads", a->num_heads));
    ZC_TRY(zc_infer_need_rank(f, ATT(x), 3, 3));
    ZC_TRY(zc_infer_need_rank(f, ATT(w), 2, 2));
    const zc_type *x = zc_in(f, ATT(x)), *w = zc_in(f, ATT(w));
    ZC_TRY(zc_infer_same(f, x->dims[2], w->dims[0], "input size and weights' rows"));
    ZC_TRY(zc_infer_need_shape(f, ATT(bias), 1, &w->dims[1], "bias"));
    ZC_TRY(hidden_sizes(f, &hidden, &hidden_v));
    ZC_TRY(zc_infer_head_size(f, hidden, a->num_heads, "hidden size", &size));
    ZC_TRY(zc_infer_head_size(f, hidden_v, a->num_heads, "value size", &size_v));
    zc_dim batch = x->dims[0], length = x->dims[1], total = length, two = zc_dim_const(2);
    if (zc_in_present(f, ATT(past))) {
        ZC_TRY(zc_infer_need_rank(f, ATT(past), 5, 5));
        const zc_dim past[] = {two, batch, heads, zc_in(f, ATT(past))->dims[3], size};
        ZC_TRY(zc_infer_need_shape(f, ATT(past), 5, past, "past"));
        ZC_TRY(zc_infer_same(f, size, size_v, "head sizes of key and value"));
        total = zc_dim_add(f->dims, past[3], length);
    }
    ZC_TRY(check_mask(f, ATT(mask)));
    ZC_TRY(check_bias(f, ATT(add), batch, heads, length, total));
    const zc_dim y[] = {batch, length, hidden_v}, present[] = {two, batch, heads, total, size};
    ZC_TRY(zc_infer_set(f, 0, 3, y));
    return zc_infer_set(f, 1, 5, present);
}

/* ---- MultiHeadAttention ---- */

#define MHA(input) ZC_IN_MsMultiHeadAttention_##input

zc_status zc_dt_ms_mha(zc_infer *f)
{
    ZC_TRY(zc_infer_need_float(f, MHA(q)));
    for (int i = MHA(k); i < f->nin; i++)
        if (i != MHA(mask) && i < MHA(past_len)) ZC_TRY(zc_infer_need_alike(f, MHA(q), i));
    return zc_infer_set_dtype(f, f->in[MHA(q)].type.dtype);
}

typedef struct mha_sizes {
    zc_dim batch, heads, nq, nk, d, dv;
} mha_sizes;

/* query alone is [batch, length, heads, 3, size]. */
static zc_status mha_packed(zc_infer *f, mha_sizes *s)
{
    ZC_TRY(zc_infer_need_rank(f, MHA(q), 5, 5));
    const zc_dim *d = zc_in(f, MHA(q))->dims;
    const zc_dim need[] = {d[0], d[1], s->heads, zc_dim_const(3), d[4]};
    ZC_TRY(zc_infer_need_shape(f, MHA(q), 5, need, "packed query"));
    s->nq = s->nk = d[1];
    s->d = s->dv = d[4];
    return ZC_OK;
}

/* key is [batch, length, size], [batch, length, heads, 2, size] without value, or [batch, heads,
 * length, size]. */
static zc_status mha_keys(zc_infer *f, mha_sizes *s)
{
    const zc_type *k = zc_in(f, MHA(k));
    ZC_TRY(zc_infer_need_rank(f, MHA(k), 3, 5));
    if (k->rank == 5) {
        const zc_dim need[] = {s->batch, k->dims[1], s->heads, zc_dim_const(2), s->d};
        s->nk = k->dims[1];
        s->dv = s->d;
        return zc_infer_need_shape(f, MHA(k), 5, need, "packed key and value");
    }
    ZC_TRY(missing(f, MHA(v), "value"));
    ZC_TRY(zc_infer_need_rank(f, MHA(v), k->rank, k->rank));
    const zc_type *v = zc_in(f, MHA(v));
    if (k->rank == 4) {
        const zc_dim key[] = {s->batch, s->heads, k->dims[2], s->d};
        const zc_dim value[] = {s->batch, s->heads, k->dims[2], v->dims[3]};
        s->nk = k->dims[2];
        s->dv = v->dims[3];
        ZC_TRY(zc_infer_need_shape(f, MHA(k), 4, key, "key"));
        return zc_infer_need_shape(f, MHA(v), 4, value, "value");
    }
    const zc_dim key[] = {s->batch, k->dims[1], zc_in(f, MHA(q))->dims[2]};
    const zc_dim value[] = {s->batch, k->dims[1], v->dims[2]};
    s->nk = k->dims[1];
    ZC_TRY(zc_infer_need_shape(f, MHA(k), 3, key, "key"));
    ZC_TRY(zc_infer_need_shape(f, MHA(v), 3, value, "value"));
    return zc_infer_head_size(f, v->dims[2], s->heads.k, "value size", &s->dv);
}

static zc_status mha_past(zc_infer *f, const mha_sizes *s, zc_dim *total)
{
    *total = s->nk;
    if (zc_in_present(f, MHA(past_k)) != zc_in_present(f, MHA(past_v)))
        return zc_infer_fail(f, "past_key and past_value come together or not at all");
    if (!zc_in_present(f, MHA(past_k))) return ZC_OK;
    ZC_TRY(zc_infer_need_rank(f, MHA(past_k), 4, 4));
    zc_dim length = zc_in(f, MHA(past_k))->dims[2];
    const zc_dim key[] = {s->batch, s->heads, length, s->d};
    const zc_dim value[] = {s->batch, s->heads, length, s->dv};
    *total = zc_dim_add(f->dims, length, s->nk);
    ZC_TRY(zc_infer_need_shape(f, MHA(past_k), 4, key, "past_key"));
    return zc_infer_need_shape(f, MHA(past_v), 4, value, "past_value");
}

zc_status zc_infer_ms_mha(zc_infer *f)
{
    int64_t heads = ZC_ATTRS(f, MsMultiHeadAttention)->num_heads;
    zc_dim total;
    ZC_TRY(zc_infer_heads(f, "num_heads", heads));
    if (zc_in_present(f, MHA(past_len)) || zc_in_present(f, MHA(beams)))
        return zc_infer_refuse(f, "MultiHeadAttention with a shared past buffer");
    ZC_TRY(zc_infer_need_rank(f, MHA(q), 3, 5));
    mha_sizes s = {.batch = zc_in(f, MHA(q))->dims[0], .heads = zc_dim_const(heads)};
    if (!zc_in_present(f, MHA(k))) {
        ZC_TRY(mha_packed(f, &s));
    } else {
        ZC_TRY(zc_infer_need_rank(f, MHA(q), 3, 3));
        s.nq = zc_in(f, MHA(q))->dims[1];
        ZC_TRY(zc_infer_head_size(f, zc_in(f, MHA(q))->dims[2], heads, "query size", &s.d));
        ZC_TRY(mha_keys(f, &s));
    }
    ZC_TRY(mha_past(f, &s, &total));
    zc_dim hidden = zc_dim_mul(f->dims, s.heads, s.d),
           hidden_v = zc_dim_mul(f->dims, s.heads, s.dv);
    zc_dim bias = zc_dim_add(f->dims, zc_dim_mul(f->dims, hidden, zc_dim_const(2)), hidden_v);
    ZC_TRY(zc_infer_need_shape(f, MHA(bias), 1, &bias, "bias"));
    ZC_TRY(check_mask(f, MHA(mask)));
    ZC_TRY(check_bias(f, MHA(add), s.batch, s.heads, s.nq, total));
    const zc_dim y[] = {s.batch, s.nq, hidden_v}, key[] = {s.batch, s.heads, total, s.d};
    const zc_dim value[] = {s.batch, s.heads, total, s.dv};
    const zc_dim scores[] = {s.batch, s.heads, s.nq, total};
    ZC_TRY(zc_infer_set(f, 0, 3, y));
    ZC_TRY(zc_infer_set(f, 1, 4, key));
    ZC_TRY(zc_infer_set(f, 2, 4, value));
    return zc_infer_set(f, 3, 4, scores);
}

/* ---- GroupQueryAttention ---- */

static zc_status gqa_refuse(zc_infer *f)
{
    const zc_attrs_MsGroupQueryAttention *a = ZC_ATTRS(f, MsGroupQueryAttention);
    bool plain = a->k_quant_type && strcmp(a->k_quant_type, "NONE") == 0 && a->v_quant_type &&
                 strcmp(a->v_quant_type, "NONE") == 0;
    if (!plain || zc_in_present(f, GQA(k_scale)) || zc_in_present(f, GQA(v_scale)))
        return zc_infer_refuse(f, "GroupQueryAttention with a quantised cache");
    if (a->sliding_window_cache)
        return zc_infer_refuse(f, "GroupQueryAttention with sliding_window_cache");
    return ZC_OK;
}

zc_status zc_dt_ms_gqa(zc_infer *f)
{
    ZC_TRY(gqa_refuse(f));
    ZC_TRY(zc_infer_need_float(f, GQA(q)));
    for (int i = GQA(k); i < f->nin; i++) {
        bool integer = i == GQA(lengths) || i == GQA(total) || i == GQA(positions);
        if (integer)
            ZC_TRY(zc_infer_need_int(f, i, "lengths and positions"));
        else
            ZC_TRY(zc_infer_need_alike(f, GQA(q), i));
    }
    return zc_infer_set_dtype(f, f->in[GQA(q)].type.dtype);
}

/* Head size of separate or packed query, key and value. */
static zc_status gqa_inputs(zc_infer *f, int64_t heads, int64_t kv_heads, zc_dim *size)
{
    const zc_type *q = zc_in(f, GQA(q));
    ZC_TRY(zc_infer_need_rank(f, GQA(q), 3, 3));
    if (!zc_in_present(f, GQA(k)))
        return zc_infer_head_size(f, q->dims[2], heads + 2 * kv_heads, "packed query size", size);
    ZC_TRY(missing(f, GQA(v), "value"));
    ZC_TRY(zc_infer_head_size(f, q->dims[2], heads, "query size", size));
    const zc_dim key[] = {q->dims[0], q->dims[1],
                          zc_dim_mul(f->dims, *size, zc_dim_const(kv_heads))};
    ZC_TRY(zc_infer_need_shape(f, GQA(k), 3, key, "key"));
    return zc_infer_need_shape(f, GQA(v), 3, key, "value");
}

static zc_status gqa_rotary(zc_infer *f, zc_dim batch, zc_dim length, zc_dim size)
{
    const zc_attrs_MsGroupQueryAttention *a = ZC_ATTRS(f, MsGroupQueryAttention);
    const zc_dim positions[] = {batch, length};
    ZC_TRY(zc_infer_need_shape(f, GQA(positions), 2, positions, "position_ids"));
    if (!a->do_rotary) return ZC_OK;
    ZC_TRY(missing(f, GQA(cos), "cos_cache"));
    ZC_TRY(missing(f, GQA(sin), "sin_cache"));
    ZC_TRY(zc_infer_need_rank(f, GQA(cos), 2, 2));
    ZC_TRY(zc_infer_need_shape(f, GQA(sin), 2, zc_in(f, GQA(cos))->dims, "sin_cache"));
    zc_dim half = zc_in(f, GQA(cos))->dims[1];
    if (zc_dim_is_const(half) && zc_dim_is_const(size) && half.k > size.k / 2)
        return zc_infer_fail(f, "cos_cache has too many columns (got %lld, need at most %lld)",
                             (long long)half.k, (long long)size.k / 2);
    return ZC_OK;
}

/* Positions of the present key and value: as many as before, or the total length if that is more.
 */
static zc_status gqa_total(zc_infer *f, zc_dim batch, zc_dim kv_heads, zc_dim size, zc_dim *present)
{
    zc_dim total;
    ZC_TRY(zc_infer_need_vector(f, GQA(total), "total_sequence_length"));
    if (!zc_infer_scalar(f, GQA(total), &total)) total = zc_dim_fresh(f->dims);
    if (zc_dim_is_const(total) && total.k < 0)
        return zc_infer_fail(f, "total_sequence_length is negative (got %lld)", (long long)total.k);
    *present = total;
    if (zc_in_present(f, GQA(past_k)) != zc_in_present(f, GQA(past_v)))
        return zc_infer_fail(f, "past_key and past_value come together or not at all");
    if (!zc_in_present(f, GQA(past_k))) return ZC_OK;
    ZC_TRY(zc_infer_need_rank(f, GQA(past_k), 4, 4));
    const zc_dim past[] = {batch, kv_heads, zc_in(f, GQA(past_k))->dims[2], size};
    ZC_TRY(zc_infer_need_shape(f, GQA(past_k), 4, past, "past_key"));
    ZC_TRY(zc_infer_need_shape(f, GQA(past_v), 4, past, "past_value"));
    *present = zc_dim_max(f->dims, past[2], total);
    return ZC_OK;
}

static zc_status gqa_extras(zc_infer *f, zc_dim heads, zc_dim size)
{
    const zc_attrs_MsGroupQueryAttention *a = ZC_ATTRS(f, MsGroupQueryAttention);
    ZC_TRY(zc_infer_need_shape(f, GQA(sink), 1, &heads, "head_sink"));
    ZC_TRY(zc_infer_need_shape(f, GQA(q_norm), 1, &size, "q_norm_weight"));
    ZC_TRY(zc_infer_need_shape(f, GQA(k_norm), 1, &size, "k_norm_weight"));
    if (a->qk_output < 0 || a->qk_output > 2)
        return zc_infer_fail(f, "qk_output out of range (got %lld, need [0, 2])",
                             (long long)a->qk_output);
    if (a->local_window_size < -1 || a->local_window_size > INT32_MAX)
        return zc_infer_fail(f, "local_window_size out of range (got %lld, need [-1, %d])",
                             (long long)a->local_window_size, INT32_MAX);
    return ZC_OK;
}

zc_status zc_infer_ms_gqa(zc_infer *f)
{
    const zc_attrs_MsGroupQueryAttention *a = ZC_ATTRS(f, MsGroupQueryAttention);
    zc_dim size, present;
    ZC_TRY(missing(f, GQA(lengths), "lengths of the sequences"));
    ZC_TRY(missing(f, GQA(total), "total sequence length"));
    ZC_TRY(zc_infer_heads(f, "num_heads", a->num_heads));
    ZC_TRY(zc_infer_heads(f, "kv_num_heads", a->kv_num_heads));
    zc_dim heads = zc_dim_const(a->num_heads), kv_heads = zc_dim_const(a->kv_num_heads);
    ZC_TRY(zc_infer_head_groups(f, heads, kv_heads));
    ZC_TRY(gqa_inputs(f, a->num_heads, a->kv_num_heads, &size));
    zc_dim batch = zc_in(f, GQA(q))->dims[0], length = zc_in(f, GQA(q))->dims[1];
    zc_dim lengths = zc_infer_span(f, zc_in(f, GQA(lengths)), 0, zc_in(f, GQA(lengths))->rank);
    ZC_TRY(zc_infer_same(f, lengths, batch, "number of lengths and batch"));
    ZC_TRY(gqa_rotary(f, batch, length, size));
    ZC_TRY(gqa_total(f, batch, kv_heads, size, &present));
    ZC_TRY(gqa_extras(f, heads, size));
    zc_dim total;
    if (!zc_infer_scalar(f, GQA(total), &total)) total = zc_dim_fresh(f->dims);
    ZC_TRY(check_bias(f, GQA(add), batch, heads, length, total));
    const zc_dim y[] = {batch, length, zc_dim_mul(f->dims, heads, size)};
    const zc_dim cache[] = {batch, kv_heads, present, size};
    const zc_dim scores[] = {batch, heads, length, total};
    ZC_TRY(zc_infer_set(f, 0, 3, y));
    ZC_TRY(zc_infer_set(f, 1, 4, cache));
    ZC_TRY(zc_infer_set(f, 2, 4, cache));
    return zc_infer_set(f, 3, 4, scores);
}

/* ---- RotaryEmbedding ---- */

zc_status zc_dt_ms_rotary(zc_infer *f)
{
    ZC_TRY(zc_infer_need_float(f, 0));
    ZC_TRY(zc_infer_need_int(f, 1, "position_ids"));
    ZC_TRY(zc_infer_need_alike(f, 0, 2));
    ZC_TRY(zc_infer_need_alike(f, 0, 3));
    return zc_infer_set_dtype(f, f->in[0].type.dtype);
}

zc_status zc_infer_ms_rotary(zc_infer *f)
{
    const zc_attrs_MsRotaryEmbedding *a = ZC_ATTRS(f, MsRotaryEmbedding);
    zc_dim half;
    ZC_TRY(zc_infer_need_rank(f, 2, 2, 2));
    zc_dim cols = zc_in(f, 2)->dims[1];
    ZC_TRY(zc_infer_need_rank(f, 0, 3, 4));
    if (a->is_packed_batching) return zc_infer_refuse(f, "RotaryEmbedding with packed batching");
    if (zc_in(f, 0)->rank == 3 && a->num_heads == 0)
        half = cols; /* the tables give the head size */
    else
        ZC_TRY(zc_infer_rotary_size(f, a->num_heads, a->rotary_embedding_dim, &half));
    const zc_dim table[] = {zc_in(f, 2)->dims[0], half};
    ZC_TRY(zc_infer_need_shape(f, 2, 2, table, "cos_cache"));
    ZC_TRY(zc_infer_need_shape(f, 3, 2, zc_in(f, 2)->dims, "sin_cache"));
    const zc_type *x = zc_in(f, 0), *ids = zc_in(f, 1);
    const zc_dim positions[] = {x->dims[0], x->dims[x->rank == 4 ? 2 : 1]};
    if (ids->rank == 2) ZC_TRY(zc_infer_need_shape(f, 1, 2, positions, "position_ids"));
    if (ids->rank != 2) {
        const zc_dim one = zc_dim_const(1);
        ZC_TRY(zc_infer_need_shape(f, 1, 1, &one, "position_ids"));
    }
    return zc_infer_same0(f);
}
