/* Convolutions and matrix products of dequantised bytes whose results are quantised again become
 * those of integers; those whose results stay floats, sums of bytes with a scale. ONNX defines
 * QLinearConv and QLinearMatMul by the same real numbers; rounding of floats on the way is what is
 * left out, so that a result may be another where the exact one lies between two integers.
 *
 * On the CPU, and of convolutions and products of what is computed on Hopper; before constants are
 * folded: weights would become floats. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "passes/passes.h"
#include "passes/quantised.h"

typedef struct integers {
    zc_use_counts uses;
    bool products; /* of constant matrices, too */
    size_t *changes;
} integers;

/* The zero point, which may be left out; 0: no memory. */
static zc_vid zero_of(zc_graph *g, zc_vid zero, zc_dtype dtype)
{
    const uint8_t none = 0;
    if (zero) return zero;
    zc_tensor t = {.dtype = dtype, .rank = 0, .data = (void *)(uintptr_t)&none};
    return zc_graph_const(g, NULL, &t, false);
}

/* false: no memory for one. */
static bool are_there(const zc_vid *v, int n)
{
    for (int i = 0; i < n; i++)
        if (!v[i]) return false;
    return true;
}

/* Is it the bias of 32-bit integers that the sums take as it is? */
static bool is_bias(const zc_graph *g, const zc_quantised *b, const zc_quantised *x,
                    const zc_quantised *w)
{
    const zc_tensor *bias = zc_known(g, b->x), *s = zc_known(g, b->scale);
    const zc_tensor *xs = zc_known(g, x->scale), *ws = zc_known(g, w->scale);
    double zero = 0;
    if (!bias || bias->dtype != ZC_I32 || bias->rank != 1 || !s || !xs || !ws) return false;
    if (b->zero && (!zc_graph_splat(g, b->zero, &zero) || zero != 0)) return false;
    for (int64_t i = 0; i < bias->dims[0]; i++)
        if (!(fabs(zc_scale_at(s, i) - zc_scale_at(xs, 0) * zc_scale_at(ws, i)) <=
              1e-6 * fabs(zc_scale_at(s, i))))
            return false;
    return true;
}

/* Element i of a bias that is known, or made of integers that are. */
static double bias_at(const zc_tensor *t, const zc_tensor *scale, int64_t i)
{
    return zc_load_f64(t->dtype, t->data, i) * (scale ? zc_scale_at(scale, i) : 1);
}

/* But for what f32 has rounded? */
static bool is_whole(double v)
{
    return fabs(v - nearbyint(v)) <= 0x1p-22 * fabs(v);
}

/* A bias in what the sums count: of 16 bits, or by a scale of 16 bits, to the nearest whole number,
 * of f32 only where it is one. v: it, when it is no b. 0: there are no such integers of 32 bits, or
 * no memory (ok). */
static zc_vid recounted(zc_graph *g, zc_vid v, const zc_quantised *b, const zc_quantised *x,
                        const zc_quantised *w, bool *ok)
{
    const zc_tensor *bias = zc_known(g, b->x ? b->x : v), *s = b->x ? zc_known(g, b->scale) : NULL;
    const zc_tensor *xs = zc_known(g, x->scale), *ws = zc_known(g, w->scale);
    const bool nearest = zc_val(g, v)->type.dtype != ZC_F32;
    double zero = 0;
    if (!bias || bias->rank != 1 || (b->x && !s) || !xs || !ws) return 0;
    if (b->zero && (!zc_graph_splat(g, b->zero, &zero) || zero != 0)) return 0;
    zc_tensor t = {.dtype = ZC_I32, .rank = 1, .dims = {bias->dims[0]}};
    int32_t *y = zc_calloc((size_t)t.dims[0] + 1, sizeof *y);
    *ok = y != NULL;
    for (int64_t i = 0; y && i < t.dims[0]; i++) {
        const double sum = bias_at(bias, s, i) / (zc_scale_at(xs, 0) * zc_scale_at(ws, i));
        if (!(fabs(sum) < INT32_MAX) || !(nearest || is_whole(sum))) {
            free(y);
            return 0;
        }
        y[i] = (int32_t)nearbyint(sum);
    }
    t.data = y;
    const zc_vid made = y ? zc_graph_const(g, zc_val(g, v)->name, &t, true) : 0;
    *ok = made != 0;
    return made;
}

