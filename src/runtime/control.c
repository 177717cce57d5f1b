/* Control flow: steps with blocks of steps. Values of inner blocks are never planned; each has its
 * own room, kept for the next iteration. */
#include <stdlib.h>
#include <string.h>

#include "runtime/session.h"

static const zc_pblock *block_of(const zc_session *s, const zc_pstep *step, uint32_t i)
{
    return &s->program->blocks[step->blocks[i]];
}

static zc_status need_scalar(const zc_pstep *step, const zc_tensor *t, const char *what,
                             zc_diag *diag)
{
    if (zc_tensor_numel(t) == 1) return ZC_OK;
    return zc_fail(diag, ZC_ERR_INPUT, step->name, "%s: %s is not one element (got %lld)",
                   zc_op_get(step->op)->name, what, (long long)zc_tensor_numel(t));
}

static zc_status run_if(zc_session *s, const zc_pstep *step, zc_diag *diag)
{
    const zc_tensor *cond = &s->values[step->in[0]];
    ZC_TRY(need_scalar(step, cond, "condition", diag));
    uint32_t branch = zc_load_i64(cond->dtype, cond->data, 0) ? 0 : 1;
    ZC_TRY(zc_exec_block(s, step->blocks[branch], diag));
    const zc_pblock *b = block_of(s, step, branch);
    for (uint32_t i = 0; i < step->nout; i++)
        if (step->out[i])
            ZC_TRY(zc_exec_copy(s, step->out[i], &s->values[b->outs[i]], step->name, diag));
    return ZC_OK;
}

/* Copies the block's outputs from `first` on to the params from `param` on. An output may be a
 * param itself (two values that swap), so all are copied aside before any param changes. */
static zc_status carry(zc_session *s, const zc_pstep *step, const zc_pblock *b, uint32_t first,
                       uint32_t param, uint32_t n, zc_diag *diag)
{
    zc_scratch_reset(&s->scratch);
    zc_tensor *next = zc_scratch_get(&s->scratch, n * sizeof *next);
    if (!next) return zc_fail_nomem(diag, "carried values", n * sizeof *next);
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = 0;
        next[i] = s->values[b->outs[first + i]];
        if (!zc_tensor_bytes(&next[i], &bytes)) return zc_fail_nomem(diag, "carried values", bytes);
        void *aside = zc_scratch_get(&s->scratch, bytes);
        if (!aside) return zc_fail_nomem(diag, "carried values", bytes);
        if (bytes) memcpy(aside, next[i].data, bytes);
        next[i].data = aside;
    }
    for (uint32_t i = 0; i < n; i++)
        ZC_TRY(zc_exec_copy(s, b->params[param + i], &next[i], step->name, diag));
    return ZC_OK;
}

/* ---- scanned values: slices along an axis ---- */

typedef struct slices {
    int64_t outer, inner, count; /* the tensor is [outer, count, inner] in bytes of `inner` */
} slices;

static slices cut(const zc_tensor *t, int axis, size_t elem)
{
    return (slices){.outer = zc_dims_span(t->dims, 0, axis),
                    .inner = zc_dims_span(t->dims, axis + 1, t->rank) * (int64_t)elem,
                    .count = t->dims[axis]};
}

static void get_slice(const zc_tensor *t, slices c, int64_t i, void *to)
{
    for (int64_t o = 0; o < c.outer; o++)
        memcpy((char *)to + o * c.inner, (const char *)t->data + (o * c.count + i) * c.inner,
               (size_t)c.inner);
}

static void put_slice(zc_tensor *t, slices c, int64_t i, const void *from)
{
    for (int64_t o = 0; o < c.outer; o++)
        memcpy((char *)t->data + (o * c.count + i) * c.inner, (const char *)from + o * c.inner,
               (size_t)c.inner);
}

static zc_status byte_elements(const zc_pstep *step, const zc_tensor *t, size_t *elem,
                               zc_diag *diag)
{
    *elem = zc_dtype_bits(t->dtype) / 8;
    if (*elem) return ZC_OK;
    return zc_fail(diag, ZC_ERR_UNSUPPORTED, step->name, "%s: scanned values of type %s",
                   zc_op_get(step->op)->name, zc_dtype_name(t->dtype));
}

