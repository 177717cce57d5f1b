/* precision.def as it holds for one node. */
#ifndef ZC_PASSES_PRECISION_RULES_H
#define ZC_PASSES_PRECISION_RULES_H

#include "ir/graph.h"

typedef enum zc_precision_rule {
    ZC_RULE_NONE,
    ZC_RULE_LOWER,
    ZC_RULE_FOLLOW,
    ZC_RULE_CLAMP,
    ZC_RULE_RESULT,
    ZC_RULE_ANY,
    ZC_RULE_KEEP
} zc_precision_rule;

/* Never ZC_RULE_NONE. */
zc_precision_rule zc_precision_rule_of(const zc_graph *g, const zc_node *n);
bool zc_precision_pointwise(const zc_node *n);
/* Does it read a table of rows, such as an embedding, and not a vector of numbers? */
bool zc_precision_reads_table(const zc_graph *g, const zc_node *n);
/* Why its part stays f32 where types are chosen by part; NULL: it does not. */
const char *zc_precision_sensitive(zc_op op);
/* Has it kernels that round f32 factors to tf32? */
bool zc_precision_is_product(zc_op op);

#endif
