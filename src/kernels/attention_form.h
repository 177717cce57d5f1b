/* Attention on the device: its operands prepared, for every family. */
#ifndef ZC_KERNELS_ATTENTION_FORM_H
#define ZC_KERNELS_ATTENTION_FORM_H

#include "abi/attention.h"
#include "kernels/gen.h"
#include "kernels/launch.h"
#include "op/attention.h"

enum { ZC_ATTENTION_SIZE_MAX = 512 };

typedef struct zc_attention {
    zc_launch *l;
    struct zc_attention_params p;
    zc_dtype type, v_type; /* of queries and keys, of values */
    int64_t d, dv;
} zc_attention;

zc_status zc_attention_too_large(const zc_attention *a);
/* Prepares the step's operands. *some is false when there is nothing to compute. */
zc_status zc_attention_describe(zc_launch *l, zc_attention *a, bool *some);

/* What the families ask of a step when its kernel is chosen. */
typedef struct zc_attention_shape {
    int64_t d, dv;  /* head sizes */
    int64_t heads;  /* of queries; -1: not certain */
    zc_dim queries; /* positions */
    int scores;     /* mode; -1: not wanted */
    zc_dtype type, v_type;
} zc_attention_shape;

/* Writes what templates/zc/attention.cuh and attention_prepare.cuh need; or declines. */
zc_status zc_gen_attention_spec(zc_gen *g, zc_attention_shape *s);

#endif
