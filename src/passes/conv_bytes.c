#include "passes/conv_bytes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op/affine.h"
#include "op/nhwc.h"
#include "op/requant.h"
#include "passes/cost.h"
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

bool zc_bytes_pixels(const zc_graph *g, const zc_node *n)
{
    if (!zc_bytes_plain(g, n) || !zc_bytes_points(g, n)) return false;
    const zc_ints strides = ((const zc_attrs_QLinearConv *)n->attrs)->strides;
    for (int i = 0; i < strides.n; i++)
        if (strides.v[i] != 1) return false;
    if (!zc_op_epilogue(zc_op_get(n->op), n->attrs)) return true;
    return zc_bytes_sum(g, n) && zc_same_shape(&zc_val(g, n->in[ZC_QLINEAR_CONV_INPUTS])->type,
                                               &zc_val(g, n->out[0])->type);
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
    const bool fits =
        n && zc_bytes_plain(g, n) && zc_index_place(x, id)->block == zc_index_place(x, at)->block;
    return fits && zc_bytes_alike(g, zc_node_at(g, at), n) ? n : NULL;
}

bool zc_bytes_lone(const zc_index *x, const zc_node *n)
{
    return !zc_op_epilogue(zc_op_get(n->op), n->attrs) && x->uses.data[n->out[0]] == 1;
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

/* ---- one step of two ---- */

bool zc_bytes_works(const zc_graph *g, const zc_node *first, const zc_node *second,
                    zc_conv_work out[2])
{
    return zc_cost_conv(g, first, ZC_IN_QLinearConv_w, &out[0]) &&
           zc_cost_conv(g, second, ZC_IN_QLinearConv_w, &out[1]);
}

bool zc_bytes_worth(double us, const zc_conv_work both[2])
{
    return isfinite(us) &&
           us <= zc_conv_quant_us(&both[0]) + zc_conv_quant_us(&both[1]) + zc_cost_launch_us();
}

/* A node of both's operands, the other byte of a sum behind them. 0: no memory. */
static zc_nid make(zc_graph *g, zc_op op, const char *name, const zc_nid both[2], zc_vid other)
{
    zc_vid in[2 * ZC_QLINEAR_CONV_INPUTS + 1] = {0};
    int nin = 0;
    for (int i = 0; i < 2; i++) {
        const int *at = zc_conv_half_inputs(op, i == 1);
        for (int j = 0; j < ZC_QLINEAR_CONV_INPUTS; j++)
            if (at[j] >= 0) in[at[j]] = zc_node_in(zc_node_at(g, both[i]), j);
        nin = at[ZC_IN_QLinearConv_bias] + 1;
    }
    in[nin++] = other;
    while (!in[nin - 1]) nin--;
    return zc_graph_node(g, NULL, op, name, nin, in, zc_op_get(op)->max_out);
}

bool zc_bytes_join(zc_bytes_pass *p, zc_op op, const zc_nid both[2], int at, zc_vid other)
{
    zc_graph *g = p->x.g;
    const zc_nid made = make(g, op, zc_node_at(g, both[at])->name, both, other);
    if (!made || !zc_graph_inherit(g, made, both[0]) || !zc_graph_inherit(g, made, both[1]))
        return false;
    zc_node *n = zc_node_at(g, made);
    zc_attrs_take(zc_op_get(op), n->attrs, zc_op_get(ZC_OP_QLinearConv),
                  zc_node_at(g, both[0])->attrs);
    for (int i = 0; i < n->nout; i++)
        n->out[i] = zc_node_at(g, both[n->nout == 2 ? i : at])->out[0];
    if (!zc_index_grow(&p->x) || !zc_index_take_place(&p->x, made, both[at])) return false;
    zc_index_remove(&p->x, both[!at]);
    ++p->p->changes;
    return true;
}

zc_status zc_bytes_run(zc_pass *p, int family, bool (*visit)(zc_graph *g, zc_nid n, void *pass))
{
    zc_bytes_pass pass = {.p = p};
    if (!zc_pass_has(p, family)) return ZC_OK;
    if (!zc_index_init(&pass.x, p->g)) return zc_fail_nomem(p->diag, "uses", 0);
    zc_status status = zc_each_node(p->g, &p->g->top, visit, &pass, p->diag);
    zc_index_fini(&pass.x);
    return status;
}
