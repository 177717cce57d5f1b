/* Pointwise grouping: chains and diamonds of pointwise operations of one shape, and numbers that
 * they alone read, become one Pointwise node, whose expression is the composition of theirs. What
 * is saved is the bytes of every intermediate. */
#include <stdlib.h>
#include <string.h>

#include "op/reduce.h"
#include "passes/compose.h"
#include "passes/query.h"

typedef struct fusion {
    zc_graph *g;
    zc_index x;
    uint32_t *inner; /* by value: uses by the current group's nodes; 0 outside of try_grow */
    bool on_gpu;
    size_t changes;
    zc_diag *diag;
} fusion;

/* ---- what may join ---- */

/* The values that the group's nodes read from outside; false when too many. */
static bool collect_inputs(const fusion *f, zc_pw_group *gr)
{
    gr->ninputs = 0;
    for (int i = gr->count - 1; i >= 0; i--) {
        const zc_node *n = zc_node_at(f->g, gr->nodes[i]);
        for (int j = 0; j < n->nin; j++) {
            zc_nid p = zc_producer(f->g, n->in[j]);
            if (!(p && zc_pw_has(gr, p)) && !zc_pw_add_input(gr, n->in[j])) return false;
        }
    }
    return true;
}

static void count_inner(fusion *f, zc_nid n, int by)
{
    const zc_node *node = zc_node_at(f->g, n);
    for (int j = 0; j < node->nin; j++) f->inner[node->in[j]] += (uint32_t)by;
}

/* Is it a product of two numbers that are computed, as what the sums of dynamically quantised
 * factors count? On a GPU a multiplication more an element is cheaper than a launch. */
static bool is_number(const fusion *f, const zc_node *n)
{
    return f->on_gpu && n->op == ZC_OP_Mul && zc_val(f->g, n->out[0])->type.rank == 0;
}

/* May p join? It computes the root's shape, or one number, and nobody outside wants its result. */
static bool can_join(const fusion *f, const zc_pw_group *gr, zc_nid p)
{
    const zc_node *node = zc_node_at(f->g, p);
    const zc_node *root = zc_node_at(f->g, gr->nodes[0]);
    if (gr->count == ZC_PW_NODES || zc_pw_has(gr, p) || !zc_pw_is(f->g, node)) return false;
    if (zc_index_place(&f->x, p)->block != zc_index_place(&f->x, gr->nodes[0])->block) return false;
    zc_vid v = node->out[0];
    return f->inner[v] == f->x.uses.data[v] &&
           (is_number(f, node) ||
            zc_same_shape(&zc_val(f->g, v)->type, &zc_val(f->g, root->out[0])->type));
}

static bool try_join(fusion *f, zc_pw_group *gr, zc_nid p)
{
    if (!can_join(f, gr, p)) return false;
    gr->nodes[gr->count++] = p;
    count_inner(f, p, 1);
    if (collect_inputs(f, gr)) return true;
    count_inner(f, p, -1);
    gr->count--;
    return false;
}

/* Adds producers until none can join. */
static void grow(fusion *f, zc_pw_group *gr)
{
    count_inner(f, gr->nodes[0], 1);
    for (bool grown = true; grown;) {
        grown = false;
        for (int i = 0; i < gr->count; i++) {
            const zc_node *n = zc_node_at(f->g, gr->nodes[i]);
            for (int j = 0; j < n->nin; j++) {
                zc_nid p = zc_producer(f->g, n->in[j]);
                if (p && try_join(f, gr, p)) grown = true;
            }
        }
    }
    for (int i = 0; i < gr->count; i++) count_inner(f, gr->nodes[i], -1);
}

/* The node that reads v; 0: nobody does, or others, too. */
static zc_nid only_reader(const zc_index *x, zc_vid v)
{
    if (x->uses.data[v] != 1) return 0;
    for (uint32_t e = x->users.data[v]; e; e = x->edges.data[e].next)
        if (zc_use_live(x, e, v)) return x->edges.data[e].node;
    return 0;
}

/* Are these floats of bytes that a reduction alone wants, which reads bytes (opt_prologue)? */
static bool are_read_as_bytes(const fusion *f, zc_nid n)
{
    const zc_node *node = zc_node_at(f->g, n);
    if (!f->on_gpu || node->op != ZC_OP_DequantizeLinear) return false;
    const zc_nid reader = only_reader(&f->x, node->out[0]);
    return reader && zc_is_reduction(zc_node_at(f->g, reader)->op);
}

