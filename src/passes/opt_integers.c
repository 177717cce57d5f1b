/* Convolutions and matrix products of dequantised bytes whose results are quantised again become
 * those of integers, and what only moves or compares elements moves bytes. ONNX defines QLinearConv
 * and QLinearMatMul by the same real numbers; rounding of floats on the way is what is left out, so
 * that a result may be another where the exact one lies between two integers.
 *
 * On the CPU alone, and before constants are folded: weights would become floats. */
#include <math.h>
#include <stdlib.h>

#include "passes/passes.h"
#include "passes/query.h"

typedef struct integers {
    uint32_t *uses;
    size_t values; /* entries of uses */
    size_t *changes;
} integers;

/* Bytes, their scale and their zero point. */
typedef struct bytes {
    zc_nid by; /* what makes floats of them */
    zc_vid x, scale, zero;
    int64_t axis; /* of several scales; -1: one for all */
} bytes;

static bool is_byte(const zc_graph *g, zc_vid v)
{
    const zc_dtype t = zc_val(g, v)->type.dtype;
    return t == ZC_U8 || t == ZC_I8;
}

static bool has_one(const zc_type *t)
{
    return t->rank == 0 || (t->rank == 1 && zc_dim_is(t->dims[0], 1));
}

static const zc_tensor *known(const zc_graph *g, zc_vid v)
{
    const zc_tensor *t = v ? zc_val(g, v)->data : NULL;
    return t && t->data ? t : NULL;
}

/* The zero point, which may be left out; 0: no memory. */
static zc_vid zero_of(zc_graph *g, zc_vid zero, zc_dtype dtype)
{
    const uint8_t none = 0;
    if (zero) return zero;
    zc_tensor t = {.dtype = dtype, .rank = 0, .data = (void *)(uintptr_t)&none};
    return zc_graph_const(g, NULL, &t, false);
}

/* Is v made of bytes, with one scale or one for each index of an axis? */
static bool dequantised(const zc_graph *g, zc_vid v, bytes *b)
{
    zc_nid n = zc_producer(g, v);
    const zc_node *node = n ? zc_node_at(g, n) : NULL;
    if (!node || node->op != ZC_OP_DequantizeLinear) return false;
    const zc_attrs_DequantizeLinear *a = node->attrs;
    const zc_type *scale = &zc_val(g, node->in[ZC_IN_DequantizeLinear_scale])->type;
    const int rank = zc_val(g, v)->type.rank;
    *b = (bytes){.by = n,
                 .x = node->in[ZC_IN_DequantizeLinear_x],
                 .scale = node->in[ZC_IN_DequantizeLinear_scale],
                 .zero = zc_node_in(node, ZC_IN_DequantizeLinear_zero),
                 .axis = -1};
    if (!has_one(scale)) b->axis = a->axis < 0 ? a->axis + rank : a->axis;
    return a->block_size == 0 && scale->dtype == ZC_F32 && zc_val(g, v)->type.dtype == ZC_F32;
}

/* One scale for all, of floats that are quantised to bytes. */
static bool is_quantised(const zc_graph *g, const zc_node *n)
{
    const zc_attrs_QuantizeLinear *a = n->attrs;
    const zc_type *scale = &zc_val(g, n->in[ZC_IN_QuantizeLinear_scale])->type;
    return n->op == ZC_OP_QuantizeLinear && a->block_size == 0 && has_one(scale) &&
           scale->dtype == ZC_F32 && (!a->precision || a->precision == ZC_F32) &&
           zc_val(g, n->in[0])->type.dtype == ZC_F32 && is_byte(g, n->out[0]);
}

static double at(const zc_tensor *t, int64_t i)
{
    return zc_load_f64(t->dtype, t->data, zc_tensor_numel(t) == 1 ? 0 : i);
}

/* Is it the bias of 32-bit integers that the sums take as it is? */
static bool is_bias(const zc_graph *g, const bytes *b, const bytes *x, const bytes *w)
{
    const zc_tensor *bias = known(g, b->x), *s = known(g, b->scale);
    const zc_tensor *xs = known(g, x->scale), *ws = known(g, w->scale);
    double zero = 0;
    if (!bias || bias->dtype != ZC_I32 || bias->rank != 1 || !s || !xs || !ws) return false;
    if (b->zero && (!zc_graph_splat(g, b->zero, &zero) || zero != 0)) return false;
    for (int64_t i = 0; i < bias->dims[0]; i++)
        if (!(fabs(at(s, i) - at(xs, 0) * at(ws, i)) <= 1e-6 * fabs(at(s, i)))) return false;
    return true;
}

