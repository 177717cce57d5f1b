/* A session's inputs and outputs, and whose memory they are in. */
#include "runtime/gpu.h"

#include <string.h>

static size_t bytes_of(const zc_tensor *t)
{
    size_t bytes = 0;
    return zc_tensor_bytes(t, &bytes) ? bytes : 0;
}

/* ---- memory that must not be written under someone else ---- */

static bool overlap(const void *a, size_t na, const void *b, size_t nb)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return na && nb && (x <= y ? y - x < na : x - y < nb);
}

/* A view of a result is the session's memory, which its next run writes: not an input's, and no
 * buffer of the caller's. */
static zc_status check_not_result(const zc_session *s, const void *p, size_t bytes,
                                  const char *subject, const char *what, zc_diag *diag)
{
    for (uint32_t i = 0; i < s->program->blocks[0].nouts; i++) {
        const zc_output_slot *out = &s->outputs[i];
        if (out->result.dtype == ZC_NONE || out->result_is_bound) continue;
        if (overlap(p, bytes, out->result.data, bytes_of(&out->result)))
            return zc_fail(diag, ZC_ERR_ARG, subject,
                           "its %s memory is that of this session's result " ZC_NAME
                           ", which the next run overwrites",
                           what, s->program->output_names[i]);
    }
    return ZC_OK;
}

static zc_status check_against_output(const zc_session *s, const void *p, size_t bytes,
                                      const char *subject, const char *what, uint32_t output,
                                      zc_diag *diag)
{
    const zc_output_slot *out = &s->outputs[output];
    if (!out->bound || !overlap(p, bytes, out->bound, out->bound_bytes)) return ZC_OK;
    return zc_fail(diag, ZC_ERR_ARG, subject,
                   "its %s memory overlaps what output " ZC_NAME " is bound to", what,
                   s->program->output_names[output]);
}

/* At the run, not at the calls before: buffers that take turns overlap in between. */
static zc_status check_disjoint(zc_session *s, zc_diag *diag)
{
    const zc_program *p = s->program;
    const zc_pblock *top = &p->blocks[0];
    if (s->disjoint) return ZC_OK;
    for (uint32_t o = 0; o < top->nouts; o++) {
        if (!s->outputs[o].bound) continue;
        for (uint32_t i = 0; i < top->nparams; i++)
            ZC_TRY(check_against_output(s, s->inputs[i].value.data, s->inputs[i].borrowed_bytes,
                                        p->input_names[i], "borrowed", o, diag));
        for (uint32_t i = o + 1; i < top->nouts; i++)
            ZC_TRY(check_against_output(s, s->outputs[i].bound, s->outputs[i].bound_bytes,
                                        p->output_names[i], "bound", o, diag));
    }
    s->disjoint = true;
    return ZC_OK;
}

zc_status zc_session_check_io(zc_session *s, zc_diag *diag)
{
    for (uint32_t i = 0; i < s->program->blocks[0].nparams; i++) {
        if (!s->inputs[i].set)
            return zc_fail(diag, ZC_ERR_INPUT, s->program->input_names[i], "has no value");
    }
    return check_disjoint(s, diag);
}

/* ---- inputs ---- */

static zc_status check_value(const zc_session *s, size_t i, const zc_view *view, zc_tensor *out,
                             zc_diag *diag)
{
    const zc_pblock *top = &s->program->blocks[0];
    if (i >= top->nparams)
        return zc_fail(diag, ZC_ERR_ARG, "i", "no such input (got %zu, need < %u)", i,
                       top->nparams);
    const char *name = s->program->input_names[i];
    const zc_pvalue *value = &s->program->values[top->params[i]];
    if (!view) return zc_fail(diag, ZC_ERR_ARG, name, "value is NULL");
    if (view->elem != (zc_elem)value->dtype)
        return zc_fail(diag, ZC_ERR_INPUT, name, "wrong element type (got %s, need %s)",
                       zc_elem_name(view->elem), zc_dtype_name(value->dtype));
    if (view->rank != value->rank)
        return zc_fail(diag, ZC_ERR_INPUT, name, "wrong number of dimensions (got %d, need %d)",
                       view->rank, value->rank);
    *out = (zc_tensor){.dtype = value->dtype, .rank = value->rank};
    out->data = (void *)(uintptr_t)view->data; /* kernels never write their inputs */
    for (int d = 0; d < view->rank; d++) {
        if (view->dims[d] < 0)
            return zc_fail(diag, ZC_ERR_INPUT, name, "dimension %d is negative (got %lld)", d,
                           (long long)view->dims[d]);
        if (zc_dim_is_const(value->dims[d]) && view->dims[d] != value->dims[d].k)
            return zc_fail(diag, ZC_ERR_INPUT, name,
                           "wrong size of dimension %d (got %lld, need %lld)", d,
                           (long long)view->dims[d], (long long)value->dims[d].k);
        out->dims[d] = view->dims[d];
    }
    size_t bytes;
    if (!zc_tensor_bytes(out, &bytes)) return zc_fail(diag, ZC_ERR_INPUT, name, "too large");
    if (bytes != view->bytes)
        return zc_fail(diag, ZC_ERR_INPUT, name, "wrong number of bytes (got %zu, need %zu)",
                       view->bytes, bytes);
    if (bytes && !view->data) return zc_fail(diag, ZC_ERR_ARG, name, "data is NULL");
    return ZC_OK;
}

