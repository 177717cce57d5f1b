/* Channels-last convolutions and poolings of f32: bands of output rows, one a thread. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/conv.h"
#include "cpu/conv_dnnl.h"
#include "cpu/fast.h"
#include "cpu/nhwc.h"
#include "op/nhwc.h"

/* ---- convolution ---- */

#define BANDS_MAX 64

/* What a step keeps: the library's convolutions for one input shape, one for each band of output
 * rows. */
typedef struct conv_state {
    int64_t dims[4];
    int bands;
    zc_dnnl_conv *convs[BANDS_MAX];
    int64_t in_row[BANDS_MAX], out_row[BANDS_MAX + 1]; /* first rows */
    int64_t in_width, out_width;                       /* floats a row */
} conv_state;

typedef struct conv_job {
    const conv_state *s;
    const float *x, *bias, *residual;
    float *y;
    int64_t images, in_plane, out_plane;
    atomic_bool failed;
} conv_job;

static void state_free(void *p)
{
    conv_state *s = p;
    for (int i = s->bands - 1; i >= 0; i--)
        zc_dnnl_conv_destroy(s->convs[i]); /* the first owns the weights */
    free(s);
}

bool zc_fits_conv_nhwc_f32(const zc_kctx *k)
{
    const zc_attrs_ConvNhwc *a = ZC_ATTRS(k, ConvNhwc);
    bool plain = *a->activation == 0 || strcmp(a->activation, "Relu") == 0;
    bool constant = (k->const_in & 2) != 0; /* packed weights are kept */
    return k->state && constant && plain && a->group == 1 && k->in[0].dtype == ZC_F32 &&
           k->in[1].dtype == ZC_F32 && zc_tensor_numel(&k->in[0]) > 0 &&
           zc_tensor_numel(&k->out[0]) > 0;
}

static bool present(const zc_kctx *k, int i)
{
    return k->nin > i && zc_present(&k->in[i]);
}

/* The geometry in channels-first terms. */
static zc_status geometry(zc_kctx *k, zc_conv *c)
{
    zc_attrs_Conv attrs = zc_nchw_conv(ZC_ATTRS(k, ConvNhwc));
    zc_tensor in[2] = {zc_nchw_shape(&k->in[0]), k->in[1]}, out = zc_nchw_shape(&k->out[0]);
    zc_kctx inner = *k;
    inner.op = ZC_OP_Conv;
    inner.info = zc_op_get(ZC_OP_Conv);
    inner.attrs = &attrs;
    inner.nin = 2;
    inner.in = in;
    inner.out = &out;
    return zc_conv_of(&inner, 0, 1, c);
}

/* Output rows [from, to) as a convolution of the input rows they need. */
static zc_dnnl_shape band_shape(const zc_kctx *k, const zc_conv *c, int64_t from, int64_t to,
                                int64_t *in_from)
{
    const zc_window *w = &c->w;
    zc_dnnl_shape s = {.ic = c->ic,
                       .oc = c->oc,
                       .bias = present(k, 2),
                       .residual = present(k, 3),
                       .relu = *ZC_ATTRS(k, ConvNhwc)->activation != 0};
    for (int i = 0; i < 2; i++) {
        s.in[i] = w->in[i];
        s.out[i] = w->out[i];
        s.kernel[i] = w->kernel[i];
        s.stride[i] = w->stride[i];
        s.dilation[i] = w->dilation[i];
        s.pad[i][0] = w->begin[i];
    }
    int64_t first = from * w->stride[0] - w->begin[0];
    int64_t last = (to - 1) * w->stride[0] - w->begin[0] + (w->kernel[0] - 1) * w->dilation[0];
    *in_from = first > 0 ? first : 0;
    if (*in_from > w->in[0] - 1) *in_from = w->in[0] - 1;
    int64_t in_to = last + 1 < w->in[0] ? last + 1 : w->in[0];
    if (in_to <= *in_from) in_to = *in_from + 1;
    s.in[0] = in_to - *in_from;
    s.out[0] = to - from;
    s.pad[0][0] = *in_from - first;
    return s;
}

/* 1x1 windows without padding see a plane as one long row of pixels, which divides evenly. */
static void flatten(zc_conv *c)
{
    zc_window *w = &c->w;
    bool pixels = c->taps == 1 && w->stride[0] == 1 && w->stride[1] == 1 && !w->begin[0] &&
                  !w->begin[1] && w->out[0] == w->in[0] && w->out[1] == w->in[1];
    if (!pixels) return;
    w->in[0] = w->out[0] = c->in_plane;
    w->in[1] = w->out[1] = 1;
}

