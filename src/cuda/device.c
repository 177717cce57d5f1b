#include "cuda/device.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/gate.h"

static zc_status attribute(zc_device *d, int which, int *out, zc_diag *diag)
{
    return zc_device_check(d, d->cu.device_attribute(out, which, d->device), "cuDeviceGetAttribute",
                           diag);
}

static zc_status describe(zc_device *d, zc_diag *diag)
{
    int major, minor, count;
    ZC_TRY(zc_device_check(d, d->cu.device_count(&count), "cuDeviceGetCount", diag));
    if (d->ordinal < 0 || d->ordinal >= count)
        return zc_fail(diag, ZC_ERR_DEVICE, "cuda", "no such GPU (got number %d, there %s %d)",
                       d->ordinal, count == 1 ? "is" : "are", count);
    ZC_TRY(zc_device_check(d, d->cu.device_get(&d->device, d->ordinal), "cuDeviceGet", diag));
    ZC_TRY(zc_device_check(d, d->cu.device_name(d->name, sizeof d->name, d->device),
                           "cuDeviceGetName", diag));
    ZC_TRY(attribute(d, ZC_CU_DEVICE_CC_MAJOR, &major, diag));
    ZC_TRY(attribute(d, ZC_CU_DEVICE_CC_MINOR, &minor, diag));
    ZC_TRY(attribute(d, ZC_CU_DEVICE_SM_COUNT, &d->sm_count, diag));
    ZC_TRY(zc_device_check(d, d->cu.driver_version(&d->driver), "cuDriverGetVersion", diag));
    ZC_TRY(zc_device_check(d, d->cu.device_bus(d->bus, sizeof d->bus, d->device),
                           "cuDeviceGetPCIBusId", diag));
    d->arch = major * 10 + minor;
    return attribute(d, ZC_CU_DEVICE_SMEM_OPTIN, &d->smem_max, diag);
}

static zc_status enter_gate(zc_diag *diag)
{
    if (zc_gate_enter(ZC_GATE_CUDA) == ZC_OK) return ZC_OK;
    return zc_fail(diag, ZC_ERR_CANCELLED, "cuda", "the process is exiting");
}

zc_status zc_device_arch(int ordinal, int *arch, zc_diag *diag)
{
    zc_device d = {.ordinal = ordinal};
    ZC_TRY(enter_gate(diag));
    zc_status status = zc_cu_open(&d.cu, diag);
    if (status == ZC_OK) status = describe(&d, diag);
    *arch = d.arch;
    zc_cu_close(&d.cu);
    zc_gate_leave(ZC_GATE_CUDA);
    return status;
}

/* The driver may have more exit handlers once it has a context. */
static zc_status retain(zc_device *d, zc_diag *diag)
{
    static atomic_bool closes;
    ZC_TRY(describe(d, diag));
    int code = d->cu.context_retain(&d->context, d->device);
    if (code) d->context = NULL;
    ZC_TRY(zc_device_check(d, code, "cuDevicePrimaryCtxRetain", diag));
    return zc_gate_close_at_exit(&closes) == ZC_OK ? ZC_OK : zc_fail_nomem(diag, "cuda", 0);
}

zc_status zc_device_open(int ordinal, zc_device *d, zc_diag *diag)
{
    *d = (zc_device){.ordinal = ordinal, .pid = getpid()};
    atomic_init(&d->lost, false);
    atomic_init(&d->lost_code, 0);
    ZC_TRY(enter_gate(diag));
    zc_status status = zc_cu_open(&d->cu, diag);
    if (status == ZC_OK) status = retain(d, diag);
    if (status != ZC_OK) zc_device_close(d);
    zc_gate_leave(ZC_GATE_CUDA);
    return status;
}

/* A lost device's context is not released, nor a parent process's, nor one while exit() runs, and
 * the driver stays loaded: its clean-up can hang or abort. */
void zc_device_close(zc_device *d)
{
    if (!d->cu.library || d->lost || d->pid != getpid() || zc_gate_enter(ZC_GATE_CUDA) != ZC_OK)
        return;
    if (d->context) (void)d->cu.context_release(d->device);
    zc_cu_close(&d->cu);
    zc_gate_leave(ZC_GATE_CUDA);
}

/* need 0: not known. The entry tells that it is the device's memory, not the allocator's. */
static zc_status out_of_memory(zc_device *d, size_t need, const char *what, zc_diag *diag)
{
    size_t free_bytes = 0, total = 0;
    if (!d->context || d->cu.mem_info(&free_bytes, &total) != 0)
        return zc_cu_fail(&d->cu, ZC_CU_ERROR_MEMORY, what, diag);
    if (need)
        zc_fail(diag, ZC_ERR_DEVICE, what,
                "not enough memory on %s (need %zu MiB, %zu MiB of %zu MiB are free)", d->name,
                (need >> 20) + 1, free_bytes >> 20, total >> 20);
    else
        zc_fail(diag, ZC_ERR_DEVICE, what, "not enough memory on %s (%zu MiB of %zu MiB are free)",
                d->name, free_bytes >> 20, total >> 20);
    return ZC_ERR_NOMEM;
}

