/* Kernels that write by index: ScatterElements, ScatterND, TensorScatter. Updates are applied in
 * the row-major order of their indices, so that repeated indices have a defined result. */
#include <math.h>
#include <string.h>

#include "cpu/index.h"

/* ---- reductions ---- */

typedef enum how { HOW_NONE, HOW_ADD, HOW_MUL, HOW_MAX, HOW_MIN } how;

static how how_of(const char *reduction)
{
    return strcmp(reduction, "add") == 0   ? HOW_ADD
           : strcmp(reduction, "mul") == 0 ? HOW_MUL
           : strcmp(reduction, "max") == 0 ? HOW_MAX
           : strcmp(reduction, "min") == 0 ? HOW_MIN
                                           : HOW_NONE;
}

static zc_status check_how(zc_kctx *k, how h)
{
    if (h == HOW_NONE || zc_dtype_class(k->in[0].dtype) != ZC_CLASS_COMPLEX) return ZC_OK;
    return zc_kernel_unsupported(k, "a reduction of %s", zc_dtype_name(k->in[0].dtype));
}

static double join_floats(how h, double a, double b)
{
    switch (h) {
    case HOW_ADD:
        return a + b;
    case HOW_MUL:
        return a * b;
    case HOW_MAX:
        return a >= b || isnan(a) ? a : b;
    case HOW_MIN:
        return a <= b || isnan(a) ? a : b;
    default:
        return b;
    }
}

static int64_t join_ints(how h, zc_dtype dtype, int64_t a, int64_t b)
{
    uint64_t flip = zc_dtype_class(dtype) == ZC_CLASS_INT ? (uint64_t)1 << 63 : 0;
    bool less = ((uint64_t)a ^ flip) < ((uint64_t)b ^ flip);
    switch (h) {
    case HOW_ADD:
        return dtype == ZC_BOOL ? a | b : (int64_t)((uint64_t)a + (uint64_t)b);
    case HOW_MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case HOW_MAX:
        return less ? b : a;
    case HOW_MIN:
        return less ? a : b;
    default:
        return b;
    }
}

/* Joins n updates from `from` on to the n elements of the output from `to` on. */
static void apply(zc_tensor *out, int64_t to, const zc_tensor *updates, int64_t from, int64_t n,
                  how h)
{
    if (h == HOW_NONE) {
        memcpy(zc_elem_at(out, to), zc_elem_at(updates, from), (size_t)n * zc_elem_size(out));
    } else if (zc_dtype_is_float(out->dtype)) {
        for (int64_t i = 0; i < n; i++)
            zc_put(out, to + i, join_floats(h, zc_get(out, to + i), zc_get(updates, from + i)));
    } else {
        for (int64_t i = 0; i < n; i++)
            zc_puti(out, to + i,
                    join_ints(h, out->dtype, zc_geti(out, to + i), zc_geti(updates, from + i)));
    }
}

static zc_status copy_data(zc_kctx *k)
{
    const zc_tensor *in = &k->in[0];
    ZC_TRY(zc_check_shape(k, &k->out[0], in->rank, in->dims, "the output"));
    zc_copy_flat(k, zc_tensor_numel(in), zc_elem_size(in), k->out[0].data, in->data);
    return ZC_OK;
}

/* Updates that lie where the output does, which is written while they are read, get a copy. */
static zc_status separate(zc_kctx *k, zc_tensor *updates)
{
    size_t bytes = 0;
    if (updates->data != k->out[0].data || !zc_tensor_bytes(updates, &bytes) || !bytes)
        return ZC_OK;
    void *copy = zc_scratch_get(k->scratch, bytes);
    if (!copy) return zc_fail_nomem(k->diag, "updates", bytes);
    memcpy(copy, updates->data, bytes);
    updates->data = copy;
    return ZC_OK;
}

/* ---- the operations ---- */

zc_status zc_k_ScatterElements(zc_kctx *k)
{
    const zc_tensor *in = &k->in[0], *at = &k->in[1];
    zc_tensor updates = k->in[2];
    const zc_attrs_ScatterElements *a = ZC_ATTRS(k, ScatterElements);
    how h = how_of(a->reduction);
    int axis = zc_axis(a->axis, in->rank);
    int64_t strides[ZC_MAX_RANK], idx[ZC_MAX_RANK] = {0}, *map, n = zc_tensor_numel(at);
    ZC_TRY(check_how(k, h));
    ZC_TRY(zc_check_shape(k, &updates, at->rank, at->dims, "the updates"));
    for (int i = 0; i < in->rank; i++) {
        if (i != axis && at->dims[i] > in->dims[i]) {
            return zc_kernel_fail(
                k, "indices exceed the data along axis %d (got %lld, need at most %lld)", i,
                (long long)at->dims[i], (long long)in->dims[i]);
        }
    }
    ZC_TRY(zc_index_read_all(k, at, in->dims[axis], &map));
    ZC_TRY(separate(k, &updates));
    ZC_TRY(copy_data(k));
    zc_strides(in, strides);
    int64_t along = strides[axis], to = 0;
    strides[axis] = 0;
    for (int64_t i = 0; i < n; i++) {
        apply(&k->out[0], to + map[i] * along, &updates, i, 1, h);
        zc_index_next(at->rank, at->dims, idx, 1, (const int64_t(*)[ZC_MAX_RANK]) & strides, &to);
    }
    return ZC_OK;
}