/* The convolution's bias as integers that are added to the sums; 0: it is none. false: no memory.
 */
static bool bias_of(zc_graph *g, zc_vid v, const zc_quantised *x, const zc_quantised *w,
                    zc_quantised *b)
{
    bool ok = true;
    const bool counted = zc_dequantised(g, v, b);
    if (!counted) *b = (zc_quantised){0};
    if (!counted || !is_bias(g, b, x, w)) b->x = recounted(g, v, b, x, w, &ok);
    return ok;
}

static bool convolution(zc_graph *g, zc_nid n, zc_nid c, const integers *p)
{
    const zc_node *q = zc_node_at(g, n), *conv = zc_node_at(g, c);
    const zc_vid bias = zc_node_in(conv, ZC_IN_Conv_bias), y_scale = q->in[1];
    const zc_vid y_zero = zc_node_in(q, ZC_IN_QuantizeLinear_zero);
    const zc_dtype dtype = zc_val(g, q->out[0])->type.dtype;
    const void *attrs = conv->attrs;
    zc_quantised x, w, b = {0};
    if (!zc_dequantised(g, conv->in[ZC_IN_Conv_x], &x) || x.axis >= 0 || !zc_is_bytes(g, x.x))
        return true;
    if (!zc_dequantised(g, conv->in[ZC_IN_Conv_w], &w) || w.axis > 0 || !zc_is_bytes(g, w.x))
        return true;
    if (bias && !bias_of(g, bias, &x, &w, &b)) return false;
    if (bias && !b.x) return true;
    const zc_vid zx = zero_of(g, x.zero, zc_val(g, x.x)->type.dtype);
    const zc_vid zw = zero_of(g, w.zero, zc_val(g, w.x)->type.dtype);
    const zc_vid zy = zero_of(g, y_zero, dtype);
    const zc_vid in[] = {x.x, zc_as_f32(g, x.scale), zx, w.x, zc_as_f32(g, w.scale),
                         zw,  zc_as_f32(g, y_scale), zy, b.x};
    if (!are_there(in, 8) || !zc_graph_become(g, n, ZC_OP_QLinearConv, bias ? 9 : 8, in))
        return false;
    zc_attrs_take(zc_op_get(ZC_OP_QLinearConv), zc_node_at(g, n)->attrs, zc_op_get(ZC_OP_Conv),
                  attrs);
    if (!zc_graph_inherit(g, n, c)) return false;
    zc_graph_remove(g, c);
    zc_drop(g, &p->uses, w.by);
    zc_drop(g, &p->uses, b.by);
    ++*p->changes;
    return true;
}

/* Bytes with one scale that v is made of, or what it is when nothing but moved, for v alone. */
static bool moved_from(const zc_graph *g, const integers *p, zc_vid v, zc_quantised *out)
{
    if (zc_dequantised(g, v, out)) return true;
    const zc_nid m = zc_producer(g, v);
    const zc_node *move = m ? zc_node_at(g, m) : NULL;
    return move && zc_only_moves(move->op) && zc_used_once(&p->uses, v) &&
           moved_from(g, p, move->in[0], out) && out->axis < 0;
}

/* The bytes of v, which are moved in place of its floats. */
static zc_vid as_bytes(zc_graph *g, zc_vid v, const zc_quantised *of)
{
    const zc_nid m = zc_producer(g, v);
    if (m == of->by) return of->x;
    zc_node_at(g, m)->in[0] = as_bytes(g, zc_node_at(g, m)->in[0], of);
    zc_val(g, v)->type.dtype = zc_val(g, of->x)->type.dtype;
    return v;
}

