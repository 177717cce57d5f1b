#include "op/activation.h"
#include "op/infer_common.h"
#include "op/nhwc.h"

static zc_type nchw(const zc_type *t)
{
    zc_type r = *t;
    for (int i = 0; i < t->rank; i++) r.dims[i] = t->dims[zc_nhwc_axis(t->rank, i)];
    return r;
}

/* The channels-first operation on `in`, its result turned to channels last. */
static zc_status by_nchw(zc_infer *f, zc_op op, const void *attrs, int nin, const zc_operand *in,
                         zc_status (*infer)(zc_infer *))
{
    zc_operand out = {.type = {.dtype = f->out[0].type.dtype, .rank = -1}, .vals = {.n = -1}};
    zc_infer inner = *f;
    inner.op = op;
    inner.info = zc_op_get(op);
    inner.attrs = attrs;
    inner.nin = nin;
    inner.nout = 1;
    inner.in = in;
    inner.out = &out;
    ZC_TRY(infer(&inner));
    zc_dim dims[ZC_MAX_RANK];
    const int rank = out.type.rank;
    for (int i = 0; i < rank; i++) dims[zc_nhwc_axis(rank, i)] = out.type.dims[i];
    return zc_infer_set(f, 0, rank, dims);
}

zc_status zc_infer_band(zc_infer *f, int xi, zc_type *w)
{
    const zc_type *x = zc_in(f, xi);
    const zc_dim in = x->dims[x->rank - 1], out = w->dims[0];
    const int64_t columns = zc_conv_banded(f->op, f->attrs),
                  group = zc_conv_groups(f->op, f->attrs);
    if (!columns) return ZC_OK;
    if (!zc_conv_taps_first(f->op, f->attrs) || !zc_conv_channels_last(f->op, f->attrs) ||
        columns < 1 || group < 1 || !zc_dim_is_const(in) || in.k < 1 || in.k % group ||
        !zc_dim_is_const(out) || out.k < 1 || out.k % group)
        return zc_infer_fail(f,
                             "weights in a band of %lld need taps first, and channels that %lld "
                             "groups divide",
                             (long long)columns, (long long)group);
    const zc_conv_band band = zc_conv_band_of(f->op, f->attrs, in.k, out.k);
    ZC_TRY(zc_infer_same(f, w->dims[w->rank - 1], zc_dim_const(zc_conv_band_depth(&band)),
                         "channels of weights and those of the band"));
    w->dims[w->rank - 1] = zc_dim_const(band.in);
    return ZC_OK;
}

static zc_status check_phases(zc_infer *f, const zc_type *w)
{
    const zc_attrs_ConvNhwc *at = ZC_ATTRS(f, ConvNhwc);
    const zc_window_attrs a = zc_nhwc_window(at);
    const int axes = w->rank - 2;
    const int64_t channels = zc_dim_is_const(w->dims[0]) ? w->dims[0].k : 0;
    zc_auto_pad mode;
    zc_auto_pad_parse(a.auto_pad, &mode);
    if (!at->taps_first || at->band || at->group != 1 || mode != ZC_PAD_EXPLICIT)
        return zc_infer_fail(f, "phases need taps first, explicit padding and no groups");
    ZC_TRY(zc_window_check_list(f, "phases", a.phases, axes, 1));
    ZC_TRY(zc_window_check_list(f, "late", a.late, axes, 1));
    if (zc_window_phases_fit(&a, axes, channels)) return ZC_OK;
    return zc_infer_fail(f,
                         "phases do not fit (got %lld channels, need a multiple of all phases, "
                         "and late at most as many as there are on each side)",
                         (long long)channels);
}

zc_status zc_infer_conv_nhwc(zc_infer *f)
{
    zc_attrs_Conv attrs = zc_nchw_conv(ZC_ATTRS(f, ConvNhwc));
    zc_operand in[3] = {{.vals = {.n = -1}}, {.vals = {.n = -1}}, {.vals = {.n = -1}}};
    ZC_TRY(zc_infer_need_rank(f, 0, 3, 5));
    const int rank = zc_in(f, 0)->rank;
    for (int i = 0; i < 3 && i < f->nin; i++) in[i] = f->in[i];
    in[0].type = nchw(zc_in(f, 0));
    if (ZC_ATTRS(f, ConvNhwc)->band) {
        ZC_TRY(zc_infer_need_rank(f, 1, rank, rank));
        ZC_TRY(zc_infer_band(f, 0, &in[1].type));
    }
    if (ZC_ATTRS(f, ConvNhwc)->phases.n || ZC_ATTRS(f, ConvNhwc)->late.n) {
        ZC_TRY(zc_infer_need_rank(f, 1, rank, rank));
        ZC_TRY(check_phases(f, &in[1].type));
    }
    if (ZC_ATTRS(f, ConvNhwc)->taps_first) {
        ZC_TRY(zc_infer_need_rank(f, 1, rank, rank));
        in[1].type = nchw(&in[1].type);
    }
    ZC_TRY(by_nchw(f, ZC_OP_Conv, &attrs, f->nin < 3 ? f->nin : 3, in, zc_infer_conv));
    if (!zc_in_present(f, 3)) return ZC_OK;
    const zc_type *residual = zc_in(f, 3), *out = &f->out[0].type;
    if (residual->rank != rank)
        return zc_infer_fail(f, "residual has a wrong rank (got %d, need %d)", residual->rank,
                             rank);
    for (int d = 0; d < rank; d++)
        ZC_TRY(
            zc_infer_same(f, residual->dims[d], out->dims[d], "dimensions of residual and result"));
    return ZC_OK;
}

