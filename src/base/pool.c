#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

/* A job's state is one number: its serial number in the high half, then whether workers may still
 * join, then how many are inside. The caller closes a job once all its indices are claimed, so it
 * waits only for workers that joined, never for one that the system has not run yet. */
#define OPEN      ((uint64_t)1 << 31)
#define INSIDE    (OPEN - 1)
#define SERIAL(s) ((s) >> 32)

/* Jobs that workers can join at one time; the callers of more run theirs alone. */
enum { JOBS = 16, CACHE_LINE = 64 };

typedef struct job {
    _Alignas(CACHE_LINE) atomic_bool taken; /* by a caller */
    _Atomic uint64_t state;
    /* Written by the caller while nobody is inside, read by those inside. */
    void (*fn)(void *arg, int i);
    void *arg;
    int n;
    atomic_int helpers; /* workers that may be inside */
    atomic_uint next;   /* index to claim */
} job;

struct zc_crew {
    job jobs[JOBS];
    _Alignas(CACHE_LINE) atomic_uint posted; /* changes with every new job */
    atomic_int callers;                      /* threads inside zc_pool_run */
    atomic_int sleepers;                     /* workers that wait on `wake` or are about to */
    atomic_int sleeping_callers;             /* likewise for `done` */
    atomic_bool stop;
    atomic_int refs;
    pid_t pid;
    int cpus; /* that the process may use */
    int most; /* threads, with a caller */
    atomic_int started;
    int64_t spin_ns;
    pthread_t *workers;
    zc_status (*prepare)(void);
    int prepared; /* workers that came back from it */
    zc_status outcome;
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
};

struct zc_pool {
    zc_crew *crew;
    int threads;
};

int zc_usable_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    const int n = CPU_COUNT(&set);
    return n < 1 ? 1 : n;
}

/* ---- spinning ---- */

typedef struct spin {
    int n;
    int64_t end;
} spin;

/* Every CPU has a caller at work: who spins or helps would take it from one. */
static bool is_crowded(zc_crew *c)
{
    const int callers = atomic_load_explicit(&c->callers, memory_order_relaxed);
    return callers > 1 && callers >= c->cpus;
}

/* Is it worth looking again before going to sleep? */
static bool spins(zc_crew *c, spin *s)
{
    enum { LOOKS = 32, YIELD = 256 };
    if (s->n == 0) s->end = is_crowded(c) ? 0 : zc_clock_ns() + c->spin_ns;
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
    s->n++;
    if (s->n % YIELD == 0) sched_yield();
    return s->n % LOOKS != 0 ? s->end != 0 : zc_clock_ns() < s->end;
}

/* ---- workers ---- */

static void run_share(job *j)
{
    for (;;) {
        unsigned i = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed);
        if (i >= (unsigned)j->n) return;
        j->fn(j->arg, (int)i);
    }
}

/* Waits for jobs after `seen`; returns the number that showed them. */
static unsigned wait_jobs(zc_crew *c, unsigned seen)
{
    unsigned posted = seen;
    for (spin s = {0}; (posted = atomic_load(&c->posted)) == seen && spins(c, &s);) {
    }
    if (posted != seen) return posted;
    pthread_mutex_lock(&c->lock);
    atomic_fetch_add(&c->sleepers, 1);
    while ((posted = atomic_load(&c->posted)) == seen) pthread_cond_wait(&c->wake, &c->lock);
    atomic_fetch_sub(&c->sleepers, 1);
    pthread_mutex_unlock(&c->lock);
    return posted;
}

/* Enters the job unless it is closed or has help enough. */
static bool enter(job *j)
{
    uint64_t s = atomic_load(&j->state);
    const uint64_t serial = SERIAL(s);
    while (s & OPEN && SERIAL(s) == serial && (s & INSIDE) < (uint64_t)atomic_load(&j->helpers))
        if (atomic_compare_exchange_weak(&j->state, &s, s + 1)) return true;
    return false;
}

static void leave(zc_crew *c, job *j)
{
    const uint64_t before = atomic_fetch_sub(&j->state, 1);
    if (before & OPEN || (before & INSIDE) != 1 || !atomic_load(&c->sleeping_callers)) return;
    pthread_mutex_lock(&c->lock);
    pthread_cond_broadcast(&c->done);
    pthread_mutex_unlock(&c->lock);
}

