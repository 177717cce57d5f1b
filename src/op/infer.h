/* Types and shapes of an operation's outputs from those of its inputs.
 *
 * The same functions serve the compiler, where dimensions may be symbolic and most values unknown,
 * and the runtime, where everything is concrete. */
#ifndef ZC_OP_INFER_H
#define ZC_OP_INFER_H

#include "op/op.h"

typedef struct zc_type {
    zc_dtype dtype; /* ZC_NONE: an absent optional operand */
    int rank;       /* -1: unknown */
    zc_dim dims[ZC_MAX_RANK];
} zc_type;

/* Elements of an integer or bool tensor of rank 0 or 1, as symbolic integers: what makes shape
 * arithmetic (Shape, Gather, Concat, Reshape) symbolic. n is -1 when unknown. */
#define ZC_VALS_MAX 1024
typedef struct zc_vals {
    int n;
    const zc_dim *v;
} zc_vals;

typedef struct zc_operand {
    zc_type type;
    zc_vals vals;
    const zc_tensor *data; /* the bytes, when known; else NULL */
} zc_operand;

typedef struct zc_infer {
    zc_op op;
    const zc_op_info *info;
    const void *attrs;
    zc_dims *dims;                      /* for symbolic arithmetic */
    zc_arena *arena;                    /* for vals arrays */
    const struct zc_custom_set *custom; /* the caller's operators (op/custom.h); NULL: none */
    zc_arena *temp;                     /* for what the call alone needs; NULL: the heap */
    int nin, nout;
    const zc_operand *in;
    zc_operand *out;     /* to fill: type and vals (data is left alone) */
    const char *subject; /* node name for messages */
    zc_status fault;     /* of what is wrong with the node; ZC_OK: ZC_ERR_MODEL */
    zc_diag *diag;
} zc_infer;

typedef zc_status (*zc_infer_fn)(zc_infer *f);

/* Checks arity, then sets every out[i].type and out[i].vals. With an input of unknown rank the
 * outputs' ranks are unknown too, unless the op is RANKLESS. */
zc_status zc_infer_run(zc_infer *f);

/* The operand of a concrete tensor: its type, and vals when it is a small integer or bool vector or
 * scalar with data. The tensor must outlive the operand. false: no memory. */
bool zc_operand_of(const zc_tensor *t, zc_arena *arena, zc_operand *out);
/* The vals of such a tensor; n is -1 for others. false: no memory. */
bool zc_vals_of(const zc_tensor *t, zc_arena *arena, zc_vals *out);

/* ---- for the shape functions in infer_*.c ---- */

/* The attribute struct of operation NAME: const zc_attrs_NAME *a = ZC_ATTRS(f, NAME); works on a
 * zc_infer and on a zc_kctx. */
#define ZC_ATTRS(ctx, NAME) ((const zc_attrs_##NAME *)(ctx)->attrs)

static inline bool zc_in_present(const zc_infer *f, int i)
{
    return i < f->nin && f->in[i].type.dtype != ZC_NONE;
}
/* Input i's rank/dims; i must be present and, unless RANKLESS, its rank is known. */
static inline const zc_type *zc_in(const zc_infer *f, int i)
{
    return &f->in[i].type;
}

/* An error about this node: f->subject is the subject. */
/* Dimensions that memory ran out for are not the model's fault. */
#define zc_infer_fail(f, ...)                                                                      \
    ((f)->dims && (f)->dims->failed                                                                \
         ? zc_fail_nomem((f)->diag, "symbolic dimensions", 0)                                      \
         : zc_fail((f)->diag, (f)->fault ? (f)->fault : ZC_ERR_MODEL, (f)->subject, __VA_ARGS__))

/* axis in [-rank, rank) brought to [0, rank); the error gives the range. */
zc_status zc_infer_axis(zc_infer *f, int64_t axis, int rank, int *out);
/* As zc_infer_axis for a list without repeats; mask[i] says whether axis i is in it. */
zc_status zc_infer_axes(zc_infer *f, const int64_t *axes, int n, int rank, bool mask[ZC_MAX_RANK]);
/* Integer list of input i: from its vals when every element is a constant. *n is -1 when input i is
 * absent or not (fully) known. The array lives in f->arena. */
zc_status zc_infer_const_ints(zc_infer *f, int i, const int64_t **v, int *n);
/* Number of elements of input i when it is a 1-D tensor of known length, or 1 when a scalar; -1
 * otherwise. */
int zc_infer_vector_len(const zc_infer *f, int i);
/* Output i: rank and dims; checks rank <= ZC_MAX_RANK. dims may be NULL: fresh symbols. */
zc_status zc_infer_set(zc_infer *f, int i, int rank, const zc_dim *dims);
/* Output i gets the shape of input j. */
void zc_infer_copy(zc_infer *f, int i, int j);
/* Output i gets an unknown rank. */
void zc_infer_unknown(zc_infer *f, int i);
/* dims are equal or made equal: error when both are constants that differ; `what` names the
 * quantity. A symbolic mismatch is left to run time. */
zc_status zc_infer_same(zc_infer *f, zc_dim a, zc_dim b, const char *what);
/* The numpy broadcast of two shapes. */
zc_status zc_infer_broadcast(zc_infer *f, const zc_type *a, const zc_type *b, zc_type *out);
/* Product of dims[from..to). */
zc_dim zc_infer_span(zc_infer *f, const zc_type *t, int from, int to);
/* Output i's vals: array of n from f->arena to fill, or NULL when n > ZC_VALS_MAX or no memory. */
zc_dim *zc_infer_vals(zc_infer *f, int i, int n);

/* Element types and shapes shared by many rows. */
#define ZC_SHARED_DT(X) X(in0) X(in1) X(in2) X(bool) X(i64)
#define X(n)            zc_status zc_dt_##n(zc_infer *f);
ZC_SHARED_DT(X)
#undef X
/* Output 0 has the shape of input 0. */
zc_status zc_infer_same0(zc_infer *f);
/* Output 0 is the broadcast of all inputs. */
zc_status zc_infer_pointwise(zc_infer *f);

/* The functions that the rows name. */
#define OP(name, mini, maxi, mino, maxo, dt, infer, fl)                                            \
    zc_status zc_dt_##dt(zc_infer *f);                                                             \
    zc_status zc_infer_##infer(zc_infer *f);
#define PW(name, n, dt, fl, text) zc_status zc_dt_##dt(zc_infer *f);
#include "op/ops.def"

#endif
