/* Device and pinned memory, copies and fills. Device memory is host memory, poisoned when new. */
#include <stdlib.h>
#include <string.h>

#include "state.h"

static hc_result get_info(size_t *available, size_t *total)
{
    if (!available || !total) return HC_CUDA_ERROR_INVALID_VALUE;
    *available = hc_gpu.memory - hc_gpu.used;
    *total = hc_gpu.memory;
    return HC_CUDA_SUCCESS;
}

hc_result cuMemGetInfo_v2(size_t *available, size_t *total)
{
    HC_CALL(HC_NEEDS_CONTEXT, get_info(available, total));
}

/* 256-byte aligned like the driver's. The end is not rounded up, so that ASan sees past it. */
static void *allocate(hc_kind kind, size_t size)
{
    void *p = NULL;
    if (posix_memalign(&p, 256, size) != 0) return NULL;
    memset(p, 0xFF, size);
    if (hc_register(kind, p, size)) return p;
    free(p);
    return NULL;
}

static hc_result device_alloc(hc_ptr *p, size_t size)
{
    if (!p || size == 0) return HC_CUDA_ERROR_INVALID_VALUE;
    if (size > hc_gpu.memory - hc_gpu.used) return HC_CUDA_ERROR_OUT_OF_MEMORY;
    void *memory = allocate(HC_DEVICE_MEMORY, size);
    if (!memory) return HC_CUDA_ERROR_OUT_OF_MEMORY;
    hc_gpu.used += size;
    *p = (uintptr_t)memory;
    return HC_CUDA_SUCCESS;
}

hc_result cuMemAlloc_v2(hc_ptr *p, size_t size)
{
    HC_CALL(HC_NEEDS_CONTEXT | HC_UNSAFE, device_alloc(p, size));
}

static hc_result device_free(hc_ptr p)
{
    if (p == 0) return HC_CUDA_SUCCESS;
    const void *memory = (const void *)(uintptr_t)p;
    if (!hc_is(HC_DEVICE_MEMORY, memory)) return HC_CUDA_ERROR_INVALID_VALUE;
    hc_gpu.used -= hc_lookup((uintptr_t)p)->size;
    hc_unregister(memory);
    free((void *)(uintptr_t)p);
    return HC_CUDA_SUCCESS;
}

hc_result cuMemFree_v2(hc_ptr p)
{
    HC_CALL(HC_NEEDS_CONTEXT | HC_UNSAFE, device_free(p));
}

static hc_result host_alloc(void **p, size_t size)
{
    if (!p || size == 0) return HC_CUDA_ERROR_INVALID_VALUE;
    *p = allocate(HC_HOST_MEMORY, size);
    return *p ? HC_CUDA_SUCCESS : HC_CUDA_ERROR_OUT_OF_MEMORY;
}

hc_result cuMemHostAlloc(void **p, size_t size, unsigned flags)
{
    (void)flags;
    HC_CALL(HC_NEEDS_CONTEXT | HC_UNSAFE, host_alloc(p, size));
}

static hc_result host_free(void *p)
{
    if (!hc_is(HC_HOST_MEMORY, p)) return HC_CUDA_ERROR_INVALID_VALUE;
    hc_unregister(p);
    free(p);
    return HC_CUDA_SUCCESS;
}

hc_result cuMemFreeHost(void *p)
{
    HC_CALL(HC_NEEDS_CONTEXT | HC_UNSAFE, host_free(p));
}

/* Data whose width depends on the attribute: pointers 8 bytes, ranges size_t, the others 4. */
static hc_result pointer_attribute(void *data, unsigned attribute, hc_ptr p)
{
    const hc_range *r = hc_lookup((uintptr_t)p);
    if (!data || !r || (r->kind != HC_DEVICE_MEMORY && r->kind != HC_HOST_MEMORY))
        return HC_CUDA_ERROR_INVALID_VALUE;
    bool device = r->kind == HC_DEVICE_MEMORY;
    switch (attribute) {
    case HC_CU_POINTER_ATTRIBUTE_CONTEXT:
        *(hc_context_t *)data = hc_current_context();
        return HC_CUDA_SUCCESS;
    case HC_CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = device ? HC_CU_MEMORYTYPE_DEVICE : HC_CU_MEMORYTYPE_HOST;
        return HC_CUDA_SUCCESS;
    case HC_CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(hc_ptr *)data = p;
        return HC_CUDA_SUCCESS;
    case HC_CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (device) return HC_CUDA_ERROR_INVALID_VALUE;
        *(void **)data = (void *)(uintptr_t)p;
        return HC_CUDA_SUCCESS;
    case HC_CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case HC_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = 0;
        return HC_CUDA_SUCCESS;
    case HC_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(hc_ptr *)data = r->begin;
        return HC_CUDA_SUCCESS;
    case HC_CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = r->size;
        return HC_CUDA_SUCCESS;
    default:
        return HC_CUDA_ERROR_INVALID_VALUE;
    }
}

