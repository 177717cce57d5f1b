/* Shapes of the operations that give a tensor another shape or join and cut tensors. */
#include <string.h>

#include "op/infer_common.h"

/* All inputs have one element type, the output's. */
zc_status zc_dt_same_in(zc_infer *f)
{
    for (int i = 1; i < f->nin; i++) ZC_TRY(zc_infer_need_alike(f, 0, i));
    return zc_dt_in0(f);
}

zc_status zc_infer_identity(zc_infer *f)
{
    zc_infer_copy(f, 0, 0);
    f->out[0].vals = f->in[0].vals;
    return ZC_OK;
}

/* ---- Reshape ---- */

typedef struct reshape {
    zc_dim dims[ZC_MAX_RANK];
    int n;
    int inferred;     /* position of the -1, or -1 */
    bool zero;        /* a 0 that stands for a length of 0 */
    bool known_input; /* the input's rank is known */
    zc_dim from, to;  /* elements to distribute and distributed, without the copied dimensions */
    bool empty;       /* a copied dimension is 0 */
} reshape;

/* Element i of the wanted shape is 0: the input's dimension. */
static zc_status reshape_copy(zc_infer *f, reshape *r, int i)
{
    const zc_type *in = &f->in[0].type;
    r->dims[i] = zc_dim_fresh(f->dims);
    if (!r->known_input) return ZC_OK;
    if (i >= in->rank) {
        return zc_infer_fail(
            f, "element %d of the shape is 0, which copies a dimension (got input %s)", i,
            zc_infer_dims_text(f, in->rank, in->dims));
    }
    r->dims[i] = in->dims[i];
    r->empty |= zc_dim_is(in->dims[i], 0);
    return ZC_OK;
}

static zc_status reshape_element(zc_infer *f, reshape *r, int i, bool copied)
{
    zc_dim d = f->in[1].vals.v[i];
    if (zc_dim_is(d, -1)) {
        if (r->inferred >= 0)
            return zc_infer_fail(f, "two elements of the shape are -1 (%d and %d)", r->inferred, i);
        r->inferred = i;
        return ZC_OK;
    }
    if (zc_dim_is_const(d) && d.k < 0) {
        return zc_infer_fail(f, "element %d of the shape is negative (got %lld, need -1 or more)",
                             i, (long long)d.k);
    }
    if (copied) return reshape_copy(f, r, i);
    r->dims[i] = d;
    r->zero |= zc_dim_is(d, 0);
    return zc_infer_mul(f, r->to, d, &r->to);
}

/* The -1: what the other dimensions leave over. */
static zc_status reshape_infer(zc_infer *f, reshape *r)
{
    const zc_type *in = &f->in[0].type;
    bool known = zc_dim_is_const(r->from) && zc_dim_is_const(r->to);
    if (!r->known_input) {
        r->dims[r->inferred] = zc_dim_fresh(f->dims);
        return ZC_OK;
    }
    if (r->zero) return zc_infer_fail(f, "a shape with a length of 0 leaves -1 undefined");
    if (known && (r->to.k == 0 || r->from.k % r->to.k != 0)) {
        const zc_vals *s = &f->in[1].vals;
        return zc_infer_fail(f, "element counts do not agree (got input %s for shape %s)",
                             zc_infer_dims_text(f, in->rank, in->dims),
                             zc_infer_dims_text(f, s->n, s->v));
    }
    r->dims[r->inferred] = zc_dim_div(f->dims, r->from, r->to);
    return ZC_OK;
}

static zc_status reshape_check(zc_infer *f, const reshape *r)
{
    const zc_type *in = &f->in[0].type;
    if (!r->known_input || !zc_dim_is_const(r->from) || !zc_dim_is_const(r->to)) return ZC_OK;
    if (r->from.k == r->to.k || r->empty) return ZC_OK;
    return zc_infer_fail(f, "element counts do not agree (got input %s for shape %s)",
                         zc_infer_dims_text(f, in->rank, in->dims),
                         zc_infer_dims_text(f, r->n, r->dims));
}

