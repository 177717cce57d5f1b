#include "abi/pool.h"

#include <string.h>

#include "cuda/window.h"

enum { BLOCK = 256, WARP_PLANE = 2048 };

static zc_status launch_global(zc_launch *l, struct zc_pool_params *p)
{
    const zc_tensor *x = &l->in[0];
    p->plane = zc_dims_span(x->dims, 2, x->rank);
    if (p->plane <= WARP_PLANE) {
        zc_dim3 grid = {zc_launch_blocks(p->total, BLOCK / 32, 0), 1, 1};
        return zc_launch_kernel(l, 1, grid, BLOCK, 0, p, sizeof *p);
    }
    zc_dim3 grid = {zc_launch_blocks(p->total, 1, 0), 1, 1};
    return zc_launch_kernel(l, 2, grid, BLOCK, 0, p, sizeof *p);
}

zc_status zc_launch_pool(zc_launch *l)
{
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    struct zc_pool_params p;
    zc_window_attrs a;
    zc_window w;
    int64_t group;
    memset(&p, 0, sizeof p);
    p.in = x->data;
    p.out = y->data;
    p.total = zc_tensor_numel(y);
    p.inner = 1;
    if (p.total == 0) return ZC_OK;
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    if (!zc_window_attrs_of(l->op, l->attrs, &a, &group)) return launch_global(l, &p);
    int first = 2;
    if (l->op == ZC_OP_MaxPoolNhwc) {
        p.inner = x->dims[3];
        first = 1;
    }
    if (l->nout > 1 && zc_present(&l->out[1])) p.index = l->out[1].data;
    zc_window_resolve(&a, x->rank - 2, x->dims + first, y->dims + first, a.kernel.v, &w);
    ZC_TRY(zc_launch_window(l, &w, &p.window));
    zc_dim3 grid = {zc_launch_blocks(p.total, BLOCK, 0), 1, 1};
    return zc_launch_kernel(l, 0, grid, BLOCK, 0, &p, sizeof p);
}
