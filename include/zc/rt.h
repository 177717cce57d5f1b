/* The runtime: loads plans and runs them. Library: libzc_rt.
 *
 * A zc_plan is immutable after loading and may be shared by any number of threads. A zc_session
 * runs one plan for one thread at a time; make one per thread. A call on a session that another
 * thread is using returns ZC_ERR_BUSY; a session used after fork() in the child returns
 * ZC_ERR_FORKED. A session keeps its plan alive: the plan may be destroyed first.
 *
 * All sizes are in bytes, tensors contiguous and row-major, 4-bit and 2-bit elements packed as in
 * ONNX (low bits first). The libraries never exit, abort or print, keep no global state, and leave
 * the caller's locale and signal handlers alone. A session's worker threads block all signals but
 * those of their own faults.
 *
 * Results on the CPU are the same bits on any number of threads, as long as all of these round to
 * nearest and keep subnormal numbers, as threads do unless told otherwise. A call takes up to 256
 * KiB of stack; a thread that is cancelled (pthread_cancel) in one leaves the session in use.
 *
 * oneDNN, which some CPU kernels call, keeps caches and generated code for the whole process. The
 * first session that needs it generates that code, which takes tens of milliseconds. From then on:
 *   - exit() waits for calls of oneDNN that other threads are in, at most one part of a step,
 * before oneDNN frees its code; runs fail with ZC_ERR_CANCELLED from then on, and sessions can
 * still be destroyed. Only an exit() during the creation of the process's first session may crash.
 *   - fork() waits likewise, so that the child can make sessions of its own.
 *
 * On processors with AMX the first product of bytes asks Linux for the tiles' state (arch_prctl),
 * for the process and its children. From then on a signal's frame takes some 8 KiB more: alternate
 * stacks need getauxval(AT_MINSIGSTKSZ) bytes and the handler's own. Where a thread has a smaller
 * one already, Linux refuses, and zc does without tiles.
 *
 * Memory that runs out is ZC_ERR_NOMEM, in oneDNN too, with one exception: it crashes when memory
 * runs out while it generates code. So creating the first session that needs it fails unless 64 MiB
 * of address space are free, and so does the first run of a shape of a convolution without 32 MiB.
 * Where the system promises memory that it does not have (overcommit), no library can tell.
 *
 * A plan is native work to be done for its author: the checksums detect damage, not malice.
 *
 * Versions: structs that a call takes or fills begin with their size as the caller's header has
 * them, and get new fields at their ends only. A library that is newer than its caller leaves out
 * what the caller does not know; an older one gives 0 for what it does not know, and refuses
 * parameters that it does not know unless they are 0. The macros and the inline functions below set
 * the sizes; other languages set them and call the functions that end in _fill. The remaining
 * structs, such as zc_view, never change, and symbols carry versions. */
#ifndef ZC_RT_H
#define ZC_RT_H

#include <stdbool.h>

#include "zc/params.h"
#include "zc/status.h"
#include "zc/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Most dimensions of a tensor; most threads of a session or a compilation; most of
 * zc_session_params.shapes. */
#define ZC_RANK_MAX    16
#define ZC_THREADS_MAX 1024
#define ZC_SHAPES_MAX  65536