hc_result cuPointerGetAttribute(void *data, unsigned attribute, hc_ptr p)
{
    HC_CALL(HC_NEEDS_CONTEXT, pointer_attribute(data, attribute, p));
}

/* ---- Copies and fills ---- */

/* Device sides must lie in an allocation; anything else breaks the context as a fault would. */
hc_result hc_check_copy(const hc_work *w)
{
    size_t bytes = w->type == HC_CU_GRAPH_NODE_TYPE_MEMSET ? w->n * w->width : w->n;
    const char *side = NULL;
    if (w->dst_device && !hc_on_device(w->dst, bytes)) side = "to";
    if (w->src_device && !hc_on_device(w->src, bytes)) side = "from";
    if (!side) return HC_CUDA_SUCCESS;
    hc_message("copy %s outside device memory: %zu bytes at %p", side, bytes,
               (void *)(side[0] == 't' ? w->dst : w->src));
    return hc_break(HC_CUDA_ERROR_ILLEGAL_ADDRESS);
}

static hc_result copy(hc_stream_t stream, hc_work w)
{
    w.type = HC_CU_GRAPH_NODE_TYPE_MEMCPY;
    if (w.n == 0) return HC_CUDA_SUCCESS;
    if (!w.dst || !w.src) return HC_CUDA_ERROR_INVALID_VALUE;
    return hc_submit(stream, &w);
}

static hc_result copy_now(hc_work w)
{
    hc_result r = hc_capture_check_legacy();
    return r == HC_CUDA_SUCCESS ? copy(NULL, w) : r;
}

static hc_work to_device(hc_ptr dst, const void *src, size_t n)
{
    return (hc_work){.dst = (uintptr_t)dst, .src = (uintptr_t)src, .dst_device = true, .n = n};
}

static hc_work from_device(void *dst, hc_ptr src, size_t n)
{
    return (hc_work){.dst = (uintptr_t)dst, .src = (uintptr_t)src, .src_device = true, .n = n};
}

hc_result cuMemcpyHtoD_v2(hc_ptr dst, const void *src, size_t n)
{
    HC_CALL(HC_NEEDS_CONTEXT, copy_now(to_device(dst, src, n)));
}

hc_result cuMemcpyDtoH_v2(void *dst, hc_ptr src, size_t n)
{
    HC_CALL(HC_NEEDS_CONTEXT, copy_now(from_device(dst, src, n)));
}

hc_result cuMemcpyHtoDAsync_v2(hc_ptr dst, const void *src, size_t n, hc_stream_t stream)
{
    HC_CALL(HC_NEEDS_CONTEXT, copy(stream, to_device(dst, src, n)));
}

hc_result cuMemcpyDtoHAsync_v2(void *dst, hc_ptr src, size_t n, hc_stream_t stream)
{
    HC_CALL(HC_NEEDS_CONTEXT, copy(stream, from_device(dst, src, n)));
}

hc_result cuMemcpyDtoDAsync_v2(hc_ptr dst, hc_ptr src, size_t n, hc_stream_t stream)
{
    hc_work w = to_device(dst, (const void *)(uintptr_t)src, n);
    w.src_device = true;
    HC_CALL(HC_NEEDS_CONTEXT, copy(stream, w));
}

static hc_result fill(hc_ptr dst, unsigned value, unsigned width, size_t n, hc_stream_t stream)
{
    if (n == 0) return HC_CUDA_SUCCESS;
    if (!dst || dst % width || n > SIZE_MAX / width) return HC_CUDA_ERROR_INVALID_VALUE;
    hc_work w = {.type = HC_CU_GRAPH_NODE_TYPE_MEMSET,
                 .dst = (uintptr_t)dst,
                 .dst_device = true,
                 .n = n,
                 .value = value,
                 .width = width};
    return hc_submit(stream, &w);
}

hc_result cuMemsetD8Async(hc_ptr dst, unsigned char value, size_t n, hc_stream_t stream)
{
    HC_CALL(HC_NEEDS_CONTEXT, fill(dst, value, 1, n, stream));
}

hc_result cuMemsetD32Async(hc_ptr dst, unsigned value, size_t n, hc_stream_t stream)
{
    HC_CALL(HC_NEEDS_CONTEXT, fill(dst, value, 4, n, stream));
}
