/* Reference kernels of convolutions, and the geometry they share. */
#include "cpu/conv.h"

#include "cpu/matmul.h"
#include "cpu/nhwc.h"
#include "cpu/quant_out.h"
#include "op/nhwc.h"
#include "op/requant.h"

/* ---- geometry ---- */

#define CONV_OPS(X) X(Conv) X(ConvInteger) X(QLinearConv) X(ScaledConv)

static zc_window_attrs window_attrs(const zc_kctx *k, int64_t *group)
{
    zc_window_attrs a = {0};
    switch (k->op) {
#define X(NAME)                                                                                    \
    case ZC_OP_##NAME: {                                                                           \
        const zc_attrs_##NAME *at = ZC_ATTRS(k, NAME);                                             \
        a = ZC_WINDOW_ATTRS(at);                                                                   \
        a.auto_pad = at->auto_pad;                                                                 \
        *group = at->group;                                                                        \
        break;                                                                                     \
    }
        CONV_OPS(X)
#undef X
    default: {
        const zc_attrs_DeformConv *at = ZC_ATTRS(k, DeformConv);
        a = ZC_WINDOW_ATTRS(at);
        *group = at->group;
    }
    }
    return a;
}

static bool fits(const zc_conv *c, const zc_tensor *x, const zc_tensor *w, const zc_tensor *y)
{
    return x->rank == w->rank && x->rank == y->rank && x->dims[0] == y->dims[0] &&
           w->dims[0] == y->dims[1] && w->dims[0] == c->groups * c->oc &&
           x->dims[1] == c->groups * c->ic;
}

/* Product of dims[2..), or 0 where it overflows, which only a tensor without elements can. */
static int64_t plane_of(const zc_tensor *t)
{
    int64_t n = zc_dims_span(t->dims, 2, t->rank);
    return n < 0 ? 0 : n;
}

zc_status zc_conv_of(zc_kctx *k, int xi, int wi, zc_conv *c)
{
    const bool last = zc_conv_channels_last(k->op, k->attrs);
    const bool turned = zc_conv_taps_first(k->op, k->attrs);
    const zc_tensor in = last ? zc_nchw_shape(&k->in[xi]) : k->in[xi];
    const zc_tensor out = last ? zc_nchw_shape(&k->out[0]) : k->out[0];
    zc_tensor weights = turned ? zc_nchw_shape(&k->in[wi]) : k->in[wi];
    const zc_tensor *x = &in, *w = &weights, *y = &out;
    zc_window_attrs a = window_attrs(k, &c->groups);
    if (zc_conv_banded(k->op, k->attrs)) weights.dims[1] = x->dims[1] / c->groups;
    c->batch = x->dims[0];
    c->ic = w->dims[1];
    c->oc = w->dims[0] / c->groups;
    c->in_plane = plane_of(x);
    c->out_plane = plane_of(y);
    c->taps = plane_of(w);
    if (!fits(c, x, w, y)) {
        char t[128], u[128];
        return zc_kernel_fail(k, "input and weights do not fit each other (got %s and %s)",
                              zc_tensor_type_text(x, t, sizeof t),
                              zc_tensor_type_text(w, u, sizeof u));
    }
    if (zc_tensor_numel(y) == 0) c->batch = 0;
    zc_window_resolve(&a, x->rank - 2, x->dims + 2, y->dims + 2, w->dims + 2, &c->w);
    return ZC_OK;
}

zc_status zc_conv_weights(zc_kctx *k, int wi, zc_tensor *out)
{
    const zc_tensor *x = &k->in[0], *w = &k->in[wi];
    size_t bytes;
    *out = *w;
    if (!zc_conv_banded(k->op, k->attrs)) return ZC_OK;
    const zc_conv_band band = zc_conv_band_of(k->op, k->attrs, x->dims[x->rank - 1], w->dims[0]);
    const int64_t depth = w->dims[w->rank - 1], taps = zc_dims_span(w->dims, 1, w->rank - 1);
    out->dims[w->rank - 1] = band.in;
    if (!zc_tensor_bytes(out, &bytes) || !(out->data = zc_scratch_get(k->scratch, bytes)))
        return zc_fail_nomem(k->diag, "weights", 0);
    for (int64_t m = 0; m < w->dims[0]; m++) {
        const int64_t first = m / band.out * band.in - zc_conv_band_from(&band, m);
        for (int64_t t = m * taps; t < (m + 1) * taps; t++)
            for (int64_t c = 0; c < band.in; c++)
                zc_put(out, t * band.in + c, zc_get(w, t * depth + first + c));
    }
    return ZC_OK;
}

