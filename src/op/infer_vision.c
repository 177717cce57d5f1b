#include <math.h>
#include <string.h>

#include "op/resize.h"

#define DECLARE(n) zc_status n(zc_infer *f);
DECLARE(zc_infer_resize)
DECLARE(zc_infer_grid_sample)
DECLARE(zc_infer_affine_grid)
DECLARE(zc_infer_non_max_suppression)
#undef DECLARE

/* ---- Resize ---- */

static const zc_tensor *known(const zc_infer *f, int i)
{
    return zc_in_present(f, i) ? f->in[i].data : NULL;
}

static bool concrete_dims(const zc_type *t, int64_t dims[ZC_MAX_RANK])
{
    for (int d = 0; d < t->rank; d++) {
        if (!zc_dim_is_const(t->dims[d])) return false;
        dims[d] = t->dims[d].k;
    }
    return true;
}

/* floor(d * scale) where the scale is a fraction of small numbers; else unknown. */
static zc_dim scaled_dim(zc_infer *f, zc_dim d, double scale)
{
    for (int64_t q = 1; q <= 64; q++) {
        double p = scale * (double)q;
        if (p != floor(p) || !(p < 1e6)) continue;
        return zc_dim_div(f->dims, zc_dim_mul(f->dims, d, zc_dim_const((int64_t)p)),
                          zc_dim_const(q));
    }
    return zc_dim_fresh(f->dims);
}

/* With a symbolic dimension somewhere: each resized axis by itself, where scales or sizes are
 * known. */
static zc_status symbolic_resize(zc_infer *f, const zc_attrs_Resize *a)
{
    const zc_type *x = zc_in(f, 0);
    const zc_tensor *scales = known(f, 2);
    zc_dim dims[ZC_MAX_RANK];
    bool all = !ZC_ATTR_GIVEN(Resize, a, axes),
         stretch = strcmp(a->keep_aspect_ratio_policy, "stretch") == 0;
    int n = all ? x->rank : a->axes.n;
    memcpy(dims, x->dims, sizeof dims);
    for (int i = 0; i < n; i++) {
        int axis = i;
        if (!all) ZC_TRY(zc_infer_axis(f, a->axes.v[i], x->rank, &axis));
        const zc_vals *sizes = zc_in_present(f, 3) ? &f->in[3].vals : NULL;
        if (scales && zc_tensor_numel(scales) == n)
            dims[axis] = scaled_dim(f, x->dims[axis], zc_load_f64(scales->dtype, scales->data, i));
        else if (sizes && sizes->n == n && stretch)
            dims[axis] = sizes->v[i];
        else
            dims[axis] = zc_dim_fresh(f->dims);
    }
    return zc_infer_set(f, 0, x->rank, dims);
}

zc_status zc_infer_resize(zc_infer *f)
{
    const zc_attrs_Resize *a = ZC_ATTRS(f, Resize);
    const zc_type *x = zc_in(f, 0);
    zc_resize_words words;
    int64_t in[ZC_MAX_RANK];
    ZC_TRY(zc_resize_read_words(a, &words, f->subject, f->diag));
    if (!zc_in_present(f, 2) && !zc_in_present(f, 3))
        return zc_infer_fail(f, "neither scales nor sizes are given");
    bool has_data = known(f, 2) || known(f, 3);
    bool has_roi =
        !zc_in_present(f, 1) || known(f, 1) || words.coords != ZC_COORD_TF_CROP_AND_RESIZE;
    bool all_known = (!zc_in_present(f, 2) || known(f, 2)) && (!zc_in_present(f, 3) || known(f, 3));
    if (!has_data || !has_roi || !all_known || !concrete_dims(x, in)) return symbolic_resize(f, a);
    zc_resize_axis axes[ZC_MAX_RANK];
    zc_dim dims[ZC_MAX_RANK];
    ZC_TRY(zc_resize_axes(a, x->rank, in, known(f, 1), known(f, 2), known(f, 3), axes, f->subject,
                          f->diag));
    for (int d = 0; d < x->rank; d++) dims[d] = zc_dim_const(axes[d].out);
    return zc_infer_set(f, 0, x->rank, dims);
}

