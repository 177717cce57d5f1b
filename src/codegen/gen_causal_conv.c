#include <string.h>

#include "codegen/gen.h"

zc_status zc_gen_causal_conv(zc_gen *g)
{
    const zc_pvalue *x = zc_gen_in(g, 0), *w = zc_gen_in(g, 1);
    if (x->rank < 0 || w->rank < 0) return zc_gen_decline(g, "rank known only when run");
    if (!zc_gen_plain_type(x->dtype) || zc_dtype_bits(x->dtype) < 16)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(x->dtype));
    zc_gen_type(g, "T", x->dtype);
    zc_gen_define(g, "SILU", "%d",
                  strcmp(ZC_ATTRS(g, CausalConvWithState)->activation, "none") != 0);
    zc_gen_dim(g, "length", x->dims[2]);
    if (zc_dim_is_const(w->dims[2]))
        zc_gen_define(g, "kept", "%lldLL", (long long)w->dims[2].k - 1);
    else
        zc_gen_define(g, "kept", "(p.kept)");
    return ZC_OK;
}