static bool product(zc_graph *g, zc_nid n, zc_nid m, const integers *p)
{
    const zc_node *q = zc_node_at(g, n), *mul = zc_node_at(g, m);
    const zc_vid scale = q->in[1], y_zero = zc_node_in(q, ZC_IN_QuantizeLinear_zero);
    const zc_dtype dtype = zc_val(g, q->out[0])->type.dtype;
    zc_quantised a, b;
    if (!moved_from(g, p, mul->in[0], &a) || a.axis >= 0 || !zc_is_bytes(g, a.x)) return true;
    if (!moved_from(g, p, mul->in[1], &b) || !zc_is_bytes(g, b.x)) return true;
    const int rank = zc_val(g, mul->in[1])->type.rank;
    if (rank < 2 || (b.axis >= 0 && (rank != 2 || b.axis != 1))) return true;
    a.x = as_bytes(g, mul->in[0], &a);
    b.x = as_bytes(g, mul->in[1], &b);
    const zc_vid za = zero_of(g, a.zero, zc_val(g, a.x)->type.dtype);
    const zc_vid zb = zero_of(g, b.zero, zc_val(g, b.x)->type.dtype);
    const zc_vid zy = zero_of(g, y_zero, dtype);
    const zc_vid in[] = {a.x, zc_as_f32(g, a.scale), za, b.x, zc_as_f32(g, b.scale),
                         zb,  zc_as_f32(g, scale),   zy};
    if (!are_there(in, 8) || !zc_graph_become(g, n, ZC_OP_QLinearMatMul, 8, in)) return false;
    if (!zc_graph_inherit(g, n, m)) return false;
    zc_graph_remove(g, m);
    zc_drop(g, &p->uses, b.by);
    ++*p->changes;
    return true;
}

/* Sums of so many products of bytes fit 32 bits. */
enum { DEPTH_MOST = INT32_MAX / (255 * 255) };

static bool is_shallow(const zc_type *b, bool turned)
{
    const zc_dim depth = b->dims[b->rank - (turned ? 1 : 2)];
    return zc_dim_is_const(depth) && depth.k <= DEPTH_MOST;
}

/* Of what is computed, as in attention; products by constants opt_scaled takes, too. */
static bool of_activations(const zc_graph *g, const integers *p, const zc_node *product)
{
    zc_quantised b;
    const zc_type *type = &zc_val(g, product->in[1])->type;
    return moved_from(g, p, product->in[1], &b) && !zc_known(g, b.x) && type->rank >= 2 &&
           is_shallow(type, false);
}

static bool visit(zc_graph *g, zc_nid n, void *user)
{
    const integers *p = user;
    const zc_node *q = zc_node_at(g, n);
    if (!zc_is_quantised(g, q) || !zc_used_once(&p->uses, q->in[0])) return true;
    const zc_nid made = zc_producer(g, q->in[0]);
    if (!made) return true;
    if (zc_node_at(g, made)->op == ZC_OP_Conv) return convolution(g, n, made, p);
    const bool is_product = zc_node_at(g, made)->op == ZC_OP_MatMul;
    return is_product && (p->products || of_activations(g, p, zc_node_at(g, made)))
               ? product(g, n, made, p)
               : true;
}

/* ---- products whose results stay floats ---- */

static bool is_linear(const zc_graph *g, const zc_node *n, zc_linear *l)
{
    return zc_linear_of(g, n, l) && zc_is_bytes(g, l->a.x) && zc_is_bytes(g, l->b.x) &&
           is_shallow(&zc_val(g, l->b.x)->type, l->turned) && (!l->turned || zc_known(g, l->b.x));
}

/* What a sum counts: both scales, of one number or one for each of an axis that has `behind` axes
 * behind it. */
