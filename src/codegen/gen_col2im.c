#include "codegen/gen_window.h"

zc_status zc_gen_col2im(zc_gen *g)
{
    const zc_pvalue *y = zc_gen_out(g, 0);
    zc_window_attrs a;
    int64_t group;
    if (y->rank < 0) return zc_gen_decline(g, "rank known only when run");
    if (!zc_gen_plain_type(y->dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(y->dtype));
    zc_window_attrs_of(g->step->op, g->attrs, &a, &group);
    if (!zc_gen_window_fits(g, &a, y->rank - 2)) return ZC_OK;
    zc_gen_type(g, "X", y->dtype);
    zc_gen_define(g, "ACC", "%s",
                  zc_dtype_is_float(y->dtype) ? zc_gen_compute_type(y->dtype) : "f64");
    return ZC_OK;
}
