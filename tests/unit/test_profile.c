/* zc_session_profile: times of steps over several runs, on the CPU. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/expect.h"
#include "support/onnx_text.h"
#include "zc/zc.h"

enum { ROWS = 5, MANY_ROWS = 1 << 15, COLUMNS = 4 };

typedef struct fixture {
    zc_plan *plan;
    zc_session *session;
    zc_diag *diag;
} fixture;

static zc_status set_input(zc_session *s, const float *x, int64_t rows)
{
    const zc_view in = {.elem = ZC_ELEM_F32,
                        .rank = 2,
                        .dims = {rows, COLUMNS},
                        .data = x,
                        .bytes = (size_t)rows * COLUMNS * sizeof *x};
    return zc_session_set_input(s, 0, &in, false, NULL);
}

static int setup(void **state)
{
    static const float x[ROWS * COLUMNS] = {1, 2, 3, 4};
    fixture *f = calloc(1, sizeof *f);
    zc_buf model = {0};
    void *bytes;
    size_t len;
    f->diag = zc_diag_create();
    onnx_text("opset 17\nin x 1 n,4\nout y 1 *\nnode Softmax x p\nnode CumSum p,axis y\n"
              "init axis 7 1 1\n",
              &model);
    expect_ok(f->diag, zc_compile_bytes(model.data, model.len, NULL, &bytes, &len, f->diag));
    expect_ok(f->diag, zc_plan_load_bytes(bytes, len, &f->plan, f->diag));
    zc_buf_fini(&model);
    zc_free(bytes);
    expect_ok(f->diag, zc_session_create(f->plan, ZC_SESSION_PARAMS(.threads = 1, .profile = true),
                                         &f->session, f->diag));
    expect_ok(f->diag, set_input(f->session, x, ROWS));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    assert_int_equal(zc_session_destroy(&f->session), ZC_OK);
    zc_plan_destroy(&f->plan);
    zc_diag_destroy(&f->diag);
    free(f);
    return 0;
}

/* Every step has the runs' times, and an interval that lies among them. */
static void check_steps(const fixture *f, const zc_profile_info *all)
{
    double sum = 0;
    for (size_t i = 0; i < all->steps; i++) {
        zc_step_info step;
        const double *us;
        size_t n, below = 0, above = 0;
        expect_ok(f->diag, zc_session_step(f->session, i, &step, f->diag));
        expect_ok(f->diag, zc_session_step_times(f->session, i, &us, &n, f->diag));
        assert_int_equal(n, all->runs);
        assert_true(step.us == us[n - 1]);
        for (size_t r = 0; r < n; r++) {
            below += us[r] <= step.median_us;
            above += us[r] >= step.median_us;
        }
        assert_true(2 * below >= n && 2 * above >= n);
        assert_true(0 <= step.low_us && step.low_us <= step.median_us);
        assert_true(step.median_us <= step.high_us);
        assert_true(step.bytes_in > 0 && step.bytes_out > 0);
        sum += step.median_us;
    }
    assert_true(fabs(sum - all->steps_us) < 1e-6);
}

static void test_times(void **state)
{
    fixture *f = *state;
    zc_plan_info plan;
    zc_profile_info all;
    assert_int_equal(zc_plan_info_get(f->plan, &plan), ZC_OK);
    expect_ok(f->diag, zc_session_profile(f->session, NULL, &all, f->diag));
    assert_int_equal(all.runs, 5);
    assert_int_equal(all.steps, plan.steps);
    assert_true(all.steps >= 2 && all.steps_us > 0 && all.share > 0 && all.share <= 1);
    assert_true(all.run_low_us <= all.run_us && all.run_us <= all.run_high_us);
    check_steps(f, &all);
    expect_ok(f->diag,
              zc_session_profile(f->session, ZC_PROFILE_PARAMS(.seconds = 60, .most_runs = 37),
                                 &all, f->diag));
    assert_int_equal(all.runs, 37);
    check_steps(f, &all);
    expect_ok(f->diag,
              zc_session_profile(f->session, ZC_PROFILE_PARAMS(.least_runs = 301), &all, f->diag));
    assert_int_equal(all.runs, 301);
    check_steps(f, &all);
}

/* The results are a run's; the plan's counters know nothing of it; its memory is the session's. */
static void test_leaves_a_run(void **state)
{
    fixture *f = *state;
    zc_profile_info all;
    zc_counters before, after;
    zc_view y;
    float first[ROWS * COLUMNS];
    expect_ok(f->diag, zc_session_run(f->session, f->diag));
    expect_ok(f->diag, zc_session_output(f->session, 0, &y, f->diag));
    memcpy(first, y.data, sizeof first);
    const uint64_t bytes = zc_session_memory(f->session);
    assert_int_equal(zc_plan_counters(f->plan, &before), ZC_OK);
    expect_ok(f->diag,
              zc_session_profile(f->session, ZC_PROFILE_PARAMS(.most_runs = 1000), &all, f->diag));
    assert_int_equal(zc_plan_counters(f->plan, &after), ZC_OK);
    assert_int_equal(before.runs, after.runs);
    assert_true(zc_session_memory(f->session) >= bytes + 1000 * all.steps * sizeof(double));
    expect_ok(f->diag, zc_session_output(f->session, 0, &y, f->diag));
    assert_memory_equal(first, y.data, sizeof first);
}

