/* From a program to a GPU program: which steps run on the GPU, and by which kernels. */
#ifndef ZC_KERNELS_CHOOSE_H
#define ZC_KERNELS_CHOOSE_H

#include "planfile/program.h"

/* Places every step and writes the specialisation header of each kernel. New arrays live in
 * `arena`. */
zc_status zc_codegen_lower(zc_program *p, zc_arena *arena, zc_diag *diag);

/* Sizes of one input dimension to have kernels of their own. */
typedef struct zc_codegen_profile {
    const char *name; /* of the symbol */
    const int64_t *values;
    size_t count;
} zc_codegen_profile;
enum { ZC_VARIANTS_MAX = 64 };

/* After zc_codegen_lower: adds a variant for every combination of the profiles' values. */
zc_status zc_codegen_variants(zc_program *p, const zc_codegen_profile *profiles, size_t n,
                              zc_arena *arena, zc_diag *diag);
/* The same with the kernel table's rows of one family alone: for checks of rows that others
 * precede. */
zc_status zc_codegen_lower_by(zc_program *p, const char *family, zc_arena *arena, zc_diag *diag);

#endif
