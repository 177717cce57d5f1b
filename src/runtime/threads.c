#include "runtime/threads.h"

#include <sched.h>
#include <stdlib.h>

#include "base/gate.h"
#include "base/sized.h"
#include "cpu/dnnl.h"

/* ---- threads of the caller's ---- */

struct zc_threads {
    zc_crew *crew;
};

zc_status zc_threads_check(int threads, zc_diag *diag)
{
    if (threads >= 0 && threads <= ZC_THREADS_MAX) return ZC_OK;
    return zc_fail(diag, ZC_ERR_ARG, "threads", "out of range (got %d, need 0 to %d)", threads,
                   ZC_THREADS_MAX);
}

static int default_threads(void)
{
    const int cpus = zc_usable_cpus();
    return cpus < ZC_THREADS_MAX ? cpus : ZC_THREADS_MAX;
}

static zc_status check(const zc_threads_params *p, zc_diag *diag)
{
    ZC_TRY(zc_threads_check(p->threads, diag));
    if (p->spin_us < ZC_SPIN_NONE || p->spin_us > ZC_SPIN_MAX)
        return zc_fail(diag, ZC_ERR_ARG, "spin_us", "out of range (got %d, need %d to %d)",
                       p->spin_us, ZC_SPIN_NONE, ZC_SPIN_MAX);
    if (p->cpu_count && !p->cpus) return zc_fail(diag, ZC_ERR_ARG, "cpus", "is NULL");
    for (size_t i = 0; i < p->cpu_count; i++)
        if (p->cpus[i] < 0 || p->cpus[i] >= CPU_SETSIZE)
            return zc_fail(diag, ZC_ERR_ARG, "cpus", "out of range (got %d, need 0 to %d)",
                           p->cpus[i], CPU_SETSIZE - 1);
    return ZC_OK;
}

static int spin_us(int given)
{
    if (given == 0) return ZC_SPIN_US;
    return given == ZC_SPIN_NONE ? 0 : given;
}

static zc_status create(const zc_threads_params *params, zc_crew **out, zc_diag *diag)
{
    zc_threads_params own = {.size = sizeof own};
    if (params)
        ZC_TRY(zc_sized_take(params, ZC_SIZE_UPTO(zc_threads_params, cpu_count), &own, sizeof own,
                             "params", diag));
    ZC_TRY(check(&own, diag));
    const zc_crew_options options = {.threads = own.threads ? own.threads : default_threads(),
                                     .spin_us = spin_us(own.spin_us),
                                     .cpus = own.cpus,
                                     .ncpus = own.cpu_count,
                                     .prepare = zc_dnnl_prepare_worker};
    return zc_crew_create(&options, out, diag);
}

zc_status zc_threads_create(const zc_threads_params *params, zc_threads **out, zc_diag *diag)
{
    if (!out) return zc_fail(diag, ZC_ERR_ARG, "out", "is NULL");
    *out = NULL;
    zc_threads *t = zc_calloc(1, sizeof *t);
    if (!t) return zc_fail_nomem(diag, "threads", sizeof *t);
    zc_status status = create(params, &t->crew, diag);
    if (status == ZC_OK)
        *out = t;
    else
        free(t);
    return status;
}

void zc_threads_destroy(zc_threads **threads)
{
    if (!threads || !*threads) return;
    zc_crew_release(&(*threads)->crew);
    free(*threads);
    *threads = NULL;
}

/* ---- threads of the plan's ---- */

static bool lock(zc_plan *plan)
{
    const bool inside = zc_gate_enter(ZC_GATE_ONEDNN) == ZC_OK;
    pthread_mutex_lock(&plan->crew_lock);
    return inside;
}

static void unlock(zc_plan *plan, bool inside)
{
    pthread_mutex_unlock(&plan->crew_lock);
    if (inside) zc_gate_leave(ZC_GATE_ONEDNN);
}

/* A parent process's crew is of no use here, and stays as it is. */
static zc_status find_crew(zc_plan *plan, int threads, zc_diag *diag)
{
    if (plan->crew && zc_crew_is_own(plan->crew)) return zc_crew_grow(plan->crew, threads, diag);
    const int cpus = default_threads();
    const zc_crew_options options = {.threads = threads < cpus ? threads : cpus,
                                     .most = cpus,
                                     .spin_us = ZC_SPIN_US,
                                     .prepare = zc_dnnl_prepare_worker};
    plan->crew_users = 0;
    return zc_crew_create(&options, &plan->crew, diag);
}

zc_status zc_plan_enter_crew(zc_plan *plan, int threads, zc_crew **out, zc_diag *diag)
{
    const bool inside = lock(plan);
    zc_status status = find_crew(plan, threads, diag);
    if (status == ZC_OK) {
        plan->crew_users++;
        zc_crew_retain(*out = plan->crew);
    }
    unlock(plan, inside);
    return status;
}

void zc_plan_leave_crew(zc_plan *plan, zc_crew *crew)
{
    zc_crew *last = NULL;
    const bool inside = lock(plan);
    if (--plan->crew_users == 0) {
        last = plan->crew;
        plan->crew = NULL;
    }
    unlock(plan, inside);
    zc_crew_release(&last);
    zc_crew_release(&crew);
}

/* ---- a session's ---- */

static zc_status join_shared(zc_session *s, const zc_session_params *given, zc_diag *diag)
{
    zc_crew *crew = given->shared->crew;
    if (!zc_crew_is_own(crew))
        return zc_fail(diag, ZC_ERR_FORKED, "shared",
                       "was created before fork() in another process");
    return zc_pool_join(crew, given->threads ? given->threads : zc_crew_threads(crew), &s->pool,
                        diag);
}

zc_status zc_session_join_threads(zc_session *s, const zc_session_params *given, zc_diag *diag)
{
    if (given->shared) return join_shared(s, given, diag);
    const int threads = given->threads ? given->threads : default_threads();
    if (threads == 1) return zc_pool_create(1, &s->pool, diag);
    ZC_TRY(zc_plan_enter_crew(s->plan, threads, &s->crew, diag));
    return zc_pool_join(s->crew, threads, &s->pool, diag);
}

void zc_session_leave_threads(zc_session *s)
{
    zc_pool_destroy(&s->pool);
    if (s->crew) zc_plan_leave_crew(s->plan, s->crew);
    s->crew = NULL;
}
