#include "op/window.h"

bool zc_auto_pad_parse(const char *name, zc_auto_pad *out)
{
    static const char *const names[] = {[ZC_PAD_EXPLICIT] = "NOTSET",
                                        [ZC_PAD_SAME_UPPER] = "SAME_UPPER",
                                        [ZC_PAD_SAME_LOWER] = "SAME_LOWER",
                                        [ZC_PAD_VALID] = "VALID"};
    *out = ZC_PAD_EXPLICIT;
    if (!name || !name[0]) return true;
    for (size_t i = 0; i < ZC_COUNTOF(names); i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *out = (zc_auto_pad)i;
        return true;
    }
    return false;
}

bool zc_window_phases_fit(const zc_window_attrs *a, int axes, int64_t channels)
{
    if (!a->phases.n && !a->late.n) return true;
    bool fits = a->phases.n == axes && a->late.n == axes && channels > 0;
    for (int i = 0; fits && i < axes; i++) {
        const int64_t n = a->phases.v[i];
        fits = n >= 1 && channels % n == 0 && a->late.v[i] >= 1 && a->late.v[i] <= n;
        if (fits) channels /= n;
    }
    return fits;
}

zc_status zc_window_check_list(zc_infer *f, const char *name, zc_ints list, int need, int64_t least)
{
    if (list.n != 0 && list.n != need)
        return zc_infer_fail(f, "%s has a wrong length (got %d, need %d)", name, list.n, need);
    for (int i = 0; i < list.n; i++) {
        if (list.v[i] < least || list.v[i] > ZC_WINDOW_LIMIT) {
            return zc_infer_fail(f, "%s[%d] out of range (got %lld, need [%lld, %lld])", name, i,
                                 (long long)list.v[i], (long long)least,
                                 (long long)ZC_WINDOW_LIMIT);
        }
    }
    return ZC_OK;
}

zc_status zc_window_check(zc_infer *f, const zc_window_attrs *a, int axes)
{
    zc_auto_pad mode;
    if (!zc_auto_pad_parse(a->auto_pad, &mode)) {
        return zc_infer_fail(f,
                             "unknown auto_pad (got \"" ZC_NAME
                             "\", need NOTSET, SAME_UPPER, SAME_LOWER or VALID)",
                             a->auto_pad);
    }
    ZC_TRY(zc_window_check_list(f, "kernel_shape", a->kernel, axes, 1));
    ZC_TRY(zc_window_check_list(f, "strides", a->strides, axes, 1));
    ZC_TRY(zc_window_check_list(f, "dilations", a->dilations, axes, 1));
    return zc_window_check_list(f, "pads", a->pads, 2 * axes, 0);
}

/* Positions that a window of the axis spans: (kernel - 1) * dilation + 1. */
static zc_dim span_of(zc_dims *d, const zc_window_attrs *a, int i, zc_dim kernel)
{
    zc_dim one = zc_dim_const(1);
    zc_dim steps = zc_dim_sub(d, kernel, one);
    zc_dim gap = zc_dim_const(zc_window_dilation(a, i));
    return zc_dim_add(d, zc_dim_mul(d, steps, gap), one);
}

static zc_dim out_dim(zc_dims *d, const zc_window_attrs *a, int axes, int i, zc_dim in,
                      zc_dim kernel)
{
    zc_auto_pad mode;
    zc_auto_pad_parse(a->auto_pad, &mode);
    zc_dim stride = zc_dim_const(zc_window_stride(a, i)), one = zc_dim_const(1);
    if (mode == ZC_PAD_SAME_UPPER || mode == ZC_PAD_SAME_LOWER) return zc_dim_cdiv(d, in, stride);
    bool pad = mode == ZC_PAD_EXPLICIT;
    zc_dim begin = zc_dim_const(pad ? zc_window_pad(a, axes, i, 0) : 0);
    zc_dim end = zc_dim_const(pad ? zc_window_pad(a, axes, i, 1) : 0);
    zc_dim reach = zc_dim_add(d, in, begin); /* windows start before this */
    zc_dim room = zc_dim_sub(d, zc_dim_add(d, reach, end), span_of(d, a, i, kernel));
    if (!a->ceil_mode || !pad) return zc_dim_add(d, zc_dim_div(d, room, stride), one);
    zc_dim most = zc_dim_add(d, zc_dim_cdiv(d, room, stride), one);
    return zc_dim_min(d, most, zc_dim_cdiv(d, reach, stride));
}

