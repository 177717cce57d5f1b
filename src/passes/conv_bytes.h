/* QLinearConv channels last, as the passes ask of it that make one step of two on Hopper. */
#ifndef ZC_PASSES_CONV_BYTES_H
#define ZC_PASSES_CONV_BYTES_H

#include "ir/graph.h"

/* A plain one over two axes, channels last, without zero points of what it multiplies? */
bool zc_bytes_plain(const zc_graph *g, const zc_node *n);
/* Are a plain one's windows points, without padding? */
bool zc_bytes_points(const zc_graph *g, const zc_node *n);
/* Have the operands of both the same types, and both a bias or none? */
bool zc_bytes_alike(const zc_graph *g, const zc_node *a, const zc_node *b);
/* Are its scales and biases constants by which sums of so many products become bytes by whole
 * numbers (op/requant.h)? */
bool zc_bytes_whole(const zc_graph *g, const zc_node *n, int64_t depth);
/* Is its epilogue a sum of its own byte and one other? */
bool zc_bytes_sum(const zc_graph *g, const zc_node *n);

#endif
