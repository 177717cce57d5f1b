/* Transposed convolutions as the layout pass turns them: of each step of the stride (a phase) the
 * results see the same neighbours of an element of the image by taps of their own. So all phases
 * are the channels of one convolution with stride 1, whose results are then laid side by side.
 *
 * Either they share one window, with weights that are zero where others' reaches further; or, where
 * each has as many taps, windows of their own (op/window.h). */
#include <math.h>
#include <string.h>

#include "passes/layout.h"
#include "passes/query.h"

enum { SIDES = ZC_LAYOUT_AXES - 2, PIECE = 8 /* channels that kernels read and write */ };

/* Result q * stride + phase of an axis sees `taps` elements of the image from q + low on, or from
 * the one after that where the phase is `late` or a later one. */
typedef struct side {
    int64_t stride, kernel, begin;
    int64_t low, taps, late;
    int64_t more; /* whole steps of the result beyond the image's length */
    int64_t over; /* results in these that the axis does not have */
} side;

typedef struct phases {
    int sides;
    side side[SIDES];
    int64_t count, in, out; /* phases of all sides; channels */
} phases;

/* The tap by which a phase sees element q + at; -1: by none. */
static int64_t tap_of(const side *s, int64_t phase, int64_t at)
{
    const int64_t u = phase + s->begin, back = u / s->stride - at;
    const int64_t tap = u % s->stride + back * s->stride;
    return back >= 0 && tap < s->kernel ? tap : -1;
}

static int64_t given(zc_ints list, int i, int64_t otherwise)
{
    return list.n ? list.v[i] : otherwise;
}

/* False: such an axis is not taken. */
static bool side_of(const zc_attrs_ConvTranspose *a, int sides, int i, int64_t kernel, side *out)
{
    enum { MOST = 1024 };
    side s = {.stride = given(a->strides, i, 1), .kernel = kernel, .begin = given(a->pads, i, 0)};
    int64_t high = 0;
    const int64_t end = given(a->pads, sides + i, 0), extra = given(a->output_padding, i, 0);
    const int64_t extent = kernel + extra - s.begin - end; /* of an image of one element */
    if (s.stride > MOST || kernel > MOST || s.begin > MOST || end > MOST || extra > MOST ||
        given(a->dilations, i, 1) != 1 || extent < 1)
        return false;
    for (int64_t phase = 0; phase < s.stride; phase++) {
        const int64_t u = phase + s.begin, last = (s.kernel - 1 - u % s.stride) / s.stride;
        if (u % s.stride >= s.kernel) continue;
        if (u / s.stride - last < s.low) s.low = u / s.stride - last;
        if (u / s.stride > high) high = u / s.stride;
    }
    s.taps = high - s.low + 1;
    s.late = s.stride;
    s.more = (extent - 1) / s.stride;
    s.over = (s.more + 1) * s.stride - extent;
    *out = s;
    return true;
}

/* Have phases windows of their own? */
static bool is_apart(const phases *p)
{
    bool apart = false;
    for (int i = 0; i < p->sides; i++) apart = apart || p->side[i].late < p->side[i].stride;
    return apart;
}

/* Phases with windows of their own; false: they have taps of different numbers, or share one
 * window without zeros. */
static bool set_apart(phases *p)
{
    for (int i = 0; i < p->sides; i++) {
        side *s = &p->side[i];
        if (s->kernel % s->stride || s->begin >= s->kernel) return false;
        s->taps = s->kernel / s->stride;
        s->late = s->stride - s->begin % s->stride;
    }
    return is_apart(p);
}

/* What the convolution of all phases is held to take. Sizes that are not certain count as many. */
static double conv_us(const zc_layout *l, const zc_node *n, const phases *p)
{
    enum { MANY = 1 << 17 };
    int64_t strides[SIDES], late[SIDES];
    zc_conv_work w;
    const bool certain = zc_layout_work(l, n, &w);
    if (!certain) w.images = MANY;
    w.groups = 1;
    w.in = p->in;
    w.out = p->count * p->out;
    for (int i = 0; i < p->sides; i++) {
        const side *s = &p->side[i];
        w.kernel[i] = s->taps;
        w.sides[i] = certain ? zc_val(l->g, n->in[0])->type.dims[2 + i].k + s->more : 1;
        strides[i] = s->stride;
        late[i] = s->late;
    }
    if (!is_apart(p)) return zc_conv_last_us(&w);
    w.window.phases = (zc_ints){p->sides, strides};
    w.window.late = (zc_ints){p->sides, late};
    return zc_conv_sm90_us(&w);
}

/* What becomes of node n; false: it is none that is taken. Zeros between taps may not be most of
 * the work. */
