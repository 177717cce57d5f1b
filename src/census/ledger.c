/* The ledger of a census: candidates through rewrites, and places where rules failed. */
#include <stdlib.h>
#include <string.h>

#include "census/census.h"

void zc_census_init(zc_census *c)
{
    *c = (zc_census){.nomem = false};
    zc_arena_init(&c->arena, 0);
}

void zc_census_fini(zc_census *c)
{
    ZC_VEC_FINI(&c->candidates);
    ZC_VEC_FINI(&c->misses);
    ZC_VEC_FINI(&c->by_root);
    ZC_VEC_FINI(&c->carried);
    ZC_VEC_FINI(&c->links);
    zc_arena_fini(&c->arena);
}

/* Room for node n in both indices. */
static bool reach(zc_census *c, zc_nid n)
{
    while (c->by_root.len <= n && !c->nomem) c->nomem |= !ZC_VEC_PUSH(&c->by_root, ZC_CENSUS_NONE);
    while (c->carried.len <= n && !c->nomem) c->nomem |= !ZC_VEC_PUSH(&c->carried, ZC_CENSUS_NONE);
    return !c->nomem;
}

/* ---- candidates ---- */

static bool carries(const zc_census *c, zc_nid n, uint32_t candidate)
{
    if (n >= c->carried.len) return false;
    for (uint32_t l = c->carried.data[n]; l != ZC_CENSUS_NONE; l = c->links.data[l].next)
        if (c->links.data[l].candidate == candidate) return true;
    return false;
}

static void carry(zc_census *c, zc_nid n, uint32_t candidate)
{
    if (!reach(c, n) || carries(c, n, candidate)) return;
    struct zc_census_link l = {.candidate = candidate, .next = c->carried.data[n]};
    if (ZC_VEC_PUSH(&c->links, l))
        c->carried.data[n] = (uint32_t)(c->links.len - 1);
    else
        c->nomem = true;
}

void zc_census_add(zc_census *c, zc_rule_kind kind, const zc_graph *g, zc_nid anchor)
{
    zc_candidate one = {.kind = kind,
                        .anchor = anchor,
                        .op = zc_node_at(g, anchor)->op,
                        .node = zc_arena_strdup(&c->arena, zc_node_at(g, anchor)->name),
                        .rule = ZC_CENSUS_NONE,
                        .miss = ZC_CENSUS_NONE,
                        .below = ZC_CENSUS_NONE};
    if (one.node && ZC_VEC_PUSH(&c->candidates, one))
        carry(c, anchor, (uint32_t)(c->candidates.len - 1));
    else
        c->nomem = true;
}

static void note_rewrite(zc_census *c, uint32_t rule, zc_rule_kind kind, uint32_t candidate,
                         const zc_nid *made, int nmade)
{
    zc_candidate *one = &c->candidates.data[candidate];
    if (one->kind == kind) {
        one->found = true;
        one->rule = rule;
    }
    for (int i = 0; i < nmade; i++) carry(c, made[i], candidate);
}

void zc_census_rewrite(zc_census *c, uint32_t rule, zc_rule_kind kind, const zc_nid *matched,
                       int nmatched, const zc_nid *made, int nmade)
{
    for (int i = 0; i < nmatched; i++) {
        uint32_t miss = matched[i] && matched[i] < c->by_root.len ? c->by_root.data[matched[i]]
                                                                  : ZC_CENSUS_NONE;
        for (; miss != ZC_CENSUS_NONE; miss = c->misses.data[miss].next)
            c->misses.data[miss].taker = rule;
        if (!matched[i] || matched[i] >= c->carried.len) continue;
        for (uint32_t l = c->carried.data[matched[i]]; l != ZC_CENSUS_NONE;
             l = c->links.data[l].next)
            note_rewrite(c, rule, kind, c->links.data[l].candidate, made, nmade);
    }
}

/* ---- misses ---- */

static uint32_t find_miss(const zc_census *c, uint32_t rule, zc_nid root)
{
    uint32_t at = c->by_root.data[root];
    while (at != ZC_CENSUS_NONE && c->misses.data[at].rule != rule) at = c->misses.data[at].next;
    return at;
}

void zc_census_miss(zc_census *c, const zc_rule_miss *miss)
{
    zc_rule_miss own = *miss;
    own.taker = ZC_CENSUS_NONE;
    if (!reach(c, miss->root)) return;
    own.root_name = zc_arena_strdup(&c->arena, miss->root_name);
    own.node = zc_arena_strdup(&c->arena, miss->node);
    own.why = zc_arena_strdup(&c->arena, miss->why);
    own.nodes = zc_arena_dup(&c->arena, miss->nodes, (size_t)miss->nnodes, sizeof *own.nodes);
    if (!own.root_name || !own.node || !own.why || !own.nodes) {
        c->nomem = true;
        return;
    }
    uint32_t at = find_miss(c, miss->rule, miss->root);
    own.next = at == ZC_CENSUS_NONE ? c->by_root.data[miss->root] : c->misses.data[at].next;
    if (at != ZC_CENSUS_NONE)
        c->misses.data[at] = own;
    else if (ZC_VEC_PUSH(&c->misses, own))
        c->by_root.data[miss->root] = (uint32_t)(c->misses.len - 1);
    else
        c->nomem = true;
}

