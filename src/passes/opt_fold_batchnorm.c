/* y = BatchNormalization(conv(x, w) + b) is conv(x, w*s) + (b - mean)*s + shift with s =
 * scale/sqrt(var+eps), a constant vector by output channel. Behind anything else it is pointwise
 * work by channel. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"
#include "passes/query.h"

typedef struct bn_pass {
    uint32_t *uses;
    size_t *changes;
} bn_pass;

static const zc_tensor *constant(const zc_graph *g, const zc_node *n, int i)
{
    zc_vid v = zc_node_in(n, i);
    return v ? zc_val(g, v)->data : NULL;
}

/* Inference form with constant parameters of `channels` elements. */
static bool is_foldable(const zc_graph *g, const zc_node *bn, int64_t channels)
{
    const zc_attrs_BatchNormalization *a = bn->attrs;
    for (int i = 1; i < bn->nout; i++)
        if (bn->out[i]) return false;
    for (int i = ZC_IN_BatchNormalization_scale; i <= ZC_IN_BatchNormalization_variance; i++) {
        const zc_tensor *t = constant(g, bn, i);
        if (!t || zc_tensor_numel(t) != channels) return false;
    }
    return !a->training_mode;
}

/* All of those that fold have these operands where Conv has them. */
enum { WEIGHTS = ZC_IN_Conv_w, BIAS = ZC_IN_Conv_bias };

/* Output channels stand on this axis of the weights; -1 when the producer is not one that folds. */
static int channel_axis(const zc_node *p)
{
    switch (p->op) {
    case ZC_OP_Conv:
        return 0;
    case ZC_OP_ConvTranspose:
        return ((const zc_attrs_ConvTranspose *)p->attrs)->group == 1 ? 1 : -1;
    case ZC_OP_Linear:
        return ((const zc_attrs_Linear *)p->attrs)->transB ? 0 : 1;
    default:
        return -1;
    }
}

typedef struct affine {
    double *scale, *shift; /* by channel: y = x*scale + shift */
} affine;

static bool affine_of(const zc_graph *g, const zc_node *bn, int64_t channels, affine *out)
{
    const zc_attrs_BatchNormalization *a = bn->attrs;
    const zc_tensor *p[4];
    for (int i = 0; i < 4; i++) p[i] = constant(g, bn, ZC_IN_BatchNormalization_scale + i);
    out->scale = zc_calloc((size_t)channels * 2, sizeof *out->scale);
    if (!out->scale) return false;
    out->shift = out->scale + channels;
    for (int64_t c = 0; c < channels; c++) {
        double v[4];
        for (int i = 0; i < 4; i++) v[i] = zc_load_f64(p[i]->dtype, p[i]->data, c);
        out->scale[c] = v[0] / sqrt(v[3] + (double)a->epsilon);
        out->shift[c] = v[1] - v[2] * out->scale[c];
    }
    return true;
}

static zc_vid scaled_weights(zc_graph *g, zc_vid w, int axis, const affine *f)
{
    zc_tensor t = *zc_val(g, w)->data;
    const void *from = t.data;
    size_t bytes;
    if (!zc_tensor_bytes(&t, &bytes) || !(t.data = zc_calloc(bytes, 1))) return 0;
    int64_t inner = zc_dims_span(t.dims, axis + 1, t.rank), n = zc_tensor_numel(&t);
    for (int64_t i = 0; i < n; i++) {
        int64_t c = i / inner % t.dims[axis];
        zc_store_f64(t.dtype, t.data, i, zc_load_f64(t.dtype, from, i) * f->scale[c]);
    }
    return zc_graph_const(g, zc_val(g, w)->name, &t, true);
}

static zc_vid shifted_bias(zc_graph *g, zc_vid old, zc_vid w, int64_t channels, const affine *f)
{
    zc_dtype dtype = zc_val(g, w)->type.dtype;
    const zc_tensor *b = old ? zc_val(g, old)->data : NULL;
    zc_tensor t = {.dtype = dtype, .rank = 1, .dims = {channels}};
    if (!(t.data = zc_calloc((size_t)channels, 16))) return 0;
    for (int64_t c = 0; c < channels; c++) {
        double v = b ? zc_load_f64(b->dtype, b->data, c) : 0;
        zc_store_f64(dtype, t.data, c, v * f->scale[c] + f->shift[c]);
    }
    return zc_graph_const(g, old ? zc_val(g, old)->name : "bias", &t, true);
}

