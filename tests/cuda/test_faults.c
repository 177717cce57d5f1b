/* No GPU, the wrong GPU, no compiler, captures that are refused, faults that kernels find, a broken
 * device. Rows D1 to D12 of docs/reliability.md that one process can show; run.sh shows the others.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "cuda/gpu.h"
#include "cuda/nvrtc.h"
#include "tune/gpu_peaks.h"

static int setup(void **state)
{
    *state = gpu_fixture_create(false);
    return 0;
}

static int teardown(void **state)
{
    gpu_fixture_destroy(*state, false);
    return 0;
}

static zc_status try_create(gpu_fixture *f, zc_device_kind kind, int ordinal, zc_session **s)
{
    *s = NULL;
    return zc_session_create(
        f->plan, ZC_SESSION_PARAMS(.threads = 1, .device = kind, .ordinal = ordinal), s, f->diag);
}

/* The fixture's plan becomes one for another GPU. */
static void plan_for_another(gpu_fixture *f, bool strip)
{
    zc_free(f->bytes);
    zc_plan_destroy(&f->plan);
    gpu_compile(gpu_rows_text, "sm_80", strip, &f->bytes, &f->len);
    f->plan = gpu_load(f->bytes, f->len);
}

/* ---- D1, D4: no driver, no compiler ---- */

/* The program is linked so that dlopen comes here: zc's calls, and a sanitized driver's. */
void *__real_dlopen(const char *path, int flags);
__attribute__((visibility("default"))) void *__wrap_dlopen(const char *path, int flags);
static const char *hidden; /* libraries with this in their names are not there */

void *__wrap_dlopen(const char *path, int flags)
{
    bool hide = hidden && path && strstr(path, hidden);
    return __real_dlopen(hide ? "/nowhere/at/all.so" : path, flags);
}

