#include <string.h>

#include "abi/grid_sample.h"
#include "kernels/gen.h"
#include "kernels/launch.h"

/* ---- the specialisation ---- */

static int taps_of(const char *mode)
{
    if (strcmp(mode, "nearest") == 0) return 1;
    return strcmp(mode, "cubic") == 0 || strcmp(mode, "bicubic") == 0 ? 4 : 2;
}

zc_status zc_gen_grid_sample(zc_gen *g)
{
    const zc_attrs_GridSample *a = ZC_ATTRS(g, GridSample);
    const zc_pvalue *x = zc_gen_in(g, 0), *grid = zc_gen_in(g, 1);
    if (x->rank < 0) return zc_gen_decline(g, "rank known only when run");
    if (x->rank < 3 || x->rank > 2 + ZC_GRID_AXES)
        return zc_gen_decline(g, "%d spatial axes", x->rank - 2);
    if (!zc_kernel_type(x->dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(x->dtype));
    if (!zc_kernel_type(grid->dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(grid->dtype));
    zc_gen_type(g, "X", x->dtype);
    zc_gen_type(g, "GRID", grid->dtype);
    zc_gen_define(g, "ACC", "%s",
                  zc_dtype_is_float(x->dtype) ? zc_gen_compute_type(x->dtype) : "f64");
    zc_gen_define(g, "AXES", "%d", x->rank - 2);
    zc_gen_define(g, "TAPS", "%d", taps_of(a->mode));
    zc_gen_define(g, "PAD", "%d",
                  strcmp(a->padding_mode, "border") == 0       ? 1
                  : strcmp(a->padding_mode, "reflection") == 0 ? 2
                                                               : 0);
    zc_gen_define(g, "ALIGN", "%d", a->align_corners != 0);
    return ZC_OK;
}

/* ---- the launch ---- */

enum { BLOCK = 256, CHUNK = 8, MOST_CHUNKS = 65535 };

zc_status zc_launch_grid_sample(zc_launch *l)
{
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    struct zc_grid_sample_params p;
    memset(&p, 0, sizeof p);
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    int axes = x->rank - 2;
    p.in = x->data;
    p.grid = l->in[1].data;
    p.out = y->data;
    p.batch = y->dims[0];
    p.channels = y->dims[1];
    p.points = zc_dims_span(y->dims, 2, y->rank);
    p.plane = zc_tensor_numel(x) == 0 ? 0 : zc_dims_span(x->dims, 2, x->rank);
    for (int d = 0; d < ZC_GRID_AXES; d++) {
        int64_t size = d < ZC_GRID_AXES - axes ? 1 : x->dims[2 + d - (ZC_GRID_AXES - axes)];
        if (size > INT32_MAX)
            return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "image too large for the GPU kernel");
        p.size[d] = (int)size;
    }
    if (zc_tensor_numel(&l->in[1]) != p.batch * p.points * axes || x->dims[0] != p.batch)
        return zc_fail(l->diag, ZC_ERR_MODEL, l->subject, "grid does not fit the input");
    int64_t chunk = CHUNK;
    while ((p.channels + chunk - 1) / chunk > MOST_CHUNKS) chunk *= 2;
    if (chunk > INT32_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "too many channels for the GPU kernel");
    p.chunk = (int)chunk;
    zc_dim3 grid = {zc_launch_blocks(p.batch * p.points, BLOCK, 0),
                    (uint32_t)((p.channels + chunk - 1) / chunk), 1};
    return zc_launch_kernel(l, 0, grid, BLOCK, 0, &p, sizeof p);
}
