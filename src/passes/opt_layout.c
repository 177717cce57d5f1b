/* Channels last for convolutions over planes: convolutions and the pointwise work, poolings,
 * normalisations of groups, concatenations and resizing between them run on NHWC tensors;
 * transposes stand only where other operations need the channels-first form.
 *
 * On the CPU quantised convolutions are turned, too, with quantisation around them. Of f32, a ReLU
 * and an addition right after a convolution become part of it. Of f16 and bf16, where the target's
 * kernels want it: weights are turned, too, and pointwise work is left to opt_epilogue. */
#include <stdlib.h>
#include <string.h>

#include "op/nhwc.h"
#include "passes/passes.h"
#include "passes/precision.h"
#include "passes/query.h"

typedef struct layout {
    zc_graph *g;
    bool half;    /* of 16 bits, too */
    bool cpu;     /* bytes, and sums of their products, too */
    zc_vid *last; /* by value: its channels-last twin, 0 when there is none */
    uint32_t *uses;
    size_t values;      /* entries of the two above */
    ZC_VEC(zc_nid) out; /* the block's new node list */
    size_t changes;
    zc_diag *diag;
} layout;

static const int64_t to_last[] = {0, 2, 3, 1}, to_first[] = {0, 3, 1, 2};

static bool is_half(zc_dtype t)
{
    return t == ZC_F16 || t == ZC_BF16;
}

static bool is_byte(zc_dtype t)
{
    return t == ZC_U8 || t == ZC_I8;
}

static bool is_taken(const layout *l, zc_dtype t)
{
    return t == ZC_F32 || (l->half && is_half(t)) || (l->cpu && (is_byte(t) || t == ZC_I32));
}

static bool is_plane(const layout *l, zc_vid v)
{
    const zc_type *t = v ? &zc_val(l->g, v)->type : NULL;
    return t && t->rank == 4 && is_taken(l, t->dtype);
}

static zc_type permuted(const zc_type *t, const int64_t *perm)
{
    zc_type r = *t;
    for (int i = 0; i < 4; i++) r.dims[i] = t->dims[perm[i]];
    return r;
}

/* Side tables grow with the graph. */
static bool make_room(layout *l)
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

static bool keep(layout *l, zc_nid n)
{
    return ZC_VEC_PUSH(&l->out, n);
}

/* A new node with one result of the given type, at the end of the new list. 0: no memory. */
static zc_nid add(layout *l, zc_op op, const char *name, int nin, const zc_vid *in,
                  const zc_type *type)
{
    zc_nid n = zc_graph_node(l->g, NULL, op, name, nin, in, 1);
    zc_vid v = n ? zc_graph_out(l->g, n, 0, NULL) : 0;
    if (!v || !make_room(l) || !keep(l, n)) return 0;
    zc_val(l->g, v)->type = *type;
    return n;
}

static zc_vid result(const layout *l, zc_nid n)
{
    return zc_node_at(l->g, n)->out[0];
}

static zc_vid transposed(layout *l, zc_vid v, const int64_t *perm)
{
    zc_type type = permuted(&zc_val(l->g, v)->type, perm);
    zc_nid n = add(l, ZC_OP_Transpose, "layout", 1, &v, &type);
    if (!n) return 0;
    ZC_NODE_SET(l->g, Transpose, n, perm, (zc_ints){4, perm});
    return result(l, n);
}

/* The channels-last form of v, made when it is not there. 0: no memory. */
static zc_vid last_of(layout *l, zc_vid v)
{
    if (!l->last[v]) {
        zc_vid t = transposed(l, v, to_last);
        l->last[v] = t;
    }
    return l->last[v];
}

/* Node n's result now comes from the channels-last node m: other users get it transposed back. */
static bool replace(layout *l, zc_nid n, zc_nid m)
{
    zc_vid old = zc_node_at(l->g, n)->out[0], made = result(l, m);
    if (!zc_graph_inherit(l->g, m, n)) return false;
    zc_vid back = transposed(l, made, to_first);
    if (!back) return false;
    l->last[back] = made;
    l->last[old] = made;
    l->uses[made] = l->uses[old];
    zc_graph_forward(l->g, old, back);
    zc_graph_remove(l->g, n);
    l->changes++;
    return true;
}

/* Is v a plane that was made channels-last, so that its own form costs a transpose? */
static bool is_native(const layout *l, zc_vid v)
{
    zc_nid p = is_plane(l, v) && l->last[v] ? zc_producer(l->g, v) : 0;
    const zc_node *n = p ? zc_node_at(l->g, p) : NULL;
    return n && n->op == ZC_OP_Transpose && n->in[0] == l->last[v];
}

/* ---- operations ---- */

/* Node n as a channels-last operation on these operands, with the attributes that both have. 0: no
 * memory. */
