/* f32 convolutions of one or two axes: a matrix product of the weights and the windows of the
 * input. Windows are gathered a band of output rows at a time, small enough to stay in cache; 1x1
 * windows are the input itself. Convolutions with one channel a group are summed directly. */
#include <stdatomic.h>
#include <string.h>

#include "cpu/conv.h"
#include "cpu/dnnl.h"
#include "cpu/fast.h"
#include "cpu/gemm.h"

/* Floats of gathered windows that one task holds. */
#define BAND_FLOATS ((int64_t)1 << 18)
/* Parts of a convolution that keep as many threads at work. */
#define PARTS          8
#define LEAST_CHANNELS 32

typedef struct plane { /* one axis is a plane of height 1 */
    int64_t in_h, in_w, out_h, out_w, k_h, k_w;
    int64_t stride_h, stride_w, step_h, step_w, top, left;
} plane;

typedef struct conv_job {
    const zc_conv *c;
    plane p;
    const float *x, *w, *bias;
    float *y, *windows;
    int64_t band_rows, bands, oc_parts;
    bool direct; /* windows are the input itself */
    atomic_int status;
} conv_job;

static plane plane_of(const zc_window *w)
{
    int h = w->axes == 2 ? 0 : -1, v = w->axes - 1;
    plane p = {.in_h = 1,
               .out_h = 1,
               .k_h = 1,
               .stride_h = 1,
               .step_h = 1,
               .in_w = w->in[v],
               .out_w = w->out[v],
               .k_w = w->kernel[v],
               .stride_w = w->stride[v],
               .step_w = w->dilation[v],
               .left = w->begin[v]};
    if (h < 0) return p;
    p.in_h = w->in[h];
    p.out_h = w->out[h];
    p.k_h = w->kernel[h];
    p.stride_h = w->stride[h];
    p.step_h = w->dilation[h];
    p.top = w->begin[h];
    return p;
}

/* Output columns [*from, *to) whose tap at offset `at` (tap position less padding) lies on the
 * input. */
static void inside(int64_t at, int64_t stride, int64_t in, int64_t out, int64_t *from, int64_t *to)
{
    int64_t first = at >= 0 ? 0 : (-at + stride - 1) / stride;
    int64_t last = in - 1 - at < 0 ? -1 : (in - 1 - at) / stride;
    *from = first < out ? first : out;
    *to = last + 1 < out ? last + 1 : out;
    if (*to < *from) *to = *from;
}

/* One row of one tap: to[out_w] from an input row (NULL: padding). */
static void gather_row(const plane *p, const float *row, int64_t at, float *to)
{
    int64_t from, end;
    inside(at, p->stride_w, p->in_w, p->out_w, &from, &end);
    if (!row) from = end = p->out_w;
    memset(to, 0, (size_t)from * sizeof *to);
    if (p->stride_w == 1 && end > from)
        memcpy(to + from, row + at + from, (size_t)(end - from) * sizeof *to);
    else
        for (int64_t o = from; o < end; o++) to[o] = row[at + o * p->stride_w];
    memset(to + end, 0, (size_t)(p->out_w - end) * sizeof *to);
}

static int64_t rows_of(const conv_job *j, int64_t band)
{
    int64_t left = j->p.out_h - band * j->band_rows;
    return left < j->band_rows ? left : j->band_rows;
}

/* Where the windows [ic * taps][rows * out_w] of a band of one group of one image lie. */
static float *windows_of(const conv_job *j, int64_t item, int64_t band)
{
    return j->windows +
           (item * j->bands + band) * j->c->ic * j->c->taps * j->band_rows * j->p.out_w;
}

