/* Attention on the device: one description that every attention operation is brought to, as in
 * cpu/attention.h. */
#ifndef ZC_KERNELS_ATTENTION_FORM_H
#define ZC_KERNELS_ATTENTION_FORM_H

#include "abi/attention.h"
#include "kernels/gen.h"
#include "kernels/launch.h"

enum { ZC_ATTENTION_SIZE_MAX = 512 };

typedef struct zc_attention {
    zc_launch *l;
    struct zc_attention_params p;
    zc_dtype type, v_type; /* of queries and keys, of values */
    int64_t d, dv;
} zc_attention;

/* Views of memory laid out [batch, heads, length, size], or [batch, length, heads, size]. */
struct zc_attention_view zc_attention_4d(const void *data, int64_t heads, int64_t length,
                                         int64_t size);
struct zc_attention_view zc_attention_3d(const void *data, int64_t heads, int64_t length,
                                         int64_t size);
/* data + n elements of that type; NULL stays NULL. */
void *zc_attention_at(const void *data, zc_dtype type, int64_t n);

/* batch * heads * length * size elements of scratch memory. */
zc_status zc_attention_room(zc_attention *a, zc_dtype type, int64_t heads, int64_t length,
                            int64_t size, void **out);
/* Issues moved rows; values: of the values' type and size. Fills in lengths, batch and fault. */
zc_status zc_attention_rows(zc_attention *a, bool values, struct zc_attention_rows_params *r);
/* past and new positions one after the other: in `wanted`, or in scratch memory when it is NULL and
 * there is a past. *view covers `fresh` new positions and becomes that of the whole. */
zc_status zc_attention_append(zc_attention *a, bool values, const void *past, int64_t old,
                              void *wanted, int64_t fresh, struct zc_attention_view *view);
/* bias x from a tensor whose dims broadcast to [batch, heads, nq, cols], cols at most nk. */
zc_status zc_attention_bias(zc_attention *a, int x, const zc_tensor *t);

/* got == need, or an error about `what`. */
zc_status zc_attention_same(zc_attention *a, int64_t got, int64_t need, const char *what);
zc_status zc_attention_too_large(const zc_attention *a);
/* Output i's memory; NULL: not wanted. */
void *zc_attention_wanted(const zc_launch *l, int i);

/* The description of one operation, its operands prepared: a->l is given, the rest zeros. */
zc_status zc_attention_onnx(zc_attention *a);
zc_status zc_attention_ms(zc_attention *a);
zc_status zc_attention_mha(zc_attention *a);
zc_status zc_attention_gqa(zc_attention *a);
zc_status zc_attention_packed(zc_attention *a);
/* That of the step, whichever it is. *some is false when there is nothing to compute. */
zc_status zc_attention_describe(zc_launch *l, zc_attention *a, bool *some);

/* What the operations have in common, read off each when its kernel is chosen. */
typedef struct zc_attention_shape {
    int64_t d, dv;     /* head sizes; -1: not certain */
    int64_t heads;     /* of queries; -1: not certain */
    zc_dim queries;    /* positions */
    int lengths;       /* input: which keys count; -1: none */
    int length_kind;   /* Z_LENGTHS */
    int ids;           /* input: positions; -1: none */
    int bias[2], mask; /* inputs: biases, a mask to make a bias of; -1: none */
    bool rows, project, softcap;
    int scores; /* mode; -1: not wanted */
    zc_dtype type, v_type;
} zc_attention_shape;

/* Writes what templates/zc/attention.cuh and attention_prepare.cuh need; or declines. */
zc_status zc_gen_attention_spec(zc_gen *g, zc_attention_shape *s);

#endif
