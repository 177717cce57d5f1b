/* Convolutions that the layout pass turns, those of bytes with what quantises around them, and
 * images that they read. */
#include <math.h>
#include <string.h>

#include "op/nhwc.h"
#include "passes/layout.h"
#include "passes/precision.h"
#include "passes/query.h"

/* Is it one of each channel by itself, which reads neighbours? */
static bool is_each(const zc_tensor *w, int64_t group)
{
    return group > 1 && w->dims[1] == 1 && w->dims[0] == group;
}

/* Has a convolution of 16 bits a kernel for channels last? They read and write whole pieces of 16
 * bytes. */
static bool half_fits(const zc_tensor *w, int64_t group)
{
    return w->dims[0] > 0 && w->dims[0] % 8 == 0 &&
           (is_each(w, group) || w->dims[1] * group % 8 == 0);
}

static bool is_conv(const zc_layout *l, const zc_node *n)
{
    const zc_attrs_Conv *a = n->attrs;
    if (n->op != ZC_OP_Conv || !zc_layout_is_plane(l, n->in[0]) ||
        !zc_layout_is_plane(l, n->out[0]))
        return false;
    const zc_tensor *w = zc_val(l->g, n->in[ZC_IN_Conv_w])->data;
    if (!w || w->dtype != zc_val(l->g, n->in[0])->type.dtype) return false;
    return w->dtype == ZC_F32 ? w->rank == 4 : half_fits(w, a->group);
}

/* The constant's elements in channels-last order; 0: no memory. */
static zc_vid turned_const(zc_layout *l, zc_vid v)
{
    const zc_tensor *w = zc_val(l->g, v)->data;
    zc_type type = zc_layout_last_type(&zc_val(l->g, v)->type);
    zc_vid made =
        zc_transposed_const(l->g, v, w->dims[1], zc_dims_span(w->dims, 2, w->rank), &type);
    return made && zc_layout_room(l) ? made : 0;
}

/* Does it read an image of few channels, channels first? */
static bool is_image(const zc_layout *l, const zc_node *n)
{
    if (n->op != ZC_OP_Conv || !l->half || !zc_layout_is_plane(l, n->in[0]) || l->last[n->in[0]])
        return false;
    const zc_tensor *w = zc_val(l->g, n->in[ZC_IN_Conv_w])->data;
    if (!w || !zc_layout_is_half(w->dtype) || w->dtype != zc_val(l->g, n->in[0])->type.dtype ||
        w->rank != 4)
        return false;
    zc_tensor turned = *w;
    for (int d = 0; d < 4; d++) turned.dims[d] = w->dims[zc_to_last[4][d]];
    return zc_conv_image_fits(n->attrs, &turned);
}

static bool image(zc_layout *l, zc_nid n)
{
    const zc_node *node = zc_node_at(l->g, n);
    zc_vid x = node->in[0], bias = zc_node_in(node, ZC_IN_Conv_bias);
    zc_vid wide = zc_precision_origin(l->g, x), w = turned_const(l, node->in[ZC_IN_Conv_w]);
    if (!w) return false;
    return zc_layout_turn(l, n, ZC_OP_ConvImage, 3, (zc_vid[]){wide ? wide : x, w, bias});
}

/* ---- few channels of a result, from something made channels-last ---- */

enum { PIECE = 8 }; /* channels that kernels write */

static bool is_narrow(const zc_layout *l, const zc_node *n)
{
    const zc_attrs_Conv *a = n->attrs;
    if (!l->half || n->op != ZC_OP_Conv || !zc_layout_is_plane(l, n->out[0]) ||
        !zc_layout_is_native(l, n->in[0]))
        return false;
    const zc_tensor *w = zc_val(l->g, n->in[ZC_IN_Conv_w])->data;
    zc_vid bias = zc_node_in(n, ZC_IN_Conv_bias);
    bool known =
        w && w->data && (!bias || (zc_val(l->g, bias)->data && zc_val(l->g, bias)->data->data));
    return known && zc_layout_is_half(w->dtype) && w->dtype == zc_val(l->g, n->in[0])->type.dtype &&
           a->group == 1 && w->dims[0] % PIECE && w->dims[1] % PIECE == 0;
}

