#include "precision/calibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const methods[] = {
#define X(name, meaning) #name,
    ZC_CALIBRATION_METHODS(X)
#undef X
};

const char *zc_calibration_method_name(zc_calibration_method m)
{
    return methods[m];
}

zc_calibration_method zc_calibration_method_find(const char *name)
{
    int m = 0;
    while (m < ZC_CALIBRATION_METHOD_COUNT && strcmp(methods[m], name) != 0) m++;
    return (zc_calibration_method)m;
}

void zc_calibration_init(zc_calibration *c)
{
    *c = (zc_calibration){.method = ZC_CALIBRATION_minmax};
    zc_arena_init(&c->arena, 0);
}

void zc_calibration_fini(zc_calibration *c)
{
    for (size_t i = 0; i < c->activations.len; i++) ZC_VEC_FINI(&c->activations.data[i].bins);
    ZC_VEC_FINI(&c->activations);
    ZC_VEC_FINI(&c->weights);
    zc_arena_fini(&c->arena);
}

static zc_status no_memory(zc_diag *diag)
{
    return zc_fail_nomem(diag, "calibration", 0);
}

/* ---- histograms ---- */

static uint32_t bin_of(float x)
{
    uint32_t u;
    x += 0.0f; /* -0 is 0 */
    memcpy(&u, &x, sizeof u);
    return u >> 19;
}

/* Both lists are ascending. */
static bool add_bins(zc_histogram *to, const zc_histogram *from)
{
    zc_histogram sum = {.len = 0};
    size_t a = 0, b = 0;
    while (a < to->len || b < from->len) {
        bool left = b == from->len || (a < to->len && to->data[a].bin <= from->data[b].bin);
        zc_histogram_bin bin = left ? to->data[a] : from->data[b];
        if (left && b < from->len && from->data[b].bin == bin.bin)
            bin.count += from->data[b++].count;
        else
            b += !left;
        a += left;
        if (!ZC_VEC_PUSH(&sum, bin)) {
            ZC_VEC_FINI(&sum);
            return false;
        }
    }
    ZC_VEC_FINI(to);
    *to = sum;
    return true;
}

/* Elements [first, first + n * step) of t, each step-th one. */
typedef struct stretch {
    const zc_tensor *t;
    int64_t first, n, step;
} stretch;

/* What is in `lanes` stretches, each behind the other by `apart`. */
static zc_status count(const stretch *s, int64_t lanes, int64_t apart, zc_activation *out,
                       zc_diag *diag)
{
    uint64_t *dense = zc_calloc(ZC_CALIBRATION_BINS, sizeof *dense);
    if (!dense) return no_memory(diag);
    zc_status status = ZC_OK;
    for (int64_t k = 0; k < lanes * s->n && status == ZC_OK; k++) {
        int64_t at = s->first + k / s->n * apart + k % s->n * s->step;
        float x = (float)zc_load_f64(s->t->dtype, s->t->data, at);
        if (isnan(x)) {
            status = zc_fail(diag, ZC_ERR_INPUT, out->name, "element %lld is NaN: it has no range",
                             (long long)at);
            break;
        }
        if (isinf(x)) {
            out->infinite++;
            continue;
        }
        dense[bin_of(x)]++;
        out->least = out->count ? fminf(out->least, x) : x;
        out->greatest = out->count ? fmaxf(out->greatest, x) : x;
        out->count++;
    }
    for (uint32_t b = 0; b < ZC_CALIBRATION_BINS && status == ZC_OK; b++) {
        zc_histogram_bin bin = {b, dense[b]};
        if (bin.count && !ZC_VEC_PUSH(&out->bins, bin)) status = no_memory(diag);
    }
    free(dense);
    return status;
}

static bool join(zc_activation *to, const zc_activation *from)
{
    to->infinite += from->infinite;
    if (!from->count) return true;
    to->least = to->count ? fminf(to->least, from->least) : from->least;
    to->greatest = to->count ? fmaxf(to->greatest, from->greatest) : from->greatest;
    to->count += from->count;
    return add_bins(&to->bins, &from->bins);
}

/* ---- tensors by name ---- */

static bool escape(const char *name, zc_buf *out)
{
    zc_buf_escape(out, name, strlen(name));
    zc_buf_append(out, "", 1);
    return !out->failed;
}

static const char *escaped(zc_calibration *c, const char *name)
{
    zc_buf text = {0};
    const char *own = escape(name, &text) ? zc_arena_strdup(&c->arena, text.data) : NULL;
    zc_buf_fini(&text);
    return own;
}