static bool is_hollow(const zc_graph *g, const zc_node *bn)
{
    bool hollow = false;
    for (int i = ZC_IN_BatchNormalization_scale; i <= ZC_IN_BatchNormalization_variance; i++)
        hollow |= zc_graph_is_hollow(g, bn->in[i]);
    return hollow;
}

/* What constants without bytes give has none. */
static void hollow_parameters(zc_graph *g, zc_nid p, int64_t channels, zc_vid *w, zc_vid *bias)
{
    zc_type type = zc_val(g, zc_node_at(g, p)->in[WEIGHTS])->type;
    *w = zc_graph_hollow(g, "weights", &type);
    *bias = zc_graph_hollow(
        g, "bias", &(zc_type){.dtype = type.dtype, .rank = 1, .dims = {zc_dim_const(channels)}});
}

static bool folded_parameters(zc_graph *g, zc_nid n, zc_nid p, int axis, int64_t channels,
                              zc_vid *w, zc_vid *bias)
{
    const zc_node *prod = zc_node_at(g, p);
    zc_vid old_w = prod->in[WEIGHTS], old_b = zc_node_in(prod, BIAS);
    affine f;
    if (!affine_of(g, zc_node_at(g, n), channels, &f)) return false;
    *w = scaled_weights(g, old_w, axis, &f);
    *bias = shifted_bias(g, old_b, old_w, channels, &f);
    free(f.scale);
    return true;
}

/* The producer takes over the BatchNormalization's result, and who uses that. */
static bool rewire(zc_graph *g, bn_pass *pass, zc_nid n, zc_nid p, zc_vid w, zc_vid bias)
{
    zc_vid result = zc_node_at(g, n)->out[0];
    zc_vid *in = zc_arena_alloc(&g->arena, 3, sizeof *in);
    if (!in || !w || !bias) return false;
    zc_node *prod = zc_node_at(g, p);
    in[0] = prod->in[0];
    in[WEIGHTS] = w;
    in[BIAS] = bias;
    prod->in = in;
    prod->nin = 3;
    zc_graph_forward(g, result, prod->out[0]);
    pass->uses[prod->out[0]] = pass->uses[result];
    if (!zc_graph_inherit(g, p, n)) return false;
    zc_graph_remove(g, n);
    return true;
}

/* The axis of the producer's weights that the BatchNormalization's channels stand on, when it can
 * take that over; -1. */
static int foldable_axis(const zc_graph *g, const bn_pass *pass, const zc_node *bn)
{
    zc_nid p = zc_producer(g, bn->in[0]);
    if (!p || pass->uses[bn->in[0]] != 1) return -1;
    const zc_node *prod = zc_node_at(g, p);
    int axis = channel_axis(prod);
    const zc_tensor *w = axis >= 0 ? constant(g, prod, WEIGHTS) : NULL;
    zc_vid bias = zc_node_in(prod, BIAS);
    if (!w || (bias && !constant(g, prod, BIAS)) || !is_foldable(g, bn, w->dims[axis])) return -1;
    /* On a matrix product the channel must be the last axis, which it is for rank 2 only. */
    return prod->op == ZC_OP_Linear && zc_val(g, bn->in[0])->type.rank != 2 ? -1 : axis;
}

static bool fold(zc_graph *g, bn_pass *pass, zc_nid n, int axis)
{
    zc_nid p = zc_producer(g, zc_node_at(g, n)->in[0]);
    int64_t channels = constant(g, zc_node_at(g, p), WEIGHTS)->dims[axis];
    zc_vid new_w, new_b;
    const zc_node *prod = zc_node_at(g, p);
    if (is_hollow(g, zc_node_at(g, n)) || zc_graph_is_hollow(g, prod->in[WEIGHTS]) ||
        zc_graph_is_hollow(g, zc_node_in(prod, BIAS)))
        hollow_parameters(g, p, channels, &new_w, &new_b);
    else if (!folded_parameters(g, n, p, axis, channels, &new_w, &new_b))
        return false;
    ++*pass->changes;
    return rewire(g, pass, n, p, new_w, new_b);
}

