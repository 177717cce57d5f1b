#include "abi/grid_sample.h"

#include <string.h>

#include "codegen/gen.h"

static int taps_of(const char *mode)
{
    if (strcmp(mode, "nearest") == 0) return 1;
    return strcmp(mode, "cubic") == 0 || strcmp(mode, "bicubic") == 0 ? 4 : 2;
}

zc_status zc_gen_grid_sample(zc_gen *g)
{
    const zc_attrs_GridSample *a = ZC_ATTRS(g, GridSample);
    const zc_pvalue *x = zc_gen_in(g, 0), *grid = zc_gen_in(g, 1);
    if (x->rank < 0) return zc_gen_decline(g, "rank known only when run");
    if (x->rank < 3 || x->rank > 2 + ZC_GRID_AXES)
        return zc_gen_decline(g, "%d spatial axes", x->rank - 2);
    if (!zc_gen_plain_type(x->dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(x->dtype));
    if (!zc_gen_plain_type(grid->dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(grid->dtype));
    zc_gen_type(g, "X", x->dtype);
    zc_gen_type(g, "GRID", grid->dtype);
    zc_gen_define(g, "ACC", "%s",
                  zc_dtype_is_float(x->dtype) ? zc_gen_compute_type(x->dtype) : "f64");
    zc_gen_define(g, "AXES", "%d", x->rank - 2);
    zc_gen_define(g, "TAPS", "%d", taps_of(a->mode));
    zc_gen_define(g, "PAD", "%d",
                  strcmp(a->padding_mode, "border") == 0       ? 1
                  : strcmp(a->padding_mode, "reflection") == 0 ? 2
                                                               : 0);
    zc_gen_define(g, "ALIGN", "%d", a->align_corners != 0);
    return ZC_OK;
}
