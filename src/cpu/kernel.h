/* CPU kernels: the interface, and what kernels share.
 *
 * Every operation has a plain reference kernel zc_k_<Op>, correct for every dtype ONNX allows it:
 * the oracle, the constant folder and the fallback. fast.def lists faster kernels, tried first. */
#ifndef ZC_CPU_KERNEL_H
#define ZC_CPU_KERNEL_H

#include "base/allocator.h"
#include "base/pool.h"
#include "cpu/packs.h"
#include "op/half.h"
#include "op/infer.h"

/* State that a kernel keeps between runs of one step of one session (a parsed expression, a
 * library's primitive). The owner calls destroy(p) at the end. */
typedef struct zc_kstate {
    void *p;
    void (*destroy)(void *p);
    size_t bytes; /* that p takes */
} zc_kstate;

/* Temporary memory of one step, reused by the next; grows only when a larger shape arrives. */
typedef struct zc_scratch {
    struct zc_scratch_block *blocks;
    size_t held;                   /* bytes of all blocks */
    const zc_allocator *allocator; /* NULL: the C library's */
} zc_scratch;
void *zc_scratch_get(zc_scratch *s,
                     size_t bytes); /* 64-byte aligned, not zeroed; NULL: no memory */
void zc_scratch_reset(zc_scratch *s);
void zc_scratch_fini(zc_scratch *s);

typedef struct zc_kctx zc_kctx;
struct zc_kctx {
    zc_op op;
    const zc_op_info *info;
    const void *attrs;
    int nin, nout;
    const zc_tensor *in; /* dtype ZC_NONE: absent */
    uint64_t const_in;   /* bit i: in[i] is a constant of the plan, the same bytes at every run */
    zc_tensor *out;      /* dtype ZC_NONE: not wanted; shape set and data ready, but see resize */
    zc_scratch *scratch;
    zc_pool *pool;    /* may be NULL: one thread */
    zc_kstate *state; /* may be NULL: keep nothing */
    zc_kstate *prologue_state, *epilogue_state;
    const zc_kctx
        *step;     /* whose epilogue the kernel may run itself (zc_finish_begin); NULL: none */
    bool finished; /* it does */
    const struct zc_custom_set *custom; /* the caller's operators (op/custom.h); NULL: none */
    zc_packs *packs;                    /* of the plan's constants; may be NULL: pack nothing */
    /* DYNAMIC operations: gives out[i] its shape and data. dims may alias out[i].dims. */
    zc_status (*resize)(zc_kctx *k, int i, int rank, const int64_t *dims);
    /* Has the run been asked to end? Then it stays so, and nobody reads what the kernel computes.
     * NULL: never. Any thread may ask. */
    bool (*stopped)(const zc_kctx *k);
    void *user; /* of the owner of resize and stopped */
    const char *subject;
    zc_diag *diag;
};

typedef zc_status (*zc_kernel_fn)(zc_kctx *k);

/* An error in run-time values (an index out of range, say). */
#define zc_kernel_fail(k, ...) zc_fail((k)->diag, ZC_ERR_INPUT, (k)->subject, __VA_ARGS__)
/* A dtype or mode that this kernel does not do. */
#define zc_kernel_unsupported(k, ...)                                                              \
    zc_fail((k)->diag, ZC_ERR_UNSUPPORTED, (k)->subject, __VA_ARGS__)

/* Runs the operation and its epilogue: unpacks sub-byte operands where the kernel needs it, picks a
 * fast kernel that fits (unless reference_only) or the reference kernel. Shapes of inputs and
 * outputs have been inferred. */
zc_status zc_kernel_run(zc_kctx *k, bool reference_only);

/* Would the step go element by element, through the reference kernel? Operands may have no data
 * where they are no constants; state and packs are asked for, not used. Where sizes are guesses, an
 * operation with any fast kernel is taken to be fast. */
bool zc_kernel_is_slow(zc_kctx *k, bool guesses);

/* Makes, once a process, what all fast kernels of the operation share: oneDNN's generated code. */
zc_status zc_kernel_prepare(zc_op op, const char *subject, zc_diag *diag);

#define OP(name, ...) zc_status zc_k_##name(zc_kctx *k);
#define PW(name, ...)
#include "op/ops.def"
zc_status zc_k_pointwise(zc_kctx *k);
/* The fast form of every operation with a scalar expression. */
zc_status zc_fast_pointwise(zc_kctx *k);
/* Does it, on operands of these types, without the reference kernel? */
bool zc_pointwise_fits_blocks(zc_kctx *k);

/* Pointwise work from x0 and inputs [first, end) of k to `to`, which may be x0: the context of a
 * step of its own. What it points to is in *room. */
