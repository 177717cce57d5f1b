/* A network's stem in one step, on Hopper: the largest of windows of what a convolution of an image
 * gives becomes part of it (pool_shape ... of ConvImage, and of QLinearConv where the image is
 * bytes). An activation between the two that never
 * falls as its operand rises commutes with the largest, so it follows the pooling, where
 * opt_epilogue finds it on the step's result. */
#include "ir/index.h"
#include "op/nhwc.h"
#include "passes/passes.h"
#include "passes/query.h"

enum { BETWEEN = 4 /* most activations */ };

typedef struct pooling {
    zc_index x;
    size_t *changes;
} pooling;

/* A convolution, and what stands between it and the pooling. */
typedef struct stem {
    zc_nid conv, between[BETWEEN];
    int count;
} stem;

/* The node of the same block that makes v, which only node `at` reads; 0: none. */
static zc_nid maker(const pooling *p, zc_nid at, zc_vid v)
{
    zc_nid n = zc_producer(p->x.g, v);
    bool own = n && p->x.uses.data[v] == 1 &&
               zc_index_place(&p->x, n)->block == zc_index_place(&p->x, at)->block;
    return own ? n : 0;
}

/* Does it never fall as its first operand rises, the others being constants, and keep NaN? */
static bool never_falls(const zc_graph *g, const zc_node *n)
{
    static const zc_op ops[] = {ZC_OP_Relu, ZC_OP_Clip, ZC_OP_Sigmoid, ZC_OP_Tanh};
    bool found = false;
    for (size_t i = 0; i < ZC_COUNTOF(ops); i++) found = found || n->op == ops[i];
    for (int i = 1; i < n->nin; i++) found = found && (!n->in[i] || zc_val(g, n->in[i])->data);
    return found;
}

/* What node `pool` takes the largest of. */
static bool find(const pooling *p, zc_nid pool, stem *s)
{
    const zc_graph *g = p->x.g;
    zc_nid at = pool;
    s->count = 0;
    for (;;) {
        zc_nid n = maker(p, at, zc_node_at(g, at)->in[0]);
        if (!n) return false;
        if (zc_node_at(g, n)->op == ZC_OP_ConvImage || zc_node_at(g, n)->op == ZC_OP_QLinearConv) {
            s->conv = n;
            return true;
        }
        if (s->count == BETWEEN || !never_falls(g, zc_node_at(g, n))) return false;
        s->between[s->count++] = at = n;
    }
}

/* Of bytes: is it one that conv_image_quant serves, whose largest sums have the largest bytes? */
static bool is_image_of_bytes(const zc_graph *g, const zc_node *conv)
{
    const int scales[] = {ZC_IN_QLinearConv_x_scale, ZC_IN_QLinearConv_w_scale,
                          ZC_IN_QLinearConv_y_scale};
    const zc_attrs_QLinearConv *a = conv->attrs;
    const zc_attrs_Conv attrs = zc_nchw_qlinear_conv(a);
    const zc_tensor *w = zc_val(g, conv->in[ZC_IN_QLinearConv_w])->data;
    for (size_t i = 0; i < ZC_COUNTOF(scales); i++) {
        const zc_tensor *s = zc_val(g, conv->in[scales[i]])->data;
        if (!s || !zc_scales_rise(s->dtype, s->data, zc_tensor_numel(s))) return false;
    }
    return a->channels_last && a->taps_first && w && w->rank == 4 && zc_conv_image_fits(&attrs, w);
}

static bool is_image(const zc_graph *g, const zc_node *conv)
{
    return conv->op == ZC_OP_QLinearConv
               ? is_image_of_bytes(g, conv)
               : zc_family_makes(ZC_FAMILY_conv_image, zc_val(g, conv->out[0])->type.dtype);
}

static bool fits(const zc_graph *g, const zc_node *pool, const zc_node *conv)
{
    const zc_attrs_MaxPool attrs = zc_nchw_max_pool(pool->attrs);
    return is_image(g, conv) && !zc_conv_pools(conv->op, conv->attrs) &&
           !zc_op_epilogue(zc_op_get(conv->op), conv->attrs) &&
           !zc_op_epilogue(zc_op_get(pool->op), pool->attrs) && zc_conv_image_pool_fits(&attrs);
}

/* What is given of the pooling becomes the convolution's. */
static void set_pool(zc_graph *g, zc_nid conv, const zc_attrs_MaxPoolNhwc *a)
{
#define TAKE(op, to, from)                                                                         \
    if (ZC_ATTR_GIVEN(MaxPoolNhwc, a, from)) ZC_NODE_SET(g, op, conv, to, a->from)
#define TAKE_ALL(op)                                                                               \
    do {                                                                                           \
        TAKE(op, pool_auto_pad, auto_pad);                                                         \
        TAKE(op, pool_ceil_mode, ceil_mode);                                                       \
        TAKE(op, pool_pads, pads);                                                                 \
        TAKE(op, pool_shape, kernel_shape);                                                        \
        TAKE(op, pool_strides, strides);                                                           \
    } while (0)
    if (zc_node_at(g, conv)->op == ZC_OP_QLinearConv)
        TAKE_ALL(QLinearConv);
    else
        TAKE_ALL(ConvImage);
#undef TAKE_ALL
#undef TAKE
}

/* The convolution pools, what was between has the pooling's shape, and its result is that of the
 * last. */
static bool join(pooling *p, zc_nid pool, const stem *s)
{
    zc_graph *g = p->x.g;
    const zc_vid out = zc_node_at(g, pool)->out[0], last = zc_node_at(g, pool)->in[0];
    const zc_type type = zc_val(g, out)->type;
    set_pool(g, s->conv, zc_node_at(g, pool)->attrs);
    zc_val(g, zc_node_at(g, s->conv)->out[0])->type = type;
    for (int i = 0; i < s->count; i++) zc_val(g, zc_node_at(g, s->between[i])->out[0])->type = type;
    if (!zc_graph_inherit(g, s->conv, pool)) return false;
    zc_index_remove(&p->x, pool);
    zc_graph_forward(g, out, last);
    ++*p->changes;
    return zc_index_replace(&p->x, out, last);
}

static bool visit(zc_graph *g, zc_nid id, void *user)
{
    pooling *p = user;
    const zc_node *n = zc_node_at(g, id);
    stem s;
    if (n->op != ZC_OP_MaxPoolNhwc || !find(p, id, &s)) return true;
    return !fits(g, n, zc_node_at(g, s.conv)) || join(p, id, &s);
}

zc_status zc_pass_opt_pooling(zc_pass *p)
{
    pooling all = {.changes = &p->changes};
    if (!zc_pass_has(p, ZC_FAMILY_conv_sm90)) return ZC_OK;
    ZC_TRY(zc_pass_opt_dce(p)); /* what opt_layout left is no use of a value */
    if (!zc_index_init(&all.x, p->g)) return zc_fail_nomem(p->diag, "uses", 0);
    zc_status status = zc_each_node(p->g, &p->g->top, visit, &all, p->diag);
    zc_index_fini(&all.x);
    return status;
}
