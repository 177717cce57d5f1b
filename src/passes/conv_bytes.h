/* QLinearConv channels last, as the passes ask of it that make one step of two on Hopper. */
#ifndef ZC_PASSES_CONV_BYTES_H
#define ZC_PASSES_CONV_BYTES_H

#include "ir/index.h"

/* A plain one over two axes, channels last, without zero points of what it multiplies? */
bool zc_bytes_plain(const zc_graph *g, const zc_node *n);
/* Are a plain one's windows points, without padding? */
bool zc_bytes_points(const zc_graph *g, const zc_node *n);
/* Have the operands of both the same types, and both a bias or none? */
bool zc_bytes_alike(const zc_graph *g, const zc_node *a, const zc_node *b);
/* The plain one, without an epilogue, that makes v for the node at `at` alone, in the same block
 * and of operands alike; NULL: v is made otherwise. */
const zc_node *zc_bytes_maker(const zc_index *x, zc_vid v, zc_nid at);
/* A node of the operation that both become, named as the one at `at`, with the attributes of the
 * first. 0: no memory. */
zc_nid zc_bytes_join(zc_graph *g, zc_op op, zc_nid at, const zc_nid both[2], int nin,
                     const zc_vid *in);
/* It takes the place and the result of the one at `at`; `gone` goes. false: no memory. */
bool zc_bytes_replace(zc_index *x, zc_nid made, zc_nid at, zc_nid gone);
/* Are its scales and biases constants by which sums of so many products become bytes by whole
 * numbers (op/requant.h)? */
bool zc_bytes_whole(const zc_graph *g, const zc_node *n, int64_t depth);
/* Is its epilogue a sum of its own byte and one other? */
bool zc_bytes_sum(const zc_graph *g, const zc_node *n);

#endif
