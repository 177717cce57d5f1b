/* Shapes of the operations that gather, scatter and search by index. */
#include <math.h>
#include <string.h>

#include "op/infer_common.h"

zc_status zc_dt_in0_i64(zc_infer *f)
{
    for (int i = 0; i < f->nout; i++) f->out[i].type.dtype = i == 0 ? f->in[0].type.dtype : ZC_I64;
    return ZC_OK;
}

/* The known indices of input i lie in [-dim, dim). */
static zc_status check_indices(zc_infer *f, int i, zc_dim dim)
{
    const zc_vals *v = &f->in[i].vals;
    if (!zc_dim_is_const(dim)) return ZC_OK;
    for (int j = 0; j < v->n; j++) {
        if (zc_dim_is_const(v->v[j]) && (v->v[j].k < -dim.k || v->v[j].k >= dim.k)) {
            return zc_infer_fail(f, "index out of range (got %lld, need [%lld, %lld])",
                                 (long long)v->v[j].k, (long long)-dim.k, (long long)dim.k - 1);
        }
    }
    return ZC_OK;
}

/* ---- Gather ---- */

/* Elements of a known vector at constant indices. */
static void gather_vals(zc_infer *f)
{
    const zc_vals *in = &f->in[0].vals, *at = &f->in[1].vals;
    if (in->n < 0 || at->n < 0 || f->out[0].type.rank > 1) return;
    for (int j = 0; j < at->n; j++)
        if (!zc_dim_is_const(at->v[j])) return;
    zc_dim *v = zc_infer_vals(f, 0, at->n);
    for (int j = 0; v && j < at->n; j++) v[j] = in->v[at->v[j].k + (at->v[j].k < 0 ? in->n : 0)];
}

zc_status zc_infer_gather(zc_infer *f)
{
    const zc_type *in = &f->in[0].type, *at = &f->in[1].type;
    int axis;
    ZC_TRY(zc_infer_need_rank(f, 0, 1, ZC_MAX_RANK));
    ZC_TRY(zc_infer_need_int(f, 1, "indices"));
    ZC_TRY(zc_infer_axis(f, ZC_ATTRS(f, Gather)->axis, in->rank, &axis));
    ZC_TRY(check_indices(f, 1, in->dims[axis]));
    zc_dim dims[2 * ZC_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < axis; i++) dims[rank++] = in->dims[i];
    for (int i = 0; i < at->rank; i++) dims[rank++] = at->dims[i];
    for (int i = axis + 1; i < in->rank; i++) dims[rank++] = in->dims[i];
    ZC_TRY(zc_infer_set(f, 0, rank, dims));
    gather_vals(f);
    return ZC_OK;
}

/* The indices of GatherElements and ScatterElements: the data's rank, and off the axis no longer
 * than the data. */
static zc_status check_elements(zc_infer *f, int64_t axis_attr)
{
    const zc_type *in = &f->in[0].type, *at = &f->in[1].type;
    int axis;
    ZC_TRY(zc_infer_need_rank(f, 0, 1, ZC_MAX_RANK));
    ZC_TRY(zc_infer_need_int(f, 1, "indices"));
    ZC_TRY(zc_infer_axis(f, axis_attr, in->rank, &axis));
    ZC_TRY(zc_infer_need_rank(f, 1, in->rank, in->rank));
    for (int i = 0; i < in->rank; i++) {
        bool known = zc_dim_is_const(in->dims[i]) && zc_dim_is_const(at->dims[i]);
        if (i != axis && known && at->dims[i].k > in->dims[i].k) {
            return zc_infer_fail(f, "indices exceed the data (got %s, data %s, axis %d)",
                                 zc_infer_dims_text(f, at->rank, at->dims),
                                 zc_infer_dims_text(f, in->rank, in->dims), axis);
        }
    }
    return check_indices(f, 1, in->dims[axis]);
}

zc_status zc_infer_gather_elements(zc_infer *f)
{
    ZC_TRY(check_elements(f, ZC_ATTRS(f, GatherElements)->axis));
    zc_infer_copy(f, 0, 1);
    return ZC_OK;
}

/* Length of the index tuples, input 1's last dimension, checked against the axes that they may
 * address; *n is -1 when it is a symbol. */
static zc_status tuple_length(zc_infer *f, int64_t addressable, int *n)
{
    const zc_type *at = &f->in[1].type;
    zc_dim last = at->dims[at->rank - 1];
    *n = -1;
    if (!zc_dim_is_const(last)) return ZC_OK;
    if (last.k < 1 || last.k > addressable) {
        return zc_infer_fail(f, "index tuples have a wrong length (got %lld, need 1 to %lld)",
                             (long long)last.k, (long long)addressable);
    }
    *n = (int)last.k;
    return ZC_OK;
}