/* ---- replacing ---- */

static zc_status fuse_at(fusion *f, zc_nid root)
{
    zc_pw_group gr = {.nodes = {root}, .count = 1};
    if (are_read_as_bytes(f, root) || !collect_inputs(f, &gr)) return ZC_OK;
    grow(f, &gr);
    if (gr.count == 1 || !collect_inputs(f, &gr)) return ZC_OK;
    zc_pw_sort(&f->x, &gr);
    zc_pw_inline(f->g, &gr, 0);
    zc_buf text = {0};
    bool fits = false;
    zc_status status = zc_pw_compose(f->g, &gr, &text, &fits, f->diag);
    if (status == ZC_OK && fits) {
        if (!zc_pw_replace(&f->x, &gr, root, text.data))
            status = zc_fail_nomem(f->diag, "fusion", 0);
        f->changes += (size_t)gr.count - 1;
    }
    zc_buf_fini(&text);
    return status;
}

/* From the last node backwards, so that a group is grown from its final result. */
static zc_status fuse_block(fusion *f, const zc_block *b)
{
    for (size_t i = b->nodes.len; i-- > 0;) {
        zc_nid n = b->nodes.data[i];
        const zc_node *node = zc_node_at(f->g, n);
        if (node->op != ZC_OP_NONE && zc_pw_is(f->g, node)) ZC_TRY(fuse_at(f, n));
        for (int r = 0; r < zc_node_at(f->g, n)->nregions; r++)
            ZC_TRY(fuse_block(f, zc_node_at(f->g, n)->regions[r]));
    }
    return ZC_OK;
}

/* ---- what is only expanded ---- */

/* Dimension d of `out`, seen from its last, in t; 1 where t has no such dimension. */
static zc_dim dim_from_last(const zc_type *t, int d)
{
    return d < t->rank ? t->dims[t->rank - 1 - d] : zc_dim_const(1);
}

/* Does node n's result keep its shape when it reads u instead of input `slot`? */
static bool keeps_shape(const zc_graph *g, const zc_node *n, int slot, zc_vid u)
{
    const zc_type *out = &zc_val(g, n->out[0])->type, *t = &zc_val(g, u)->type;
    int rank = t->rank;
    for (int d = 0; d < out->rank; d++) {
        zc_dim need = dim_from_last(out, d), own = dim_from_last(t, d);
        if (!zc_dim_is(own, 1) && !zc_dim_eq(own, need)) return false;
        bool there = zc_dim_eq(own, need);
        for (int j = 0; j < n->nin; j++)
            there |= j != slot && zc_dim_eq(dim_from_last(&zc_val(g, n->in[j])->type, d), need);
        if (!there) return false;
    }
    for (int j = 0; j < n->nin; j++)
        if (j != slot && zc_val(g, n->in[j])->type.rank > rank)
            rank = zc_val(g, n->in[j])->type.rank;
    return t->rank >= 0 && rank == out->rank;
}

/* Operands broadcast: an Expand before is nothing but bytes. */
static bool read_unexpanded(zc_graph *g, zc_nid id, void *changes)
{
    zc_node *n = zc_node_at(g, id);
    if (!zc_pw_is(g, n)) return true;
    for (int j = 0; j < n->nin; j++) {
        zc_nid p = zc_producer(g, n->in[j]);
        if (!p || zc_node_at(g, p)->op != ZC_OP_Expand) continue;
        zc_vid u = zc_node_at(g, p)->in[0];
        if (!keeps_shape(g, n, j, u)) continue;
        n->in[j] = u;
        ++*(size_t *)changes;
    }
    return true;
}

zc_status zc_pass_opt_pointwise(zc_pass *p)
{
    ZC_TRY(zc_each_node(p->g, &p->g->top, read_unexpanded, &p->changes, p->diag));
    ZC_TRY(zc_pass_opt_dce(p)); /* what earlier passes left is no use of a value */
    fusion f = {.g = p->g, .on_gpu = !zc_pass_on_cpu(p), .diag = p->diag};
    f.inner = zc_calloc(p->g->values.len, sizeof *f.inner);
    zc_status status = f.inner && zc_index_init(&f.x, p->g) ? fuse_block(&f, &p->g->top)
                                                            : zc_fail_nomem(p->diag, "fusion", 0);
    p->changes += f.changes;
    free(f.inner);
    zc_index_fini(&f.x);
    return status;
}