/* Element types, numbered as in ONNX's TensorProto.DataType. zc_elem_name gives "f32" and so on. */
typedef int zc_elem;
enum {
    ZC_ELEM_F32 = 1,
    ZC_ELEM_U8 = 2,
    ZC_ELEM_I8 = 3,
    ZC_ELEM_U16 = 4,
    ZC_ELEM_I16 = 5,
    ZC_ELEM_I32 = 6,
    ZC_ELEM_I64 = 7,
    ZC_ELEM_BOOL = 9,
    ZC_ELEM_F16 = 10,
    ZC_ELEM_F64 = 11,
    ZC_ELEM_U32 = 12,
    ZC_ELEM_U64 = 13,
    ZC_ELEM_C64 = 14,
    ZC_ELEM_C128 = 15,
    ZC_ELEM_BF16 = 16,
    ZC_ELEM_F8E4M3FN = 17,
    ZC_ELEM_F8E4M3FNUZ = 18,
    ZC_ELEM_F8E5M2 = 19,
    ZC_ELEM_F8E5M2FNUZ = 20,
    ZC_ELEM_U4 = 21,
    ZC_ELEM_I4 = 22,
    ZC_ELEM_F4E2M1 = 23,
    ZC_ELEM_F8E8M0 = 24,
    ZC_ELEM_U2 = 25,
    ZC_ELEM_I2 = 26
};
ZC_API const char *zc_elem_name(zc_elem elem);
/* 0 when unknown. */
ZC_API zc_elem zc_elem_parse(const char *name);
/* Bits of one element, 2 to 128; 0 when unknown. */
ZC_API size_t zc_elem_bits(zc_elem elem);

typedef struct zc_plan zc_plan;
typedef struct zc_session zc_session;

/* An input or output as the plan declares it. Texts belong to the plan. */
typedef struct zc_io_info {
    size_t size;
    const char *name;
    zc_elem elem;
    int rank;                           /* -1: known only when run */
    int64_t dims[ZC_RANK_MAX];          /* -1: not the same for every run */
    const char *dim_texts[ZC_RANK_MAX]; /* the dimension as text: "3", "batch", "seq+1" */
    int64_t bytes;                      /* of the tensor; -1: not the same for every run */
} zc_io_info;

/* A concrete tensor that the library or the caller owns, as each function says. Nobody writes
 * through a view: it may be looked at from several places. */
typedef struct zc_view {
    zc_elem elem;
    int rank;
    int64_t dims[ZC_RANK_MAX];
    const void *data;
    size_t bytes;
    bool on_device; /* data is memory of the session's GPU, in its primary context */
} zc_view;

/* Bytes that a tensor of the view's elem, rank and dims takes: what its `bytes` must be. SIZE_MAX
 * when that is none: an unknown type, a negative dimension, too many or too large ones. */
ZC_API size_t zc_view_size(const zc_view *view);

/* Facts about a plan. Texts belong to the plan. */
typedef struct zc_plan_info {
    size_t size;
    const char *zc_version; /* that made it */
    const char *target;     /* "cpu" */
    char model_sha256[65];  /* of the model file, as hexadecimal */
    size_t inputs, outputs, steps;
    uint64_t weight_bytes; /* constants, kept once however many sessions there are */
    /* At this moment, after runs on the CPU: copies of constants in the layouts that its fast
     * kernels read, shared by all sessions; and the originals of such copies whose pages have gone
     * back to the system. Constants take weight_bytes + packed_bytes - released_bytes. */
    uint64_t packed_bytes, released_bytes;
} zc_plan_info;

/* Verifies everything, then loads. The plan is read into private memory. */
ZC_API zc_status zc_plan_load_file(const char *path, zc_plan **out, zc_diag *diag);
/* The same, but the plan stays in the file, whose pages all processes share that map it: constants
 * are in memory once, however many processes run them. Copies in the layouts of fast kernels
 * (zc_plan_info.packed_bytes) are each process's own. As long as the plan is in use, nobody may
 * write to the file or cut it short, which no process would survive; replacing it by renaming
 * another over it, as zc_compile_file does, is fine. */
