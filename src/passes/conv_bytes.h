/* QLinearConv channels last, as the passes ask of it that make one step of two on Hopper. */
#ifndef ZC_PASSES_CONV_BYTES_H
#define ZC_PASSES_CONV_BYTES_H

#include "ir/index.h"
#include "kernels/conv_cost.h"
#include "passes/passes.h"

typedef struct zc_bytes_pass {
    zc_index x;
    zc_pass *p;
} zc_bytes_pass;

/* visit is called for every node, with a zc_bytes_pass, where the family is at hand. */
zc_status zc_bytes_run(zc_pass *p, int family, bool (*visit)(zc_graph *g, zc_nid n, void *pass));

/* A plain one over two axes, channels last, without zero points of what it multiplies? */
bool zc_bytes_plain(const zc_graph *g, const zc_node *n);
/* Are a plain one's windows points, without padding? */
bool zc_bytes_points(const zc_graph *g, const zc_node *n);
/* Is it plain, of each pixel, with nothing behind it or a sum with a byte of its result's shape? */
bool zc_bytes_pixels(const zc_graph *g, const zc_node *n);
/* Have the operands of both the same types, and both a bias or none? */
bool zc_bytes_alike(const zc_graph *g, const zc_node *a, const zc_node *b);
/* The plain one that makes v, in the block of the node at `at` and of operands alike; NULL: v is
 * made otherwise. */
const zc_node *zc_bytes_maker(const zc_index *x, zc_vid v, zc_nid at);
/* Is its result, with nothing done behind it, read by one node alone? */
bool zc_bytes_lone(const zc_index *x, const zc_node *n);
/* Are its scales and biases constants by which sums of so many products become bytes by whole
 * numbers (op/requant.h)? */
bool zc_bytes_whole(const zc_graph *g, const zc_node *n, int64_t depth);
/* Is its epilogue a sum of its own byte and one other? */
bool zc_bytes_sum(const zc_graph *g, const zc_node *n);

/* What both are to the models of cost; false: not known. */
bool zc_bytes_works(const zc_graph *g, const zc_node *first, const zc_node *second,
                    zc_conv_work out[2]);
/* Is one step of so many microseconds held to take no longer than two and a launch? */
bool zc_bytes_worth(double us, const zc_conv_work both[2]);
/* One node of an operation that is two QLinearConv (zc_conv_has_halves), with the first's
 * attributes, takes the place and name of both[at], and its result or, where it has two, both
 * results; other: what is summed with the result of one. false: no memory. */
bool zc_bytes_join(zc_bytes_pass *p, zc_op op, const zc_nid both[2], int at, zc_vid other);

#endif
