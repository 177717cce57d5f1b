#include "abi/unpool.h"
#include "codegen/gen.h"

zc_status zc_gen_unpool(zc_gen *g)
{
    const zc_pvalue *x = zc_gen_in(g, 0);
    unsigned bits = zc_dtype_bits(x->dtype);
    if (x->rank < 0) return zc_gen_decline(g, "rank known only when run");
    if (x->rank > ZC_UNPOOL_RANK) return zc_gen_decline(g, "%d axes", x->rank);
    if (bits < 8 || bits > 64) return zc_gen_decline(g, "element type %s", zc_dtype_name(x->dtype));
    zc_gen_define(g, "X", "u%u", bits);
    zc_gen_define(g, "RANK", "%d", x->rank);
    return ZC_OK;
}
