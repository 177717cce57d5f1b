/* Kernels of the operations that reshape, permute, join and cut tensors. */
#include <string.h>

#include "cpu/copy.h"
#include "cpu/window.h"
#include "op/slice.h"

/* ---- views: the same bytes, or the first of them, under another shape ---- */

static zc_status copy_bytes(zc_kctx *k)
{
    const zc_tensor *in = &k->in[0];
    zc_tensor *out = &k->out[0];
    size_t from = 0, to = 0;
    bool fits = zc_tensor_bytes(in, &from) && zc_tensor_bytes(out, &to) &&
                zc_tensor_numel(in) == zc_tensor_numel(out) && from == to;
    if (!fits) {
        char a[256], b[256];
        return zc_kernel_fail(k, "element counts do not agree (got input %s for shape %s)",
                              zc_tensor_type_text(in, a, sizeof a),
                              zc_tensor_type_text(out, b, sizeof b));
    }
    zc_copy_flat(k, (int64_t)to, 1, out->data, in->data);
    return ZC_OK;
}

zc_status zc_k_Identity(zc_kctx *k)
{
    return copy_bytes(k);
}
zc_status zc_k_Reshape(zc_kctx *k)
{
    return copy_bytes(k);
}
zc_status zc_k_Squeeze(zc_kctx *k)
{
    return copy_bytes(k);
}
zc_status zc_k_Unsqueeze(zc_kctx *k)
{
    return copy_bytes(k);
}
zc_status zc_k_Flatten(zc_kctx *k)
{
    return copy_bytes(k);
}

zc_status zc_k_First(zc_kctx *k)
{
    size_t bytes = 0, there = 0;
    zc_tensor *out = &k->out[0];
    if (!zc_tensor_bytes(out, &bytes) || !zc_tensor_bytes(&k->in[0], &there) || bytes > there)
        return zc_kernel_fail(k, "more elements than its operand has");
    zc_copy_flat(k, (int64_t)bytes, 1, out->data, k->in[0].data);
    return ZC_OK;
}

/* ---- permutations ---- */

/* Output 0 is input 0, seen under `dims`, with axes in the order `perm`. */
static zc_status permute(zc_kctx *k, int rank, const int64_t *dims, const int *perm)
{
    const zc_tensor *in = &k->in[0];
    zc_tensor *out = &k->out[0];
    int64_t from[ZC_MAX_RANK], to[ZC_MAX_RANK], step = 1;
    zc_copy c = {0};
    ZC_TRY(zc_check_length(k, zc_tensor_numel(out), zc_tensor_numel(in), "number of elements"));
    if (zc_tensor_numel(in) == 0) return ZC_OK;
    for (int i = rank - 1; i >= 0; i--) {
        from[i] = step;
        step *= dims[i];
    }
    step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        to[i] = step;
        step *= dims[perm[i]];
    }
    for (int i = 0; i < rank; i++) zc_copy_axis(&c, dims[perm[i]], to[i], from[perm[i]]);
    zc_copy_run(k, &c, zc_elem_size(in), out->data, in->data);
    return ZC_OK;
}

/* Which axes of the input the result's are. */
static zc_status order_of(zc_kctx *k, const zc_ints *wanted, int perm[ZC_MAX_RANK])
{
    int rank = k->in[0].rank;
    int64_t dims[ZC_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        perm[i] = wanted->n ? (int)wanted->v[i] : rank - 1 - i;
        dims[i] = k->in[0].dims[perm[i]];
    }
    return zc_check_shape(k, &k->out[0], rank, dims, "the output");
}

zc_status zc_k_Transpose(zc_kctx *k)
{
    int perm[ZC_MAX_RANK];
    ZC_TRY(order_of(k, &ZC_ATTRS(k, Transpose)->perm, perm));
    return permute(k, k->in[0].rank, k->in[0].dims, perm);
}

