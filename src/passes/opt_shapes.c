/* Shape arithmetic out of the way: views say their shape by constants, joined where they follow one
 * another, and what asks for the shape of a value in between asks the graph's inputs instead. What
 * stays uses values for their elements, so that rules need not look for anything else. */
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"
#include "passes/query.h"

typedef struct shapes_pass {
    size_t *changes;
    zc_diag *diag;
    ZC_VEC(zc_nid) parts; /* single dimensions of inputs, for the beginning of the graph */
} shapes_pass;

static bool is_view(zc_op op)
{
    return op == ZC_OP_Reshape || op == ZC_OP_Squeeze || op == ZC_OP_Unsqueeze ||
           op == ZC_OP_Flatten;
}

static const zc_type *type_of(const zc_graph *g, zc_vid v)
{
    return &zc_val(g, v)->type;
}

/* ---- views ---- */

/* What Reshape needs to make `to` of `from`: numbers, 0 for a dimension that stays in its place,
 * and -1 for one other, if all the rest is certainly not 0. */
static bool target_of(const zc_graph *g, const zc_type *from, const zc_type *to, int64_t *target)
{
    bool has_rest = false, may_be_empty = false;
    if (from->rank < 0 || to->rank < 0) return false;
    for (int i = 0; i < to->rank; i++) {
        zc_dim d = to->dims[i];
        bool is_const = zc_dim_is_const(d);
        bool stays = !is_const && i < from->rank && zc_dim_eq(d, from->dims[i]);
        bool is_rest = !is_const && !stays;
        /* What values decide is checked against the element count where it is used. */
        if ((is_const && d.k < 1) || (is_rest && (has_rest || zc_dim_dynamic(&g->dims, d))))
            return false;
        has_rest |= is_rest;
        may_be_empty |= stays && !zc_dim_known_ge(&g->dims, d, 1);
        target[i] = is_const ? d.k : stays ? 0 : -1;
    }
    return !has_rest || !may_be_empty;
}

static bool has_target(const zc_graph *g, const zc_node *n, const int64_t *target, int rank)
{
    const zc_tensor *t =
        n->op == ZC_OP_Reshape ? zc_val(g, n->in[ZC_IN_Reshape_shape])->data : NULL;
    if (!t || !t->data || ((const zc_attrs_Reshape *)n->attrs)->allowzero) return false;
    for (int i = 0; i < rank; i++)
        if (zc_load_i64(t->dtype, t->data, i) != target[i]) return false;
    return true;
}

/* The value that a chain of views begins with, as far as one Reshape does the same. */
static zc_vid source_of(const zc_graph *g, zc_vid v, const zc_type *to, int64_t *target)
{
    int64_t longer[ZC_MAX_RANK];
    for (;;) {
        zc_nid p = zc_producer(g, v);
        if (!p || !is_view(zc_node_at(g, p)->op)) return v;
        zc_vid from = zc_node_at(g, p)->in[0];
        if (!target_of(g, type_of(g, from), to, longer)) return v;
        memcpy(target, longer, sizeof longer);
        v = from;
    }
}

static bool simplify_view(zc_graph *g, zc_nid n, shapes_pass *p)
{
    zc_node *node = zc_node_at(g, n);
    int64_t target[ZC_MAX_RANK];
    zc_type to = *type_of(g, node->out[0]);
    if (zc_val(g, node->out[0])->vals.n >= 0) return true;
    if (!target_of(g, type_of(g, node->in[0]), &to, target)) return true;
    zc_vid from = source_of(g, node->in[0], &to, target);
    if (from == node->in[0] && has_target(g, node, target, to.rank)) return true;
    zc_vid shape = zc_graph_const_i64(g, NULL, target, to.rank, 1);
    ++*p->changes;
    return shape && zc_graph_become(g, n, ZC_OP_Reshape, 2, (zc_vid[]){from, shape});
}

/* ---- shapes ---- */

/* The input whose axis *axis has that length; 0: none. */
static zc_vid input_with(const zc_graph *g, zc_dim d, int *axis)
{
    for (size_t i = 0; i < g->top.params.len; i++) {
        const zc_type *t = type_of(g, g->top.params.data[i]);
        for (*axis = 0; *axis < t->rank; ++*axis)
            if (zc_dim_eq(t->dims[*axis], d)) return g->top.params.data[i];
    }
    return 0;
}

static bool is_part_of(const zc_graph *g, zc_nid n, zc_vid input, int axis)
{
    const zc_node *node = zc_node_at(g, n);
    return node->in[0] == input && ((const zc_attrs_Shape *)node->attrs)->start == axis;
}

