/* Targets of Reshape and Expand for samples: what models do to dimensions. */
#ifndef ZC_PROVER_SAMPLE_TARGET_H
#define ZC_PROVER_SAMPLE_TARGET_H

#include "ir/graph.h"

typedef struct zc_rl_dims {
    int n;
    int64_t v[ZC_MAX_RANK];
} zc_rl_dims;

/* Those of one sample, so far. */
typedef struct zc_rl_targets {
    struct {
        zc_op op;
        zc_vid of, target;
    } made[16];
    int count;
} zc_rl_targets;

/* Draws a target for an operation `op` on value `of`; base: the sample's dimensions. Returns one
 * that was made before, or 0: then *out has the dimensions for a new one. */
zc_vid zc_rl_draw_target(const zc_rl_targets *so_far, const zc_graph *g, uint64_t *random,
                         const zc_rl_dims *base, zc_op op, zc_vid of, zc_rl_dims *out);
void zc_rl_keep_target(zc_rl_targets *so_far, zc_op op, zc_vid of, zc_vid made);

#endif
