/* Resize: interpolation is separable, so each axis is resized by itself, with taps and weights
 * computed once for every output position of the axis. */
#include "op/resize.h"

#include <math.h>
#include <string.h>

#include "cpu/fast.h"

/* For each output position: `taps` weights for consecutive input positions from first[o] on
 * (clamped to the edges); outside: the whole position lies beyond the cropped input. */
typedef struct axis_plan {
    int64_t in, out;
    int taps;
    int64_t *first;
    double *weights;
    bool *outside;
} axis_plan;

typedef struct resize_job {
    const zc_attrs_Resize *a;
    zc_resize_words words;
} resize_job;

static double source_of(const resize_job *job, const zc_resize_axis *ax, int64_t in, int64_t o)
{
    double x = (double)o, width = ax->scale * (double)in;
    switch (job->words.coords) {
    case ZC_COORD_ALIGN_CORNERS:
        return width == 1 ? 0 : x * (double)(in - 1) / (width - 1);
    case ZC_COORD_ASYMMETRIC:
        return x / ax->scale;
    case ZC_COORD_TF_CROP_AND_RESIZE: {
        double extent = (ax->roi[1] - ax->roi[0]) * (double)(in - 1);
        return ax->roi[0] * (double)(in - 1) + (width == 1 ? extent / 2 : x * extent / (width - 1));
    }
    case ZC_COORD_PYTORCH_HALF_PIXEL:
        return width == 1 ? -0.5 : (x + 0.5) / ax->scale - 0.5;
    case ZC_COORD_HALF_PIXEL_SYMMETRIC: {
        double offset = (double)in / 2 * (1 - (double)ax->out / width);
        return offset + (x + 0.5) / ax->scale - 0.5;
    }
    case ZC_COORD_HALF_PIXEL:
        return (x + 0.5) / ax->scale - 0.5;
    }
    return x;
}

static int tap_count(const resize_job *job, double scale)
{
    double s = job->a->antialias && scale < 1 ? scale : 1;
    if (job->words.mode == ZC_RESIZE_LINEAR) return 2 - 2 * (int)(floor(-1 / s) + 1);
    if (job->words.mode == ZC_RESIZE_CUBIC) return 2 - 2 * (int)(floor(-2 / s) + 1);
    return 2;
}

