#include "cuda/driver.h"

#include <dlfcn.h>
#include <string.h>

#include "base/gate.h"

static const struct {
    size_t offset;
    const char *symbol;
} symbols[] = {
#define CU(field, symbol, params) {offsetof(zc_cu, field), symbol},
#include "cuda/driver.def"
#undef CU
};

static zc_status bind(zc_cu *cu, zc_diag *diag)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *at = dlsym(cu->library, symbols[i].symbol);
        if (!at)
            return zc_fail(
                diag, ZC_ERR_DEVICE, "libcuda.so.1",
                "the CUDA driver is too old: it has no %s (zc needs a driver for CUDA 12 or later)",
                symbols[i].symbol);
        memcpy((char *)cu + symbols[i].offset, &at, sizeof at);
    }
    return ZC_OK;
}

/* It stays loaded, so that its exit handlers are there but once. */
static zc_status load(zc_cu *cu, zc_diag *diag)
{
    static atomic_bool before, after;
    if (zc_gate_close_at_exit(&before) != ZC_OK) return zc_fail_nomem(diag, "libcuda.so.1", 0);
    cu->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!cu->library)
        return zc_fail(diag, ZC_ERR_DEVICE, "libcuda.so.1", "no CUDA driver is installed (%s)",
                       dlerror());
    if (zc_gate_close_at_exit(&after) != ZC_OK) return zc_fail_nomem(diag, "libcuda.so.1", 0);
    return bind(cu, diag);
}

zc_status zc_cu_open(zc_cu *cu, zc_diag *diag)
{
    *cu = (zc_cu){0};
    zc_status status = load(cu, diag);
    int code = status == ZC_OK ? cu->init(0) : 0;
    if (code == ZC_CU_ERROR_NO_DEVICE)
        status = zc_fail(diag, ZC_ERR_DEVICE, "cuda", "the CUDA driver sees no GPU");
    else if (code)
        status = zc_cu_fail(cu, code, "cuInit", diag);
    if (status != ZC_OK) zc_cu_close(cu);
    return status;
}

void zc_cu_close(zc_cu *cu)
{
    if (cu->library) dlclose(cu->library);
    *cu = (zc_cu){0};
}

bool zc_cu_is_sticky(int code)
{
    switch (code) {
    case ZC_CU_ERROR_DEINITIALIZED:
    case 214: /* ECC uncorrectable */
    case 220: /* NVLink uncorrectable */
    case 226: /* contained error */
    case 700: /* illegal address */
    case 702: /* launch timeout */
    case 709: /* context is destroyed */
    case 710: /* device assert */
    case 714: /* hardware stack error */
    case 715: /* illegal instruction */
    case 716: /* misaligned address */
    case 717: /* invalid address space */
    case 718: /* invalid program counter */
    case 719: /* launch failed */
    case 721: /* tensor memory leak */
    case 999: /* unknown */
        return true;
    default:
        return false;
    }
}

zc_status zc_cu_fail(const zc_cu *cu, int code, const char *what, zc_diag *diag)
{
    const char *name = NULL, *text = NULL;
    if (cu->error_name(code, &name) != 0 || !name) name = "unknown error";
    if (cu->error_string(code, &text) != 0 || !text) text = "no description";
    if (zc_cu_is_sticky(code))
        return zc_fail(diag, ZC_ERR_DEVICE_LOST, what,
                       "%s (%d): %s; this process cannot use the device any more", name, code,
                       text);
    zc_fail(diag, ZC_ERR_DEVICE, what, "%s (%d): %s", name, code, text);
    return code == ZC_CU_ERROR_MEMORY ? ZC_ERR_NOMEM : ZC_ERR_DEVICE;
}
