/* ConvPair on any architecture (conv_pair.cu); on Hopper it is conv_sm90.c's. */
#include "abi/conv_pair.h"
#include "kernels/window.h"

zc_status zc_gen_conv_pair(zc_gen *g)
{
    zc_dtype dtype = zc_gen_out_type(g, 0), bias = zc_gen_in_type(g, ZC_IN_ConvPair_bias);
    for (int i = 0; i < ZC_IN_ConvPair_bias; i++)
        if (zc_gen_in_type(g, i) != dtype) return zc_gen_decline(g, "operands of several types");
    if (dtype == ZC_F64 || (bias != ZC_NONE && bias != dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(dtype));
    zc_gen_type(g, "X", dtype);
    zc_gen_define(g, "HAS_BIAS", "%d", bias != ZC_NONE);
    return zc_gen_epilogue(g);
}

static zc_status check(zc_launch *l)
{
    const zc_tensor *x = &l->in[ZC_IN_ConvPair_x], *w = &l->in[ZC_IN_ConvPair_w];
    const zc_tensor *z = &l->in[ZC_IN_ConvPair_z], *v = &l->in[ZC_IN_ConvPair_v];
    const zc_tensor *y = &l->out[0];
    bool fits = x->rank == 4 && w->rank == 4 && z->rank == 4 && v->rank == 4 && y->rank == 4 &&
                x->dims[0] == y->dims[0] && z->dims[0] == y->dims[0] && x->dims[3] == w->dims[3] &&
                z->dims[3] == v->dims[3] && w->dims[0] == y->dims[3] && v->dims[0] == y->dims[3] &&
                (!zc_launch_has(l, ZC_IN_ConvPair_bias) ||
                 zc_tensor_numel(&l->in[ZC_IN_ConvPair_bias]) == y->dims[3]);
    char t[128], u[128];
    if (fits) return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                   "inputs and weights do not fit each other (got %s and %s)",
                   zc_tensor_type_text(x, t, sizeof t), zc_tensor_type_text(w, u, sizeof u));
}

static zc_status put_windows(zc_launch *l, struct zc_conv_pair_params *p)
{
    const zc_tensor *x = &l->in[ZC_IN_ConvPair_x], *w = &l->in[ZC_IN_ConvPair_w];
    const zc_tensor *z = &l->in[ZC_IN_ConvPair_z], *y = &l->out[0];
    const zc_window_attrs second = {.strides = ZC_ATTRS(l, ConvPair)->second_strides};
    zc_window_attrs a;
    zc_window window;
    int64_t group;
    for (int i = 0; i < 2; i++) {
        p->second_in[i] = z->dims[1 + i];
        p->second_stride[i] = zc_window_stride(&second, i);
        if (zc_ceil_div(z->dims[1 + i], p->second_stride[i]) != y->dims[1 + i])
            return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                           "axis %d of the second convolution gives %lld pixels, need %lld", i + 1,
                           (long long)zc_ceil_div(z->dims[1 + i], p->second_stride[i]),
                           (long long)y->dims[1 + i]);
    }
    zc_window_attrs_of(l->op, l->attrs, &a, &group);
    zc_window_resolve(&a, 2, x->dims + 1, y->dims + 1, w->dims + 1, &window);
    return zc_launch_window(l, &window, &p->window);
}

zc_status zc_launch_conv_pair(zc_launch *l)
{
    enum { BLOCK = 256 };
    const zc_tensor *y = &l->out[0];
    struct zc_conv_pair_params p = {.x = l->in[ZC_IN_ConvPair_x].data,
                                    .w = l->in[ZC_IN_ConvPair_w].data,
                                    .z = l->in[ZC_IN_ConvPair_z].data,
                                    .v = l->in[ZC_IN_ConvPair_v].data,
                                    .bias = zc_launch_in(l, ZC_IN_ConvPair_bias),
                                    .y = y->data};
    ZC_TRY(check(l));
    p.total = zc_tensor_numel(y);
    if (p.total == 0) return ZC_OK;
    p.n = y->dims[3];
    p.channels = l->in[ZC_IN_ConvPair_x].dims[3];
    p.second_channels = l->in[ZC_IN_ConvPair_z].dims[3];
    ZC_TRY(put_windows(l, &p));
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    zc_dim3 grid = {zc_launch_blocks(p.total, BLOCK, 16 * l->sm_count), 1, 1};
    return zc_launch_kernel(l, 0, grid, BLOCK, 0, &p, sizeof p);
}
