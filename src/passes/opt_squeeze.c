/* Squeeze and excitation in one step, on Hopper: channels scaled by what two products make of their
 * means become SqueezeExcite. Channels are last by then (opt_layout). */
#include <string.h>

#include "ir/index.h"
#include "op/activation.h"
#include "passes/passes.h"
#include "passes/query.h"

enum { FAMILY = ZC_FAMILY_squeeze_excite, EACH = 8 /* channels that its kernels read at once */ };

typedef struct squeezing {
    zc_index x;
    size_t *changes;
} squeezing;

/* What stands between the means and the product with x, from there backwards. */
typedef struct chain {
    zc_nid nodes[16]; /* which nobody else reads */
    int count;
    zc_vid at; /* what the last of them reads */
    uint32_t block;
} chain;

typedef struct layer { /* activation(rows w + bias) */
    zc_nid activation, product;
} layer;

/* ---- what fits ---- */

/* The node that makes c->at, if only the chain reads that; 0: it ends here. */
static zc_nid maker(const squeezing *s, const chain *c)
{
    zc_nid n = zc_producer(s->x.g, c->at);
    bool fits = n && c->count < (int)ZC_COUNTOF(c->nodes) && s->x.uses.data[c->at] == 1 &&
                zc_index_place(&s->x, n)->block == c->block;
    return fits ? n : 0;
}

static void take(const squeezing *s, chain *c, zc_nid n)
{
    c->nodes[c->count++] = n;
    c->at = zc_node_at(s->x.g, n)->in[0];
}

/* The next node behind views. */
static zc_nid next(const squeezing *s, chain *c)
{
    zc_nid n = maker(s, c);
    for (; n && zc_op_get(zc_node_at(s->x.g, n)->op)->flags & ZC_OPF_VIEW; n = maker(s, c))
        take(s, c, n);
    return n;
}

/* A product of rows and constants, of the result's type. */
static bool is_product(const zc_graph *g, const zc_node *n, zc_dtype dtype)
{
    const zc_attrs_Linear *a = n->attrs;
    if (n->op != ZC_OP_Linear || a->alpha != 1 || zc_op_epilogue(zc_op_get(n->op), a)) return false;
    const zc_tensor *w = zc_val(g, n->in[ZC_IN_Linear_w])->data;
    zc_vid bias = zc_node_in(n, ZC_IN_Linear_bias);
    const zc_type *b = bias ? &zc_val(g, bias)->type : NULL;
    return w && w->rank == 2 && w->dtype == dtype && (!b || (b->dtype == dtype && b->rank == 1));
}

static bool take_layer(const squeezing *s, chain *c, zc_dtype dtype, layer *out)
{
    const zc_graph *g = s->x.g;
    zc_nid n = next(s, c);
    const char *name = n ? zc_op_get(zc_node_at(g, n)->op)->name : "";
    *out = (layer){0};
    if (zc_activation_find(name) != ZC_OP_NONE && zc_node_at(g, n)->nin == 1) {
        out->activation = n;
        take(s, c, n);
        n = next(s, c);
    }
    if (!n || !is_product(g, zc_node_at(g, n), dtype)) return false;
    out->product = n;
    take(s, c, n);
    return true;
}

/* The weights of a layer as [hidden][channels] have so many of these. */
static bool has_sides(const zc_graph *g, const layer *l, bool turned, int64_t hidden,
                      int64_t channels)
{
    const zc_node *n = zc_node_at(g, l->product);
    const zc_tensor *w = zc_val(g, n->in[ZC_IN_Linear_w])->data;
    bool along = (((const zc_attrs_Linear *)n->attrs)->transB != 0) != turned;
    return w->dims[along ? 0 : 1] == hidden && w->dims[along ? 1 : 0] == channels;
}

/* Does node n give the means of x over all axes but the first and the last? */
static bool is_means(const zc_graph *g, const zc_node *n, zc_vid x)
{
    int rank = zc_val(g, x)->type.rank;
    if (n->op != ZC_OP_ReduceMean || n->in[0] != x) return false;
    const zc_vals *axes = n->nin > 1 && n->in[1] ? &zc_val(g, n->in[1])->vals : NULL;
    if (!axes || axes->n != rank - 2) return false;
    for (int i = 0; i < axes->n; i++)
        if (!zc_dim_is(axes->v[i], i + 1)) return false;
    return true;
}

/* One number a channel of each image: [n,1,...,c] for x[n,...,c]. */
static bool is_factor(const zc_type *t, const zc_type *x)
{
    bool fits = t->rank == x->rank && zc_dim_eq(t->dims[0], x->dims[0]) &&
                zc_dim_eq(t->dims[t->rank - 1], x->dims[x->rank - 1]);
    for (int d = 1; fits && d + 1 < t->rank; d++) fits = zc_dim_is(t->dims[d], 1);
    return fits;
}