ZC_API zc_status zc_plan_map_file(const char *path, zc_plan **out, zc_diag *diag);
/* The bytes are copied. */
ZC_API zc_status zc_plan_load_bytes(const void *data, size_t len, zc_plan **out, zc_diag *diag);
/* Drops the caller's reference and sets *plan to NULL. */
ZC_API void zc_plan_destroy(zc_plan **plan);
/* Facts about the plan, as of now. */
ZC_API zc_status zc_plan_info_fill(const zc_plan *plan, zc_plan_info *out);
static inline zc_status zc_plan_info_get(const zc_plan *plan, zc_plan_info *out)
{
    if (out) out->size = sizeof *out;
    return zc_plan_info_fill(plan, out);
}
/* Input i, and output i, in the order of the model. */
ZC_API zc_status zc_plan_input_fill(const zc_plan *plan, size_t i, zc_io_info *out, zc_diag *diag);
static inline zc_status zc_plan_input(const zc_plan *plan, size_t i, zc_io_info *out, zc_diag *diag)
{
    if (out) out->size = sizeof *out;
    return zc_plan_input_fill(plan, i, out, diag);
}
ZC_API zc_status zc_plan_output_fill(const zc_plan *plan, size_t i, zc_io_info *out, zc_diag *diag);
static inline zc_status zc_plan_output(const zc_plan *plan, size_t i, zc_io_info *out,
                                       zc_diag *diag)
{
    if (out) out->size = sizeof *out;
    return zc_plan_output_fill(plan, i, out, diag);
}

/* What the model says of itself; texts belong to the plan, and are "" where it says nothing. */
typedef struct zc_model_info {
    size_t size;
    const char *name; /* of its graph */
    const char *producer, *producer_version;
    const char *domain, *doc;
    int64_t version; /* of the model; 0 where it says none */
    size_t pairs;    /* of its metadata: texts by keys, whose meaning its author decides */
} zc_model_info;
/* What the model says of itself. */
ZC_API zc_status zc_plan_model_fill(const zc_plan *plan, zc_model_info *out);
static inline zc_status zc_plan_model(const zc_plan *plan, zc_model_info *out)
{
    if (out) out->size = sizeof *out;
    return zc_plan_model_fill(plan, out);
}
/* Pair i of the model's metadata, in its order. Texts belong to the plan. */
ZC_API zc_status zc_plan_model_pair(const zc_plan *plan, size_t i, const char **key,
                                    const char **value, zc_diag *diag);
/* The value of the first pair with this key, which belongs to the plan; NULL when there is none. */
ZC_API const char *zc_plan_model_value(const zc_plan *plan, const char *key);

/* The number of the input or output of this name, which is exactly the model's. */
ZC_API zc_status zc_plan_find_input(const zc_plan *plan, const char *name, size_t *i,
                                    zc_diag *diag);
ZC_API zc_status zc_plan_find_output(const zc_plan *plan, const char *name, size_t *i,
                                     zc_diag *diag);

/* What runs with certain input shapes take. */
typedef struct zc_memory_info {
    size_t size;
    uint64_t weight_bytes;        /* the plan's constants, in host memory */
    uint64_t device_weight_bytes; /* those of them that a GPU gets too; 0 for a plan without GPU
                                     kernels */
    uint64_t
        arena_bytes; /* intermediate results: on the GPU for a session there, else in host memory */
    uint64_t live_bytes;   /* the largest sum of intermediate results that one step needs: what
                              arena_bytes would be at best */
    uint64_t result_bytes; /* outputs that are not bound to the caller's memory, on the same side */
} zc_memory_info;
/* Finds it out without making a session: inputs[n] are as zc_plan_input gives them, for all inputs
 * in order, with every dimension of -1 replaced by a size (rank and dims alone count). Temporary
 * memory of single steps and results whose size depends on values come on top; zc_session_memory
 * tells what a session then holds. Of a plan with GPU kernels it is what runs take on the first GPU
 * that it is for; on the CPU, where no tensor lies within another, arena_bytes may differ. */
ZC_API zc_status zc_plan_memory_fill(const zc_plan *plan, const zc_io_info *inputs, size_t n,
                                     zc_memory_info *out, zc_diag *diag);