zc_status zc_infer_gather_nd(zc_infer *f)
{
    const zc_type *in = &f->in[0].type, *at = &f->in[1].type;
    int64_t batch = ZC_ATTRS(f, GatherND)->batch_dims;
    int n;
    ZC_TRY(zc_infer_need_rank(f, 0, 1, ZC_MAX_RANK));
    ZC_TRY(zc_infer_need_int(f, 1, "indices"));
    ZC_TRY(zc_infer_need_rank(f, 1, 1, ZC_MAX_RANK));
    int most = (in->rank < at->rank ? in->rank : at->rank) - 1;
    if (batch < 0 || batch > most) {
        return zc_infer_fail(f, "batch_dims out of range (got %lld, need [0, %d])",
                             (long long)batch, most);
    }
    for (int i = 0; i < batch; i++)
        ZC_TRY(
            zc_infer_same(f, in->dims[i], at->dims[i], "the batch dimensions of data and indices"));
    ZC_TRY(tuple_length(f, in->rank - batch, &n));
    if (n < 0) return ZC_OK;
    zc_dim dims[2 * ZC_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < at->rank - 1; i++) dims[rank++] = at->dims[i];
    for (int i = (int)batch + n; i < in->rank; i++) dims[rank++] = in->dims[i];
    return zc_infer_set(f, 0, rank, dims);
}

/* ---- Scatter ---- */

static zc_status check_reduction(zc_infer *f, const char *reduction)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    for (size_t i = 0; i < ZC_COUNTOF(names); i++)
        if (reduction && strcmp(reduction, names[i]) == 0) return ZC_OK;
    return zc_infer_fail(f, "unknown reduction (got " ZC_NAME ", need none, add, mul, max or min)",
                         reduction ? reduction : "nothing");
}

zc_status zc_infer_scatter_elements(zc_infer *f)
{
    const zc_type *at = &f->in[1].type, *updates = &f->in[2].type;
    const zc_attrs_ScatterElements *a = ZC_ATTRS(f, ScatterElements);
    ZC_TRY(check_reduction(f, a->reduction));
    ZC_TRY(check_elements(f, a->axis));
    ZC_TRY(zc_infer_need_alike(f, 0, 2));
    ZC_TRY(zc_infer_need_rank(f, 2, at->rank, at->rank));
    for (int i = 0; i < at->rank; i++)
        ZC_TRY(
            zc_infer_same(f, at->dims[i], updates->dims[i], "a dimension of indices and updates"));
    zc_infer_copy(f, 0, 0);
    return ZC_OK;
}

/* A vector of known elements with some replaced: how exporters patch a shape. */
static void scatter_vals(zc_infer *f)
{
    const zc_vals *in = &f->in[0].vals, *updates = &f->in[2].vals;
    const zc_tensor *at = f->in[1].data;
    const char *reduction = ZC_ATTRS(f, ScatterND)->reduction;
    if (in->n < 0 || f->in[0].type.rank != 1 || updates->n < 0 || !at) return;
    if (strcmp(reduction, "none") != 0 || zc_tensor_numel(at) != updates->n) return;
    zc_dim *v = zc_infer_vals(f, 0, in->n);
    if (!v) return;
    if (in->n) memcpy(v, in->v, (size_t)in->n * sizeof *v);
    for (int i = 0; i < updates->n; i++) {
        int64_t to = zc_load_i64(at->dtype, at->data, i);
        if (to < 0) to += in->n;
        if (to < 0 || to >= in->n) {
            f->out[0].vals = (zc_vals){.n = -1};
            return;
        }
        v[to] = updates->v[i];
    }
}

zc_status zc_infer_scatter_nd(zc_infer *f)
{
    const zc_type *in = &f->in[0].type, *at = &f->in[1].type, *updates = &f->in[2].type;
    int n;
    ZC_TRY(check_reduction(f, ZC_ATTRS(f, ScatterND)->reduction));
    ZC_TRY(zc_infer_need_rank(f, 0, 1, ZC_MAX_RANK));
    ZC_TRY(zc_infer_need_int(f, 1, "indices"));
    ZC_TRY(zc_infer_need_rank(f, 1, 1, ZC_MAX_RANK));
    ZC_TRY(zc_infer_need_alike(f, 0, 2));
    zc_infer_copy(f, 0, 0);
    ZC_TRY(tuple_length(f, in->rank, &n));
    if (n < 0) return ZC_OK;
    int rank = at->rank - 1 + in->rank - n;
    ZC_TRY(zc_infer_need_rank(f, 2, rank, rank));
    for (int i = 0; i < rank; i++) {
        zc_dim want = i < at->rank - 1 ? at->dims[i] : in->dims[i - (at->rank - 1) + n];
        ZC_TRY(
            zc_infer_same(f, updates->dims[i], want, "a dimension of updates and what it updates"));
    }
    scatter_vals(f);
    return ZC_OK;
}

