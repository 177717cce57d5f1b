/* Behind zc_launch_*: one session's stream and scratch memory, or a dry run that only measures. */
#ifndef ZC_KERNELS_LAUNCHER_H
#define ZC_KERNELS_LAUNCHER_H

#include "kernels/image.h"

typedef struct zc_launcher {
    zc_image *image;
    const zc_image_kernel *kernel; /* of the step that is being issued */
    zc_cu_stream stream;
    uint32_t limit_ms; /* of a wait; 0: none */
    bool dry;
    uint32_t issued; /* bit i: entry i, since it was last cleared */
    zc_cu_ptr scratch;
    size_t scratch_bytes, scratch_used;
    size_t scratch_need; /* the most that any step used */
    zc_cu_ptr counters;  /* of 32 bits, zero between kernels */
    size_t counters_bytes, counters_need;
    uint64_t launches; /* kernels, fills and copies issued */
    zc_cu_ptr stamps;  /* of a stamped image: where kernels note when they run */
    struct {
        zc_cu_ptr stamps;              /* 0: nothing is open */
        const zc_image_kernel *kernel; /* the last that was issued */
    } open;                            /* whose end the next kernel would note */
    /* Of DYNAMIC steps, else NULL: they learn their sizes as they go. */
    zc_status (*resize)(void *user, int i, int rank, const int64_t *dims, zc_tensor *out,
                        zc_diag *diag);
    zc_status (*more_scratch)(void *user, size_t bytes, void **out, zc_diag *diag);
    void *user;
} zc_launcher;

/* Issues one step. */
zc_status zc_launcher_issue(zc_launcher *r, const zc_image_kernel *kernel, zc_launch *l);
/* What comes next is no kernel: has the end of what is open noted now. */
zc_status zc_launcher_close(zc_launcher *r, zc_diag *diag);

/* Any place in device memory, aligned as all are that kernels are given. */
#define ZC_SOMEWHERE ((void *)(uintptr_t)256)
/* Issues a step dry and without a device, to learn what *out then says: operands are its inputs,
 * its outputs, and its inputs as the host has them, as zc_launch describes them. */
zc_status zc_launcher_dry(int family, const zc_pstep *step, const zc_pkernel *kernel, int sm_count,
                          zc_tensor *operands, zc_launcher *out);

#endif
