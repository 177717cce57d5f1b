/* Whose memory results are in: never an input's, the plan's or another buffer's; and buffers of the
 * caller that must not overlap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/expect.h"
#include "support/onnx_text.h"
#include "zc/zc.h"

enum { COLUMNS = 4, ROWS_MAX = 8 };

/* y = x + w, and what no step makes: the input itself, the input under another shape, a constant,
 * a value twice. */
enum { Y, INPUT, VIEW, CONSTANT, AGAIN, AGAIN_FLAT, OUTPUTS };
static const char text[] = "opset 17\nin x 1 n,4\nout y 1 *\nout input 1 *\nout view 1 *\n"
                           "out w 1 *\nout again 1 *\nout flat 1 *\ninit w 1 4 1,2,3,4\n"
                           "init s 7 1 -1\nnode Add x,w y\nnode Identity x input\n"
                           "node Reshape x,s view\nnode Identity y again\nnode Reshape y,s flat\n";

typedef struct fixture {
    zc_plan *plan;
    zc_session *a, *b;
    zc_diag *diag;
    float x[ROWS_MAX * COLUMNS];
} fixture;

static void compile(const char *model_text, zc_plan **plan, zc_diag *diag)
{
    zc_buf model = {0};
    void *bytes;
    size_t len;
    onnx_text(model_text, &model);
    expect_ok(diag, zc_compile_bytes(model.data, model.len, NULL, &bytes, &len, diag));
    expect_ok(diag, zc_plan_load_bytes(bytes, len, plan, diag));
    zc_buf_fini(&model);
    zc_free(bytes);
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->diag = zc_diag_create();
    compile(text, &f->plan, f->diag);
    zc_session **const sessions[] = {&f->a, &f->b};
    for (int i = 0; i < 2; i++)
        expect_ok(f->diag, zc_session_create(f->plan, ZC_SESSION_PARAMS(.threads = 1), sessions[i],
                                             f->diag));
    for (int i = 0; i < ROWS_MAX * COLUMNS; i++) f->x[i] = (float)(i * 7 % 10);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    assert_int_equal(zc_session_destroy(&f->a), ZC_OK);
    assert_int_equal(zc_session_destroy(&f->b), ZC_OK);
    zc_plan_destroy(&f->plan);
    zc_diag_destroy(&f->diag);
    free(f);
    return 0;
}

static zc_view rows(const float *data, int64_t n)
{
    return (zc_view){.elem = 1,
                     .rank = 2,
                     .dims = {n, COLUMNS},
                     .data = data,
                     .bytes = (size_t)n * COLUMNS * sizeof *data};
}

static void set(fixture *f, zc_session *s, const float *x, int64_t n, bool borrow)
{
    zc_view v = rows(x, n);
    expect_ok(f->diag, zc_session_set_input(s, 0, &v, borrow, f->diag));
}

static zc_view output(fixture *f, zc_session *s, size_t i)
{
    zc_view v = {0};
    expect_ok(f->diag, zc_session_output(s, i, &v, f->diag));
    return v;
}

static bool inside(const void *p, const void *begin, size_t bytes)
{
    return (uintptr_t)p - (uintptr_t)begin < bytes;
}

static void check(fixture *f, zc_session *s, const float *x, int64_t n)
{
    for (size_t o = 0; o < OUTPUTS; o++) {
        zc_view v = output(f, s, o);
        const float *got = v.data;
        bool is_constant = o == CONSTANT;
        assert_int_equal(v.bytes, (size_t)(is_constant ? 1 : n) * COLUMNS * sizeof *x);
        for (int i = 0; i < (is_constant ? 1 : n) * COLUMNS; i++) {
            float sum = x[i] + (float)(i % COLUMNS + 1);
            float want = is_constant ? (float)(i + 1) : o == INPUT || o == VIEW ? x[i] : sum;
            assert_float_equal(got[i], want, 0);
        }
    }
}

/* ---- results ---- */

/* Results that are inputs stay when the input changes, its memory grows or goes. */
static void test_results_outlive_inputs(void **state)
{
    fixture *f = *state;
    for (int borrow = 0; borrow < 2; borrow++) {
        float *x = malloc(2 * COLUMNS * sizeof *x), want[2 * COLUMNS];
        assert_non_null(x);
        memcpy(x, f->x, sizeof want);
        memcpy(want, f->x, sizeof want);
        set(f, f->a, x, 2, borrow);
        expect_ok(f->diag, zc_session_run(f->a, f->diag));
        for (size_t o = 0; o < OUTPUTS; o++)
            assert_false(inside(output(f, f->a, o).data, x, sizeof want));
        memset(x, 0xFF, sizeof want);
        set(f, f->a, f->x + COLUMNS, 7, false);
        free(x);
        check(f, f->a, want, 2);
    }
}

