#include <string.h>

#include "abi/row_norm.h"
#include "kernels/gen.h"
#include "kernels/groups.h"
#include "kernels/rowplan.h"

/* ---- the specialisation ---- */

/* Is operand i of all rows the same, or as large as x? If not for certain, its elements may need
 * strides. */
static bool simple_operand(const zc_gen *g, int i, int axis)
{
    const zc_pvalue *x = zc_gen_in(g, 0), *t = zc_gen_in(g, i);
    bool column = true, same = true;
    if (!t) return true;
    for (int d = 0; d < x->rank; d++) {
        int own = d - (x->rank - t->rank);
        zc_dim dim = own >= 0 ? t->dims[own] : zc_dim_const(1);
        same = same && zc_dim_eq(dim, x->dims[d]);
        column = column && (d < axis ? zc_dim_is(dim, 1) : zc_dim_eq(dim, x->dims[d]));
    }
    return column || same;
}

enum { TEAM = 1 };
const char *const zc_config_row_norm[] = {"vector", "team", NULL};

static unsigned bytes_of(zc_dtype x, zc_dtype scale)
{
    unsigned a = zc_dtype_bits(x) / 8, b = zc_dtype_bits(scale) / 8;
    return a > b ? a : b;
}

/* Rows of v from axis on. Strided operands are taken one element at once. */
static void choose(zc_gen *g, const zc_pvalue *v, int axis, zc_dtype scale, bool strided)
{
    zc_gen_rows(g, v->dims + axis, v->rank - axis, bytes_of(v->dtype, scale), &g->config[TEAM]);
    if (strided) g->config[0] = 1;
}

static void put_types(zc_gen *g, zc_dtype x, zc_dtype scale, zc_dtype stat)
{
    zc_gen_type(g, "X", x);
    zc_gen_type(g, "S", scale);
    zc_gen_type(g, "STAT", stat == ZC_NONE ? ZC_F32 : stat);
    zc_gen_define(g, "ACC", "%s", x == ZC_F64 || scale == ZC_F64 || stat == ZC_F64 ? "f64" : "f32");
}

static void put_ids(zc_gen *g, const char *name, int i)
{
    zc_dtype t = zc_gen_in_type(g, i);
    zc_gen_type(g, name, t == ZC_NONE ? ZC_I32 : t);
}

static zc_status gen_embeddings(zc_gen *g)
{
    static const int integers[] = {0, 1, 7, 8};
    for (size_t i = 0; i < ZC_COUNTOF(integers); i++) {
        zc_dtype t = zc_gen_in_type(g, integers[i]);
        if (t != ZC_NONE && !zc_gen_plain_type(t))
            return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    }
    put_types(g, zc_gen_in_type(g, 2), zc_gen_in_type(g, 5), ZC_NONE);
    zc_gen_define(g, "TABLES", "%d", zc_gen_in(g, 1) ? 3 : 2);
    put_ids(g, "ID0", 0);
    put_ids(g, "ID1", 8);
    put_ids(g, "ID2", 1);
    put_ids(g, "MASK", 7);
    zc_dtype count = zc_gen_out_type(g, 1);
    zc_gen_type(g, "COUNT", count == ZC_NONE ? ZC_I32 : count);
    ZC_TRY(zc_gen_epilogue(g));
    choose(g, zc_gen_in(g, 2), 1, zc_gen_in_type(g, 5), false);
    return ZC_OK;
}

/* The first normalised axis; which input is the scale. */
static int64_t axis_of(const zc_gen *g, int *scale)
{
    *scale = 1;
    if (g->step->op == ZC_OP_LayerNormalization) return ZC_ATTRS(g, LayerNormalization)->axis;
    if (g->step->op == ZC_OP_RMSNormalization) return ZC_ATTRS(g, RMSNormalization)->axis;
    *scale = 2;
    return -1;
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
        if (!zc_gen_plain_type(v->dtype))
            return zc_gen_decline(g, "element type %s", zc_dtype_name(v->dtype));
        if (v->rank < 0) return zc_gen_decline(g, "rank known only when run");
    }
    if (op == ZC_OP_EmbedLayerNormalization) return gen_embeddings(g);
    int scale, own = zc_op_own_inputs(g->info, (int)g->step->nin);
    int64_t given = axis_of(g, &scale);
    int axis = (int)(given < 0 ? given + x->rank : given);
    bool simple = true;
    put_types(g, x->dtype, zc_gen_in_type(g, scale), stat_type(g));
    for (int i = 1; i < own; i++) simple = simple && simple_operand(g, i, axis);
    if (!simple) zc_gen_define(g, "STRIDED", "1");
    if (op == ZC_OP_RMSNormalization || op == ZC_OP_SkipSimplifiedLayerNormalization)
        zc_gen_define(g, "RMS", "1");
    ZC_TRY(zc_gen_prologue(g));
    ZC_TRY(zc_gen_epilogue(g));
    choose(g, x, axis, zc_gen_in_type(g, scale), !simple);
    return ZC_OK;
}

/* ---- the launch ---- */