static inline zc_status zc_plan_memory(const zc_plan *plan, const zc_io_info *inputs, size_t n,
                                       zc_memory_info *out, zc_diag *diag)
{
    if (out) out->size = sizeof *out;
    return zc_plan_memory_fill(plan, inputs, n, out, diag);
}

/* Where a session runs. A plan compiled for a GPU runs on the CPU too; a CPU plan has no GPU
 * kernels. */
typedef enum zc_device_kind {
    ZC_DEVICE_CPU = 0,
    ZC_DEVICE_CUDA, /* no fallback: without a usable GPU, creating the session fails */
    ZC_DEVICE_AUTO  /* the GPU when the plan has kernels and the machine has one; zc_session_device
                       tells which, and why not the GPU */
} zc_device_kind;

/* Threads that any number of sessions share, of any plans. Sessions without one share threads with
 * the other sessions of their plan, which are started when they are first needed, one a CPU at most
 * with the caller's, and end with the plan's last session.
 *
 * Threads that call zc_session_run work themselves, and while there are as many of them as CPUs
 * each works alone: however many sessions share threads, they do not run each other down. */
typedef struct zc_threads zc_threads;
#define ZC_SPIN_NONE (-1)
#define ZC_SPIN_MAX  1000000
typedef struct zc_threads_params {
    size_t size; /* sizeof(zc_threads_params); set by the macro below */
    int threads; /* with one caller; 0: one a CPU that the process may use */
    int spin_us; /* for how many microseconds a thread that has nothing to do looks for work, or for
                    the end of it, before it sleeps: waking takes tens of them. 0: 100;
                    ZC_SPIN_NONE: it sleeps at once; at most ZC_SPIN_MAX */
    const int *cpus; /* the i-th thread that is started runs on CPU cpus[i % cpu_count] alone; where
                        the system refuses that, and for callers, on any. NULL: on any */
    size_t cpu_count;
} zc_threads_params;
#define ZC_THREADS_PARAMS(...) ZC_PARAMS(zc_threads_params, __VA_ARGS__)

/* params may be NULL: defaults. */
ZC_API zc_status zc_threads_create(const zc_threads_params *params, zc_threads **out,
                                   zc_diag *diag);
/* Drops the caller's reference and sets *threads to NULL. Sessions that have the threads keep them.
 */
ZC_API void zc_threads_destroy(zc_threads **threads);

struct zc_custom_op;

/* Whose memory a session's tensors are in: intermediate results, copies of inputs, results, and
 * temporary memory of steps. Tables, threads and what oneDNN keeps come from the C library. The
 * functions are called by whichever thread is in a call on the session, one call at a time for each
 * session; sessions that share an allocator may call at once. */
typedef struct zc_allocator {
    /* `bytes` at a multiple of align (a power of two, at most 256); NULL: there is no more, and the
     * call on the session fails with ZC_ERR_NOMEM. */
    void *(*alloc)(void *user, size_t bytes, size_t align);
    /* Gets what alloc gave, with the same number of bytes; never NULL. */
    void (*free)(void *user, void *p, size_t bytes);
    void *user;
} zc_allocator;