/* The constant with zeros behind it, to whole pieces along its first axis; 0: no memory. */
static zc_vid padded_const(zc_layout *l, zc_vid v)
{
    const zc_tensor *from = zc_val(l->g, v)->data;
    zc_tensor t = *from;
    int64_t n = zc_tensor_numel(from), row = n / from->dims[0];
    t.dims[0] = (from->dims[0] + PIECE - 1) / PIECE * PIECE;
    t.data = zc_calloc((size_t)(t.dims[0] * row), sizeof(uint16_t));
    if (!t.data) return 0;
    memcpy(t.data, from->data, (size_t)n * sizeof(uint16_t));
    zc_vid made = zc_graph_const(l->g, zc_val(l->g, v)->name, &t, true);
    return made && zc_layout_room(l) ? made : 0;
}

/* The convolution with more channels, and of its result those that are wanted. */
static bool narrow(zc_layout *l, zc_nid n)
{
    const zc_node *node = zc_node_at(l->g, n);
    zc_vid x = l->last[node->in[0]], w = node->in[ZC_IN_Conv_w];
    zc_vid bias = zc_node_in(node, ZC_IN_Conv_bias);
    zc_type type = zc_layout_last_type(&zc_val(l->g, node->out[0])->type), wide = type;
    int64_t from = 0, to = zc_val(l->g, w)->data->dims[0], axis = type.rank - 1;
    if (!(w = padded_const(l, w)) || (bias && !(bias = padded_const(l, bias)))) return false;
    wide.dims[axis] = zc_dim_const(zc_val(l->g, w)->data->dims[0]);
    if (!(w = turned_const(l, w))) return false;
    zc_nid m = zc_layout_add(l, ZC_OP_ConvNhwc, zc_node_at(l->g, n)->name, 3,
                             (zc_vid[]){x, w, bias}, &wide);
    if (!m) return false;
    zc_attr_unmark(zc_node_at(l->g, n)->attrs, ZC_AT_Conv_group);
    zc_attrs_take(zc_op_get(ZC_OP_ConvNhwc), zc_node_at(l->g, m)->attrs, zc_op_get(ZC_OP_Conv),
                  zc_node_at(l->g, n)->attrs);
    ZC_NODE_SET(l->g, ConvNhwc, m, taps_first, 1);
    zc_vid starts = zc_graph_const_i64(l->g, NULL, &from, 1, 1);
    zc_vid ends = zc_graph_const_i64(l->g, NULL, &to, 1, 1);
    zc_vid axes = zc_graph_const_i64(l->g, NULL, &axis, 1, 1);
    zc_nid s = starts && ends && axes
                   ? zc_layout_add(l, ZC_OP_Slice, "layout", 4,
                                   (zc_vid[]){zc_layout_result(l, m), starts, ends, axes}, &type)
                   : 0;
    return s && zc_graph_inherit(l->g, m, n) && zc_layout_replace(l, n, s);
}

/* ---- groups ---- */