static conv_state *make_state(zc_kctx *k, const zc_conv *c)
{
    conv_state *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    memcpy(s->dims, k->in[0].dims, sizeof s->dims);
    int64_t rows = c->w.out[0], threads = zc_pool_threads(k->pool);
    int64_t bands = rows < threads ? rows : threads;
    if (bands > BANDS_MAX) bands = BANDS_MAX;
    s->in_width = c->w.in[1] * c->ic;
    s->out_width = c->w.out[1] * c->oc;
    for (int i = 0; i < bands; i++) {
        s->out_row[i] = rows * i / bands;
        zc_dnnl_shape shape =
            band_shape(k, c, s->out_row[i], rows * (i + 1) / bands, &s->in_row[i]);
        s->convs[i] = zc_dnnl_conv_create(&shape, k->in[1].data, i ? s->convs[0] : NULL);
        if (!s->convs[i]) {
            state_free(s);
            return NULL;
        }
        s->bands = i + 1;
        s->out_row[i + 1] = rows * (i + 1) / bands;
    }
    return s;
}

static void conv_band(void *arg, int i)
{
    conv_job *j = arg;
    const conv_state *s = j->s;
    for (int64_t n = 0; n < j->images; n++) { /* a band's convolution serves one thread at a time */
        int64_t at = n * j->out_plane + s->out_row[i] * s->out_width;
        int64_t floats = (s->out_row[i + 1] - s->out_row[i]) * s->out_width;
        if (j->residual && j->residual + at != j->y + at)
            memcpy(j->y + at, j->residual + at, (size_t)floats * sizeof *j->y);
        const float *x = j->x + n * j->in_plane + s->in_row[i] * s->in_width;
        if (!zc_dnnl_conv_run(s->convs[i], x, j->bias, j->y + at)) atomic_store(&j->failed, true);
    }
}

zc_status zc_fast_conv_nhwc_f32(zc_kctx *k)
{
    zc_conv c;
    conv_state *s = k->state->p;
    if (s && memcmp(s->dims, k->in[0].dims, sizeof s->dims) != 0) {
        state_free(s);
        *k->state = (zc_kstate){.p = NULL};
        s = NULL;
    }
    ZC_TRY(geometry(k, &c));
    flatten(&c);
    if (!s && !(s = make_state(k, &c))) return zc_k_ConvNhwc(k);
    *k->state = (zc_kstate){.p = s, .destroy = state_free};
    conv_job j = {.s = s,
                  .x = k->in[0].data,
                  .y = k->out[0].data,
                  .images = k->in[0].dims[0],
                  .bias = present(k, 2) ? k->in[2].data : NULL,
                  .residual = present(k, 3) ? k->in[3].data : NULL,
                  .in_plane = c.in_plane * c.ic,
                  .out_plane = c.out_plane * c.oc};
    zc_pool_run(k->pool, s->bands, conv_band, &j);
    return atomic_load(&j.failed)
               ? zc_fail(k->diag, ZC_ERR_INTERNAL, k->subject, "oneDNN refused a convolution")
               : ZC_OK;
}

/* ---- maximum ---- */

typedef struct pool_job {
    const zc_window *w;
    const float *x;
    float *y;
    int64_t channels;
} pool_job;

static void take_max(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = x[i] > y[i] || x[i] != x[i] ? x[i] : y[i];
}

static void max_rows(void *arg, int64_t begin, int64_t end)
{
    const pool_job *j = arg;
    const zc_window *w = j->w;
    for (int64_t r = begin; r < end; r++) { /* output rows of all images */
        int64_t n = r / w->out[0], oh = r % w->out[0];
        for (int64_t ow = 0; ow < w->out[1]; ow++) {
            float *y = j->y + (r * w->out[1] + ow) * j->channels;
            for (int64_t c = 0; c < j->channels; c++) y[c] = -INFINITY;
            for (int64_t t = 0; t < w->kernel[0] * w->kernel[1]; t++) {
                int64_t ih = oh * w->stride[0] - w->begin[0] + t / w->kernel[1] * w->dilation[0];
                int64_t iw = ow * w->stride[1] - w->begin[1] + t % w->kernel[1] * w->dilation[1];
                if (ih < 0 || ih >= w->in[0] || iw < 0 || iw >= w->in[1]) continue;
                take_max(y, j->x + ((n * w->in[0] + ih) * w->in[1] + iw) * j->channels,
                         j->channels);
            }
        }
    }
}

bool zc_fits_max_pool_nhwc_f32(const zc_kctx *k)
{
    return k->in[0].dtype == ZC_F32;
}

zc_status zc_fast_max_pool_nhwc_f32(zc_kctx *k)
{
    zc_attrs_MaxPool a = zc_nchw_max_pool(ZC_ATTRS(k, MaxPoolNhwc));
    zc_window_attrs attrs = ZC_WINDOW_ATTRS(&a);
    attrs.auto_pad = a.auto_pad;
    attrs.ceil_mode = a.ceil_mode != 0;
    zc_window w;
    zc_tensor in = zc_nchw_shape(&k->in[0]), out = zc_nchw_shape(&k->out[0]);
    if (zc_tensor_numel(&out) == 0) return ZC_OK;
    zc_window_resolve(&attrs, 2, in.dims + 2, out.dims + 2, attrs.kernel.v, &w);
    pool_job j = {.w = &w, .x = k->in[0].data, .y = k->out[0].data, .channels = in.dims[1]};
    zc_parallel(k, in.dims[0] * w.out[0], 1, max_rows, &j);
    return ZC_OK;
}
