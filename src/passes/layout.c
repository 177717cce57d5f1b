#include "passes/layout.h"

#include <string.h>

#include "passes/precision.h"
#include "passes/quantised.h"

const int64_t zc_to_last[ZC_LAYOUT_AXES + 1][ZC_LAYOUT_AXES] = {
    [3] = {0, 2, 1}, [4] = {0, 2, 3, 1}, [5] = {0, 2, 3, 4, 1}};
const int64_t zc_to_first[ZC_LAYOUT_AXES + 1][ZC_LAYOUT_AXES] = {
    [3] = {0, 2, 1}, [4] = {0, 3, 1, 2}, [5] = {0, 4, 1, 2, 3}};

bool zc_layout_is_half(zc_dtype t)
{
    return t == ZC_F16 || t == ZC_BF16;
}

static bool is_byte(zc_dtype t)
{
    return t == ZC_U8 || t == ZC_I8 || t == ZC_F8E4M3FN;
}

bool zc_layout_takes(const zc_layout *l, zc_dtype t)
{
    return t == ZC_F32 || (l->half && zc_layout_is_half(t)) ||
           (l->bytes && (is_byte(t) || t == ZC_I32));
}

bool zc_layout_is_plane(const zc_layout *l, zc_vid v)
{
    const zc_type *t = v ? &zc_val(l->g, v)->type : NULL;
    return t && t->rank >= 0 && l->ranks >> t->rank & 1 && zc_layout_takes(l, t->dtype);
}

int zc_layout_rank(const zc_layout *l, zc_vid v)
{
    return zc_val(l->g, v)->type.rank;
}

bool zc_layout_is_single(const zc_layout *l, zc_vid v)
{
    const zc_type *t = &zc_val(l->g, v)->type;
    bool single = t->rank >= 0 && t->rank <= ZC_LAYOUT_AXES;
    for (int d = 0; single && d < t->rank; d++) single = zc_dim_is(t->dims[d], 1);
    return single;
}

bool zc_layout_is_channels(const zc_layout *l, zc_vid v, int rank)
{
    const zc_type *t = &zc_val(l->g, v)->type;
    int first = t->rank - rank + 1;
    bool fits = zc_layout_takes(l, t->dtype) && (first == 0 || first == 1) &&
                zc_dim_is_const(t->dims[first]);
    for (int d = first + 1; fits && d < t->rank; d++) fits = zc_dim_is(t->dims[d], 1);
    return fits;
}

const zc_layout_op *zc_layout_op_of(const zc_layout *l, const zc_node *n)
{
    const zc_layout_op *const all[] = {zc_layout_convs, zc_layout_phases, zc_layout_moves,
                                       zc_layout_others};
    for (size_t k = 0; k < ZC_COUNTOF(all); k++)
        for (const zc_layout_op *op = all[k]; op->is; op++)
            if (op->is(l, n)) return op;
    return NULL;
}

zc_type zc_layout_permuted(const zc_type *t, const int64_t *perm)
{
    zc_type r = *t;
    for (int i = 0; i < t->rank; i++) r.dims[i] = t->dims[perm[i]];
    return r;
}

zc_type zc_layout_last_type(const zc_type *t)
{
    return zc_layout_permuted(t, zc_to_last[t->rank]);
}

bool zc_layout_room(zc_layout *l)
{
    size_t n = l->g->values.len;
    if (n <= l->values) return true;
    size_t cap = n * 2;
    zc_vid *last = zc_realloc(l->last, cap, sizeof *last);
    if (!last) return false;
    l->last = last;
    uint32_t *uses = zc_realloc(l->uses, cap, sizeof *uses);
    if (!uses) return false;
    l->uses = uses;
    memset(last + l->values, 0, (cap - l->values) * sizeof *last);
    memset(uses + l->values, 0, (cap - l->values) * sizeof *uses);
    l->values = cap;
    return true;
}

bool zc_layout_keep(zc_layout *l, zc_nid n)
{
    return ZC_VEC_PUSH(&l->out, n);
}

zc_nid zc_layout_add(zc_layout *l, zc_op op, const char *name, int nin, const zc_vid *in,
                     const zc_type *type)
{
    zc_nid n = zc_graph_node(l->g, NULL, op, name, nin, in, 1);
    zc_vid v = n ? zc_graph_out(l->g, n, 0, NULL) : 0;
    if (!v || !zc_layout_room(l) || !zc_layout_keep(l, n)) return 0;
    zc_val(l->g, v)->type = *type;
    return n;
}

zc_vid zc_layout_result(const zc_layout *l, zc_nid n)
{
    return zc_node_at(l->g, n)->out[0];
}