static void test_no_driver_library(void **state)
{
    gpu_fixture *f = *state;
    zc_session *s;
    zc_device_info info;
    hidden = "libcuda";
    expect_fail(f->diag, try_create(f, ZC_DEVICE_CUDA, 0, &s), ZC_ERR_DEVICE,
                "libcuda.so.1: no CUDA driver is installed (/nowhere/at/all.so: cannot open");
    expect_ok(f->diag, try_create(f, ZC_DEVICE_AUTO, 0, &s));
    hidden = NULL;
    gpu_rows_run(s, &f->in);
    assert_int_equal(zc_session_device(s, &info), ZC_OK);
    assert_int_equal(info.kind, ZC_DEVICE_CPU);
    assert_non_null(strstr(info.fallback, "libcuda.so.1: no CUDA driver is installed ("));
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

static void test_no_compiler(void **state)
{
    gpu_fixture *f = *state;
    zc_session *s;
    hidden = "nvrtc";
    expect_ok(f->diag, try_create(f, ZC_DEVICE_CUDA, 0, &s)); /* nothing to compile */
    for (int i = 0; i < 3; i++) gpu_rows_run(s, &f->in);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    hidden = NULL;
    plan_for_another(f, false);
    hidden = "nvrtc";
    expect_fail(f->diag, try_create(f, ZC_DEVICE_CUDA, 0, &s), ZC_ERR_DEVICE,
                "the plan has no code for this GPU (built for sm_80, need sm_90), and none can be "
                "made: nvrtc: NVRTC, "
                "CUDA's run-time compiler, is not installed (tried libnvrtc.so.13, libnvrtc.so.12, "
                "libnvrtc.so, "
                "/usr/local/cuda/lib64/libnvrtc.so)");
    hidden = NULL;
}

/* Memory is measured all the same. */
static void test_peaks_without_compiler(void **state)
{
    gpu_fixture *f = *state;
    zc_peaks peaks;
    hidden = "nvrtc";
    expect_ok(f->diag, zc_probe_gpu(0, &peaks, f->diag));
    hidden = NULL;
    assert_true(peaks.bytes > 0 && peaks.launch == 0);
    for (int i = 0; i < ZC_PEAK_COUNT; i++) assert_true(peaks.operations[i] == 0);
}

/* ---- D1: no device ---- */

static void test_no_device(void **state)
{
    gpu_fixture *f = *state;
    zc_session *s;
    zc_device_info info;
    gpu_fake("DEVICES", "0");
    expect_fail(f->diag, try_create(f, ZC_DEVICE_CUDA, 0, &s), ZC_ERR_DEVICE,
                "the CUDA driver sees no GPU");
    assert_null(s);
    expect_ok(f->diag, try_create(f, ZC_DEVICE_AUTO, 0, &s));
    gpu_rows_run(s, &f->in);
    assert_int_equal(zc_session_device(s, &info), ZC_OK);
    assert_int_equal(info.kind, ZC_DEVICE_CPU);
    assert_string_equal(info.name, "cpu");
    assert_non_null(strstr(info.fallback, "the CUDA driver sees no GPU"));
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

static void test_no_such_device(void **state)
{
    gpu_fixture *f = *state;
    zc_session *s;
    expect_fail(f->diag, try_create(f, ZC_DEVICE_CUDA, 99, &s), ZC_ERR_DEVICE,
                "no such GPU (got number 99, there is 1)");
    expect_fail(f->diag, try_create(f, ZC_DEVICE_CUDA, -1, &s), ZC_ERR_DEVICE,
                "no such GPU (got number -1");
    expect_fail(f->diag, try_create(f, (zc_device_kind)7, 0, &s), ZC_ERR_ARG,
                "is no zc_device_kind (got 7)");
}

/* cuInit's own failures, a driver that is too old for a plan's code among them. */
static void test_driver_does_not_start(void **state)
{
    static const struct {
        const char *call;
        int code;
        zc_status status;
        const char *text;
    } cases[] = {{"cuInit", 3, ZC_ERR_DEVICE, "cuInit: CUDA_ERROR_NOT_INITIALIZED (3)"},
                 {"cuInit", 999, ZC_ERR_DEVICE_LOST, "cuInit: CUDA_ERROR_UNKNOWN (999)"},
                 {"cuDeviceGetCount", 100, ZC_ERR_DEVICE, "(100)"},
                 {"cuDevicePrimaryCtxRetain", 46, ZC_ERR_DEVICE, "(46)"},
                 {"cuModuleLoadData", 209, ZC_ERR_DEVICE, "(209)"},
                 {"cuModuleLoadData", 222, ZC_ERR_DEVICE, "(222)"},
                 {"cuModuleLoadData", 218, ZC_ERR_DEVICE, "(218)"}};
    gpu_fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        zc_session *s;
        gpu_fault(cases[i].call, 1, cases[i].code);
        expect_fail(f->diag, try_create(f, ZC_DEVICE_CUDA, 0, &s), cases[i].status, cases[i].text);
        assert_null(s);
        gpu_fake(NULL, NULL);
        expect_ok(f->diag, try_create(f, ZC_DEVICE_CUDA, 0, &s));
        gpu_rows_run(s, &f->in);
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
        zc_plan_destroy(&f->plan);
        f->plan = gpu_load(f->bytes, f->len);
    }
}

/* ---- D3, D4, D5: another GPU ---- */

static void test_wrong_gpu_with_sources(void **state)
{
    gpu_fixture *f = *state;
    zc_session *s;
    zc_device_info info;
    plan_for_another(f, false);
    expect_ok(f->diag, try_create(f, ZC_DEVICE_CUDA, 0, &s));
    assert_int_equal(zc_session_device(s, &info), ZC_OK);
    assert_int_equal(info.arch, 90);
    assert_int_equal(info.rebuilt, 3);
    for (int i = 0; i < 3; i++) gpu_rows_run(s, &f->in);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

static void test_wrong_gpu_without_sources(void **state)
{
    gpu_fixture *f = *state;
    zc_session *s;
    plan_for_another(f, true);
    expect_fail(f->diag, try_create(f, ZC_DEVICE_CUDA, 0, &s), ZC_ERR_DEVICE,
                "the plan has no code for this GPU and no sources to build it (built for sm_80, "
                "need sm_90)");
    expect_ok(f->diag, try_create(f, ZC_DEVICE_AUTO, 0, &s));
    gpu_rows_run(s, &f->in);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

static void test_compiler_fails(void **state)
{
    static const struct {
        const char *call;
        int code;
        zc_status status;
        const char *text;
    } cases[] = {
        {"nvrtcCreateProgram", 1, ZC_ERR_NOMEM, "NVRTC: NVRTC_ERROR_OUT_OF_MEMORY"},
        {"nvrtcCompileProgram", 1, ZC_ERR_NOMEM, "NVRTC: NVRTC_ERROR_OUT_OF_MEMORY"},
        {"nvrtcCompileProgram", 6, ZC_ERR_INTERNAL, "NVRTC: NVRTC_ERROR_COMPILATION"},
        {"nvrtcCompileProgram", 7, ZC_ERR_DEVICE, "NVRTC: NVRTC_ERROR_BUILTIN_OPERATION_FAILURE"},
        {"nvrtcGetCUBINSize", 4, ZC_ERR_DEVICE, "NVRTC gives no machine code"},
        {"nvrtcGetCUBIN", 4, ZC_ERR_DEVICE, "NVRTC gives no machine code"}};
    gpu_fixture *f = *state;
    gpu_needs_fake();
    plan_for_another(f, false);
    const char *cache = getenv("ZC_CACHE_DIR");
    char *kept = strdup(cache);
    setenv("ZC_CACHE_DIR", "/nowhere/at/all", 1); /* or it would not compile */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        zc_session *s;
        hc_counts counts;
        gpu_fault(cases[i].call, 1, cases[i].code);
        expect_fail(f->diag, try_create(f, ZC_DEVICE_CUDA, 0, &s), cases[i].status, cases[i].text);
        gpu_counts(&counts);
        assert_int_equal(counts.live, 0); /* no program of NVRTC stays */
    }
    setenv("ZC_CACHE_DIR", kept, 1);
    free(kept);
}

/* The kernel's name, and the first line of the compiler's log. */
static void test_source_does_not_compile(void **state)
{
    gpu_fixture *f = *state;
    zc_rtc rtc;
    zc_buf out = {0}, log = {0};
    hc_counts counts;
    zc_psource sources[] = {
        {.name = "t.cu", .text = "#include \"spec.h\"\nextern \"C\" __global__ void k() {}\n"}};
    zc_pkernel kernel = {.family = "move",
                         .name = "Add_7",
                         .template_name = "t.cu",
                         .spec = "#error this and that is wrong\n"};
    gpu_fake(NULL, NULL);
    expect_ok(f->diag, zc_rtc_open(&rtc, f->diag));
    zc_status status = zc_rtc_compile(&rtc, &kernel, sources, 1, 90, &out, &log, f->diag);
    assert_int_equal(zc_diag_count(f->diag), 1);
    const char *text = zc_diag_text(f->diag, 0);
    if (!strstr(text, "Add_7") || !strstr(text, "NVRTC_ERROR_COMPILATION") ||
        !strstr(text, "this and that is wrong"))
        fail_msg("%s", text);
    assert_int_equal(status, ZC_ERR_INTERNAL);
    zc_diag_clear(f->diag);
    kernel.template_name = "another.cu";
    expect_fail(f->diag, zc_rtc_compile(&rtc, &kernel, sources, 1, 90, &out, NULL, f->diag),
                ZC_ERR_INTERNAL, "the source of template another.cu is missing");
    gpu_counts(&counts);
    assert_int_equal(counts.live, 0);
    zc_buf_fini(&out);
    zc_buf_fini(&log);
    zc_rtc_close(&rtc);
}

/* ---- D10: captures that are refused ---- */

static void test_capture_refused(void **state)
{
    static const struct {
        const char *call;
        int code;
    } cases[] = {{"cuStreamBeginCapture_v2", 900}, {"cuStreamBeginCapture_v2", 801},
                 {"cuStreamEndCapture", 901},      {"cuStreamEndCapture", 900},
                 {"cuLaunchKernelEx", 900},        {"cuGraphInstantiateWithFlags", 801}};
    gpu_fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        zc_session *s;
        zc_device_info info;
        /* The first run has no graph: its three kernels come before. */
        gpu_fault(cases[i].call, strcmp(cases[i].call, "cuLaunchKernelEx") == 0 ? 4 : 1,
                  cases[i].code);
        expect_ok(f->diag, try_create(f, ZC_DEVICE_CUDA, 0, &s));
        for (int n = 0; n < 4; n++) gpu_rows_run(s, &f->in);
        assert_int_equal(zc_session_device(s, &info), ZC_OK);
        assert_int_equal(info.graphs, 0);
        assert_int_equal(info.launches, 3);
        assert_false(info.lost);
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
        /* Another session of the plan has its graph. */
        expect_ok(f->diag, try_create(f, ZC_DEVICE_CUDA, 0, &s));
        for (int n = 0; n < 4; n++) gpu_rows_run(s, &f->in);
        assert_int_equal(zc_session_device(s, &info), ZC_OK);
        assert_int_equal(info.graphs, 1);
        assert_int_equal(info.launches, 3);
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
        zc_plan_destroy(&f->plan);
        f->plan = gpu_load(f->bytes, f->len);
    }
}

static void test_no_graphs(void **state)
{
    gpu_fixture *f = *state;
    zc_session *s = NULL;
    zc_device_info info;
    expect_ok(f->diag, zc_session_create(f->plan,
                                         ZC_SESSION_PARAMS(.threads = 1, .device = ZC_DEVICE_CUDA,
                                                           .no_graphs = true),
                                         &s, f->diag));
    for (int n = 0; n < 3; n++) gpu_rows_run(s, &f->in);
    assert_int_equal(zc_session_device(s, &info), ZC_OK);
    assert_int_equal(info.graphs, 0);
    assert_int_equal(info.gpu_steps, 3);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

/* ---- what kernels find ---- */

static void test_index_out_of_range(void **state)
{
    static const int64_t bad[] = {5, -6, INT64_MAX, INT64_MIN, 1000000};
    gpu_fixture *f = *state;
    zc_session *s;
    char text[96];
    expect_ok(f->diag, try_create(f, ZC_DEVICE_CUDA, 0, &s));
    /* In the first run, in one that records a graph, in those that replay it. */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t good = f->in.idx[2];
        f->in.idx[2] = bad[i];
        expect_ok(f->diag, gpu_rows_set(s, &f->in, f->diag));
        snprintf(text, sizeof text, "pick: index out of range (got %lld, need [-5, 4])",
                 (long long)bad[i]);
        expect_fail(f->diag, zc_session_run(s, f->diag), ZC_ERR_INPUT, text);
        f->in.idx[2] = good;
        gpu_rows_run(s, &f->in);
    }
    f->in.idx[0] = -5; /* counts from the end */
    expect_ok(f->diag, gpu_rows_set(s, &f->in, f->diag));
    expect_ok(f->diag, zc_session_run(s, f->diag));
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

/* D12: a fault of work that was enqueued is told once, by the call that waits. */
static void test_fault_of_enqueued_work(void **state)
{
    gpu_fixture *f = *state;
    zc_session *s;
    hc_context_t context;
    hc_ptr y;
    expect_ok(f->diag, try_create(f, ZC_DEVICE_CUDA, 0, &s));
    gpu_rows_run(s, &f->in);
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(cuCtxPushCurrent_v2(context), 0);
    assert_int_equal(cuMemAlloc_v2(&y, 4 * GPU_COLUMNS * sizeof(float)), 0);
    expect_ok(f->diag, zc_session_bind_output_device(s, 0, (void *)(uintptr_t)y,
                                                     4 * GPU_COLUMNS * sizeof(float), f->diag));
    int64_t good = f->in.idx[0];
    f->in.idx[0] = 77;
    expect_ok(f->diag, gpu_rows_set(s, &f->in, f->diag));
    expect_ok(f->diag, zc_session_enqueue(s, f->diag));
    expect_fail(f->diag, zc_session_wait(s, f->diag), ZC_ERR_INPUT,
                "pick: index out of range (got 77, need [-5, 4])");
    zc_view gone;
    expect_fail(f->diag, zc_session_output(s, 0, &gone, f->diag), ZC_ERR_ARG,
                "y: no run has given a result");
    expect_ok(f->diag, zc_session_wait(s, f->diag));
    f->in.idx[0] = good;
    expect_ok(f->diag, gpu_rows_set(s, &f->in, f->diag));
    expect_ok(f->diag, zc_session_enqueue(s, f->diag));
    expect_ok(f->diag, zc_session_wait(s, f->diag));
    assert_true(gpu_rows_right_at(&f->in, y));
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    assert_int_equal(cuMemFree_v2(y), 0);
    assert_int_equal(cuCtxPopCurrent_v2(&context), 0);
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), 0);
}

