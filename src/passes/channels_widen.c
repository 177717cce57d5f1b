/* Nodes that read or make channels in pieces, and what others read. */
#include <string.h>

#include "passes/channels.h"
#include "passes/query.h"

/* ---- what reads them ---- */

/* A node with one result of that type, next in the list; 0: no memory. */
static zc_vid add(zc_channels *p, zc_op op, int nin, const zc_vid *in, const zc_type *type)
{
    const zc_nid n = zc_graph_node(p->g, NULL, op, "channels", nin, in, 1);
    const zc_vid v = n ? zc_graph_out(p->g, n, 0, NULL) : 0;
    if (!v || !ZC_VEC_PUSH(&p->out, n)) return 0;
    zc_val(p->g, v)->type = *type;
    return v;
}

/* n channels of v, from one on; 0: no memory. */
static zc_vid cut(zc_channels *p, zc_vid v, int64_t from, int64_t n)
{
    zc_type type = zc_val(p->g, v)->type;
    const int64_t axis = type.rank - 1, to = from + n;
    type.dims[axis] = zc_dim_const(n);
    const zc_vid starts = zc_graph_const_i64(p->g, NULL, &from, 1, 1);
    const zc_vid ends = zc_graph_const_i64(p->g, NULL, &to, 1, 1);
    const zc_vid axes = zc_graph_const_i64(p->g, NULL, &axis, 1, 1);
    if (!starts || !ends || !axes) return 0;
    return add(p, ZC_OP_Slice, 4, (zc_vid[]){v, starts, ends, axes}, &type);
}

/* The channels of v that lie there; 0: no memory. */
static zc_vid gathered(zc_channels *p, zc_vid v, const int64_t *at, int64_t n)
{
    zc_type type = zc_val(p->g, v)->type;
    type.dims[type.rank - 1] = zc_dim_const(n);
    zc_tensor t = {.dtype = ZC_I64, .rank = 1, .dims = {n}, .data = (void *)(uintptr_t)at};
    const zc_vid places = zc_graph_const(p->g, NULL, &t, false);
    const zc_vid made = places ? add(p, ZC_OP_Gather, 2, (zc_vid[]){v, places}, &type) : 0;
    if (made) ZC_NODE_SET(p->g, Gather, zc_val(p->g, made)->producer, axis, type.rank - 1);
    return made;
}

/* v with what is added behind its channels; 0: no memory. */
static zc_vid padded(zc_channels *p, zc_vid v)
{
    zc_type type = zc_val(p->g, v)->type;
    const zc_channels_form *f = &p->forms[v];
    int64_t pads[2 * ZC_MAX_RANK] = {0};
    pads[2 * type.rank - 1] = f->width - f->count;
    type.dims[type.rank - 1] = zc_dim_const(f->width);
    const zc_vid by = zc_graph_const_i64(p->g, NULL, pads, 2 * type.rank, 1);
    return by ? add(p, ZC_OP_Pad, 2, (zc_vid[]){v, by}, &type) : 0;
}

zc_vid zc_channels_narrow(zc_channels *p, zc_vid v)
{
    if (!v || !p->wide[v] || p->enters[v]) return v;
    const zc_channels_form *f = &p->forms[v];
    const bool side_by_side = f->at[f->count - 1] - f->at[0] == f->count - 1;
    if (!p->narrow[v]) {
        const zc_vid made = side_by_side ? cut(p, p->wide[v], f->at[0], f->count)
                                         : gathered(p, p->wide[v], f->at, f->count);
        p->narrow[v] = made;
    }
    return p->narrow[v];
}

/* v in its form, where it has it; 0: no memory. */
static zc_vid wide_of(zc_channels *p, zc_vid v)
{
    if (!p->wide[v] && p->enters[v] && p->wanted[v]) {
        const zc_vid made = padded(p, v);
        p->wide[v] = made;
    }
    return p->wanted[v] || p->wide[v] ? p->wide[v] : v;
}

