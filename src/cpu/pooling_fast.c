/* f32 poolings of one or two axes without indices: row by row, so that the inner loops run along
 * the width. */
#include <math.h>
#include <string.h>

#include "cpu/fast.h"
#include "cpu/pooling.h"

/* Output columns [from, to) have the tap at offset `at` of theirs on the input row. */
typedef struct span {
    int64_t at, from, to;
} span;

typedef struct pool_job {
    zc_pooling p;
    const float *x;
    float *y;
    bool max, count_pad;
    span *spans;    /* of each tap along the width */
    float *columns; /* an average: taps that count along each output column's width */
    int64_t in_h, in_w, out_h, out_w, k_h, k_w, stride_h, stride_w, step_h, step_w, top, left;
    int64_t end_h,
        end_w; /* padded sizes: taps beyond them are not counted even with count_include_pad */
} pool_job;

bool zc_fits_pool_f32(const zc_kctx *k)
{
    bool indices = k->nout > 1 && zc_present(&k->out[1]);
    return k->in[0].dtype == ZC_F32 && !indices && (k->in[0].rank == 3 || k->in[0].rank == 4);
}

static void take_geometry(pool_job *j)
{
    const zc_window *w = &j->p.w;
    int v = w->axes - 1;
    j->in_w = w->in[v];
    j->out_w = w->out[v];
    j->k_w = w->kernel[v];
    j->stride_w = w->stride[v];
    j->step_w = w->dilation[v];
    j->left = w->begin[v];
    j->end_w = w->in[v] + w->end[v];
    j->in_h = j->out_h = j->k_h = j->stride_h = j->step_h = j->end_h = 1;
    if (w->axes == 1) return;
    j->in_h = w->in[0];
    j->out_h = w->out[0];
    j->k_h = w->kernel[0];
    j->stride_h = w->stride[0];
    j->step_h = w->dilation[0];
    j->top = w->begin[0];
    j->end_h = w->in[0] + w->end[0];
}

static span span_of(const pool_job *j, int64_t kw)
{
    const int64_t at = kw * j->step_w - j->left;
    const int64_t first = at >= 0 ? 0 : (-at + j->stride_w - 1) / j->stride_w;
    const int64_t last = j->in_w - 1 - at < 0 ? -1 : (j->in_w - 1 - at) / j->stride_w;
    return (span){at, first, last + 1 < j->out_w ? last + 1 : j->out_w};
}

static void add_span(const span *s, const float *row, int64_t step, float *to)
{
    row += s->at;
    if (step == 1)
        for (int64_t o = s->from; o < s->to; o++) to[o] += row[o];
    else
        for (int64_t o = s->from; o < s->to; o++) to[o] += row[o * step];
}

static void max_span(const span *s, const float *row, int64_t step, float *to)
{
    row += s->at;
    for (int64_t o = s->from; o < s->to; o++) {
        const float v = row[o * step];
        to[o] = v > to[o] || v != v ? v : to[o];
    }
}

static void add_row(const pool_job *j, const float *row, float *to)
{
    for (int64_t kw = 0; kw < j->k_w; kw++)
        (j->max ? max_span : add_span)(&j->spans[kw], row, j->stride_w, to);
}

/* Taps of one axis that count for the average. */
static int64_t counted(int64_t begin, int64_t taps, int64_t step, int64_t low, int64_t high)
{
    int64_t n = 0;
    for (int64_t t = 0; t < taps; t++) n += begin + t * step >= low && begin + t * step < high;
    return n;
}

static void count_columns(const pool_job *j)
{
    for (int64_t o = 0; o < j->out_w; o++) {
        int64_t left = o * j->stride_w - j->left;
        int64_t n = j->count_pad ? counted(left, j->k_w, j->step_w, -j->left, j->end_w)
                                 : counted(left, j->k_w, j->step_w, 0, j->in_w);
        j->columns[o] = (float)n;
    }
}

static void divide_row(const pool_job *j, int64_t oh, float *to)
{
    int64_t top = oh * j->stride_h - j->top;
    int64_t rows = j->count_pad ? counted(top, j->k_h, j->step_h, -j->top, j->end_h)
                                : counted(top, j->k_h, j->step_h, 0, j->in_h);
    for (int64_t o = 0; o < j->out_w; o++) {
        const float count = (float)rows * j->columns[o];
        to[o] = count > 0 ? to[o] / count : 0;
    }
}

static void pool_planes(void *arg, int64_t begin, int64_t end)
{
    const pool_job *j = arg;
    for (int64_t i = begin * j->out_h; i < end * j->out_h; i++) { /* output rows */
        int64_t plane = i / j->out_h, oh = i % j->out_h;
        float *to = j->y + i * j->out_w;
        for (int64_t o = 0; o < j->out_w; o++) to[o] = j->max ? -INFINITY : 0;
        for (int64_t kh = 0; kh < j->k_h; kh++) {
            int64_t ih = oh * j->stride_h - j->top + kh * j->step_h;
            if (ih >= 0 && ih < j->in_h)
                add_row(j, j->x + plane * j->p.in_plane + ih * j->in_w, to);
        }
        if (!j->max) divide_row(j, oh, to);
    }
}

static zc_status pool(zc_kctx *k, pool_job *j)
{
    zc_pooling_of(k, &j->p);
    take_geometry(j);
    j->x = k->in[0].data;
    j->y = k->out[0].data;
    j->columns = zc_scratch_get(k->scratch, (size_t)j->out_w * sizeof *j->columns);
    j->spans = zc_scratch_get(k->scratch, (size_t)j->k_w * sizeof *j->spans);
    if (!j->columns || !j->spans) return zc_fail_nomem(k->diag, "pooling", (size_t)j->out_w);
    for (int64_t kw = 0; kw < j->k_w; kw++) j->spans[kw] = span_of(j, kw);
    if (!j->max) count_columns(j);
    if (j->p.out_plane > 0)
        zc_parallel(k, j->p.planes, 1 + 4096 / (j->p.in_plane + 1), pool_planes, j);
    return ZC_OK;
}

