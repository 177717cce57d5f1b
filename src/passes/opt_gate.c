/* Two products of one operand, one of which gates the other, in one step on Hopper: with as many
 * columns at once, tiles fill more of the multiprocessors, and the first result is not stored.
 * Products of many rows are GatedLinear, of few rows by codes PackedLinear with both matrices. */
#include <string.h>

#include "ir/index.h"
#include "op/activation.h"
#include "op/packed.h"
#include "passes/passes.h"
#include "passes/query.h"

enum { PIECE = 8 /* elements that the copy engine moves at once */ };

typedef struct gating {
    zc_index x;
    size_t *changes;
} gating;

typedef struct gate { /* activation(first) * second */
    zc_nid activation, first, second;
} gate;

typedef struct activation { /* as attributes say it */
    const char *name;
    zc_floats params;
} activation;

/* ---- what fits ---- */

/* The node that makes v, if node `at` of its block alone reads that; 0: none. */
static zc_nid maker(const gating *p, zc_nid at, zc_vid v)
{
    zc_nid n = zc_producer(p->x.g, v);
    bool own = n && p->x.uses.data[v] == 1 &&
               zc_index_place(&p->x, n)->block == zc_index_place(&p->x, at)->block;
    return own && !zc_op_epilogue(zc_op_get(zc_node_at(p->x.g, n)->op),
                                  zc_node_at(p->x.g, n)->attrs)
               ? n
               : 0;
}

/* A product of many rows and a constant, as the copy engine can move them. */
static bool is_product(const zc_graph *g, zc_nid id)
{
    const zc_node *n = zc_node_at(g, id);
    if (n->op != ZC_OP_Linear || ((const zc_attrs_Linear *)n->attrs)->alpha != 1) return false;
    const zc_type *x = &zc_val(g, n->in[ZC_IN_Linear_x])->type;
    const zc_tensor *w = zc_val(g, n->in[ZC_IN_Linear_w])->data;
    return w && zc_family_makes(ZC_FAMILY_gemm_sm90, x->dtype) &&
           zc_certain_rows(x) >= ZC_MANY_ROWS && w->dims[0] > 0 && w->dims[0] % PIECE == 0 &&
           w->dims[1] > 0 && w->dims[1] % PIECE == 0;
}

/* Have both the same operand, sides, and biases or none? */
static bool belong_together(const zc_graph *g, const zc_node *a, const zc_node *b)
{
    const zc_vid bias[] = {zc_node_in(a, ZC_IN_Linear_bias), zc_node_in(b, ZC_IN_Linear_bias)};
    return a->in[ZC_IN_Linear_x] == b->in[ZC_IN_Linear_x] && !bias[0] == !bias[1] &&
           zc_same_type(&zc_val(g, a->out[0])->type, &zc_val(g, b->out[0])->type);
}

/* The same of products by codes; neither has a bias. */
static bool packed_together(const zc_graph *g, const zc_node *a, const zc_node *b)
{
    const zc_attrs_PackedLinear *of = a->attrs, *other = b->attrs;
    for (int i = ZC_IN_PackedLinear_w; i <= ZC_IN_PackedLinear_zero; i++) {
        const zc_vid v = zc_node_in(a, i), w = zc_node_in(b, i);
        if (!v != !w || (v && (!zc_val(g, v)->data || !zc_val(g, w)->data ||
                               !zc_same_type(&zc_val(g, v)->type, &zc_val(g, w)->type))))
            return false;
    }
    return a->in[ZC_IN_PackedLinear_x] == b->in[ZC_IN_PackedLinear_x] &&
           zc_node_in(a, ZC_IN_PackedLinear_gain) == zc_node_in(b, ZC_IN_PackedLinear_gain) &&
           !zc_node_in(a, ZC_IN_PackedLinear_bias) && !zc_node_in(b, ZC_IN_PackedLinear_bias) &&
           of->epsilon == other->epsilon && !*of->activation && !*other->activation;
}

static bool are_products(const zc_graph *g, zc_nid first, zc_nid second)
{
    if (!first || !second) return false;
    const zc_node *a = zc_node_at(g, first), *b = zc_node_at(g, second);
    if (a->op == ZC_OP_PackedLinear && b->op == ZC_OP_PackedLinear) return packed_together(g, a, b);
    return is_product(g, first) && is_product(g, second) && belong_together(g, a, b);
}

/* Node `at` multiplies v, an activated product, by w. */
static bool read_gate(const gating *p, zc_nid at, zc_vid v, zc_vid w, gate *out)
{
    const zc_graph *g = p->x.g;
    *out = (gate){.activation = maker(p, at, v), .second = maker(p, at, w)};
    const zc_node *n = out->activation ? zc_node_at(g, out->activation) : NULL;
    if (!n || n->nin != 1 || zc_activation_find(zc_op_get(n->op)->name) == ZC_OP_NONE) return false;
    out->first = maker(p, at, n->in[0]);
    return are_products(g, out->first, out->second);
}

/* ---- the node ---- */

