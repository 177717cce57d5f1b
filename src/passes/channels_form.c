/* Which channels may lie in pieces, and where: forms, from the convolutions on that make them. */
#include <string.h>

#include "op/nhwc.h"
#include "passes/channels.h"
#include "passes/quantised.h"

int64_t zc_channels_pieces(int64_t n)
{
    return (n + ZC_CHANNELS_PIECE - 1) / ZC_CHANNELS_PIECE * ZC_CHANNELS_PIECE;
}

int64_t zc_channels_of(const zc_graph *g, zc_vid v)
{
    const zc_type *t = &zc_val(g, v)->type;
    return t->rank > 0 && zc_dim_is_const(t->dims[t->rank - 1]) ? t->dims[t->rank - 1].k : 0;
}

/* ---- convolutions ---- */

zc_channels_roles zc_channels_roles_of(zc_op op)
{
    return op == ZC_OP_QLinearConv
               ? (zc_channels_roles){ZC_IN_QLinearConv_w, ZC_IN_QLinearConv_w_zero,
                                     ZC_IN_QLinearConv_w_scale, ZC_IN_QLinearConv_bias}
               : (zc_channels_roles){ZC_IN_ConvInteger_w, ZC_IN_ConvInteger_w_zero, -1, -1};
}

zc_vid zc_channels_operand(const zc_node *n, int i)
{
    return i < 0 ? 0 : zc_node_in(n, i);
}

static bool is_const(const zc_graph *g, zc_vid v)
{
    return !v || zc_val(g, v)->data;
}

/* A convolution of bytes whose channels may become more; else OTHER. */
static zc_channels_kind conv_kind(const zc_graph *g, const zc_node *n)
{
    if (n->op != ZC_OP_QLinearConv && n->op != ZC_OP_ConvInteger) return ZC_CHANNELS_OTHER;
    const zc_channels_roles r = zc_channels_roles_of(n->op);
    const zc_tensor *w = zc_val(g, n->in[r.w])->data;
    const bool known = w && is_const(g, zc_channels_operand(n, r.zero)) &&
                       is_const(g, zc_channels_operand(n, r.scale)) &&
                       is_const(g, zc_channels_operand(n, r.bias));
    if (!known || !zc_conv_channels_last(n->op, n->attrs) || !zc_conv_taps_first(n->op, n->attrs) ||
        zc_op_epilogue(zc_op_get(n->op), n->attrs))
        return ZC_CHANNELS_OTHER;
    const int64_t groups = zc_conv_groups(n->op, n->attrs);
    if (w->dims[0] <= 0 || w->dims[w->rank - 1] <= 0) return ZC_CHANNELS_OTHER;
    if (groups == 1) return ZC_CHANNELS_CONV;
    return groups == w->dims[0] && w->dims[w->rank - 1] == 1 && !zc_conv_banded(n->op, n->attrs)
               ? ZC_CHANNELS_EACH
               : ZC_CHANNELS_OTHER;
}

/* ---- what else is widened ---- */

static bool follows(const zc_graph *g, const zc_node *n)
{
    zc_quantised b;
    if (n->nout != 1 || zc_op_epilogue(zc_op_get(n->op), n->attrs)) return false;
    if (n->op == ZC_OP_DequantizeLinear) return zc_dequantised(g, n->out[0], &b) && b.axis < 0;
    return zc_is_quantised(g, n) || n->op == ZC_OP_Cast || n->op == ZC_OP_MaxPoolNhwc ||
           n->op == ZC_OP_AveragePoolNhwc || zc_op_get(n->op)->flags & ZC_OPF_POINTWISE;
}

static bool is_last_axis(const zc_graph *g, zc_vid v, int64_t axis)
{
    const int rank = zc_val(g, v)->type.rank;
    return rank > 0 && (axis == -1 || axis == rank - 1);
}

