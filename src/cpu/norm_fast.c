/* Softmax and normalisations of f32. */
#include <math.h>

#include "cpu/copy.h"
#include "cpu/fast.h"
#include "cpu/rows.h"

/* Elements that are worth a thread. */
#define GRAIN 8192

static const float *floats(const zc_tensor *t)
{
    return t->data;
}

static bool is_f32(const zc_tensor *t)
{
    return !zc_present(t) || t->dtype == ZC_F32;
}

static bool all_f32(const zc_kctx *k)
{
    for (int i = 0; i < k->nin; i++)
        if (!is_f32(&k->in[i])) return false;
    for (int i = 0; i < k->nout; i++)
        if (!is_f32(&k->out[i])) return false;
    return zc_present(&k->out[0]) && zc_tensor_numel(&k->in[0]) > 0;
}

/* Data of an operand; NULL when it is absent. */
static const float *operand(const zc_kctx *k, int i)
{
    return zc_input(k, i) ? zc_input(k, i)->data : NULL;
}

static float *result(const zc_kctx *k, int i)
{
    return zc_output(k, i) ? zc_output(k, i)->data : NULL;
}

/* ---- softmax ---- */

typedef struct softmax_job {
    const zc_rows *rows;
    const float *x;
    float *y;
    int64_t n, inner; /* elements along the axis, and behind it */
} softmax_job;

static void softmax_rows(void *arg, int64_t begin, int64_t end)
{
    const softmax_job *j = arg;
    for (int64_t r = begin; r < end; r++) j->rows->softmax(j->x + r * j->n, j->n, j->y + r * j->n);
}

static void softmax_columns(void *arg, int64_t begin, int64_t end)
{
    const softmax_job *j = arg;
    int64_t lanes = j->rows->lanes, strips = (j->inner + lanes - 1) / lanes;
    for (int64_t i = begin; i < end; i++) {
        int64_t at = i % strips * lanes, width = j->inner - at < lanes ? j->inner - at : lanes;
        int64_t off = i / strips * j->n * j->inner + at;
        j->rows->column_softmax(j->x + off, j->n, j->inner, width, j->y + off);
    }
}

bool zc_fits_softmax(const zc_kctx *k)
{
    return all_f32(k);
}

zc_status zc_fast_softmax(zc_kctx *k)
{
    const zc_tensor *x = &k->in[0];
    int axis = zc_axis(ZC_ATTRS(k, Softmax)->axis, x->rank);
    int64_t n = x->dims[axis], outer = zc_dims_span(x->dims, 0, axis);
    softmax_job j = {.rows = zc_rows_get(), .x = floats(x), .y = k->out[0].data, .n = n};
    j.inner = zc_dims_span(x->dims, axis + 1, x->rank);
    int64_t strips = (j.inner + j.rows->lanes - 1) / j.rows->lanes;
    if (j.inner == 1)
        zc_parallel(k, outer, 1 + GRAIN / n, softmax_rows, &j);
    else
        zc_parallel(k, outer * strips, 1 + GRAIN / (n * j.rows->lanes), softmax_columns, &j);
    return ZC_OK;
}

/* ---- over the last axes ---- */

typedef struct layer_job {
    const zc_rows *rows;
    const float *x, *skip, *skip_bias, *scale, *bias; /* NULL: absent */
    float *y, *mean, *inv, *sum;                      /* NULL: not wanted */
    int64_t n, skip_rows;                             /* rows of skip, which are used in turn */
    double eps;
    bool rms;
} layer_job;

static void layer_rows(void *arg, int64_t begin, int64_t end)
{
    const layer_job *j = arg;
    for (int64_t r = begin; r < end; r++) {
        const float *x = j->x + r * j->n;
        float *y = j->y + r * j->n;
        double mean, var;
        if (j->skip) {
            float *to = j->sum ? j->sum + r * j->n : y;
            j->rows->add(x, j->skip + r % j->skip_rows * j->n, j->skip_bias, j->n, to);
            x = to;
        }
        j->rows->moments(x, j->n, j->rms, &mean, &var);
        double inv = 1 / sqrt(var + j->eps);
        if (j->mean) j->mean[r] = (float)mean;
        if (j->inv) j->inv[r] = (float)inv;
        j->rows->scale(x, j->n, (float)mean, (float)inv, j->scale, j->bias, y);
    }
}

/* Is t, but for leading dimensions of 1, the last dimensions of x? */
static bool is_tail(const zc_tensor *t, const zc_tensor *x)
{
    int ones = 0;
    while (ones < t->rank && t->dims[ones] == 1) ones++;
    for (int d = 1; d <= t->rank - ones; d++)
        if (d > x->rank || t->dims[t->rank - d] != x->dims[x->rank - d]) return false;
    return true;
}

