#include "passes/precision.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op/half.h"
#include "passes/query.h"

#define TEXT_OF(x)         #x
#define TEXT(x)            TEXT_OF(x)
#define CLAMPED(type, max) type "(isinf(x0) ? x0 : min(max(x0, -" TEXT(max) "), " TEXT(max) "))"

enum { UNKNOWN, FITS, TOO_LARGE };

struct zc_precision_value {
    zc_vid twin; /* in the other type; 0: not made */
    bool placed; /* the twin's node has to be placed after this value's definition */
    bool ours;   /* the type was f32 and is narrow now */
    bool narrow; /* users are to take it narrow */
    char range;  /* constants */
};

static bool make_room(zc_precision *p)
{
    size_t n = p->g->values.len;
    if (n <= p->count) return true;
    size_t cap = n * 2;
    struct zc_precision_value *values = zc_realloc(p->values, cap, sizeof *values);
    if (!values) return false;
    memset(values + p->count, 0, (cap - p->count) * sizeof *values);
    p->values = values;
    p->count = cap;
    return true;
}

zc_status zc_precision_init(zc_precision *p, zc_graph *g, zc_dtype narrow, zc_diag *diag)
{
    *p = (zc_precision){.g = g, .narrow = narrow, .diag = diag};
    return make_room(p) ? ZC_OK : zc_fail_nomem(diag, "precision", g->values.len);
}

void zc_precision_fini(zc_precision *p)
{
    free(p->values);
    ZC_VEC_FINI(&p->before);
}

static zc_dtype dtype_of(const zc_precision *p, zc_vid v)
{
    return zc_val(p->g, v)->type.dtype;
}

bool zc_precision_ours(const zc_precision *p, zc_vid v)
{
    return v && (dtype_of(p, v) == ZC_F32 || p->values[v].ours);
}

bool zc_precision_is_const(const zc_precision *p, zc_vid v)
{
    return zc_val(p->g, v)->kind == ZC_VALUE_CONST;
}

bool zc_precision_is_narrow(const zc_precision *p, zc_vid v)
{
    return p->values[v].narrow;
}

void zc_precision_lower(zc_precision *p, zc_vid v)
{
    zc_val(p->g, v)->type.dtype = p->narrow;
    p->values[v].ours = p->values[v].narrow = true;
}

void zc_precision_prefer_narrow(zc_precision *p, zc_vid v)
{
    p->values[v].narrow = true;
}

/* ---- constants ---- */

void zc_precision_narrowed(zc_dtype narrow, const float *x, uint16_t *y, int64_t n)
{
    enum { PIECE = 512 }; /* elements that stay in the cache */
    const float max = (float)zc_half_max(narrow);
    for (int64_t first = 0; first < n; first += PIECE) {
        const int64_t count = n - first < PIECE ? n - first : PIECE;
        const float *from = x + first;
        float v[PIECE];
        for (int64_t i = 0; i < count; i++) {
            const float within = from[i] > max ? max : from[i] < -max ? -max : from[i];
            v[i] = isinf(from[i]) ? from[i] : within;
        }
        zc_halves_of_floats(narrow, v, y + first, count);
    }
}

int zc_precision_kept_form(zc_dtype d)
{
    return d == ZC_F16 ? ZC_PRECISION_f16 : d == ZC_BF16 ? ZC_PRECISION_bf16 : ZC_PRECISION_tf32;
}

/* Elements whose bytes are there. */
static int64_t elements(const zc_tensor *t)
{
    return t->data ? zc_tensor_numel(t) : 0;
}

bool zc_precision_in_range(zc_precision *p, zc_vid v)
{
    char *range = &p->values[v].range;
    const zc_tensor *t = zc_val(p->g, v)->data;
    /* What is kept was asked about before. */
    if (*range == UNKNOWN && zc_kept_has(p->kept, p->g, v, zc_precision_kept_form(p->narrow)))
        *range = FITS;
    if (*range == UNKNOWN) {
        int64_t n = elements(t), beyond = 0;
        const float *x = t->data, max = (float)zc_half_max(p->narrow);
        for (int64_t i = 0; i < n; i++) beyond += (fabsf(x[i]) > max) & !isinf(x[i]);
        *range = beyond ? TOO_LARGE : FITS;
    }
    return *range == FITS;
}