static bool alone(const integers *p, zc_vid v)
{
    return v < p->values && p->uses[v] == 1;
}

/* Removes node n when its result was used once, by what is gone. */
static void drop(zc_graph *g, const integers *p, zc_nid n)
{
    if (n && alone(p, zc_node_at(g, n)->out[0])) zc_graph_remove(g, n);
}

static bool convolution(zc_graph *g, zc_nid n, zc_nid c, const integers *p)
{
    const zc_node *q = zc_node_at(g, n), *conv = zc_node_at(g, c);
    const zc_vid bias = zc_node_in(conv, ZC_IN_Conv_bias), scale = q->in[1];
    const zc_vid y_zero = zc_node_in(q, ZC_IN_QuantizeLinear_zero);
    const zc_dtype dtype = zc_val(g, q->out[0])->type.dtype;
    const void *attrs = conv->attrs;
    bytes x, w, b = {0};
    if (!dequantised(g, conv->in[ZC_IN_Conv_x], &x) || x.axis >= 0 || !is_byte(g, x.x)) return true;
    if (!dequantised(g, conv->in[ZC_IN_Conv_w], &w) || w.axis > 0 || !is_byte(g, w.x)) return true;
    if (bias && (!dequantised(g, bias, &b) || !is_bias(g, &b, &x, &w))) return true;
    const zc_vid zx = zero_of(g, x.zero, zc_val(g, x.x)->type.dtype);
    const zc_vid zw = zero_of(g, w.zero, zc_val(g, w.x)->type.dtype);
    const zc_vid zy = zero_of(g, y_zero, dtype);
    const zc_vid in[] = {x.x, x.scale, zx, w.x, w.scale, zw, scale, zy, b.x};
    if (!zx || !zw || !zy || !zc_graph_become(g, n, ZC_OP_QLinearConv, bias ? 9 : 8, in))
        return false;
    zc_attrs_take(zc_op_get(ZC_OP_QLinearConv), zc_node_at(g, n)->attrs, zc_op_get(ZC_OP_Conv),
                  attrs);
    if (!zc_graph_inherit(g, n, c)) return false;
    zc_graph_remove(g, c);
    drop(g, p, w.by);
    drop(g, p, b.by);
    ++*p->changes;
    return true;
}

static bool product(zc_graph *g, zc_nid n, zc_nid m, const integers *p)
{
    const zc_node *q = zc_node_at(g, n), *mul = zc_node_at(g, m);
    const zc_vid scale = q->in[1], y_zero = zc_node_in(q, ZC_IN_QuantizeLinear_zero);
    const zc_dtype dtype = zc_val(g, q->out[0])->type.dtype;
    bytes a, b;
    if (!dequantised(g, mul->in[0], &a) || a.axis >= 0 || !is_byte(g, a.x)) return true;
    if (!dequantised(g, mul->in[1], &b) || !is_byte(g, b.x)) return true;
    const int rank = zc_val(g, b.x)->type.rank;
    if (rank < 2 || (b.axis >= 0 && (rank != 2 || b.axis != 1))) return true;
    const zc_vid za = zero_of(g, a.zero, zc_val(g, a.x)->type.dtype);
    const zc_vid zb = zero_of(g, b.zero, zc_val(g, b.x)->type.dtype);
    const zc_vid zy = zero_of(g, y_zero, dtype);
    const zc_vid in[] = {a.x, a.scale, za, b.x, b.scale, zb, scale, zy};
    if (!za || !zb || !zy || !zc_graph_become(g, n, ZC_OP_QLinearMatMul, 8, in)) return false;
    if (!zc_graph_inherit(g, n, m)) return false;
    zc_graph_remove(g, m);
    drop(g, p, b.by);
    ++*p->changes;
    return true;
}

/* ---- quantisation before what it follows ---- */

/* Scale and zero point that are known, the scale positive, finite and so that no byte overflows. */
typedef struct quanta {
    zc_dtype dtype;
    float scale;
    int64_t zero;
} quanta;