/* Do elements lie alike in that order of the axes, of which those longer than 1 stay as they are?
 */
static bool is_line(const zc_type *t, const int64_t *perm)
{
    int64_t last = 0;
    for (int i = 0; i < t->rank; i++) {
        if (zc_dim_is(t->dims[perm[i]], 1)) continue;
        if (perm[i] < last) return false;
        last = perm[i];
    }
    return true;
}

/* v with its axes in another order, in which its elements lie alike: a view, where axes beside the
 * first are certain and there are elements; *out 0: no memory. */
static bool viewed(zc_layout *l, zc_vid v, const zc_type *type, zc_vid *out)
{
    int64_t shape[ZC_LAYOUT_AXES] = {0};
    for (int d = 1; d < type->rank; d++) {
        if (!zc_dim_is_const(type->dims[d]) || !type->dims[d].k) return false;
        shape[d] = type->dims[d].k;
    }
    zc_vid form = zc_graph_const_i64(l->g, NULL, shape, type->rank, 1);
    zc_nid n = form ? zc_layout_add(l, ZC_OP_Reshape, "layout", 2, (zc_vid[]){v, form}, type) : 0;
    *out = n ? zc_layout_result(l, n) : 0;
    return true;
}

static zc_vid transposed(zc_layout *l, zc_vid v, const int64_t *perm)
{
    const zc_type from = zc_val(l->g, v)->type, type = zc_layout_permuted(&from, perm);
    zc_vid view;
    if (is_line(&from, perm) && viewed(l, v, &type, &view)) return view;
    zc_nid n = zc_layout_add(l, ZC_OP_Transpose, "layout", 1, &v, &type);
    if (!n) return 0;
    ZC_NODE_SET(l->g, Transpose, n, perm, (zc_ints){from.rank, perm});
    return zc_layout_result(l, n);
}

/* in: the plane, and what it is quantised by. */
static zc_nid converted(zc_layout *l, int nin, const zc_vid *in, const int64_t *perm, zc_dtype to)
{
    const zc_type from = zc_val(l->g, in[0])->type;
    zc_type type = zc_layout_permuted(&from, perm);
    type.dtype = to;
    zc_nid n = zc_layout_add(l, ZC_OP_TransposeCast, "layout", nin, in, &type);
    if (!n) return 0;
    ZC_NODE_SET(l->g, TransposeCast, n, perm, (zc_ints){from.rank, perm});
    ZC_NODE_SET(l->g, TransposeCast, n, to, to);
    return n;
}

zc_nid zc_layout_cast(zc_layout *l, zc_vid v, const int64_t *perm, zc_dtype to)
{
    return converted(l, 1, &v, perm, to);
}

static bool is_number(const zc_graph *g, zc_vid v)
{
    return !v || zc_val(g, v)->type.rank == 0;
}

/* What makes bytes of an input, for one reader; 0: v has not been made so. What computes floats can
 * make bytes of them itself. */
static zc_nid quantisation(const zc_layout *l, zc_vid v)
{
    const zc_nid q = l->half && l->uses[v] == 1 ? zc_producer(l->g, v) : 0;
    const zc_node *n = q ? zc_node_at(l->g, q) : NULL;
    if (!n || !zc_is_quantised(l->g, n) || zc_producer(l->g, n->in[0])) return 0;
    const zc_vid scale = n->in[ZC_IN_QuantizeLinear_scale];
    const zc_vid zero = zc_node_in(n, ZC_IN_QuantizeLinear_zero);
    const zc_dtype by = zc_val(l->g, scale)->type.dtype;
    const bool plain = !((const zc_attrs_QuantizeLinear *)n->attrs)->precision &&
                       (by == ZC_F32 || by == zc_val(l->g, n->in[0])->type.dtype);
    return plain && is_number(l->g, scale) && is_number(l->g, zero) ? q : 0;
}

static zc_vid quantised(zc_layout *l, zc_nid q, const int64_t *perm)
{
    const zc_node *node = zc_node_at(l->g, q);
    const zc_dtype to = zc_val(l->g, node->out[0])->type.dtype;
    zc_nid n = converted(l, node->nin, node->in, perm, to);
    return n && zc_graph_inherit(l->g, n, q) ? zc_layout_result(l, n) : 0;
}

/* Of 16 bits that f32 was narrowed to, it is made of that; of bytes, of what was quantised. */
zc_vid zc_layout_to_last(zc_layout *l, zc_vid v)
{
    const int64_t *perm = zc_to_last[zc_layout_rank(l, v)];
    const zc_vid wide = zc_precision_origin(l->g, v);
    const zc_nid q = quantisation(l, v);
    if ((!wide && !q) || zc_layout_is_line(l, v)) return transposed(l, v, perm);
    if (q) return quantised(l, q, perm);
    zc_nid n = zc_layout_cast(l, wide, perm, zc_val(l->g, v)->type.dtype);
    return n ? zc_layout_result(l, n) : 0;
}

