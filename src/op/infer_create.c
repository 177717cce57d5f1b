/* Shapes of the operations that make a tensor from a shape, a range or a pattern. */
#include <math.h>
#include <string.h>

#include "op/infer_common.h"

/* ---- Shape and Size ---- */

static int clamp_axis(int64_t axis, int rank)
{
    if (axis < 0) axis += rank;
    return (int)(axis < 0 ? 0 : axis > rank ? rank : axis);
}

zc_status zc_infer_shape(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    const zc_attrs_Shape *a = ZC_ATTRS(f, Shape);
    if (in->rank < 0) return zc_infer_set(f, 0, 1, NULL);
    int start = clamp_axis(a->start, in->rank), end = clamp_axis(a->end, in->rank);
    int n = end > start ? end - start : 0;
    zc_dim len = zc_dim_const(n);
    zc_dim *v = zc_infer_vals(f, 0, n);
    for (int i = 0; v && i < n; i++) v[i] = in->dims[start + i];
    return zc_infer_set(f, 0, 1, &len);
}

zc_status zc_infer_size(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    zc_dim *v = in->rank < 0 ? NULL : zc_infer_vals(f, 0, 1);
    if (v) *v = zc_infer_span(f, in, 0, in->rank);
    return zc_infer_set(f, 0, 0, NULL);
}

/* ---- ConstantOfShape ---- */

zc_status zc_dt_constant_of_shape(zc_infer *f)
{
    const zc_tensor *value = ZC_ATTRS(f, ConstantOfShape)->value;
    f->out[0].type.dtype = value ? value->dtype : ZC_F32;
    return ZC_OK;
}

zc_status zc_infer_constant_of_shape(zc_infer *f)
{
    const zc_tensor *value = ZC_ATTRS(f, ConstantOfShape)->value;
    const zc_vals *shape = &f->in[0].vals;
    zc_dtype dtype = f->out[0].type.dtype;
    ZC_TRY(zc_infer_need_int(f, 0, "the shape"));
    ZC_TRY(zc_infer_need_vector(f, 0, "the shape"));
    if (value && zc_tensor_numel(value) != 1) {
        return zc_infer_fail(f, "attribute value needs one element (got %lld)",
                             (long long)zc_tensor_numel(value));
    }
    int n = zc_infer_vector_len(f, 0);
    if (n < 0) return ZC_OK;
    ZC_TRY(zc_infer_set(f, 0, n, n <= ZC_MAX_RANK && shape->n >= 0 ? shape->v : NULL));
    zc_dim len = n == 1 ? f->out[0].type.dims[0] : zc_dim_const(1);
    bool integral = zc_dtype_is_int(dtype) || dtype == ZC_BOOL;
    if (!value || !integral || n > 1 || !zc_dim_is_const(len) || len.k > ZC_VALS_MAX) return ZC_OK;
    zc_dim *v = zc_infer_vals(f, 0, (int)len.k);
    for (int i = 0; v && i < len.k; i++) v[i] = zc_dim_const(zc_load_i64(dtype, value->data, 0));
    return ZC_OK;
}

/* ---- Range ---- */

/* Steps from start to limit, or -1 when there are more than a dimension may have. */
static int64_t int_steps(int64_t start, int64_t limit, int64_t delta)
{
    uint64_t distance = 0, stride = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
    if (delta > 0 && limit > start) distance = (uint64_t)limit - (uint64_t)start;
    if (delta < 0 && limit < start) distance = (uint64_t)start - (uint64_t)limit;
    uint64_t n = distance ? (distance - 1) / stride + 1 : 0;
    return n > INT64_MAX ? -1 : (int64_t)n;
}

