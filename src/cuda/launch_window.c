#include "cuda/window.h"

#define WINDOW_OPS(X)                                                                              \
    X(Conv) X(FusedConv) X(ConvInteger) X(QLinearConv) X(ConvNhwc) X(ConvTranspose)
#define POOL_OPS(X) X(AveragePool) X(MaxPool) X(LpPool) X(MaxPoolNhwc)

bool zc_window_attrs_of(zc_op op, const void *attrs, zc_window_attrs *a, int64_t *group)
{
    *group = 1;
    switch (op) {
#define X(NAME)                                                                                    \
    case ZC_OP_##NAME: {                                                                           \
        const zc_attrs_##NAME *at = attrs;                                                         \
        *a = ZC_WINDOW_ATTRS(at);                                                                  \
        a->auto_pad = at->auto_pad;                                                                \
        *group = at->group;                                                                        \
        return true;                                                                               \
    }
        WINDOW_OPS(X)
#undef X
#define X(NAME)                                                                                    \
    case ZC_OP_##NAME: {                                                                           \
        const zc_attrs_##NAME *at = attrs;                                                         \
        *a = ZC_WINDOW_ATTRS(at);                                                                  \
        a->auto_pad = at->auto_pad;                                                                \
        a->ceil_mode = at->ceil_mode != 0;                                                         \
        return true;                                                                               \
    }
        POOL_OPS(X)
#undef X
    case ZC_OP_DeformConv: {
        const zc_attrs_DeformConv *at = attrs;
        *a = ZC_WINDOW_ATTRS(at);
        *group = at->group;
        return true;
    }
    case ZC_OP_Col2Im: {
        const zc_attrs_Col2Im *at = attrs;
        *a =
            (zc_window_attrs){.strides = at->strides, .pads = at->pads, .dilations = at->dilations};
        return true;
    }
    default:
        *a = (zc_window_attrs){0};
        return false;
    }
}

static bool within(int64_t v, int64_t most)
{
    return v >= -most && v <= most;
}

zc_status zc_launch_window(zc_launch *l, const zc_window *w, struct zc_window_params *p)
{
    int lead = ZC_WINDOW_DIMS - w->axes;
    if (zc_dims_span(w->in, 0, w->axes) > INT32_MAX || zc_dims_span(w->out, 0, w->axes) > INT32_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "image too large for the GPU kernel");
    if (lead < 0)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject,
                       "too many spatial axes (got %d, need at most %d)", w->axes, ZC_WINDOW_DIMS);
    for (int d = 0; d < ZC_WINDOW_DIMS; d++) {
        int i = d - lead;
        if (i < 0) {
            p->in[d] = p->out[d] = p->kernel[d] = p->stride[d] = p->dilation[d] = 1;
            p->begin[d] = p->end[d] = 0;
            continue;
        }
        int64_t small[] = {w->stride[i], w->dilation[i], w->kernel[i],
                           w->begin[i],  w->end[i],      (w->kernel[i] - 1) * w->dilation[i]};
        bool fits = within(w->in[i], ZC_CUDA_PLANE_MOST) && within(w->out[i], ZC_CUDA_PLANE_MOST);
        for (size_t s = 0; s < ZC_COUNTOF(small); s++)
            fits &= within(small[s], ZC_CUDA_WINDOW_MOST);
        if (!fits)
            return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject,
                           "window or image too large for the GPU kernel on axis %d", i);
        p->in[d] = (int)w->in[i];
        p->out[d] = (int)w->out[i];
        p->kernel[d] = (int)w->kernel[i];
        p->stride[d] = (int)w->stride[i];
        p->dilation[d] = (int)w->dilation[i];
        p->begin[d] = (int)w->begin[i];
        p->end[d] = (int)w->end[i];
    }
    return ZC_OK;
}
