/* zc_session_profile: times of steps over several runs. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/sized.h"
#include "runtime/gpu.h"

enum { WARM_RUNS = 2, LEAST_RUNS = 5, MOST_RUNS = 200 };

static size_t step_count(const zc_session *s)
{
    return s->program->blocks[0].nsteps;
}

void zc_profiled_free(zc_session *s)
{
    free(s->profiled.us);
    free(s->profiled.steps);
    free(s->profiled.gap);
    free(s->profiled.overlap);
    s->profiled = (zc_profiled){0};
}

static zc_status take_params(const zc_profile_params *params, zc_profile_params *out, zc_diag *diag)
{
    *out = (zc_profile_params){.size = sizeof *out};
    if (params)
        ZC_TRY(zc_sized_take(params, ZC_SIZE_UPTO(zc_profile_params, most_runs), out, sizeof *out,
                             "params", diag));
    if (!(out->seconds >= 0) || isinf(out->seconds))
        return zc_fail(diag, ZC_ERR_ARG, "seconds", "is no time (need 0 or more)");
    if (!out->least_runs) out->least_runs = LEAST_RUNS;
    if (!out->most_runs) out->most_runs = out->least_runs > MOST_RUNS ? out->least_runs : MOST_RUNS;
    if (out->most_runs > ZC_PROFILE_RUNS_MAX || out->least_runs > out->most_runs)
        return zc_fail(diag, ZC_ERR_ARG, "most_runs", "out of range (got %zu, need %zu to %d)",
                       out->most_runs, out->least_runs, ZC_PROFILE_RUNS_MAX);
    return ZC_OK;
}

/* For the most runs that there may be, so that nothing is allocated between them. */
static zc_status make_room(zc_session *s, size_t most, zc_diag *diag)
{
    zc_profiled *p = &s->profiled;
    const size_t steps = step_count(s) ? step_count(s) : 1;
    size_t count;
    zc_profiled_free(s);
    if (!zc_mul_size(steps, most, &count)) return zc_fail_nomem(diag, "times of steps", SIZE_MAX);
    *p = (zc_profiled){.us = zc_calloc(count, sizeof *p->us),
                       .most = most,
                       .steps = zc_calloc(steps, sizeof *p->steps),
                       .gap = zc_calloc(steps, sizeof *p->gap),
                       .overlap = zc_calloc(steps, sizeof *p->overlap)};
    if (!p->us || !p->steps || !p->gap || !p->overlap)
        return zc_fail_nomem(diag, "times of steps", count);
    p->bytes = count * sizeof *p->us + steps * (sizeof *p->steps + 2 * sizeof *p->gap);
    return ZC_OK;
}

static bool is_stamped(const zc_session *s)
{
    return s->gpu && s->gpu->image->stamped;
}

static zc_status run_timed(zc_session *s, double *us, zc_diag *diag)
{
    const int64_t start = zc_clock_ns();
    ZC_TRY(zc_session_run_now(s, true, diag));
    *us = (double)(zc_clock_ns() - start) * 1e-3;
    return ZC_OK;
}

/* Of the run that has ended; returns what its steps took. */
static double take_steps(zc_session *s, size_t run)
{
    zc_profiled *p = &s->profiled;
    double sum = 0;
    for (size_t i = 0; i < step_count(s); i++) {
        sum += p->us[i * p->most + run] = zc_session_step_us(s, i);
        if (!is_stamped(s)) continue;
        p->gap[i] += s->gpu->stamped.spans[i].gap_us;
        p->overlap[i] += s->gpu->stamped.spans[i].overlap_us;
    }
    return sum;
}

/* By run, `most` each: its time, how much of it is in steps, and its time on the device. */
typedef struct series {
    double *runs, *shares, *device;
} series;

static zc_status measure(zc_session *s, const zc_profile_params *params, const series *to,
                         zc_diag *diag)
{
    zc_profiled *p = &s->profiled;
    double us;
    size_t n = 0;
    for (int i = 0; i < WARM_RUNS; i++) ZC_TRY(run_timed(s, &us, diag));
    const int64_t begin = zc_clock_ns();
    while (n < params->least_runs ||
           (n < params->most_runs && (double)(zc_clock_ns() - begin) * 1e-9 < params->seconds)) {
        ZC_TRY(run_timed(s, &to->runs[n], diag));
        to->shares[n] = take_steps(s, n) / to->runs[n];
        to->device[n] = s->gpu ? (double)s->gpu->run_ms * 1e3 : 0;
        n++;
    }
    p->runs = n;
    return ZC_OK;
}

