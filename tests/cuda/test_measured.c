/* What measurements stand on: times of steps on the GPU, runs without transfers, memory. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "abi/peak.h"
#include "codegen/codegen.h"
#include "codegen/emit.h"
#include "cuda/device.h"
#include "cuda/gpu.h"
#include "kernels/stamps.h"
#include "runtime/memory_map.h"
#include "runtime/resident.h"
#include "tune/gpu_peaks.h"

/* What the last run left, of inputs f->in. */
static void expect_rows(gpu_fixture *f, zc_session *s, bool on_device)
{
    zc_view out;
    expect_ok(f->diag, zc_session_output(s, 0, &out, f->diag));
    assert_int_equal(out.on_device, on_device);
    assert_true(on_device ? gpu_rows_right_at(&f->in, (hc_ptr)(uintptr_t)out.data)
                          : gpu_rows_right(&f->in, out.data));
}

static void test_steps(void **state)
{
    gpu_fixture *f = gpu_fixture_create(false);
    zc_session *s;
    zc_profile_info all;
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
    expect_rows(f, s, false);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    gpu_fixture_destroy(f, true);
}

static zc_status profiled_session(zc_plan *plan, bool profile, zc_session **out, zc_diag *diag)
{
    return zc_session_create(
        plan,
        ZC_SESSION_PARAMS(.device = ZC_DEVICE_CUDA, .profile = profile, .profile_graphs = true),
        out, diag);
}

/* Steps within their graph: together they are the time from the first begin to the last end, which
 * is no more than the device's. */
static void test_steps_in_graphs(void **state)
{
    gpu_fixture *f = gpu_fixture_create(false);
    zc_session *s, *plain;
    zc_profile_info all;
    zc_device_info device;
    double last_run = 0, end = 0;
    (void)state;
    expect_ok(f->diag, profiled_session(f->plan, true, &s, f->diag));
    expect_ok(f->diag, gpu_rows_set(s, &f->in, f->diag));
    expect_ok(f->diag, zc_session_profile(s, ZC_PROFILE_PARAMS(.least_runs = 9), &all, f->diag));
    assert_int_equal(zc_session_device(s, &device), ZC_OK);
    assert_true(device.graphs == 1 && !device.graph_refusal && device.rebuilt == 0);
    for (size_t i = 0; i < all.steps; i++) {
        zc_step_info step;
        const double *us;
        size_t n;
        expect_ok(f->diag, zc_session_step(s, i, &step, f->diag));
        expect_ok(f->diag, zc_session_step_times(s, i, &us, &n, f->diag));
        assert_true(step.kernel && step.end_us > step.begin_us && step.end_us > end);
        assert_true(step.median_us > 0 && step.overlap_us >= 0);
        /* The end in front is what this one waited for. */
        assert_true(step.begin_us <= end && step.gap_us == 0);
        assert_true(fabs(us[n - 1] - (step.end_us - end)) < 0.01);
        end = step.end_us;
        last_run += us[n - 1];
    }
    assert_true(fabs(last_run - end) < 0.05 && all.device_us > 0);
    expect_rows(f, s, false);
    plain = gpu_session(f->plan); /* has the plan's own kernels */
    gpu_rows_run(plain, &f->in);
    assert_int_equal(zc_session_destroy(&plain), ZC_OK);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    expect_fail(f->diag, profiled_session(f->plan, false, &s, f->diag), ZC_ERR_ARG,
                "profile_graphs: needs profile");
    gpu_fixture_destroy(f, true);
}

