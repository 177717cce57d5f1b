#include "fixture.h"

#include <stdio.h>
#include <string.h>

static uint64_t seed = 88172645463325252u;

uint32_t draw(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 16);
}

float draw_float(void)
{
    return (float)(draw() % 32) / 8 - 2;
}

void unset_all(void)
{
    static const char *const names[] = {"FAIL", "DEVICES", "MEMORY", "CC", "TRACE", "SHUFFLE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        snprintf(name, sizeof name, "ZC_HOSTCUDA_%s", names[i]);
        unsetenv(name);
    }
}

void device_again(void)
{
    hc_context_t ctx;
    hc_device dev;
    while (cuCtxPopCurrent_v2(&ctx) == HC_CUDA_SUCCESS) {
    }
    zc_hostcuda_reset();
    assert_ok(cuInit(0));
    assert_ok(cuDeviceGet(&dev, 0));
    assert_ok(cuDevicePrimaryCtxRetain(&ctx, dev));
    assert_ok(cuCtxPushCurrent_v2(ctx));
}

int device_up(void **state)
{
    (void)state;
    unset_all();
    device_again();
    return 0;
}

int device_down(void **state)
{
    (void)state;
    unset_all();
    zc_hostcuda_reset();
    return 0;
}

/* One of the templates' headers. */
static char *header(const char *path)
{
    enum { MOST = 65536 };
    char *text = calloc(1, MOST);
    FILE *f = fopen(path, "rb");
    assert_true(text && f && fread(text, 1, MOST, f) < MOST);
    fclose(f);
    return text;
}

hc_result compile_source(const char *source, const char *arch, char **image, char **log)
{
    const char *options[] = {arch};
    hc_program_t p;
    size_t n;
    *image = NULL;
    /* What #include "zc/hopper.cuh" needs, and that of "zc/device.cuh". */
    char *tensor_map = header(ZC_TEMPLATES "/abi/tensor_map.h");
    char *tile = header(ZC_TEMPLATES "/zc/wgmma_tile.cuh");
    char *device = header(ZC_TEMPLATES "/zc/device.cuh");
    const char *names[] = {"zc/hopper.cuh", "abi/tensor_map.h", "zc/wgmma_tile.cuh",
                           "zc/device.cuh", "zc/ptx.cuh"};
    const char *headers[] = {"", tensor_map, tile, device, ""};
    assert_int_equal(nvrtcCreateProgram(&p, source, "test.cu", 5, headers, names), 0);
    free(device);
    free(tensor_map);
    free(tile);
    hc_result r = nvrtcCompileProgram(p, 1, options);
    assert_int_equal(nvrtcGetProgramLogSize(p, &n), 0);
    *log = malloc(n);
    assert_int_equal(nvrtcGetProgramLog(p, *log), 0);
    if (r == 0) {
        assert_int_equal(nvrtcGetCUBINSize(p, &n), 0);
        *image = malloc(n);
        assert_int_equal(nvrtcGetCUBIN(p, *image), 0);
    }
    assert_int_equal(nvrtcDestroyProgram(&p), 0);
    return r;
}

hc_module_t load_source(const char *source)
{
    char *image, *log;
    hc_module_t m;
    hc_result r = compile_source(source, "-arch=sm_90", &image, &log);
    if (r != 0) print_error("%s\n", log);
    assert_int_equal(r, 0);
    assert_ok(cuModuleLoadData(&m, image));
    free(image);
    free(log);
    return m;
}

hc_function_t function_of(hc_module_t module, const char *name)
{
    hc_function_t f;
    assert_ok(cuModuleGetFunction(&f, module, name));
    return f;
}

hc_ptr device_bytes(const void *bytes, size_t n)
{
    hc_ptr p;
    assert_ok(cuMemAlloc_v2(&p, n));
    if (bytes) assert_ok(cuMemcpyHtoD_v2(p, bytes, n));
    return p;
}

hc_result launch(hc_function_t f, unsigned grid, unsigned block, unsigned smem, void **params)
{
    return cuLaunchKernel(f, grid, 1, 1, block, 1, 1, smem, NULL, params, NULL);
}
