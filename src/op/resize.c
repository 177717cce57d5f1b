#include "op/resize.h"

#include <math.h>
#include <string.h>

static int word_index(const char *word, const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(word, words[i]) == 0) return i;
    return -1;
}

zc_status zc_resize_read_words(const zc_attrs_Resize *a, zc_resize_words *out, const char *subject,
                               zc_diag *diag)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coords[] = {"half_pixel",         "half_pixel_symmetric",
                                         "pytorch_half_pixel", "align_corners",
                                         "asymmetric",         "tf_crop_and_resize"};
    static const char *const rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                         "ceil"};
    int m = word_index(a->mode, modes, (int)ZC_COUNTOF(modes));
    int c = word_index(a->coordinate_transformation_mode, coords, (int)ZC_COUNTOF(coords));
    int r = word_index(a->nearest_mode, rounds, (int)ZC_COUNTOF(rounds));
    if (m < 0 || c < 0 || r < 0)
        return zc_fail(diag, ZC_ERR_MODEL, subject, "no such mode (got " ZC_NAME ")",
                       m < 0   ? a->mode
                       : c < 0 ? a->coordinate_transformation_mode
                               : a->nearest_mode);
    *out = (zc_resize_words){(zc_resize_mode)m, (zc_resize_coords)c, (zc_resize_round)r};
    return ZC_OK;
}

/* The axes that scales, sizes and roi speak of, in their order. */
static zc_status listed_axes(const zc_attrs_Resize *a, int rank, int list[ZC_MAX_RANK], int *n,
                             const char *subject, zc_diag *diag)
{
    bool seen[ZC_MAX_RANK] = {false};
    bool given = ZC_ATTR_GIVEN(Resize, a, axes);
    *n = given ? a->axes.n : rank;
    if (*n > rank)
        return zc_fail(diag, ZC_ERR_MODEL, subject, "too many axes (got %d, need at most %d)", *n,
                       rank);
    for (int i = 0; i < *n; i++) {
        int64_t axis = given ? a->axes.v[i] : i;
        if (axis < -rank || axis >= rank)
            return zc_fail(diag, ZC_ERR_MODEL, subject,
                           "axis out of range (got %lld, need [%d, %d])", (long long)axis, -rank,
                           rank - 1);
        list[i] = (int)(axis < 0 ? axis + rank : axis);
        if (seen[list[i]])
            return zc_fail(diag, ZC_ERR_MODEL, subject, "axis %d is given twice", list[i]);
        seen[list[i]] = true;
    }
    return ZC_OK;
}

static zc_status scale_axis(zc_resize_axis *axis, int64_t in, double scale, const char *subject,
                            zc_diag *diag)
{
    double out = floor((double)in * scale);
    if (!(scale > 0) || !(out < 9e15))
        return zc_fail(diag, ZC_ERR_MODEL, subject, "scale out of range (got %g, need > 0)", scale);
    axis->scale = scale;
    axis->out = (int64_t)out;
    return ZC_OK;
}

/* One scale for all axes, so that none exceeds its size (not_larger) or all reach it (not_smaller).
 */
static zc_status keep_aspect(const zc_attrs_Resize *a, const int64_t *dims, const int *list, int n,
                             zc_resize_axis *out, const char *subject, zc_diag *diag)
{
    bool larger = strcmp(a->keep_aspect_ratio_policy, "not_smaller") == 0;
    if (!larger && strcmp(a->keep_aspect_ratio_policy, "not_larger") != 0) {
        if (strcmp(a->keep_aspect_ratio_policy, "stretch") == 0) return ZC_OK;
        return zc_fail(diag, ZC_ERR_MODEL, subject,
                       "no such keep_aspect_ratio_policy (got " ZC_NAME ")",
                       a->keep_aspect_ratio_policy);
    }
    double best = larger ? 0 : INFINITY;
    for (int i = 0; i < n; i++) {
        double s = out[list[i]].scale;
        if (larger ? s > best : s < best) best = s;
    }
    for (int i = 0; i < n; i++) {
        out[list[i]].scale = best;
        out[list[i]].out = (int64_t)floor((double)dims[list[i]] * best + 0.5);
    }
    return ZC_OK;
}

zc_status zc_resize_axes(const zc_attrs_Resize *a, int rank, const int64_t *dims,
                         const zc_tensor *roi, const zc_tensor *scales, const zc_tensor *sizes,
                         zc_resize_axis out[ZC_MAX_RANK], const char *subject, zc_diag *diag)
{
    int list[ZC_MAX_RANK], n;
    ZC_TRY(listed_axes(a, rank, list, &n, subject, diag));
    for (int d = 0; d < rank; d++)
        out[d] = (zc_resize_axis){.scale = 1, .out = dims[d], .roi = {0, 1}};
    bool by_scale = scales && zc_tensor_numel(scales) > 0;
    const zc_tensor *given = by_scale ? scales : sizes;
    if (!given || zc_tensor_numel(given) != n)
        return zc_fail(diag, ZC_ERR_MODEL, subject, "%s has a wrong length (got %lld, need %d)",
                       by_scale ? "scales" : "sizes",
                       given ? (long long)zc_tensor_numel(given) : 0LL, n);
    for (int i = 0; i < n; i++) {
        zc_resize_axis *axis = &out[list[i]];
        int64_t in = dims[list[i]];
        axis->resized = true;
        if (by_scale) {
            ZC_TRY(
                scale_axis(axis, in, zc_load_f64(scales->dtype, scales->data, i), subject, diag));
        } else {
            axis->out = zc_load_i64(sizes->dtype, sizes->data, i);
            axis->scale = in ? (double)axis->out / (double)in : 1;
            if (axis->out < 0)
                return zc_fail(diag, ZC_ERR_MODEL, subject, "a size is negative (got %lld)",
                               (long long)axis->out);
        }
    }
    if (!by_scale) ZC_TRY(keep_aspect(a, dims, list, n, out, subject, diag));
    bool crop = strcmp(a->coordinate_transformation_mode, "tf_crop_and_resize") == 0;
    if (!crop) return ZC_OK;
    if (!roi || zc_tensor_numel(roi) != 2 * n)
        return zc_fail(diag, ZC_ERR_MODEL, subject, "roi has a wrong length (got %lld, need %d)",
                       roi ? (long long)zc_tensor_numel(roi) : 0LL, 2 * n);
    for (int i = 0; i < n; i++)
        for (int e = 0; e < 2; e++)
            out[list[i]].roi[e] = zc_load_f64(roi->dtype, roi->data, e * n + i);
    return ZC_OK;
}