static bool quanta_of(const zc_graph *g, zc_vid scale, zc_vid zero, zc_dtype dtype, quanta *out)
{
    const zc_tensor *s = known(g, scale), *z = known(g, zero);
    if (!s || (zero && !z)) return false;
    *out = (quanta){.dtype = dtype, .scale = (float)at(s, 0)};
    if (z) out->zero = zc_load_i64(dtype, z->data, 0);
    return out->scale > 0 && isfinite(255 * out->scale);
}

static bool quanta_after(const zc_graph *g, const zc_node *q, quanta *out)
{
    return quanta_of(g, q->in[1], zc_node_in(q, ZC_IN_QuantizeLinear_zero),
                     zc_val(g, q->out[0])->type.dtype, out);
}

/* Of v, when it is made of bytes with one scale. */
static bool quanta_before(const zc_graph *g, zc_vid v, bytes *b, quanta *out)
{
    return dequantised(g, v, b) && b->axis < 0 && is_byte(g, b->x) &&
           quanta_of(g, b->scale, b->zero, zc_val(g, b->x)->type.dtype, out);
}

static bool same_quanta(const quanta *a, const quanta *b)
{
    return a->dtype == b->dtype && a->scale == b->scale && a->zero == b->zero;
}

/* Bytes that were made floats and are made the same bytes again: |byte - zero| <= 255, so that the
 * two roundings between are lost in the third. */
static bool again(zc_graph *g, zc_nid n, const integers *p)
{
    const zc_node *q = zc_node_at(g, n);
    bytes b;
    quanta from, to;
    if (!quanta_before(g, q->in[0], &b, &from) || !quanta_after(g, q, &to)) return true;
    if (!same_quanta(&from, &to)) return true;
    zc_graph_forward(g, q->out[0], b.x);
    zc_graph_remove(g, n);
    drop(g, p, b.by);
    ++*p->changes;
    return true;
}

static int64_t quantum(const quanta *q, double v)
{
    const int64_t low = q->dtype == ZC_I8 ? -128 : 0;
    const double r = nearbyint((double)((float)v / q->scale)) + (double)q->zero;
    return r < (double)low ? low : r > (double)(low + 255) ? low + 255 : (int64_t)r;
}

/* Does node m cut off nothing but what quantisation cuts off, too? */
static bool cuts_nothing(const zc_graph *g, zc_nid m, const quanta *q)
{
    const zc_node *node = zc_node_at(g, m);
    const int64_t low = q->dtype == ZC_I8 ? -128 : 0;
    double least = 0, most = INFINITY;
    if (node->op == ZC_OP_Clip &&
        (!zc_graph_splat(g, node->in[1], &least) || !zc_graph_splat(g, node->in[2], &most)))
        return false;
    return (node->op == ZC_OP_Relu || node->op == ZC_OP_Clip) && least < most &&
           quantum(q, least) == low && quantum(q, most) == low + 255;
}

/* Is each element of m's result one of its first operand's? Quantisation keeps the order of
 * numbers, so that it may come before a maximum of them. */
static bool only_selects(const zc_graph *g, zc_nid m)
{
    const zc_node *node = zc_node_at(g, m);
    bytes b;
    quanta q;
    if (node->op == ZC_OP_MaxPool)
        return !zc_node_out(node, 1) && zc_val(g, node->in[0])->type.rank == 4 &&
               quanta_before(g, node->in[0], &b, &q);
    return zc_only_moves(node->op);
}

static bool visit(zc_graph *g, zc_nid n, void *user);

/* Nodes m and n change places: the one quantises, then the other moves. */
static bool hoist(zc_graph *g, zc_nid n, zc_nid m, integers *p)
{
    zc_node *last = zc_node_at(g, n), *first = zc_node_at(g, m);
    const zc_node move = *first, q = *last;
    const zc_vid x = move.in[0], between = move.out[0];
    const zc_dtype dtype = zc_val(g, q.out[0])->type.dtype;
    *first = q;
    *last = move;
    first->out = move.out;
    last->out = q.out;
    first->nout = last->nout = 1;
    first->in[0] = x;
    last->in[0] = between;
    zc_val(g, between)->type = zc_val(g, x)->type;
    zc_val(g, between)->type.dtype = dtype;
    ++*p->changes;
    return visit(g, m, p);
}