/* Further by the share of the pattern that matched. */
static bool is_nearer(const zc_rule_miss *a, const zc_rule_miss *b)
{
    return a->matched * (size_t)b->nnodes > b->matched * (size_t)a->nnodes;
}

static void keep_nearest(const zc_census *c, uint32_t *best, uint32_t miss)
{
    if (*best == ZC_CENSUS_NONE || is_nearer(&c->misses.data[miss], &c->misses.data[*best]))
        *best = miss;
}

/* Misses of the candidate's kind that began at node n. */
static void look_at(const zc_census *c, zc_candidate *one, zc_nid n)
{
    uint32_t i = n < c->by_root.len ? c->by_root.data[n] : ZC_CENSUS_NONE;
    for (; i != ZC_CENSUS_NONE; i = c->misses.data[i].next)
        if (c->misses.data[i].kind == one->kind) keep_nearest(c, &one->below, i);
}

/* Matching begins at the end of a pattern: the nodes that use what node n computes, some steps far.
 */
static void look_below(const zc_census *c, const zc_index *x, zc_candidate *one, zc_nid n)
{
    enum { NEAR_MAX = 24 };
    zc_nid near[NEAR_MAX] = {n};
    int count = 1;
    for (int i = 0; i < count; i++) {
        const zc_node *node = zc_node_at(x->g, near[i]);
        look_at(c, one, near[i]);
        for (int k = 0; k < node->nout; k++)
            for (uint32_t e = node->out[k] ? x->users.data[node->out[k]] : 0; e && count < NEAR_MAX;
                 e = x->edges.data[e].next)
                if (zc_node_at(x->g, x->edges.data[e].node)->op != ZC_OP_NONE)
                    near[count++] = x->edges.data[e].node;
    }
}

void zc_census_settle(zc_census *c, const zc_index *x)
{
    for (size_t i = 0; i < c->misses.len; i++)
        c->misses.data[i].is_over |= zc_node_at(x->g, c->misses.data[i].root)->op == ZC_OP_NONE;
    for (zc_nid n = 1; n < c->carried.len; n++) {
        if (zc_node_at(x->g, n)->op == ZC_OP_NONE) continue;
        for (uint32_t l = c->carried.data[n]; l != ZC_CENSUS_NONE; l = c->links.data[l].next) {
            zc_candidate *one = &c->candidates.data[c->links.data[l].candidate];
            if (!one->found && zc_rule_kind_by_rule(one->kind)) look_below(c, x, one, n);
        }
    }
}

/* ---- the end ---- */

/* Miss i was about the candidates that node n carries. */
static void explain_node(zc_census *c, zc_rule_kind kind, uint32_t i, zc_nid n)
{
    if (!n || n >= c->carried.len) return;
    for (uint32_t l = c->carried.data[n]; l != ZC_CENSUS_NONE; l = c->links.data[l].next) {
        zc_candidate *one = &c->candidates.data[c->links.data[l].candidate];
        if (one->kind == kind && !one->found) keep_nearest(c, &one->miss, i);
    }
}

static void explain_misses(zc_census *c)
{
    for (uint32_t i = 0; i < c->misses.len; i++) {
        const zc_rule_miss *m = &c->misses.data[i];
        if (m->is_over || m->kind == ZC_RULE_KIND_NONE) continue;
        for (int k = 0; k < m->nnodes; k++) explain_node(c, m->kind, i, m->nodes[k]);
        explain_node(c, m->kind, i, m->place);
    }
}

zc_status zc_census_finish(zc_census *c, const zc_graph *g, zc_diag *diag)
{
    if (c->nomem) return zc_fail_nomem(diag, "census", 0);
    for (size_t i = 0; i < c->candidates.len; i++) {
        zc_candidate *one = &c->candidates.data[i];
        if (!zc_rule_kind_by_rule(one->kind))
            one->found = zc_node_at(g, one->anchor)->op != one->op;
    }
    explain_misses(c);
    for (size_t i = 0; i < c->candidates.len; i++)
        if (c->candidates.data[i].miss == ZC_CENSUS_NONE)
            c->candidates.data[i].miss = c->candidates.data[i].below;
    return ZC_OK;
}

size_t zc_census_count(const zc_census *c, zc_rule_kind kind, size_t *found)
{
    size_t n = 0;
    *found = 0;
    for (size_t i = 0; i < c->candidates.len; i++) {
        if (c->candidates.data[i].kind != kind) continue;
        *found += c->candidates.data[i].found;
        n++;
    }
    return n;
}