/* ---- reference ---- */

typedef struct job {
    const zc_conv *c;
    const zc_tensor *x, *w, *bias;
    zc_tensor *y;
    /* quantised forms; ScaledConv has w_scale alone */
    const zc_tensor *w_zero, *w_scale;
    int64_t x_zero;
    double x_scale, y_scale, y_zero;
    bool last, turned; /* x and y are channels last; w, too */
} job;

/* Where one output element reads: its window and the offsets of its group's channels. */
typedef struct place {
    int64_t n, m, at[ZC_WINDOW_AXES];
    int64_t x, w;
} place;

static place place_of(const zc_conv *c, int64_t i)
{
    place p;
    zc_coords(i % c->out_plane, c->w.axes, c->w.out, p.at);
    i /= c->out_plane;
    p.m = i % (c->groups * c->oc);
    p.n = i / (c->groups * c->oc);
    p.x = (p.n * c->groups + p.m / c->oc) * c->ic * c->in_plane;
    p.w = p.m * c->ic * c->taps;
    return p;
}

/* Element of a parameter that is one number or one a channel. */
static int64_t channel_of(const zc_tensor *t, int64_t channel)
{
    return zc_tensor_numel(t) == 1 ? 0 : channel;
}

/* Where channel ic of the window's group has this tap, and where the result stands. */
static int64_t x_at(const job *j, const place *p, int64_t ic, int64_t tap)
{
    const zc_conv *c = j->c;
    if (!j->last) return p->x + ic * c->in_plane + tap;
    return (p->n * c->in_plane + tap) * c->groups * c->ic + p->m / c->oc * c->ic + ic;
}

static int64_t w_at(const job *j, const place *p, int64_t ic, int64_t tap)
{
    const zc_conv *c = j->c;
    return p->w + (j->turned ? tap * c->ic + ic : ic * c->taps + tap);
}

static int64_t y_at(const job *j, const place *p, int64_t i)
{
    const zc_conv *c = j->c;
    return j->last ? (p->n * c->out_plane + i % c->out_plane) * c->groups * c->oc + p->m : i;
}

/* Also ScaledConv's: each channel's sums have its scale. */
static void floats(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const zc_conv *c = j->c;
    for (int64_t i = begin; i < end; i++) {
        place p = place_of(c, i);
        double sum = 0;
        zc_taps first;
        zc_taps_begin(&c->w, p.at, &first);
        for (int64_t ic = 0; ic < c->ic; ic++) {
            for (zc_taps t = first; t.any; zc_taps_next(&t))
                sum += zc_get(j->x, x_at(j, &p, ic, t.x)) * zc_get(j->w, w_at(j, &p, ic, t.tap));
        }
        if (j->w_scale) sum *= zc_get(j->w_scale, p.m);
        if (j->bias) sum += zc_get(j->bias, p.m);
        zc_put(j->y, y_at(j, &p, i), sum);
    }
}

static void integers(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const zc_conv *c = j->c;
    for (int64_t i = begin; i < end; i++) {
        place p = place_of(c, i);
        int64_t sum = 0, w_zero = j->w_zero ? zc_geti(j->w_zero, channel_of(j->w_zero, p.m)) : 0;
        zc_taps first;
        zc_taps_begin(&c->w, p.at, &first);
        for (int64_t ic = 0; ic < c->ic; ic++) {
            for (zc_taps t = first; t.any; zc_taps_next(&t))
                sum += (zc_geti(j->x, x_at(j, &p, ic, t.x)) - j->x_zero) *
                       (zc_geti(j->w, w_at(j, &p, ic, t.tap)) - w_zero);
        }
        if (j->bias) sum += zc_geti(j->bias, p.m);
        if (!j->w_scale) {
            zc_puti(j->y, y_at(j, &p, i), sum);
            continue;
        }
        double scale = j->x_scale * zc_get(j->w_scale, channel_of(j->w_scale, p.m)) / j->y_scale;
        zc_put_quantised(j->y, y_at(j, &p, i), (double)sum * zc_requant_scale(scale), j->y_zero);
    }
}

static const zc_tensor *optional(const zc_kctx *k, int i)
{
    return i < k->nin && zc_present(&k->in[i]) ? &k->in[i] : NULL;
}

static int64_t outputs(const zc_conv *c)
{
    return c->batch ? c->batch * c->groups * c->oc * c->out_plane : 0;
}

