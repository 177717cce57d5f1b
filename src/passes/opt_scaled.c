/* On Hopper, products of dequantised e4m3, or of bytes by i8 without a zero point, whose second
 * factor is a constant matrix, and convolutions of e4m3 with constant weights, become those of the
 * codes: the sums are of exact products and scaled once, where floats are scaled first.
 *
 * Before constants are folded: weights would become floats. */
#include <stdlib.h>

#include "op/scaled.h"
#include "passes/passes.h"
#include "passes/quantised.h"
#include "passes/scaled.h"

static bool is_e4m3(const zc_graph *g, zc_vid v)
{
    return zc_val(g, v)->type.dtype == ZC_F8E4M3FN;
}

/* One number a column, of f32 or that can be. */
static bool is_bias(const zc_graph *g, zc_vid v, int64_t columns)
{
    const zc_type *t = &zc_val(g, v)->type;
    return t->rank == 1 && zc_dim_is(t->dims[0], columns) && (t->dtype == ZC_F32 || zc_known(g, v));
}

/* What each column's sums count. 0: no memory. */
static zc_vid scales_of(zc_graph *g, const zc_quantised *x, const zc_quantised *w, int64_t columns)
{
    const zc_tensor *a = zc_known(g, x->scale), *b = zc_known(g, w->scale);
    zc_tensor t = {.dtype = ZC_F32, .rank = 1, .dims = {columns}};
    float *y = zc_calloc((size_t)columns, sizeof *y);
    if (!y) return 0;
    for (int64_t i = 0; i < columns; i++) y[i] = (float)(zc_scale_at(a, 0) * zc_scale_at(b, i));
    t.data = y;
    return zc_graph_const(g, NULL, &t, true);
}

/* ---- convolutions ---- */

/* Those that conv_f8_sm90 serves: bytes of both channels go in pieces of 16, results in pairs. */
static bool is_conv(const zc_graph *g, const zc_node *n, zc_quantised *x, zc_quantised *w)
{
    if (n->op != ZC_OP_Conv || ((const zc_attrs_Conv *)n->attrs)->group != 1) return false;
    if (!zc_dequantised(g, n->in[ZC_IN_Conv_x], x) || !zc_dequantised(g, n->in[ZC_IN_Conv_w], w))
        return false;
    const zc_tensor *t = zc_known(g, w->x);
    const zc_vid bias = zc_node_in(n, ZC_IN_Conv_bias);
    return is_e4m3(g, x->x) && x->axis < 0 && zc_known(g, x->scale) && is_e4m3(g, w->x) &&
           w->axis <= 0 && zc_known(g, w->scale) && t && zc_scaled_conv_fits(t) &&
           (!bias || is_bias(g, bias, t->dims[0]));
}

static bool convolution(zc_graph *g, zc_nid n, const zc_quantised *x, const zc_quantised *w)
{
    const zc_vid bias = zc_node_in(zc_node_at(g, n), ZC_IN_Conv_bias);
    const zc_vid scales = scales_of(g, x, w, zc_known(g, w->x)->dims[0]);
    const zc_vid wide = bias ? zc_as_f32(g, bias) : 0;
    return scales && (wide || !bias) && zc_scaled_conv(g, n, x->x, w->x, scales, wide);
}

/* ---- products ---- */

/* Bytes by i8 without a zero point, whose sums fit 32 bits. zero: the first factor's, which is
 * known. */
static bool are_bytes(const zc_graph *g, const zc_linear *l, int64_t depth, double *zero)
{
    return zc_is_bytes(g, l->a.x) && zc_val(g, l->b.x)->type.dtype == ZC_I8 &&
           (!l->b.zero || zc_is_splat(g, l->b.zero, 0)) &&
           (!l->a.zero || zc_graph_splat(g, l->a.zero, zero)) && depth <= ZC_SCALED_BYTES_MOST;
}

/* What of the sums of row c of w is the zero point's. */
static double zero_share(const zc_tensor *w, int64_t c, double zero)
{
    const int8_t *row = (const int8_t *)w->data + c * w->dims[1];
    int64_t sum = 0;
    for (int64_t k = 0; k < w->dims[1]; k++) sum += row[k];
    return zero * (double)sum;
}

/* The bias without what the first factor's zero point adds to the sums. 0: no memory. */
static zc_vid bias_without(zc_graph *g, const zc_linear *l, const zc_tensor *w,
                           const zc_tensor *scales, double zero)
{
    const zc_tensor *bias = l->bias ? zc_known(g, l->bias) : NULL;
    zc_tensor t = {.dtype = ZC_F32, .rank = 1, .dims = {w->dims[0]}};
    float *y = zc_calloc((size_t)w->dims[0], sizeof *y);
    if (!y) return 0;
    for (int64_t c = 0; c < w->dims[0]; c++)
        y[c] = (float)((bias ? zc_load_f64(bias->dtype, bias->data, c) : 0) -
                       zc_scale_at(scales, c) * zero_share(w, c, zero));
    t.data = y;
    return zc_graph_const(g, NULL, &t, true);
}

static bool may_multiply_codes(const zc_graph *g, const zc_linear *l, double *zero)
{
    const zc_tensor *w = zc_known(g, l->b.x);
    *zero = 0;
    if (!w || w->rank != 2 || zc_val(g, l->a.x)->type.rank < 2 || zc_tensor_numel(w) <= 0)
        return false;
    if (l->bias && !is_bias(g, l->bias, w->dims[l->turned ? 0 : 1])) return false;
    if (is_e4m3(g, l->a.x)) return is_e4m3(g, l->b.x);
    if (!are_bytes(g, l, w->dims[l->turned ? 1 : 0], zero)) return false;
    return *zero == 0 || !l->bias || zc_known(g, l->bias);
}

static bool product(zc_graph *g, zc_nid n, size_t *changes)
{
    zc_linear l;
    double zero;
    if (!zc_linear_of(g, zc_node_at(g, n), &l) || !may_multiply_codes(g, &l, &zero)) return true;
    const zc_vid rows = l.turned ? l.b.x : zc_turned(g, l.b.x);
    const zc_tensor *w = rows ? zc_known(g, rows) : NULL;
    const zc_vid scales = w ? scales_of(g, &l.a, &l.b, w->dims[0]) : 0;
    if (!scales) return false;
    const zc_vid bias = zero != 0 ? bias_without(g, &l, w, zc_known(g, scales), zero)
                        : l.bias  ? zc_as_f32(g, l.bias)
                                  : 0;
    if (!bias && (zero != 0 || l.bias)) return false;
    if (!zc_scaled_linear(g, n, l.a.x, rows, scales, bias)) return false;
    ++*changes;
    return true;
}

static bool visit(zc_graph *g, zc_nid n, void *user)
{
    size_t *changes = user;
    zc_quantised x, w;
    if (!is_conv(g, zc_node_at(g, n), &x, &w)) return product(g, n, changes);
    ++*changes;
    return convolution(g, n, &x, &w);
}

zc_status zc_pass_opt_scaled(zc_pass *p)
{
    if (!zc_pass_has(p, ZC_FAMILY_gemm_f8_sm90)) return ZC_OK;
    return zc_each_node(p->g, &p->g->top, visit, &p->changes, p->diag);
}