static zc_vid scale_of(zc_graph *g, const zc_quantised *x, const zc_quantised *w, int behind)
{
    const zc_tensor *a = zc_known(g, x->scale), *b = zc_known(g, w->scale);
    const int64_t n = zc_tensor_numel(b);
    zc_tensor t = {.dtype = ZC_F32, .rank = n > 1 ? 1 + behind : 0, .dims = {n, 1, 1}};
    float *y = zc_calloc((size_t)n, sizeof *y);
    if (!y) return 0;
    for (int64_t i = 0; i < n; i++) y[i] = (float)(zc_scale_at(a, 0) * zc_scale_at(b, i));
    t.data = y;
    return zc_graph_const(g, NULL, &t, true);
}

/* What becomes of the sums: floats of the type that the product had. NULL: no memory. */
static const char *work_of(zc_graph *g, zc_dtype made, bool bias)
{
    char text[64];
    const char *plain = bias ? "f32(x0) * x1 + f32(x2)" : "f32(x0) * x1";
    if (made == ZC_F32) return bias ? "f32(x0) * x1 + x2" : plain;
    zc_snprintf(text, sizeof text, "%s(%s)", zc_dtype_name(made), plain);
    return zc_arena_strdup(&g->arena, text);
}

static bool sums(zc_graph *g, zc_nid n, void *user)
{
    const integers *p = user;
    zc_linear l;
    if (!is_linear(g, zc_node_at(g, n), &l)) return true;
    const zc_vid b = l.turned ? zc_turned(g, l.b.x) : l.b.x,
                 scale = b ? scale_of(g, &l.a, &l.b, 0) : 0;
    const zc_vid za = zero_of(g, l.a.zero, zc_val(g, l.a.x)->type.dtype);
    const zc_vid zb = zero_of(g, l.b.zero, zc_val(g, l.b.x)->type.dtype);
    const zc_vid in[] = {l.a.x, b, za, zb, scale, l.bias};
    const char *work = work_of(g, zc_val(g, zc_node_at(g, n)->out[0])->type.dtype, l.bias != 0);
    if (!work || !are_there(in, 5) ||
        !zc_graph_become(g, n, ZC_OP_MatMulInteger, l.bias ? 6 : 5, in))
        return false;
    ZC_NODE_SET(g, MatMulInteger, n, epilogue, work);
    ++*p->changes;
    return true;
}

/* ---- convolutions whose results stay floats, on the CPU ---- */

/* Over one axis or two, as the products of bytes have them, by constant weights of one zero point.
 */
static bool is_summed(const zc_graph *g, const zc_node *n, zc_quantised *x, zc_quantised *w)
{
    double zero;
    if (n->op != ZC_OP_Conv || !zc_dequantised(g, n->in[ZC_IN_Conv_x], x) ||
        !zc_dequantised(g, n->in[ZC_IN_Conv_w], w))
        return false;
    const zc_tensor *t = zc_known(g, w->x);
    return x->axis < 0 && zc_is_bytes(g, x->x) && zc_known(g, x->scale) && w->axis <= 0 && t &&
           zc_is_bytes(g, w->x) && zc_known(g, w->scale) && (t->rank == 3 || t->rank == 4) &&
           t->dims[0] > 0 && zc_tensor_numel(t) / t->dims[0] <= DEPTH_MOST &&
           (!w->zero || zc_graph_splat(g, w->zero, &zero));
}

