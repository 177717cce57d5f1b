/* Shapes of the operations that cut or extend a tensor along given axes: Slice, Pad, CenterCropPad.
 *
 * Bounds may be symbols of either sign: each bound becomes an expression that clamps as the
 * definition does, simplified where the signs and the order are certain. */
#include <string.h>

#include "op/infer_common.h"
#include "op/slice.h"

/* From here on a constant bound means "to the end" of an axis of unknown length. */
#define TO_END ((int64_t)INT32_MAX)

static bool at_least(zc_infer *f, zc_dim a, zc_dim b)
{
    return zc_dim_known_ge(f->dims, zc_dim_sub(f->dims, a, b), 0);
}

static bool is_negative(zc_infer *f, zc_dim d)
{
    if (zc_dim_is_const(d)) return d.k < 0;
    return zc_dim_known_ge(f->dims, zc_dim_sub(f->dims, zc_dim_const(0), d), 1);
}

/* max(a, 0) and min(a, b), decided where possible. */
static zc_dim not_negative(zc_infer *f, zc_dim a)
{
    return zc_dim_known_ge(f->dims, a, 0) ? a : zc_dim_max(f->dims, a, zc_dim_const(0));
}

static zc_dim lesser(zc_infer *f, zc_dim a, zc_dim b)
{
    if (at_least(f, a, b)) return b;
    return at_least(f, b, a) ? a : zc_dim_min(f->dims, a, b);
}

/* A bound counted from the start: the length is added when it is negative. */
static zc_dim from_start(zc_infer *f, zc_dim bound, zc_dim dim)
{
    zc_dims *t = f->dims;
    if (zc_dim_known_ge(t, bound, 0)) return bound;
    if (is_negative(f, bound)) return zc_dim_add(t, bound, dim);
    zc_dim zero = zc_dim_const(0), one = zc_dim_const(1);
    zc_dim below = zc_dim_min(t, zc_dim_max(t, zc_dim_sub(t, zero, bound), zero), one);
    return zc_dim_add(t, bound, zc_dim_mul(t, below, dim));
}

/* step > 0: max(0, ceil((min(end, dim) - max(start, 0)) / step)); start > dim needs no clamp, since
 * the difference is then negative anyway. */
static zc_dim forward_count(zc_infer *f, zc_dim dim, zc_dim start, zc_dim end, int64_t step)
{
    zc_dims *t = f->dims;
    bool to_end = zc_dim_is_const(end) && end.k >= TO_END;
    zc_dim e = to_end ? dim : lesser(f, from_start(f, end, dim), dim);
    zc_dim s = from_start(f, start, dim);
    zc_dim length;
    if (zc_dim_known_ge(t, s, 0))
        length = zc_dim_sub(t, e, s);
    else
        length = lesser(f, zc_dim_sub(t, e, s), e);
    return not_negative(f, zc_dim_cdiv(t, length, zc_dim_const(step)));
}

/* step < 0: start lies in [0, dim-1] and end in [-1, dim-1]. */
static zc_dim backward_count(zc_infer *f, zc_dim dim, zc_dim start, zc_dim end, int64_t step)
{
    zc_dims *t = f->dims;
    zc_dim last = zc_dim_sub(t, dim, zc_dim_const(1)), minus_one = zc_dim_const(-1);
    zc_dim s = last, e = minus_one;
    bool from_end = zc_dim_is(start, -1) || (zc_dim_is_const(start) && start.k >= TO_END);
    bool to_start = zc_dim_is_const(end) && end.k <= -TO_END;
    if (!from_end) s = lesser(f, not_negative(f, from_start(f, start, dim)), last);
    if (!to_start) {
        e = lesser(f, from_start(f, end, dim), last);
        if (!zc_dim_known_ge(t, e, -1)) e = zc_dim_max(t, e, minus_one);
    }
    return not_negative(f, zc_dim_cdiv(t, zc_dim_sub(t, s, e), zc_dim_const(-step)));
}

/* Keeps sums with constant bounds and steps far from overflow; no axis is that long. */
static zc_dim tame(zc_dim bound)
{
    const int64_t far = (int64_t)1 << 61;
    if (!zc_dim_is_const(bound)) return bound;
    return zc_dim_const(bound.k > far ? far : bound.k < -far ? -far : bound.k);
}

