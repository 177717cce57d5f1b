/* Types and shapes of attention operations. */
#include "op/infer_common.h"

#include <string.h>

/* ---- shared checks ---- */

/* Attribute `name`, a number of heads, is usable. */
static zc_status usable_heads(zc_infer *f, const char *name, int64_t heads)
{
    if (heads >= 1 && heads <= INT32_MAX) return ZC_OK;
    return zc_infer_fail(f, "%s out of range (got %lld, need [1, %d])", name, (long long)heads,
                         INT32_MAX);
}

/* size / heads, which must be whole. */
static zc_status head_size(zc_infer *f, zc_dim size, int64_t heads, const char *what, zc_dim *out)
{
    if (zc_dim_is_const(size) && size.k % heads != 0)
        return zc_infer_fail(f, "%s is not a multiple of the heads (got %lld and %lld)", what,
                             (long long)size.k, (long long)heads);
    *out = zc_dim_div(f->dims, size, zc_dim_const(heads));
    return ZC_OK;
}

/* Query heads are a multiple of key heads. */
static zc_status head_groups(zc_infer *f, zc_dim heads, zc_dim kv_heads)
{
    if (!zc_dim_is_const(heads) || !zc_dim_is_const(kv_heads)) return ZC_OK;
    if (kv_heads.k > 0 && heads.k % kv_heads.k == 0) return ZC_OK;
    return zc_infer_fail(f, "query heads are not a multiple of key heads (got %lld and %lld)",
                         (long long)heads.k, (long long)kv_heads.k);
}

/* ---- Attention ---- */

#define IN(input) ZC_IN_Attention_##input

static zc_status check_attention_types(zc_infer *f)
{
    static const int alike[] = {IN(k),    IN(past_k), IN(cos),   IN(sin),
                                IN(sink), IN(q_norm), IN(k_norm)};
    for (int i = IN(q); i <= IN(v); i++)
        if (i == IN(q) || zc_in_present(f, i)) ZC_TRY(zc_infer_need_float(f, i));
    for (size_t i = 0; i < ZC_COUNTOF(alike); i++) ZC_TRY(zc_infer_need_alike(f, IN(q), alike[i]));
    ZC_TRY(zc_infer_need_alike(f, zc_in_present(f, IN(v)) ? IN(v) : IN(q), IN(past_v)));
    ZC_TRY(zc_infer_need_int(f, IN(lengths), "nonpad_kv_seqlen"));
    ZC_TRY(zc_infer_need_int(f, IN(positions), "position_ids"));
    ZC_TRY(zc_infer_need_int(f, IN(hidden), "mask"));
    ZC_TRY(zc_infer_need_int(f, IN(total), "total_sequence_length"));
    return zc_in_present(f, IN(bias)) ? zc_infer_need_float(f, IN(bias)) : ZC_OK;
}

static zc_status check_mask_type(zc_infer *f)
{
    bool mask = zc_in_present(f, IN(mask));
    if (mask && zc_dtype_class(f->in[IN(mask)].type.dtype) == ZC_CLASS_COMPLEX)
        return zc_infer_fail(f, "attn_mask must be bool or real");
    bool hides = mask && f->in[IN(mask)].type.dtype == ZC_BOOL;
    if (ZC_ATTRS(f, Attention)->mask_value == 0 || hides || zc_in_present(f, IN(lengths)))
        return ZC_OK;
    return zc_infer_fail(f, "mask_value needs a mask of type bool, or lengths");
}

zc_status zc_dt_attention(zc_infer *f)
{
    zc_dtype precision = ZC_ATTRS(f, Attention)->softmax_precision;
    ZC_TRY(check_attention_types(f));
    ZC_TRY(check_mask_type(f));
    if (precision != ZC_NONE && !zc_dtype_is_float(precision))
        return zc_infer_fail(f, "softmax_precision must be a float type (got %s)",
                             zc_dtype_name(precision));
    ZC_TRY(zc_infer_set_dtype(f, f->in[IN(q)].type.dtype));
    if (zc_in_present(f, IN(v))) zc_infer_out_dtype(f, 2, f->in[IN(v)].type.dtype);
    return ZC_OK;
}

