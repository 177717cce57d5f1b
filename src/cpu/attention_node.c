/* The operation Attention: operands prepared, then computed. */
#include <math.h>
#include <string.h>

#include "cpu/attention.h"
#include "cpu/copy.h"
#include "cpu/fast.h"
#include "cpu/rotary.h"

#define IN(input) zc_input(k, ZC_IN_Attention_##input)

typedef struct node {
    zc_attention_form f;
    zc_attn a;
    zc_dtype work; /* of queries and keys that are made for this node alone */
    zc_tensor queries, keys, values, mask; /* that views refer to */
    zc_rotary turn;
    const zc_tensor *positions;
    double norm_eps;
    int64_t *used; /* past positions of each batch item that count */
} node;

static zc_status scratch_tensor(zc_kctx *k, zc_dtype dtype, int rank, const int64_t *dims,
                                zc_tensor *out)
{
    size_t bytes;
    *out = (zc_tensor){.dtype = dtype, .rank = rank};
    memcpy(out->dims, dims, (size_t)rank * sizeof *dims);
    if (zc_tensor_bytes(out, &bytes)) out->data = zc_scratch_get(k->scratch, bytes);
    return out->data ? ZC_OK : zc_fail_nomem(k->diag, "temporary tensor", 0);
}

/* ---- lengths ---- */

static zc_status length_of(zc_kctx *k, const node *n, int64_t b, int64_t *keys, int64_t *position)
{
    const zc_attention_form *f = &n->f;
    int64_t got = zc_geti(IN(lengths), b);
    *keys = got;
    *position = f->packed ? 0 : got - f->nq;
    if (got >= 0 && got <= f->nk) return ZC_OK;
    return zc_kernel_fail(k, "lengths[%lld] out of range (got %lld, need [0, %lld])", (long long)b,
                          (long long)got, (long long)f->nk);
}

/* With as many new tokens as there are in all, nothing of the past counts. */
static zc_status cached_of(zc_kctx *k, const node *n, int64_t b, int64_t *keys, int64_t *position)
{
    const zc_attention_form *f = &n->f;
    int64_t last = zc_geti(IN(lengths), b);
    bool fits = last >= 0 && last < f->nk;
    int64_t used = !fits || f->nk == f->nq ? 0 : last + 1 - f->nq;
    *keys = last + 1;
    *position = used;
    if (fits && used >= 0 && used <= f->past) return ZC_OK;
    return zc_kernel_fail(k,
                          "seqlens_k[%lld] does not fit the other lengths (got %lld with %lld new, "
                          "%lld past and %lld total tokens)",
                          (long long)b, (long long)last, (long long)f->nq, (long long)f->past,
                          (long long)f->nk);
}

/* Which keys count, and where the queries stand among them. */
static zc_status place(zc_kctx *k, node *n)
{
    const zc_attention_form *f = &n->f;
    int64_t *v = zc_scratch_get(k->scratch, (size_t)f->batch * 3 * sizeof *v);
    if (!v && f->batch) return zc_fail_nomem(k->diag, "key positions", 0);
    int64_t *keys = v, *position = v + f->batch;
    n->used = v + 2 * f->batch;
    for (int64_t b = 0; b < f->batch; b++) {
        keys[b] = f->nk;
        position[b] = f->past;
        if (IN(lengths))
            ZC_TRY((f->cache ? cached_of : length_of)(k, n, b, &keys[b], &position[b]));
        n->used[b] = f->cache ? position[b] : f->past;
    }
    n->a.keys = IN(lengths) ? keys : NULL;
    n->a.position = position;
    return ZC_OK;
}

/* ---- heads moved: past ones copied, new ones normed and turned ---- */

typedef struct move_job {
    const node *n;
    zc_heads x, past;
    const zc_tensor *norm; /* NULL: none */
    bool turn, behind;     /* behind: new positions go behind the past ones that count */
    int64_t heads, fresh, room, size;
    zc_tensor *to; /* laid out [batch, heads, room, size] */
} move_job;

static int64_t table_row(const node *n, int64_t b, int64_t s)
{
    const zc_attention_form *f = &n->f;
    if (n->positions) return zc_geti(n->positions, b * f->nq + s);
    return b * f->table_step + s + (f->table_fresh ? 0 : n->a.position[b]);
}

static void copy_head(const move_job *j, const zc_tensor *from, int64_t at, int64_t to)
{
    if (from->dtype == j->to->dtype) {
        memcpy(zc_elem_at(j->to, to), zc_elem_at(from, at), zc_elem_size(from) * (size_t)j->size);
        return;
    }
    for (int64_t e = 0; e < j->size; e++) zc_put(j->to, to + e, zc_get(from, at + e));
}

