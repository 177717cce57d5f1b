#include "kernels/conv_patches.h"

#include "kernels/divisor.h"
#include "op/nhwc.h"

enum { STRIDE_MOST = 8 };

/* ---- the specialisation ---- */

bool zc_conv_is_product(const zc_window_attrs *a, int axes, const int64_t *kernel)
{
    bool plain = !a->phases.n;
    for (int i = 0; i < axes; i++)
        plain = plain && kernel[i] == 1 && zc_window_stride(a, i) == 1 &&
                zc_window_pad(a, axes, i, 0) == 0 && zc_window_pad(a, axes, i, 1) == 0;
    return plain;
}

/* The most that a tensor map has bits for, of padding and of how far a tap lies from where its
 * window begins. */
static int64_t reach_of(int axes)
{
    return axes == 1 ? 32767 : axes == 2 ? 127 : 15;
}

bool zc_conv_window_fits(const zc_window_attrs *a, int axes, const int64_t *kernel)
{
    const int64_t most = reach_of(axes);
    bool fits = axes <= ZC_WINDOW_DIMS;
    for (int i = 0; i < axes; i++) {
        fits = fits && zc_window_stride(a, i) <= STRIDE_MOST && kernel[i] <= most + 1 &&
               zc_window_dilation(a, i) <= most &&
               (kernel[i] - 1) * zc_window_dilation(a, i) + zc_window_latest(a, i) <= most;
        for (int end = 0; end < 2; end++) {
            int64_t pad = zc_window_pad(a, axes, i, end);
            fits = fits && pad >= 0 && pad <= most;
        }
    }
    return fits;
}

bool zc_conv_second_of(zc_op op, const void *attrs, zc_conv_second *out)
{
    if (op == ZC_OP_ConvPair)
        *out = (zc_conv_second){ZC_IN_ConvPair_z,
                                ZC_IN_ConvPair_v,
                                {.strides = ((const zc_attrs_ConvPair *)attrs)->second_strides}};
    else if (op == ZC_OP_QLinearConvPair)
        *out = (zc_conv_second){
            ZC_IN_QLinearConvPair_z,
            ZC_IN_QLinearConvPair_v,
            {.strides = ((const zc_attrs_QLinearConvPair *)attrs)->second_strides}};
    return op == ZC_OP_ConvPair || op == ZC_OP_QLinearConvPair;
}

int64_t zc_gen_conv_pixels(zc_gen *g)
{
    static const int64_t bounds[] = {1024, ZC_CONV_FEW_PIXELS, 32768};
    int64_t low, high;
    const zc_pvalue *y = zc_gen_out(g, 0);
    zc_gen_size(g, y->dims, y->rank - 1, bounds, ZC_COUNTOF(bounds), &low, &high);
    return high == INT64_MAX ? 4 * bounds[ZC_COUNTOF(bounds) - 1] : high;
}

void zc_gen_line_parts(zc_gen *g, int64_t bytes)
{
    if (zc_ceil_div(bytes, 32) < ZC_SM90_LINE / 32)
        zc_gen_define(g, "LINE_PARTS", "%d", (int)zc_ceil_div(bytes, 32));
}

/* Bytes of a pixel's channels, of which these weights [Cout][taps ...][Cin] are. */
static int64_t pixel_bytes(const zc_tensor *w)
{
    return w->dims[w->rank - 1] * (int64_t)zc_dtype_bits(w->dtype) / 8;
}

int64_t zc_gen_conv_second(zc_gen *g, int64_t piece)
{
    zc_conv_second s;
    zc_tensor w;
    if (!zc_conv_second_of(g->step->op, g->attrs, &s)) return 0;
    if (!zc_gen_static(zc_gen_in(g, s.w)) || !zc_conv_window_fits(&s.a, 2, (int64_t[]){1, 1}))
        return -1;
    zc_gen_tensor(zc_gen_in(g, s.w), &w);
    if (w.dims[3] <= 0 || w.dims[3] % piece) return -1;
    const int64_t steps = zc_ceil_div(pixel_bytes(&w), ZC_SM90_LINE);
    zc_gen_define(g, "PAIR", "%d", (int)steps);
    for (int i = 0; i < 2; i++)
        zc_gen_define(g, i ? "PAIR_STRIDE2" : "PAIR_STRIDE1", "%d", (int)zc_window_stride(&s.a, i));
    return steps;
}

void zc_gen_patches(zc_gen *g, const zc_window_attrs *a, const zc_tensor *w)
{
    const int axes = w->rank - 2;
    zc_conv_second s;
    const bool pair = zc_conv_second_of(g->step->op, g->attrs, &s); /* the second are patches */
    const bool product = zc_conv_is_product(a, axes, w->dims + 1);
    int64_t depth = pixel_bytes(w);
    if (pair) {
        zc_tensor second;
        zc_gen_tensor(zc_gen_in(g, s.w), &second);
        if (pixel_bytes(&second) > depth) depth = pixel_bytes(&second);
    }
    zc_gen_line_parts(g, depth);
    if (!product || pair) zc_gen_define(g, "SIDES", "%d", axes);
    if (product) return;
    if (axes > 1) zc_gen_define(g, "ACROSS", "%d", (int)w->dims[axes]);
    if (axes > 2) zc_gen_define(g, "DOWN", "%d", (int)w->dims[axes - 1]);
    zc_gen_define(g, "PATCHES", "1");
}

