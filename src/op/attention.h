/* The operation Attention on concrete tensors: its operands in one form, for every device. */
#ifndef ZC_OP_ATTENTION_H
#define ZC_OP_ATTENTION_H

#include "op/op.h"
#include "op/tensor.h"

/* A [batch, head, position, element] view; the elements of a position are contiguous. */
typedef struct zc_heads {
    const zc_tensor *t; /* NULL: none */
    int64_t at;         /* element at which it begins */
    int64_t batch, head, pos;
} zc_heads;

/* Views of a tensor laid out [batch, heads, length, size], or [batch, length, heads, size]. */
static inline zc_heads zc_heads_4d(const zc_tensor *t, int64_t heads, int64_t length, int64_t size)
{
    return (zc_heads){t, 0, heads * length * size, length * size, size};
}
static inline zc_heads zc_heads_3d(const zc_tensor *t, int64_t heads, int64_t length, int64_t size)
{
    return (zc_heads){t, 0, heads * length * size, size, heads * size};
}

/* Added to the scores before the softmax; a bool one masks where it is false. Strides of [batch,
 * head, query, key], 0 along broadcast axes. Keys from `cols` on are masked. */
typedef struct zc_attn_bias {
    const zc_tensor *t; /* NULL: none */
    int64_t strides[4], cols;
} zc_attn_bias;

/* One node of it. The tensors' data is not looked at. */
typedef struct zc_attention_node {
    const zc_attrs_Attention *attrs;
    int nin, nout;
    const zc_tensor *in, *out;
    int64_t total; /* the number in operand total; -1: none */
    const char *subject;
    zc_diag *diag;
} zc_attention_node;

typedef struct zc_attention_form {
    int64_t batch, heads, kv_heads; /* heads / kv_heads query heads share a key head */
    int64_t nq, fresh, past;        /* positions of queries, of new keys, of past ones */
    int64_t nk, room;               /* ... of all keys, of the present ones */
    int64_t d, dv;
    double scale;
    bool packed; /* q holds keys and values too */
    bool cache;  /* operand total is given: the past has room, lengths say how much of it counts */
    zc_heads q, k, v, y;
    zc_attn_bias mask, bias;
    int64_t hidden_rows; /* rows a batch item of the bias to be made of operand hidden; 0: none */
    bool hidden_flat;    /* it holds numbers of keys, not one for each key */
    /* Rotary tables: pairs a head, 0: none; rows; rows a batch item where each has its own; do they
     * begin with the first of the new positions, not with the first key? */
    int64_t half, table, table_step;
    bool table_fresh;
} zc_attention_form;

/* Fails when the operands do not fit each other, which shape inference may have left open. */
zc_status zc_attention_form_of(const zc_attention_node *n, zc_attention_form *f);

#endif