zc_status zc_fast_max_pool_f32(zc_kctx *k)
{
    return pool(k, &(pool_job){.max = true});
}

zc_status zc_fast_average_pool_f32(zc_kctx *k)
{
    bool count = ZC_ATTRS(k, AveragePool)->count_include_pad != 0;
    return pool(k, &(pool_job){.count_pad = count});
}

/* One mean a plane, in double as the reference. */
static void average_planes(void *arg, int64_t begin, int64_t end)
{
    const pool_job *j = arg;
    for (int64_t p = begin; p < end; p++) {
        const float *x = j->x + p * j->p.in_plane;
        double sum[8] = {0};
        for (int64_t i = 0; i < j->p.in_plane; i++) sum[i % 8] += (double)x[i];
        for (int s = 4; s > 0; s /= 2)
            for (int i = 0; i < s; i++) sum[i] += sum[i + s];
        j->y[p] = (float)(sum[0] / (double)j->p.in_plane);
    }
}

bool zc_fits_global_pool_f32(const zc_kctx *k)
{
    return k->in[0].dtype == ZC_F32 && zc_tensor_numel(&k->in[0]) > 0;
}

zc_status zc_fast_global_average_pool_f32(zc_kctx *k)
{
    pool_job j = {.x = k->in[0].data, .y = k->out[0].data};
    zc_pooling_of(k, &j.p);
    zc_parallel(k, j.p.planes, 1 + 4096 / (j.p.in_plane + 1), average_planes, &j);
    return ZC_OK;
}

/* NaN counts as largest. */
static float greater(float a, float b)
{
    return b > a || b != b ? b : a;
}

static void maximum_planes(void *arg, int64_t begin, int64_t end)
{
    enum { LANES = 16 };
    const pool_job *j = arg;
    for (int64_t p = begin; p < end; p++) {
        const float *x = j->x + p * j->p.in_plane;
        float top[LANES];
        int64_t i = 0;
        for (int l = 0; l < LANES; l++) top[l] = -INFINITY;
        for (; i + LANES <= j->p.in_plane; i += LANES)
            for (int l = 0; l < LANES; l++) top[l] = greater(top[l], x[i + l]);
        for (; i < j->p.in_plane; i++) top[0] = greater(top[0], x[i]);
        for (int l = 1; l < LANES; l++) top[0] = greater(top[0], top[l]);
        j->y[p] = top[0];
    }
}

zc_status zc_fast_global_max_pool_f32(zc_kctx *k)
{
    pool_job j = {.x = k->in[0].data, .y = k->out[0].data};
    zc_pooling_of(k, &j.p);
    zc_parallel(k, j.p.planes, 1 + 4096 / (j.p.in_plane + 1), maximum_planes, &j);
    return ZC_OK;
}

/* ---- local response normalisation ---- */

typedef struct lrn_job {
    const float *x;
    float *y;
    int64_t channels, plane, size;
    double alpha, beta, bias; /* alpha: over size */
} lrn_job;

/* One channel, a stretch of its plane at a time; sums in double as the reference. */
static void lrn_planes(void *arg, int64_t begin, int64_t end)
{
    enum { STRETCH = 256 };
    const lrn_job *j = arg;
    for (int64_t p = begin; p < end; p++) {
        int64_t c = p % j->channels, lo = c - (j->size - 1) / 2, hi = c + j->size / 2;
        if (lo < 0) lo = 0;
        if (hi >= j->channels) hi = j->channels - 1;
        for (int64_t at = 0; at < j->plane; at += STRETCH) {
            int64_t n = j->plane - at < STRETCH ? j->plane - at : STRETCH;
            const float *x = j->x + p * j->plane + at;
            float *y = j->y + p * j->plane + at;
            double sum[STRETCH] = {0};
            for (int64_t q = lo; q <= hi; q++) {
                const float *from = x + (q - c) * j->plane;
                for (int64_t i = 0; i < n; i++) sum[i] += (double)from[i] * (double)from[i];
            }
            for (int64_t i = 0; i < n; i++) sum[i] = j->bias + j->alpha * sum[i];
            if (j->beta == 0.75)
                for (int64_t i = 0; i < n; i++) {
                    double root = sqrt(sum[i]);
                    y[i] = (float)((double)x[i] / (root * sqrt(root)));
                }
            else
                for (int64_t i = 0; i < n; i++) y[i] = (float)((double)x[i] / pow(sum[i], j->beta));
        }
    }
}

bool zc_fits_lrn_f32(const zc_kctx *k)
{
    return k->in[0].dtype == ZC_F32 && zc_tensor_numel(&k->in[0]) > 0;
}

zc_status zc_fast_lrn_f32(zc_kctx *k)
{
    const zc_attrs_LRN *a = ZC_ATTRS(k, LRN);
    const zc_tensor *x = &k->in[0];
    lrn_job j = {.x = x->data,
                 .y = k->out[0].data,
                 .channels = x->dims[1],
                 .plane = zc_dims_span(x->dims, 2, x->rank),
                 .size = a->size,
                 .alpha = (double)a->alpha / (double)a->size,
                 .beta = (double)a->beta,
                 .bias = (double)a->bias};
    zc_parallel(k, x->dims[0] * x->dims[1], 1 + 1024 / (j.plane + 1), lrn_planes, &j);
    return ZC_OK;
}
