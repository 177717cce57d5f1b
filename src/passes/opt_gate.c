/* Two products of one operand, or both halves of one product, one of which gates the other, in one
 * step on Hopper: with as many columns at once, tiles fill more of the multiprocessors, and the
 * first result is not stored.
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
    zc_nid split; /* of the one product that is both first and second; 0: there are two */
    int half;     /* of that one, which is activated */
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
           of->epsilon == other->epsilon && of->alpha == other->alpha && !*of->activation &&
           !*other->activation;
}

static bool are_products(const zc_graph *g, zc_nid first, zc_nid second)
{
    if (!first || !second) return false;
    const zc_node *a = zc_node_at(g, first), *b = zc_node_at(g, second);
    if (a->op == ZC_OP_PackedLinear && b->op == ZC_OP_PackedLinear) return packed_together(g, a, b);
    return is_product(g, first) && is_product(g, second) && belong_together(g, a, b);
}

/* Does the node cut its operand's columns in two halves? */
static bool halves_columns(const zc_graph *g, const zc_node *n)
{
    if (n->op != ZC_OP_Split || n->nout != 2) return false;
    const zc_type *x = &zc_val(g, n->in[ZC_IN_Split_x])->type;
    const int64_t axis = ((const zc_attrs_Split *)n->attrs)->axis;
    return axis == (axis < 0 ? -1 : x->rank - 1) &&
           zc_same_type(&zc_val(g, n->out[0])->type, &zc_val(g, n->out[1])->type);
}

/* Are columns of the product's constants halved as a whole: by 16 of codes, by 8 of floats? */
static bool halves_constants(const zc_graph *g, const zc_node *n)
{
    if (n->op == ZC_OP_PackedLinear)
        return zc_val(g, n->in[ZC_IN_PackedLinear_w])->data->dims[0] % 2 == 0;
    const zc_vid bias = zc_node_in(n, ZC_IN_Linear_bias);
    const zc_type *y = &zc_val(g, n->out[0])->type;
    return y->dims[y->rank - 1].k % (2 * PIECE) == 0 && (!bias || zc_val(g, bias)->data);
}

/* The products that v and w are, or are the halves of. */
static bool read_products(const gating *p, zc_nid at, zc_vid v, zc_vid w, gate *out)
{
    const zc_graph *g = p->x.g;
    out->first = maker(p, at, v);
    out->second = maker(p, at, w);
    if (!out->first || out->first != out->second) return are_products(g, out->first, out->second);
    const zc_node *split = zc_node_at(g, out->first);
    if (!halves_columns(g, split)) return false;
    out->split = out->first;
    out->half = split->out[1] == v;
    out->first = out->second = maker(p, at, split->in[ZC_IN_Split_x]);
    return are_products(g, out->first, out->second) &&
           halves_constants(g, zc_node_at(g, out->first));
}

/* Node `at` multiplies v, an activated product, by w. */
static bool read_gate(const gating *p, zc_nid at, zc_vid v, zc_vid w, gate *out)
{
    const zc_graph *g = p->x.g;
    *out = (gate){.activation = maker(p, at, v)};
    const zc_node *n = out->activation ? zc_node_at(g, out->activation) : NULL;
    if (!n || n->nin != 1 || zc_activation_find(zc_op_get(n->op)->name) == ZC_OP_NONE) return false;
    return read_products(p, at, n->in[0], w, out);
}

/* ---- the node ---- */

/* What the first (0) or the second (1) product has of a constant whose first axis is columns. */
static zc_tensor part_of(const gate *of, int which, const zc_tensor *all)
{
    zc_tensor t = *all;
    size_t bytes;
    if (!of->split) return t;
    t.dims[0] /= 2;
    if (zc_tensor_bytes(&t, &bytes) && t.data && which != of->half) t.data = (char *)t.data + bytes;
    return t;
}

/* The same as a constant. false: no memory. */
static bool take_part(zc_graph *g, const gate *of, int which, zc_vid v, zc_vid *out)
{
    *out = v;
    if (!v || !of->split) return true;
    const zc_tensor t = part_of(of, which, zc_val(g, v)->data);
    *out = zc_graph_const(g, zc_val(g, v)->name, &t, false);
    return *out != 0;
}

