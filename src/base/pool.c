#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

/* How long a waiting thread spins before it sleeps: steps of a model follow one another within
 * microseconds, and waking a sleeper costs tens of them. */
#define SPINS 4000

struct zc_pool {
    int threads; /* with the caller */
    pthread_t *workers;
    int started;
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    atomic_uint epoch; /* counts jobs; a worker that sees a new one joins */
    atomic_bool stop;
    /* The job: written before epoch is raised, read by workers after they see it. */
    void (*fn)(void *arg, int i);
    void *arg;
    int n;
    atomic_int next;    /* index to claim */
    atomic_int working; /* workers that have not finished this job */
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
        int i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        if (i >= p->n) return;
        p->fn(p->arg, i);
    }
}

/* Waits for a job after `seen`; returns its number. */
static unsigned wait_job(zc_pool *p, unsigned seen)
{
    for (int spin = 0; spin < SPINS; spin++) {
        unsigned now = atomic_load_explicit(&p->epoch, memory_order_acquire);
        if (now != seen) return now;
        relax(spin);
    }
    pthread_mutex_lock(&p->lock);
    while (atomic_load_explicit(&p->epoch, memory_order_acquire) == seen)
        pthread_cond_wait(&p->wake, &p->lock);
    pthread_mutex_unlock(&p->lock);
    return atomic_load_explicit(&p->epoch, memory_order_acquire);
}

static void *worker(void *arg)
{
    zc_pool *p = arg;
    unsigned seen = 0;
    for (;;) {
        seen = wait_job(p, seen);
        if (atomic_load_explicit(&p->stop, memory_order_acquire)) return NULL;
        run_share(p);
        if (atomic_fetch_sub_explicit(&p->working, 1, memory_order_acq_rel) == 1) {
            pthread_mutex_lock(&p->lock);
            pthread_cond_signal(&p->done);
            pthread_mutex_unlock(&p->lock);
        }
    }
}

static void publish(zc_pool *p)
{
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add_explicit(&p->epoch, 1, memory_order_release);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

static void wait_done(zc_pool *p)
{
    for (int spin = 0; spin < SPINS; spin++) {
        if (atomic_load_explicit(&p->working, memory_order_acquire) == 0) return;
        relax(spin);
    }
    pthread_mutex_lock(&p->lock);
    while (atomic_load_explicit(&p->working, memory_order_acquire))
        pthread_cond_wait(&p->done, &p->lock);
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
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->working, pool->started, memory_order_relaxed);
    publish(pool);
    run_share(pool);
    wait_done(pool);
}

int zc_pool_threads(const zc_pool *pool)
{
    return pool ? pool->threads : 1;
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
    for (; p->started < threads - 1; p->started++) {
        if (pthread_create(&p->workers[p->started], NULL, worker, p) == 0) continue;
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
    atomic_store_explicit(&p->stop, true, memory_order_release);
    publish(p);
    for (int i = 0; i < p->started; i++) pthread_join(p->workers[i], NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p->workers);
    free(p);
}
