/* Plans for the CPU of one model with other types by part, to measure errors by: made one after the
 * other, without files. What all have in common is made once. */
#ifndef ZC_DRIVER_VARIANT_H
#define ZC_DRIVER_VARIANT_H

#include "cpu/packs.h"
#include "passes/kept.h"
#include "planfile/program.h"
#include "zc/rt.h"

typedef struct zc_variants {
    zc_graph *base; /* before types are lowered; NULL: not made yet */
    zc_kept kept;   /* of its constants */
    zc_packs packs;
} zc_variants;

void zc_variants_init(zc_variants *all);
void zc_variants_fini(zc_variants *all);
/* Takes the graph. */
void zc_variants_begin(zc_variants *all, zc_graph *base);

/* Zeroed by the caller, who ends it, also after a failure. */
typedef struct zc_variant {
    zc_variants *all;
    zc_graph *graph;
    zc_arena arena;
    zc_program program;
    zc_plan *plan;
} zc_variant;

/* The plan of v->graph, which runs without passes from here on. */
zc_status zc_variant_make(zc_variant *v, zc_variants *all, zc_diag *diag);
/* No session of the plan is left. */
void zc_variant_end(zc_variant *v);

#endif
