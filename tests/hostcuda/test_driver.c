/* The device, memory, handles, launch validation, the fake compiler and its cache. */
#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char store_source[] = "extern \"C\" __global__ void store(u32 *x) { x[0] = 5; }\n";

static void contexts(void **state)
{
    (void)state;
    hc_context_t ctx, popped, current;
    hc_ptr p;
    assert_ok(cuCtxGetCurrent(&ctx));
    assert_non_null(ctx);
    assert_ok(cuCtxPopCurrent_v2(&popped));
    assert_ptr_equal(popped, ctx);
    assert_ok(cuCtxGetCurrent(&current));
    assert_null(current);
    assert_int_equal(cuMemAlloc_v2(&p, 4), HC_CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuCtxPopCurrent_v2(&popped), HC_CUDA_ERROR_INVALID_CONTEXT);
    assert_ok(cuCtxPushCurrent_v2(ctx));
    assert_ok(cuMemAlloc_v2(&p, 4));
    assert_int_equal(cuDeviceGet(&(hc_device){0}, 1), HC_CUDA_ERROR_INVALID_DEVICE);
}

/* What is left when the last reference goes is told on stderr. */
static void leaks_are_reported(void **state)
{
    (void)state;
    char path[] = "/tmp/hostcuda-leak-XXXXXX", text[512] = "";
    hc_ptr p;
    hc_stream_t s;
    load_source(store_source);
    assert_ok(cuMemAlloc_v2(&p, 123));
    assert_ok(cuStreamCreate(&s, 0));
    int fd = mkstemp(path), saved = dup(STDERR_FILENO);
    assert_true(fd >= 0 && saved >= 0);
    fflush(stderr);
    dup2(fd, STDERR_FILENO);
    hc_result r = cuDevicePrimaryCtxRelease_v2(0);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_ok(r);
    assert_true(pread(fd, text, sizeof text - 1, 0) > 0);
    close(fd);
    unlink(path);
    assert_non_null(strstr(text, "leak: 123 bytes of device memory"));
    assert_non_null(strstr(text, "leak: 1 streams"));
    assert_non_null(strstr(text, "leak: 1 modules"));
    assert_int_equal(cuMemFree_v2(p), HC_CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

static void memory(void **state)
{
    (void)state;
    hc_ptr p, start;
    size_t size;
    unsigned type, value;
    void *pinned;
    int on_stack = 0;
    assert_int_equal(cuMemAlloc_v2(&p, 0), HC_CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemAlloc_v2(&p, 1000));
    assert_int_equal(p % 256, 0);
    assert_ok(cuMemcpyDtoH_v2(&value, p + 996, 4));
    assert_int_equal(value, 0xffffffffu);
    assert_ok(cuMemsetD8Async(p, 0xab, 1000, NULL));
    assert_ok(cuMemcpyDtoH_v2(&value, p + 500, 4));
    assert_int_equal(value, 0xababababu);
    assert_ok(cuMemHostAlloc(&pinned, 64, 0));
    assert_ok(cuPointerGetAttribute(&type, HC_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 7));
    assert_int_equal(type, HC_CU_MEMORYTYPE_DEVICE);
    assert_ok(cuPointerGetAttribute(&type, HC_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)pinned));
    assert_int_equal(type, HC_CU_MEMORYTYPE_HOST);
    assert_int_equal(
        cuPointerGetAttribute(&type, HC_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&on_stack),
        HC_CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuPointerGetAttribute(&start, HC_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 7));
    assert_ok(cuPointerGetAttribute(&size, HC_CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 7));
    assert_true(start == p && size == 1000);
    assert_int_equal(cuMemFree_v2(p + 4), HC_CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFree_v2(p));
    assert_int_equal(cuMemFree_v2(p), HC_CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFreeHost(pinned));
    assert_int_equal(cuMemFreeHost(pinned), HC_CUDA_ERROR_INVALID_VALUE);
}

/* A copy beyond an allocation breaks the context. */
static void out_of_bounds_copy(void **state)
{
    (void)state;
    char bytes[128] = "";
    hc_ptr p;
    for (int i = 0; i < 3; i++) {
        device_again();
        assert_ok(cuMemAlloc_v2(&p, 100));
        hc_result r = i == 0   ? cuMemcpyHtoD_v2(p + 50, bytes, 51)
                      : i == 1 ? cuMemcpyDtoH_v2(bytes, (uintptr_t)bytes, 8)
                               : cuMemsetD32Async(p + 40, 0, 16, NULL);
        assert_int_equal(r, HC_CUDA_ERROR_ILLEGAL_ADDRESS);
        assert_int_equal(cuMemAlloc_v2(&p, 4), HC_CUDA_ERROR_ILLEGAL_ADDRESS);
    }
}

static void events_and_streams(void **state)
{
    (void)state;
    hc_stream_t s;
    hc_event_t a, b, quiet;
    float ms = -1;
    assert_ok(cuStreamCreate(&s, HC_CU_STREAM_NON_BLOCKING));
    assert_ok(cuEventCreate(&a, 0));
    assert_ok(cuEventCreate(&b, 0));
    assert_ok(cuEventCreate(&quiet, HC_CU_EVENT_DISABLE_TIMING));
    assert_int_equal(cuEventElapsedTime(&ms, a, b), HC_CUDA_ERROR_INVALID_HANDLE);
    assert_ok(cuEventRecord(a, s));
    assert_ok(cuEventRecord(b, s));
    assert_ok(cuEventRecord(quiet, s));
    assert_ok(cuEventSynchronize(b));
    assert_ok(cuEventElapsedTime(&ms, a, b));
    assert_true(ms >= 0);
    assert_int_equal(cuEventElapsedTime(&ms, a, quiet), HC_CUDA_ERROR_INVALID_HANDLE);
    assert_ok(cuStreamWaitEvent(s, a, 0));
    assert_ok(cuStreamQuery(s));
    assert_ok(cuStreamDestroy_v2(s));
    assert_int_equal(cuStreamDestroy_v2(s), HC_CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuStreamSynchronize(s), HC_CUDA_ERROR_INVALID_HANDLE);
    assert_ok(cuEventDestroy_v2(a));
    assert_int_equal(cuEventRecord(a, NULL), HC_CUDA_ERROR_INVALID_HANDLE);
}

static void launches_are_checked(void **state)
{
    (void)state;
    hc_module_t m = load_source(store_source);
    hc_function_t f = function_of(m, "store"), none;
    hc_ptr p = device_bytes(NULL, 4);
    void *params[] = {&p}, *missing[] = {NULL};
    unsigned value;
    assert_int_equal(cuModuleGetFunction(&none, m, "load"), HC_CUDA_ERROR_NOT_FOUND);
    assert_int_equal(launch(f, 0, 1, 0, params), HC_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(launch(f, 1, 1025, 0, params), HC_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, NULL, params, NULL),
                     HC_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, NULL, params, NULL),
                     HC_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(launch(f, 1, 1, 49153, params), HC_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(launch(f, 1, 1, 0, NULL), HC_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(launch(f, 1, 1, 0, missing), HC_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(launch((hc_function_t)m, 1, 1, 0, params), HC_CUDA_ERROR_INVALID_HANDLE);
    hc_launch_attribute cluster = {.id = HC_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    cluster.value.cluster.x = 2, cluster.value.cluster.y = cluster.value.cluster.z = 1;
    hc_launch_config config = {1, 1, 1, 1, 1, 1, 0, NULL, &cluster, 1};
    assert_int_equal(cuLaunchKernelEx(&config, f, params, NULL),
                     HC_CUDA_ERROR_INVALID_CLUSTER_SIZE);
    cluster.value.cluster.x = 1;
    assert_ok(cuLaunchKernelEx(&config, f, params, NULL));
    assert_ok(cuMemcpyDtoH_v2(&value, p, 4));
    assert_int_equal(value, 5);
    assert_ok(cuModuleUnload(m));
    assert_int_equal(launch(f, 1, 1, 0, params), HC_CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuModuleLoadData(&m, "no image, but long enough to hold a header: "
                                          "sixty-four bytes are read of it at most"),
                     HC_CUDA_ERROR_INVALID_IMAGE);
}

static void compile_errors(void **state)
{
    (void)state;
    char *image, *log;
    assert_int_equal(compile_source("extern \"C\" __global__ void k() { missing(); }\n",
                                    "-arch=sm_90", &image, &log),
                     HC_NVRTC_ERROR_COMPILATION);
    assert_non_null(strstr(log, "test.cu"));
    assert_non_null(strstr(log, "missing"));
    free(log);
    assert_int_equal(compile_source("", "-arch=sm_91", &image, &log),
                     HC_NVRTC_ERROR_INVALID_OPTION);
    free(log);
    assert_int_equal(compile_source("", "-farm", &image, &log), HC_NVRTC_ERROR_INVALID_OPTION);
    free(log);
}

/* Headers by name, a macro that makes kernels, an option that defines; our zc/ptx.cuh whatever the
 * program brings. */
static void headers_and_macros(void **state)
{
    (void)state;
    static const char *const names[] = {"zc/ptx.cuh", "deep/er/x.h"};
    static const char *const texts[] = {
        "#error not this one\n", "#define KERNEL(n) extern \"C\" __global__ void ZC_CAT(n, _0)\n"
                                 "#define ZC_CAT2(a, b) a##b\n#define ZC_CAT(a, b) ZC_CAT2(a, b)\n"
                                 "template <class T> __device__ T twice(T v) { return v + v; }\n"};
    const char *options[] = {"-arch=sm_90a", "-DVALUE=21"};
    hc_program_t p;
    size_t n;
    hc_module_t m;
    assert_int_equal(nvrtcCreateProgram(&p,
                                        "#include \"zc/ptx.cuh\"\n#include \"deep/er/x.h\"\n"
                                        "KERNEL(first)(u32 *x) { x[0] = twice((u32)VALUE); }\n"
                                        "KERNEL(second)(u32 *x) { x[0] = __CUDA_ARCH__; }\n",
                                        "main.cu", 2, texts, names),
                     0);
    assert_int_equal(nvrtcCompileProgram(p, 2, options), 0);
    assert_int_equal(nvrtcGetCUBINSize(p, &n), 0);
    char *image = malloc(n);
    assert_int_equal(nvrtcGetCUBIN(p, image), 0);
    assert_int_equal(nvrtcDestroyProgram(&p), 0);
    assert_ok(cuModuleLoadData(&m, image));
    free(image);
    hc_ptr x = device_bytes(NULL, 4);
    void *params[] = {&x};
    unsigned value;
    assert_ok(launch(function_of(m, "first_0"), 1, 1, 0, params));
    assert_ok(cuMemcpyDtoH_v2(&value, x, 4));
    assert_int_equal(value, 42);
    assert_ok(launch(function_of(m, "second_0"), 1, 1, 0, params));
    assert_ok(cuMemcpyDtoH_v2(&value, x, 4));
    assert_int_equal(value, 900);
}

/* ptx.cuh is there without an #include, and no header is given for it. */
static char *read_kernel(const char *path)
{
    static const char include[] = "#include \"zc/ptx.cuh\"";
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *text = calloc(1, 1 << 16);
    assert_true(fread(text, 1, (1 << 16) - 1, f) > 0);
    fclose(f);
    char *header = strstr(text, include);
    if (header) memset(header, ' ', strlen(include));
    return text;
}

static void everything_compiles(void **state)
{
    (void)state;
    static const struct {
        const char *path, *kernel;
        int threads;
    } files[] = {{HC_TEST_DIR "/every.cu", "every", 128},
                 {HC_TEST_DIR "/every_hopper.cu", "every_hopper", 256}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *text = read_kernel(files[i].path);
        hc_function_t f = function_of(load_source(text), files[i].kernel);
        free(text);
        int threads;
        assert_ok(cuFuncGetAttribute(&threads, HC_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
        assert_int_equal(threads, files[i].threads);
    }
}

static unsigned files_in(const char *path)
{
    unsigned n = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* The second compile of the same reads the file: also when the compiler could not run. */
static void cache(void **state)
{
    (void)state;
    char folder[] = "/tmp/hostcuda-cache-XXXXXX", command[64], *image, *log;
    const char *before = getenv("ZC_HOSTCUDA_CACHE");
    char *old = before ? strdup(before) : NULL, *path = strdup(getenv("PATH"));
    assert_non_null(mkdtemp(folder));
    setenv("ZC_HOSTCUDA_CACHE", folder, 1);
    hc_ptr x = device_bytes(NULL, 4);
    for (int i = 0; i < 2; i++) {
        load_source(store_source);
        assert_int_equal(files_in(folder), 1);
        setenv("PATH", "/nowhere", 1);
    }
    assert_int_equal(
        compile_source("extern \"C\" __global__ void other() {}", "-arch=sm_90", &image, &log),
        HC_NVRTC_ERROR_COMPILATION);
    setenv("PATH", path, 1);
    if (old)
        setenv("ZC_HOSTCUDA_CACHE", old, 1);
    else
        unsetenv("ZC_HOSTCUDA_CACHE");
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    assert_ok(cuMemFree_v2(x));
    free(log);
    free(old);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(contexts, device_up, device_down),
        cmocka_unit_test_setup_teardown(leaks_are_reported, device_up, device_down),
        cmocka_unit_test_setup_teardown(memory, device_up, device_down),
        cmocka_unit_test_setup_teardown(out_of_bounds_copy, device_up, device_down),
        cmocka_unit_test_setup_teardown(events_and_streams, device_up, device_down),
        cmocka_unit_test_setup_teardown(launches_are_checked, device_up, device_down),
        cmocka_unit_test_setup_teardown(compile_errors, device_up, device_down),
        cmocka_unit_test_setup_teardown(headers_and_macros, device_up, device_down),
        cmocka_unit_test_setup_teardown(everything_compiles, device_up, device_down),
        cmocka_unit_test_setup_teardown(cache, device_up, device_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
