/* What measurements stand on: times of steps on the GPU, and runs without transfers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cuda/gpu.h"
#include "runtime/resident.h"

static void test_steps(void **state)
{
    gpu_fixture *f = gpu_fixture_create(false);
    zc_session *s;
    zc_profile_info all;
    float y[GPU_ROWS_MAX * GPU_COLUMNS];
    zc_view out;
    (void)state;
    expect_ok(f->diag, zc_session_create(
                           f->plan, ZC_SESSION_PARAMS(.device = ZC_DEVICE_CUDA, .profile = true),
                           &s, f->diag));
    expect_ok(f->diag, gpu_rows_set(s, &f->in, f->diag));
    expect_ok(f->diag, zc_session_profile(s, ZC_PROFILE_PARAMS(.least_runs = 9), &all, f->diag));
    assert_int_equal(all.runs, 9);
    for (size_t i = 0; i < all.steps; i++) {
        zc_step_info step;
        const double *us;
        size_t n;
        expect_ok(f->diag, zc_session_step(s, i, &step, f->diag));
        expect_ok(f->diag, zc_session_step_times(s, i, &us, &n, f->diag));
        assert_int_equal(n, 9);
        assert_non_null(step.kernel);
        assert_true(0 <= step.low_us && step.low_us <= step.median_us);
        assert_true(step.median_us > 0 && step.median_us <= step.high_us);
        assert_true(step.bytes_in > 0 && step.bytes_out > 0);
    }
    expect_ok(f->diag, zc_session_output(s, 0, &out, f->diag));
    memcpy(y, out.data, out.bytes);
    assert_true(gpu_rows_right(&f->in, y));
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    gpu_fixture_destroy(f, true);
}

/* Inputs stay until they are set again, and a bound output is delivered as ever. */
static void test_resident(void **state)
{
    gpu_fixture *f = gpu_fixture_create(false);
    float y[GPU_ROWS_MAX * GPU_COLUMNS] = {0};
    _Alignas(64) static float bound[GPU_ROWS_MAX * GPU_COLUMNS];
    zc_session *s = f->session = gpu_session(f->plan);
    zc_view out;
    (void)state;
    expect_ok(f->diag, gpu_rows_set(s, &f->in, f->diag));
    expect_ok(f->diag, zc_session_reside(s, f->diag));
    for (int i = 0; i < 3; i++) {
        expect_ok(f->diag, zc_session_run(s, f->diag));
        expect_ok(f->diag, zc_session_output(s, 0, &out, f->diag));
        assert_true(out.on_device);
        memcpy(y, out.data, out.bytes); /* the fake device's memory is the host's */
        assert_true(gpu_rows_right(&f->in, y));
    }
    gpu_rows_make(&f->in, 9, 7, 11);
    expect_ok(f->diag, zc_session_bind_output(s, 0, bound, sizeof bound, f->diag));
    expect_ok(f->diag, gpu_rows_set(s, &f->in, f->diag));
    expect_ok(f->diag, zc_session_run(s, f->diag));
    expect_ok(f->diag, zc_session_output(s, 0, &out, f->diag));
    assert_false(out.on_device);
    assert_true(gpu_rows_right(&f->in, bound));
    gpu_fixture_destroy(f, true);
}

static void test_not_on_the_cpu(void **state)
{
    gpu_fixture *f = gpu_fixture_create(false);
    zc_session *s;
    (void)state;
    expect_ok(f->diag, zc_session_create(f->plan, NULL, &s, f->diag));
    expect_fail(f->diag, zc_session_reside(s, f->diag), ZC_ERR_ARG,
                "there are none to leave out on the CPU (need a GPU)");
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    gpu_fixture_destroy(f, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_resident),
        cmocka_unit_test(test_not_on_the_cpu),
    };
    return cmocka_run_group_tests(tests, gpu_group_setup, gpu_group_teardown);
}
