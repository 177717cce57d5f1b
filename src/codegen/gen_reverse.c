#include <stdio.h>

#include "codegen/gen.h"

zc_status zc_gen_reverse(zc_gen *g)
{
    const zc_pvalue *in = zc_gen_in(g, 0);
    if (zc_dtype_bits(in->dtype) < 8)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(in->dtype));
    if (zc_gen_in_type(g, 1) != ZC_I64)
        return zc_gen_decline(g, "lengths of type %s", zc_dtype_name(zc_gen_in_type(g, 1)));
    if (in->rank < 2) return zc_gen_decline(g, "rank known only when run");
    snprintf(g->label, sizeof g->label, "reverse");
    return ZC_OK;
}
