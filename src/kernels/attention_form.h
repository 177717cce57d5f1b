/* Attention on the device: its operands prepared, for every family. */
#ifndef ZC_KERNELS_ATTENTION_FORM_H
#define ZC_KERNELS_ATTENTION_FORM_H

#include "abi/attention.h"
#include "kernels/gen.h"
#include "kernels/launch.h"
#include "op/attention.h"

enum { ZC_ATTENTION_SIZE_MAX = 512 };
/* Ranges of queries that get kernels of their own, for zc_gen_size. */
#define ZC_ATTENTION_QUERIES_BOUNDS                                                                \
    {                                                                                              \
        1, 16, 128, 512                                                                            \
    }

typedef struct zc_attention {
    zc_launch *l;
    struct zc_attention_params p;
    zc_dtype type, v_type; /* of queries and keys, of values */
    int64_t d, dv;
} zc_attention;

zc_status zc_attention_too_large(const zc_attention *a);
/* May rows of `size` elements be read in pieces of 16 bytes, or of a part of it that divides them?
 */
bool zc_attention_in_pieces(const struct zc_attention_view *v, zc_dtype type, int64_t size);
/* The step's operands as they stand. */
zc_status zc_attention_read(zc_launch *l, zc_attention *a, zc_attention_form *f);
/* What is to be done to queries, or to new keys or values and the past ones in front of them, so
 * that they can be computed with. */
typedef enum zc_attention_operand {
    ZC_ATTENTION_QUERIES,
    ZC_ATTENTION_KEYS,
    ZC_ATTENTION_VALUES
} zc_attention_operand;
void zc_attention_rows_of(const zc_attention *a, const zc_attention_form *f,
                          zc_attention_operand which, struct zc_attention_rows_params *r);
/* Prepares the step's operands. *some is false when there is nothing to compute. */
zc_status zc_attention_describe(zc_launch *l, zc_attention *a, bool *some);

/* What the families ask of a step when its kernel is chosen. */
typedef struct zc_attention_shape {
    int64_t d, dv;  /* head sizes */
    int64_t heads;  /* of queries; -1: not certain */
    zc_dim queries; /* positions */
    zc_dim keys;    /* positions of new ones */
    bool past;      /* are there others? */
    int scores;     /* mode; -1: not wanted */
    int biases;     /* of each query */
    int kept;       /* biases that are the same for all queries */
    zc_dtype type, v_type;
} zc_attention_shape;

/* Writes what templates/zc/attention.cuh and attention_prepare.cuh need; or declines. */
zc_status zc_gen_attention_spec(zc_gen *g, zc_attention_shape *s);
/* The same for kernels whose products are the tensor cores': declines two element types, scores as
 * a result, and head sizes that are no multiples of 8 up to `most`. */
zc_status zc_gen_attention_products(zc_gen *g, int64_t most, zc_attention_shape *s);

#endif
