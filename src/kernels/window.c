#include <stdio.h>

#include "kernels/window.h"
#include "op/nhwc.h"

/* ---- the specialisation ---- */

bool zc_gen_window_fits(zc_gen *g, const zc_window_attrs *a, int axes)
{
    bool fits = true;
    if (axes < 1 || axes > ZC_WINDOW_DIMS) {
        zc_gen_decline(g, "%d spatial axes", axes);
        return false;
    }
    for (int i = 0; i < axes; i++) {
        fits &= zc_window_stride(a, i) <= ZC_CUDA_WINDOW_MOST;
        fits &= zc_window_dilation(a, i) <= ZC_CUDA_WINDOW_MOST;
        fits &= zc_window_pad(a, axes, i, 0) <= ZC_CUDA_WINDOW_MOST;
        fits &= zc_window_pad(a, axes, i, 1) <= ZC_CUDA_WINDOW_MOST;
        if (a->kernel.n) fits &= a->kernel.v[i] * zc_window_dilation(a, i) <= ZC_CUDA_WINDOW_MOST;
    }
    if (!fits) zc_gen_decline(g, "stride, dilation, padding or kernel size beyond 2^28");
    return fits;
}

/* Z_<NAME><axis>: the value, or the parameter p.window.<field>[axis]. */
static void put(zc_gen *g, const char *name, const char *field, int axis, bool known, int64_t v)
{
    char full[24];
    snprintf(full, sizeof full, "%s%d", name, axis);
    if (known)
        zc_gen_define(g, full, "%lld", (long long)v);
    else
        zc_gen_define(g, full, "(p.window.%s[%d])", field, axis);
}

static void put_dim(zc_gen *g, const char *name, const char *field, int axis, zc_dim d)
{
    put(g, name, field, axis, zc_dim_is_const(d) && d.k <= ZC_CUDA_PLANE_MOST, d.k);
}

/* Padding of the window's axis i: known when explicit, or when all sizes are. */
static void put_padding(zc_gen *g, const zc_window_attrs *a, const zc_gen_window_dims *d, int i,
                        int axis)
{
    zc_auto_pad mode;
    if (d->begin) {
        put(g, "BEGIN", "begin", axis, d->begin[i] >= 0, d->begin[i]);
        put(g, "END", "end", axis, true, 0);
        return;
    }
    zc_auto_pad_parse(a->auto_pad, &mode);
    bool sizes =
        zc_dim_is_const(d->in[i]) && zc_dim_is_const(d->out[i]) && zc_dim_is_const(d->kernel[i]);
    bool known = mode == ZC_PAD_EXPLICIT || mode == ZC_PAD_VALID || sizes;
    zc_window w = {0};
    if (known) {
        int64_t in[ZC_WINDOW_DIMS], out[ZC_WINDOW_DIMS], kernel[ZC_WINDOW_DIMS];
        for (int j = 0; j < d->axes; j++) {
            in[j] = j == i && sizes ? d->in[j].k : 1;
            out[j] = j == i && sizes ? d->out[j].k : 1;
            kernel[j] = j == i && sizes ? d->kernel[j].k : 1;
        }
        zc_window_resolve(a, d->axes, in, out, kernel, &w);
    }
    bool fits = w.begin[i] <= ZC_CUDA_WINDOW_MOST && w.end[i] <= ZC_CUDA_WINDOW_MOST;
    put(g, "BEGIN", "begin", axis, known && fits, w.begin[i]);
    put(g, "END", "end", axis, known && fits, w.end[i]);
}

void zc_gen_window(zc_gen *g, const zc_window_attrs *a, const zc_gen_window_dims *d)
{
    static const char *const names[] = {"IN", "OUT", "KERNEL", "STRIDE", "DILATION"};
    int lead = ZC_WINDOW_DIMS - d->axes;
    for (int axis = 0; axis < ZC_WINDOW_DIMS; axis++) {
        int i = axis - lead;
        if (i < 0) {
            for (size_t n = 0; n < ZC_COUNTOF(names); n++) put(g, names[n], "", axis, true, 1);
            put(g, "BEGIN", "", axis, true, 0);
            put(g, "END", "", axis, true, 0);
            continue;
        }
        put_dim(g, "IN", "in", axis, d->in[i]);
        put_dim(g, "OUT", "out", axis, d->out[i]);
        put_dim(g, "KERNEL", "kernel", axis, d->kernel[i]);
        put(g, "STRIDE", "stride", axis, true, zc_window_stride(a, i));
        put(g, "DILATION", "dilation", axis, true, zc_window_dilation(a, i));
        put_padding(g, a, d, i, axis);
    }
}

/* Z_<NAME>: a number for each axis, as zc_gen_window counts them. */
static void put_list(zc_gen *g, const char *name, int axes, zc_ints list)
{
    int v[ZC_WINDOW_DIMS];
    const int lead = ZC_WINDOW_DIMS - axes;
    for (int d = 0; d < ZC_WINDOW_DIMS; d++) v[d] = d < lead ? 1 : (int)list.v[d - lead];
    zc_gen_define(g, name, "%d, %d, %d", v[0], v[1], v[2]);
}

void zc_gen_phases(zc_gen *g, const zc_window_attrs *a, int axes)
{
    if (!a->phases.n) return;
    put_list(g, "PHASES", axes, a->phases);
    put_list(g, "LATE", axes, a->late);
}

/* ---- the launch ---- */

#define WINDOW_OPS(X)                                                                              \
    X(Conv) X(ConvInteger) X(QLinearConv) X(ConvImage) X(ConvTranspose) X(ScaledConv)
#define PAIR_OPS(X) X(ConvPair) X(QLinearConvPair) X(QLinearConvChain)
#define POOL_OPS(X) X(AveragePool) X(MaxPool) X(LpPool) X(MaxPoolNhwc) X(AveragePoolNhwc)

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
    case ZC_OP_ConvNhwc: {
        const zc_attrs_ConvNhwc *at = attrs;
        *a = zc_nhwc_window(at);
        *group = at->group;
        return true;
    }
#define X(NAME)                                                                                    \
    case ZC_OP_##NAME: {                                                                           \
        const zc_attrs_##NAME *at = attrs;                                                         \
        *a = ZC_WINDOW_ATTRS(at);                                                                  \
        a->auto_pad = at->auto_pad;                                                                \
        return true;                                                                               \
    }
        PAIR_OPS(X)
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

zc_status zc_launch_step(zc_launch *l, int i, int64_t channels, int *step)
{
    *step = 0;
    if (i < 0 || !zc_launch_has(l, i)) return ZC_OK;
    int64_t n = zc_tensor_numel(&l->in[i]);
    *step = n != 1;
    if (n == 1 || n == channels) return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                   "input %d has a wrong length (got %lld, need %lld)", i, (long long)n,
                   (long long)channels);
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
