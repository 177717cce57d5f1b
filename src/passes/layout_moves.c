/* What only moves the elements of planes, or resizes them, as the layout pass turns it. */
#include <string.h>

#include "op/nhwc.h"
#include "passes/layout.h"
#include "passes/query.h"

/* ---- joined ---- */

/* Are channels of planes joined, half of which or more were made channels-last? */
static bool is_concat(const zc_layout *l, const zc_node *n)
{
    if (n->op != ZC_OP_Concat || !zc_layout_is_plane(l, n->out[0])) return false;
    int64_t axis = ((const zc_attrs_Concat *)n->attrs)->axis;
    int with = 0;
    for (int i = 0; i < n->nin; i++) {
        if (!zc_layout_is_plane(l, n->in[i])) return false;
        with += zc_layout_is_native(l, n->in[i]);
    }
    return (axis == 1 || axis == 1 - zc_layout_rank(l, n->out[0])) && with > 0 &&
           2 * with >= n->nin;
}

static bool concat(zc_layout *l, zc_nid n)
{
    int nin = zc_node_at(l->g, n)->nin;
    for (int i = 0; i < nin; i++)
        if (!zc_layout_last_of(l, zc_node_at(l->g, n)->in[i])) return false;
    zc_type type = zc_layout_last_type(&zc_val(l->g, zc_node_at(l->g, n)->out[0])->type);
    zc_nid m = zc_layout_add(l, ZC_OP_Concat, zc_node_at(l->g, n)->name, nin, NULL, &type);
    if (!m) return false;
    ZC_NODE_SET(l->g, Concat, m, axis, type.rank - 1);
    for (int i = 0; i < nin; i++) zc_node_at(l->g, m)->in[i] = l->last[zc_node_at(l->g, n)->in[i]];
    return zc_layout_replace(l, n, m);
}

/* ---- parts of a plane, and more around it ---- */

/* The constants of 64-bit integers that n reads there; NULL: not known. */
static const zc_tensor *known_ints(const zc_graph *g, const zc_node *n, int i)
{
    zc_vid v = zc_node_in(n, i);
    const zc_tensor *t = v ? zc_val(g, v)->data : NULL;
    return t && t->data && t->dtype == ZC_I64 && t->rank == 1 && t->dims[0] <= ZC_LAYOUT_AXES
               ? t
               : NULL;
}

/* Is something made channels-last cut? */
static bool is_slice(const zc_layout *l, const zc_node *n)
{
    return n->op == ZC_OP_Slice && zc_layout_is_native(l, n->in[0]) &&
           zc_layout_is_plane(l, n->out[0]) && known_ints(l->g, n, ZC_IN_Slice_axes);
}

/* Where the channels-last order has an axis. */
static int turned_axis(int rank, int64_t axis)
{
    return zc_nhwc_axis(rank, (int)(axis < 0 ? axis + rank : axis));
}

/* The axes where the channels-last order has them; 0: no memory. */
static zc_vid turned_axes(zc_layout *l, int rank, const zc_tensor *axes)
{
    int64_t at[ZC_LAYOUT_AXES];
    const int64_t *from = axes->data;
    const int n = (int)axes->dims[0];
    for (int i = 0; i < n; i++) at[i] = turned_axis(rank, from[i]);
    zc_vid made = zc_graph_const_i64(l->g, NULL, at, n, 1);
    return made && zc_layout_room(l) ? made : 0;
}

static bool slice(zc_layout *l, zc_nid n)
{
    const zc_node *node = zc_node_at(l->g, n);
    zc_vid axes =
        turned_axes(l, zc_layout_rank(l, node->in[0]), known_ints(l->g, node, ZC_IN_Slice_axes));
    if (!axes) return false;
    const zc_vid in[] = {l->last[node->in[0]], node->in[ZC_IN_Slice_starts],
                         node->in[ZC_IN_Slice_ends], axes, zc_node_in(node, ZC_IN_Slice_steps)};
    return zc_layout_turn(l, n, ZC_OP_Slice, node->nin, in);
}

/* Is something made channels-last divided? */
static bool is_split(const zc_layout *l, const zc_node *n)
{
    if (n->op != ZC_OP_Split || !zc_layout_is_native(l, n->in[0])) return false;
    for (int i = 0; i < n->nout; i++)
        if (!n->out[i] || !zc_layout_is_plane(l, n->out[i])) return false;
    return true;
}

