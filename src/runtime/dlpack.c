/* Inputs and results as DLPack's tensors. */
#include "zc/dlpack.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/dlpack_abi.h"
#include "runtime/gpu.h"

static const struct {
    zc_elem elem;
    uint8_t code, bits;
} types[] = {
#define X(NAME, code, bits) {ZC_ELEM_##NAME, code, bits},
    ZC_DL_TYPES(X)
#undef X
};

static size_t bytes_of(const zc_tensor *t)
{
    size_t bytes = 0;
    return zc_tensor_bytes(t, &bytes) ? bytes : 0;
}

/* ---- in ---- */

static zc_elem elem_of(const zc_dl_tensor *t)
{
    for (size_t i = 0; i < ZC_COUNTOF(types); i++)
        if (types[i].code == t->code && types[i].bits == t->bits && t->lanes == 1)
            return types[i].elem;
    return 0;
}

static bool is_dense(const zc_dl_tensor *t)
{
    int64_t expected = 1;
    for (int d = t->ndim - 1; t->strides && d >= 0; d--) {
        if (t->shape[d] != 1 && t->strides[d] != expected) return false;
        expected *= t->shape[d];
    }
    return true;
}

static zc_status check_device(const zc_session *s, const zc_dl_tensor *t, const char *name,
                              bool *on_device, zc_diag *diag)
{
    *on_device = t->device_type == ZC_DL_CUDA || t->device_type == ZC_DL_CUDA_MANAGED;
    if (!*on_device) {
        if (t->device_type == ZC_DL_CPU || t->device_type == ZC_DL_CUDA_HOST) return ZC_OK;
        return zc_fail(diag, ZC_ERR_UNSUPPORTED, name,
                       "a tensor on a device of type %d (need 1, 2, 3 or 13: CPU or CUDA)",
                       t->device_type);
    }
    if (!s->gpu) return zc_fail(diag, ZC_ERR_ARG, name, "device memory for a session on the CPU");
    if (t->device_id == s->gpu->image->device.ordinal) return ZC_OK;
    return zc_fail(diag, ZC_ERR_ARG, name, "a tensor on another GPU (got %d, need %d)",
                   t->device_id, s->gpu->image->device.ordinal);
}

static zc_status view_of(const zc_session *s, const struct DLManagedTensorVersioned *m,
                         const char *name, zc_view *out, zc_diag *diag)
{
    const zc_dl_tensor *t = &m->tensor;
    if (m->major != ZC_DL_MAJOR)
        return zc_fail(diag, ZC_ERR_UNSUPPORTED, name, "DLPack's version (got %u.%u, need %d.x)",
                       m->major, m->minor, ZC_DL_MAJOR);
    *out = (zc_view){.elem = elem_of(t), .rank = t->ndim};
    if (!out->elem || (m->flags & ZC_DL_SUBBYTE_PADDED && t->bits < 8))
        return zc_fail(diag, ZC_ERR_UNSUPPORTED, name,
                       "an element type that zc does not have (code %u, %u bits, %u lanes%s)",
                       t->code, t->bits, t->lanes,
                       m->flags & ZC_DL_SUBBYTE_PADDED ? ", padded" : "");
    ZC_TRY(check_device(s, t, name, &out->on_device, diag));
    if (t->ndim < 0 || t->ndim > ZC_RANK_MAX)
        return zc_fail(diag, ZC_ERR_INPUT, name, "rank out of range (got %d, need 0 to %d)",
                       t->ndim, ZC_RANK_MAX);
    for (int d = 0; d < t->ndim; d++) out->dims[d] = t->shape[d];
    out->bytes = zc_view_size(out);
    if (out->bytes == SIZE_MAX)
        return zc_fail(diag, ZC_ERR_INPUT, name, "a dimension is negative, or all are too large");
    out->data = t->data ? (const char *)t->data + t->byte_offset : NULL;
    return ZC_OK;
}

/* Element after element in row-major order. */
static void gather(const zc_dl_tensor *t, const zc_view *v, char *to)
{
    const size_t elem = t->bits / 8u;
    int64_t index[ZC_RANK_MAX] = {0};
    const char *from = v->data;
    for (size_t done = 0; done < v->bytes; done += elem) {
        memcpy(to + done, from, elem);
        for (int d = t->ndim - 1; d >= 0; d--) {
            const int64_t stride = t->strides ? t->strides[d] * (int64_t)elem : 0;
            from += stride;
            if (++index[d] < t->shape[d]) break;
            from -= stride * t->shape[d];
            index[d] = 0;
        }
    }
}

static zc_status set_copy(zc_session *s, size_t i, const struct DLManagedTensorVersioned *m,
                          zc_view *v, const char *name, zc_diag *diag)
{
    if (v->on_device)
        return zc_fail(diag, ZC_ERR_UNSUPPORTED, name,
                       "device memory with gaps, in another order or not aligned");
    if (m->tensor.bits < 8)
        return zc_fail(diag, ZC_ERR_UNSUPPORTED, name, "strides of elements of less than a byte");
    char *dense = malloc(v->bytes ? v->bytes : 1);
    if (!dense) return zc_fail_nomem(diag, "an input's elements", v->bytes);
    if (is_dense(&m->tensor))
        memcpy(dense, v->data, v->bytes);
    else
        gather(&m->tensor, v, dense);
    v->data = dense;
    zc_status status = zc_session_give_input(s, i, v, false, NULL, diag);
    free(dense);
    return status;
}

static bool is_aligned(const zc_view *v)
{
    const size_t elem = zc_elem_bits(v->elem) / 8;
    return !elem || (uintptr_t)v->data % elem == 0;
}

