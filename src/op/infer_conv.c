/* Types and shapes of convolutions. */
#include "op/activation.h"
#include "op/infer_common.h"
#include "op/nhwc.h"
#include "op/window.h"

/* ---- element types ---- */

/* All inputs of one float type. */
zc_status zc_dt_conv(zc_infer *f)
{
    ZC_TRY(zc_infer_need_float(f, 0));
    for (int i = 1; i < f->nin; i++) ZC_TRY(zc_infer_need_alike(f, 0, i));
    return zc_infer_set_dtype(f, f->in[0].type.dtype);
}

zc_status zc_dt_conv_integer(zc_infer *f)
{
    ZC_TRY(zc_infer_need_8bit(f, 0));
    ZC_TRY(zc_infer_need_8bit(f, 1));
    ZC_TRY(zc_infer_need_alike(f, 0, 2));
    ZC_TRY(zc_infer_need_alike(f, 1, 3));
    return zc_infer_set_dtype(f, ZC_I32);
}

zc_status zc_dt_qlinear_conv(zc_infer *f)
{
    ZC_TRY(zc_infer_need_8bit(f, 0));
    ZC_TRY(zc_infer_need_8bit(f, 3));
    ZC_TRY(zc_infer_need_8bit(f, 7));
    ZC_TRY(zc_infer_need_alike(f, 0, 2));
    ZC_TRY(zc_infer_need_alike(f, 3, 5));
    ZC_TRY(zc_infer_need_float(f, 1));
    ZC_TRY(zc_infer_need_float(f, 4));
    ZC_TRY(zc_infer_need_float(f, 6));
    if (zc_in_present(f, 8) && f->in[8].type.dtype != ZC_I32)
        return zc_infer_fail(f, "bias needs type i32 (got %s)", zc_dtype_name(f->in[8].type.dtype));
    return zc_infer_set_dtype(f, f->in[7].type.dtype);
}

/* What `run` says of one of the two convolutions of QLinearConvPair, QLinearConvChain or
 * QLinearConvNext; first: of what the second one reads. */
static zc_status half_of(zc_infer *f, bool second, const zc_operand *first,
                         zc_status (*run)(zc_infer *), zc_operand *out)
{
    const zc_attrs_QLinearConv attrs = zc_conv_half_attrs(f->op, f->attrs, second);
    const int *at = zc_conv_half_inputs(f->op, second);
    zc_operand in[ZC_QLINEAR_CONV_INPUTS] = {0};
    zc_infer inner = *f;
    for (int i = 0; i < ZC_QLINEAR_CONV_INPUTS; i++)
        if (at[i] < f->nin) in[i] = at[i] < 0 ? *first : f->in[at[i]];
    inner.op = ZC_OP_QLinearConv;
    inner.info = zc_op_get(inner.op);
    inner.attrs = &attrs;
    inner.nin = ZC_QLINEAR_CONV_INPUTS;
    inner.nout = 1;
    inner.in = in;
    inner.out = out;
    return run(&inner);
}

/* The type of that byte of two. */
static zc_status byte_of(zc_infer *f, const char *sum, zc_operand both[2], zc_operand *out)
{
    const zc_attrs_Pointwise attrs = {.expr = sum};
    zc_infer inner = *f;
    inner.op = ZC_OP_Pointwise;
    inner.info = zc_op_get(inner.op);
    inner.attrs = &attrs;
    inner.nin = 2;
    inner.nout = 1;
    inner.in = both;
    inner.out = out;
    ZC_TRY(zc_dt_pointwise(&inner));
    if (out->type.dtype == ZC_U8 || out->type.dtype == ZC_I8) return ZC_OK;
    return zc_infer_fail(f, "the sum gives %s, need bytes", zc_dtype_name(out->type.dtype));
}

zc_status zc_dt_qlinear_conv_pair(zc_infer *f)
{
    zc_operand both[2] = {0};
    for (int i = 0; i < 2; i++) ZC_TRY(half_of(f, i == 1, &both[0], zc_dt_qlinear_conv, &both[i]));
    return byte_of(f, ZC_ATTRS(f, QLinearConvPair)->sum, both, &f->out[0]);
}