static zc_nid make_gated(zc_graph *g, zc_nid at, const gate *of, const activation *by)
{
    zc_vid w = zc_linear_matrix(g, of->first, true), v = zc_linear_matrix(g, of->second, true);
    if (!w || !v) return 0;
    const zc_node *first = zc_node_at(g, of->first), *second = zc_node_at(g, of->second);
    const zc_vid inputs[] = {[ZC_IN_GatedLinear_x] = first->in[ZC_IN_Linear_x],
                             [ZC_IN_GatedLinear_w] = w,
                             [ZC_IN_GatedLinear_v] = v,
                             [ZC_IN_GatedLinear_bias] = zc_node_in(first, ZC_IN_Linear_bias),
                             [ZC_IN_GatedLinear_gate_bias] = zc_node_in(second, ZC_IN_Linear_bias)};
    int nin = inputs[ZC_IN_GatedLinear_bias] ? 5 : 3;
    zc_nid made =
        zc_graph_node(g, NULL, ZC_OP_GatedLinear, zc_node_at(g, at)->name, nin, inputs, 1);
    if (!made) return 0;
    ZC_NODE_SET(g, GatedLinear, made, activation, by->name);
    if (by->params.n) ZC_NODE_SET(g, GatedLinear, made, activation_params, by->params);
    return made;
}

/* Constants of both products that lie by 16 columns (codes, scales, zero points; 0 without), eight
 * of one and eight of the other in turn. false: no memory. */
static bool interleave(zc_graph *g, const zc_node *first, const zc_node *second, int input,
                       zc_vid *out)
{
    const zc_vid v = zc_node_in(first, input);
    *out = 0;
    if (!v) return true;
    const zc_tensor *const of[] = {zc_val(g, v)->data, zc_val(g, second->in[input])->data};
    zc_tensor t = *of[0];
    size_t bytes;
    if (!zc_mul_i64(t.dims[0], 2, &t.dims[0]) || !zc_tensor_bytes(&t, &bytes) ||
        !(t.data = zc_calloc(bytes, 1)))
        return false;
    const size_t lines = (size_t)(t.dims[0] * t.dims[1]) * 2; /* of eight columns */
    const size_t line = bytes / lines, blocks = (size_t)t.dims[1];
    for (size_t i = 0; i < lines; i++) {
        const size_t half = i % 2, block = i / 2 % blocks, group = i / 2 / blocks;
        const size_t from = (group / 2 * blocks + block) * 2 + group % 2;
        memcpy((char *)t.data + i * line, (const char *)of[half]->data + from * line, line);
    }
    *out = zc_graph_const(g, zc_val(g, v)->name, &t, true);
    return *out != 0;
}

static zc_nid make_packed(zc_graph *g, zc_nid at, const gate *of, const activation *by)
{
    const zc_node *first = zc_node_at(g, of->first), *second = zc_node_at(g, of->second);
    zc_vid in[] = {[ZC_IN_PackedLinear_x] = first->in[ZC_IN_PackedLinear_x],
                   [ZC_IN_PackedLinear_gain] = zc_node_in(first, ZC_IN_PackedLinear_gain)};
    for (int i = ZC_IN_PackedLinear_w; i <= ZC_IN_PackedLinear_zero; i++)
        if (!interleave(g, first, second, i, &in[i])) return 0;
    const float epsilon = ((const zc_attrs_PackedLinear *)first->attrs)->epsilon;
    zc_nid made = zc_graph_node(g, NULL, ZC_OP_PackedLinear, zc_node_at(g, at)->name,
                                (int)ZC_COUNTOF(in), in, 1);
    if (!made) return 0;
    ZC_NODE_SET(g, PackedLinear, made, epsilon, epsilon);
    ZC_NODE_SET(g, PackedLinear, made, activation, by->name);
    if (by->params.n) ZC_NODE_SET(g, PackedLinear, made, activation_params, by->params);
    return made;
}

static bool join(gating *p, zc_nid at, const gate *of)
{
    zc_graph *g = p->x.g;
    const zc_nid parts[] = {of->first, of->activation, of->second};
    const bool packed = zc_node_at(g, of->first)->op == ZC_OP_PackedLinear;
    activation by;
    if (!zc_activation_of(g, of->activation, &by.name, &by.params)) return false;
    zc_nid made = packed ? make_packed(g, at, of, &by) : make_gated(g, at, of, &by);
    if (!made) return false;
    for (size_t i = 0; i < ZC_COUNTOF(parts); i++)
        if (!zc_graph_inherit(g, made, parts[i])) return false;
    if (!zc_graph_inherit(g, made, at)) return false;
    zc_node_at(g, made)->out[0] = zc_node_at(g, at)->out[0];
    if (!zc_index_take_place(&p->x, made, at)) return false;
    for (size_t i = 0; i < ZC_COUNTOF(parts); i++) zc_index_remove(&p->x, parts[i]);
    ++*p->changes;
    return true;
}

static bool visit(zc_graph *g, zc_nid id, void *user)
{
    gating *p = user;
    for (int side = 0; side < 2; side++) {
        const zc_node *n = zc_node_at(g, id);
        gate of;
        if (n->op == ZC_OP_Mul && read_gate(p, id, n->in[side], n->in[1 - side], &of))
            return join(p, id, &of);
    }
    return true;
}

zc_status zc_pass_opt_gate(zc_pass *p)
{
    gating gates = {.changes = &p->changes};
    if (!zc_pass_has(p, ZC_FAMILY_gemm_sm90)) return ZC_OK;
    if (!zc_index_init(&gates.x, p->g)) return zc_fail_nomem(p->diag, "uses", 0);
    zc_status status = zc_each_node(p->g, &p->g->top, visit, &gates, p->diag);
    zc_index_fini(&gates.x);
    return status;
}
