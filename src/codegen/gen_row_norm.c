#include "abi/row_norm.h"
#include "codegen/gen.h"
#include "cuda/rowplan.h"

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

/* The length of a row from axis on, and when it is certain how many threads share it. */
static void put_row(zc_gen *g, const zc_pvalue *x, int axis)
{
    int64_t n = 1;
    for (int d = axis; d < x->rank; d++)
        if (!zc_dim_is_const(x->dims[d]) || !zc_mul_i64(n, x->dims[d].k, &n)) {
            zc_gen_define(g, "N", "(p.N)");
            return;
        }
    zc_gen_define(g, "N", "%lldLL", (long long)n);
    zc_gen_define(g, "LANES", "%d", zc_row_lanes(n));
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

static zc_status embeddings(zc_gen *g)
{
    static const int integers[] = {0, 1, 7, 8};
    for (size_t i = 0; i < ZC_COUNTOF(integers); i++) {
        zc_dtype t = zc_gen_in_type(g, integers[i]);
        if (t != ZC_NONE && !zc_gen_plain_type(t))
            return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    }
    put_types(g, zc_gen_in_type(g, 2), zc_gen_in_type(g, 5), ZC_NONE);
    put_row(g, zc_gen_in(g, 2), 1);
    zc_gen_define(g, "TABLES", "1");
    put_ids(g, "ID0", 0);
    put_ids(g, "ID1", 8);
    put_ids(g, "ID2", 1);
    put_ids(g, "MASK", 7);
    zc_dtype count = zc_gen_out_type(g, 1);
    zc_gen_type(g, "COUNT", count == ZC_NONE ? ZC_I32 : count);
    return zc_gen_epilogue(g);
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
    if (op == ZC_OP_EmbedLayerNormalization) return embeddings(g);
    int scale, own = zc_op_own_inputs(g->info, (int)g->step->nin);
    int64_t given = axis_of(g, &scale);
    int axis = (int)(given < 0 ? given + x->rank : given);
    bool simple = true;
    put_types(g, x->dtype, zc_gen_in_type(g, scale), stat_type(g));
    put_row(g, x, axis);
    for (int i = 1; i < own; i++) simple = simple && simple_operand(g, i, axis);
    if (!simple) zc_gen_define(g, "STRIDED", "1");
    if (op == ZC_OP_RMSNormalization || op == ZC_OP_SkipSimplifiedLayerNormalization)
        zc_gen_define(g, "RMS", "1");
    ZC_TRY(zc_gen_prologue(g));
    return zc_gen_epilogue(g);
}