static bool is_taken(const zc_type *x)
{
    zc_dim channels = x->rank >= 3 ? x->dims[x->rank - 1] : zc_dim_const(1);
    return zc_family_makes(FAMILY, x->dtype) && zc_dim_is_const(channels) && channels.k > 0 &&
           channels.k % EACH == 0;
}

/* ---- the node ---- */

/* The name of a layer's activation and its parameters; false: no memory. */
static bool read_activation(zc_graph *g, const layer *l, const char **name, zc_floats *params)
{
    *name = "";
    *params = (zc_floats){0};
    return !l->activation || zc_activation_of(g, l->activation, name, params);
}

static bool set_activations(zc_graph *g, zc_nid made, const layer *first, const layer *second)
{
    const char *name;
    zc_floats params;
    if (!read_activation(g, first, &name, &params)) return false;
    if (*name) ZC_NODE_SET(g, SqueezeExcite, made, activation, name);
    if (params.n) ZC_NODE_SET(g, SqueezeExcite, made, activation_params, params);
    if (!read_activation(g, second, &name, &params)) return false;
    ZC_NODE_SET(g, SqueezeExcite, made, gate, name);
    if (params.n) ZC_NODE_SET(g, SqueezeExcite, made, gate_params, params);
    return true;
}

static bool join(squeezing *s, zc_nid at, zc_vid x, const chain *c, const layer *first,
                 const layer *second)
{
    zc_graph *g = s->x.g;
    zc_vid w1 = zc_linear_matrix(g, first->product, true); /* both as [hidden][channels] */
    zc_vid w2 = zc_linear_matrix(g, second->product, false);
    if (!w1 || !w2) return false;
    const zc_vid inputs[] = {[ZC_IN_SqueezeExcite_x] = x,
                             [ZC_IN_SqueezeExcite_w1] = w1,
                             [ZC_IN_SqueezeExcite_bias1] =
                                 zc_node_in(zc_node_at(g, first->product), ZC_IN_Linear_bias),
                             [ZC_IN_SqueezeExcite_w2] = w2,
                             [ZC_IN_SqueezeExcite_bias2] =
                                 zc_node_in(zc_node_at(g, second->product), ZC_IN_Linear_bias)};
    zc_nid made = zc_graph_node(g, NULL, ZC_OP_SqueezeExcite, zc_node_at(g, at)->name,
                                (int)ZC_COUNTOF(inputs), inputs, 1);
    if (!made || !set_activations(g, made, first, second)) return false;
    for (int i = c->count - 1; i >= 0; i--)
        if (!zc_graph_inherit(g, made, c->nodes[i])) return false;
    if (!zc_graph_inherit(g, made, at)) return false;
    zc_node_at(g, made)->out[0] = zc_node_at(g, at)->out[0];
    if (!zc_index_grow(&s->x) || !zc_index_take_place(&s->x, made, at)) return false;
    for (int i = 0; i < c->count; i++) zc_index_remove(&s->x, c->nodes[i]);
    ++*s->changes;
    return true;
}

/* x times the factor v. */
static bool visit_factor(squeezing *s, zc_nid at, zc_vid x, zc_vid v)
{
    zc_graph *g = s->x.g;
    const zc_type *t = &zc_val(g, x)->type;
    chain c = {.at = v, .block = zc_index_place(&s->x, at)->block};
    layer first, second;
    if (!is_taken(t) || !is_factor(&zc_val(g, v)->type, t) ||
        !take_layer(s, &c, t->dtype, &second) || !take_layer(s, &c, t->dtype, &first))
        return true;
    zc_nid means = next(s, &c);
    if (!means || !is_means(g, zc_node_at(g, means), x)) return true;
    take(s, &c, means);
    int64_t channels = t->dims[t->rank - 1].k;
    const zc_node *n = zc_node_at(g, first.product);
    bool along = ((const zc_attrs_Linear *)n->attrs)->transB != 0;
    int64_t hidden = zc_val(g, n->in[ZC_IN_Linear_w])->data->dims[along ? 0 : 1];
    bool fits = has_sides(g, &first, false, hidden, channels) &&
                has_sides(g, &second, true, hidden, channels);
    return !fits || join(s, at, x, &c, &first, &second);
}

static bool visit(zc_graph *g, zc_nid id, void *user)
{
    squeezing *s = user;
    for (int side = 0; side < 2; side++) {
        const zc_node *n = zc_node_at(g, id);
        if (n->op == ZC_OP_Mul && !visit_factor(s, id, n->in[side], n->in[1 - side])) return false;
    }
    return true;
}

zc_status zc_pass_opt_squeeze(zc_pass *p)
{
    squeezing s = {.changes = &p->changes};
    if (!zc_pass_has(p, ZC_FAMILY_conv_sm90)) return ZC_OK;
    ZC_TRY(zc_pass_opt_dce(p)); /* what opt_layout left is no use of a value */
    if (!zc_index_init(&s.x, p->g)) return zc_fail_nomem(p->diag, "uses", 0);
    zc_status status = zc_each_node(p->g, &p->g->top, visit, &s, p->diag);
    zc_index_fini(&s.x);
    return status;
}
