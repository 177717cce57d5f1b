/* One GPU: the driver's symbols and the device's primary context, retained while this is open. The
 * caller's current context is left as it was: enter and leave bracket every group of driver calls.
 */
#ifndef ZC_CUDA_DEVICE_H
#define ZC_CUDA_DEVICE_H

#include <stdatomic.h>
#include <sys/types.h>

#include "cuda/driver.h"

typedef struct zc_device {
    zc_cu cu;
    zc_cu_context context;
    int ordinal, device;
    int arch; /* 90 for compute capability 9.0 */
    int sm_count, smem_max;
    char name[128];
    char bus[16];         /* its address, "0000:3b:00.0" */
    int driver;           /* the version of CUDA that the driver serves, 13000 for 13.0 */
    atomic_int lost_code; /* the first sticky error */
    atomic_bool lost;     /* a sticky error was seen: nothing works in this process any more */
    pid_t pid;            /* a context does not survive fork() */
} zc_device;

/* Device number `ordinal` as CUDA counts. */
zc_status zc_device_open(int ordinal, zc_device *out, zc_diag *diag);
void zc_device_close(zc_device *d);
/* Its architecture alone, without starting anything on it. */
zc_status zc_device_arch(int ordinal, int *arch, zc_diag *diag);

zc_status zc_device_enter(zc_device *d, zc_diag *diag);
void zc_device_leave(zc_device *d);

/* ZC_OK for code 0; else the error, and `lost` is set by sticky ones. */
zc_status zc_device_check(zc_device *d, int code, const char *what, zc_diag *diag);
/* The same for a call that takes `bytes` bytes of device memory. */
zc_status zc_device_check_memory(zc_device *d, int code, size_t bytes, const char *what,
                                 zc_diag *diag);
/* Waits for the stream, but for at most limit_ms milliseconds (0: for ever). A kernel that is still
 * at work then cannot be killed, so the device counts as lost. */
zc_status zc_device_wait(zc_device *d, zc_cu_stream stream, uint32_t limit_ms, const char *what,
                         zc_diag *diag);
/* The error of a device that is lost, or that a parent process opened; ZC_OK otherwise. */
zc_status zc_device_alive(zc_device *d, zc_diag *diag);

/* Memory (inside enter and leave). bytes 0 gives a valid address too. The error says what was
 * needed and free. */
zc_status zc_device_alloc(zc_device *d, size_t bytes, const char *what, zc_cu_ptr *out,
                          zc_diag *diag);
void zc_device_free(zc_device *d, zc_cu_ptr *p);

#endif