/* Sizes of an attention problem. */
typedef struct sizes {
    zc_dim batch, heads, kv_heads, nq, nk, total, present, d, dv;
} sizes;

static zc_status missing(zc_infer *f, int i, const char *what)
{
    if (zc_in_present(f, i)) return ZC_OK;
    return zc_infer_fail(f, "input %d, the %s, is missing", i, what);
}

/* Numbers of heads, which are attributes unless the query has an axis of them. */
static zc_status head_numbers(zc_infer *f, sizes *s)
{
    const zc_attrs_Attention *a = ZC_ATTRS(f, Attention);
    ZC_TRY(usable_heads(f, "q_num_heads", a->q_num_heads));
    ZC_TRY(usable_heads(f, "kv_num_heads", a->kv_num_heads));
    s->heads = zc_dim_const(a->q_num_heads);
    s->kv_heads = zc_dim_const(a->kv_num_heads);
    return ZC_OK;
}

/* query alone: [batch, length, heads * size] of all three, or [batch, length, heads, 3, size]. */
static zc_status packed_sizes(zc_infer *f, sizes *s)
{
    const zc_type *q = zc_in(f, IN(q));
    if (q->rank == 4 || zc_in_present(f, IN(v))) return missing(f, IN(k), "key");
    ZC_TRY(head_numbers(f, s));
    s->nq = s->nk = q->dims[1];
    if (q->rank == 5) {
        const zc_dim need[] = {q->dims[0], q->dims[1], s->heads, zc_dim_const(3), q->dims[4]};
        s->d = s->dv = q->dims[4];
        ZC_TRY(zc_infer_same(f, s->heads, s->kv_heads, "heads of query and key"));
        return zc_infer_need_shape(f, IN(q), 5, need, "packed query");
    }
    int64_t all = s->heads.k + 2 * s->kv_heads.k;
    ZC_TRY(head_size(f, q->dims[2], all, "packed size", &s->d));
    s->dv = s->d;
    return ZC_OK;
}

static zc_status query_sizes(zc_infer *f, sizes *s)
{
    const zc_type *q = zc_in(f, IN(q));
    s->nq = q->dims[q->rank == 4 ? 2 : 1];
    if (q->rank == 4) {
        s->heads = q->dims[1];
        s->d = q->dims[3];
        return ZC_OK;
    }
    ZC_TRY(zc_infer_need_rank(f, IN(q), 3, 3));
    ZC_TRY(head_numbers(f, s));
    return head_size(f, q->dims[2], s->heads.k, "query size", &s->d);
}

/* key and value as the query is laid out, or, of a query of rank 3, [batch, heads, length, size].
 */
static zc_status key_sizes(zc_infer *f, sizes *s)
{
    bool wide = zc_in(f, IN(q))->rank == 4;
    ZC_TRY(zc_infer_need_rank(f, IN(k), wide ? 4 : 3, wide ? 4 : 5));
    const zc_type *k = zc_in(f, IN(k));
    zc_dim size;
    s->nk = k->dims[k->rank == 4 ? 2 : 1];
    if (k->rank == 5) {
        const zc_dim need[] = {s->batch, k->dims[1], s->kv_heads, zc_dim_const(2), s->d};
        s->dv = s->d;
        return zc_infer_need_shape(f, IN(k), 5, need, "packed key and value");
    }
    ZC_TRY(missing(f, IN(v), "value"));
    ZC_TRY(zc_infer_need_rank(f, IN(v), k->rank, k->rank));
    const zc_type *v = zc_in(f, IN(v));
    if (k->rank == 4) {
        if (!wide) ZC_TRY(zc_infer_same(f, s->kv_heads, k->dims[1], "heads of query and key"));
        s->kv_heads = k->dims[1];
        ZC_TRY(zc_infer_same(f, s->d, k->dims[3], "head sizes of query and key"));
        ZC_TRY(zc_infer_same(f, k->dims[1], v->dims[1], "heads of key and value"));
        s->dv = v->dims[3];
        return zc_infer_same(f, s->nk, v->dims[2], "lengths of key and value");
    }
    ZC_TRY(head_size(f, k->dims[2], s->kv_heads.k, "key size", &size));
    ZC_TRY(head_size(f, v->dims[2], s->kv_heads.k, "value size", &s->dv));
    ZC_TRY(zc_infer_same(f, s->d, size, "head sizes of query and key"));
    return zc_infer_same(f, s->nk, v->dims[1], "lengths of key and value");
}

