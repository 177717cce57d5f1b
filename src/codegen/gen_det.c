#include "codegen/gen.h"

zc_status zc_gen_det(zc_gen *g)
{
    zc_dtype t = zc_gen_in_type(g, 0);
    if (!zc_gen_plain_type(t)) return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    if (zc_gen_in(g, 0)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    zc_gen_type(g, "T", t);
    return ZC_OK;
}