/* A coarse clock's readings have the right mean alone. */
static bool sum_up_step(const zc_session *s, size_t i, zc_interval *out)
{
    const zc_profiled *p = &s->profiled;
    const double *us = p->us + i * p->most;
    if (!is_stamped(s)) return zc_median_of(us, p->runs, out);
    *out = zc_mean(us, p->runs);
    return true;
}

static zc_status sum_up(zc_session *s, const series *of, zc_profile_info *out, zc_diag *diag)
{
    zc_profiled *p = &s->profiled;
    zc_interval run, share, device;
    bool good = zc_median_of(of->runs, p->runs, &run) &&
                zc_median_of(of->shares, p->runs, &share) &&
                zc_median_of(of->device, p->runs, &device);
    *out = (zc_profile_info){.runs = p->runs, .steps = step_count(s)};
    for (size_t i = 0; good && i < step_count(s); i++) {
        good = sum_up_step(s, i, &p->steps[i]);
        out->steps_us += p->steps[i].mid;
    }
    if (!good) return zc_fail_nomem(diag, "times of runs", p->runs);
    out->run_us = run.mid;
    out->run_low_us = run.low;
    out->run_high_us = run.high;
    out->share = share.mid;
    out->device_us = device.mid;
    return ZC_OK;
}

static zc_status profile(zc_session *s, const zc_profile_params *params, zc_profile_info *out,
                         zc_diag *diag)
{
    const size_t most = params->most_runs;
    if (!s->step_us && !(s->gpu && s->gpu->step_ms))
        return zc_fail(diag, ZC_ERR_ARG, "session",
                       "was created without zc_session_params.profile");
    ZC_TRY(make_room(s, most, diag));
    double *all = zc_calloc(3 * most, sizeof *all);
    zc_status status = ZC_ERR_NOMEM;
    if (all) {
        const series of = {all, all + most, all + 2 * most};
        status = measure(s, params, &of, diag);
        if (status == ZC_OK) status = sum_up(s, &of, out, diag);
    } else {
        (void)zc_fail_nomem(diag, "times of runs", most);
    }
    if (status != ZC_OK) zc_profiled_free(s);
    free(all);
    return status;
}

static zc_status give(const zc_profile_info *own, zc_profile_info *out, zc_diag *diag)
{
    return zc_sized_give(own, sizeof *own, ZC_SIZE_UPTO(zc_profile_info, share), out, diag);
}

zc_status zc_session_profile_fill(zc_session *session, const zc_profile_params *params,
                                  zc_profile_info *out, zc_diag *diag)
{
    zc_profile_params given;
    zc_profile_info own = {0};
    if (!out) return zc_fail(diag, ZC_ERR_ARG, "out", "is NULL");
    ZC_TRY(give(&own, out, diag)); /* a wrong size is told before anything runs */
    ZC_TRY(take_params(params, &given, diag));
    ZC_TRY(zc_session_enter_run(session, diag));
    zc_status status = profile(session, &given, &own, diag);
    ZC_TRY(zc_session_leave_run(session, status, diag));
    return give(&own, out, diag);
}

static zc_status give_times(const zc_session *s, size_t i, const double **us, size_t *n,
                            zc_diag *diag)
{
    if (i >= step_count(s))
        return zc_fail(diag, ZC_ERR_ARG, "i", "no such step (got %zu, need < %zu)", i,
                       step_count(s));
    if (!s->profiled.runs)
        return zc_fail(diag, ZC_ERR_ARG, "session", "no zc_session_profile has measured it");
    *us = s->profiled.us + i * s->profiled.most;
    *n = s->profiled.runs;
    return ZC_OK;
}

zc_status zc_session_step_times(const zc_session *session, size_t i, const double **us, size_t *n,
                                zc_diag *diag)
{
    zc_session *s = (zc_session *)(uintptr_t)session; /* for the flag that a thread is inside */
    if (!us || !n) return zc_fail(diag, ZC_ERR_ARG, us ? "n" : "us", "is NULL");
    ZC_TRY(zc_session_enter(s, diag));
    return zc_session_leave(s, give_times(s, i, us, n, diag), diag);
}
