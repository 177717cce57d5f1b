#include <string.h>

#include "abi/reduce.h"
#include "kernels/gen.h"
#include "kernels/groups.h"
#include "op/reduce.h"

/* ---- the specialisation ---- */

const char *const zc_config_reduce[] = {ZC_GROUPS_CONFIG, NULL};

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

static bool is_arg(zc_op op)
{
    return op == ZC_OP_ArgMax || op == ZC_OP_ArgMin;
}

/* mask[axis] of the one axis of ArgMax and ArgMin. */
static void mask_arg(zc_op op, const void *attrs, int rank, bool mask[ZC_MAX_RANK])
{
    int64_t axis = op == ZC_OP_ArgMax ? ((const zc_attrs_ArgMax *)attrs)->axis
                                      : ((const zc_attrs_ArgMin *)attrs)->axis;
    mask[zc_launch_axis(axis, rank)] = true;
}

/* Of the others' n axes, -1 when they are left out. false: one is out of range, *wrong. */
static bool mask_axes(zc_op op, const void *attrs, int rank, const int64_t *axes, int n,
                      bool mask[ZC_MAX_RANK], int64_t *wrong)
{
    bool all = n <= 0 && !zc_reduce_attrs_of(op, attrs).noop_with_empty_axes;
    for (int d = 0; d < ZC_MAX_RANK; d++) mask[d] = all;
    for (int i = 0; i < n; i++) {
        *wrong = axes[i];
        if (axes[i] < -rank || axes[i] >= rank) return false;
        mask[zc_launch_axis(axes[i], rank)] = true;
    }
    return true;
}

/* How threads share the elements, where the axes are certain. */
static void choose_groups(zc_gen *g)
{
    const zc_pvalue *x = zc_gen_in(g, 0), *given = zc_gen_in(g, 1);
    int64_t axes[ZC_MAX_RANK], n = -1, wrong;
    bool mask[ZC_MAX_RANK] = {false};
    g->threads = ZC_GROUP_BLOCK;
    g->smem = ZC_GROUP_BLOCK * ZC_REDUCE_STATE;
    if (is_arg(g->step->op)) {
        mask_arg(g->step->op, g->attrs, x->rank, mask);
    } else {
        if (given) n = given->kind == ZC_P_CONST ? zc_gen_const_dim(given, 0) : ZC_MAX_RANK + 1;
        if (n > ZC_MAX_RANK) return;
        for (int i = 0; i < n; i++) axes[i] = zc_load_i64(given->dtype, given->data, i);
        if (!mask_axes(g->step->op, g->attrs, x->rank, axes, (int)n, mask, &wrong)) return;
    }
    zc_gen_groups(g, x->rank, x->dims, mask, zc_dtype_bits(x->dtype) / 8, true);
}

zc_status zc_gen_reduce(zc_gen *g)
{
    const zc_pvalue *x = zc_gen_in(g, 0);
    zc_op op = g->step->op;
    if (!zc_kernel_type(x->dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(x->dtype));
    if (x->rank < 0) return zc_gen_decline(g, "rank known only when run");
    const zc_dtype read = zc_gen_read_type(g);
    zc_gen_type(g, "IN", x->dtype);
    zc_gen_type(g, "OUT", zc_gen_out_type(g, 0));
    zc_gen_define(g, "ACC", "%s", accumulator(op, read));
    for (size_t i = 0; i < ZC_COUNTOF(kinds); i++)
        if (kinds[i].op == op) zc_gen_define(g, "KIND", "%s", kinds[i].kind);
    if (op == ZC_OP_ReduceMax || op == ZC_OP_ReduceMin)
        put_extreme(g, read, op == ZC_OP_ReduceMax);
    else
        zc_gen_define(g, "FIRST", "%d", op == ZC_OP_ReduceProd);
    if (has_roots(op)) zc_gen_define(g, "ROOTS", "1");
    if (op == ZC_OP_ReduceLogSumExp) zc_gen_define(g, "EXPS", "1");
    choose_groups(g);
    ZC_TRY(zc_gen_prologue(g));
    ZC_TRY(zc_gen_epilogue(g));
    if (!is_arg(op)) return ZC_OK;
    bool last = op == ZC_OP_ArgMax ? ZC_ATTRS(g, ArgMax)->select_last_index != 0
                                   : ZC_ATTRS(g, ArgMin)->select_last_index != 0;
    zc_gen_define(g, "ARG", "1");
    zc_gen_define(g, "LAST", "%s", last ? "true" : "false");
    return ZC_OK;
}

/* ---- the launch ---- */

static zc_status chosen_axes(zc_launch *l, bool mask[ZC_MAX_RANK])
{
    int64_t axes[ZC_MAX_RANK], wrong;
    int n, rank = l->in[0].rank;
    if (is_arg(l->op)) {
        mask_arg(l->op, l->attrs, rank, mask);
        return ZC_OK;
    }
    ZC_TRY(zc_launch_ints(l, 1, axes, ZC_MAX_RANK, &n));
    if (!mask_axes(l->op, l->attrs, rank, axes, n, mask, &wrong))
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "axis out of range (got %lld, need [%d, %d])", (long long)wrong, -rank,
                       rank - 1);
    return ZC_OK;
}

zc_status zc_launch_reduce(zc_launch *l)
{
    struct zc_reduce_params p;
    bool mask[ZC_MAX_RANK] = {false};
    const zc_tensor *x = &l->in[0];
    memset(&p, 0, sizeof p);
    ZC_TRY(chosen_axes(l, mask));
    zc_groups_of(x, mask, &p.g);
    if (p.g.outputs != zc_tensor_numel(&l->out[0]))
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "wrong number of results (got room for %lld, need %lld)",
                       (long long)zc_tensor_numel(&l->out[0]), (long long)p.g.outputs);
    if (p.g.outputs && p.g.count == 0 && is_arg(l->op))
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject, "an axis of length 0 has no extreme");
    zc_dim3 grid = zc_groups_plan(l, &p.g, zc_dtype_bits(x->dtype) / 8);
    bool split = grid.y > 1 || l->kernel->config[ZC_GROUPS_SPLIT] == 2;
    p.in = x->data;
    p.out = l->out[0].data;
    p.elements = p.g.count;
    p.splits = grid.y;
    ZC_TRY(zc_launch_prologue(l, &p.pre));
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    if (split) {
        size_t bytes = (size_t)p.g.outputs * grid.y * ZC_REDUCE_STATE;
        ZC_TRY(zc_launch_scratch(l, bytes, &p.states));
    }
    ZC_TRY(zc_launch_configured(l, grid, &p, sizeof p));
    zc_dim3 join = {zc_launch_blocks(p.g.outputs, ZC_GROUP_BLOCK / 32, 0), 1, 1};
    return split ? zc_launch_kernel(l, 1, join, ZC_GROUP_BLOCK, 0, &p, sizeof p) : ZC_OK;
}
