/* Quantisation before what only moves, compares or joins elements, which then are bytes. What
 * follows has the bits that it had: quantisation is a function of one element that keeps their
 * order.
 *
 * On the CPU and on Hopper, whose kernels of bytes are fast. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"
#include "passes/quantised.h"

typedef struct hoisting {
    zc_use_counts uses;
    size_t *changes;
} hoisting;

/* Scale and zero point that are known, the scale positive, finite and so that no byte overflows. */
typedef struct quanta {
    zc_dtype dtype;
    float scale;
    int64_t zero;
} quanta;

static bool quanta_of(const zc_graph *g, zc_vid scale, zc_vid zero, zc_dtype dtype, quanta *out)
{
    const zc_tensor *s = zc_known(g, scale), *z = zc_known(g, zero);
    if (!s || (zero && !z)) return false;
    *out = (quanta){.dtype = dtype, .scale = (float)zc_scale_at(s, 0)};
    if (z) out->zero = zc_load_i64(dtype, z->data, 0);
    return out->scale > 0 && isfinite(255 * out->scale);
}

static bool quanta_after(const zc_graph *g, const zc_node *q, quanta *out)
{
    return quanta_of(g, q->in[1], zc_node_in(q, ZC_IN_QuantizeLinear_zero),
                     zc_val(g, q->out[0])->type.dtype, out);
}

/* Of v, when it is made of bytes with one scale. */
static bool quanta_before(const zc_graph *g, zc_vid v, zc_quantised *b, quanta *out)
{
    return zc_dequantised(g, v, b) && b->axis < 0 && zc_is_bytes(g, b->x) &&
           quanta_of(g, b->scale, b->zero, zc_val(g, b->x)->type.dtype, out);
}

static bool same_quanta(const quanta *a, const quanta *b)
{
    return a->dtype == b->dtype && a->scale == b->scale && a->zero == b->zero;
}

/* Bytes that were made floats and are made the same bytes again: |byte - zero| <= 255, so that the
 * two roundings between are lost in the third. */