static int64_t int_at(zc_ints list, uint32_t i)
{
    return i < (uint32_t)list.n ? list.v[i] : 0;
}

/* The shape of n slices stacked along an axis; a slice that was never computed counts 0 where its
 * size is unknown. */
static zc_status stacked(const zc_session *s, const zc_pstep *step, uint32_t slice, int64_t n,
                         int64_t axis, zc_tensor *out, zc_diag *diag)
{
    const zc_pvalue *declared = &s->program->values[slice];
    zc_tensor t = s->values[slice];
    if (n == 0) {
        t = (zc_tensor){.dtype = declared->dtype, .rank = declared->rank > 0 ? declared->rank : 0};
        for (int d = 0; d < t.rank; d++)
            t.dims[d] = zc_dim_is_const(declared->dims[d]) ? declared->dims[d].k : 0;
    }
    int rank = t.rank + 1;
    if (rank > ZC_MAX_RANK)
        return zc_fail(diag, ZC_ERR_LIMIT, step->name,
                       "scanned output's rank too large (got %d, need at most %d)", rank,
                       ZC_MAX_RANK);
    if (axis < -rank || axis >= rank)
        return zc_fail(diag, ZC_ERR_INPUT, step->name,
                       "scanned output's axis out of range (got %lld, need [%d, %d])",
                       (long long)axis, -rank, rank - 1);
    *out = t;
    out->rank = rank;
    int at = zc_axis(axis, rank);
    for (int d = rank - 1; d > at; d--) out->dims[d] = t.dims[d - 1];
    out->dims[at] = n;
    return ZC_OK;
}

/* Grows output `out` by the slice (along axis 0), keeping what it holds. */
static zc_status append(zc_session *s, const zc_pstep *step, uint32_t out, uint32_t slice,
                        int64_t n, zc_diag *diag)
{
    const zc_tensor *t = &s->values[slice];
    zc_tensor now = {0};
    size_t elem, bytes, need;
    ZC_TRY(byte_elements(step, t, &elem, diag));
    ZC_TRY(stacked(s, step, slice, n + 1, 0, &now, diag));
    zc_tensor *whole = &s->values[out];
    if (n && (whole->rank != now.rank ||
              memcmp(whole->dims + 1, now.dims + 1, (size_t)t->rank * sizeof *t->dims) != 0))
        return zc_fail(diag, ZC_ERR_INPUT, step->name, "%s: a scanned output changes its shape",
                       zc_op_get(step->op)->name);
    if (!zc_tensor_bytes(t, &bytes) || !zc_tensor_bytes(&now, &need))
        return zc_fail(diag, ZC_ERR_LIMIT, step->name, "scanned output too large");
    zc_room old = s->rooms[out];
    if (need > old.cap) {
        /* Doubling keeps the copies linear. */
        s->rooms[out] = (zc_room){0};
        zc_status status = zc_room_fit(s, &s->rooms[out], need * 2, diag);
        if (status == ZC_OK && n) memcpy(s->rooms[out].p, old.p, bytes * (size_t)n);
        s->room_bytes -= old.cap;
        free(old.p);
        ZC_TRY(status);
    }
    now.data = s->rooms[out].p;
    if (bytes) memcpy((char *)now.data + bytes * (size_t)n, t->data, bytes);
    *whole = now;
    return ZC_OK;
}

static zc_status empty_scans(zc_session *s, const zc_pstep *step, const zc_pblock *b,
                             uint32_t carried, uint32_t first, zc_ints axes, zc_diag *diag)
{
    for (uint32_t i = carried; i < step->nout; i++) {
        zc_tensor t;
        if (!step->out[i]) continue;
        ZC_TRY(stacked(s, step, b->outs[first + i], 0, int_at(axes, i - carried), &t, diag));
        ZC_TRY(zc_exec_shape(s, step->out[i], t.rank, t.dims, step->name, diag));
    }
    return ZC_OK;
}

