/* Running steps. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/gpu.h"
#include "runtime/nvtx.h"

zc_status zc_room_fit(zc_session *s, zc_room *room, size_t bytes, zc_diag *diag)
{
    if (room->p && bytes <= room->cap) return ZC_OK;
    size_t cap;
    if (!zc_add_size(bytes, bytes / 2 + 128, &cap)) return zc_fail_nomem(diag, "tensor", bytes);
    cap = zc_align_up(room->p ? cap : bytes + 64, ZC_TENSOR_ALIGN);
    void *p = zc_tensor_alloc(&s->allocator, cap);
    if (!p) return zc_fail_nomem(diag, "tensor", bytes);
    zc_room_free(s, room);
    s->room_bytes += cap;
    *room = (zc_room){.p = p, .cap = cap};
    return ZC_OK;
}

void zc_room_free(zc_session *s, zc_room *room)
{
    zc_tensor_free(&s->allocator, room->p, room->cap);
    s->room_bytes -= room->cap;
    *room = (zc_room){0};
}

zc_status zc_exec_shape(zc_session *s, uint32_t v, int rank, const int64_t *dims,
                        const char *subject, zc_diag *diag)
{
    zc_tensor *t = &s->values[v];
    if (rank < 0 || rank > ZC_MAX_RANK)
        return zc_fail(diag, ZC_ERR_LIMIT, subject, "rank out of range (got %d, need at most %d)",
                       rank, ZC_MAX_RANK);
    if (rank && dims != t->dims) memmove(t->dims, dims, (size_t)rank * sizeof *dims);
    t->dtype = s->program->values[v].dtype;
    t->rank = rank;
    size_t bytes;
    if (!zc_tensor_bytes(t, &bytes))
        return zc_fail(diag, ZC_ERR_INPUT, subject,
                       "result has a negative dimension or is too large");
    ZC_TRY(zc_room_fit(s, &s->rooms[v], bytes, diag));
    t->data = s->rooms[v].p;
    if (s->gpu) zc_gpu_wrote_host(s, v);
    return ZC_OK;
}

zc_status zc_exec_copy(zc_session *s, uint32_t v, const zc_tensor *t, const char *subject,
                       zc_diag *diag)
{
    size_t bytes;
    if (t->dtype != s->program->values[v].dtype)
        return zc_fail(diag, ZC_ERR_INTERNAL, subject, "element type changed (got %s, need %s)",
                       zc_dtype_name(t->dtype), zc_dtype_name(s->program->values[v].dtype));
    ZC_TRY(zc_exec_shape(s, v, t->rank, t->dims, subject, diag));
    if (zc_tensor_bytes(t, &bytes) && bytes) memmove(s->values[v].data, t->data, bytes);
    return ZC_OK;
}

/* ---- shapes at run time ---- */

static bool is_planned(const zc_session *s, uint32_t v)
{
    return v && s->program->values[v].kind == ZC_P_STEP && s->program->values[v].planned;
}

static bool is_concrete(const zc_type *t)
{
    for (int d = 0; d < t->rank; d++)
        if (!zc_dim_is_const(t->dims[d])) return false;
    return t->rank >= 0;
}

/* A shape planned from the input shapes must be the one that inference finds from the real values.
 */
static zc_status confirm(const zc_session *s, const zc_pstep *step, uint32_t v,
                         const zc_type *found, zc_diag *diag)
{
    const zc_tensor *t = &s->values[v];
    bool same = found->dtype == t->dtype && found->rank == t->rank;
    for (int d = 0; same && d < t->rank; d++) same = found->dims[d].k == t->dims[d];
    if (same) return ZC_OK;
    char planned[256];
    zc_tensor actual = {.dtype = found->dtype, .rank = found->rank};
    for (int d = 0; d < found->rank; d++) actual.dims[d] = found->dims[d].k;
    char text[256];
    return zc_fail(diag, ZC_ERR_INPUT, step->name,
                   "these inputs break a shape of the model (got %s, need %s)",
                   zc_tensor_type_text(&actual, text, sizeof text),
                   zc_tensor_type_text(t, planned, sizeof planned));
}

/* Views follow their input on a GPU session. */
static bool on_gpu(const zc_session *s, const zc_pstep *step)
{
    return s->gpu && (step->nchoices || zc_op_get(step->op)->flags & ZC_OPF_VIEW);
}

static zc_status take_shapes(zc_session *s, const zc_pstep *step, const zc_infer *f, zc_diag *diag)
{
    for (uint32_t i = 0; i < step->nout; i++) {
        uint32_t v = step->out[i];
        if (!v) continue;
        const zc_type *t = &f->out[i].type;
        if (is_planned(s, v)) {
            if (is_concrete(t)) ZC_TRY(confirm(s, step, v, t, diag));
            continue;
        }
        if (t->dtype != s->program->values[v].dtype)
            return zc_fail(diag, ZC_ERR_INTERNAL, step->name,
                           "element type changed (got %s, need %s)", zc_dtype_name(t->dtype),
                           zc_dtype_name(s->program->values[v].dtype));
        s->values[v] = (zc_tensor){.dtype = t->dtype};
        if (f->info->flags & ZC_OPF_DYNAMIC) continue;
        if (!is_concrete(t))
            return zc_fail(diag, ZC_ERR_INTERNAL, step->name, "the shape of output %u is not known",
                           i);
        int64_t dims[ZC_MAX_RANK];
        for (int d = 0; d < t->rank; d++) dims[d] = t->dims[d].k;
        ZC_TRY(on_gpu(s, step) ? zc_gpu_shape(s, v, t->rank, dims, step->name, diag)
                               : zc_exec_shape(s, v, t->rank, dims, step->name, diag));
    }
    return ZC_OK;
}