typedef struct zc_session_params {
    size_t size;    /* sizeof(zc_session_params); set by the macro below */
    int threads;    /* among how many threads, with the caller, steps are divided; 0: as many as
                       `shared` has, or one a CPU that the process may use */
    bool reference; /* plain reference kernels only (slow; for comparison) */
    zc_device_kind device;
    int ordinal;  /* which GPU, as CUDA counts */
    void *stream; /* the caller's CUstream on that GPU's primary context; NULL: one of the session's
                     own */
    bool no_graphs;      /* issue every kernel by itself: no CUDA graphs */
    bool profile;        /* time every step of every run, for zc_session_step; runs on a GPU are
                            slower, without graphs */
    uint32_t timeout_ms; /* the longest that a run takes; 0: any time.
                            CPU: then it ends as zc_session_cancel would end it, with
                            ZC_ERR_TIMEOUT.
                            GPU: the longest wait for its work. Then the call fails and the device
                            is lost for every session of the plan: CUDA cannot end a kernel. Only
                            waits are bounded, not the driver's own calls. */
    size_t shapes; /* for how many sets of input shapes memory plans, about 40 bytes a value, and
                      CUDA graphs are kept; more shapes in rotation are planned in every run, at the
                      cost of the set that was used longest ago; 0: 64 */
    zc_threads *shared; /* threads to run on; NULL: those of the plan's sessions */
    /* Operators of the caller's (zc/custom.h); the list is copied, they outlive the session. */
    const struct zc_custom_op *const *custom_ops;
    size_t custom_op_count;
    const zc_allocator *allocator; /* copied; what it points to outlives the session. NULL: the C
                                      library's */
    /* The same of device memory, called with the GPU's primary context current; align is 256. What
     * is given back is out of use. NULL: the driver's. The plan's constants are always the
     * driver's, and nothing is given back once the GPU is lost. */
    const zc_allocator *device_allocator;
    bool profile_graphs; /* GPU: with `profile`, runs are as without it, CUDA graphs included, and
                            kernels note when they begin and end. For that they are compiled anew,
                            from the plan's sources, which have to be this zc's own, by NVRTC (and
                            kept in the disk cache); those of other sessions stay as they are. */
} zc_session_params;
#define ZC_SESSION_PARAMS(...) ZC_PARAMS(zc_session_params, __VA_ARGS__)

/* params may be NULL: defaults. */
ZC_API zc_status zc_session_create(zc_plan *plan, const zc_session_params *params, zc_session **out,
                                   zc_diag *diag);
/* Frees *session and sets it to NULL. While a run is in flight in another thread it returns
 * ZC_ERR_BUSY and frees nothing; so does ZC_ERR_FORKED in a forked child, which has no worker
 * threads to end. */
ZC_API zc_status zc_session_destroy(zc_session **session);

/* Gives input i its value for the following runs. The bytes are copied, unless `borrow`: then data
 * must stay valid and unchanged until replaced or the session ends, and must not be a result of
 * this session (of another's, it may). bytes must be exactly the tensor's size. */
ZC_API zc_status zc_session_set_input(zc_session *session, size_t i, const zc_view *value,
                                      bool borrow, zc_diag *diag);
/* Results of output i are written to data (the caller's, of `bytes` bytes, aligned to 64) in the
 * following runs; NULL: back to the session's own memory. A run whose result does not fit fails and
 * says what it needs; so does one while data overlaps what an input borrows or another output is
 * bound to, since a run may write results before it has read all inputs. */
ZC_API zc_status zc_session_bind_output(zc_session *session, size_t i, void *data, size_t bytes,
                                        zc_diag *diag);
/* The same with device memory of the session's GPU; zc_session_output then gives that address. */
ZC_API zc_status zc_session_bind_output_device(zc_session *session, size_t i, void *data,
                                               size_t bytes, zc_diag *diag);
/* Makes the session ready for runs with these input shapes, given as to zc_plan_memory, before the
 * first inputs come: plans them, takes the memory, and runs on zeros, so that what first runs make
 * is made: generated code, packed constants, CUDA graphs. Once for each set of shapes, up to
 * zc_session_params.shapes. *out, which may be NULL, gets what such runs take.
 *
 * Inputs that are set stay set; results of the last run go; outputs that are bound are written to,
 * as by a run. Where zeros are no inputs of the model (an input is a size, say) the rest is left to
 * the first run, and a warning in diag says so. zc_session_cancel ends it. */
ZC_API zc_status zc_session_prepare_fill(zc_session *session, const zc_io_info *inputs, size_t n,
                                         zc_memory_info *out, zc_diag *diag);