static bool split(zc_layout *l, zc_nid n)
{
    const zc_node *node = zc_node_at(l->g, n);
    const int64_t axis = ((const zc_attrs_Split *)node->attrs)->axis;
    const int rank = zc_layout_rank(l, node->in[0]);
    const zc_vid in[] = {l->last[node->in[0]], zc_node_in(node, ZC_IN_Split_lengths)};
    zc_nid m = zc_layout_turn_all(l, n, in);
    if (!m) return false;
    ZC_NODE_SET(l->g, Split, m, axis, turned_axis(rank, axis));
    return true;
}

/* Has something made channels-last a border added, of known width on every axis? */
static bool is_pad(const zc_layout *l, const zc_node *n)
{
    if (n->op != ZC_OP_Pad || !zc_layout_is_native(l, n->in[0]) ||
        !zc_layout_is_plane(l, n->out[0]))
        return false;
    const zc_tensor *t = zc_val(l->g, n->in[ZC_IN_Pad_pads])->data;
    return t && t->data && t->dtype == ZC_I64 &&
           zc_tensor_numel(t) == 2 * zc_layout_rank(l, n->in[0]) && !zc_node_in(n, ZC_IN_Pad_axes);
}

static bool pad(zc_layout *l, zc_nid n)
{
    const zc_node *node = zc_node_at(l->g, n);
    const int64_t *from = zc_val(l->g, node->in[ZC_IN_Pad_pads])->data->data;
    const int rank = zc_layout_rank(l, node->in[0]);
    int64_t pads[2 * ZC_LAYOUT_AXES];
    for (int i = 0; i < 2 * rank; i++) pads[i] = from[i / rank * rank + zc_to_last[rank][i % rank]];
    zc_vid made = zc_graph_const_i64(l->g, NULL, pads, 2 * rank, 1);
    if (!made || !zc_layout_room(l)) return false;
    node = zc_node_at(l->g, n);
    const zc_vid in[] = {l->last[node->in[0]], made, zc_node_in(node, ZC_IN_Pad_value)};
    return zc_layout_turn(l, n, ZC_OP_Pad, node->nin < 3 ? node->nin : 3, in);
}

/* ---- resizing ---- */

/* Numbers for each of so many axes; NULL: not known, or not so many. */
static const zc_tensor *each(const zc_graph *g, zc_vid v, zc_dtype dtype, int rank)
{
    const zc_tensor *t = v ? zc_val(g, v)->data : NULL;
    return t && t->data && t->dtype == dtype && t->rank == 1 && t->dims[0] == rank ? t : NULL;
}

/* Is something made channels-last resized, by scales or to sizes that are known? */
static bool is_resize(const zc_layout *l, const zc_node *n)
{
    const zc_graph *g = l->g;
    const zc_dtype dtype = zc_val(g, n->out[0])->type.dtype;
    if (n->op != ZC_OP_Resize || (dtype != ZC_F32 && !zc_layout_is_half(dtype))) return false;
    if (!zc_layout_is_native(l, n->in[0])) return false;
    const zc_attrs_Resize *a = n->attrs;
    zc_vid scales = zc_node_in(n, ZC_IN_Resize_scales), sizes = zc_node_in(n, ZC_IN_Resize_sizes);
    bool whole = !a->axes.n && strcmp(a->coordinate_transformation_mode, "tf_crop_and_resize") != 0;
    const int rank = zc_layout_rank(l, n->in[0]);
    return whole && (scales ? !sizes && each(g, scales, ZC_F32, rank)
                            : each(g, sizes, ZC_I64, rank) != NULL);
}

/* The numbers of a constant, one for each axis, in channels-last order; 0: no memory. */
static zc_vid turned_each(zc_layout *l, zc_vid v)
{
    const zc_tensor *from = zc_val(l->g, v)->data;
    const int rank = (int)from->dims[0];
    size_t size = zc_dtype_bits(from->dtype) / 8;
    zc_tensor t = *from;
    t.data = zc_calloc((size_t)rank, size);
    if (!t.data) return 0;
    for (int i = 0; i < rank; i++)
        memcpy((char *)t.data + (size_t)i * size,
               (const char *)from->data + (size_t)zc_to_last[rank][i] * size, size);
    zc_vid made = zc_graph_const(l->g, NULL, &t, true);
    return made && zc_layout_room(l) ? made : 0;
}