static zc_status infer_step(zc_session *s, const zc_pstep *step, zc_diag *diag)
{
    zc_arena *arena = &s->infer_arena;
    zc_arena_reset(arena);
    zc_dims_reset(&s->infer_dims);
    zc_infer f = {.op = step->op,
                  .info = zc_op_get(step->op),
                  .attrs = step->attrs,
                  .dims = &s->infer_dims,
                  .arena = arena,
                  .temp = arena,
                  .custom = &s->custom,
                  .nin = (int)step->nin,
                  .nout = (int)step->nout,
                  .subject = step->name,
                  .fault = ZC_ERR_INPUT, /* the compiler has inferred it: the values are wrong */
                  .diag = diag};
    zc_operand *operands = zc_arena_alloc(arena, step->nin + step->nout, sizeof *operands);
    if (!operands) return zc_fail_nomem(diag, "operands", 0);
    for (uint32_t i = 0; i < step->nin; i++)
        if (!zc_operand_of(&s->values[step->in[i]], arena, &operands[i]))
            return zc_fail_nomem(diag, "operands", 0);
    f.in = operands;
    f.out = operands + step->nin;
    ZC_TRY(zc_infer_run(&f));
    return take_shapes(s, step, &f, diag);
}

/* ---- runs that end early ---- */

void zc_exec_begin(zc_session *s)
{
    s->deadline = s->timeout_ms ? zc_clock_ns() + (int64_t)s->timeout_ms * 1000000 : 0;
}

static bool cancelled(const zc_session *s)
{
    return atomic_load_explicit(&s->use, memory_order_relaxed) == ZC_SESSION_CANCELLED;
}

bool zc_exec_stopped(const zc_session *s)
{
    return cancelled(s) || (s->deadline && zc_clock_ns() >= s->deadline);
}

zc_status zc_exec_stop(const zc_session *s, const char *subject, zc_diag *diag)
{
    if (cancelled(s)) return zc_fail(diag, ZC_ERR_CANCELLED, subject, "cancelled");
    return zc_fail(diag, ZC_ERR_TIMEOUT, subject, "not done within %u ms", s->timeout_ms);
}

/* ---- running ---- */

typedef struct run_user {
    zc_session *session;
    const zc_pstep *step;
} run_user;

static zc_status resize(zc_kctx *k, int i, int rank, const int64_t *dims)
{
    run_user *u = k->user;
    uint32_t v = u->step->out[i];
    if (is_planned(u->session, v)) {
        const zc_tensor *t = &u->session->values[v];
        if (rank == t->rank && memcmp(dims, t->dims, (size_t)rank * sizeof *dims) == 0)
            return ZC_OK;
        return zc_fail(k->diag, ZC_ERR_INTERNAL, k->subject,
                       "result's shape differs from the planned one");
    }
    ZC_TRY(zc_exec_shape(u->session, v, rank, dims, k->subject, k->diag));
    k->out[i] = u->session->values[v];
    return ZC_OK;
}

static bool stopped(const zc_kctx *k)
{
    const run_user *u = k->user;
    return zc_exec_stopped(u->session);
}

/* Planned views share their input's memory; a dynamic one takes its pointer. */
static bool is_done_view(const zc_session *s, const zc_pstep *step)
{
    if (!(zc_op_get(step->op)->flags & ZC_OPF_VIEW) || !step->out[0]) return false;
    return s->values[step->in[0]].data == s->values[step->out[0]].data;
}

/* Shapes are found anew while they are unconfirmed and wherever values, not the input shapes,
 * decide them. */
static bool needs_infer(const zc_session *s, const zc_pstep *step)
{
    if (!s->checked) return true;
    for (uint32_t i = 0; i < step->nin; i++) {
        const zc_pvalue *in = &s->program->values[step->in[i]];
        if (step->in[i] && (in->kind == ZC_P_STEP || in->kind == ZC_P_PARAM) && !in->planned)
            return true;
    }
    for (uint32_t i = 0; i < step->nout; i++)
        if (step->out[i] && !is_planned(s, step->out[i])) return true;
    return false;
}