static zc_status range_of_ints(zc_infer *f, zc_dim start, zc_dim limit, zc_dim delta, zc_dim *len)
{
    zc_dims *t = f->dims;
    if (zc_dim_is(delta, 0)) return zc_infer_fail(f, "delta is 0");
    if (zc_dim_is_const(start) && zc_dim_is_const(limit) && zc_dim_is_const(delta)) {
        int64_t n = int_steps(start.k, limit.k, delta.k);
        if (n < 0) return zc_infer_fail(f, "too many elements");
        *len = zc_dim_const(n);
    } else if (zc_dim_is_const(delta) && delta.k != INT64_MIN) {
        zc_dim distance = delta.k > 0 ? zc_dim_sub(t, limit, start) : zc_dim_sub(t, start, limit);
        zc_dim n = zc_dim_cdiv(t, distance, zc_dim_const(delta.k > 0 ? delta.k : -delta.k));
        *len = zc_dim_known_ge(t, n, 0) ? n : zc_dim_max(t, n, zc_dim_const(0));
    } else {
        *len = zc_dim_fresh(t);
    }
    return ZC_OK;
}

static bool first_number(const zc_infer *f, int i, double *out)
{
    const zc_tensor *t = f->in[i].data;
    if (!t || zc_tensor_numel(t) != 1) return false;
    *out = zc_load_f64(t->dtype, t->data, 0);
    return true;
}

static zc_status range_of_floats(zc_infer *f, zc_dim *len)
{
    double start, limit, delta;
    *len = zc_dim_fresh(f->dims);
    if (!first_number(f, 0, &start) || !first_number(f, 1, &limit) || !first_number(f, 2, &delta))
        return ZC_OK;
    double n = ceil((limit - start) / delta);
    if (delta == 0 || isnan(n) || n > 0x1p62)
        return zc_infer_fail(f, "no such range (got start %g, limit %g, delta %g)", start, limit,
                             delta);
    *len = zc_dim_const(n > 0 ? (int64_t)n : 0);
    return ZC_OK;
}

static void range_vals(zc_infer *f, zc_dim start, zc_dim delta, zc_dim len)
{
    if (!zc_dim_is_const(len) || !zc_dim_is_const(delta) || len.k > ZC_VALS_MAX) return;
    zc_dim *v = zc_infer_vals(f, 0, (int)len.k);
    bool known = zc_dim_is_const(start);
    for (int64_t i = 0; v && i < len.k; i++) {
        /* no element lies beyond limit, though i*delta alone may wrap */
        uint64_t offset = (uint64_t)delta.k * (uint64_t)i;
        v[i] = known ? zc_dim_const((int64_t)((uint64_t)start.k + offset))
                     : zc_dim_add(f->dims, start, zc_dim_const((int64_t)offset));
    }
}

zc_status zc_infer_range(zc_infer *f)
{
    static const char *const names[] = {"start", "limit", "delta"};
    zc_dim start, limit, delta, len;
    int64_t stash = ZC_ATTRS(f, Range)->stash_type;
    if (stash != ZC_F32 && stash != ZC_F64) {
        return zc_infer_fail(f, "stash_type is no type to compute in (got %lld, need %d or %d)",
                             (long long)stash, ZC_F32, ZC_F64);
    }
    for (int i = 0; i < 3; i++) {
        ZC_TRY(zc_infer_need_scalar(f, i, names[i]));
    }
    if (zc_dtype_is_float(f->in[0].type.dtype)) {
        ZC_TRY(range_of_floats(f, &len));
    } else if (zc_infer_scalar(f, 0, &start) && zc_infer_scalar(f, 1, &limit) &&
               zc_infer_scalar(f, 2, &delta)) {
        ZC_TRY(range_of_ints(f, start, limit, delta, &len));
        range_vals(f, start, delta, len);
    } else {
        len = zc_dim_fresh(f->dims);
    }
    return zc_infer_set(f, 0, 1, &len);
}

/* ---- patterns ---- */

zc_status zc_dt_eye_like(zc_infer *f)
{
    zc_dtype given = ZC_ATTRS(f, EyeLike)->dtype;
    f->out[0].type.dtype = given == ZC_NONE ? f->in[0].type.dtype : given;
    return ZC_OK;
}

zc_status zc_infer_eye_like(zc_infer *f)
{
    ZC_TRY(zc_infer_need_rank(f, 0, 2, 2));
    zc_infer_copy(f, 0, 0);
    return ZC_OK;
}

