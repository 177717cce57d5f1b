/* Normalisations by mean and variance of channels, groups and chosen axes: reference kernels. */
#include <math.h>

#include "cpu/copy.h"

/* ---- statistics ---- */

/* The elements x[at + i*outer_step + j*inner_step], i < outer, j < inner. */
typedef struct block {
    const zc_tensor *x;
    int64_t at, outer, outer_step, inner, inner_step;
} block;

typedef struct moments {
    double mean, var; /* var: of the population */
} moments;

static moments moments_of(const block *b)
{
    double n = (double)b->outer * (double)b->inner, sum = 0, squares = 0;
    for (int64_t i = 0; i < b->outer; i++)
        for (int64_t j = 0; j < b->inner; j++)
            sum += zc_get(b->x, b->at + i * b->outer_step + j * b->inner_step);
    double mean = sum / n;
    for (int64_t i = 0; i < b->outer; i++) {
        for (int64_t j = 0; j < b->inner; j++) {
            double d = zc_get(b->x, b->at + i * b->outer_step + j * b->inner_step) - mean;
            squares += d * d;
        }
    }
    return (moments){mean, squares / n};
}

/* Product of dims[from..), or 0 where it overflows, which only a tensor without elements can. */
static int64_t tail(const zc_tensor *t, int from)
{
    int64_t n = zc_dims_span(t->dims, from, t->rank);
    return n < 0 ? 0 : n;
}

static zc_status check_channel_vectors(zc_kctx *k, int last, int64_t channels)
{
    for (int i = 1; i <= last; i++)
        ZC_TRY(zc_check_length(k, tail(&k->in[i], 0), channels, "a channel parameter"));
    return ZC_OK;
}

/* ---- batch normalisation ---- */

typedef struct batch_job {
    const zc_tensor *x, *scale, *bias, *mean, *var;
    zc_tensor *y, *mean_out, *var_out; /* NULL: not wanted */
    int64_t batch, channels, plane;
    double eps, momentum;
} batch_job;

static void batch_plane(const batch_job *j, int64_t n, int64_t c, moments m)
{
    double gain = zc_get(j->scale, c) / sqrt(m.var + j->eps), shift = zc_get(j->bias, c);
    int64_t at = (n * j->channels + c) * j->plane;
    for (int64_t i = at; i < at + j->plane; i++)
        zc_put(j->y, i, (zc_get(j->x, i) - m.mean) * gain + shift);
}

static void batch_infer(void *arg, int64_t begin, int64_t end)
{
    const batch_job *j = arg;
    for (int64_t r = begin; r < end; r++) {
        int64_t c = r % j->channels;
        moments m = {zc_get(j->mean, c), zc_get(j->var, c)};
        batch_plane(j, r / j->channels, c, m);
    }
}

static void batch_train(void *arg, int64_t begin, int64_t end)
{
    const batch_job *j = arg;
    for (int64_t c = begin; c < end; c++) {
        block b = {.x = j->x,
                   .at = c * j->plane,
                   .outer = j->batch,
                   .outer_step = j->channels * j->plane,
                   .inner = j->plane,
                   .inner_step = 1};
        moments m = moments_of(&b);
        double keep = j->momentum, add = 1 - j->momentum;
        if (j->mean_out) zc_put(j->mean_out, c, zc_get(j->mean, c) * keep + m.mean * add);
        if (j->var_out) zc_put(j->var_out, c, zc_get(j->var, c) * keep + m.var * add);
        for (int64_t n = 0; zc_present(j->y) && n < j->batch; n++) batch_plane(j, n, c, m);
    }
}

/* Outside training the running statistics stay what they are. */
static void pass_statistics(zc_kctx *k)
{
    for (int i = 1; i < k->nout; i++) {
        if (!zc_output(k, i)) continue;
        const zc_tensor *from = &k->in[i + 2];
        zc_copy_flat(k, tail(from, 0), zc_elem_size(from), k->out[i].data, from->data);
    }
}