/* Does operand i, where present, cover exactly the last `count` dimensions? */
static bool covers(const zc_kctx *k, int i, int count)
{
    const zc_tensor *t = zc_input(k, i), *x = &k->in[0];
    if (!t) return true;
    return is_tail(t, x) && zc_tensor_numel(t) == zc_dims_span(x->dims, x->rank - count, x->rank);
}

static int layer_axis(const zc_kctx *k)
{
    int64_t axis = k->op == ZC_OP_LayerNormalization ? ZC_ATTRS(k, LayerNormalization)->axis
                                                     : ZC_ATTRS(k, RMSNormalization)->axis;
    return zc_axis(axis, k->in[0].rank);
}

bool zc_fits_layer_norm(const zc_kctx *k)
{
    int count = k->in[0].rank - layer_axis(k);
    return all_f32(k) && covers(k, 1, count) && covers(k, 2, count);
}

static zc_status run_layer(zc_kctx *k, layer_job *j, int axis)
{
    const zc_tensor *x = &k->in[0];
    j->rows = zc_rows_get();
    j->x = floats(x);
    j->y = k->out[0].data;
    j->n = zc_dims_span(x->dims, axis, x->rank);
    zc_parallel(k, zc_dims_span(x->dims, 0, axis), 1 + GRAIN / j->n, layer_rows, j);
    return ZC_OK;
}

zc_status zc_fast_layer_norm(zc_kctx *k)
{
    layer_job j = {.scale = operand(k, 1), .bias = operand(k, 2)};
    j.rms = k->op == ZC_OP_RMSNormalization;
    j.eps =
        j.rms ? ZC_ATTRS(k, RMSNormalization)->epsilon : ZC_ATTRS(k, LayerNormalization)->epsilon;
    j.mean = j.rms ? NULL : result(k, 1);
    j.inv = result(k, j.rms ? 1 : 2);
    return run_layer(k, &j, layer_axis(k));
}

bool zc_fits_skip_norm(const zc_kctx *k)
{
    const zc_tensor *x = &k->in[0], *skip = &k->in[1];
    if (!all_f32(k) || !is_tail(skip, x)) return false;
    if (zc_tensor_numel(skip) % x->dims[x->rank - 1]) return false;
    for (int i = 2; i < k->nin; i++)
        if (!covers(k, i, 1)) return false;
    return true;
}

zc_status zc_fast_skip_norm(zc_kctx *k)
{
    layer_job j = {.skip = operand(k, 1), .scale = operand(k, 2)};
    j.rms = k->op == ZC_OP_SkipSimplifiedLayerNormalization;
    j.bias = j.rms ? NULL : operand(k, 3);
    j.skip_bias = operand(k, j.rms ? 3 : 4);
    j.eps = j.rms ? ZC_ATTRS(k, SkipSimplifiedLayerNormalization)->epsilon
                  : ZC_ATTRS(k, SkipLayerNormalization)->epsilon;
    j.mean = result(k, 1);
    j.inv = result(k, 2);
    j.sum = result(k, 3);
    int last = k->in[0].rank - 1;
    j.skip_rows = zc_tensor_numel(&k->in[1]) / k->in[0].dims[last];
    return run_layer(k, &j, last);
}

/* ---- by channel ---- */

typedef struct channel_job {
    const zc_rows *rows;
    const float *x, *scale, *bias;
    float *y;
    int64_t channels, plane;
    int64_t groups;           /* of channels, when each has its own statistics */
    const float *mean, *gain; /* else: of each channel; bias is its shift */
    double eps;
} channel_job;

static void group_rows(void *arg, int64_t begin, int64_t end)
{
    const channel_job *j = arg;
    int64_t width = j->channels / j->groups, n = width * j->plane;
    for (int64_t g = begin; g < end; g++) {
        double mean, var;
        j->rows->moments(j->x + g * n, n, false, &mean, &var);
        double inv = 1 / sqrt(var + j->eps);
        for (int64_t i = 0; i < width; i++) {
            int64_t c = g % j->groups * width + i, at = g * n + i * j->plane;
            j->rows->affine(j->x + at, j->plane, (float)mean, (float)(inv * (double)j->scale[c]),
                            j->bias[c], j->y + at);
        }
    }
}

static bool has_channels(const zc_kctx *k, int last)
{
    int64_t channels = k->in[0].rank > 1 ? k->in[0].dims[1] : 1;
    for (int i = 1; i <= last; i++)
        if (zc_tensor_numel(&k->in[i]) != channels) return false;
    return true;
}