zc_status zc_infer_reshape(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    const zc_vals *shape = &f->in[1].vals;
    bool allowzero = ZC_ATTRS(f, Reshape)->allowzero != 0;
    ZC_TRY(zc_infer_need_int(f, 1, "shape"));
    ZC_TRY(zc_infer_need_vector(f, 1, "shape"));
    int n = zc_infer_vector_len(f, 1);
    if (n < 0) return ZC_OK;
    if (n > ZC_MAX_RANK || shape->n < 0) return zc_infer_set(f, 0, n, NULL);

    reshape r = {.n = n, .inferred = -1, .known_input = in->rank >= 0};
    bool copies[ZC_MAX_RANK] = {0};
    r.from = r.to = zc_dim_const(1);
    for (int i = 0; i < n; i++) {
        copies[i] = !allowzero && zc_dim_is(shape->v[i], 0);
        ZC_TRY(reshape_element(f, &r, i, copies[i]));
    }
    for (int i = 0; i < in->rank; i++) {
        if (i >= n || !copies[i]) r.from = zc_dim_mul(f->dims, r.from, in->dims[i]);
    }
    ZC_TRY(r.inferred >= 0 ? reshape_infer(f, &r) : reshape_check(f, &r));
    ZC_TRY(zc_infer_set(f, 0, n, r.dims));
    zc_infer_pass_vals(f);
    return ZC_OK;
}

/* ---- axes of length 1 ---- */

/* Without axes: all axes of length 1 go; a symbol that may be 1 leaves the rank unknown. */
static bool squeeze_ones(zc_infer *f, bool mask[ZC_MAX_RANK])
{
    const zc_type *in = &f->in[0].type;
    bool known = true;
    for (int i = 0; i < in->rank; i++) {
        mask[i] = zc_dim_is(in->dims[i], 1);
        if (!zc_dim_is_const(in->dims[i]) && !zc_dim_known_ge(f->dims, in->dims[i], 2))
            known = false;
    }
    return known;
}

zc_status zc_infer_squeeze(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    const int64_t *axes;
    int n;
    bool mask[ZC_MAX_RANK] = {0};
    ZC_TRY(zc_infer_need_int(f, 1, "axes"));
    ZC_TRY(zc_infer_need_vector(f, 1, "axes"));
    ZC_TRY(zc_infer_const_ints(f, 1, &axes, &n));
    if (!zc_in_present(f, 1)) {
        if (!squeeze_ones(f, mask)) return ZC_OK;
    } else if (n < 0) {
        int len = zc_infer_vector_len(f, 1);
        return len < 0 || len > in->rank ? ZC_OK : zc_infer_set(f, 0, in->rank - len, NULL);
    } else {
        ZC_TRY(zc_infer_axes(f, axes, n, in->rank, mask));
    }
    zc_dim dims[ZC_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < in->rank; i++) {
        if (!mask[i]) {
            dims[rank++] = in->dims[i];
        } else if (zc_dim_is_const(in->dims[i]) && in->dims[i].k != 1) {
            return zc_infer_fail(f, "axis %d cannot be removed (got length %lld, need 1)", i,
                                 (long long)in->dims[i].k);
        }
    }
    ZC_TRY(zc_infer_set(f, 0, rank, dims));
    zc_infer_pass_vals(f);
    return ZC_OK;
}

zc_status zc_infer_unsqueeze(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    const int64_t *axes;
    int n, len = zc_infer_vector_len(f, 1);
    bool mask[ZC_MAX_RANK];
    ZC_TRY(zc_infer_need_int(f, 1, "axes"));
    ZC_TRY(zc_infer_need_vector(f, 1, "axes"));
    ZC_TRY(zc_infer_const_ints(f, 1, &axes, &n));
    if (len < 0) return ZC_OK;
    if (n < 0 || in->rank + n > ZC_MAX_RANK) return zc_infer_set(f, 0, in->rank + len, NULL);
    ZC_TRY(zc_infer_axes(f, axes, n, in->rank + n, mask));
    zc_dim dims[ZC_MAX_RANK];
    for (int i = 0, j = 0; i < in->rank + n; i++)
        dims[i] = mask[i] ? zc_dim_const(1) : in->dims[j++];
    ZC_TRY(zc_infer_set(f, 0, in->rank + n, dims));
    zc_infer_pass_vals(f);
    return ZC_OK;
}

zc_status zc_infer_flatten(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    int64_t axis = ZC_ATTRS(f, Flatten)->axis;
    if (axis < -in->rank || axis > in->rank) {
        return zc_infer_fail(f, "axis out of range (got %lld, need [%d, %d])", (long long)axis,
                             -in->rank, in->rank);
    }
    int at = (int)(axis < 0 ? axis + in->rank : axis);
    zc_dim dims[2] = {zc_infer_span(f, in, 0, at), zc_infer_span(f, in, at, in->rank)};
    return zc_infer_set(f, 0, 2, dims);
}

/* ---- First ---- */

