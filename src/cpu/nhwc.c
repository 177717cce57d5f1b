/* Reference kernels of the channels-last operations: the channels-first ones between two
 * transposes. */
#include "cpu/nhwc.h"

#include <string.h>

#include "cpu/conv.h"
#include "op/nhwc.h"

/* to[N,B,A] = from[N,A,B] */
static void swap_axes(const zc_tensor *from, zc_tensor *to, int64_t n, int64_t a, int64_t b)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t p = 0; p < a; p++)
            for (int64_t q = 0; q < b; q++)
                zc_put(to, (i * b + q) * a + p, zc_get(from, (i * a + p) * b + q));
}

/* y[N,P,first + C] = act(from[N,C,P] + residual); y may be the residual's memory. */
static void finish(const zc_tensor *from, int64_t first, const zc_tensor *residual, bool relu,
                   zc_tensor *y)
{
    const int64_t channels = from->dims[1], all = y->dims[y->rank - 1];
    const int64_t pixels = zc_dims_span(y->dims, 1, y->rank - 1), n = zc_tensor_numel(from);
    for (int64_t i = 0; i < n; i++) {
        int64_t c = i % channels, p = i / channels % pixels, image = i / channels / pixels;
        int64_t at = (image * pixels + p) * all + first + c;
        double v = zc_get(from, (image * channels + c) * pixels + p);
        if (residual) v += zc_get(residual, at);
        zc_put(y, at, relu && v < 0 ? 0 : v);
    }
}

static zc_status room(zc_kctx *k, zc_tensor *t)
{
    size_t bytes;
    if (!zc_tensor_bytes(t, &bytes) || !(t->data = zc_scratch_get(k->scratch, bytes)))
        return zc_fail_nomem(k->diag, "transposed operand", 0);
    return ZC_OK;
}

/* A copy of t with its axes in channels-first order. */
static zc_status turned(zc_kctx *k, const zc_tensor *t, zc_tensor *out)
{
    *out = zc_nchw_shape(t);
    ZC_TRY(room(k, out));
    if (zc_tensor_numel(t))
        swap_axes(t, out, t->dims[0], zc_dims_span(t->dims, 1, t->rank - 1), t->dims[t->rank - 1]);
    return ZC_OK;
}

/* Runs the channels-first kernel on `in`, with the result `out`. */
static zc_status run_nchw(zc_kctx *k, zc_op op, const void *attrs, int nin, const zc_tensor *in,
                          zc_kernel_fn kernel, zc_tensor *out)
{
    zc_kctx inner = *k;
    inner.op = op;
    inner.info = zc_op_get(op);
    inner.attrs = attrs;
    inner.nin = nin;
    inner.nout = 1;
    inner.in = in;
    inner.out = out;
    inner.state = NULL;
    return kernel(&inner);
}

/* The same, and turns the result. */
static zc_status inner_nchw(zc_kctx *k, zc_op op, const void *attrs, int nin, const zc_tensor *in,
                            zc_kernel_fn kernel, const zc_tensor *residual, bool relu)
{
    zc_tensor *y = &k->out[0], out = zc_nchw_shape(y);
    ZC_TRY(room(k, &out));
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    ZC_TRY(run_nchw(k, op, attrs, nin, in, kernel, &out));
    finish(&out, 0, residual, relu, y);
    return ZC_OK;
}

/* The same on transposed copies of input 0 and, with `taps_first`, of input 1. */
static zc_status by_nchw(zc_kctx *k, zc_op op, const void *attrs, int nin, zc_kernel_fn kernel,
                         const zc_tensor *residual, bool relu, bool taps_first)
{
    zc_tensor in[3];
    for (int i = 0; i < nin; i++) in[i] = k->in[i];
    ZC_TRY(turned(k, &k->in[0], &in[0]));
    if (taps_first) ZC_TRY(turned(k, &k->in[1], &in[1]));
    return inner_nchw(k, op, attrs, nin, in, kernel, residual, relu);
}

