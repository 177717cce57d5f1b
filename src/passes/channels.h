/* What the parts of opt_channels share: where channels of bytes lie once they are in pieces of 16.
 */
#ifndef ZC_PASSES_CHANNELS_H
#define ZC_PASSES_CHANNELS_H

#include "passes/passes.h"

enum { ZC_CHANNELS_PIECE = 16 /* that the copy engine can address */ };

/* Where a value's channels lie in a wider one, ascending. */
typedef struct zc_channels_form {
    int64_t count, width; /* width 0: there is no wider one */
    const int64_t *at;
    bool part; /* of something that has other channels, too */
} zc_channels_form;

typedef enum zc_channels_kind {
    ZC_CHANNELS_OTHER,
    ZC_CHANNELS_CONV,    /* a convolution of bytes, of all channels */
    ZC_CHANNELS_EACH,    /* one of each channel by itself */
    ZC_CHANNELS_FOLLOWS, /* channels of the result are made of the same ones of what it reads */
    ZC_CHANNELS_CONCAT,
    ZC_CHANNELS_PARTS,   /* Split and Slice */
    ZC_CHANNELS_SHUFFLE, /* the last of three nodes that exchange groups and channels */
    ZC_CHANNELS_WITHIN   /* the others of these three */
} zc_channels_kind;

/* Arrays are by value, but for the last two, for the `values` that the graph had. */
typedef struct zc_channels {
    zc_graph *g;
    size_t values;
    uint32_t *uses;
    bool *inner;             /* a region reads it */
    zc_channels_form *forms; /* what it may have */
    bool *wanted;            /* ... and has */
    bool *enters;            /* ... by a Pad, as it is made elsewhere */
    zc_vid *wide;            /* what has the form, once it is made */
    zc_vid *own;             /* a part without channels beside its own pieces */
    zc_vid *narrow;          /* the value as it was */
    zc_channels_kind *kinds; /* by node */
    zc_nid *shuffles;        /* by node: the SHUFFLE that it is WITHIN */
    ZC_VEC(zc_nid) out;      /* the new node list */
    bool failed;             /* no memory for forms */
    size_t *changes;
} zc_channels;

/* Operands of a convolution of bytes: weights, their zero point, and what else has one number a
 * channel of the result; -1: there is none. */
typedef struct zc_channels_roles {
    int w, zero, scale, bias;
} zc_channels_roles;

zc_channels_roles zc_channels_roles_of(zc_op op);
/* The operand in that role, or 0. */
zc_vid zc_channels_operand(const zc_node *n, int role);
int64_t zc_channels_pieces(int64_t n);
/* The last axis of v; 0: it is not certain. */
int64_t zc_channels_of(const zc_graph *g, zc_vid v);

/* What node n is, and which forms its results may have, those of its operands being known
 * (channels_form.c). */
void zc_channels_find(zc_channels *p, zc_nid n);
/* The form of n channels, and others behind them. */
zc_channels_form zc_channels_padded(zc_channels *p, int64_t n, int64_t width);
/* Does a part lie side by side, with room behind it for the pieces that it takes? */
bool zc_channels_has_own(const zc_channels *p, zc_vid v);
/* What the SHUFFLE n exchanges channels of. */
zc_vid zc_channels_shuffled(const zc_channels *p, zc_nid n);

/* Which values have their forms: those that convolutions want, where it is worth it
 * (channels_weigh.c). told: text for who asks why not, or NULL. false: no memory. */
bool zc_channels_weigh(zc_channels *p, zc_buf *told);
/* Does n make a result in its form? */
bool zc_channels_is_wide(const zc_channels *p, const zc_node *n);

/* Node n, next in the new list, with what it reads and makes in their forms (channels_widen.c);
 * false: no memory. */
bool zc_channels_widen(zc_channels *p, zc_nid n);
/* v as it was; 0: no memory. */
zc_vid zc_channels_narrow(zc_channels *p, zc_vid v);

#endif
