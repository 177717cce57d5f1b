/* Reference kernels of MaxUnpool, MaxRoiPool, RoiAlign and LRN. */
#include <math.h>
#include <string.h>

#include "cpu/window.h"

/* ---- MaxUnpool ---- */

/* Indices count in the image that the pooling's attributes imply; out may be larger or smaller. */
static void implied_dims(const zc_kctx *k, int64_t *dims)
{
    const zc_attrs_MaxUnpool *at = ZC_ATTRS(k, MaxUnpool);
    zc_window_attrs a = {.kernel = at->kernel_shape, .strides = at->strides, .pads = at->pads};
    const zc_tensor *x = &k->in[0];
    int axes = x->rank - 2;
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    for (int i = 0; i < axes; i++)
        dims[i + 2] = (x->dims[i + 2] - 1) * zc_window_stride(&a, i) + a.kernel.v[i] -
                      zc_window_pad(&a, axes, i, 0) - zc_window_pad(&a, axes, i, 1);
}

zc_status zc_k_MaxUnpool(zc_kctx *k)
{
    const zc_tensor *x = &k->in[0], *index = &k->in[1];
    zc_tensor *y = &k->out[0];
    int64_t dims[ZC_MAX_RANK], strides[ZC_MAX_RANK], n = zc_tensor_numel(x);
    size_t bytes = 0;
    if (zc_tensor_bytes(y, &bytes) && bytes) memset(y->data, 0, bytes);
    implied_dims(k, dims);
    int64_t total = zc_numel(x->rank, dims);
    zc_strides(y, strides);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = zc_geti(index, i), pos[ZC_MAX_RANK], off = 0;
        bool ok = at >= 0 && at < total;
        if (ok) zc_coords(at, x->rank, dims, pos);
        for (int d = 0; ok && d < x->rank; d++) {
            ok = pos[d] < y->dims[d];
            off += pos[d] * strides[d];
        }
        if (!ok) {
            return zc_kernel_fail(k,
                                  "index out of range (got %lld at element %lld, need [0, %lld))",
                                  (long long)at, (long long)i, (long long)total);
        }
        zc_put(y, off, zc_get(x, i));
    }
    return ZC_OK;
}

/* ---- regions of interest ---- */

typedef struct roi_job {
    const zc_tensor *x, *rois, *batches;
    zc_tensor *y;
    int64_t n, channels, in_h, in_w, out_h, out_w, samples;
    double scale, shift;
    bool max, exact; /* RoiAlign: pool by maximum; no least size */
} roi_job;

static roi_job roi_job_of(const zc_kctx *k)
{
    const zc_tensor *x = &k->in[0], *y = &k->out[0];
    return (roi_job){.x = x,
                     .rois = &k->in[1],
                     .y = &k->out[0],
                     .n = x->dims[0],
                     .channels = x->dims[1],
                     .in_h = x->dims[2],
                     .in_w = x->dims[3],
                     .out_h = y->dims[2],
                     .out_w = y->dims[3]};
}

static int64_t clamp(double v, int64_t lo, int64_t hi)
{
    return v >= (double)hi ? hi : v > (double)lo ? (int64_t)v : lo;
}

/* Cells [begin, end) of bin `bin` of `bins` over [start, start + size). */
static void bin_range(double start, double size, int64_t bin, int64_t bins, int64_t limit,
                      int64_t *begin, int64_t *end)
{
    double width = size / (double)bins;
    *begin = clamp(floor((double)bin * width) + start, 0, limit);
    *end = clamp(ceil((double)(bin + 1) * width) + start, 0, limit);
}