zc_status zc_infer_trilu(zc_infer *f)
{
    ZC_TRY(zc_infer_need_rank(f, 0, 2, ZC_MAX_RANK));
    ZC_TRY(zc_infer_need_int(f, 1, "k"));
    ZC_TRY(zc_infer_need_scalar(f, 1, "k"));
    zc_infer_copy(f, 0, 0);
    return ZC_OK;
}

/* ---- blocks and sequences ---- */

static zc_status block_size(zc_infer *f, int64_t block)
{
    if (block >= 1 && block <= INT32_MAX) return ZC_OK;
    return zc_infer_fail(f, "blocksize out of range (got %lld, need [1, %d])", (long long)block,
                         INT32_MAX);
}

/* dim / by, which must come out even. */
static zc_status exact_part(zc_infer *f, zc_dim dim, int64_t by, int axis, zc_dim *out)
{
    if (zc_dim_is_const(dim) && dim.k % by != 0) {
        return zc_infer_fail(f, "axis %d is no multiple of %lld (got %lld)", axis, (long long)by,
                             (long long)dim.k);
    }
    *out = zc_dim_div(f->dims, dim, zc_dim_const(by));
    return ZC_OK;
}

zc_status zc_infer_depth_to_space(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    const zc_attrs_DepthToSpace *a = ZC_ATTRS(f, DepthToSpace);
    ZC_TRY(zc_infer_need_rank(f, 0, 4, 4));
    ZC_TRY(block_size(f, a->blocksize));
    if (!a->mode || (strcmp(a->mode, "DCR") != 0 && strcmp(a->mode, "CRD") != 0))
        return zc_infer_fail(f, "unknown mode (got " ZC_NAME ", need DCR or CRD)",
                             a->mode ? a->mode : "none");
    zc_dim dims[4] = {in->dims[0]}, b = zc_dim_const(a->blocksize);
    ZC_TRY(exact_part(f, in->dims[1], a->blocksize * a->blocksize, 1, &dims[1]));
    ZC_TRY(zc_infer_mul(f, in->dims[2], b, &dims[2]));
    ZC_TRY(zc_infer_mul(f, in->dims[3], b, &dims[3]));
    return zc_infer_set(f, 0, 4, dims);
}

zc_status zc_infer_space_to_depth(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    int64_t block = ZC_ATTRS(f, SpaceToDepth)->blocksize;
    ZC_TRY(zc_infer_need_rank(f, 0, 4, 4));
    ZC_TRY(block_size(f, block));
    zc_dim dims[4] = {in->dims[0]};
    ZC_TRY(zc_infer_mul(f, in->dims[1], zc_dim_const(block * block), &dims[1]));
    ZC_TRY(exact_part(f, in->dims[2], block, 2, &dims[2]));
    ZC_TRY(exact_part(f, in->dims[3], block, 3, &dims[3]));
    return zc_infer_set(f, 0, 4, dims);
}

zc_status zc_infer_reverse_sequence(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    const zc_attrs_ReverseSequence *a = ZC_ATTRS(f, ReverseSequence);
    ZC_TRY(zc_infer_need_rank(f, 0, 2, ZC_MAX_RANK));
    bool axes_ok =
        (a->batch_axis == 0 && a->time_axis == 1) || (a->batch_axis == 1 && a->time_axis == 0);
    if (!axes_ok) {
        return zc_infer_fail(
            f, "batch_axis and time_axis must be 0 and 1 in some order (got %lld and %lld)",
            (long long)a->batch_axis, (long long)a->time_axis);
    }
    ZC_TRY(zc_infer_need_int(f, 1, "sequence_lens"));
    ZC_TRY(zc_infer_need_rank(f, 1, 1, 1));
    ZC_TRY(zc_infer_same(f, f->in[1].type.dims[0], in->dims[a->batch_axis],
                         "the number of sequence lengths and the batch"));
    zc_infer_copy(f, 0, 0);
    return ZC_OK;
}
