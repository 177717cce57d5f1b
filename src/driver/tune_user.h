/* Tuning parameters of users' kernels, measured on this machine's first GPU. */
#ifndef ZC_DRIVER_TUNE_USER_H
#define ZC_DRIVER_TUNE_USER_H

#include "ir/graph.h"
#include "rules/rules.h"
#include "zc/zc.h"

/* Most combinations of one kernel. */
enum { ZC_TUNE_MAX = 64 };

/* A combination that computes something else than the kernel's meaning. */
typedef struct zc_refused {
    char *origin; /* of the kernel */
    size_t combination;
} zc_refused;

typedef struct zc_tuning {
    ZC_VEC(zc_refused) refused;
    zc_buf told; /* a line for each choice, and for each refusal */
} zc_tuning;

void zc_tuning_fini(zc_tuning *t);

/* An error unless there is a GPU to measure on. */
zc_status zc_tune_ready(zc_diag *diag);
/* Every combination but the first (which the ordinary check is about) on the samples of the rules
 * that emit the kernel; those whose results are wrong, or that cannot be run, are refused. */
zc_status zc_tune_check(zc_rules *r, uint64_t seed, zc_tuning *t, zc_diag *diag);
/* Every combination that is left, for each kernel in g with the shapes that it has there; the
 * fastest is what g says from now on. Symbolic dimensions have a profile's greatest size, or 64. */
zc_status zc_tune_graph(zc_graph *g, const zc_compile_params *p, zc_tuning *t, zc_diag *diag);

#endif
