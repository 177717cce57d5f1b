#include "base/pool.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/thread.h"

/* How long a waiting thread spins before it sleeps: steps of a model follow one another within
 * microseconds, and waking a sleeper costs tens of them. */
#define SPINS 4000

/* The job's state is one number: its serial number in the high half, then whether workers may still
 * join, then how many are inside. The caller closes a job once all its indices are claimed, so it
 * waits only for workers that joined, never for one that the system has not run yet. */
#define OPEN      ((uint64_t)1 << 31)
#define INSIDE    (OPEN - 1)
#define SERIAL(s) ((s) >> 32)

struct zc_pool {
    int threads; /* with the caller */
    pthread_t *workers;
    int started;
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    _Atomic uint64_t state;
    atomic_int sleepers;       /* workers that wait on `wake` or are about to */
    atomic_bool caller_sleeps; /* likewise for `done` */
    atomic_bool stop;
    /* The job: written while nobody is inside, read by those inside. */
    void (*fn)(void *arg, int i);
    void *arg;
    int n;
    atomic_uint next; /* index to claim */
};

static void relax(int spin)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
    if (spin % 256 == 255) sched_yield();
}

static void run_share(zc_pool *p)
{
    for (;;) {
        unsigned i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        if (i >= (unsigned)p->n) return;
        p->fn(p->arg, (int)i);
    }
}

/* ---- workers ---- */

/* Waits for a job after `seen`; returns the state that showed it. */
static uint64_t wait_job(zc_pool *p, uint64_t seen)
{
    for (int spin = 0; spin < SPINS; spin++) {
        uint64_t s = atomic_load(&p->state);
        if (SERIAL(s) != seen) return s;
        relax(spin);
    }
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->sleepers, 1);
    uint64_t s;
    while (SERIAL(s = atomic_load(&p->state)) == seen) pthread_cond_wait(&p->wake, &p->lock);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->lock);
    return s;
}

/* Enters the job that state s showed, unless it has been closed since. */
static bool enter(zc_pool *p, uint64_t s)
{
    uint64_t serial = SERIAL(s);
    while (s & OPEN && SERIAL(s) == serial)
        if (atomic_compare_exchange_weak(&p->state, &s, s + 1)) return true;
    return false;
}

static void leave(zc_pool *p)
{
    uint64_t before = atomic_fetch_sub(&p->state, 1);
    if (before & OPEN || (before & INSIDE) != 1 || !atomic_load(&p->caller_sleeps)) return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_signal(&p->done);
    pthread_mutex_unlock(&p->lock);
}

static void *worker(void *arg)
{
    zc_pool *p = arg;
    uint64_t seen = 0;
    for (;;) {
        uint64_t s = wait_job(p, seen);
        seen = SERIAL(s);
        if (atomic_load(&p->stop)) return NULL;
        if (!enter(p, s)) continue;
        run_share(p);
        leave(p);
    }
}

/* ---- the caller ---- */

/* Starts the next job for up to `wanted` workers. Either this thread sees a sleeper here, or the
 * sleeper sees the new state before it waits. */
static void publish(zc_pool *p, int wanted)
{
    uint64_t serial = (SERIAL(atomic_load(&p->state)) + 1) & UINT32_MAX;
    atomic_store(&p->state, serial << 32 | OPEN);
    int sleepers = atomic_load(&p->sleepers);
    if (sleepers == 0) return;
    pthread_mutex_lock(&p->lock);
    if (wanted >= sleepers) pthread_cond_broadcast(&p->wake);
    for (int i = 0; wanted < sleepers && i < wanted; i++) pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

/* Lets nobody else in and waits for those inside. */
static void finish(zc_pool *p)
{
    uint64_t s = atomic_fetch_and(&p->state, ~OPEN);
    for (int spin = 0; spin < SPINS && s & INSIDE; spin++) {
        relax(spin);
        s = atomic_load(&p->state);
    }
    if (!(s & INSIDE)) return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->caller_sleeps, true);
    while (atomic_load(&p->state) & INSIDE) pthread_cond_wait(&p->done, &p->lock);
    atomic_store(&p->caller_sleeps, false);
    pthread_mutex_unlock(&p->lock);
}

void zc_pool_run(zc_pool *pool, int n, void (*fn)(void *arg, int i), void *arg)
{
    if (!pool || pool->started == 0 || n <= 1) {
        for (int i = 0; i < n; i++) fn(arg, i);
        return;
    }
    pool->fn = fn;
    pool->arg = arg;
    pool->n = n;
    atomic_store(&pool->next, 0);
    publish(pool, n - 1);
    run_share(pool);
    finish(pool);
}

int zc_pool_threads(const zc_pool *pool)
{
    return pool ? pool->threads : 1;
}

static bool start_workers(zc_pool *p)
{
    while (p->started < p->threads - 1 && zc_thread_start(&p->workers[p->started], worker, p))
        p->started++;
    return p->started == p->threads - 1;
}

zc_status zc_pool_create(int threads, zc_pool **out, zc_diag *diag)
{
    *out = NULL;
    if (threads < 1)
        return zc_fail(diag, ZC_ERR_ARG, "threads", "out of range (got %d, need >= 1)", threads);
    zc_pool *p = zc_calloc(1, sizeof *p);
    pthread_t *workers = zc_calloc((size_t)threads, sizeof *workers);
    if (!p || !workers) {
        free(p);
        free(workers);
        return zc_fail_nomem(diag, "threads", (size_t)threads * sizeof *workers);
    }
    p->threads = threads;
    p->workers = workers;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
    if (!start_workers(p)) {
        zc_pool_destroy(&p);
        return zc_fail(diag, ZC_ERR_LIMIT, "threads",
                       "the system refused to start another thread (asked for %d)", threads);
    }
    *out = p;
    return ZC_OK;
}

void zc_pool_destroy(zc_pool **pool)
{
    if (!pool || !*pool) return;
    zc_pool *p = *pool;
    *pool = NULL;
    atomic_store(&p->stop, true);
    publish(p, p->started);
    for (int i = 0; i < p->started; i++) pthread_join(p->workers[i], NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p->workers);
    free(p);
}
