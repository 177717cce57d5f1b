/* The session's public calls. */
#include "runtime/session.h"
#include "base/sized.h"
#include "op/work.h"
#include "runtime/background.h"
#include "runtime/gpu.h"
#include "runtime/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- memory ---- */

/* For threads that ask while others run: the sum of what only the thread inside may read. */
static void publish_memory(zc_session *s)
{
    uint64_t bytes = s->base_bytes + s->arena_bytes + s->room_bytes + s->shapes.bytes;
    bytes += s->scratch.held + s->state_bytes + s->profiled.bytes;
    bytes += s->infer_arena.held + s->infer_dims.arena.held;
    bytes += s->infer_dims.cap * sizeof *s->infer_dims.nodes;
    bytes += s->infer_dims.table_cap * sizeof *s->infer_dims.table;
    uint64_t before = atomic_exchange_explicit(&s->memory, bytes, memory_order_relaxed);
    zc_count(&s->plan->counts.memory, bytes - before);
}

/* The default of zc_session_params.shapes. */
enum { SHAPES_DEFAULT = 64 };

/* ---- life ---- */

static uint32_t widest_step(const zc_program *p)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < p->nsteps; i++) {
        uint32_t n = p->steps[i].nin + p->steps[i].nout;
        if (n > most) most = n;
    }
    return most;
}

static void *array(zc_session *s, size_t n, size_t size)
{
    void *p = zc_calloc(n, size);
    if (p) s->base_bytes += n * size;
    return p;
}

static bool allocate(zc_session *s)
{
    const zc_program *p = s->program;
    const zc_pblock *top = &p->blocks[0];
    s->base_bytes = sizeof *s;
    s->inputs = array(s, top->nparams, sizeof *s->inputs);
    s->outputs = array(s, top->nouts, sizeof *s->outputs);
    s->values = array(s, p->nvalues, sizeof *s->values);
    s->rooms = array(s, p->nvalues, sizeof *s->rooms);
    s->root_first = array(s, p->nvalues, sizeof *s->root_first);
    s->root_last = array(s, p->nvalues, sizeof *s->root_last);
    s->dim_values = array(s, p->ndims, sizeof *s->dim_values);
    s->states = array(s, 3 * (size_t)p->nsteps, sizeof *s->states);
    s->operands = array(s, widest_step(p), sizeof *s->operands);
    return s->inputs && s->outputs && s->values && s->rooms && s->root_first && s->root_last &&
           s->dim_values && s->states && s->operands;
}

static void set_constants(zc_session *s)
{
    const zc_program *p = s->program;
    for (uint32_t v = 1; v < p->nvalues; v++) {
        const zc_pvalue *value = &p->values[v];
        if (value->kind != ZC_P_CONST) continue;
        zc_tensor *t = &s->values[v];
        *t = (zc_tensor){.dtype = value->dtype, .rank = value->rank};
        for (int d = 0; d < t->rank; d++) t->dims[d] = value->dims[d].k;
        t->data = (void *)(uintptr_t)value->data; /* kernels never write their inputs */
    }
}

void zc_session_free(zc_session *s)
{
    const zc_program *p = s->program;
    zc_background_end(atomic_load(&s->background));
    zc_gpu_destroy(s);
    zc_session_leave_threads(s);
    for (size_t i = 0; s->states && i < 3 * (size_t)p->nsteps; i++)
        if (s->states[i].p) s->states[i].destroy(s->states[i].p);
    for (uint32_t i = 0; s->rooms && i < p->nvalues; i++) zc_room_free(s, &s->rooms[i]);
    for (uint32_t i = 0; s->inputs && i < p->blocks[0].nparams; i++) {
        zc_dlpack_delete(s->inputs[i].tensor);
        zc_room_free(s, &s->inputs[i].copy);
    }
    for (uint32_t i = 0; s->outputs && i < p->blocks[0].nouts; i++)
        zc_room_free(s, &s->outputs[i].copy);
    zc_scratch_fini(&s->scratch);
    free(s->inputs);
    free(s->outputs);
    free(s->values);
    free(s->rooms);
    zc_shapes_fini(&s->shapes);
    zc_arena_fini(&s->infer_arena);
    zc_dims_fini(&s->infer_dims);
    free(s->root_first);
    free(s->root_last);
    free(s->dim_values);
    free(s->states);
    free(s->operands);
    free(s->step_us);
    zc_profiled_free(s);
    free((void *)(uintptr_t)s->custom.ops);
    zc_tensor_free(&s->allocator, s->arena, s->arena_bytes);
    zc_count(&s->plan->counts.memory, -atomic_load_explicit(&s->memory, memory_order_relaxed));
    zc_count(&s->plan->counts.sessions, -(uint64_t)s->is_counted);
    zc_plan_destroy(&s->plan);
    free(s);
}

