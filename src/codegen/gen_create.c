#include <stdio.h>

#include "codegen/gen.h"

zc_status zc_gen_create(zc_gen *g)
{
    zc_dtype out = zc_gen_out_type(g, 0);
    bool complex = zc_dtype_class(out) == ZC_CLASS_COMPLEX;
    if (zc_gen_out(g, 0)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    if (g->step->op != ZC_OP_ConstantOfShape && zc_dtype_bits(out) < 8)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(out));
    if (g->step->op == ZC_OP_EyeLike && complex)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(out));
    snprintf(g->label, sizeof g->label, "create");
    return ZC_OK;
}