/* Whoever writes to a result all the same harms neither the plan nor another session. */
static void test_results_are_not_the_plans(void **state)
{
    fixture *f = *state;
    set(f, f->a, f->x, 3, true);
    set(f, f->b, f->x, 3, true);
    float x[3 * COLUMNS];
    memcpy(x, f->x, sizeof x);
    for (int round = 0; round < 3; round++) {
        expect_ok(f->diag, zc_session_run(f->a, f->diag));
        for (size_t o = 0; o < OUTPUTS; o++) {
            zc_view v = output(f, f->a, o);
            memset((void *)(uintptr_t)v.data, 0x5A, v.bytes);
        }
        assert_memory_equal(f->x, x, sizeof x);
        expect_ok(f->diag, zc_session_run(f->b, f->diag));
        check(f, f->b, x, 3);
        expect_ok(f->diag, zc_session_run(f->a, f->diag));
        check(f, f->a, x, 3);
    }
}

/* An output is in the buffer that it is bound to, and no other output is. */
static void test_bound_memory_is_one_outputs(void **state)
{
    fixture *f = *state;
    enum { BYTES = ROWS_MAX * COLUMNS * sizeof(float) };
    char *memory = aligned_alloc(64, OUTPUTS * BYTES);
    assert_non_null(memory);
    for (size_t bound = 0; bound < OUTPUTS; bound++) {
        set(f, f->a, f->x, 5, true);
        expect_ok(f->diag, zc_session_bind_output(f->a, bound, memory, BYTES, f->diag));
        expect_ok(f->diag, zc_session_run(f->a, f->diag));
        check(f, f->a, f->x, 5);
        for (size_t o = 0; o < OUTPUTS; o++)
            assert_int_equal(inside(output(f, f->a, o).data, memory, BYTES), o == bound);
        expect_ok(f->diag, zc_session_bind_output(f->a, bound, NULL, 0, f->diag));
    }
    for (size_t o = 0; o < OUTPUTS; o++)
        expect_ok(f->diag, zc_session_bind_output(f->a, o, memory + o * BYTES, BYTES, f->diag));
    expect_ok(f->diag, zc_session_run(f->a, f->diag));
    check(f, f->a, f->x, 5);
    for (size_t o = 0; o < OUTPUTS; o++)
        assert_ptr_equal(output(f, f->a, o).data, memory + o * BYTES);
    free(memory);
}

/* Binding changes where the next run writes, not where the last one wrote. */
static void test_binding_keeps_the_last_result(void **state)
{
    fixture *f = *state;
    _Alignas(64) float memory[ROWS_MAX * COLUMNS];
    set(f, f->a, f->x, 2, false);
    expect_ok(f->diag, zc_session_run(f->a, f->diag));
    expect_ok(f->diag, zc_session_bind_output(f->a, Y, memory, sizeof memory, f->diag));
    check(f, f->a, f->x, 2);
    expect_ok(f->diag, zc_session_run(f->a, f->diag));
    expect_ok(f->diag, zc_session_bind_output(f->a, Y, NULL, 0, f->diag));
    assert_ptr_equal(output(f, f->a, Y).data, memory);
    check(f, f->a, f->x, 2);
}

/* What zc_plan_memory foretells has these copies in it. */
static void test_copies_are_counted(void **state)
{
    fixture *f = *state;
    zc_io_info in;
    zc_memory_info m;
    expect_ok(f->diag, zc_plan_input(f->plan, 0, &in, f->diag));
    in.dims[0] = ROWS_MAX;
    expect_ok(f->diag, zc_plan_memory(f->plan, &in, 1, &m, f->diag));
    const uint64_t one = ROWS_MAX * COLUMNS * sizeof(float);
    assert_int_equal(m.result_bytes, 3 * one + COLUMNS * sizeof(float)); /* y, input, view, w */
}

/* ---- overlaps ---- */

