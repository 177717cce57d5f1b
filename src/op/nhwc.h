/* Channels-last forms of operations: what they are in ONNX's channels-first terms. */
#ifndef ZC_OP_NHWC_H
#define ZC_OP_NHWC_H

#include "op/conv_band.h"
#include "op/window.h"

/* The attributes of ConvNhwc, ConvImage and the poolings as those of the channels-first operations.
 */
#define ZC_NCHW_CONV(a)                                                                            \
    {                                                                                              \
        .auto_pad = (a)->auto_pad, .dilations = (a)->dilations, .group = (a)->group,               \
        .kernel_shape = (a)->kernel_shape, .pads = (a)->pads, .strides = (a)->strides              \
    }

static inline zc_attrs_Conv zc_nchw_conv(const zc_attrs_ConvNhwc *a)
{
    return (zc_attrs_Conv)ZC_NCHW_CONV(a);
}

/* The windows of ConvNhwc, with its phases. */
static inline zc_window_attrs zc_nhwc_window(const zc_attrs_ConvNhwc *a)
{
    zc_window_attrs w = ZC_WINDOW_ATTRS(a);
    w.auto_pad = a->auto_pad;
    w.phases = a->phases;
    w.late = a->late;
    return w;
}

static inline zc_attrs_Conv zc_nchw_conv_image(const zc_attrs_ConvImage *a)
{
    return (zc_attrs_Conv)ZC_NCHW_CONV(a);
}

/* The two convolutions of ConvPair: of x and w, of z and v. */
static inline zc_attrs_Conv zc_nchw_conv_first(const zc_attrs_ConvPair *a)
{
    return (zc_attrs_Conv){.auto_pad = a->auto_pad,
                           .dilations = a->dilations,
                           .group = 1,
                           .kernel_shape = a->kernel_shape,
                           .pads = a->pads,
                           .strides = a->strides};
}

static inline zc_attrs_Conv zc_nchw_conv_second(const zc_attrs_ConvPair *a)
{
    return (zc_attrs_Conv){.auto_pad = "NOTSET", .group = 1, .strides = a->second_strides};
}

static inline zc_attrs_Conv zc_nchw_qlinear_conv(const zc_attrs_QLinearConv *a)
{
    return (zc_attrs_Conv)ZC_NCHW_CONV(a);
}

/* Is the operation two QLinearConv? */
static inline bool zc_conv_has_halves(zc_op op)
{
    return op == ZC_OP_QLinearConvPair || op == ZC_OP_QLinearConvChain ||
           op == ZC_OP_QLinearConvNext;
}

/* Which inputs of such an operation are those of one of both, in QLinearConv's order; -1: what the
 * first one gives. */
enum { ZC_QLINEAR_CONV_INPUTS = 9 };
static inline const int *zc_conv_half_inputs(zc_op op, bool second)
{
    static const int pair[2][ZC_QLINEAR_CONV_INPUTS] = {
        {0, 1, 2, 3, 4, 5, 6, 7, ZC_IN_QLinearConvPair_bias},
        {8, 9, 10, 11, 12, 13, 14, 15, ZC_IN_QLinearConvPair_second_bias}};
    static const int chain[2][ZC_QLINEAR_CONV_INPUTS] = {
        {0, 1, 2, 3, 4, 5, 6, 7, ZC_IN_QLinearConvChain_bias},
        {-1, 6, 7, 8, 9, 10, 11, 12, ZC_IN_QLinearConvChain_second_bias}};
    static const int next[2][ZC_QLINEAR_CONV_INPUTS] = {
        {0, 1, 2, 3, 4, 5, 6, 7, ZC_IN_QLinearConvNext_bias},
        {-1, 13, 14, 8, 9, 10, 11, 12, ZC_IN_QLinearConvNext_second_bias}};
    return op == ZC_OP_QLinearConvChain  ? chain[second]
           : op == ZC_OP_QLinearConvNext ? next[second]
                                         : pair[second];
}

#define ZC_FIRST_HALF(a)                                                                           \
    {                                                                                              \
        .auto_pad = (a)->auto_pad, .channels_last = 1, .dilations = (a)->dilations, .group = 1,    \
        .kernel_shape = (a)->kernel_shape, .pads = (a)->pads, .pool_auto_pad = "NOTSET",           \
        .strides = (a)->strides, .taps_first = 1                                                   \
    }

static inline zc_attrs_QLinearConv zc_half_of_points(zc_ints strides)
{
    return (zc_attrs_QLinearConv){.auto_pad = "NOTSET",
                                  .channels_last = 1,
                                  .group = 1,
                                  .pool_auto_pad = "NOTSET",
                                  .strides = strides,
                                  .taps_first = 1};
}

/* The attributes of that QLinearConv. */
static inline zc_attrs_QLinearConv zc_conv_half_attrs(zc_op op, const void *attrs, bool second)
{
    const zc_attrs_QLinearConvPair *pair = attrs;
    const zc_attrs_QLinearConvChain *chain = attrs;
    if (op == ZC_OP_QLinearConvPair)
        return second ? zc_half_of_points(pair->second_strides)
                      : (zc_attrs_QLinearConv)ZC_FIRST_HALF(pair);
    if (op == ZC_OP_QLinearConvChain && !second) return (zc_attrs_QLinearConv)ZC_FIRST_HALF(chain);
    return zc_half_of_points((zc_ints){0});
}

