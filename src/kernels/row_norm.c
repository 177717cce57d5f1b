#include <string.h>

#include "abi/row_norm.h"
#include "base/number.h"
#include "kernels/collapse.h"
#include "kernels/gen.h"
#include "kernels/groups.h"
#include "kernels/rowplan.h"

/* ---- operands ---- */

/* Which inputs and outputs an operation's operands are; 0: it has none. */
typedef struct layout {
    int axis, operand[ZC_ROW_OPERANDS], mean, inv, sum;
    double eps;
} layout;

/* The layout for an x of this rank. */
static layout layout_of(zc_op op, const void *attrs, int rank)
{
    switch (op) {
    case ZC_OP_LayerNormalization: {
        const zc_attrs_LayerNormalization *a = attrs;
        return (layout){.axis = zc_launch_axis(a->axis, rank),
                        .operand = {[ZC_ROW_SCALE] = 1, [ZC_ROW_BIAS] = 2},
                        .mean = 1,
                        .inv = 2,
                        .eps = a->epsilon};
    }
    case ZC_OP_RMSNormalization: {
        const zc_attrs_RMSNormalization *a = attrs;
        return (layout){.axis = zc_launch_axis(a->axis, rank),
                        .operand = {[ZC_ROW_SCALE] = 1},
                        .inv = 1,
                        .eps = a->epsilon};
    }
    case ZC_OP_SkipLayerNormalization:
        return (layout){
            .axis = rank - 1,
            .operand =
                {[ZC_ROW_SKIP] = 1, [ZC_ROW_SCALE] = 2, [ZC_ROW_BIAS] = 3, [ZC_ROW_SKIP_BIAS] = 4},
            .mean = 1,
            .inv = 2,
            .sum = 3,
            .eps = ((const zc_attrs_SkipLayerNormalization *)attrs)->epsilon};
    default:
        return (layout){.axis = rank - 1,
                        .operand = {[ZC_ROW_SKIP] = 1, [ZC_ROW_SCALE] = 2, [ZC_ROW_SKIP_BIAS] = 3},
                        .mean = 1,
                        .inv = 2,
                        .sum = 3,
                        .eps = ((const zc_attrs_SkipSimplifiedLayerNormalization *)attrs)->epsilon};
    }
}

/* How many of an operand's axes lie in front of axis `axis` of x. */
static int own_axis(int rank, int own_rank, int axis)
{
    int own = axis - (rank - own_rank);
    return own > 0 ? own : 0;
}

/* ---- the specialisation ---- */

enum { TEAM = 1, SHARES };
const char *const zc_config_row_norm[] = {"vector", "team", "shares", NULL};

static unsigned bytes_of(zc_dtype x, zc_dtype scale)
{
    unsigned a = zc_dtype_bits(x) / 8, b = zc_dtype_bits(scale) / 8;
    return a > b ? a : b;
}

/* Rows of v from axis on; held: see zc_gen_rows_shares. Where operands are not whole they are taken
 * one element at once. */
static void choose(zc_gen *g, const zc_pvalue *v, int axis, zc_dtype scale, int64_t held,
                   bool whole)
{
    unsigned bytes = bytes_of(v->dtype, scale);
    int64_t length = zc_gen_rows(g, v->dims + axis, v->rank - axis, bytes, &g->config[TEAM]);
    g->config[SHARES] = zc_gen_rows_shares(g, length, g->config[TEAM], bytes == 2 ? held : 0);
    if (!whole) g->config[0] = 1;
}

static void put_types(zc_gen *g, zc_dtype x, zc_dtype scale, zc_dtype stat)
{
    zc_gen_type(g, "X", x);
    zc_gen_type(g, "S", scale);
    zc_gen_type(g, "Y", zc_gen_out_type(g, 0) == ZC_NONE ? scale : zc_gen_out_type(g, 0));
    zc_gen_type(g, "STAT", stat == ZC_NONE ? ZC_F32 : stat);
    zc_gen_define(g, "ACC", "%s", x == ZC_F64 || scale == ZC_F64 || stat == ZC_F64 ? "f64" : "f32");
}

static void put_ids(zc_gen *g, const char *name, int i)
{
    zc_dtype t = zc_gen_in_type(g, i);
    zc_gen_type(g, name, t == ZC_NONE ? ZC_I32 : t);
}

/* Ids of a table, input i: their type, and how many there are. What is certain spares a division in
 * front of the first load. */