zc_status zc_dt_qlinear_conv_chain(zc_infer *f)
{
    zc_operand both[2] = {0};
    for (int i = 0; i < 2; i++) ZC_TRY(half_of(f, i == 1, &both[0], zc_dt_qlinear_conv, &both[i]));
    return zc_infer_set_dtype(f, both[1].type.dtype);
}

zc_status zc_dt_qlinear_conv_next(zc_infer *f)
{
    const char *sum = ZC_ATTRS(f, QLinearConvNext)->sum;
    zc_operand both[2] = {0};
    ZC_TRY(half_of(f, false, NULL, zc_dt_qlinear_conv, &both[0]));
    f->out[0].type.dtype = both[0].type.dtype;
    if (zc_in_present(f, ZC_IN_QLinearConvNext_residual) != (sum != NULL))
        return zc_infer_fail(f, "the residual and attribute 'sum' need each other");
    if (sum) {
        both[1] = f->in[ZC_IN_QLinearConvNext_residual];
        ZC_TRY(byte_of(f, sum, both, &f->out[0]));
    }
    ZC_TRY(half_of(f, true, &f->out[0], zc_dt_qlinear_conv, &both[1]));
    zc_infer_out_dtype(f, 1, both[1].type.dtype);
    return ZC_OK;
}

/* ---- convolutions ---- */

static zc_status check_bias(zc_infer *f, int i, zc_dim channels)
{
    if (!zc_in_present(f, i)) return ZC_OK;
    ZC_TRY(zc_infer_need_rank(f, i, 1, 1));
    return zc_infer_same(f, zc_in(f, i)->dims[0], channels, "bias length and output channels");
}

static zc_status check_group(zc_infer *f, const char *name, int64_t group, zc_dim channels,
                             const char *what)
{
    if (group < 1)
        return zc_infer_fail(f, "%s out of range (got %lld, need at least 1)", name,
                             (long long)group);
    if (zc_dim_is_const(channels) && channels.k % group != 0) {
        return zc_infer_fail(f, "%s must be a multiple of %s (got %lld and %lld)", what, name,
                             (long long)channels.k, (long long)group);
    }
    return ZC_OK;
}

/* x at input xi and w[M, C/group, ...] at wi: ranks, kernel_shape, channels, attributes. */
static zc_status check_conv(zc_infer *f, int xi, int wi, const zc_window_attrs *a, int64_t group)
{
    ZC_TRY(zc_infer_need_rank(f, xi, 3, ZC_MAX_RANK));
    const zc_type *x = zc_in(f, xi), *w = zc_in(f, wi);
    ZC_TRY(zc_infer_need_rank(f, wi, x->rank, x->rank));
    ZC_TRY(zc_window_check(f, a, x->rank - 2));
    for (int i = 0; i < a->kernel.n; i++)
        ZC_TRY(zc_infer_same(f, zc_dim_const(a->kernel.v[i]), w->dims[i + 2],
                             "kernel_shape and weight dimensions"));
    ZC_TRY(check_group(f, "group", group, w->dims[0], "output channels"));
    zc_dim need = zc_dim_mul(f->dims, w->dims[1], zc_dim_const(group));
    return zc_infer_same(f, x->dims[1], need, "input channels and weight channels times group");
}

static zc_status conv(zc_infer *f, int xi, int wi, int bias, const zc_window_attrs *a,
                      int64_t group)
{
    ZC_TRY(check_conv(f, xi, wi, a, group));
    const zc_type *x = zc_in(f, xi), *w = zc_in(f, wi);
    if (bias >= 0) ZC_TRY(check_bias(f, bias, w->dims[0]));
    zc_dim out[ZC_MAX_RANK] = {x->dims[0], w->dims[0]};
    ZC_TRY(zc_window_out(f, a, x, w->dims + 2, out + 2));
    return zc_infer_set(f, 0, x->rank, out);
}

