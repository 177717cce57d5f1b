#include "cuda/device.h"

#include <stdio.h>

static zc_status attribute(zc_device *d, int which, int *out, zc_diag *diag)
{
    return zc_device_check(d, d->cu.device_attribute(out, which, d->device), "cuDeviceGetAttribute", diag);
}

static zc_status describe(zc_device *d, zc_diag *diag)
{
    int major, minor, count;
    ZC_TRY(zc_device_check(d, d->cu.device_count(&count), "cuDeviceGetCount", diag));
    if (d->ordinal < 0 || d->ordinal >= count)
        return zc_fail(diag, ZC_ERR_DEVICE, "cuda", "no such GPU (got number %d, there %s %d)", d->ordinal,
                       count == 1 ? "is" : "are", count);
    ZC_TRY(zc_device_check(d, d->cu.device_get(&d->device, d->ordinal), "cuDeviceGet", diag));
    ZC_TRY(zc_device_check(d, d->cu.device_name(d->name, sizeof d->name, d->device), "cuDeviceGetName", diag));
    ZC_TRY(attribute(d, ZC_CU_DEVICE_CC_MAJOR, &major, diag));
    ZC_TRY(attribute(d, ZC_CU_DEVICE_CC_MINOR, &minor, diag));
    ZC_TRY(attribute(d, ZC_CU_DEVICE_SM_COUNT, &d->sm_count, diag));
    d->arch = major * 10 + minor;
    return attribute(d, ZC_CU_DEVICE_SMEM_OPTIN, &d->smem_max, diag);
}

zc_status zc_device_open(int ordinal, zc_device *d, zc_diag *diag)
{
    *d = (zc_device){.ordinal = ordinal};
    atomic_init(&d->lost, false);
    ZC_TRY(zc_cu_open(&d->cu, diag));
    zc_status status = describe(d, diag);
    if (status == ZC_OK)
        status = zc_device_check(d, d->cu.context_retain(&d->context, d->device), "cuDevicePrimaryCtxRetain", diag);
    if (status != ZC_OK) {
        d->context = NULL;
        zc_device_close(d);
    }
    return status;
}

/* A lost device's context is not released: that can hang or abort in the driver. */
void zc_device_close(zc_device *d)
{
    if (!d->cu.library) return;
    if (d->context && !d->lost) (void)d->cu.context_release(d->device);
    zc_cu_close(&d->cu);
}

zc_status zc_device_check(zc_device *d, int code, const char *what, zc_diag *diag)
{
    if (zc_cu_is_sticky(code)) atomic_store(&d->lost, true);
    return code == 0 ? ZC_OK : zc_cu_fail(&d->cu, code, what, diag);
}

zc_status zc_device_alive(const zc_device *d, zc_diag *diag)
{
    if (!d->lost) return ZC_OK;
    return zc_fail(diag, ZC_ERR_DEVICE_LOST, d->name, "the device was lost by an earlier error; start a new process");
}

zc_status zc_device_enter(zc_device *d, zc_diag *diag)
{
    ZC_TRY(zc_device_alive(d, diag));
    return zc_device_check(d, d->cu.context_push(d->context), "cuCtxPushCurrent", diag);
}

void zc_device_leave(zc_device *d)
{
    zc_cu_context popped;
    (void)d->cu.context_pop(&popped);
}

zc_status zc_device_alloc(zc_device *d, size_t bytes, const char *what, zc_cu_ptr *out, zc_diag *diag)
{
    *out = 0;
    int code = d->cu.mem_alloc(out, bytes ? bytes : 1);
    if (code != ZC_CU_ERROR_MEMORY) return zc_device_check(d, code, what, diag);
    size_t free_bytes = 0, total = 0;
    (void)d->cu.mem_info(&free_bytes, &total);
    return zc_fail(diag, ZC_ERR_NOMEM, what, "not enough memory on %s (need %zu MiB, %zu MiB of %zu MiB are free)",
                   d->name, (bytes >> 20) + 1, free_bytes >> 20, total >> 20);
}

void zc_device_free(zc_device *d, zc_cu_ptr *p)
{
    if (*p && !d->lost) (void)d->cu.mem_free(*p);
    *p = 0;
}