static void help(zc_crew *c)
{
    for (int i = 0; i < JOBS; i++) {
        job *j = &c->jobs[i];
        if (!enter(j)) continue;
        run_share(j);
        leave(c, j);
    }
}

static void get_prepared(zc_crew *c)
{
    zc_status status = c->prepare();
    pthread_mutex_lock(&c->lock);
    if (status != ZC_OK) c->outcome = status;
    c->prepared++;
    pthread_cond_broadcast(&c->done);
    pthread_mutex_unlock(&c->lock);
}

static void *worker(void *arg)
{
    zc_crew *c = arg;
    if (c->prepare) get_prepared(c);
    for (unsigned seen = 0;;) {
        seen = wait_jobs(c, seen);
        if (atomic_load(&c->stop)) return NULL;
        help(c);
    }
}

/* ---- callers ---- */

/* Either this thread sees a sleeper here, or the sleeper sees the new number before it waits. */
static void wake(zc_crew *c, int wanted)
{
    atomic_fetch_add(&c->posted, 1);
    const int sleepers = atomic_load(&c->sleepers);
    if (sleepers == 0) return;
    pthread_mutex_lock(&c->lock);
    if (wanted >= sleepers) pthread_cond_broadcast(&c->wake);
    for (int i = 0; wanted < sleepers && i < wanted; i++) pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

/* Lets nobody else in and waits for those inside. */
static void finish(zc_crew *c, job *j)
{
    uint64_t s = atomic_fetch_and(&j->state, ~OPEN);
    for (spin turn = {0}; s & INSIDE && spins(c, &turn);) s = atomic_load(&j->state);
    if (!(s & INSIDE)) return;
    pthread_mutex_lock(&c->lock);
    atomic_fetch_add(&c->sleeping_callers, 1);
    while (atomic_load(&j->state) & INSIDE) pthread_cond_wait(&c->done, &c->lock);
    atomic_fetch_sub(&c->sleeping_callers, 1);
    pthread_mutex_unlock(&c->lock);
}

/* NULL: as many as can be joined have callers. */
static job *take_job(zc_crew *c)
{
    for (int i = 0; i < JOBS; i++) {
        job *j = &c->jobs[i];
        if (!atomic_load_explicit(&j->taken, memory_order_relaxed) &&
            !atomic_exchange(&j->taken, true))
            return j;
    }
    return NULL;
}

static void run_alone(int n, void (*fn)(void *arg, int i), void *arg)
{
    for (int i = 0; i < n; i++) fn(arg, i);
}

static void run_helped(zc_crew *c, job *j, int helpers)
{
    const uint64_t serial = (SERIAL(atomic_load(&j->state)) + 1) & UINT32_MAX;
    atomic_store(&j->helpers, helpers);
    atomic_store(&j->next, 0);
    atomic_store(&j->state, serial << 32 | OPEN);
    wake(c, helpers);
    run_share(j);
    finish(c, j);
}

void zc_pool_run(zc_pool *pool, int n, void (*fn)(void *arg, int i), void *arg)
{
    if (!pool || pool->threads == 1 ||
        atomic_load_explicit(&pool->crew->started, memory_order_relaxed) == 0 || n <= 1) {
        run_alone(n, fn, arg);
        return;
    }
    zc_crew *c = pool->crew;
    atomic_fetch_add(&c->callers, 1);
    job *j = is_crowded(c) ? NULL : take_job(c);
    if (j) {
        j->fn = fn;
        j->arg = arg;
        j->n = n;
        run_helped(c, j, (n < pool->threads ? n : pool->threads) - 1);
        atomic_store(&j->taken, false);
    } else {
        run_alone(n, fn, arg);
    }
    atomic_fetch_sub(&c->callers, 1);
}

int zc_pool_threads(const zc_pool *pool)
{
    return pool ? pool->threads : 1;
}

/* ---- life ---- */

/* Where the system refuses a CPU, the worker stays wherever it is: it is still right. */
static void bind_worker(const zc_crew_options *o, int i, pthread_t thread)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)o->cpus[(size_t)i % o->ncpus], &set);
    (void)pthread_setaffinity_np(thread, sizeof set, &set);
}

