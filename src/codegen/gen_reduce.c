#include "abi/reduce.h"
#include "codegen/gen.h"

static const struct {
    zc_op op;
    const char *kind;
} kinds[] = {
    {ZC_OP_ReduceSum, "ZC_REDUCE_SUM"},
    {ZC_OP_ReduceMean, "ZC_REDUCE_MEAN"},
    {ZC_OP_ReduceMax, "ZC_REDUCE_MAX"},
    {ZC_OP_ReduceMin, "ZC_REDUCE_MIN"},
    {ZC_OP_ReduceProd, "ZC_REDUCE_PROD"},
    {ZC_OP_ReduceL1, "ZC_REDUCE_L1"},
    {ZC_OP_ReduceL2, "ZC_REDUCE_L2"},
    {ZC_OP_ReduceLogSum, "ZC_REDUCE_LOG_SUM"},
    {ZC_OP_ReduceLogSumExp, "ZC_REDUCE_LOG_SUM_EXP"},
    {ZC_OP_ReduceSumSquare, "ZC_REDUCE_SUM_SQUARE"},
    {ZC_OP_ArgMax, "ZC_REDUCE_ARG_MAX"},
    {ZC_OP_ArgMin, "ZC_REDUCE_ARG_MIN"},
};

static bool has_roots(zc_op op)
{
    return op == ZC_OP_ReduceL2 || op == ZC_OP_ReduceLogSum || op == ZC_OP_ReduceLogSumExp;
}

/* What sums are kept in. */
static const char *accumulator(zc_op op, zc_dtype in)
{
    zc_dclass c = zc_dtype_class(in);
    if (c == ZC_CLASS_FLOAT) return in == ZC_F64 ? "f64" : "f32";
    return has_roots(op) ? "f64" : c == ZC_CLASS_INT ? "i64" : "u64";
}

/* The least or the greatest value of a type. */
static void put_extreme(zc_gen *g, zc_dtype t, bool least)
{
    unsigned bits = t == ZC_BOOL ? 1 : zc_dtype_bits(t);
    if (zc_dtype_is_float(t))
        zc_gen_define(g, "FIRST", "%szc_inf%d()", least ? "-" : "", t == ZC_F64 ? 64 : 32);
    else if (zc_dtype_class(t) == ZC_CLASS_INT)
        zc_gen_define(g, "FIRST", "%s(i64)(~0ull >> %u)", least ? "~" : "", 65 - bits);
    else if (least)
        zc_gen_define(g, "FIRST", "0");
    else
        zc_gen_define(g, "FIRST", "~0ull >> %u", 64 - bits);
}

/* Sums of integers are kept in types that fused work does not take. */
static zc_status put_fused(zc_gen *g)
{
    zc_dtype t = zc_gen_out_type(g, 0);
    if (zc_op_epilogue(g->info, g->attrs) && !zc_dtype_is_float(t))
        return zc_gen_decline(g, "epilogue of element type %s", zc_dtype_name(t));
    ZC_TRY(zc_gen_prologue(g));
    return zc_gen_epilogue(g);
}

zc_status zc_gen_reduce(zc_gen *g)
{
    const zc_pvalue *x = zc_gen_in(g, 0);
    zc_op op = g->step->op;
    if (!zc_gen_plain_type(x->dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(x->dtype));
    if (x->rank < 0) return zc_gen_decline(g, "rank known only when run");
    zc_gen_type(g, "IN", x->dtype);
    zc_gen_type(g, "OUT", zc_gen_out_type(g, 0));
    zc_gen_define(g, "ACC", "%s", accumulator(op, x->dtype));
    for (size_t i = 0; i < ZC_COUNTOF(kinds); i++)
        if (kinds[i].op == op) zc_gen_define(g, "KIND", "%s", kinds[i].kind);
    if (op == ZC_OP_ReduceMax || op == ZC_OP_ReduceMin)
        put_extreme(g, x->dtype, op == ZC_OP_ReduceMax);
    else
        zc_gen_define(g, "FIRST", "%d", op == ZC_OP_ReduceProd);
    if (has_roots(op)) zc_gen_define(g, "ROOTS", "1");
    if (op == ZC_OP_ReduceLogSumExp) zc_gen_define(g, "EXPS", "1");
    if (op != ZC_OP_ArgMax && op != ZC_OP_ArgMin) return put_fused(g);
    bool last = op == ZC_OP_ArgMax ? ZC_ATTRS(g, ArgMax)->select_last_index != 0
                                   : ZC_ATTRS(g, ArgMin)->select_last_index != 0;
    zc_gen_define(g, "ARG", "1");
    zc_gen_define(g, "LAST", "%s", last ? "true" : "false");
    return ZC_OK;
}