static zc_status check_device_pointer(zc_session *s, size_t i, const zc_view *view, bool borrow,
                                      zc_diag *diag)
{
    const char *name = s->program->input_names[i];
    if (!s->gpu) return zc_fail(diag, ZC_ERR_ARG, name, "device memory for a session on the CPU");
    if (!borrow) return zc_fail(diag, ZC_ERR_ARG, name, "device memory is always borrowed");
    return zc_gpu_check_pointer(s, view->data, view->bytes, name, diag);
}

static zc_status check_borrowed(const zc_session *s, size_t i, const zc_view *view,
                                const zc_tensor *t, zc_diag *diag)
{
    const char *name = s->program->input_names[i];
    size_t elem = zc_dtype_bits(t->dtype) / 8;
    if (elem && (uintptr_t)view->data % elem)
        return zc_fail(diag, ZC_ERR_ARG, name, "borrowed data is not aligned to its element size");
    return check_not_result(s, view->data, view->bytes, name, "borrowed", diag);
}

zc_status zc_session_give_input(zc_session *s, size_t i, const zc_view *view, bool borrow,
                                struct DLManagedTensorVersioned *tensor, zc_diag *diag)
{
    zc_tensor t;
    ZC_TRY(check_value(s, i, view, &t, diag));
    zc_input_slot *in = &s->inputs[i];
    if (view->on_device) {
        ZC_TRY(check_device_pointer(s, i, view, borrow, diag));
    } else if (!borrow) {
        ZC_TRY(zc_room_fit(s, &in->copy, view->bytes, diag));
        if (view->bytes) memcpy(in->copy.p, view->data, view->bytes);
        t.data = in->copy.p;
    } else {
        ZC_TRY(check_borrowed(s, i, view, &t, diag));
    }
    bool same = in->set && memcmp(in->value.dims, t.dims, sizeof t.dims) == 0;
    if (!same) s->prepared = false;
    if (borrow) s->disjoint = false;
    in->value = t;
    in->borrowed_bytes = borrow ? view->bytes : 0;
    in->on_device = view->on_device;
    in->resident = false;
    in->set = true;
    zc_dlpack_delete(in->tensor);
    in->tensor = tensor;
    return ZC_OK;
}

zc_status zc_session_set_input(zc_session *session, size_t i, const zc_view *value, bool borrow,
                               zc_diag *diag)
{
    ZC_TRY(zc_session_enter(session, diag));
    return zc_session_leave(session, zc_session_give_input(session, i, value, borrow, NULL, diag),
                            diag);
}

/* ---- outputs ---- */

static zc_status bind_output(zc_session *s, size_t i, void *data, size_t bytes, bool on_device,
                             zc_diag *diag)
{
    const zc_pblock *top = &s->program->blocks[0];
    if (i >= top->nouts)
        return zc_fail(diag, ZC_ERR_ARG, "i", "no such output (got %zu, need < %u)", i, top->nouts);
    if ((uintptr_t)data % ZC_TENSOR_ALIGN)
        return zc_fail(diag, ZC_ERR_ARG, s->program->output_names[i],
                       "bound memory is not aligned to %zu bytes", ZC_TENSOR_ALIGN);
    if (on_device && !s->gpu)
        return zc_fail(diag, ZC_ERR_ARG, s->program->output_names[i],
                       "device memory for a session on the CPU");
    if (on_device) ZC_TRY(zc_gpu_check_pointer(s, data, bytes, s->program->output_names[i], diag));
    if (data) ZC_TRY(check_not_result(s, data, bytes, s->program->output_names[i], "bound", diag));
    s->disjoint = false;
    s->outputs[i].on_device = on_device && data;
    s->outputs[i].bound = data;
    s->outputs[i].bound_bytes = data ? bytes : 0;
    return ZC_OK;
}

zc_status zc_session_bind_output(zc_session *session, size_t i, void *data, size_t bytes,
                                 zc_diag *diag)
{
    ZC_TRY(zc_session_enter(session, diag));
    return zc_session_leave(session, bind_output(session, i, data, bytes, false, diag), diag);
}

zc_status zc_session_bind_output_device(zc_session *session, size_t i, void *data, size_t bytes,
                                        zc_diag *diag)
{
    ZC_TRY(zc_session_enter(session, diag));
    return zc_session_leave(session, bind_output(session, i, data, bytes, true, diag), diag);
}

/* Does the root's memory lie where this output is bound? (device or host) */
static bool binds_root(const zc_session *s, const zc_output_slot *out)
{
    return out->bound && (s->gpu != NULL) == out->on_device;
}