static bool resize(zc_layout *l, zc_nid n)
{
    const zc_node *node = zc_node_at(l->g, n);
    zc_vid scales = zc_node_in(node, ZC_IN_Resize_scales);
    zc_vid sizes = zc_node_in(node, ZC_IN_Resize_sizes), x = l->last[node->in[0]];
    zc_vid by = turned_each(l, scales ? scales : sizes);
    if (!by) return false;
    return zc_layout_turn(l, n, ZC_OP_Resize, scales ? 3 : 4,
                          (zc_vid[]){x, 0, scales ? by : 0, by});
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
static zc_vid plane_of_rows(const zc_layout *l, const zc_node *n)
{
    const zc_graph *g = l->g;
    const zc_node *r = swaps(n) ? maker(g, n->in[0], ZC_OP_Reshape) : NULL;
    if (!r || !zc_layout_is_native(l, r->in[0]) || zc_layout_rank(l, r->in[0]) != 4) return 0;
    const zc_type *t = &zc_val(g, r->in[0])->type, *flat = &zc_val(g, n->in[0])->type;
    bool fits = zc_dim_is_const(t->dims[1]) && zc_dim_eq(t->dims[0], flat->dims[0]) &&
                zc_dim_eq(t->dims[1], flat->dims[1]) && joins_sides(t, 2, flat, 2);
    return fits ? r->in[0] : 0;
}

/* Node n's result is a view of v. */
static bool view(zc_layout *l, zc_nid n, zc_vid v, const int64_t *shape, const zc_type *type,
                 bool plane)
{
    zc_vid form = zc_graph_const_i64(l->g, NULL, shape, type->rank, 1);
    zc_nid m = form ? zc_layout_add(l, ZC_OP_Reshape, "layout", 2, (zc_vid[]){v, form}, type) : 0;
    if (!m) return false;
    if (plane) return zc_layout_replace(l, n, m);
    if (!zc_graph_inherit(l->g, m, n)) return false;
    zc_graph_forward(l->g, zc_node_at(l->g, n)->out[0], zc_layout_result(l, m));
    zc_graph_remove(l->g, n);
    l->changes++;
    return true;
}

static bool rows(zc_layout *l, zc_nid n)
{
    const zc_node *node = zc_node_at(l->g, n);
    zc_vid v = plane_of_rows(l, node);
    zc_type type = zc_val(l->g, node->out[0])->type;
    return view(l, n, l->last[v], (int64_t[]){0, -1, type.dims[2].k}, &type, false);
}

/* [n, h * w, c] turned to [n, c, h * w], as [n, c, h, w]: the rows that it was; else 0. */
static zc_vid rows_of_plane(const zc_layout *l, const zc_node *n)
{
    const zc_graph *g = l->g;
    if (n->op != ZC_OP_Reshape || !zc_layout_is_plane(l, n->out[0]) ||
        zc_layout_rank(l, n->out[0]) != 4)
        return 0;
    const zc_node *t = maker(g, n->in[0], ZC_OP_Transpose);
    if (!t || !swaps(t)) return 0;
    const zc_type *to = &zc_val(g, n->out[0])->type, *flat = &zc_val(g, n->in[0])->type;
    bool fits = zc_dim_is_const(to->dims[1]) && zc_dim_eq(to->dims[0], flat->dims[0]) &&
                zc_dim_eq(to->dims[1], flat->dims[1]) && joins_sides(to, 2, flat, 2);
    return fits ? t->in[0] : 0;
}

static bool plane(zc_layout *l, zc_nid n)
{
    const zc_node *node = zc_node_at(l->g, n);
    zc_vid v = rows_of_plane(l, node);
    zc_type type = zc_layout_last_type(&zc_val(l->g, node->out[0])->type);
    int64_t shape[] = {0, type.dims[1].k, type.dims[2].k, type.dims[3].k};
    return view(l, n, v, shape, &type, true);
}

/* ---- channels that change places (ShuffleNet) ---- */

/* [n, c, h, w] as [n, g, c / g, h, w], these two exchanged, and all as [n, c, h, w] again: the
 * plane that it was, if it was made channels-last; else 0. groups: g. */
static zc_vid plane_of_shuffle(const zc_layout *l, const zc_node *n, int64_t *groups)
{
    const zc_graph *g = l->g;
    static const int64_t exchange[] = {0, 2, 1, 3, 4};
    const zc_node *t = n->op == ZC_OP_Reshape ? maker(g, n->in[0], ZC_OP_Transpose) : NULL;
    const zc_attrs_Transpose *a = t ? t->attrs : NULL;
    if (!t || a->perm.n != 5 || memcmp(a->perm.v, exchange, sizeof exchange) != 0) return 0;
    const zc_node *r = maker(g, t->in[0], ZC_OP_Reshape);
    if (!r || !zc_layout_is_native(l, r->in[0]) || zc_layout_rank(l, r->in[0]) != 4) return 0;
    const zc_type *x = &zc_val(g, r->in[0])->type, *five = &zc_val(g, t->in[0])->type;
    if (!zc_same_shape(x, &zc_val(g, n->out[0])->type) || !zc_dim_eq(x->dims[0], five->dims[0]))
        return 0;
    for (int d = 2; d < 4; d++)
        if (!zc_dim_eq(x->dims[d], five->dims[d + 1])) return 0;
    if (!zc_dim_is_const(x->dims[1]) || !zc_dim_is_const(five->dims[1])) return 0;
    const int64_t channels = x->dims[1].k, parts = five->dims[1].k;
    if (parts < 1 || channels % parts || !zc_dim_is(five->dims[2], channels / parts)) return 0;
    *groups = parts;
    return r->in[0];
}

static bool shuffle(zc_layout *l, zc_nid n)
{
    static const int64_t exchange[] = {0, 1, 2, 4, 3};
    int64_t groups;
    zc_vid x = l->last[plane_of_shuffle(l, zc_node_at(l->g, n), &groups)];
    const zc_type type = zc_val(l->g, x)->type;
    const int64_t each = type.dims[3].k / groups;
    zc_type apart = type, exchanged = type;
    apart.rank = exchanged.rank = 5;
    apart.dims[3] = exchanged.dims[4] = zc_dim_const(groups);
    apart.dims[4] = exchanged.dims[3] = zc_dim_const(each);
    zc_vid form = zc_graph_const_i64(l->g, NULL, (int64_t[]){0, 0, 0, groups, each}, 5, 1);
    zc_vid back = zc_graph_const_i64(l->g, NULL, (int64_t[]){0, 0, 0, groups * each}, 4, 1);
    if (!form || !back) return false;
    zc_nid a = zc_layout_add(l, ZC_OP_Reshape, "layout", 2, (zc_vid[]){x, form}, &apart);
    zc_vid v = a ? zc_layout_result(l, a) : 0;
    zc_nid b =
        v ? zc_layout_add(l, ZC_OP_Transpose, zc_node_at(l->g, n)->name, 1, &v, &exchanged) : 0;
    if (!b) return false;
    ZC_NODE_SET(l->g, Transpose, b, perm, (zc_ints){5, exchange});
    zc_nid c = zc_layout_add(l, ZC_OP_Reshape, "layout", 2,
                             (zc_vid[]){zc_layout_result(l, b), back}, &type);
    return c && zc_graph_inherit(l->g, b, n) && zc_layout_replace(l, n, c);
}

/* ---- all of them ---- */

static bool is_rows(const zc_layout *l, const zc_node *n)
{
    return plane_of_rows(l, n) != 0;
}

static bool is_plane_of_rows(const zc_layout *l, const zc_node *n)
{
    return rows_of_plane(l, n) != 0;
}

static bool is_shuffle(const zc_layout *l, const zc_node *n)
{
    int64_t groups;
    return plane_of_shuffle(l, n, &groups) != 0;
}

const zc_layout_op zc_layout_moves[] = {{is_concat, concat, ZC_LAYOUT_FOLLOWS, NULL},
                                        {is_slice, slice, ZC_LAYOUT_FOLLOWS, NULL},
                                        {is_split, split, ZC_LAYOUT_FOLLOWS, NULL},
                                        {is_pad, pad, ZC_LAYOUT_FOLLOWS, NULL},
                                        {is_resize, resize, ZC_LAYOUT_FOLLOWS, NULL},
                                        {is_rows, rows, ZC_LAYOUT_LEAVES, NULL},
                                        {is_plane_of_rows, plane, ZC_LAYOUT_ENTERS, NULL},
                                        {is_shuffle, shuffle, ZC_LAYOUT_SHUFFLES, NULL},
                                        {NULL, NULL, ZC_LAYOUT_FOLLOWS, NULL}};
