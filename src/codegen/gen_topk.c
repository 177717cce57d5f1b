#include "codegen/gen.h"

zc_status zc_gen_topk(zc_gen *g)
{
    const zc_pvalue *in = zc_gen_in(g, 0);
    if (!zc_gen_plain_type(in->dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(in->dtype));
    if (in->rank < 0) return zc_gen_decline(g, "rank known only when run");
    zc_gen_type(g, "IN", in->dtype);
    zc_gen_define(g, "LARGEST", "%d", ZC_ATTRS(g, TopK)->largest != 0);
    return ZC_OK;
}
