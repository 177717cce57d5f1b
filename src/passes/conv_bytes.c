#include "passes/conv_bytes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op/affine.h"
#include "op/nhwc.h"
#include "op/requant.h"
#include "passes/query.h"

enum { PIECE = 16 /* channels that the copy engine can address */ };

static const zc_tensor *weights_of(const zc_graph *g, const zc_node *n)
{
    return zc_val(g, n->in[ZC_IN_QLinearConv_w])->data;
}

bool zc_bytes_plain(const zc_graph *g, const zc_node *n)
{
    if (n->op != ZC_OP_QLinearConv) return false;
    const zc_attrs_QLinearConv *a = n->attrs;
    const zc_tensor *w = weights_of(g, n);
    return a->channels_last && a->taps_first && a->group == 1 && !a->band && !a->pool_shape.n &&
           w && w->rank == 4 && w->dims[0] % PIECE == 0 && w->dims[3] % PIECE == 0 &&
           zc_is_splat(g, n->in[ZC_IN_QLinearConv_x_zero], 0) &&
           zc_is_splat(g, n->in[ZC_IN_QLinearConv_w_zero], 0);
}

bool zc_bytes_points(const zc_graph *g, const zc_node *n)
{
    const zc_attrs_QLinearConv *a = n->attrs;
    const zc_tensor *w = weights_of(g, n);
    bool plain = w->dims[1] == 1 && w->dims[2] == 1 && strcmp(a->auto_pad, "NOTSET") == 0;
    for (int i = 0; i < a->pads.n; i++) plain = plain && a->pads.v[i] == 0;
    return plain;
}

bool zc_bytes_alike(const zc_graph *g, const zc_node *a, const zc_node *b)
{
    bool alike = !zc_node_in(a, ZC_IN_QLinearConv_bias) == !zc_node_in(b, ZC_IN_QLinearConv_bias);
    for (int i = 0; i < ZC_IN_QLinearConv_y_zero; i++)
        alike = alike && zc_val(g, a->in[i])->type.dtype == zc_val(g, b->in[i])->type.dtype;
    return alike;
}

const zc_node *zc_bytes_maker(const zc_index *x, zc_vid v, zc_nid at)
{
    const zc_graph *g = x->g;
    const zc_nid id = v ? zc_producer(g, v) : 0;
    const zc_node *n = id ? zc_node_at(g, id) : NULL;
    const bool fits = n && zc_bytes_plain(g, n) && !zc_op_epilogue(zc_op_get(n->op), n->attrs) &&
                      x->uses.data[v] == 1 &&
                      zc_index_place(x, id)->block == zc_index_place(x, at)->block;
    return fits && zc_bytes_alike(g, zc_node_at(g, at), n) ? n : NULL;
}

zc_nid zc_bytes_join(zc_graph *g, zc_op op, zc_nid at, const zc_nid both[2], int nin,
                     const zc_vid *in)
{
    const zc_nid made = zc_graph_node(g, NULL, op, zc_node_at(g, at)->name, nin, in, 1);
    if (!made || !zc_graph_inherit(g, made, both[0]) || !zc_graph_inherit(g, made, both[1]))
        return 0;
    zc_attrs_take(zc_op_get(op), zc_node_at(g, made)->attrs, zc_op_get(ZC_OP_QLinearConv),
                  zc_node_at(g, both[0])->attrs);
    return made;
}

bool zc_bytes_replace(zc_index *x, zc_nid made, zc_nid at, zc_nid gone)
{
    zc_node_at(x->g, made)->out[0] = zc_node_at(x->g, at)->out[0];
    if (!zc_index_grow(x) || !zc_index_take_place(x, made, at)) return false;
    zc_index_remove(x, gone);
    return true;
}

/* Element i of a constant, or the only one; NaN where it is not known. */
static double element(const zc_graph *g, zc_vid v, int64_t i)
{
    const zc_tensor *t = zc_val(g, v)->data;
    return t && t->data ? zc_load_f64(t->dtype, t->data, zc_tensor_numel(t) > 1 ? i : 0) : NAN;
}

bool zc_bytes_whole(const zc_graph *g, const zc_node *n, int64_t depth)
{
    const zc_tensor *w = weights_of(g, n);
    const zc_vid bias = zc_node_in(n, ZC_IN_QLinearConv_bias);
    const double sum = 255.0 * 255.0 * (double)depth;
    bool whole = true;
    for (int64_t i = 0; whole && i < w->dims[0]; i++) {
        const double scale = element(g, n->in[ZC_IN_QLinearConv_x_scale], 0) *
                             element(g, n->in[ZC_IN_QLinearConv_w_scale], i) /
                             element(g, n->in[ZC_IN_QLinearConv_y_scale], 0);
        whole = zc_requant_is_whole(scale, sum + (bias ? fabs(element(g, bias, i)) : 0));
    }
    return whole;
}

bool zc_bytes_sum(const zc_graph *g, const zc_node *n)
{
    const char *text = zc_op_epilogue(zc_op_get(n->op), n->attrs);
    if (!text || n->nin != ZC_QLINEAR_CONV_INPUTS + 1) return false;
    const zc_dtype types[] = {zc_val(g, n->in[ZC_IN_QLinearConv_y_zero])->type.dtype,
                              zc_val(g, n->in[ZC_QLINEAR_CONV_INPUTS])->type.dtype};
    zc_affine sum;
    zc_expr *e = zc_calloc(1, sizeof *e);
    bool is = e && zc_expr_parse(text, types, 2, NULL, 0, e, n->name, NULL) == ZC_OK &&
              zc_affine_of(e, e->result[0], &sum) && sum.x[0] == 0 && sum.x[1] == 1;
    free(e);
    return is;
}
