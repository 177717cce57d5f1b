/* A session's part on a GPU.
 *
 * Every value has a shape in session.values, whose `data` is its host memory while the host's copy
 * is valid, else NULL; and here a device address, valid while on_device. A step on the GPU brings
 * its inputs to the device and leaves its outputs there; a step on the CPU does the reverse;
 * nothing is copied that is already where it is needed. Host memory of values lives in
 * session.rooms. */
#ifndef ZC_RUNTIME_GPU_H
#define ZC_RUNTIME_GPU_H

#include "kernels/launcher.h"
#include "runtime/alternatives.h"
#include "runtime/session.h"

typedef struct zc_gpu_room {
    zc_cu_ptr p;
    size_t cap;
} zc_gpu_room;

/* Consecutive steps of block 0 that replay as one CUDA graph. */
typedef struct zc_gpu_part {
    uint32_t first, end; /* positions in block 0 */
    uint32_t *needs;     /* values from outside that its kernels read */
    uint32_t nneeds;
    zc_cu_graph_exec exec; /* NULL: not captured */
    zc_cu_ptr *pointers;   /* addresses that the graph holds: of needs, then of the outputs in its
                              steps, then scratch and counters */
    uint32_t npointers;
    uint64_t launches;
    bool refused; /* capture failed: issue the steps by themselves */
} zc_gpu_part;

/* When a step's kernels were there, since the run's first; what came before the step is all that
 * has ended later than any before. */
typedef struct zc_step_span {
    double begin_us, end_us;
    double gap_us;     /* nothing was there before it */
    double overlap_us; /* it was there, and what came before it, too */
} zc_step_span;

/* When the steps of block 0 ran, as their kernels noted. */
typedef struct zc_gpu_stamped {
    zc_gpu_room room; /* on the device: zc_stamps by step; none: kernels note nothing */
    struct zc_stamps *read;
    zc_step_span *spans; /* of the last run */
} zc_gpu_stamped;

struct zc_gpu {
    zc_image *image; /* the plan's */
    zc_cu_stream stream;
    bool own_stream, graphs;
    zc_cu_ptr *at;
    bool *on_device;
    bool *root_set;     /* by root that an output owns: it has its address for this run */
    zc_gpu_room *rooms; /* by value */
    zc_gpu_room arena, scratch, counters;
    zc_allocator allocator; /* of all rooms; without functions: the driver */
    zc_fault_word *fault;   /* page-locked host memory that kernels write to */
    ZC_VEC(zc_gpu_room)
    pieces; /* scratch memory of DYNAMIC steps, in the order of their requests */
    /* Work space: device and host views of one step's operands, and their pitches. */
    zc_tensor *operands;
    int64_t *pitches;
    zc_launcher launcher;
    zc_cu_event
        *events; /* of a profiled session: before each step of block 0, and after the last */
    float *step_ms, run_ms; /* from the first event to the last */
    zc_gpu_stamped stamped; /* of one that is profiled as it runs */
    uint64_t memory;
    uint64_t launches; /* of the last run */
    char refusal[256]; /* why a part could not be recorded; empty: none was refused */
    uint32_t
        *forced; /* by step: 1 + the choice that is to serve it; 0: as ranges say. NULL: all 0 */
    struct {
        const bool *steps; /* NULL: not comparing */
        zc_compared_fn told;
        void *user;
    } comparing;
};

/* ---- life (gpu.c) ---- */
zc_status zc_gpu_create(zc_session *s, const zc_session_params *params, zc_diag *diag);
void zc_gpu_destroy(zc_session *s);
/* ZC_OK, or the error of a device that is lost. */
zc_status zc_gpu_alive(zc_session *s, zc_diag *diag);
/* Waits for the session's stream, as long as its parameters allow. */
zc_status zc_gpu_sync(zc_session *s, const char *what, zc_diag *diag);
/* Brackets driver calls. */
zc_status zc_gpu_enter(zc_session *s, zc_diag *diag);
void zc_gpu_leave(zc_session *s);

/* ---- memory (gpu.c) ---- */
/* Device memory for planned values: items[n] are placed in `need` bytes. */
zc_status zc_gpu_place(zc_session *s, const zc_placement *items, size_t n, size_t need,
                       zc_diag *diag);
