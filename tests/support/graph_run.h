/* Computes a graph node by node with the CPU's kernels. Include cmocka.h and what it needs before.
 */
#ifndef ZC_TESTS_GRAPH_RUN_H
#define ZC_TESTS_GRAPH_RUN_H

#include "ir/graph.h"

/* values, by value, has the inputs' and gets the others'; graph_run_free frees those that are no
 * constants. name: of the case, for messages. */
void graph_run(const char *name, const zc_graph *g, bool reference, zc_tensor *values);
/* But that of value `kept`, or 0. */
void graph_run_free(const zc_graph *g, zc_vid kept, zc_tensor *values);

#endif