static zc_status check_batches(zc_infer *f, const sizes *s)
{
    if (zc_in_present(f, IN(k)))
        ZC_TRY(zc_infer_same(f, s->batch, zc_in(f, IN(k))->dims[0], "batches of query and key"));
    if (!zc_in_present(f, IN(v))) return ZC_OK;
    return zc_infer_same(f, s->batch, zc_in(f, IN(v))->dims[0], "batches of query and value");
}

/* Positions of all keys, and of the present ones: the past's, or all if they are more. */
static zc_status total_of(zc_infer *f, zc_dim past, sizes *s)
{
    s->total = s->present = zc_dim_add(f->dims, past, s->nk);
    if (!zc_in_present(f, IN(total))) return ZC_OK;
    ZC_TRY(missing(f, IN(lengths), "lengths of the sequences"));
    ZC_TRY(zc_infer_need_vector(f, IN(total), "total_sequence_length"));
    if (!zc_infer_scalar(f, IN(total), &s->total)) s->total = zc_dim_fresh(f->dims);
    if (zc_dim_is_const(s->total) && s->total.k < 0)
        return zc_infer_fail(f, "total_sequence_length is negative (got %lld)",
                             (long long)s->total.k);
    bool old = zc_in_present(f, IN(past_k));
    s->present = old ? zc_dim_max(f->dims, past, s->total) : s->total;
    return ZC_OK;
}

static zc_status check_past(zc_infer *f, sizes *s)
{
    bool past = zc_in_present(f, IN(past_k));
    if (past != zc_in_present(f, IN(past_v)))
        return zc_infer_fail(f, "past_key and past_value come together or not at all");
    if (!past) return total_of(f, zc_dim_const(0), s);
    if (zc_in_present(f, IN(lengths)) && !zc_in_present(f, IN(total)))
        return zc_infer_fail(f, "nonpad_kv_seqlen excludes past_key and past_value");
    ZC_TRY(zc_infer_need_rank(f, IN(past_k), 4, 4));
    zc_dim length = zc_in(f, IN(past_k))->dims[2];
    const zc_dim key[] = {s->batch, s->kv_heads, length, s->d};
    const zc_dim value[] = {s->batch, s->kv_heads, length, s->dv};
    ZC_TRY(zc_infer_need_shape(f, IN(past_k), 4, key, "past_key"));
    ZC_TRY(zc_infer_need_shape(f, IN(past_v), 4, value, "past_value"));
    return total_of(f, length, s);
}

/* The mask broadcasts to the scores, but for the last dimension, which may be shorter than the
 * keys. */
static zc_status check_mask(zc_infer *f, const sizes *s)
{
    const zc_dim need[] = {s->batch, s->heads, s->nq, s->total};
    if (!zc_in_present(f, IN(mask))) return ZC_OK;
    ZC_TRY(zc_infer_need_rank(f, IN(mask), 1, 4));
    const zc_type *mask = zc_in(f, IN(mask));
    const zc_dim *tail = need + 4 - mask->rank;
    bool fits = true;
    for (int d = 0; fits && d < mask->rank; d++) {
        zc_dim have = mask->dims[d];
        if (!zc_dim_is_const(have) || !zc_dim_is_const(tail[d])) continue;
        bool last = d == mask->rank - 1;
        fits = have.k == tail[d].k || (last ? have.k < tail[d].k : have.k == 1);
    }
    if (fits) return ZC_OK;
    return zc_infer_fail(f, "attn_mask does not broadcast to the scores (got %s and %s)",
                         zc_infer_dims_text(f, mask->rank, mask->dims),
                         zc_infer_dims_text(f, 4, need));
}

