/* A session's state, shared by the files of this folder. */
#ifndef ZC_RUNTIME_SESSION_H
#define ZC_RUNTIME_SESSION_H

#include <stdatomic.h>
#include <sys/types.h>

#include "cpu/kernel.h"
#include "runtime/place.h"
#include "runtime/plan.h"

/* Memory of one value that grows when it must and is kept from run to run. */
typedef struct zc_room {
    void *p;
    size_t cap;
} zc_room;

typedef struct zc_input_slot {
    zc_tensor value;
    zc_room copy;
    bool set, on_device;
} zc_input_slot;

typedef struct zc_output_slot {
    void *bound;
    size_t bound_bytes;
    bool on_device; /* bound is device memory */
    zc_tensor result;
} zc_output_slot;

struct zc_session {
    zc_plan *plan;
    const zc_program *program;
    atomic_bool busy, cancel;
    pid_t pid;
    bool reference;
    zc_pool *pool;

    zc_input_slot *inputs;
    zc_output_slot *outputs;

    zc_tensor *values;   /* by value: shape and data as of now; dtype ZC_NONE: not computed */
    zc_room *rooms;      /* by value: memory of values that are not in the arena */
    uint32_t *roots;     /* by value: the value whose memory it shares (itself, mostly) */
    int32_t *root_last;  /* by root: last step that needs the memory */
    bool *external;      /* by root: memory is an output's, not the arena's */
    zc_placement *items; /* work space of planning */
    int64_t *dim_values; /* by dimension expression */
    uint8_t *arena;
    size_t arena_bytes;
    bool prepared; /* for the current input shapes */
    bool checked;  /* a run has confirmed every planned shape */

    zc_kstate *states;   /* by step */
    zc_tensor *operands; /* work space: a step's inputs and outputs */
    zc_scratch scratch;
    uint64_t room_bytes; /* held by rooms and copies */

    struct zc_gpu *gpu; /* NULL: everything runs on the CPU (gpu.h) */
};

/* Makes room for `bytes` in a room of this session. */
zc_status zc_room_fit(zc_session *s, zc_room *room, size_t bytes, zc_diag *diag);

/* Shapes and memory for the inputs' current shapes (prepare.c). */
zc_status zc_session_prepare(zc_session *s, zc_diag *diag);

/* Runs one step of any kind; block b's steps in order (exec.c). */
zc_status zc_exec_step(zc_session *s, const zc_pstep *step, zc_diag *diag);
zc_status zc_exec_block(zc_session *s, uint32_t b, zc_diag *diag);
/* Gives value v, which is not planned, this shape and host memory for it. */
zc_status zc_exec_shape(zc_session *s, uint32_t v, int rank, const int64_t *dims,
                        const char *subject, zc_diag *diag);
/* Gives value v a copy of t. */
zc_status zc_exec_copy(zc_session *s, uint32_t v, const zc_tensor *t, const char *subject,
                       zc_diag *diag);

/* If, Loop, Scan (control.c). */
zc_status zc_exec_control(zc_session *s, const zc_pstep *step, zc_diag *diag);

static inline bool zc_exec_cancelled(zc_session *s)
{
    return atomic_load_explicit(&s->cancel, memory_order_relaxed);
}

#endif