/* A run that fails on the way forgets what its kernels reported: the next run is not to blame. */
static void test_failed_run_leaves_no_report(void **state)
{
    gpu_fixture *f = *state;
    zc_session *s = NULL;
    int64_t good = f->in.idx[1];
    gpu_fault("cuLaunchKernelEx", 5, 701); /* behind the second run's Gather */
    expect_ok(f->diag, zc_session_create(f->plan,
                                         ZC_SESSION_PARAMS(.threads = 1, .device = ZC_DEVICE_CUDA,
                                                           .no_graphs = true),
                                         &s, f->diag));
    gpu_rows_run(s, &f->in);
    f->in.idx[1] = 99;
    expect_ok(f->diag, gpu_rows_set(s, &f->in, f->diag));
    expect_fail(f->diag, zc_session_run(s, f->diag), ZC_ERR_DEVICE, "(701)");
    f->in.idx[1] = good;
    gpu_rows_run(s, &f->in);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

/* ---- D7: two sessions, one device, and it breaks ---- */

static void test_the_other_session_learns(void **state)
{
    gpu_fixture *f = *state;
    zc_session *a, *b;
    zc_device_info info;
    gpu_fault("cuLaunchKernelEx", 5, 700);
    expect_ok(f->diag, try_create(f, ZC_DEVICE_CUDA, 0, &a));
    expect_ok(f->diag, try_create(f, ZC_DEVICE_CUDA, 0, &b));
    gpu_rows_run(a, &f->in);
    expect_ok(f->diag, gpu_rows_set(b, &f->in, f->diag));
    expect_fail(f->diag, zc_session_run(b, f->diag), ZC_ERR_DEVICE_LOST,
                "norm: CUDA_ERROR_ILLEGAL_ADDRESS (700): ");
    expect_fail(f->diag, zc_session_run(a, f->diag), ZC_ERR_DEVICE_LOST,
                "the device was lost by an earlier error, CUDA_ERROR_ILLEGAL_ADDRESS (700); start "
                "a new process");
    assert_int_equal(zc_session_device(a, &info), ZC_OK);
    assert_true(info.lost);
    assert_int_equal(zc_session_destroy(&a), ZC_OK);
    assert_int_equal(zc_session_destroy(&b), ZC_OK);
    /* The CPU still works. */
    expect_ok(f->diag, try_create(f, ZC_DEVICE_CPU, 0, &a));
    gpu_rows_run(a, &f->in);
    assert_int_equal(zc_session_destroy(&a), ZC_OK);
    expect_ok(f->diag, try_create(f, ZC_DEVICE_AUTO, 0, &a));
    assert_int_equal(zc_session_device(a, &info), ZC_OK);
    assert_int_equal(info.kind, ZC_DEVICE_CPU);
    assert_int_equal(zc_session_destroy(&a), ZC_OK);
}

/* D8: codes after which nothing works in the process. */
static void test_codes_that_break_the_device(void **state)
{
    static const int codes[] = {4,   214, 220, 226, 700, 702, 709, 710,
                                714, 715, 716, 717, 718, 719, 721, 999};
    gpu_fixture *f = *state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        zc_session *s;
        zc_device_info info;
        gpu_fault("cuStreamSynchronize", 2, codes[i]); /* the first is the upload's */
        expect_ok(f->diag, try_create(f, ZC_DEVICE_CUDA, 0, &s));
        expect_ok(f->diag, gpu_rows_set(s, &f->in, f->diag));
        assert_int_equal(zc_session_run(s, f->diag), ZC_ERR_DEVICE_LOST);
        assert_int_equal(zc_diag_count(f->diag), 1);
        zc_diag_clear(f->diag);
        assert_int_equal(zc_session_run(s, NULL), ZC_ERR_DEVICE_LOST);
        assert_int_equal(zc_session_device(s, &info), ZC_OK);
        assert_true(info.lost);
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
        zc_plan_destroy(&f->plan);
        f->plan = gpu_load(f->bytes, f->len);
    }
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* ---- D9: a kernel that never ends ---- */

static zc_status create_with_limit(gpu_fixture *f, zc_session **s)
{
    return zc_session_create(
        f->plan, ZC_SESSION_PARAMS(.threads = 1, .device = ZC_DEVICE_CUDA, .timeout_ms = 30), s,
        f->diag);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void test_kernel_that_never_ends(void **state)
{
    gpu_fixture *f = *state;
    zc_session *s, *other;
    zc_device_info info;
    hc_counts before, after;
    gpu_fault("cuStreamQuery", 0, 600); /* the stream is never ready */
    expect_ok(f->diag, create_with_limit(f, &s));
    expect_ok(f->diag, try_create(f, ZC_DEVICE_CUDA, 0, &other));
    gpu_rows_run(other, &f->in); /* it waits without a limit, by another call */
    expect_ok(f->diag, gpu_rows_set(s, &f->in, f->diag));
    double start = seconds();
    expect_fail(f->diag, zc_session_run(s, f->diag), ZC_ERR_DEVICE_LOST,
                "the GPU did not finish within 30 ms; a kernel cannot be killed: start a new "
                "process");
    assert_true(seconds() - start >= 0.03);
    assert_true(seconds() - start < 5);
    assert_int_equal(zc_session_device(s, &info), ZC_OK);
    assert_true(info.lost);
    expect_fail(f->diag, zc_session_run(s, f->diag), ZC_ERR_DEVICE_LOST, "(702)");
    expect_fail(f->diag, zc_session_run(other, f->diag), ZC_ERR_DEVICE_LOST, "(702)");
    /* Destroying asks nothing of a driver that would wait. */
    gpu_counts(&before);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    assert_int_equal(zc_session_destroy(&other), ZC_OK);
    zc_plan_destroy(&f->plan);
    gpu_counts(&after);
    assert_int_equal(after.calls, before.calls);
}

/* Products that take a GPU far longer than the limit. The fake's work is done when it is issued. */
static void test_work_beyond_the_limit(void **state)
{
    enum { SIDE = 4096, PRODUCTS = 300, BYTES = SIDE * SIDE * (int)sizeof(float) };
    gpu_fixture *f = *state;
    zc_session *s;
    char text[PRODUCTS * 32];
    gpu_needs_real();
    size_t n = (size_t)snprintf(text, sizeof text, "opset 17\nin y0 1 %d,%d\nout y%d 1 *\n", SIDE,
                                SIDE, PRODUCTS);
    for (int i = 0; i < PRODUCTS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "node MatMul y%d,y0 y%d\n", i, i + 1);
    zc_free(f->bytes);
    zc_plan_destroy(&f->plan);
    gpu_compile(text, "sm_90", true, &f->bytes, &f->len);
    f->plan = gpu_load(f->bytes, f->len);
    float *x = calloc(1, BYTES);
    const zc_view v = {.elem = 1, .rank = 2, .dims = {SIDE, SIDE}, .data = x, .bytes = BYTES};
    expect_ok(f->diag, create_with_limit(f, &s));
    expect_ok(f->diag, zc_session_set_input(s, 0, &v, false, f->diag));
    double start = seconds();
    expect_fail(f->diag, zc_session_run(s, f->diag), ZC_ERR_DEVICE_LOST,
                "the GPU did not finish within 30 ms");
    assert_true(seconds() - start < 5);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    free(x);
}

/* Work that ends in time. */
static void test_limit_kept(void **state)
{
    gpu_fixture *f = *state;
    zc_session *s;
    if (gpu_is_fake()) gpu_fault("cuStreamQuery", 2, 600);
    expect_ok(f->diag, create_with_limit(f, &s));
    for (int i = 0; i < 5; i++) gpu_rows_run(s, &f->in);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

/* ---- the compiler leaves the process as it was ---- */

static void on_term(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
}

static void test_signals_kept(void **state)
{
    struct sigaction ours = {.sa_sigaction = on_term, .sa_flags = SA_SIGINFO | SA_RESETHAND}, old,
                     after;
    void *bytes;
    size_t len;
    char cache[256];
    (void)state;
    snprintf(cache, sizeof cache, "%s", getenv("ZC_CACHE_DIR"));
    setenv("ZC_CACHE_DIR", "/dev/null", 1); /* every kernel is compiled */
    sigaddset(&ours.sa_mask, SIGUSR1);
    sigaction(SIGTERM, &ours, &old);
    gpu_compile(gpu_rows_text, "sm_90", false, &bytes, &len);
    zc_free(bytes);
    sigaction(SIGTERM, &old, &after);
    setenv("ZC_CACHE_DIR", cache, 1);
    assert_ptr_equal(after.sa_sigaction, on_term);
    assert_int_equal(after.sa_flags & (SA_SIGINFO | SA_RESETHAND), SA_SIGINFO | SA_RESETHAND);
    assert_true(sigismember(&after.sa_mask, SIGUSR1));
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    assert_false(sigismember(&blocked, SIGTERM));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_no_driver_library),
        T(test_no_compiler),
        T(test_peaks_without_compiler),
        T(test_no_device),
        T(test_no_such_device),
        T(test_driver_does_not_start),
        T(test_wrong_gpu_with_sources),
        T(test_wrong_gpu_without_sources),
        T(test_compiler_fails),
        T(test_signals_kept),
        T(test_source_does_not_compile),
        T(test_capture_refused),
        T(test_kernel_that_never_ends),
        T(test_limit_kept),
        T(test_no_graphs),
        T(test_index_out_of_range),
        T(test_fault_of_enqueued_work),
        T(test_failed_run_leaves_no_report),
        T(test_the_other_session_learns),
        T(test_codes_that_break_the_device),
        T(test_work_beyond_the_limit), /* the GPU is busy after it */
    };
    return cmocka_run_group_tests(tests, gpu_group_setup, gpu_group_teardown);
}
