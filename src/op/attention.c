#include "op/attention.h"

#include <math.h>

/* Operand and result; NULL: absent, not wanted. */
#define IN(input) operand(n, ZC_IN_Attention_##input)

static const zc_tensor *operand(const zc_attention_node *n, int i)
{
    return i < n->nin && zc_present(&n->in[i]) ? &n->in[i] : NULL;
}

static const zc_tensor *result(const zc_attention_node *n, int i)
{
    return i < n->nout && zc_present(&n->out[i]) ? &n->out[i] : NULL;
}

/* ---- checks ---- */

static zc_status same(const zc_attention_node *n, int64_t got, int64_t need, const char *what)
{
    if (got == need) return ZC_OK;
    return zc_fail(n->diag, ZC_ERR_INPUT, n->subject, "wrong %s (got %lld, need %lld)", what,
                   (long long)got, (long long)need);
}

/* t, if it is there, has as many elements as dims say. */
static zc_status sized(const zc_attention_node *n, const zc_tensor *t, int rank,
                       const int64_t *dims, const char *what)
{
    return t ? same(n, zc_tensor_numel(t), zc_numel(rank, dims), what) : ZC_OK;
}

/* ---- sizes ---- */

static int64_t length_of(const zc_tensor *t)
{
    return t->dims[t->rank == 4 ? 2 : 1];
}

/* The size of a head, of `heads` in a tensor that has no axis of them. */
static int64_t size_of(const zc_tensor *t, int64_t heads)
{
    return t->rank > 3 ? t->dims[t->rank - 1] : t->dims[2] / heads;
}

static void read_sizes(const zc_attention_node *n, zc_attention_form *f)
{
    const zc_tensor *q = IN(q), *k = IN(k), *v = IN(v);
    f->packed = !k;
    f->batch = q->dims[0];
    f->heads = q->rank == 4 ? q->dims[1] : n->attrs->q_num_heads;
    f->kv_heads = k && k->rank == 4 ? k->dims[1] : n->attrs->kv_num_heads;
    f->nq = length_of(q);
    f->fresh = k ? length_of(k) : f->nq;
    f->d = size_of(q, f->heads + (k ? 0 : 2 * f->kv_heads));
    f->dv = v ? size_of(v, f->kv_heads) : f->d;
}

/* So that no view leaves its tensor. */
static zc_status check_sizes(const zc_attention_node *n, const zc_attention_form *f)
{
    const zc_tensor *k = IN(k), *v = IN(v);
    const int64_t of_q[] = {f->batch, f->nq, f->heads + (k ? 0 : 2 * f->kv_heads), f->d},
                  of_k[] = {f->batch, f->fresh, f->kv_heads, f->d, v ? 1 : 2},
                  of_v[] = {f->batch, f->fresh, f->kv_heads, f->dv};
    if (f->kv_heads < 1 || f->heads % f->kv_heads)
        return zc_fail(n->diag, ZC_ERR_INPUT, n->subject,
                       "query heads are not a multiple of key heads (got %lld and %lld)",
                       (long long)f->heads, (long long)f->kv_heads);
    ZC_TRY(sized(n, IN(q), 4, of_q, "size of the query"));
    ZC_TRY(sized(n, k, 5, of_k, "size of the key"));
    return sized(n, v, 4, of_v, "size of the value");
}

/* ---- views ---- */

/* Head i is the one at first + i * step of `all` that lie side by side at each position. */
static zc_heads among(const zc_tensor *t, int64_t first, int64_t step, int64_t all, int64_t length,
                      int64_t size)
{
    return (zc_heads){t, first * size, length * all * size, step * size, all * size};
}

static zc_heads plain(const zc_tensor *t, int rank, int64_t heads, int64_t length, int64_t size)
{
    return rank == 4 ? zc_heads_4d(t, heads, length, size) : zc_heads_3d(t, heads, length, size);
}

/* Queries, keys and values of each head side by side, or all queries, all keys, all values. */
static void packed_views(const zc_tensor *q, zc_attention_form *f)
{
    int64_t kv = f->kv_heads, heads = f->heads, all = heads + 2 * kv;
    bool each = q->rank == 5;
    f->q = among(q, 0, each ? 3 : 1, all, f->nq, f->d);
    f->k = among(q, each ? 1 : heads, each ? 3 : 1, all, f->nq, f->d);
    f->v = among(q, each ? 2 : heads + kv, each ? 3 : 1, all, f->nq, f->d);
}

static void read_views(const zc_attention_node *n, zc_attention_form *f)
{
    const zc_tensor *q = IN(q), *k = IN(k), *v = IN(v);
    f->y = plain(result(n, 0), q->rank, f->heads, f->nq, f->dv);
    if (!k) {
        packed_views(q, f);
        return;
    }
    f->q = plain(q, q->rank, f->heads, f->nq, f->d);
    f->k = v ? plain(k, k->rank, f->kv_heads, f->fresh, f->d)
             : among(k, 0, 2, 2 * f->kv_heads, f->fresh, f->d);
    f->v = v ? plain(v, v->rank, f->kv_heads, f->fresh, f->dv)
             : among(k, 1, 2, 2 * f->kv_heads, f->fresh, f->d);
}

/* ---- past ---- */

