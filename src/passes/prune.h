/* Constant weights of products of which the two least of each four along the summed axis become 0
 * (sparse), so that opt_sparse stores the others. */
#ifndef ZC_PASSES_PRUNE_H
#define ZC_PASSES_PRUNE_H

#include "passes/scaled.h"
#include "rules/rules.h"

/* Is node n a product of f32 and finite constant weights which opt_sparse would take for the
 * target, once it is f16 and they are pruned? */
bool zc_prunable_of(const zc_graph *g, const zc_node *n, const zc_rule_target *target,
                    zc_scalable *out);

#endif
