#include <stdio.h>

#include "codegen/gen.h"

zc_status zc_gen_tensor_scatter(zc_gen *g)
{
    const zc_pvalue *in = zc_gen_in(g, 0);
    zc_dtype at = zc_gen_in_type(g, 2);
    if (zc_dtype_bits(in->dtype) < 8)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(in->dtype));
    if (at != ZC_NONE && at != ZC_I64)
        return zc_gen_decline(g, "write indices of type %s", zc_dtype_name(at));
    if (in->rank < 0) return zc_gen_decline(g, "rank known only when run");
    snprintf(g->label, sizeof g->label, "tensor_scatter");
    return ZC_OK;
}