/* The same; `last`: x and the result are channels last; `taps_first`: weights, too. */
static zc_status conv_last(zc_infer *f, int xi, int wi, int bias, const zc_window_attrs *a,
                           int64_t group, bool last, bool taps_first)
{
    enum { MOST = 9 };
    zc_operand in[MOST],
        out = {.type = {.dtype = f->out[0].type.dtype, .rank = -1}, .vals = {.n = -1}};
    zc_infer inner = *f;
    zc_dim dims[ZC_MAX_RANK];
    if (!last && !taps_first && !zc_conv_banded(f->op, f->attrs))
        return conv(f, xi, wi, bias, a, group);
    ZC_TRY(zc_infer_need_rank(f, xi, 3, 5));
    const int rank = zc_in(f, xi)->rank;
    ZC_TRY(zc_infer_need_rank(f, wi, rank, rank));
    for (int i = 0; i < MOST && i < f->nin; i++) in[i] = f->in[i];
    zc_type w = *zc_in(f, wi);
    ZC_TRY(zc_infer_band(f, xi, &w));
    for (int i = 0; i < rank; i++) {
        const int at = zc_nhwc_axis(rank, i);
        if (last) in[xi].type.dims[i] = zc_in(f, xi)->dims[at];
        if (taps_first) in[wi].type.dims[i] = w.dims[at];
    }
    inner.in = in;
    inner.out = &out;
    ZC_TRY(conv(&inner, xi, wi, bias, a, group));
    for (int i = 0; i < rank; i++) dims[last ? zc_nhwc_axis(rank, i) : i] = out.type.dims[i];
    return zc_infer_set(f, 0, rank, dims);
}

zc_status zc_infer_conv(zc_infer *f)
{
    const zc_attrs_Conv *at = ZC_ATTRS(f, Conv);
    zc_window_attrs a = ZC_WINDOW_ATTRS(at);
    a.auto_pad = at->auto_pad;
    return conv(f, 0, 1, 2, &a, at->group);
}

/* A per-tensor parameter, or with channels one a channel. */
static zc_status check_quant(zc_infer *f, int i, const zc_dim *channels)
{
    if (!zc_in_present(f, i)) return ZC_OK;
    const zc_type *t = zc_in(f, i);
    if (t->rank > 1)
        return zc_infer_fail(f, "input %d has a wrong rank (got %d, need 0 or 1)", i, t->rank);
    if (t->rank == 0 || zc_dim_is(t->dims[0], 1)) return ZC_OK;
    return zc_infer_same(f, t->dims[0], channels ? *channels : zc_dim_const(1),
                         channels ? "scale or zero point length and output channels"
                                  : "scale or zero point length and 1");
}

zc_status zc_infer_conv_integer(zc_infer *f)
{
    const zc_attrs_ConvInteger *at = ZC_ATTRS(f, ConvInteger);
    zc_window_attrs a = ZC_WINDOW_ATTRS(at);
    a.auto_pad = at->auto_pad;
    ZC_TRY(conv_last(f, 0, 1, -1, &a, at->group, at->channels_last != 0, at->taps_first != 0));
    ZC_TRY(check_quant(f, 2, NULL));
    return check_quant(f, 3, &zc_in(f, 1)->dims[0]);
}

zc_status zc_infer_qlinear_conv(zc_infer *f)
{
    const zc_attrs_QLinearConv *at = ZC_ATTRS(f, QLinearConv);
    zc_window_attrs a = ZC_WINDOW_ATTRS(at);
    a.auto_pad = at->auto_pad;
    ZC_TRY(conv_last(f, 0, 3, 8, &a, at->group, at->channels_last != 0, at->taps_first != 0));
    for (int i = 1; i < 8; i++) {
        bool weight = i == 4 || i == 5;
        if (i != 3) ZC_TRY(check_quant(f, i, weight ? &zc_in(f, 3)->dims[0] : NULL));
    }
    if (at->pool_shape.n && (!at->channels_last || !at->taps_first || zc_in(f, 0)->rank != 4))
        return zc_infer_fail(f, "only channels last over two axes, of weights too, are pooled");
    return zc_infer_conv_pool(f);
}