zc_status zc_window_out(zc_infer *f, const zc_window_attrs *a, const zc_type *x,
                        const zc_dim *kernel, zc_dim *out)
{
    int axes = x->rank - 2;
    for (int i = 0; i < axes; i++) {
        if (zc_dim_is_const(kernel[i]) && (kernel[i].k < 1 || kernel[i].k > ZC_WINDOW_LIMIT)) {
            return zc_infer_fail(f, "kernel size out of range on axis %d (got %lld, need [1, %d])",
                                 i + 2, (long long)kernel[i].k, ZC_WINDOW_LIMIT);
        }
        out[i] = out_dim(f->dims, a, axes, i, x->dims[i + 2], kernel[i]);
        if (zc_dim_is_const(out[i]) && out[i].k < 0) {
            return zc_infer_fail(f, "window larger than the padded input on axis %d (input %lld)",
                                 i + 2, (long long)x->dims[i + 2].k);
        }
    }
    return ZC_OK;
}

int64_t zc_window_out_size(const zc_window_attrs *a, int axes, int i, int64_t in, int64_t kernel)
{
    return out_dim(NULL, a, axes, i, zc_dim_const(in), zc_dim_const(kernel)).k;
}

/* Padding that SAME needs in all for one axis. */
static int64_t same_total(const zc_window *w, int i)
{
    int64_t covered = w->out[i] > 0 ? (w->out[i] - 1) * w->stride[i] : 0;
    int64_t total = (w->kernel[i] - 1) * w->dilation[i] + 1 - (w->in[i] - covered);
    return total > 0 ? total : 0;
}

void zc_window_resolve(const zc_window_attrs *a, int axes, const int64_t *in, const int64_t *out,
                       const int64_t *kernel, zc_window *w)
{
    zc_auto_pad mode;
    zc_auto_pad_parse(a->auto_pad, &mode);
    w->axes = axes;
    for (int i = 0; i < axes; i++) {
        w->in[i] = in[i];
        w->out[i] = out[i];
        w->kernel[i] = kernel[i];
        w->stride[i] = zc_window_stride(a, i);
        w->dilation[i] = zc_window_dilation(a, i);
        w->begin[i] = mode == ZC_PAD_EXPLICIT ? zc_window_pad(a, axes, i, 0) : 0;
        w->end[i] = mode == ZC_PAD_EXPLICIT ? zc_window_pad(a, axes, i, 1) : 0;
        if (mode != ZC_PAD_SAME_UPPER && mode != ZC_PAD_SAME_LOWER) continue;
        int64_t total = same_total(w, i), half = total / 2;
        w->begin[i] = mode == ZC_PAD_SAME_UPPER ? half : total - half;
        w->end[i] = total - w->begin[i];
    }
}

void zc_transposed_begin(const zc_attrs_ConvTranspose *at, zc_window *w)
{
    zc_auto_pad mode;
    zc_window_attrs a = ZC_WINDOW_ATTRS(at);
    zc_auto_pad_parse(at->auto_pad, &mode);
    bool same = mode == ZC_PAD_SAME_UPPER || mode == ZC_PAD_SAME_LOWER;
    for (int i = 0; i < w->axes; i++) {
        int64_t extra = at->output_padding.n ? at->output_padding.v[i] : 0;
        int64_t full = w->stride[i] * (w->out[i] - 1) + (w->kernel[i] - 1) * w->dilation[i] + 1;
        int64_t total = full + extra - w->in[i];
        if (mode == ZC_PAD_VALID && !at->output_shape.n)
            w->begin[i] = 0;
        else if (!same && !at->output_shape.n)
            w->begin[i] = zc_window_pad(&a, w->axes, i, 0);
        else if (total <= 0)
            w->begin[i] = 0;
        else
            w->begin[i] = mode == ZC_PAD_SAME_UPPER ? total / 2 : total - total / 2;
    }
}