/* ---- the others ---- */

zc_status zc_infer_grid_sample(zc_infer *f)
{
    const zc_attrs_GridSample *a = ZC_ATTRS(f, GridSample);
    static const char *const modes[] = {"linear", "nearest", "cubic", "bilinear", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const zc_type *x = zc_in(f, 0), *grid = zc_in(f, 1);
    bool mode = false, padding = false;
    for (size_t i = 0; i < ZC_COUNTOF(modes); i++) mode |= strcmp(a->mode, modes[i]) == 0;
    for (size_t i = 0; i < ZC_COUNTOF(paddings); i++)
        padding |= strcmp(a->padding_mode, paddings[i]) == 0;
    if (!mode || !padding)
        return zc_infer_fail(f, "no such mode (got " ZC_NAME ")", mode ? a->padding_mode : a->mode);
    if (x->rank < 3 || grid->rank != x->rank)
        return zc_infer_fail(f, "wrong ranks (got %d and %d, need the same, at least 3)", x->rank,
                             grid->rank);
    ZC_TRY(zc_infer_same(f, x->dims[0], grid->dims[0], "batch sizes of input and grid"));
    ZC_TRY(zc_infer_same(f, zc_dim_const(x->rank - 2), grid->dims[grid->rank - 1],
                         "number of spatial axes and of coordinates"));
    zc_dim dims[ZC_MAX_RANK] = {x->dims[0], x->dims[1]};
    for (int d = 2; d < x->rank; d++) dims[d] = grid->dims[d - 1];
    return zc_infer_set(f, 0, x->rank, dims);
}

zc_status zc_infer_affine_grid(zc_infer *f)
{
    const zc_type *theta = zc_in(f, 0);
    int n = zc_infer_vector_len(f, 1);
    if (theta->rank != 3)
        return zc_infer_fail(f, "theta has a wrong rank (got %d, need 3)", theta->rank);
    if (n < 0) {
        zc_infer_unknown(f, 0);
        return ZC_OK;
    }
    if (n != 4 && n != 5)
        return zc_infer_fail(f, "size has a wrong length (got %d, need 4 or 5)", n);
    int spatial = n - 2;
    ZC_TRY(
        zc_infer_same(f, theta->dims[1], zc_dim_const(spatial), "rows of theta and spatial axes"));
    ZC_TRY(zc_infer_same(f, theta->dims[2], zc_dim_const(spatial + 1),
                         "columns of theta and spatial axes + 1"));
    const zc_vals *size = &f->in[1].vals;
    zc_dim dims[5];
    for (int d = 0; d < n - 1; d++) {
        int from = d ? d + 1 : 0;
        dims[d] = size->n == n ? size->v[from] : zc_dim_fresh(f->dims);
    }
    if (size->n == n)
        ZC_TRY(zc_infer_same(f, size->v[0], theta->dims[0], "batch sizes of size and theta"));
    dims[n - 1] = zc_dim_const(spatial);
    return zc_infer_set(f, 0, n, dims);
}

zc_status zc_infer_non_max_suppression(zc_infer *f)
{
    const zc_type *boxes = zc_in(f, 0), *scores = zc_in(f, 1);
    if (boxes->rank != 3 || scores->rank != 3)
        return zc_infer_fail(f, "wrong ranks of boxes and scores (got %d and %d, need 3)",
                             boxes->rank, scores->rank);
    ZC_TRY(zc_infer_same(f, boxes->dims[0], scores->dims[0], "batch sizes of boxes and scores"));
    ZC_TRY(zc_infer_same(f, boxes->dims[1], scores->dims[2], "numbers of boxes and of scores"));
    ZC_TRY(zc_infer_same(f, boxes->dims[2], zc_dim_const(4), "coordinates of a box and 4"));
    zc_dim dims[2] = {zc_dim_fresh(f->dims), zc_dim_const(3)};
    return zc_infer_set(f, 0, 2, dims);
}