static inline zc_status zc_session_prepare(zc_session *session, const zc_io_info *inputs, size_t n,
                                           zc_memory_info *out, zc_diag *diag)
{
    if (out) out->size = sizeof *out;
    return zc_session_prepare_fill(session, inputs, n, out, diag);
}
/* Output i as zc_plan_output gives it, with the sizes that it has for the input shapes of the last
 * zc_session_prepare or run. Still -1 are those that values decide, which only a run finds. Texts
 * belong to the plan. */
ZC_API zc_status zc_session_output_info_fill(const zc_session *session, size_t i, zc_io_info *out,
                                             zc_diag *diag);
static inline zc_status zc_session_output_info(const zc_session *session, size_t i, zc_io_info *out,
                                               zc_diag *diag)
{
    if (out) out->size = sizeof *out;
    return zc_session_output_info_fill(session, i, out, diag);
}
/* Runs once. Every input must have been set. zc allocates nothing unless the inputs' shapes are
 * new: not among the last zc_session_params.shapes sets. oneDNN 2.6 does on the CPU, and frees it
 * again: once for each part of a product, of which there are up to 8, and six times for each band
 * of a convolution, up to 8 an image. */
ZC_API zc_status zc_session_run(zc_session *session, zc_diag *diag);
/* As zc_session_run, but it returns before the results are there; zc_session_wait or
 * zc_session_poll tell when they are, and what became of the run.
 *
 * CPU: a thread of the session's own runs, like a caller of zc_session_run; until it is done, calls
 * on the session other than these, zc_session_cancel and zc_session_memory return ZC_ERR_BUSY, and
 * what inputs borrow and outputs are bound to stays valid. timeout_ms holds from its beginning.
 * GPU: it returns when the work is on the stream, and waits inside for steps that run on the CPU;
 * results bound to device memory are valid in stream order, results in host memory after the wait,
 * which also reports what the kernels found wrong. */
ZC_API zc_status zc_session_enqueue(zc_session *session, zc_diag *diag);
/* Waits for the enqueued run and returns its status, once, with its diagnostics; ZC_OK when there
 * is none. Any thread may wait. */
ZC_API zc_status zc_session_wait(zc_session *session, zc_diag *diag);
/* The same without waiting: while the run is in flight *done is false and the status ZC_OK. */
ZC_API zc_status zc_session_poll(zc_session *session, bool *done, zc_diag *diag);
/* The result of the last run. Its data is the buffer that the output was bound to in that run, or
 * else memory of the session that lives until the next run and is nobody else's: not an input's,
 * the plan's or another output's buffer, even where the model hands an input or a constant through.
 * Two outputs that are the same value may be one memory. A run that failed, or whose wait did, has
 * left no results. */
ZC_API zc_status zc_session_output(const zc_session *session, size_t i, zc_view *out,
                                   zc_diag *diag);
/* Host memory that the session holds, without the plan's constants: intermediate results, copies of
 * inputs and results, temporary memory of steps, kernels' state and the session's own tables. What
 * oneDNN keeps for itself (generated code) and threads' stacks are not counted. Any thread may ask
 * at any time before the session is destroyed: it is what the session held when the last call on it
 * ended. */