/* Part number i of n along the first axis. */
static zc_tensor part_of(const zc_tensor *t, int64_t i, int64_t n)
{
    zc_tensor r = *t;
    r.dims[0] /= n;
    r.data = (char *)t->data + i * zc_tensor_numel(&r) * (int64_t)zc_dtype_bits(t->dtype) / 8;
    return r;
}

/* Padding of a phase's own convolution: as much less in front as its windows begin later. */
static void phase_pads(const zc_window_attrs *a, int axes, int64_t phase, int64_t *pads)
{
    int64_t later[ZC_WINDOW_AXES];
    zc_window_later(a, phase, later);
    for (int i = 0; i < axes; i++) {
        pads[i] = zc_window_pad(a, axes, i, 0) - later[i];
        pads[axes + i] = zc_window_pad(a, axes, i, 1) + later[i];
    }
}

/* A convolution for each phase; in: of the channels-first one. */
static zc_status by_phases(zc_kctx *k, const zc_attrs_Conv *attrs, int nin, const zc_tensor *in,
                           const zc_tensor *residual, bool relu)
{
    zc_tensor *y = &k->out[0], out = zc_nchw_shape(y), own[3] = {in[0]};
    const zc_window_attrs a = zc_nhwc_window(ZC_ATTRS(k, ConvNhwc));
    const int axes = in[0].rank - 2;
    if (!zc_window_phases_fit(&a, axes, in[1].dims[0]) || out.dims[1] != in[1].dims[0])
        return zc_kernel_fail(k, "phases do not divide the channels");
    const int64_t n = zc_window_phases(&a), channels = out.dims[1] / n;
    out.dims[1] = channels;
    ZC_TRY(room(k, &out));
    for (int64_t phase = 0; phase < n && zc_tensor_numel(y); phase++) {
        int64_t pads[2 * ZC_WINDOW_AXES];
        zc_attrs_Conv each = *attrs;
        each.pads = (zc_ints){2 * axes, pads};
        phase_pads(&a, axes, phase, pads);
        for (int i = 1; i < nin; i++)
            own[i] = zc_present(&in[i]) ? part_of(&in[i], phase, n) : in[i];
        ZC_TRY(run_nchw(k, ZC_OP_Conv, &each, nin, own, zc_k_Conv, &out));
        finish(&out, phase * channels, residual, relu, y);
    }
    return ZC_OK;
}

zc_status zc_k_ConvNhwc(zc_kctx *k)
{
    const zc_attrs_ConvNhwc *a = ZC_ATTRS(k, ConvNhwc);
    zc_attrs_Conv attrs = zc_nchw_conv(a);
    bool relu = strcmp(a->activation, "Relu") == 0;
    if (!relu && *a->activation)
        return zc_kernel_unsupported(k, "activation " ZC_NAME " of a convolution", a->activation);
    const zc_tensor *residual = k->nin > 3 && zc_present(&k->in[3]) ? &k->in[3] : NULL;
    const int nin = k->nin < 3 ? k->nin : 3;
    if (!a->band && !a->phases.n)
        return by_nchw(k, ZC_OP_Conv, &attrs, nin, zc_k_Conv, residual, relu, a->taps_first);
    zc_tensor in[3], w;
    for (int i = 0; i < nin; i++) in[i] = k->in[i];
    ZC_TRY(turned(k, &k->in[0], &in[0]));
    ZC_TRY(zc_conv_weights(k, 1, &w));
    ZC_TRY(turned(k, &w, &in[1]));
    return a->phases.n ? by_phases(k, &attrs, nin, in, residual, relu)
                       : inner_nchw(k, ZC_OP_Conv, &attrs, nin, in, zc_k_Conv, residual, relu);
}

