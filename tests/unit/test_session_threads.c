/* Threads that sessions share: those of their plan, or of a zc_threads. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/pool.h"
#include "support/expect.h"
#include "support/forks.h"
#include "support/onnx_text.h"
#include "zc/zc.h"

enum { SESSIONS = 8, ROWS = 40, DEPTH = 300, COLUMNS = 400, RUNS = 30 };

static const char text[] =
    "opset 17\nin x 1 40,300\nout y 1 *\ninit s 7 2 300,400\n"
    "node ConstantOfShape s w value:t=1/1/0.04\nnode MatMul x,w h\nnode Softmax h y\n";

typedef struct fixture {
    void *bytes;
    size_t len;
    zc_plan *plan;
    zc_diag *diag;
    float x[ROWS * DEPTH];
    float want[ROWS * COLUMNS];
} fixture;

static bool set_and_run(fixture *f, zc_session *s, zc_view *y)
{
    const zc_view x = {
        .elem = 1, .rank = 2, .dims = {ROWS, DEPTH}, .data = f->x, .bytes = sizeof f->x};
    return zc_session_set_input(s, 0, &x, true, NULL) == ZC_OK &&
           zc_session_run(s, NULL) == ZC_OK && zc_session_output(s, 0, y, NULL) == ZC_OK &&
           y->bytes == sizeof f->want;
}

static bool is_right(fixture *f, zc_session *s)
{
    zc_view y;
    return set_and_run(f, s, &y) && memcmp(y.data, f->want, sizeof f->want) == 0;
}

static zc_session *session(fixture *f, int threads, zc_threads *shared)
{
    zc_session *s;
    expect_ok(f->diag,
              zc_session_create(f->plan, ZC_SESSION_PARAMS(.threads = threads, .shared = shared),
                                &s, f->diag));
    return s;
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    zc_buf model = {0};
    zc_view y;
    f->diag = zc_diag_create();
    onnx_text(text, &model);
    expect_ok(f->diag, zc_compile_bytes(model.data, model.len, NULL, &f->bytes, &f->len, f->diag));
    expect_ok(f->diag, zc_plan_load_bytes(f->bytes, f->len, &f->plan, f->diag));
    zc_buf_fini(&model);
    for (int i = 0; i < ROWS * DEPTH; i++) f->x[i] = (float)(i % 13) / 8 - 0.5f;
    zc_session *s = session(f, 1, NULL);
    assert_true(set_and_run(f, s, &y));
    memcpy(f->want, y.data, sizeof f->want);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    zc_plan_destroy(&f->plan);
    zc_diag_destroy(&f->diag);
    zc_free(f->bytes);
    free(f);
    return 0;
}

static int threads_now(void)
{
    char line[128];
    int n = 0;
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "Threads: %d", &n) == 1) break;
    fclose(file);
    return n;
}

typedef struct runner {
    fixture *f;
    zc_session *s;
    bool right;
} runner;

static void *run_many(void *arg)
{
    runner *r = arg;
    r->right = true;
    for (int i = 0; i < RUNS; i++) r->right = r->right && is_right(r->f, r->s);
    return NULL;
}

/* All at once, each in a thread of its own. */
static void run_all(fixture *f, zc_session **sessions, int n)
{
    pthread_t threads[SESSIONS];
    runner runners[SESSIONS];
    for (int i = 0; i < n; i++) {
        runners[i] = (runner){.f = f, .s = sessions[i]};
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, &runners[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        assert_true(runners[i].right);
    }
}

/* Eight sessions of eight threads take no more threads than there are CPUs. */
static void test_sessions_of_a_plan_share(void **state)
{
    fixture *f = *state;
    const int before = threads_now();
    zc_session *sessions[SESSIONS];
    for (int i = 0; i < SESSIONS; i++) sessions[i] = session(f, 8, NULL);
    assert_in_range(threads_now() - before, 0, zc_usable_cpus() - 1);
    run_all(f, sessions, SESSIONS);
    for (int i = 0; i < SESSIONS; i++) assert_int_equal(zc_session_destroy(&sessions[i]), ZC_OK);
    assert_int_equal(threads_now(), before);
    /* And again, when the first threads have ended. */
    sessions[0] = session(f, 0, NULL);
    assert_true(is_right(f, sessions[0]));
    assert_int_equal(zc_session_destroy(&sessions[0]), ZC_OK);
}

static void test_sessions_of_two_plans_share(void **state)
{
    fixture *f = *state;
    zc_plan *first = f->plan, *second;
    const int before = threads_now();
    zc_threads *threads;
    zc_session *sessions[SESSIONS];
    expect_ok(f->diag, zc_threads_create(ZC_THREADS_PARAMS(.threads = 3, .spin_us = ZC_SPIN_NONE),
                                         &threads, f->diag));
    assert_int_equal(threads_now() - before, 2);
    expect_ok(f->diag, zc_plan_load_bytes(f->bytes, f->len, &second, f->diag));
    for (int i = 0; i < SESSIONS; i++) {
        f->plan = i % 2 ? second : first;
        sessions[i] = session(f, i % 4, threads);
    }
    f->plan = first;
    assert_int_equal(threads_now() - before, 2);
    zc_threads_destroy(&threads);
    assert_null(threads);
    zc_threads_destroy(&threads);
    run_all(f, sessions, SESSIONS);
    for (int i = 0; i < SESSIONS; i++) assert_int_equal(zc_session_destroy(&sessions[i]), ZC_OK);
    assert_int_equal(threads_now(), before);
    zc_plan_destroy(&second);
}

static void test_wrong_params(void **state)
{
    fixture *f = *state;
    zc_diag *d = f->diag;
    zc_threads *t;
    const int cpu = -1;
    expect_fail(d, zc_threads_create(NULL, NULL, d), ZC_ERR_ARG, "out: is NULL");
    expect_fail(d, zc_threads_create(ZC_THREADS_PARAMS(.threads = -1), &t, d), ZC_ERR_ARG,
                "threads: out of range (got -1, need 0 to 1024)");
    expect_fail(d, zc_threads_create(ZC_THREADS_PARAMS(.spin_us = -2), &t, d), ZC_ERR_ARG,
                "spin_us: out of range (got -2, need -1 to 1000000)");
    expect_fail(d, zc_threads_create(ZC_THREADS_PARAMS(.cpu_count = 1), &t, d), ZC_ERR_ARG,
                "cpus: is NULL");
    expect_fail(d, zc_threads_create(ZC_THREADS_PARAMS(.cpus = &cpu, .cpu_count = 1), &t, d),
                ZC_ERR_ARG, "cpus: out of range (got -1, need 0 to ");
    expect_fail(d, zc_threads_create(&(zc_threads_params){.size = 8}, &t, d), ZC_ERR_ARG,
                "params: size is wrong");
    assert_null(t);
    expect_ok(d, zc_threads_create(NULL, &t, d));
    zc_threads_destroy(&t);
    zc_threads_destroy(NULL);
}

/* In a child: the parent's threads are not there, and sessions get new ones. */
static int child(fixture *f, zc_threads *shared, zc_session *parents)
{
    zc_session *s = NULL;
    alarm(30);
    if (zc_session_create(f->plan, ZC_SESSION_PARAMS(.shared = shared), &s, NULL) != ZC_ERR_FORKED)
        return 1;
    if (zc_session_run(parents, NULL) != ZC_ERR_FORKED) return 2;
    if (zc_session_create(f->plan, ZC_SESSION_PARAMS(.threads = 2), &s, NULL) != ZC_OK) return 3;
    if (!is_right(f, s)) return 4;
    if (zc_session_destroy(&s) != ZC_OK) return 5;
    zc_threads_destroy(&shared);
    return 0;
}

static void test_fork(void **state)
{
    fixture *f = *state;
    zc_threads *shared;
    int status;
    need_forks();
    expect_ok(f->diag, zc_threads_create(NULL, &shared, f->diag));
    zc_session *s = session(f, 2, NULL), *other = session(f, 2, shared);
    assert_true(is_right(f, s) && is_right(f, other));
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(child(f, shared, s));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(is_right(f, s) && is_right(f, other));
    zc_threads_destroy(&shared);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    assert_int_equal(zc_session_destroy(&other), ZC_OK);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static void *nothing(void *arg)
{
    return arg;
}

/* ThreadSanitizer starts a thread of its own with the first, before any are counted. */
static int start_one(void **state)
{
    pthread_t thread;
    (void)state;
    return pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_sessions_of_a_plan_share),
        T(test_sessions_of_two_plans_share),
        T(test_wrong_params),
        T(test_fork),
    };
    return cmocka_run_group_tests(tests, start_one, NULL);
}