/* The bytes of v with other quanta, by the arithmetic of floats that the graph has. 0: no memory.
 */
static zc_vid requantised(zc_graph *g, const bytes *b, const quanta *from, const quanta *to)
{
    if (same_quanta(from, to)) return b->x;
    zc_buf text = {0};
    zc_buf_printf(&text, "%s(round((f32(x0) - (%d)) * (%.9g) / (%.9g)) + (%d))",
                  zc_dtype_name(to->dtype), (int)from->zero, (double)from->scale, (double)to->scale,
                  (int)to->zero);
    const char *expr = text.failed ? NULL : zc_arena_strdup(&g->arena, text.data);
    zc_buf_fini(&text);
    if (!expr || !zc_graph_become(g, b->by, ZC_OP_Pointwise, 1, &b->x)) return 0;
    ZC_NODE_SET(g, Pointwise, b->by, expr, expr);
    zc_vid made = zc_node_at(g, b->by)->out[0];
    zc_val(g, made)->type.dtype = to->dtype;
    return made;
}

/* Parts of one quantisation or another are joined as bytes. */
static bool concat(zc_graph *g, zc_nid n, zc_nid m, const integers *p)
{
    const zc_node *q = zc_node_at(g, n), *node = zc_node_at(g, m);
    const int nin = node->nin;
    bytes b;
    quanta from, to;
    if (!quanta_after(g, q, &to)) return true;
    for (int i = 0; i < nin; i++)
        if (!quanta_before(g, node->in[i], &b, &from) ||
            (!same_quanta(&from, &to) && !alone(p, node->in[i])))
            return true;
    const void *attrs = node->attrs;
    zc_vid *in = zc_arena_dup(&g->arena, node->in, (size_t)nin, sizeof *in);
    for (int i = 0; in && i < nin; i++) {
        quanta_before(g, in[i], &b, &from);
        in[i] = requantised(g, &b, &from, &to);
        if (!in[i]) return false;
    }
    if (!in || !zc_graph_become(g, n, ZC_OP_Concat, nin, in) || !zc_graph_inherit(g, n, m))
        return false;
    zc_node_at(g, n)->attrs = zc_graph_attrs_dup(g, ZC_OP_Concat, attrs);
    zc_graph_remove(g, m);
    ++*p->changes;
    return zc_node_at(g, n)->attrs != NULL;
}

static bool visit(zc_graph *g, zc_nid n, void *user)
{
    integers *p = user;
    const zc_node *q = zc_node_at(g, n);
    quanta to;
    if (!is_quantised(g, q)) return true;
    const zc_nid made = zc_producer(g, q->in[0]);
    const zc_op op = made ? zc_node_at(g, made)->op : ZC_OP_NONE;
    if (op == ZC_OP_DequantizeLinear) return again(g, n, p);
    if (!made || !alone(p, q->in[0])) return true;
    if (op == ZC_OP_Conv) return convolution(g, n, made, p);
    if (op == ZC_OP_MatMul) return product(g, n, made, p);
    if (!quanta_after(g, q, &to)) return true;
    if (op == ZC_OP_Concat) return concat(g, n, made, p);
    if (only_selects(g, made)) return hoist(g, n, made, p);
    if (!cuts_nothing(g, made, &to)) return true;
    zc_node_at(g, n)->in[0] = zc_node_at(g, made)->in[0];
    zc_graph_remove(g, made);
    ++*p->changes;
    return zc_graph_inherit(g, n, made) && visit(g, n, user);
}

/* ---- products whose results stay floats ---- */

/* A product that remains, as the sums that it is of and what makes floats of them. */
typedef struct linear {
    bytes a, b;
    bool turned; /* b's columns are stored as rows */
    zc_vid bias; /* 0: none */
} linear;

static bool is_plain_gemm(const zc_graph *g, const zc_node *n, linear *l)
{
    const zc_attrs_Gemm *a = n->attrs;
    l->bias = zc_node_in(n, ZC_IN_Gemm_c);
    l->turned = a->transB != 0;
    return !a->transA && a->alpha == 1 && (!l->bias || a->beta == 1) &&
           (!l->bias || zc_val(g, l->bias)->type.dtype == ZC_F32);
}

