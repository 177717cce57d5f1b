/* Operators of the caller's, computed on the CPU. Library: libzc_rt; libzc compiles models that
 * have them.
 *
 * An operator is known by its domain and name. zc_compile_params.custom_ops names those that a
 * model may use; they come before zc's own and before the model's functions. The plan keeps
 * domain, name and attributes of each node, no code: every session of the plan gets the operators
 * again by zc_session_params.custom_ops, and is refused by name without one that it needs. In a
 * session on a GPU they run on the CPU, as `inspect` shows.
 *
 * Both functions of an operator are called by any thread, for several sessions at once, and return
 * in the rounding mode and locale that they found. They call no function of the session that they
 * run in but those below, and throw no C++ exceptions. zc folds and merges no nodes of theirs, but
 * leaves out those whose results nobody uses. */
#ifndef ZC_CUSTOM_H
#define ZC_CUSTOM_H

#include "zc/rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One node, during a call of its operator's functions. */
typedef struct zc_custom_node zc_custom_node;

/* A size that is unlike any other: of an output, when the model is compiled. */
#define ZC_CUSTOM_DIM_NEW INT64_MIN

/* An input or output of a node; never changes. */
typedef struct zc_custom_value {
    zc_elem elem; /* 0: an input that is left out, or an output that nobody wants */
    int rank;     /* -1: not known, when the model is compiled */
    /* When the model is compiled, a size that is not known yet is a negative number, and the same
     * number the same size. */
    int64_t dims[ZC_RANK_MAX];
    const void *data; /* an input's elements; NULL in `infer` where they are not known yet */
    void *result;     /* `run`: an output's memory for exactly `bytes` bytes, aligned to 64 */
    size_t bytes;     /* of data or result */
} zc_custom_value;

typedef struct zc_custom_op {
    size_t size;        /* sizeof(zc_custom_op) */
    const char *domain; /* "" is ONNX's own */
    const char *name;
    /* Sets elem, rank and dims of every output from the inputs: when the model is compiled, and
     * again where shapes are found at run time, when all sizes and data are known. Sizes of inputs
     * may be passed on, known or not; one that follows from them otherwise, or from data, is
     * ZC_CUSTOM_DIM_NEW until all that decides it is known. */
    zc_status (*infer)(void *user, zc_custom_node *node, const zc_custom_value *in, size_t nin,
                       zc_custom_value *out, size_t nout);
    /* Computes every output whose elem is not 0. */
    zc_status (*run)(void *user, zc_custom_node *node, const zc_custom_value *in, size_t nin,
                     zc_custom_value *out, size_t nout);
    void *user; /* their first argument */
} zc_custom_op;

/* The node's name in the model. Lives during the call. */
ZC_API const char *zc_custom_name(const zc_custom_node *node);
/* Attributes by name: false when the node has none of that name and type. Texts, which no zero byte
 * ends, and arrays live during the call. Nodes with attributes of other types (tensors, graphs,
 * lists of texts) are refused when the model is compiled. */
ZC_API bool zc_custom_int(const zc_custom_node *node, const char *name, int64_t *out);
ZC_API bool zc_custom_float(const zc_custom_node *node, const char *name, float *out);
ZC_API bool zc_custom_text(const zc_custom_node *node, const char *name, const char **out,
                           size_t *n);
ZC_API bool zc_custom_ints(const zc_custom_node *node, const char *name, const int64_t **out,
                           size_t *n);
ZC_API bool zc_custom_floats(const zc_custom_node *node, const char *name, const float **out,
                             size_t *n);
/* Records why the call fails, and returns status, so that functions can write
 * `return zc_custom_fail(...)`. */
ZC_API zc_status zc_custom_fail(zc_custom_node *node, zc_status status, const char *reason);
/* In `run`: has the run been cancelled, or taken too long? Then what the call computes does not
 * matter. Any thread may ask. */
ZC_API bool zc_custom_stopped(const zc_custom_node *node);
/* In `run`: calls fn for parts of [0, n) of at least `grain`, on the session's threads, and returns
 * when all are done. How n is divided depends on the machine: what a part computes must not. */
ZC_API void zc_custom_parallel(zc_custom_node *node, int64_t n, int64_t grain,
                               void (*fn)(void *arg, int64_t begin, int64_t end), void *arg);

#ifdef __cplusplus
}
#endif
#endif
