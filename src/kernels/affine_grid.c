#include <string.h>

#include "abi/affine_grid.h"
#include "kernels/gen.h"
#include "kernels/launch.h"

/* ---- the specialisation ---- */

zc_status zc_gen_affine_grid(zc_gen *g)
{
    const zc_pvalue *y = zc_gen_out(g, 0);
    zc_dtype t = zc_gen_in_type(g, 0);
    if (y->rank < 0) return zc_gen_decline(g, "rank known only when run");
    if (y->rank < 3 || y->rank > 2 + ZC_AFFINE_AXES)
        return zc_gen_decline(g, "%d spatial axes", y->rank - 2);
    if (!zc_kernel_type(t)) return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    zc_gen_type(g, "X", t);
    zc_gen_define(g, "AXES", "%d", y->rank - 2);
    zc_gen_define(g, "ALIGN", "%d", ZC_ATTRS(g, AffineGrid)->align_corners != 0);
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_affine_grid(zc_launch *l)
{
    const zc_tensor *y = &l->out[0];
    struct zc_affine_grid_params p;
    int axes = y->rank - 2;
    memset(&p, 0, sizeof p);
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    p.theta = l->in[0].data;
    p.out = y->data;
    p.points = zc_dims_span(y->dims, 1, 1 + axes);
    p.total = y->dims[0] * p.points;
    for (int d = 0; d < axes; d++) p.size[d] = y->dims[axes - d];
    zc_dim3 grid = {zc_launch_blocks(p.total, 256, 0), 1, 1};
    return zc_launch_kernel(l, 0, grid, 256, 0, &p, sizeof p);
}
