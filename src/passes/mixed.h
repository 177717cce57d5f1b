/* Precision by part of the graph: what lower_precision turns f32 into where not everything gets the
 * same type.
 *
 * A part is an operation that is lowered whatever its operands are (a product, a normalisation) and
 * the operations that follow it, up to the next such one. Parts are numbered in running order; the
 * same graph has the same parts. */
#ifndef ZC_PASSES_MIXED_H
#define ZC_PASSES_MIXED_H

#include "ir/graph.h"

typedef enum zc_precision_type {
#define TYPE(name, dtype) ZC_PRECISION_##name,
#include "passes/precision_types.def"
    ZC_PRECISION_COUNT
} zc_precision_type;

const char *zc_precision_type_name(zc_precision_type t);
/* Of its values in memory. */
zc_dtype zc_precision_dtype(zc_precision_type t);
/* Has it 8 bits, and scales that are of the samples? */
bool zc_precision_is_scaled(zc_precision_type t);
/* ZC_PRECISION_COUNT: there is no such type. */
zc_precision_type zc_precision_type_find(const char *name);

typedef struct zc_precision_part {
    const char *names;   /* "Conv 'stem', Relu 'relu'": its operations */
    bool is_product;     /* tf32 is something to it */
    bool scales;         /* fp8 is */
    bool quantises;      /* int8 is */
    int64_t depth;       /* products that each of its sums then has */
    int spans;           /* of these, from the first on, types of 8 bits need to know */
    const char *no_span; /* why the samples give none that bytes can hold; NULL: they do */
    int no_span_of;      /* which */
    double conversion;   /* bytes in f32 of the operand that has to be given 8 bits by itself */
    const char *keeps;   /* why it is f32 from the start; NULL: it is not */
    double operations, bytes, weights; /* in f32, as zc_work_of counts; a size that is not known
                                          counts ZC_COST_DIM. weights: bytes of constants */
} zc_precision_part;

/* What samples showed of the first operand, or what that is chosen from; and of a convolution's
 * result, after a Relu. */
enum { ZC_SPAN_OPERAND, ZC_SPAN_RESULT, ZC_SPANS };

typedef struct zc_span {
    double low, high;
} zc_span;

typedef struct zc_part_spans {
    zc_span of[ZC_SPANS];
} zc_part_spans;

typedef struct zc_mixed {
    const zc_precision_type *types; /* by part; NULL: all f32 */
    bool emulate; /* f32 everywhere, rounded where another type would round: for measuring errors
                     with fast kernels. Every operation rounds its result, as without fusions */
    bool observe; /* no types: further outputs, the least and the greatest element of each span of
                     each part */
    const zc_part_spans *spans;      /* by part, for int8 and fp8 */
    zc_arena *arena;                 /* of the names in `parts` */
    ZC_VEC(zc_precision_part) parts; /* the pass describes them when there are none yet */
} zc_mixed;

/* Numbers the parts; *of: by node, its part's number, from 1, or 0. The caller frees *of, also
 * after a failure. */
zc_status zc_mixed_find(const zc_graph *g, zc_mixed *m, uint32_t **of, zc_diag *diag);

/* A graph whose parts are numbered. */
typedef struct zc_parted {
    zc_graph *g;
    const zc_mixed *mixed;
    const uint32_t *part_of; /* by node, of the first `nodes` ones */
    size_t nodes;
    zc_diag *diag;
} zc_parted;

/* ---- lower_bytes.c ---- */

/* Adds the outputs that zc_mixed.observe asks for. */
zc_status zc_parts_observe(const zc_parted *p);
/* Puts quantisations around the convolutions and products of the parts that are int8. */
zc_status zc_parts_quantise(const zc_parted *p);

#endif