static void test_overlapping_buffers_are_refused(void **state)
{
    fixture *f = *state;
    enum { BYTES = 2 * COLUMNS * sizeof(float) };
    float *memory = aligned_alloc(64, 1024);
    assert_non_null(memory);
    memset(memory, 0, 1024);
    static const struct {
        size_t bound, bytes, input; /* byte offsets */
        bool refused;
    } cases[] = {{0, BYTES, 0, true},   {0, BYTES, BYTES - 4, true}, {64, BYTES, 68 - BYTES, true},
                 {0, 1024, 512, true},  {0, BYTES, BYTES, false},    {64, BYTES, 64 - BYTES, false},
                 {0, BYTES, 64, false}, {64, 64, 128 - 4 * 2, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set(f, f->a, memory + cases[i].input / 4, 2, true);
        expect_ok(f->diag, zc_session_bind_output(f->a, Y, (char *)memory + cases[i].bound,
                                                  cases[i].bytes, f->diag));
        zc_status status = zc_session_run(f->a, f->diag);
        if (cases[i].refused)
            expect_fail(f->diag, status, ZC_ERR_ARG,
                        "x: its borrowed memory overlaps what output y is bound to");
        else
            expect_ok(f->diag, status);
        /* A copy of the same bytes is no overlap. */
        set(f, f->a, memory + cases[i].input / 4, 2, false);
        expect_ok(f->diag, zc_session_run(f->a, f->diag));
    }
    expect_ok(f->diag, zc_session_bind_output(f->a, VIEW, (char *)memory + 64, 64, f->diag));
    expect_ok(f->diag, zc_session_bind_output(f->a, Y, memory, 65, f->diag));
    expect_fail(f->diag, zc_session_run(f->a, f->diag), ZC_ERR_ARG,
                "view: its bound memory overlaps what output y is bound to");
    expect_ok(f->diag, zc_session_bind_output(f->a, Y, memory, 64, f->diag));
    expect_ok(f->diag, zc_session_run(f->a, f->diag));
    free(memory);
}

/* Two buffers that take turns as input and output: each is set before the other is let go. */
static void test_buffers_take_turns(void **state)
{
    fixture *f = *state;
    _Alignas(64) float memory[2][16] = {0};
    for (int i = 0; i < 6; i++) {
        set(f, f->a, memory[i & 1], 2, true);
        expect_ok(f->diag,
                  zc_session_bind_output(f->a, Y, memory[!(i & 1)], sizeof memory[0], f->diag));
        expect_ok(f->diag, zc_session_run(f->a, f->diag));
        for (int c = 0; c < 2 * COLUMNS; c++)
            assert_float_equal(memory[!(i & 1)][c], (float)((i + 1) * (c % COLUMNS + 1)), 0);
    }
}

/* The next run writes there. */
static void test_results_are_not_borrowed(void **state)
{
    fixture *f = *state;
    set(f, f->a, f->x, 2, false);
    expect_ok(f->diag, zc_session_run(f->a, f->diag));
    for (size_t o = 0; o < OUTPUTS; o++) {
        zc_view v = output(f, f->a, o);
        zc_view in = rows(v.data, o == CONSTANT ? 1 : 2);
        expect_fail(f->diag, zc_session_set_input(f->a, 0, &in, true, f->diag), ZC_ERR_ARG,
                    "x: its borrowed memory is that of this session's result ");
        expect_fail(f->diag,
                    zc_session_bind_output(f->a, Y, (void *)(uintptr_t)v.data, v.bytes, f->diag),
                    ZC_ERR_ARG, "y: its bound memory is that of this session's result ");
    }
    check(f, f->a, f->x, 2);
    zc_view y = output(f, f->a, Y), in = rows(y.data, 2);
    float sum[2 * COLUMNS];
    memcpy(sum, y.data, sizeof sum);
    expect_ok(f->diag, zc_session_set_input(f->b, 0, &in, true, f->diag)); /* another session may */
    expect_ok(f->diag, zc_session_run(f->b, f->diag));
    expect_ok(f->diag, zc_session_set_input(f->a, 0, &in, false, f->diag));
    expect_ok(f->diag, zc_session_run(f->a, f->diag));
    check(f, f->a, sum, 2);
    check(f, f->b, sum, 2);
}

/* A result made of a row that a larger tensor begins with: its memory is that of the row alone. */
static void test_results_of_first_rows(void **state)
{
    static const char *const ends[] = {"node Sqrt r y\n", "node Reshape r,f y\n",
                                       "node Identity r y\n"};
    fixture *f = *state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char model[256];
        float x[16 * COLUMNS];
        _Alignas(64) float y[COLUMNS + 1];
        zc_plan *plan;
        zc_session *s;
        zc_view in = {.elem = 1, .rank = 3, .dims = {1, 16, COLUMNS}, .data = x, .bytes = sizeof x};
        snprintf(model, sizeof model,
                 "opset 17\nin x 1 1,16,4\nout y 1 *\ninit z 7 - 0\ninit f 7 1 -1\n"
                 "node Softmax x s axis:i=1\nnode Gather s,z r axis:i=1\n%s",
                 ends[i]);
        compile(model, &plan, f->diag);
        expect_ok(f->diag, zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 1), &s, f->diag));
        for (int e = 0; e < 16 * COLUMNS; e++) x[e] = 0;
        y[COLUMNS] = 7;
        expect_ok(f->diag, zc_session_set_input(s, 0, &in, false, f->diag));
        expect_ok(f->diag, zc_session_bind_output(s, 0, y, COLUMNS * sizeof *y, f->diag));
        for (int n = 0; n < 2; n++) expect_ok(f->diag, zc_session_run(s, f->diag));
        for (int e = 0; e < COLUMNS; e++) assert_float_equal(y[e], i ? 0.0625f : 0.25f, 1e-6f);
        assert_float_equal(y[COLUMNS], 7, 0);
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
        zc_plan_destroy(&plan);
    }
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_results_outlive_inputs),      T(test_results_are_not_the_plans),
        T(test_bound_memory_is_one_outputs), T(test_binding_keeps_the_last_result),
        T(test_copies_are_counted),          T(test_overlapping_buffers_are_refused),
        T(test_buffers_take_turns),          T(test_results_are_not_borrowed),
        T(test_results_of_first_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
