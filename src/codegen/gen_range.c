#include "codegen/gen.h"

zc_status zc_gen_range(zc_gen *g)
{
    zc_dtype out = zc_gen_out_type(g, 0);
    if (!zc_gen_plain_type(out)) return zc_gen_decline(g, "element type %s", zc_dtype_name(out));
    bool narrow = out == ZC_F16 || out == ZC_BF16, whole = !zc_dtype_is_float(out);
    bool single = narrow && ZC_ATTRS(g, Range)->stash_type == ZC_F32;
    zc_gen_type(g, "OUT", out);
    zc_gen_define(g, "FLOAT", "%d", !whole);
    zc_gen_define(g, "STEP", "%s", whole ? "u64" : single ? "f32" : "f64");
    return ZC_OK;
}
