#include <stdio.h>
#include <string.h>

#include "codegen/gen.h"

static int how_of(const char *reduction)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    for (int i = 1; i < 5; i++)
        if (strcmp(reduction, names[i]) == 0) return i;
    return 0;
}

zc_status zc_gen_scatter(zc_gen *g)
{
    const zc_pvalue *in = zc_gen_in(g, 0), *at = zc_gen_in(g, 1);
    bool nd = g->step->op == ZC_OP_ScatterND;
    int how =
        how_of(nd ? ZC_ATTRS(g, ScatterND)->reduction : ZC_ATTRS(g, ScatterElements)->reduction);
    if (zc_dtype_bits(in->dtype) < 8 || (how && !zc_gen_plain_type(in->dtype)))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(in->dtype));
    if (!zc_gen_plain_type(at->dtype) || !zc_dtype_is_int(at->dtype))
        return zc_gen_decline(g, "indices of type %s", zc_dtype_name(at->dtype));
    if (in->rank < 0 || at->rank < 0) return zc_gen_decline(g, "rank known only when run");
    snprintf(g->label, sizeof g->label, "scatter");
    zc_gen_type(g, "INDEX", at->dtype);
    if (how == 0) return ZC_OK;
    zc_gen_type(g, "IN", in->dtype);
    zc_gen_define(g, "HOW", "%d", how);
    return ZC_OK;
}