/* The byte that QLinearConvPair or QLinearConvNext makes of two, and inputs that these have the
 * types of; NULL: none. */
static inline const char *zc_conv_sum(zc_op op, const void *attrs, int like[2])
{
    const zc_attrs_QLinearConvPair *pair = attrs;
    const zc_attrs_QLinearConvNext *next = attrs;
    const bool is_next = op == ZC_OP_QLinearConvNext;
    if (!is_next && op != ZC_OP_QLinearConvPair) return NULL;
    like[0] = is_next ? ZC_IN_QLinearConvNext_h_zero : ZC_IN_QLinearConvPair_x0_zero;
    like[1] = is_next ? ZC_IN_QLinearConvNext_residual : ZC_IN_QLinearConvPair_x1_zero;
    return is_next ? next->sum : pair->sum;
}

/* The input whose type a convolution's result has before an epilogue or a sum; -1: its output's. */
static inline int zc_conv_plain_like(zc_op op)
{
    return op == ZC_OP_QLinearConv        ? (int)ZC_IN_QLinearConv_y_zero
           : op == ZC_OP_QLinearConvChain ? (int)ZC_IN_QLinearConvChain_y_zero
           : op == ZC_OP_QLinearConvPair  ? (int)ZC_IN_QLinearConvPair_x0_zero
           : op == ZC_OP_QLinearConvNext  ? (int)ZC_IN_QLinearConvNext_h_zero
                                          : -1;
}

/* Of a convolution of images: ConvImage or QLinearConv. */
static inline zc_attrs_Conv zc_nchw_image(zc_op op, const void *attrs)
{
    return op == ZC_OP_ConvImage ? zc_nchw_conv_image(attrs) : zc_nchw_qlinear_conv(attrs);
}

/* The largest of which windows a convolution (ConvImage, QLinearConv) gives; none: kernel_shape is
 * empty. */
#define ZC_NCHW_CONV_POOL(a)                                                                       \
    {                                                                                              \
        .auto_pad = (a)->pool_auto_pad, .ceil_mode = (a)->pool_ceil_mode,                          \
        .kernel_shape = (a)->pool_shape, .pads = (a)->pool_pads, .strides = (a)->pool_strides      \
    }

static inline zc_attrs_MaxPool zc_conv_pool(zc_op op, const void *attrs)
{
    if (op == ZC_OP_ConvImage)
        return (zc_attrs_MaxPool)ZC_NCHW_CONV_POOL((const zc_attrs_ConvImage *)attrs);
    if (op == ZC_OP_QLinearConv)
        return (zc_attrs_MaxPool)ZC_NCHW_CONV_POOL((const zc_attrs_QLinearConv *)attrs);
    return (zc_attrs_MaxPool){.kernel_shape = {0}};
}

/* Is its result pooled? */
static inline bool zc_conv_pools(zc_op op, const void *attrs)
{
    return zc_conv_pool(op, attrs).kernel_shape.n > 0;
}

/* Rows and columns that the convolution itself has of x, channels first (ConvImage) or last, and
 * w[OC,KH,KW,C]. */
static inline void zc_conv_sides(zc_op op, const void *attrs, const zc_tensor *x,
                                 const zc_tensor *w, int64_t sides[2])
{
    const int first = op == ZC_OP_ConvImage ? 2 : 1;
    const zc_attrs_Conv a = zc_nchw_image(op, attrs);
    zc_window_attrs window = ZC_WINDOW_ATTRS(&a);
    window.auto_pad = a.auto_pad;
    for (int i = 0; i < 2; i++)
        sides[i] = zc_window_out_size(&window, 2, i, x->dims[first + i], w->dims[1 + i]);
}

/* What the kernels of ConvImage take: w is [OC,KH,KW,C]. */
static inline bool zc_conv_image_fits(const zc_attrs_Conv *a, const zc_tensor *w)
{
    enum { CHANNELS = 4, OUT = 128, TAPS = 8, STRIDE = 4 };
    bool fits = a->group == 1 && w->dims[3] <= CHANNELS && w->dims[0] % 8 == 0 &&
                w->dims[0] <= OUT && w->dims[1] <= TAPS && w->dims[2] <= TAPS;
    for (int64_t i = 0; i < a->strides.n; i++) fits = fits && a->strides.v[i] <= STRIDE;
    for (int64_t i = 0; i < a->dilations.n; i++) fits = fits && a->dilations.v[i] == 1;
    return fits;
}

/* What they take behind it: windows of which at most four share a pixel, all of them with one. */
static inline bool zc_conv_image_pool_fits(const zc_attrs_MaxPool *a)
{
    enum { AXES = 2, KERNEL = 4, STRIDE = 4 };
    bool fits = a->kernel_shape.n == AXES;
    for (int i = 0; fits && i < AXES; i++) {
        int64_t kernel = a->kernel_shape.v[i], stride = a->strides.n ? a->strides.v[i] : 1;
        fits = kernel <= KERNEL && stride <= STRIDE && kernel <= 2 * stride;
        for (int side = 0; side < 2; side++)
            fits = fits && (!a->pads.n || a->pads.v[side * AXES + i] < kernel);
    }
    for (int64_t i = 0; i < a->dilations.n; i++) fits = fits && a->dilations.v[i] == 1;
    return fits;
}