zc_status zc_session_new(zc_plan *plan, size_t shapes, zc_session **out, zc_diag *diag)
{
    *out = NULL;
    zc_session *s = zc_calloc(1, sizeof *s);
    if (!s) return zc_fail_nomem(diag, "session", sizeof *s);
    zc_plan_retain(plan);
    s->plan = plan;
    s->program = &plan->program;
    s->pid = getpid();
    atomic_init(&s->use, ZC_SESSION_FREE);
    atomic_init(&s->background, NULL);
    zc_arena_init(&s->infer_arena, 0);
    zc_dims_init(&s->infer_dims);
    if (!allocate(s) || !zc_shapes_init(&s->shapes, shapes)) {
        zc_session_free(s);
        return zc_fail_nomem(diag, "session", plan->program.nvalues);
    }
    set_constants(s);
    *out = s;
    return ZC_OK;
}

static const char cpu_plan[] =
    "the plan was compiled for the CPU alone (compile with --target sm_90 or the like)";

/* A session that stays on the CPU keeps the reason. */
static void try_gpu(zc_session *s, const zc_session_params *p)
{
    const char *why = cpu_plan;
    zc_diag *diag = zc_diag_create();
    if (s->program->nkernels) {
        if (zc_gpu_create(s, p, diag) == ZC_OK) {
            zc_diag_destroy(&diag);
            return;
        }
        zc_gpu_destroy(s);
        why = zc_diag_count(diag) ? zc_diag_text(diag, 0) : "no memory";
    }
    snprintf(s->fallback, sizeof s->fallback, "%s", why);
    zc_diag_destroy(&diag);
}

static zc_status choose_device(zc_session *s, const zc_session_params *p, zc_diag *diag)
{
    switch (p->device) {
    case ZC_DEVICE_CPU:
        return ZC_OK;
    case ZC_DEVICE_CUDA:
        if (!s->program->nkernels && strcmp(s->program->target, "cuda") != 0)
            return zc_fail(diag, ZC_ERR_DEVICE, "device", "%s", cpu_plan);
        return zc_gpu_create(s, p, diag);
    case ZC_DEVICE_AUTO:
        try_gpu(s, p);
        return ZC_OK;
    }
    return zc_fail(diag, ZC_ERR_ARG, "device", "is no zc_device_kind (got %d)", (int)p->device);
}

static zc_status check_allocator(const zc_allocator *a, const char *what, zc_diag *diag)
{
    if (!a || (a->alloc && a->free)) return ZC_OK;
    return zc_fail(diag, ZC_ERR_ARG, what, "its function `%s` is NULL",
                   a->alloc ? "free" : "alloc");
}

static zc_status take_params(const zc_session_params *params, zc_session_params *out, zc_diag *diag)
{
    *out = (zc_session_params){.size = sizeof *out};
    if (params)
        ZC_TRY(zc_sized_take(params, ZC_SIZE_UPTO(zc_session_params, timeout_ms), out, sizeof *out,
                             "params", diag));
    ZC_TRY(zc_threads_check(out->threads, diag));
    if (out->profile_graphs && !out->profile)
        return zc_fail(diag, ZC_ERR_ARG, "profile_graphs", "needs profile");
    if (out->shapes > ZC_SHAPES_MAX)
        return zc_fail(diag, ZC_ERR_ARG, "shapes", "out of range (got %zu, need 0 to %d)",
                       out->shapes, ZC_SHAPES_MAX);
    if (!out->shapes) out->shapes = SHAPES_DEFAULT;
    ZC_TRY(check_allocator(out->allocator, "allocator", diag));
    return check_allocator(out->device_allocator, "device_allocator", diag);
}

/* Every step's operator is there. */
static zc_status take_custom(zc_session *s, const zc_session_params *given, zc_diag *diag)
{
    const zc_custom_set set = {given->custom_ops, given->custom_op_count};
    const zc_custom_op *unused;
    ZC_TRY(zc_custom_check(&set, diag));
    const zc_custom_op **ops = array(s, set.n, sizeof *ops);
    if (!ops) return zc_fail_nomem(diag, "custom_ops", set.n * sizeof *ops);
    if (set.n) memcpy(ops, set.ops, set.n * sizeof *ops);
    s->custom = (zc_custom_set){ops, set.n};
    for (uint32_t i = 0; i < s->program->nsteps; i++) {
        const zc_pstep *step = &s->program->steps[i];
        if (step->op == ZC_OP_Custom)
            ZC_TRY(zc_custom_need(&s->custom, step->attrs, step->name, &unused, diag));
    }
    return ZC_OK;
}

