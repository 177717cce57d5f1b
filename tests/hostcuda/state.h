/* What the files of the fake driver share. Everything is under one lock, taken by hc_enter. */
#ifndef ZC_HOSTCUDA_STATE_H
#define ZC_HOSTCUDA_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "cuda_functions.h"

/* ---- Entering and leaving a call ---- */

enum {
    HC_NEEDS_INIT = 1,    /* cuInit was called */
    HC_NEEDS_CONTEXT = 2, /* a context is current; fails while the context is broken */
    HC_UNSAFE = 4         /* not while a stream is capturing, but in relaxed mode */
};

/* Takes the lock, counts the call for fault injection and checks what `needs` says. Every call of
 * hc_enter is followed by hc_leave, which traces and gives the lock back. */
hc_result hc_enter(const char *name, unsigned needs);
hc_result hc_leave(const char *name, hc_result result);

/* Gives the lock back during long work inside a call. */
void hc_pause(void);
void hc_resume(void);

#define HC_CALL(needs, work)                                                                       \
    do {                                                                                           \
        hc_result hc_r = hc_enter(__func__, needs);                                                \
        if (hc_r == HC_CUDA_SUCCESS) hc_r = (work);                                                \
        return hc_leave(__func__, hc_r);                                                           \
    } while (0)

/* Breaks the context: its calls return `code` from now on. */
hc_result hc_break(hc_result code);

/* Prints "hostcuda: ..." on stderr. */
__attribute__((format(printf, 1, 2))) void hc_message(const char *format, ...);

/* ---- Everything that lives: objects and memory ranges, found by address ---- */

typedef enum hc_kind {
    HC_NOTHING,
    HC_DEVICE_MEMORY,
    HC_HOST_MEMORY,
    HC_STREAM,
    HC_EVENT,
    HC_MODULE,
    HC_FUNCTION,
    HC_GRAPH,
    HC_NODE,
    HC_EXEC,
    HC_PROGRAM
} hc_kind;

typedef struct hc_range {
    uintptr_t begin;
    size_t size;
    hc_kind kind;
} hc_range;

bool hc_register(hc_kind kind, const void *p, size_t size);
void hc_unregister(const void *p);
/* The range of the address, or NULL. */
const hc_range *hc_lookup(uintptr_t p);
bool hc_is(hc_kind kind, const void *p);
/* A zeroed object, registered; NULL without memory. hc_delete also frees it. */
void *hc_new(hc_kind kind, size_t size);
void hc_delete(void *p);
/* Whether [p, p + n) lies in one allocation on the device. */
bool hc_on_device(hc_ptr p, size_t n);
/* Calls f for every live object and memory of the kind. */
void hc_for_each(hc_kind kind, void (*f)(void *p, size_t size));
unsigned hc_count(hc_kind kind);
void hc_registry_clear(void);

/* ---- The device ---- */

typedef struct hc_device_state {
    bool initialised;
    int count;
    unsigned cc; /* compute capability: 90 */
    size_t memory, used;
    unsigned ctx_refs;
    hc_result broken;
    unsigned shuffle; /* seed; 0: launch order */
} hc_device_state;
extern hc_device_state hc_gpu;

unsigned hc_smem_optin(void);
/* Of the calling thread; NULL without. */
hc_context_t hc_current_context(void);

/* ---- Work: what a stream executes, and what a graph's nodes hold ---- */

#define HC_MAX_CLUSTER 8

typedef struct hc_launch {
    hc_function_t function;
    zc_host_dim grid, block;
    zc_host_dim cluster; /* 0 in x: no cluster */
    bool overlaps;       /* may begin before the work ahead of it has ended */
    unsigned smem;
    void **params; /* owned, with the bytes they point to behind them */
} hc_launch;

typedef struct hc_work {
    unsigned type; /* HC_CU_GRAPH_NODE_TYPE_... */
    hc_launch launch;
    /* memcpy and memset; for memset n counts elements of `width` bytes */
    uintptr_t dst, src;
    bool dst_device, src_device;
    size_t n;
    unsigned value, width;
} hc_work;

/* Runs the work now, or records it where the stream is capturing. Takes nothing over. */
hc_result hc_submit(hc_stream_t stream, const hc_work *w);
hc_result hc_work_run(const hc_work *w);
bool hc_work_copy(hc_work *to, const hc_work *from);
void hc_work_free(hc_work *w);
hc_result hc_check_copy(const hc_work *w);

/* ---- Modules and kernels ---- */

#define HC_MAX_CHUNKS 228 /* of 1024 bytes, of a block's shared memory */

struct hc_function {
    hc_module_t module;
    const zc_host_kernel *kernel;
    unsigned max_dynamic;
    bool watched[HC_MAX_CHUNKS]; /* by its next blocks */
};

struct hc_module {
    void *library;
    char *path; /* of its file, kept while it is loaded, NULL when already gone */
    const zc_host_module *info;
    hc_function_t *functions;
};

unsigned hc_static_smem(const struct hc_module *m);
hc_result hc_check_launch(const hc_launch *l);
/* Blocks of the launch that the device's multiprocessors hold at a time. */
unsigned hc_max_resident(const hc_launch *l);
/* Runs every block. */
hc_result hc_run_grid(const hc_launch *l);
/* Frees what the kernels' threads used, but for their stacks; for tests that reset. */
void hc_threads_clear(void);
void hc_modules_clear(void);

/* ---- Capture ---- */

/* A capture in one of the streams forbids calls of the class HC_UNSAFE: the code, or success. */
hc_result hc_capture_check_unsafe(void);
hc_result hc_capture_check_legacy(void);
void hc_streams_clear(void);
void hc_graphs_clear(void);

/* ---- Graphs ---- */

struct hc_node {
    hc_graph_t graph;
    unsigned index;
    hc_work work;
};

struct hc_graph {
    uint64_t id;
    hc_node_t *nodes;
    unsigned count;
};

hc_graph_t hc_graph_new(void);
bool hc_graph_add(hc_graph_t g, const hc_work *w);
void hc_graph_delete(hc_graph_t g);

#endif
