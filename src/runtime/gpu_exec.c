/* Issuing steps on the GPU. */
#include <stdlib.h>
#include <string.h>

#include "runtime/gpu.h"

/* ---- views ---- */

static bool may_alias(const zc_session *s, uint32_t in, uint32_t out)
{
    const zc_pvalue *from = &s->program->values[in];
    if (s->roots[in] == s->roots[out]) return true;
    /* A placed value's memory serves others after its last use; rooms, inputs and constants stay.
     */
    return from->kind != ZC_P_STEP || !from->planned;
}

static zc_status copy_view(zc_session *s, uint32_t in, uint32_t out, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    zc_device *d = &g->image->device;
    zc_tensor *t = &s->values[out];
    size_t bytes = 0;
    ZC_TRY(zc_gpu_to_device(s, in, diag));
    ZC_TRY(zc_gpu_shape(s, out, t->rank, t->dims, s->program->values[out].name, diag));
    if (zc_tensor_bytes(t, &bytes) && bytes)
        ZC_TRY(zc_device_check(d, d->cu.copy_within(g->at[out], g->at[in], bytes, g->stream),
                               s->program->values[out].name, diag));
    zc_gpu_wrote_device(s, out);
    return ZC_OK;
}

zc_status zc_gpu_view(zc_session *s, const zc_pstep *step, zc_diag *diag)
{
    uint32_t in = step->in[0], out = step->out[0];
    struct zc_gpu *g = s->gpu;
    const zc_pvalue *value = &s->program->values[out];
    bool placed = value->planned && s->roots[out] == out; /* an output with memory of its own */
    if (placed || !may_alias(s, in, out)) {
        if (!placed) return copy_view(s, in, out, diag);
        size_t bytes = 0;
        zc_device *d = &g->image->device;
        ZC_TRY(zc_gpu_to_device(s, in, diag));
        if (zc_tensor_bytes(&s->values[out], &bytes) && bytes)
            ZC_TRY(zc_device_check(d, d->cu.copy_within(g->at[out], g->at[in], bytes, g->stream),
                                   value->name, diag));
        zc_gpu_wrote_device(s, out);
        return ZC_OK;
    }
    s->values[out].data = s->values[in].data;
    g->at[out] = g->at[in];
    g->on_device[out] = g->on_device[in];
    return ZC_OK;
}

/* ---- kernels ---- */

static bool host_only(const zc_pstep *step, uint32_t i)
{
    return i < 64 && (zc_op_host_inputs(step->op) >> i & 1);
}

static zc_status bring_inputs(zc_session *s, const zc_pstep *step, zc_diag *diag)
{
    for (uint32_t i = 0; i < step->nin; i++)
        ZC_TRY(host_only(step, i) ? zc_gpu_to_host(s, step->in[i], diag)
                                  : zc_gpu_to_device(s, step->in[i], diag));
    return ZC_OK;
}

zc_status zc_gpu_bring_program_inputs(zc_session *s, zc_diag *diag)
{
    const zc_program *p = s->program;
    for (uint32_t n = 0; n < p->nsteps; n++) {
        const zc_pstep *step = &p->steps[n];
        for (uint32_t i = 0; step->nchoices && i < step->nin; i++) {
            uint32_t root = s->roots[step->in[i]];
            if (p->values[root].kind == ZC_P_INPUT && !host_only(step, i))
                ZC_TRY(zc_gpu_to_device(s, root, diag));
        }
    }
    return ZC_OK;
}

static const zc_pstep *own_step(const zc_session *s, const zc_pstep *step)
{
    return &s->gpu->image->program->steps[step - s->program->steps];
}

uint32_t zc_gpu_choice(const zc_session *s, const zc_pstep *step)
{
    const struct zc_gpu *g = s->gpu;
    const zc_pstep *own = own_step(s, step);
    uint32_t forced = g->forced ? g->forced[step - s->program->steps] : 0;
    if (forced) return forced - 1;
    return (uint32_t)(zc_program_choice(own, g->image->arch, s->dim_values) - own->choices);
}