/* Quantised, then moved. */
static zc_status quantise_permuted(zc_kctx *k, const int *perm)
{
    zc_attrs_QuantizeLinear attrs;
    zc_tensor bytes = k->in[0];
    size_t size = 0;
    zc_attrs_default(zc_op_get(ZC_OP_QuantizeLinear), &attrs);
    bytes.dtype = k->out[0].dtype;
    bytes.data = zc_tensor_bytes(&bytes, &size) ? zc_scratch_get(k->scratch, size) : NULL;
    if (!bytes.data) return zc_fail_nomem(k->diag, "quantised elements", size);
    zc_kctx quantise = zc_inner(k, ZC_OP_QuantizeLinear, &attrs, k->nin, k->in, &bytes);
    zc_kctx move = zc_inner(k, ZC_OP_Transpose, NULL, 1, &bytes, &k->out[0]);
    ZC_TRY(zc_k_QuantizeLinear(&quantise));
    return permute(&move, bytes.rank, bytes.dims, perm);
}

zc_status zc_k_TransposeCast(zc_kctx *k)
{
    const zc_tensor *x = &k->in[0];
    zc_tensor *y = &k->out[0];
    int perm[ZC_MAX_RANK];
    ZC_TRY(order_of(k, &ZC_ATTRS(k, TransposeCast)->perm, perm));
    if (zc_input(k, ZC_IN_TransposeCast_scale)) return quantise_permuted(k, perm);
    for (int64_t i = 0, n = zc_tensor_numel(y); i < n; i++) {
        int64_t at[ZC_MAX_RANK], in[ZC_MAX_RANK], from = 0;
        zc_coords(i, y->rank, y->dims, at);
        for (int d = 0; d < y->rank; d++) in[perm[d]] = at[d];
        for (int d = 0; d < x->rank; d++) from = from * x->dims[d] + in[d];
        zc_put_finite(y, i, zc_get(x, from));
    }
    return ZC_OK;
}

zc_status zc_k_DepthToSpace(zc_kctx *k)
{
    const zc_attrs_DepthToSpace *a = ZC_ATTRS(k, DepthToSpace);
    const int64_t *d = k->in[0].dims, b = a->blocksize;
    int64_t channels = d[1] / (b * b);
    const int64_t out[4] = {d[0], channels, d[2] * b, d[3] * b};
    ZC_TRY(zc_check_shape(k, &k->out[0], 4, out, "the output"));
    if (strcmp(a->mode, "DCR") == 0) {
        const int64_t dims[6] = {d[0], b, b, channels, d[2], d[3]};
        return permute(k, 6, dims, (const int[]){0, 3, 4, 1, 5, 2});
    }
    const int64_t dims[6] = {d[0], channels, b, b, d[2], d[3]};
    return permute(k, 6, dims, (const int[]){0, 1, 4, 2, 5, 3});
}

zc_status zc_k_SpaceToDepth(zc_kctx *k)
{
    const int64_t *d = k->in[0].dims, b = ZC_ATTRS(k, SpaceToDepth)->blocksize;
    const int64_t dims[6] = {d[0], d[1], d[2] / b, b, d[3] / b, b};
    const int64_t out[4] = {d[0], d[1] * b * b, dims[2], dims[4]};
    ZC_TRY(zc_check_shape(k, &k->out[0], 4, out, "the output"));
    return permute(k, 6, dims, (const int[]){0, 3, 5, 1, 2, 4});
}

/* ---- Concat and Split ---- */

/* Copies `part` of `whole`, which starts at index `at` of the axis, one way or the other. */
static void copy_part(zc_kctx *k, const zc_tensor *whole, const zc_tensor *part, int axis,
                      int64_t at, bool into_whole)
{
    int64_t outer[ZC_MAX_RANK], inner[ZC_MAX_RANK];
    zc_copy c = {0};
    if (zc_tensor_numel(part) == 0) return;
    zc_strides(whole, outer);
    zc_strides(part, inner);
    for (int i = 0; i < part->rank; i++) {
        zc_copy_axis(&c, part->dims[i], into_whole ? outer[i] : inner[i],
                     into_whole ? inner[i] : outer[i]);
    }
    void *where = zc_elem_at(whole, at * outer[axis]);
    if (into_whole)
        zc_copy_run(k, &c, zc_elem_size(part), where, part->data);
    else
        zc_copy_run(k, &c, zc_elem_size(part), part->data, where);
}