/* The other two: a bias [batch or 1, heads or 1, queries, keys]; what hides keys, whose form is
 * told from its shape when it is known. */
static zc_status check_biases(zc_infer *f, const sizes *s)
{
    ZC_TRY(check_mask(f, s));
    if (zc_in_present(f, IN(hidden))) {
        if (zc_in_present(f, IN(mask))) return zc_infer_fail(f, "a mask excludes what hides keys");
        ZC_TRY(zc_infer_need_rank(f, IN(hidden), 1, 3));
    }
    if (!zc_in_present(f, IN(bias))) return ZC_OK;
    ZC_TRY(zc_infer_need_rank(f, IN(bias), 4, 4));
    const zc_dim *d = zc_in(f, IN(bias))->dims, one = zc_dim_const(1);
    const zc_dim need[] = {zc_dim_is(d[0], 1) ? one : s->batch, zc_dim_is(d[1], 1) ? one : s->heads,
                           s->nq, s->total};
    return zc_infer_need_shape(f, IN(bias), 4, need, "attention bias");
}

/* The tables of cosines and sines. */
static zc_status check_turns(zc_infer *f, const sizes *s)
{
    const zc_dim positions[] = {s->batch, s->nq};
    if (zc_in_present(f, IN(cos)) != zc_in_present(f, IN(sin)))
        return zc_infer_fail(f, "cosines and sines come together or not at all");
    ZC_TRY(zc_infer_need_shape(f, IN(positions), 2, positions, "position_ids"));
    if (!zc_in_present(f, IN(cos))) return ZC_OK;
    ZC_TRY(zc_infer_need_rank(f, IN(cos), 2, 3));
    const zc_type *cos = zc_in(f, IN(cos));
    const zc_dim *d = cos->dims, half = d[cos->rank - 1];
    const zc_dim each[] = {zc_dim_is(d[0], 1) ? d[0] : s->batch, s->nq, half};
    if (cos->rank == 3) ZC_TRY(zc_infer_need_shape(f, IN(cos), 3, each, "cosines"));
    ZC_TRY(zc_infer_need_shape(f, IN(sin), cos->rank, d, "sines"));
    if (zc_dim_is_const(half) && zc_dim_is_const(s->d) && half.k > s->d.k / 2)
        return zc_infer_fail(f, "cosines have too many columns (got %lld, need at most %lld)",
                             (long long)half.k, (long long)s->d.k / 2);
    return ZC_OK;
}

static zc_status check_attributes(zc_infer *f)
{
    const zc_attrs_Attention *a = ZC_ATTRS(f, Attention);
    if (a->qk_matmul_output_mode < 0 || a->qk_matmul_output_mode > 3)
        return zc_infer_fail(f, "qk_matmul_output_mode out of range (got %lld, need [0, 3])",
                             (long long)a->qk_matmul_output_mode);
    if (a->window < 0 || a->window > INT32_MAX)
        return zc_infer_fail(f, "window out of range (got %lld, need [0, %d])",
                             (long long)a->window, INT32_MAX);
    return ZC_OK;
}

