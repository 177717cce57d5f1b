/* Reference kernels: GridSample, AffineGrid, NonMaxSuppression. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/kernel.h"

/* ---- GridSample ---- */

typedef enum padding { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION } padding;

typedef struct sampler {
    int axes, taps; /* spatial axes; taps an axis: 1 nearest, 2 linear, 4 cubic */
    padding pad;
    bool align;
    int64_t size[ZC_MAX_RANK];
} sampler;

/* x mirrored at the borders until it lies between them. */
static double reflect(double x, double low, double high)
{
    double range = high - low;
    if (!(range > 0)) return low;
    double past = x < low ? low - x : x > high ? x - high : 0;
    if (past == 0) return x;
    double turns = floor(past / range), rest = past - turns * range;
    bool from_low = (x < low) == (fmod(turns, 2) == 0);
    return from_low ? low + rest : high - rest;
}

static double border(const sampler *s, int axis, bool high)
{
    double edge = s->align ? 0 : 0.5;
    return high ? (double)s->size[axis] - 1 + edge : -edge;
}

/* From the grid's [-1, 1] to an input coordinate, brought inside as the padding asks. */
static double coordinate(const sampler *s, int axis, double g)
{
    double n = (double)s->size[axis];
    double x = s->align ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2;
    x = (double)(float)x;
    if (s->taps == 1) x = nearbyint(x);
    double low = border(s, axis, false), high = border(s, axis, true);
    if (!(x < low) && !(x > high)) return x;
    if (s->pad == PAD_BORDER) return x < 0 ? 0 : n - 1;
    return s->pad == PAD_REFLECTION ? reflect(x, low, high) : x;
}

/* Index of tap i on the axis, or -1 for a zero. */
static int64_t tap_index(const sampler *s, int axis, double i)
{
    double n = (double)s->size[axis];
    if (i >= 0 && i < n) return (int64_t)i;
    if (s->pad == PAD_BORDER) return i < 0 ? 0 : s->size[axis] - 1;
    if (s->pad != PAD_REFLECTION || !isfinite(i)) return -1;
    double r = trunc(reflect(i, border(s, axis, false), border(s, axis, true)));
    return r >= 0 && r < n ? (int64_t)r : -1;
}