static const zc_pchoice *choice_of(const zc_session *s, const zc_pstep *step)
{
    return &own_step(s, step)->choices[zc_gpu_choice(s, step)];
}

uint32_t zc_gpu_kernel(const zc_session *s, const zc_pstep *step)
{
    return choice_of(s, step)->kernel;
}

const char *zc_gpu_why(const zc_session *s, const zc_pstep *step)
{
    return choice_of(s, step)->why;
}

typedef struct resizing {
    zc_session *s;
    const zc_pstep *step;
    size_t pieces; /* of scratch memory asked for so far */
} resizing;

static zc_status more_scratch(void *user, size_t bytes, void **out, zc_diag *diag)
{
    resizing *r = user;
    struct zc_gpu *g = r->s->gpu;
    zc_gpu_room none = {0};
    if (r->pieces == g->pieces.len && !ZC_VEC_PUSH(&g->pieces, none))
        return zc_fail_nomem(diag, "device scratch memory", bytes);
    zc_gpu_room *piece = &g->pieces.data[r->pieces++];
    ZC_TRY(zc_gpu_room_fit(r->s, piece, bytes, diag));
    *out = (void *)(uintptr_t)piece->p;
    return ZC_OK;
}

static zc_status resize(void *user, int i, int rank, const int64_t *dims, zc_tensor *out,
                        zc_diag *diag)
{
    const resizing *r = user;
    uint32_t v = r->step->out[i];
    if (!v) return ZC_OK;
    ZC_TRY(zc_gpu_shape(r->s, v, rank, dims, r->step->name, diag));
    *out = r->s->values[v];
    out->data = (void *)(uintptr_t)r->s->gpu->at[v];
    return ZC_OK;
}

static void fill_launch(zc_session *s, const zc_pstep *step, zc_launch *l, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    const zc_pchoice *choice = choice_of(s, step);
    const zc_pkernel *kernel = &g->image->program->kernels[choice->kernel];
    zc_tensor *in = g->operands, *out = in + step->nin, *host = out + step->nout;
    int64_t *in_pitch = g->pitches, *out_pitch = in_pitch + step->nin;
    for (uint32_t i = 0; i < step->nin; i++) {
        in_pitch[i] = s->now->subviews[step->in[i]].pitch;
        host[i] = s->values[step->in[i]];
        in[i] = host[i];
        in[i].data = (void *)(uintptr_t)(host_only(step, i) ? 0 : g->at[step->in[i]]);
    }
    for (uint32_t i = 0; i < step->nout; i++) {
        out_pitch[i] = s->now->subviews[step->out[i]].pitch;
        out[i] = s->values[step->out[i]];
        out[i].data = (void *)(uintptr_t)g->at[step->out[i]];
    }
    *l = (zc_launch){.op = step->op,
                     .info = zc_op_get(step->op),
                     .attrs = step->attrs,
                     .nin = (int)step->nin,
                     .nout = (int)step->nout,
                     .in = in,
                     .out = out,
                     .host = host,
                     .in_pitch = in_pitch,
                     .out_pitch = out_pitch,
                     .fault = g->fault,
                     .step_id = (uint32_t)(step - s->program->steps) + 1,
                     .kernel = kernel,
                     .literals = choice->literals,
                     .nliterals = choice->nliterals,
                     .is_static = kernel->is_static,
                     .subject = step->name,
                     .diag = diag};
}

/* The old memory of steps is gone and there is no new: smaller shapes, which may fit, are measured
 * again. */
static void measure_again(zc_session *s)
{
    s->gpu->launcher.scratch_need = s->gpu->launcher.counters_need = 0;
    s->checked = false;
    zc_shapes_doubt(&s->shapes);
}

static zc_status grow_scratch(zc_session *s, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    zc_status status = zc_gpu_room_fit(s, &g->scratch, g->launcher.scratch_need, diag);
    g->launcher.scratch = g->scratch.p;
    g->launcher.scratch_bytes = g->scratch.cap;
    if (status != ZC_OK) measure_again(s);
    return status;
}