/* The one whole number that the constant v is; false: it is none. */
static bool number(const zc_graph *g, zc_vid v, int64_t *out)
{
    const zc_tensor *t = zc_known(g, v);
    if (!t || t->dtype != ZC_I64 || zc_tensor_numel(t) != 1) return false;
    *out = *(const int64_t *)t->data;
    return true;
}

/* Does it take channels that lie side by side? *first: the first of them. */
static bool slices(const zc_graph *g, const zc_node *n, int64_t *first)
{
    int64_t axis, step = 1;
    const zc_vid steps = zc_node_in(n, ZC_IN_Slice_steps);
    if (n->op != ZC_OP_Slice || !number(g, zc_node_in(n, ZC_IN_Slice_axes), &axis) ||
        !is_last_axis(g, n->in[0], axis) || !number(g, n->in[ZC_IN_Slice_starts], first) ||
        (steps && !number(g, steps, &step)) || step != 1)
        return false;
    if (*first < 0) *first += zc_channels_of(g, n->in[0]);
    return *first >= 0;
}

static bool splits(const zc_graph *g, const zc_node *n)
{
    return n->op == ZC_OP_Split &&
           is_last_axis(g, n->in[0], ((const zc_attrs_Split *)n->attrs)->axis);
}

static bool concats(const zc_graph *g, const zc_node *n)
{
    return n->op == ZC_OP_Concat &&
           is_last_axis(g, n->out[0], ((const zc_attrs_Concat *)n->attrs)->axis);
}

static zc_nid maker(const zc_channels *p, zc_vid v, zc_op op)
{
    const zc_nid n = zc_producer(p->g, v);
    return n && p->uses[v] == 1 && zc_node_at(p->g, n)->op == op ? n : 0;
}

/* Does it exchange its last two axes? */
static bool exchanges(const zc_node *t)
{
    const zc_attrs_Transpose *a = t->attrs;
    const int last = (int)a->perm.n - 1;
    for (int i = 0; i <= last; i++)
        if (a->perm.v[i] != (i < last - 1 ? i : 2 * last - 1 - i)) return false;
    return last > 1;
}

/* Has v's last axis become two, *groups of so many channels? */
static bool parts_channels(const zc_graph *g, zc_vid x, zc_vid v, int64_t *groups)
{
    const zc_type *from = &zc_val(g, x)->type, *to = &zc_val(g, v)->type;
    if (to->rank != from->rank + 1 || from->rank < 1) return false;
    for (int d = 0; d < from->rank - 1; d++)
        if (!zc_dim_eq(from->dims[d], to->dims[d])) return false;
    const zc_dim first = to->dims[from->rank - 1], second = to->dims[from->rank];
    *groups = first.k;
    return zc_dim_is_const(first) && zc_dim_is_const(second) && first.k > 0 &&
           first.k * second.k == zc_channels_of(g, x);
}

/* Are n and two nodes before it a shuffle of channels, as opt_layout leaves it? */
static bool shuffles(const zc_channels *p, const zc_node *n, zc_nid within[2], int64_t *groups)
{
    const zc_graph *g = p->g;
    if (n->op != ZC_OP_Reshape || !(within[1] = maker(p, n->in[0], ZC_OP_Transpose))) return false;
    const zc_node *t = zc_node_at(g, within[1]);
    if (!exchanges(t) || !(within[0] = maker(p, t->in[0], ZC_OP_Reshape))) return false;
    const zc_vid x = zc_node_at(g, within[0])->in[0];
    return parts_channels(g, x, t->in[0], groups) &&
           zc_same_shape(&zc_val(g, x)->type, &zc_val(g, n->out[0])->type);
}

/* ---- forms ---- */

/* Room for where n channels lie; NULL: no memory. */
static int64_t *places(zc_channels *p, int64_t n)
{
    int64_t *at = zc_arena_alloc(&p->g->arena, (size_t)n, sizeof *at);
    p->failed = p->failed || !at;
    return at;
}

zc_channels_form zc_channels_padded(zc_channels *p, int64_t n, int64_t width)
{
    int64_t *at = places(p, n);
    if (!at) return (zc_channels_form){0};
    for (int64_t c = 0; c < n; c++) at[c] = c;
    return (zc_channels_form){.count = n, .width = width, .at = at};
}