/* The part's shape is the whole's but for the axis, where it lies within it. */
static zc_status check_part(zc_kctx *k, const zc_tensor *whole, const zc_tensor *part, int axis,
                            int64_t at, const char *what)
{
    int64_t dims[ZC_MAX_RANK];
    memcpy(dims, whole->dims, sizeof dims);
    if (part->rank == whole->rank) dims[axis] = part->dims[axis];
    ZC_TRY(zc_check_shape(k, part, whole->rank, dims, what));
    if (dims[axis] <= whole->dims[axis] - at) return ZC_OK;
    return zc_kernel_fail(k, "the parts exceed the axis (got more than its length %lld)",
                          (long long)whole->dims[axis]);
}

zc_status zc_k_Concat(zc_kctx *k)
{
    zc_tensor *out = &k->out[0];
    int axis = zc_axis(ZC_ATTRS(k, Concat)->axis, out->rank);
    int64_t at = 0;
    for (int i = 0; i < k->nin; i++) {
        ZC_TRY(check_part(k, out, &k->in[i], axis, at, "an input"));
        copy_part(k, out, &k->in[i], axis, at, true);
        at += k->in[i].dims[axis];
    }
    return zc_check_length(k, at, out->dims[axis], "sum of the inputs' lengths");
}

/* Output i's length along the axis, whether or not it is wanted. */
static int64_t part_length(const zc_kctx *k, int64_t dim, int i)
{
    if (k->nin > 1 && zc_present(&k->in[1])) return zc_geti(&k->in[1], i);
    int64_t part = dim / k->nout + (dim % k->nout != 0);
    return i < k->nout - 1 ? part : dim - part * (k->nout - 1);
}

zc_status zc_k_Split(zc_kctx *k)
{
    const zc_tensor *in = &k->in[0];
    int axis = zc_axis(ZC_ATTRS(k, Split)->axis, in->rank);
    int64_t at = 0, dim = in->dims[axis];
    if (k->nin > 1 && zc_present(&k->in[1]))
        ZC_TRY(zc_check_length(k, zc_tensor_numel(&k->in[1]), k->nout, "number of parts"));
    for (int i = 0; i < k->nout; i++) {
        int64_t len = part_length(k, dim, i);
        if (len < 0 || len > dim - at) {
            return zc_kernel_fail(k, "part %d does not fit the axis (got length %lld of %lld left)",
                                  i, (long long)len, (long long)(dim - at));
        }
        if (zc_present(&k->out[i])) {
            ZC_TRY(check_part(k, in, &k->out[i], axis, at, "an output"));
            ZC_TRY(zc_check_length(k, k->out[i].dims[axis], len, "length of an output"));
            copy_part(k, in, &k->out[i], axis, at, false);
        }
        at += len;
    }
    return zc_check_length(k, at, dim, "sum of the parts' lengths");
}

/* ---- Slice ---- */

/* Entry j of the slice: its axis, first element and step, and the output's length to expect. */
static zc_status slice_entry(zc_kctx *k, int j, int64_t *first, int64_t *step, int64_t *dims)
{
    const zc_tensor *in = &k->in[0];
    bool has_axes = k->nin > 3 && zc_present(&k->in[3]);
    bool has_steps = k->nin > 4 && zc_present(&k->in[4]);
    int64_t axis = has_axes ? zc_geti(&k->in[3], j) : j;
    int64_t by = has_steps ? zc_geti(&k->in[4], j) : 1;
    if (axis < -in->rank || axis >= in->rank || by == 0) {
        return zc_kernel_fail(k, "axis or step out of range (got axis %lld of rank %d, step %lld)",
                              (long long)axis, in->rank, (long long)by);
    }
    int a = zc_axis(axis, in->rank);
    zc_slice_span(in->dims[a], zc_geti(&k->in[1], j), zc_geti(&k->in[2], j), by, &first[a],
                  &dims[a]);
    step[a] = dims[a] > 1 ? by : 0; /* a step that is not taken may be of any size */
    return ZC_OK;
}

