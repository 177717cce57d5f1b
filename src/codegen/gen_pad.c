#include <stdio.h>

#include "codegen/gen.h"

zc_status zc_gen_pad(zc_gen *g)
{
    const zc_pvalue *in = zc_gen_in(g, 0);
    if (zc_dtype_bits(in->dtype) < 8)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(in->dtype));
    if (in->rank < 0) return zc_gen_decline(g, "rank known only when run");
    snprintf(g->label, sizeof g->label, "pad");
    return ZC_OK;
}