static bool phases_of(const zc_layout *l, const zc_node *n, phases *out)
{
    enum { WASTE_MOST = 8 };
    const zc_attrs_ConvTranspose *a = n->attrs;
    const zc_tensor *w = zc_val(l->g, n->in[ZC_IN_ConvTranspose_w])->data;
    int64_t taps = 1, windows = 1;
    phases p = {.sides = w->rank - 2, .count = 1, .in = w->dims[0], .out = w->dims[1]};
    if (a->output_shape.n || strcmp(a->auto_pad, "NOTSET") != 0 || a->group != 1) return false;
    for (int i = 0; i < p.sides; i++) {
        if (!side_of(a, p.sides, i, w->dims[2 + i], &p.side[i])) return false;
        p.count *= p.side[i].stride;
        taps *= p.side[i].kernel;
    }
    if (p.in < 1 || p.in % PIECE || p.out < 1 || p.count * p.out % PIECE) return false;
    phases apart = p;
    if (set_apart(&apart) && conv_us(l, n, &apart) < conv_us(l, n, &p)) p = apart;
    for (int i = 0; i < p.sides; i++) windows *= p.side[i].stride * p.side[i].taps;
    *out = p;
    return windows <= WASTE_MOST * taps;
}

/* The results can be laid side by side where all sides but one are certain, and there is an image.
 */
static bool has_sides(const zc_type *x)
{
    int open = 0;
    for (int d = 2; d < x->rank; d++) {
        if (zc_dim_is(x->dims[d], 0)) return false;
        open += !zc_dim_is_const(x->dims[d]);
    }
    return open < 2;
}

static bool is_phased(const zc_layout *l, const zc_node *n)
{
    if (n->op != ZC_OP_ConvTranspose || !l->half || !zc_layout_is_plane(l, n->in[0]) ||
        !zc_layout_is_plane(l, n->out[0]) || zc_op_epilogue(zc_op_get(n->op), n->attrs))
        return false;
    const zc_tensor *w = zc_val(l->g, n->in[ZC_IN_ConvTranspose_w])->data;
    const zc_vid bias = zc_node_in(n, ZC_IN_ConvTranspose_bias);
    const zc_tensor *b = bias ? zc_val(l->g, bias)->data : NULL;
    phases p;
    return w && zc_layout_is_half(w->dtype) && w->dtype == zc_val(l->g, n->in[0])->type.dtype &&
           (!bias || (b && b->dtype == w->dtype)) && has_sides(&zc_val(l->g, n->in[0])->type) &&
           phases_of(l, n, &p);
}

/* ---- constants ---- */

/* The constant of these elements, which it takes over; hollow without. 0: no memory. */
static zc_vid made_const(zc_layout *l, zc_vid like, const zc_type *type, uint16_t *data)
{
    const char *name = zc_val(l->g, like)->name;
    zc_tensor t = {.dtype = type->dtype, .rank = type->rank, .data = data};
    for (int d = 0; d < t.rank; d++) t.dims[d] = type->dims[d].k;
    zc_vid made = data ? zc_graph_const(l->g, name, &t, true) : zc_graph_hollow(l->g, name, type);
    return made && zc_layout_room(l) ? made : 0;
}

/* The tap of w by which a phase of all sides sees its window's element number `at`; -1: none. */
static int64_t tap_at(const phases *p, int64_t phase, int64_t at)
{
    int64_t tap = 0, step = 1;
    for (int i = p->sides - 1; i >= 0; i--) {
        const side *s = &p->side[i];
        const int64_t own = phase % s->stride, later = own >= s->late;
        const int64_t t = tap_of(s, own, s->low + later + at % s->taps);
        if (t < 0) return -1;
        tap += t * step;
        step *= s->kernel;
        phase /= s->stride;
        at /= s->taps;
    }
    return tap;
}

/* w[in][out][taps] as [phase][out][window][in]; 0: no memory. */
static zc_vid weights(zc_layout *l, zc_vid v, const phases *p)
{
    const zc_tensor *w = zc_val(l->g, v)->data;
    zc_type type = {.dtype = w->dtype, .rank = w->rank};
    const int64_t taps = zc_dims_span(w->dims, 2, w->rank);
    int64_t windows = 1;
    size_t n = (size_t)(p->count * p->out);
    type.dims[0] = zc_dim_const(p->count * p->out);
    type.dims[w->rank - 1] = zc_dim_const(p->in);
    for (int i = 0; i < p->sides; i++) {
        type.dims[1 + i] = zc_dim_const(p->side[i].taps);
        windows *= p->side[i].taps;
    }
    if (!w->data) return made_const(l, v, &type, NULL);
    if (!zc_mul_size(n, (size_t)windows, &n) || !zc_mul_size(n, (size_t)p->in, &n)) return 0;
    uint16_t *to = zc_calloc(n, sizeof *to);
    const uint16_t *from = w->data;
    if (!to) return 0;
    for (int64_t m = 0; m < p->count * p->out; m++)
        for (int64_t at = 0; at < windows; at++) {
            const int64_t tap = tap_at(p, m / p->out, at);
            for (int64_t c = 0; tap >= 0 && c < p->in; c++)
                to[(m * windows + at) * p->in + c] = from[(c * p->out + m % p->out) * taps + tap];
        }
    return made_const(l, v, &type, to);
}