/* ---- Loop ---- */

static zc_status scalar_param(zc_session *s, const zc_pstep *step, uint32_t v, int64_t value,
                              zc_diag *diag)
{
    ZC_TRY(zc_exec_shape(s, v, 0, NULL, step->name, diag));
    zc_store_i64(s->values[v].dtype, s->values[v].data, 0, value);
    return ZC_OK;
}

static zc_status optional_scalar(const zc_session *s, const zc_pstep *step, uint32_t v,
                                 int64_t absent, const char *what, int64_t *out, zc_diag *diag)
{
    *out = absent;
    if (!v) return ZC_OK;
    const zc_tensor *t = &s->values[v];
    ZC_TRY(need_scalar(step, t, what, diag));
    *out = zc_load_i64(t->dtype, t->data, 0);
    return ZC_OK;
}

static zc_status run_loop(zc_session *s, const zc_pstep *step, zc_diag *diag)
{
    const zc_pblock *b = block_of(s, step, 0);
    uint32_t carried = step->nin - 2;
    int64_t trips, going;
    ZC_TRY(optional_scalar(s, step, step->in[0], INT64_MAX, "trip count", &trips, diag));
    ZC_TRY(optional_scalar(s, step, step->in[1], 1, "condition", &going, diag));
    for (uint32_t i = 0; i < carried; i++)
        ZC_TRY(zc_exec_copy(s, b->params[2 + i], &s->values[step->in[2 + i]], step->name, diag));
    ZC_TRY(empty_scans(s, step, b, carried, 1, (zc_ints){0, NULL}, diag));
    for (int64_t n = 0; n < trips && going; n++) {
        if (zc_exec_stopped(s)) return zc_exec_stop(s, step->name, diag);
        ZC_TRY(scalar_param(s, step, b->params[0], n, diag));
        ZC_TRY(scalar_param(s, step, b->params[1], 1, diag));
        ZC_TRY(zc_exec_block(s, step->blocks[0], diag));
        ZC_TRY(optional_scalar(s, step, b->outs[0], 1, "condition", &going, diag));
        for (uint32_t i = carried; i < step->nout; i++)
            if (step->out[i]) ZC_TRY(append(s, step, step->out[i], b->outs[1 + i], n, diag));
        ZC_TRY(carry(s, step, b, 1, 2, carried, diag));
    }
    for (uint32_t i = 0; i < carried; i++)
        if (step->out[i])
            ZC_TRY(zc_exec_copy(s, step->out[i], &s->values[b->params[2 + i]], step->name, diag));
    return ZC_OK;
}

/* ---- Scan ---- */

static zc_status slice_param(zc_session *s, const zc_pstep *step, uint32_t param,
                             const zc_tensor *t, int axis, int64_t i, zc_diag *diag)
{
    size_t elem;
    ZC_TRY(byte_elements(step, t, &elem, diag));
    int64_t dims[ZC_MAX_RANK];
    for (int d = 0; d < t->rank - 1; d++) dims[d] = t->dims[d < axis ? d : d + 1];
    ZC_TRY(zc_exec_shape(s, param, t->rank - 1, dims, step->name, diag));
    get_slice(t, cut(t, axis, elem), i, s->values[param].data);
    return ZC_OK;
}

static zc_status store_slice(zc_session *s, const zc_pstep *step, uint32_t out, uint32_t slice,
                             int64_t n, int64_t axis, int64_t at, bool first, zc_diag *diag)
{
    zc_tensor whole;
    size_t elem;
    ZC_TRY(byte_elements(step, &s->values[slice], &elem, diag));
    ZC_TRY(stacked(s, step, slice, n, axis, &whole, diag));
    int pos = zc_axis(axis, whole.rank);
    if (first) ZC_TRY(zc_exec_shape(s, out, whole.rank, whole.dims, step->name, diag));
    zc_tensor *t = &s->values[out];
    if (t->rank != whole.rank ||
        memcmp(t->dims, whole.dims, (size_t)t->rank * sizeof *t->dims) != 0)
        return zc_fail(diag, ZC_ERR_INPUT, step->name, "Scan: a scanned output changes its shape");
    put_slice(t, cut(t, pos, elem), at, s->values[slice].data);
    return ZC_OK;
}

