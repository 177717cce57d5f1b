/* A convolution of bytes of 3 x 3 pixels and the one of points that alone reads what it gives as
 * one step, on Hopper, where that is held to be no slower (QLinearConvChain): behind opt_epilogue
 * and opt_pair_bytes, with the sum of bytes that is part of the latter one. */
#include <string.h>

#include "op/nhwc.h"
#include "passes/conv_bytes.h"
#include "passes/query.h"

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
static const zc_node *first_of(const zc_bytes_pass *p, zc_nid at)
{
    const zc_graph *g = p->x.g;
    const zc_node *n = zc_node_at(g, at);
    const zc_node *first = zc_bytes_maker(&p->x, n->in[ZC_IN_QLinearConv_x], at);
    const bool fits =
        first && zc_bytes_lone(&p->x, first) &&
        are_equal(g, first->in[ZC_IN_QLinearConv_y_scale], n->in[ZC_IN_QLinearConv_x_scale]) &&
        zc_is_splat(g, first->in[ZC_IN_QLinearConv_y_zero], 0);
    return fits ? first : NULL;
}

/* Sums that become bytes otherwise than by whole numbers spill. */
static bool is_worth_it(const zc_graph *g, const zc_node *n, const zc_node *first)
{
    zc_conv_work work[2];
    if (!zc_bytes_works(g, first, n, work)) return false;
    const int64_t depth = zc_conv_chain_depth(&work[0]);
    return zc_bytes_whole(g, first, depth) && zc_bytes_whole(g, n, depth) &&
           zc_bytes_worth(zc_conv_chain_quant_us(&work[0], &work[1]), work);
}

static bool join(zc_bytes_pass *p, zc_nid at, const zc_node *first)
{
    zc_graph *g = p->x.g;
    const zc_node *n = zc_node_at(g, at);
    const char *epilogue = zc_op_epilogue(zc_op_get(n->op), n->attrs);
    const zc_nid both[] = {zc_producer(g, first->out[0]), at};
    if (!zc_bytes_join(p, ZC_OP_QLinearConvChain, both, 1, zc_node_in(n, ZC_QLINEAR_CONV_INPUTS)))
        return false;
    if (epilogue) ZC_NODE_SET(g, QLinearConvChain, at, epilogue, epilogue);
    return true;
}

static bool visit(zc_graph *g, zc_nid id, void *user)
{
    zc_bytes_pass *p = user;
    const zc_node *n = zc_node_at(g, id);
    if (!zc_bytes_pixels(g, n)) return true;
    const zc_node *first = first_of(p, id);
    return !first || !is_worth_it(g, n, first) || join(p, id, first);
}

zc_status zc_pass_opt_chain_bytes(zc_pass *p)
{
    return zc_bytes_run(p, ZC_FAMILY_conv_chain_quant_sm90, visit);
}