/* The bias of each phase; 0: no memory. */
static zc_vid repeated(zc_layout *l, zc_vid v, const phases *p)
{
    const zc_tensor *b = zc_val(l->g, v)->data;
    const zc_type type = {.dtype = b->dtype, .rank = 1, .dims = {zc_dim_const(p->count * p->out)}};
    if (!b->data) return made_const(l, v, &type, NULL);
    const size_t bytes = (size_t)p->out * sizeof(uint16_t);
    uint16_t *to = zc_calloc((size_t)(p->count * p->out), sizeof *to);
    if (!to) return 0;
    for (int64_t i = 0; i < p->count; i++) memcpy(to + i * p->out, b->data, bytes);
    return made_const(l, v, &type, to);
}

/* ---- the nodes ---- */

/* The numbers as an attribute; false: no memory. */
static bool kept(zc_layout *l, const int64_t *v, int n, zc_ints *out)
{
    *out = (zc_ints){n, zc_arena_dup(&l->g->arena, v, (size_t)n, sizeof *v)};
    return out->v != NULL;
}

/* The convolution; 0: no memory. */
static zc_nid convolution(zc_layout *l, zc_nid n, const phases *p)
{
    const zc_node *node = zc_node_at(l->g, n);
    const zc_vid w = node->in[ZC_IN_ConvTranspose_w],
                 b = zc_node_in(node, ZC_IN_ConvTranspose_bias);
    zc_vid in[] = {zc_layout_last_of(l, node->in[0]), weights(l, w, p), b ? repeated(l, b, p) : 0};
    int64_t pads[2 * SIDES], strides[SIDES], late[SIDES];
    if (!in[0] || !in[1] || (b && !in[2])) return 0;
    zc_type type = zc_val(l->g, in[0])->type;
    for (int i = 0; i < p->sides; i++) {
        const side *s = &p->side[i];
        pads[i] = -s->low;
        pads[p->sides + i] = s->more + s->low + s->taps - 1;
        strides[i] = s->stride;
        late[i] = s->late;
        type.dims[1 + i] = zc_dim_add(&l->g->dims, type.dims[1 + i], zc_dim_const(s->more));
    }
    type.dims[1 + p->sides] = zc_dim_const(p->count * p->out);
    zc_nid m = zc_layout_add(l, ZC_OP_ConvNhwc, zc_node_at(l->g, n)->name, 3, in, &type);
    zc_ints border, count, from;
    if (!m || !zc_graph_inherit(l->g, m, n) || !kept(l, pads, 2 * p->sides, &border) ||
        !kept(l, strides, p->sides, &count) || !kept(l, late, p->sides, &from))
        return 0;
    ZC_NODE_SET(l->g, ConvNhwc, m, pads, border);
    ZC_NODE_SET(l->g, ConvNhwc, m, taps_first, 1);
    if (!is_apart(p)) return m;
    ZC_NODE_SET(l->g, ConvNhwc, m, phases, count);
    ZC_NODE_SET(l->g, ConvNhwc, m, late, from);
    return m;
}

/* A view of v; 0: no memory. */
static zc_vid viewed(zc_layout *l, zc_vid v, const int64_t *shape, const zc_type *type)
{
    zc_vid form = zc_graph_const_i64(l->g, NULL, shape, type->rank, 1);
    zc_nid m = form ? zc_layout_add(l, ZC_OP_Reshape, "layout", 2, (zc_vid[]){v, form}, type) : 0;
    return m ? zc_layout_result(l, m) : 0;
}

/* [n][sides ...][phases of each side ...][out] as [n][side, phases of it ...][out]; 0: no memory.
 */
