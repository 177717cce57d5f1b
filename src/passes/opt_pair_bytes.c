/* The sum of two convolutions' bytes in one step, on Hopper, where that is held to be no slower:
 * behind opt_epilogue the sum is part of the last convolution of a block, and its other byte is the
 * result of a shortcut, whose windows are points (QLinearConvPair). */
#include <math.h>

#include "ir/index.h"
#include "kernels/conv_cost.h"
#include "op/nhwc.h"
#include "passes/conv_bytes.h"
#include "passes/cost.h"
#include "passes/passes.h"
#include "passes/query.h"

typedef struct pairing {
    zc_index x;
    zc_pass *p;
} pairing;

/* The convolution whose byte is the other one, which nobody else reads; NULL: it is made otherwise.
 */
static const zc_node *other_of(const pairing *p, zc_nid at)
{
    const zc_graph *g = p->x.g;
    const zc_node *n = zc_node_at(g, at);
    const zc_vid v = zc_node_in(n, ZC_QLINEAR_CONV_INPUTS);
    const zc_node *other = zc_bytes_maker(&p->x, v, at);
    const bool fits = other && zc_bytes_points(g, other) &&
                      zc_same_shape(&zc_val(g, v)->type, &zc_val(g, n->out[0])->type);
    return fits ? other : NULL;
}

/* Is one step held to take no longer than two and a launch? What the second's result takes to be
 * written and read is not counted: it is hidden behind what is done with sums. */
static bool is_worth_it(const zc_graph *g, const zc_node *n, const zc_node *other)
{
    zc_conv_work first, second;
    if (!zc_cost_conv(g, n, ZC_IN_QLinearConv_w, &first) ||
        !zc_cost_conv(g, other, ZC_IN_QLinearConv_w, &second))
        return false;
    const double pair = zc_conv_pair_quant_us(&first, &second);
    return isfinite(pair) &&
           pair <= zc_conv_quant_us(&first) + zc_conv_quant_us(&second) + zc_cost_launch_us();
}

static bool join(pairing *p, zc_nid at, const zc_node *other)
{
    zc_graph *g = p->x.g;
    const zc_nid ids[] = {at, zc_producer(g, other->out[0])};
    const zc_attrs_QLinearConv *a = zc_node_at(g, at)->attrs, *b = other->attrs;
    const zc_ints strides = b->strides;
    const char *sum = a->epilogue;
    zc_vid in[2 * ZC_QLINEAR_CONV_INPUTS] = {0};
    for (int i = 0; i < 2; i++) {
        const zc_conv_half half = zc_pair_half_of(&(zc_attrs_QLinearConvPair){0}, i == 1);
        for (int j = 0; j < ZC_QLINEAR_CONV_INPUTS; j++)
            in[half.in[j]] = zc_node_in(zc_node_at(g, ids[i]), j);
    }
    const int nin =
        in[ZC_IN_QLinearConvPair_bias] ? (int)ZC_COUNTOF(in) : ZC_IN_QLinearConvPair_bias;
    const zc_nid made = zc_bytes_join(g, ZC_OP_QLinearConvPair, at, ids, nin, in);
    if (!made) return false;
    ZC_NODE_SET(g, QLinearConvPair, made, sum, sum);
    if (strides.n) ZC_NODE_SET(g, QLinearConvPair, made, second_strides, strides);
    if (!zc_bytes_replace(&p->x, made, at, ids[1])) return false;
    ++p->p->changes;
    return true;
}

static bool visit(zc_graph *g, zc_nid id, void *user)
{
    pairing *p = user;
    const zc_node *n = zc_node_at(g, id);
    if (!zc_bytes_plain(g, n) || !zc_op_epilogue(zc_op_get(n->op), n->attrs)) return true;
    const zc_node *other = other_of(p, id);
    return !other || !zc_bytes_sum(g, n) || !is_worth_it(g, n, other) || join(p, id, other);
}

zc_status zc_pass_opt_pair_bytes(zc_pass *p)
{
    pairing pairs = {.p = p};
    if (!zc_pass_has(p, ZC_FAMILY_conv_quant_sm90)) return ZC_OK;
    if (!zc_index_init(&pairs.x, p->g)) return zc_fail_nomem(p->diag, "uses", 0);
    zc_status status = zc_each_node(p->g, &p->g->top, visit, &pairs, p->diag);
    zc_index_fini(&pairs.x);
    return status;
}
