/* The kernel table (op/kernels.def) with its functions. */
#ifndef ZC_KERNELS_TABLE_H
#define ZC_KERNELS_TABLE_H

#include "kernels/gen.h"
#include "kernels/launch.h"
#include "op/kernels.h"

typedef struct zc_family {
    const char *name, *template_name;
    zc_gen_fn gen;
    zc_launch_fn launch;
} zc_family;

extern const zc_family zc_families[];

/* Names of its configuration's numbers: zc_config_entries where it names none. */
const char *const *zc_family_config(int family, int *n);
/* Differs when the parameters that its kernels are given, or the names of its configuration, do. */
uint64_t zc_family_abi(int family);
/* Is the source of a plan this zc's, or a user's? */
bool zc_source_is_own(const zc_psource *source);

#endif
