/* A process that ends, or forks, while sessions run: as many times as ZC_TEST_PROCESSES says. Where
 * oneDNN's first use is part of it each time is a program of its own, whose code generation and
 * wait take 100 ms of two CPUs: of these there are a tenth. The others begin with oneDNN's code. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/expect.h"
#include "support/forks.h"
#include "support/onnx_text.h"
#include "zc/zc.h"

enum { SESSIONS = 3, FLOATS = 8 * 12 * 12, SECONDS = 60 };

/* Convolutions on channels-last planes, and products; weights of any value do. */
static const char model_text[] =
    "ir 8\nopset 17\nin x 1 1,8,12,12\nout y 1 *\n"
    "init s1 7 4 64,8,3,3\nnode ConstantOfShape s1 w1 value:t=1/1/0.01\n"
    "node Conv x,w1 c1 pads:is=1,1,1,1\nnode Relu c1 r1\n"
    "init s2 7 4 48,64,1,1\nnode ConstantOfShape s2 w2 value:t=1/1/0.02\n"
    "node Conv r1,w2 c2\nnode Relu c2 r2\nnode Flatten r2 f\n"
    "init s3 7 2 6912,40\nnode ConstantOfShape s3 w3 value:t=1/1/0.03\n"
    "node MatMul f,w3 y\n";

/* ---- in the processes ---- */

typedef struct runner {
    zc_plan *plan;
    zc_session *sessions[SESSIONS];
    pthread_t threads[SESSIONS];
} runner;

static runner the;
static atomic_int begun;
static bool ends_threads; /* at exit */

static void milliseconds(double n)
{
    nanosleep(&(struct timespec){.tv_sec = (time_t)(n / 1000),
                                 .tv_nsec = (long)((n - 1000 * (double)(time_t)(n / 1000)) * 1e6)},
              NULL);
}

static bool new_session(zc_session **s)
{
    static float x[FLOATS];
    zc_view v = {.elem = 1, .rank = 4, .dims = {1, 8, 12, 12}, .data = x, .bytes = sizeof x};
    for (int i = 0; i < FLOATS; i++) x[i] = (float)(i % 17) - 8;
    return zc_session_create(the.plan, ZC_SESSION_PARAMS(.threads = 2), s, NULL) == ZC_OK &&
           zc_session_set_input(*s, 0, &v, false, NULL) == ZC_OK;
}

static void *run_for_ever(void *session)
{
    for (int runs = 0;; runs++) {
        if (zc_session_run(session, NULL) != ZC_OK) return NULL;
        if (runs == 0) atomic_fetch_add(&begun, 1);
    }
}

static bool start(const char *plan)
{
    if (zc_plan_load_file(plan, &the.plan, NULL) != ZC_OK) return false;
    for (int i = 0; i < SESSIONS; i++)
        if (!new_session(&the.sessions[i]) ||
            pthread_create(&the.threads[i], NULL, run_for_ever, the.sessions[i]) != 0)
            return false;
    return true;
}

/* What a service's own handler may do: its threads end, as their runs fail from now on. */
static void end_all(void)
{
    if (!ends_threads) return;
    for (int i = 0; i < SESSIONS; i++) {
        pthread_join(the.threads[i], NULL);
        if (zc_session_destroy(&the.sessions[i]) != ZC_OK) _exit(4);
    }
    zc_plan_destroy(&the.plan);
}

/* What takes a moment, as handlers do: threads run on while oneDNN's have run. */
static void linger(void)
{
    milliseconds(20);
}

static int exits(const char *plan, bool warm, double wait)
{
    if (!start(plan)) return 2;
    while (warm && atomic_load(&begun) < SESSIONS) milliseconds(0.1);
    milliseconds(wait);
    exit(0);
}

static int run_in_child(void)
{
    zc_session *s = NULL;
    zc_view y;
    alarm(SECONDS);
    if (!new_session(&s)) return 5;
    if (zc_session_run(s, NULL) != ZC_OK) return 6;
    if (zc_session_output(s, 0, &y, NULL) != ZC_OK || y.bytes != 40 * sizeof(float)) return 7;
    return zc_session_destroy(&s) == ZC_OK ? 0 : 8;
}

static int forks(const char *plan, double wait)
{
    int status;
    if (!start(plan)) return 2;
    milliseconds(wait);
    pid_t child = fork();
    if (child == 0) _exit(run_in_child());
    if (waitpid(child, &status, 0) != child) return 9;
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 64 + WTERMSIG(status));
}

