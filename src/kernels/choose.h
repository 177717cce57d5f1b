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
enum { ZC_REFUSED_MAX = 256 };
typedef struct zc_refusals {
    struct {
        char kernel[128], why[96];
        int arch;
    } v[ZC_REFUSED_MAX];
    size_t n;
} zc_refusals;

/* The kernel of a step, as somebody measured it. */
typedef struct zc_measured {
    const char *family, *config; /* as zc_config_text has it */
    const char *why;
} zc_measured;
/* Is there one for a step of p (which has the sizes of a profile)? */
typedef bool (*zc_measured_fn)(void *user, const zc_program *p, uint32_t step, int arch,
                               zc_measured *out);

typedef struct zc_choose_params {
    const int *archs;                  /* 90 for sm_90, ascending */
    int narchs;                        /* 0: no step is on a GPU */
    const zc_choose_profile *profiles; /* every combination of their values has kernels */
    size_t nprofiles;
    const char *family; /* the one family that may serve, for checks of rows that others precede;
                           NULL: any */
    bool offered;       /* also rows that have not run on a GPU may be taken by cost */
    int candidate;      /* of each family's configurations, from 1; 0: by cost. Families that have
                           fewer decline */
    const zc_refusals *refused; /* may be NULL */
    zc_measured_fn measured;    /* goes before the models of cost, where the family still has such a
                                   configuration; may be NULL */
    void *measured_user;
    /* For measuring: each step with certain sizes gets up to so many configurations of every family
     * that serves it, as choices that never hold, before the one that does; and the combination
     * number `variant` of the profiles is the only one. */
    int alternatives;
    size_t variant;
} zc_choose_params;

/* Multiprocessors of an architecture's usual chip: what choices count with, the same on every
 * machine. */
int zc_usual_processors(int arch);

/* Places every step, and chooses and specialises its kernels. New arrays live in `arena`. A step is
 * on the GPU when it has a kernel for every architecture. */
zc_status zc_choose(zc_program *p, const zc_choose_params *params, zc_arena *arena, zc_diag *diag);

/* "tile_m=128 tile_n=256 ...". false: no memory. */
bool zc_config_text(const char *family, const int64_t *config, zc_buf *out);

#endif
