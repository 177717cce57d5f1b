/* The thread pool: every index exactly once, whatever the number of threads. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/pool.h"
#include "support/expect.h"

enum { ITEMS = 1000 };

typedef struct counts {
    atomic_int seen[ITEMS];
} counts;

static void count(void *arg, int i)
{
    counts *c = arg;
    atomic_fetch_add(&c->seen[i], 1);
}

static void check_run(zc_pool *pool, int n)
{
    counts *c = calloc(1, sizeof *c);
    zc_pool_run(pool, n, count, c);
    for (int i = 0; i < ITEMS; i++) assert_int_equal(atomic_load(&c->seen[i]), i < n);
    free(c);
}

static void test_every_index_once(void **state)
{
    (void)state;
    static const int sizes[] = {0, 1, 2, 3, 7, 64, ITEMS};
    zc_diag *diag = zc_diag_create();
    check_run(NULL, 5);
    for (int threads = 1; threads <= 5; threads++) {
        zc_pool *pool;
        expect_ok(diag, zc_pool_create(threads, &pool, diag));
        assert_int_equal(zc_pool_threads(pool), threads);
        for (int round = 0; round < 200; round++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) check_run(pool, sizes[s]);
        zc_pool_destroy(&pool);
        assert_null(pool);
    }
    zc_diag_destroy(&diag);
}

/* Each item waits until all have begun, which takes as many threads at once. */
static void meet(void *arg, int i)
{
    atomic_int *begun = arg;
    (void)i;
    atomic_fetch_add(begun, 1);
    while (atomic_load(begun) < 3) usleep(100);
}

static void test_items_run_at_once(void **state)
{
    (void)state;
    zc_pool *pool;
    assert_int_equal(zc_pool_create(3, &pool, NULL), ZC_OK);
    for (int round = 0; round < 20; round++) {
        atomic_int begun = 0;
        zc_pool_run(pool, 3, meet, &begun);
        assert_int_equal(atomic_load(&begun), 3);
        if (round % 5 == 4) usleep(20000); /* the workers fall asleep */
    }
    zc_pool_destroy(&pool);
}

/* A slow item on a worker: the caller, done with its own, sleeps until it is finished. */
static void slow_on_workers(void *arg, int i)
{
    atomic_int *finished = arg;
    usleep(i == 0 ? 1000 : 50000);
    atomic_fetch_add(finished, 1);
}

static void test_caller_waits(void **state)
{
    (void)state;
    zc_pool *pool;
    assert_int_equal(zc_pool_create(2, &pool, NULL), ZC_OK);
    for (int round = 0; round < 3; round++) {
        atomic_int finished = 0;
        zc_pool_run(pool, 2, slow_on_workers, &finished);
        assert_int_equal(atomic_load(&finished), 2);
    }
    zc_pool_destroy(&pool);
}

static void test_destroy_at_once(void **state)
{
    (void)state;
    for (int round = 0; round < 100; round++) {
        zc_pool *pool;
        assert_int_equal(zc_pool_create(4, &pool, NULL), ZC_OK);
        if (round % 2) check_run(pool, 3);
        zc_pool_destroy(&pool);
    }
}

/* Workers sleep between jobs; a late job must still wake them. */
static void test_after_sleep(void **state)
{
    (void)state;
    zc_pool *pool;
    assert_int_equal(zc_pool_create(3, &pool, NULL), ZC_OK);
    for (int i = 0; i < 5; i++) {
        usleep(20000);
        check_run(pool, 100);
    }
    zc_pool_destroy(&pool);
    zc_pool_destroy(&pool);
}

static volatile sig_atomic_t handled;

static void handler(int number)
{
    (void)number;
    handled = 1;
}

/* A signal to the process that its own thread blocks waits for it; a worker would take it. */
static void test_workers_take_no_signals(void **state)
{
    (void)state;
    const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD, SIGPROF, SIGRTMIN};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction before, action = {.sa_handler = handler};
        sigset_t one, mask, after;
        zc_pool *pool;
        sigaction(numbers[i], &action, &before);
        pthread_sigmask(SIG_SETMASK, NULL, &mask);
        assert_int_equal(zc_pool_create(3, &pool, NULL), ZC_OK);
        pthread_sigmask(SIG_SETMASK, NULL, &after);
        assert_int_equal(sigismember(&after, numbers[i]), sigismember(&mask, numbers[i]));
        sigemptyset(&one);
        sigaddset(&one, numbers[i]);
        pthread_sigmask(SIG_BLOCK, &one, NULL);
        kill(getpid(), numbers[i]);
        usleep(2000);
        check_run(pool, ITEMS);
        assert_int_equal(handled, 0);
        assert_int_equal(sigtimedwait(&one, NULL, &(struct timespec){.tv_sec = 5}), numbers[i]);
        pthread_sigmask(SIG_SETMASK, &mask, NULL);
        zc_pool_destroy(&pool);
        sigaction(numbers[i], &before, NULL);
    }
}