/* Each of the driver's calls fails once. */
static void test_steps_in_graphs_fail(void **state)
{
    static const char *const calls[] = {
        "cuEventCreate", "cuMemAlloc_v2",        "cuModuleLoadData",    "cuMemsetD8Async",
        "cuEventRecord", "cuMemcpyDtoHAsync_v2", "nvrtcCompileProgram", "cuEventElapsedTime"};
    (void)state;
    gpu_needs_fake();
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        gpu_fixture *f = gpu_fixture_create(false);
        zc_session *s = NULL;
        zc_profile_info all;
        bool compiles = strncmp(calls[i], "nvrtc", 5) == 0;
        char *cache = compiles ? strdup(getenv("ZC_CACHE_DIR")) : NULL;
        if (compiles) setenv("ZC_CACHE_DIR", "/dev/null", 1);
        gpu_fault(calls[i], 1, compiles ? 6 : 1);
        zc_status status = profiled_session(f->plan, true, &s, f->diag);
        if (status == ZC_OK) {
            expect_ok(f->diag, gpu_rows_set(s, &f->in, f->diag));
            status = zc_session_profile(s, NULL, &all, f->diag);
        }
        assert_int_equal(status, compiles ? ZC_ERR_INTERNAL : ZC_ERR_DEVICE);
        if (s) assert_int_equal(zc_session_destroy(&s), ZC_OK);
        gpu_fixture_destroy(f, true);
        if (cache) setenv("ZC_CACHE_DIR", cache, 1);
        free(cache);
    }
}

static void test_steps_in_graphs_need_sources(void **state)
{
    gpu_fixture *f = gpu_fixture_create(true);
    zc_session *s;
    (void)state;
    expect_fail(f->diag, profiled_session(f->plan, true, &s, f->diag), ZC_ERR_UNSUPPORTED,
                "compile the model without --strip-sources");
    gpu_fixture_destroy(f, true);
}

static int count_of(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)) != NULL; text++) n++;
    return n;
}

/* Every entry of every template notes its times. */
static void test_stamped_sources(void **state)
{
    zc_diag *diag = zc_diag_create();
    zc_arena arena;
    zc_program p = {.sources = zc_templates};
    const zc_psource *stamped;
    int entries = 0;
    (void)state;
    zc_arena_init(&arena, 0);
    while (zc_templates[p.nsources].name) p.nsources++;
    expect_ok(diag, zc_stamped_sources(&p, &arena, &stamped, diag));
    for (uint32_t i = 0; i < p.nsources; i++) {
        int n = count_of(zc_templates[i].text, "__grid_constant__");
        assert_int_equal(count_of(stamped[i].text, "{ const zc_stamp "), n);
        entries += n;
    }
    assert_true(entries > 100);
    zc_arena_fini(&arena);
    zc_diag_destroy(&diag);
}

/* A step has ended when the next that has kernels may go on, or as noted where none comes next. */
static void test_stamps_end(void **state)
{
    zc_stamps s[3];
    (void)state;
    memset(s, 0xFF, sizeof s);
    assert_true(zc_stamps_end(s, 3) == ZC_STAMP_NONE);
    s[0].begin = 100;
    s[0].ready = 90;
    assert_true(zc_stamps_end(s, 3) == ZC_STAMP_NONE);
    s[2].begin = 110;
    s[2].ready = 170;
    assert_true(zc_stamps_end(s, 3) == 170);
    assert_true(zc_stamps_end(s, 2) == ZC_STAMP_NONE);
    s[0].end = 150;
    assert_true(zc_stamps_end(s, 3) == 150);
    assert_true(zc_stamps_end(s + 1, 2) == ZC_STAMP_NONE);
}