/* ---- behind something else ---- */

/* All in f32 or f64, of rank 3 and more, channels and parameters known. */
static bool is_affine(const zc_graph *g, const zc_node *bn)
{
    const zc_type *x = &zc_val(g, bn->in[0])->type;
    if ((x->dtype != ZC_F32 && x->dtype != ZC_F64) || x->rank < 3) return false;
    if (!zc_dim_is_const(x->dims[1]) || !is_foldable(g, bn, x->dims[1].k)) return false;
    for (int i = ZC_IN_BatchNormalization_scale; i <= ZC_IN_BatchNormalization_variance; i++)
        if (constant(g, bn, i)->dtype != x->dtype) return false;
    return true;
}

/* v by channel of x, [C,1,...]; NULL: not known. finite: unchanged, or false where one is not a
 * number that x's type has. */
static zc_vid by_channel(zc_graph *g, const char *name, const zc_type *x, const double *v,
                         bool *finite)
{
    int64_t channels = x->dims[1].k;
    zc_tensor t = {.dtype = x->dtype, .rank = x->rank - 1};
    zc_type type = {.dtype = x->dtype, .rank = x->rank - 1};
    for (int d = 0; d < t.rank; d++) {
        t.dims[d] = d ? 1 : channels;
        type.dims[d] = zc_dim_const(t.dims[d]);
    }
    if (!v) return zc_graph_hollow(g, name, &type);
    if (!(t.data = zc_calloc((size_t)channels, sizeof *v))) return 0;
    for (int64_t c = 0; c < channels; c++) {
        zc_store_f64(t.dtype, t.data, c, v[c]);
        *finite &= isfinite(zc_load_f64(t.dtype, t.data, c));
    }
    return zc_graph_const(g, name, &t, true);
}

/* A variance so small that a factor overflows keeps the operation, which subtracts first. */
static bool become_affine(zc_graph *g, bn_pass *pass, zc_nid n)
{
    const zc_node *bn = zc_node_at(g, n);
    const zc_type x = zc_val(g, bn->in[0])->type;
    bool finite = true;
    affine f = {NULL, NULL};
    if (!is_hollow(g, bn) && !affine_of(g, bn, x.dims[1].k, &f)) return false;
    zc_vid scale = by_channel(g, "scale", &x, f.scale, &finite);
    zc_vid shift = by_channel(g, "shift", &x, f.shift, &finite);
    free(f.scale);
    if (!scale || !shift) return false;
    if (!finite) return true;
    const zc_vid in[] = {zc_node_at(g, n)->in[0], scale, shift};
    if (!zc_graph_become(g, n, ZC_OP_Pointwise, 3, in)) return false;
    ZC_NODE_SET(g, Pointwise, n, expr, "x0 * x1 + x2");
    zc_node_at(g, n)->nout = 1;
    ++*pass->changes;
    return true;
}

static bool visit(zc_graph *g, zc_nid n, void *user)
{
    const zc_node *bn = zc_node_at(g, n);
    if (bn->op != ZC_OP_BatchNormalization) return true;
    int axis = foldable_axis(g, user, bn);
    if (axis >= 0) return fold(g, user, n, axis);
    return !is_affine(g, bn) || become_affine(g, user, n);
}

zc_status zc_pass_opt_fold_batchnorm(zc_pass *p)
{
    bn_pass q = {.uses = zc_graph_uses(p->g), .changes = &p->changes};
    if (!q.uses) return zc_fail_nomem(p->diag, "use counts", p->g->values.len);
    zc_status status = zc_each_node(p->g, &p->g->top, visit, &q, p->diag);
    free(q.uses);
    return status;
}