/* Input i seen from x's elements; rows begin at axis `axis`. */
static struct zc_row_operand operand(const zc_launch *l, int i, int axis)
{
    const zc_tensor *x = &l->in[0], *t = &l->in[i];
    struct zc_row_operand o = {.mode = ZC_ROW_ABSENT};
    bool column = true, same = true;
    int64_t stride = 1;
    if (i == 0 || !zc_launch_has(l, i)) return o;
    o.data = t->data;
    for (int d = x->rank - 1; d >= 0; d--) {
        int own = d - (x->rank - t->rank);
        int64_t dim = own >= 0 ? t->dims[own] : 1;
        o.strides[d] = dim == 1 ? 0 : stride;
        stride *= dim;
        same = same && dim == x->dims[d];
        column = column && dim == (d < axis ? 1 : x->dims[d]);
    }
    o.mode = column ? ZC_ROW_COLUMN : same ? ZC_ROW_SAME : ZC_ROW_STRIDED;
    return o;
}

static void *wanted(const zc_launch *l, int i)
{
    return i > 0 && i < l->nout && l->out[i].dtype != ZC_NONE ? l->out[i].data : NULL;
}

static zc_status issue(zc_launch *l, struct zc_row_norm_params *p, zc_dtype x, zc_dtype scale)
{
    return zc_launch_rows(l, p->rows, p->N, l->kernel->config[TEAM], bytes_of(x, scale), p,
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
    p->scale = (struct zc_row_operand){.data = l->in[5].data, .mode = ZC_ROW_COLUMN};
    p->bias = (struct zc_row_operand){.data = l->in[6].data, .mode = ZC_ROW_COLUMN};
    p->mask = zc_launch_has(l, 7) ? l->in[7].data : NULL;
    p->counts = wanted(l, 1);
    p->sum = wanted(l, 2);
    ZC_TRY(check_ids(l, p));
    if (p->counts) {
        zc_dim3 grid = {zc_launch_blocks(ids->dims[0], 1, 0), 1, 1};
        ZC_TRY(zc_launch_kernel(l, 2, grid, l->kernel->threads, l->kernel->smem, p, sizeof *p));
    }
    return p->N ? issue(l, p, l->in[2].dtype, l->in[5].dtype) : ZC_OK;
}

/* Which inputs and outputs an operation's operands are; 0: it has none. */
typedef struct layout {
    int axis, skip, scale, bias, skip_bias, mean, inv, sum;
    double eps;
} layout;

static layout layout_of(const zc_launch *l, zc_op op)
{
    int rank = l->in[0].rank;
    switch (op) {
    case ZC_OP_LayerNormalization: {
        const zc_attrs_LayerNormalization *a = ZC_ATTRS(l, LayerNormalization);
        return (layout){.axis = zc_launch_axis(a->axis, rank),
                        .scale = 1,
                        .bias = 2,
                        .mean = 1,
                        .inv = 2,
                        .eps = a->epsilon};
    }
    case ZC_OP_RMSNormalization: {
        const zc_attrs_RMSNormalization *a = ZC_ATTRS(l, RMSNormalization);
        return (layout){
            .axis = zc_launch_axis(a->axis, rank), .scale = 1, .inv = 1, .eps = a->epsilon};
    }
    case ZC_OP_SkipLayerNormalization:
        return (layout){.axis = rank - 1,
                        .skip = 1,
                        .scale = 2,
                        .bias = 3,
                        .skip_bias = 4,
                        .mean = 1,
                        .inv = 2,
                        .sum = 3,
                        .eps = ZC_ATTRS(l, SkipLayerNormalization)->epsilon};
    default:
        return (layout){.axis = rank - 1,
                        .skip = 1,
                        .scale = 2,
                        .skip_bias = 3,
                        .mean = 1,
                        .inv = 2,
                        .sum = 3,
                        .eps = ZC_ATTRS(l, SkipSimplifiedLayerNormalization)->epsilon};
    }
}

zc_status zc_launch_row_norm(zc_launch *l)
{
    struct zc_row_norm_params p;
    const zc_tensor *x = &l->in[0];
    zc_op op = l->op;
    memset(&p, 0, sizeof p);
    p.fault = l->fault;
    p.step = l->step_id;
    p.y = l->out[0].dtype == ZC_NONE ? NULL : l->out[0].data;
    ZC_TRY(zc_launch_prologue(l, &p.pre));
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    if (op == ZC_OP_EmbedLayerNormalization) return launch_embeddings(l, &p);
    layout at = layout_of(l, op);
    p.rows = zc_dims_span(x->dims, 0, at.axis);
    p.N = zc_dims_span(x->dims, at.axis, x->rank);
    if (p.rows <= 0 || p.N < 0) return ZC_OK;
    p.x = x->data;
    p.skip = operand(l, at.skip, at.axis);
    p.scale = operand(l, at.scale, at.axis);
    p.bias = operand(l, at.bias, at.axis);
    p.skip_bias = operand(l, at.skip_bias, at.axis);
    p.mean = wanted(l, at.mean);
    p.inv = wanted(l, at.inv);
    p.sum = wanted(l, at.sum);
    p.eps = at.eps;
    p.rank = x->rank;
    for (int d = 0; d < x->rank; d++) p.dims[d] = x->dims[d];
    return issue(l, &p, x->dtype, l->in[at.scale].dtype);
}