static double cubic(double x)
{
    const double a = -0.75;
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

typedef struct taps {
    int64_t index[ZC_MAX_RANK][4];
    double weight[ZC_MAX_RANK][4];
} taps;

static void find_taps(const sampler *s, int axis, double x, taps *t)
{
    double base = s->taps == 1 ? x : floor(x) - (s->taps == 4);
    for (int i = 0; i < s->taps; i++) {
        double d = x - (base + i);
        t->index[axis][i] = tap_index(s, axis, base + i);
        t->weight[axis][i] = s->taps == 1 ? 1 : s->taps == 2 ? 1 - fabs(d) : cubic(d);
    }
}

/* The sum over all combinations of taps, counted in a mixed-radix number. */
static double sample(const sampler *s, const taps *t, const zc_tensor *x, int64_t plane)
{
    double sum = 0;
    int combinations = 1;
    for (int d = 0; d < s->axes; d++) combinations *= s->taps;
    for (int c = 0; c < combinations; c++) {
        double w = 1;
        int64_t at = 0;
        bool inside = true;
        for (int d = 0, rest = c; d < s->axes; d++, rest /= s->taps) {
            int64_t i = t->index[d][rest % s->taps];
            inside &= i >= 0;
            w *= t->weight[d][rest % s->taps];
            at = at * s->size[d] + i;
        }
        if (inside) sum += w * zc_get(x, plane + at);
    }
    return sum;
}

static sampler sampler_of(const zc_attrs_GridSample *a, const zc_tensor *x)
{
    sampler s = {.axes = x->rank - 2, .align = a->align_corners != 0, .pad = PAD_ZEROS, .taps = 2};
    if (strcmp(a->mode, "nearest") == 0) s.taps = 1;
    if (strcmp(a->mode, "cubic") == 0 || strcmp(a->mode, "bicubic") == 0) s.taps = 4;
    if (strcmp(a->padding_mode, "border") == 0) s.pad = PAD_BORDER;
    if (strcmp(a->padding_mode, "reflection") == 0) s.pad = PAD_REFLECTION;
    for (int d = 0; d < s.axes; d++) s.size[d] = x->dims[d + 2];
    return s;
}

zc_status zc_k_GridSample(zc_kctx *k)
{
    const zc_tensor *x = &k->in[0], *grid = &k->in[1];
    zc_tensor *y = &k->out[0];
    sampler s = sampler_of(ZC_ATTRS(k, GridSample), x);
    int64_t channels = x->dims[1], in = zc_dims_span(x->dims, 2, x->rank);
    int64_t out = zc_dims_span(y->dims, 2, y->rank);
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    if (s.axes > 6) return zc_kernel_unsupported(k, "GridSample of %d spatial axes", s.axes);
    for (int64_t p = 0; p < x->dims[0] * out; p++) {
        taps t;
        for (int d = 0; d < s.axes;
             d++) /* the grid's coordinates stand in reverse order of the axes */
            find_taps(&s, d, coordinate(&s, d, zc_get(grid, p * s.axes + s.axes - 1 - d)), &t);
        int64_t n = p / out;
        for (int64_t c = 0; c < channels; c++)
            zc_put(y, (n * channels + c) * out + p % out,
                   in ? sample(&s, &t, x, (n * channels + c) * in) : 0);
    }
    return ZC_OK;
}

/* ---- AffineGrid ---- */

static double grid_position(int64_t i, int64_t n, bool align)
{
    if (align) return n > 1 ? -1 + 2 * (double)i / (double)(n - 1) : -1;
    return -1 + (2 * (double)i + 1) / (double)n;
}

zc_status zc_k_AffineGrid(zc_kctx *k)
{
    const zc_tensor *theta = &k->in[0];
    zc_tensor *y = &k->out[0];
    bool align = ZC_ATTRS(k, AffineGrid)->align_corners != 0;
    int axes = y->rank - 2;
    int64_t points = zc_dims_span(y->dims, 1, 1 + axes);
    for (int64_t p = 0; p < y->dims[0] * points; p++) {
        double at[3] = {0}; /* x, y, z: the last axis first */
        int64_t rest = p % points;
        for (int d = 0; d < axes; d++) {
            int64_t size = y->dims[axes - d];
            at[d] = grid_position(rest % size, size, align);
            rest /= size;
        }
        for (int r = 0; r < axes; r++) {
            int64_t row = (p / points * axes + r) * (axes + 1);
            double v = zc_get(theta, row + axes);
            for (int d = 0; d < axes; d++) v += zc_get(theta, row + d) * at[d];
            zc_put(y, p * axes + r, v);
        }
    }
    return ZC_OK;
}

/* ---- NonMaxSuppression ---- */

typedef struct box {
    float low[2], high[2], score;
    int64_t index;
} box;

static box read_box(const zc_tensor *boxes, int64_t at, bool centred)
{
    box b = {.index = 0};
    for (int d = 0; d < 2; d++) {
        float first = (float)zc_get(boxes, at * 4 + d),
              second = (float)zc_get(boxes, at * 4 + 2 + d);
        if (centred) {
            b.low[d] = first - second / 2;
            b.high[d] = first + second / 2;
        } else {
            b.low[d] = first < second ? first : second;
            b.high[d] = first < second ? second : first;
        }
    }
    return b;
}

static bool overlaps(const box *a, const box *b, float threshold)
{
    float common = 1, area_a = 1, area_b = 1;
    for (int d = 0; d < 2; d++) {
        float low = a->low[d] > b->low[d] ? a->low[d] : b->low[d];
        float high = a->high[d] < b->high[d] ? a->high[d] : b->high[d];
        if (!(high > low)) return false;
        common *= high - low;
        area_a *= a->high[d] - a->low[d];
        area_b *= b->high[d] - b->low[d];
    }
    float all = area_a + area_b - common;
    return area_a > 0 && area_b > 0 && all > 0 && common / all > threshold;
}

/* Best score first; equal scores in index order; NaN last. */
static int better_first(const void *pa, const void *pb)
{
    const box *a = pa, *b = pb;
    bool nan_a = isnan(a->score), nan_b = isnan(b->score);
    if (nan_a != nan_b) return nan_a ? 1 : -1;
    if (!nan_a && a->score != b->score) return a->score > b->score ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static int64_t suppress(box *candidates, int64_t n, int64_t most, float threshold)
{
    int64_t kept = 0;
    qsort(candidates, (size_t)n, sizeof *candidates, better_first);
    for (int64_t i = 0; i < n && kept < most; i++) {
        bool selected = true;
        for (int64_t j = 0; selected && j < kept; j++)
            selected = !overlaps(&candidates[i], &candidates[j], threshold);
        if (selected) candidates[kept++] = candidates[i];
    }
    return kept;
}

static bool scalar_input(const zc_kctx *k, int i, double absent, double *out)
{
    bool has = k->nin > i && zc_present(&k->in[i]) && zc_tensor_numel(&k->in[i]) > 0;
    *out = has ? zc_get(&k->in[i], 0) : absent;
    return has;
}

typedef struct selection {
    int64_t (*rows)[3];
    int64_t count;
} selection;

static void select_class(zc_kctx *k, int64_t batch, int64_t class, box *work, double most,
                         double iou, bool by_score, double least, selection *out)
{
    const zc_tensor *boxes = &k->in[0], *scores = &k->in[1];
    int64_t n = boxes->dims[1], classes = scores->dims[1], candidates = 0;
    for (int64_t i = 0; i < n; i++) {
        float score = (float)zc_get(scores, (batch * classes + class) * n + i);
        if (by_score && !(score > (float)least)) continue;
        work[candidates] =
            read_box(boxes, batch * n + i, ZC_ATTRS(k, NonMaxSuppression)->center_point_box != 0);
        work[candidates].score = score;
        work[candidates++].index = i;
    }
    int64_t limit = most < (double)n ? (int64_t)most : n;
    int64_t kept = suppress(work, candidates, limit, (float)iou);
    for (int64_t i = 0; i < kept; i++) {
        int64_t *row = out->rows[out->count++];
        row[0] = batch;
        row[1] = class;
        row[2] = work[i].index;
    }
}

zc_status zc_k_NonMaxSuppression(zc_kctx *k)
{
    const zc_tensor *boxes = &k->in[0], *scores = &k->in[1];
    double most, iou, least;
    (void)scalar_input(k, 2, 0, &most);
    (void)scalar_input(k, 3, 0, &iou);
    bool by_score = scalar_input(k, 4, 0, &least);
    int64_t n = boxes->dims[1], batches = boxes->dims[0], classes = scores->dims[1];
    double limit = most > 0 ? (most < (double)n ? most : (double)n) : 0;
    size_t rows;
    if (!zc_mul_size((size_t)(batches * classes), (size_t)limit, &rows) || rows > SIZE_MAX / 32)
        return zc_kernel_fail(k, "too many boxes");
    box *work = zc_scratch_get(k->scratch, (size_t)n * sizeof *work);
    selection out = {.rows = zc_scratch_get(k->scratch, rows * sizeof *out.rows)};
    if (!work || !out.rows) return zc_fail_nomem(k->diag, "boxes", rows * sizeof *out.rows);
    for (int64_t p = 0; limit > 0 && p < batches * classes; p++)
        select_class(k, p / classes, p % classes, work, limit, iou, by_score, least, &out);
    ZC_TRY(k->resize(k, 0, 2, (int64_t[]){out.count, 3}));
    if (out.count) memcpy(k->out[0].data, out.rows, (size_t)out.count * sizeof *out.rows);
    return ZC_OK;
}
