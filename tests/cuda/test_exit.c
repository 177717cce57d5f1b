/* exit() while sessions on the GPU run in other threads: the process ends as it was told to, in
 * sessions' first runs and later. ZC_TEST_PROCESSES=1000 tries it so often. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cuda/gpu.h"

/* A hang ends the process. */
enum { THREADS = 3, PROCESSES = 20, SECONDS = 20 };

/* ---- the process that ends ---- */

static atomic_int begun;

static void *run_for_ever(void *plan)
{
    gpu_rows in;
    zc_session *s = NULL;
    gpu_rows_make(&in, 5, 4, 1);
    if (zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 1, .device = ZC_DEVICE_CUDA), &s,
                          NULL) != ZC_OK)
        return NULL;
    for (int runs = 0; gpu_rows_set(s, &in, NULL) == ZC_OK && zc_session_run(s, NULL) == ZC_OK;
         runs++)
        if (runs == 0) atomic_fetch_add(&begun, 1);
    return NULL;
}

static void milliseconds(int n)
{
    nanosleep(&(struct timespec){.tv_sec = n / 1000, .tv_nsec = n % 1000 * 1000000L}, NULL);
}

/* wait: as many milliseconds from the start; below 0: from the first result of each thread. */
static int exits(const char *path, int wait)
{
    zc_plan *plan;
    pthread_t threads[THREADS];
    alarm(SECONDS);
    if (zc_plan_load_file(path, &plan, NULL) != ZC_OK) return 2;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, run_for_ever, plan) != 0) return 3;
    while (wait < 0 && atomic_load(&begun) < THREADS) milliseconds(1);
    milliseconds(abs(wait));
    exit(0);
}

/* ---- the test ---- */

static void all_end(bool warm)
{
    const char *wanted = getenv("ZC_TEST_PROCESSES");
    const int processes = wanted && atoi(wanted) > 0 ? atoi(wanted) : PROCESSES;
    char path[] = "/tmp/zc-exit-XXXXXX", wait[16];
    void *bytes;
    size_t len;
    gpu_compile(gpu_rows_text, "sm_90", true, &bytes, &len);
    FILE *f = fdopen(mkstemp(path), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
    zc_free(bytes);
    fflush(NULL);
    for (int i = 0; i < processes; i++) {
        int status;
        snprintf(wait, sizeof wait, "%d", warm ? -1 - i % 5 : i * 7 % 400);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            execl("/proc/self/exe", "test_cuda_exit", path, wait, (char *)NULL);
            _exit(5);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("process %d, waiting %s: status %#x", i, wait, (unsigned)status);
    }
    assert_int_equal(unlink(path), 0);
}

static void test_exit_in_first_runs(void **state)
{
    (void)state;
    all_end(false);
}

static void test_exit_in_later_runs(void **state)
{
    (void)state;
    all_end(true);
}

int main(int argc, char **argv)
{
    if (argc == 3) return exits(argv[1], atoi(argv[2]));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_in_first_runs),
        cmocka_unit_test(test_exit_in_later_runs),
    };
    return cmocka_run_group_tests(tests, gpu_group_setup, gpu_group_teardown);
}