bool zc_layout_is_line(const zc_layout *l, zc_vid v)
{
    return is_line(&zc_val(l->g, v)->type, zc_to_last[zc_layout_rank(l, v)]);
}

zc_vid zc_layout_to_first(zc_layout *l, zc_vid v)
{
    return transposed(l, v, zc_to_first[zc_layout_rank(l, v)]);
}

zc_vid zc_layout_last_of(zc_layout *l, zc_vid v)
{
    if (!l->last[v]) {
        zc_vid t = zc_layout_to_last(l, v);
        l->last[v] = t;
    }
    return l->last[v];
}

bool zc_layout_replace_value(zc_layout *l, zc_vid old, zc_vid made)
{
    zc_vid back = zc_layout_to_first(l, made);
    if (!back) return false;
    l->last[back] = made;
    l->last[old] = made;
    l->uses[made] = l->uses[old];
    zc_graph_forward(l->g, old, back);
    return true;
}

bool zc_layout_replace(zc_layout *l, zc_nid n, zc_nid m)
{
    if (!zc_graph_inherit(l->g, m, n)) return false;
    if (!zc_layout_replace_value(l, zc_node_at(l->g, n)->out[0], zc_layout_result(l, m)))
        return false;
    zc_graph_remove(l->g, n);
    l->changes++;
    return true;
}

bool zc_layout_is_native(const zc_layout *l, zc_vid v)
{
    if (l->weighs) return zc_layout_is_plane(l, v) && l->last[v] == v;
    zc_nid p = zc_layout_is_plane(l, v) && l->last[v] ? zc_producer(l->g, v) : 0;
    const zc_node *n = p ? zc_node_at(l->g, p) : NULL;
    return n && (n->op == ZC_OP_Transpose || n->op == ZC_OP_Reshape) && n->in[0] == l->last[v];
}

zc_nid zc_layout_turned(zc_layout *l, zc_nid n, zc_op op, int nin, const zc_vid *in)
{
    zc_type type = zc_layout_last_type(&zc_val(l->g, zc_node_at(l->g, n)->out[0])->type);
    zc_nid m = zc_layout_add(l, op, zc_node_at(l->g, n)->name, nin, in, &type);
    if (!m) return 0;
    const zc_node *node = zc_node_at(l->g, n);
    zc_attrs_take(zc_op_get(op), zc_node_at(l->g, m)->attrs, zc_op_get(node->op), node->attrs);
    return m;
}

bool zc_layout_turn(zc_layout *l, zc_nid n, zc_op op, int nin, const zc_vid *in)
{
    zc_nid m = zc_layout_turned(l, n, op, nin, in);
    return m && zc_layout_replace(l, n, m);
}

/* Result i of m in the place of n's. */
static bool take_result(zc_layout *l, zc_nid n, zc_nid m, int i)
{
    zc_vid old = zc_node_out(zc_node_at(l->g, n), i), made = zc_node_out(zc_node_at(l->g, m), i);
    if (!old) return true;
    if (zc_layout_is_plane(l, old)) return zc_layout_replace_value(l, old, made);
    zc_graph_forward(l->g, old, made);
    return true;
}

zc_nid zc_layout_turn_all(zc_layout *l, zc_nid n, const zc_vid *in)
{
    const zc_node *node = zc_node_at(l->g, n);
    const zc_op_info *info = zc_op_get(node->op);
    const int nout = node->nout;
    zc_nid m = zc_graph_node(l->g, NULL, node->op, node->name, node->nin, in, nout);
    for (int i = 0; m && i < nout; i++) {
        zc_vid old = zc_node_at(l->g, n)->out[i], v = old ? zc_graph_out(l->g, m, i, NULL) : 0;
        if (!old) continue;
        if (!v || !zc_layout_room(l)) return 0;
        const zc_type type = zc_val(l->g, old)->type;
        zc_val(l->g, v)->type = zc_layout_is_plane(l, old) ? zc_layout_last_type(&type) : type;
    }
    if (!m || !zc_layout_keep(l, m) || !zc_graph_inherit(l->g, m, n)) return 0;
    zc_attrs_take(info, zc_node_at(l->g, m)->attrs, info, zc_node_at(l->g, n)->attrs);
    for (int i = 0; i < nout; i++)
        if (!take_result(l, n, m, i)) return 0;
    zc_graph_remove(l->g, n);
    l->changes++;
    return m;
}
