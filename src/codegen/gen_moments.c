#include "abi/moments.h"
#include "codegen/gen.h"

/* Z_<name>: the product of dims [from, to), or (p.<name>) when it is not certain. */
static void put_span(zc_gen *g, const char *name, const zc_pvalue *x, int from, int to)
{
    int64_t n = 1;
    for (int d = from; d < to; d++)
        if (!zc_dim_is_const(x->dims[d]) || !zc_mul_i64(n, x->dims[d].k, &n) || n == 0) {
            zc_gen_define(g, name, "(p.%s)", name);
            return;
        }
    zc_gen_define(g, name, "%lldLL", (long long)n);
}

static void put_channels(zc_gen *g, const zc_pvalue *x)
{
    zc_op op = g->step->op;
    bool last = op == ZC_OP_MsGroupNorm && ZC_ATTRS(g, MsGroupNorm)->channels_last;
    int axis = last ? x->rank - 1 : 1, none = x->rank;
    bool any = op != ZC_OP_MeanVarianceNormalization && x->rank > 1;
    put_span(g, "CHANNELS", x, any ? axis : none, any ? axis + 1 : none);
    if (op == ZC_OP_MeanVarianceNormalization || last)
        zc_gen_define(g, "INNER", "1LL");
    else
        put_span(g, "INNER", x, x->rank > 1 ? 2 : 1, x->rank);
}

static bool any_double(const zc_gen *g)
{
    for (int i = 0; i < zc_op_own_inputs(g->info, (int)g->step->nin); i++)
        if (zc_gen_in_type(g, i) == ZC_F64) return true;
    return false;
}

zc_status zc_gen_moments(zc_gen *g)
{
    const zc_pvalue *x = zc_gen_in(g, 0);
    zc_op op = g->step->op;
    bool plain = op == ZC_OP_MeanVarianceNormalization, batch = op == ZC_OP_BatchNormalization;
    for (int i = 0; i < (int)g->step->nin; i++)
        if (!zc_gen_plain_type(zc_gen_in_type(g, i)))
            return zc_gen_decline(g, "element type %s", zc_dtype_name(zc_gen_in_type(g, i)));
    if (x->rank < 0) return zc_gen_decline(g, "rank known only when run");
    zc_gen_type(g, "X", x->dtype);
    zc_gen_define(g, "ACC", "%s", any_double(g) ? "f64" : "f32");
    if (!plain) zc_gen_type(g, "S", zc_gen_in_type(g, 1));
    if (batch) zc_gen_type(g, "STAT", zc_gen_in_type(g, 3));
    put_channels(g, x);
    if (plain) zc_gen_define(g, "PLAIN", "1");
    if (batch)
        zc_gen_define(g, ZC_ATTRS(g, BatchNormalization)->training_mode ? "RUNNING" : "GIVEN", "1");
    if (op == ZC_OP_MsGroupNorm && ZC_ATTRS(g, MsGroupNorm)->activation)
        zc_gen_define(g, "SILU", "1");
    ZC_TRY(zc_gen_prologue(g));
    return zc_gen_epilogue(g);
}