bool zc_precision_vanishes(const zc_precision *p, zc_vid v)
{
    const zc_tensor *t = zc_val(p->g, v)->data;
    if (elements(t) != 1) return false;
    float x = *(const float *)t->data;
    uint16_t y;
    zc_precision_narrowed(p->narrow, &x, &y, 1);
    return x != 0 && !(y & 0x7FFF);
}

/* Emulation rounds it, straight to f32. */
static zc_vid hollow_const(zc_precision *p, zc_vid v)
{
    zc_type type = zc_val(p->g, v)->type;
    type.dtype = p->narrow;
    const zc_hollow_twin made = {zc_graph_hollow(p->g, zc_val(p->g, v)->name, &type), v};
    return made.twin && ZC_VEC_PUSH(p->hollow, made) ? made.twin : 0;
}

static zc_vid narrow_const(zc_precision *p, zc_vid v)
{
    if (p->hollow) return hollow_const(p, v);
    const zc_value *value = zc_val(p->g, v);
    zc_tensor t = *value->data;
    int64_t n = elements(&t);
    const float *x = t.data;
    uint16_t *y = x ? zc_calloc((size_t)n, sizeof *y) : NULL;
    if (x && !y) return 0;
    zc_precision_narrowed(p->narrow, x, y, n);
    t.dtype = p->narrow;
    t.data = y;
    return zc_graph_const(p->g, value->name, &t, true);
}

/* ---- conversions ---- */

/* A node, in no block yet, that makes another type of v. 0: no memory. */
static zc_vid converted(zc_precision *p, zc_vid v, zc_op op, zc_dtype to)
{
    zc_graph *g = p->g;
    zc_nid n = zc_graph_node(g, NULL, op, "precision", 1, &v, 1);
    zc_vid made = n ? zc_graph_out(g, n, 0, zc_val(g, v)->name) : 0;
    if (!made || !make_room(p)) return 0;
    zc_nid from = zc_val(g, v)->kind == ZC_VALUE_NODE ? zc_val(g, v)->producer : 0;
    if (from && !zc_graph_inherit(g, n, from)) return 0;
    zc_val(g, made)->type = zc_val(g, v)->type;
    zc_val(g, made)->type.dtype = to;
    return made;
}

static zc_vid cast(zc_precision *p, zc_vid v, zc_dtype to)
{
    zc_vid made = converted(p, v, ZC_OP_Cast, to);
    if (made) ZC_NODE_SET(p->g, Cast, zc_val(p->g, made)->producer, to, to);
    return made;
}

const char *zc_precision_clamp_text(zc_dtype narrow)
{
    return narrow == ZC_F16 ? CLAMPED("f16", ZC_F16_MAX) : CLAMPED("bf16", ZC_BF16_MAX);
}

const char *zc_precision_rounding_text(zc_dtype narrow)
{
    return narrow == ZC_F16 ? "f32(" CLAMPED("f16", ZC_F16_MAX) ")"
                            : "f32(" CLAMPED("bf16", ZC_BF16_MAX) ")";
}

zc_vid zc_precision_origin(const zc_graph *g, zc_vid v)
{
    zc_nid n = zc_producer(g, v);
    const zc_node *node = n ? zc_node_at(g, n) : NULL;
    if (!node || node->op != ZC_OP_Pointwise || node->nin != 1) return 0;
    const char *expr = ((const zc_attrs_Pointwise *)node->attrs)->expr;
    bool narrows = zc_val(g, node->in[0])->type.dtype == ZC_F32 &&
                   strcmp(expr, zc_precision_clamp_text(zc_val(g, v)->type.dtype)) == 0;
    return narrows ? node->in[0] : 0;
}

static zc_vid narrow_clamped(zc_precision *p, zc_vid v)
{
    zc_vid made = converted(p, v, ZC_OP_Pointwise, p->narrow);
    if (made)
        ZC_NODE_SET(p->g, Pointwise, zc_val(p->g, made)->producer, expr,
                    zc_precision_clamp_text(p->narrow));
    return made;
}