/* ---- crews ---- */

enum { CALLERS = 6 };

static void *run_many(void *arg)
{
    for (int round = 0; round < 300; round++) check_run(arg, round % 9);
    check_run(arg, ITEMS);
    return NULL;
}

/* Callers of one crew's pools, more than CPUs at times. */
static void test_pools_share_a_crew(void **state)
{
    (void)state;
    zc_crew *crew;
    zc_pool *pools[CALLERS];
    pthread_t threads[CALLERS];
    assert_int_equal(zc_crew_create(&(zc_crew_options){.threads = 2, .most = 4}, &crew, NULL),
                     ZC_OK);
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(zc_pool_join(crew, i + 1, &pools[i], NULL), ZC_OK);
        assert_int_equal(zc_pool_threads(pools[i]), i + 1);
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, pools[i]), 0);
    }
    assert_int_equal(zc_crew_grow(crew, 9, NULL), ZC_OK);
    assert_int_equal(zc_crew_threads(crew), 4);
    zc_crew_release(&crew); /* the pools have it still */
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        zc_pool_destroy(&pools[i]);
    }
}

static atomic_int prepared;

static zc_status prepare(void)
{
    atomic_fetch_add(&prepared, 1);
    return ZC_OK;
}

static zc_status fail_to_prepare(void)
{
    return ZC_ERR_NOMEM;
}

static void test_workers_prepare(void **state)
{
    (void)state;
    zc_crew *crew;
    zc_diag *diag = zc_diag_create();
    zc_crew_options options = {.threads = 3, .most = 5, .prepare = prepare};
    atomic_store(&prepared, 0);
    expect_ok(diag, zc_crew_create(&options, &crew, diag));
    assert_int_equal(atomic_load(&prepared), 2);
    expect_ok(diag, zc_crew_grow(crew, 5, diag));
    assert_int_equal(atomic_load(&prepared), 4);
    zc_crew_release(&crew);
    options.prepare = fail_to_prepare;
    expect_fail(diag, zc_crew_create(&options, &crew, diag), ZC_ERR_NOMEM,
                "threads: a new thread could not prepare itself");
    assert_null(crew);
    zc_diag_destroy(&diag);
}

typedef struct places {
    pthread_t caller;
    atomic_int begun, bound;
} places;

static void look_where(void *arg, int i)
{
    places *p = arg;
    cpu_set_t set;
    (void)i;
    if (!pthread_equal(pthread_self(), p->caller) &&
        pthread_getaffinity_np(pthread_self(), sizeof set, &set) == 0)
        atomic_fetch_add(&p->bound, CPU_COUNT(&set) == 1);
    atomic_fetch_add(&p->begun, 1);
    while (atomic_load(&p->begun) < 3) usleep(100);
}

static void test_workers_are_bound(void **state)
{
    (void)state;
    cpu_set_t own;
    int first = 0;
    zc_crew *crew;
    zc_pool *pool;
    places p = {.caller = pthread_self()};
    assert_int_equal(sched_getaffinity(0, sizeof own, &own), 0);
    while (!CPU_ISSET((size_t)first, &own)) first++;
    const zc_crew_options options = {.threads = 3, .cpus = &first, .ncpus = 1};
    assert_int_equal(zc_crew_create(&options, &crew, NULL), ZC_OK);
    assert_int_equal(zc_pool_join(crew, 3, &pool, NULL), ZC_OK);
    zc_pool_run(pool, 3, look_where, &p);
    assert_int_equal(atomic_load(&p.bound), 2);
    zc_pool_destroy(&pool);
    zc_crew_release(&crew);
}

static void test_bad_count(void **state)
{
    (void)state;
    zc_pool *pool;
    zc_diag *diag = zc_diag_create();
    expect_fail(diag, zc_pool_create(0, &pool, diag), ZC_ERR_ARG,
                "threads: out of range (got 0, need >= 1)");
    assert_null(pool);
    zc_diag_destroy(&diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_index_once),
        cmocka_unit_test(test_items_run_at_once),
        cmocka_unit_test(test_caller_waits),
        cmocka_unit_test(test_destroy_at_once),
        cmocka_unit_test(test_workers_prepare),
        cmocka_unit_test(test_pools_share_a_crew),
        cmocka_unit_test(test_workers_are_bound),
        cmocka_unit_test(test_after_sleep),
        cmocka_unit_test(test_workers_take_no_signals),
        cmocka_unit_test(test_bad_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