ZC_API uint64_t zc_session_memory(const zc_session *session);
/* Facts about where a session runs; texts belong to the session. */
typedef struct zc_device_info {
    size_t size;
    zc_device_kind kind;   /* CPU or CUDA */
    const char *name;      /* "cpu", or the GPU's name */
    int arch;              /* GPU: 90 for compute capability 9.0 */
    uint64_t memory;       /* GPU: bytes this session holds, without the plan's constants */
    uint64_t weight_bytes; /* GPU: the plan's constants there, shared by its sessions */
    size_t rebuilt; /* GPU: kernels compiled at load because the plan had no code for this GPU */
    size_t gpu_steps, cpu_steps,
        shape_steps;           /* steps by place; shape_steps compute shapes on the CPU by design */
    size_t launches;           /* GPU: kernels, fills and copies of the last run */
    size_t graphs;             /* GPU: parts of a run that are replayed as CUDA graphs */
    const char *graph_refusal; /* GPU: why a part is issued step by step instead; NULL: none is */
    bool lost;                 /* the GPU failed: every call on it fails from now on */
    const char *fallback;      /* why ZC_DEVICE_AUTO chose the CPU; NULL: it did not */
    const char *bus;           /* GPU: its address, by which other tools know it: "0000:3b:00.0" */
    int driver;                /* GPU: the version of CUDA that its driver serves, 13000 for 13.0 */
} zc_device_info;
/* Where the session runs, also after its GPU was lost. */
ZC_API zc_status zc_session_device_fill(const zc_session *session, zc_device_info *out);
static inline zc_status zc_session_device(const zc_session *session, zc_device_info *out)
{
    if (out) out->size = sizeof *out;
    return zc_session_device_fill(session, out);
}
/* One step of the main program; texts belong to the plan. */
typedef struct zc_step_info {
    size_t size;
    const char *name;   /* of the node it came from */
    const char *op;     /* "Conv" */
    const char *kernel; /* the GPU kernel's name; NULL: it runs on the CPU */
    const char *why;    /* why on the CPU; "" otherwise */
    double us;          /* with `profile`: time in the last run; else 0 */
    /* With `profile`, of the last run: bytes of operands, each once, and of results; additions and
     * multiplications, -1 where they are not counted for the operation. Else 0. */
    double bytes_in, bytes_out, operations;
    /* Of the runs of the last zc_session_profile: the median of the step's microseconds, and the
     * interval in which it lies in 95 of 100 cases. Before it 0. */
    double median_us, low_us, high_us;
    /* GPU: the tensor cores' instruction that its products are, and the type of their factors,
     * "wgmma.f16"; and what `zc inspect` says of why it has this kernel. "" where there is none. */
    const char *products, *choice;
    /* With `profile_graphs`. Of the last run: when the step's first kernel began and its last one
     * ended, since the run's first. Of the runs of the last zc_session_profile, the means: how long
     * nothing was there before it, and how long what came before it was there, too. A step without
     * kernels has none of its own. */
    double begin_us, end_us, gap_us, overlap_us;
} zc_step_info;
/* Step i of the main program. */
ZC_API zc_status zc_session_step_fill(const zc_session *session, size_t i, zc_step_info *out,
                                      zc_diag *diag);
static inline zc_status zc_session_step(const zc_session *session, size_t i, zc_step_info *out,
                                        zc_diag *diag)
{
    if (out) out->size = sizeof *out;
    return zc_session_step_fill(session, i, out, diag);
}
/* How zc_session_profile measures. */
#define ZC_PROFILE_RUNS_MAX 100000
typedef struct zc_profile_params {
    size_t size;       /* sizeof(zc_profile_params); set by the macro below */
    double seconds;    /* new runs begin for so long */
    size_t least_runs; /* so many runs in any case; 0: 5 */
    size_t most_runs;  /* no more runs than these, at most ZC_PROFILE_RUNS_MAX; 0: 200, or
                          least_runs where that is more */
} zc_profile_params;
#define ZC_PROFILE_PARAMS(...) ZC_PARAMS(zc_profile_params, __VA_ARGS__)

/* Whole runs as zc_session_profile measured them; zc_session_step has each step's. */
typedef struct zc_profile_info {
    size_t size;
    size_t runs, steps;
    double run_us, run_low_us, run_high_us; /* a whole run, as zc_step_info.median_us has a step */
    double steps_us;                        /* the sum of the steps' medians */
    double share;     /* of a run that is in its steps: the median of the runs */
    double device_us; /* GPU: from before the first step to behind the last, the median; else 0 */
} zc_profile_info;
/* Runs a session that zc_session_params.profile was set for, with the inputs that are set: twice to
 * warm up, then as params say (NULL: 5 runs), and keeps the time of each step of each run until the
 * next call, 8 bytes each. Results are those of the last run. These runs do not count among
 * zc_plan_counters; zc_session_cancel and timeout_ms end one of them and the call with it, and no
 * times are kept.
 *
 * On the CPU a step's time is that between its begin and its end. On a GPU steps are issued one by
 * one with an event before each, inputs are brought there before the first, and results come back
 * behind the last: a run's time holds that, no step's does. With `profile_graphs` a step's time is
 * that by which it ended later than all steps before it, so that a run's are together the time from
 * its first kernel's begin to its last one's end; and median_us, low_us and high_us are the mean of
 * the runs and its interval, as the device's clock may be coarse. */
