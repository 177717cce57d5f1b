#include <string.h>

#include "abi/unpool.h"
#include "kernels/gen.h"
#include "kernels/window.h"

/* ---- the specialisation ---- */

zc_status zc_gen_unpool(zc_gen *g)
{
    const zc_pvalue *x = zc_gen_in(g, 0);
    unsigned bits = zc_dtype_bits(x->dtype);
    if (x->rank < 0) return zc_gen_decline(g, "rank known only when run");
    if (x->rank > ZC_UNPOOL_RANK) return zc_gen_decline(g, "%d axes", x->rank);
    if (bits < 8 || bits > 64) return zc_gen_decline(g, "element type %s", zc_dtype_name(x->dtype));
    zc_gen_define(g, "X", "u%u", bits);
    zc_gen_define(g, "RANK", "%d", x->rank);
    return ZC_OK;
}

/* ---- the launch ---- */

enum { BLOCK = 256 };

/* Indices count in the image that the pooling's attributes imply; the result may be larger or
 * smaller. */
static void implied_dims(const zc_launch *l, struct zc_unpool_params *p)
{
    const zc_attrs_MaxUnpool *at = ZC_ATTRS(l, MaxUnpool);
    zc_window_attrs a = {.kernel = at->kernel_shape, .strides = at->strides, .pads = at->pads};
    const zc_tensor *x = &l->in[0];
    int axes = x->rank - 2;
    p->implied[0] = x->dims[0];
    p->implied[1] = x->dims[1];
    for (int i = 0; i < axes; i++)
        p->implied[i + 2] = (x->dims[i + 2] - 1) * zc_window_stride(&a, i) + a.kernel.v[i] -
                            zc_window_pad(&a, axes, i, 0) - zc_window_pad(&a, axes, i, 1);
    int64_t dims[ZC_UNPOOL_RANK];
    for (int d = 0; d < x->rank; d++) dims[d] = p->implied[d];
    p->range = zc_numel(x->rank, dims);
    if (p->range < 0) p->range = 0;
}

zc_status zc_launch_unpool(zc_launch *l)
{
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    struct zc_unpool_params p;
    void *owner;
    memset(&p, 0, sizeof p);
    p.in = x->data;
    p.index = l->in[1].data;
    p.out = y->data;
    p.fault = l->fault;
    p.step = l->step_id;
    p.rank = x->rank;
    p.count = zc_tensor_numel(x);
    p.total = zc_tensor_numel(y);
    if (p.count > UINT32_MAX - 1)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject,
                       "too many elements for the GPU kernel (got %lld)", (long long)p.count);
    implied_dims(l, &p);
    for (int d = 0; d < y->rank; d++) p.dims[d] = y->dims[d];
    ZC_TRY(zc_launch_scratch(l, (size_t)p.total * sizeof *p.owner, &owner));
    p.owner = owner;
    if (p.total) ZC_TRY(zc_launch_fill(l, owner, 0, (size_t)p.total * sizeof *p.owner));
    zc_dim3 each = {zc_launch_blocks(p.count, BLOCK, 0), 1, 1},
            all = {zc_launch_blocks(p.total, BLOCK, 0), 1, 1};
    ZC_TRY(zc_launch_kernel(l, 0, each, BLOCK, 0, &p, sizeof p));
    return zc_launch_kernel(l, 1, all, BLOCK, 0, &p, sizeof p);
}
