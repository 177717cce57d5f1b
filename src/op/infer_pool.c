/* Types and shapes of poolings, regions of interest and response normalisation. */
#include "op/infer_common.h"
#include "op/window.h"

/* ---- element types ---- */

zc_status zc_dt_float_pool(zc_infer *f)
{
    ZC_TRY(zc_infer_need_float(f, 0));
    if (f->nin > 1) ZC_TRY(zc_infer_need_alike(f, 0, 1));
    return zc_infer_set_dtype(f, f->in[0].type.dtype);
}

zc_status zc_dt_max_pool(zc_infer *f)
{
    zc_dtype t = f->in[0].type.dtype;
    if (t != ZC_I8 && t != ZC_U8) ZC_TRY(zc_infer_need_float(f, 0));
    f->out[0].type.dtype = t;
    if (f->nout > 1) f->out[1].type.dtype = ZC_I64;
    return ZC_OK;
}

/* ---- poolings ---- */

static zc_status pool(zc_infer *f, const zc_window_attrs *a)
{
    ZC_TRY(zc_infer_need_rank(f, 0, 3, ZC_MAX_RANK));
    const zc_type *x = zc_in(f, 0);
    int axes = x->rank - 2;
    ZC_TRY(zc_window_check(f, a, axes));
    if (a->kernel.n != axes)
        return zc_infer_fail(f, "kernel_shape is missing (need %d sizes)", axes);
    zc_dim kernel[ZC_WINDOW_AXES], out[ZC_MAX_RANK] = {x->dims[0], x->dims[1]};
    for (int i = 0; i < axes; i++) kernel[i] = zc_dim_const(a->kernel.v[i]);
    ZC_TRY(zc_window_out(f, a, x, kernel, out + 2));
    for (int i = 0; i < f->nout; i++) ZC_TRY(zc_infer_set(f, i, x->rank, out));
    return ZC_OK;
}

zc_status zc_infer_average_pool(zc_infer *f)
{
    const zc_attrs_AveragePool *at = ZC_ATTRS(f, AveragePool);
    zc_window_attrs a = ZC_WINDOW_ATTRS(at);
    a.auto_pad = at->auto_pad;
    a.ceil_mode = at->ceil_mode != 0;
    return pool(f, &a);
}

zc_status zc_infer_max_pool(zc_infer *f)
{
    const zc_attrs_MaxPool *at = ZC_ATTRS(f, MaxPool);
    zc_window_attrs a = ZC_WINDOW_ATTRS(at);
    a.auto_pad = at->auto_pad;
    a.ceil_mode = at->ceil_mode != 0;
    if (at->storage_order != 0 && at->storage_order != 1)
        return zc_infer_fail(f, "storage_order out of range (got %lld, need 0 or 1)",
                             (long long)at->storage_order);
    return pool(f, &a);
}

static zc_status check_p(zc_infer *f, int64_t p)
{
    if (p >= 1) return ZC_OK;
    return zc_infer_fail(f, "p out of range (got %lld, need at least 1)", (long long)p);
}

zc_status zc_infer_lp_pool(zc_infer *f)
{
    const zc_attrs_LpPool *at = ZC_ATTRS(f, LpPool);
    zc_window_attrs a = ZC_WINDOW_ATTRS(at);
    a.auto_pad = at->auto_pad;
    a.ceil_mode = at->ceil_mode != 0;
    ZC_TRY(check_p(f, at->p));
    return pool(f, &a);
}

zc_status zc_infer_global_pool(zc_infer *f)
{
    const zc_type *x = zc_in(f, 0);
    ZC_TRY(zc_infer_need_rank(f, 0, 2, ZC_MAX_RANK));
    zc_dim out[ZC_MAX_RANK] = {x->dims[0], x->dims[1]};
    for (int d = 2; d < x->rank; d++) out[d] = zc_dim_const(1);
    return zc_infer_set(f, 0, x->rank, out);
}

zc_status zc_infer_global_lp_pool(zc_infer *f)
{
    ZC_TRY(check_p(f, ZC_ATTRS(f, GlobalLpPool)->p));
    return zc_infer_global_pool(f);
}

/* output_shape, when given, else the inverse of the pooling's size. */
static zc_status unpool_dims(zc_infer *f, const zc_window_attrs *a, zc_dim *out)
{
    const zc_type *x = zc_in(f, 0);
    int axes = x->rank - 2;
    if (zc_in_present(f, 2)) {
        int n = zc_infer_vector_len(f, 2);
        if (n >= 0 && n != x->rank)
            return zc_infer_fail(f, "output_shape has a wrong length (got %d, need %d)", n,
                                 x->rank);
        const zc_vals *v = &f->in[2].vals;
        for (int d = 0; d < x->rank; d++) out[d] = v->n < 0 ? zc_dim_fresh(f->dims) : v->v[d];
        return ZC_OK;
    }
    out[0] = x->dims[0];
    out[1] = x->dims[1];
    for (int i = 0; i < axes; i++) {
        zc_dim stride = zc_dim_const(zc_window_stride(a, i));
        zc_dim last = zc_dim_sub(f->dims, x->dims[i + 2], zc_dim_const(1));
        int64_t rest = a->kernel.v[i] - zc_window_pad(a, axes, i, 0) - zc_window_pad(a, axes, i, 1);
        out[i + 2] = zc_dim_add(f->dims, zc_dim_mul(f->dims, last, stride), zc_dim_const(rest));
    }
    return ZC_OK;
}