static zc_nid turned(layout *l, zc_nid n, zc_op op, int nin, const zc_vid *in)
{
    zc_type type = permuted(&zc_val(l->g, zc_node_at(l->g, n)->out[0])->type, to_last);
    zc_nid m = add(l, op, zc_node_at(l->g, n)->name, nin, in, &type);
    if (!m) return 0;
    const zc_node *node = zc_node_at(l->g, n);
    zc_attrs_take(zc_op_get(op), zc_node_at(l->g, m)->attrs, zc_op_get(node->op), node->attrs);
    return m;
}

static bool turn(layout *l, zc_nid n, zc_op op, int nin, const zc_vid *in, bool taps_first)
{
    zc_nid m = turned(l, n, op, nin, in);
    if (!m) return false;
    if (taps_first) ZC_NODE_SET(l->g, ConvNhwc, m, taps_first, 1);
    return replace(l, n, m);
}

/* Has a convolution of 16 bits a kernel for channels last? One a channel reads neighbours; others
 * read and write whole pieces of 16 bytes. */
static bool half_fits(const zc_tensor *w, int64_t group)
{
    int64_t channels = w->dims[1];
    if (w->dims[0] % 8) return false;
    return group == 1 ? channels % 8 == 0 : channels == 1 && w->dims[0] == group;
}

static bool is_conv(const layout *l, const zc_node *n)
{
    const zc_attrs_Conv *a = n->attrs;
    if (n->op != ZC_OP_Conv || !is_plane(l, n->in[0]) || !is_plane(l, n->out[0])) return false;
    const zc_tensor *w = zc_val(l->g, n->in[ZC_IN_Conv_w])->data;
    if (!w || w->dtype != zc_val(l->g, n->in[0])->type.dtype) return false;
    return w->dtype == ZC_F32 || half_fits(w, a->group);
}

/* The constant's elements in channels-last order; 0: no memory. */
static zc_vid turned_const(layout *l, zc_vid v)
{
    const zc_tensor *w = zc_val(l->g, v)->data;
    zc_type type = permuted(&zc_val(l->g, v)->type, to_last);
    zc_vid made = zc_transposed_const(l->g, v, w->dims[1], w->dims[2] * w->dims[3], &type);
    return made && make_room(l) ? made : 0;
}

/* Does it read an image of few channels, channels first? */
static bool is_image(const layout *l, const zc_node *n)
{
    if (n->op != ZC_OP_Conv || !l->half || !is_plane(l, n->in[0]) || l->last[n->in[0]])
        return false;
    const zc_tensor *w = zc_val(l->g, n->in[ZC_IN_Conv_w])->data;
    if (!w || !is_half(w->dtype) || w->dtype != zc_val(l->g, n->in[0])->type.dtype) return false;
    zc_tensor turned = *w;
    for (int d = 0; d < 4; d++) turned.dims[d] = w->dims[to_last[d]];
    return zc_conv_image_fits(n->attrs, &turned);
}

static bool image(layout *l, zc_nid n)
{
    const zc_node *node = zc_node_at(l->g, n);
    zc_vid x = node->in[0], bias = zc_node_in(node, ZC_IN_Conv_bias);
    zc_vid wide = zc_precision_origin(l->g, x), w = turned_const(l, node->in[ZC_IN_Conv_w]);
    if (!w) return false;
    return turn(l, n, ZC_OP_ConvImage, 3, (zc_vid[]){wide ? wide : x, w, bias}, false);
}

/* ---- few channels of a result, from something made channels-last ---- */

enum { PIECE = 8 }; /* channels that kernels write */

static bool is_narrow(const layout *l, const zc_node *n)
{
    const zc_attrs_Conv *a = n->attrs;
    if (!l->half || n->op != ZC_OP_Conv || !is_plane(l, n->out[0]) || !is_native(l, n->in[0]))
        return false;
    const zc_tensor *w = zc_val(l->g, n->in[ZC_IN_Conv_w])->data;
    zc_vid bias = zc_node_in(n, ZC_IN_Conv_bias);
    bool known =
        w && w->data && (!bias || (zc_val(l->g, bias)->data && zc_val(l->g, bias)->data->data));
    return known && is_half(w->dtype) && w->dtype == zc_val(l->g, n->in[0])->type.dtype &&
           a->group == 1 && w->dims[0] % PIECE && w->dims[1] % PIECE == 0;
}

/* The constant with zeros behind it, to whole pieces along its first axis; 0: no memory. */
static zc_vid padded_const(layout *l, zc_vid v)
{
    const zc_tensor *from = zc_val(l->g, v)->data;
    zc_tensor t = *from;
    int64_t n = zc_tensor_numel(from), row = n / from->dims[0];
    t.dims[0] = (from->dims[0] + PIECE - 1) / PIECE * PIECE;
    t.data = zc_calloc((size_t)(t.dims[0] * row), sizeof(uint16_t));
    if (!t.data) return 0;
    memcpy(t.data, from->data, (size_t)n * sizeof(uint16_t));
    zc_vid made = zc_graph_const(l->g, zc_val(l->g, v)->name, &t, true);
    return made && make_room(l) ? made : 0;
}

