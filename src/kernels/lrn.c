#include "abi/lrn.h"
#include "kernels/gen.h"
#include "kernels/launch.h"

/* ---- the specialisation ---- */

zc_status zc_gen_lrn(zc_gen *g)
{
    zc_dtype t = zc_gen_in_type(g, 0);
    if (!zc_kernel_type(t)) return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    if (zc_gen_in(g, 0)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    zc_gen_type(g, "T", t);
    zc_gen_define(g, "ACC", "%s", t == ZC_F64 ? "f64" : "f32");
    return ZC_OK;
}

/* ---- the launch ---- */

enum { BLOCK = 256 };

zc_status zc_launch_lrn(zc_launch *l)
{
    const zc_attrs_LRN *a = ZC_ATTRS(l, LRN);
    const zc_tensor *x = &l->in[0];
    struct zc_lrn_params p = {.in = x->data,
                              .out = l->out[0].data,
                              .total = zc_tensor_numel(x),
                              .channels = x->dims[1],
                              .size = a->size,
                              .alpha = (double)a->alpha / (double)a->size,
                              .beta = a->beta,
                              .bias = a->bias};
    if (p.total == 0) return ZC_OK;
    p.plane = zc_dims_span(x->dims, 2, x->rank);
    zc_dim3 grid = {zc_launch_blocks(p.total, BLOCK, 16 * l->sm_count), 1, 1};
    return zc_launch_kernel(l, 0, grid, BLOCK, 0, &p, sizeof p);
}
