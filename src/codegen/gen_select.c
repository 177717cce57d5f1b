#include <stdio.h>

#include "codegen/gen.h"

zc_status zc_gen_select(zc_gen *g)
{
    bool compress = g->step->op == ZC_OP_Compress;
    zc_dtype data = zc_gen_in_type(g, 0), flags = compress ? zc_gen_in_type(g, 1) : data;
    if (!zc_gen_plain_type(flags) || zc_dtype_bits(data) < 8)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(data));
    if (zc_gen_in(g, 0)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    snprintf(g->label, sizeof g->label, "select");
    zc_gen_type(g, "IN", flags);
    return ZC_OK;
}
