/* A session's state, shared by the files of this folder. */
#ifndef ZC_RUNTIME_SESSION_H
#define ZC_RUNTIME_SESSION_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/allocator.h"
#include "base/stats.h"
#include "cpu/kernel.h"
#include "op/custom.h"
#include "runtime/place.h"
#include "runtime/plan.h"

struct DLManagedTensorVersioned;

/* Memory of one value that grows when it must and is kept from run to run. */
typedef struct zc_room {
    void *p;
    size_t cap;
} zc_room;

typedef struct zc_input_slot {
    zc_tensor value;
    zc_room copy;
    size_t borrowed_bytes; /* of the caller's memory in value.data; 0: it is the copy */
    struct DLManagedTensorVersioned *tensor; /* that the borrowed memory belongs to; NULL: none */
    bool set, on_device;
    bool resident; /* on a GPU: a copy of the host's value is in the value's room (resident.c) */
} zc_input_slot;

typedef struct zc_output_slot {
    void *bound;
    size_t bound_bytes;
    bool on_device;   /* bound is device memory */
    bool stays;       /* without bound memory: the result stays on the device that made it */
    zc_room copy;     /* of a result that no memory of its own was planned for */
    zc_tensor result; /* of the last run; dtype ZC_NONE: none */
    bool result_is_bound, result_on_device;
} zc_output_slot;

/* Where a value lies in its root, which is larger: its lines of the last axis are parts of the
 * root's (subviews.h). */
typedef struct zc_subview {
    int64_t pitch; /* elements from one line to the next; 0: it has its root's memory */
    size_t offset; /* bytes */
    bool holds;    /* others lie in it */
} zc_subview;

/* What planning finds for one set of input shapes. */
typedef struct zc_shapes {
    uint64_t hash;                   /* of the dimensions */
    struct zc_shapes *next;          /* of the same bucket */
    struct zc_shapes *newer, *older; /* in the order of their last use */
    int64_t *dims;                   /* of all inputs, one after the other */
    bool planned;                    /* what follows is found */
    bool checked;                    /* a run has confirmed every planned shape */
    uint32_t *roots;      /* by value: the value whose memory it shares (itself, mostly) */
    zc_subview *subviews; /* by value */
    bool *external;       /* by root: memory is an output's, not the arena's */
    zc_placement *items;  /* what lies in the arena */
    size_t nitems, arena_bytes;
    struct zc_gpu_part *parts; /* on a GPU: what replays as graphs (gpu_graph.c); NULL: not found */
    uint32_t nparts;
} zc_shapes;

/* The sets that were used last (shapes.c). */
typedef struct zc_shape_cache {
    zc_shapes **buckets; /* by hash */
    size_t nbuckets;     /* a power of two */
    zc_shapes *newest, *oldest;
    size_t len, max;
    size_t bytes; /* that all this takes */
} zc_shape_cache;

/* What zc_session_profile has measured (profile.c). */
typedef struct zc_profiled {
    size_t runs;        /* 0: nothing is kept */
    double *us;         /* by step of block 0, `most` each */
    size_t most, bytes; /* that us and steps take */
    zc_interval *steps;
    double *gap, *overlap; /* by step: the sums of the runs; 0 without stamps */
} zc_profiled;

/* One thread at a time is inside; a run can be asked to stop. */
typedef enum zc_session_use {
    ZC_SESSION_FREE,
    ZC_SESSION_BUSY,
    ZC_SESSION_RUNNING,
    ZC_SESSION_CANCELLED
} zc_session_use;

struct zc_session {
    zc_plan *plan;
    const zc_program *program;
    atomic_int use; /* a zc_session_use */
    pid_t pid;
    zc_allocator allocator; /* of rooms, copies, the arena and scratch memory */
    bool reference;
    int arch; /* of a session that only plans: the GPU's, 90 for sm_90; 0: it plans for the CPU */
    bool no_subviews;    /* every value has memory of its own */
    bool is_counted;     /* among the plan's sessions */
    uint32_t timeout_ms; /* of a run on the CPU; 0: none */
    int64_t deadline;    /* of the run now, in nanoseconds of CLOCK_MONOTONIC; 0: none */
    zc_pool *pool;
    struct zc_background *_Atomic background; /* of runs that nobody waits for; NULL: none yet */
    zc_crew *crew; /* the plan's, whose threads the pool's are; NULL: they are not */

    zc_input_slot *inputs;
    zc_output_slot *outputs;

    zc_tensor *values;     /* by value: shape and data as of now; dtype ZC_NONE: not computed */
    zc_room *rooms;        /* by value: memory of values that are not in the arena */
    const uint32_t *roots; /* of the current shapes, as in zc_shapes */
    const bool *external;
    /* Work space of planning, by root: first and last step that need the memory. */
    int32_t *root_first, *root_last;
    int64_t *dim_values; /* by dimension expression */
    uint8_t *arena;
    size_t arena_bytes;
    zc_shape_cache shapes;
    zc_shapes *now; /* of the current input shapes */
    bool prepared;  /* for the current input shapes */
    bool checked;   /* a run has confirmed every planned shape */
    bool disjoint;  /* the caller's buffers do not overlap, as they are now */

    zc_custom_set custom; /* operators of the caller's; the list is the session's */
    zc_kstate *states;    /* three a step: its own, its prologue's, its epilogue's */
    zc_tensor *operands;  /* work space: a step's inputs and outputs */
    double *step_us; /* of a profiled session on the CPU: of the last run, by step of block 0 */
    zc_profiled profiled;
    zc_scratch scratch;
    zc_arena infer_arena; /* work space of shapes that are found at run time */
    zc_dims infer_dims;
    uint64_t room_bytes;  /* held by rooms and copies */
    uint64_t base_bytes;  /* of the arrays above */
    uint64_t state_bytes; /* of states, after the last run */
    atomic_ullong memory; /* all that is held, as of the last call's end */
    int64_t began;        /* when the last run was asked for, as zc_clock_ns gives it */
    uint64_t in_flight;   /* runs on a GPU that nobody has waited for */

