#include <string.h>

#include "abi/causal_conv.h"
#include "kernels/gen.h"
#include "kernels/launch.h"

/* ---- the specialisation ---- */

zc_status zc_gen_causal_conv(zc_gen *g)
{
    const zc_pvalue *x = zc_gen_in(g, 0), *w = zc_gen_in(g, 1);
    if (x->rank < 0 || w->rank < 0) return zc_gen_decline(g, "rank known only when run");
    if (!zc_kernel_type(x->dtype) || zc_dtype_bits(x->dtype) < 16)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(x->dtype));
    zc_gen_type(g, "T", x->dtype);
    zc_gen_define(g, "SILU", "%d",
                  strcmp(ZC_ATTRS(g, CausalConvWithState)->activation, "none") != 0);
    zc_gen_dim(g, "length", x->dims[2]);
    if (zc_dim_is_const(w->dims[2]))
        zc_gen_define(g, "kept", "%lldLL", (long long)w->dims[2].k - 1);
    else
        zc_gen_define(g, "kept", "(p.kept)");
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_causal_conv(zc_launch *l)
{
    enum { BLOCK = 256 };
    const zc_tensor *x = &l->in[0], *w = &l->in[1];
    struct zc_causal_conv_params p = {.x = x->data,
                                      .w = w->data,
                                      .bias = zc_launch_in(l, 2),
                                      .past = zc_launch_in(l, 3),
                                      .rows = x->dims[0] * x->dims[1],
                                      .channels = x->dims[1],
                                      .length = x->dims[2],
                                      .kept = w->dims[2] - 1};
    int64_t most = 32 * (int64_t)l->sm_count;
    ZC_TRY(zc_launch_check_size(l, 1, p.channels * w->dims[2], "weight"));
    ZC_TRY(zc_launch_check_size(l, 2, p.channels, "bias"));
    ZC_TRY(zc_launch_check_size(l, 3, p.rows * p.kept, "past_state"));
    if (p.kept < 0)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "the kernel is empty (need at least 1 tap)");
    if (l->nout > 0 && zc_present(&l->out[0])) {
        p.y = l->out[0].data;
        zc_dim3 grid = {zc_launch_blocks(p.rows * p.length, BLOCK, most), 1, 1};
        ZC_TRY(zc_launch_kernel(l, 0, grid, BLOCK, 0, &p, sizeof p));
    }
    if (l->nout < 2 || !zc_present(&l->out[1])) return ZC_OK;
    p.state = l->out[1].data;
    zc_dim3 grid = {zc_launch_blocks(p.rows * p.kept, BLOCK, most), 1, 1};
    return zc_launch_kernel(l, 1, grid, BLOCK, 0, &p, sizeof p);
}