zc_status zc_infer_tensor_scatter(zc_infer *f)
{
    const zc_type *in = &f->in[0].type, *update = &f->in[1].type;
    const zc_attrs_TensorScatter *a = ZC_ATTRS(f, TensorScatter);
    int axis;
    if (!a->mode || (strcmp(a->mode, "linear") != 0 && strcmp(a->mode, "circular") != 0))
        return zc_infer_fail(f, "unknown mode (got " ZC_NAME ", need linear or circular)",
                             a->mode ? a->mode : "none");
    ZC_TRY(zc_infer_need_rank(f, 0, 2, ZC_MAX_RANK));
    ZC_TRY(zc_infer_axis(f, a->axis, in->rank, &axis));
    if (axis == 0) return zc_infer_fail(f, "axis is the batch axis 0");
    ZC_TRY(zc_infer_need_alike(f, 0, 1));
    ZC_TRY(zc_infer_need_rank(f, 1, in->rank, in->rank));
    for (int i = 0; i < in->rank; i++) {
        zc_dim have = update->dims[i], room = in->dims[i];
        if (i != axis) ZC_TRY(zc_infer_same(f, have, room, "a dimension of update and cache"));
        if (zc_dim_is_const(have) && zc_dim_is_const(room) && have.k > room.k) {
            return zc_infer_fail(f, "update is longer than the cache (got %lld, need at most %lld)",
                                 (long long)have.k, (long long)room.k);
        }
    }
    if (zc_in_present(f, 2)) {
        ZC_TRY(zc_infer_need_int(f, 2, "write indices"));
        ZC_TRY(zc_infer_need_rank(f, 2, 1, 1));
        ZC_TRY(zc_infer_same(f, f->in[2].type.dims[0], in->dims[0], "write indices and batch"));
    }
    zc_infer_copy(f, 0, 0);
    return ZC_OK;
}

/* ---- OneHot ---- */

/* Input 1 as a length; it may be of any numeric type. */
static zc_dim one_hot_depth(zc_infer *f)
{
    zc_dim depth;
    const zc_tensor *t = f->in[1].data;
    if (zc_infer_scalar(f, 1, &depth)) return depth;
    if (!t || zc_tensor_numel(t) != 1) return zc_dim_fresh(f->dims);
    double v = zc_load_f64(t->dtype, t->data, 0);
    return v >= 0 && v < 0x1p62 ? zc_dim_const((int64_t)v) : zc_dim_const(-1);
}

zc_status zc_infer_one_hot(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    int axis, rank = in->rank + 1;
    ZC_TRY(zc_infer_axis(f, ZC_ATTRS(f, OneHot)->axis, rank, &axis));
    int values = zc_infer_vector_len(f, 2);
    ZC_TRY(zc_infer_need_scalar(f, 1, "depth"));
    if (f->in[2].type.rank != 1 || (values >= 0 && values != 2))
        return zc_infer_fail(f, "values must be a vector of two elements, off and on");
    zc_dim depth = one_hot_depth(f), dims[ZC_MAX_RANK + 1];
    if (zc_dim_is_const(depth) && depth.k < 0)
        return zc_infer_fail(f, "depth is negative or too large");
    for (int i = 0; i < rank; i++) dims[i] = i == axis ? depth : in->dims[i - (i > axis)];
    return zc_infer_set(f, 0, rank, dims);
}

/* ---- search ---- */

zc_status zc_infer_nonzero(zc_infer *f)
{
    zc_dim dims[2] = {zc_dim_const(f->in[0].type.rank), zc_dim_fresh(f->dims)};
    return zc_infer_set(f, 0, 2, dims);
}

zc_status zc_infer_compress(zc_infer *f)
{
    const zc_type *in = &f->in[0].type, *condition = &f->in[1].type;
    const zc_attrs_Compress *a = ZC_ATTRS(f, Compress);
    ZC_TRY(zc_infer_need_rank(f, 1, 1, 1));
    if (condition->dtype != ZC_BOOL)
        return zc_infer_fail(f, "the condition must be bool (got %s)",
                             zc_dtype_name(condition->dtype));
    if (!ZC_ATTR_GIVEN(Compress, a, axis)) return zc_infer_set(f, 0, 1, NULL);
    int axis;
    ZC_TRY(zc_infer_need_rank(f, 0, 1, ZC_MAX_RANK));
    ZC_TRY(zc_infer_axis(f, a->axis, in->rank, &axis));
    zc_dim dims[ZC_MAX_RANK];
    memcpy(dims, in->dims, sizeof dims);
    dims[axis] = zc_dim_fresh(f->dims);
    return zc_infer_set(f, 0, in->rank, dims);
}