static zc_status set_attention(zc_infer *f, const sizes *s)
{
    bool wide = zc_in(f, IN(q))->rank == 4;
    const zc_dim y4[] = {s->batch, s->heads, s->nq, s->dv};
    const zc_dim y3[] = {s->batch, s->nq, zc_dim_mul(f->dims, s->heads, s->dv)};
    const zc_dim key[] = {s->batch, s->kv_heads, s->present, s->d};
    const zc_dim value[] = {s->batch, s->kv_heads, s->present, s->dv};
    const zc_dim scores[] = {s->batch, s->heads, s->nq, s->total};
    ZC_TRY(zc_infer_set(f, 0, wide ? 4 : 3, wide ? y4 : y3));
    ZC_TRY(zc_infer_set(f, 1, 4, key));
    ZC_TRY(zc_infer_set(f, 2, 4, value));
    return zc_infer_set(f, 3, 4, scores);
}

zc_status zc_infer_attention(zc_infer *f)
{
    ZC_TRY(check_attributes(f));
    ZC_TRY(zc_infer_need_rank(f, IN(q), 3, 5));
    sizes s = {.batch = zc_in(f, IN(q))->dims[0]};
    if (zc_in_present(f, IN(k))) {
        ZC_TRY(query_sizes(f, &s));
        ZC_TRY(key_sizes(f, &s));
    } else {
        ZC_TRY(packed_sizes(f, &s));
    }
    ZC_TRY(check_batches(f, &s));
    ZC_TRY(head_groups(f, s.heads, s.kv_heads));
    ZC_TRY(check_past(f, &s));
    ZC_TRY(check_biases(f, &s));
    ZC_TRY(check_turns(f, &s));
    ZC_TRY(zc_infer_need_shape(f, IN(lengths), 1, &s.batch, "nonpad_kv_seqlen"));
    ZC_TRY(zc_infer_need_shape(f, IN(sink), 1, &s.heads, "head_sink"));
    ZC_TRY(zc_infer_need_shape(f, IN(q_norm), 1, &s.d, "q_norm_weight"));
    ZC_TRY(zc_infer_need_shape(f, IN(k_norm), 1, &s.d, "k_norm_weight"));
    return set_attention(f, &s);
}

/* ---- RotaryEmbedding ---- */

zc_status zc_dt_rotary(zc_infer *f)
{
    ZC_TRY(zc_infer_need_float(f, 0));
    ZC_TRY(zc_infer_need_alike(f, 0, 1));
    ZC_TRY(zc_infer_need_alike(f, 0, 2));
    ZC_TRY(zc_infer_need_int(f, 3, "position_ids"));
    return zc_infer_set_dtype(f, f->in[0].type.dtype);
}

/* Half the number of elements of a head of input 0 that a rotary embedding turns: of dim, or with 0
 * of all. heads counts for a 3-D input only. */
static zc_status rotary_size(zc_infer *f, int64_t heads, int64_t dim, zc_dim *half)
{
    const zc_type *x = zc_in(f, 0);
    zc_dim size;
    ZC_TRY(zc_infer_need_rank(f, 0, 3, 4));
    if (x->rank == 4) {
        size = x->dims[3];
    } else {
        ZC_TRY(usable_heads(f, "num_heads", heads));
        ZC_TRY(head_size(f, x->dims[2], heads, "the last dimension", &size));
    }
    if (dim < 0 || dim % 2 || (zc_dim_is_const(size) && dim > size.k))
        return zc_infer_fail(
            f, "rotary_embedding_dim must be even and at most the head size (got %lld)",
            (long long)dim);
    if (!dim && zc_dim_is_const(size) && size.k % 2)
        return zc_infer_fail(f, "head size must be even (got %lld)", (long long)size.k);
    *half = dim ? zc_dim_const(dim / 2) : zc_dim_div(f->dims, size, zc_dim_const(2));
    return ZC_OK;
}

