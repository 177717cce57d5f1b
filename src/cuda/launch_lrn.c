#include "abi/lrn.h"
#include "cuda/launch.h"

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