/* The weights of that one of both, of a result of this rank. */
static zc_status check_points(zc_infer *f, int i, int rank, const char *which)
{
    const zc_type *v = zc_in(f, i);
    if (rank != v->rank)
        return zc_infer_fail(f, "the %s convolution has a wrong rank (got %d, need %d)", which,
                             v->rank, rank);
    for (int d = 1; d < rank - 1; d++)
        if (!zc_dim_is(v->dims[d], 1))
            return zc_infer_fail(f, "the %s convolution's windows are not points", which);
    return ZC_OK;
}

zc_status zc_infer_qlinear_conv_pair(zc_infer *f)
{
    zc_operand both[2] = {{.vals = {.n = -1}}, {.vals = {.n = -1}}};
    for (int i = 0; i < 2; i++)
        ZC_TRY(half_of(f, i == 1, &both[0], zc_infer_qlinear_conv, &both[i]));
    const zc_type *y = &both[0].type;
    ZC_TRY(check_points(f, ZC_IN_QLinearConvPair_v, y->rank, "second"));
    for (int d = 0; d < y->rank; d++)
        ZC_TRY(
            zc_infer_same(f, both[1].type.dims[d], y->dims[d], "dimensions of both convolutions"));
    return zc_infer_set(f, 0, y->rank, y->dims);
}

zc_status zc_infer_qlinear_conv_chain(zc_infer *f)
{
    zc_operand both[2] = {{.vals = {.n = -1}}, {.vals = {.n = -1}}};
    ZC_TRY(half_of(f, false, NULL, zc_dt_qlinear_conv, &both[0]));
    for (int i = 0; i < 2; i++)
        ZC_TRY(half_of(f, i == 1, &both[0], zc_infer_qlinear_conv, &both[i]));
    const zc_type *y = &both[1].type;
    ZC_TRY(check_points(f, ZC_IN_QLinearConvChain_v, y->rank, "second"));
    return zc_infer_set(f, 0, y->rank, y->dims);
}

zc_status zc_infer_qlinear_conv_next(zc_infer *f)
{
    zc_operand half = {.vals = {.n = -1}};
    ZC_TRY(half_of(f, false, NULL, zc_infer_qlinear_conv, &half));
    ZC_TRY(check_points(f, ZC_IN_QLinearConvNext_w, half.type.rank, "first"));
    ZC_TRY(zc_infer_set(f, 0, half.type.rank, half.type.dims));
    ZC_TRY(zc_infer_need_shape(f, ZC_IN_QLinearConvNext_residual, half.type.rank, half.type.dims,
                               "the residual"));
    ZC_TRY(half_of(f, true, &f->out[0], zc_infer_qlinear_conv, &half));
    ZC_TRY(check_points(f, ZC_IN_QLinearConvNext_v, half.type.rank, "second"));
    return zc_infer_set(f, 1, half.type.rank, half.type.dims);
}

zc_status zc_infer_scaled_conv(zc_infer *f)
{
    const zc_attrs_ScaledConv *at = ZC_ATTRS(f, ScaledConv);
    zc_window_attrs a = ZC_WINDOW_ATTRS(at);
    a.auto_pad = at->auto_pad;
    ZC_TRY(conv_last(f, 0, 1, ZC_IN_ScaledConv_bias, &a, at->group, at->channels_last != 0,
                     at->taps_first != 0));
    return check_bias(f, ZC_IN_ScaledConv_scale, zc_in(f, 1)->dims[0]);
}

/* ---- transposed convolution ---- */

/* stride * (in - 1) + output_padding + span: the size before padding is cut off. */
static zc_dim transposed_full(zc_infer *f, const zc_window_attrs *a, zc_ints extra, int i,
                              zc_dim in, zc_dim kernel)
{
    zc_dims *d = f->dims;
    zc_dim one = zc_dim_const(1), stride = zc_dim_const(zc_window_stride(a, i));
    zc_dim gap = zc_dim_const(zc_window_dilation(a, i));
    zc_dim span = zc_dim_add(d, zc_dim_mul(d, zc_dim_sub(d, kernel, one), gap), one);
    zc_dim starts = zc_dim_mul(d, stride, zc_dim_sub(d, in, one));
    return zc_dim_add(d, zc_dim_add(d, starts, span), zc_dim_const(extra.n ? extra.v[i] : 0));
}

