#include "abi/affine_grid.h"

#include <string.h>

#include "cuda/launch.h"

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
