/* The kernel table in C: kernels.def's families and rows. */
#ifndef ZC_KERNELS_TABLE_H
#define ZC_KERNELS_TABLE_H

#include "kernels/gen.h"
#include "kernels/launch.h"

typedef struct zc_family {
    const char *name, *template_name;
    zc_gen_fn gen;
    zc_launch_fn launch;
} zc_family;

extern const zc_family zc_families[];
extern const int zc_family_count;

/* Number of the family; -1: there is none of this name. */
int zc_family_find(const char *name);
/* Is the family for this architecture (90 for sm_90)? */
bool zc_family_serves(int family, int arch);
/* Names of its configuration's numbers: zc_config_entries where it names none. */
const char *const *zc_family_config(int family, int *n);
/* Is code of it refused that spills or serialises? */
bool zc_family_lean(int family);
/* Differs when the parameters that its kernels are given, or the names of its configuration, do. */
uint64_t zc_family_abi(int family);
/* Is the source of a plan this zc's, or a user's? */
bool zc_source_is_own(const zc_psource *source);
/* Row i of the table that serves the operation; -1: there is none. */
int zc_family_of(zc_op op, int i);

#endif