static void put_table_ids(zc_gen *g, int table, int i)
{
    char name[8];
    zc_tensor ids = {.rank = 0};
    const zc_pvalue *v = zc_gen_in(g, i);
    bool certain = v && zc_gen_static(v);
    if (certain) zc_gen_tensor(v, &ids);
    zc_snprintf(name, sizeof name, "ID%d", table);
    put_ids(g, name, i);
    zc_snprintf(name, sizeof name, "IDS%d", table);
    if (certain)
        zc_gen_define(g, name, "%lldLL",
                      (long long)(zc_tensor_numel(&ids) > 0 ? zc_tensor_numel(&ids) : 1));
    else
        zc_gen_define(g, name, "(p.table[%d].count)", table);
}

/* A second result, of y. */
static zc_status put_also(zc_gen *g)
{
    const char *text = zc_op_also(g->info, g->attrs);
    const zc_dtype y = zc_gen_in_type(g, 0);
    if (!text) return ZC_OK;
    zc_expr *e = zc_arena_alloc(g->arena, 1, sizeof *e);
    if (!e) return zc_fail_nomem(g->diag, "fused work", sizeof *e);
    ZC_TRY(zc_expr_parse(text, &y, 1, NULL, 0, e, g->step->name, g->diag));
    e->ninputs = 1;
    zc_gen_type(g, "ALSO", zc_expr_dtype(e, 0));
    return zc_gen_expr(g, "zc_also_point", e, &y, true);
}

static zc_status gen_embeddings(zc_gen *g)
{
    static const int integers[] = {0, 1, 7, 8};
    for (size_t i = 0; i < ZC_COUNTOF(integers); i++) {
        zc_dtype t = zc_gen_in_type(g, integers[i]);
        if (t != ZC_NONE && !zc_kernel_type(t))
            return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    }
    put_types(g, zc_gen_in_type(g, 2), zc_gen_in_type(g, 5), ZC_NONE);
    zc_gen_define(g, "TABLES", "%d", zc_gen_in(g, 1) ? 3 : 2);
    put_table_ids(g, 0, 0);
    put_table_ids(g, 1, 8);
    put_table_ids(g, 2, 1);
    zc_gen_dim(g, "length", zc_gen_in(g, 0)->dims[1]);
    put_ids(g, "MASK", 7);
    zc_dtype count = zc_gen_out_type(g, 1);
    zc_gen_type(g, "COUNT", count == ZC_NONE ? ZC_I32 : count);
    ZC_TRY(zc_gen_epilogue(g));
    zc_gen_define(g, "OPERANDS", "%d", 1 << ZC_ROW_SCALE | 1 << ZC_ROW_BIAS);
    choose(g, zc_gen_in(g, 2), 1, zc_gen_in_type(g, 5), 0, true);
    return ZC_OK;
}

/* Does operand t repeat no element within x's rows, which begin at axis `axis`? False: not for
 * certain. */
static bool has_whole_rows(const zc_pvalue *x, const zc_pvalue *t, int axis)
{
    bool whole = true;
    for (int d = axis; d < x->rank; d++) {
        int own = d - (x->rank - t->rank);
        whole = whole && zc_dim_eq(own >= 0 ? t->dims[own] : zc_dim_const(1), x->dims[d]);
    }
    return whole;
}

/* How the operands lie to x's rows. False: one may be broadcast in a row. */
static bool put_operands(zc_gen *g, const layout *at)
{
    const zc_pvalue *x = zc_gen_in(g, 0);
    zc_shape rows = {.rank = at->axis, .dims = x->dims}, in[ZC_ROW_OPERANDS] = {{0}};
    bool whole = true;
    unsigned there = 0;
    for (int o = 0; o < ZC_ROW_OPERANDS; o++) {
        const zc_pvalue *t = at->operand[o] ? zc_gen_in(g, at->operand[o]) : NULL;
        if (!t) continue;
        there |= 1u << o;
        in[o] = zc_gen_shape(t);
        in[o].rank = own_axis(x->rank, t->rank, at->axis);
        whole = whole && has_whole_rows(x, t, at->axis);
    }
    if (zc_gen_broadcast_certain(rows, ZC_ROW_OPERANDS, in))
        (void)zc_gen_broadcast(g, "OUTER_", rows, ZC_ROW_OPERANDS, in, ZC_ROW_RANK);
    zc_gen_define(g, "OPERANDS", "%u", there);
    if (!whole) zc_gen_define(g, "STRIDED", "1");
    return whole;
}

