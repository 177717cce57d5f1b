/* Running plans through the public interface: results, shapes, threads, misuse. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/expect.h"
#include "support/small_model.h"
#include "zc/zc.h"

#ifdef __SANITIZE_ADDRESS__
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}
#endif

typedef struct fixture {
    zc_plan *plan;
    zc_session *session;
    zc_diag *diag;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    zc_buf model = {0};
    void *plan;
    size_t len;
    f->diag = zc_diag_create();
    small_model(&model);
    expect_ok(f->diag, zc_compile_bytes(model.data, model.len, NULL, &plan, &len, f->diag));
    expect_ok(f->diag, zc_plan_load_bytes(plan, len, &f->plan, f->diag));
    expect_ok(f->diag,
              zc_session_create(f->plan, ZC_SESSION_PARAMS(.threads = 2), &f->session, f->diag));
    zc_buf_fini(&model);
    zc_free(plan);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    assert_int_equal(zc_session_destroy(&f->session), ZC_OK);
    assert_null(f->session);
    zc_plan_destroy(&f->plan);
    zc_diag_destroy(&f->diag);
    free(f);
    return 0;
}

static zc_view matrix(float *data, int64_t rows)
{
    return (zc_view){.elem = zc_elem_parse("f32"),
                     .rank = 2,
                     .dims = {rows, 4},
                     .data = data,
                     .bytes = (size_t)rows * 4 * sizeof(float)};
}

static void fill(float *x, int64_t rows, unsigned seed)
{
    for (int64_t i = 0; i < rows * 4; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
    }
}

static void check_rows(const float *x, const float *y, int64_t rows)
{
    for (int64_t r = 0; r < rows; r++) {
        float want[3];
        small_expect(x + 4 * r, want);
        for (int c = 0; c < 3; c++) assert_float_equal(y[3 * r + c], want[c], 1e-5);
    }
}

static void run_rows(fixture *f, int64_t rows)
{
    float *x = calloc((size_t)rows * 4 + 1, sizeof *x);
    zc_view v = matrix(x, rows), y, s;
    fill(x, rows, (unsigned)rows + 1);
    expect_ok(f->diag, zc_session_set_input(f->session, 0, &v, false, f->diag));
    expect_ok(f->diag, zc_session_run(f->session, f->diag));
    expect_ok(f->diag, zc_session_output(f->session, 0, &y, f->diag));
    expect_ok(f->diag, zc_session_output(f->session, 1, &s, f->diag));
    assert_int_equal(y.rank, 2);
    assert_int_equal(y.dims[0], rows);
    assert_int_equal(y.dims[1], 3);
    check_rows(x, y.data, rows);
    assert_int_equal(((int64_t *)s.data)[0], rows);
    assert_int_equal(((int64_t *)s.data)[1], 4);
    free(x);
}

static void test_one_plan_serves_all_shapes(void **state)
{
    static const int64_t rows[] = {1, 2, 31, 32, 33, 1025, 0, 3, 1025};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) run_rows(*state, rows[i]);
}

static void test_bound_output(void **state)
{
    fixture *f = *state;
    float x[8], *y = aligned_alloc(64, 64);
    zc_view v = matrix(x, 2), out;
    fill(x, 2, 5);
    expect_ok(f->diag, zc_session_set_input(f->session, 0, &v, true, f->diag));
    expect_ok(f->diag, zc_session_bind_output(f->session, 0, y, 24, f->diag));
    expect_ok(f->diag, zc_session_run(f->session, f->diag));
    check_rows(x, y, 2);
    expect_ok(f->diag, zc_session_output(f->session, 0, &out, f->diag));
    assert_ptr_equal(out.data, y);
    expect_ok(f->diag, zc_session_bind_output(f->session, 0, y, 23, f->diag));
    expect_fail(f->diag, zc_session_run(f->session, f->diag), ZC_ERR_ARG,
                "y: bound memory is too small (got 23 bytes, need 24)");
    expect_fail(f->diag, zc_session_bind_output(f->session, 0, (char *)y + 4, 24, f->diag),
                ZC_ERR_ARG, "y: bound memory is not aligned to 64 bytes");
    expect_ok(f->diag, zc_session_bind_output(f->session, 0, NULL, 0, f->diag));
    expect_ok(f->diag, zc_session_run(f->session, f->diag));
    free(y);
}

/* A run that fails, at whatever point, takes the results of the run before with it. */
static void test_failed_run_leaves_no_output(void **state)
{
    static const char none[] = "y: no run has given a result";
    fixture *f = *state;
    _Alignas(64) float small[1];
    zc_view y;
    run_rows(f, 3);
    expect_ok(f->diag, zc_session_bind_output(f->session, 0, small, sizeof small, f->diag));
    expect_fail(f->diag, zc_session_run(f->session, f->diag), ZC_ERR_ARG, "too small");
    expect_fail(f->diag, zc_session_output(f->session, 0, &y, f->diag), ZC_ERR_ARG, none);
    expect_ok(f->diag, zc_session_bind_output(f->session, 0, NULL, 0, f->diag));
    expect_fail(f->diag, zc_session_output(f->session, 0, &y, f->diag), ZC_ERR_ARG, none);
    run_rows(f, 1);
    float *x = NULL;
    zc_view huge = matrix((float *)&x, INT64_C(1) << 56);
    huge.bytes = (size_t)1 << 60;
    expect_ok(f->diag, zc_session_set_input(f->session, 0, &huge, true, f->diag));
    expect_ok(f->diag, zc_session_output(f->session, 0, &y, f->diag)); /* until the next run */
    zc_status status = zc_session_run(f->session, NULL);
    assert_true(status == ZC_ERR_NOMEM || status == ZC_ERR_INPUT);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(zc_session_output(f->session, i, &y, NULL), ZC_ERR_ARG);
    run_rows(f, 2);
}

