/* Random graphs: typed, each value's shape known when it is used, of the motifs that exporters
 * write and near misses of them. */
#ifndef ZC_TESTS_RANDOM_GRAPH_H
#define ZC_TESTS_RANDOM_GRAPH_H

#include "ir/graph.h"

enum { POOL_MAX = 512 };

/* A graph that grows. Whatever cannot be made is 0, and so is what would be made of it. */
typedef struct growing {
    zc_graph *g;
    uint64_t state;
    zc_dtype real;
    zc_vid pool[POOL_MAX]; /* what may be read */
    size_t npool;
    zc_vid exact[POOL_MAX]; /* what no rounding has touched: only this is compared or rounded */
    size_t nexact;
    bool is_symbolic;
    bool failed; /* no memory */
} growing;

/* An operand that is left out. */
#define LEFT_OUT UINT32_MAX

uint64_t below(growing *m, uint64_t n);
bool one_in(growing *m, uint64_t n);

/* A node; attrs: "axis=1 perm=0,2,1" or "". Its first result. */
zc_vid make(growing *m, zc_op op, const char *attrs, int nin, const zc_vid *in, int nout);
#define MAKE(m, op, attrs, ...)                                                                    \
    make((m), ZC_OP_##op, (attrs), (int)(sizeof((zc_vid[]){__VA_ARGS__}) / sizeof(zc_vid)),        \
         (zc_vid[]){__VA_ARGS__}, 1)
/* A text that lives as long as the graph. */
const char *text_of(growing *m, const char *fmt, ...) ZC_PRINTF(2, 3);
/* Result i of the node that makes v. */
zc_vid result(const growing *m, zc_vid v, int i);

zc_vid reals(growing *m, int rank, const int64_t *dims, double lo, double hi);
zc_vid real(growing *m, double x);
zc_vid ints(growing *m, int n, const int64_t *v);
#define INTS(m, ...)                                                                               \
    ints((m), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})
zc_vid number(growing *m, int64_t x); /* a scalar */

const zc_type *type_of(const growing *m, zc_vid v);
int rank_of(const growing *m, zc_vid v);
/* -1: symbolic. An axis may be negative. */
int64_t dim_of(const growing *m, zc_vid v, int axis);
bool is_exact(const growing *m, zc_vid v);
/* The axis, or the same one counted from the end. */
int either_way(growing *m, int axis, int rank);

/* Something real of that rank (0: any), rather a late one than an early one; 0: there is none. */
zc_vid pick(growing *m, int rank);
/* Others may read it. */
void keep(growing *m, zc_vid v);

/* motifs.c: adds one to the graph. */
void add_motif(growing *m);

#endif
