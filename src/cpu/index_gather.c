/* Kernels that pick elements by index: Gather, GatherElements, GatherND, Compress, OneHot. */
#include <string.h>

#include "cpu/index.h"

/* ---- Gather ---- */

typedef struct gather {
    zc_tensor *out;
    const zc_tensor *in;
    const int64_t *map;
    int64_t n, length; /* indices; elements of the axis */
    size_t run;        /* bytes moved for one index */
} gather;

/* Units [begin, end) of outer * indices. */
static void gather_units(void *arg, int64_t begin, int64_t end)
{
    const gather *g = arg;
    int64_t run = (int64_t)g->run;
    while (begin < end) {
        int64_t o = begin / g->n, i = begin % g->n;
        int64_t count = g->n - i < end - begin ? g->n - i : end - begin;
        zc_copy_gather(g->run, count, (char *)g->out->data + begin * run,
                       (const char *)g->in->data + o * g->length * run, g->map + i);
        begin += count;
    }
}

/* Copies, for each of view.outer, the n elements map[] of the axis. */
static void gather_axis(zc_kctx *k, zc_axis_view view, int64_t n, const int64_t *map)
{
    const zc_tensor *in = &k->in[0];
    zc_tensor *out = &k->out[0];
    size_t size = zc_elem_size(in);
    if (view.outer == 0 || view.inner == 0 || n == 0) return;
    if (n == 1) { /* a slice: one strided copy, which the threads share */
        zc_copy c = {0};
        zc_copy_axis(&c, view.outer, view.inner, view.length * view.inner);
        zc_copy_axis(&c, view.inner, 1, 1);
        zc_copy_run(k, &c, size, out->data, zc_elem_at(in, map[0] * view.inner));
        return;
    }
    gather g = {.out = out,
                .in = in,
                .map = map,
                .n = n,
                .length = view.length,
                .run = size * (size_t)view.inner};
    zc_parallel(k, view.outer * n, 65536 / (int64_t)g.run + 1, gather_units, &g);
}

zc_status zc_k_Gather(zc_kctx *k)
{
    const zc_tensor *in = &k->in[0], *at = &k->in[1];
    int axis = zc_axis(ZC_ATTRS(k, Gather)->axis, in->rank);
    int64_t dims[2 * ZC_MAX_RANK], *map;
    int rank = 0;
    for (int i = 0; i < axis; i++) dims[rank++] = in->dims[i];
    for (int i = 0; i < at->rank; i++) dims[rank++] = at->dims[i];
    for (int i = axis + 1; i < in->rank; i++) dims[rank++] = in->dims[i];
    ZC_TRY(zc_check_shape(k, &k->out[0], rank, dims, "the output"));
    ZC_TRY(zc_index_read_all(k, at, in->dims[axis], &map));
    gather_axis(k, zc_axis_view_of(in, axis), zc_tensor_numel(at), map);
    return ZC_OK;
}

zc_status zc_k_GatherND(zc_kctx *k)
{
    const zc_tensor *in = &k->in[0], *at = &k->in[1];
    int batch = (int)ZC_ATTRS(k, GatherND)->batch_dims;
    int64_t dims[2 * ZC_MAX_RANK], *map, n = at->dims[at->rank - 1];
    int rank = at->rank - 1;
    if (n < 1 || n > in->rank - batch)
        return zc_kernel_fail(k, "index tuples have a wrong length (got %lld)", (long long)n);
    for (int i = 0; i < batch; i++)
        ZC_TRY(zc_check_length(k, at->dims[i], in->dims[i], "batch dimension of the indices"));
    memcpy(dims, at->dims, sizeof at->dims);
    for (int i = batch + (int)n; i < in->rank; i++) dims[rank++] = in->dims[i];
    ZC_TRY(zc_check_shape(k, &k->out[0], rank, dims, "the output"));
    if (zc_tensor_numel(at) == 0) return ZC_OK;
    ZC_TRY(zc_index_tuples(k, at, in, batch, &map));
    zc_axis_view view = {.outer = 1, .inner = zc_dims_span(in->dims, batch + (int)n, in->rank)};
    gather_axis(k, view, zc_tensor_numel(at) / n, map);
    return ZC_OK;
}

/* ---- GatherElements ---- */

#define CHUNK 256

typedef struct elements {
    zc_tensor *out;
    const zc_tensor *in;
    const int64_t *map;
    int axis;
    int64_t strides[ZC_MAX_RANK]; /* of the input */
} elements;

