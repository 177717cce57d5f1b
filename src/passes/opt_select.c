/* Rows that nobody reads are not computed: where all users of a result take the same row along an
 * axis (the class token of a vision transformer, the first token of a text's), its operands' rows
 * are taken instead, if the operation makes each row from those of its operands. A row that its
 * tensor begins with is a view of it. */
#include <stdlib.h>

#include "ir/index.h"
#include "passes/passes.h"
#include "passes/query.h"

/* A Gather of one row. */
typedef struct selection {
    int axis; /* of its operand, from 0 on */
    zc_vid index;
    int64_t row;
    bool drops; /* the axis */
} selection;

typedef struct selecting {
    zc_index x;
    size_t *changes;
    zc_diag *diag;
    zc_status status;
} selecting;

/* ---- what is selected ---- */

static bool read_selection(const zc_graph *g, zc_nid user, zc_vid of, selection *out)
{
    const zc_node *n = zc_node_at(g, user);
    if (n->op != ZC_OP_Gather || n->in[ZC_IN_Gather_data] != of) return false;
    const zc_value *index = zc_val(g, n->in[ZC_IN_Gather_indices]);
    const zc_type *data = &zc_val(g, of)->type;
    if (index->kind != ZC_VALUE_CONST || !index->data || !index->data->data) return false;
    if (index->data->rank > 1 || zc_tensor_numel(index->data) != 1) return false;
    int64_t axis = ((const zc_attrs_Gather *)n->attrs)->axis;
    *out = (selection){.axis = (int)(axis < 0 ? axis + data->rank : axis),
                       .index = n->in[ZC_IN_Gather_indices],
                       .row = zc_load_i64(index->data->dtype, index->data->data, 0),
                       .drops = index->data->rank == 0};
    return !zc_dim_is(data->dims[out->axis], 1);
}

static bool is_same(const selection *a, const selection *b)
{
    return a->axis == b->axis && a->row == b->row && a->drops == b->drops;
}

/* Do all users of v take one row, the same as *s if `known`? */
static bool all_select(const selecting *p, zc_vid v, bool known, selection *s)
{
    const zc_index *x = &p->x;
    const uint32_t block = zc_index_place(x, zc_producer(x->g, v))->block;
    uint32_t found = 0;
    for (uint32_t e = x->users.data[v]; e; e = x->edges.data[e].next) {
        selection one;
        if (!zc_use_live(x, e, v)) continue;
        const zc_nid user = x->edges.data[e].node;
        if (zc_index_place(x, user)->block != block) return false; /* it may never run */
        if (!read_selection(x->g, user, v, &one)) return false;
        if ((known || found) && !is_same(&one, s)) return false;
        *s = one;
        found++;
    }
    return found && found == x->uses.data[v]; /* else it is a result of the block */
}

/* The row that is taken of all results of a node. */
static bool selection_of(const selecting *p, const zc_node *n, selection *s)
{
    bool known = false;
    for (int i = 0; i < n->nout; i++) {
        if (!n->out[i] || !p->x.uses.data[n->out[i]]) continue;
        if (!all_select(p, n->out[i], known, s)) return false;
        known = true;
    }
    return known;
}

/* ---- operations that make rows from rows ---- */

typedef enum operand { WHOLE, ROW, NEITHER } operand;

/* As it broadcasts to a result of type y. */
static operand broadcast(const zc_type *t, const zc_type *y, int axis)
{
    int own = axis - (y->rank - t->rank);
    if (t->rank < 0) return NEITHER;
    if (own < 0) return WHOLE;
    return zc_dim_eq(t->dims[own], y->dims[axis]) ? ROW : NEITHER;
}

/* The normalised axes of a node lie behind the selected one. Its statistics have none. */
static bool normalises_behind(const zc_node *n, int64_t axis, int rank, int selected)
{
    return (axis < 0 ? axis + rank : axis) > selected && !zc_node_out(n, 1) && !zc_node_out(n, 2);
}