/* Has operand t but one row? */
static bool has_one_row(const zc_pvalue *x, const zc_pvalue *t, int axis)
{
    bool one = true;
    for (int d = 0; d < own_axis(x->rank, t->rank, axis); d++)
        one = one && zc_dim_is(t->dims[d], 1);
    return one;
}

/* Bytes that a team which stays holds of each element: the row's, the next one's of x and skip, and
 * the other operands, which have one row. 0: one has more. */
static int64_t held_bytes(const zc_gen *g, const layout *at)
{
    const zc_pvalue *x = zc_gen_in(g, 0);
    int64_t bits = zc_dtype_bits(ZC_F32) + zc_dtype_bits(x->dtype);
    for (int o = 0; o < ZC_ROW_OPERANDS; o++) {
        const zc_pvalue *t = at->operand[o] ? zc_gen_in(g, at->operand[o]) : NULL;
        if (!t) continue;
        if (o != ZC_ROW_SKIP && !has_one_row(x, t, at->axis)) return 0;
        bits += zc_dtype_bits(t->dtype);
    }
    return bits / 8;
}

static zc_dtype stat_type(const zc_gen *g)
{
    for (int i = 1; i <= 2 && i < (int)g->step->nout; i++)
        if (zc_gen_out(g, i) && (i == 1 || g->step->op != ZC_OP_RMSNormalization))
            return zc_gen_out_type(g, i);
    return ZC_NONE;
}

zc_status zc_gen_row_norm(zc_gen *g)
{
    const zc_pvalue *x = zc_gen_in(g, 0);
    zc_op op = g->step->op;
    for (int i = 0; i < (int)g->step->nin; i++) {
        const zc_pvalue *v = zc_gen_in(g, i);
        if (!v) continue;
        if (!zc_kernel_type(v->dtype))
            return zc_gen_decline(g, "element type %s", zc_dtype_name(v->dtype));
        if (v->rank < 0) return zc_gen_decline(g, "rank known only when run");
    }
    if (op == ZC_OP_EmbedLayerNormalization) return gen_embeddings(g);
    layout at = layout_of(op, g->attrs, x->rank);
    zc_dtype scale = zc_gen_in_type(g, at.operand[ZC_ROW_SCALE]);
    put_types(g, x->dtype, scale, stat_type(g));
    bool whole = put_operands(g, &at);
    if (op == ZC_OP_RMSNormalization || op == ZC_OP_SkipSimplifiedLayerNormalization)
        zc_gen_define(g, "RMS", "1");
    ZC_TRY(zc_gen_prologue(g));
    ZC_TRY(zc_gen_epilogue(g));
    ZC_TRY(put_also(g));
    choose(g, x, at.axis, scale, whole ? held_bytes(g, &at) : 0, whole);
    return ZC_OK;
}

/* ---- the launch ---- */

/* i: 0 where the operation has no such output. */
static void *wanted(const zc_launch *l, int i)
{
    return i > 0 ? zc_launch_out(l, i) : NULL;
}

static zc_status issue(zc_launch *l, struct zc_row_norm_params *p, zc_dtype x, zc_dtype scale)
{
    const int64_t *config = l->kernel->config;
    return zc_launch_rows(l, p->rows, p->N, config[TEAM], config[SHARES], bytes_of(x, scale), p,
                          sizeof *p);
}

static void set_table(const zc_launch *l, struct zc_row_table *t, int table, int ids)
{
    if (!zc_launch_has(l, table)) return;
    t->data = l->in[table].data;
    t->entries = l->in[table].dims[0];
    if (!zc_launch_has(l, ids)) return;
    t->ids = l->in[ids].data;
    t->count = zc_tensor_numel(&l->in[ids]);
}

static zc_status check_ids(zc_launch *l, const struct zc_row_norm_params *p)
{
    for (int t = 0; t < 3; t++) {
        int64_t n = p->table[t].count;
        if (!p->table[t].ids || p->rows == 0 || n == p->rows || n == p->length || n == 1) continue;
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "wrong number of ids (got %lld, need %lld or %lld)", (long long)n,
                       (long long)p->rows, (long long)p->length);
    }
    if (p->mask && zc_tensor_numel(&l->in[7]) != p->rows)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject, "mask length (got %lld, need %lld)",
                       (long long)zc_tensor_numel(&l->in[7]), (long long)p->rows);
    return ZC_OK;
}

