/* Injected faults, limits of the device, trace. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void with(const char *name, const char *value)
{
    setenv(name, value, 1);
    device_again();
}

static void the_nth_call_fails_once(void **state)
{
    (void)state;
    hc_ptr p;
    with("ZC_HOSTCUDA_FAIL", "cuMemAlloc_v2:3:2,cuStreamCreate:1:304");
    hc_stream_t s;
    assert_int_equal(cuStreamCreate(&s, 0), HC_CUDA_ERROR_OPERATING_SYSTEM);
    assert_ok(cuStreamCreate(&s, 0));
    for (int i = 1; i <= 5; i++)
        assert_int_equal(cuMemAlloc_v2(&p, 8),
                         i == 3 ? HC_CUDA_ERROR_OUT_OF_MEMORY : HC_CUDA_SUCCESS);
}

static void star_counts_every_call(void **state)
{
    (void)state;
    hc_ptr p;
    size_t a, b;
    /* device_again makes 4: init, get, retain, push */
    with("ZC_HOSTCUDA_FAIL", "*:6:719");
    assert_ok(cuMemAlloc_v2(&p, 8));
    assert_int_equal(cuMemGetInfo_v2(&a, &b), HC_CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(cuMemGetInfo_v2(&a, &b), HC_CUDA_ERROR_LAUNCH_FAILED); /* for ever */
    assert_int_equal(cuMemFree_v2(p), HC_CUDA_ERROR_LAUNCH_FAILED);
    const char *text;
    assert_ok(cuGetErrorName(HC_CUDA_ERROR_LAUNCH_FAILED, &text));
    assert_string_equal(text, "CUDA_ERROR_LAUNCH_FAILED");
}

static void sticky_codes(void **state)
{
    (void)state;
    static const struct {
        const char *fault;
        hc_result code, later;
    } cases[] = {{"cuCtxSynchronize:1:700", 700, 700},
                 {"cuCtxSynchronize:1:719", 719, 719},
                 {"cuCtxSynchronize:1:999", 999, 999},
                 {"cuCtxSynchronize:1:2", 2, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        with("ZC_HOSTCUDA_FAIL", cases[i].fault);
        assert_int_equal(cuCtxSynchronize(), cases[i].code);
        assert_int_equal(cuStreamSynchronize(NULL), cases[i].later);
    }
}

static void nvrtc_fails(void **state)
{
    (void)state;
    char *image, *log;
    with("ZC_HOSTCUDA_FAIL", "nvrtcCompileProgram:1:1");
    assert_int_equal(compile_source("", "-arch=sm_90", &image, &log), HC_NVRTC_ERROR_OUT_OF_MEMORY);
    free(log);
}

static void no_device(void **state)
{
    (void)state;
    int count;
    setenv("ZC_HOSTCUDA_DEVICES", "0", 1);
    zc_hostcuda_reset();
    assert_int_equal(cuInit(0), HC_CUDA_ERROR_NO_DEVICE);
    assert_int_equal(cuDeviceGetCount(&count), HC_CUDA_ERROR_NOT_INITIALIZED);
}

static void memory_limit(void **state)
{
    (void)state;
    hc_ptr p, q;
    size_t available, total;
    with("ZC_HOSTCUDA_MEMORY", "1000");
    assert_ok(cuMemAlloc_v2(&p, 600));
    assert_int_equal(cuMemAlloc_v2(&q, 401), HC_CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuMemGetInfo_v2(&available, &total));
    assert_int_equal(available, 400);
    assert_int_equal(total, 1000);
    assert_ok(cuMemFree_v2(p));
    assert_ok(cuMemAlloc_v2(&q, 1000));
}

static void compute_capability(void **state)
{
    (void)state;
    int major, minor, smem;
    char *image, *log;
    hc_module_t m;
    with("ZC_HOSTCUDA_CC", "86");
    assert_ok(cuDeviceGetAttribute(&major, HC_ATTR_COMPUTE_CAPABILITY_MAJOR, 0));
    assert_ok(cuDeviceGetAttribute(&minor, HC_ATTR_COMPUTE_CAPABILITY_MINOR, 0));
    assert_ok(cuDeviceGetAttribute(&smem, HC_ATTR_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
    assert_int_equal(major * 10 + minor, 86);
    assert_int_equal(smem, 101376);
    static const struct {
        const char *arch;
        hc_result result;
    } cases[] = {{"-arch=sm_80", HC_CUDA_SUCCESS},
                 {"-arch=sm_89", HC_CUDA_ERROR_NO_BINARY_FOR_GPU},
                 {"-arch=sm_90", HC_CUDA_ERROR_NO_BINARY_FOR_GPU}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            compile_source("extern \"C\" __global__ void k() {}", cases[i].arch, &image, &log), 0);
        assert_int_equal(cuModuleLoadData(&m, image), cases[i].result);
        free(image);
        free(log);
    }
}

static void trace(void **state)
{
    (void)state;
    char path[] = "/tmp/hostcuda-trace-XXXXXX", line[64];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    with("ZC_HOSTCUDA_TRACE", path);
    hc_ptr p;
    assert_ok(cuMemAlloc_v2(&p, 8));
    assert_int_equal(cuMemFree_v2(p + 1), HC_CUDA_ERROR_INVALID_VALUE);
    FILE *f = fdopen(fd, "r");
    static const char *const want[] = {"cuInit 0\n",
                                       "cuDeviceGet 0\n",
                                       "cuDevicePrimaryCtxRetain 0\n",
                                       "cuCtxPushCurrent_v2 0\n",
                                       "cuMemAlloc_v2 0\n",
                                       "cuMemFree_v2 1\n"};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        assert_non_null(fgets(line, sizeof line, f));
        assert_string_equal(line, want[i]);
    }
    fclose(f);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_nth_call_fails_once, device_up, device_down),
        cmocka_unit_test_setup_teardown(star_counts_every_call, device_up, device_down),
        cmocka_unit_test_setup_teardown(sticky_codes, device_up, device_down),
        cmocka_unit_test_setup_teardown(nvrtc_fails, device_up, device_down),
        cmocka_unit_test_setup_teardown(no_device, device_up, device_down),
        cmocka_unit_test_setup_teardown(memory_limit, device_up, device_down),
        cmocka_unit_test_setup_teardown(compute_capability, device_up, device_down),
        cmocka_unit_test_setup_teardown(trace, device_up, device_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