/* The windows' part for input channel c. */
static void gather(const conv_job *j, int64_t item, int64_t band, int64_t c)
{
    const plane *p = &j->p;
    const float *x = j->x + (item * j->c->ic + c) * j->c->in_plane;
    int64_t row = band * j->band_rows, rows = rows_of(j, band);
    float *to = windows_of(j, item, band) + c * j->c->taps * rows * p->out_w;
    for (int64_t kh = 0; kh < p->k_h; kh++)
        for (int64_t kw = 0; kw < p->k_w; kw++)
            for (int64_t r = 0; r < rows; r++) {
                int64_t ih = (row + r) * p->stride_h - p->top + kh * p->step_h;
                const float *in = ih >= 0 && ih < p->in_h ? x + ih * p->in_w : NULL;
                gather_row(p, in, kw * p->step_w - p->left, to);
                to += p->out_w;
            }
}

/* Windows that several tasks read are gathered before. */
static void gather_all(void *arg, int64_t begin, int64_t end)
{
    const conv_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        int64_t at = i / j->c->ic;
        gather(j, at / j->bands, at % j->bands, i % j->c->ic);
    }
}

static void start_from_bias(const conv_job *j, float *y, int64_t first, int64_t channels, int64_t n)
{
    for (int64_t c = 0; j->bias && c < channels; c++) {
        float b = j->bias[first + c], *to = y + c * j->c->out_plane;
        for (int64_t i = 0; i < n; i++) to[i] = b;
    }
}

/* Task i: a band of output rows of some output channels of one group of one image. */
static void band(void *arg, int task)
{
    conv_job *j = arg;
    const zc_conv *c = j->c;
    int64_t part = task % j->oc_parts, b = task / j->oc_parts % j->bands,
            item = task / j->oc_parts / j->bands;
    int64_t row = b * j->band_rows, rows = rows_of(j, b);
    int64_t first = c->oc * part / j->oc_parts, channels = c->oc * (part + 1) / j->oc_parts - first;
    int64_t n = rows * j->p.out_w, depth = c->ic * c->taps, ld = n;
    const float *w = j->w + (item % c->groups * c->oc + first) * depth, *windows;
    float *y = j->y + (item * c->oc + first) * c->out_plane + row * j->p.out_w;
    if (j->direct) {
        windows = j->x + item * c->ic * c->in_plane + row * j->p.out_w;
        ld = c->in_plane;
    } else {
        for (int64_t i = 0; j->oc_parts == 1 && i < c->ic; i++) gather(j, item, b, i);
        windows = windows_of(j, item, b);
    }
    start_from_bias(j, y, item % c->groups * c->oc + first, channels, n);
    zc_status status = zc_sgemm(false, false, channels, n, depth, 1, w, depth, windows, ld,
                                j->bias ? 1.0f : 0.0f, y, c->out_plane);
    if (status != ZC_OK) atomic_store(&j->status, (int)status);
}

/* ---- one channel a group ---- */

static void add_tap(const plane *p, const float *x, int64_t oh, int64_t kh, int64_t kw, float w,
                    float *to)
{
    int64_t ih = oh * p->stride_h - p->top + kh * p->step_h, at = kw * p->step_w - p->left, from,
            end;
    if (ih < 0 || ih >= p->in_h) return;
    const float *row = x + ih * p->in_w + at;
    inside(at, p->stride_w, p->in_w, p->out_w, &from, &end);
    if (p->stride_w == 1)
        for (int64_t o = from; o < end; o++) to[o] += w * row[o];
    else
        for (int64_t o = from; o < end; o++) to[o] += w * row[o * p->stride_w];
}

static void depthwise(void *arg, int64_t begin, int64_t end)
{
    const conv_job *j = arg;
    const plane *p = &j->p;
    for (int64_t i = begin; i < end; i++) { /* output planes */
        int64_t channel = i % (j->c->groups * j->c->oc);
        const float *x = j->x + i / j->c->oc * j->c->in_plane, *w = j->w + channel * j->c->taps;
        for (int64_t oh = 0; oh < p->out_h; oh++) {
            float *to = j->y + i * j->c->out_plane + oh * p->out_w,
                  b = j->bias ? j->bias[channel] : 0;
            for (int64_t o = 0; o < p->out_w; o++) to[o] = b;
            for (int64_t t = 0; t < j->c->taps; t++)
                add_tap(p, x, oh, t / p->k_w, t % p->k_w, w[t], to);
        }
    }
}