/* The convolution with more channels, and of its result those that are wanted. */
static bool narrow(layout *l, zc_nid n)
{
    const zc_node *node = zc_node_at(l->g, n);
    zc_vid x = l->last[node->in[0]], w = node->in[ZC_IN_Conv_w];
    zc_vid bias = zc_node_in(node, ZC_IN_Conv_bias);
    zc_type type = permuted(&zc_val(l->g, node->out[0])->type, to_last), wide = type;
    int64_t from = 0, to = zc_val(l->g, w)->data->dims[0], axis = 3;
    if (!(w = padded_const(l, w)) || (bias && !(bias = padded_const(l, bias)))) return false;
    wide.dims[3] = zc_dim_const(zc_val(l->g, w)->data->dims[0]);
    if (!(w = turned_const(l, w))) return false;
    zc_nid m = add(l, ZC_OP_ConvNhwc, zc_node_at(l->g, n)->name, 3, (zc_vid[]){x, w, bias}, &wide);
    if (!m) return false;
    zc_attr_unmark(zc_node_at(l->g, n)->attrs, ZC_AT_Conv_group);
    zc_attrs_take(zc_op_get(ZC_OP_ConvNhwc), zc_node_at(l->g, m)->attrs, zc_op_get(ZC_OP_Conv),
                  zc_node_at(l->g, n)->attrs);
    ZC_NODE_SET(l->g, ConvNhwc, m, taps_first, 1);
    zc_vid starts = zc_graph_const_i64(l->g, NULL, &from, 1, 1);
    zc_vid ends = zc_graph_const_i64(l->g, NULL, &to, 1, 1);
    zc_vid axes = zc_graph_const_i64(l->g, NULL, &axis, 1, 1);
    zc_nid s = starts && ends && axes ? add(l, ZC_OP_Slice, "layout", 4,
                                            (zc_vid[]){result(l, m), starts, ends, axes}, &type)
                                      : 0;
    return s && zc_graph_inherit(l->g, m, n) && replace(l, n, s);
}

static bool conv(layout *l, zc_nid n)
{
    zc_vid x = last_of(l, zc_node_at(l->g, n)->in[0]), w = zc_node_at(l->g, n)->in[ZC_IN_Conv_w];
    bool half = is_half(zc_val(l->g, w)->type.dtype);
    if (half) w = turned_const(l, w);
    const zc_node *node = zc_node_at(l->g, n);
    if (((const zc_attrs_Conv *)node->attrs)->group == 1)
        zc_attr_unmark(node->attrs, ZC_AT_Conv_group); /* which need not be said */
    zc_vid bias = zc_node_in(node, ZC_IN_Conv_bias);
    if (!x || !w) return false;
    return turn(l, n, ZC_OP_ConvNhwc, 4, (zc_vid[]){x, w, bias, 0}, half);
}

/* ---- of bytes ---- */

static bool is_byte_conv(const layout *l, const zc_node *n)
{
    if (!l->cpu || !is_plane(l, n->in[0])) return false;
    if (n->op == ZC_OP_ConvInteger) return !((const zc_attrs_ConvInteger *)n->attrs)->channels_last;
    return n->op == ZC_OP_QLinearConv && !((const zc_attrs_QLinearConv *)n->attrs)->channels_last;
}

static bool byte_conv(layout *l, zc_nid n)
{
    enum { MOST = 9 };
    zc_vid in[MOST] = {0}, x = last_of(l, zc_node_at(l->g, n)->in[0]);
    const zc_node *node = zc_node_at(l->g, n);
    const zc_op op = node->op;
    for (int i = 0; i < node->nin; i++) in[i] = i ? node->in[i] : x;
    zc_nid m = x ? turned(l, n, op, node->nin, in) : 0;
    if (!m) return false;
    if (op == ZC_OP_ConvInteger)
        ZC_NODE_SET(l->g, ConvInteger, m, channels_last, 1);
    else
        ZC_NODE_SET(l->g, QLinearConv, m, channels_last, 1);
    return replace(l, n, m);
}

/* Is something made channels-last converted: cast, quantised, or floats made of it again, with one
 * scale for all? */
static bool is_conversion(const layout *l, const zc_node *n)
{
    if (!l->cpu || !is_plane(l, n->in[0]) || !l->last[n->in[0]]) return false;
    if (n->op == ZC_OP_DynamicQuantizeLinear) return true;
    if (n->op == ZC_OP_Cast) return is_plane(l, n->out[0]);
    return (n->op == ZC_OP_QuantizeLinear || n->op == ZC_OP_DequantizeLinear) &&
           is_plane(l, n->out[0]) && zc_val(l->g, n->in[1])->type.rank == 0;
}