static zc_vid side_by_side(zc_layout *l, zc_vid v, const phases *p)
{
    enum { MOST = 2 + 2 * SIDES };
    const int sides = p->sides;
    const zc_type whole = zc_val(l->g, v)->type;
    zc_type apart = whole, turned = whole;
    int64_t shape[MOST] = {0}, perm[MOST] = {0};
    apart.rank = turned.rank = 2 + 2 * sides;
    for (int i = 0; i < sides; i++) {
        shape[1 + sides + i] = p->side[i].stride;
        apart.dims[1 + sides + i] = turned.dims[2 + 2 * i] = zc_dim_const(p->side[i].stride);
        turned.dims[1 + 2 * i] = whole.dims[1 + i];
        perm[1 + 2 * i] = 1 + i;
        perm[2 + 2 * i] = 1 + sides + i;
    }
    shape[1 + 2 * sides] = p->out;
    perm[1 + 2 * sides] = 1 + 2 * sides;
    apart.dims[1 + 2 * sides] = turned.dims[1 + 2 * sides] = zc_dim_const(p->out);
    v = viewed(l, v, shape, &apart);
    zc_nid m = v ? zc_layout_add(l, ZC_OP_Transpose, "layout", 1, &v, &turned) : 0;
    zc_ints order;
    if (!m || !kept(l, perm, turned.rank, &order)) return 0;
    ZC_NODE_SET(l->g, Transpose, m, perm, order);
    return zc_layout_result(l, m);
}

/* The same with each side as one axis; 0: no memory. */
static zc_vid joined(zc_layout *l, zc_vid v, const phases *p, zc_type type)
{
    int64_t shape[ZC_LAYOUT_AXES] = {0};
    for (int i = 0; i < p->sides; i++) {
        zc_dim *d = &type.dims[1 + i];
        *d = zc_dim_mul(&l->g->dims, *d, zc_dim_const(p->side[i].stride));
        shape[1 + i] = zc_dim_is_const(*d) ? d->k : -1;
    }
    shape[1 + p->sides] = p->out;
    type.dims[1 + p->sides] = zc_dim_const(p->out);
    return viewed(l, v, shape, &type);
}

/* Without what sides have too much; 0: no memory. */
static zc_vid cut(zc_layout *l, zc_vid v, const phases *p, const zc_type *type)
{
    int64_t from[SIDES] = {0}, to[SIDES], axes[SIDES];
    int n = 0;
    for (int i = 0; i < p->sides; i++) {
        if (!p->side[i].over) continue;
        to[n] = -p->side[i].over;
        axes[n++] = 1 + i;
    }
    if (!n) return v;
    const zc_vid in[] = {v, zc_graph_const_i64(l->g, NULL, from, n, 1),
                         zc_graph_const_i64(l->g, NULL, to, n, 1),
                         zc_graph_const_i64(l->g, NULL, axes, n, 1)};
    zc_nid m = in[1] && in[2] && in[3] ? zc_layout_add(l, ZC_OP_Slice, "layout", 4, in, type) : 0;
    return m ? zc_layout_result(l, m) : 0;
}

static bool phased(zc_layout *l, zc_nid n)
{
    phases p;
    phases_of(l, zc_node_at(l->g, n), &p);
    const zc_vid old = zc_node_at(l->g, n)->out[0];
    const zc_type made = zc_layout_last_type(&zc_val(l->g, old)->type);
    zc_nid m = convolution(l, n, &p);
    if (!m) return false;
    zc_vid v = zc_layout_result(l, m);
    const zc_type whole = zc_val(l->g, v)->type;
    if (p.count > 1) {
        if (p.sides > 1 && !(v = side_by_side(l, v, &p))) return false;
        if (!(v = joined(l, v, &p, whole))) return false;
    }
    if (!(v = cut(l, v, &p, &made)) || !zc_layout_replace_value(l, old, v)) return false;
    zc_graph_remove(l->g, n);
    l->changes++;
    return true;
}

/* The convolution of all phases, and what lays them side by side. */
static zc_layout_us phases_us(const zc_layout *l, const zc_node *n)
{
    const zc_attrs_ConvTranspose *a = n->attrs;
    const zc_tensor *w = zc_val(l->g, n->in[ZC_IN_ConvTranspose_w])->data;
    phases p;
    zc_conv_work first;
    phases_of(l, n, &p);
    if (!zc_layout_work(l, n, &first)) return (zc_layout_us){INFINITY, 0};
    first.transposed = true;
    first.window = ZC_WINDOW_ATTRS(a);
    first.groups = 1;
    first.in = p.in;
    first.out = p.out;
    for (int i = 0; i < p.sides; i++) first.kernel[i] = w->dims[2 + i];
    const bool moves = p.count > 1 && p.sides > 1;
    return (zc_layout_us){zc_conv_first_us(&first),
                          conv_us(l, n, &p) + (moves ? zc_layout_move_us(l, n->out[0]) : 0)};
}

const zc_layout_op zc_layout_phases[] = {{is_phased, phased, ZC_LAYOUT_FOLLOWS, phases_us},
                                         {NULL, NULL, ZC_LAYOUT_FOLLOWS, NULL}};