/* x as w's type has it. */
static zc_status narrowed(zc_kctx *k, const zc_tensor *x, zc_dtype dtype, zc_tensor *out)
{
    *out = *x;
    if (x->dtype == dtype) return ZC_OK;
    out->dtype = dtype;
    ZC_TRY(room(k, out));
    for (int64_t i = 0, n = zc_tensor_numel(x); i < n; i++) zc_put_finite(out, i, zc_get(x, i));
    return ZC_OK;
}

static zc_status conv_image(zc_kctx *k)
{
    const zc_attrs_Conv attrs = zc_nchw_conv_image(ZC_ATTRS(k, ConvImage));
    zc_tensor in[3];
    for (int i = 0; i < k->nin; i++) in[i] = k->in[i];
    ZC_TRY(narrowed(k, &k->in[0], k->in[1].dtype, &in[0]));
    ZC_TRY(turned(k, &k->in[1], &in[1]));
    return inner_nchw(k, ZC_OP_Conv, &attrs, k->nin, in, zc_k_Conv, NULL, false);
}

zc_status zc_conv_pooled(zc_kctx *k, int w, zc_kernel_fn convolution)
{
    const zc_attrs_MaxPool pooling = zc_conv_pool(k->op, k->attrs);
    zc_tensor whole = k->out[0], in;
    zc_kctx first = *k;
    if (!pooling.kernel_shape.n) return convolution(k);
    zc_conv_sides(k->op, k->attrs, &k->in[0], &k->in[w], whole.dims + 1);
    ZC_TRY(room(k, &whole));
    first.out = &whole;
    ZC_TRY(convolution(&first));
    ZC_TRY(turned(k, &whole, &in));
    return inner_nchw(k, ZC_OP_MaxPool, &pooling, 1, &in, zc_k_MaxPool, NULL, false);
}

zc_status zc_k_ConvImage(zc_kctx *k)
{
    return zc_conv_pooled(k, ZC_IN_ConvImage_w, conv_image);
}

/* The sum of z's convolution and x's, whose result takes it as a residual. */
zc_status zc_k_ConvPair(zc_kctx *k)
{
    const zc_attrs_Conv first = zc_nchw_conv_first(ZC_ATTRS(k, ConvPair));
    const zc_attrs_Conv second = zc_nchw_conv_second(ZC_ATTRS(k, ConvPair));
    const zc_tensor *bias = zc_input(k, ZC_IN_ConvPair_bias);
    zc_tensor in[3], sum = k->out[0];
    zc_kctx other = *k;
    ZC_TRY(room(k, &sum));
    other.out = &sum;
    ZC_TRY(turned(k, &k->in[ZC_IN_ConvPair_z], &in[0]));
    ZC_TRY(turned(k, &k->in[ZC_IN_ConvPair_v], &in[1]));
    ZC_TRY(inner_nchw(&other, ZC_OP_Conv, &second, 2, in, zc_k_Conv, NULL, false));
    ZC_TRY(turned(k, &k->in[ZC_IN_ConvPair_x], &in[0]));
    ZC_TRY(turned(k, &k->in[ZC_IN_ConvPair_w], &in[1]));
    if (bias) in[2] = *bias;
    return inner_nchw(k, ZC_OP_Conv, &first, bias ? 3 : 2, in, zc_k_Conv, &sum, false);
}

zc_status zc_k_MaxPoolNhwc(zc_kctx *k)
{
    zc_attrs_MaxPool attrs = zc_nchw_max_pool(ZC_ATTRS(k, MaxPoolNhwc));
    return by_nchw(k, ZC_OP_MaxPool, &attrs, 1, zc_k_MaxPool, NULL, false, false);
}

zc_status zc_k_AveragePoolNhwc(zc_kctx *k)
{
    zc_attrs_AveragePool attrs = zc_nchw_average_pool(ZC_ATTRS(k, AveragePoolNhwc));
    return by_nchw(k, ZC_OP_AveragePool, &attrs, 1, zc_k_AveragePool, NULL, false, false);
}