static void lose(zc_device *d, int code)
{
    int none = 0;
    (void)atomic_compare_exchange_strong(&d->lost_code, &none, code);
    atomic_store(&d->lost, true);
}

zc_status zc_device_check(zc_device *d, int code, const char *what, zc_diag *diag)
{
    if (code == 0) return ZC_OK;
    if (code == ZC_CU_ERROR_MEMORY) return out_of_memory(d, 0, what, diag);
    if (zc_cu_is_sticky(code)) lose(d, code);
    return zc_cu_fail(&d->cu, code, what, diag);
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The driver has no wait with a limit: asks, with naps of an eighth of the time that has passed. */
static int poll_stream(zc_device *d, zc_cu_stream stream, uint32_t limit_ms)
{
    const int64_t start = now_ns(), limit = (int64_t)limit_ms * 1000000;
    for (;;) {
        int64_t passed = now_ns() - start;
        int code = d->cu.stream_query(stream);
        if (code != ZC_CU_ERROR_NOT_READY || passed >= limit) return code;
        int64_t nap = passed / 8 < 1000000 ? passed / 8 : 1000000;
        nanosleep(&(struct timespec){.tv_nsec = (long)nap}, NULL);
    }
}

zc_status zc_device_wait(zc_device *d, zc_cu_stream stream, uint32_t limit_ms, const char *what,
                         zc_diag *diag)
{
    /* exit() need not wait for kernels. */
    const unsigned times = zc_gate_step_out(ZC_GATE_CUDA);
    int code = limit_ms ? poll_stream(d, stream, limit_ms) : d->cu.stream_wait(stream);
    if (zc_gate_step_in(ZC_GATE_CUDA, times) != ZC_OK) {
        lose(d, ZC_CU_ERROR_DEINITIALIZED);
        return zc_fail(diag, ZC_ERR_CANCELLED, what, "the process is exiting");
    }
    if (!limit_ms || code != ZC_CU_ERROR_NOT_READY) return zc_device_check(d, code, what, diag);
    lose(d, ZC_CU_ERROR_LAUNCH_TIMEOUT);
    return zc_fail(diag, ZC_ERR_DEVICE_LOST, what,
                   "the GPU did not finish within %u ms; a kernel cannot be killed: start a new "
                   "process",
                   limit_ms);
}

zc_status zc_device_check_memory(zc_device *d, int code, size_t bytes, const char *what,
                                 zc_diag *diag)
{
    return code == ZC_CU_ERROR_MEMORY ? out_of_memory(d, bytes, what, diag)
                                      : zc_device_check(d, code, what, diag);
}

zc_status zc_device_alive(zc_device *d, zc_diag *diag)
{
    if (d->pid != getpid())
        return zc_fail(diag, ZC_ERR_FORKED, d->name, "was opened before fork() in another process");
    if (!d->lost) return ZC_OK;
    const char *name = NULL;
    if (d->cu.error_name(d->lost_code, &name) != 0 || !name) name = "unknown error";
    return zc_fail(diag, ZC_ERR_DEVICE_LOST, d->name,
                   "the device was lost by an earlier error, %s (%d); start a new "
                   "process",
                   name, d->lost_code);
}

zc_status zc_device_enter(zc_device *d, zc_diag *diag)
{
    ZC_TRY(zc_device_alive(d, diag));
    ZC_TRY(enter_gate(diag));
    zc_status status = zc_device_check(d, d->cu.context_push(d->context), "cuCtxPushCurrent", diag);
    if (status != ZC_OK) zc_gate_leave(ZC_GATE_CUDA);
    return status;
}

void zc_device_leave(zc_device *d)
{
    zc_cu_context popped;
    if (d->lost_code != ZC_CU_ERROR_DEINITIALIZED) (void)d->cu.context_pop(&popped);
    zc_gate_leave(ZC_GATE_CUDA);
}

zc_status zc_device_alloc(zc_device *d, size_t bytes, const char *what, zc_cu_ptr *out,
                          zc_diag *diag)
{
    *out = 0;
    return zc_device_check_memory(d, d->cu.mem_alloc(out, bytes ? bytes : 1), bytes ? bytes : 1,
                                  what, diag);
}

void zc_device_free(zc_device *d, zc_cu_ptr *p)
{
    if (*p && !d->lost) (void)d->cu.mem_free(*p);
    *p = 0;
}