/* ---- the kernel ---- */

bool zc_fits_conv_f32(const zc_kctx *k)
{
    const zc_tensor *x = &k->in[0];
    bool bias = k->nin < 3 || !zc_present(&k->in[2]) || k->in[2].dtype == ZC_F32;
    return x->dtype == ZC_F32 && k->in[1].dtype == ZC_F32 && bias && (x->rank == 3 || x->rank == 4);
}

static bool is_direct(const zc_conv *c, const plane *p)
{
    return c->taps == 1 && p->stride_h == 1 && p->stride_w == 1 && p->out_h == p->in_h &&
           p->out_w == p->in_w && p->top == 0 && p->left == 0;
}

/* Bands so that windows fit the cache and there are PARTS or more; channels are split when there
 * are too few. By the shape alone, never by the number of threads: how the library sums depends on
 * the sizes that it is given, and results must not depend on threads. */
static bool divide(zc_kctx *k, conv_job *j, int *tasks)
{
    const zc_conv *c = j->c;
    int64_t depth = c->ic * c->taps, items = c->batch * c->groups;
    int64_t rows = BAND_FLOATS / (depth * j->p.out_w > 0 ? depth * j->p.out_w : 1);
    int64_t share = (j->p.out_h * items + PARTS - 1) / PARTS;
    if (rows > share) rows = share;
    if (rows * j->p.out_w < 64) rows = (64 + j->p.out_w - 1) / j->p.out_w;
    if (rows > j->p.out_h) rows = j->p.out_h;
    j->band_rows = rows;
    j->bands = (j->p.out_h + rows - 1) / rows;
    j->oc_parts = items * j->bands < PARTS ? c->oc / LEAST_CHANNELS : 1;
    if (j->oc_parts > PARTS) j->oc_parts = PARTS;
    if (j->oc_parts < 1) j->oc_parts = 1;
    size_t n, floats;
    if (!zc_mul_size((size_t)(items * j->bands), (size_t)j->oc_parts, &n) || n > INT32_MAX)
        return false;
    *tasks = (int)n;
    if (j->direct) return true;
    if (!zc_mul_size((size_t)(items * j->bands), (size_t)(depth * rows * j->p.out_w), &floats) ||
        floats > SIZE_MAX / 4)
        return false;
    j->windows = zc_scratch_get(k->scratch, floats * sizeof *j->windows);
    return j->windows != NULL;
}

zc_status zc_fast_conv_f32(zc_kctx *k)
{
    zc_conv c;
    int tasks;
    ZC_TRY(zc_conv_of(k, 0, 1, &c));
    if (zc_tensor_numel(&k->out[0]) == 0) return ZC_OK;
    conv_job j = {
        .c = &c, .p = plane_of(&c.w), .x = k->in[0].data, .w = k->in[1].data, .y = k->out[0].data};
    if (k->nin > 2 && zc_present(&k->in[2])) j.bias = k->in[2].data;
    if (c.ic == 1 && c.groups > 1) {
        zc_parallel(k, c.batch * c.groups * c.oc, 1, depthwise, &j);
        return ZC_OK;
    }
    if (c.ic * c.taps == 0) return zc_k_Conv(k);
    j.direct = is_direct(&c, &j.p);
    if (!divide(k, &j, &tasks)) return zc_fail_nomem(k->diag, "convolution windows", 0);
    if (!j.direct && j.oc_parts > 1)
        zc_parallel(k, c.batch * c.groups * j.bands * c.ic, 1, gather_all, &j);
    zc_parts(k, tasks, band, &j);
    return zc_dnnl_report(k, (zc_status)atomic_load(&j.status), "convolution");
}