/* The same for those that read all channels of it. */
static zc_vid own_of(zc_channels *p, zc_vid v)
{
    const zc_channels_form *f = &p->forms[v];
    if (!p->wide[v] || !f->part) return wide_of(p, v);
    if (!zc_channels_has_own(p, v)) return zc_channels_narrow(p, v);
    if (!p->own[v]) {
        const zc_vid made = cut(p, p->wide[v], f->at[0], zc_channels_pieces(f->count));
        p->own[v] = made;
    }
    return p->own[v];
}

/* ---- constants ---- */

/* The constant v with its last axis in that form: what is added repeats the first. 0: no memory. */
static zc_vid spread(zc_channels *p, zc_vid v, const zc_channels_form *f)
{
    zc_tensor t = *zc_val(p->g, v)->data;
    const int last = t.rank - 1;
    const size_t size = zc_dtype_bits(t.dtype) / 8;
    const int64_t rows = zc_dims_span(t.dims, 0, last);
    const char *from = t.data;
    zc_type type = zc_val(p->g, v)->type;
    size_t n;
    type.dims[last] = zc_dim_const(t.dims[last] = f->width);
    if (!from) return zc_graph_hollow(p->g, zc_val(p->g, v)->name, &type);
    if (!zc_mul_size((size_t)rows, (size_t)f->width, &n) || !(t.data = zc_calloc(n, size)))
        return 0;
    char *to = t.data;
    for (int64_t r = 0; r < rows; r++, from += (size_t)f->count * size) {
        for (int64_t c = 0; c < f->width; c++, to += size) memcpy(to, from, size);
        char *row = to - (size_t)f->width * size;
        for (int64_t c = 0; c < f->count; c++)
            memcpy(row + (size_t)f->at[c] * size, from + (size_t)c * size, size);
    }
    return zc_graph_const(p->g, zc_val(p->g, v)->name, &t, true);
}

/* The zero point of row m of the weights. */
static uint8_t zero_of(const zc_tensor *zero, int64_t m)
{
    const uint8_t *of = zero ? zero->data : NULL;
    return !of ? 0 : zc_tensor_numel(zero) == 1 ? *of : of[m];
}

/* Weights [rows][taps][depth] with rows in the form `out` and depth in the form `in`, of which
 * either may be NULL: rows that are added repeat the first, columns are zero points. 0: no memory.
 */
static zc_vid weights(zc_channels *p, const zc_node *n, const zc_channels_form *in,
                      const zc_channels_form *out)
{
    const zc_channels_roles r = zc_channels_roles_of(n->op);
    const zc_vid v = n->in[r.w];
    zc_tensor t = *zc_val(p->g, v)->data;
    const zc_tensor w = t, *zero = zc_channels_operand(n, r.zero)
                                       ? zc_val(p->g, n->in[r.zero])->data
                                       : NULL;
    const int last = w.rank - 1;
    const int64_t taps = zc_dims_span(w.dims, 1, last), depth = in ? in->width : w.dims[last];
    zc_type type = zc_val(p->g, v)->type;
    size_t row, size;
    t.dims[0] = out ? out->width : w.dims[0];
    t.dims[last] = depth;
    for (int d = 0; d < t.rank; d++) type.dims[d] = zc_dim_const(t.dims[d]);
    if (!w.data) return zc_graph_hollow(p->g, zc_val(p->g, v)->name, &type);
    if (!zc_mul_size((size_t)taps, (size_t)depth, &row) ||
        !zc_mul_size((size_t)t.dims[0], row, &size) || !(t.data = zc_calloc(size, 1)))
        return 0;
    for (int64_t i = 0; i < t.dims[0] + w.dims[0]; i++) { /* first what is repeated, then each */
        const bool repeats = i < t.dims[0];
        const int64_t m = repeats ? 0 : i - t.dims[0];
        uint8_t *to = (uint8_t *)t.data + (size_t)(repeats ? i : out ? out->at[m] : m) * row;
        const uint8_t *from = (const uint8_t *)w.data + m * taps * w.dims[last];
        memset(to, zero_of(zero, m), row);
        for (int64_t k = 0; k < taps; k++)
            for (int64_t c = 0; c < w.dims[last]; c++)
                to[k * depth + (in ? in->at[c] : c)] = from[k * w.dims[last] + c];
    }
    return zc_graph_const(p->g, zc_val(p->g, v)->name, &t, true);
}

