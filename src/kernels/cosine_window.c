#include "abi/cosine_window.h"
#include "kernels/gen.h"
#include "kernels/move_form.h"

/* ---- the specialisation ---- */

zc_status zc_gen_cosine_window(zc_gen *g)
{
    zc_dtype out = zc_gen_out_type(g, 0);
    if (!zc_kernel_type(out)) return zc_gen_decline(g, "element type %s", zc_dtype_name(out));
    zc_gen_type(g, "OUT", out);
    return ZC_OK;
}

/* ---- the launch ---- */

static zc_status window(zc_launch *l, int64_t periodic, double a0, double a1, double a2)
{
    struct zc_cosine_window_params p = {
        .out = l->out[0].data, .total = l->out[0].dims[0], .a = {a0, a1, a2}};
    p.n = periodic ? p.total : p.total - 1;
    return zc_launch_kernel(l, 0, zc_move_grid(l, p.total), 256, 0, &p, sizeof p);
}

zc_status zc_launch_cosine_window(zc_launch *l)
{
    if (l->op == ZC_OP_HannWindow) return window(l, ZC_ATTRS(l, HannWindow)->periodic, 0.5, 0.5, 0);
    if (l->op == ZC_OP_HammingWindow)
        return window(l, ZC_ATTRS(l, HammingWindow)->periodic, 25.0 / 46, 21.0 / 46, 0);
    return window(l, ZC_ATTRS(l, BlackmanWindow)->periodic, 0.42, 0.5, 0.08);
}