bool zc_channels_has_own(const zc_channels *p, zc_vid v)
{
    const zc_channels_form *f = &p->forms[v];
    return f->at[f->count - 1] - f->at[0] == f->count - 1 &&
           f->at[0] + zc_channels_pieces(f->count) <= f->width;
}

/* v's form for those that read all channels of it; width 0: it has none. */
static zc_channels_form own_form(zc_channels *p, zc_vid v)
{
    const zc_channels_form *f = &p->forms[v];
    if (!f->part) return *f;
    return zc_channels_has_own(p, v) ? zc_channels_padded(p, f->count, zc_channels_pieces(f->count))
                                     : (zc_channels_form){0};
}

static bool same_form(const zc_channels_form *a, const zc_channels_form *b)
{
    return a->width == b->width && a->count == b->count &&
           memcmp(a->at, b->at, (size_t)a->count * sizeof *a->at) == 0;
}

/* Has it one number for all channels, or is it a constant of one for each of n? */
static bool is_alike(const zc_graph *g, zc_vid v, int64_t n)
{
    const zc_type *t = &zc_val(g, v)->type;
    return t->rank == 0 || zc_channels_of(g, v) == 1 ||
           (zc_channels_of(g, v) == n && zc_val(g, v)->data && zc_dtype_bits(t->dtype) % 8 == 0);
}

/* n channels, and behind them as many as the last piece has room for? */
static bool is_padded(const zc_channels_form *f, int64_t n)
{
    return f->count == n && f->width == zc_channels_pieces(n) && f->at[n - 1] == n - 1;
}

/* What is made elsewhere can be padded, so that it is like something that has a form. */
static zc_channels_form followed(zc_channels *p, const zc_node *n)
{
    const int64_t count = zc_channels_of(p->g, n->out[0]);
    zc_channels_form all = {0};
    bool enters = false;
    for (int i = 0; i < n->nin; i++) {
        const zc_vid v = n->in[i];
        const zc_channels_form f = v ? own_form(p, v) : (zc_channels_form){0};
        if (!v || (!f.width && is_alike(p->g, v, count))) continue;
        if (zc_channels_of(p->g, v) != count || zc_val(p->g, v)->data) return (zc_channels_form){0};
        if (f.width && all.width && !same_form(&all, &f)) return (zc_channels_form){0};
        if (f.width)
            all = f;
        else
            enters = true;
    }
    return all.width && enters && !is_padded(&all, count) ? (zc_channels_form){0} : all;
}

static zc_channels_form joined(zc_channels *p, const zc_node *n)
{
    const int64_t count = zc_channels_of(p->g, n->out[0]);
    int64_t *at = count > 0 ? places(p, count) : NULL;
    int64_t from = 0, next = 0;
    bool any = false;
    for (int i = 0; at && i < n->nin; i++) {
        const zc_channels_form f = own_form(p, n->in[i]);
        const int64_t own = zc_channels_of(p->g, n->in[i]);
        for (int64_t c = 0; c < own; c++) at[next + c] = from + (f.width ? f.at[c] : c);
        next += own;
        from += f.width ? f.width : own;
        any = any || f.width;
    }
    return any && from % ZC_CHANNELS_PIECE == 0
               ? (zc_channels_form){.count = count, .width = from, .at = at}
               : (zc_channels_form){0};
}

static void part(zc_channels *p, zc_vid x, zc_vid v, int64_t first)
{
    const zc_channels_form *f = &p->forms[x];
    const int64_t count = zc_channels_of(p->g, v);
    if (f->width && count > 0)
        p->forms[v] = (zc_channels_form){count, f->width, f->at + first, .part = true};
}