ZC_API zc_status zc_session_profile_fill(zc_session *session, const zc_profile_params *params,
                                         zc_profile_info *out, zc_diag *diag);
static inline zc_status zc_session_profile(zc_session *session, const zc_profile_params *params,
                                           zc_profile_info *out, zc_diag *diag)
{
    if (out) out->size = sizeof *out;
    return zc_session_profile_fill(session, params, out, diag);
}
/* What step i took in each of these runs, in their order: us[n] microseconds, which belong to the
 * session until the next zc_session_profile or its end. An error before the first. */
ZC_API zc_status zc_session_step_times(const zc_session *session, size_t i, const double **us,
                                       size_t *n, zc_diag *diag);
/* Asks a run in flight (from another thread, or a signal's handler) to stop: it returns
 * ZC_ERR_CANCELLED. Without one nothing happens: later runs are not touched.
 *
 * On the CPU it stops inside steps, too, mostly within 10 ms; one part of a large product or
 * convolution takes as long as 200 million operations, or a 64th of the convolution. Steps that run
 * on one thread (sorting, NonMaxSuppression, scattering, Fourier transforms) end first, and so do a
 * first run's code generation and packing. On a GPU it stops between steps and graphs; what is on
 * the stream runs to its end. */
ZC_API void zc_session_cancel(zc_session *session);

/* Places for the runs that ended with each zc_status, and for those that took so long. */
#define ZC_COUNTED_STATUSES 32
#define ZC_LATENCY_BUCKETS  26
/* Seconds that a run in bucket i took at most, those before it left out: 1, 2 and 5 microseconds
 * and so on to 100 seconds; INFINITY for the last. */
ZC_API double zc_latency_bound(size_t i);
/* What the sessions of a plan have done since it was loaded, those that are destroyed included.
 * Runs are those that zc_session_run and zc_session_enqueue were asked for; one that is enqueued
 * counts once it is waited for (on the CPU when it ends), with the time since that call. Of several
 * that are on a GPU's stream all count with the time since the last call. */
typedef struct zc_counters {
    size_t size;
    uint64_t runs;                        /* that ended with ZC_OK */
    uint64_t errors[ZC_COUNTED_STATUSES]; /* the others, by zc_status */
    uint64_t latency[ZC_LATENCY_BUCKETS]; /* of runs that ended with ZC_OK, by their time */
    double seconds;                       /* that these took */
    uint64_t shapes;   /* sets of input shapes that were planned; far more than the model's users
                          have: zc_session_params.shapes is too small */
    uint64_t captures; /* GPU: parts of runs that were recorded as CUDA graphs */
    uint64_t sessions; /* there are now */
    uint64_t memory;   /* that these hold, as of each one's last call (zc_session_memory) */
} zc_counters;
/* Any thread may ask at any time before the plan is destroyed. Nothing is locked: numbers of a run
 * that ends now may be there in part. */
ZC_API zc_status zc_plan_counters_fill(const zc_plan *plan, zc_counters *out);
static inline zc_status zc_plan_counters(const zc_plan *plan, zc_counters *out)
{
    if (out) out->size = sizeof *out;
    return zc_plan_counters_fill(plan, out);
}

#ifdef __cplusplus
}
#endif
#endif
