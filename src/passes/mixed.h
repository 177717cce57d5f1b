/* Precision by part of the graph: what lower_precision turns f32 into where not everything gets the
 * same type.
 *
 * A part is an operation that is lowered whatever its operands are (a product, a normalisation) and
 * the operations that follow it, up to the next such one. Parts are numbered in running order; the
 * same graph has the same parts. */
#ifndef ZC_PASSES_MIXED_H
#define ZC_PASSES_MIXED_H

#include "passes/codes.h"
#include "passes/kept.h"
#include "rules/rules.h"

typedef enum zc_precision_type {
#define TYPE(name, dtype) ZC_PRECISION_##name,
#include "passes/precision_types.def"
    ZC_PRECISION_COUNT
} zc_precision_type;

/* The types whose weights alone are codes come first. */
enum { ZC_CODED_TYPES = ZC_PRECISION_w8 + 1 };

const char *zc_precision_type_name(zc_precision_type t);
/* Is it chosen only where it is asked for? So are codes of 8 bits or fewer, and pruned weights. */
bool zc_precision_is_asked_for(zc_precision_type t);
/* Bits of the codes that its weights alone are; 0: there are none. */
int zc_precision_code_bits(zc_precision_type t);
/* ZC_PRECISION_COUNT: there is no such type. */
zc_precision_type zc_precision_type_find(const char *name);

typedef struct zc_precision_part {
    const char *names;   /* "Conv 'stem', Relu 'relu'": its operations */
    bool is_product;     /* tf32 is something to it */
    bool scales;         /* fp8 is */
    bool quantises;      /* int8 is */
    int64_t depth;       /* products that each of its sums then has */
    int64_t taps;        /* ... and of a convolution's window, each over the channels of a group */
    bool each;           /* ... which is one by itself, of several */
    int spans;           /* of these, from the first on, types of 8 bits need to know */
    const char *no_span; /* why the samples give none that bytes can hold; NULL: they do */
    int no_span_of;      /* which */
    double conversion;   /* bytes in f32 of the operand that has to be given 8 bits by itself */
    double wide;        /* ... of what follows a convolution and has no bytes: int8 leaves it f32 */
    const char *codes;  /* the weights that int4, fp4 and w8 make codes of; NULL: there are none */
    const char *prunes; /* those of which sparse leaves two of four; NULL: there are none */
    double code_bytes;  /* of either, in f32 */
    bool packs;         /* the sizes are those of kernels that read codes */
    zc_code_form forms[ZC_CODED_TYPES]; /* by type */
    const char *keeps;                  /* why it is f32 from the start; NULL: it is not */
    bool keeps_result;                  /* that is of its result alone: its weights may be codes */
    double operations, bytes, weights;  /* in f32, as zc_work_of counts; a size that is not known
                                           counts ZC_COST_DIM. weights: bytes of constants */
} zc_precision_part;

/* A value that one part makes and another one reads, or joins to what that makes (Concat); bytes:
 * in f32. */
typedef struct zc_precision_edge {
    size_t from, to;
    zc_vid value;
    double bytes;
    bool joins;
} zc_precision_edge;

/* Of the part's values in memory, on a GPU or not. */
zc_dtype zc_precision_dtype(zc_precision_type t, const zc_precision_part *part, bool gpu);

/* What samples showed of the first operand, or what that is chosen from; and of a convolution's
 * result, after a Relu. */
enum { ZC_SPAN_OPERAND, ZC_SPAN_RESULT, ZC_SPANS };

typedef struct zc_span {
    double low, high;
} zc_span;

typedef struct zc_part_spans {
    zc_span of[ZC_SPANS];
} zc_part_spans;

/* The magnitude that codes of each column of weights of that name are to reach. */
typedef zc_status zc_weight_limits_fn(void *user, const char *name, const zc_weights *w, float *out,
                                      zc_diag *diag);

typedef struct zc_mixed {
    const zc_precision_type *types; /* by part; NULL: all f32 */
    bool emulate;  /* f32 everywhere, rounded where another type would round: for measuring errors
                      with fast kernels. Every operation rounds its result, as without fusions */
    zc_kept *kept; /* of emulation, what becomes of weights; may be NULL */
    bool observe;  /* no types: further outputs, the least and the greatest element of each span of
                      each part */
    const zc_part_spans *spans;  /* by part, for int8 and fp8 */
    zc_weight_limits_fn *limits; /* NULL: the greatest of each column */
    void *limits_user;
    bool codes;                      /* describe weights as codes, too */
    bool prunes;                     /* ... and those that may be pruned, for ... */
    zc_rule_target target;           /* ... these GPUs */
    int64_t group;                   /* weights that share a scale; 0: of each part what is best */
    zc_arena *arena;                 /* of the names in `parts` */
    ZC_VEC(zc_precision_part) parts; /* the pass describes them when there are none yet */
    ZC_VEC(zc_precision_edge) edges; /* ... and what they read of each other */
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

/* Asks for the limits of the weights of s, where the parts have any. */
zc_status zc_parts_limit(const zc_parted *p, zc_scalable *s);

/* What becomes of the weights of s in that type, in zc_kept. */
static inline int zc_kept_form_of(zc_precision_type t, const zc_scalable *s)
{
    return s->along_k ? ZC_PRECISION_COUNT + (int)t : (int)t;
}

/* ---- lower_codes.c ---- */

/* One whose weights are the numbers of codes now. */
typedef struct zc_coded_product {
    zc_nid node;
    zc_scalable s;
    zc_coded coded;
} zc_coded_product;
typedef ZC_VEC(zc_coded_product) zc_parts_coded;

/* Gives the products and convolutions of parts of int4, fp4 and w8 such weights, before they are
 * lowered. The caller frees *out, also after a failure. */
zc_status zc_parts_code(const zc_parted *p, zc_parts_coded *out);
/* Those products that are f16 by now multiply by what DequantizeLinear makes of the codes. */
zc_status zc_parts_keep_codes(const zc_parted *p, const zc_parts_coded *coded);

/* ---- prune.c ---- */

/* Gives the products of parts of type sparse weights of which the two least of each four are 0,
 * before they are lowered. */
zc_status zc_parts_prune(const zc_parted *p);

/* ---- lower_bytes.c ---- */

/* Adds the outputs that zc_mixed.observe asks for. */
zc_status zc_parts_observe(const zc_parted *p);
/* Puts quantisations around the convolutions and products of the parts that are int8. */
zc_status zc_parts_quantise(const zc_parted *p);

#endif
