/* The machine code of a program's kernels (kernels/choose.h). */
#ifndef ZC_CODEGEN_CODEGEN_H
#define ZC_CODEGEN_CODEGEN_H

#include "cuda/nvrtc.h"
#include "kernels/choose.h"

typedef struct zc_codegen_build_params {
    const int *archs; /* 90 for sm_90 */
    int narchs;
    int threads;          /* 0: one a CPU */
    bool strip_sources;   /* leave the sources out of the program afterwards */
    const char *emit_dir; /* also write each kernel's readable source there; may be NULL */
    zc_refusals *refused; /* gets kernels whose code is not to be taken; then there is no machine
                             code: choose again. NULL: all is taken */
    zc_buf *told;         /* gets a line for each kernel: how long it took; may be NULL */
    void (*beside)(void *user); /* what one of the threads does besides; may be NULL */
    void *beside_user;
} zc_codegen_build_params;

/* The sources that the kernels are compiled from. */
zc_status zc_codegen_sources(zc_program *p, zc_arena *arena, zc_diag *diag);

/* Compiles every kernel for every architecture (NVRTC, disk cache). */
zc_status zc_codegen_build(zc_program *p, const zc_codegen_build_params *params, zc_arena *arena,
                           zc_diag *diag);

/* The machine code of a kernel that is no program's, appended to `out`; from the disk cache when it
 * is there. */
zc_status zc_codegen_kernel(const zc_rtc *rtc, const zc_pkernel *kernel, int arch, zc_buf *out,
                            zc_diag *diag);

/* The embedded sources. */
const zc_psource *zc_template_find(const char *name);

#endif
