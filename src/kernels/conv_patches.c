#include "kernels/conv_patches.h"

#include "kernels/divisor.h"

enum {
    PAD_MOST = 127, /* padding, and how far a tap lies from where its window begins */
    STRIDE_MOST = 8
};

/* ---- the specialisation ---- */

bool zc_conv_is_product(const zc_window_attrs *a, const int64_t kernel[2])
{
    bool plain = kernel[0] == 1 && kernel[1] == 1;
    for (int i = 0; i < 2; i++)
        plain = plain && zc_window_stride(a, i) == 1 && zc_window_pad(a, 2, i, 0) == 0 &&
                zc_window_pad(a, 2, i, 1) == 0;
    return plain;
}

bool zc_conv_window_fits(const zc_window_attrs *a, const int64_t kernel[2])
{
    bool fits = true;
    for (int i = 0; i < 2; i++) {
        fits = fits && zc_window_stride(a, i) <= STRIDE_MOST && kernel[i] <= PAD_MOST &&
               zc_window_dilation(a, i) <= PAD_MOST &&
               (kernel[i] - 1) * zc_window_dilation(a, i) <= PAD_MOST;
        for (int end = 0; end < 2; end++) {
            int64_t pad = zc_window_pad(a, 2, i, end);
            fits = fits && pad >= 0 && pad <= PAD_MOST;
        }
    }
    return fits;
}

int64_t zc_gen_conv_pixels(zc_gen *g)
{
    static const int64_t bounds[] = {1024, ZC_CONV_FEW_PIXELS, 32768};
    int64_t low, high;
    zc_gen_size(g, zc_gen_out(g, 0)->dims, 3, bounds, ZC_COUNTOF(bounds), &low, &high);
    return high == INT64_MAX ? 4 * bounds[ZC_COUNTOF(bounds) - 1] : high;
}

void zc_gen_patches(zc_gen *g, const zc_window_attrs *a, const zc_tensor *w)
{
    const int64_t parts = zc_ceil_div(w->dims[3] * (int64_t)zc_dtype_bits(w->dtype) / 8, 32);
    if (parts < ZC_SM90_LINE / 32 && g->step->op != ZC_OP_ConvPair) /* whose pairs differ */
        zc_gen_define(g, "LINE_PARTS", "%d", (int)parts);
    if (zc_conv_is_product(a, w->dims + 1)) return;
    zc_gen_define(g, "ACROSS", "%d", (int)w->dims[2]);
    zc_gen_define(g, "PATCHES", "1");
}

/* ---- the launch ---- */

zc_tensor_box zc_conv_patches(const zc_tensor *x, int64_t pitch, const zc_window *w, bool product,
                              int64_t pixels, int tile)
{
    zc_tensor_box b = zc_sm90_box(x->data, x->dtype, x->dims[3], pixels, 1, pitch, 0);
    b.box[1] = (uint32_t)tile;
    if (product) return b;
    b.rank = 4;
    b.pixels = (uint32_t)tile;
    for (int i = 0; i < 2; i++) { /* innermost first */
        int side = 1 - i;
        b.dims[1 + i] = w->in[side];
        b.first[i] = (int)-w->begin[side];
        b.beyond[i] = (int)(w->end[side] - (w->kernel[side] - 1) * w->dilation[side]);
        b.step[i] = (int)w->stride[side];
    }
    b.dims[3] = x->dims[0];
    b.strides[1] = pitch * (int64_t)zc_dtype_bits(x->dtype) / 8;
    b.strides[2] = b.strides[1] * w->in[1];
    b.strides[3] = b.strides[2] * w->in[0];
    return b;
}

zc_status zc_launch_conv_check(zc_launch *l, const zc_tensor *w, int bias)
{
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    bool fits =
        x->rank == 4 && w->rank == 4 && y->rank == 4 && x->dims[0] == y->dims[0] &&
        x->dims[3] == w->dims[3] && y->dims[3] == w->dims[0] &&
        (bias < 0 || !zc_launch_has(l, bias) || zc_tensor_numel(&l->in[bias]) == w->dims[0]);
    char t[128], u[128];
    if (fits) return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                   "input and weights do not fit each other (got %s and %s)",
                   zc_tensor_type_text(x, t, sizeof t), zc_tensor_type_text(w, u, sizeof u));
}

zc_status zc_launch_conv_window(zc_launch *l, const zc_tensor *w, zc_window *window,
                                struct zc_window_params *out)
{
    zc_window_attrs a;
    int64_t group;
    zc_window_attrs_of(l->op, l->attrs, &a, &group);
    zc_window_resolve(&a, 2, l->in[0].dims + 1, l->out[0].dims + 1, w->dims + 1, window);
    return zc_launch_window(l, window, out);
}

zc_status zc_launch_conv_maps(zc_launch *l, const zc_tensor *weights, const zc_window *w,
                              int pixels, int channels, struct zc_gemm_sm90_params *p)
{
    zc_window_attrs a;
    int64_t group;
    zc_window_attrs_of(l->op, l->attrs, &a, &group);
    int64_t depth = weights->dims[3], taps = w->kernel[0] * w->kernel[1];
    zc_tensor_box x = zc_conv_patches(&l->in[0], zc_launch_in_pitch(l, 0), w,
                                      zc_conv_is_product(&a, w->kernel), p->g.m, pixels);
    zc_tensor_box b =
        zc_sm90_box(weights->data, weights->dtype, depth, p->g.n, taps, taps * depth, depth);
    b.box[1] = (uint32_t)channels;
    p->by_lines = zc_divisor_of(
        zc_ceil_div(depth * (int64_t)zc_dtype_bits(weights->dtype) / 8, ZC_SM90_LINE));
    p->by_line = zc_divisor_of(w->out[1]);
    p->by_plane = zc_divisor_of(w->out[0]);
    ZC_TRY(zc_launch_tensor_map(l, &x, &p->a));
    return zc_launch_tensor_map(l, &b, &p->b);
}
