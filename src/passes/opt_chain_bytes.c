/* A convolution of bytes of 3 x 3 pixels and the one of points that alone reads what it gives as
 * one step, on Hopper, where that is held to be no slower (QLinearConvChain): behind opt_epilogue
 * and opt_pair_bytes, with the sum of bytes that is part of the latter one. */
#include <math.h>
#include <string.h>

#include "ir/index.h"
#include "kernels/conv_cost.h"
#include "op/nhwc.h"
#include "passes/conv_bytes.h"
#include "passes/cost.h"
#include "passes/passes.h"
#include "passes/query.h"

typedef struct chaining {
    zc_index x;
    zc_pass *p;
} chaining;

/* Are they one value, or constants of the same bytes? */
static bool are_equal(const zc_graph *g, zc_vid a, zc_vid b)
{
    const zc_tensor *x = zc_val(g, a)->data, *y = zc_val(g, b)->data;
    size_t bytes;
    return a == b || (x && y && x->dtype == y->dtype && zc_tensor_numel(x) == zc_tensor_numel(y) &&
                      zc_tensor_bytes(x, &bytes) && x->data && y->data &&
                      memcmp(x->data, y->data, bytes) == 0);
}

/* The convolution that gives what the one at `at` alone reads, by the scale that it reads it by;
 * NULL: it is made otherwise. */
static const zc_node *first_of(const chaining *p, zc_nid at)
{
    const zc_graph *g = p->x.g;
    const zc_node *n = zc_node_at(g, at);
    const zc_node *first = zc_bytes_maker(&p->x, n->in[ZC_IN_QLinearConv_x], at);
    const bool fits =
        first &&
        are_equal(g, first->in[ZC_IN_QLinearConv_y_scale], n->in[ZC_IN_QLinearConv_x_scale]) &&
        zc_is_splat(g, first->in[ZC_IN_QLinearConv_y_zero], 0);
    return fits ? first : NULL;
}

/* Points of each pixel, and behind them nothing or a sum with a byte of the result's shape. */
static bool is_last(const zc_graph *g, const zc_node *n)
{
    if (!zc_bytes_plain(g, n) || !zc_bytes_points(g, n)) return false;
    const zc_ints strides = ((const zc_attrs_QLinearConv *)n->attrs)->strides;
    for (int i = 0; i < strides.n; i++)
        if (strides.v[i] != 1) return false;
    if (!zc_op_epilogue(zc_op_get(n->op), n->attrs)) return true;
    return zc_bytes_sum(g, n) && zc_same_shape(&zc_val(g, n->in[ZC_QLINEAR_CONV_INPUTS])->type,
                                               &zc_val(g, n->out[0])->type);
}

/* Is one step held to take no longer than two and a launch? */
static bool is_worth_it(const zc_graph *g, const zc_node *n, const zc_node *first)
{
    zc_conv_work a, b;
    if (!zc_cost_conv(g, first, ZC_IN_QLinearConv_w, &a) ||
        !zc_cost_conv(g, n, ZC_IN_QLinearConv_w, &b))
        return false;
    const int64_t depth = zc_conv_chain_depth(&a);
    if (!zc_bytes_whole(g, first, depth) || !zc_bytes_whole(g, n, depth)) return false; /* spills */
    const double chain = zc_conv_chain_quant_us(&a, &b);
    return isfinite(chain) &&
           chain <= zc_conv_quant_us(&a) + zc_conv_quant_us(&b) + zc_cost_launch_us();
}

static bool join(chaining *p, zc_nid at, const zc_node *first)
{
    zc_graph *g = p->x.g;
    const zc_nid ids[] = {zc_producer(g, first->out[0]), at};
    const char *epilogue = zc_op_epilogue(zc_op_get(ZC_OP_QLinearConv), zc_node_at(g, at)->attrs);
    zc_vid in[ZC_IN_QLinearConvChain_second_bias + 2] = {0};
    for (int i = 0; i < 2; i++) {
        const zc_conv_half half = zc_chain_half_of(&(zc_attrs_QLinearConvChain){0}, i == 1);
        for (int j = 0; j < ZC_QLINEAR_CONV_INPUTS; j++)
            if (half.in[j] >= 0) in[half.in[j]] = zc_node_in(zc_node_at(g, ids[i]), j);
    }
    int nin = in[ZC_IN_QLinearConvChain_bias] ? ZC_IN_QLinearConvChain_second_bias + 1
                                              : ZC_IN_QLinearConvChain_bias;
    if (epilogue) {
        in[ZC_IN_QLinearConvChain_second_bias + 1] =
            zc_node_in(zc_node_at(g, at), ZC_QLINEAR_CONV_INPUTS);
        nin = (int)ZC_COUNTOF(in);
    }
    const zc_nid made = zc_bytes_join(g, ZC_OP_QLinearConvChain, at, ids, nin, in);
    if (!made) return false;
    if (epilogue) ZC_NODE_SET(g, QLinearConvChain, made, epilogue, epilogue);
    if (!zc_bytes_replace(&p->x, made, at, ids[0])) return false;
    ++p->p->changes;
    return true;
}

static bool visit(zc_graph *g, zc_nid id, void *user)
{
    chaining *p = user;
    const zc_node *n = zc_node_at(g, id);
    if (!is_last(g, n)) return true;
    const zc_node *first = first_of(p, id);
    return !first || !is_worth_it(g, n, first) || join(p, id, first);
}

zc_status zc_pass_opt_chain_bytes(zc_pass *p)
{
    chaining chains = {.p = p};
    if (!zc_pass_has(p, ZC_FAMILY_conv_chain_quant_sm90)) return ZC_OK;
    if (!zc_index_init(&chains.x, p->g)) return zc_fail_nomem(p->diag, "uses", 0);
    zc_status status = zc_each_node(p->g, &p->g->top, visit, &chains, p->diag);
    zc_index_fini(&chains.x);
    return status;
}
