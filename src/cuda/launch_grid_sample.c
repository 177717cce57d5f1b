#include "abi/grid_sample.h"

#include <string.h>

#include "cuda/launch.h"

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