    char fallback[512]; /* why ZC_DEVICE_AUTO chose the CPU; empty: it did not */

    struct zc_gpu *gpu; /* NULL: everything runs on the CPU (gpu.h) */
};

/* ---- one thread at a time (session.c) ---- */
/* Brackets what a call does, whose messages name the plan's file; fails when another thread is
 * inside, after fork(), and when the GPU is lost. */
zc_status zc_session_enter(zc_session *s, zc_diag *diag);
/* The same for a call that can be cancelled. */
zc_status zc_session_enter_run(zc_session *s, zc_diag *diag);
/* Returns status. */
zc_status zc_session_leave(zc_session *s, zc_status status, zc_diag *diag);

/* ---- running (run.c) ---- */
/* Runs once; with `wait` on a GPU, until the results are there. */
zc_status zc_session_run_now(zc_session *s, bool wait, zc_diag *diag);
/* Both return status; a run that a caller asked for is also counted. */
zc_status zc_session_leave_run(zc_session *s, zc_status status, zc_diag *diag);
zc_status zc_session_end_run(zc_session *s, zc_status status, zc_diag *diag);

/* ---- times of steps (session.c, profile.c) ---- */
/* Of the last run; 0 without a profile. */
double zc_session_step_us(const zc_session *s, size_t i);
void zc_profiled_free(zc_session *s);

/* ---- inputs and outputs (io.c) ---- */
/* Is every input set, and does no result overwrite an input or another result? */
zc_status zc_session_check_io(zc_session *s, zc_diag *diag);
/* Finds memory for the roots that outputs own, before the steps run. */
zc_status zc_session_root_outputs(zc_session *s, zc_diag *diag);
/* Puts the results where the caller gets them, after the steps. */
zc_status zc_session_deliver(zc_session *s, zc_diag *diag);
void zc_session_forget_results(zc_session *s);
/* Input i's value; `tensor`, of borrowed memory, is the session's when this succeeds. */
zc_status zc_session_give_input(zc_session *s, size_t i, const zc_view *view, bool borrow,
                                struct DLManagedTensorVersioned *tensor, zc_diag *diag);
zc_status zc_session_view_output(const zc_session *s, size_t i, zc_view *out, zc_diag *diag);
/* Calls its deleter (dlpack.c); NULL is accepted. */
void zc_dlpack_delete(struct DLManagedTensorVersioned *tensor);

/* Makes room for `bytes` in a room of this session. */
zc_status zc_room_fit(zc_session *s, zc_room *room, size_t bytes, zc_diag *diag);
void zc_room_free(zc_session *s, zc_room *room);

/* A session without threads, device and memory to run in (session.c); it can plan, and keeps that
 * for `shapes` sets of input shapes. */
zc_status zc_session_new(zc_plan *plan, size_t shapes, zc_session **out, zc_diag *diag);
void zc_session_free(zc_session *s);

/* Finds what the inputs' current shapes need: session.now (prepare.c). */
zc_status zc_session_plan(zc_session *s, zc_diag *diag);
/* The same, and makes the memory ready. */
zc_status zc_session_make_ready(zc_session *s, zc_diag *diag);

/* ---- shapes without values (memory.c) ---- */
/* Gives the inputs these shapes, inputs[n] of the caller's size each, and no data. */
zc_status zc_session_take_shapes(zc_session *s, const zc_io_info *inputs, size_t n, zc_diag *diag);
/* What runs of the shapes that are planned now take. */
zc_memory_info zc_session_measure(const zc_session *s);

/* ---- kept shapes (shapes.c) ---- */
bool zc_shapes_init(zc_shape_cache *c, size_t max);
void zc_shapes_fini(zc_shape_cache *c);
/* The entry for the inputs' current shapes, the newest from now on; when there is none, one that is
 * not planned, at the cost of the oldest where there are `max`. */
zc_status zc_shapes_find(zc_session *s, zc_shapes **out, zc_diag *diag);
/* No run has confirmed any of them. */
void zc_shapes_doubt(zc_shape_cache *c);

/* Makes ready what the steps' kernels share; first runs would, while the process may exit (exec.c).
 */
zc_status zc_exec_ready(const zc_session *s, zc_diag *diag);
/* Runs one step of any kind; block b's steps in order (exec.c). */
zc_status zc_exec_step(zc_session *s, const zc_pstep *step, zc_diag *diag);
/* The same, in a range of its name (runtime/nvtx.h). */
zc_status zc_exec_named(zc_session *s, const zc_pstep *step, zc_diag *diag);
zc_status zc_exec_block(zc_session *s, uint32_t b, zc_diag *diag);
/* Gives value v, which is not planned, this shape and host memory for it. */
zc_status zc_exec_shape(zc_session *s, uint32_t v, int rank, const int64_t *dims,
                        const char *subject, zc_diag *diag);
/* Gives value v a copy of t. */
zc_status zc_exec_copy(zc_session *s, uint32_t v, const zc_tensor *t, const char *subject,
                       zc_diag *diag);

/* If, Loop, Scan (control.c). */
zc_status zc_exec_control(zc_session *s, const zc_pstep *step, zc_diag *diag);

/* The time of a run begins. */
void zc_exec_begin(zc_session *s);
/* Has the run been cancelled, or taken too long? Then it stays so. */
bool zc_exec_stopped(const zc_session *s);
/* What such a run returns. */
zc_status zc_exec_stop(const zc_session *s, const char *subject, zc_diag *diag);

#endif
