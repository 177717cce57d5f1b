/* Runs: at once, enqueued, waited for; and what counts them. */
#include <unistd.h>

#include "base/clock.h"
#include "runtime/background.h"
#include "runtime/gpu.h"
#include "runtime/session.h"

/* Points inputs, and what shares their or an output's memory, at this run's memory. */
static void point_values(zc_session *s)
{
    const zc_program *p = s->program;
    const zc_pblock *top = &p->blocks[0];
    for (uint32_t i = 0; i < top->nparams; i++) s->values[top->params[i]] = s->inputs[i].value;
    if (s->gpu) {
        zc_gpu_point(s);
        return;
    }
    for (uint32_t v = 1; v < p->nvalues; v++)
        if (s->roots[v] != v) s->values[v].data = s->values[s->roots[v]].data;
}

static zc_status run_steps(zc_session *s, zc_diag *diag)
{
    ZC_TRY(s->gpu ? zc_gpu_run(s, diag) : zc_exec_block(s, 0, diag));
    s->checked = s->now->checked = true;
    return zc_session_deliver(s, diag);
}

static zc_status run(zc_session *s, zc_diag *diag)
{
    ZC_TRY(zc_session_check_io(s, diag));
    zc_exec_begin(s);
    if (!s->prepared) ZC_TRY(zc_session_make_ready(s, diag));
    ZC_TRY(zc_session_root_outputs(s, diag));
    point_values(s);
    zc_status status = run_steps(s, diag);
    if (status != ZC_OK && s->gpu) zc_gpu_settle(s);
    return status;
}

zc_status zc_session_run_now(zc_session *s, bool wait, zc_diag *diag)
{
    if (!s->gpu) return run(s, diag);
    ZC_TRY(zc_gpu_enter(s, diag));
    zc_status status = run(s, diag);
    if (status == ZC_OK && wait) status = zc_gpu_wait(s, diag);
    zc_gpu_leave(s);
    return status;
}

static void count_states(zc_session *s)
{
    s->state_bytes = 0;
    for (size_t i = 0; i < 3 * (size_t)s->program->nsteps; i++)
        s->state_bytes += s->states[i].bytes;
}

zc_status zc_session_leave_run(zc_session *s, zc_status status, zc_diag *diag)
{
    if (status != ZC_OK) {
        zc_session_forget_results(s);
        s->prepared = false; /* a value that is kept for later runs may be half of one */
    }
    count_states(s);
    return zc_session_leave(s, status, diag);
}

/* What is on the stream ends with the run that failed. */
static void count_ended(zc_session *s, zc_status status)
{
    zc_counts *counts = &s->plan->counts;
    if (status != ZC_OK)
        zc_count_runs(counts, status, 1, 0);
    else if (s->in_flight)
        zc_count_runs(counts, ZC_OK, s->in_flight, (uint64_t)(zc_clock_ns() - s->began));
    s->in_flight = 0;
}

zc_status zc_session_end_run(zc_session *s, zc_status status, zc_diag *diag)
{
    s->in_flight++;
    count_ended(s, status);
    return zc_session_leave_run(s, status, diag);
}

/* Enters a run that a caller asks for. */
static zc_status begin_run(zc_session *s, zc_diag *diag)
{
    zc_status status = zc_session_enter_run(s, diag);
    if (status == ZC_OK)
        s->began = zc_clock_ns();
    else if (s)
        zc_count_runs(&s->plan->counts, status, 1, 0);
    return status;
}

zc_status zc_session_run(zc_session *session, zc_diag *diag)
{
    ZC_TRY(begin_run(session, diag));
    return zc_session_end_run(session, zc_session_run_now(session, true, diag), diag);
}

/* What can be told at once is not left to the wait. */
static zc_status enqueue_on_cpu(zc_session *s, zc_diag *diag)
{
    zc_status status = zc_session_check_io(s, diag);
    if (status == ZC_OK) status = zc_background_start(s, diag);
    if (status != ZC_OK) return zc_session_end_run(s, status, diag);
    zc_diag_lend_file(diag, NULL); /* the session is the other thread's now */
    return ZC_OK;
}

zc_status zc_session_enqueue(zc_session *session, zc_diag *diag)
{
    ZC_TRY(begin_run(session, diag));
    if (!session->gpu) return enqueue_on_cpu(session, diag);
    zc_status status = zc_session_run_now(session, false, diag);
    if (status != ZC_OK) return zc_session_end_run(session, status, diag);
    session->in_flight++;
    return zc_session_leave_run(session, ZC_OK, diag);
}

static zc_status settle_gpu(zc_session *s, bool wait, bool *done, zc_diag *diag)
{
    if (!s->gpu) return ZC_OK;
    ZC_TRY(zc_gpu_enter(s, diag));
    *done = wait || zc_gpu_idle(s);
    zc_status status = *done ? zc_gpu_wait(s, diag) : ZC_OK;
    zc_gpu_leave(s);
    if (*done) count_ended(s, status);
    return status;
}

static zc_status settle(zc_session *s, bool wait, bool *done, zc_diag *diag)
{
    struct zc_background *b = s && s->pid == getpid() ? atomic_load(&s->background) : NULL;
    *done = true;
    if (b) return zc_background_settle(b, wait, done, diag);
    ZC_TRY(zc_session_enter(s, diag));
    return zc_session_leave_run(s, settle_gpu(s, wait, done, diag), diag);
}

zc_status zc_session_wait(zc_session *session, zc_diag *diag)
{
    bool done;
    return settle(session, true, &done, diag);
}

zc_status zc_session_poll(zc_session *session, bool *done, zc_diag *diag)
{
    if (!done) return zc_fail(diag, ZC_ERR_ARG, "done", "is NULL");
    return settle(session, false, done, diag);
}
