#include "codegen/gen.h"

zc_status zc_gen_multinomial(zc_gen *g)
{
    zc_dtype in = zc_gen_in_type(g, 0);
    if (!zc_gen_plain_type(in)) return zc_gen_decline(g, "element type %s", zc_dtype_name(in));
    zc_gen_type(g, "IN", in);
    zc_gen_type(g, "OUT", zc_gen_out_type(g, 0));
    return ZC_OK;
}
