#include "codegen/gen.h"

/* Z_KIND of random.cu */
static int kind_of(zc_op op)
{
    if (op == ZC_OP_RandomNormal || op == ZC_OP_RandomNormalLike) return 1;
    return op == ZC_OP_Bernoulli ? 2 : op == ZC_OP_Dropout ? 3 : 0;
}

zc_status zc_gen_random(zc_gen *g)
{
    int kind = kind_of(g->step->op);
    zc_dtype in = kind >= 2 ? zc_gen_in_type(g, 0) : ZC_F32;
    zc_dtype out = kind == 3 ? in : zc_gen_out_type(g, 0);
    if (!zc_gen_plain_type(in) || !zc_gen_plain_type(out))
        return zc_gen_decline(g, "element type %s",
                              zc_dtype_name(zc_gen_plain_type(in) ? out : in));
    zc_gen_define(g, "KIND", "%d", kind);
    if (kind >= 2) zc_gen_type(g, "IN", in);
    zc_gen_type(g, "OUT", out);
    return ZC_OK;
}
