#include <string.h>

#include "abi/softmax.h"
#include "kernels/gen.h"
#include "kernels/groups.h"
#include "kernels/rowplan.h"

/* ---- the specialisation ---- */

static const char *kind_of(const zc_gen *g, int64_t *axis)
{
    switch (g->step->op) {
    case ZC_OP_Softmax:
        *axis = ZC_ATTRS(g, Softmax)->axis;
        return "ZC_AXIS_SOFTMAX";
    case ZC_OP_LogSoftmax:
        *axis = ZC_ATTRS(g, LogSoftmax)->axis;
        return "ZC_AXIS_LOG_SOFTMAX";
    case ZC_OP_Hardmax:
        *axis = ZC_ATTRS(g, Hardmax)->axis;
        return "ZC_AXIS_HARDMAX";
    default:
        *axis = ZC_ATTRS(g, LpNormalization)->axis;
        return ZC_ATTRS(g, LpNormalization)->p == 1 ? "ZC_AXIS_L1" : "ZC_AXIS_L2";
    }
}

enum { TEAM = 4, STATE = 16 };
const char *const zc_config_softmax[] = {ZC_GROUPS_CONFIG, "team", NULL};

/* Rows of neighbours, but of Hardmax, have kernels of their own. */
static void choose(zc_gen *g, const zc_pvalue *x, int axis)
{
    bool mask[ZC_MAX_RANK] = {false}, neighbours = g->step->op != ZC_OP_Hardmax;
    unsigned bytes = zc_dtype_bits(zc_gen_read_type(g)) / 8;
    for (int d = axis + 1; d < x->rank; d++) neighbours = neighbours && zc_dim_is(x->dims[d], 1);
    mask[axis] = true;
    g->smem = ZC_GROUP_BLOCK * STATE;
    if (neighbours)
        (void)zc_gen_rows(g, &x->dims[axis], 1, bytes, &g->config[TEAM]);
    else
        zc_gen_groups(g, x->rank, x->dims, mask, bytes, false);
}

zc_status zc_gen_softmax(zc_gen *g)
{
    const zc_pvalue *x = zc_gen_in(g, 0);
    int64_t axis;
    bool hard = g->step->op == ZC_OP_Hardmax;
    if (!zc_kernel_type(x->dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(x->dtype));
    if (x->rank < 0) return zc_gen_decline(g, "rank known only when run");
    const zc_dtype t = zc_gen_read_type(g);
    zc_gen_type(g, "X", x->dtype);
    zc_gen_type(g, "T", t);
    zc_gen_type(g, "Y", zc_gen_out_type(g, 0));
    zc_dclass c = zc_dtype_class(t);
    zc_gen_define(g, "ACC", "%s",
                  c == ZC_CLASS_FLOAT ? (t == ZC_F64 ? "f64" : "f32")
                  : c == ZC_CLASS_INT ? "i64"
                                      : "u64");
    zc_gen_define(g, "KIND", "%s", kind_of(g, &axis));
    if (hard)
        zc_gen_define(g, "HARD", "1");
    else
        zc_gen_define(g, g->step->op == ZC_OP_LpNormalization ? "NORM" : "EXPS", "1");
    ZC_TRY(zc_gen_prologue(g));
    ZC_TRY(zc_gen_epilogue(g));
    choose(g, x, zc_launch_axis(axis, x->rank));
    if (t != x->dtype && (!g->config[TEAM] || !g->config[0]))
        return zc_gen_decline(g, "bytes in rows of an uncertain length, or along another axis");
    return ZC_OK;
}

/* ---- the launch ---- */

static int axis_of(const zc_launch *l, zc_op op)
{
    int64_t axis = op == ZC_OP_Softmax      ? ZC_ATTRS(l, Softmax)->axis
                   : op == ZC_OP_LogSoftmax ? ZC_ATTRS(l, LogSoftmax)->axis
                   : op == ZC_OP_Hardmax    ? ZC_ATTRS(l, Hardmax)->axis
                                            : ZC_ATTRS(l, LpNormalization)->axis;
    return zc_launch_axis(axis, l->in[0].rank);
}

zc_status zc_launch_softmax(zc_launch *l)
{
    const zc_tensor *x = &l->in[0];
    zc_op op = l->op;
    struct zc_softmax_params p;
    bool mask[ZC_MAX_RANK] = {false};
    int64_t all = zc_tensor_numel(x);
    if (all == 0) return ZC_OK;
    memset(&p, 0, sizeof p);
    ZC_TRY(zc_launch_prologue(l, &p.pre));
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    mask[axis_of(l, op)] = true;
    p.in = x->data;
    p.out = l->out[0].data;
    p.N = x->dims[axis_of(l, op)];
    p.rows = all / p.N;
    unsigned bytes = zc_dtype_bits(x->dtype) / 8;
    int64_t team = l->kernel->config[TEAM];
    if (team) return zc_launch_rows(l, p.rows, p.N, team, 0, bytes, &p, sizeof p);
    zc_groups_of(x, mask, &p.g);
    return zc_launch_configured(l, zc_groups_plan(l, &p.g, bytes), &p, sizeof p);
}