zc_status zc_k_Slice(zc_kctx *k)
{
    const zc_tensor *in = &k->in[0];
    zc_tensor *out = &k->out[0];
    int64_t first[ZC_MAX_RANK] = {0}, step[ZC_MAX_RANK], dims[ZC_MAX_RANK];
    int64_t from[ZC_MAX_RANK], to[ZC_MAX_RANK], at = 0, n = zc_tensor_numel(&k->in[1]);
    zc_copy c = {0};
    for (int i = 2; i < k->nin; i++) {
        if (zc_present(&k->in[i]))
            ZC_TRY(zc_check_length(k, zc_tensor_numel(&k->in[i]), n, "number of bounds"));
    }
    if (n > in->rank)
        return zc_kernel_fail(k, "more bounds than axes (got %lld for rank %d)", (long long)n,
                              in->rank);
    for (int i = 0; i < in->rank; i++) {
        step[i] = 1;
        dims[i] = in->dims[i];
    }
    for (int j = 0; j < n; j++) ZC_TRY(slice_entry(k, j, first, step, dims));
    ZC_TRY(zc_check_shape(k, out, in->rank, dims, "the output"));
    if (zc_tensor_numel(out) == 0) return ZC_OK;
    zc_strides(in, from);
    zc_strides(out, to);
    for (int i = 0; i < in->rank; i++) {
        at += first[i] * from[i];
        zc_copy_axis(&c, dims[i], to[i], step[i] * from[i]);
    }
    zc_copy_run(k, &c, zc_elem_size(in), out->data, zc_elem_at(in, at));
    return ZC_OK;
}

/* ---- Expand and Tile ---- */

zc_status zc_k_Expand(zc_kctx *k)
{
    const zc_tensor *in = &k->in[0], *shape = &k->in[1];
    zc_tensor *out = &k->out[0];
    int64_t n = zc_tensor_numel(shape);
    bool ok = out->rank == (n > in->rank ? n : in->rank);
    for (int i = 0; ok && i < out->rank; i++) {
        int a = i - (out->rank - in->rank), b = i - (out->rank - (int)n);
        int64_t have = a >= 0 ? in->dims[a] : 1, want = b >= 0 ? zc_geti(shape, b) : 1;
        ok = out->dims[i] == (want == 1 ? have : want) && (have == 1 || have == out->dims[i]);
    }
    if (!ok) {
        char a[256], b[256];
        return zc_kernel_fail(k, "input does not broadcast to the shape (got %s for %s)",
                              zc_tensor_type_text(in, a, sizeof a),
                              zc_tensor_type_text(out, b, sizeof b));
    }
    if (zc_tensor_numel(out) == 0) return ZC_OK;
    int64_t from[ZC_MAX_RANK], to[ZC_MAX_RANK];
    zc_copy c = {0};
    zc_broadcast_strides(in, out, from);
    zc_strides(out, to);
    for (int i = 0; i < out->rank; i++) zc_copy_axis(&c, out->dims[i], to[i], from[i]);
    zc_copy_run(k, &c, zc_elem_size(in), out->data, in->data);
    return ZC_OK;
}

zc_status zc_k_Tile(zc_kctx *k)
{
    const zc_tensor *in = &k->in[0];
    zc_tensor *out = &k->out[0];
    int64_t from[ZC_MAX_RANK], to[ZC_MAX_RANK], dims[ZC_MAX_RANK];
    zc_copy c = {0};
    ZC_TRY(zc_check_length(k, zc_tensor_numel(&k->in[1]), in->rank, "number of repeats"));
    for (int i = 0; i < in->rank; i++) {
        int64_t repeat = zc_geti(&k->in[1], i);
        if (repeat < 0 || !zc_mul_i64(in->dims[i], repeat, &dims[i]))
            return zc_kernel_fail(k, "repeat %d out of range (got %lld)", i, (long long)repeat);
    }
    ZC_TRY(zc_check_shape(k, out, in->rank, dims, "the output"));
    if (zc_tensor_numel(out) == 0) return ZC_OK;
    zc_strides(in, from);
    zc_strides(out, to);
    for (int i = 0; i < in->rank; i++) {
        zc_copy_axis(&c, out->dims[i] / in->dims[i], to[i] * in->dims[i], 0);
        zc_copy_axis(&c, in->dims[i], to[i], from[i]);
    }
    zc_copy_run(k, &c, zc_elem_size(in), out->data, in->data);
    return ZC_OK;
}
