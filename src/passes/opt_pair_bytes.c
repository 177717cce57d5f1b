/* The sum of two convolutions' bytes in one step, on Hopper, where that is held to be no slower:
 * behind opt_epilogue the sum is part of the last convolution of a block, and its other byte is the
 * result of a shortcut, whose windows are points (QLinearConvPair). */
#include "op/nhwc.h"
#include "passes/conv_bytes.h"
#include "passes/query.h"

/* The convolution whose byte is the other one, which nobody else reads; NULL: it is made otherwise.
 */
static const zc_node *other_of(const zc_bytes_pass *p, zc_nid at)
{
    const zc_graph *g = p->x.g;
    const zc_node *n = zc_node_at(g, at);
    const zc_vid v = zc_node_in(n, ZC_QLINEAR_CONV_INPUTS);
    const zc_node *other = zc_bytes_maker(&p->x, v, at);
    const bool fits = other && zc_bytes_lone(&p->x, other) && zc_bytes_points(g, other) &&
                      zc_same_shape(&zc_val(g, v)->type, &zc_val(g, n->out[0])->type);
    return fits ? other : NULL;
}

/* What the second's result takes to be written and read is not counted: it is hidden behind what is
 * done with sums. */
static bool is_worth_it(const zc_graph *g, const zc_node *n, const zc_node *other)
{
    zc_conv_work work[2];
    return zc_bytes_works(g, n, other, work) &&
           zc_bytes_worth(zc_conv_pair_quant_us(&work[0], &work[1]), work);
}

static bool join(zc_bytes_pass *p, zc_nid at, const zc_node *other)
{
    zc_graph *g = p->x.g;
    const zc_attrs_QLinearConv *a = zc_node_at(g, at)->attrs, *b = other->attrs;
    const char *sum = a->epilogue;
    const zc_ints strides = b->strides;
    const zc_nid both[] = {at, zc_producer(g, other->out[0])};
    if (!zc_bytes_join(p, ZC_OP_QLinearConvPair, both, 0, 0)) return false;
    ZC_NODE_SET(g, QLinearConvPair, at, sum, sum);
    if (strides.n) ZC_NODE_SET(g, QLinearConvPair, at, second_strides, strides);
    return true;
}

static bool visit(zc_graph *g, zc_nid id, void *user)
{
    zc_bytes_pass *p = user;
    const zc_node *n = zc_node_at(g, id);
    if (!zc_bytes_plain(g, n) || !zc_op_epilogue(zc_op_get(n->op), n->attrs)) return true;
    const zc_node *other = other_of(p, id);
    return !other || !zc_bytes_sum(g, n) || !is_worth_it(g, n, other) || join(p, id, other);
}

zc_status zc_pass_opt_pair_bytes(zc_pass *p)
{
    return zc_bytes_run(p, ZC_FAMILY_conv_quant_sm90, visit);
}