static zc_status create(zc_plan *plan, const zc_session_params *params, zc_session **out,
                        zc_diag *diag)
{
    zc_session_params given;
    zc_session *s;
    ZC_TRY(take_params(params, &given, diag));
    ZC_TRY(zc_session_new(plan, given.shapes, &s, diag));
    s->reference = given.reference;
    if (given.allocator) s->allocator = *given.allocator;
    s->scratch.allocator = &s->allocator;
    zc_status status = take_custom(s, &given, diag);
    if (status == ZC_OK) status = zc_session_join_threads(s, &given, diag);
    if (status == ZC_OK && given.reference) status = zc_packs_keep(plan->packs, diag);
    if (status == ZC_OK) status = choose_device(s, &given, diag);
    if (!s->gpu) s->timeout_ms = given.timeout_ms;
    if (status == ZC_OK && !s->gpu && given.profile) {
        s->step_us = array(s, s->program->blocks[0].nsteps, sizeof *s->step_us);
        if (!s->step_us) status = zc_fail_nomem(diag, "profile", s->program->blocks[0].nsteps);
    }
    if (status == ZC_OK) status = zc_exec_ready(s, diag);
    if (status != ZC_OK) {
        zc_session_free(s);
        return status;
    }
    zc_count(&plan->counts.sessions, 1);
    s->is_counted = true;
    publish_memory(s);
    *out = s;
    return ZC_OK;
}

zc_status zc_session_create(zc_plan *plan, const zc_session_params *params, zc_session **out,
                            zc_diag *diag)
{
    if (!out) return zc_fail(diag, ZC_ERR_ARG, "out", "is NULL");
    *out = NULL;
    if (!plan) return zc_fail(diag, ZC_ERR_ARG, "plan", "is NULL");
    zc_diag_lend_file(diag, plan->file);
    zc_status status = create(plan, params, out, diag);
    zc_diag_lend_file(diag, NULL);
    return status;
}

/* ---- one thread at a time ---- */

zc_status zc_session_leave(zc_session *s, zc_status status, zc_diag *diag)
{
    zc_diag_lend_file(diag, NULL);
    publish_memory(s);
    atomic_store_explicit(&s->use, ZC_SESSION_FREE, memory_order_release);
    return status;
}

static bool take(zc_session *s, zc_session_use use)
{
    int expected = ZC_SESSION_FREE;
    return atomic_compare_exchange_strong_explicit(&s->use, &expected, use, memory_order_acquire,
                                                   memory_order_relaxed);
}

static zc_status occupy(zc_session *s, zc_session_use use, zc_diag *diag)
{
    if (!s) return zc_fail(diag, ZC_ERR_ARG, "session", "is NULL");
    if (s->pid != getpid())
        return zc_fail(diag, ZC_ERR_FORKED, "session",
                       "was created before fork() in another process");
    if (!take(s, use)) return zc_fail(diag, ZC_ERR_BUSY, "session", "is in use by another thread");
    zc_diag_lend_file(diag, s->plan->file);
    return ZC_OK;
}

static zc_status enter_for(zc_session *s, zc_session_use use, zc_diag *diag)
{
    ZC_TRY(occupy(s, use, diag));
    zc_status status = s->gpu ? zc_gpu_alive(s, diag) : ZC_OK;
    return status == ZC_OK ? ZC_OK : zc_session_leave(s, status, diag);
}

zc_status zc_session_enter(zc_session *s, zc_diag *diag)
{
    return enter_for(s, ZC_SESSION_BUSY, diag);
}

zc_status zc_session_enter_run(zc_session *s, zc_diag *diag)
{
    return enter_for(s, ZC_SESSION_RUNNING, diag);
}

zc_status zc_session_destroy(zc_session **session)
{
    if (!session || !*session) return ZC_OK;
    zc_session *s = *session;
    if (s->pid != getpid()) return ZC_ERR_FORKED;
    if (!take(s, ZC_SESSION_BUSY)) return ZC_ERR_BUSY;
    *session = NULL;
    zc_session_free(s);
    return ZC_OK;
}

void zc_session_cancel(zc_session *session)
{
    int expected = ZC_SESSION_RUNNING;
    if (session)
        (void)atomic_compare_exchange_strong_explicit(&session->use, &expected,
                                                      ZC_SESSION_CANCELLED, memory_order_relaxed,
                                                      memory_order_relaxed);
}

double zc_session_step_us(const zc_session *s, size_t i)
{
    if (s->step_us) return s->step_us[i];
    return s->gpu && s->gpu->step_ms ? s->gpu->step_ms[i] * 1e3 : 0;
}