static zc_dim slice_count(zc_infer *f, zc_dim dim, zc_dim start, zc_dim end, int64_t step)
{
    if (zc_dim_is_const(dim) && zc_dim_is_const(start) && zc_dim_is_const(end)) {
        int64_t first, count;
        zc_slice_span(dim.k, start.k, end.k, step, &first, &count);
        return zc_dim_const(count);
    }
    step = tame(zc_dim_const(step)).k;
    return step > 0 ? forward_count(f, dim, tame(start), tame(end), step)
                    : backward_count(f, dim, tame(start), tame(end), step);
}

/* Elements of a sliced vector, when the bounds are constants. */
static void slice_vals(zc_infer *f, zc_dim start, zc_dim end, zc_dim step)
{
    const zc_vals *in = &f->in[0].vals;
    if (in->n < 0 || !zc_dim_is_const(start) || !zc_dim_is_const(end) || !zc_dim_is_const(step))
        return;
    int64_t first, count;
    zc_slice_span(in->n, start.k, end.k, step.k, &first, &count);
    zc_dim *v = zc_infer_vals(f, 0, (int)count);
    for (int64_t i = 0; v && i < count; i++) v[i] = in->v[first + i * step.k];
}

/* Number of entries of starts, ends, axes, steps, which agree; -1: not known. */
static zc_status slice_entries(zc_infer *f, int *n)
{
    static const char *const names[] = {"data", "starts", "ends", "axes", "steps"};
    *n = -1;
    for (int i = 1; i < 5; i++) {
        if (!zc_in_present(f, i)) continue;
        ZC_TRY(zc_infer_need_int(f, i, names[i]));
        ZC_TRY(zc_infer_need_vector(f, i, names[i]));
        int len = zc_infer_vector_len(f, i);
        if (len >= 0 && *n >= 0 && len != *n)
            return zc_infer_fail(f, "%s has a wrong length (got %d, need %d)", names[i], len, *n);
        if (len >= 0) *n = len;
    }
    return ZC_OK;
}

/* The axes of the n entries into axes[]; *known is false when they are not constants. */
static zc_status entry_axes(zc_infer *f, int input, int n, int *axes, bool *known)
{
    int rank = f->in[0].type.rank, given;
    const int64_t *list;
    bool mask[ZC_MAX_RANK];
    *known = true;
    if (n > rank)
        return zc_infer_fail(f, "more axes than dimensions (got %d, need at most %d)", n, rank);
    if (!zc_in_present(f, input)) {
        for (int i = 0; i < n; i++) axes[i] = i;
        return ZC_OK;
    }
    ZC_TRY(zc_infer_const_ints(f, input, &list, &given));
    *known = given == n;
    if (!*known) return ZC_OK;
    ZC_TRY(zc_infer_axes(f, list, n, rank, mask));
    for (int i = 0; i < n; i++) axes[i] = (int)(list[i] < 0 ? list[i] + rank : list[i]);
    return ZC_OK;
}

/* Element j of input i, or false when its value is not known. */
static bool entry(const zc_infer *f, int i, int j, zc_dim *out)
{
    const zc_vals *v = &f->in[i].vals;
    if (v->n <= j) return false;
    *out = v->v[j];
    return true;
}

static zc_status slice_axis(zc_infer *f, int j, int axis, zc_dim *dim)
{
    zc_dim start = {0}, end = {0}, step = zc_dim_const(1);
    bool known = entry(f, 1, j, &start) && entry(f, 2, j, &end);
    if (zc_in_present(f, 4)) known = entry(f, 4, j, &step) && known;
    if (zc_in_present(f, 4) && f->in[4].vals.n > j && zc_dim_is(step, 0))
        return zc_infer_fail(f, "step of axis %d is 0", axis);
    if (!known || !zc_dim_is_const(step)) {
        *dim = zc_dim_fresh(f->dims);
        return ZC_OK;
    }
    *dim = slice_count(f, *dim, start, end, step.k);
    if (f->in[0].type.rank == 1) slice_vals(f, start, end, step);
    return ZC_OK;
}

