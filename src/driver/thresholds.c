#include "driver/thresholds.h"

#include <math.h>
#include <string.h>

#include "base/diag.h"
#include "base/number.h"

/* ---- the file ---- */

static zc_status check_model(const zc_calibration *c, const uint8_t sha256[32], zc_diag *diag)
{
    char text[sizeof c->model];
    for (int i = 0; i < 32; i++) zc_snprintf(text + 2 * i, 3, "%02x", sha256[i]);
    if (strcmp(text, c->model) == 0) return ZC_OK;
    return zc_fail(diag, ZC_ERR_INPUT, NULL, "is of another model (got %s, need %s)", c->model,
                   text);
}

static zc_status check_value(const zc_calibration *c, const zc_graph *g, zc_vid v, zc_diag *diag)
{
    const zc_activation *found;
    const zc_channels *weight;
    if (!v || !zc_dtype_is_float(zc_val(g, v)->type.dtype)) return ZC_OK;
    ZC_TRY(zc_calibration_find(c, zc_val(g, v)->name, &found, &weight, diag));
    return found ? ZC_OK : zc_fail(diag, ZC_ERR_INPUT, zc_val(g, v)->name, "is missing");
}

static zc_status check_tensors(const zc_calibration *c, const zc_graph *g, zc_diag *diag)
{
    for (size_t i = 0; i < g->top.params.len; i++)
        ZC_TRY(check_value(c, g, g->top.params.data[i], diag));
    for (size_t i = 0; i < g->top.nodes.len; i++) {
        const zc_node *n = zc_node_at(g, g->top.nodes.data[i]);
        for (int o = 0; o < n->nout; o++) ZC_TRY(check_value(c, g, n->out[o], diag));
    }
    return ZC_OK;
}

zc_status zc_thresholds_read(zc_calibration *c, const char *path, const zc_graph *g,
                             const uint8_t sha256[32], zc_diag *diag)
{
    zc_status status = zc_calibration_read(c, path, diag);
    zc_diag_set_file(diag, path);
    if (status == ZC_OK) status = check_model(c, sha256, diag);
    return status == ZC_OK ? check_tensors(c, g, diag) : status;
}

/* ---- activations ---- */

zc_status zc_thresholds_span(const zc_calibration *c, const char *name, zc_span *out, zc_diag *diag)
{
    const zc_activation *a;
    const zc_channels *weight;
    ZC_TRY(zc_calibration_find(c, name, &a, &weight, diag));
    if (!a) return ZC_OK;
    const double most =
        (double)zc_histogram_threshold(&a->bins, fmaxf(a->greatest, -a->least), c->method);
    *out = (zc_span){fmax((double)a->least, -most), fmin((double)a->greatest, most)};
    if (a->infinite) *out = (zc_span){-INFINITY, INFINITY};
    return ZC_OK;
}

/* ---- weights ---- */

static zc_status take(const zc_channels *c, const zc_weights *w, float *out, zc_diag *diag)
{
    if (c->count != (size_t)w->columns)
        return zc_fail(diag, ZC_ERR_INPUT, c->name,
                       "the calibration has %zu channels of it (need %lld)", c->count,
                       (long long)w->columns);
    for (int64_t i = 0; i < w->columns; i++) {
        out[i] = c->thresholds[i];
        for (int64_t k = 0; k < w->depth && out[i] == 0; k++)
            if (w->x[zc_weight_at(w, i, k)] != 0)
                return zc_fail(diag, ZC_ERR_INPUT, c->name,
                               "the calibration's threshold of channel %lld is 0, its weights are "
                               "not",
                               (long long)i);
    }
    return ZC_OK;
}

zc_status zc_thresholds_limits(void *user, const char *name, const zc_weights *w, float *out,
                               zc_diag *diag)
{
    const zc_calibration *c = user;
    const zc_activation *activation;
    const zc_channels *found;
    const zc_tensor t = {
        .dtype = ZC_F32,
        .rank = 2,
        .dims = {w->along_k ? w->columns : w->depth, w->along_k ? w->depth : w->columns},
        .data = (void *)(uintptr_t)w->x};
    ZC_TRY(zc_calibration_find(c, name, &activation, &found, diag));
    return found ? take(found, w, out, diag)
                 : zc_channel_thresholds(name, &t, w->along_k ? 0 : 1, c->method, out, diag);
}
