#include "codegen/gen.h"

zc_status zc_gen_mel_weights(zc_gen *g)
{
    zc_dtype out = zc_gen_out_type(g, 0);
    if (!zc_gen_plain_type(out)) return zc_gen_decline(g, "element type %s", zc_dtype_name(out));
    zc_gen_type(g, "OUT", out);
    return ZC_OK;
}
