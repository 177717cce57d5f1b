/* A loaded plan: immutable, reference-counted. */
#ifndef ZC_RUNTIME_PLAN_H
#define ZC_RUNTIME_PLAN_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/pool.h"
#include "cpu/packs.h"
#include "kernels/image.h"
#include "planfile/program.h"
#include "runtime/counters.h"
#include "zc/rt.h"

struct zc_plan {
    atomic_int refs;
    uint8_t *bytes; /* the plan file: strings and constants point into it. NULL: it is none */
    size_t len;
    bool mapped;      /* the bytes are the file's own pages */
    const char *file; /* that it is from, which messages of its sessions name; NULL: from memory */
    zc_arena arena;
    zc_program program;
    uint64_t weight_bytes;
    zc_counts counts; /* of its sessions */
    /* By value: the positions in blocks[0] of the step that makes it and of the last step that
     * needs it (or what it is viewed as is followed separately); -1 and nsteps for inputs and
     * outputs. */
    int32_t *first, *last;
    zc_packs own_packs;
    zc_packs *packs;           /* constants as CPU kernels read them: its own, or its maker's */
    pthread_mutex_t crew_lock; /* of what follows; taken inside the gate (base/gate.h) */
    zc_crew *crew;             /* of the sessions that bring none of their own (threads.c) */
    int crew_users;
    atomic_int images_pid; /* the process that first asked for one; 0: none has */
    pthread_mutex_t images_lock;
    ZC_VEC(zc_image *) images; /* by GPU that a session asked for, and whether stamped */
};

/* The plan on GPU number `ordinal`, with kernels that note when they run or as they are, made on
 * first use; it lives as long as the plan. */
zc_status zc_plan_image(zc_plan *plan, int ordinal, bool stamped, zc_image **out, zc_diag *diag);

/* The threads that the plan's sessions share, at least `threads` with a caller unless that is more
 * than there are CPUs. Each success is given back by zc_plan_leave_crew; the last one ends them. */
zc_status zc_plan_enter_crew(zc_plan *plan, int threads, zc_crew **out, zc_diag *diag);
void zc_plan_leave_crew(zc_plan *plan, zc_crew *crew);

void zc_plan_retain(zc_plan *plan);

/* A plan of a program in memory, which outlives it and is completed here, as do the packs. */
zc_status zc_plan_of_program(zc_program *program, zc_packs *packs, zc_plan **out, zc_diag *diag);

/* Tells plan->packs which originals can be given back (packable.c). */
zc_status zc_plan_find_packable(zc_plan *plan, zc_diag *diag);

#endif
