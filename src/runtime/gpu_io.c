/* Inputs and outputs of a session on a GPU. */
#include "runtime/gpu.h"

static size_t bytes_of(const zc_tensor *t)
{
    size_t bytes = 0;
    return zc_tensor_bytes(t, &bytes) ? bytes : 0;
}

zc_status zc_gpu_check_pointer(zc_session *s, const void *p, size_t bytes, const char *subject,
                               zc_diag *diag)
{
    zc_device *d = &s->gpu->image->device;
    unsigned type = 0;
    int ordinal = -1;
    if (!bytes || !p) return ZC_OK;
    ZC_TRY(zc_gpu_enter(s, diag));
    int code = d->cu.pointer_attribute(&type, ZC_CU_POINTER_MEMORY_TYPE, (zc_cu_ptr)(uintptr_t)p);
    if (code == 0)
        code = d->cu.pointer_attribute(&ordinal, ZC_CU_POINTER_ORDINAL, (zc_cu_ptr)(uintptr_t)p);
    zc_gpu_leave(s);
    if (code && code != ZC_CU_ERROR_VALUE) return zc_device_check(d, code, subject, diag);
    if (code || type != ZC_CU_MEMORY_DEVICE)
        return zc_fail(diag, ZC_ERR_ARG, subject, "the address is not device memory");
    if (ordinal != d->device)
        return zc_fail(diag, ZC_ERR_ARG, subject,
                       "the address is another GPU's (got number %d, need %d)", ordinal, d->device);
    if ((uintptr_t)p % 16)
        return zc_fail(diag, ZC_ERR_ARG, subject, "device memory is not aligned to 16 bytes");
    return ZC_OK;
}

zc_status zc_gpu_root(zc_session *s, uint32_t root, void *bound, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    g->root_set[root] = true;
    if (bound) {
        g->at[root] = (zc_cu_ptr)(uintptr_t)bound;
        return ZC_OK;
    }
    ZC_TRY(zc_gpu_room_fit(s, &g->rooms[root], bytes_of(&s->values[root]), diag));
    g->at[root] = g->rooms[root].p;
    return ZC_OK;
}

void zc_gpu_point(zc_session *s)
{
    struct zc_gpu *g = s->gpu;
    const zc_program *p = s->program;
    const zc_pblock *top = &p->blocks[0];
    for (uint32_t i = 0; i < top->nparams; i++) {
        uint32_t v = top->params[i];
        g->on_device[v] = s->inputs[i].on_device || s->inputs[i].resident;
        g->at[v] =
            s->inputs[i].on_device ? (zc_cu_ptr)(uintptr_t)s->inputs[i].value.data : g->rooms[v].p;
        if (s->inputs[i].on_device) s->values[v].data = NULL;
    }
    for (uint32_t v = 1; v < p->nvalues; v++) {
        uint32_t root = s->roots[v];
        if (root != v && p->values[root].kind == ZC_P_STEP)
            g->at[v] = g->at[root] + s->now->subviews[v].offset;
    }
}

zc_status zc_gpu_deliver(zc_session *s, uint32_t i, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    zc_device *d = &g->image->device;
    zc_output_slot *out = &s->outputs[i];
    uint32_t v = s->program->blocks[0].outs[i];
    size_t bytes = bytes_of(&s->values[v]);
    out->result = s->values[v];
    out->result.data = out->bound;
    if (bytes > out->bound_bytes)
        return zc_fail(diag, ZC_ERR_ARG, s->program->output_names[i],
                       "bound memory is too small (got %zu bytes, need %zu)", out->bound_bytes,
                       bytes);
    ZC_TRY(zc_gpu_to_device(s, v, diag));
    zc_cu_ptr to = (zc_cu_ptr)(uintptr_t)out->bound;
    if (to == g->at[v] || !bytes) return ZC_OK;
    return zc_device_check(d, d->cu.copy_within(to, g->at[v], bytes, g->stream),
                           s->program->output_names[i], diag);
}

bool zc_gpu_leave_output(zc_session *s, uint32_t i)
{
    const struct zc_gpu *g = s->gpu;
    zc_output_slot *out = &s->outputs[i];
    uint32_t v = s->program->blocks[0].outs[i];
    if (!g->on_device[v]) return false;
    out->result = s->values[v];
    out->result.data = (void *)(uintptr_t)g->at[v];
    out->result_on_device = true;
    return true;
}

void zc_gpu_info(const zc_session *s, zc_device_info *out)
{
    const struct zc_gpu *g = s->gpu;
    out->kind = ZC_DEVICE_CUDA;
    out->name = g->image->device.name;
    out->arch = g->image->device.arch;
    out->bus = g->image->device.bus;
    out->driver = g->image->device.driver;
    out->memory = g->memory;
    out->weight_bytes = g->image->weight_bytes;
    out->rebuilt = g->image->rebuilt;
    out->launches = (size_t)g->launches;
    out->lost = g->image->device.lost;
    out->graph_refusal = g->refusal[0] ? g->refusal : NULL;
    for (uint32_t i = 0; s->now && i < s->now->nparts; i++)
        out->graphs += s->now->parts[i].exec != NULL;
}
