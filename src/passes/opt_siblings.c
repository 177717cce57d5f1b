/* Pointwise operations of one shape that read the same, or each other's results, become one
 * Pointwise node with several results. What is saved is launches, and the bytes of what they share.
 *
 * It runs when chains have been fused and epilogues taken, on what is left. */
#include <stdlib.h>

#include "passes/compose.h"
#include "passes/cost.h"
#include "passes/rewrite.h"

enum { USERS_MOST = 64 }; /* of one value that are looked at */

/* Who uses each value: nodes of the block that defines it, or that have such a node inside; and of
 * a value that no node defines all nodes that read it. */
typedef struct users {
    size_t *first; /* by value: its users are list[first[v]] to list[first[v + 1]] */
    zc_nid *list;
} users;

typedef struct merging {
    zc_graph *g;
    zc_places places;
    users users;
    uint32_t *uses;
    zc_nid *moved; /* by node: the node that it became part of; 0: none */
    size_t changes;
    zc_diag *diag;
} merging;

/* ---- users ---- */

typedef struct counting {
    const zc_graph *g;
    const zc_places *places;
    size_t *next; /* by value */
    zc_nid *list; /* NULL: only count */
} counting;

static void note_use(const counting *c, zc_vid v, zc_nid by, bool direct)
{
    zc_nid p = zc_producer(c->g, v);
    if (!v || (p ? c->places->block[p] != c->places->block[by] : !direct)) return;
    if (c->list) c->list[c->next[v]] = by;
    c->next[v]++;
}

/* What node n and its regions use, as uses by `by`. */
static void note_node(const counting *c, const zc_node *n, zc_nid by, bool direct)
{
    for (int i = 0; i < n->nin; i++) note_use(c, n->in[i], by, direct);
    for (int r = 0; r < n->nregions; r++) {
        const zc_block *b = n->regions[r];
        for (size_t i = 0; i < b->nodes.len; i++)
            note_node(c, zc_node_at(c->g, b->nodes.data[i]), by, false);
        for (size_t i = 0; i < b->outputs.len; i++) note_use(c, b->outputs.data[i], by, false);
    }
}

static void note_block(const counting *c, const zc_block *b)
{
    for (size_t i = 0; i < b->nodes.len; i++) {
        const zc_node *n = zc_node_at(c->g, b->nodes.data[i]);
        note_node(c, n, b->nodes.data[i], true);
        for (int r = 0; r < n->nregions; r++) note_block(c, n->regions[r]);
    }
}

static bool find_users(merging *m)
{
    size_t values = m->g->values.len, sum = 0;
    users *u = &m->users;
    u->first = zc_calloc(values + 1, sizeof *u->first);
    counting c = {.g = m->g, .places = &m->places, .next = zc_calloc(values, sizeof *c.next)};
    if (u->first && c.next) note_block(&c, &m->g->top);
    for (size_t v = 0; u->first && c.next && v < values; v++) {
        u->first[v] = sum;
        sum += c.next[v];
        c.next[v] = u->first[v];
    }
    if (u->first) u->first[values] = sum;
    u->list = c.list = zc_calloc(sum + 1, sizeof *c.list);
    bool ok = u->first && c.next && c.list;
    if (ok) note_block(&c, &m->g->top);
    free(c.next);
    return ok;
}

static zc_nid user(const merging *m, size_t i)
{
    zc_nid n = m->users.list[i];
    return m->moved[n] ? m->moved[n] : n;
}

/* ---- what may come together ---- */

static bool in_group(const zc_pw_group *gr, zc_nid n)
{
    for (int i = 0; i < gr->count; i++)
        if (gr->nodes[i] == n) return true;
    return false;
}

/* The CPU computes floats and bools in blocks, anything else element by element. */
static bool in_blocks(const zc_graph *g, const zc_node *n)
{
    bool all = true;
    for (int i = -1; i < n->nin; i++) {
        zc_dtype d = zc_val(g, i < 0 ? n->out[0] : n->in[i])->type.dtype;
        all = all && (d == ZC_F32 || d == ZC_F16 || d == ZC_BF16 || d == ZC_BOOL);
    }
    return all;
}

/* Integers of a shape are for the host, one by one. */
static bool is_shape_work(const zc_graph *g, const zc_node *n)
{
    const zc_type *t = &zc_val(g, n->out[0])->type;
    return !zc_dtype_is_float(t->dtype) && t->rank <= 1;
}

static bool can_join(const merging *m, const zc_pw_group *gr, zc_nid n)
{
    const zc_node *node = zc_node_at(m->g, n), *seed = zc_node_at(m->g, gr->nodes[0]);
    return gr->count < ZC_PW_NODES && !in_group(gr, n) && zc_pw_is(m->g, node) &&
           m->places.block[n] == m->places.block[gr->nodes[0]] && !is_shape_work(m->g, node) &&
           in_blocks(m->g, node) == in_blocks(m->g, seed) &&
           zc_same_shape(&zc_val(m->g, node->out[0])->type, &zc_val(m->g, seed->out[0])->type);
}

static bool wanted_outside(const merging *m, const zc_pw_group *gr, zc_vid v)
{
    uint32_t inner = 0;
    for (int i = 0; i < gr->count; i++) {
        const zc_node *n = zc_node_at(m->g, gr->nodes[i]);
        for (int j = 0; j < n->nin; j++) inner += n->in[j] == v;
    }
    return m->uses[v] > inner;
}

