/* What matching and rewriting need of a graph beside itself: users of values, the order of nodes
 * as linked lists, use counts. All of it is kept up to date through rewrites. */
#ifndef ZC_IR_INDEX_H
#define ZC_IR_INDEX_H

#include "ir/graph.h"

typedef struct zc_use {
    zc_nid node;
    uint32_t next; /* edge of the same value, or 0 */
} zc_use;

typedef struct zc_node_place {
    uint32_t block;
    zc_nid prev, next; /* in the block; a removed node keeps prev */
    uint64_t order;    /* ascending in the block */
} zc_node_place;

typedef struct zc_node_list {
    zc_block *b;
    zc_nid owner; /* the node whose region it is; 0 of the whole graph */
    zc_nid head, tail;
} zc_node_list;

typedef struct zc_index {
    zc_graph *g;
    ZC_VEC(uint32_t) uses;  /* by value: operands and block outputs */
    ZC_VEC(uint32_t) users; /* by value: its first edge */
    ZC_VEC(zc_use) edges;
    ZC_VEC(zc_node_place) places; /* by node */
    ZC_VEC(zc_node_list) blocks;  /* 0: the whole graph */
} zc_index;

/* false: no memory. */
bool zc_index_init(zc_index *x, zc_graph *g);
void zc_index_fini(zc_index *x);
/* Makes room for values and nodes added to the graph since. */
bool zc_index_grow(zc_index *x);
/* Counts node n's operands as uses. */
bool zc_index_add(zc_index *x, zc_nid n);
/* Puts node n before `at` of the same block, or last when at is 0. */
void zc_index_link(zc_index *x, zc_nid n, uint32_t block, zc_nid at);
/* Takes node n out, with its uses, and removes it from the graph. */
void zc_index_remove(zc_index *x, zc_nid n);
/* Node `made`, in no block, becomes what stands at `at`: the producer of its results, in that
 * place. The old content of `at` is gone. false: no memory. */
bool zc_index_take_place(zc_index *x, zc_nid made, zc_nid at);
/* Uses of `from` by nodes become uses of `to`. */
bool zc_index_replace(zc_index *x, zc_vid from, zc_vid to);
/* The node of `block` that n is or is inside of; 0: none. */
zc_nid zc_index_within(const zc_index *x, zc_nid n, uint32_t block);
/* Writes the lists back to the graph's blocks. */
bool zc_index_finish(zc_index *x);

static inline zc_node_place *zc_index_place(const zc_index *x, zc_nid n)
{
    return &x->places.data[n];
}
/* Is edge e still a use of v? */
static inline bool zc_use_live(const zc_index *x, uint32_t e, zc_vid v)
{
    const zc_node *n = zc_node_at(x->g, x->edges.data[e].node);
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] == v) return true;
    return false;
}

#endif