static zc_status scan_length(const zc_session *s, const zc_pstep *step, uint32_t states,
                             int64_t *length, zc_diag *diag)
{
    const zc_attrs_Scan *a = step->attrs;
    *length = -1;
    for (uint32_t i = states; i < step->nin; i++) {
        const zc_tensor *t = &s->values[step->in[i]];
        int64_t axis = int_at(a->scan_input_axes, i - states);
        if (axis < -t->rank || axis >= t->rank)
            return zc_fail(diag, ZC_ERR_INPUT, step->name,
                           "Scan: axis out of range (got %lld, rank %d)", (long long)axis, t->rank);
        int64_t n = t->dims[zc_axis(axis, t->rank)];
        if (*length >= 0 && n != *length)
            return zc_fail(diag, ZC_ERR_INPUT, step->name,
                           "Scan: scanned inputs differ in length (got %lld, need %lld)",
                           (long long)n, (long long)*length);
        *length = n;
    }
    return ZC_OK;
}

static zc_status scan_iteration(zc_session *s, const zc_pstep *step, uint32_t states, int64_t i,
                                int64_t n, zc_diag *diag)
{
    const zc_attrs_Scan *a = step->attrs;
    const zc_pblock *b = block_of(s, step, 0);
    for (uint32_t j = states; j < step->nin; j++) {
        const zc_tensor *t = &s->values[step->in[j]];
        bool back = int_at(a->scan_input_directions, j - states) != 0;
        int axis = zc_axis(int_at(a->scan_input_axes, j - states), t->rank);
        ZC_TRY(slice_param(s, step, b->params[j], t, axis, back ? n - 1 - i : i, diag));
    }
    ZC_TRY(zc_exec_block(s, step->blocks[0], diag));
    for (uint32_t j = states; j < step->nout; j++) {
        if (!step->out[j]) continue;
        bool back = int_at(a->scan_output_directions, j - states) != 0;
        ZC_TRY(store_slice(s, step, step->out[j], b->outs[j], n,
                           int_at(a->scan_output_axes, j - states), back ? n - 1 - i : i, i == 0,
                           diag));
    }
    return carry(s, step, b, 0, 0, states, diag);
}

static zc_status run_scan(zc_session *s, const zc_pstep *step, zc_diag *diag)
{
    const zc_attrs_Scan *a = step->attrs;
    const zc_pblock *b = block_of(s, step, 0);
    uint32_t states = step->nin - (uint32_t)a->num_scan_inputs;
    int64_t n;
    ZC_TRY(scan_length(s, step, states, &n, diag));
    for (uint32_t i = 0; i < states; i++)
        ZC_TRY(zc_exec_copy(s, b->params[i], &s->values[step->in[i]], step->name, diag));
    ZC_TRY(empty_scans(s, step, b, states, 0, a->scan_output_axes, diag));
    for (int64_t i = 0; i < n; i++) {
        if (zc_exec_stopped(s)) return zc_exec_stop(s, step->name, diag);
        ZC_TRY(scan_iteration(s, step, states, i, n, diag));
    }
    for (uint32_t i = 0; i < states; i++)
        if (step->out[i])
            ZC_TRY(zc_exec_copy(s, step->out[i], &s->values[b->params[i]], step->name, diag));
    return ZC_OK;
}

zc_status zc_exec_control(zc_session *s, const zc_pstep *step, zc_diag *diag)
{
    switch (step->op) {
    case ZC_OP_If:
        return run_if(s, step, diag);
    case ZC_OP_Loop:
        return run_loop(s, step, diag);
    case ZC_OP_Scan:
        return run_scan(s, step, diag);
    default:
        return zc_fail(diag, ZC_ERR_INTERNAL, step->name, "not control flow");
    }
}