/* to = x * weight / rms(x) */
static void norm_head(const move_job *j, int64_t x, int64_t to)
{
    double squares = 0;
    for (int64_t e = 0; e < j->size; e++) squares += zc_get(j->x.t, x + e) * zc_get(j->x.t, x + e);
    double inv = 1 / sqrt(squares / (double)j->size + j->n->norm_eps);
    for (int64_t e = 0; e < j->size; e++)
        zc_put(j->to, to + e, zc_get(j->x.t, x + e) * inv * zc_get(j->norm, e));
}

static void new_head(const move_job *j, int64_t b, int64_t h, int64_t s, int64_t to)
{
    int64_t x = j->x.at + b * j->x.batch + h * j->x.head + s * j->x.pos;
    const zc_tensor *from = j->x.t;
    if (j->norm) {
        norm_head(j, x, to);
        from = j->to;
        x = to;
    }
    if (j->turn)
        zc_rotate(&j->n->turn, table_row(j->n, b, s), from, x, j->to, to, j->size);
    else if (!j->norm)
        copy_head(j, from, x, to);
}

static void move_rows(void *arg, int64_t begin, int64_t end)
{
    const move_job *j = arg;
    for (int64_t r = begin; r < end; r++) {
        int64_t pos = r % j->room, h = r / j->room % j->heads, b = r / j->room / j->heads;
        int64_t before = j->behind ? j->n->used[b] : 0;
        if (pos < before)
            copy_head(j, j->past.t, b * j->past.batch + h * j->past.head + pos * j->past.pos,
                      r * j->size);
        else if (pos < before + j->fresh)
            new_head(j, b, h, pos - before, r * j->size);
        else
            memset(zc_elem_at(j->to, r * j->size), 0, zc_elem_size(j->to) * (size_t)j->size);
    }
}

/* Heads `view` in memory of their own. */
static zc_status move(zc_kctx *k, move_job *j, zc_heads *view)
{
    const int64_t dims[] = {j->n->f.batch, j->heads, j->room};
    j->x = *view;
    zc_parallel(k, zc_numel(3, dims), 16, move_rows, j);
    *view = zc_heads_4d(j->to, j->heads, j->room, j->size);
    return ZC_OK;
}

/* Past and new keys, or values, one after the other: in output `out`, or in scratch memory. Nothing
 * to do where they stand ready. */
static zc_status keys_in_one(zc_kctx *k, const node *n, bool values, zc_heads *view,
                             zc_tensor *room)
{
    const zc_attention_form *f = &n->f;
    const zc_tensor *past = values ? IN(past_v) : IN(past_k);
    const zc_tensor *present = zc_output(k, values ? 2 : 1);
    int64_t size = values ? f->dv : f->d;
    const int64_t dims[] = {f->batch, f->kv_heads, f->room, size};
    move_job j = {.n = n,
                  .past = zc_heads_4d(past, f->kv_heads, f->past, size),
                  .norm = values ? NULL : IN(k_norm),
                  .turn = !values && f->half,
                  .behind = f->cache || past,
                  .heads = f->kv_heads,
                  .fresh = f->fresh,
                  .room = f->room,
                  .size = size,
                  .to = room};
    bool kept = present || past || f->cache;
    if (!kept && !j.norm && !j.turn) return ZC_OK;
    if (present)
        *room = *present;
    else
        ZC_TRY(scratch_tensor(k, kept ? view->t->dtype : n->work, 4, dims, room));
    if (present && zc_tensor_numel(room) != zc_numel(4, dims))
        return zc_kernel_fail(k, "wrong size of the present key or value (got %lld, need %lld)",
                              (long long)zc_tensor_numel(room), (long long)zc_numel(4, dims));
    return move(k, &j, view);
}

static zc_status move_queries(zc_kctx *k, node *n)
{
    const zc_attention_form *f = &n->f;
    const int64_t dims[] = {f->batch, f->heads, f->nq, f->d};
    move_job j = {.n = n,
                  .norm = IN(q_norm),
                  .turn = f->half,
                  .heads = f->heads,
                  .fresh = f->nq,
                  .room = f->nq,
                  .size = f->d,
                  .to = &n->queries};
    if (!j.norm && !j.turn) return ZC_OK;
    ZC_TRY(scratch_tensor(k, n->work, 4, dims, &n->queries));
    return move(k, &j, &n->a.q);
}

