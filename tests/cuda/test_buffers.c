/* Whose memory the results of sessions on the GPU are in, and buffers that overlap
 * (tests/unit/test_session_buffers.c has the CPU's). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cuda/gpu.h"

enum { ROWS = 4, COLUMNS = 8, COUNT = ROWS * COLUMNS, BYTES = COUNT * sizeof(float) };

/* y = (x + w) * w, and what no kernel makes: the input itself, the input under another shape, a
 * constant, a value under another shape. */
enum { Y, INPUT, VIEW, CONSTANT, FLAT, OUTPUTS };
static const char text[] =
    "opset 17\nin x 1 n,8\nout y 1 *\nout input 1 *\nout view 1 *\nout w 1 *\n"
    "out flat 1 *\ninit w 1 8 1,2,3,4,5,6,7,8\ninit s 7 1 -1\n"
    "node Add x,w a\nnode Mul a,w y\nnode Identity x input\n"
    "node Reshape x,s view\nnode Reshape y,s flat\n";

typedef struct fixture {
    zc_plan *plan;
    zc_session *a, *b;
    zc_diag *diag;
    hc_context_t context;
    float x[COUNT];
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    void *bytes;
    size_t len;
    gpu_fake(NULL, NULL);
    f->diag = zc_diag_create();
    gpu_compile(text, "sm_90", true, &bytes, &len);
    f->plan = gpu_load(bytes, len);
    f->a = gpu_session(f->plan);
    f->b = gpu_session(f->plan);
    for (int i = 0; i < COUNT; i++) f->x[i] = (float)(i * 7 % 10);
    assert_int_equal(cuDevicePrimaryCtxRetain(&f->context, 0), 0);
    assert_int_equal(cuCtxPushCurrent_v2(f->context), 0);
    zc_free(bytes);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    assert_int_equal(cuCtxPopCurrent_v2(&f->context), 0);
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), 0);
    assert_int_equal(zc_session_destroy(&f->a), ZC_OK);
    assert_int_equal(zc_session_destroy(&f->b), ZC_OK);
    zc_plan_destroy(&f->plan);
    zc_diag_destroy(&f->diag);
    free(f);
    return 0;
}

static void set(fixture *f, zc_session *s, const void *x, bool borrow, bool on_device)
{
    zc_view v = {.elem = 1,
                 .rank = 2,
                 .dims = {ROWS, COLUMNS},
                 .data = x,
                 .bytes = BYTES,
                 .on_device = on_device};
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

static void check(fixture *f, zc_session *s, const float *x)
{
    for (size_t o = 0; o < OUTPUTS; o++) {
        zc_view v = output(f, s, o);
        float got[COUNT];
        int count = o == CONSTANT ? COLUMNS : COUNT;
        assert_int_equal(v.bytes, (size_t)count * sizeof *x);
        if (v.on_device)
            gpu_get(got, v.data, v.bytes);
        else
            memcpy(got, v.data, v.bytes);
        for (int i = 0; i < count; i++) {
            float w = (float)(i % COLUMNS + 1);
            float want = o == CONSTANT ? w : o == INPUT || o == VIEW ? x[i] : (x[i] + w) * w;
            assert_float_equal(got[i], want, 0);
        }
    }
}

static void test_results_are_nobody_elses(void **state)
{
    fixture *f = *state;
    float x[COUNT];
    memcpy(x, f->x, sizeof x);
    for (int borrow = 0; borrow < 2; borrow++) {
        set(f, f->a, f->x, borrow, false);
        set(f, f->b, x, borrow, false);
        for (int round = 0; round < 4; round++) {
            expect_ok(f->diag, zc_session_run(f->a, f->diag));
            check(f, f->a, x);
            for (size_t o = 0; o < OUTPUTS; o++) {
                zc_view v = output(f, f->a, o);
                assert_false(v.on_device);
                assert_false(inside(v.data, f->x, sizeof f->x));
                memset((void *)(uintptr_t)v.data, 0x5A, v.bytes);
            }
            assert_memory_equal(f->x, x, sizeof x);
            expect_ok(f->diag, zc_session_run(f->b, f->diag));
            check(f, f->b, x);
        }
        /* The next value does not change what the last run gave. */
        float other[COUNT] = {0};
        set(f, f->b, other, false, false);
        check(f, f->b, x);
    }
}

static void test_bound_device_memory_is_one_outputs(void **state)
{
    fixture *f = *state;
    hc_ptr x, y;
    assert_int_equal(cuMemAlloc_v2(&x, BYTES) | cuMemAlloc_v2(&y, BYTES), 0);
    gpu_put(x, f->x, BYTES);
    set(f, f->a, (void *)(uintptr_t)x, true, true);
    for (size_t bound = 0; bound < OUTPUTS; bound++) {
        void *p = (void *)(uintptr_t)y;
        expect_ok(f->diag, zc_session_bind_output_device(f->a, bound, p, BYTES, f->diag));
        for (int round = 0; round < 3; round++) {
            expect_ok(f->diag, zc_session_run(f->a, f->diag));
            check(f, f->a, f->x);
            for (size_t o = 0; o < OUTPUTS; o++) {
                zc_view v = output(f, f->a, o);
                assert_int_equal(v.on_device, o == bound);
                assert_int_equal(inside(v.data, p, BYTES), o == bound);
            }
        }
        /* The last run's result is where it was, whatever is bound now. */
        expect_ok(f->diag, zc_session_bind_output(f->a, bound, NULL, 0, f->diag));
        assert_true(output(f, f->a, bound).on_device);
    }
    assert_int_equal(cuMemFree_v2(x) | cuMemFree_v2(y), 0);
}

static void test_overlapping_device_memory_is_refused(void **state)
{
    fixture *f = *state;
    static const char zeros[4096];
    hc_ptr p;
    assert_int_equal(cuMemAlloc_v2(&p, sizeof zeros), 0);
    gpu_put(p, zeros, sizeof zeros);
    char *memory = (char *)(uintptr_t)p;
    set(f, f->a, memory + 256, true, true);
    for (size_t o = 0; o < 2; o++) {
        size_t at = o ? 256 + BYTES - 64 : 128, bytes = o ? BYTES : 256;
        expect_ok(f->diag, zc_session_bind_output_device(f->a, Y, memory + at, bytes, f->diag));
        for (int round = 0; round < 3; round++)
            expect_fail(f->diag, zc_session_run(f->a, f->diag), ZC_ERR_ARG,
                        "x: its borrowed memory overlaps what output y is bound to");
    }
    /* Buffers that take turns. */
    for (int i = 0; i < 6; i++) {
        set(f, f->a, memory + (i & 1) * 1024, true, true);
        expect_ok(f->diag,
                  zc_session_bind_output_device(f->a, Y, memory + !(i & 1) * 1024, BYTES, f->diag));
        expect_ok(f->diag, zc_session_run(f->a, f->diag));
    }
    expect_ok(f->diag, zc_session_bind_output_device(f->a, VIEW, memory + 64, BYTES, f->diag));
    expect_fail(f->diag, zc_session_run(f->a, f->diag), ZC_ERR_ARG,
                "view: its bound memory overlaps what output y is bound to");
    assert_int_equal(cuMemFree_v2(p), 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_results_are_nobody_elses),
        T(test_bound_device_memory_is_one_outputs),
        T(test_overlapping_device_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, gpu_group_setup, gpu_group_teardown);
}
