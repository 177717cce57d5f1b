/* What runs of a plan will take, before any of it is made. */
#include <string.h>

#include "runtime/session.h"

static zc_status take_shape(zc_session *s, size_t i, const zc_io_info *io, zc_diag *diag)
{
    const zc_pvalue *value = &s->program->values[s->program->blocks[0].params[i]];
    const char *name = s->program->input_names[i];
    if (io->rank < 0 || io->rank != value->rank)
        return zc_fail(diag, ZC_ERR_INPUT, name, "wrong number of dimensions (got %d, need %d)",
                       io->rank, value->rank);
    zc_tensor t = {.dtype = value->dtype, .rank = value->rank};
    for (int d = 0; d < t.rank; d++) {
        if (io->dims[d] < 0)
            return zc_fail(diag, ZC_ERR_INPUT, name, "dimension %d has no size (got %lld)", d,
                           (long long)io->dims[d]);
        t.dims[d] = io->dims[d];
    }
    size_t bytes;
    if (!zc_tensor_bytes(&t, &bytes)) return zc_fail(diag, ZC_ERR_INPUT, name, "too large");
    s->inputs[i].value = t;
    return ZC_OK;
}

/* Results that have memory of their own outside the arena. */
static uint64_t result_bytes(const zc_session *s)
{
    uint64_t sum = 0;
    for (uint32_t v = 1; v < s->program->nvalues; v++) {
        size_t bytes = 0;
        if (s->external[v] && zc_tensor_bytes(&s->values[v], &bytes)) sum += bytes;
    }
    return sum;
}

static zc_status measure(zc_session *s, const zc_io_info *inputs, size_t n, zc_memory_info *out,
                         zc_diag *diag)
{
    for (size_t i = 0; i < n; i++) ZC_TRY(take_shape(s, i, &inputs[i], diag));
    ZC_TRY(zc_session_plan(s, diag));
    out->arena_bytes = s->now->arena_bytes;
    out->live_bytes = zc_place_least(s->now->items, s->now->nitems);
    out->result_bytes = result_bytes(s);
    return ZC_OK;
}

zc_status zc_plan_memory(const zc_plan *plan, const zc_io_info *inputs, size_t n,
                         zc_memory_info *out, zc_diag *diag)
{
    if (!plan || !out) return zc_fail(diag, ZC_ERR_ARG, plan ? "out" : "plan", "is NULL");
    const size_t need = plan->program.blocks[0].nparams;
    if (n != need || (n && !inputs))
        return zc_fail(diag, ZC_ERR_ARG, "inputs", "wrong number of inputs (got %zu, need %zu)",
                       inputs ? n : 0, need);
    zc_session *s;
    zc_plan *shared = (zc_plan *)(uintptr_t)plan; /* its references are counted */
    *out = (zc_memory_info){.weight_bytes = plan->weight_bytes,
                            .device_weight_bytes =
                                plan->program.nkernels ? zc_image_weight_bytes(&plan->program) : 0};
    ZC_TRY(zc_session_new(shared, &s, diag));
    zc_status status = measure(s, inputs, n, out, diag);
    zc_session_free(s);
    return status;
}