/* Inputs stay until they are set again, and a bound output is delivered as ever. */
static void test_resident(void **state)
{
    gpu_fixture *f = gpu_fixture_create(false);
    _Alignas(64) static float bound[GPU_ROWS_MAX * GPU_COLUMNS];
    zc_session *s = f->session = gpu_session(f->plan);
    (void)state;
    expect_ok(f->diag, gpu_rows_set(s, &f->in, f->diag));
    expect_ok(f->diag, zc_session_reside(s, f->diag));
    for (int i = 0; i < 3; i++) {
        expect_ok(f->diag, zc_session_run(s, f->diag));
        expect_rows(f, s, true);
    }
    /* Zeros take the place of the inputs on the device, not of the inputs. */
    zc_io_info shapes[2];
    for (size_t i = 0; i < 2; i++) {
        expect_ok(f->diag, zc_plan_input(f->plan, i, &shapes[i], f->diag));
        shapes[i].dims[0] = i ? f->in.m : f->in.n;
    }
    expect_ok(f->diag, zc_session_prepare(s, shapes, 2, NULL, f->diag));
    expect_ok(f->diag, zc_session_run(s, f->diag));
    expect_rows(f, s, true);
    gpu_rows_make(&f->in, 9, 7, 11);
    expect_ok(f->diag, zc_session_bind_output(s, 0, bound, sizeof bound, f->diag));
    expect_ok(f->diag, gpu_rows_set(s, &f->in, f->diag));
    expect_ok(f->diag, zc_session_run(s, f->diag));
    expect_rows(f, s, false);
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
        float sizes[12];
        int64_t squares[2];
        gpu_get(sizes, y.data, sizeof sizes);
        gpu_get(squares, z.data, sizeof squares);
        for (int i = 0; i < 12; i++) assert_true(sizes[i] == (float)(i + 1));
        assert_true(squares[0] == 16 && squares[1] == 9);
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

static void test_probe(void **state)
{
    zc_diag *diag = zc_diag_create();
    zc_peaks peaks;
    hc_counts counts;
    (void)state;
    gpu_fake(NULL, NULL);
    expect_ok(diag, zc_probe_gpu(0, &peaks, diag));
    assert_true(peaks.bytes > 0 && peaks.launch > 0);
    for (int i = 0; i < ZC_PEAK_COUNT; i++) assert_true(peaks.operations[i] > 0);
    gpu_counts(&counts);
    assert_true(counts.live == 0 && counts.device_bytes == 0);
    zc_diag_destroy(&diag);
}

/* Each of the driver's calls fails once: the probe says so, and leaves nothing on a device that
 * works. */
static void test_probe_fails(void **state)
{
    static const struct {
        const char *call;
        long n;
    } faults[] = {
        {"cuMemAlloc_v2", 1},        {"cuMemAlloc_v2", 2},       {"cuStreamCreate", 1},
        {"cuEventCreate", 1},        {"cuEventCreate", 2},       {"cuEventRecord", 1},
        {"cuMemcpyDtoDAsync_v2", 1}, {"cuEventSynchronize", 1},  {"cuEventElapsedTime", 1},
        {"cuModuleLoadData", 1},     {"cuModuleGetFunction", 1}, {"cuLaunchKernelEx", 1},
        {"cuLaunchKernelEx", 53},    {"cuFuncSetAttribute", 1}};
    zc_diag *diag = zc_diag_create();
    zc_peaks peaks;
    hc_counts counts;
    (void)state;
    gpu_needs_fake();
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        gpu_fault(faults[i].call, faults[i].n, 1);
        assert_int_equal(zc_probe_gpu(0, &peaks, diag), ZC_ERR_DEVICE);
        gpu_counts(&counts);
        assert_true(counts.live == 0 && counts.device_bytes == 0);
    }
    gpu_fault("cuEventSynchronize", 1, 700);
    assert_int_equal(zc_probe_gpu(0, &peaks, diag), ZC_ERR_DEVICE_LOST);
    gpu_fake(NULL, NULL);
    zc_diag_destroy(&diag);
}