/* Results behind the first are numbers. */
static bool conversion(layout *l, zc_nid n)
{
    const zc_node *node = zc_node_at(l->g, n);
    zc_vid in[] = {l->last[node->in[0]], zc_node_in(node, 1), zc_node_in(node, 2)};
    const int nout = node->nout;
    zc_type type = permuted(&zc_val(l->g, node->out[0])->type, to_last);
    zc_nid m = zc_graph_node(l->g, NULL, node->op, node->name, node->nin, in, nout);
    for (int i = 0; m && i < nout; i++) {
        zc_vid old = zc_node_at(l->g, n)->out[i], v = old ? zc_graph_out(l->g, m, i, NULL) : 0;
        if (!old) continue;
        if (!v || !make_room(l)) return false;
        zc_val(l->g, v)->type = i ? zc_val(l->g, old)->type : type;
        if (i) zc_graph_forward(l->g, old, v);
    }
    if (!m || !keep(l, m)) return false;
    node = zc_node_at(l->g, n);
    zc_attrs_take(zc_op_get(node->op), zc_node_at(l->g, m)->attrs, zc_op_get(node->op),
                  node->attrs);
    return replace(l, n, m);
}

static bool is_max_pool(const layout *l, const zc_node *n)
{
    return n->op == ZC_OP_MaxPool && !zc_node_out(n, 1) && is_plane(l, n->in[0]) &&
           l->last[n->in[0]];
}

static bool max_pool(layout *l, zc_nid n)
{
    return turn(l, n, ZC_OP_MaxPoolNhwc, 1, &l->last[zc_node_at(l->g, n)->in[0]], false);
}

/* Is it the mean over the plane, of something with a channels-last form? */
static bool is_plane_mean(const zc_graph *g, const layout *l, const zc_node *n)
{
    bool pool = n->op == ZC_OP_GlobalAveragePool, reduce = n->op == ZC_OP_ReduceMean;
    if ((!pool && !reduce) || !is_plane(l, n->in[0]) || !l->last[n->in[0]]) return false;
    if (pool) return true;
    const zc_tensor *axes = zc_val(g, zc_node_in(n, ZC_IN_ReduceMean_axes))->data;
    if (!axes || !axes->data || axes->dtype != ZC_I64 || zc_tensor_numel(axes) != 2) return false;
    int64_t a = ((const int64_t *)axes->data)[0], b = ((const int64_t *)axes->data)[1];
    a += a < 0 ? 4 : 0;
    b += b < 0 ? 4 : 0;
    return (a == 2 && b == 3) || (a == 3 && b == 2);
}

/* The mean over axes 1 and 2 has the same elements in the same order: a reshape brings the form. */
static bool plane_mean(layout *l, zc_nid n)
{
    static const int64_t axes[] = {1, 2}, shape[] = {0, 0, 1, 1};
    const zc_node *node = zc_node_at(l->g, n);
    bool keeps =
        node->op == ZC_OP_GlobalAveragePool || ((const zc_attrs_ReduceMean *)node->attrs)->keepdims;
    zc_vid old = node->out[0], x = l->last[node->in[0]];
    const zc_type plane = zc_val(l->g, node->in[0])->type;
    zc_type type = {.dtype = plane.dtype, .rank = 2, .dims = {plane.dims[0], plane.dims[1]}};
    zc_vid over = zc_graph_const_i64(l->g, NULL, axes, 2, 1);
    zc_vid form = zc_graph_const_i64(l->g, NULL, shape, 4, 1);
    zc_nid m = over && form ? add(l, ZC_OP_ReduceMean, zc_node_at(l->g, n)->name, 2,
                                  (zc_vid[]){x, over}, &type)
                            : 0;
    if (!m || !zc_graph_inherit(l->g, m, n)) return false;
    ZC_NODE_SET(l->g, ReduceMean, m, keepdims, 0);
    zc_vid mean = result(l, m);
    if (keeps) {
        type = zc_val(l->g, old)->type;
        zc_nid r = add(l, ZC_OP_Reshape, "layout", 2, (zc_vid[]){mean, form}, &type);
        if (!r) return false;
        mean = result(l, r);
    }
    zc_graph_forward(l->g, old, mean);
    zc_graph_remove(l->g, n);
    l->changes++;
    return true;
}

/* Groups of the channels, when it normalises groups of something made channels-last; else 0.
 */
static int64_t norm_groups(const zc_graph *g, const layout *l, const zc_node *n)
{
    bool one = n->op == ZC_OP_InstanceNormalization, some = n->op == ZC_OP_GroupNormalization;
    if ((!one && !some) || zc_op_epilogue(zc_op_get(n->op), n->attrs)) return 0;
    if (!is_native(l, n->in[0])) return 0;
    for (int i = 1; i < 3; i++)
        if (zc_val(g, n->in[i])->type.dtype != zc_val(g, n->in[0])->type.dtype) return 0;
    zc_dim channels = zc_val(g, n->in[0])->type.dims[1];
    if (some) return ((const zc_attrs_GroupNormalization *)n->attrs)->num_groups;
    return zc_dim_is_const(channels) ? channels.k : 0;
}