static void parts(zc_channels *p, const zc_node *n)
{
    int64_t first = 0;
    if (n->op == ZC_OP_Slice) {
        slices(p->g, n, &first);
        part(p, n->in[0], n->out[0], first);
        return;
    }
    for (int i = 0; i < n->nout; i++) {
        if (!n->out[i]) return;
        part(p, n->in[0], n->out[i], first);
        first += zc_channels_of(p->g, n->out[i]);
    }
}

/* Groups that are as wide as each other, each with what is added behind it: that ends up behind
 * all channels. */
static zc_channels_form shuffled(zc_channels *p, zc_vid x, int64_t groups)
{
    const zc_channels_form *f = &p->forms[x];
    const int64_t each = f->count / groups, wide = f->width / groups;
    if (!f->width || f->part || f->width % groups) return (zc_channels_form){0};
    for (int64_t c = 0; c < f->count; c++)
        if (f->at[c] != c / each * wide + c % each) return (zc_channels_form){0};
    return zc_channels_padded(p, f->count, f->width);
}

zc_vid zc_channels_shuffled(const zc_channels *p, zc_nid n)
{
    const zc_node *t = zc_node_at(p->g, zc_producer(p->g, zc_node_at(p->g, n)->in[0]));
    return zc_node_at(p->g, zc_producer(p->g, t->in[0]))->in[0];
}

static zc_channels_kind kind_of(zc_channels *p, zc_nid id, zc_nid within[2], int64_t *groups)
{
    const zc_graph *g = p->g;
    const zc_node *n = zc_node_at(g, id);
    int64_t first;
    const zc_channels_kind k = conv_kind(g, n);
    return k != ZC_CHANNELS_OTHER                 ? k
           : follows(g, n)                        ? ZC_CHANNELS_FOLLOWS
           : concats(g, n)                        ? ZC_CHANNELS_CONCAT
           : splits(g, n) || slices(g, n, &first) ? ZC_CHANNELS_PARTS
           : shuffles(p, n, within, groups)       ? ZC_CHANNELS_SHUFFLE
                                                  : ZC_CHANNELS_OTHER;
}

static void find(zc_channels *p, zc_nid id)
{
    zc_nid within[2];
    int64_t groups = 1;
    const zc_node *n = zc_node_at(p->g, id);
    const zc_channels_kind k = kind_of(p, id, within, &groups);
    const zc_vid out = zc_node_out(n, 0);
    const int64_t count = out ? zc_channels_of(p->g, out) : 0;
    p->kinds[id] = k;
    if (k == ZC_CHANNELS_CONV && count % ZC_CHANNELS_PIECE)
        p->forms[out] = zc_channels_padded(p, count, zc_channels_pieces(count));
    if (k == ZC_CHANNELS_EACH) p->forms[out] = own_form(p, n->in[0]);
    if (k == ZC_CHANNELS_FOLLOWS) p->forms[out] = followed(p, n);
    if (k == ZC_CHANNELS_CONCAT) p->forms[out] = joined(p, n);
    if (k == ZC_CHANNELS_PARTS) parts(p, n);
    if (k != ZC_CHANNELS_SHUFFLE) return;
    p->forms[out] = shuffled(p, zc_channels_shuffled(p, id), groups);
    for (int i = 0; i < 2; i++) {
        p->kinds[within[i]] = ZC_CHANNELS_WITHIN;
        p->shuffles[within[i]] = id;
    }
}

/* What regions read stays as it is, and all parts of something have a form, or none. */
static void limit(zc_channels *p, zc_nid id)
{
    const zc_node *n = zc_node_at(p->g, id);
    bool fits = true;
    for (int i = 0; i < n->nout; i++)
        fits = fits && (!n->out[i] || (p->forms[n->out[i]].width && !p->inner[n->out[i]]));
    for (int i = 0; i < n->nout && !fits; i++)
        if (n->out[i]) p->forms[n->out[i]] = (zc_channels_form){0};
    if (!fits && p->kinds[id] == ZC_CHANNELS_PARTS) p->kinds[id] = ZC_CHANNELS_OTHER;
}

void zc_channels_find(zc_channels *p, zc_nid n)
{
    find(p, n);
    limit(p, n);
}