static zc_nid make_gated(zc_graph *g, zc_nid at, const gate *of, const activation *by)
{
    const zc_vid w = zc_linear_matrix(g, of->first, true);
    const zc_vid v = of->split ? w : zc_linear_matrix(g, of->second, true);
    if (!w || !v) return 0;
    const zc_node *first = zc_node_at(g, of->first), *second = zc_node_at(g, of->second);
    const zc_vid bias = zc_node_in(first, ZC_IN_Linear_bias);
    const zc_vid gate_bias = zc_node_in(second, ZC_IN_Linear_bias);
    zc_vid inputs[] = {
        [ZC_IN_GatedLinear_x] = first->in[ZC_IN_Linear_x], [ZC_IN_GatedLinear_gate_bias] = 0};
    if (!take_part(g, of, 0, w, &inputs[ZC_IN_GatedLinear_w]) ||
        !take_part(g, of, 1, v, &inputs[ZC_IN_GatedLinear_v]) ||
        !take_part(g, of, 0, bias, &inputs[ZC_IN_GatedLinear_bias]) ||
        !take_part(g, of, 1, gate_bias, &inputs[ZC_IN_GatedLinear_gate_bias]))
        return 0;
    int nin = bias ? 5 : 3;
    zc_nid made =
        zc_graph_node(g, NULL, ZC_OP_GatedLinear, zc_node_at(g, at)->name, nin, inputs, 1);
    if (!made) return 0;
    ZC_NODE_SET(g, GatedLinear, made, activation, by->name);
    if (by->params.n) ZC_NODE_SET(g, GatedLinear, made, activation_params, by->params);
    return made;
}

/* Constants of both products that lie by 16 columns (codes, scales, zero points; 0 without), eight
 * of one and eight of the other in turn. false: no memory. */
static bool interleave(zc_graph *g, const gate *of, int input, zc_vid *out)
{
    const zc_vid v = zc_node_in(zc_node_at(g, of->first), input);
    *out = 0;
    if (!v) return true;
    const zc_vid w = zc_node_at(g, of->second)->in[input];
    const zc_tensor from[] = {part_of(of, 0, zc_val(g, v)->data),
                              part_of(of, 1, zc_val(g, w)->data)};
    zc_tensor t = from[0];
    size_t bytes;
    if (!zc_mul_i64(t.dims[0], 2, &t.dims[0]) || !zc_tensor_bytes(&t, &bytes) ||
        !(t.data = zc_calloc(bytes, 1)))
        return false;
    const size_t lines = (size_t)(t.dims[0] * t.dims[1]) * 2; /* of eight columns */
    const size_t line = bytes / lines, blocks = (size_t)t.dims[1];
    for (size_t i = 0; i < lines; i++) {
        const size_t half = i % 2, block = i / 2 % blocks, group = i / 2 / blocks;
        const size_t place = (group / 2 * blocks + block) * 2 + group % 2;
        memcpy((char *)t.data + i * line, (const char *)from[half].data + place * line, line);
    }
    *out = zc_graph_const(g, zc_val(g, v)->name, &t, true);
    return *out != 0;
}

static zc_nid make_packed(zc_graph *g, zc_nid at, const gate *of, const activation *by)
{
    const zc_node *first = zc_node_at(g, of->first);
    zc_vid in[] = {[ZC_IN_PackedLinear_x] = first->in[ZC_IN_PackedLinear_x],
                   [ZC_IN_PackedLinear_gain] = zc_node_in(first, ZC_IN_PackedLinear_gain)};
    for (int i = ZC_IN_PackedLinear_w; i <= ZC_IN_PackedLinear_zero; i++)
        if (!interleave(g, of, i, &in[i])) return 0;
    const zc_attrs_PackedLinear *attrs = first->attrs;
    zc_nid made = zc_graph_node(g, NULL, ZC_OP_PackedLinear, zc_node_at(g, at)->name,
                                (int)ZC_COUNTOF(in), in, 1);
    if (!made) return 0;
    ZC_NODE_SET(g, PackedLinear, made, epsilon, attrs->epsilon);
    zc_set_packed_alpha(g, made, attrs->alpha);
    ZC_NODE_SET(g, PackedLinear, made, activation, by->name);
    if (by->params.n) ZC_NODE_SET(g, PackedLinear, made, activation_params, by->params);
    return made;
}

static bool join(gating *p, zc_nid at, const gate *of)
{
    zc_graph *g = p->x.g;
    const zc_nid parts[] = {of->first, of->activation, of->split ? of->split : of->second};
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
