/* How long each step takes on the device. */
#include <stdlib.h>

#include "runtime/gpu.h"

static uint32_t step_count(const zc_session *s)
{
    return s->program->blocks[0].nsteps;
}

zc_status zc_gpu_profile_create(zc_session *s, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    zc_device *d = &g->image->device;
    g->events = zc_calloc(step_count(s) + 1, sizeof *g->events);
    g->step_ms = zc_calloc(step_count(s) + 1, sizeof *g->step_ms);
    if (!g->events || !g->step_ms) return zc_fail_nomem(diag, "profile", step_count(s));
    ZC_TRY(zc_gpu_enter(s, diag));
    zc_status status = ZC_OK;
    for (uint32_t i = 0; status == ZC_OK && i <= step_count(s); i++)
        status = zc_device_check(d, d->cu.event_create(&g->events[i], 0), "cuEventCreate", diag);
    zc_gpu_leave(s);
    return status;
}

void zc_gpu_profile_destroy(zc_session *s)
{
    struct zc_gpu *g = s->gpu;
    zc_device *d = &g->image->device;
    for (uint32_t i = 0; g->events && i <= step_count(s); i++)
        if (g->events[i] && !d->lost) (void)d->cu.event_destroy(g->events[i]);
    free(g->events);
    free(g->step_ms);
    g->events = NULL;
    g->step_ms = NULL;
}

static zc_status mark(zc_session *s, uint32_t i, zc_diag *diag)
{
    zc_device *d = &s->gpu->image->device;
    return zc_device_check(d, d->cu.event_record(s->gpu->events[i], s->gpu->stream),
                           "cuEventRecord", diag);
}

zc_status zc_gpu_profile_run(zc_session *s, zc_diag *diag)
{
    const zc_pblock *top = &s->program->blocks[0];
    struct zc_gpu *g = s->gpu;
    zc_device *d = &g->image->device;
    ZC_TRY(zc_gpu_bring_program_inputs(s, diag));
    for (uint32_t i = 0; i < top->nsteps; i++) {
        ZC_TRY(mark(s, i, diag));
        ZC_TRY(zc_exec_step(s, &s->program->steps[top->steps[i]], diag));
    }
    ZC_TRY(mark(s, top->nsteps, diag));
    ZC_TRY(zc_gpu_wait(s, diag));
    for (uint32_t i = 0; i < top->nsteps; i++)
        ZC_TRY(zc_device_check(d, d->cu.event_ms(&g->step_ms[i], g->events[i], g->events[i + 1]),
                               "cuEventElapsedTime", diag));
    return ZC_OK;
}