/* ConvInteger, which is next in the block, with n's attributes; its result, 0: no memory. */
static zc_vid byte_sums(zc_graph *g, zc_nid n, const zc_quantised *x, const zc_quantised *w)
{
    const zc_vid in[] = {x->x, w->x, zero_of(g, x->zero, zc_val(g, x->x)->type.dtype),
                         zero_of(g, w->zero, zc_val(g, w->x)->type.dtype)};
    const char *name = zc_node_at(g, n)->name;
    const zc_nid made =
        are_there(in, 4) ? zc_graph_node(g, &g->top, ZC_OP_ConvInteger, name, 4, in, 1) : 0;
    if (!made || !zc_graph_inherit(g, made, n)) return 0;
    zc_attrs_take(zc_op_get(ZC_OP_ConvInteger), zc_node_at(g, made)->attrs, zc_op_get(ZC_OP_Conv),
                  zc_node_at(g, n)->attrs);
    const zc_vid sum = zc_graph_out(g, made, 0, NULL);
    if (!sum) return 0;
    zc_val(g, sum)->type = zc_val(g, zc_node_at(g, n)->out[0])->type;
    zc_val(g, sum)->type.dtype = ZC_I32;
    return sum;
}

/* One number a channel, for planes of channels first: next in the block. 0: no memory. */
static zc_vid by_channel(zc_graph *g, zc_vid v, const zc_tensor *w)
{
    const int64_t form[] = {w->dims[0], 1, 1};
    const zc_vid in[] = {v, zc_graph_const_i64(g, NULL, form, w->rank - 1, 1)};
    const zc_nid made = in[1] ? zc_graph_node(g, &g->top, ZC_OP_Reshape, "bias", 2, in, 1) : 0;
    const zc_vid y = made ? zc_graph_out(g, made, 0, NULL) : 0;
    if (!y) return 0;
    zc_type *type = &zc_val(g, y)->type;
    *type = (zc_type){.dtype = zc_val(g, v)->type.dtype, .rank = w->rank - 1};
    for (int d = 0; d < type->rank; d++) type->dims[d] = zc_dim_const(form[d]);
    return y;
}

/* n becomes what is made of the sums. false: no memory. */
static bool summed(zc_graph *g, zc_nid n, const zc_quantised *x, const zc_quantised *w)
{
    const zc_type y = zc_val(g, zc_node_at(g, n)->out[0])->type;
    const zc_vid bias = zc_node_in(zc_node_at(g, n), ZC_IN_Conv_bias);
    const zc_tensor *t = zc_known(g, w->x);
    const zc_vid in[] = {byte_sums(g, n, x, w), scale_of(g, x, w, t->rank - 2),
                         bias ? by_channel(g, bias, t) : 0};
    const int nin = bias ? 3 : 2;
    const char *work = work_of(g, y.dtype, bias != 0);
    if (!work || !are_there(in, nin) || !zc_graph_become(g, n, ZC_OP_Pointwise, nin, in))
        return false;
    ZC_NODE_SET(g, Pointwise, n, expr, work);
    return true;
}

static zc_status sum_convolutions(zc_pass *p)
{
    zc_graph *g = p->g;
    zc_block old = g->top;
    bool ok = true;
    memset(&g->top.nodes, 0, sizeof g->top.nodes);
    for (size_t i = 0; i < old.nodes.len; i++) {
        const zc_nid n = old.nodes.data[i];
        zc_quantised x, w;
        if (ok && is_summed(g, zc_node_at(g, n), &x, &w)) {
            ok = summed(g, n, &x, &w);
            p->changes++;
        }
        ok = ZC_VEC_PUSH(&g->top.nodes, n) && ok;
    }
    ZC_VEC_FINI(&old.nodes);
    return ok ? ZC_OK : zc_fail_nomem(p->diag, "integers", 0);
}

zc_status zc_pass_opt_integers(zc_pass *p)
{
    if (!zc_pass_bytes(p)) return ZC_OK;
    integers i = {.products = zc_pass_on_cpu(p), .changes = &p->changes};
    if (!zc_count_uses(p->g, &i.uses)) return zc_fail_nomem(p->diag, "use counts", 0);
    zc_status status = zc_each_node(p->g, &p->g->top, visit, &i, p->diag);
    if (status == ZC_OK && i.products) status = zc_each_node(p->g, &p->g->top, sums, &i, p->diag);
    if (status == ZC_OK && i.products) status = sum_convolutions(p);
    free(i.uses.of);
    return status;
}