/* Weights of groups as a band; 0: no memory. */
static zc_vid banded_const(zc_layout *l, zc_vid v, const zc_conv_band *b)
{
    const zc_tensor *w = zc_val(l->g, v)->data;
    const int64_t taps = zc_dims_span(w->dims, 2, w->rank), depth = zc_conv_band_depth(b);
    const size_t size = zc_dtype_bits(w->dtype) / 8;
    zc_type type = zc_layout_last_type(&zc_val(l->g, v)->type);
    type.dims[w->rank - 1] = zc_dim_const(depth);
    zc_vid made = 0;
    if (!w->data) {
        made = zc_graph_hollow(l->g, zc_val(l->g, v)->name, &type);
        return made && zc_layout_room(l) ? made : 0;
    }
    zc_tensor t = {.dtype = w->dtype, .rank = w->rank};
    size_t n;
    for (int d = 0; d < t.rank; d++) t.dims[d] = type.dims[d].k;
    if (!zc_mul_size((size_t)(w->dims[0] * taps), (size_t)depth, &n) ||
        !(t.data = zc_calloc(n, size)))
        return 0;
    const char *from = w->data;
    char *to = t.data;
    for (int64_t m = 0; m < w->dims[0]; m++) {
        const int64_t first = m / b->out * b->in - zc_conv_band_from(b, m);
        for (int64_t c = 0; c < b->in; c++)
            for (int64_t tap = 0; tap < taps; tap++)
                memcpy(to + (size_t)((m * taps + tap) * depth + first + c) * size,
                       from + (size_t)((m * b->in + c) * taps + tap) * size, size);
    }
    made = zc_graph_const(l->g, zc_val(l->g, v)->name, &t, true);
    return made && zc_layout_room(l) ? made : 0;
}

/* Weights as a band of so many columns; 0: no memory. */
static zc_vid band_weights(zc_layout *l, zc_vid v, int64_t group, int64_t *band)
{
    const zc_tensor *w = zc_val(l->g, v)->data;
    zc_conv_band b = {.groups = group,
                      .in = w->dims[1],
                      .out = w->dims[0] / group,
                      .piece = 128 / (int64_t)zc_dtype_bits(w->dtype)};
    b.columns = *band = zc_conv_band_columns(&b);
    return banded_const(l, v, &b);
}

/* Weights of 16 bits as ConvNhwc has them; band: of how many columns, 0: of none. */
static zc_vid half_weights(zc_layout *l, zc_vid v, int64_t group, int64_t *band)
{
    const zc_tensor *w = zc_val(l->g, v)->data;
    *band = 0;
    return group == 1 || is_each(w, group) ? turned_const(l, v) : band_weights(l, v, group, band);
}

static bool conv(zc_layout *l, zc_nid n)
{
    const int64_t group = ((const zc_attrs_Conv *)zc_node_at(l->g, n)->attrs)->group;
    zc_vid x = zc_layout_last_of(l, zc_node_at(l->g, n)->in[0]),
           w = zc_node_at(l->g, n)->in[ZC_IN_Conv_w];
    bool half = zc_layout_is_half(zc_val(l->g, w)->type.dtype);
    int64_t band = 0;
    if (half) w = half_weights(l, w, group, &band);
    const zc_node *node = zc_node_at(l->g, n);
    if (group == 1) zc_attr_unmark(node->attrs, ZC_AT_Conv_group); /* which need not be said */
    zc_vid bias = zc_node_in(node, ZC_IN_Conv_bias);
    if (!x || !w) return false;
    zc_nid m = zc_layout_turned(l, n, ZC_OP_ConvNhwc, 4, (zc_vid[]){x, w, bias, 0});
    if (m && half) ZC_NODE_SET(l->g, ConvNhwc, m, taps_first, 1);
    if (m && band) ZC_NODE_SET(l->g, ConvNhwc, m, band, band);
    return m && zc_layout_replace(l, n, m);
}

/* ---- of bytes ---- */

static int weights_of(zc_op op)
{
    return op == ZC_OP_QLinearConv ? ZC_IN_QLinearConv_w : 1;
}

static bool is_byte_conv(const zc_layout *l, const zc_node *n)
{
    if (n->op != ZC_OP_ConvInteger && n->op != ZC_OP_QLinearConv && n->op != ZC_OP_ScaledConv)
        return false;
    return l->bytes && zc_layout_is_plane(l, n->in[0]) && !zc_conv_channels_last(n->op, n->attrs) &&
           (!l->half || zc_val(l->g, n->in[weights_of(n->op)])->data);
}

/* Are groups of these weights a band, for Hopper's kernels? Their pixels are in pieces, and what is
 * added to a band does not count. */