static zc_dim transposed_dim(zc_infer *f, const zc_attrs_ConvTranspose *at,
                             const zc_window_attrs *a, int axes, int i, zc_dim in, zc_dim kernel)
{
    zc_auto_pad mode;
    zc_auto_pad_parse(a->auto_pad, &mode);
    if (at->output_shape.n) return zc_dim_const(at->output_shape.v[i]);
    if (mode == ZC_PAD_SAME_UPPER || mode == ZC_PAD_SAME_LOWER)
        return zc_dim_mul(f->dims, in, zc_dim_const(zc_window_stride(a, i)));
    zc_dim full = transposed_full(f, a, at->output_padding, i, in, kernel);
    int64_t cut = zc_window_pad(a, axes, i, 0) + zc_window_pad(a, axes, i, 1);
    return mode == ZC_PAD_VALID ? full : zc_dim_sub(f->dims, full, zc_dim_const(cut));
}

static zc_status check_transposed(zc_infer *f, const zc_attrs_ConvTranspose *at,
                                  const zc_window_attrs *a)
{
    ZC_TRY(zc_infer_need_rank(f, 0, 3, ZC_MAX_RANK));
    const zc_type *x = zc_in(f, 0), *w = zc_in(f, 1);
    int axes = x->rank - 2;
    ZC_TRY(zc_infer_need_rank(f, 1, x->rank, x->rank));
    ZC_TRY(zc_window_check(f, a, axes));
    ZC_TRY(zc_window_check_list(f, "output_padding", at->output_padding, axes, 0));
    ZC_TRY(zc_window_check_list(f, "output_shape", at->output_shape, axes, 0));
    for (int i = 0; i < a->kernel.n; i++)
        ZC_TRY(zc_infer_same(f, zc_dim_const(a->kernel.v[i]), w->dims[i + 2],
                             "kernel_shape and weight dimensions"));
    ZC_TRY(check_group(f, "group", at->group, x->dims[1], "input channels"));
    return zc_infer_same(f, x->dims[1], w->dims[0], "input channels and weight channels");
}

zc_status zc_infer_conv_transpose(zc_infer *f)
{
    const zc_attrs_ConvTranspose *at = ZC_ATTRS(f, ConvTranspose);
    zc_window_attrs a = ZC_WINDOW_ATTRS(at);
    a.auto_pad = at->auto_pad;
    ZC_TRY(check_transposed(f, at, &a));
    const zc_type *x = zc_in(f, 0), *w = zc_in(f, 1);
    zc_dim out[ZC_MAX_RANK] = {x->dims[0],
                               zc_dim_mul(f->dims, w->dims[1], zc_dim_const(at->group))};
    ZC_TRY(check_bias(f, 2, out[1]));
    for (int i = 0; i < x->rank - 2; i++) {
        zc_dim kernel = w->dims[i + 2];
        if (zc_dim_is_const(kernel) && (kernel.k < 1 || kernel.k > ZC_WINDOW_LIMIT)) {
            return zc_infer_fail(f, "kernel size out of range on axis %d (got %lld, need [1, %d])",
                                 i + 2, (long long)kernel.k, ZC_WINDOW_LIMIT);
        }
        out[i + 2] = transposed_dim(f, at, &a, x->rank - 2, i, x->dims[i + 2], kernel);
        if (zc_dim_is(x->dims[i + 2], 0) && !at->output_shape.n) out[i + 2] = zc_dim_const(0);
    }
    return zc_infer_set(f, 0, x->rank, out);
}

/* ---- deformable convolution, column to image ---- */

