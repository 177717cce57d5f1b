/* On Hopper, products of dequantised e4m3, or of bytes by i8 without a zero point, whose second
 * factor is a constant matrix, and convolutions with constant weights (of bytes those that are not
 * opt_integers'), become those of the codes: the sums are of exact products and scaled once, where
 * floats are scaled first.
 *
 * Before constants are folded: weights would become floats. */
#include <stdlib.h>
#include <string.h>

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

/* ---- zero points ---- */

/* Bytes by i8 without a zero point, whose sums fit 32 bits. zero: the first factor's, which is
 * known. */
static bool are_bytes(const zc_graph *g, const zc_quantised *a, const zc_quantised *b,
                      int64_t depth, double *zero)
{
    return zc_is_bytes(g, a->x) && zc_val(g, b->x)->type.dtype == ZC_I8 &&
           (!b->zero || zc_is_splat(g, b->zero, 0)) &&
           (!a->zero || zc_graph_splat(g, a->zero, zero)) && depth <= ZC_SCALED_BYTES_MOST;
}

/* What of the sums of row c of w is the zero point's. */
static double zero_share(const zc_tensor *w, int64_t c, double zero)
{
    const int64_t depth = zc_tensor_numel(w) / w->dims[0];
    const int8_t *row = (const int8_t *)w->data + c * depth;
    int64_t sum = 0;
    for (int64_t k = 0; k < depth; k++) sum += row[k];
    return zero * (double)sum;
}

/* The bias, which is known or 0 (none), as f32, without what the first factor's zero point adds to
 * the sums. 0: no memory. */
static zc_vid bias_without(zc_graph *g, zc_vid of, const zc_tensor *w, const zc_tensor *scales,
                           double zero)
{
    const zc_tensor *bias = of ? zc_known(g, of) : NULL;
    zc_tensor t = {.dtype = ZC_F32, .rank = 1, .dims = {w->dims[0]}};
    float *y = zc_calloc((size_t)w->dims[0], sizeof *y);
    if (!y) return 0;
    for (int64_t c = 0; c < w->dims[0]; c++)
        y[c] = (float)((bias ? zc_load_f64(bias->dtype, bias->data, c) : 0) -
                       zc_scale_at(scales, c) * zero_share(w, c, zero));
    t.data = y;
    return zc_graph_const(g, NULL, &t, true);
}

/* ---- convolutions ---- */

/* Do all windows lie on the image? Beyond it the copy engine has zeros, which are no zero points.
 */
static bool stays_inside(const zc_attrs_Conv *a)
{
    for (int i = 0; i < a->pads.n; i++)
        if (a->pads.v[i]) return false;
    return strcmp(a->auto_pad, "NOTSET") == 0 || strcmp(a->auto_pad, "VALID") == 0;
}

/* Those that conv_f8_sm90 serves: bytes of both channels go in pieces of 16, results in pairs. */
static bool is_conv(const zc_graph *g, const zc_node *n, zc_quantised *x, zc_quantised *w,
                    double *zero)
{
    if (n->op != ZC_OP_Conv || ((const zc_attrs_Conv *)n->attrs)->group != 1) return false;
    if (!zc_dequantised(g, n->in[ZC_IN_Conv_x], x) || !zc_dequantised(g, n->in[ZC_IN_Conv_w], w))
        return false;
    const zc_tensor *t = zc_known(g, w->x);
    const zc_vid bias = zc_node_in(n, ZC_IN_Conv_bias);
    *zero = 0;
    if (x->axis >= 0 || !zc_known(g, x->scale) || w->axis > 0 || !zc_known(g, w->scale) || !t ||
        !zc_scaled_conv_fits(t) || (bias && !is_bias(g, bias, t->dims[0])))
        return false;
    if (is_e4m3(g, x->x)) return is_e4m3(g, w->x);
    if (t->dims[0] <= 0 || !are_bytes(g, x, w, zc_tensor_numel(t) / t->dims[0], zero)) return false;
    return *zero == 0 || (stays_inside(n->attrs) && (!bias || zc_known(g, bias)));
}

static bool convolution(zc_graph *g, zc_nid n, const zc_quantised *x, const zc_quantised *w,
                        double zero)
{
    const zc_vid bias = zc_node_in(zc_node_at(g, n), ZC_IN_Conv_bias);
    const zc_tensor *t = zc_known(g, w->x);
    const zc_vid scales = scales_of(g, x, w, t->dims[0]);
    if (!scales) return false;
    const zc_vid wide = zero != 0 ? bias_without(g, bias, t, zc_known(g, scales), zero)
                        : bias    ? zc_as_f32(g, bias)
                                  : 0;
    return (wide || (!bias && zero == 0)) && zc_scaled_conv(g, n, x->x, w->x, scales, wide);
}

/* ---- products ---- */

static bool may_multiply_codes(const zc_graph *g, const zc_linear *l, double *zero)
{
    const zc_tensor *w = zc_known(g, l->b.x);
    *zero = 0;
    if (!w || w->rank != 2 || zc_val(g, l->a.x)->type.rank < 2 || zc_tensor_numel(w) <= 0)
        return false;
    if (l->bias && !is_bias(g, l->bias, w->dims[l->turned ? 0 : 1])) return false;
    if (is_e4m3(g, l->a.x)) return is_e4m3(g, l->b.x);
    if (!are_bytes(g, &l->a, &l->b, w->dims[l->turned ? 1 : 0], zero)) return false;
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
    const zc_vid bias = zero != 0 ? bias_without(g, l.bias, w, zc_known(g, scales), zero)
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
    double zero;
    if (!is_conv(g, zc_node_at(g, n), &x, &w, &zero)) return product(g, n, changes);
    ++*changes;
    return convolution(g, n, &x, &w, zero);
}

zc_status zc_pass_opt_scaled(zc_pass *p)
{
    if (!zc_pass_has(p, ZC_FAMILY_gemm_f8_sm90)) return ZC_OK;
    return zc_each_node(p->g, &p->g->top, visit, &p->changes, p->diag);
}