static bool again(zc_graph *g, zc_nid n, const hoisting *p)
{
    const zc_node *q = zc_node_at(g, n);
    zc_quantised b;
    quanta from, to;
    if (!quanta_before(g, q->in[0], &b, &from) || !quanta_after(g, q, &to)) return true;
    if (!same_quanta(&from, &to)) return true;
    const zc_vid floats = q->in[0];
    zc_graph_forward(g, q->out[0], b.x);
    zc_graph_remove(g, n);
    zc_drop(g, &p->uses, b.by);
    p->uses.of[floats]--; /* a Concat may be the only reader that is left */
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

/* Are the elements attention's, which the rules find by how they are moved behind it? Before them
 * it is a product of floats. */
static bool is_attention(const zc_graph *g, zc_vid v)
{
    const zc_nid n = zc_producer(g, zc_chosen_from(g, v));
    const zc_node *node = n ? zc_node_at(g, n) : NULL;
    zc_quantised a;
    return node && (node->op == ZC_OP_Attention ||
                    (node->op == ZC_OP_MatMul && !zc_dequantised(g, node->in[0], &a)));
}

/* Is v made of bytes, or joined of what is? left: values that are looked at, so that a join of
 * joins ends. */
static bool is_of_bytes(const zc_graph *g, zc_vid v, int *left)
{
    const zc_nid made = zc_producer(g, v);
    const zc_node *join =
        made && zc_node_at(g, made)->op == ZC_OP_Concat ? zc_node_at(g, made) : NULL;
    zc_quantised b;
    quanta q;
    if (--*left < 0) return false;
    for (int i = 0; join && i < join->nin; i++)
        if (!is_of_bytes(g, join->in[i], left)) return false;
    return join || quanta_before(g, v, &b, &q);
}

/* May quantisation come before node m? What drops elements is only worth it where they are bytes
 * already. */
static bool goes_behind(const zc_graph *g, zc_nid m)
{
    const zc_node *node = zc_node_at(g, m);
    int left = ZC_JOINED_MOST;
    return zc_only_chooses(g, node) && !is_attention(g, node->in[0]) &&
           (zc_only_moves(node->op) || is_of_bytes(g, node->in[0], &left));
}

static bool visit(zc_graph *g, zc_nid n, void *user);

/* Nodes m and n change places: the one quantises, then the other moves. */
static bool hoist(zc_graph *g, zc_nid n, zc_nid m, hoisting *p)
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
static zc_vid requantised(zc_graph *g, const zc_quantised *b, const quanta *from, const quanta *to)
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
static bool concat(zc_graph *g, zc_nid n, zc_nid m, const hoisting *p)
{
    const zc_node *q = zc_node_at(g, n), *node = zc_node_at(g, m);
    const int nin = node->nin;
    zc_quantised b;
    quanta from, to;
    if (!quanta_after(g, q, &to)) return true;
    for (int i = 0; i < nin; i++)
        if (!quanta_before(g, node->in[i], &b, &from) ||
            (!same_quanta(&from, &to) && !zc_used_once(&p->uses, node->in[i])))
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
    hoisting *p = user;
    const zc_node *q = zc_node_at(g, n);
    quanta to;
    if (!zc_is_quantised(g, q) || !quanta_after(g, q, &to)) return true;
    const zc_nid made = zc_producer(g, q->in[0]);
    const zc_op op = made ? zc_node_at(g, made)->op : ZC_OP_NONE;
    if (op == ZC_OP_DequantizeLinear) return again(g, n, p);
    if (!made || !zc_used_once(&p->uses, q->in[0])) return true;
    if (op == ZC_OP_Concat) return concat(g, n, made, p);
    if (goes_behind(g, made)) return hoist(g, n, made, p);
    if (!cuts_nothing(g, made, &to)) return true;
    zc_node_at(g, n)->in[0] = zc_node_at(g, made)->in[0];
    zc_graph_remove(g, made);
    ++*p->changes;
    return zc_graph_inherit(g, n, made) && visit(g, n, user);
}

/* ---- Split ---- */

/* By value: does quantisation read it? NULL: no memory. */
static bool *find_quantised(const zc_graph *g, const zc_block *b)
{
    bool *found = zc_calloc(g->values.len, sizeof *found);
    for (size_t i = 0; found && i < b->nodes.len; i++) {
        const zc_node *n = zc_node_at(g, b->nodes.data[i]);
        if (zc_is_quantised(g, n)) found[n->in[0]] = true;
    }
    return found;
}

/* Does it divide what is made of bytes, and is each part quantised again? */
static bool splits_bytes(const zc_graph *g, const zc_node *n, const bool *quantised,
                         zc_quantised *b)
{
    quanta q;
    if (n->op != ZC_OP_Split || !quanta_before(g, n->in[0], b, &q)) return false;
    for (int i = 0; i < n->nout; i++)
        if (n->out[i] && !quantised[n->out[i]]) return false;
    return true;
}

/* The Split n divides the bytes, and each part is dequantised by itself; false: no memory. */
static bool split(zc_graph *g, zc_block *b, zc_nid n, const zc_quantised *from)
{
    const int nout = zc_node_at(g, n)->nout;
    zc_node_at(g, n)->in[ZC_IN_Split_x] = from->x;
    for (int i = 0; i < nout; i++) {
        const zc_vid part = zc_node_at(g, n)->out[i];
        if (!part) continue;
        zc_type type = zc_val(g, part)->type;
        type.dtype = zc_val(g, from->x)->type.dtype;
        const zc_nid by = zc_graph_node(g, b, ZC_OP_DequantizeLinear, zc_node_at(g, from->by)->name,
                                        3, (zc_vid[]){0, from->scale, from->zero}, 1);
        const zc_vid bytes = by ? zc_graph_value(g, NULL, ZC_VALUE_NODE, &type) : 0;
        if (!bytes || !zc_graph_inherit(g, by, from->by)) return false;
        zc_node_at(g, by)->attrs =
            zc_graph_attrs_dup(g, ZC_OP_DequantizeLinear, zc_node_at(g, from->by)->attrs);
        if (!zc_node_at(g, by)->attrs) return false;
        zc_val(g, bytes)->producer = n;
        zc_node_at(g, n)->out[i] = zc_node_at(g, by)->in[0] = bytes;
        zc_val(g, part)->producer = by;
        zc_node_at(g, by)->out[0] = part;
    }
    return true;
}

/* Parts of bytes that are made floats in front of a Split are made floats behind it, so that
 * quantisation finds them. */
static zc_status split_bytes(zc_pass *p)
{
    zc_graph *g = p->g;
    zc_block old = g->top;
    bool *quantised = find_quantised(g, &old), ok = quantised != NULL;
    memset(&g->top.nodes, 0, sizeof g->top.nodes);
    for (size_t i = 0; ok && i < old.nodes.len; i++) {
        const zc_nid n = old.nodes.data[i];
        zc_quantised b;
        ok = ZC_VEC_PUSH(&g->top.nodes, n);
        if (!ok || !splits_bytes(g, zc_node_at(g, n), quantised, &b)) continue;
        ok = split(g, &g->top, n, &b);
        p->changes++;
    }
    free(quantised);
    ZC_VEC_FINI(&old.nodes);
    return ok ? ZC_OK : zc_fail_nomem(p->diag, "bytes", 0);
}

zc_status zc_pass_opt_bytes(zc_pass *p)
{
    if (!zc_pass_bytes(p)) return ZC_OK;
    hoisting h = {.changes = &p->changes};
    ZC_TRY(split_bytes(p));
    if (!zc_count_uses(p->g, &h.uses)) return zc_fail_nomem(p->diag, "use counts", 0);
    zc_status status = zc_each_node(p->g, &p->g->top, visit, &h, p->diag);
    free(h.uses.of);
    return status;
}
