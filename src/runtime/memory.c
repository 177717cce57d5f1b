/* What runs of a plan will take, before any of it is made. */
#include <string.h>

#include "base/sized.h"
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

/* Value v, a planned one or an input, at the current dimensions. */
static uint64_t value_bytes(const zc_session *s, uint32_t v)
{
    const zc_pvalue *value = &s->program->values[v];
    zc_tensor t = {.dtype = value->dtype, .rank = value->rank};
    size_t bytes = 0;
    for (int d = 0; d < t.rank; d++) t.dims[d] = zc_dim_value(value->dims[d], s->dim_values);
    return zc_tensor_bytes(&t, &bytes) ? bytes : 0;
}

/* Results that have memory of their own outside the arena, and copies of those that are inputs or
 * constants. */
static uint64_t result_bytes(const zc_session *s)
{
    const zc_pblock *top = &s->program->blocks[0];
    uint64_t sum = 0;
    for (uint32_t v = 1; v < s->program->nvalues; v++)
        if (s->external[v]) sum += value_bytes(s, v);
    for (uint32_t i = 0; i < top->nouts; i++) {
        uint32_t root = s->roots[top->outs[i]];
        if (s->program->values[root].kind != ZC_P_STEP) sum += value_bytes(s, top->outs[i]);
    }
    return sum;
}

static zc_status take_each(zc_session *s, const zc_io_info *inputs, size_t n, zc_diag *diag)
{
    const uint8_t *at = (const uint8_t *)inputs;
    for (size_t i = 0; i < n; i++) {
        zc_io_info own = {.rank = -1};
        const size_t size = ((const zc_io_info *)at)->size;
        if (size != inputs->size)
            return zc_fail(diag, ZC_ERR_ARG, "inputs", "sizes differ (got %zu, need %zu)", size,
                           inputs->size);
        ZC_TRY(zc_sized_take(at, ZC_SIZE_UPTO(zc_io_info, dim_texts), &own, sizeof own, "inputs",
                             diag));
        ZC_TRY(take_shape(s, i, &own, diag));
        at += inputs->size;
    }
    return ZC_OK;
}

zc_status zc_session_take_shapes(zc_session *s, const zc_io_info *inputs, size_t n, zc_diag *diag)
{
    const size_t need = s->program->blocks[0].nparams;
    if (n == need && (inputs || !n)) return take_each(s, inputs, n, diag);
    return zc_fail(diag, ZC_ERR_ARG, "inputs", "wrong number of inputs (got %zu, need %zu)",
                   inputs ? n : 0, need);
}

zc_memory_info zc_session_measure(const zc_session *s)
{
    const zc_program *p = s->program;
    return (zc_memory_info){.weight_bytes = s->plan->weight_bytes,
                            .device_weight_bytes = p->nkernels ? zc_image_weight_bytes(p) : 0,
                            .arena_bytes = s->now->arena_bytes,
                            .live_bytes = zc_place_least(s->now->items, s->now->nitems),
                            .result_bytes = result_bytes(s)};
}

static zc_status measure(zc_session *s, const zc_io_info *inputs, size_t n, zc_memory_info *out,
                         zc_diag *diag)
{
    ZC_TRY(zc_session_take_shapes(s, inputs, n, diag));
    ZC_TRY(zc_session_plan(s, diag));
    const zc_memory_info own = zc_session_measure(s);
    return zc_sized_give(&own, sizeof own, ZC_SIZE_UPTO(zc_memory_info, result_bytes), out, diag);
}

zc_status zc_plan_memory_fill(const zc_plan *plan, const zc_io_info *inputs, size_t n,
                              zc_memory_info *out, zc_diag *diag)
{
    if (!plan || !out) return zc_fail(diag, ZC_ERR_ARG, plan ? "out" : "plan", "is NULL");
    zc_session *s;
    zc_plan *shared = (zc_plan *)(uintptr_t)plan; /* its references are counted */
    ZC_TRY(zc_session_new(shared, 1, &s, diag));
    s->arch = zc_program_arch(&plan->program);
    zc_diag_lend_file(diag, plan->file);
    zc_status status = measure(s, inputs, n, out, diag);
    zc_diag_lend_file(diag, NULL);
    zc_session_free(s);
    return status;
}