/* The dimension as a value [1]. 0: no memory. */
static zc_vid part_of(zc_graph *g, shapes_pass *p, zc_dim d)
{
    int axis;
    if (zc_dim_is_const(d)) return zc_graph_const_i64(g, NULL, &d.k, 1, 1);
    zc_vid input = input_with(g, d, &axis);
    for (size_t i = 0; i < p->parts.len; i++)
        if (is_part_of(g, p->parts.data[i], input, axis))
            return zc_node_at(g, p->parts.data[i])->out[0];
    zc_nid n = zc_graph_node(g, NULL, ZC_OP_Shape, "shape", 1, &input, 1);
    zc_vid out = n ? zc_graph_out(g, n, 0, NULL) : 0;
    if (!out || !ZC_VEC_PUSH(&p->parts, n)) return 0;
    ZC_NODE_SET(g, Shape, n, start, axis);
    ZC_NODE_SET(g, Shape, n, end, axis + 1);
    return zc_graph_infer(g, n, p->diag) == ZC_OK ? out : 0;
}

static bool is_input(const zc_graph *g, zc_vid v)
{
    for (size_t i = 0; i < g->top.params.len; i++)
        if (g->top.params.data[i] == v) return true;
    return false;
}

/* Shape of a value in between: its dimensions one after the other, if inputs have them all. */
static bool simplify_shape(zc_graph *g, zc_nid n, shapes_pass *p)
{
    zc_node *node = zc_node_at(g, n);
    zc_vals dims = zc_val(g, node->out[0])->vals;
    int axis;
    if (dims.n < 1 || is_input(g, node->in[0])) return true;
    for (int i = 0; i < dims.n; i++)
        if (!zc_dim_is_const(dims.v[i]) && !input_with(g, dims.v[i], &axis)) return true;
    zc_vid in[ZC_MAX_RANK];
    for (int i = 0; i < dims.n; i++)
        if (!(in[i] = part_of(g, p, dims.v[i]))) return false;
    if (!zc_graph_become(g, n, ZC_OP_Concat, dims.n, in)) return false;
    ZC_NODE_SET(g, Concat, n, axis, 0);
    ++*p->changes;
    return true;
}

/* ConstantOfShape is one number, expanded. */
static bool simplify_constant(zc_graph *g, zc_nid n, shapes_pass *p)
{
    zc_node *node = zc_node_at(g, n);
    const zc_attrs_ConstantOfShape *a = node->attrs;
    uint64_t zero[2] = {0};
    zc_tensor t = {.dtype = ZC_F32, .data = zero};
    if (a->value && a->value->data) t = *a->value;
    if (zc_tensor_numel(&t) != 1) return true;
    t.rank = 0;
    zc_vid number = zc_graph_const(g, NULL, &t, false);
    ++*p->changes;
    return number &&
           zc_graph_become(g, n, ZC_OP_Expand, 2, (zc_vid[]){number, zc_node_at(g, n)->in[0]});
}

static bool visit(zc_graph *g, zc_nid n, void *user)
{
    const zc_node *node = zc_node_at(g, n);
    if (node->nin < 1 || !node->in[0] || !node->out[0]) return true;
    if (node->op == ZC_OP_ConstantOfShape) return simplify_constant(g, n, user);
    if (node->op == ZC_OP_Shape) return simplify_shape(g, n, user);
    return !is_view(node->op) || simplify_view(g, n, user);
}

/* The parts read inputs alone: they come first. */
static bool put_first(zc_graph *g, const shapes_pass *p)
{
    size_t old = g->top.nodes.len;
    for (size_t i = 0; i < p->parts.len; i++)
        if (!ZC_VEC_PUSH(&g->top.nodes, p->parts.data[i])) return false;
    memmove(g->top.nodes.data + p->parts.len, g->top.nodes.data, old * sizeof *g->top.nodes.data);
    if (p->parts.len)
        memcpy(g->top.nodes.data, p->parts.data, p->parts.len * sizeof *p->parts.data);
    return true;
}

zc_status zc_pass_opt_shapes(zc_pass *p)
{
    shapes_pass q = {.changes = &p->changes, .diag = p->diag};
    zc_status status = zc_each_node(p->g, &p->g->top, visit, &q, p->diag);
    if (status == ZC_OK && !put_first(p->g, &q))
        status = zc_fail_nomem(p->diag, "shapes", q.parts.len);
    ZC_VEC_FINI(&q.parts);
    return status == ZC_OK ? zc_pass_opt_dce(p) : status;
}
