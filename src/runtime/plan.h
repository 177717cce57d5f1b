/* A loaded plan: immutable, reference-counted. */
#ifndef ZC_RUNTIME_PLAN_H
#define ZC_RUNTIME_PLAN_H

#include <stdatomic.h>

#include "planfile/program.h"
#include "zc/rt.h"

struct zc_plan {
    atomic_int refs;
    uint8_t *bytes; /* the plan file: strings and constants point into it */
    size_t len;
    zc_arena arena;
    zc_program program;
    uint64_t weight_bytes;
    /* By value: the positions in blocks[0] of the step that makes it and of the last step that
     * needs it (or what it is viewed as is followed separately); -1 and nsteps for inputs and
     * outputs. */
    int32_t *first, *last;
};

void zc_plan_retain(zc_plan *plan);

#endif