static zc_status run_kernel(zc_session *s, const zc_pstep *step, zc_diag *diag)
{
    run_user user = {.session = s, .step = step};
    zc_tensor *in = s->operands, *out = in + step->nin;
    for (uint32_t i = 0; i < step->nin; i++) in[i] = s->values[step->in[i]];
    for (uint32_t i = 0; i < step->nout; i++) out[i] = s->values[step->out[i]];
    zc_kctx k = {.op = step->op,
                 .info = zc_op_get(step->op),
                 .attrs = step->attrs,
                 .nin = (int)step->nin,
                 .nout = (int)step->nout,
                 .in = in,
                 .out = out,
                 .scratch = &s->scratch,
                 .pool = s->pool,
                 .state = &s->states[3 * (step - s->program->steps)],
                 .prologue_state = &s->states[3 * (step - s->program->steps) + 1],
                 .epilogue_state = &s->states[3 * (step - s->program->steps) + 2],
                 .custom = &s->custom,
                 .packs = s->plan->packs,
                 .resize = resize,
                 .stopped = stopped,
                 .user = &user,
                 .subject = step->name,
                 .diag = diag};
    for (uint32_t i = 0; i < step->nin && i < 64; i++)
        if (s->program->values[step->in[i]].kind == ZC_P_CONST) k.const_in |= UINT64_C(1) << i;
    zc_scratch_reset(&s->scratch);
    ZC_TRY(zc_kernel_run(&k, s->reference));
    return zc_exec_stopped(s) ? zc_exec_stop(s, step->name, diag) : ZC_OK;
}

zc_status zc_exec_ready(const zc_session *s, zc_diag *diag)
{
    if (s->gpu || s->reference) return ZC_OK;
    for (uint32_t i = 0; i < s->program->nsteps; i++)
        ZC_TRY(zc_kernel_prepare(s->program->steps[i].op, s->program->steps[i].name, diag));
    return ZC_OK;
}

/* ---- CPU steps of a GPU session ---- */

static zc_status host_inputs(zc_session *s, const zc_pstep *step, uint64_t mask, zc_diag *diag)
{
    for (uint32_t i = 0; i < step->nin; i++)
        if (i >= 64 || mask >> i & 1) ZC_TRY(zc_gpu_to_host(s, step->in[i], diag));
    return ZC_OK;
}

/* Results are written to host memory of their own: there is no sharing on this side. */
static zc_status host_outputs(zc_session *s, const zc_pstep *step, zc_diag *diag)
{
    for (uint32_t i = 0; i < step->nout; i++) {
        uint32_t v = step->out[i];
        size_t bytes = 0;
        if (!is_planned(s, v)) continue;
        (void)zc_tensor_bytes(&s->values[v], &bytes);
        ZC_TRY(zc_room_fit(s, &s->rooms[v], bytes, diag));
        s->values[v].data = s->rooms[v].p;
        zc_gpu_wrote_host(s, v);
    }
    return ZC_OK;
}

static zc_status run_beside_gpu(zc_session *s, const zc_pstep *step, zc_diag *diag)
{
    uint64_t shape_inputs = zc_op_host_inputs(step->op);
    bool infer = needs_infer(s, step);
    if (infer) ZC_TRY(host_inputs(s, step, step->nchoices ? shape_inputs : UINT64_MAX, diag));
    if (infer) ZC_TRY(infer_step(s, step, diag));
    if (zc_op_get(step->op)->flags & ZC_OPF_VIEW) return zc_gpu_view(s, step, diag);
    if (step->nchoices) return zc_gpu_step(s, step, diag);
    ZC_TRY(host_inputs(s, step, UINT64_MAX, diag));
    ZC_TRY(host_outputs(s, step, diag));
    return run_kernel(s, step, diag);
}

zc_status zc_exec_step(zc_session *s, const zc_pstep *step, zc_diag *diag)
{
    if (zc_exec_stopped(s)) return zc_exec_stop(s, step->name, diag);
    if (zc_op_get(step->op)->flags & ZC_OPF_REGIONS) {
        if (s->gpu) ZC_TRY(host_inputs(s, step, UINT64_MAX, diag));
        return zc_exec_control(s, step, diag);
    }
    if (s->gpu) return run_beside_gpu(s, step, diag);
    if (needs_infer(s, step)) ZC_TRY(infer_step(s, step, diag));
    if (is_done_view(s, step)) return ZC_OK;
    return run_kernel(s, step, diag);
}

zc_status zc_exec_named(zc_session *s, const zc_pstep *step, zc_diag *diag)
{
    zc_nvtx_push(step->name);
    const zc_status status = zc_exec_step(s, step, diag);
    zc_nvtx_pop();
    return status;
}

zc_status zc_exec_block(zc_session *s, uint32_t b, zc_diag *diag)
{
    const zc_pblock *block = &s->program->blocks[b];
    double *us = b == 0 ? s->step_us : NULL;
    for (uint32_t i = 0; i < block->nsteps; i++) {
        const int64_t before = us ? zc_clock_ns() : 0;
        ZC_TRY((us ? zc_exec_named : zc_exec_step)(s, &s->program->steps[block->steps[i]], diag));
        if (us) us[i] = (double)(zc_clock_ns() - before) * 1e-3;
    }
    /* Control flow handles values in host memory. */
    for (uint32_t i = 0; s->gpu && i < block->nouts; i++)
        ZC_TRY(zc_gpu_to_host(s, block->outs[i], diag));
    return ZC_OK;
}