static void test_wrong_inputs(void **state)
{
    fixture *f = *state;
    float x[8] = {0};
    const struct {
        zc_view view;
        zc_status status;
        const char *text;
    } cases[] = {
        {{.elem = zc_elem_parse("f64"), .rank = 2, .dims = {1, 4}, .data = x, .bytes = 32},
         ZC_ERR_INPUT,
         "x: wrong element type (got f64, need f32)"},
        {{.elem = zc_elem_parse("f32"), .rank = 1, .dims = {4}, .data = x, .bytes = 16},
         ZC_ERR_INPUT,
         "x: wrong number of dimensions (got 1, need 2)"},
        {{.elem = zc_elem_parse("f32"), .rank = 2, .dims = {1, 5}, .data = x, .bytes = 20},
         ZC_ERR_INPUT,
         "x: wrong size of dimension 1 (got 5, need 4)"},
        {{.elem = zc_elem_parse("f32"), .rank = 2, .dims = {-1, 4}, .data = x, .bytes = 16},
         ZC_ERR_INPUT,
         "x: dimension 0 is negative (got -1)"},
        {{.elem = zc_elem_parse("f32"), .rank = 2, .dims = {2, 4}, .data = x, .bytes = 16},
         ZC_ERR_INPUT,
         "x: wrong number of bytes (got 16, need 32)"},
        {{.elem = zc_elem_parse("f32"), .rank = 2, .dims = {1, 4}, .data = NULL, .bytes = 16},
         ZC_ERR_ARG,
         "x: data is NULL"},
        {{.elem = zc_elem_parse("f32"), .rank = 2, .dims = {INT64_MAX, 4}, .data = x, .bytes = 16},
         ZC_ERR_INPUT,
         "x: too large"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_fail(f->diag, zc_session_set_input(f->session, 0, &cases[i].view, false, f->diag),
                    cases[i].status, cases[i].text);
    zc_view good = matrix(x, 1);
    expect_fail(f->diag, zc_session_set_input(f->session, 1, &good, false, f->diag), ZC_ERR_ARG,
                "no such input (got 1, need < 1)");
    expect_fail(f->diag, zc_session_set_input(f->session, 0, NULL, false, f->diag), ZC_ERR_ARG,
                "x: value is NULL");
    expect_fail(f->diag, zc_session_run(f->session, f->diag), ZC_ERR_INPUT, "x: has no value");
    zc_view view;
    expect_fail(f->diag, zc_session_output(f->session, 0, &view, f->diag), ZC_ERR_ARG,
                "y: no run has given a result");
}

static void test_null_arguments(void **state)
{
    fixture *f = *state;
    zc_session *session;
    zc_plan *plan;
    expect_fail(f->diag, zc_session_create(NULL, NULL, &session, f->diag), ZC_ERR_ARG,
                "plan: is NULL");
    expect_fail(f->diag, zc_session_create(f->plan, NULL, NULL, f->diag), ZC_ERR_ARG,
                "out: is NULL");
    expect_fail(f->diag, zc_plan_load_bytes(NULL, 4, &plan, f->diag), ZC_ERR_ARG, "data: is NULL");
    expect_fail(f->diag, zc_plan_load_file(NULL, &plan, f->diag), ZC_ERR_ARG, "path: is NULL");
    expect_fail(f->diag, zc_session_run(NULL, f->diag), ZC_ERR_ARG, "session: is NULL");
    zc_plan_destroy(NULL);
    assert_int_equal(zc_session_destroy(NULL), ZC_OK);
    session = NULL;
    assert_int_equal(zc_session_destroy(&session), ZC_OK);
}

static void test_session_outlives_its_plan(void **state)
{
    fixture *f = *state;
    zc_plan_destroy(&f->plan);
    run_rows(f, 3);
}

static void test_after_fork(void **state)
{
    fixture *f = *state;
    pid_t child = fork();
    if (child == 0) _exit(zc_session_run(f->session, NULL) == ZC_ERR_FORKED ? 7 : 8);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

typedef struct worker {
    fixture *f;
    unsigned seed;
    int failures;
} worker;

/* 125 runs of one session of its own; all must give the bits of the first. */
static void *many_runs(void *arg)
{
    enum { ROWS = 37, RUNS = 125 };
    worker *w = arg;
    float x[ROWS * 4], first[ROWS * 3];
    zc_session *session = NULL;
    zc_view v = matrix(x, ROWS), y;
    fill(x, ROWS, 99);
    w->failures +=
        zc_session_create(w->f->plan, ZC_SESSION_PARAMS(.threads = 1 + (int)(w->seed % 3)),
                          &session, NULL) != ZC_OK;
    w->failures += zc_session_set_input(session, 0, &v, false, NULL) != ZC_OK;
    for (int i = 0; i < RUNS && !w->failures; i++) {
        w->failures += zc_session_run(session, NULL) != ZC_OK ||
                       zc_session_output(session, 0, &y, NULL) != ZC_OK;
        if (w->failures) break;
        if (i == 0) memcpy(first, y.data, sizeof first);
        w->failures += memcmp(first, y.data, sizeof first) != 0;
        w->seed = w->seed * 31 + (unsigned)(first[0] > 1e30f);
    }
    for (int r = 0; r < ROWS && !w->failures; r++) {
        float want[3];
        small_expect(x + 4 * r, want);
        for (int c = 0; c < 3; c++)
            w->failures +=
                !(first[3 * r + c] - want[c] < 1e-5f && want[c] - first[3 * r + c] < 1e-5f);
    }
    zc_session_destroy(&session);
    return NULL;
}

static void test_thousand_runs_from_eight_threads(void **state)
{
    enum { THREADS = 8 };
    worker workers[THREADS];
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (worker){.f = *state, .seed = i};
        assert_int_equal(pthread_create(&threads[i], NULL, many_runs, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].failures, 0);
    }
}

static void test_thousand_loads_do_not_grow(void **state)
{
    fixture *f = *state;
    uint64_t fresh = 0;
    for (int i = 0; i < 1000; i++) {
        zc_session *s;
        expect_ok(f->diag,
                  zc_session_create(f->plan, ZC_SESSION_PARAMS(.threads = 1), &s, f->diag));
        if (i == 0) fresh = zc_session_memory(s);
        assert_in_range(zc_session_memory(s), 1, 64 * 1024);
        assert_int_equal(zc_session_memory(s), fresh);
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
    }
    for (int i = 4; i > 0; i--) run_rows(f, i);
    uint64_t held = zc_session_memory(f->session);
    for (int i = 0; i < 1000; i++) run_rows(f, 1 + i % 4);
    assert_int_equal(zc_session_memory(f->session), held);
}

static void test_names(void **state)
{
    fixture *f = *state;
    zc_plan_info info;
    assert_int_equal(zc_plan_info_get(f->plan, &info), ZC_OK);
    assert_true(info.inputs > 0 && info.outputs > 0);
    for (size_t want = 0; want < info.inputs + info.outputs; want++) {
        const bool input = want < info.inputs;
        const size_t n = input ? want : want - info.inputs;
        zc_io_info io;
        size_t i = 99;
        expect_ok(f->diag, (input ? zc_plan_input : zc_plan_output)(f->plan, n, &io, f->diag));
        expect_ok(f->diag, (input ? zc_plan_find_input : zc_plan_find_output)(f->plan, io.name, &i,
                                                                              f->diag));
        assert_int_equal(i, n);
    }
    size_t i;
    expect_fail(f->diag, zc_plan_find_input(f->plan, "nobody", &i, f->diag), ZC_ERR_ARG,
                "nobody: no such input (the plan has ");
    expect_fail(f->diag, zc_plan_find_output(f->plan, "", &i, f->diag), ZC_ERR_ARG,
                "no such output");
    expect_fail(f->diag, zc_plan_find_output(f->plan, NULL, &i, f->diag), ZC_ERR_ARG,
                "name: is NULL");
    expect_fail(f->diag, zc_plan_find_input(f->plan, "x", NULL, f->diag), ZC_ERR_ARG, "i: is NULL");
    assert_int_equal(zc_plan_find_input(NULL, "x", &i, NULL), ZC_ERR_ARG);
    assert_int_equal(zc_plan_find_output(NULL, "x", &i, NULL), ZC_ERR_ARG);
}

/* Constants have the names' numbers, and sizes are those of ONNX's storage. */
static void test_element_types(void **state)
{
    (void)state;
    assert_int_equal(ZC_ELEM_F32, zc_elem_parse("f32"));
    assert_int_equal(ZC_ELEM_I64, zc_elem_parse("i64"));
    assert_int_equal(ZC_ELEM_BF16, zc_elem_parse("bf16"));
    assert_int_equal(zc_elem_bits(ZC_ELEM_F16), 16);
    assert_int_equal(zc_elem_bits(ZC_ELEM_U4), 4);
    assert_int_equal(zc_elem_bits(ZC_ELEM_C128), 128);
    assert_int_equal(zc_elem_bits(0), 0);
    assert_int_equal(zc_elem_bits(8), 0);
    assert_int_equal(zc_elem_bits(-1), 0);
    zc_view v = {.elem = ZC_ELEM_F32, .rank = 2, .dims = {3, 5}};
    assert_int_equal(zc_view_size(&v), 60);
    v.elem = ZC_ELEM_I4;
    assert_int_equal(zc_view_size(&v), 8);
    v.rank = 0;
    v.elem = ZC_ELEM_I64;
    assert_int_equal(zc_view_size(&v), 8);
    v.rank = 2;
    v.dims[0] = -1;
    assert_true(zc_view_size(&v) == SIZE_MAX);
    v.dims[0] = INT64_MAX;
    assert_true(zc_view_size(&v) == SIZE_MAX);
    v.rank = ZC_RANK_MAX + 1;
    assert_true(zc_view_size(&v) == SIZE_MAX);
    assert_true(zc_view_size(&(zc_view){.elem = 8}) == SIZE_MAX);
    assert_true(zc_view_size(NULL) == SIZE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_plan_serves_all_shapes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bound_output, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failed_run_leaves_no_output, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_inputs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_null_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(test_session_outlives_its_plan, setup, teardown),
        cmocka_unit_test_setup_teardown(test_after_fork, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        cmocka_unit_test(test_element_types),
        cmocka_unit_test_setup_teardown(test_thousand_runs_from_eight_threads, setup, teardown),
        cmocka_unit_test_setup_teardown(test_thousand_loads_do_not_grow, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
