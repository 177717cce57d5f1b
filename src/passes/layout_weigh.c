/* Which convolutions of 16 bits are worth channels last on Hopper. What they are joined by, planes
 * that are all turned or none, is a region: its convolutions' kernels take some time in each layout
 * (kernels/conv_cost.h), and channels last it has transposes where planes come from or go to other
 * operations. The layout pass's own operations are walked to find regions, with nothing made.
 *
 * What else stands in a region counts the same in both layouts. Where a size is not certain, and so
 * may be any, or a convolution has no estimate, the region is turned. */
#include <math.h>
#include <stdlib.h>

#include "passes/cost.h"
#include "passes/layout.h"
#include "passes/precision.h"
#include "passes/query.h"

/* ---- what a boundary costs ---- */

/* Microseconds of a Cast that transposes, too, beyond what it takes without. A guess
 * (bench/NOTES.md). */
static const double joined_us = 0.5;

double zc_layout_move_us(const zc_layout *l, zc_vid v)
{
    return zc_cost_move_us(&zc_val(l->g, v)->type);
}

/* joined: as part of a Cast. */
static double transpose_us(const zc_layout *l, zc_vid v, bool joined)
{
    return zc_layout_is_line(l, v) ? 0 : joined ? joined_us : zc_layout_move_us(l, v);
}

/* ---- regions ---- */

enum { TO_OTHERS = 1, TO_F32 = 2 }; /* how a value leaves its region */

/* By value: */
typedef struct place {
    zc_vid parent;
    zc_layout_us us; /* of the convolution that makes it, and of a region's in its root */
    double between;  /* transposes at its boundary */
    int convs;
    unsigned leaves;
} place;

typedef struct weighing {
    zc_layout *l;
    place *at;
    const zc_layout_op **ops; /* by node: what it is turned as */
    bool *gone;               /* by node: part of what another is turned as */
} weighing;

static zc_vid root_of(weighing *w, zc_vid v)
{
    while (w->at[v].parent != v) v = w->at[v].parent = w->at[w->at[v].parent].parent;
    return v;
}

static void join(weighing *w, zc_vid a, zc_vid b)
{
    w->at[root_of(w, a)].parent = root_of(w, b);
}

static void set_native(weighing *w, zc_vid v)
{
    w->l->last[v] = v;
}

/* A plane that is made elsewhere is read channels last, too. */
static void enter(weighing *w, zc_vid v)
{
    w->l->last[v] = v == 1 ? 2 : 1;
    w->at[v].between += transpose_us(w->l, v, zc_precision_origin(w->l->g, v) != 0);
}

/* The plane that Reshapes and Transposes in front of v, which go with what reads v, began with. */
static zc_vid origin(weighing *w, zc_vid v)
{
    const zc_graph *g = w->l->g;
    for (;;) {
        const zc_nid p = v ? zc_producer(g, v) : 0;
        if (!p || w->l->last[v]) return v;
        const zc_node *n = zc_node_at(g, p);
        if (n->op != ZC_OP_Reshape && n->op != ZC_OP_Transpose) return v;
        w->gone[p] = w->l->uses[v] == 1;
        v = n->in[0];
    }
}

/* The region of which node n becomes a part reads its input i. */
static void read_input(weighing *w, const zc_node *n, const zc_layout_op *op, int i, zc_vid out)
{
    zc_layout *l = w->l;
    zc_vid v = n->in[i];
    const bool image = op->kind == ZC_LAYOUT_IMAGE;
    if (i == 0 && op->kind == ZC_LAYOUT_SHUFFLES) v = origin(w, v);
    if (!v || !zc_layout_is_plane(l, v) || zc_val(l->g, v)->data) return;
    const int rank = zc_layout_rank(l, out);
    const bool asks = op->us ? i == 0 && !image
                             : zc_layout_rank(l, v) == rank && !zc_layout_is_single(l, v) &&
                                   !zc_layout_is_channels(l, v, rank);
    if (!l->last[v] && asks) enter(w, v);
    if (l->last[v]) join(w, v, out);
}

static void add_conv(weighing *w, const zc_node *n, const zc_layout_op *op, zc_vid out)
{
    w->at[out].us = op->us(w->l, n);
    w->at[out].convs = 1;
}