static int64_t groups_of(const zc_kctx *k)
{
    return k->op == ZC_OP_GroupNormalization ? ZC_ATTRS(k, GroupNormalization)->num_groups
                                             : k->in[0].dims[1];
}

bool zc_fits_group_norm(const zc_kctx *k)
{
    return all_f32(k) && has_channels(k, 2) && k->in[0].dims[1] % groups_of(k) == 0;
}

zc_status zc_fast_group_norm(zc_kctx *k)
{
    const zc_tensor *x = &k->in[0];
    channel_job j = {.rows = zc_rows_get(),
                     .x = floats(x),
                     .scale = floats(&k->in[1]),
                     .bias = floats(&k->in[2]),
                     .y = k->out[0].data,
                     .channels = x->dims[1],
                     .plane = zc_dims_span(x->dims, 2, x->rank),
                     .groups = groups_of(k)};
    j.eps = k->op == ZC_OP_GroupNormalization ? ZC_ATTRS(k, GroupNormalization)->epsilon
                                              : ZC_ATTRS(k, InstanceNormalization)->epsilon;
    int64_t n = j.channels / j.groups * j.plane;
    zc_parallel(k, x->dims[0] * j.groups, 1 + GRAIN / n, group_rows, &j);
    return ZC_OK;
}

static void batch_planes(void *arg, int64_t begin, int64_t end)
{
    const channel_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        int64_t c = i % j->channels, at = i * j->plane;
        j->rows->affine(j->x + at, j->plane, j->mean[c], j->gain[c], j->bias[c], j->y + at);
    }
}

/* Planes of one element: the channels lie side by side. */
static void batch_samples(void *arg, int64_t begin, int64_t end)
{
    const channel_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        int64_t at = i * j->channels;
        j->rows->affines(j->x + at, j->channels, j->mean, j->gain, j->bias, j->y + at);
    }
}

bool zc_fits_batch_norm(const zc_kctx *k)
{
    bool plain = !ZC_ATTRS(k, BatchNormalization)->training_mode && k->nout == 1;
    return plain && all_f32(k) && has_channels(k, 4);
}

zc_status zc_fast_batch_norm(zc_kctx *k)
{
    const zc_tensor *x = &k->in[ZC_IN_BatchNormalization_x];
    const float *scale = floats(&k->in[ZC_IN_BatchNormalization_scale]),
                *var = floats(&k->in[ZC_IN_BatchNormalization_variance]);
    channel_job j = {.rows = zc_rows_get(),
                     .x = floats(x),
                     .bias = floats(&k->in[ZC_IN_BatchNormalization_bias]),
                     .mean = floats(&k->in[ZC_IN_BatchNormalization_mean]),
                     .y = k->out[0].data,
                     .channels = x->rank > 1 ? x->dims[1] : 1,
                     .plane = zc_dims_span(x->dims, x->rank > 1 ? 2 : 1, x->rank),
                     .eps = ZC_ATTRS(k, BatchNormalization)->epsilon};
    float *gain = zc_scratch_get(k->scratch, (size_t)j.channels * sizeof *gain);
    if (!gain) return zc_fail_nomem(k->diag, "gains of the channels", 0);
    for (int64_t c = 0; c < j.channels; c++)
        gain[c] = (float)((double)scale[c] / sqrt((double)var[c] + j.eps));
    j.gain = gain;
    if (j.plane == 1)
        zc_parallel(k, x->dims[0], 1 + GRAIN / j.channels, batch_samples, &j);
    else
        zc_parallel(k, x->dims[0] * j.channels, 1 + GRAIN / j.plane, batch_planes, &j);
    return ZC_OK;
}

/* ---- groups of channels that lie side by side ---- */

enum { STRIP = 64 }; /* channels whose sums are kept at once */

/* sum[c] of x, or of (x - mean[c])^2, over the rows of a strip of n channels. */
static void strip_sums(const channel_job *j, const float *x, int64_t n, const double *mean,
                       double sum[STRIP])
{
    for (int64_t c = 0; c < n; c++) sum[c] = 0;
    for (int64_t p = 0; p < j->plane; p++, x += j->channels)
        if (mean)
            for (int64_t c = 0; c < n; c++)
                sum[c] += ((double)x[c] - mean[c]) * ((double)x[c] - mean[c]);
        else
            for (int64_t c = 0; c < n; c++) sum[c] += (double)x[c];
}

static void fill_strip(double *to, int64_t n, double v)
{
    for (int64_t c = 0; c < n; c++) to[c] = v;
}

