/* Initialisation, the device, contexts, error names. */
#include <stdio.h>
#include <string.h>

#include "bus.h"
#include "state.h"

struct hc_context {
    int unused;
};

#define MAX_STACK 16

/* The one context there is: the device's primary one. */
static struct hc_context primary;
static _Thread_local hc_context_t stack[MAX_STACK];
static _Thread_local int depth;

hc_context_t hc_current_context(void)
{
    return depth ? stack[depth - 1] : NULL;
}

static hc_result init(unsigned flags)
{
    if (flags) return HC_CUDA_ERROR_INVALID_VALUE;
    if (hc_gpu.count <= 0) return HC_CUDA_ERROR_NO_DEVICE;
    hc_gpu.initialised = true;
    return HC_CUDA_SUCCESS;
}

hc_result cuInit(unsigned flags)
{
    HC_CALL(0, init(flags));
}

static hc_result store(int *to, int value)
{
    if (!to) return HC_CUDA_ERROR_INVALID_VALUE;
    *to = value;
    return HC_CUDA_SUCCESS;
}

hc_result cuDriverGetVersion(int *version)
{
    HC_CALL(0, store(version, 13000));
}

static hc_result error_text(hc_result error, const char **text, bool name)
{
    if (!text) return HC_CUDA_ERROR_INVALID_VALUE;
    switch (error) {
#define X(id, value, meaning)                                                                      \
    case HC_##id:                                                                                  \
        *text = name ? #id : meaning;                                                              \
        return HC_CUDA_SUCCESS;
        HC_RESULTS(X)
#undef X
    default:
        *text = NULL;
        return HC_CUDA_ERROR_INVALID_VALUE;
    }
}

hc_result cuGetErrorName(hc_result error, const char **text)
{
    HC_CALL(0, error_text(error, text, true));
}

hc_result cuGetErrorString(hc_result error, const char **text)
{
    HC_CALL(0, error_text(error, text, false));
}

hc_result cuDeviceGetCount(int *count)
{
    HC_CALL(HC_NEEDS_INIT, store(count, hc_gpu.count));
}

static bool is_device(hc_device dev)
{
    return dev >= 0 && dev < hc_gpu.count;
}

hc_result cuDeviceGet(hc_device *device, int ordinal)
{
    HC_CALL(HC_NEEDS_INIT,
            is_device(ordinal) ? store(device, ordinal) : HC_CUDA_ERROR_INVALID_DEVICE);
}

static hc_result device_name(char *name, int len, hc_device dev)
{
    if (!is_device(dev)) return HC_CUDA_ERROR_INVALID_DEVICE;
    if (!name || len <= 0) return HC_CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)len, "hostcuda sm_%u", hc_gpu.cc);
    return HC_CUDA_SUCCESS;
}

hc_result cuDeviceGetName(char *name, int len, hc_device dev)
{
    HC_CALL(HC_NEEDS_INIT, device_name(name, len, dev));
}

static hc_result bus_id(char *name, int len, hc_device dev)
{
    if (!is_device(dev)) return HC_CUDA_ERROR_INVALID_DEVICE;
    if (!name || len < 13) return HC_CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)len, HC_BUS_FORMAT, HC_FIRST_BUS + (unsigned)dev);
    return HC_CUDA_SUCCESS;
}

hc_result cuDeviceGetPCIBusId(char *name, int len, hc_device dev)
{
    HC_CALL(HC_NEEDS_INIT, bus_id(name, len, dev));
}

unsigned hc_smem_optin(void)
{
    switch (hc_gpu.cc) {
    case 80:
    case 87:
        return 166912;
    case 90:
    case 100:
    case 103:
        return 232448;
    case 75:
        return 65536;
    default:
        return 101376;
    }
}

static int cc_attribute(unsigned attribute)
{
    switch (attribute) {
    case HC_ATTR_COMPUTE_CAPABILITY_MAJOR:
        return (int)hc_gpu.cc / 10;
    case HC_ATTR_COMPUTE_CAPABILITY_MINOR:
        return (int)hc_gpu.cc % 10;
    case HC_ATTR_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        return (int)hc_smem_optin();
    case HC_ATTR_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        return (int)hc_smem_optin() + 1024;
    case HC_ATTR_CLUSTER_LAUNCH:
        return hc_gpu.cc >= 90;
    default:
        return 0;
    }
}