/* Sums of so many products of bytes fit 32 bits. */
static bool is_shallow(const zc_type *b, bool turned)
{
    enum { MOST = INT32_MAX / (255 * 255) };
    const zc_dim depth = b->dims[b->rank - (turned ? 1 : 2)];
    return zc_dim_is_const(depth) && depth.k <= MOST;
}

static bool is_linear(const zc_graph *g, const zc_node *n, linear *l)
{
    *l = (linear){0};
    if (n->op != ZC_OP_MatMul && (n->op != ZC_OP_Gemm || !is_plain_gemm(g, n, l))) return false;
    if (zc_op_epilogue(zc_op_get(n->op), n->attrs)) return false;
    if (!dequantised(g, n->in[0], &l->a) || !dequantised(g, n->in[1], &l->b)) return false;
    const zc_type *b = &zc_val(g, l->b.x)->type;
    const int64_t column = l->turned ? 0 : 1;
    return l->a.axis < 0 && is_byte(g, l->a.x) && is_byte(g, l->b.x) && b->rank >= 2 &&
           zc_val(g, l->a.x)->type.rank >= 1 &&
           (l->b.axis < 0 || (b->rank == 2 && l->b.axis == column)) && is_shallow(b, l->turned) &&
           (!l->turned || known(g, l->b.x)) && known(g, l->a.scale) && known(g, l->b.scale);
}

/* The constant matrix of bytes, turned. 0: no memory. */
static zc_vid turned(zc_graph *g, zc_vid v)
{
    const zc_value *from = zc_val(g, v);
    zc_tensor t = *from->data;
    const int64_t rows = t.dims[0], columns = t.dims[1];
    const uint8_t *x = t.data;
    uint8_t *y = zc_calloc((size_t)(rows * columns), 1);
    if (!y) return 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) y[c * rows + r] = x[r * columns + c];
    t.dims[0] = columns;
    t.dims[1] = rows;
    t.data = y;
    return zc_graph_const(g, from->name, &t, true);
}

/* What a sum counts: both scales, of one number or one a column. */
static zc_vid scale_of(zc_graph *g, const linear *l)
{
    const zc_tensor *a = known(g, l->a.scale), *b = known(g, l->b.scale);
    zc_tensor t = *b;
    const int64_t n = zc_tensor_numel(b);
    float *y = zc_calloc((size_t)n, sizeof *y);
    if (!y) return 0;
    for (int64_t i = 0; i < n; i++) y[i] = (float)(at(a, 0) * at(b, i));
    t.rank = n > 1;
    t.data = y;
    return zc_graph_const(g, NULL, &t, true);
}

static bool sums(zc_graph *g, zc_nid n, void *user)
{
    const integers *p = user;
    linear l;
    if (!is_linear(g, zc_node_at(g, n), &l)) return true;
    const zc_vid b = l.turned ? turned(g, l.b.x) : l.b.x, scale = b ? scale_of(g, &l) : 0;
    const zc_vid za = zero_of(g, l.a.zero, zc_val(g, l.a.x)->type.dtype);
    const zc_vid zb = zero_of(g, l.b.zero, zc_val(g, l.b.x)->type.dtype);
    const zc_vid in[] = {l.a.x, b, za, zb, scale, l.bias};
    if (!scale || !za || !zb || !zc_graph_become(g, n, ZC_OP_MatMulInteger, l.bias ? 6 : 5, in))
        return false;
    ZC_NODE_SET(g, MatMulInteger, n, epilogue, l.bias ? "f32(x0) * x1 + x2" : "f32(x0) * x1");
    ++*p->changes;
    return true;
}

zc_status zc_pass_opt_integers(zc_pass *p)
{
    if (p->options->target && p->options->target->cuda) return ZC_OK;
    integers i = {.uses = zc_graph_uses(p->g), .values = p->g->values.len, .changes = &p->changes};
    if (!i.uses) return zc_fail_nomem(p->diag, "use counts", p->g->values.len);
    zc_status status = zc_each_node(p->g, &p->g->top, visit, &i, p->diag);
    if (status == ZC_OK) status = zc_each_node(p->g, &p->g->top, sums, &i, p->diag);
    free(i.uses);
    return status;
}