static zc_status await_prepared(zc_crew *c, zc_diag *diag)
{
    if (!c->prepare) return ZC_OK;
    pthread_mutex_lock(&c->lock);
    while (c->prepared < atomic_load(&c->started)) pthread_cond_wait(&c->done, &c->lock);
    zc_status status = c->outcome;
    c->outcome = ZC_OK;
    pthread_mutex_unlock(&c->lock);
    if (status == ZC_OK) return ZC_OK;
    return zc_fail(diag, status, "threads", "a new thread could not prepare itself");
}

zc_status zc_crew_grow(zc_crew *c, int threads, zc_diag *diag)
{
    if (threads > c->most) threads = c->most;
    for (int i = atomic_load(&c->started); i < threads - 1; i++) {
        if (!zc_thread_start(&c->workers[i], worker, c))
            return zc_fail(diag, ZC_ERR_LIMIT, "threads",
                           "the system refused to start another thread (asked for %d)", threads);
        atomic_store(&c->started, i + 1);
    }
    return await_prepared(c, diag);
}

zc_status zc_crew_create(const zc_crew_options *options, zc_crew **out, zc_diag *diag)
{
    const int threads = options->threads, most = options->most ? options->most : threads;
    *out = NULL;
    if (threads < 1)
        return zc_fail(diag, ZC_ERR_ARG, "threads", "out of range (got %d, need >= 1)", threads);
    zc_crew *c = aligned_alloc(CACHE_LINE, sizeof *c);
    pthread_t *workers = zc_calloc((size_t)most, sizeof *workers);
    if (!c || !workers) {
        free(c);
        free(workers);
        return zc_fail_nomem(diag, "threads", (size_t)most * sizeof *workers);
    }
    *c = (zc_crew){.pid = getpid(),
                   .cpus = zc_usable_cpus(),
                   .most = most,
                   .spin_ns = (int64_t)options->spin_us * 1000,
                   .workers = workers,
                   .prepare = options->prepare};
    atomic_init(&c->refs, 1);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wake, NULL);
    pthread_cond_init(&c->done, NULL);
    zc_status status = zc_crew_grow(c, threads, diag);
    if (status != ZC_OK) {
        zc_crew_release(&c);
        return status;
    }
    for (int i = 0; options->ncpus && i < threads - 1; i++) bind_worker(options, i, workers[i]);
    *out = c;
    return ZC_OK;
}

void zc_crew_retain(zc_crew *crew)
{
    atomic_fetch_add_explicit(&crew->refs, 1, memory_order_relaxed);
}

bool zc_crew_is_own(const zc_crew *crew)
{
    return crew->pid == getpid();
}

int zc_crew_threads(const zc_crew *crew)
{
    return atomic_load(&crew->started) + 1;
}

void zc_crew_release(zc_crew **crew)
{
    zc_crew *c = *crew;
    *crew = NULL;
    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1) return;
    if (!zc_crew_is_own(c)) return; /* its locks may be held by threads that are not here */
    atomic_store(&c->stop, true);
    wake(c, c->started);
    for (int i = 0; i < c->started; i++) pthread_join(c->workers[i], NULL);
    pthread_cond_destroy(&c->done);
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->lock);
    free(c->workers);
    free(c);
}

zc_status zc_pool_join(zc_crew *crew, int threads, zc_pool **out, zc_diag *diag)
{
    *out = zc_calloc(1, sizeof **out);
    if (!*out) return zc_fail_nomem(diag, "threads", sizeof **out);
    **out = (zc_pool){.crew = crew, .threads = threads};
    zc_crew_retain(crew);
    return ZC_OK;
}

zc_status zc_pool_create(int threads, zc_pool **out, zc_diag *diag)
{
    zc_crew *crew;
    *out = NULL;
    ZC_TRY(
        zc_crew_create(&(zc_crew_options){.threads = threads, .spin_us = ZC_SPIN_US}, &crew, diag));
    zc_status status = zc_pool_join(crew, threads, out, diag);
    zc_crew_release(&crew);
    return status;
}

void zc_pool_destroy(zc_pool **pool)
{
    if (!pool || !*pool) return;
    zc_crew_release(&(*pool)->crew);
    free(*pool);
    *pool = NULL;
}
