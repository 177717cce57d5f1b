#include "codegen/gen.h"

static void put_flag(zc_gen *g, const char *name, bool value)
{
    zc_gen_define(g, name, "%s", value ? "true" : "false");
}

zc_status zc_gen_cumulate(zc_gen *g)
{
    zc_dtype t = zc_gen_in_type(g, 0);
    zc_dclass c = zc_dtype_class(t);
    bool product = g->step->op == ZC_OP_CumProd;
    if (!zc_gen_plain_type(t)) return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    if (zc_gen_in(g, 0)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    zc_gen_type(g, "T", t);
    zc_gen_define(g, "ACC", "%s",
                  c == ZC_CLASS_FLOAT ? (t == ZC_F64 ? "f64" : "f32")
                  : c == ZC_CLASS_INT ? "i64"
                                      : "u64");
    put_flag(g, "PRODUCT", product);
    put_flag(g, "EXCLUSIVE",
             product ? ZC_ATTRS(g, CumProd)->exclusive != 0 : ZC_ATTRS(g, CumSum)->exclusive != 0);
    put_flag(g, "REVERSE",
             product ? ZC_ATTRS(g, CumProd)->reverse != 0 : ZC_ATTRS(g, CumSum)->reverse != 0);
    return ZC_OK;
}
