/* What attention's families on Hopper share: their problem, and their operands as the copy engine
 * sees them. */
#ifndef ZC_KERNELS_ATTENTION_SM90_H
#define ZC_KERNELS_ATTENTION_SM90_H

#include "abi/attention_sm90.h"
#include "kernels/attention_form.h"

enum {
    ZC_ATTENTION_SM90_LINE = 128,    /* bytes; a panel has lines of as many */
    ZC_ATTENTION_SM90_WIDTH = 64,    /* elements of a line */
    ZC_ATTENTION_SM90_ROWS = 64,     /* of a warpgroup's products */
    ZC_ATTENTION_SM90_SMEM = 232448, /* of a block on sm_90 */
    ZC_ATTENTION_SM90_LEAST = 17     /* fewer queries leave most of a tile empty */
};

typedef struct zc_attention_sm90_problem {
    int64_t d, dv, queries, keys; /* keys: -1: not certain */
    int64_t items;                /* heads of all of the batch */
    int sm_count;
    int biases, kept; /* of each query; the same for all */
    bool asked;       /* also for what has not run on a GPU */
} zc_attention_sm90_problem;

/* Writes the header but for the configuration; asks for ranges of queries; or declines. */
zc_status zc_gen_attention_sm90_problem(zc_gen *g, zc_attention_shape *s,
                                        zc_attention_sm90_problem *p);
/* What attention_sm90 is held to take, microseconds. */
double zc_attention_sm90_us(const zc_attention_sm90_problem *p);
/* Prepares the step's operands, which come by `rows` queries and `keys` keys. *tiles: of queries of
 * all heads; 0: there is nothing to compute. */
zc_status zc_attention_sm90_params(zc_launch *l, int64_t rows, int64_t keys,
                                   struct zc_attention_sm90_params *p, int64_t *tiles);

#endif
