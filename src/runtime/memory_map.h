/* What runs with certain input shapes hold in memory, step by step, found without a run. */
#ifndef ZC_RUNTIME_MEMORY_MAP_H
#define ZC_RUNTIME_MEMORY_MAP_H

#include "op/tensor.h"
#include "zc/rt.h"

/* One place in the working memory: an intermediate result, and those that take its memory over. */
typedef struct zc_memory_value {
    const char *name; /* the plan's */
    zc_tensor type;   /* without data */
    uint64_t bytes;   /* rounded up to the alignment */
    uint64_t offset;
    size_t first, last; /* steps of the main program during which it is needed */
} zc_memory_value;

/* A value that lies in another one, on a GPU: lines of its last axis are parts of that one's. */
typedef struct zc_memory_subview {
    const char *name, *root; /* the plan's */
    zc_tensor type;          /* without data */
    uint64_t offset;         /* from the root's beginning */
    int64_t pitch;           /* elements from one line to the next */
} zc_memory_subview;

typedef struct zc_memory_step {
    const char *name, *op; /* the plan's; the library's */
    bool in_place;         /* of parts that are where they belong: it copies nothing */
    uint64_t live;         /* working memory that is needed during it */
    int64_t workspace;     /* GPU memory that it takes for itself; -1: a run alone can tell */
} zc_memory_step;

typedef struct zc_memory_map {
    zc_memory_info info;
    int arch;            /* of the GPU that the rest is for, 90 for sm_90; 0: the CPU */
    uint64_t code_bytes; /* of the kernels in the plan for it */
    uint64_t workspace;  /* the most of one step: a session keeps that much */
    size_t unknown;      /* steps whose workspace is not known; on the CPU all */
    size_t nsteps, nvalues, nsubviews;
    size_t peak;             /* the first step during which most is needed */
    zc_memory_step *steps;   /* of the main program */
    zc_memory_value *values; /* the largest first */
    zc_memory_subview *subviews;
} zc_memory_map;

/* inputs[n] as for zc_plan_memory; arch is one that the plan has kernels for, or 0. The caller
 * frees *out, also after a failure, before the plan. */
zc_status zc_memory_map_make(const zc_plan *plan, int arch, const zc_io_info *inputs, size_t n,
                             zc_memory_map *out, zc_diag *diag);
void zc_memory_map_free(zc_memory_map *map);

#endif
