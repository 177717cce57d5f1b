/* From a program to a GPU program: which steps run on the GPU, by which kernels of which
 * configuration, for each architecture. The choice is made here, once: it travels in the plan. */
#ifndef ZC_KERNELS_CHOOSE_H
#define ZC_KERNELS_CHOOSE_H

#include "planfile/program.h"

/* Sizes of one input dimension to have kernels of their own. */
typedef struct zc_choose_profile {
    const char *name; /* of the symbol */
    const int64_t *values;
    size_t count;
} zc_choose_profile;
enum { ZC_VARIANTS_MAX = 64 };

/* Kernels whose code is not taken, and why: what zc_codegen_build found, for zc_choose to take
 * others. */
enum { ZC_REFUSED_MAX = 64 };
typedef struct zc_refusals {
    struct {
        char kernel[128], why[96];
        int arch;
    } v[ZC_REFUSED_MAX];
    size_t n;
} zc_refusals;

typedef struct zc_choose_params {
    const int *archs;                  /* 90 for sm_90, ascending */
    int narchs;                        /* 0: no step is on a GPU */
    const zc_choose_profile *profiles; /* every combination of their values has kernels */
    size_t nprofiles;
    const char *family; /* the one family that may serve, for checks of rows that others precede;
                           NULL: any */
    int candidate;      /* of each family's configurations, from 1; 0: by cost. Families that have
                           fewer decline */
    const zc_refusals *refused; /* may be NULL */
} zc_choose_params;

/* Places every step, and chooses and specialises its kernels. New arrays live in `arena`. A step is
 * on the GPU when it has a kernel for every architecture. */
zc_status zc_choose(zc_program *p, const zc_choose_params *params, zc_arena *arena, zc_diag *diag);

#endif