static void max_roi(void *arg, int64_t begin, int64_t end)
{
    const roi_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        int64_t bin_x = i % j->out_w, bin_y = i / j->out_w % j->out_h;
        int64_t plane = i / (j->out_w * j->out_h), r = plane / j->channels, x0, x1, y0, y1;
        double at[4];
        for (int c = 0; c < 4; c++) at[c] = round(zc_get(j->rois, r * 5 + 1 + c) * j->scale);
        bin_range(at[0], fmax(at[2] - at[0] + 1, 1), bin_x, j->out_w, j->in_w, &x0, &x1);
        bin_range(at[1], fmax(at[3] - at[1] + 1, 1), bin_y, j->out_h, j->in_h, &y0, &y1);
        int64_t base = (zc_geti(j->rois, r * 5) * j->channels + plane % j->channels) * j->in_h;
        double best = x0 < x1 && y0 < y1 ? -(double)INFINITY : 0;
        for (int64_t y = y0; y < y1; y++)
            for (int64_t x = x0; x < x1; x++) {
                double v = zc_get(j->x, (base + y) * j->in_w + x);
                if (v > best || isnan(v)) best = v;
            }
        zc_put(j->y, i, best);
    }
}

static zc_status check_batches(zc_kctx *k, const zc_tensor *t, int64_t step, int64_t n)
{
    for (int64_t i = 0; i < k->out[0].dims[0]; i++) {
        int64_t b = zc_geti(t, i * step);
        if (b < 0 || b >= n)
            return zc_kernel_fail(k, "batch index out of range (got %lld, need [0, %lld))",
                                  (long long)b, (long long)n);
    }
    return ZC_OK;
}

zc_status zc_k_MaxRoiPool(zc_kctx *k)
{
    roi_job j = roi_job_of(k);
    j.scale = ZC_ATTRS(k, MaxRoiPool)->spatial_scale;
    if (zc_tensor_numel(j.y) == 0) return ZC_OK;
    ZC_TRY(check_batches(k, j.rois, 5, j.n));
    zc_parallel(k, zc_tensor_numel(j.y), 4, max_roi, &j);
    return ZC_OK;
}

/* One axis of a bilinear sample: the two cells and the weight of the second; false: outside. */
static bool sample_axis(double p, int64_t size, int64_t *low, int64_t *high, double *part)
{
    if (!(p >= -1 && p <= (double)size)) return false;
    if (p < 0) p = 0;
    *low = (int64_t)p;
    *high = *low + 1;
    *part = p - (double)*low;
    if (*low >= size - 1) {
        *low = *high = size - 1;
        *part = 0;
    }
    return true;
}

/* The greater; NaN wins. */
static double greater(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

/* The interpolated value; for max pooling the largest of the weighted corners, as ONNX has it. */
static double roi_sample(const roi_job *j, int64_t plane, double y, double x)
{
    int64_t yl, yh, xl, xh;
    double py, px;
    if (!sample_axis(y, j->in_h, &yl, &yh, &py) || !sample_axis(x, j->in_w, &xl, &xh, &px))
        return 0;
    double a = (1 - py) * (1 - px) * zc_get(j->x, (plane + yl) * j->in_w + xl);
    double b = (1 - py) * px * zc_get(j->x, (plane + yl) * j->in_w + xh);
    double c = py * (1 - px) * zc_get(j->x, (plane + yh) * j->in_w + xl);
    double d = py * px * zc_get(j->x, (plane + yh) * j->in_w + xh);
    return j->max ? greater(greater(a, b), greater(c, d)) : a + b + c + d;
}

/* The samples of one axis of a bin: position start + (i + 0.5) * step for i in [0, n). Those
 * outside [lo, hi) lie off the image and count as 0. */
typedef struct samples {
    double start, step;
    int64_t n, lo, hi;
} samples;

static samples samples_of(const roi_job *j, double start, double size, int64_t bin, int64_t bins,
                          int64_t limit)
{
    double width = size / (double)bins;
    samples s = {.start = start + (double)bin * width};
    s.n = j->samples > 0 ? j->samples : clamp(ceil(width), 0, ZC_WINDOW_LIMIT);
    s.step = s.n ? width / (double)s.n : 0;
    s.hi = s.n;
    if (s.step > 0) { /* one more at each side against rounding */
        s.lo = clamp(ceil((-1 - s.start) / s.step - 0.5) - 1, 0, s.n);
        s.hi = clamp(floor(((double)limit - s.start) / s.step - 0.5) + 2, s.lo, s.n);
    }
    return s;
}

static double pool_samples(const roi_job *j, int64_t source, const samples *sy, const samples *sx)
{
    bool all = sy->lo == 0 && sy->hi == sy->n && sx->lo == 0 && sx->hi == sx->n;
    double v = j->max && all ? -(double)INFINITY : 0;
    if (sy->n == 0 || sx->n == 0) return 0;
    for (int64_t iy = sy->lo; iy < sy->hi; iy++) {
        for (int64_t ix = sx->lo; ix < sx->hi; ix++) {
            double y = sy->start + ((double)iy + 0.5) * sy->step;
            double x = sx->start + ((double)ix + 0.5) * sx->step;
            double one = roi_sample(j, source, y, x);
            v = j->max ? greater(v, one) : v + one;
        }
    }
    return j->max ? v : v / ((double)sy->n * (double)sx->n);
}

static void align(void *arg, int64_t begin, int64_t end)
{
    const roi_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        int64_t bin_x = i % j->out_w, bin_y = i / j->out_w % j->out_h;
        int64_t plane = i / (j->out_w * j->out_h), r = plane / j->channels;
        double at[4];
        for (int c = 0; c < 4; c++) at[c] = zc_get(j->rois, r * 4 + c) * j->scale - j->shift;
        double w = j->exact ? at[2] - at[0] : fmax(at[2] - at[0], 1);
        double h = j->exact ? at[3] - at[1] : fmax(at[3] - at[1], 1);
        samples sy = samples_of(j, at[1], h, bin_y, j->out_h, j->in_h);
        samples sx = samples_of(j, at[0], w, bin_x, j->out_w, j->in_w);
        int64_t source = (zc_geti(j->batches, r) * j->channels + plane % j->channels) * j->in_h;
        zc_put(j->y, i, pool_samples(j, source, &sy, &sx));
    }
}

