/* f32 transposed convolutions of one or two axes: what each tap adds to the windows is a matrix
 * product of the weights and the input, which is then added where the taps lie. A task takes some
 * output channels of one group of one image, a band of input rows at a time. */
#include <stdatomic.h>
#include <string.h>

#include "cpu/dnnl.h"
#include "cpu/fast.h"
#include "cpu/gemm.h"
#include "cpu/window.h"

/* Floats of products that one task holds, and the parts that the channels are divided into. */
#define BAND_FLOATS ((int64_t)1 << 16)
#define PARTS       8

typedef struct deconv_job {
    const float *x, *w, *bias;
    float *y, *products;
    int64_t groups, ic, oc, parts, taps;
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2], begin[2]; /* one axis: a row */
    int64_t band_rows, room; /* floats of a task's products */
    atomic_int status;
} deconv_job;

static int64_t part_begin(const deconv_job *j, int64_t part)
{
    return j->oc * part / j->parts;
}

/* Input positions [*from, *to) of axis i whose tap t lies on the output. */
static void inside(const deconv_job *j, int i, int64_t t, int64_t *from, int64_t *to)
{
    int64_t at = t * j->dilation[i] - j->begin[i], last = j->out[i] - 1 - at;
    *from = at >= 0 ? 0 : (-at + j->stride[i] - 1) / j->stride[i];
    *to = last < 0 ? 0 : last / j->stride[i] + 1;
    if (*to > j->in[i]) *to = j->in[i];
    if (*to < *from) *to = *from;
}

/* Adds input rows [row, end) of one channel's products, [taps][end - row][in width], to its plane.
 */
static void scatter(const deconv_job *j, const float *products, int64_t row, int64_t end, float *y)
{
    for (int64_t t = 0; t < j->taps; t++) {
        int64_t th = t / j->kernel[1], tw = t % j->kernel[1], top, bottom, left, right;
        inside(j, 0, th, &top, &bottom);
        inside(j, 1, tw, &left, &right);
        if (top < row) top = row;
        if (bottom > end) bottom = end;
        for (int64_t ih = top; ih < bottom; ih++) {
            int64_t oh = ih * j->stride[0] + th * j->dilation[0] - j->begin[0];
            int64_t ow = tw * j->dilation[1] - j->begin[1], step = j->stride[1];
            const float *from = products + (t * (end - row) + ih - row) * j->in[1];
            float *to = y + oh * j->out[1] + ow;
            if (step == 1)
                for (int64_t i = left; i < right; i++) to[i] += from[i];
            else
                for (int64_t i = left; i < right; i++) to[i * step] += from[i];
        }
    }
}

static void task(void *arg, int i)
{
    deconv_job *j = arg;
    int64_t item = i / j->parts, part = i % j->parts, group = item % j->groups;
    int64_t first = part_begin(j, part), channels = part_begin(j, part + 1) - first;
    int64_t in_plane = j->in[0] * j->in[1], out_plane = j->out[0] * j->out[1];
    const float *x = j->x + item * j->ic * in_plane;
    const float *w = j->w + (group * j->ic * j->oc + first) * j->taps;
    float *y = j->y + (item * j->oc + first) * out_plane, *products = j->products + i * j->room;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t p = 0; p < out_plane; p++)
            y[c * out_plane + p] = j->bias ? j->bias[group * j->oc + first + c] : 0;
    for (int64_t row = 0; row < j->in[0]; row += j->band_rows) {
        int64_t end = row + j->band_rows < j->in[0] ? row + j->band_rows : j->in[0];
        int64_t n = (end - row) * j->in[1];
        zc_status status = zc_sgemm(true, false, channels * j->taps, n, j->ic, 1, w,
                                    j->oc * j->taps, x + row * j->in[1], in_plane, 0, products, n);
        if (status != ZC_OK) atomic_store(&j->status, (int)status);
        for (int64_t c = 0; c < channels; c++)
            scatter(j, products + c * j->taps * n, row, end, y + c * out_plane);
    }
}

bool zc_fits_conv_transpose_f32(const zc_kctx *k)
{
    const zc_tensor *x = &k->in[0];
    bool bias = k->nin < 3 || !zc_present(&k->in[2]) || k->in[2].dtype == ZC_F32;
    return x->dtype == ZC_F32 && k->in[1].dtype == ZC_F32 && bias &&
           (x->rank == 3 || x->rank == 4) && zc_tensor_numel(x) > 0 && k->in[1].dims[1] > 0;
}

static void geometry(const zc_kctx *k, deconv_job *j)
{
    const zc_attrs_ConvTranspose *at = ZC_ATTRS(k, ConvTranspose);
    const zc_tensor *x = &k->in[0], *w = &k->in[1], *y = &k->out[0];
    zc_window_attrs a = ZC_WINDOW_ATTRS(at);
    zc_window v;
    const int axes = x->rank - 2;
    zc_window_resolve(&a, axes, y->dims + 2, x->dims + 2, w->dims + 2, &v);
    zc_transposed_begin(at, &v);
    j->taps = 1;
    for (int i = 0; i < 2; i++) {
        int from = i - (2 - axes); /* the axis there is */
        j->in[i] = from < 0 ? 1 : v.out[from];
        j->out[i] = from < 0 ? 1 : v.in[from];
        j->kernel[i] = from < 0 ? 1 : v.kernel[from];
        j->stride[i] = from < 0 ? 1 : v.stride[from];
        j->dilation[i] = from < 0 ? 1 : v.dilation[from];
        j->begin[i] = from < 0 ? 0 : v.begin[from];
        j->taps *= j->kernel[i];
    }
}

/* By the shape alone, so that results do not depend on the number of threads. */
static bool divide(zc_kctx *k, deconv_job *j, int64_t items)
{
    size_t floats;
    j->parts = items >= PARTS ? 1 : j->oc < PARTS ? j->oc : PARTS;
    int64_t row = (j->oc + j->parts - 1) / j->parts * j->taps * j->in[1];
    j->band_rows = row > 0 && row < BAND_FLOATS ? BAND_FLOATS / row : 1;
    if (j->band_rows > j->in[0]) j->band_rows = j->in[0];
    j->room = row * j->band_rows;
    if (!zc_mul_size((size_t)(items * j->parts), (size_t)j->room, &floats) ||
        items * j->parts > INT32_MAX || floats > SIZE_MAX / sizeof *j->products)
        return false;
    j->products = zc_scratch_get(k->scratch, floats * sizeof *j->products);
    return j->products != NULL;
}

zc_status zc_fast_conv_transpose_f32(zc_kctx *k)
{
    const zc_attrs_ConvTranspose *at = ZC_ATTRS(k, ConvTranspose);
    const zc_tensor *x = &k->in[0], *w = &k->in[1], *y = &k->out[0];
    deconv_job j = {
        .x = x->data, .w = w->data, .y = y->data, .groups = at->group, .oc = w->dims[1]};
    j.ic = x->dims[1] / at->group;
    if (zc_input(k, 2)) j.bias = k->in[2].data;
    if (x->dims[1] != w->dims[0] || y->dims[1] != j.oc * at->group || x->dims[0] != y->dims[0])
        return zc_k_ConvTranspose(k); /* which says so */
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    geometry(k, &j);
    if (j.taps == 0) return zc_k_ConvTranspose(k);
    int64_t items = x->dims[0] * j.groups;
    if (!divide(k, &j, items)) return zc_fail_nomem(k->diag, "transposed convolution", 0);
    zc_parts(k, (int)(items * j.parts), task, &j);
    return zc_dnnl_report(k, (zc_status)atomic_load(&j.status), "convolution");
}
