#include <stdio.h>

#include "codegen/gen.h"

zc_status zc_gen_gather(zc_gen *g)
{
    const zc_pvalue *in = zc_gen_in(g, 0), *at = zc_gen_in(g, 1);
    if (zc_dtype_bits(in->dtype) < 8)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(in->dtype));
    if (!zc_gen_plain_type(at->dtype) || !zc_dtype_is_int(at->dtype))
        return zc_gen_decline(g, "indices of type %s", zc_dtype_name(at->dtype));
    if (in->rank < 0 || at->rank < 0) return zc_gen_decline(g, "rank known only when run");
    snprintf(g->label, sizeof g->label, "gather");
    zc_gen_type(g, "INDEX", at->dtype);
    return ZC_OK;
}