zc_status zc_k_ScatterND(zc_kctx *k)
{
    const zc_tensor *in = &k->in[0], *at = &k->in[1];
    zc_tensor updates = k->in[2];
    how h = how_of(ZC_ATTRS(k, ScatterND)->reduction);
    int64_t n = at->dims[at->rank - 1], dims[2 * ZC_MAX_RANK], *map;
    int rank = at->rank - 1;
    ZC_TRY(check_how(k, h));
    if (n < 1 || n > in->rank)
        return zc_kernel_fail(k, "index tuples have a wrong length (got %lld)", (long long)n);
    memcpy(dims, at->dims, sizeof at->dims);
    for (int i = (int)n; i < in->rank; i++) dims[rank++] = in->dims[i];
    if (rank > ZC_MAX_RANK)
        return zc_kernel_fail(k, "the updates' rank is too large (got %d)", rank);
    ZC_TRY(zc_check_shape(k, &updates, rank, dims, "the updates"));
    if (zc_tensor_numel(&updates) == 0) return copy_data(k);
    ZC_TRY(zc_index_tuples(k, at, in, 0, &map));
    ZC_TRY(separate(k, &updates));
    ZC_TRY(copy_data(k));
    int64_t slice = zc_dims_span(in->dims, (int)n, in->rank);
    for (int64_t i = 0; i < zc_tensor_numel(at) / n; i++)
        apply(&k->out[0], map[i] * slice, &updates, i * slice, slice, h);
    return ZC_OK;
}

/* ---- TensorScatter ---- */

/* Copies positions [from, from+n) of one batch entry's update to position `to` of the cache. */
static void write_positions(zc_kctx *k, const zc_tensor *update, int64_t entry, int axis,
                            int64_t to, int64_t from, int64_t n)
{
    zc_tensor *out = &k->out[0];
    int64_t s[ZC_MAX_RANK], t[ZC_MAX_RANK];
    zc_copy c = {0};
    zc_strides(update, s);
    zc_strides(out, t);
    for (int i = 1; i < out->rank; i++)
        zc_copy_axis(&c, i == axis ? n : update->dims[i], t[i], s[i]);
    if (n)
        zc_copy_run(k, &c, zc_elem_size(out), zc_elem_at(out, entry * t[0] + to * t[axis]),
                    zc_elem_at(update, entry * s[0] + from * s[axis]));
}

zc_status zc_k_TensorScatter(zc_kctx *k)
{
    const zc_attrs_TensorScatter *a = ZC_ATTRS(k, TensorScatter);
    const zc_tensor *in = &k->in[0];
    zc_tensor update = k->in[1];
    const zc_tensor *at = k->nin > 2 && zc_present(&k->in[2]) ? &k->in[2] : NULL;
    int axis = zc_axis(a->axis, in->rank);
    int64_t room = in->dims[axis], n = update.dims[axis], dims[ZC_MAX_RANK];
    bool circular = a->mode[0] == 'c';
    memcpy(dims, in->dims, sizeof dims);
    dims[axis] = n;
    ZC_TRY(zc_check_shape(k, &update, in->rank, dims, "the update"));
    if (n > room)
        return zc_kernel_fail(k, "update is longer than the cache (got %lld, need at most %lld)",
                              (long long)n, (long long)room);
    if (at) ZC_TRY(zc_check_length(k, zc_tensor_numel(at), in->dims[0], "number of write indices"));
    ZC_TRY(separate(k, &update));
    ZC_TRY(copy_data(k));
    if (zc_tensor_numel(&update) == 0) return ZC_OK;
    for (int64_t i = 0; i < in->dims[0]; i++) {
        int64_t to = at ? zc_geti(at, i) : 0;
        if (circular) to = (to % room + room) % room;
        if (to < 0 || to > room || (!circular && n > room - to)) {
            return zc_kernel_fail(k, "write index %lld out of range (got %lld, need [0, %lld])",
                                  (long long)i, (long long)to, (long long)(room - n));
        }
        int64_t head = n < room - to ? n : room - to;
        write_positions(k, &update, i, axis, to, 0, head);
        write_positions(k, &update, i, axis, 0, head, n - head);
    }
    return ZC_OK;
}
