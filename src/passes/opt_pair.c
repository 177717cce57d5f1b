/* The sum of two convolutions in one, on Hopper: that of a shortcut, whose windows are points,
 * becomes a second pair of operands of the last one of its block (ConvPair). */
#include <string.h>

#include "ir/index.h"
#include "passes/passes.h"
#include "passes/query.h"

typedef struct pairing {
    zc_index x;
    size_t *changes;
} pairing;

/* A plain convolution of 16 bits whose result only node `at` reads; NULL: v is made otherwise. */
static const zc_node *conv_of(const pairing *p, zc_nid at, zc_vid v)
{
    const zc_graph *g = p->x.g;
    zc_nid id = zc_producer(g, v);
    const zc_node *n = id ? zc_node_at(g, id) : NULL;
    if (!n || n->op != ZC_OP_ConvNhwc || p->x.uses.data[v] != 1 ||
        zc_index_place(&p->x, id)->block != zc_index_place(&p->x, at)->block)
        return NULL;
    const zc_attrs_ConvNhwc *a = n->attrs;
    const zc_tensor *w = zc_val(g, n->in[ZC_IN_ConvNhwc_w])->data;
    bool plain = a->taps_first && a->group == 1 && !a->phases.n && !*a->activation &&
                 !zc_node_in(n, ZC_IN_ConvNhwc_residual) && !zc_op_epilogue(zc_op_get(n->op), a);
    return plain && w && w->rank == 4 && w->dims[0] % 8 == 0 && w->dims[3] % 8 == 0 ? n : NULL;
}

/* Are its windows points, without padding? */
static bool is_of_points(const zc_graph *g, const zc_node *n)
{
    const zc_attrs_ConvNhwc *a = n->attrs;
    const zc_tensor *w = zc_val(g, n->in[ZC_IN_ConvNhwc_w])->data;
    bool plain = w->dims[1] == 1 && w->dims[2] == 1 && strcmp(a->auto_pad, "NOTSET") == 0;
    for (int i = 0; i < a->pads.n; i++) plain = plain && a->pads.v[i] == 0;
    return plain;
}

/* The sum of two constants of 16 bits, of which one or both may be absent; false: no memory, or
 * *fits is false. */
static bool add_biases(zc_graph *g, zc_vid a, zc_vid b, zc_vid *out, bool *fits)
{
    *out = a ? a : b;
    *fits = true;
    if (!a || !b) return true;
    const zc_tensor *x = zc_val(g, a)->data, *y = zc_val(g, b)->data;
    *fits = x && y && x->dtype == y->dtype && zc_tensor_numel(x) == zc_tensor_numel(y);
    if (!*fits) return true;
    if (!x->data || !y->data) {
        *out = zc_graph_hollow(g, "bias", &zc_val(g, a)->type);
        return *out != 0;
    }
    int64_t n = zc_tensor_numel(x);
    zc_tensor sum = *x;
    if (!(sum.data = zc_calloc((size_t)n, sizeof(uint16_t)))) return false;
    for (int64_t i = 0; i < n; i++)
        zc_store_f64(sum.dtype, sum.data, i,
                     zc_load_f64(x->dtype, x->data, i) + zc_load_f64(y->dtype, y->data, i));
    *out = zc_graph_const(g, "bias", &sum, true);
    return *out != 0;
}

static bool join(pairing *p, zc_nid at, const zc_node *first, const zc_node *second)
{
    zc_graph *g = p->x.g;
    zc_nid ids[] = {zc_producer(g, first->out[0]), zc_producer(g, second->out[0])};
    zc_vid bias;
    bool fits;
    if (!add_biases(g, zc_node_in(first, ZC_IN_ConvNhwc_bias),
                    zc_node_in(second, ZC_IN_ConvNhwc_bias), &bias, &fits))
        return false;
    if (!fits) return true;
    const zc_vid inputs[] = {[ZC_IN_ConvPair_x] = first->in[ZC_IN_ConvNhwc_x],
                             [ZC_IN_ConvPair_w] = first->in[ZC_IN_ConvNhwc_w],
                             [ZC_IN_ConvPair_z] = second->in[ZC_IN_ConvNhwc_x],
                             [ZC_IN_ConvPair_v] = second->in[ZC_IN_ConvNhwc_w],
                             [ZC_IN_ConvPair_bias] = bias};
    zc_nid made = zc_graph_node(g, NULL, ZC_OP_ConvPair, first->name, bias ? 5 : 4, inputs, 1);
    if (!made || !zc_graph_inherit(g, made, ids[0]) || !zc_graph_inherit(g, made, ids[1]) ||
        !zc_graph_inherit(g, made, at))
        return false;
    zc_attrs_take(zc_op_get(ZC_OP_ConvPair), zc_node_at(g, made)->attrs, zc_op_get(ZC_OP_ConvNhwc),
                  zc_node_at(g, ids[0])->attrs);
    zc_ints strides = ((const zc_attrs_ConvNhwc *)zc_node_at(g, ids[1])->attrs)->strides;
    if (strides.n) ZC_NODE_SET(g, ConvPair, made, second_strides, strides);
    zc_node_at(g, made)->out[0] = zc_node_at(g, at)->out[0];
    if (!zc_index_grow(&p->x) || !zc_index_take_place(&p->x, made, at)) return false;
    for (size_t i = 0; i < ZC_COUNTOF(ids); i++) zc_index_remove(&p->x, ids[i]);
    ++*p->changes;
    return true;
}

static bool visit(zc_graph *g, zc_nid id, void *user)
{
    pairing *p = user;
    const zc_node *n = zc_node_at(g, id);
    if (n->op != ZC_OP_Add || n->in[0] == n->in[1]) return true;
    const zc_node *a = conv_of(p, id, n->in[0]), *b = conv_of(p, id, n->in[1]);
    if (!a || !b || !zc_same_type(&zc_val(g, a->out[0])->type, &zc_val(g, b->out[0])->type))
        return true;
    if (is_of_points(g, b)) return join(p, id, a, b);
    return !is_of_points(g, a) || join(p, id, b, a);
}

zc_status zc_pass_opt_pair(zc_pass *p)
{
    pairing pairs = {.changes = &p->changes};
    if (!zc_pass_has(p, ZC_FAMILY_conv_sm90)) return ZC_OK;
    ZC_TRY(zc_pass_opt_dce(p)); /* what opt_layout left is no use of a value */
    if (!zc_index_init(&pairs.x, p->g)) return zc_fail_nomem(p->diag, "uses", 0);
    zc_status status = zc_each_node(p->g, &p->g->top, visit, &pairs, p->diag);
    zc_index_fini(&pairs.x);
    return status;
}