/* Where an activation of this name is or would be. */
static size_t place_of(const zc_calibration *c, const char *name)
{
    size_t low = 0, high = c->activations.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(c->activations.data[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The activation of this name, which is the calibration's; NULL: no memory. */
static zc_activation *activation_of(zc_calibration *c, const char *name)
{
    const zc_activation fresh = {.name = name};
    size_t at = place_of(c, name);
    if (at < c->activations.len && strcmp(c->activations.data[at].name, name) == 0)
        return &c->activations.data[at];
    if (!ZC_VEC_PUSH(&c->activations, fresh)) return NULL;
    zc_activation *here = &c->activations.data[at];
    memmove(here + 1, here, (c->activations.len - 1 - at) * sizeof *here);
    *here = fresh;
    return here;
}

zc_status zc_calibration_add(zc_calibration *c, const char *name, const zc_tensor *t, zc_diag *diag)
{
    if (!zc_dtype_is_float(t->dtype)) return ZC_OK;
    zc_activation now = {.name = escaped(c, name)};
    if (!now.name) return no_memory(diag);
    const stretch all = {.t = t, .n = zc_tensor_numel(t), .step = 1};
    zc_status status = count(&all, 1, 0, &now, diag);
    if (status == ZC_OK) {
        zc_activation *to = activation_of(c, now.name);
        if (!to || !join(to, &now)) status = no_memory(diag);
    }
    ZC_VEC_FINI(&now.bins);
    return status;
}

/* ---- weights ---- */

static size_t weight_place(const zc_calibration *c, const char *name)
{
    size_t at = 0;
    while (at < c->weights.len && strcmp(c->weights.data[at].name, name) < 0) at++;
    return at;
}

static bool add_channels(zc_calibration *c, const zc_channels *w)
{
    size_t at = weight_place(c, w->name);
    if (!ZC_VEC_PUSH(&c->weights, *w)) return false;
    zc_channels *here = &c->weights.data[at];
    memmove(here + 1, here, (c->weights.len - 1 - at) * sizeof *here);
    *here = *w;
    return true;
}

zc_status zc_calibration_find(const zc_calibration *c, const char *name,
                              const zc_activation **activation, const zc_channels **weight,
                              zc_diag *diag)
{
    zc_buf text = {0};
    const bool ok = escape(name, &text);
    const size_t a = ok ? place_of(c, text.data) : 0, w = ok ? weight_place(c, text.data) : 0;
    const bool is_activation =
        ok && a < c->activations.len && strcmp(c->activations.data[a].name, text.data) == 0;
    const bool is_weight =
        ok && w < c->weights.len && strcmp(c->weights.data[w].name, text.data) == 0;
    *activation = is_activation ? &c->activations.data[a] : NULL;
    *weight = is_weight ? &c->weights.data[w] : NULL;
    zc_buf_fini(&text);
    return ok ? ZC_OK : no_memory(diag);
}

zc_status zc_channel_thresholds(const char *name, const zc_tensor *t, int axis,
                                zc_calibration_method m, float *out, zc_diag *diag)
{
    const int64_t inner = zc_dims_span(t->dims, axis + 1, t->rank);
    const int64_t outer = zc_dims_span(t->dims, 0, axis), n = t->dims[axis];
    zc_status status = ZC_OK;
    for (int64_t i = 0; i < n && zc_tensor_numel(t) && status == ZC_OK; i++) {
        zc_activation a = {.name = name};
        const stretch s = {.t = t, .first = i * inner, .n = inner, .step = 1};
        status = count(&s, outer, n * inner, &a, diag);
        out[i] = zc_histogram_threshold(&a.bins, fmaxf(a.greatest, -a.least), m);
        ZC_VEC_FINI(&a.bins);
    }
    return status;
}

zc_status zc_calibration_add_weight(zc_calibration *c, const char *name, const zc_tensor *t,
                                    int axis, zc_diag *diag)
{
    zc_channels w = {.name = escaped(c, name), .axis = axis, .count = (size_t)t->dims[axis]};
    float *thresholds = zc_arena_alloc(&c->arena, w.count + 1, sizeof *thresholds);
    if (!w.name || !thresholds) return no_memory(diag);
    size_t at = weight_place(c, w.name);
    if (at < c->weights.len && strcmp(c->weights.data[at].name, w.name) == 0) return ZC_OK;
    ZC_TRY(zc_channel_thresholds(w.name, t, axis, c->method, thresholds, diag));
    w.thresholds = thresholds;
    return add_channels(c, &w) ? ZC_OK : no_memory(diag);
}

/* ---- merging ---- */

static zc_status check_same(const zc_calibration *c, const zc_calibration *from, zc_diag *diag)
{
    if (strcmp(c->model, from->model) != 0)
        return zc_fail(diag, ZC_ERR_INPUT, NULL, "is of another model (got %s, need %s)",
                       from->model, c->model);
    for (size_t a = 0, b = 0; a < c->activations.len || b < from->activations.len; a++, b++) {
        const char *mine = a < c->activations.len ? c->activations.data[a].name : NULL;
        const char *other = b < from->activations.len ? from->activations.data[b].name : NULL;
        if (mine && other && strcmp(mine, other) == 0) continue;
        bool lacks = !other || (mine && strcmp(mine, other) < 0);
        return zc_fail(diag, ZC_ERR_INPUT, lacks ? mine : other,
                       lacks ? "is missing" : "is no tensor of the others");
    }
    return ZC_OK;
}

static bool copy_weights(zc_calibration *c, const zc_calibration *from)
{
    for (size_t i = 0; i < from->weights.len; i++) {
        zc_channels w = from->weights.data[i];
        w.name = zc_arena_strdup(&c->arena, w.name);
        w.thresholds = zc_arena_dup(&c->arena, w.thresholds, w.count, sizeof *w.thresholds);
        if (!w.name || !w.thresholds || !add_channels(c, &w)) return false;
    }
    return true;
}

zc_status zc_calibration_merge(zc_calibration *c, const zc_calibration *from, zc_diag *diag)
{
    bool is_first = !*c->model;
    if (!is_first) ZC_TRY(check_same(c, from, diag));
    if (is_first) c->method = from->method;
    memcpy(c->model, from->model, sizeof c->model);
    c->runs += from->runs;
    for (size_t i = 0; i < from->activations.len; i++) {
        const zc_activation *a = &from->activations.data[i];
        const char *name = is_first ? zc_arena_strdup(&c->arena, a->name) : a->name;
        zc_activation *to = name ? activation_of(c, name) : NULL;
        if (!to || !join(to, a)) return no_memory(diag);
    }
    return !is_first || copy_weights(c, from) ? ZC_OK : no_memory(diag);
}
