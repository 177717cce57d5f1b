#include "codegen/gen.h"

zc_status zc_gen_rotary(zc_gen *g)
{
    bool ms = g->step->op == ZC_OP_MsRotaryEmbedding;
    const zc_pvalue *x = zc_gen_in(g, 0), *ids = zc_gen_in(g, ms ? 1 : 3);
    int64_t interleaved = ms ? ZC_ATTRS(g, MsRotaryEmbedding)->interleaved
                             : ZC_ATTRS(g, RotaryEmbedding)->interleaved;
    if (x->rank < 0) return zc_gen_decline(g, "rank known only when run");
    if (!zc_gen_plain_type(x->dtype) || zc_dtype_bits(x->dtype) < 16)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(x->dtype));
    if (ids && !zc_gen_plain_type(ids->dtype))
        return zc_gen_decline(g, "position ids of type %s", zc_dtype_name(ids->dtype));
    zc_gen_type(g, "T", x->dtype);
    zc_gen_define(g, "INTERLEAVED", "%d", interleaved != 0);
    zc_gen_type(g, "ID", ids ? ids->dtype : ZC_I64);
    return ZC_OK;
}