static zc_status use_turns(zc_kctx *k, node *n)
{
    const zc_attrs_Attention *at = ZC_ATTRS(k, Attention);
    const zc_attention_form *f = &n->f;
    n->turn = (zc_rotary){IN(cos), IN(sin), f->half, at->interleaved != 0};
    n->positions = IN(positions);
    n->norm_eps = at->norm_epsilon;
    for (int64_t i = 0; f->half && i < f->batch * f->nq; i++) {
        int64_t row = table_row(n, i / f->nq, i % f->nq);
        if (row < 0 || row >= f->table)
            return zc_kernel_fail(k, "position out of range (got %lld, need [0, %lld])",
                                  (long long)row, (long long)f->table - 1);
    }
    return ZC_OK;
}

/* ---- hidden keys ---- */

static bool is_seen(const node *n, const zc_tensor *hidden, int64_t row, int64_t j)
{
    const zc_attention_form *f = &n->f;
    if (!n->f.hidden_flat) return zc_geti(hidden, row * f->nk + j) > 0;
    if (j >= zc_geti(hidden, row)) return false;
    return hidden->dims[0] != 2 * f->batch || j >= zc_geti(hidden, f->batch + row);
}

static zc_status hide(zc_kctx *k, node *n)
{
    const zc_attention_form *f = &n->f;
    const int64_t dims[] = {f->batch, f->hidden_rows, f->nk};
    if (!f->hidden_rows) return ZC_OK;
    ZC_TRY(scratch_tensor(k, ZC_F32, 3, dims, &n->mask));
    float *to = n->mask.data, filter = ZC_ATTRS(k, Attention)->mask_filter;
    for (int64_t r = 0; r < f->batch * f->hidden_rows; r++)
        for (int64_t j = 0; j < f->nk; j++)
            to[r * f->nk + j] = is_seen(n, IN(hidden), r, j) ? 0 : filter;
    n->a.bias[0].t = &n->mask;
    return ZC_OK;
}

/* ---- the operation ---- */

static zc_status read_node(zc_kctx *k, node *n)
{
    const zc_tensor *total = IN(total);
    zc_attention_node c = {.attrs = ZC_ATTRS(k, Attention),
                           .nin = k->nin,
                           .nout = k->nout,
                           .in = k->in,
                           .out = k->out,
                           .total = -1,
                           .subject = k->subject,
                           .diag = k->diag};
    if (total && zc_tensor_numel(total) != 1)
        return zc_kernel_fail(k, "wrong number of total sequence lengths (got %lld, need 1)",
                              (long long)zc_tensor_numel(total));
    if (total) c.total = zc_geti(total, 0);
    return zc_attention_form_of(&c, &n->f);
}

static zc_attn problem_of(zc_kctx *k, const zc_attention_form *f)
{
    const zc_attrs_Attention *at = ZC_ATTRS(k, Attention);
    return (zc_attn){.batch = f->batch,
                     .heads = f->heads,
                     .kv_heads = f->kv_heads,
                     .nq = f->nq,
                     .nk = f->nk,
                     .d = f->d,
                     .dv = f->dv,
                     .q = f->q,
                     .k = f->k,
                     .v = f->v,
                     .y = &k->out[0],
                     .y_at = f->y,
                     .scale = f->scale,
                     .softcap = at->softcap,
                     .bias = {f->mask, f->bias},
                     .causal = at->is_causal != 0,
                     .mask_value = at->mask_value,
                     .window = at->window,
                     .sink = IN(sink),
                     .zero_sink = at->zero_sink != 0,
                     .scores = zc_output(k, 3),
                     .scores_mode = (int)at->qk_matmul_output_mode};
}

static zc_status run(zc_kctx *k, bool fast)
{
    node n = {.work = fast ? ZC_F32 : ZC_F64};
    ZC_TRY(read_node(k, &n));
    n.a = problem_of(k, &n.f);
    ZC_TRY(place(k, &n));
    ZC_TRY(use_turns(k, &n));
    ZC_TRY(keys_in_one(k, &n, false, &n.a.k, &n.keys));
    ZC_TRY(keys_in_one(k, &n, true, &n.a.v, &n.values));
    ZC_TRY(move_queries(k, &n));
    ZC_TRY(hide(k, &n));
    return zc_attn_run(k, &n.a, fast);
}

zc_status zc_k_Attention(zc_kctx *k)
{
    return run(k, false);
}

bool zc_fits_attention(const zc_kctx *k)
{
    const zc_tensor *v = IN(v);
    return k->in[0].dtype == ZC_F32 && (!v || v->dtype == ZC_F32);
}

zc_status zc_fast_attention(zc_kctx *k)
{
    return run(k, true);
}