zc_status zc_infer_first(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    const zc_attrs_First *a = ZC_ATTRS(f, First);
    zc_dim dims[ZC_MAX_RANK];
    int rank = 0;
    if (a->axis < 0 || a->axis >= in->rank)
        return zc_infer_fail(f, "axis out of range (got %lld, need [0, %d))", (long long)a->axis,
                             in->rank);
    for (int d = 0; d < in->rank; d++) {
        if (d == a->axis && zc_dim_is(in->dims[d], 0))
            return zc_infer_fail(f, "axis %d has no rows", d);
        if (d < a->axis && !zc_dim_is(in->dims[d], 1))
            return zc_infer_fail(f, "axis %d, in front of axis %lld, must be certain to be 1", d,
                                 (long long)a->axis);
        if (d != a->axis)
            dims[rank++] = in->dims[d];
        else if (!a->drops)
            dims[rank++] = zc_dim_const(1);
    }
    return zc_infer_set(f, 0, rank, dims);
}

/* ---- Transpose ---- */

/* given: else all axes are reversed. */
static zc_status permuted(zc_infer *f, const zc_ints *perm, bool given)
{
    const zc_type *in = &f->in[0].type;
    zc_dim dims[ZC_MAX_RANK];
    bool seen[ZC_MAX_RANK] = {0};
    if (given && perm->n != in->rank) {
        return zc_infer_fail(f, "perm has a wrong length (got %d, need the rank %d)", perm->n,
                             in->rank);
    }
    for (int i = 0; i < in->rank; i++) {
        int64_t axis = given ? perm->v[i] : in->rank - 1 - i;
        if (axis < 0 || axis >= in->rank || seen[axis]) {
            return zc_infer_fail(
                f, "perm is no permutation (got %lld at %d, need each of [0, %d] once)",
                (long long)axis, i, in->rank - 1);
        }
        seen[axis] = true;
        dims[i] = in->dims[axis];
    }
    return zc_infer_set(f, 0, in->rank, dims);
}

zc_status zc_infer_transpose(zc_infer *f)
{
    const zc_ints *perm = &ZC_ATTRS(f, Transpose)->perm;
    ZC_TRY(permuted(f, perm, ZC_ATTR_GIVEN(Transpose, ZC_ATTRS(f, Transpose), perm) || perm->n));
    zc_infer_pass_vals(f);
    return ZC_OK;
}

static bool is_narrow_float(zc_dtype t)
{
    return t == ZC_F32 || t == ZC_F16 || t == ZC_BF16;
}

/* One scale, f32 or of the elements' type, and perhaps a zero point. */
static zc_status check_quantisation(zc_infer *f, zc_dtype from, zc_dtype to)
{
    const zc_type *scale = zc_in(f, ZC_IN_TransposeCast_scale);
    const bool has_zero = zc_in_present(f, ZC_IN_TransposeCast_zero);
    const zc_type *zero = has_zero ? zc_in(f, ZC_IN_TransposeCast_zero) : NULL;
    if (scale->rank || (scale->dtype != ZC_F32 && scale->dtype != from))
        return zc_infer_fail(f, "wrong scale (got %s of rank %d, need one of f32 or %s)",
                             zc_dtype_name(scale->dtype), scale->rank, zc_dtype_name(from));
    if (zero && (zero->rank || zero->dtype != to))
        return zc_infer_fail(f, "wrong zero point (got %s of rank %d, need one of %s)",
                             zc_dtype_name(zero->dtype), zero->rank, zc_dtype_name(to));
    return ZC_OK;
}

zc_status zc_dt_transpose_cast(zc_infer *f)
{
    const zc_dtype from = f->in[0].type.dtype, to = ZC_ATTRS(f, TransposeCast)->to;
    const bool quantises = zc_in_present(f, ZC_IN_TransposeCast_scale);
    const bool makes = quantises ? to == ZC_I8 || to == ZC_U8 : is_narrow_float(to);
    if (!is_narrow_float(from) || !makes)
        return zc_infer_fail(f, "wrong element types (got %s to %s, need f32, f16 or bf16%s)",
                             zc_dtype_name(from), to == ZC_NONE ? "none" : zc_dtype_name(to),
                             quantises ? " to i8 or u8" : "");
    f->out[0].type.dtype = to;
    return quantises ? check_quantisation(f, from, to) : ZC_OK;
}

zc_status zc_infer_transpose_cast(zc_infer *f)
{
    const zc_ints *perm = &ZC_ATTRS(f, TransposeCast)->perm;
    return permuted(f, perm, perm->n != 0);
}

/* ---- Concat and Split ---- */

static zc_status concat_vals(zc_infer *f)
{
    int64_t n = 0, at = 0;
    for (int i = 0; i < f->nin; i++) {
        if (f->in[i].vals.n < 0) return ZC_OK;
        n += f->in[i].vals.n;
    }
    zc_dim *v = n <= ZC_VALS_MAX ? zc_infer_vals(f, 0, (int)n) : NULL;
    for (int i = 0; v && i < f->nin; i++) {
        for (int j = 0; j < f->in[i].vals.n; j++) v[at++] = f->in[i].vals.v[j];
    }
    return ZC_OK;
}