zc_status zc_k_BatchNormalization(zc_kctx *k)
{
    const zc_attrs_BatchNormalization *a = ZC_ATTRS(k, BatchNormalization);
    const zc_tensor *x = &k->in[ZC_IN_BatchNormalization_x];
    batch_job j = {.x = x,
                   .scale = &k->in[ZC_IN_BatchNormalization_scale],
                   .bias = &k->in[ZC_IN_BatchNormalization_bias],
                   .mean = &k->in[ZC_IN_BatchNormalization_mean],
                   .var = &k->in[ZC_IN_BatchNormalization_variance],
                   .y = &k->out[0],
                   .mean_out = zc_output(k, 1),
                   .var_out = zc_output(k, 2),
                   .batch = x->dims[0],
                   .channels = x->rank > 1 ? x->dims[1] : 1,
                   .plane = tail(x, x->rank > 1 ? 2 : 1),
                   .eps = a->epsilon,
                   .momentum = a->momentum};
    ZC_TRY(check_channel_vectors(k, 4, j.channels));
    if (a->training_mode) {
        zc_parallel(k, j.channels, 1, batch_train, &j);
        return ZC_OK;
    }
    pass_statistics(k);
    if (zc_present(j.y) && zc_tensor_numel(x) > 0)
        zc_parallel(k, j.batch * j.channels, 1 + 4096 / j.plane, batch_infer, &j);
    return ZC_OK;
}

/* ---- group normalisation ---- */

typedef struct group_job {
    const zc_tensor *x, *scale, *bias;
    zc_tensor *y;
    int64_t groups, width; /* width: channels a group */
    int64_t plane, batch_step, channel_step, plane_step;
    double eps;
    bool silu;
} group_job;

static void group_channel(const group_job *j, int64_t at, int64_t c, moments m)
{
    double gain = zc_get(j->scale, c) / sqrt(m.var + j->eps), shift = zc_get(j->bias, c);
    for (int64_t p = 0; p < j->plane; p++) {
        int64_t i = at + p * j->plane_step;
        double v = (zc_get(j->x, i) - m.mean) * gain + shift;
        zc_put(j->y, i, j->silu ? v / (1 + exp(-v)) : v);
    }
}

static void group_rows(void *arg, int64_t begin, int64_t end)
{
    const group_job *j = arg;
    for (int64_t r = begin; r < end; r++) {
        int64_t first = r % j->groups * j->width;
        int64_t at = r / j->groups * j->batch_step + first * j->channel_step;
        block b = {.x = j->x,
                   .at = at,
                   .outer = j->width,
                   .outer_step = j->channel_step,
                   .inner = j->plane,
                   .inner_step = j->plane_step};
        moments m = moments_of(&b);
        for (int64_t c = 0; c < j->width; c++)
            group_channel(j, at + c * j->channel_step, first + c, m);
    }
}

/* groups 0: one a channel. */
static zc_status group_norm(zc_kctx *k, int64_t groups, double eps, bool channels_last, bool silu)
{
    const zc_tensor *x = &k->in[0];
    int64_t channels = x->dims[channels_last ? x->rank - 1 : 1];
    ZC_TRY(check_channel_vectors(k, 2, channels));
    if (groups && channels % groups)
        return zc_kernel_fail(k, "groups do not divide the channels (got %lld and %lld)",
                              (long long)groups, (long long)channels);
    if (zc_tensor_numel(x) == 0) return ZC_OK;
    int64_t sample = tail(x, 1), plane = sample / channels;
    group_job j = {.x = x,
                   .scale = &k->in[1],
                   .bias = &k->in[2],
                   .y = &k->out[0],
                   .groups = groups ? groups : channels,
                   .width = groups ? channels / groups : 1,
                   .plane = plane,
                   .batch_step = sample,
                   .channel_step = channels_last ? 1 : plane,
                   .plane_step = channels_last ? channels : 1,
                   .eps = eps,
                   .silu = silu};
    zc_parallel(k, x->dims[0] * j.groups, 1 + 4096 / (j.width * plane), group_rows, &j);
    return ZC_OK;
}

zc_status zc_k_InstanceNormalization(zc_kctx *k)
{
    return group_norm(k, 0, ZC_ATTRS(k, InstanceNormalization)->epsilon, false, false);
}

zc_status zc_k_GroupNormalization(zc_kctx *k)
{
    const zc_attrs_GroupNormalization *a = ZC_ATTRS(k, GroupNormalization);
    return group_norm(k, a->num_groups, a->epsilon, false, false);
}

