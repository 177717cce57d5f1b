/* A plan on one GPU: its kernels loaded, its constants in device memory. Shared by the sessions of
 * a plan; immutable once made, but for the device's `lost`. */
#ifndef ZC_KERNELS_IMAGE_H
#define ZC_KERNELS_IMAGE_H

#include "cuda/device.h"
#include "kernels/launch.h"
#include "planfile/program.h"

enum { ZC_ENTRIES_MAX = 24 };

typedef struct zc_image_kernel {
    zc_cu_module module;
    zc_cu_function entries[ZC_ENTRIES_MAX]; /* NULL: this specialisation has no such entry */
    zc_cu_function stamp_end;               /* of a stamped image */
    zc_launch_fn launch;
    int processors; /* that its entries were chosen for; 0: any number */
} zc_image_kernel;

typedef struct zc_image {
    zc_device device;
    const zc_program *program; /* the plan's, or with kernels chosen for this device */
    uint32_t arch;             /* of the choices that hold here */
    zc_arena arena;            /* of a program and sources of its own */
    bool stamped;              /* its kernels note when they run (kernels/stamps.h) */
    const zc_psource *sources; /* that kernels without code here are compiled from */
    char built[128];           /* the architectures that the plan was compiled for, as text */
    zc_image_kernel *kernels;  /* by kernel */
    zc_cu_ptr weights;         /* one block */
    size_t weight_bytes;
    zc_cu_ptr *constants; /* by value: address; 0: not on the device */
    uint32_t rebuilt;     /* kernels compiled at load because the plan has no code for this GPU */
} zc_image;

/* stamped: all kernels are compiled now, from the program's sources. */
zc_status zc_image_create(const zc_program *program, int ordinal, bool stamped, zc_image **out,
                          zc_diag *diag);
void zc_image_destroy(zc_image **image);

/* Bytes of device memory that the plan's constants take. */
size_t zc_image_weight_bytes(const zc_program *program);

#endif