zc_status zc_infer_unique(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    const zc_attrs_Unique *a = ZC_ATTRS(f, Unique);
    zc_dim found = zc_dim_fresh(f->dims), all, dims[ZC_MAX_RANK];
    if (a->sorted != 0 && a->sorted != 1)
        return zc_infer_fail(f, "sorted must be 0 or 1 (got %lld)", (long long)a->sorted);
    if (ZC_ATTR_GIVEN(Unique, a, axis)) {
        int axis;
        ZC_TRY(zc_infer_axis(f, a->axis, in->rank, &axis));
        memcpy(dims, in->dims, sizeof dims);
        all = dims[axis];
        dims[axis] = found;
        ZC_TRY(zc_infer_set(f, 0, in->rank, dims));
    } else {
        all = zc_infer_span(f, in, 0, in->rank);
        ZC_TRY(zc_infer_set(f, 0, 1, &found));
    }
    ZC_TRY(zc_infer_set(f, 1, 1, &found));
    ZC_TRY(zc_infer_set(f, 2, 1, &all));
    return zc_infer_set(f, 3, 1, &found);
}

zc_status zc_infer_topk(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    int axis;
    ZC_TRY(zc_infer_need_rank(f, 0, 1, ZC_MAX_RANK));
    ZC_TRY(zc_infer_axis(f, ZC_ATTRS(f, TopK)->axis, in->rank, &axis));
    ZC_TRY(zc_infer_need_int(f, 1, "K"));
    ZC_TRY(zc_infer_need_scalar(f, 1, "K"));
    zc_dim k, dims[ZC_MAX_RANK];
    memcpy(dims, in->dims, sizeof dims);
    if (!zc_infer_scalar(f, 1, &k)) k = zc_dim_fresh(f->dims);
    bool known = zc_dim_is_const(k);
    bool too_many = known && zc_dim_is_const(dims[axis]) && k.k > dims[axis].k;
    if (known && (k.k < 0 || too_many)) {
        return zc_infer_fail(f, "K out of range (got %lld, axis %d of %s)", (long long)k.k, axis,
                             zc_infer_dims_text(f, in->rank, in->dims));
    }
    dims[axis] = k;
    ZC_TRY(zc_infer_set(f, 0, in->rank, dims));
    return zc_infer_set(f, 1, in->rank, dims);
}

zc_status zc_infer_argreduce(zc_infer *f)
{
    const zc_type *in = &f->in[0].type;
    bool max = f->op == ZC_OP_ArgMax;
    bool keep = (max ? ZC_ATTRS(f, ArgMax)->keepdims : ZC_ATTRS(f, ArgMin)->keepdims) != 0;
    zc_dim dims[ZC_MAX_RANK];
    int axis, rank = 0;
    ZC_TRY(zc_infer_need_rank(f, 0, 1, ZC_MAX_RANK));
    ZC_TRY(zc_infer_axis(f, max ? ZC_ATTRS(f, ArgMax)->axis : ZC_ATTRS(f, ArgMin)->axis, in->rank,
                         &axis));
    for (int i = 0; i < in->rank; i++) {
        if (i != axis)
            dims[rank++] = in->dims[i];
        else if (keep)
            dims[rank++] = zc_dim_const(1);
    }
    return zc_infer_set(f, 0, rank, dims);
}

/* ---- along an axis ---- */

zc_status zc_infer_cumulate(zc_infer *f)
{
    zc_dim axis;
    int at;
    ZC_TRY(zc_infer_need_rank(f, 0, 1, ZC_MAX_RANK));
    ZC_TRY(zc_infer_need_int(f, 1, "axis"));
    ZC_TRY(zc_infer_need_scalar(f, 1, "axis"));
    if (zc_infer_scalar(f, 1, &axis) && zc_dim_is_const(axis))
        ZC_TRY(zc_infer_axis(f, axis.k, f->in[0].type.rank, &at));
    zc_infer_copy(f, 0, 0);
    return ZC_OK;
}

zc_status zc_infer_hardmax(zc_infer *f)
{
    int axis;
    ZC_TRY(zc_infer_need_rank(f, 0, 1, ZC_MAX_RANK));
    ZC_TRY(zc_infer_axis(f, ZC_ATTRS(f, Hardmax)->axis, f->in[0].type.rank, &axis));
    zc_infer_copy(f, 0, 0);
    return ZC_OK;
}