static bool group_norm(layout *l, zc_nid n)
{
    const zc_node *node = zc_node_at(l->g, n);
    int64_t groups = norm_groups(l->g, l, node);
    float epsilon = node->op == ZC_OP_GroupNormalization
                        ? ((const zc_attrs_GroupNormalization *)node->attrs)->epsilon
                        : ((const zc_attrs_InstanceNormalization *)node->attrs)->epsilon;
    zc_type type = permuted(&zc_val(l->g, node->out[0])->type, to_last);
    zc_nid m = add(l, ZC_OP_MsGroupNorm, node->name, 3,
                   (zc_vid[]){l->last[node->in[0]], node->in[1], node->in[2]}, &type);
    if (!m) return false;
    ZC_NODE_SET(l->g, MsGroupNorm, m, groups, groups);
    ZC_NODE_SET(l->g, MsGroupNorm, m, epsilon, epsilon);
    ZC_NODE_SET(l->g, MsGroupNorm, m, channels_last, 1);
    return replace(l, n, m);
}

/* Are channels of planes joined, half of which or more were made channels-last? */
static bool is_concat(const layout *l, const zc_node *n)
{
    if (n->op != ZC_OP_Concat || !is_plane(l, n->out[0])) return false;
    int64_t axis = ((const zc_attrs_Concat *)n->attrs)->axis;
    int with = 0;
    for (int i = 0; i < n->nin; i++) {
        if (!is_plane(l, n->in[i])) return false;
        with += is_native(l, n->in[i]);
    }
    return (axis == 1 || axis == -3) && with > 0 && 2 * with >= n->nin;
}

static bool concat(layout *l, zc_nid n)
{
    int nin = zc_node_at(l->g, n)->nin;
    for (int i = 0; i < nin; i++)
        if (!last_of(l, zc_node_at(l->g, n)->in[i])) return false;
    zc_type type = permuted(&zc_val(l->g, zc_node_at(l->g, n)->out[0])->type, to_last);
    zc_nid m = add(l, ZC_OP_Concat, zc_node_at(l->g, n)->name, nin, NULL, &type);
    if (!m) return false;
    ZC_NODE_SET(l->g, Concat, m, axis, 3);
    for (int i = 0; i < nin; i++) zc_node_at(l->g, m)->in[i] = l->last[zc_node_at(l->g, n)->in[i]];
    return replace(l, n, m);
}

/* ---- resizing ---- */

/* Numbers for each axis; NULL: not known, or not four. */
static const zc_tensor *four(const zc_graph *g, zc_vid v, zc_dtype dtype)
{
    const zc_tensor *t = v ? zc_val(g, v)->data : NULL;
    return t && t->data && t->dtype == dtype && t->rank == 1 && t->dims[0] == 4 ? t : NULL;
}

/* Is something made channels-last resized, by scales or to sizes that are known? */
static bool is_resize(const zc_graph *g, const layout *l, const zc_node *n)
{
    if (n->op != ZC_OP_Resize || !is_half(zc_val(g, n->out[0])->type.dtype)) return false;
    if (!is_native(l, n->in[0])) return false;
    const zc_attrs_Resize *a = n->attrs;
    zc_vid scales = zc_node_in(n, ZC_IN_Resize_scales), sizes = zc_node_in(n, ZC_IN_Resize_sizes);
    bool whole = !a->axes.n && strcmp(a->coordinate_transformation_mode, "tf_crop_and_resize") != 0;
    return whole && (scales ? !sizes && four(g, scales, ZC_F32) : four(g, sizes, ZC_I64) != NULL);
}

/* The four numbers of a constant in channels-last order; 0: no memory. */
static zc_vid turned_four(layout *l, zc_vid v)
{
    const zc_tensor *from = zc_val(l->g, v)->data;
    size_t each = zc_dtype_bits(from->dtype) / 8;
    zc_tensor t = *from;
    t.data = zc_calloc(4, each);
    if (!t.data) return 0;
    for (int i = 0; i < 4; i++)
        memcpy((char *)t.data + i * each, (const char *)from->data + to_last[i] * each, each);
    zc_vid made = zc_graph_const(l->g, NULL, &t, true);
    return made && make_room(l) ? made : 0;
}

static bool resize(layout *l, zc_nid n)
{
    const zc_node *node = zc_node_at(l->g, n);
    zc_vid scales = zc_node_in(node, ZC_IN_Resize_scales);
    zc_vid sizes = zc_node_in(node, ZC_IN_Resize_sizes), x = l->last[node->in[0]];
    zc_vid by = turned_four(l, scales ? scales : sizes);
    if (!by) return false;
    return turn(l, n, ZC_OP_Resize, scales ? 3 : 4, (zc_vid[]){x, 0, scales ? by : 0, by}, false);
}