/* A channels-first pooling on something that is channels-last. */
static zc_status pool(zc_infer *f, const zc_type *x, zc_op op, const void *attrs,
                      zc_status (*infer)(zc_infer *))
{
    const zc_operand in = {.type = nchw(x), .vals = {.n = -1}};
    return by_nchw(f, op, attrs, 1, &in, infer);
}

zc_status zc_infer_conv_pool(zc_infer *f)
{
    const zc_attrs_MaxPool pooling = zc_conv_pool(f->op, f->attrs);
    const zc_type whole = f->out[0].type;
    return pooling.kernel_shape.n ? pool(f, &whole, ZC_OP_MaxPool, &pooling, zc_infer_max_pool)
                                  : ZC_OK;
}

zc_status zc_infer_conv_image(zc_infer *f)
{
    zc_attrs_Conv attrs = zc_nchw_conv_image(ZC_ATTRS(f, ConvImage));
    zc_operand in[3] = {{.vals = {.n = -1}}, {.vals = {.n = -1}}, {.vals = {.n = -1}}};
    ZC_TRY(zc_infer_need_rank(f, 0, 4, 4));
    for (int i = 0; i < 3 && i < f->nin; i++) in[i] = f->in[i];
    if (in[1].type.rank != 4)
        return zc_infer_fail(f, "weights have a wrong rank (got %d, need 4)", in[1].type.rank);
    in[1].type = nchw(&in[1].type);
    in[0].type.dtype = in[1].type.dtype;
    ZC_TRY(by_nchw(f, ZC_OP_Conv, &attrs, f->nin, in, zc_infer_conv));
    return zc_infer_conv_pool(f);
}

/* Operands i, j and bias as those of a channels-first convolution. */
static zc_status conv_of(zc_infer *f, const zc_attrs_Conv *attrs, int i, int j, int bias)
{
    const int from[] = {i, j, bias};
    zc_operand in[3] = {{.vals = {.n = -1}}, {.vals = {.n = -1}}, {.vals = {.n = -1}}};
    int nin = zc_in_present(f, bias) ? 3 : 2;
    for (int n = 0; n < nin; n++) in[n] = f->in[from[n]];
    for (int n = 0; n < 2; n++) {
        ZC_TRY(zc_infer_need_rank(f, from[n], 4, 4));
        in[n].type = nchw(zc_in(f, from[n]));
    }
    return by_nchw(f, ZC_OP_Conv, attrs, nin, in, zc_infer_conv);
}

zc_status zc_infer_conv_pair(zc_infer *f)
{
    const zc_attrs_Conv first = zc_nchw_conv_first(ZC_ATTRS(f, ConvPair));
    const zc_attrs_Conv second = zc_nchw_conv_second(ZC_ATTRS(f, ConvPair));
    ZC_TRY(conv_of(f, &second, ZC_IN_ConvPair_z, ZC_IN_ConvPair_v, ZC_IN_ConvPair_bias));
    const zc_type other = f->out[0].type;
    for (int d = 1; d < 3; d++)
        if (!zc_dim_is(zc_in(f, ZC_IN_ConvPair_v)->dims[d], 1))
            return zc_infer_fail(f, "the second convolution's windows are not points");
    ZC_TRY(conv_of(f, &first, ZC_IN_ConvPair_x, ZC_IN_ConvPair_w, ZC_IN_ConvPair_bias));
    for (int d = 0; d < 4; d++)
        ZC_TRY(zc_infer_same(f, other.dims[d], f->out[0].type.dims[d],
                             "dimensions of both convolutions"));
    return ZC_OK;
}

zc_status zc_infer_max_pool_nhwc(zc_infer *f)
{
    zc_attrs_MaxPool attrs = zc_nchw_max_pool(ZC_ATTRS(f, MaxPoolNhwc));
    ZC_TRY(zc_infer_need_rank(f, 0, 3, 5));
    return pool(f, zc_in(f, 0), ZC_OP_MaxPool, &attrs, zc_infer_max_pool);
}

zc_status zc_infer_average_pool_nhwc(zc_infer *f)
{
    zc_attrs_AveragePool attrs = zc_nchw_average_pool(ZC_ATTRS(f, AveragePoolNhwc));
    ZC_TRY(zc_infer_need_rank(f, 0, 3, 5));
    return pool(f, zc_in(f, 0), ZC_OP_AveragePool, &attrs, zc_infer_average_pool);
}

zc_status zc_infer_squeeze_excite(zc_infer *f)
{
    const zc_attrs_SqueezeExcite *a = ZC_ATTRS(f, SqueezeExcite);
    const zc_type *x = zc_in(f, 0), *w = zc_in(f, ZC_IN_SqueezeExcite_w1);
    ZC_TRY(zc_infer_need_rank(f, 0, 3, ZC_MAX_RANK));
    ZC_TRY(zc_infer_need_rank(f, ZC_IN_SqueezeExcite_w1, 2, 2));
    zc_dim hidden = w->dims[0], channels = x->dims[x->rank - 1];
    const zc_dim matrix[] = {hidden, channels};
    ZC_TRY(zc_infer_same(f, w->dims[1], channels, "columns of w1 and channels"));
    ZC_TRY(zc_infer_need_shape(f, ZC_IN_SqueezeExcite_w2, 2, matrix, "w2"));
    ZC_TRY(zc_infer_need_shape(f, ZC_IN_SqueezeExcite_bias1, 1, &hidden, "bias1"));
    ZC_TRY(zc_infer_need_shape(f, ZC_IN_SqueezeExcite_bias2, 1, &channels, "bias2"));
    ZC_TRY(zc_infer_activation(f, a->activation));
    ZC_TRY(zc_infer_activation(f, a->gate));
    return zc_infer_same0(f);
}
