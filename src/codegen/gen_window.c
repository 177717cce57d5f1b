#include <stdio.h>

#include "codegen/gen_window.h"

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