zc_status zc_k_MsGroupNorm(zc_kctx *k)
{
    const zc_attrs_MsGroupNorm *a = ZC_ATTRS(k, MsGroupNorm);
    return group_norm(k, a->groups, a->epsilon, a->channels_last, a->activation);
}

/* ---- over chosen axes ---- */

/* The axes of a tensor in two parts: those that a statistic is taken over, and the rest. */
typedef struct split {
    int rank[2];
    int64_t dims[2][ZC_MAX_RANK], steps[2][1][ZC_MAX_RANK];
} split;

static split split_axes(const zc_tensor *x, const bool *mask)
{
    split s = {0};
    int64_t strides[ZC_MAX_RANK];
    zc_strides(x, strides);
    for (int d = 0; d < x->rank; d++) {
        int at = s.rank[mask[d]]++;
        s.dims[mask[d]][at] = x->dims[d];
        s.steps[mask[d]][0][at] = strides[d];
    }
    return s;
}

/* Walks part `part` of the axes; false after the last element. */
static bool next(const split *s, int part, int64_t *idx, int64_t *off)
{
    return zc_index_next(s->rank[part], s->dims[part], idx, 1, s->steps[part], off);
}

static void standardise(const split *s, const zc_tensor *x, zc_tensor *y, int64_t base)
{
    int64_t n = 0;
    double sum = 0, squares = 0;
    for (int64_t idx[ZC_MAX_RANK] = {0}, at = base, more = 1; more; more = next(s, 1, idx, &at)) {
        sum += zc_get(x, at);
        n++;
    }
    double mean = sum / (double)n;
    for (int64_t idx[ZC_MAX_RANK] = {0}, at = base, more = 1; more; more = next(s, 1, idx, &at))
        squares += (zc_get(x, at) - mean) * (zc_get(x, at) - mean);
    double deviation = sqrt(squares / (double)n) + 1e-9;
    for (int64_t idx[ZC_MAX_RANK] = {0}, at = base, more = 1; more; more = next(s, 1, idx, &at))
        zc_put(y, at, (zc_get(x, at) - mean) / deviation);
}

zc_status zc_k_MeanVarianceNormalization(zc_kctx *k)
{
    static const int64_t usual[] = {0, 2, 3};
    const zc_attrs_MeanVarianceNormalization *a = ZC_ATTRS(k, MeanVarianceNormalization);
    zc_ints axes = a->axes;
    if (!ZC_ATTR_GIVEN(MeanVarianceNormalization, a, axes)) axes = (zc_ints){3, usual};
    const zc_tensor *x = &k->in[0];
    bool mask[ZC_MAX_RANK] = {false};
    for (int i = 0; i < axes.n; i++) mask[zc_axis(axes.v[i], x->rank)] = true;
    if (zc_tensor_numel(x) == 0) return ZC_OK;
    split s = split_axes(x, mask);
    for (int64_t idx[ZC_MAX_RANK] = {0}, at = 0, more = 1; more; more = next(&s, 0, idx, &at))
        standardise(&s, x, &k->out[0], at);
    return ZC_OK;
}

/* ---- by a p-norm ---- */

zc_status zc_k_LpNormalization(zc_kctx *k)
{
    const zc_attrs_LpNormalization *a = ZC_ATTRS(k, LpNormalization);
    const zc_tensor *x = &k->in[0];
    int axis = zc_axis(a->axis, x->rank);
    int64_t all = zc_tensor_numel(x), n = x->dims[axis];
    if (all == 0) return ZC_OK;
    int64_t step = zc_dims_span(x->dims, axis + 1, x->rank);
    for (int64_t r = 0; r < all / n; r++) {
        int64_t at = r / step * n * step + r % step;
        double norm = 0;
        for (int64_t i = 0; i < n; i++) {
            double v = zc_get(x, at + i * step);
            norm += a->p == 1 ? fabs(v) : v * v;
        }
        if (a->p == 2) norm = sqrt(norm);
        for (int64_t i = 0; i < n; i++) {
            double v = zc_get(x, at + i * step);
            zc_put(&k->out[0], at + i * step, norm == 0 ? 0 : v / norm);
        }
    }
    return ZC_OK;
}