/* Inputs x, cosines, sines, position ids. Without ids, tables for one sequence serve all. */
zc_status zc_infer_rotary(zc_infer *f)
{
    const zc_attrs_RotaryEmbedding *a = ZC_ATTRS(f, RotaryEmbedding);
    zc_dim half;
    ZC_TRY(rotary_size(f, a->num_heads, a->rotary_embedding_dim, &half));
    const zc_type *x = zc_in(f, 0);
    zc_dim batch = x->dims[0], length = x->dims[x->rank == 4 ? 2 : 1];
    bool ids = zc_in_present(f, 3);
    ZC_TRY(zc_infer_need_rank(f, 1, ids ? 2 : 3, ids ? 2 : 3));
    zc_dim first = zc_in(f, 1)->dims[0];
    const zc_dim table[] = {first, half};
    const zc_dim each[] = {zc_dim_is(first, 1) ? first : batch, length, half};
    const zc_dim positions[] = {batch, length};
    ZC_TRY(zc_infer_need_shape(f, 1, ids ? 2 : 3, ids ? table : each, "cos_cache"));
    ZC_TRY(zc_infer_need_shape(f, 2, ids ? 2 : 3, ids ? table : each, "sin_cache"));
    ZC_TRY(zc_infer_need_shape(f, 3, 2, positions, "position_ids"));
    return zc_infer_same0(f);
}

/* ---- com.microsoft's RotaryEmbedding ---- */

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
    if (a->is_packed_batching)
        return zc_fail(f->diag, ZC_ERR_UNSUPPORTED, f->subject,
                       "RotaryEmbedding with packed batching");
    if (zc_in(f, 0)->rank == 3 && a->num_heads == 0)
        half = cols; /* the tables give the head size */
    else
        ZC_TRY(rotary_size(f, a->num_heads, a->rotary_embedding_dim, &half));
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

/* ---- LinearAttention ---- */

#define LIN(input) ZC_IN_LinearAttention_##input

zc_status zc_dt_linear_attention(zc_infer *f)
{
    ZC_TRY(zc_infer_need_float(f, LIN(q)));
    for (int i = LIN(k); i < f->nin; i++)
        if (i != LIN(state)) ZC_TRY(zc_infer_need_alike(f, LIN(q), i));
    bool state = zc_in_present(f, LIN(state));
    if (state) ZC_TRY(zc_infer_need_float(f, LIN(state)));
    zc_infer_out_dtype(f, 0, f->in[LIN(q)].type.dtype);
    zc_infer_out_dtype(f, 1, f->in[state ? LIN(state) : LIN(q)].type.dtype);
    return ZC_OK;
}

/* Which of decay and beta the rule needs; the other must be left out. */
static zc_status check_rule(zc_infer *f, const char *rule)
{
    static const struct {
        const char *name;
        bool decay, beta;
    } rules[] = {{"linear", false, false},
                 {"gated", true, false},
                 {"delta", false, true},
                 {"gated_delta", true, true}};
    for (size_t i = 0; rule && i < ZC_COUNTOF(rules); i++) {
        if (strcmp(rule, rules[i].name) != 0) continue;
        if (rules[i].decay != zc_in_present(f, LIN(decay)))
            return zc_infer_fail(f, "update_rule %s %s the input decay", rule,
                                 rules[i].decay ? "needs" : "excludes");
        if (rules[i].beta != zc_in_present(f, LIN(beta)))
            return zc_infer_fail(f, "update_rule %s %s the input beta", rule,
                                 rules[i].beta ? "needs" : "excludes");
        return ZC_OK;
    }
    return zc_infer_fail(
        f, "update_rule must be linear, gated, delta or gated_delta (got \"" ZC_NAME "\")",
        rule ? rule : "");
}

/* Input i is [batch, length, n] with n one of two. */
static zc_status check_gate(zc_infer *f, int i, zc_dim n, zc_dim other, const char *what)
{
    if (!zc_in_present(f, i)) return ZC_OK;
    ZC_TRY(zc_infer_need_rank(f, i, 3, 3));
    const zc_type *q = zc_in(f, LIN(q)), *t = zc_in(f, i);
    zc_dim last = t->dims[2];
    bool is_other = zc_dim_is_const(last) && zc_dim_eq(last, other);
    const zc_dim need[] = {q->dims[0], q->dims[1], is_other ? other : n};
    return zc_infer_need_shape(f, i, 3, need, what);
}

