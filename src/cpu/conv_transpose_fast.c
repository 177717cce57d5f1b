/* f32 transposed convolutions of one or two axes: what each tap adds to the windows is a matrix
 * product of the weights and the input, which is then added where the taps lie. A task takes some
 * output channels of one group of one image, a band of input rows at a time. */
#include <stdatomic.h>
#include <string.h>

#include "cpu/conv_transpose_fast.h"
#include "cpu/dnnl.h"
#include "cpu/fast.h"
#include "cpu/gemm.h"
#include "cpu/window.h"

/* Floats of products that one task holds, and the parts that the channels are divided into. */
#define BAND_FLOATS ((int64_t)1 << 16)
#define PARTS       8

typedef struct deconv_job {
    const zc_transposed *c;
    const float *x, *w, *bias;
    float *y, *products;
    int64_t parts, band_rows, room; /* floats of a task's products */
    atomic_int status;
} deconv_job;

static int64_t part_begin(const deconv_job *j, int64_t part)
{
    return j->c->oc * part / j->parts;
}

void zc_transposed_inside(const zc_transposed *c, int axis, int64_t t, int64_t *from, int64_t *to)
{
    const int64_t stride = c->stride[axis];
    int64_t at = t * c->dilation[axis] - c->begin[axis], last = c->out[axis] - 1 - at;
    *from = at >= 0 ? 0 : (-at + stride - 1) / stride;
    *to = last < 0 ? 0 : last / stride + 1;
    if (*to > c->in[axis]) *to = c->in[axis];
    if (*to < *from) *to = *from;
}

/* Adds input rows [row, end) of one channel's products, [taps][end - row][in width], to its plane.
 */