static double cubic(double x, double a)
{
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static double linear(double x)
{
    return fabs(x) < 1 ? 1 - fabs(x) : 0;
}

/* Does the nearest neighbour of a position `ratio` in (0, 1] right of the left tap lie on the
 * right? */
static bool nearest_is_right(zc_resize_round round, double ratio)
{
    if (ratio == 1) return true;
    switch (round) {
    case ZC_NEAREST_PREFER_FLOOR:
        return ratio > 0.5;
    case ZC_NEAREST_PREFER_CEIL:
        return ratio >= 0.5;
    case ZC_NEAREST_FLOOR:
        return false;
    case ZC_NEAREST_CEIL:
        return true;
    }
    return false;
}

/* Weights of taps i (from the left) at distance i - left - ratio. */
static void weigh(const resize_job *job, double scale, double ratio, int taps, double *w)
{
    double s = job->a->antialias && scale < 1 ? scale : 1, sum = 0;
    int left = taps / 2 - 1;
    for (int i = 0; i < taps; i++) {
        double distance = s * ((double)(i - left) - ratio);
        if (job->words.mode == ZC_RESIZE_NEAREST)
            w[i] = nearest_is_right(job->words.round, ratio) == (i == 1);
        else
            w[i] = job->words.mode == ZC_RESIZE_LINEAR
                       ? linear(distance)
                       : cubic(distance, (double)job->a->cubic_coeff_a);
        sum += w[i];
    }
    for (int i = 0; s < 1 && i < taps; i++) w[i] /= sum;
}

static void exclude_outside(const axis_plan *p, int64_t first, double *w)
{
    double sum = 0;
    for (int i = 0; i < p->taps; i++) {
        if (first + i < 0 || first + i >= p->in) w[i] = 0;
        sum += w[i];
    }
    for (int i = 0; i < p->taps; i++) w[i] /= sum;
}

static zc_status plan_axis(zc_kctx *k, const resize_job *job, const zc_resize_axis *ax, int64_t in,
                           axis_plan *p)
{
    size_t n = (size_t)ax->out;
    *p = (axis_plan){.in = in, .out = ax->out, .taps = tap_count(job, ax->scale)};
    p->first = zc_scratch_get(k->scratch, n * sizeof *p->first);
    p->weights = zc_scratch_get(k->scratch, n * (size_t)p->taps * sizeof *p->weights);
    p->outside = zc_scratch_get(k->scratch, n);
    if (!p->first || !p->weights || !p->outside) return zc_fail_nomem(k->diag, "resize", n);
    for (int64_t o = 0; o < ax->out; o++) {
        double x = source_of(job, ax, in, o);
        double base = ceil(x) - 1; /* the tap left of x, so that the ratio is in (0, 1] */
        if (!(fabs(base) < 9e15)) return zc_kernel_fail(k, "a source coordinate is out of range");
        p->first[o] = (int64_t)base - p->taps / 2 + 1;
        weigh(job, ax->scale, x - base, p->taps, p->weights + o * p->taps);
        if (job->a->exclude_outside) exclude_outside(p, p->first[o], p->weights + o * p->taps);
        p->outside[o] =
            job->words.coords == ZC_COORD_TF_CROP_AND_RESIZE && (x < 0 || x > (double)(in - 1));
    }
    return ZC_OK;
}

static int64_t clamp(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

typedef struct axis_job {
    const axis_plan *p;
    const double *from;
    double *to;
    int64_t inner;
    double extrapolated;
} axis_job;

/* Output rows [begin, end) of the [outer * out] rows of `inner` elements. */
static void resize_rows(void *arg, int64_t begin, int64_t end)
{
    const axis_job *j = arg;
    const axis_plan *p = j->p;
    for (int64_t r = begin; r < end; r++) {
        int64_t o = r % p->out;
        const double *from = j->from + r / p->out * p->in * j->inner;
        double *to = j->to + r * j->inner;
        for (int64_t i = 0; i < j->inner; i++) to[i] = p->outside[o] ? j->extrapolated : 0;
        for (int t = 0; t < p->taps && !p->outside[o]; t++) {
            double w = p->weights[o * p->taps + t];
            const double *row = from + clamp(p->first[o] + t, p->in) * j->inner;
            if (w == 0) continue;
            for (int64_t i = 0; i < j->inner; i++) to[i] += w * row[i];
        }
    }
}

static const zc_tensor *given(const zc_kctx *k, int i)
{
    return k->nin > i && zc_present(&k->in[i]) && zc_tensor_numel(&k->in[i]) > 0 ? &k->in[i] : NULL;
}

static zc_status resize_axis(zc_kctx *k, const resize_job *job, const zc_resize_axis *ax,
                             int64_t dims[], int rank, int axis, double **data)
{
    axis_plan p;
    ZC_TRY(plan_axis(k, job, ax, dims[axis], &p));
    int64_t outer = zc_dims_span(dims, 0, axis), inner = zc_dims_span(dims, axis + 1, rank);
    double *to = zc_scratch_get(k->scratch, (size_t)(outer * ax->out * inner) * sizeof *to);
    if (!to)
        return zc_fail_nomem(k->diag, "resize", (size_t)(outer * ax->out * inner) * sizeof *to);
    axis_job j = {.p = &p,
                  .from = *data,
                  .to = to,
                  .inner = inner,
                  .extrapolated = (double)job->a->extrapolation_value};
    zc_parallel(k, outer * ax->out, inner > 0 ? 4096 / inner + 1 : 1, resize_rows, &j);
    dims[axis] = ax->out;
    *data = to;
    return ZC_OK;
}

/* What becomes of each axis; the result must have that shape, whatever the plan says. */
static zc_status read_axes(const zc_kctx *k, resize_job *job, zc_resize_axis axes[ZC_MAX_RANK])
{
    const zc_tensor *x = &k->in[0], *y = &k->out[0];
    ZC_TRY(zc_resize_read_words(job->a, &job->words, k->subject, k->diag));
    ZC_TRY(zc_resize_axes(job->a, x->rank, x->dims, given(k, 1), given(k, 2), given(k, 3), axes,
                          k->subject, k->diag));
    for (int d = 0; d < x->rank; d++) {
        int64_t need = axes[d].resized ? axes[d].out : x->dims[d];
        if (y->rank != x->rank || y->dims[d] != need)
            return zc_kernel_fail(k,
                                  "axis %d comes to %lld elements, and the plan has another "
                                  "shape for the result",
                                  d, (long long)need);
    }
    return ZC_OK;
}

zc_status zc_k_Resize(zc_kctx *k)
{
    resize_job job = {.a = ZC_ATTRS(k, Resize)};
    const zc_tensor *x = &k->in[0];
    zc_resize_axis axes[ZC_MAX_RANK];
    int64_t dims[ZC_MAX_RANK], n = zc_tensor_numel(x);
    ZC_TRY(read_axes(k, &job, axes));
    if (zc_tensor_numel(&k->out[0]) == 0) return ZC_OK;
    if (n == 0) return zc_kernel_fail(k, "cannot resize an empty input to a non-empty output");
    double *data = zc_scratch_get(k->scratch, (size_t)n * sizeof *data);
    if (!data) return zc_fail_nomem(k->diag, "resize", (size_t)n * sizeof *data);
    for (int64_t i = 0; i < n; i++) data[i] = zc_get(x, i);
    memcpy(dims, x->dims, sizeof dims);
    for (int d = x->rank - 1; d >= 0; d--) {
        bool crop = job.words.coords == ZC_COORD_TF_CROP_AND_RESIZE;
        bool same = axes[d].out == dims[d] && axes[d].scale == 1 && !crop;
        if (axes[d].resized && !same)
            ZC_TRY(resize_axis(k, &job, &axes[d], dims, x->rank, d, &data));
    }
    n = zc_tensor_numel(&k->out[0]);
    for (int64_t i = 0; i < n; i++) zc_put(&k->out[0], i, data[i]);
    return ZC_OK;
}

/* ---- f32, with sums in f32 ---- */

typedef struct fast_axis {
    const axis_plan *p;
    const float *from;
    float *to, *weights; /* [taps][out], and where each lies: */
    int32_t *at;
    int64_t inner;
} fast_axis;

/* to (+)= w * from; a weight of 0 takes nothing, not even NaN. */
static void add_row(float *to, const float *from, float w, bool first, int64_t n)
{
    if (first && w == 1)
        memcpy(to, from, (size_t)n * sizeof *to);
    else if (first)
        for (int64_t i = 0; i < n; i++) to[i] = w * from[i];
    else
        for (int64_t i = 0; i < n; i++) to[i] += w * from[i];
}

/* Output rows [begin, end) of the [outer * out] rows of `inner` elements. */
static void fast_rows(void *arg, int64_t begin, int64_t end)
{
    const fast_axis *j = arg;
    const axis_plan *p = j->p;
    for (int64_t r = begin; r < end; r++) {
        const float *from = j->from + r / p->out * p->in * j->inner;
        float *to = j->to + r * j->inner;
        bool first = true;
        for (int t = 0; t < p->taps; t++) {
            int64_t i = t * p->out + r % p->out;
            if (j->weights[i] == 0) continue;
            add_row(to, from + j->at[i] * j->inner, j->weights[i], first, j->inner);
            first = false;
        }
        if (first) memset(to, 0, (size_t)j->inner * sizeof *to);
    }
}

/* The last axis: rows of neighbours. */
static void fast_columns(void *arg, int64_t begin, int64_t end)
{
    const fast_axis *j = arg;
    const axis_plan *p = j->p;
    for (int64_t r = begin; r < end; r++) {
        const float *from = j->from + r * p->in;
        float *to = j->to + r * p->out;
        for (int t = 0; t < p->taps; t++) {
            const int32_t *at = j->at + t * p->out;
            const float *w = j->weights + t * p->out;
            for (int64_t o = 0; o < p->out; o++) {
                float v = w[o] == 0 ? 0 : w[o] * from[at[o]];
                to[o] = t ? to[o] + v : v;
            }
        }
    }
}

static zc_status tap_tables(zc_kctx *k, fast_axis *j)
{
    const axis_plan *p = j->p;
    size_t n = (size_t)p->out * (size_t)p->taps;
    j->weights = zc_scratch_get(k->scratch, n * sizeof *j->weights);
    j->at = zc_scratch_get(k->scratch, n * sizeof *j->at);
    if (!j->weights || !j->at) return zc_fail_nomem(k->diag, "resize", n);
    for (int64_t o = 0; o < p->out; o++)
        for (int t = 0; t < p->taps; t++) {
            j->weights[t * p->out + o] = (float)p->weights[o * p->taps + t];
            j->at[t * p->out + o] = (int32_t)clamp(p->first[o] + t, p->in);
        }
    return ZC_OK;
}

static zc_status fast_one_axis(zc_kctx *k, const resize_job *job, const zc_resize_axis *ax,
                               int64_t dims[], int rank, int axis, bool last, const float **data)
{
    axis_plan p;
    ZC_TRY(plan_axis(k, job, ax, dims[axis], &p));
    int64_t outer = zc_dims_span(dims, 0, axis), inner = zc_dims_span(dims, axis + 1, rank);
    size_t bytes = (size_t)(outer * ax->out * inner) * sizeof(float);
    fast_axis j = {.p = &p, .from = *data, .inner = inner};
    j.to = last ? k->out[0].data : zc_scratch_get(k->scratch, bytes);
    if (!j.to) return zc_fail_nomem(k->diag, "resize", bytes);
    ZC_TRY(tap_tables(k, &j));
    if (inner == 1)
        zc_parallel(k, outer, 4096 / ax->out + 1, fast_columns, &j);
    else
        zc_parallel(k, outer * ax->out, 4096 / inner + 1, fast_rows, &j);
    dims[axis] = ax->out;
    *data = j.to;
    return ZC_OK;
}

bool zc_fits_resize_f32(const zc_kctx *k)
{
    const zc_attrs_Resize *a = ZC_ATTRS(k, Resize);
    const zc_tensor *x = &k->in[0];
    bool small = zc_tensor_numel(x) > 0 && zc_tensor_numel(&k->out[0]) > 0;
    for (int d = 0; d < x->rank; d++) small = small && x->dims[d] < INT32_MAX;
    return x->dtype == ZC_F32 && small &&
           strcmp(a->coordinate_transformation_mode, "tf_crop_and_resize") != 0;
}

zc_status zc_fast_resize_f32(zc_kctx *k)
{
    resize_job job = {.a = ZC_ATTRS(k, Resize)};
    const zc_tensor *x = &k->in[0];
    zc_resize_axis axes[ZC_MAX_RANK];
    int64_t dims[ZC_MAX_RANK];
    const float *data = x->data;
    int first = -1;
    ZC_TRY(read_axes(k, &job, axes));
    memcpy(dims, x->dims, sizeof dims);
    for (int d = x->rank - 1; d >= 0; d--) {
        int64_t size = axes[d].resized ? axes[d].out : dims[d];
        if (size != k->out[0].dims[d])
            return zc_kernel_fail(k,
                                  "axis %d has another size than was planned (got %lld, need %lld)",
                                  d, (long long)size, (long long)k->out[0].dims[d]);
        axes[d].resized = axes[d].resized && (axes[d].out != dims[d] || axes[d].scale != 1);
        if (axes[d].resized) first = d;
    }
    for (int d = x->rank - 1; d >= 0; d--)
        if (axes[d].resized)
            ZC_TRY(fast_one_axis(k, &job, &axes[d], dims, x->rank, d, d == first, &data));
    if (first < 0) memcpy(k->out[0].data, data, (size_t)zc_tensor_numel(x) * sizeof *data);
    return ZC_OK;
}