static zc_status fits(const zc_session *s, size_t i, const zc_tensor *t, zc_diag *diag)
{
    size_t bytes = bytes_of(t);
    const zc_output_slot *out = &s->outputs[i];
    if (!out->bound || bytes <= out->bound_bytes) return ZC_OK;
    return zc_fail(diag, ZC_ERR_ARG, s->program->output_names[i],
                   "bound memory is too small (got %zu bytes, need %zu)", out->bound_bytes, bytes);
}

/* Memory of roots that outputs own: the first bound one's, or the session's. */
zc_status zc_session_root_outputs(zc_session *s, zc_diag *diag)
{
    const zc_pblock *top = &s->program->blocks[0];
    for (uint32_t i = 0; i < top->nouts; i++) {
        uint32_t root = s->roots[top->outs[i]];
        if (s->external[root]) s->values[root].data = NULL;
        if (s->gpu) s->gpu->root_set[root] = false;
    }
    for (uint32_t i = 0; i < top->nouts; i++) {
        uint32_t root = s->roots[top->outs[i]];
        if (!s->external[root] || s->values[root].data || (s->gpu && s->gpu->root_set[root]))
            continue;
        ZC_TRY(fits(s, i, &s->values[root], diag));
        if (s->gpu) {
            ZC_TRY(zc_gpu_root(s, root, binds_root(s, &s->outputs[i]) ? s->outputs[i].bound : NULL,
                               diag));
            continue;
        }
        if (s->outputs[i].bound) {
            s->values[root].data = s->outputs[i].bound;
        } else {
            ZC_TRY(zc_room_fit(s, &s->rooms[root], bytes_of(&s->values[root]), diag));
            s->values[root].data = s->rooms[root].p;
        }
    }
    return ZC_OK;
}

/* Is value v in memory that nothing but its results are in? */
static bool has_own_memory(const zc_session *s, uint32_t v)
{
    const void *data = s->values[v].data;
    return data == s->rooms[v].p || data == s->rooms[s->roots[v]].p;
}

/* A result that is not where the caller wants it (an input or constant handed through, an unplanned
 * value, a second name for one value) is copied there; one in memory of an input, the plan or
 * another output's buffer, to memory of this output. */
static zc_status deliver(zc_session *s, uint32_t i, zc_diag *diag)
{
    zc_output_slot *out = &s->outputs[i];
    uint32_t v = s->program->blocks[0].outs[i];
    out->result_is_bound = out->bound != NULL;
    out->result_on_device = out->on_device;
    if (out->on_device) return zc_gpu_deliver(s, i, diag);
    if (out->stays && !out->bound && zc_gpu_leave_output(s, i)) return ZC_OK;
    if (s->gpu) ZC_TRY(zc_gpu_to_host(s, v, diag));
    const zc_tensor *t = &s->values[v];
    size_t bytes = bytes_of(t);
    void *to = t->data;
    if (out->bound) {
        ZC_TRY(fits(s, i, t, diag));
        to = out->bound;
    } else if (!has_own_memory(s, v)) {
        ZC_TRY(zc_room_fit(s, &out->copy, bytes, diag));
        to = out->copy.p;
    }
    if (bytes && to != t->data) memcpy(to, t->data, bytes);
    out->result = *t;
    out->result.data = to;
    return ZC_OK;
}

zc_status zc_session_deliver(zc_session *s, zc_diag *diag)
{
    for (uint32_t i = 0; i < s->program->blocks[0].nouts; i++) ZC_TRY(deliver(s, i, diag));
    return ZC_OK;
}

/* Memory that earlier results were in may be gone, or hold half of a new one. */
void zc_session_forget_results(zc_session *s)
{
    for (uint32_t i = 0; i < s->program->blocks[0].nouts; i++)
        s->outputs[i].result = (zc_tensor){.dtype = ZC_NONE};
}

zc_status zc_session_view_output(const zc_session *session, size_t i, zc_view *out, zc_diag *diag)
{
    if (!out) return zc_fail(diag, ZC_ERR_ARG, "out", "is NULL");
    const zc_pblock *top = &session->program->blocks[0];
    if (i >= top->nouts)
        return zc_fail(diag, ZC_ERR_ARG, "i", "no such output (got %zu, need < %u)", i, top->nouts);
    const zc_output_slot *slot = &session->outputs[i];
    const zc_tensor *t = &slot->result;
    if (t->dtype == ZC_NONE)
        return zc_fail(diag, ZC_ERR_ARG, session->program->output_names[i],
                       "no run has given a result");
    *out = (zc_view){.elem = (zc_elem)t->dtype,
                     .rank = t->rank,
                     .data = t->data,
                     .bytes = bytes_of(t),
                     .on_device = slot->result_on_device};
    memcpy(out->dims, t->dims, sizeof t->dims);
    return ZC_OK;
}

zc_status zc_session_output(const zc_session *session, size_t i, zc_view *out, zc_diag *diag)
{
    zc_session *s = (zc_session *)(uintptr_t)session; /* for the flag that a thread is inside */
    ZC_TRY(zc_session_enter(s, diag));
    return zc_session_leave(s, zc_session_view_output(s, i, out, diag), diag);
}