static bool makes_band(const zc_layout *l, const zc_node *n)
{
    enum { BYTES = 16 };
    const int64_t group = zc_conv_groups(n->op, n->attrs);
    const zc_tensor *w = zc_val(l->g, n->in[weights_of(n->op)])->data;
    const int zero = n->op == ZC_OP_QLinearConv   ? ZC_IN_QLinearConv_w_zero
                     : n->op == ZC_OP_ConvInteger ? ZC_IN_ConvInteger_w_zero
                                                  : -1;
    const zc_vid z = zero < 0 ? 0 : zc_node_in(n, zero);
    return l->half && group > 1 && !is_each(w, group) && w->dims[0] > 0 && w->dims[1] > 0 &&
           w->dims[1] * group % BYTES == 0 && (!z || zc_is_splat(l->g, z, 0));
}

#define SET_LAST(l, op, m, columns)                                                                \
    do {                                                                                           \
        ZC_NODE_SET((l)->g, op, m, channels_last, 1);                                              \
        if ((l)->half) ZC_NODE_SET((l)->g, op, m, taps_first, 1);                                  \
        if (columns) ZC_NODE_SET((l)->g, op, m, band, columns);                                    \
    } while (0)

static bool byte_conv(zc_layout *l, zc_nid n)
{
    enum { MOST = 9 };
    zc_vid in[MOST] = {0}, x = zc_layout_last_of(l, zc_node_at(l->g, n)->in[0]);
    const zc_node *node = zc_node_at(l->g, n);
    const zc_op op = node->op;
    int64_t band = 0;
    for (int i = 0; i < node->nin; i++) in[i] = i ? node->in[i] : x;
    zc_vid *w = &in[weights_of(op)];
    if (x && l->half)
        *w = makes_band(l, node) ? band_weights(l, *w, zc_conv_groups(op, node->attrs), &band)
                                 : turned_const(l, *w);
    node = zc_node_at(l->g, n);
    zc_nid m = x && *w ? zc_layout_turned(l, n, op, node->nin, in) : 0;
    if (!m) return false;
    if (op == ZC_OP_ConvInteger)
        SET_LAST(l, ConvInteger, m, band);
    else if (op == ZC_OP_ScaledConv)
        SET_LAST(l, ScaledConv, m, band);
    else
        SET_LAST(l, QLinearConv, m, band);
    return zc_layout_replace(l, n, m);
}

static bool quantises_all(const zc_layout *l, const zc_node *n)
{
    return n->op == ZC_OP_QuantizeLinear && zc_val(l->g, n->in[1])->type.rank == 0;
}

/* Do all who read v quantise it, with one scale for all, or what so few pointwise steps make of it?
 */
static bool becomes_bytes(const zc_layout *l, zc_vid v, int steps)
{
    const zc_block *b = &l->g->top;
    uint32_t readers = 0;
    for (size_t i = 0; i < b->nodes.len; i++) {
        const zc_node *n = zc_node_at(l->g, b->nodes.data[i]);
        bool reads = false;
        for (int j = 0; j < n->nin; j++) {
            reads |= n->in[j] == v;
            readers += n->in[j] == v;
        }
        if (!reads || quantises_all(l, n)) continue;
        const bool each = n->op == ZC_OP_Cast || zc_op_get(n->op)->flags & ZC_OPF_POINTWISE;
        if (!steps || !each || !becomes_bytes(l, n->out[0], steps - 1)) return false;
    }
    return v < l->values && readers && readers == l->uses[v];
}

/* Is something made channels-last converted: cast, unless it has 16 bits, which are turned back in
 * less unless they become bytes; quantised, or floats made of it again, with one scale for all? */
