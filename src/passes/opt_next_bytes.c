/* A convolution of bytes of points, with its residual, and one of points that reads what it gives
 * as one step of two results, on Hopper, where that is held to be no slower (QLinearConvNext):
 * behind opt_chain_bytes, which leaves the ones that it made no part of its own. */
#include "op/nhwc.h"
#include "passes/conv_bytes.h"
#include "passes/query.h"

/* Is all that it reads, but x, there before any node? */
static bool has_constants(const zc_graph *g, const zc_node *n)
{
    for (int i = 1; i < n->nin; i++)
        if (n->in[i] && !zc_val(g, n->in[i])->data) return false;
    return true;
}

/* The convolution that gives what the one at `at` reads; NULL: it is made otherwise. */
static const zc_node *first_of(const zc_bytes_pass *p, zc_nid at)
{
    const zc_graph *g = p->x.g;
    const zc_node *first = zc_bytes_maker(&p->x, zc_node_at(g, at)->in[ZC_IN_QLinearConv_x], at);
    return first && zc_bytes_pixels(g, first) ? first : NULL;
}

/* Sums that become bytes otherwise than by whole numbers are left alone, as in chains. */
static bool is_worth_it(const zc_graph *g, const zc_node *first, const zc_node *n)
{
    zc_conv_work work[2];
    if (!zc_bytes_works(g, first, n, work)) return false;
    const int64_t depth = work[0].in > work[1].in ? work[0].in : work[1].in;
    return zc_bytes_whole(g, first, depth) && zc_bytes_whole(g, n, depth) &&
           zc_bytes_worth(zc_conv_next_quant_us(&work[0], &work[1]), work);
}

static bool join(zc_bytes_pass *p, zc_nid at, const zc_node *first)
{
    zc_graph *g = p->x.g;
    const zc_nid both[] = {zc_producer(g, first->out[0]), at};
    const char *sum = zc_op_epilogue(zc_op_get(first->op), first->attrs);
    const zc_vid residual = zc_node_in(first, ZC_QLINEAR_CONV_INPUTS);
    if (!zc_bytes_join(p, ZC_OP_QLinearConvNext, both, 0, residual)) return false;
    if (sum) ZC_NODE_SET(g, QLinearConvNext, both[0], sum, sum);
    return true;
}

static bool visit(zc_graph *g, zc_nid id, void *user)
{
    zc_bytes_pass *p = user;
    const zc_node *n = zc_node_at(g, id);
    if (!zc_bytes_pixels(g, n) || zc_op_epilogue(zc_op_get(n->op), n->attrs)) return true;
    const zc_node *first = has_constants(g, n) ? first_of(p, id) : NULL;
    return !first || !is_worth_it(g, first, n) || join(p, id, first);
}

zc_status zc_pass_opt_next_bytes(zc_pass *p)
{
    return zc_bytes_run(p, ZC_FAMILY_conv_next_quant_sm90, visit);
}
