/* Attention's operands prepared on the device: keys and values in one piece, heads normed and
 * turned, a bias made of what hides keys. */
#include "kernels/attention_form.h"

#include <math.h>

#include "kernels/divisor.h"

enum { ENTRY_ROWS = 2, ENTRY_MASK };

#define IN(input) zc_launch_in(l, ZC_IN_Attention_##input)

zc_status zc_attention_too_large(const zc_attention *a)
{
    return zc_fail(a->l->diag, ZC_ERR_LIMIT, a->l->subject,
                   "more rows than the GPU kernel can count");
}

/* ---- reading ---- */

static struct zc_attention_view view_of(const zc_heads *h)
{
    const void *data = h->t ? h->t->data : NULL;
    if (data && h->at)
        data = (void *)((uintptr_t)data + (uintptr_t)h->at * (zc_dtype_bits(h->t->dtype) / 8));
    return (struct zc_attention_view){data, h->batch, h->head, h->pos};
}

static zc_status read_form(zc_launch *l, zc_attention_form *f)
{
    int64_t total[1];
    int n;
    zc_attention_node node = {.attrs = ZC_ATTRS(l, Attention),
                              .nin = l->nin,
                              .nout = l->nout,
                              .in = l->in,
                              .out = l->out,
                              .total = -1,
                              .subject = l->subject,
                              .diag = l->diag};
    ZC_TRY(zc_launch_ints(l, ZC_IN_Attention_total, total, 1, &n));
    if (n == 1) node.total = total[0];
    if (n == 0)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "wrong number of total sequence lengths (got 0, need 1)");
    return zc_attention_form_of(&node, f);
}

static void put_bias(zc_attention *a, int x, const zc_attn_bias *b)
{
    a->p.bias[x] = b->t ? b->t->data : NULL;
    a->p.bias_cols[x] = b->cols;
    for (int d = 0; d < 4; d++) a->p.bias_steps[x][d] = b->strides[d];
}

static void describe(zc_attention *a, const zc_attention_form *f)
{
    const zc_launch *l = a->l;
    const zc_attrs_Attention *at = ZC_ATTRS(l, Attention);
    const zc_tensor *v = f->v.t;
    a->type = l->in[0].dtype;
    a->v_type = v->dtype;
    a->d = f->d;
    a->dv = f->dv;
    a->p.len = (struct zc_attention_lengths){.lengths = IN(lengths),
                                             .nq = f->nq,
                                             .nk = f->nk,
                                             .past = f->past,
                                             .fault = l->fault,
                                             .step = l->step_id};
    a->p.batch = f->batch;
    a->p.heads = f->heads;
    a->p.kv_heads = f->kv_heads;
    a->p.q = view_of(&f->q);
    a->p.k = view_of(&f->k);
    a->p.v = view_of(&f->v);
    a->p.y = view_of(&f->y);
    a->p.causal = at->is_causal != 0;
    a->p.softcap = at->softcap;
    a->p.mask_value = at->mask_value != 0 ? at->mask_value : -(double)INFINITY;
    a->p.window = at->window;
    a->p.sink = IN(sink);
    a->p.zero_sink = at->zero_sink != 0;
    a->p.scale = f->scale;
    a->p.scores = zc_launch_out(l, 3);
    put_bias(a, 0, &f->mask);
    put_bias(a, 1, &f->bias);
}

/* ---- moved rows ---- */

/* batch * heads * length * size elements of scratch memory. */
static zc_status room_for(zc_attention *a, zc_dtype type, int64_t heads, int64_t length,
                          int64_t size, void **out)
{
    const int64_t dims[] = {a->p.batch, heads, length, size};
    size_t bytes;
    if (!zc_dtype_bytes(type, zc_numel(4, dims), &bytes)) return zc_attention_too_large(a);
    return zc_launch_scratch(a->l, bytes, out);
}

static void tables_of(const zc_launch *l, const zc_attention_form *f,
                      struct zc_attention_rows_params *r)
{
    r->cos = IN(cos);
    r->sin = IN(sin);
    r->ids = IN(positions);
    r->half = f->half;
    r->table = f->table;
    r->table_step = f->table_step;
    r->table_fresh = f->table_fresh;
    r->interleaved = ZC_ATTRS(l, Attention)->interleaved != 0;
}

void zc_attention_rows_of(const zc_attention *a, const zc_attention_form *f,
                          zc_attention_operand which, struct zc_attention_rows_params *r)
{
    const zc_launch *l = a->l;
    bool values = which == ZC_ATTENTION_VALUES;
    *r = (struct zc_attention_rows_params){.len = a->p.len,
                                           .batch = a->p.batch,
                                           .heads = f->heads,
                                           .fresh = f->nq,
                                           .room = f->nq,
                                           .eps = ZC_ATTRS(l, Attention)->norm_epsilon};
    r->x = values ? a->p.v : which == ZC_ATTENTION_KEYS ? a->p.k : a->p.q;
    r->norm = values ? NULL : which == ZC_ATTENTION_KEYS ? IN(k_norm) : IN(q_norm);
    if (!values) tables_of(l, f, r);
    if (which == ZC_ATTENTION_QUERIES) return;
    int64_t size = values ? a->dv : a->d;
    const void *past = values ? IN(past_v) : IN(past_k);
    r->to = zc_launch_out(l, values ? 2 : 1);
    r->past = (struct zc_attention_view){past, f->kv_heads * f->past * size, f->past * size, size};
    r->heads = f->kv_heads;
    r->fresh = f->fresh;
    r->room = f->room;
    r->behind = f->cache || f->past > 0;
}

static int64_t piece_of(zc_dtype type, int64_t size)
{
    int64_t piece = 128 / (int64_t)zc_dtype_bits(type);
    while (size % piece) piece /= 2;
    return piece;
}