static bool makes_rows(const zc_node *n, int rank, int axis)
{
    switch (n->op) {
    case ZC_OP_Linear:
        return axis < rank - 1 && !zc_op_epilogue(zc_op_get(n->op), n->attrs);
    case ZC_OP_LayerNormalization:
        return normalises_behind(n, ((const zc_attrs_LayerNormalization *)n->attrs)->axis, rank,
                                 axis);
    case ZC_OP_RMSNormalization:
        return normalises_behind(n, ((const zc_attrs_RMSNormalization *)n->attrs)->axis, rank,
                                 axis);
    case ZC_OP_SkipLayerNormalization:
    case ZC_OP_SkipSimplifiedLayerNormalization:
        return normalises_behind(n, -1, rank, axis);
    default:
        return (zc_op_get(n->op)->flags & ZC_OPF_POINTWISE) != 0;
    }
}

/* What is taken of operand i. */
static operand taken_of(const zc_graph *g, const zc_node *n, int i, const zc_type *y, int axis)
{
    if (!n->in[i]) return WHOLE;
    if (n->op == ZC_OP_Linear && i != ZC_IN_Linear_x)
        return zc_val(g, n->in[i])->type.rank <= 2 ? WHOLE : NEITHER;
    return broadcast(&zc_val(g, n->in[i])->type, y, axis);
}

static bool fits(const zc_graph *g, const zc_node *n, const selection *s)
{
    const zc_type *y = &zc_val(g, n->out[0])->type;
    bool any = false;
    if (n->nregions || !n->out[0] || y->rank < 0 || !makes_rows(n, y->rank, s->axis)) return false;
    for (int i = 0; i < n->nin; i++) {
        operand o = taken_of(g, n, i, y, s->axis);
        if (o == NEITHER) return false;
        any |= o == ROW;
    }
    return any;
}

/* ---- the rewrite ---- */

static bool put_before(selecting *p, zc_nid made, zc_nid at)
{
    p->status = zc_graph_infer(p->x.g, made, p->diag);
    if (p->status != ZC_OK || !zc_index_grow(&p->x) || !zc_index_add(&p->x, made)) return false;
    zc_index_link(&p->x, made, zc_index_place(&p->x, at)->block, at);
    return true;
}

/* The selected row of v, which broadcasts to y, in front of node `at`; 0: failed. */
static zc_vid row_of(selecting *p, zc_nid at, zc_vid v, const zc_type *y, const selection *s)
{
    zc_graph *g = p->x.g;
    const zc_vid in[] = {v, s->index};
    zc_nid made = zc_graph_node(g, NULL, ZC_OP_Gather, zc_node_at(g, at)->name, 2, in, 1);
    if (!made || !zc_graph_inherit(g, made, at)) return 0;
    ZC_NODE_SET(g, Gather, made, axis, s->axis - (y->rank - zc_val(g, v)->type.rank));
    zc_vid out = zc_graph_out(g, made, 0, zc_val(g, v)->name);
    return out && put_before(p, made, at) ? out : 0;
}

/* Axes counted from the end stay true when an axis in front of them goes. */
static bool copy_attrs(zc_graph *g, zc_nid made, const zc_node *n, int rank)
{
    void *attrs = zc_graph_attrs_dup(g, n->op, n->attrs);
    if (!attrs) return false;
    zc_node_at(g, made)->attrs = attrs;
    int64_t *axis = n->op == ZC_OP_LayerNormalization
                        ? &((zc_attrs_LayerNormalization *)attrs)->axis
                    : n->op == ZC_OP_RMSNormalization ? &((zc_attrs_RMSNormalization *)attrs)->axis
                                                      : NULL;
    if (axis && *axis >= 0) *axis -= rank;
    return true;
}

/* The users of `of` read v instead, and are gone. */
static bool replace_selections(selecting *p, zc_vid of, zc_vid v)
{
    zc_index *x = &p->x;
    for (uint32_t e = x->users.data[of]; e; e = x->edges.data[e].next) {
        if (!zc_use_live(x, e, of)) continue;
        zc_nid user = x->edges.data[e].node;
        if (!zc_index_replace(x, zc_node_at(x->g, user)->out[0], v)) return false;
        zc_graph_forward(x->g, zc_node_at(x->g, user)->out[0], v);
        zc_index_remove(x, user);
    }
    return true;
}