static zc_status lengths(const zc_attention_node *n, zc_attention_form *f)
{
    const zc_tensor *past_k = IN(past_k);
    f->cache = n->total >= 0;
    f->past = past_k ? past_k->dims[2] : 0;
    f->nk = f->cache ? n->total : f->past + f->fresh;
    f->room = f->cache && f->past > f->nk ? f->past : f->nk;
    const int64_t key[] = {f->batch, f->kv_heads, f->past, f->d},
                  value[] = {f->batch, f->kv_heads, f->past, f->dv};
    ZC_TRY(sized(n, past_k, 4, key, "size of the past key"));
    ZC_TRY(sized(n, IN(past_v), 4, value, "size of the past value"));
    ZC_TRY(sized(n, IN(lengths), 1, &f->batch, "number of lengths"));
    if (f->nk >= f->nq || !f->cache) return ZC_OK;
    return zc_fail(n->diag, ZC_ERR_INPUT, n->subject,
                   "total_sequence_length is too small (got %lld, need %lld)", (long long)f->nk,
                   (long long)f->nq);
}

/* ---- what is done to heads ---- */

static zc_status tables(const zc_attention_node *n, zc_attention_form *f)
{
    const zc_tensor *cos = IN(cos), *sin = IN(sin);
    const int64_t ids[] = {f->batch, f->nq};
    if (!cos) return ZC_OK;
    bool each = cos->rank == 3 && cos->dims[0] != 1;
    f->half = cos->dims[cos->rank - 1];
    f->table_fresh = cos->rank == 3;
    f->table_step = each ? f->nq : 0;
    f->table = cos->rank == 3 ? cos->dims[0] * f->nq : cos->dims[0];
    const int64_t need[] = {each ? f->batch : 1, cos->rank == 3 ? f->nq : f->table, f->half};
    ZC_TRY(sized(n, cos, 3, need, "size of the cosines"));
    ZC_TRY(sized(n, sin, 3, need, "size of the sines"));
    ZC_TRY(sized(n, IN(positions), 2, ids, "number of position ids"));
    if (2 * f->half <= f->d) return ZC_OK;
    return zc_fail(n->diag, ZC_ERR_INPUT, n->subject,
                   "cosines have too many columns (got %lld, need at most %lld)",
                   (long long)f->half, (long long)f->d / 2);
}

/* ---- biases ---- */

/* Broadcasts to the scores, but for the last dimension, which may be shorter than the keys. */
static zc_status broadcast(const zc_attention_node *n, const zc_attention_form *f,
                           const zc_tensor *t, zc_attn_bias *out)
{
    const int64_t need[] = {f->batch, f->heads, f->nq, f->nk};
    int64_t step = 1;
    bool fits = t->rank >= 1 && t->rank <= 4 && t->dims[t->rank - 1] <= f->nk;
    for (int d = 1; fits && d <= t->rank; d++) {
        int64_t have = t->dims[t->rank - d];
        fits = d == 1 || have == 1 || have == need[4 - d];
        out->strides[4 - d] = d == 1 ? 1 : have == 1 ? 0 : step;
        step *= have;
    }
    out->t = t;
    out->cols = t->dims[t->rank - 1];
    if (fits) return ZC_OK;
    char text[128];
    return zc_fail(n->diag, ZC_ERR_INPUT, n->subject,
                   "attn_mask does not broadcast to the scores (got %s)",
                   zc_tensor_type_text(t, text, sizeof text));
}

/* Numbers of keys [batch], exclusive ends and then starts [2 * batch], numbers and offsets that say
 * no more [3 * batch + 2], or one for each key, [batch, keys] or [batch, queries, keys]. [.., 1]
 * stands for none. */
static zc_status read_hidden(const zc_attention_node *n, zc_attention_form *f)
{
    const zc_tensor *t = IN(hidden);
    if (!t || (t->rank == 2 && t->dims[1] == 1 && f->nk != 1)) return ZC_OK;
    int64_t got = zc_tensor_numel(t), rows = t->rank == 3 ? f->nq : 1;
    const int64_t dims[] = {f->batch, rows, f->nk};
    f->hidden_flat = t->rank == 1;
    f->hidden_rows = rows;
    f->mask = (zc_attn_bias){NULL, {rows * f->nk, 0, rows == 1 ? 0 : f->nk, 1}, f->nk};
    bool ends = got == f->batch || got == 2 * f->batch || got == 3 * f->batch + 2;
    if (t->rank == 1 ? ends : got == zc_numel(3, dims)) return ZC_OK;
    char text[128];
    return zc_fail(n->diag, ZC_ERR_UNSUPPORTED, n->subject, "mask of this form (got %s)",
                   zc_tensor_type_text(t, text, sizeof text));
}

zc_status zc_attention_form_of(const zc_attention_node *n, zc_attention_form *f)
{
    *f = (zc_attention_form){.batch = 0};
    read_sizes(n, f);
    ZC_TRY(check_sizes(n, f));
    read_views(n, f);
    ZC_TRY(lengths(n, f));
    ZC_TRY(tables(n, f));
    ZC_TRY(sized(n, IN(sink), 1, &f->heads, "size of head_sink"));
    ZC_TRY(sized(n, IN(q_norm), 1, &f->d, "size of q_norm_weight"));
    ZC_TRY(sized(n, IN(k_norm), 1, &f->d, "size of k_norm_weight"));
    bool given = ZC_ATTR_GIVEN(Attention, n->attrs, scale);
    f->scale = given ? n->attrs->scale : 1 / sqrt((double)f->d);
    ZC_TRY(read_hidden(n, f));
    if (IN(mask)) ZC_TRY(broadcast(n, f, IN(mask), &f->mask));
    if (!IN(bias)) return ZC_OK;
    ZC_TRY(broadcast(n, f, IN(bias), &f->bias));
    return same(n, f->bias.cols, f->nk, "number of keys of the attention bias");
}