/* Zero here, once: kernels leave them so. */
static zc_status grow_counters(zc_session *s, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    zc_device *d = &g->image->device;
    g->launcher.counters_bytes = 0;
    zc_status status = zc_gpu_room_fit(s, &g->counters, g->launcher.counters_need, diag);
    if (status == ZC_OK)
        status = zc_device_check(d, d->cu.fill(g->counters.p, 0, g->counters.cap, g->stream),
                                 "counters", diag);
    if (status != ZC_OK) {
        measure_again(s);
        return status;
    }
    g->launcher.counters = g->counters.p;
    g->launcher.counters_bytes = g->counters.cap;
    return ZC_OK;
}

/* A step whose shapes are new is first issued dry, to learn how much memory of its own it takes. */
static zc_status measure(zc_session *s, const zc_pstep *step, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    zc_launch l;
    if (zc_op_get(step->op)->flags & ZC_OPF_DYNAMIC) return ZC_OK; /* grows as it goes */
    fill_launch(s, step, &l, diag);
    g->launcher.dry = true;
    zc_status status =
        zc_launcher_issue(&g->launcher, &g->image->kernels[zc_gpu_kernel(s, step)], &l);
    g->launcher.dry = false;
    if (status == ZC_OK && g->launcher.scratch_need > g->scratch.cap)
        status = grow_scratch(s, diag);
    if (status == ZC_OK && g->launcher.counters_need > g->launcher.counters_bytes)
        status = grow_counters(s, diag);
    return status;
}

zc_status zc_gpu_step(zc_session *s, const zc_pstep *step, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    resizing r = {.s = s, .step = step};
    zc_launch l;
    ZC_TRY(bring_inputs(s, step, diag));
    if (!s->checked || !s->program->values[step->out[0]].planned) ZC_TRY(measure(s, step, diag));
    fill_launch(s, step, &l, diag);
    g->launcher.resize = zc_op_get(step->op)->flags & ZC_OPF_DYNAMIC ? resize : NULL;
    g->launcher.more_scratch = more_scratch;
    g->launcher.user = &r;
    ZC_TRY(zc_launcher_issue(&g->launcher, &g->image->kernels[zc_gpu_kernel(s, step)], &l));
    for (uint32_t i = 0; i < step->nout; i++)
        if (step->out[i]) zc_gpu_wrote_device(s, step->out[i]);
    return ZC_OK;
}

/* ---- the end of a run ---- */

static zc_status report(zc_session *s, zc_diag *diag)
{
    zc_fault_word f = *s->gpu->fault;
    *s->gpu->fault = (zc_fault_word){0};
    const char *name = f.step <= s->program->nsteps ? s->program->steps[f.step - 1].name : NULL;
    if (f.code == ZC_FAULT_INDEX)
        return zc_fail(diag, ZC_ERR_INPUT, name, "index out of range (got %lld, need [%lld, %lld])",
                       f.got, f.low, f.high);
    return zc_fail(diag, ZC_ERR_INPUT, name, "value out of range (got %lld, need [%lld, %lld])",
                   f.got, f.low, f.high);
}

zc_status zc_gpu_wait(zc_session *s, zc_diag *diag)
{
    ZC_TRY(zc_gpu_sync(s, "waiting for the GPU", diag));
    return s->gpu->fault->step ? report(s, diag) : ZC_OK;
}

bool zc_gpu_idle(zc_session *s)
{
    struct zc_gpu *g = s->gpu;
    return g->image->device.cu.stream_query(g->stream) != ZC_CU_ERROR_NOT_READY;
}

void zc_gpu_settle(zc_session *s)
{
    struct zc_gpu *g = s->gpu;
    zc_device *d = &g->image->device;
    if (d->lost || zc_gpu_sync(s, "waiting for the GPU", NULL) != ZC_OK) return;
    *g->fault = (zc_fault_word){0};
}
