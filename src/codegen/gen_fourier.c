#include "codegen/gen.h"

zc_status zc_gen_fourier(zc_gen *g)
{
    zc_dtype type = zc_gen_in_type(g, 0);
    zc_dtype window = g->step->op == ZC_OP_STFT ? zc_gen_in_type(g, 2) : ZC_NONE;
    if (!zc_dtype_is_float(type) || !zc_gen_plain_type(type) || zc_gen_out_type(g, 0) != type)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(type));
    if (window != ZC_NONE && !zc_gen_plain_type(window))
        return zc_gen_decline(g, "element type %s of the window", zc_dtype_name(window));
    zc_gen_type(g, "TYPE", type);
    zc_gen_type(g, "WINDOW", window == ZC_NONE ? type : window);
    zc_gen_define(g, "C", "%s", type == ZC_F64 ? "f64" : "f32");
    return ZC_OK;
}