zc_status zc_infer_max_unpool(zc_infer *f)
{
    const zc_attrs_MaxUnpool *at = ZC_ATTRS(f, MaxUnpool);
    zc_window_attrs a = {.kernel = at->kernel_shape, .strides = at->strides, .pads = at->pads};
    ZC_TRY(zc_infer_need_rank(f, 0, 3, ZC_MAX_RANK));
    const zc_type *x = zc_in(f, 0);
    ZC_TRY(zc_window_check(f, &a, x->rank - 2));
    if (a.kernel.n != x->rank - 2)
        return zc_infer_fail(f, "kernel_shape is missing (need %d sizes)", x->rank - 2);
    if (f->in[1].type.dtype != ZC_I64)
        return zc_infer_fail(f, "indices need type i64 (got %s)",
                             zc_dtype_name(f->in[1].type.dtype));
    ZC_TRY(zc_infer_need_rank(f, 1, x->rank, x->rank));
    for (int d = 0; d < x->rank; d++)
        ZC_TRY(zc_infer_same(f, zc_in(f, 1)->dims[d], x->dims[d], "index and value dimensions"));
    zc_dim out[ZC_MAX_RANK];
    ZC_TRY(unpool_dims(f, &a, out));
    return zc_infer_set(f, 0, x->rank, out);
}

/* ---- regions of interest, response normalisation ---- */

static zc_status check_rois(zc_infer *f, int columns)
{
    ZC_TRY(zc_infer_need_rank(f, 0, 4, 4));
    ZC_TRY(zc_infer_need_rank(f, 1, 2, 2));
    return zc_infer_same(f, zc_in(f, 1)->dims[1], zc_dim_const(columns),
                         "columns of rois and what is needed");
}

static zc_status check_pooled(zc_infer *f, int64_t h, int64_t w)
{
    if (h >= 1 && w >= 1 && h <= ZC_WINDOW_LIMIT && w <= ZC_WINDOW_LIMIT) return ZC_OK;
    return zc_infer_fail(f, "output size out of range (got %lld x %lld, need [1, %d])",
                         (long long)h, (long long)w, ZC_WINDOW_LIMIT);
}

static zc_status set_rois(zc_infer *f, int64_t h, int64_t w)
{
    ZC_TRY(check_pooled(f, h, w));
    zc_dim out[4] = {zc_in(f, 1)->dims[0], zc_in(f, 0)->dims[1], zc_dim_const(h), zc_dim_const(w)};
    return zc_infer_set(f, 0, 4, out);
}

zc_status zc_infer_max_roi_pool(zc_infer *f)
{
    zc_ints shape = ZC_ATTRS(f, MaxRoiPool)->pooled_shape;
    ZC_TRY(check_rois(f, 5));
    if (shape.n != 2)
        return zc_infer_fail(f, "pooled_shape has a wrong length (got %d, need 2)", shape.n);
    return set_rois(f, shape.v[0], shape.v[1]);
}

static bool one_of(const char *s, const char *a, const char *b)
{
    return s && (strcmp(s, a) == 0 || strcmp(s, b) == 0);
}

zc_status zc_infer_roi_align(zc_infer *f)
{
    const zc_attrs_RoiAlign *a = ZC_ATTRS(f, RoiAlign);
    ZC_TRY(check_rois(f, 4));
    ZC_TRY(zc_infer_need_rank(f, 2, 1, 1));
    if (!zc_dtype_is_int(f->in[2].type.dtype))
        return zc_infer_fail(f, "batch_indices need an integer type (got %s)",
                             zc_dtype_name(f->in[2].type.dtype));
    ZC_TRY(zc_infer_same(f, zc_in(f, 2)->dims[0], zc_in(f, 1)->dims[0],
                         "lengths of batch_indices and rois"));
    if (!one_of(a->mode, "avg", "max"))
        return zc_infer_fail(f, "unknown mode (got \"" ZC_NAME "\", need avg or max)", a->mode);
    if (!one_of(a->coordinate_transformation_mode, "half_pixel", "output_half_pixel"))
        return zc_infer_fail(f,
                             "unknown coordinate_transformation_mode (got \"" ZC_NAME
                             "\", need half_pixel or output_half_pixel)",
                             a->coordinate_transformation_mode);
    if (a->sampling_ratio < 0 || a->sampling_ratio > ZC_WINDOW_LIMIT)
        return zc_infer_fail(f, "sampling_ratio out of range (got %lld, need [0, %d])",
                             (long long)a->sampling_ratio, ZC_WINDOW_LIMIT);
    return set_rois(f, a->output_height, a->output_width);
}

zc_status zc_infer_lrn(zc_infer *f)
{
    int64_t size = ZC_ATTRS(f, LRN)->size;
    ZC_TRY(zc_infer_need_rank(f, 0, 2, ZC_MAX_RANK));
    if (size < 1 || size > ZC_WINDOW_LIMIT)
        return zc_infer_fail(f, "size out of range (got %lld, need [1, %d])", (long long)size,
                             ZC_WINDOW_LIMIT);
    zc_infer_copy(f, 0, 0);
    return ZC_OK;
}