zc_status zc_gpu_room_fit(zc_session *s, zc_gpu_room *room, size_t bytes, zc_diag *diag);
/* Makes the copy on that side valid. */
zc_status zc_gpu_to_host(zc_session *s, uint32_t v, zc_diag *diag);
zc_status zc_gpu_to_device(zc_session *s, uint32_t v, zc_diag *diag);
/* The value was written there: the other copy is stale. */
void zc_gpu_wrote_host(zc_session *s, uint32_t v);
void zc_gpu_wrote_device(zc_session *s, uint32_t v);
/* Shape of a value that is not planned, and device memory for it. */
zc_status zc_gpu_shape(zc_session *s, uint32_t v, int rank, const int64_t *dims,
                       const char *subject, zc_diag *diag);

/* ---- inputs and outputs (gpu_io.c) ---- */
zc_status zc_gpu_check_pointer(zc_session *s, const void *p, size_t bytes, const char *subject,
                               zc_diag *diag);
/* The address of a root that an output owns: bound memory, or a room when NULL. */
zc_status zc_gpu_root(zc_session *s, uint32_t root, void *bound, zc_diag *diag);
/* Addresses of inputs and of what shares an output's memory, for this run. */
void zc_gpu_point(zc_session *s);
/* Output i, which is bound to device memory. */
zc_status zc_gpu_deliver(zc_session *s, uint32_t i, zc_diag *diag);
/* Leaves output i on the device; false: it is not there. */
bool zc_gpu_leave_output(zc_session *s, uint32_t i);
void zc_gpu_info(const zc_session *s, zc_device_info *out);

/* ---- steps (gpu_exec.c) ---- */
/* Output 0, whose shape is known, becomes another name of input 0's bytes. */
zc_status zc_gpu_view(zc_session *s, const zc_pstep *step, zc_diag *diag);
/* Brings the program's inputs that kernels read to the device, before any step runs. */
zc_status zc_gpu_bring_program_inputs(zc_session *s, zc_diag *diag);
/* Which of its choices in the image's program serves the step now, and that one's kernel. */
uint32_t zc_gpu_choice(const zc_session *s, const zc_pstep *step);
uint32_t zc_gpu_kernel(const zc_session *s, const zc_pstep *step);
/* Why it was chosen. */
const char *zc_gpu_why(const zc_session *s, const zc_pstep *step);
zc_status zc_gpu_step(zc_session *s, const zc_pstep *step, zc_diag *diag);
/* Waits for the stream; reports what kernels found wrong. */
zc_status zc_gpu_wait(zc_session *s, zc_diag *diag);
/* Has the stream nothing left to do? A fault counts as that. */
bool zc_gpu_idle(zc_session *s);
/* After a failed run: waits for what it has issued, and forgets what its kernels reported. */
void zc_gpu_settle(zc_session *s);

/* ---- graphs (gpu_graph.c) ---- */
/* Finds the kernels and graphs for the current input shapes, which are planned. */
zc_status zc_gpu_prepare(zc_session *s, zc_diag *diag);
/* Runs block 0; zc_gpu_run_block without looking whether it is to be timed. */
zc_status zc_gpu_run_block(zc_session *s, zc_diag *diag);
zc_status zc_gpu_run(zc_session *s, zc_diag *diag);
void zc_gpu_free_parts(zc_session *s, zc_shapes *e);

/* ---- alternatives (gpu_alternatives.c) ---- */
/* Runs the step, and its alternatives where they are compared. */
zc_status zc_gpu_compare(zc_session *s, const zc_pstep *step, zc_diag *diag);

/* ---- profiles (gpu_profile.c) ---- */
zc_status zc_gpu_profile_create(zc_session *s, zc_diag *diag);
void zc_gpu_profile_destroy(zc_session *s);
/* Runs block 0 with an event before each step, or as ever between two events while kernels note
 * their times; waits, and keeps the times. The program's inputs are on the device before the first
 * event. */
zc_status zc_gpu_profile_run(zc_session *s, zc_diag *diag);
/* Step i of block 0 comes next: where its kernels note their times. */
zc_status zc_gpu_stamp(zc_session *s, uint32_t i, zc_diag *diag);

#endif