/* ---- planes as rows ---- */

static bool swaps(const zc_node *n)
{
    static const int64_t perm[] = {0, 2, 1};
    const zc_attrs_Transpose *a = n->attrs;
    return n->op == ZC_OP_Transpose && a->perm.n == 3 && memcmp(a->perm.v, perm, sizeof perm) == 0;
}

static const zc_node *maker(const zc_graph *g, zc_vid v, zc_op op)
{
    zc_nid p = zc_producer(g, v);
    return p && zc_node_at(g, p)->op == op ? zc_node_at(g, p) : NULL;
}

/* Sides of t from axis `first` on, as `flat` has them at axis `at` in one. */
static bool joins_sides(const zc_type *t, int first, const zc_type *flat, int at)
{
    zc_dim h = t->dims[first], w = t->dims[first + 1];
    return zc_dim_is_const(h) && zc_dim_is_const(w) && zc_dim_is(flat->dims[at], h.k * w.k);
}

/* [n, c, h, w] as [n, c, h * w], turned to [n, h * w, c]: the plane that it was, if it was made
 * channels-last; else 0. */
static zc_vid plane_of_rows(const zc_graph *g, const layout *l, const zc_node *n)
{
    const zc_node *r = l->half && swaps(n) ? maker(g, n->in[0], ZC_OP_Reshape) : NULL;
    if (!r || !is_native(l, r->in[0])) return 0;
    const zc_type *t = &zc_val(g, r->in[0])->type, *flat = &zc_val(g, n->in[0])->type;
    bool fits = zc_dim_is_const(t->dims[1]) && zc_dim_eq(t->dims[0], flat->dims[0]) &&
                zc_dim_eq(t->dims[1], flat->dims[1]) && joins_sides(t, 2, flat, 2);
    return fits ? r->in[0] : 0;
}

/* Node n's result is a view of v. */
static bool view(layout *l, zc_nid n, zc_vid v, const int64_t *shape, const zc_type *type,
                 bool plane)
{
    zc_vid form = zc_graph_const_i64(l->g, NULL, shape, type->rank, 1);
    zc_nid m = form ? add(l, ZC_OP_Reshape, "layout", 2, (zc_vid[]){v, form}, type) : 0;
    if (!m) return false;
    if (plane) return replace(l, n, m);
    if (!zc_graph_inherit(l->g, m, n)) return false;
    zc_graph_forward(l->g, zc_node_at(l->g, n)->out[0], result(l, m));
    zc_graph_remove(l->g, n);
    l->changes++;
    return true;
}

static bool rows(layout *l, zc_nid n)
{
    const zc_node *node = zc_node_at(l->g, n);
    zc_vid v = plane_of_rows(l->g, l, node);
    zc_type type = zc_val(l->g, node->out[0])->type;
    return view(l, n, l->last[v], (int64_t[]){0, -1, type.dims[2].k}, &type, false);
}

/* [n, h * w, c] turned to [n, c, h * w], as [n, c, h, w]: the rows that it was; else 0. */
static zc_vid rows_of_plane(const zc_graph *g, const layout *l, const zc_node *n)
{
    if (!l->half || n->op != ZC_OP_Reshape || !is_plane(l, n->out[0])) return 0;
    const zc_node *t = maker(g, n->in[0], ZC_OP_Transpose);
    if (!t || !swaps(t)) return 0;
    const zc_type *to = &zc_val(g, n->out[0])->type, *flat = &zc_val(g, n->in[0])->type;
    bool fits = zc_dim_is_const(to->dims[1]) && zc_dim_eq(to->dims[0], flat->dims[0]) &&
                zc_dim_eq(to->dims[1], flat->dims[1]) && joins_sides(to, 2, flat, 2);
    return fits ? t->in[0] : 0;
}

static bool plane(layout *l, zc_nid n)
{
    const zc_node *node = zc_node_at(l->g, n);
    zc_vid v = rows_of_plane(l->g, l, node);
    zc_type type = permuted(&zc_val(l->g, node->out[0])->type, to_last);
    int64_t shape[] = {0, type.dims[1].k, type.dims[2].k, type.dims[3].k};
    return view(l, n, v, shape, &type, true);
}

/* A plane of the result's shape with a channels-last form. */
static bool is_twin(const layout *l, zc_vid v, const zc_type *out)
{
    return is_plane(l, v) && l->last[v] && zc_same_shape(&zc_val(l->g, v)->type, out);
}