/* The group's inputs and results; false: too many. */
static bool collect(const merging *m, zc_pw_group *gr)
{
    gr->ninputs = gr->nresults = 0;
    for (int i = 0; i < gr->count; i++) {
        const zc_node *n = zc_node_at(m->g, gr->nodes[i]);
        for (int j = 0; j < n->nin; j++) {
            zc_nid p = zc_producer(m->g, n->in[j]);
            if (!(p && in_group(gr, p)) && !zc_pw_add_input(gr, n->in[j])) return false;
        }
        if (!wanted_outside(m, gr, n->out[0])) continue;
        if (gr->nresults == ZC_EXPR_MAX_RESULTS) return false;
        gr->results[gr->nresults++] = n->out[0];
    }
    return true;
}

/* A place for the whole: behind all that it reads, before all that reads it. 0: there is none. */
static zc_nid find_place(const merging *m, const zc_pw_group *gr)
{
    const uint32_t *order = m->places.order;
    const zc_block *b = m->places.block[gr->nodes[0]];
    int64_t after = -1, before = INT64_MAX;
    for (int i = 0; i < gr->ninputs; i++) {
        zc_nid p = zc_producer(m->g, gr->inputs[i]);
        if (p && m->places.block[p] == b && order[p] > after) after = order[p];
    }
    for (int r = 0; r < gr->nresults; r++) {
        zc_vid v = gr->results[r];
        for (size_t i = m->users.first[v]; i < m->users.first[v + 1]; i++) {
            zc_nid u = user(m, i);
            if (!in_group(gr, u) && order[u] < before) before = order[u];
        }
    }
    for (int i = gr->count - 1; i >= 0; i--)
        if (order[gr->nodes[i]] > after && order[gr->nodes[i]] < before) return gr->nodes[i];
    return 0;
}

static bool try_join(const merging *m, zc_pw_group *gr, zc_nid n)
{
    if (!can_join(m, gr, n)) return false;
    gr->nodes[gr->count++] = n;
    if (collect(m, gr) && find_place(m, gr)) return true;
    gr->count--;
    return false;
}

/* Nodes that read v, when reading it once is worth anything. */
static bool join_users(const merging *m, zc_pw_group *gr, zc_vid v)
{
    bool grown = false;
    if (zc_cost_reads(m->g, &v, 1) == 0) return false;
    size_t first = m->users.first[v], end = m->users.first[v + 1];
    if (end - first > USERS_MOST) end = first + USERS_MOST;
    for (size_t i = first; i < end; i++) grown |= try_join(m, gr, user(m, i));
    return grown;
}

static void grow(const merging *m, zc_pw_group *gr)
{
    for (int i = 0; i < gr->count; i++) { /* to which members are added */
        const zc_node *n = zc_node_at(m->g, gr->nodes[i]);
        join_users(m, gr, n->out[0]);
        for (int j = 0; j < n->nin; j++) join_users(m, gr, n->in[j]);
    }
}

/* ---- replacing ---- */

static void sort_nodes(const merging *m, zc_pw_group *gr)
{
    const uint32_t *order = m->places.order;
    for (int i = 1; i < gr->count; i++)
        for (int j = i; j > 0 && order[gr->nodes[j]] < order[gr->nodes[j - 1]]; j--) {
            zc_nid t = gr->nodes[j];
            gr->nodes[j] = gr->nodes[j - 1];
            gr->nodes[j - 1] = t;
        }
}

static zc_status merge_at(merging *m, zc_nid seed)
{
    zc_pw_group gr = {.nodes = {seed}, .count = 1};
    if (is_shape_work(m->g, zc_node_at(m->g, seed))) return ZC_OK;
    grow(m, &gr);
    if (gr.count == 1) return ZC_OK;
    sort_nodes(m, &gr);
    if (!collect(m, &gr)) return ZC_OK;
    zc_nid at = find_place(m, &gr);
    zc_pw_inline(m->g, &gr, 0);
    zc_buf text = {0};
    bool fits = false;
    zc_status status = at ? zc_pw_compose(m->g, &gr, &text, &fits, m->diag) : ZC_OK;
    if (status == ZC_OK && fits) {
        if (!zc_pw_replace(m->g, &gr, at, text.data)) status = zc_fail_nomem(m->diag, "merging", 0);
        for (int i = 0; i < gr.count; i++) m->moved[gr.nodes[i]] = at;
        m->changes += (size_t)gr.count - 1;
    }
    zc_buf_fini(&text);
    return status;
}

static zc_status merge_block(merging *m, const zc_block *b)
{
    for (size_t i = 0; i < b->nodes.len; i++) {
        zc_nid n = b->nodes.data[i];
        const zc_node *node = zc_node_at(m->g, n);
        if (node->op != ZC_OP_NONE && zc_pw_is(m->g, node)) ZC_TRY(merge_at(m, n));
        for (int r = 0; r < zc_node_at(m->g, n)->nregions; r++)
            ZC_TRY(merge_block(m, zc_node_at(m->g, n)->regions[r]));
    }
    return ZC_OK;
}

zc_status zc_pass_opt_siblings(zc_pass *p)
{
    merging m = {.g = p->g, .diag = p->diag, .uses = zc_graph_uses(p->g)};
    m.moved = zc_calloc(p->g->nodes.len, sizeof *m.moved);
    bool ready = m.uses && m.moved && zc_places_of(p->g, &m.places) && find_users(&m);
    zc_status status = ready ? merge_block(&m, &p->g->top)
                             : zc_fail_nomem(p->diag, "values' users", p->g->values.len);
    p->changes += m.changes;
    free(m.uses);
    free(m.moved);
    free(m.users.first);
    free(m.users.list);
    zc_places_fini(&m.places);
    return status;
}
