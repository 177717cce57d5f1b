/* What there is to fuse in a graph, and what became of it: for zc compile --explain.
 *
 * Candidates are counted by their shape alone (census.c), whatever the rules look for. A candidate
 * has an anchor, one operation; what a rewrite makes carries the candidates of what it matched. */
#ifndef ZC_CENSUS_CENSUS_H
#define ZC_CENSUS_CENSUS_H

#include "census/kinds.h"
#include "ir/index.h"

#define ZC_CENSUS_NONE UINT32_MAX

typedef struct zc_candidate {
    zc_rule_kind kind;
    zc_nid anchor;
    zc_op op;         /* that the anchor was */
    const char *node; /* the anchor's name */
    bool found;
    uint32_t rule;  /* that rewrote it, or NONE */
    uint32_t miss;  /* not found: the place where a rule of the kind came nearest, or NONE */
    uint32_t below; /* the same among the places that use its result */
} zc_candidate;

/* A place where a rule did not apply, as it was tried last. */
typedef struct zc_rule_miss {
    uint32_t rule;
    zc_rule_kind kind; /* of the rule */
    zc_nid root;
    const char *root_name; /* where the match began */
    const char *node;      /* where it failed; may be "" */
    const char *why;
    size_t matched; /* operations */
    int of;         /* so many: a repetition counts as often as it matched, or must */
    zc_nid *nodes;  /* these, by number of the pattern's operation; 0: not matched */
    int nnodes;
    zc_nid place;   /* the node that failed, or 0 */
    uint32_t next;  /* of the same root, or NONE */
    bool is_over;   /* the root was rewritten later */
    uint32_t taker; /* by that rule, or NONE */
} zc_rule_miss;

typedef struct zc_census {
    zc_arena arena;
    ZC_VEC(zc_candidate) candidates;
    ZC_VEC(zc_rule_miss) misses;
    ZC_VEC(uint32_t) by_root; /* by node: its newest miss, or NONE */
    ZC_VEC(uint32_t) carried; /* by node: its first link, or NONE */
    struct zc_census_links {
        struct zc_census_link {
            uint32_t candidate, next;
        } * data;
        size_t len, cap;
    } links;
    bool nomem;
} zc_census;

/* Did no more match than the operation that every match of a longer pattern begins with? */
static inline bool zc_rule_miss_is_slight(const zc_rule_miss *m)
{
    return m->matched < 2 && m->nnodes > 1;
}

void zc_census_init(zc_census *c);
void zc_census_fini(zc_census *c);

/* Finds the candidates that are counted before that pass. */
void zc_census_take(zc_census *c, zc_graph *g, const char *pass);
/* After all passes: what was found, and why the rest was not. */
zc_status zc_census_finish(zc_census *c, const zc_graph *g, zc_diag *diag);

/* Candidates of a kind, and how many of them were found. */
size_t zc_census_count(const zc_census *c, zc_rule_kind kind, size_t *found);

/* ---- for the engine; what memory runs out for sets nomem ---- */

void zc_census_add(zc_census *c, zc_rule_kind kind, const zc_graph *g, zc_nid anchor);
/* `miss` with texts and nodes that are copied. */
void zc_census_miss(zc_census *c, const zc_rule_miss *miss);
/* A rewrite by the rule of that kind: matched nodes (0: none) became made ones. */
void zc_census_rewrite(zc_census *c, uint32_t rule, zc_rule_kind kind, const zc_nid *matched,
                       int nmatched, const zc_nid *made, int nmade);
/* The rules are done: what was missed at nodes that are gone does not matter. */
void zc_census_settle(zc_census *c, const zc_index *x);

#endif