static void scatter(const zc_transposed *c, const float *products, int64_t row, int64_t end,
                    float *y)
{
    for (int64_t t = 0; t < c->taps; t++) {
        int64_t th = t / c->kernel[1], tw = t % c->kernel[1], top, bottom, left, right;
        zc_transposed_inside(c, 0, th, &top, &bottom);
        zc_transposed_inside(c, 1, tw, &left, &right);
        if (top < row) top = row;
        if (bottom > end) bottom = end;
        for (int64_t ih = top; ih < bottom; ih++) {
            int64_t oh = ih * c->stride[0] + th * c->dilation[0] - c->begin[0];
            int64_t ow = tw * c->dilation[1] - c->begin[1], step = c->stride[1];
            const float *from = products + (t * (end - row) + ih - row) * c->in[1];
            float *to = y + oh * c->out[1] + ow;
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
    const zc_transposed *c = j->c;
    int64_t item = i / j->parts, part = i % j->parts, group = item % c->groups;
    int64_t first = part_begin(j, part), channels = part_begin(j, part + 1) - first;
    int64_t in_plane = c->in[0] * c->in[1], out_plane = c->out[0] * c->out[1];
    const float *x = j->x + item * c->ic * in_plane;
    const float *w = j->w + (group * c->ic * c->oc + first) * c->taps;
    float *y = j->y + (item * c->oc + first) * out_plane, *products = j->products + i * j->room;
    for (int64_t m = 0; m < channels; m++)
        for (int64_t p = 0; p < out_plane; p++)
            y[m * out_plane + p] = j->bias ? j->bias[group * c->oc + first + m] : 0;
    for (int64_t row = 0; row < c->in[0]; row += j->band_rows) {
        int64_t end = row + j->band_rows < c->in[0] ? row + j->band_rows : c->in[0];
        int64_t n = (end - row) * c->in[1];
        zc_status status = zc_sgemm(true, false, channels * c->taps, n, c->ic, 1, w,
                                    c->oc * c->taps, x + row * c->in[1], in_plane, 0, products, n);
        if (status != ZC_OK) atomic_store(&j->status, (int)status);
        for (int64_t m = 0; m < channels; m++)
            scatter(c, products + m * c->taps * n, row, end, y + m * out_plane);
    }
}

bool zc_fits_conv_transpose_f32(const zc_kctx *k)
{
    const zc_tensor *x = &k->in[0];
    bool bias = k->nin < 3 || !zc_present(&k->in[2]) || k->in[2].dtype == ZC_F32;
    return x->dtype == ZC_F32 && k->in[1].dtype == ZC_F32 && bias &&
           (x->rank == 3 || x->rank == 4) && zc_tensor_numel(x) > 0 && k->in[1].dims[1] > 0;
}

static zc_transposed geometry(const zc_kctx *k)
{
    const zc_attrs_ConvTranspose *at = ZC_ATTRS(k, ConvTranspose);
    const zc_tensor *x = &k->in[0], *w = &k->in[1], *y = &k->out[0];
    zc_window_attrs a = ZC_WINDOW_ATTRS(at);
    zc_window v;
    const int axes = x->rank - 2;
    zc_window_resolve(&a, axes, y->dims + 2, x->dims + 2, w->dims + 2, &v);
    zc_transposed_begin(at, &v);
    zc_transposed c = {.batch = x->dims[0],
                       .groups = at->group,
                       .ic = x->dims[1] / at->group,
                       .oc = w->dims[1],
                       .taps = 1};
    for (int i = 0; i < 2; i++) {
        int from = i - (2 - axes); /* the axis there is */
        c.in[i] = from < 0 ? 1 : v.out[from];
        c.out[i] = from < 0 ? 1 : v.in[from];
        c.kernel[i] = from < 0 ? 1 : v.kernel[from];
        c.stride[i] = from < 0 ? 1 : v.stride[from];
        c.dilation[i] = from < 0 ? 1 : v.dilation[from];
        c.begin[i] = from < 0 ? 0 : v.begin[from];
        c.taps *= c.kernel[i];
    }
    return c;
}

/* By the shape alone, so that results do not depend on the number of threads. */
static bool divide(zc_kctx *k, deconv_job *j, int64_t items)
{
    const zc_transposed *c = j->c;
    size_t floats;
    j->parts = items >= PARTS ? 1 : c->oc < PARTS ? c->oc : PARTS;
    int64_t row = (c->oc + j->parts - 1) / j->parts * c->taps * c->in[1];
    j->band_rows = row > 0 && row < BAND_FLOATS ? BAND_FLOATS / row : 1;
    if (j->band_rows > c->in[0]) j->band_rows = c->in[0];
    j->room = row * j->band_rows;
    if (!zc_mul_size((size_t)(items * j->parts), (size_t)j->room, &floats) ||
        items * j->parts > INT32_MAX || floats > SIZE_MAX / sizeof *j->products)
        return false;
    j->products = zc_scratch_get(k->scratch, floats * sizeof *j->products);
    return j->products != NULL;
}

/* Weights as they are. */
static zc_status by_plain_weights(zc_kctx *k, const zc_transposed *c)
{
    deconv_job j = {.c = c, .x = k->in[0].data, .w = k->in[1].data, .y = k->out[0].data};
    const int64_t items = c->batch * c->groups;
    if (zc_input(k, 2)) j.bias = k->in[2].data;
    if (!divide(k, &j, items)) return zc_fail_nomem(k->diag, "transposed convolution", 0);
    zc_parts(k, (int)(items * j.parts), task, &j);
    return zc_dnnl_report(k, (zc_status)atomic_load(&j.status), "convolution");
}

zc_status zc_fast_conv_transpose_f32(zc_kctx *k)
{
    const zc_tensor *x = &k->in[0], *w = &k->in[1], *y = &k->out[0];
    bool done;
    if (x->dims[1] != w->dims[0] || y->dims[1] != w->dims[1] * ZC_ATTRS(k, ConvTranspose)->group ||
        x->dims[0] != y->dims[0])
        return zc_k_ConvTranspose(k); /* which says so */
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    const zc_transposed c = geometry(k);
    if (c.taps == 0) return zc_k_ConvTranspose(k);
    ZC_TRY(zc_conv_transpose_panels(k, &c, &done));
    return done ? ZC_OK : by_plain_weights(k, &c);
}
