#include "codegen/gen.h"

zc_status zc_gen_one_hot(zc_gen *g)
{
    zc_dtype index = zc_gen_in_type(g, 0), value = zc_gen_out_type(g, 0);
    if (!zc_gen_plain_type(index))
        return zc_gen_decline(g, "indices of type %s", zc_dtype_name(index));
    if (zc_dtype_bits(value) < 8) return zc_gen_decline(g, "element type %s", zc_dtype_name(value));
    if (zc_gen_in(g, 0)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    zc_gen_type(g, "INDEX", index);
    return ZC_OK;
}