/* Rows [begin, end) of the output along its last axis. */
static void gather_rows(void *arg, int64_t begin, int64_t end)
{
    const elements *e = arg;
    int last = e->out->rank - 1;
    int64_t n = e->out->dims[last], from[CHUNK];
    size_t size = zc_elem_size(e->out);
    for (int64_t row = begin; row < end; row++) {
        int64_t base = 0, rest = row;
        for (int d = last - 1; d >= 0; d--) {
            if (d != e->axis) base += rest % e->out->dims[d] * e->strides[d];
            rest /= e->out->dims[d];
        }
        for (int64_t at = 0; at < n; at += CHUNK) {
            int64_t count = n - at < CHUNK ? n - at : CHUNK, to = row * n + at;
            for (int64_t i = 0; i < count; i++) {
                from[i] = base + e->map[to + i] * e->strides[e->axis];
                if (e->axis != last) from[i] += at + i;
            }
            zc_copy_gather(size, count, zc_elem_at(e->out, to), e->in->data, from);
        }
    }
}

zc_status zc_k_GatherElements(zc_kctx *k)
{
    const zc_tensor *in = &k->in[0], *at = &k->in[1];
    elements e = {.out = &k->out[0], .in = in};
    int64_t *map, n = zc_tensor_numel(at);
    e.axis = zc_axis(ZC_ATTRS(k, GatherElements)->axis, in->rank);
    ZC_TRY(zc_check_shape(k, &k->out[0], at->rank, at->dims, "the output"));
    for (int i = 0; i < in->rank; i++) {
        if (i != e.axis && at->dims[i] > in->dims[i]) {
            return zc_kernel_fail(
                k, "indices exceed the data along axis %d (got %lld, need at most %lld)", i,
                (long long)at->dims[i], (long long)in->dims[i]);
        }
    }
    ZC_TRY(zc_index_read_all(k, at, in->dims[e.axis], &map));
    e.map = map;
    zc_strides(in, e.strides);
    int64_t len = at->dims[at->rank - 1];
    if (n) zc_parallel(k, n / len, 16384 / len + 1, gather_rows, &e);
    return ZC_OK;
}

/* ---- Compress ---- */

zc_status zc_k_Compress(zc_kctx *k)
{
    const zc_tensor *in = &k->in[0], *condition = &k->in[1];
    const zc_attrs_Compress *a = ZC_ATTRS(k, Compress);
    bool along = ZC_ATTR_GIVEN(Compress, a, axis);
    int axis = along ? zc_axis(a->axis, in->rank) : 0;
    zc_axis_view view = {.outer = 1, .length = zc_tensor_numel(in), .inner = 1};
    int64_t n = 0, dims[ZC_MAX_RANK] = {0}, *map;
    if (along) view = zc_axis_view_of(in, axis);
    map = zc_scratch_get(k->scratch, (size_t)condition->dims[0] * sizeof *map);
    if (!map) return zc_fail_nomem(k->diag, "indices", (size_t)condition->dims[0] * sizeof *map);
    for (int64_t i = 0; i < condition->dims[0]; i++) {
        if (!zc_geti(condition, i)) continue;
        if (i >= view.length) {
            return zc_kernel_fail(
                k, "the condition selects beyond the data (got %lld, need [0, %lld])", (long long)i,
                (long long)view.length - 1);
        }
        map[n++] = i;
    }
    if (along) memcpy(dims, in->dims, sizeof dims);
    dims[axis] = n;
    ZC_TRY(k->resize(k, 0, along ? in->rank : 1, dims));
    gather_axis(k, view, n, map);
    return ZC_OK;
}

/* ---- OneHot ---- */

zc_status zc_k_OneHot(zc_kctx *k)
{
    const zc_tensor *at = &k->in[0], *values = &k->in[2];
    zc_tensor *out = &k->out[0];
    int axis = zc_axis(ZC_ATTRS(k, OneHot)->axis, at->rank + 1);
    int64_t inner = zc_dims_span(at->dims, axis, at->rank), depth = out->dims[axis];
    int64_t dims[ZC_MAX_RANK + 1];
    size_t size = zc_elem_size(out);
    ZC_TRY(zc_check_length(k, zc_tensor_numel(values), 2, "number of values"));
    ZC_TRY(zc_check_length(k, depth, zc_geti(&k->in[1], 0), "depth of the output"));
    for (int i = 0; i <= at->rank; i++) dims[i] = i == axis ? depth : at->dims[i - (i > axis)];
    ZC_TRY(zc_check_shape(k, out, at->rank + 1, dims, "the output"));
    if (zc_tensor_numel(out) == 0) return ZC_OK;
    zc_copy_fill(k, zc_tensor_numel(out), size, out->data, values->data);
    for (int64_t i = 0, n = zc_tensor_numel(at); i < n; i++) {
        int64_t v = zc_geti(at, i);
        if (v < -depth || v >= depth) continue;
        int64_t to = (i / inner * depth + (v < 0 ? v + depth : v)) * inner + i % inner;
        memcpy(zc_elem_at(out, to), zc_elem_at(values, 1), size);
    }
    return ZC_OK;
}
