/* What an attention mask says, where the graph proves it. */
#ifndef ZC_PASSES_MASK_H
#define ZC_PASSES_MASK_H

#include "ir/graph.h"

/* The keys that a query sees: those of every condition that is there. */
typedef struct zc_seen {
    bool causal; /* key j for query i: j <= i + offset */
    zc_dim offset;
    zc_vid lengths; /* integers, one of each batch item (each) or one in all: j < length + more */
    bool each;
    zc_dim more;
    zc_vid rest; /* a mask of its own; not_rest: where it is false, or 0 */
    bool not_rest;
} zc_seen;

/* `yes` at the keys that are seen, `no` at the others. */
typedef struct zc_mask {
    zc_seen seen;
    double yes, no;
} zc_mask;

/* scores: batch, heads, queries, keys, to which the value broadcasts. false: nothing is proved. */
bool zc_mask_read(zc_graph *g, zc_vid mask, const zc_dim scores[4], zc_mask *out);

#endif
