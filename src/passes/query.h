/* What several passes ask of a graph, and their walk over it. */
#ifndef ZC_PASSES_QUERY_H
#define ZC_PASSES_QUERY_H

#include "ir/graph.h"

/* Both known, with equal dims and dtype. */
bool zc_same_type(const zc_type *a, const zc_type *b);
bool zc_same_shape(const zc_type *a, const zc_type *b);
/* Is v a constant whose elements all equal x? */
bool zc_is_splat(const zc_graph *g, zc_vid v, double x);
/* Constant v as `type`, its matrices of rows x columns transposed; 0: no memory. */
zc_vid zc_transposed_const(zc_graph *g, zc_vid v, int64_t rows, int64_t columns,
                           const zc_type *type);
/* The constant matrix of a Linear, N x K (along: its lines lie along the summed axis) or K x N; 0:
 * no memory. */
zc_vid zc_linear_matrix(zc_graph *g, zc_nid linear, bool along);
/* The name of an activation and its parameters, as attributes say them (op/activation.h); false: no
 * memory. */
bool zc_activation_of(zc_graph *g, zc_nid activation, const char **name, zc_floats *params);
/* Rows from which on a product on Hopper counts as one of many: fewer have kernels of their own. */
enum { ZC_MANY_ROWS = 385 };
/* Rows of the last axis, 0 where they are not certain. */
int64_t zc_certain_rows(const zc_type *x);
/* A normalisation of rows: of a + skip + bias; 0 where there is none. */
typedef struct zc_row_norm {
    zc_vid a, skip, gamma, beta, bias, sum; /* sum: what is normalised, where it is a result */
    float epsilon;
    bool rms;
} zc_row_norm;
/* false: n is none, or its statistics are wanted. */
bool zc_row_norm_of(const zc_graph *g, const zc_node *n, zc_row_norm *out);
/* Of a PackedLinear; 1, as it has without, is not written. */
void zc_set_packed_alpha(zc_graph *g, zc_nid n, float alpha);
/* The node that makes v, or 0 (an input, a parameter, a constant). */
zc_nid zc_producer(const zc_graph *g, zc_vid v);
/* The results out[nout] of a node of constants with data, by the reference kernels; the caller
 * frees their memory, also after a failure. (opt_fold.c) */
zc_status zc_evaluate(const zc_graph *g, const zc_node *n, zc_tensor *out, zc_diag *diag);
/* Has its result the elements of its first operand, each once? */
bool zc_only_moves(zc_op op);
/* Calls fn for every live node of the block and of its regions, inner ones first, with the node's
 * inputs resolved. fn may remove the node, forward values and append nodes elsewhere; it returns
 * false when memory is exhausted. */
zc_status zc_each_node(zc_graph *g, zc_block *b, bool (*fn)(zc_graph *g, zc_nid n, void *user),
                       void *user, zc_diag *diag);

#endif