/* y of a strip of n channels from `at` on. */
static void put_strip(const channel_job *j, int64_t at, int64_t n, const double *mean,
                      const double *inv)
{
    const int64_t first = at % j->channels;
    float means[STRIP], gain[STRIP];
    for (int64_t c = 0; c < n; c++) {
        means[c] = (float)mean[c];
        gain[c] = (float)(inv[c] * (double)j->scale[first + c]);
    }
    for (int64_t p = 0; p < j->plane; p++)
        j->rows->affines(j->x + at + p * j->channels, n, means, gain, j->bias + first,
                         j->y + at + p * j->channels);
}

/* The sum over a group of any width. */
static double group_sum(const channel_job *j, const float *x, int64_t width, const double *mean)
{
    double sum[STRIP], all = 0;
    for (int64_t at = 0; at < width; at += STRIP) {
        int64_t n = width - at < STRIP ? width - at : STRIP;
        strip_sums(j, x + at, n, mean, sum);
        for (int64_t c = 0; c < n; c++) all += sum[c];
    }
    return all;
}

static void wide_groups(void *arg, int64_t begin, int64_t end)
{
    const channel_job *j = arg;
    const int64_t width = j->channels / j->groups;
    const double n = (double)(width * j->plane);
    double mean[STRIP], inv[STRIP];
    for (int64_t g = begin; g < end; g++) {
        int64_t at = g / j->groups * j->plane * j->channels + g % j->groups * width;
        fill_strip(mean, STRIP, group_sum(j, j->x + at, width, NULL) / n);
        fill_strip(inv, STRIP, 1 / sqrt(group_sum(j, j->x + at, width, mean) / n + j->eps));
        for (int64_t s = 0; s < width; s += STRIP)
            put_strip(j, at + s, width - s < STRIP ? width - s : STRIP, mean, inv);
    }
}

/* Each channel's sum becomes its group's mean. */
static void join_groups(const channel_job *j, double *sum, int64_t n, int64_t width)
{
    for (int64_t c = 0; c < n; c += width) {
        double all = 0;
        for (int64_t i = 0; i < width; i++) all += sum[c + i];
        fill_strip(sum + c, width, all / (double)(width * j->plane));
    }
}

static int64_t groups_in_strip(const channel_job *j)
{
    return STRIP / (j->channels / j->groups);
}

/* Strips of several groups. */
static void narrow_groups(void *arg, int64_t begin, int64_t end)
{
    const channel_job *j = arg;
    const int64_t width = j->channels / j->groups, strip = groups_in_strip(j) * width;
    const int64_t strips = (j->channels + strip - 1) / strip;
    double mean[STRIP], inv[STRIP];
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i % strips * strip, at = i / strips * j->plane * j->channels + first;
        int64_t n = j->channels - first < strip ? j->channels - first : strip;
        strip_sums(j, j->x + at, n, NULL, mean);
        join_groups(j, mean, n, width);
        strip_sums(j, j->x + at, n, mean, inv);
        join_groups(j, inv, n, width);
        for (int64_t c = 0; c < n; c++) inv[c] = 1 / sqrt(inv[c] + j->eps);
        put_strip(j, at, n, mean, inv);
    }
}

bool zc_fits_group_norm_last(const zc_kctx *k)
{
    const zc_attrs_MsGroupNorm *a = ZC_ATTRS(k, MsGroupNorm);
    int64_t channels = k->in[0].dims[k->in[0].rank - 1];
    return all_f32(k) && a->channels_last && !a->activation && a->groups > 0 &&
           channels % a->groups == 0 && zc_tensor_numel(&k->in[1]) == channels &&
           zc_tensor_numel(&k->in[2]) == channels;
}

zc_status zc_fast_group_norm_last(zc_kctx *k)
{
    const zc_attrs_MsGroupNorm *a = ZC_ATTRS(k, MsGroupNorm);
    const zc_tensor *x = &k->in[0];
    channel_job j = {.rows = zc_rows_get(),
                     .x = floats(x),
                     .scale = floats(&k->in[1]),
                     .bias = floats(&k->in[2]),
                     .y = k->out[0].data,
                     .channels = x->dims[x->rank - 1],
                     .plane = zc_dims_span(x->dims, 1, x->rank - 1),
                     .groups = a->groups,
                     .eps = a->epsilon};
    int64_t per = groups_in_strip(&j), n = j.channels / j.groups * j.plane;
    if (per > 1)
        zc_parallel(k, x->dims[0] * ((j.groups + per - 1) / per), 1 + GRAIN / (n * per),
                    narrow_groups, &j);
    else
        zc_parallel(k, x->dims[0] * j.groups, 1 + GRAIN / n, wide_groups, &j);
    return ZC_OK;
}
