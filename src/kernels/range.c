#include "abi/range.h"
#include "kernels/gen.h"
#include "kernels/move_form.h"

/* ---- the specialisation ---- */

zc_status zc_gen_range(zc_gen *g)
{
    zc_dtype out = zc_gen_out_type(g, 0);
    if (!zc_kernel_type(out)) return zc_gen_decline(g, "element type %s", zc_dtype_name(out));
    bool narrow = out == ZC_F16 || out == ZC_BF16, whole = !zc_dtype_is_float(out);
    bool single = narrow && ZC_ATTRS(g, Range)->stash_type == ZC_F32;
    zc_gen_type(g, "OUT", out);
    zc_gen_define(g, "FLOAT", "%d", !whole);
    zc_gen_define(g, "STEP", "%s", whole ? "u64" : single ? "f32" : "f64");
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_range(zc_launch *l)
{
    const zc_tensor *start = &l->host[0], *delta = &l->host[2];
    struct zc_range_params p = {.out = l->out[0].data, .total = zc_tensor_numel(&l->out[0])};
    if (zc_dtype_is_float(l->out[0].dtype)) {
        p.start = zc_load_f64(start->dtype, start->data, 0);
        p.delta = zc_load_f64(delta->dtype, delta->data, 0);
    } else {
        p.whole_start = zc_load_i64(start->dtype, start->data, 0);
        p.whole_delta = zc_load_i64(delta->dtype, delta->data, 0);
    }
    return zc_launch_kernel(l, 0, zc_move_grid(l, p.total), 256, 0, &p, sizeof p);
}
