#include <string.h>

#include "codegen/gen.h"
#include "codegen/gen_window.h"

zc_status zc_gen_roi(zc_gen *g)
{
    zc_dtype t = zc_gen_in_type(g, 0);
    bool align = g->step->op == ZC_OP_RoiAlign;
    if (!zc_gen_sums_type(t)) return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    zc_gen_type(g, "X", t);
    zc_gen_define(g, "ALIGN", "%d", align);
    if (!align) return ZC_OK;
    const zc_attrs_RoiAlign *a = ZC_ATTRS(g, RoiAlign);
    zc_gen_type(g, "BATCH", zc_gen_in_type(g, 2));
    zc_gen_define(g, "MAX", "%d", strcmp(a->mode, "max") == 0);
    zc_gen_define(g, "EXACT", "%d", strcmp(a->coordinate_transformation_mode, "half_pixel") == 0);
    return ZC_OK;
}