static zc_status check_offsets(zc_infer *f, int i, int64_t groups, int per_tap, const zc_type *w,
                               const zc_dim *out)
{
    if (!zc_in_present(f, i)) return ZC_OK;
    ZC_TRY(zc_infer_need_rank(f, i, w->rank, w->rank));
    const zc_type *t = zc_in(f, i);
    zc_dim taps = zc_infer_span(f, w, 2, w->rank), per = zc_dim_const(per_tap);
    zc_dim need = zc_dim_mul(f->dims, zc_dim_mul(f->dims, taps, per), zc_dim_const(groups));
    ZC_TRY(
        zc_infer_same(f, t->dims[1], need, "channels of offset or mask and offset_group * taps"));
    for (int d = 0; d < w->rank; d++)
        if (d != 1)
            ZC_TRY(zc_infer_same(f, t->dims[d], out[d], "offset or mask and output dimensions"));
    return ZC_OK;
}

zc_status zc_infer_deform_conv(zc_infer *f)
{
    const zc_attrs_DeformConv *at = ZC_ATTRS(f, DeformConv);
    zc_window_attrs a = ZC_WINDOW_ATTRS(at);
    ZC_TRY(conv(f, 0, 1, 3, &a, at->group));
    const zc_type *x = zc_in(f, 0), *w = zc_in(f, 1);
    ZC_TRY(check_group(f, "offset_group", at->offset_group, x->dims[1], "input channels"));
    const zc_dim *out = f->out[0].type.dims;
    ZC_TRY(check_offsets(f, 2, at->offset_group, x->rank - 2, w, out));
    return check_offsets(f, 4, at->offset_group, 1, w, out);
}

/* The number of columns must be that of window positions. */
static zc_status check_columns(zc_infer *f, const zc_window_attrs *a, int axes,
                               const zc_vals *image, const zc_vals *block)
{
    zc_type padded = {.rank = axes + 2};
    zc_dim positions[ZC_WINDOW_AXES], all = zc_dim_const(1);
    for (int i = 0; i < axes; i++) padded.dims[i + 2] = image->v[i];
    ZC_TRY(zc_window_out(f, a, &padded, block->v, positions));
    for (int i = 0; i < axes; i++) all = zc_dim_mul(f->dims, all, positions[i]);
    return zc_infer_same(f, zc_in(f, 0)->dims[2], all, "columns and window positions");
}

zc_status zc_infer_col2im(zc_infer *f)
{
    const zc_attrs_Col2Im *at = ZC_ATTRS(f, Col2Im);
    zc_window_attrs a = {.strides = at->strides, .pads = at->pads, .dilations = at->dilations};
    ZC_TRY(zc_infer_need_rank(f, 0, 3, 3));
    int axes = zc_infer_vector_len(f, 1);
    if (axes < 0) axes = zc_infer_vector_len(f, 2);
    if (axes < 0) {
        zc_infer_unknown(f, 0);
        return ZC_OK;
    }
    if (axes < 1 || axes > ZC_WINDOW_AXES)
        return zc_infer_fail(f, "image_shape has a wrong length (got %d, need 1 to %d)", axes,
                             ZC_WINDOW_AXES);
    ZC_TRY(zc_window_check(f, &a, axes));
    const zc_vals *image = &f->in[1].vals, *block = &f->in[2].vals;
    if (block->n >= 0 && block->n != axes)
        return zc_infer_fail(f, "block_shape has a wrong length (got %d, need %d)", block->n, axes);
    if (image->n < 0 || block->n < 0) return zc_infer_set(f, 0, axes + 2, NULL);
    const zc_type *x = zc_in(f, 0);
    zc_dim taps = zc_dim_const(1), out[ZC_MAX_RANK] = {x->dims[0]};
    for (int i = 0; i < axes; i++) taps = zc_dim_mul(f->dims, taps, block->v[i]);
    for (int i = 0; i < axes; i++) out[i + 2] = image->v[i];
    ZC_TRY(check_columns(f, &a, axes, image, block));
    if (zc_dim_is_const(taps) && zc_dim_is_const(x->dims[1]) && x->dims[1].k % taps.k != 0) {
        return zc_infer_fail(f, "rows must be a multiple of the block size (got %lld and %lld)",
                             (long long)x->dims[1].k, (long long)taps.k);
    }
    out[1] = zc_dim_div(f->dims, x->dims[1], taps);
    return zc_infer_set(f, 0, axes + 2, out);
}