/* One number a channel, [n, c, 1, 1] or [c, 1, 1]: a reshape brings the channels to the end. */
static bool is_channels(const layout *l, zc_vid v)
{
    const zc_type *t = &zc_val(l->g, v)->type;
    int first = t->rank - 3;
    return is_taken(l, t->dtype) && (first == 0 || first == 1) && zc_dim_is_const(t->dims[first]) &&
           zc_dim_is(t->dims[first + 1], 1) && zc_dim_is(t->dims[first + 2], 1);
}

static zc_vid channels_last(layout *l, zc_vid v)
{
    const zc_type t = zc_val(l->g, v)->type;
    int first = t.rank - 3, n = first ? 4 : 1;
    int64_t channels = t.dims[first].k, shape[] = {0, 1, 1, channels};
    zc_type type = {.dtype = t.dtype, .rank = n};
    for (int d = 0; d < n; d++) type.dims[d] = zc_dim_const(d == n - 1 ? channels : 1);
    if (first) type.dims[0] = t.dims[0];
    zc_vid form = zc_graph_const_i64(l->g, NULL, first ? shape : &channels, n, 1);
    zc_nid r = form ? add(l, ZC_OP_Reshape, "layout", 2, (zc_vid[]){v, form}, &type) : 0;
    return r ? result(l, r) : 0;
}

/* Every input is a plane of the result's shape with a channels-last form, one number a channel, or
 * one element. */
static bool is_pointwise(const zc_graph *g, const layout *l, const zc_node *n)
{
    if (!(zc_op_get(n->op)->flags & ZC_OPF_POINTWISE) || !is_plane(l, n->out[0])) return false;
    int planes = 0;
    for (int i = 0; i < n->nin; i++) {
        bool plane = is_twin(l, n->in[i], &zc_val(g, n->out[0])->type);
        if (zc_val(g, n->in[i])->type.rank && !plane && !is_channels(l, n->in[i])) return false;
        planes += plane;
    }
    return planes > 0;
}

/* The convolution that made v and whose result nobody else needs, with room for the fusion. */
static zc_nid open_conv(const layout *l, zc_vid v)
{
    zc_nid p = zc_producer(l->g, v);
    if (!p || zc_node_at(l->g, p)->op != ZC_OP_ConvNhwc || l->uses[v] != 1) return 0;
    if (zc_val(l->g, v)->type.dtype != ZC_F32) return 0;
    const zc_attrs_ConvNhwc *a = zc_node_at(l->g, p)->attrs;
    return *a->activation ? 0 : p;
}

/* The last thing in the new list other than transposes back, so that what a fused operand needs is
 * there. */
static bool move_to_end(layout *l, zc_nid n)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->out.len; i++)
        if (l->out.data[i] != n) l->out.data[kept++] = l->out.data[i];
    l->out.len = kept;
    return keep(l, n);
}

/* Add or Relu becomes part of the convolution p, whose channels-first result is `first`: its result
 * is then the convolution's, and nobody needs `first` any more. */
static bool absorb(layout *l, zc_nid n, zc_nid p, zc_vid first, zc_vid residual)
{
    zc_graph_remove(l->g, zc_producer(l->g, first));
    zc_node *made = zc_node_at(l->g, p);
    if (residual)
        made->in[ZC_IN_ConvNhwc_residual] = residual;
    else
        ZC_NODE_SET(l->g, ConvNhwc, p, activation, "Relu");
    zc_vid old = zc_node_at(l->g, n)->out[0];
    if (!move_to_end(l, p) || !zc_graph_inherit(l->g, p, n)) return false;
    zc_vid back = transposed(l, result(l, p), to_first);
    if (!back) return false;
    l->last[back] = l->last[old] = result(l, p);
    l->uses[result(l, p)] = l->uses[old];
    zc_graph_forward(l->g, old, back);
    zc_graph_remove(l->g, n);
    l->changes++;
    return true;
}

static bool try_absorb(layout *l, zc_nid n, bool *done)
{
    const zc_node *node = zc_node_at(l->g, n);
    *done = false;
    if (node->op == ZC_OP_Relu) {
        zc_nid p = open_conv(l, l->last[node->in[0]]);
        *done = p != 0;
        return !p || absorb(l, n, p, node->in[0], 0);
    }
    const zc_type *out = &zc_val(l->g, node->out[0])->type;
    if (node->op != ZC_OP_Add || !is_twin(l, node->in[0], out) || !is_twin(l, node->in[1], out))
        return true;
    for (int i = 1; i >= 0; i--) {
        zc_nid p = open_conv(l, l->last[node->in[i]]);
        if (!p || zc_node_at(l->g, p)->in[ZC_IN_ConvNhwc_residual] || node->in[0] == node->in[1])
            continue;
        *done = true;
        return absorb(l, n, p, node->in[i], l->last[node->in[1 - i]]);
    }
    return true;
}