static void test_nothing_measured(void **state)
{
    fixture *f = *state;
    const double *us;
    size_t n;
    zc_step_info step;
    expect_ok(f->diag, zc_session_run(f->session, f->diag));
    expect_ok(f->diag, zc_session_step(f->session, 0, &step, f->diag));
    assert_true(step.median_us == 0 && step.low_us == 0 && step.high_us == 0);
    expect_fail(f->diag, zc_session_step_times(f->session, 0, &us, &n, f->diag), ZC_ERR_ARG,
                "no zc_session_profile has measured it");
    expect_fail(f->diag, zc_session_step_times(f->session, 99, &us, &n, f->diag), ZC_ERR_ARG,
                "no such step (got 99, need < ");
}

static void refused(fixture *f, const zc_profile_params *params, const char *text)
{
    zc_profile_info all;
    expect_fail(f->diag, zc_session_profile(f->session, params, &all, f->diag), ZC_ERR_ARG, text);
}

static void test_refused(void **state)
{
    fixture *f = *state;
    zc_profile_info all = {.size = 8};
    refused(f, ZC_PROFILE_PARAMS(.seconds = -1), "seconds: is no time");
    refused(f, ZC_PROFILE_PARAMS(.seconds = NAN), "seconds: is no time");
    refused(f, ZC_PROFILE_PARAMS(.seconds = INFINITY), "seconds: is no time");
    refused(f, ZC_PROFILE_PARAMS(.most_runs = 4), "out of range (got 4, need 5 to 100000)");
    refused(f, ZC_PROFILE_PARAMS(.most_runs = 100001), "(got 100001, need 5 to 100000)");
    refused(f, ZC_PROFILE_PARAMS(.least_runs = SIZE_MAX), "need 18446744073709551615 to 100000)");
    refused(f, &(zc_profile_params){.size = 4}, "params: size is wrong");
    expect_fail(f->diag, zc_session_profile(f->session, NULL, NULL, f->diag), ZC_ERR_ARG, "out");
    expect_fail(f->diag, zc_session_profile_fill(f->session, NULL, &all, f->diag), ZC_ERR_ARG,
                "size is wrong");
}

/* A failed call leaves neither times nor results. */
static void test_failed(void **state)
{
    fixture *f = *state;
    zc_session *plain, *empty;
    zc_profile_info all;
    const double *us;
    size_t n;
    expect_ok(f->diag, zc_session_create(f->plan, NULL, &plain, f->diag));
    expect_fail(f->diag, zc_session_profile(plain, NULL, &all, f->diag), ZC_ERR_ARG,
                "created without zc_session_params.profile");
    expect_ok(f->diag,
              zc_session_create(f->plan, ZC_SESSION_PARAMS(.profile = true), &empty, f->diag));
    expect_fail(f->diag, zc_session_profile(empty, NULL, &all, f->diag), ZC_ERR_INPUT,
                "x: has no value");
    expect_fail(f->diag, zc_session_step_times(empty, 0, &us, &n, f->diag), ZC_ERR_ARG,
                "no zc_session_profile");
    assert_int_equal(zc_session_destroy(&plain), ZC_OK);
    assert_int_equal(zc_session_destroy(&empty), ZC_OK);
}

static void *cancel_soon(void *session)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    zc_session_cancel(session);
    return NULL;
}

/* It ends the call, not one run of it; the session goes on. All runs would take a minute. */
static void test_cancelled(void **state)
{
    static const float x[MANY_ROWS * COLUMNS];
    fixture *f = *state;
    zc_profile_info all;
    pthread_t thread;
    const double *us;
    size_t n;
    expect_ok(f->diag, set_input(f->session, x, MANY_ROWS));
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, f->session), 0);
    expect_fail(f->diag,
                zc_session_profile(f->session, ZC_PROFILE_PARAMS(.least_runs = ZC_PROFILE_RUNS_MAX),
                                   &all, f->diag),
                ZC_ERR_CANCELLED, "");
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect_fail(f->diag, zc_session_step_times(f->session, 0, &us, &n, f->diag), ZC_ERR_ARG,
                "no zc_session_profile");
    expect_ok(f->diag, zc_session_profile(f->session, NULL, &all, f->diag));
    check_steps(f, &all);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_times),
        WITH_FIXTURE(test_leaves_a_run),
        WITH_FIXTURE(test_nothing_measured),
        WITH_FIXTURE(test_refused),
        WITH_FIXTURE(test_failed),
        WITH_FIXTURE(test_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