/* From the shapes of the last run. */
static zc_work work_of(const zc_session *s, const zc_pstep *step)
{
    zc_tensor *all = zc_calloc(step->nin + step->nout + 1, sizeof *all);
    zc_work work = {.operations = -1};
    if (!all) return work;
    for (uint32_t i = 0; i < step->nin; i++) all[i] = s->values[step->in[i]];
    for (uint32_t i = 0; i < step->nout; i++)
        if (step->out[i]) all[step->nin + i] = s->values[step->out[i]];
    work = zc_work_of(zc_op_get(step->op), step->attrs, (int)step->nin, all, (int)step->nout,
                      all + step->nin);
    free(all);
    return work;
}

static zc_status give_step(const zc_session *s, size_t i, zc_step_info *out, zc_diag *diag)
{
    const zc_pblock *top = &s->program->blocks[0];
    if (i >= top->nsteps)
        return zc_fail(diag, ZC_ERR_ARG, "i", "no such step (got %zu, need < %u)", i, top->nsteps);
    const zc_pstep *step = &s->program->steps[top->steps[i]];
    bool on_gpu = s->gpu && step->nchoices;
    zc_work work = {0};
    if (s->step_us || (s->gpu && s->gpu->step_ms)) work = work_of(s, step);
    const zc_pkernel *kernel =
        on_gpu ? &s->gpu->image->program->kernels[zc_gpu_kernel(s, step)] : NULL;
    zc_step_info own = {.name = step->name,
                        .op = step->op == ZC_OP_Custom
                                  ? ((const zc_attrs_Custom *)step->attrs)->name
                                  : zc_op_get(step->op)->name,
                        .kernel = kernel ? kernel->name : NULL,
                        .why = s->gpu ? step->why : "",
                        .us = zc_session_step_us(s, i),
                        .bytes_in = work.bytes_in,
                        .bytes_out = work.bytes_out,
                        .operations = work.operations,
                        .products = kernel ? kernel->products : "",
                        .choice = kernel ? zc_gpu_why(s, step) : ""};
    if (s->gpu && s->gpu->stamped.spans) {
        own.begin_us = s->gpu->stamped.spans[i].begin_us;
        own.end_us = s->gpu->stamped.spans[i].end_us;
    }
    if (s->profiled.runs) {
        own.gap_us = s->profiled.gap[i] / (double)s->profiled.runs;
        own.overlap_us = s->profiled.overlap[i] / (double)s->profiled.runs;
        own.median_us = s->profiled.steps[i].mid;
        own.low_us = s->profiled.steps[i].low;
        own.high_us = s->profiled.steps[i].high;
    }
    return zc_sized_give(&own, sizeof own, ZC_SIZE_UPTO(zc_step_info, us), out, diag);
}

/* Questions about a session are answered when its GPU is lost, too. */
zc_status zc_session_step_fill(const zc_session *session, size_t i, zc_step_info *out,
                               zc_diag *diag)
{
    zc_session *s = (zc_session *)(uintptr_t)session; /* for the flag that a thread is inside */
    if (!out) return zc_fail(diag, ZC_ERR_ARG, "out", "is NULL");
    ZC_TRY(occupy(s, ZC_SESSION_BUSY, diag));
    return zc_session_leave(s, give_step(s, i, out, diag), diag);
}

static void count_steps(const zc_program *p, zc_device_info *out)
{
    for (uint32_t i = 0; i < p->nsteps; i++) {
        const zc_pstep *step = &p->steps[i];
        if (zc_op_get(step->op)->flags & (ZC_OPF_VIEW | ZC_OPF_REGIONS)) continue;
        if (step->nchoices && out->kind == ZC_DEVICE_CUDA)
            out->gpu_steps++;
        else if (out->kind == ZC_DEVICE_CUDA && strcmp(step->why, ZC_WHY_SHAPES) == 0)
            out->shape_steps++;
        else
            out->cpu_steps++;
    }
}

static zc_status give_device(const zc_session *s, zc_device_info *out)
{
    zc_device_info own = {
        .kind = ZC_DEVICE_CPU, .name = "cpu", .fallback = s->fallback[0] ? s->fallback : NULL};
    if (s->gpu) zc_gpu_info(s, &own);
    count_steps(s->program, &own);
    return zc_sized_give(&own, sizeof own, ZC_SIZE_UPTO(zc_device_info, lost), out, NULL);
}

zc_status zc_session_device_fill(const zc_session *session, zc_device_info *out)
{
    zc_session *s = (zc_session *)(uintptr_t)session;
    if (!out) return ZC_ERR_ARG;
    ZC_TRY(occupy(s, ZC_SESSION_BUSY, NULL));
    return zc_session_leave(s, give_device(s, out), NULL);
}

uint64_t zc_session_memory(const zc_session *session)
{
    return session ? atomic_load_explicit(&session->memory, memory_order_relaxed) : 0;
}
