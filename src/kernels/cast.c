#include <stdio.h>
#include <string.h>

#include "abi/cast.h"
#include "kernels/gen.h"
#include "kernels/launch.h"

/* ---- the specialisation ---- */

static int pack_of(zc_dtype dtype)
{
    if (zc_dtype_bits(dtype) >= 8) return 0;
    return dtype == ZC_F4E2M1 ? 3 : zc_dtype_class(dtype) == ZC_CLASS_INT ? 1 : 2;
}

static void put_side(zc_gen *g, const char *side, zc_dtype dtype)
{
    char name[16];
    zc_gen_type(g, side, pack_of(dtype) ? ZC_U8 : dtype);
    snprintf(name, sizeof name, "%s_BITS", side);
    zc_gen_define(g, name, "%u", zc_dtype_bits(dtype));
    snprintf(name, sizeof name, "%s_PACK", side);
    zc_gen_define(g, name, "%d", pack_of(dtype));
}

zc_status zc_gen_cast(zc_gen *g)
{
    zc_dtype in = zc_gen_in_type(g, 0), out = zc_gen_out_type(g, 0);
    if (zc_dtype_class(in) == ZC_CLASS_COMPLEX || zc_dtype_class(out) == ZC_CLASS_COMPLEX)
        return zc_gen_decline(g, "element type %s to %s", zc_dtype_name(in), zc_dtype_name(out));
    bool like = g->step->op == ZC_OP_CastLike;
    int64_t saturate = like ? ZC_ATTRS(g, CastLike)->saturate : ZC_ATTRS(g, Cast)->saturate;
    const char *round = like ? ZC_ATTRS(g, CastLike)->round_mode : ZC_ATTRS(g, Cast)->round_mode;
    put_side(g, "IN", in);
    put_side(g, "OUT", out);
    zc_gen_define(g, "SATURATE", "%s", saturate ? "true" : "false");
    zc_gen_define(g, "ROUND", "%d",
                  strcmp(round, "down") == 0      ? 1
                  : strcmp(round, "nearest") == 0 ? 2
                                                  : 0);
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_cast(zc_launch *l)
{
    struct zc_cast_params p = {
        .in = l->in[0].data, .out = l->out[0].data, .total = zc_tensor_numel(&l->in[0])};
    unsigned bits = zc_dtype_bits(l->out[0].dtype);
    int64_t per_thread = bits < 8 ? 8 / bits : 1;
    zc_dim3 grid = {
        zc_launch_blocks((p.total + per_thread - 1) / per_thread, 256, 16 * l->sm_count), 1, 1};
    return zc_launch_kernel(l, 0, grid, 256, 0, &p, sizeof p);
}
