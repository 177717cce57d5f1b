#include <string.h>

#include "abi/roi.h"
#include "kernels/gen.h"
#include "kernels/window.h"

/* ---- the specialisation ---- */

zc_status zc_gen_roi(zc_gen *g)
{
    zc_dtype t = zc_gen_in_type(g, 0);
    bool align = g->step->op == ZC_OP_RoiAlign;
    if (!zc_gen_sums_type(t)) return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    zc_gen_type(g, "X", t);
    zc_gen_define(g, "ALIGN", "%d", align);
    if (!align) return ZC_OK;
    const zc_attrs_RoiAlign *a = ZC_ATTRS(g, RoiAlign);
    zc_gen_type(g, "BATCH", zc_gen_in_type(g, 2));
    zc_gen_define(g, "MAX", "%d", strcmp(a->mode, "max") == 0);
    zc_gen_define(g, "EXACT", "%d", strcmp(a->coordinate_transformation_mode, "half_pixel") == 0);
    return ZC_OK;
}

/* ---- the launch ---- */

static zc_status check(zc_launch *l, const struct zc_roi_params *p)
{
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    for (int d = 2; d < 4; d++)
        if (x->dims[d] > ZC_CUDA_PLANE_MOST || y->dims[d] > ZC_CUDA_PLANE_MOST)
            return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "image too large for the GPU kernel");
    if (p->batches &&
        (zc_tensor_numel(&l->in[2]) != y->dims[0] || zc_tensor_numel(&l->in[1]) != 4 * y->dims[0]))
        return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                       "rois and batch_indices differ in length");
    return ZC_OK;
}

zc_status zc_launch_roi(zc_launch *l)
{
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    bool align = l->op == ZC_OP_RoiAlign;
    struct zc_roi_params p;
    memset(&p, 0, sizeof p);
    p.in = x->data;
    p.rois = l->in[1].data;
    p.batches = align ? l->in[2].data : NULL;
    p.out = y->data;
    p.fault = l->fault;
    p.step = l->step_id;
    p.total = zc_tensor_numel(y);
    if (p.total == 0) return ZC_OK;
    ZC_TRY(check(l, &p));
    p.batch = x->dims[0];
    p.channels = x->dims[1];
    p.in_h = (int)x->dims[2];
    p.in_w = (int)x->dims[3];
    p.out_h = (int)y->dims[2];
    p.out_w = (int)y->dims[3];
    p.scale = align ? ZC_ATTRS(l, RoiAlign)->spatial_scale : ZC_ATTRS(l, MaxRoiPool)->spatial_scale;
    p.samples = align ? (int)ZC_ATTRS(l, RoiAlign)->sampling_ratio : 0;
    zc_dim3 grid = {zc_launch_blocks(p.total, 256, 0), 1, 1};
    return zc_launch_kernel(l, 0, grid, 256, 0, &p, sizeof p);
}
