/* Products by matrices of which each four neighbours along the summed axis have two elements at
 * most that are not 0. */
#ifndef ZC_PASSES_SPARSE_H
#define ZC_PASSES_SPARSE_H

#include "ir/graph.h"
#include "rules/rules.h"

/* A product of x by a constant matrix of n columns, plus a row. */
typedef struct zc_sparse_product {
    zc_vid x, bias; /* bias 0: none */
    const zc_tensor *w;
    bool along_k; /* w's rows are n */
    int64_t n, k;
    double alpha;
    bool finished; /* there is an epilogue */
} zc_sparse_product;

/* Is node n one, by a matrix of floats? */
bool zc_sparse_product_of(const zc_graph *g, const zc_node *n, zc_sparse_product *out);
/* Has its matrix that form? */
bool zc_sparse_has(const zc_sparse_product *p);
/* Why a product whose matrix has that form is none for the target's sparse products, without a GPU
 * for Hopper's; NULL: it is one. */
const char *zc_sparse_refused(const zc_graph *g, const zc_sparse_product *p,
                              const zc_rule_target *target);

/* Calls fn for each four neighbours, of column n from place k on, as they lie in memory, until it
 * returns false: then so does this. */
typedef bool zc_sparse_four_fn(void *user, int64_t n, int64_t k);
bool zc_sparse_each(const zc_sparse_product *p, zc_sparse_four_fn *fn, void *user);

/* Where the matrix has column n's weight of place k of the summed axis. */
static inline int64_t zc_sparse_from(const zc_sparse_product *p, int64_t n, int64_t k)
{
    return p->along_k ? n * p->k + k : k * p->n + n;
}

#endif