zc_status zc_infer_slice(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    int n, axes[ZC_MAX_RANK];
    bool known;
    ZC_TRY(slice_entries(f, &n));
    if (n < 0) return zc_infer_set(f, 0, in->rank, NULL);
    ZC_TRY(entry_axes(f, 3, n, axes, &known));
    if (!known) return zc_infer_set(f, 0, in->rank, NULL);
    zc_dim dims[ZC_MAX_RANK];
    memcpy(dims, in->dims, sizeof dims);
    if (n == 0) f->out[0].vals = f->in[0].vals;
    for (int j = 0; j < n; j++) ZC_TRY(slice_axis(f, j, axes[j], &dims[axes[j]]));
    return zc_infer_set(f, 0, in->rank, dims);
}

/* ---- Pad ---- */

static zc_status pad_check(zc_infer *f)
{
    const char *mode = ZC_ATTRS(f, Pad)->mode;
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    bool found = false;
    for (size_t i = 0; i < ZC_COUNTOF(modes); i++) found |= mode && strcmp(mode, modes[i]) == 0;
    if (!found) {
        return zc_infer_fail(f,
                             "unknown mode (got " ZC_NAME ", need constant, reflect, edge or wrap)",
                             mode ? mode : "none");
    }
    ZC_TRY(zc_infer_need_int(f, 1, "pads"));
    ZC_TRY(zc_infer_need_vector(f, 1, "pads"));
    ZC_TRY(zc_infer_need_int(f, 3, "axes"));
    ZC_TRY(zc_infer_need_vector(f, 3, "axes"));
    ZC_TRY(zc_infer_need_scalar(f, 2, "the constant value"));
    return zc_infer_need_alike(f, 0, 2);
}

zc_status zc_infer_pad(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    const zc_vals *pads = &f->in[1].vals;
    int axes[ZC_MAX_RANK], n = in->rank;
    bool known;
    ZC_TRY(pad_check(f));
    if (zc_in_present(f, 3)) n = zc_infer_vector_len(f, 3);
    if (n < 0) return zc_infer_set(f, 0, in->rank, NULL);
    ZC_TRY(entry_axes(f, 3, n, axes, &known));
    int len = zc_infer_vector_len(f, 1);
    if (len >= 0 && len != 2 * n)
        return zc_infer_fail(f, "pads has a wrong length (got %d, need two for each of %d axes)",
                             len, n);
    if (!known) return zc_infer_set(f, 0, in->rank, NULL);
    zc_dim dims[ZC_MAX_RANK];
    memcpy(dims, in->dims, sizeof dims);
    for (int i = 0; i < n; i++) {
        zc_dim *d = &dims[axes[i]];
        if (pads->n < 0) {
            *d = zc_dim_fresh(f->dims);
            continue;
        }
        ZC_TRY(zc_infer_add(f, *d, pads->v[i], d));
        ZC_TRY(zc_infer_add(f, *d, pads->v[n + i], d));
    }
    return zc_infer_set(f, 0, in->rank, dims);
}

zc_status zc_infer_center_crop_pad(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    const zc_attrs_CenterCropPad *a = ZC_ATTRS(f, CenterCropPad);
    const zc_vals *shape = &f->in[1].vals;
    bool mask[ZC_MAX_RANK];
    ZC_TRY(zc_infer_need_int(f, 1, "shape"));
    ZC_TRY(zc_infer_need_vector(f, 1, "shape"));
    ZC_TRY(zc_infer_axes(f, a->axes.v, a->axes.n, in->rank, mask));
    int n = ZC_ATTR_GIVEN(CenterCropPad, a, axes) || a->axes.n ? a->axes.n : in->rank;
    int len = zc_infer_vector_len(f, 1);
    if (len >= 0 && len != n)
        return zc_infer_fail(f, "shape has a wrong length (got %d, need %d axes)", len, n);
    zc_dim dims[ZC_MAX_RANK];
    memcpy(dims, in->dims, sizeof dims);
    for (int i = 0; i < n; i++) {
        int64_t axis = a->axes.n ? a->axes.v[i] : i;
        dims[axis < 0 ? axis + in->rank : axis] =
            shape->n < 0 ? zc_dim_fresh(f->dims) : shape->v[i];
    }
    return zc_infer_set(f, 0, in->rank, dims);
}