static zc_status set_input(zc_session *s, size_t i, struct DLManagedTensorVersioned *m,
                           zc_diag *diag)
{
    const uint32_t n = s->program->blocks[0].nparams;
    zc_view v;
    if (i >= n) return zc_fail(diag, ZC_ERR_ARG, "i", "no such input (got %zu, need < %u)", i, n);
    const char *name = s->program->input_names[i];
    if (!m) return zc_fail(diag, ZC_ERR_ARG, name, "the tensor is NULL");
    ZC_TRY(view_of(s, m, name, &v, diag));
    if (v.bytes && !v.data) return zc_fail(diag, ZC_ERR_ARG, name, "data is NULL");
    if (v.bytes == 0 || (is_dense(&m->tensor) && is_aligned(&v)))
        return zc_session_give_input(s, i, &v, true, m, diag);
    ZC_TRY(set_copy(s, i, m, &v, name, diag));
    zc_dlpack_delete(m);
    return ZC_OK;
}

zc_status zc_session_set_input_dlpack(zc_session *session, size_t i,
                                      struct DLManagedTensorVersioned *tensor, zc_diag *diag)
{
    ZC_TRY(zc_session_enter(session, diag));
    return zc_session_leave(session, set_input(session, i, tensor, diag), diag);
}

void zc_dlpack_delete(struct DLManagedTensorVersioned *m)
{
    if (m && m->deleter) m->deleter(m);
}

/* ---- out ---- */

typedef struct taken {
    struct DLManagedTensorVersioned managed;
    zc_allocator allocator;
    zc_room room;
    int64_t shape[ZC_RANK_MAX], strides[ZC_RANK_MAX];
} taken;

static void delete_taken(struct DLManagedTensorVersioned *self)
{
    taken *t = self->manager_ctx;
    zc_tensor_free(&t->allocator, t->room.p, t->room.cap);
    free(t);
}

static void describe(taken *t, const zc_tensor *result)
{
    zc_dl_tensor *out = &t->managed.tensor;
    int64_t stride = 1;
    for (int d = result->rank - 1; d >= 0; d--) {
        t->shape[d] = result->dims[d];
        t->strides[d] = stride;
        stride *= result->dims[d];
    }
    *out = (zc_dl_tensor){.device_type = ZC_DL_CPU,
                          .ndim = result->rank,
                          .lanes = 1,
                          .shape = t->shape,
                          .strides = t->strides,
                          .data = bytes_of(result) ? t->room.p : NULL};
    for (size_t i = 0; i < ZC_COUNTOF(types); i++) {
        if (types[i].elem != (zc_elem)result->dtype) continue;
        out->code = types[i].code;
        out->bits = types[i].bits;
    }
}

/* The room whose memory the result is; NULL: it is another output's, too. */
static zc_room *room_of(zc_session *s, uint32_t i)
{
    const uint32_t v = s->program->blocks[0].outs[i];
    const void *data = s->outputs[i].result.data;
    for (uint32_t o = 0; o < s->program->blocks[0].nouts; o++)
        if (o != i && s->outputs[o].result.dtype != ZC_NONE && s->outputs[o].result.data == data)
            return NULL;
    if (data == s->outputs[i].copy.p) return &s->outputs[i].copy;
    return data == s->rooms[v].p ? &s->rooms[v] : &s->rooms[s->roots[v]];
}

/* Values that were in the memory have to be computed, or placed, again. */
static void lose_values(zc_session *s, const void *data)
{
    for (uint32_t v = 1; v < s->program->nvalues; v++)
        if (s->program->values[v].kind == ZC_P_STEP && s->values[v].data == data)
            s->values[v].data = NULL;
    s->prepared = false;
}

static zc_status take_result(zc_session *s, size_t i, taken *t, zc_diag *diag)
{
    zc_output_slot *out = &s->outputs[i];
    zc_room *room = room_of(s, (uint32_t)i);
    if (!room) {
        ZC_TRY(zc_room_fit(s, &out->copy, bytes_of(&out->result), diag));
        memcpy(out->copy.p, out->result.data, bytes_of(&out->result));
        room = &out->copy;
    } else {
        lose_values(s, room->p);
    }
    t->allocator = s->allocator;
    t->room = *room;
    s->room_bytes -= room->cap;
    *room = (zc_room){0};
    describe(t, &out->result);
    out->result = (zc_tensor){.dtype = ZC_NONE};
    return ZC_OK;
}

static zc_status take_output(zc_session *s, size_t i, struct DLManagedTensorVersioned **out,
                             zc_diag *diag)
{
    zc_view v;
    ZC_TRY(zc_session_view_output(s, i, &v, diag));
    if (s->outputs[i].result_is_bound)
        return zc_fail(diag, ZC_ERR_ARG, s->program->output_names[i],
                       "is bound to the caller's memory, where the result is");
    taken *t = zc_calloc(1, sizeof *t);
    if (!t) return zc_fail_nomem(diag, "a tensor", sizeof *t);
    zc_status status = take_result(s, i, t, diag);
    if (status != ZC_OK) {
        free(t);
        return status;
    }
    t->managed.major = ZC_DL_MAJOR;
    t->managed.minor = ZC_DL_MINOR;
    t->managed.manager_ctx = t;
    t->managed.deleter = delete_taken;
    *out = &t->managed;
    return ZC_OK;
}

zc_status zc_session_take_output_dlpack(zc_session *session, size_t i,
                                        struct DLManagedTensorVersioned **out, zc_diag *diag)
{
    if (!out) return zc_fail(diag, ZC_ERR_ARG, "out", "is NULL");
    *out = NULL;
    ZC_TRY(zc_session_enter(session, diag));
    return zc_session_leave(session, take_output(session, i, out, diag), diag);
}
