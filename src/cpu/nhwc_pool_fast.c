/* Channels-last poolings: pixel by pixel, so that the inner loops run along the channels. */
#include <math.h>

#include "cpu/fast.h"
#include "cpu/pooling.h"
#include "op/nhwc.h"

typedef struct pool_job {
    zc_window w;
    const void *x;
    void *y;
    int64_t channels;
    bool count_pad;
} pool_job;

/* The channels of a tap; NULL: in the padding. */
static const void *tap_of(const pool_job *j, size_t size, int64_t n, int64_t oh, int64_t ow,
                          int64_t t)
{
    const zc_window *w = &j->w;
    int64_t ih = oh * w->stride[0] - w->begin[0] + t / w->kernel[1] * w->dilation[0];
    int64_t iw = ow * w->stride[1] - w->begin[1] + t % w->kernel[1] * w->dilation[1];
    if (ih < 0 || ih >= w->in[0] || iw < 0 || iw >= w->in[1]) return NULL;
    int64_t pixel = (n * w->in[0] + ih) * w->in[1] + iw;
    return (const uint8_t *)j->x + (size_t)(pixel * j->channels) * size;
}

/* Output rows of all images. */
#define MAX_ROWS(name, type, least)                                                                \
    static void name(void *arg, int64_t begin, int64_t end)                                        \
    {                                                                                              \
        const pool_job *j = arg;                                                                   \
        const zc_window *w = &j->w;                                                                \
        for (int64_t r = begin; r < end; r++) {                                                    \
            int64_t n = r / w->out[0], oh = r % w->out[0];                                         \
            for (int64_t ow = 0; ow < w->out[1]; ow++) {                                           \
                type *y = (type *)j->y + (r * w->out[1] + ow) * j->channels;                       \
                for (int64_t c = 0; c < j->channels; c++) y[c] = (least);                          \
                for (int64_t t = 0; t < w->kernel[0] * w->kernel[1]; t++) {                        \
                    const type *x = tap_of(j, sizeof *x, n, oh, ow, t);                            \
                    for (int64_t c = 0; x && c < j->channels; c++)                                 \
                        y[c] = x[c] > y[c] || x[c] != x[c] ? x[c] : y[c];                          \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

MAX_ROWS(max_rows_f32, float, -INFINITY)
MAX_ROWS(max_rows_u8, uint8_t, 0)
MAX_ROWS(max_rows_i8, int8_t, INT8_MIN)
#undef MAX_ROWS

/* y: the mean of one window's pixels. */
static void average(const pool_job *j, int64_t n, int64_t oh, int64_t ow, float *restrict y)
{
    int64_t count = 0;
    for (int64_t c = 0; c < j->channels; c++) y[c] = 0;
    for (int64_t t = 0; t < j->w.kernel[0] * j->w.kernel[1]; t++) {
        const float *x = tap_of(j, sizeof *x, n, oh, ow, t);
        if (!x) continue;
        count++;
        for (int64_t c = 0; c < j->channels; c++) y[c] += x[c];
    }
    if (j->count_pad) count = zc_padded_taps(&j->w, (int64_t[]){oh, ow});
    for (int64_t c = 0; count && c < j->channels; c++) y[c] /= (float)count;
}

static void average_rows(void *arg, int64_t begin, int64_t end)
{
    const pool_job *j = arg;
    const zc_window *w = &j->w;
    for (int64_t r = begin; r < end; r++)
        for (int64_t ow = 0; ow < w->out[1]; ow++)
            average(j, r / w->out[0], r % w->out[0], ow,
                    (float *)j->y + (r * w->out[1] + ow) * j->channels);
}

static zc_status pool(zc_kctx *k, const zc_window_attrs *a, bool count_pad,
                      void (*rows)(void *arg, int64_t begin, int64_t end))
{
    zc_tensor in = zc_nchw_shape(&k->in[0]), out = zc_nchw_shape(&k->out[0]);
    if (zc_tensor_numel(&out) == 0) return ZC_OK;
    pool_job j = {
        .x = k->in[0].data, .y = k->out[0].data, .channels = in.dims[1], .count_pad = count_pad};
    zc_window_resolve(a, 2, in.dims + 2, out.dims + 2, a->kernel.v, &j.w);
    zc_parallel(k, in.dims[0] * j.w.out[0], 1, rows, &j);
    return ZC_OK;
}

bool zc_fits_max_pool_nhwc(const zc_kctx *k)
{
    const zc_dtype t = k->in[0].dtype;
    return t == ZC_F32 || t == ZC_U8 || t == ZC_I8;
}

zc_status zc_fast_max_pool_nhwc(zc_kctx *k)
{
    const zc_attrs_MaxPoolNhwc *at = ZC_ATTRS(k, MaxPoolNhwc);
    const zc_dtype t = k->in[0].dtype;
    zc_window_attrs a = ZC_WINDOW_ATTRS(at);
    a.auto_pad = at->auto_pad;
    return pool(k, &a, false, t == ZC_F32 ? max_rows_f32 : t == ZC_U8 ? max_rows_u8 : max_rows_i8);
}

bool zc_fits_average_pool_nhwc(const zc_kctx *k)
{
    return k->in[0].dtype == ZC_F32;
}

zc_status zc_fast_average_pool_nhwc(zc_kctx *k)
{
    const zc_attrs_AveragePoolNhwc *at = ZC_ATTRS(k, AveragePoolNhwc);
    zc_window_attrs a = ZC_WINDOW_ATTRS(at);
    a.auto_pad = at->auto_pad;
    return pool(k, &a, at->count_include_pad != 0, average_rows);
}
