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

static bool has_kernels(const zc_session *s, uint32_t i)
{
    return s->program->steps[s->program->blocks[0].steps[i]].nchoices != 0;
}

static zc_status make_room(zc_session *s, zc_diag *diag)
{
    enum { TURNS_MOST = 8 };
    zc_gpu_stamped *t = &s->gpu->stamped;
    const size_t n = step_count(s) ? step_count(s) : 1;
    uint32_t kernels = 0;
    t->read = zc_calloc(n, sizeof *t->read);
    t->spans = zc_calloc(n, sizeof *t->spans);
    t->order = zc_calloc(n, sizeof *t->order);
    if (!t->read || !t->spans || !t->order) return zc_fail_nomem(diag, "profile", n);
    for (uint32_t i = 0; i < step_count(s); i++) {
        t->order[i] = kernels;
        kernels += has_kernels(s, i);
    }
    t->turns = kernels < 1 ? 1 : kernels < TURNS_MOST ? kernels : TURNS_MOST;
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
    free(g->stamped.order);
    g->events = NULL;
    g->step_ms = NULL;
    g->stamped.read = NULL;
    g->stamped.spans = NULL;
    g->stamped.order = NULL;
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
        ZC_TRY(zc_exec_step(s, &s->program->steps[top->steps[i]], diag));
    }
    ZC_TRY(mark(s, top->nsteps, diag));
    ZC_TRY(zc_gpu_wait(s, diag));
    for (uint32_t i = 0; i < top->nsteps; i++)
        ZC_TRY(between(s, i, i + 1, &s->gpu->step_ms[i], diag));
    return ZC_OK;
}

/* ---- as they run, by what their kernels note ---- */

void zc_gpu_stamp(zc_session *s, uint32_t i)
{
    struct zc_gpu *g = s->gpu;
    const zc_gpu_stamped *t = &g->stamped;
    if (!t->read) return;
    const bool notes = t->order[i] % t->turns == t->turn || (t->order[i] + 1) % t->turns == t->turn;
    g->launcher.stamps = notes ? t->room.p + i * sizeof(zc_stamps) : 0;
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

/* Begin and end since the end of the kernels in front, in microseconds; since its own begin where
 * there are none. */
static void take(const zc_gpu_stamped *t, uint32_t i, const zc_stamps *front, zc_step_span *out)
{
    uint64_t begin, end, since, none;
    *out = (zc_step_span){0};
    if (!zc_stamps_read(&t->read[i], &begin, &end)) return;
    if (!front || !zc_stamps_read(front, &none, &since)) since = begin;
    out->begin_us = (double)(int64_t)(begin - since) * 1e-3;
    out->end_us = (double)(int64_t)(end - since) * 1e-3;
    if (out->end_us < out->begin_us) out->end_us = out->begin_us;
}

static void take_turn(zc_session *s)
{
    const zc_gpu_stamped *t = &s->gpu->stamped;
    const zc_stamps *front = NULL;
    for (uint32_t i = 0; i < step_count(s); i++) {
        if (!has_kernels(s, i)) continue;
        if (t->order[i] % t->turns == t->turn) take(t, i, front, &t->spans[i]);
        front = &t->read[i];
    }
}

/* A step's time is that by which it ended later than the one in front: together they make the run.
 */
static void follow(zc_session *s)
{
    struct zc_gpu *g = s->gpu;
    double before = 0;
    for (uint32_t i = 0; i < step_count(s); i++) {
        zc_step_span *t = &g->stamped.spans[i];
        const double begin = t->begin_us, end = t->end_us > 0 ? t->end_us : 0;
        *t = (zc_step_span){.begin_us = before + begin, .end_us = before + t->end_us};
        if (begin > 0)
            t->gap_us = begin;
        else
            t->overlap_us = (t->end_us < before ? t->end_us : before) - t->begin_us;
        g->step_ms[i] = (float)(end * 1e-3);
        before += end;
    }
}

/* A kernel whose end is noted holds up the next one, by some 0.5 us: in each turn few steps' are,
 * those that are taken and the ones in front of them. */
static zc_status run_stamped(zc_session *s, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    zc_gpu_stamped *t = &g->stamped;
    const int64_t start = zc_clock_ns();
    int64_t timed = 0;
    float sum = 0, ms = 0;
    memset(t->spans, 0, step_count(s) * sizeof *t->spans);
    for (t->turn = 0; t->turn < t->turns; t->turn++) {
        ZC_TRY(run_noting(s, diag)); /* records the graph anew */
        timed -= zc_clock_ns();
        ZC_TRY(run_noting(s, diag));
        timed += zc_clock_ns();
        ZC_TRY(read_stamps(s, diag));
        ZC_TRY(between(s, 0, step_count(s), &ms, diag));
        take_turn(s);
        sum += ms;
    }
    t->turn = 0;
    t->extra_us = ((double)(zc_clock_ns() - start) - (double)timed / t->turns) * 1e-3;
    g->run_ms = sum / (float)t->turns;
    follow(s);
    return ZC_OK;
}

zc_status zc_gpu_profile_run(zc_session *s, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    ZC_TRY(zc_gpu_bring_program_inputs(s, diag));
    if (g->stamped.read) return run_stamped(s, diag);
    ZC_TRY(run_apart(s, diag));
    return between(s, 0, step_count(s), &g->run_ms, diag);
}