static void visit(weighing *w, zc_nid id)
{
    zc_layout *l = w->l;
    const zc_node *n = zc_node_at(l->g, id);
    const zc_layout_op *op = zc_layout_op_of(l, n);
    w->ops[id] = op;
    if (!op || op->kind == ZC_LAYOUT_READS) return;
    if (op->kind == ZC_LAYOUT_WIDENS) {
        w->at[n->in[0]].leaves |= TO_F32;
        return;
    }
    if (op->kind == ZC_LAYOUT_LEAVES) {
        const zc_vid v = origin(w, n->in[0]);
        w->at[v].between -= transpose_us(l, v, false);
        return;
    }
    const zc_vid out = n->out[0];
    if (op->kind == ZC_LAYOUT_ENTERS) {
        w->at[out].between -= transpose_us(l, out, false);
        set_native(w, out);
        return;
    }
    for (int i = 0; i < n->nin; i++) read_input(w, n, op, i, out);
    if (op->us) add_conv(w, n, op, out);
    for (int i = 0; i < n->nout; i++) {
        if (!n->out[i] || !zc_layout_is_plane(l, n->out[i])) continue;
        set_native(w, n->out[i]);
        join(w, n->out[i], out);
    }
}

/* What reads planes of regions and is in none. */
static void leave(weighing *w, zc_nid id)
{
    const zc_node *n = zc_node_at(w->l->g, id);
    if (w->ops[id] || w->gone[id]) return;
    for (int i = 0; i < n->nin; i++)
        if (zc_layout_is_native(w->l, n->in[i])) w->at[n->in[i]].leaves |= TO_OTHERS;
}

static void add_place(weighing *w, zc_vid v)
{
    place *p = &w->at[v], *root = &w->at[root_of(w, v)];
    if (p->leaves & TO_OTHERS) p->between += transpose_us(w->l, v, false);
    if (p->leaves & TO_F32) p->between += transpose_us(w->l, v, true);
    if (root == p) return;
    root->us.first += p->us.first;
    root->us.last += p->us.last;
    root->between += p->between;
    root->convs += p->convs;
}

/* ---- the decision ---- */

static void tell(const zc_node *n, const place *region, zc_buf *told)
{
    zc_buf_printf(
        told,
        "%s '%s' stays channels first: there its region (convolutions: %d) takes %.1f us; "
        "channels last %.1f us, and transposes %.1f us\n",
        zc_op_get(n->op)->name, n->name, region->convs, region->us.first, region->us.last,
        region->between);
}

static void decide(weighing *w, zc_nid id, zc_buf *told)
{
    const zc_layout_op *op = w->ops[id];
    if (!op || !op->us) return;
    const zc_node *n = zc_node_at(w->l->g, id);
    const place *region = &w->at[root_of(w, n->out[0])];
    w->l->stays[id] = region->us.first < region->us.last + region->between;
    if (w->l->stays[id] && told) tell(n, region, told);
}

static void weigh(weighing *w, zc_buf *told)
{
    zc_layout *l = w->l;
    const zc_block *b = &l->g->top;
    for (zc_vid v = 0; v < l->values; v++) w->at[v].parent = v;
    l->weighs = true;
    for (size_t i = 0; i < b->nodes.len; i++) visit(w, b->nodes.data[i]);
    for (size_t i = 0; i < b->nodes.len; i++) leave(w, b->nodes.data[i]);
    for (size_t i = 0; i < b->outputs.len; i++)
        if (zc_layout_is_native(l, b->outputs.data[i]))
            w->at[b->outputs.data[i]].leaves |= TO_OTHERS;
    l->weighs = false;
    for (zc_vid v = 0; v < l->values; v++) {
        add_place(w, v);
        l->last[v] = 0;
    }
    for (size_t i = 0; i < b->nodes.len; i++) decide(w, b->nodes.data[i], told);
}

zc_status zc_layout_weigh(zc_layout *l, zc_buf *told)
{
    weighing w = {.l = l};
    l->nodes = l->g->nodes.len;
    l->stays = zc_calloc(l->nodes, sizeof *l->stays);
    w.at = zc_calloc(l->values, sizeof *w.at);
    w.ops = zc_calloc(l->nodes, sizeof *w.ops);
    w.gone = zc_calloc(l->nodes, sizeof *w.gone);
    const bool room = l->stays && w.at && w.ops && w.gone;
    if (room) weigh(&w, told);
    free(w.at);
    free(w.ops);
    free(w.gone);
    return room ? ZC_OK : zc_fail_nomem(l->diag, "layout", 0);
}