static zc_cu_module load_ones(const zc_peak_kernel *k, zc_device *d, zc_cu_function *function,
                              zc_diag *diag)
{
    static const char *const ones[] = {
        [ZC_PEAK_F32] = "3f800000",  [ZC_PEAK_F16] = "3c003c00",  [ZC_PEAK_BF16] = "3f803f80",
        [ZC_PEAK_TF32] = "3f800000", [ZC_PEAK_E4M3] = "38383838", [ZC_PEAK_S8] = "01010101"};
    zc_pkernel kernel = k->kernel;
    char spec[sizeof k->spec];
    zc_rtc rtc;
    zc_buf code = {0};
    zc_cu_module module;
    memcpy(spec, k->spec, sizeof spec);
    memcpy(strstr(spec, "Z_KEEP 0x") + strlen("Z_KEEP 0x"), "00000000", 8);
    memcpy(strstr(spec, "Z_SET 0x") + strlen("Z_SET 0x"), ones[k->peak], 8);
    kernel.spec = spec;
    expect_ok(diag, zc_rtc_open(&rtc, diag));
    expect_ok(diag, zc_codegen_kernel(&rtc, &kernel, d->arch, &code, diag));
    zc_rtc_close(&rtc);
    assert_int_equal(d->cu.module_load(&module, code.data), 0);
    assert_int_equal(d->cu.module_function(function, module, "zc_peak_0"), 0);
    if (kernel.smem)
        assert_int_equal(
            d->cu.function_set(*function, ZC_CU_FUNCTION_MAX_DYNAMIC_SMEM, (int)kernel.smem), 0);
    zc_buf_fini(&code);
    return module;
}

/* With operands that are all 1, sums come to the multiplications and additions that are counted. */
static void check_counts(int arch)
{
    static float sums[1024];
    zc_diag *diag = zc_diag_create();
    zc_device d;
    zc_peak_kernel k;
    expect_ok(diag, zc_device_open(0, &d, diag));
    expect_ok(diag, zc_device_enter(&d, diag));
    assert_int_equal(d.arch, arch);
    for (size_t i = 0; zc_peak_kernel_of(arch, i, &k); i++) {
        struct zc_peak_params params = {.sums = sums, .rounds = 1};
        void *arguments[] = {&params};
        const zc_cu_launch_config config = {.grid_x = 1,
                                            .grid_y = 1,
                                            .grid_z = 1,
                                            .block_x = k.kernel.threads,
                                            .block_y = 1,
                                            .block_z = 1,
                                            .shared_bytes = k.kernel.smem};
        double sum = 0;
        zc_cu_ptr at;
        zc_cu_function function;
        zc_cu_module module = load_ones(&k, &d, &function, diag);
        expect_ok(diag, zc_device_alloc(&d, sizeof sums, "sums", &at, diag));
        params.sums = (void *)(uintptr_t)at;
        assert_int_equal(d.cu.launch(&config, function, arguments, NULL), 0);
        assert_int_equal(d.cu.stream_wait(NULL), 0);
        gpu_get(sums, params.sums, sizeof sums);
        for (uint32_t t = 0; t < k.kernel.threads; t++) sum += (double)sums[t];
        assert_true(2 * sum == k.operations); /* two operations each */
        zc_device_free(&d, &at);
        assert_int_equal(d.cu.module_unload(module), 0);
    }
    zc_device_leave(&d);
    zc_device_close(&d);
    zc_diag_destroy(&diag);
}

static void test_peak_counts(void **state)
{
    (void)state;
    gpu_fake(NULL, NULL);
    check_counts(90);
}

static void test_peak_counts_before_sm_90(void **state)
{
    (void)state;
    gpu_fake("CC", "80");
    check_counts(80);
    gpu_fake(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_steps_in_graphs),
        cmocka_unit_test(test_steps_in_graphs_fail),
        cmocka_unit_test(test_steps_in_graphs_need_sources),
        cmocka_unit_test(test_stamped_sources),
        cmocka_unit_test(test_stamps_end),
        cmocka_unit_test(test_resident),
        cmocka_unit_test(test_resident_on_both_sides),
        cmocka_unit_test(test_not_on_the_cpu),
        cmocka_unit_test(test_foretold_memory),
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_probe_fails),
        cmocka_unit_test(test_peak_counts),
        cmocka_unit_test(test_peak_counts_before_sm_90),
    };
    return cmocka_run_group_tests(tests, gpu_group_setup, gpu_group_teardown);
}