/* A parameter has one element or one a channel. */
static zc_status check_channels(zc_kctx *k, int i, int64_t channels)
{
    if (!optional(k, i)) return ZC_OK;
    int64_t n = zc_tensor_numel(&k->in[i]);
    if (n == 1 || n == channels) return ZC_OK;
    return zc_kernel_fail(k, "input %d has a wrong length (got %lld, need %lld)", i, (long long)n,
                          (long long)channels);
}

zc_status zc_k_Conv(zc_kctx *k)
{
    zc_conv c;
    ZC_TRY(zc_conv_of(k, 0, 1, &c));
    job j = {.c = &c, .x = &k->in[0], .w = &k->in[1], .y = &k->out[0]};
    j.bias = optional(k, 2);
    zc_parallel(k, outputs(&c), 64, floats, &j);
    return ZC_OK;
}

zc_status zc_k_ConvInteger(zc_kctx *k)
{
    zc_conv c;
    zc_tensor w;
    ZC_TRY(zc_conv_of(k, ZC_IN_ConvInteger_x, ZC_IN_ConvInteger_w, &c));
    ZC_TRY(zc_conv_weights(k, ZC_IN_ConvInteger_w, &w));
    ZC_TRY(check_channels(k, ZC_IN_ConvInteger_w_zero, c.groups * c.oc));
    job j = {.c = &c,
             .x = &k->in[ZC_IN_ConvInteger_x],
             .w = &w,
             .y = &k->out[0],
             .last = zc_conv_channels_last(k->op, k->attrs),
             .turned = zc_conv_taps_first(k->op, k->attrs)};
    if (optional(k, ZC_IN_ConvInteger_x_zero))
        j.x_zero = zc_geti(&k->in[ZC_IN_ConvInteger_x_zero], 0);
    j.w_zero = optional(k, ZC_IN_ConvInteger_w_zero);
    zc_parallel(k, outputs(&c), 64, integers, &j);
    return ZC_OK;
}

static zc_status qlinear_conv(zc_kctx *k)
{
    zc_conv c;
    zc_tensor w;
    ZC_TRY(zc_conv_of(k, ZC_IN_QLinearConv_x, ZC_IN_QLinearConv_w, &c));
    ZC_TRY(zc_conv_weights(k, ZC_IN_QLinearConv_w, &w));
    ZC_TRY(check_channels(k, ZC_IN_QLinearConv_w_scale, c.groups * c.oc));
    ZC_TRY(check_channels(k, ZC_IN_QLinearConv_w_zero, c.groups * c.oc));
    job j = {.c = &c,
             .x = &k->in[ZC_IN_QLinearConv_x],
             .w = &w,
             .y = &k->out[0],
             .x_zero = zc_geti(&k->in[ZC_IN_QLinearConv_x_zero], 0),
             .w_scale = &k->in[ZC_IN_QLinearConv_w_scale],
             .w_zero = &k->in[ZC_IN_QLinearConv_w_zero],
             .x_scale = zc_get(&k->in[ZC_IN_QLinearConv_x_scale], 0),
             .y_scale = zc_get(&k->in[ZC_IN_QLinearConv_y_scale], 0),
             .y_zero = (double)zc_geti(&k->in[ZC_IN_QLinearConv_y_zero], 0),
             .bias = optional(k, ZC_IN_QLinearConv_bias),
             .last = zc_conv_channels_last(k->op, k->attrs),
             .turned = zc_conv_taps_first(k->op, k->attrs)};
    zc_parallel(k, outputs(&c), 64, integers, &j);
    return ZC_OK;
}

zc_status zc_k_QLinearConv(zc_kctx *k)
{
    return zc_conv_pooled(k, ZC_IN_QLinearConv_w, qlinear_conv);
}

zc_status zc_k_ScaledConv(zc_kctx *k)
{
    zc_conv c;
    zc_tensor w;
    ZC_TRY(zc_conv_of(k, ZC_IN_ScaledConv_x, ZC_IN_ScaledConv_w, &c));
    ZC_TRY(zc_conv_weights(k, ZC_IN_ScaledConv_w, &w));
    job j = {.c = &c,
             .x = &k->in[ZC_IN_ScaledConv_x],
             .w = &w,
             .y = &k->out[0],
             .w_scale = &k->in[ZC_IN_ScaledConv_scale],
             .bias = optional(k, ZC_IN_ScaledConv_bias),
             .last = zc_conv_channels_last(k->op, k->attrs),
             .turned = zc_conv_taps_first(k->op, k->attrs)};
    zc_parallel(k, outputs(&c), 64, floats, &j);
    return ZC_OK;
}