/* Are these scales of a convolution's bytes positive, so that larger sums have larger bytes? */
static inline bool zc_scales_rise(zc_dtype dtype, const void *scales, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(zc_load_f64(dtype, scales, i) > 0)) return false;
    return true;
}

static inline zc_attrs_MaxPool zc_nchw_max_pool(const zc_attrs_MaxPoolNhwc *a)
{
    return (zc_attrs_MaxPool){.auto_pad = a->auto_pad,
                              .ceil_mode = a->ceil_mode,
                              .dilations = a->dilations,
                              .kernel_shape = a->kernel_shape,
                              .pads = a->pads,
                              .strides = a->strides};
}

static inline zc_attrs_AveragePool zc_nchw_average_pool(const zc_attrs_AveragePoolNhwc *a)
{
    return (zc_attrs_AveragePool){.auto_pad = a->auto_pad,
                                  .ceil_mode = a->ceil_mode,
                                  .count_include_pad = a->count_include_pad,
                                  .dilations = a->dilations,
                                  .kernel_shape = a->kernel_shape,
                                  .pads = a->pads,
                                  .strides = a->strides};
}

/* Are images of this convolution, and weights, channels last? */
static inline bool zc_conv_channels_last(zc_op op, const void *attrs)
{
    if (op == ZC_OP_ConvInteger) return ((const zc_attrs_ConvInteger *)attrs)->channels_last != 0;
    if (op == ZC_OP_QLinearConv) return ((const zc_attrs_QLinearConv *)attrs)->channels_last != 0;
    if (op == ZC_OP_ScaledConv) return ((const zc_attrs_ScaledConv *)attrs)->channels_last != 0;
    return op == ZC_OP_ConvNhwc || zc_conv_has_halves(op);
}

static inline bool zc_conv_taps_first(zc_op op, const void *attrs)
{
    if (op == ZC_OP_ConvInteger) return ((const zc_attrs_ConvInteger *)attrs)->taps_first != 0;
    if (op == ZC_OP_QLinearConv) return ((const zc_attrs_QLinearConv *)attrs)->taps_first != 0;
    if (op == ZC_OP_ScaledConv) return ((const zc_attrs_ScaledConv *)attrs)->taps_first != 0;
    return zc_conv_has_halves(op) ||
           (op == ZC_OP_ConvNhwc && ((const zc_attrs_ConvNhwc *)attrs)->taps_first);
}

/* The columns of the band that its weights are; 0: they are none. */
static inline int64_t zc_conv_banded(zc_op op, const void *attrs)
{
    if (op == ZC_OP_ConvInteger) return ((const zc_attrs_ConvInteger *)attrs)->band;
    if (op == ZC_OP_QLinearConv) return ((const zc_attrs_QLinearConv *)attrs)->band;
    if (op == ZC_OP_ScaledConv) return ((const zc_attrs_ScaledConv *)attrs)->band;
    return op == ZC_OP_ConvNhwc ? ((const zc_attrs_ConvNhwc *)attrs)->band : 0;
}

/* Groups of the same operations. */
static inline int64_t zc_conv_groups(zc_op op, const void *attrs)
{
    if (op == ZC_OP_ConvInteger) return ((const zc_attrs_ConvInteger *)attrs)->group;
    if (op == ZC_OP_QLinearConv) return ((const zc_attrs_QLinearConv *)attrs)->group;
    if (op == ZC_OP_ScaledConv) return ((const zc_attrs_ScaledConv *)attrs)->group;
    return op == ZC_OP_ConvNhwc ? ((const zc_attrs_ConvNhwc *)attrs)->group : 1;
}

/* Its band, of so many channels; ConvNhwc's are of 16 bits, the others' bytes. */
static inline zc_conv_band zc_conv_band_of(zc_op op, const void *attrs, int64_t in, int64_t out)
{
    const int64_t groups = zc_conv_groups(op, attrs);
    return (zc_conv_band){.columns = zc_conv_banded(op, attrs),
                          .groups = groups,
                          .in = in / groups,
                          .out = out / groups,
                          .piece = op == ZC_OP_ConvNhwc ? 8 : 16};
}

/* Axis i of the channels-first order stands here in the channels-last order of so many axes. */
static inline int zc_nhwc_axis(int rank, int i)
{
    return i == 0 ? 0 : i == 1 ? rank - 1 : i - 1;
}

/* The type of a tensor with its axes in channels-first order; no data. */
static inline zc_tensor zc_nchw_shape(const zc_tensor *t)
{
    zc_tensor r = *t;
    for (int i = 0; i < t->rank; i++) r.dims[i] = t->dims[zc_nhwc_axis(t->rank, i)];
    r.data = NULL;
    return r;
}

#endif