zc_status zc_k_RoiAlign(zc_kctx *k)
{
    const zc_attrs_RoiAlign *a = ZC_ATTRS(k, RoiAlign);
    roi_job j = roi_job_of(k);
    j.batches = &k->in[2];
    j.scale = a->spatial_scale;
    j.samples = a->sampling_ratio;
    j.max = strcmp(a->mode, "max") == 0;
    j.exact = strcmp(a->coordinate_transformation_mode, "half_pixel") == 0;
    j.shift = j.exact ? 0.5 : 0;
    if (zc_tensor_numel(j.y) == 0) return ZC_OK;
    if (zc_tensor_numel(j.batches) != j.y->dims[0] || zc_tensor_numel(j.rois) != 4 * j.y->dims[0])
        return zc_kernel_fail(k, "rois and batch_indices differ in length");
    ZC_TRY(check_batches(k, j.batches, 1, j.n));
    zc_parallel(k, zc_tensor_numel(j.y), 4, align, &j);
    return ZC_OK;
}

/* ---- LRN ---- */

typedef struct lrn_job {
    const zc_tensor *x;
    zc_tensor *y;
    int64_t channels, plane, size;
    double alpha, beta, bias;
} lrn_job;

static void lrn(void *arg, int64_t begin, int64_t end)
{
    const lrn_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        int64_t c = i / j->plane % j->channels, origin = i - c * j->plane;
        int64_t lo = c - (j->size - 1) / 2, hi = c + j->size / 2;
        double sum = 0;
        if (lo < 0) lo = 0;
        if (hi >= j->channels) hi = j->channels - 1;
        for (int64_t n = lo; n <= hi; n++) {
            double v = zc_get(j->x, origin + n * j->plane);
            sum += v * v;
        }
        double base = j->bias + j->alpha / (double)j->size * sum;
        zc_put(j->y, i, zc_get(j->x, i) / pow(base, j->beta));
    }
}

zc_status zc_k_LRN(zc_kctx *k)
{
    const zc_attrs_LRN *a = ZC_ATTRS(k, LRN);
    const zc_tensor *x = &k->in[0];
    lrn_job j = {.x = x,
                 .y = &k->out[0],
                 .channels = x->dims[1],
                 .size = a->size,
                 .alpha = a->alpha,
                 .beta = a->beta,
                 .bias = a->bias};
    if (zc_tensor_numel(x) == 0) return ZC_OK;
    j.plane = zc_dims_span(x->dims, 2, x->rank);
    zc_parallel(k, zc_tensor_numel(x), 16, lrn, &j);
    return ZC_OK;
}
