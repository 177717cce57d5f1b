/* Pointwise operations of one shape that read the same, or each other's results, become one
 * Pointwise node with several results. What is saved is launches, and the bytes of what they share.
 *
 * It runs when chains have been fused and epilogues taken, on what is left. */
#include <string.h>

#include "passes/compose.h"
#include "passes/cost.h"
#include "passes/query.h"

enum { USERS_MOST = 64 }; /* of one value that are looked at */

typedef struct merging {
    zc_graph *g;
    zc_index x;
    size_t changes;
    zc_diag *diag;
} merging;

static const zc_node_place *place(const merging *m, zc_nid n)
{
    return zc_index_place(&m->x, n);
}

/* The node that use e of v counts for: of the block that defines v, or of a value that no node
 * defines any that reads it itself; 0: none. */
static zc_nid user(const merging *m, uint32_t e, zc_vid v)
{
    zc_nid n = m->x.edges.data[e].node, p = zc_producer(m->g, v);
    if (!zc_use_live(&m->x, e, v)) return 0;
    return p ? zc_index_within(&m->x, n, place(m, p)->block) : n;
}

/* ---- what may come together ---- */

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
    return gr->count < ZC_PW_NODES && !zc_pw_has(gr, n) && zc_pw_is(m->g, node) &&
           place(m, n)->block == place(m, gr->nodes[0])->block && !is_shape_work(m->g, node) &&
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
    return m->x.uses.data[v] > inner;
}

/* The group's inputs and results; false: too many. */
static bool collect(const merging *m, zc_pw_group *gr)
{
    gr->ninputs = gr->nresults = 0;
    for (int i = 0; i < gr->count; i++) {
        const zc_node *n = zc_node_at(m->g, gr->nodes[i]);
        for (int j = 0; j < n->nin; j++) {
            zc_nid p = zc_producer(m->g, n->in[j]);
            if (!(p && zc_pw_has(gr, p)) && !zc_pw_add_input(gr, n->in[j])) return false;
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
    uint32_t block = place(m, gr->nodes[0])->block;
    uint64_t after = 0, before = UINT64_MAX;
    for (int i = 0; i < gr->ninputs; i++) {
        zc_nid p = zc_producer(m->g, gr->inputs[i]);
        if (p && place(m, p)->block == block && place(m, p)->order > after)
            after = place(m, p)->order;
    }
    for (int r = 0; r < gr->nresults; r++) {
        zc_vid v = gr->results[r];
        for (uint32_t e = m->x.users.data[v]; e; e = m->x.edges.data[e].next) {
            zc_nid u = user(m, e, v);
            if (u && !zc_pw_has(gr, u) && place(m, u)->order < before) before = place(m, u)->order;
        }
    }
    for (int i = gr->count - 1; i >= 0; i--)
        if (place(m, gr->nodes[i])->order > after && place(m, gr->nodes[i])->order < before)
            return gr->nodes[i];
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

/* Puts node u among the first n ones, which are in order; the last of too many is left out. */
static int keep_first(const merging *m, zc_nid *users, int n, zc_nid u)
{
    int at = n;
    while (u && at > 0 && place(m, u)->order < place(m, users[at - 1])->order) at--;
    if (!u || at == USERS_MOST || (at > 0 && users[at - 1] == u)) return n;
    if (n < USERS_MOST) n++;
    memmove(users + at + 1, users + at, (size_t)(n - 1 - at) * sizeof *users);
    users[at] = u;
    return n;
}

/* Nodes that read v, when reading it once is worth anything, from the first on. */
static bool join_users(const merging *m, zc_pw_group *gr, zc_vid v)
{
    zc_nid users[USERS_MOST];
    int n = 0;
    bool grown = false;
    if (zc_cost_reads(m->g, &v, 1) == 0) return false;
    for (uint32_t e = m->x.users.data[v]; e; e = m->x.edges.data[e].next)
        n = keep_first(m, users, n, user(m, e, v));
    for (int i = 0; i < n; i++) grown |= try_join(m, gr, users[i]);
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

static zc_status merge_at(merging *m, zc_nid seed)
{
    zc_pw_group gr = {.nodes = {seed}, .count = 1};
    if (is_shape_work(m->g, zc_node_at(m->g, seed))) return ZC_OK;
    grow(m, &gr);
    if (gr.count == 1) return ZC_OK;
    zc_pw_sort(&m->x, &gr);
    if (!collect(m, &gr)) return ZC_OK;
    zc_nid at = find_place(m, &gr);
    zc_pw_inline(m->g, &gr, 0);
    zc_buf text = {0};
    bool fits = false;
    zc_status status = at ? zc_pw_compose(m->g, &gr, &text, &fits, m->diag) : ZC_OK;
    if (status == ZC_OK && fits) {
        if (!zc_pw_replace(&m->x, &gr, at, text.data))
            status = zc_fail_nomem(m->diag, "merging", 0);
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
    merging m = {.g = p->g, .diag = p->diag};
    if (!zc_index_init(&m.x, p->g))
        return zc_fail_nomem(p->diag, "values' users", p->g->values.len);
    zc_status status = merge_block(&m, &p->g->top);
    p->changes += m.changes;
    zc_index_fini(&m.x);
    return status;
}