/* ---- nodes ---- */

static void set_width(zc_channels *p, zc_vid v, int64_t width)
{
    zc_type *t = &zc_val(p->g, v)->type;
    t->dims[t->rank - 1] = zc_dim_const(width);
}

/* The result v of a node that was widened. */
static void made(zc_channels *p, zc_vid v)
{
    set_width(p, v, p->forms[v].width);
    p->wide[v] = v;
}

/* One number for each channel of the result, or one for all. */
static bool spread_operand(zc_channels *p, zc_nid id, int i, const zc_channels_form *f)
{
    const zc_vid v = zc_channels_operand(zc_node_at(p->g, id), i);
    if (!v || zc_val(p->g, v)->type.rank == 0 || zc_channels_of(p->g, v) != f->count) return true;
    const zc_vid wide = spread(p, v, f);
    zc_node_at(p->g, id)->in[i] = wide;
    return wide != 0;
}

static bool widen_result(zc_channels *p, zc_nid id, const zc_channels_form *f)
{
    const zc_op op = zc_node_at(p->g, id)->op;
    const zc_channels_roles r = zc_channels_roles_of(op);
    const bool each = p->kinds[id] == ZC_CHANNELS_EACH;
    if (!spread_operand(p, id, r.zero, f) || !spread_operand(p, id, r.scale, f) ||
        !spread_operand(p, id, r.bias, f))
        return false;
    if (each && op == ZC_OP_QLinearConv) ZC_NODE_SET(p->g, QLinearConv, id, group, f->width);
    if (each && op == ZC_OP_ConvInteger) ZC_NODE_SET(p->g, ConvInteger, id, group, f->width);
    made(p, zc_node_at(p->g, id)->out[0]);
    return true;
}

static bool conv(zc_channels *p, zc_nid id)
{
    const zc_node *n = zc_node_at(p->g, id); /* until another is added */
    const zc_vid image = n->in[0], out = n->out[0];
    const zc_channels_form *to = zc_channels_is_wide(p, n) ? &p->forms[out] : NULL;
    const bool all = p->kinds[id] == ZC_CHANNELS_CONV;
    const zc_vid x = all ? wide_of(p, image) : own_of(p, image);
    const zc_channels_form *in = all && p->wanted[image] ? &p->forms[image] : NULL;
    const zc_vid w = weights(p, zc_node_at(p->g, id), in, to);
    if (!w || !x) return false;
    zc_node_at(p->g, id)->in[0] = x;
    zc_node_at(p->g, id)->in[zc_channels_roles_of(zc_node_at(p->g, id)->op).w] = w;
    ++*p->changes;
    return !to || widen_result(p, id, to);
}

static bool follow(zc_channels *p, zc_nid id)
{
    const zc_vid out = zc_node_at(p->g, id)->out[0];
    const zc_channels_form *f = &p->forms[out];
    for (int i = 0; i < zc_node_at(p->g, id)->nin; i++) {
        const zc_vid v = zc_node_at(p->g, id)->in[i];
        if (!v) continue;
        const bool each = p->kinds[id] == ZC_CHANNELS_FOLLOWS && zc_val(p->g, v)->data &&
                          f->count > 1 && zc_channels_of(p->g, v) == f->count;
        const zc_vid wide = each ? spread(p, v, f) : own_of(p, v);
        if (!wide) return false;
        zc_node_at(p->g, id)->in[i] = wide;
    }
    made(p, out);
    return true;
}