static hc_result device_attribute(int *value, unsigned attribute, hc_device dev)
{
    if (!is_device(dev)) return HC_CUDA_ERROR_INVALID_DEVICE;
    switch (attribute) {
#define X(id, number, answer)                                                                      \
    case HC_ATTR_##id:                                                                             \
        return store(value, (answer) ? (answer) : cc_attribute(attribute));
        HC_DEVICE_ATTRIBUTES(X)
#undef X
    default:
        return HC_CUDA_ERROR_INVALID_VALUE;
    }
}

hc_result cuDeviceGetAttribute(int *value, unsigned attribute, hc_device dev)
{
    HC_CALL(HC_NEEDS_INIT, device_attribute(value, attribute, dev));
}

static hc_result total_memory(size_t *bytes, hc_device dev)
{
    if (!is_device(dev)) return HC_CUDA_ERROR_INVALID_DEVICE;
    if (!bytes) return HC_CUDA_ERROR_INVALID_VALUE;
    *bytes = hc_gpu.memory;
    return HC_CUDA_SUCCESS;
}

hc_result cuDeviceTotalMem_v2(size_t *bytes, hc_device dev)
{
    HC_CALL(HC_NEEDS_INIT, total_memory(bytes, dev));
}

static hc_result retain(hc_context_t *ctx, hc_device dev)
{
    if (!is_device(dev)) return HC_CUDA_ERROR_INVALID_DEVICE;
    if (!ctx) return HC_CUDA_ERROR_INVALID_VALUE;
    hc_gpu.ctx_refs++;
    *ctx = &primary;
    return HC_CUDA_SUCCESS;
}

hc_result cuDevicePrimaryCtxRetain(hc_context_t *ctx, hc_device dev)
{
    HC_CALL(HC_NEEDS_INIT, retain(ctx, dev));
}

static void report_memory(void *p, size_t size)
{
    hc_message("leak: %zu bytes of device memory at %p", size, p);
}

static void report_leaks(void)
{
    static const struct {
        hc_kind kind;
        const char *name;
    } kinds[] = {{HC_HOST_MEMORY, "host allocations"},
                 {HC_STREAM, "streams"},
                 {HC_EVENT, "events"},
                 {HC_MODULE, "modules"},
                 {HC_GRAPH, "graphs"},
                 {HC_EXEC, "executable graphs"}};
    hc_for_each(HC_DEVICE_MEMORY, report_memory);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        unsigned n = hc_count(kinds[i].kind);
        if (n) hc_message("leak: %u %s", n, kinds[i].name);
    }
}

static hc_result release(hc_device dev)
{
    if (!is_device(dev)) return HC_CUDA_ERROR_INVALID_DEVICE;
    if (!hc_gpu.ctx_refs) return HC_CUDA_ERROR_INVALID_CONTEXT;
    /* A broken context cannot be cleaned up by its owner. */
    if (--hc_gpu.ctx_refs == 0 && hc_gpu.broken == HC_CUDA_SUCCESS) report_leaks();
    return HC_CUDA_SUCCESS;
}

hc_result cuDevicePrimaryCtxRelease_v2(hc_device dev)
{
    HC_CALL(HC_NEEDS_INIT, release(dev));
}

static hc_result push(hc_context_t ctx)
{
    if (ctx != &primary || depth == MAX_STACK) return HC_CUDA_ERROR_INVALID_CONTEXT;
    if (!hc_gpu.ctx_refs) return HC_CUDA_ERROR_CONTEXT_IS_DESTROYED;
    stack[depth++] = ctx;
    return HC_CUDA_SUCCESS;
}

hc_result cuCtxPushCurrent_v2(hc_context_t ctx)
{
    HC_CALL(HC_NEEDS_INIT, push(ctx));
}

static hc_result pop(hc_context_t *ctx)
{
    if (!depth) return HC_CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (ctx) *ctx = stack[depth];
    return HC_CUDA_SUCCESS;
}

hc_result cuCtxPopCurrent_v2(hc_context_t *ctx)
{
    HC_CALL(HC_NEEDS_INIT, pop(ctx));
}

static hc_result get_current(hc_context_t *ctx)
{
    if (!ctx) return HC_CUDA_ERROR_INVALID_VALUE;
    *ctx = hc_current_context();
    return HC_CUDA_SUCCESS;
}

hc_result cuCtxGetCurrent(hc_context_t *ctx)
{
    HC_CALL(HC_NEEDS_INIT, get_current(ctx));
}

hc_result cuCtxSynchronize(void)
{
    HC_CALL(HC_NEEDS_CONTEXT | HC_UNSAFE, HC_CUDA_SUCCESS);
}