bool zc_attention_in_pieces(const struct zc_attention_view *v, zc_dtype type, int64_t size)
{
    int64_t piece = piece_of(type, size), bytes = zc_dtype_bits(type) / 8;
    return (uintptr_t)v->data % (uintptr_t)(piece * bytes) == 0 && v->batch % piece == 0 &&
           v->head % piece == 0 && v->pos % piece == 0;
}

/* The rotary tables and the norm's factors, too. */
static bool all_in_pieces(const struct zc_attention_rows_params *r, zc_dtype type, int64_t size)
{
    int64_t piece = piece_of(type, size), step = r->interleaved ? piece / 2 : piece;
    const void *flat[] = {r->norm, r->cos, r->sin, r->to};
    if (r->half && (step < 1 || r->half % step)) return false;
    for (int i = 0; i < (int)ZC_COUNTOF(flat); i++)
        if ((uintptr_t)flat[i] % 16) return false;
    return zc_attention_in_pieces(&r->x, type, size) &&
           zc_attention_in_pieces(&r->past, type, size);
}

enum { THREADS = 256, WARP = 32 };

/* Rows r->x, of the values' type and size or the keys', go to r->to, or to scratch memory when it
 * is NULL, which becomes the view: by *blocks more blocks. */
static zc_status plan_rows(zc_attention *a, bool values, struct zc_attention_rows_params *r,
                           struct zc_attention_view *view, int *blocks)
{
    const int64_t dims[] = {a->p.batch, r->heads, r->room};
    zc_dtype type = values ? a->v_type : a->type;
    int64_t rows = zc_numel(3, dims), size = values ? a->dv : a->d,
            pieces = size / piece_of(type, size);
    r->lanes = 1;
    while (r->lanes < WARP && r->lanes < pieces) r->lanes *= 2;
    int64_t most = (int64_t)(INT32_MAX - *blocks) * (THREADS / r->lanes);
    if (rows < 0 || rows > most) return zc_attention_too_large(a);
    if (!r->to) ZC_TRY(room_for(a, type, r->heads, r->room, size, &r->to));
    *view = (struct zc_attention_view){r->to, r->heads * r->room * size, r->room * size, size};
    r->by_room = zc_divisor_of(r->room);
    r->by_heads = zc_divisor_of(r->heads);
    r->pieces = all_in_pieces(r, type, size);
    *blocks += (int)zc_ceil_div(rows, THREADS / r->lanes);
    return ZC_OK;
}

/* Keys or values stand ready: none in front of them, nothing to be done to them, nobody wants them.
 */
static bool is_ready(const struct zc_attention_rows_params *r)
{
    return !r->to && !r->behind && !r->half && !r->norm;
}

/* Queries, keys and values as they are computed with: past and new ones one after the other, in the
 * result or in scratch memory. */
static zc_status prepare_rows(zc_attention *a, const zc_attention_form *f)
{
    struct zc_attention_operands_params p = {.k_first = 0};
    int blocks = 0;
    zc_attention_rows_of(a, f, ZC_ATTENTION_QUERIES, &p.q);
    zc_attention_rows_of(a, f, ZC_ATTENTION_KEYS, &p.k);
    zc_attention_rows_of(a, f, ZC_ATTENTION_VALUES, &p.v);
    if (p.q.half || p.q.norm) ZC_TRY(plan_rows(a, false, &p.q, &a->p.q, &blocks));
    p.k_first = blocks;
    if (!is_ready(&p.k)) ZC_TRY(plan_rows(a, false, &p.k, &a->p.k, &blocks));
    p.v_first = blocks;
    if (!is_ready(&p.v)) ZC_TRY(plan_rows(a, true, &p.v, &a->p.v, &blocks));
    return zc_launch_kernel(a->l, ENTRY_ROWS, (zc_dim3){(uint32_t)blocks, 1, 1}, THREADS, 0, &p,
                            sizeof p);
}

/* ---- hidden keys ---- */

static zc_status hide(zc_attention *a, const zc_attention_form *f)
{
    zc_launch *l = a->l;
    const int64_t dims[] = {f->batch, f->hidden_rows, f->nk};
    void *room;
    if (!f->hidden_rows) return ZC_OK;
    ZC_TRY(room_for(a, ZC_F32, 1, f->hidden_rows, f->nk, &room));
    struct zc_attention_mask_params m = {.mask = IN(hidden),
                                         .bias = room,
                                         .batch = f->batch,
                                         .rows = f->hidden_rows,
                                         .nk = f->nk,
                                         .elements =
                                             zc_tensor_numel(&l->in[ZC_IN_Attention_hidden]),
                                         .flat = f->hidden_flat,
                                         .filter = ZC_ATTRS(l, Attention)->mask_filter};
    a->p.bias[0] = room;
    zc_dim3 grid = {zc_launch_blocks(zc_numel(3, dims), 256, 4096), 1, 1};
    return zc_launch_kernel(l, ENTRY_MASK, grid, 256, 0, &m, sizeof m);
}

zc_status zc_attention_read(zc_launch *l, zc_attention *a, zc_attention_form *f)
{
    *a = (zc_attention){.l = l};
    ZC_TRY(read_form(l, f));
    describe(a, f);
    return zc_launch_epilogue(l, &a->p.fused);
}

zc_status zc_attention_describe(zc_launch *l, zc_attention *a, bool *some)
{
    zc_attention_form f;
    ZC_TRY(zc_attention_read(l, a, &f));
    ZC_TRY(prepare_rows(a, &f));
    ZC_TRY(hide(a, &f));
    *some = f.batch && f.heads && f.nq && (a->p.y.data || a->p.scores);
    return ZC_OK;
}
