#include "abi/affine_grid.h"
#include "codegen/gen.h"

zc_status zc_gen_affine_grid(zc_gen *g)
{
    const zc_pvalue *y = zc_gen_out(g, 0);
    zc_dtype t = zc_gen_in_type(g, 0);
    if (y->rank < 0) return zc_gen_decline(g, "rank known only when run");
    if (y->rank < 3 || y->rank > 2 + ZC_AFFINE_AXES)
        return zc_gen_decline(g, "%d spatial axes", y->rank - 2);
    if (!zc_gen_plain_type(t)) return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    zc_gen_type(g, "X", t);
    zc_gen_define(g, "AXES", "%d", y->rank - 2);
    zc_gen_define(g, "ALIGN", "%d", ZC_ATTRS(g, AffineGrid)->align_corners != 0);
    return ZC_OK;
}