/* Joins the dims of input i to those of the inputs before it. */
static zc_status concat_dims(zc_infer *f, int i, int axis, zc_dim *dims)
{
    const zc_type *t = &f->in[i].type;
    for (int d = 0; d < t->rank; d++) {
        if (d == axis) {
            ZC_TRY(zc_infer_add(f, dims[d], t->dims[d], &dims[d]));
        } else if (zc_dim_is_const(dims[d]) && zc_dim_is_const(t->dims[d]) &&
                   dims[d].k != t->dims[d].k) {
            return zc_infer_fail(
                f, "inputs differ in another axis than %d (got %s and, input %d, %s)", axis,
                zc_infer_dims_text(f, f->in[0].type.rank, f->in[0].type.dims), i,
                zc_infer_dims_text(f, t->rank, t->dims));
        } else if (zc_dim_is_const(t->dims[d]) || zc_dim_dynamic(f->dims, dims[d])) {
            dims[d] = t->dims[d];
        }
    }
    return ZC_OK;
}

zc_status zc_infer_concat(zc_infer *f)
{
    const zc_type *first = &f->in[0].type;
    zc_dim dims[ZC_MAX_RANK];
    int axis;
    if (ZC_ATTRS(f, Concat)->axis == INT64_MIN)
        return zc_infer_fail(f, "attribute axis is missing");
    ZC_TRY(zc_infer_axis(f, ZC_ATTRS(f, Concat)->axis, first->rank, &axis));
    memcpy(dims, first->dims, sizeof dims);
    for (int i = 1; i < f->nin; i++) {
        if (!zc_in_present(f, i)) return zc_infer_fail(f, "input %d is left out", i);
        ZC_TRY(zc_infer_need_rank(f, i, first->rank, first->rank));
        ZC_TRY(concat_dims(f, i, axis, dims));
    }
    ZC_TRY(zc_infer_set(f, 0, first->rank, dims));
    return concat_vals(f);
}

/* Lengths of the n parts of dim into len[]. */
static zc_status split_evenly(zc_infer *f, zc_dim dim, zc_dim *len)
{
    int64_t wanted = ZC_ATTRS(f, Split)->num_outputs;
    int n = f->nout;
    if (ZC_ATTR_GIVEN(Split, ZC_ATTRS(f, Split), num_outputs) && wanted != n) {
        return zc_infer_fail(f, "num_outputs differs from the number of outputs (got %lld and %d)",
                             (long long)wanted, n);
    }
    zc_dim part = zc_dim_cdiv(f->dims, dim, zc_dim_const(n));
    for (int i = 0; i < n - 1; i++) len[i] = part;
    len[n - 1] = zc_dim_sub(f->dims, dim, zc_dim_mul(f->dims, part, zc_dim_const(n - 1)));
    if (zc_dim_is_const(len[n - 1]) && len[n - 1].k < 0) {
        return zc_infer_fail(f, "an axis of length %lld has no %d parts of length %lld",
                             (long long)dim.k, n, (long long)part.k);
    }
    return ZC_OK;
}

/* Element j of the lengths: a long list has no vals but may have data. */
static zc_dim told_length(zc_infer *f, int j)
{
    const zc_operand *split = &f->in[1];
    if (split->vals.n > j) return split->vals.v[j];
    if (!split->data || zc_tensor_numel(split->data) <= j) return zc_dim_fresh(f->dims);
    return zc_dim_const(zc_load_i64(split->data->dtype, split->data->data, j));
}

static zc_status split_as_told(zc_infer *f, zc_dim dim, zc_dim *len)
{
    zc_dim sum = zc_dim_const(0);
    int told = zc_infer_vector_len(f, 1);
    if (told >= 0 && told != f->nout) {
        return zc_infer_fail(f, "split has a wrong length (got %d, need %d outputs)", told,
                             f->nout);
    }
    for (int i = 0; i < f->nout; i++) {
        len[i] = told_length(f, i);
        if (zc_dim_is_const(len[i]) && len[i].k < 0)
            return zc_infer_fail(f, "part %d has a negative length (got %lld)", i,
                                 (long long)len[i].k);
        ZC_TRY(zc_infer_add(f, sum, len[i], &sum));
    }
    return zc_infer_same(f, sum, dim, "the parts' sum and the axis length");
}