/* What v is converted from, when it is a Cast; else 0. */
static zc_vid cast_source(const zc_precision *p, zc_vid v)
{
    const zc_value *value = zc_val(p->g, v);
    if (value->kind != ZC_VALUE_NODE) return 0;
    const zc_node *node = zc_node_at(p->g, value->producer);
    return node->op == ZC_OP_Cast ? zc_graph_resolved(p->g, node->in[0]) : 0;
}

/* Has the narrow type all values of d? */
static bool holds_all(zc_dtype d)
{
    return d == ZC_BOOL || d == ZC_I8 || d == ZC_U8;
}

static zc_vid make_narrow(zc_precision *p, zc_vid v, bool *placed)
{
    if (zc_precision_is_const(p, v)) return narrow_const(p, v);
    zc_vid source = cast_source(p, v);
    if (source && dtype_of(p, source) == p->narrow) return source;
    *placed = true;
    if (source && holds_all(dtype_of(p, source))) return cast(p, source, p->narrow);
    return narrow_clamped(p, v);
}

zc_vid zc_precision_narrow(zc_precision *p, zc_vid v)
{
    if (dtype_of(p, v) == p->narrow) return v;
    if (p->values[v].twin) return p->values[v].twin;
    bool placed = false;
    zc_vid twin = make_narrow(p, v, &placed);
    if (!twin || !make_room(p)) return 0;
    p->values[v].twin = twin;
    p->values[v].placed = placed;
    return twin;
}

zc_vid zc_precision_wide(zc_precision *p, zc_vid v)
{
    if (dtype_of(p, v) == ZC_F32) return v;
    if (p->values[v].twin) return p->values[v].twin;
    zc_vid twin = cast(p, v, ZC_F32);
    if (!twin) return 0;
    p->values[v].twin = twin;
    p->values[v].placed = true;
    return twin;
}

zc_vid zc_precision_wide_for(zc_precision *p, zc_vid v, zc_nid user)
{
    if (!p->values[v].narrow) return v;
    zc_vid from = zc_precision_narrow(p, v);
    zc_vid made = from ? cast(p, from, ZC_F32) : 0;
    if (!made) return 0;
    zc_before b = {user, zc_val(p->g, made)->producer};
    return ZC_VEC_PUSH(&p->before, b) ? made : 0;
}

/* ---- placing ---- */

typedef struct placing {
    const zc_precision *p;
    size_t next; /* of p->before */
} placing;

static bool place_twin(const zc_precision *p, zc_vid v, zc_block *b)
{
    if (!v || !p->values[v].placed) return true;
    return ZC_VEC_PUSH(&b->nodes, zc_val(p->g, p->values[v].twin)->producer);
}

static bool place_block(placing *pl, zc_block *b);

static bool place_node(placing *pl, zc_nid n, zc_block *b)
{
    const zc_precision *p = pl->p;
    for (; pl->next < p->before.len && p->before.data[pl->next].user == n; pl->next++)
        if (!ZC_VEC_PUSH(&b->nodes, p->before.data[pl->next].cast)) return false;
    if (!ZC_VEC_PUSH(&b->nodes, n)) return false;
    const zc_node *node = zc_node_at(p->g, n);
    for (int r = 0; r < node->nregions; r++)
        if (!place_block(pl, node->regions[r])) return false;
    for (int i = 0; i < node->nout; i++)
        if (!place_twin(p, node->out[i], b)) return false;
    return true;
}

static bool place_block(placing *pl, zc_block *b)
{
    zc_block old = *b;
    memset(&b->nodes, 0, sizeof b->nodes);
    bool ok = true;
    for (size_t i = 0; ok && i < b->params.len; i++) ok = place_twin(pl->p, b->params.data[i], b);
    for (size_t i = 0; ok && i < old.nodes.len; i++) ok = place_node(pl, old.nodes.data[i], b);
    ZC_VEC_FINI(&old.nodes);
    return ok;
}

zc_status zc_precision_place(zc_precision *p)
{
    placing pl = {.p = p};
    return place_block(&pl, &p->g->top) ? ZC_OK : zc_fail_nomem(p->diag, "precision", 0);
}