/* One child after the other while all sessions run. */
static int forks_many(const char *plan, int times)
{
    int status = 0;
    if (!start(plan)) return 2;
    while (atomic_load(&begun) < SESSIONS) milliseconds(0.1);
    for (int i = 0; i < times && status == 0; i++) {
        pid_t child = fork();
        if (child == 0) _exit(run_in_child());
        if (waitpid(child, &status, 0) != child) _exit(9);
        alarm(2 * SECONDS);
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 64 + WTERMSIG(status));
}

static int process(const char *what, const char *plan, double wait)
{
    alarm(2 * SECONDS);
    if (strcmp(what, "fork") == 0) return forks(plan, wait);
    if (strcmp(what, "forks") == 0) return forks_many(plan, (int)wait);
    ends_threads = strcmp(what, "handler") == 0;
    return exits(plan, strcmp(what, "first") != 0, wait);
}

/* ---- the test ---- */

static char plan_path[64], *program;

static int setup(void **state)
{
    zc_buf model = {0};
    void *plan;
    size_t len;
    (void)state;
    onnx_text(model_text, &model);
    assert_int_equal(zc_compile_bytes(model.data, model.len, NULL, &plan, &len, NULL), ZC_OK);
    zc_buf_fini(&model);
    strcpy(plan_path, "/tmp/zc_process_XXXXXX");
    int fd = mkstemp(plan_path);
    assert_true(fd >= 0 && write(fd, plan, len) == (ssize_t)len && close(fd) == 0);
    zc_free(plan);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(plan_path);
}

static int times(void)
{
    const char *text = getenv("ZC_TEST_PROCESSES");
    return text ? atoi(text) : 20;
}

static int few_times(void)
{
    return times() < 200 ? 20 : times() / 10;
}

static void check_child(const char *what)
{
    int status;
    assert_true(wait(&status) > 0);
    if (!WIFEXITED(status)) fail_msg("%s: signal %d", what, WTERMSIG(status));
    if (WEXITSTATUS(status)) fail_msg("%s: %d", what, WEXITSTATUS(status));
}

static int run_program(const char *what, const char *number)
{
    execl(program, program, what, plan_path, number, (char *)NULL);
    return 127;
}

/* So many times, after up to `most` milliseconds; a few at once. */
static void check(const char *what, bool anew, int n, double most)
{
    enum { AT_ONCE = 4 };
    fflush(NULL);
    for (int i = 0; i < n + AT_ONCE; i++) {
        if (i >= AT_ONCE) check_child(what);
        if (i >= n) continue;
        const double wait = most * i / n;
        char number[32];
        snprintf(number, sizeof number, "%g", wait);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) exit(anew ? run_program(what, number) : process(what, plan_path, wait));
    }
}

static void test_exit_in_first_runs(void **state)
{
    (void)state;
    check("first", true, few_times(), 150);
}

static void test_fork_in_first_runs(void **state)
{
    (void)state;
    need_forks();
    check("fork", true, few_times(), 150);
}

/* From here on this process, and with it its children, has oneDNN's code. */
static void test_exit_in_later_runs(void **state)
{
    (void)state;
    assert_int_equal(zc_plan_load_file(plan_path, &the.plan, NULL), ZC_OK);
    assert_int_equal(run_in_child(), 0);
    alarm(0);
    zc_plan_destroy(&the.plan);
    check("later", false, times(), 5);
}

static void test_exit_that_ends_threads(void **state)
{
    (void)state;
    check("handler", false, times(), 5);
}

static void test_forks_in_later_runs(void **state)
{
    char number[32];
    (void)state;
    need_forks();
    snprintf(number, sizeof number, "%d", times());
    pid_t child = fork();
    if (child == 0) _exit(run_program("forks", number));
    check_child("forks");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_in_first_runs),  cmocka_unit_test(test_fork_in_first_runs),
        cmocka_unit_test(test_exit_in_later_runs),  cmocka_unit_test(test_exit_that_ends_threads),
        cmocka_unit_test(test_forks_in_later_runs),
    };
    program = argv[0];
    /* Before oneDNN's own, so that they run after those. */
    if (atexit(linger) != 0 || atexit(end_all) != 0) return 3;
    if (argc == 4) return process(argv[1], argv[2], atof(argv[3]));
    return cmocka_run_group_tests(tests, setup, teardown);
}
