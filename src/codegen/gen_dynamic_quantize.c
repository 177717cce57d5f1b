#include "codegen/gen.h"

zc_status zc_gen_dynamic_quantize(zc_gen *g)
{
    zc_dtype x = zc_gen_in_type(g, 0);
    for (int i = 0; i < 3; i++)
        if (!zc_gen_out(g, i)) return zc_gen_decline(g, "an output is not wanted");
    if (!zc_gen_plain_type(x)) return zc_gen_decline(g, "element type %s", zc_dtype_name(x));
    zc_gen_type(g, "X", x);
    return ZC_OK;
}
