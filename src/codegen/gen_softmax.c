#include "abi/softmax.h"
#include "codegen/gen.h"
#include "cuda/rowplan.h"

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