void zc_gen_band(zc_gen *g, int weights)
{
    const zc_pvalue *x = zc_gen_in(g, 0), *w = zc_gen_in(g, weights);
    if (!zc_conv_banded(g->step->op, g->attrs)) return;
    const zc_conv_band b =
        zc_conv_band_of(g->step->op, g->attrs, x->dims[x->rank - 1].k, w->dims[0].k);
    zc_gen_define(g, "BAND_IN", "%d", (int)b.in);
    zc_gen_define(g, "BAND_OUT", "%d", (int)b.out);
    zc_gen_define(g, "BAND_PIECE", "%d", (int)b.piece);
}

/* ---- the launch ---- */

zc_tensor_box zc_conv_patches(const zc_tensor *x, int64_t pitch, const zc_window *w, bool product,
                              int64_t pixels, int tile)
{
    zc_tensor_box b = zc_sm90_box(x->data, x->dtype, x->dims[x->rank - 1], pixels, 1, pitch, 0);
    b.box[1] = (uint32_t)tile;
    if (product) return b;
    b.rank = w->axes + 2;
    b.pixels = (uint32_t)tile;
    b.strides[1] = pitch * (int64_t)zc_dtype_bits(x->dtype) / 8;
    for (int i = 0; i < w->axes; i++) { /* innermost first */
        int side = w->axes - 1 - i;
        b.strides[2 + i] = b.strides[1 + i] * w->in[side];
        b.dims[1 + i] = w->in[side];
        b.first[i] = (int)-w->begin[side];
        b.beyond[i] = (int)(w->end[side] - (w->kernel[side] - 1) * w->dilation[side]);
        b.step[i] = (int)w->stride[side];
    }
    b.dims[1 + w->axes] = x->dims[0];
    return b;
}

zc_tensor_box zc_conv_weights_box(const zc_tensor *weights, int channels, int dealt)
{
    const int64_t depth = weights->dims[weights->rank - 1];
    const int64_t taps = zc_dims_span(weights->dims, 1, weights->rank - 1);
    zc_tensor_box b = zc_sm90_box(weights->data, weights->dtype, depth, weights->dims[0], taps,
                                  taps * depth, depth);
    zc_sm90_deal(&b, channels, dealt);
    return b;
}

/* Do images with so many channels fit the weights? */
static bool channels_fit(const zc_launch *l, int64_t channels, const zc_tensor *w)
{
    const int64_t depth = w->dims[w->rank - 1], columns = zc_conv_banded(l->op, l->attrs);
    const int64_t group = zc_conv_groups(l->op, l->attrs);
    if (!columns) return channels == depth;
    if (columns < 1 || group < 1 || channels < group || w->dims[0] < group || channels % group ||
        w->dims[0] % group)
        return false;
    const zc_conv_band band = zc_conv_band_of(l->op, l->attrs, channels, w->dims[0]);
    return depth == zc_conv_band_depth(&band);
}

zc_status zc_launch_conv_check(zc_launch *l, const zc_tensor *w, int bias)
{
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    const int last = x->rank - 1;
    bool fits =
        last >= 2 && w->rank == x->rank && y->rank == x->rank && x->dims[0] == y->dims[0] &&
        channels_fit(l, x->dims[last], w) && y->dims[last] == w->dims[0] &&
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
    zc_window_resolve(&a, w->rank - 2, l->in[0].dims + 1, l->out[0].dims + 1, w->dims + 1, window);
    return zc_launch_window(l, window, out);
}

zc_status zc_launch_conv_maps(zc_launch *l, const zc_tensor *weights, const zc_window *w,
                              int pixels, int channels, int dealt, struct zc_gemm_sm90_params *p)
{
    zc_window_attrs a;
    int64_t group;
    zc_window_attrs_of(l->op, l->attrs, &a, &group);
    int64_t depth = weights->dims[w->axes + 1];
    zc_tensor_box x = zc_conv_patches(&l->in[0], zc_launch_in_pitch(l, 0), w,
                                      zc_conv_is_product(&a, w->axes, w->kernel), p->g.m, pixels);
    zc_tensor_box b = zc_conv_weights_box(weights, channels, dealt);
    p->by_lines = zc_divisor_of(
        zc_ceil_div(depth * (int64_t)zc_dtype_bits(weights->dtype) / 8, ZC_SM90_LINE));
    for (int i = 0; i < w->axes; i++) p->by_side[i] = zc_divisor_of(w->out[w->axes - 1 - i]);
    ZC_TRY(zc_launch_tensor_map(l, &x, &p->a));
    return zc_launch_tensor_map(l, &b, &p->b);
}

zc_status zc_launch_conv_second(zc_launch *l, int pixels, int channels, int dealt,
                                struct zc_gemm_sm90_params *p)
{
    zc_conv_second s;
    if (!zc_conv_second_of(l->op, l->attrs, &s)) return ZC_OK;
    const zc_tensor *z = &l->in[s.x];
    zc_window w = {.axes = 2, .kernel = {1, 1}, .dilation = {1, 1}};
    for (int i = 0; i < 2; i++) {
        w.in[i] = z->dims[1 + i];
        w.stride[i] = zc_window_stride(&s.a, i);
    }
    const int64_t pitch = zc_launch_in_pitch(l, s.x);
    const zc_tensor_box x = zc_conv_patches(z, pitch, &w, false, p->g.m, pixels);
    const zc_tensor_box b = zc_conv_weights_box(&l->in[s.w], channels, dealt);
    ZC_TRY(zc_launch_tensor_map(l, &x, &p->second_a));
    return zc_launch_tensor_map(l, &b, &p->second_b);
}