/* Output i starts at element `from` of the split vector. */
static void split_vals(zc_infer *f, int i, zc_dim from)
{
    const zc_vals *in = &f->in[0].vals;
    zc_dim len = f->out[i].type.dims[0];
    if (in->n < 0 || !zc_dim_is_const(from) || !zc_dim_is_const(len)) return;
    if (from.k > in->n || len.k > in->n - from.k) return;
    zc_dim *v = zc_infer_vals(f, i, (int)len.k);
    for (int64_t j = 0; v && j < len.k; j++) v[j] = in->v[from.k + j];
}

zc_status zc_infer_split(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    int axis;
    ZC_TRY(zc_infer_axis(f, ZC_ATTRS(f, Split)->axis, in->rank, &axis));
    ZC_TRY(zc_infer_need_int(f, 1, "split"));
    ZC_TRY(zc_infer_need_vector(f, 1, "split"));
    zc_dim *len = zc_arena_alloc(f->arena, (size_t)f->nout, sizeof *len);
    if (!len) return zc_fail_nomem(f->diag, "split lengths", (size_t)f->nout * sizeof *len);
    ZC_TRY(zc_in_present(f, 1) ? split_as_told(f, in->dims[axis], len)
                               : split_evenly(f, in->dims[axis], len));
    zc_dim from = zc_dim_const(0), dims[ZC_MAX_RANK];
    memcpy(dims, in->dims, sizeof dims);
    for (int i = 0; i < f->nout; i++) {
        dims[axis] = len[i];
        ZC_TRY(zc_infer_set(f, i, in->rank, dims));
        split_vals(f, i, from);
        from = zc_dim_add(f->dims, from, len[i]);
    }
    return ZC_OK;
}

/* ---- Expand and Tile ---- */

/* A vector repeated to the output's length. */
static void repeat_vals(zc_infer *f)
{
    const zc_vals *in = &f->in[0].vals;
    const zc_type *out = &f->out[0].type;
    if (in->n < 0 || out->rank > 1) return;
    if (out->rank == 0) {
        f->out[0].vals = *in;
        return;
    }
    if (!zc_dim_is_const(out->dims[0]) || out->dims[0].k > ZC_VALS_MAX) return;
    if (in->n == 0 && out->dims[0].k > 0) return;
    zc_dim *v = zc_infer_vals(f, 0, (int)out->dims[0].k);
    for (int64_t i = 0; v && i < out->dims[0].k; i++) v[i] = in->v[i % in->n];
}

zc_status zc_infer_expand(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    const zc_vals *shape = &f->in[1].vals;
    ZC_TRY(zc_infer_need_int(f, 1, "shape"));
    ZC_TRY(zc_infer_need_vector(f, 1, "shape"));
    int n = zc_infer_vector_len(f, 1);
    if (n < 0) return ZC_OK;
    int rank = n > in->rank ? n : in->rank;
    if (n > ZC_MAX_RANK || shape->n < 0) return zc_infer_set(f, 0, rank, NULL);
    zc_type wanted = {.rank = n}, out = {0};
    for (int i = 0; i < n; i++) {
        wanted.dims[i] = shape->v[i];
        if (zc_dim_is_const(shape->v[i]) && shape->v[i].k < 0) {
            return zc_infer_fail(f, "element %d of the shape is negative (got %lld)", i,
                                 (long long)shape->v[i].k);
        }
    }
    ZC_TRY(zc_infer_broadcast(f, in, &wanted, &out));
    ZC_TRY(zc_infer_set(f, 0, out.rank, out.dims));
    repeat_vals(f);
    return ZC_OK;
}

zc_status zc_infer_tile(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    const zc_vals *repeats = &f->in[1].vals;
    ZC_TRY(zc_infer_need_int(f, 1, "repeats"));
    ZC_TRY(zc_infer_need_vector(f, 1, "repeats"));
    int n = zc_infer_vector_len(f, 1);
    if (n >= 0 && n != in->rank)
        return zc_infer_fail(f, "repeats has a wrong length (got %d, need the rank %d)", n,
                             in->rank);
    if (repeats->n < 0) return zc_infer_set(f, 0, in->rank, NULL);
    zc_dim dims[ZC_MAX_RANK];
    for (int i = 0; i < in->rank; i++) {
        zc_dim r = repeats->v[i];
        if (zc_dim_is_const(r) && r.k < 0)
            return zc_infer_fail(f, "repeat %d is negative (got %lld)", i, (long long)r.k);
        ZC_TRY(zc_infer_mul(f, in->dims[i], r, &dims[i]));
    }
    ZC_TRY(zc_infer_set(f, 0, in->rank, dims));
    repeat_vals(f);
    return ZC_OK;
}