static bool pointwise(layout *l, zc_nid n)
{
    bool done;
    if (!try_absorb(l, n, &done)) return false;
    if (done) return true;
    const zc_node *node = zc_node_at(l->g, n);
    zc_vid in[8];
    if (node->nin > (int)ZC_COUNTOF(in)) return keep(l, n);
    for (int i = 0; i < node->nin; i++) {
        zc_vid v = zc_node_at(l->g, n)->in[i];
        bool twin = is_twin(l, v, &zc_val(l->g, zc_node_at(l->g, n)->out[0])->type);
        in[i] = twin ? l->last[v] : zc_val(l->g, v)->type.rank ? channels_last(l, v) : v;
        if (!in[i]) return false;
        node = zc_node_at(l->g, n);
    }
    zc_type type = permuted(&zc_val(l->g, node->out[0])->type, to_last);
    zc_nid m = add(l, node->op, node->name, node->nin, in, &type);
    if (!m) return false;
    zc_node_at(l->g, m)->attrs = zc_node_at(l->g, n)->attrs;
    return replace(l, n, m);
}

/* ---- transposes that the model has ---- */

static bool turns(const layout *l, const zc_node *n, const int64_t *perm)
{
    const zc_attrs_Transpose *a = n->attrs;
    return n->op == ZC_OP_Transpose && is_plane(l, n->in[0]) && a->perm.n == 4 &&
           memcmp(a->perm.v, perm, 4 * sizeof *perm) == 0;
}

/* To channels last, of what has that form already. */
static bool is_turned(const layout *l, const zc_node *n)
{
    return turns(l, n, to_last) && l->last[n->in[0]];
}

static bool take_turned(layout *l, zc_nid n)
{
    zc_vid old = zc_node_at(l->g, n)->out[0], twin = l->last[zc_node_at(l->g, n)->in[0]];
    zc_nid p = zc_producer(l->g, twin);
    if (p && !zc_graph_inherit(l->g, p, n)) return false;
    l->uses[twin] += l->uses[old];
    zc_graph_forward(l->g, old, twin);
    zc_graph_remove(l->g, n);
    l->changes++;
    return true;
}

/* From channels last: what it was is the twin. */
static bool keep_twin(layout *l, zc_nid n)
{
    l->last[zc_node_at(l->g, n)->out[0]] = zc_node_at(l->g, n)->in[0];
    return keep(l, n);
}

static zc_status block(layout *l, zc_block *b)
{
    l->out.len = 0;
    for (size_t i = 0; i < b->nodes.len; i++) {
        zc_nid n = b->nodes.data[i];
        zc_node *node = zc_node_at(l->g, n);
        for (int j = 0; j < node->nin; j++) node->in[j] = zc_graph_resolved(l->g, node->in[j]);
        bool ok;
        if (is_image(l, node))
            ok = image(l, n);
        else if (is_conv(l, node))
            ok = conv(l, n);
        else if (is_narrow(l, node))
            ok = narrow(l, n);
        else if (is_byte_conv(l, node))
            ok = byte_conv(l, n);
        else if (is_conversion(l, node))
            ok = conversion(l, n);
        else if (is_max_pool(l, node))
            ok = max_pool(l, n);
        else if (is_plane_mean(l->g, l, node))
            ok = plane_mean(l, n);
        else if (norm_groups(l->g, l, node))
            ok = group_norm(l, n);
        else if (is_concat(l, node))
            ok = concat(l, n);
        else if (is_resize(l->g, l, node))
            ok = resize(l, n);
        else if (plane_of_rows(l->g, l, node))
            ok = rows(l, n);
        else if (rows_of_plane(l->g, l, node))
            ok = plane(l, n);
        else if (is_pointwise(l->g, l, node))
            ok = pointwise(l, n);
        else if (is_turned(l, node))
            ok = take_turned(l, n);
        else if (turns(l, node, to_first))
            ok = keep_twin(l, n);
        else
            ok = keep(l, n);
        if (!ok) return zc_fail_nomem(l->diag, "layout", 0);
    }
    b->nodes.len = 0;
    for (size_t i = 0; i < l->out.len; i++)
        if (!ZC_VEC_PUSH(&b->nodes, l->out.data[i])) return zc_fail_nomem(l->diag, "layout", 0);
    return ZC_OK;
}

zc_status zc_pass_opt_layout(zc_pass *p)
{
    const zc_rule_target *target = p->options->target;
    layout l = {.half = zc_pass_has(p, ZC_FAMILY_conv_sm90),
                .cpu = !target || !target->cuda,
                .g = p->g,
                .diag = p->diag,
                .uses = zc_graph_uses(p->g),
                .values = p->g->values.len};
    l.last = zc_calloc(l.values, sizeof *l.last);
    zc_status status =
        l.uses && l.last ? block(&l, &p->g->top) : zc_fail_nomem(p->diag, "layout", 0);
    p->changes += l.changes;
    free(l.uses);
    free(l.last);
    ZC_VEC_FINI(&l.out);
    return status;
}