static zc_status launch_embeddings(zc_launch *l, struct zc_row_norm_params *p)
{
    const zc_tensor *ids = &l->in[0];
    p->N = l->in[2].dims[1];
    p->rows = zc_tensor_numel(ids);
    p->length = ids->dims[1];
    p->eps = ZC_ATTRS(l, EmbedLayerNormalization)->epsilon;
    set_table(l, &p->table[0], 2, 0);
    set_table(l, &p->table[1], 3, 8);
    if (zc_launch_has(l, 1)) set_table(l, &p->table[2], 4, 1);
    p->operand[ZC_ROW_SCALE] = l->in[5].data;
    p->operand[ZC_ROW_BIAS] = l->in[6].data;
    p->mask = zc_launch_has(l, 7) ? l->in[7].data : NULL;
    p->counts = zc_launch_out(l, 1);
    p->sum = zc_launch_out(l, 2);
    ZC_TRY(check_ids(l, p));
    if (p->counts) {
        zc_dim3 grid = {zc_launch_blocks(ids->dims[0], 1, 0), 1, 1};
        ZC_TRY(zc_launch_kernel(l, 2, grid, l->kernel->threads, l->kernel->smem, p, sizeof *p));
    }
    return p->N ? issue(l, p, l->in[2].dtype, l->in[5].dtype) : ZC_OK;
}

/* Axes [first, end) of t. */
static zc_tensor axes_of(const zc_tensor *t, int first, int end)
{
    zc_tensor part = {.dtype = t->dtype, .rank = end - first};
    for (int d = first; d < end; d++) part.dims[d - first] = t->dims[d];
    return part;
}

static void set_axes(struct zc_row_axes *to, const zc_tensor *x, const zc_tensor *operands)
{
    zc_collapsed c;
    zc_collapse_broadcast(x, ZC_ROW_OPERANDS, operands, NULL, &c);
    to->rank = c.rank;
    for (int d = 0; d < c.rank; d++) {
        to->dims[d] = c.dims[d];
        for (int o = 0; o < ZC_ROW_OPERANDS; o++) to->strides[o][d] = c.strides[o][d];
    }
}

static void set_operands(const zc_launch *l, const layout *at, struct zc_row_norm_params *p)
{
    const zc_tensor *x = &l->in[0];
    zc_tensor rows = axes_of(x, 0, at->axis), row = axes_of(x, at->axis, x->rank);
    zc_tensor outer[ZC_ROW_OPERANDS] = {{0}}, inner[ZC_ROW_OPERANDS] = {{0}};
    for (int o = 0; o < ZC_ROW_OPERANDS; o++) {
        int i = at->operand[o];
        if (!i || !zc_launch_has(l, i)) continue;
        const zc_tensor *t = &l->in[i];
        int axis = own_axis(x->rank, t->rank, at->axis);
        outer[o] = axes_of(t, 0, axis);
        inner[o] = axes_of(t, axis, t->rank);
        p->operand[o] = t->data;
        p->own_length[o] = zc_tensor_numel(&inner[o]);
    }
    set_axes(&p->outer, &rows, outer);
    set_axes(&p->inner, &row, inner);
}

zc_status zc_launch_row_norm(zc_launch *l)
{
    struct zc_row_norm_params p;
    const zc_tensor *x = &l->in[0];
    zc_op op = l->op;
    memset(&p, 0, sizeof p);
    p.fault = l->fault;
    p.step = l->step_id;
    p.y = zc_launch_out(l, 0);
    ZC_TRY(zc_launch_prologue(l, &p.pre));
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    if (op == ZC_OP_EmbedLayerNormalization) return launch_embeddings(l, &p);
    layout at = layout_of(op, l->attrs, x->rank);
    p.rows = zc_dims_span(x->dims, 0, at.axis);
    p.N = zc_dims_span(x->dims, at.axis, x->rank);
    if (p.rows <= 0 || p.N < 0) return ZC_OK;
    p.x = x->data;
    set_operands(l, &at, &p);
    p.mean = wanted(l, at.mean);
    p.inv = wanted(l, at.inv);
    p.sum = wanted(l, at.sum);
    if (zc_op_also(l->info, l->attrs)) p.also = zc_launch_out(l, l->info->max_out - 1);
    p.eps = at.eps;
    return issue(l, &p, x->dtype, l->in[at.operand[ZC_ROW_SCALE]].dtype);
}
