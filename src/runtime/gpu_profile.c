/* How long each step takes on the device. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernels/stamps.h"
#include "runtime/gpu.h"

static uint32_t step_count(const zc_session *s)
{
    return s->program->blocks[0].nsteps;
}

static zc_status make_room(zc_session *s, zc_diag *diag)
{
    zc_gpu_stamped *t = &s->gpu->stamped;
    const size_t n = step_count(s) ? step_count(s) : 1;
    t->read = zc_calloc(n, sizeof *t->read);
    t->spans = zc_calloc(n, sizeof *t->spans);
    if (!t->read || !t->spans) return zc_fail_nomem(diag, "profile", n);
    return zc_gpu_room_fit(s, &t->room, n * sizeof *t->read, diag);
}

zc_status zc_gpu_profile_create(zc_session *s, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    zc_device *d = &g->image->device;
    g->events = zc_calloc(step_count(s) + 1, sizeof *g->events);
    g->step_ms = zc_calloc(step_count(s) + 1, sizeof *g->step_ms);
    if (!g->events || !g->step_ms) return zc_fail_nomem(diag, "profile", step_count(s));
    ZC_TRY(zc_gpu_enter(s, diag));
    zc_status status = g->image->stamped ? make_room(s, diag) : ZC_OK;
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
    free(g->stamped.read);
    free(g->stamped.spans);
    g->events = NULL;
    g->step_ms = NULL;
    g->stamped.read = NULL;
    g->stamped.spans = NULL;
}

static zc_status mark(zc_session *s, uint32_t i, zc_diag *diag)
{
    zc_device *d = &s->gpu->image->device;
    return zc_device_check(d, d->cu.event_record(s->gpu->events[i], s->gpu->stream),
                           "cuEventRecord", diag);
}

static zc_status between(zc_session *s, uint32_t i, uint32_t k, float *ms, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    zc_device *d = &g->image->device;
    return zc_device_check(d, d->cu.event_ms(ms, g->events[i], g->events[k]), "cuEventElapsedTime",
                           diag);
}

/* ---- step by step ---- */

static zc_status run_apart(zc_session *s, zc_diag *diag)
{
    const zc_pblock *top = &s->program->blocks[0];
    for (uint32_t i = 0; i < top->nsteps; i++) {
        ZC_TRY(mark(s, i, diag));
        ZC_TRY(zc_exec_named(s, &s->program->steps[top->steps[i]], diag));
    }
    ZC_TRY(mark(s, top->nsteps, diag));
    ZC_TRY(zc_gpu_wait(s, diag));
    for (uint32_t i = 0; i < top->nsteps; i++)
        ZC_TRY(between(s, i, i + 1, &s->gpu->step_ms[i], diag));
    return ZC_OK;
}

/* ---- as they run, by what their kernels note ---- */

zc_status zc_gpu_stamp(zc_session *s, uint32_t i, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    const zc_pstep *step = &s->program->steps[s->program->blocks[0].steps[i]];
    if (!g->stamped.read) return ZC_OK;
    g->launcher.stamps = g->stamped.room.p + i * sizeof(zc_stamps);
    if (step->nchoices || zc_op_get(step->op)->flags & ZC_OPF_VIEW) return ZC_OK;
    return zc_launcher_close(&g->launcher, diag);
}

static zc_status read_stamps(zc_session *s, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    zc_device *d = &g->image->device;
    ZC_TRY(zc_device_check(d,
                           d->cu.copy_out(g->stamped.read, g->stamped.room.p,
                                          step_count(s) * sizeof *g->stamped.read, g->stream),
                           "profile", diag));
    return zc_gpu_sync(s, "profile", diag);
}

static zc_status run_noting(zc_session *s, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    zc_device *d = &g->image->device;
    ZC_TRY(zc_device_check(
        d, d->cu.fill(g->stamped.room.p, 0xFF, step_count(s) * sizeof *g->stamped.read, g->stream),
        "profile", diag));
    ZC_TRY(mark(s, 0, diag));
    ZC_TRY(zc_gpu_run_block(s, diag));
    ZC_TRY(mark(s, step_count(s), diag));
    return zc_gpu_wait(s, diag);
}

static double us_since(uint64_t since, uint64_t at)
{
    return (double)(int64_t)(at - since) * 1e-3;
}

/* A step's time is that by which it ended later than the one in front: together they make the run.
 */
static void follow(zc_session *s)
{
    const zc_stamps *read = s->gpu->stamped.read;
    uint64_t since = ZC_STAMP_NONE;
    double before = 0;
    for (uint32_t i = 0; i < step_count(s); i++) {
        zc_step_span *t = &s->gpu->stamped.spans[i];
        const uint64_t ended = zc_stamps_end(read + i, step_count(s) - i);
        *t = (zc_step_span){0};
        s->gpu->step_ms[i] = 0;
        if (ended == ZC_STAMP_NONE) continue;
        if (since == ZC_STAMP_NONE) since = read[i].begin;
        const double begin = us_since(since, read[i].begin), end = us_since(since, ended);
        *t = (zc_step_span){.begin_us = begin, .end_us = end};
        if (begin > before)
            t->gap_us = begin - before;
        else
            t->overlap_us = (end < before ? end : before) - begin;
        if (end <= before) continue;
        s->gpu->step_ms[i] = (float)((end - before) * 1e-3);
        before = end;
    }
}

static zc_status run_stamped(zc_session *s, zc_diag *diag)
{
    ZC_TRY(run_noting(s, diag));
    ZC_TRY(read_stamps(s, diag));
    follow(s);
    return between(s, 0, step_count(s), &s->gpu->run_ms, diag);
}

zc_status zc_gpu_profile_run(zc_session *s, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    ZC_TRY(zc_gpu_bring_program_inputs(s, diag));
    if (g->stamped.read) return run_stamped(s, diag);
    ZC_TRY(run_apart(s, diag));
    return between(s, 0, step_count(s), &g->run_ms, diag);
}
