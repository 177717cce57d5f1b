/* What a plan's sessions have done. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/expect.h"
#include "support/onnx_text.h"
#include "zc/zc.h"

enum { SESSIONS = 4, RUNS = 50, COLUMNS = 4, ROWS_MOST = 8 };

typedef struct fixture {
    zc_plan *plan;
    zc_diag *diag;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    zc_buf model = {0};
    void *bytes;
    size_t len;
    f->diag = zc_diag_create();
    onnx_text("opset 17\nin x 1 n,4\nin i 7 1\nout y 1 *\nnode Gather x,i y\n", &model);
    expect_ok(f->diag, zc_compile_bytes(model.data, model.len, NULL, &bytes, &len, f->diag));
    expect_ok(f->diag, zc_plan_load_bytes(bytes, len, &f->plan, f->diag));
    zc_buf_fini(&model);
    zc_free(bytes);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    zc_plan_destroy(&f->plan);
    zc_diag_destroy(&f->diag);
    free(f);
    return 0;
}

static zc_session *session(fixture *f)
{
    zc_session *s;
    expect_ok(f->diag, zc_session_create(f->plan, ZC_SESSION_PARAMS(.threads = 1), &s, f->diag));
    return s;
}

/* An index of `rows` and beyond is out of range. */
static void set_inputs(zc_session *s, int64_t rows, int64_t index)
{
    static const float x[ROWS_MOST * COLUMNS];
    const zc_view in[] = {
        {.elem = ZC_ELEM_F32,
         .rank = 2,
         .dims = {rows, COLUMNS},
         .data = x,
         .bytes = (size_t)rows * COLUMNS * sizeof *x},
        {.elem = ZC_ELEM_I64, .rank = 1, .dims = {1}, .data = &index, .bytes = 8}};
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(zc_session_set_input(s, i, &in[i], false, NULL), ZC_OK);
}

static zc_counters counters(const fixture *f)
{
    zc_counters c;
    assert_int_equal(zc_plan_counters(f->plan, &c), ZC_OK);
    return c;
}

static void test_bounds(void **state)
{
    (void)state;
    assert_true(zc_latency_bound(0) == 1e-6 && zc_latency_bound(ZC_LATENCY_BUCKETS - 2) == 100);
    for (size_t i = 1; i < ZC_LATENCY_BUCKETS; i++)
        assert_true(zc_latency_bound(i) > zc_latency_bound(i - 1));
    assert_true(isinf(zc_latency_bound(ZC_LATENCY_BUCKETS - 1)));
}

static void test_runs_and_errors(void **state)
{
    fixture *f = *state;
    zc_session *s = session(f);
    set_inputs(s, 3, 1);
    for (int i = 0; i < 5; i++) assert_int_equal(zc_session_run(s, NULL), ZC_OK);
    set_inputs(s, 4, 4);
    assert_int_equal(zc_session_run(s, NULL), ZC_ERR_INPUT);
    set_inputs(s, 3, 0);
    assert_int_equal(zc_session_run(s, NULL), ZC_OK);
    zc_counters c = counters(f);
    assert_int_equal(c.runs, 6);
    assert_int_equal(c.errors[ZC_ERR_INPUT], 1);
    assert_int_equal(c.shapes, 2);
    assert_int_equal(c.sessions, 1);
    assert_int_equal(c.memory, zc_session_memory(s));
    assert_true(c.seconds > 0 && c.seconds < 60);
    assert_int_equal(c.captures, 0);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    c = counters(f);
    assert_int_equal(c.runs, 6);
    assert_int_equal(c.sessions, 0);
    assert_int_equal(c.memory, 0);
}

static void test_enqueued_runs(void **state)
{
    fixture *f = *state;
    zc_session *s = session(f);
    set_inputs(s, 3, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(zc_session_enqueue(s, NULL), ZC_OK);
        assert_int_equal(zc_session_wait(s, NULL), ZC_OK);
    }
    set_inputs(s, 3, 3);
    assert_int_equal(zc_session_enqueue(s, NULL), ZC_OK);
    assert_int_equal(zc_session_wait(s, NULL), ZC_ERR_INPUT);
    assert_int_equal(zc_session_wait(s, NULL), ZC_OK); /* there is none: nothing is counted */
    zc_counters c = counters(f);
    assert_int_equal(c.runs, 3);
    assert_int_equal(c.errors[ZC_ERR_INPUT], 1);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

/* Making ready is no run of the caller's. */
static void test_preparing_is_not_counted(void **state)
{
    fixture *f = *state;
    zc_session *s = session(f);
    zc_io_info shapes[2];
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(zc_plan_input(f->plan, i, &shapes[i], NULL), ZC_OK);
    shapes[0].dims[0] = 5;
    assert_int_equal(zc_session_prepare(s, shapes, 2, NULL, f->diag), ZC_OK);
    zc_counters c = counters(f);
    assert_int_equal(c.runs, 0);
    assert_int_equal(c.shapes, 1);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

static void *run_many(void *arg)
{
    zc_session *s = arg;
    for (int i = 0; i < RUNS; i++) {
        set_inputs(s, 2, i % 5 ? 1 : 2);
        (void)zc_session_run(s, NULL);
    }
    return NULL;
}

static void test_sessions_of_threads(void **state)
{
    fixture *f = *state;
    pthread_t threads[SESSIONS];
    zc_session *s[SESSIONS];
    for (int i = 0; i < SESSIONS; i++) s[i] = session(f);
    for (int i = 0; i < SESSIONS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, s[i]), 0);
    for (int i = 0; i < SESSIONS; i++) pthread_join(threads[i], NULL);
    zc_counters c = counters(f);
    assert_int_equal(c.runs, SESSIONS * RUNS * 4 / 5);
    assert_int_equal(c.errors[ZC_ERR_INPUT], SESSIONS * RUNS / 5);
    assert_int_equal(c.sessions, SESSIONS);
    for (int i = 0; i < SESSIONS; i++) assert_int_equal(zc_session_destroy(&s[i]), ZC_OK);
}

static void test_misuse(void **state)
{
    fixture *f = *state;
    zc_counters c;
    assert_int_equal(zc_plan_counters(NULL, &c), ZC_ERR_ARG);
    assert_int_equal(zc_plan_counters(f->plan, NULL), ZC_ERR_ARG);
    c.size = 8; /* of no version */
    assert_int_not_equal(zc_plan_counters_fill(f->plan, &c), ZC_OK);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),    T(test_runs_and_errors),     T(test_enqueued_runs),
        T(test_preparing_is_not_counted), T(test_sessions_of_threads), T(test_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