/* The node's results are where they are in the whole. */
static bool find_parts(zc_channels *p, zc_nid id)
{
    const zc_node *n = zc_node_at(p->g, id);
    const zc_vid whole = p->wide[n->in[0]];
    for (int i = 0; i < n->nout; i++)
        if (n->out[i]) p->wide[n->out[i]] = whole;
    const bool ok = zc_graph_inherit(p->g, zc_producer(p->g, whole), id);
    zc_graph_remove(p->g, id);
    return ok;
}

/* Reshape n gives v, whose last axis is made two or one, that many channels. */
static bool reshape(zc_channels *p, zc_nid n, zc_vid v, const int64_t *last, int count)
{
    int64_t shape[ZC_MAX_RANK] = {0};
    const zc_vid out = zc_node_at(p->g, n)->out[0];
    zc_type *t = &zc_val(p->g, out)->type;
    const int rank = t->rank;
    for (int i = 0; i < count; i++) {
        shape[rank - count + i] = last[i];
        t->dims[rank - count + i] = zc_dim_const(last[i]);
    }
    const zc_vid to = zc_graph_const_i64(p->g, NULL, shape, rank, 1);
    if (!to) return false;
    zc_node_at(p->g, n)->in[0] = v;
    zc_node_at(p->g, n)->in[ZC_IN_Reshape_shape] = to;
    if (ZC_NODE_ATTRS(p->g, Reshape, n)->allowzero) ZC_NODE_SET(p->g, Reshape, n, allowzero, 0);
    return true;
}

/* The three nodes of a shuffle, next to each other. */
static bool shuffle(zc_channels *p, zc_nid id)
{
    const zc_vid out = zc_node_at(p->g, id)->out[0], x = zc_channels_shuffled(p, id);
    const zc_nid t = zc_producer(p->g, zc_node_at(p->g, id)->in[0]);
    const zc_nid first = zc_producer(p->g, zc_node_at(p->g, t)->in[0]);
    const int64_t width = p->forms[out].width;
    zc_type *type = &zc_val(p->g, zc_node_at(p->g, t)->out[0])->type;
    const int rank = type->rank;
    const int64_t groups = type->dims[rank - 1].k;
    type->dims[rank - 2] = zc_dim_const(width / groups);
    if (!reshape(p, first, p->wide[x], (int64_t[]){groups, width / groups}, 2) ||
        !reshape(p, id, zc_node_at(p->g, t)->out[0], &width, 1))
        return false;
    p->wide[out] = out;
    return ZC_VEC_PUSH(&p->out, first) && ZC_VEC_PUSH(&p->out, t);
}

/* What is not widened. */
static bool keep(zc_channels *p, zc_nid id)
{
    for (int i = 0; i < zc_node_at(p->g, id)->nin; i++) {
        const zc_vid v = zc_node_at(p->g, id)->in[i], narrow = zc_channels_narrow(p, v);
        if (v && !narrow) return false;
        zc_node_at(p->g, id)->in[i] = narrow;
    }
    return true;
}

bool zc_channels_widen(zc_channels *p, zc_nid id)
{
    const zc_node *n = zc_node_at(p->g, id);
    const zc_channels_kind k = p->kinds[id];
    const bool wanted = zc_channels_is_wide(p, n),
               reads = k == ZC_CHANNELS_CONV && p->wanted[n->in[0]];
    if (k == ZC_CHANNELS_WITHIN && zc_channels_is_wide(p, zc_node_at(p->g, p->shuffles[id])))
        return true;
    if (k == ZC_CHANNELS_PARTS && p->wide[n->in[0]]) return find_parts(p, id);
    const bool ok = !wanted && !reads                                ? keep(p, id)
                    : k == ZC_CHANNELS_CONV || k == ZC_CHANNELS_EACH ? conv(p, id)
                    : k == ZC_CHANNELS_SHUFFLE                       ? shuffle(p, id)
                                                                     : follow(p, id);
    return ok && ZC_VEC_PUSH(&p->out, id);
}