zc_status zc_infer_linear_attention(zc_infer *f)
{
    const zc_attrs_LinearAttention *a = ZC_ATTRS(f, LinearAttention);
    ZC_TRY(check_rule(f, a->update_rule));
    ZC_TRY(usable_heads(f, "q_num_heads", a->q_num_heads));
    ZC_TRY(usable_heads(f, "kv_num_heads", a->kv_num_heads));
    zc_dim heads = zc_dim_const(a->q_num_heads), kv_heads = zc_dim_const(a->kv_num_heads);
    ZC_TRY(head_groups(f, heads, kv_heads));
    for (int i = LIN(q); i <= LIN(v); i++) ZC_TRY(zc_infer_need_rank(f, i, 3, 3));
    const zc_type *q = zc_in(f, LIN(q));
    zc_dim batch = q->dims[0], length = q->dims[1], dk, dv;
    ZC_TRY(head_size(f, q->dims[2], a->q_num_heads, "query size", &dk));
    ZC_TRY(head_size(f, zc_in(f, LIN(v))->dims[2], a->kv_num_heads, "value size", &dv));
    const zc_dim key[] = {batch, length, zc_dim_mul(f->dims, kv_heads, dk)};
    const zc_dim value[] = {batch, length, zc_in(f, LIN(v))->dims[2]};
    const zc_dim state[] = {batch, kv_heads, dk, dv};
    ZC_TRY(zc_infer_need_shape(f, LIN(k), 3, key, "key"));
    ZC_TRY(zc_infer_need_shape(f, LIN(v), 3, value, "value"));
    ZC_TRY(zc_infer_need_shape(f, LIN(state), 4, state, "past_state"));
    ZC_TRY(check_gate(f, LIN(decay), key[2], kv_heads, "decay"));
    ZC_TRY(check_gate(f, LIN(beta), kv_heads, zc_dim_const(1), "beta"));
    const zc_dim y[] = {batch, length, zc_dim_mul(f->dims, heads, dv)};
    ZC_TRY(zc_infer_set(f, 0, 3, y));
    return zc_infer_set(f, 1, 4, state);
}

/* ---- CausalConvWithState ---- */

zc_status zc_dt_causal_conv(zc_infer *f)
{
    ZC_TRY(zc_infer_need_float(f, 0));
    for (int i = 1; i < f->nin; i++) ZC_TRY(zc_infer_need_alike(f, 0, i));
    return zc_infer_set_dtype(f, f->in[0].type.dtype);
}

zc_status zc_infer_causal_conv(zc_infer *f)
{
    const char *activation = ZC_ATTRS(f, CausalConvWithState)->activation;
    if (!activation || (strcmp(activation, "none") != 0 && strcmp(activation, "silu") != 0 &&
                        strcmp(activation, "swish") != 0))
        return zc_infer_fail(f, "activation must be none, silu or swish (got \"" ZC_NAME "\")",
                             activation ? activation : "");
    ZC_TRY(zc_infer_need_rank(f, 0, 3, 3));
    ZC_TRY(zc_infer_need_rank(f, 1, 3, 3));
    const zc_type *x = zc_in(f, 0), *w = zc_in(f, 1);
    zc_dim taps = w->dims[2], channels = x->dims[1], one = zc_dim_const(1);
    if (zc_dim_is(taps, 0)) return zc_infer_fail(f, "the kernel is empty (need at least 1 tap)");
    const zc_dim weight[] = {channels, one, taps};
    const zc_dim state[] = {x->dims[0], channels, zc_dim_sub(f->dims, taps, one)};
    ZC_TRY(zc_infer_need_shape(f, 1, 3, weight, "weight"));
    ZC_TRY(zc_infer_need_shape(f, 2, 1, &channels, "bias"));
    ZC_TRY(zc_infer_need_shape(f, 3, 3, state, "past_state"));
    zc_infer_copy(f, 0, 0);
    return zc_infer_set(f, 1, 3, state);
}
