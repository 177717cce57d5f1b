/* Channels-last poolings: pixel by pixel, so that the inner loops run along the channels. */
#include <math.h>
#include <string.h>

#include "cpu/fast.h"
#include "cpu/pooling.h"
#include "op/nhwc.h"

#define SIMD_SOURCE "cpu/nhwc_pool_tmpl.h"
#include "cpu/simd_each.h"

/* What a pooling does with n channels of one more pixel of a window. */
typedef void (*join_fn)(const void *x, int64_t n, void *y);

typedef struct pool_job {
    zc_window w;
    const char *x;
    char *y;
    int64_t channels, pixel; /* bytes of one */
    join_fn join;
    const void *empty; /* a channel of a window that lies in the padding alone */
    size_t size;       /* of a channel */
    bool average, count_pad;
} pool_job;

/* The part of a window along an axis that lies on the input, taps [*from, *to); returns where its
 * first tap is. */
static int64_t taps_inside(const zc_window *w, int axis, int64_t out, int64_t *from, int64_t *to)
{
    const int64_t at = out * w->stride[axis] - w->begin[axis], step = w->dilation[axis];
    const int64_t last = w->in[axis] - 1 - at;
    *from = at < 0 ? (step - 1 - at) / step : 0;
    *to = last < 0 ? 0 : last / step + 1;
    if (*to > w->kernel[axis]) *to = w->kernel[axis];
    return at;
}

/* y: the joined pixels of one window; returns how many there are. */
static int64_t join_window(const pool_job *j, const char *image, int64_t oh, int64_t ow, char *y)
{
    const zc_window *w = &j->w;
    int64_t top, bottom, left, right, count = 0;
    const int64_t ih = taps_inside(w, 0, oh, &top, &bottom);
    const int64_t iw = taps_inside(w, 1, ow, &left, &right);
    for (int64_t h = top; h < bottom; h++) {
        const char *row = image + (ih + h * w->dilation[0]) * w->in[1] * j->pixel;
        for (int64_t v = left; v < right; v++, count++) {
            const char *x = row + (iw + v * w->dilation[1]) * j->pixel;
            if (count)
                j->join(x, j->channels, y);
            else
                memcpy(y, x, (size_t)j->pixel);
        }
    }
    for (int64_t c = 0; !count && c < j->channels; c++)
        memcpy(y + (size_t)c * j->size, j->empty, j->size);
    return count;
}

static void divide(const pool_job *j, int64_t oh, int64_t ow, int64_t count, float *y)
{
    if (j->count_pad) count = zc_padded_taps(&j->w, (int64_t[]){oh, ow});
    for (int64_t c = 0; count && c < j->channels; c++) y[c] /= (float)count;
}

/* Output rows of all images. */
static void pool_rows(void *arg, int64_t begin, int64_t end)
{
    const pool_job *j = arg;
    const zc_window *w = &j->w;
    for (int64_t r = begin; r < end; r++) {
        const char *image = j->x + r / w->out[0] * w->in[0] * w->in[1] * j->pixel;
        const int64_t oh = r % w->out[0];
        for (int64_t ow = 0; ow < w->out[1]; ow++) {
            char *y = j->y + (r * w->out[1] + ow) * j->pixel;
            const int64_t count = join_window(j, image, oh, ow, y);
            if (j->average) divide(j, oh, ow, count, (float *)(void *)y);
        }
    }
}

static zc_status pool(zc_kctx *k, const zc_window_attrs *a, pool_job *j)
{
    zc_tensor in = zc_nchw_shape(&k->in[0]), out = zc_nchw_shape(&k->out[0]);
    if (zc_tensor_numel(&out) == 0) return ZC_OK;
    j->x = k->in[0].data;
    j->y = k->out[0].data;
    j->channels = in.dims[1];
    j->size = zc_dtype_bits(in.dtype) / 8;
    j->pixel = j->channels * (int64_t)j->size;
    zc_window_resolve(a, 2, in.dims + 2, out.dims + 2, a->kernel.v, &j->w);
    zc_parallel(k, in.dims[0] * j->w.out[0], 1, pool_rows, j);
    return ZC_OK;
}

bool zc_fits_max_pool_nhwc(const zc_kctx *k)
{
    const zc_dtype t = k->in[0].dtype;
    return k->in[0].rank == 4 && (t == ZC_F32 || t == ZC_U8 || t == ZC_I8);
}

zc_status zc_fast_max_pool_nhwc(zc_kctx *k)
{
    static const float least = -INFINITY;
    static const uint8_t least_u8 = 0;
    static const int8_t least_i8 = INT8_MIN;
    const zc_attrs_MaxPoolNhwc *at = ZC_ATTRS(k, MaxPoolNhwc);
    const zc_dtype t = k->in[0].dtype;
    const zc_simd level = zc_simd_level();
    zc_window_attrs a = ZC_WINDOW_ATTRS(at);
    a.auto_pad = at->auto_pad;
    pool_job j = {.join = t == ZC_F32  ? SIMD_PICK(level, max_f32)
                          : t == ZC_U8 ? SIMD_PICK(level, max_u8)
                                       : SIMD_PICK(level, max_i8),
                  .empty = t == ZC_F32  ? (const void *)&least
                           : t == ZC_U8 ? (const void *)&least_u8
                                        : &least_i8};
    return pool(k, &a, &j);
}

bool zc_fits_average_pool_nhwc(const zc_kctx *k)
{
    return k->in[0].rank == 4 && k->in[0].dtype == ZC_F32;
}

zc_status zc_fast_average_pool_nhwc(zc_kctx *k)
{
    static const float nothing = 0;
    const zc_attrs_AveragePoolNhwc *at = ZC_ATTRS(k, AveragePoolNhwc);
    zc_window_attrs a = ZC_WINDOW_ATTRS(at);
    a.auto_pad = at->auto_pad;
    pool_job j = {.join = SIMD_PICK(zc_simd_level(), sum_f32),
                  .empty = &nothing,
                  .average = true,
                  .count_pad = at->count_include_pad != 0};
    return pool(k, &a, &j);
}
