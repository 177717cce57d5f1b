/* What measurements stand on: times of steps on the GPU, runs without transfers, memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cuda/gpu.h"
#include "runtime/memory_map.h"
#include "runtime/probe.h"
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
    /* Zeros take the place of the inputs on the device, not of the inputs. */
    zc_io_info shapes[2];
    for (size_t i = 0; i < 2; i++) {
        expect_ok(f->diag, zc_plan_input(f->plan, i, &shapes[i], f->diag));
        shapes[i].dims[0] = i ? f->in.m : f->in.n;
    }
    expect_ok(f->diag, zc_session_prepare(s, shapes, 2, NULL, f->diag));
    expect_ok(f->diag, zc_session_run(s, f->diag));
    expect_ok(f->diag, zc_session_output(s, 0, &out, f->diag));
    assert_true(gpu_rows_right(&f->in, out.data));
    gpu_rows_make(&f->in, 9, 7, 11);
    expect_ok(f->diag, zc_session_bind_output(s, 0, bound, sizeof bound, f->diag));
    expect_ok(f->diag, gpu_rows_set(s, &f->in, f->diag));
    expect_ok(f->diag, zc_session_run(s, f->diag));
    expect_ok(f->diag, zc_session_output(s, 0, &out, f->diag));
    assert_false(out.on_device);
    assert_true(gpu_rows_right(&f->in, bound));
    gpu_fixture_destroy(f, true);
}

/* The host needs the input `shape`, kernels read it too: it is on both sides. */
static void test_resident_on_both_sides(void **state)
{
    static float x[12] = {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12};
    static int64_t shape[2] = {4, 3};
    const zc_view in[] = {
        {.elem = 1, .rank = 2, .dims = {6, 2}, .data = x, .bytes = sizeof x},
        {.elem = 7, .rank = 1, .dims = {2}, .data = shape, .bytes = sizeof shape}};
    zc_diag *diag = zc_diag_create();
    zc_view y, z;
    void *bytes;
    size_t len;
    (void)state;
    gpu_fake(NULL, NULL);
    gpu_compile("opset 17\nin x 1 n,2\nin shape 7 2\nout y 1 *\nout z 7 *\n"
                "node Abs x a\nnode Reshape a,shape y\nnode Mul shape,shape z\n",
                "sm_90", false, &bytes, &len);
    zc_plan *plan = gpu_load(bytes, len);
    zc_session *s = gpu_session(plan);
    for (size_t i = 0; i < 2; i++) expect_ok(diag, zc_session_set_input(s, i, &in[i], false, diag));
    expect_ok(diag, zc_session_reside(s, diag));
    for (int run = 0; run < 3; run++) {
        expect_ok(diag, zc_session_run(s, diag));
        expect_ok(diag, zc_session_output(s, 0, &y, diag));
        expect_ok(diag, zc_session_output(s, 1, &z, diag));
        assert_true(y.on_device && z.on_device && y.rank == 2 && y.dims[0] == 4);
        for (int i = 0; i < 12; i++) assert_true(((const float *)y.data)[i] == (float)(i + 1));
        assert_int_equal(((const int64_t *)z.data)[0], 16);
        assert_int_equal(((const int64_t *)z.data)[1], 9);
    }
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_plan_destroy(&plan);
    zc_free(bytes);
    zc_diag_destroy(&diag);
}

/* What is foretold without a device is what a session holds after a run; a product of few tiles
 * takes workspace for its split sums. */
static void test_foretold_memory(void **state)
{
    enum { ROWS = 64, DEPTH = 1024, COLUMNS = 8 };
    static float x[ROWS * DEPTH], w[DEPTH * COLUMNS];
    zc_view in[] = {{.elem = 1, .rank = 2, .dims = {ROWS, DEPTH}, .data = x, .bytes = sizeof x},
                    {.elem = 1, .rank = 2, .dims = {DEPTH, COLUMNS}, .data = w, .bytes = sizeof w}};
    zc_diag *diag = zc_diag_create();
    zc_io_info inputs[2];
    zc_memory_map map;
    zc_device_info device;
    void *bytes;
    size_t len;
    (void)state;
    gpu_fake(NULL, NULL);
    gpu_compile("opset 17\nin x 1 n,1024\nin w 1 1024,8\nout y 1 *\n"
                "node MatMul x,w a\nnode Softmax a y\n",
                "sm_90", false, &bytes, &len);
    zc_plan *plan = gpu_load(bytes, len);
    zc_session *s = gpu_session(plan);
    for (size_t i = 0; i < 2; i++) {
        expect_ok(diag, zc_plan_input(plan, i, &inputs[i], diag));
        expect_ok(diag, zc_session_set_input(s, i, &in[i], false, diag));
    }
    inputs[0].dims[0] = ROWS;
    expect_ok(diag, zc_memory_map_make(plan, 90, inputs, 2, &map, diag));
    expect_ok(diag, zc_session_run(s, diag));
    assert_int_equal(zc_session_device(s, &device), ZC_OK);
    assert_true(map.workspace > 0 && map.code_bytes > 0);
    assert_int_equal(map.unknown, 0);
    assert_int_equal(device.memory, map.info.arena_bytes + map.info.result_bytes + map.workspace +
                                        sizeof x + sizeof w);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_memory_map_free(&map);
    zc_plan_destroy(&plan);
    zc_free(bytes);
    zc_diag_destroy(&diag);
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

/* Each of the driver's calls fails once: the probe says so, and leaves nothing on a device that
 * works. */
static void test_probe(void **state)
{
    static const struct {
        const char *call;
        long n;
    } faults[] = {
        {"cuMemAlloc_v2", 1},        {"cuMemAlloc_v2", 2},      {"cuStreamCreate", 1},
        {"cuEventCreate", 1},        {"cuEventCreate", 2},      {"cuEventRecord", 1},
        {"cuMemcpyDtoDAsync_v2", 1}, {"cuEventSynchronize", 1}, {"cuEventElapsedTime", 1}};
    zc_diag *diag = zc_diag_create();
    zc_peaks peaks;
    hc_counts counts;
    (void)state;
    gpu_fake(NULL, NULL);
    expect_ok(diag, zc_probe_gpu(0, &peaks, diag));
    assert_true(peaks.bytes > 0 && peaks.operations == 0);
    zc_hostcuda_counts(&counts);
    assert_true(counts.live == 0 && counts.device_bytes == 0);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        gpu_fault(faults[i].call, faults[i].n, 1);
        assert_int_equal(zc_probe_gpu(0, &peaks, diag), ZC_ERR_DEVICE);
        zc_hostcuda_counts(&counts);
        assert_true(counts.live == 0 && counts.device_bytes == 0);
    }
    gpu_fault("cuEventSynchronize", 1, 700);
    assert_int_equal(zc_probe_gpu(0, &peaks, diag), ZC_ERR_DEVICE_LOST);
    gpu_fake(NULL, NULL);
    zc_diag_destroy(&diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_resident),
        cmocka_unit_test(test_resident_on_both_sides),
        cmocka_unit_test(test_not_on_the_cpu),
        cmocka_unit_test(test_foretold_memory),
        cmocka_unit_test(test_probe),
    };
    return cmocka_run_group_tests(tests, gpu_group_setup, gpu_group_teardown);
}
