/* A session made ready for input shapes before the first inputs come. */
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "runtime/session.h"

/* ---- a run on zeros ---- */

/* Enough of them for the largest input, each of which has a shape. */
static zc_status set_zeros(zc_session *s, void **zeros, zc_diag *diag)
{
    const zc_pblock *top = &s->program->blocks[0];
    size_t most = ZC_TENSOR_ALIGN;
    for (uint32_t i = 0; i < top->nparams; i++) {
        size_t bytes = 0;
        (void)zc_tensor_bytes(&s->inputs[i].value, &bytes);
        if (bytes > most) most = bytes;
    }
    most = zc_align_up(most, ZC_TENSOR_ALIGN);
    *zeros = aligned_alloc(ZC_TENSOR_ALIGN, most);
    if (!*zeros) return zc_fail_nomem(diag, "inputs of a warm-up", most);
    memset(*zeros, 0, most);
    for (uint32_t i = 0; i < top->nparams; i++) {
        zc_input_slot *in = &s->inputs[i];
        in->value.data = *zeros;
        in->borrowed_bytes = 0;
        in->set = true;
        in->on_device = in->resident = false;
    }
    return ZC_OK;
}

/* On a GPU the first run of a shape confirms it, and the second records it. */
static zc_status run_on_zeros(zc_session *s, zc_diag *diag)
{
    zc_diag *why = zc_diag_create();
    zc_status status = zc_session_run_now(s, true, why);
    if (status == ZC_OK && s->gpu) status = zc_session_run_now(s, true, why);
    const char *text = zc_diag_count(why) ? zc_diag_text(why, 0) : "no memory";
    if (status == ZC_ERR_INPUT && s->now) { /* planned */
        zc_warn(diag, NULL, "warmed up in part, since zeros are no inputs of this model: %s", text);
        status = ZC_OK;
    } else if (status != ZC_OK) {
        zc_fail(diag, status, NULL, "%s", text);
    }
    zc_diag_destroy(&why);
    return status;
}

static zc_status warm(zc_session *s, const zc_io_info *inputs, size_t n, zc_memory_info *out,
                      zc_diag *diag)
{
    void *zeros = NULL;
    ZC_TRY(zc_session_take_shapes(s, inputs, n, diag));
    s->prepared = false;
    ZC_TRY(zc_session_plan(s, diag));
    zc_status status = set_zeros(s, &zeros, diag);
    if (status == ZC_OK) status = run_on_zeros(s, diag);
    free(zeros);
    if (status != ZC_OK || !out) return status;
    const zc_memory_info own = zc_session_measure(s);
    return zc_sized_give(&own, sizeof own, ZC_SIZE_UPTO(zc_memory_info, result_bytes), out, diag);
}

/* Inputs that were set come back. */
static zc_status prepare(zc_session *s, const zc_io_info *inputs, size_t n, zc_memory_info *out,
                         zc_diag *diag)
{
    const size_t slots = s->program->blocks[0].nparams;
    zc_input_slot *kept = zc_calloc(slots, sizeof *kept);
    if (!kept) return zc_fail_nomem(diag, "inputs", slots * sizeof *kept);
    memcpy(kept, s->inputs, slots * sizeof *kept);
    zc_status status = warm(s, inputs, n, out, diag);
    memcpy(s->inputs, kept, slots * sizeof *kept);
    for (size_t i = 0; i < slots; i++) s->inputs[i].resident = false;
    free(kept);
    s->prepared = s->disjoint = false;
    zc_session_forget_results(s);
    return status;
}

zc_status zc_session_prepare_fill(zc_session *session, const zc_io_info *inputs, size_t n,
                                  zc_memory_info *out, zc_diag *diag)
{
    ZC_TRY(zc_session_enter_run(session, diag));
    return zc_session_leave_run(session, prepare(session, inputs, n, out, diag), diag);
}

/* ---- what results will be ---- */

/* Only values that a run finds decide the shapes of the others. */
static bool follows_inputs(const zc_pvalue *value)
{
    return value->kind == ZC_P_INPUT || value->kind == ZC_P_CONST || value->planned;
}

static zc_status give_output(const zc_session *s, size_t i, zc_io_info *out, zc_diag *diag)
{
    zc_io_info own = {.size = sizeof own};
    ZC_TRY(zc_plan_output_fill(s->plan, i, &own, diag));
    const zc_pvalue *value = &s->program->values[s->program->blocks[0].outs[i]];
    if (!s->now)
        return zc_fail(diag, ZC_ERR_ARG, own.name,
                       "neither a run nor zc_session_prepare has given "
                       "the inputs shapes");
    if (follows_inputs(value)) {
        zc_tensor t = {.dtype = value->dtype, .rank = value->rank};
        size_t bytes = 0;
        for (int d = 0; d < t.rank; d++)
            own.dims[d] = t.dims[d] = zc_dim_value(value->dims[d], s->dim_values);
        if (zc_tensor_bytes(&t, &bytes)) own.bytes = (int64_t)bytes;
    }
    return zc_sized_give(&own, sizeof own, ZC_SIZE_UPTO(zc_io_info, dim_texts), out, diag);
}

zc_status zc_session_output_info_fill(const zc_session *session, size_t i, zc_io_info *out,
                                      zc_diag *diag)
{
    zc_session *s = (zc_session *)(uintptr_t)session; /* for the flag that a thread is inside */
    if (!out) return zc_fail(diag, ZC_ERR_ARG, "out", "is NULL");
    ZC_TRY(zc_session_enter(s, diag));
    return zc_session_leave(s, give_output(s, i, out, diag), diag);
}
