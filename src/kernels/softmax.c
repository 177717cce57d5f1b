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

/* The length of a row, and when it is certain how many threads share it. */
static void put_row(zc_gen *g, zc_dim n)
{
    zc_gen_dim(g, "N", n);
    if (zc_dim_is_const(n)) zc_gen_define(g, "LANES", "%d", zc_row_lanes(n.k));
}

zc_status zc_gen_softmax(zc_gen *g)
{
    const zc_pvalue *x = zc_gen_in(g, 0);
    int64_t axis;
    bool hard = g->step->op == ZC_OP_Hardmax;
    if (!zc_gen_plain_type(x->dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(x->dtype));
    if (x->rank < 0) return zc_gen_decline(g, "rank known only when run");
    zc_gen_type(g, "T", x->dtype);
    zc_dclass c = zc_dtype_class(x->dtype);
    zc_gen_define(g, "ACC", "%s",
                  c == ZC_CLASS_FLOAT ? (x->dtype == ZC_F64 ? "f64" : "f32")
                  : c == ZC_CLASS_INT ? "i64"
                                      : "u64");
    zc_gen_define(g, "KIND", "%s", kind_of(g, &axis));
    if (hard)
        zc_gen_define(g, "HARD", "1");
    else
        zc_gen_define(g, g->step->op == ZC_OP_LpNormalization ? "NORM" : "EXPS", "1");
    if (!hard) put_row(g, x->dims[axis < 0 ? axis + x->rank : axis]);
    ZC_TRY(zc_gen_prologue(g));
    return zc_gen_epilogue(g);
}

/* ---- the launch ---- */

enum { STATE = 16, ROW_SMEM = 32 * STATE };

static int axis_of(const zc_launch *l, zc_op op)
{
    int64_t axis = op == ZC_OP_Softmax      ? ZC_ATTRS(l, Softmax)->axis
                   : op == ZC_OP_LogSoftmax ? ZC_ATTRS(l, LogSoftmax)->axis
                   : op == ZC_OP_Hardmax    ? ZC_ATTRS(l, Hardmax)->axis
                                            : ZC_ATTRS(l, LpNormalization)->axis;
    return zc_launch_axis(axis, l->in[0].rank);
}

static zc_status rows(zc_launch *l, struct zc_softmax_params *p)
{
    int vec = (int)(16 / (zc_dtype_bits(l->in[0].dtype) / 8));
    bool whole = p->N % vec == 0 && ((uintptr_t)p->in | (uintptr_t)p->out) % 16 == 0;
    int entry = (zc_row_lanes(p->N) == 32 ? 1 : 3) + (whole ? 0 : 1);
    return zc_launch_kernel(l, entry, zc_row_grid(p->rows, p->N), zc_row_block(p->N), ROW_SMEM, p,
                            sizeof *p);
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
    bool neighbours = zc_dims_span(x->dims, axis_of(l, op) + 1, x->rank) == 1;
    if (neighbours && op != ZC_OP_Hardmax) return rows(l, &p);
    zc_groups_of(x, mask, &p.g);
    zc_dim3 grid = zc_groups_plan(l, &p.g, x->data, zc_dtype_bits(x->dtype) / 8, false);
    return zc_launch_kernel(l, 0, grid, ZC_GROUP_BLOCK, ZC_GROUP_BLOCK * STATE, &p, sizeof p);
}