static bool is_conversion(const zc_layout *l, const zc_node *n)
{
    if (!l->bytes || !zc_layout_is_plane(l, n->in[0]) || !l->last[n->in[0]]) return false;
    enum { STEPS = 4 }; /* a residual, narrowing, an activation, a cast */
    if (n->op == ZC_OP_DynamicQuantizeLinear) return true;
    if (!zc_layout_is_plane(l, n->out[0])) return false;
    if (n->op == ZC_OP_Cast)
        return !zc_layout_is_half(zc_val(l->g, n->in[0])->type.dtype) ||
               becomes_bytes(l, n->out[0], STEPS);
    return quantises_all(l, n) ||
           (n->op == ZC_OP_DequantizeLinear && zc_val(l->g, n->in[1])->type.rank == 0);
}

static bool conversion(zc_layout *l, zc_nid n)
{
    const zc_node *node = zc_node_at(l->g, n);
    const zc_vid in[] = {l->last[node->in[0]], zc_node_in(node, 1), zc_node_in(node, 2)};
    return zc_layout_turn_all(l, n, in) != 0;
}

unsigned zc_layout_ranks(zc_layout *l)
{
    const zc_block *b = &l->g->top;
    unsigned ranks = 1u << 4;
    if (!l->half) return ranks;
    l->ranks = 1u << 3 | 1u << 4 | 1u << 5;
    for (size_t i = 0; i < b->nodes.len; i++) {
        const zc_node *n = zc_node_at(l->g, b->nodes.data[i]);
        if (zc_layout_stays(l, b->nodes.data[i])) continue;
        if (is_conv(l, n) || is_byte_conv(l, n) || zc_layout_phases->is(l, n))
            ranks |= 1u << zc_layout_rank(l, n->in[0]);
    }
    return ranks;
}

/* ---- what they take ---- */

bool zc_layout_work(const zc_layout *l, const zc_node *n, zc_conv_work *w)
{
    const zc_type *x = &zc_val(l->g, n->in[0])->type, *y = &zc_val(l->g, n->out[0])->type;
    bool certain = zc_dim_is_const(x->dims[0]);
    *w = (zc_conv_work){.axes = x->rank - 2, .images = x->dims[0].k};
    for (int i = 0; i < w->axes; i++) {
        certain = certain && zc_dim_is_const(x->dims[2 + i]) && zc_dim_is_const(y->dims[2 + i]);
        w->sides[i] = y->dims[2 + i].k;
    }
    return certain;
}

/* Of convolutions of images, of f32 and of bytes there is no estimate. */
static zc_layout_us not_weighed(const zc_layout *l, const zc_node *n)
{
    (void)l;
    (void)n;
    return (zc_layout_us){INFINITY, 0};
}

static zc_layout_us conv_us(const zc_layout *l, const zc_node *n)
{
    const zc_attrs_Conv *a = n->attrs;
    const zc_tensor *w = zc_val(l->g, n->in[ZC_IN_Conv_w])->data;
    zc_conv_work work;
    if (!zc_layout_is_half(w->dtype) || !zc_layout_work(l, n, &work)) return not_weighed(l, n);
    work.window = ZC_WINDOW_ATTRS(a);
    work.groups = a->group;
    work.in = w->dims[1];
    work.out = w->dims[0] / a->group;
    for (int i = 0; i < work.axes; i++) work.kernel[i] = w->dims[2 + i];
    return (zc_layout_us){zc_conv_first_us(&work), zc_conv_last_us(&work)};
}

static zc_layout_us narrow_us(const zc_layout *l, const zc_node *n)
{
    zc_layout_us us = conv_us(l, n);
    us.last += zc_layout_move_us(l, n->out[0]);
    return us;
}

const zc_layout_op zc_layout_convs[] = {{is_image, image, ZC_LAYOUT_IMAGE, not_weighed},
                                        {is_conv, conv, ZC_LAYOUT_FOLLOWS, conv_us},
                                        {is_narrow, narrow, ZC_LAYOUT_FOLLOWS, narrow_us},
                                        {is_byte_conv, byte_conv, ZC_LAYOUT_FOLLOWS, not_weighed},
                                        {is_conversion, conversion, ZC_LAYOUT_FOLLOWS, NULL},
                                        {NULL, NULL, ZC_LAYOUT_FOLLOWS, NULL}};
