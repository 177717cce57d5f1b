/* Kernels that move elements know their size at most; one text serves many operations. */
#include <stdio.h>
#include <string.h>

#include "codegen/gen.h"

static bool is_false(const zc_pvalue *v)
{
    return !v || (v->kind == ZC_P_CONST && v->bytes == 1 && *(const unsigned char *)v->data == 0);
}

zc_status zc_gen_move(zc_gen *g)
{
    const zc_pvalue *in = zc_gen_in(g, 0);
    if (g->step->op != ZC_OP_BitCast && zc_dtype_bits(in->dtype) < 8)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(in->dtype));
    if (g->step->op == ZC_OP_Dropout && !is_false(zc_gen_in(g, 2)))
        return zc_gen_decline(g, "dropout in training");
    snprintf(g->label, sizeof g->label, "move");
    return ZC_OK;
}