typedef struct zc_fused {
    zc_attrs_Pointwise attrs;
    zc_tensor in[1 + ZC_EPILOGUE_INPUTS];
} zc_fused;
zc_kctx zc_fused_step(const zc_kctx *k, const char *text, const zc_tensor *x0, int first, int end,
                      zc_tensor *to, zc_fused *room);

/* The result of a step with an epilogue as its kernel makes it, in the same memory. */
zc_tensor zc_plain_result(const zc_kctx *k);

/* The step's epilogue on pieces of the result, right after a kernel has made them. */
typedef struct zc_finish zc_finish;
/* From here on the epilogue is the kernel's to run. *f is NULL when there is none, or it needs the
 * reference kernel, which then runs after this one. */
zc_status zc_finish_begin(zc_kctx *k, const zc_finish **f);
/* `rows` stretches of n elements of the result, the first at `at`, `step` apart; nothing when f is
 * NULL. Any thread. */
void zc_finish_run(const zc_finish *f, int64_t at, int64_t rows, int64_t n, int64_t step);

/* ---- small things that many kernels need ---- */

/* zc_load_f64 and friends on tensors. */
static inline double zc_get(const zc_tensor *t, int64_t i)
{
    return zc_load_f64(t->dtype, t->data, i);
}
static inline int64_t zc_geti(const zc_tensor *t, int64_t i)
{
    return zc_load_i64(t->dtype, t->data, i);
}
static inline void zc_put(zc_tensor *t, int64_t i, double v)
{
    zc_store_f64(t->dtype, t->data, i, v);
}
/* What is finite stays so as f16 and bf16. */
static inline void zc_put_finite(zc_tensor *t, int64_t i, double v)
{
    const double most = zc_half_max(t->dtype);
    zc_put(t, i, isinf(v) ? v : v > most ? most : v < -most ? -most : v);
}
static inline void zc_puti(zc_tensor *t, int64_t i, int64_t v)
{
    zc_store_i64(t->dtype, t->data, i, v);
}

/* The operand, or NULL when it is absent or not wanted. */
static inline const zc_tensor *zc_input(const zc_kctx *k, int i)
{
    return i < k->nin && zc_present(&k->in[i]) ? &k->in[i] : NULL;
}
static inline zc_tensor *zc_output(const zc_kctx *k, int i)
{
    return i < k->nout && zc_present(&k->out[i]) ? &k->out[i] : NULL;
}

/* The context of another operation with one output, which k's kernel runs as a part of its work. */
static inline zc_kctx zc_inner(const zc_kctx *k, zc_op op, const void *attrs, int nin,
                               const zc_tensor *in, zc_tensor *out)
{
    zc_kctx inner = *k;
    inner.op = op;
    inner.info = zc_op_get(op);
    inner.attrs = attrs;
    inner.nin = nin;
    inner.in = in;
    inner.nout = 1;
    inner.out = out;
    inner.const_in = 0;
    inner.step = NULL;
    inner.state = inner.prologue_state = inner.epilogue_state = NULL;
    return inner;
}

/* Strides of t seen as broadcast to out's shape: 0 on broadcast axes, right-aligned. */
void zc_broadcast_strides(const zc_tensor *t, const zc_tensor *out, int64_t strides[ZC_MAX_RANK]);
/* Advances idx over dims in row-major order and keeps off[j] += strides[j] in step for n offset
 * streams; false after the last element. */
bool zc_index_next(int rank, const int64_t *dims, int64_t *idx, int n,
                   const int64_t (*strides)[ZC_MAX_RANK], int64_t *off);
/* axis in [-rank, rank) brought to [0, rank); the shape function has checked it. */
static inline int zc_axis(int64_t axis, int rank)
{
    return (int)(axis < 0 ? axis + rank : axis);
}

static inline bool zc_stopped(const zc_kctx *k)
{
    return k->stopped && k->stopped(k);
}

/* Calls fn(arg, i) for i in [0, n) on the threads; when the run is asked to end, for no more. Calls
 * that take 10 ms or more make the caller of zc_session_cancel wait: they ask zc_stopped inside. */
void zc_parts(zc_kctx *k, int n, void (*fn)(void *arg, int i), void *arg);
/* Calls fn(arg, begin, end) over [0, n) split among threads, each part at least `grain` long; no
 * more of them when the run is asked to end. */
void zc_parallel(zc_kctx *k, int64_t n, int64_t grain,
                 void (*fn)(void *arg, int64_t begin, int64_t end), void *arg);

/* Evaluates one operation on concrete tensors from shapes to values: infer, allocate, run. Output
 * data is malloc'd and belongs to the caller; out[i].dtype ZC_NONE on entry: not wanted (any other
 * value: wanted). Serves constant folding and tests. */
zc_status zc_cpu_eval(zc_op op, const void *attrs, int nin, const zc_tensor *in, int nout,
                      zc_tensor *out, bool reference_only, const char *subject, zc_diag *diag);

#endif