static bool select_rows(selecting *p, zc_nid id, const selection *s)
{
    zc_graph *g = p->x.g;
    const zc_node *n = zc_node_at(g, id);
    const zc_type y = zc_val(g, n->out[0])->type;
    zc_nid made = zc_graph_node(g, NULL, n->op, n->name, n->nin, n->in, n->nout);
    if (!made || !zc_graph_inherit(g, made, id) || !copy_attrs(g, made, zc_node_at(g, id), y.rank))
        return false;
    for (int i = 0; i < zc_node_at(g, id)->nin; i++) {
        zc_vid v = zc_node_at(g, id)->in[i];
        if (!v || taken_of(g, zc_node_at(g, id), i, &y, s->axis) != ROW) continue;
        zc_vid row = row_of(p, id, v, &y, s);
        if (!row) return false;
        zc_node_at(g, made)->in[i] = row;
    }
    for (int i = 0; i < zc_node_at(g, id)->nout; i++) {
        zc_vid v = zc_node_at(g, id)->out[i];
        if (v && (i == 0 || p->x.uses.data[v]) && !zc_graph_out(g, made, i, zc_val(g, v)->name))
            return false;
    }
    if (!put_before(p, made, id)) return false;
    for (int i = 0; i < zc_node_at(g, id)->nout; i++) {
        zc_vid v = zc_node_at(g, id)->out[i];
        if (v && p->x.uses.data[v] && !replace_selections(p, v, zc_node_at(g, made)->out[i]))
            return false;
    }
    zc_index_remove(&p->x, id);
    ++*p->changes;
    return true;
}

/* ---- rows that are there ---- */

/* Is what is selected of v its first bytes? */
static bool is_first(const zc_graph *g, zc_vid v, const selection *s)
{
    const zc_type *t = &zc_val(g, v)->type;
    bool first = s->row == 0 && zc_dtype_bits(t->dtype) >= 8;
    for (int d = 0; d < s->axis; d++) first = first && zc_dim_is(t->dims[d], 1);
    return first;
}

/* Then it needs no copy. */
static bool view_row(selecting *p, zc_nid id, const selection *s)
{
    zc_graph *g = p->x.g;
    const zc_node *n = zc_node_at(g, id);
    zc_nid made = zc_graph_node(g, NULL, ZC_OP_First, n->name, 1, n->in, 1);
    if (!made || !zc_graph_inherit(g, made, id)) return false;
    ZC_NODE_SET(g, First, made, axis, s->axis);
    if (s->drops) ZC_NODE_SET(g, First, made, drops, 1);
    zc_node_at(g, made)->out[0] = zc_node_at(g, id)->out[0];
    ++*p->changes;
    return zc_index_grow(&p->x) && zc_index_take_place(&p->x, made, id);
}

static bool view_rows(selecting *p, uint32_t block)
{
    zc_nid before;
    for (zc_nid n = p->x.blocks.data[block].tail; n; n = before) {
        selection s;
        const zc_node *node = zc_node_at(p->x.g, n);
        before = zc_index_place(&p->x, n)->prev;
        if (node->op == ZC_OP_Gather && read_selection(p->x.g, n, node->in[0], &s) &&
            is_first(p->x.g, node->in[0], &s) && !view_row(p, n, &s))
            return false;
    }
    return true;
}

/* Users come before what they use. */
static bool visit_block(selecting *p, uint32_t block)
{
    zc_nid before;
    for (zc_nid n = p->x.blocks.data[block].tail; n; n = before) {
        selection s;
        before = zc_index_place(&p->x, n)->prev;
        if (!selection_of(p, zc_node_at(p->x.g, n), &s) || !fits(p->x.g, zc_node_at(p->x.g, n), &s))
            continue;
        if (!select_rows(p, n, &s)) return false;
        before = zc_index_place(&p->x, n)->prev; /* of the rows that were put in front of it */
    }
    return true;
}

zc_status zc_pass_opt_select(zc_pass *p)
{
    selecting s = {.changes = &p->changes, .diag = p->diag};
    bool ok = zc_index_init(&s.x, p->g);
    for (uint32_t b = 0; ok && b < s.x.blocks.len; b++) ok = visit_block(&s, b);
    for (uint32_t b = 0; ok && b < s.x.blocks.len; b++) ok = view_rows(&s, b);
    ok = ok && zc_index_finish(&s.x);
    zc_index_fini(&s.x);
    if (ok || s.status != ZC_OK) return s.status;
    return zc_fail_nomem(p->diag, "selected rows", 0);
}
