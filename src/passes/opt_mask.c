/* Attention whose mask is proved to be causal, a padding by lengths, or nothing at all, is told so
 * instead of being given the mask. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "passes/mask.h"
#include "passes/passes.h"
#include "passes/query.h"

typedef struct attention {
    zc_nid n;
    zc_vid mask;
    bool packed, causal; /* packed: queries and keys are one operand */
    bool past;           /* there are keys in front of the new ones */
    float mask_value, softcap;
    double factor;  /* by which constants multiply scores */
    zc_dtype dtype; /* of the scores */
    zc_dim scores[4];
} attention;

/* Made for one attention, of use to others behind it. */
typedef struct kept {
    const zc_block *block;
    zc_vid mask, made;
    zc_dim batch, keys;
} kept;

typedef struct masking {
    zc_graph *g;
    zc_block *block;
    size_t at; /* place in the block of the node that is looked at */
    ZC_VEC(kept) lengths;
    bool nomem;
} masking;

/* ---- making nodes ---- */

/* A node before the one that is looked at; 0: no memory, or it cannot be. */
static zc_vid make(masking *m, zc_op op, int nin, const zc_vid *in, void *attrs)
{
    zc_block *b = m->block;
    for (int i = 0; i < nin; i++)
        if (!in[i]) return 0;
    zc_nid n = zc_graph_node(m->g, NULL, op, "mask", nin, in, 1);
    if (!n || !zc_graph_out(m->g, n, 0, NULL) || !ZC_VEC_PUSH(&b->nodes, n)) {
        m->nomem = true;
        return 0;
    }
    if (attrs) {
        void *own = zc_graph_attrs_dup(m->g, op, attrs);
        zc_node_at(m->g, n)->attrs = own;
        m->nomem |= !own;
    }
    memmove(b->nodes.data + m->at + 1, b->nodes.data + m->at,
            (b->nodes.len - 1 - m->at) * sizeof *b->nodes.data);
    b->nodes.data[m->at++] = n;
    if (m->nomem || zc_graph_infer(m->g, n, NULL) != ZC_OK) return 0;
    return zc_node_at(m->g, n)->out[0];
}

static zc_vid number(masking *m, int64_t x, int rank)
{
    zc_vid v = zc_graph_const_i64(m->g, NULL, &x, 1, rank);
    m->nomem |= !v;
    return v;
}

/* One dimension, as a list. */
static zc_vid dim_of(masking *m, zc_vid v, int axis)
{
    zc_attrs_Shape a;
    zc_attrs_default(zc_op_get(ZC_OP_Shape), &a);
    ZC_ATTR_SET(Shape, &a, start, axis);
    ZC_ATTR_SET(Shape, &a, end, axis + 1);
    return make(m, ZC_OP_Shape, 1, &v, &a);
}

static zc_vid as_list(masking *m, zc_vid v)
{
    const zc_type *t = &zc_val(m->g, v)->type;
    zc_attrs_Cast a;
    zc_attrs_default(zc_op_get(ZC_OP_Cast), &a);
    ZC_ATTR_SET(Cast, &a, to, ZC_I64);
    if (t->dtype != ZC_I64) v = make(m, ZC_OP_Cast, 1, &v, &a);
    if (v && zc_val(m->g, v)->type.rank != 1)
        v = make(m, ZC_OP_Reshape, 2, (zc_vid[]){v, number(m, -1, 1)}, NULL);
    return v;
}

/* ---- lengths ---- */

static zc_vid keys_of(masking *m, const attention *a)
{
    const zc_node *n = zc_node_at(m->g, a->n);
    zc_vid v = n->in[a->packed ? ZC_IN_Attention_q : ZC_IN_Attention_k];
    if (zc_dim_is_const(a->scores[3])) return number(m, a->scores[3].k, 1);
    return dim_of(m, v, zc_val(m->g, v)->type.rank - 2);
}

static zc_vid each_batch(masking *m, const attention *a, zc_vid one)
{
    zc_vid q = zc_node_at(m->g, a->n)->in[0];
    zc_vid batch = zc_dim_is_const(a->scores[0]) ? number(m, a->scores[0].k, 1) : dim_of(m, q, 0);
    return make(m, ZC_OP_Expand, 2, (zc_vid[]){one, batch}, NULL);
}

/* Is a score lost in the sum of it and the number that hides a key? */
static bool absorbs(const masking *m, const attention *a, const zc_mask *mask)
{
    switch (zc_val(m->g, a->mask)->type.dtype) {
    case ZC_F64:
        return mask->no < -0x1p53;
    case ZC_F16:
    case ZC_BF16:
    case ZC_BOOL:
        return true;
    default:
        return mask->no < -0x1p24;
    }
}

/* Lengths within what attention takes. Where nothing is seen and hiding is but a number added to
 * every score, everything is seen. */
static zc_vid make_lengths(masking *m, const attention *a, const zc_mask *mask)
{
    const zc_seen *s = &mask->seen;
    zc_vid v = as_list(m, s->lengths), keys = keys_of(m, a), low = number(m, 0, 0), some;
    if (v && !zc_dim_is(s->more, 0))
        v = make(m, ZC_OP_Add, 2, (zc_vid[]){v, number(m, s->more.k, 0)}, NULL);
    v = make(m, ZC_OP_Min, 2, (zc_vid[]){v, keys}, NULL);
    if (isinf(mask->no) || absorbs(m, a, mask)) {
        v = make(m, ZC_OP_Max, 2, (zc_vid[]){v, low}, NULL);
    } else {
        some = make(m, ZC_OP_Greater, 2, (zc_vid[]){v, low}, NULL);
        v = make(m, ZC_OP_Where, 3, (zc_vid[]){some, v, keys}, NULL);
    }
    return v && !s->each ? each_batch(m, a, v) : v;
}

/* The same mask gives the same lengths. */
static zc_vid lengths_of(masking *m, const attention *a, const zc_mask *mask)
{
    for (size_t i = 0; i < m->lengths.len; i++) {
        const kept *k = &m->lengths.data[i];
        if (k->block == m->block && k->mask == a->mask && zc_dim_eq(k->batch, a->scores[0]) &&
            zc_dim_eq(k->keys, a->scores[3]))
            return k->made;
    }
    zc_vid v = mask ? make_lengths(m, a, mask) : each_batch(m, a, keys_of(m, a));
    kept k = {m->block, a->mask, v, a->scores[0], a->scores[3]};
    if (v && !ZC_VEC_PUSH(&m->lengths, k)) m->nomem = true;
    return v;
}

/* ---- reading ---- */

static bool read_scores(zc_graph *g, const zc_node *n, attention *a)
{
    const zc_attrs_Attention *at = n->attrs;
    const zc_type *q = &zc_val(g, n->in[ZC_IN_Attention_q])->type;
    const zc_type *k = a->packed ? q : &zc_val(g, n->in[ZC_IN_Attention_k])->type;
    bool wide = q->rank == 4;
    if ((q->rank != 3 && !wide) || k->rank != q->rank) return false;
    const zc_dim dims[] = {q->dims[0], wide ? q->dims[1] : zc_dim_const(at->q_num_heads),
                           q->dims[wide ? 2 : 1], k->dims[wide ? 2 : 1]};
    memcpy(a->scores, dims, sizeof dims);
    if (a->past) {
        const zc_type *past = &zc_val(g, n->in[ZC_IN_Attention_past_k])->type;
        if (past->rank != 4) return false;
        a->scores[3] = zc_dim_add(&g->dims, past->dims[2], a->scores[3]);
    }
    return true;
}

/* By how much the constants that v was multiplied with last have made it larger. */
static double factor_of(const zc_graph *g, zc_vid v)
{
    enum { STEPS = 8 };
    double by = 1, x;
    for (int i = 0; i < STEPS && zc_producer(g, v); i++) {
        const zc_node *n = zc_node_at(g, zc_producer(g, v));
        bool is_divided = n->op == ZC_OP_Div, is_turned = n->op == ZC_OP_Transpose;
        int other = n->op == ZC_OP_Mul && zc_val(g, n->in[0])->data ? 0 : 1;
        if (!is_divided && !is_turned && n->op != ZC_OP_Mul && n->op != ZC_OP_Reshape) break;
        if ((is_divided || n->op == ZC_OP_Mul) && zc_graph_splat(g, n->in[other], &x))
            by *= is_divided ? 1 / x : x;
        v = n->in[n->op == ZC_OP_Mul ? 1 - other : 0];
    }
    return fabs(by);
}

/* An attention of which a mask says which keys count, and nothing else does; no scores are wanted.
 */
static bool read_attention(zc_graph *g, zc_nid id, attention *a)
{
    enum { SCORES = 3 }; /* result */
    static const int others[] = {ZC_IN_Attention_lengths, ZC_IN_Attention_bias,
                                 ZC_IN_Attention_total};
    const zc_node *n = zc_node_at(g, id);
    if (n->op != ZC_OP_Attention || !zc_node_in(n, ZC_IN_Attention_mask)) return false;
    for (size_t i = 0; i < ZC_COUNTOF(others); i++)
        if (zc_node_in(n, others[i])) return false;
    bool past = zc_node_in(n, ZC_IN_Attention_past_k);
    for (int i = past ? SCORES : 1; i < n->nout; i++)
        if (n->out[i]) return false;
    const zc_attrs_Attention *at = n->attrs;
    if (at->window) return false;
    *a = (attention){.n = id,
                     .mask = n->in[ZC_IN_Attention_mask],
                     .packed = !n->in[ZC_IN_Attention_k],
                     .causal = at->is_causal != 0,
                     .past = past,
                     .mask_value = at->mask_value,
                     .softcap = at->softcap,
                     .factor = fabs(at->scale != 0 ? (double)at->scale : 1) *
                               factor_of(g, n->in[ZC_IN_Attention_q]),
                     .dtype = zc_val(g, n->in[0])->type.dtype};
    if (!a->packed) a->factor *= factor_of(g, n->in[ZC_IN_Attention_k]);
    return read_scores(g, n, a);
}

/* How low a score must be, or be put, that no other score makes up for it. Softmax gives no weight
 * to what is 104 below. Scores that are capped differ by twice the cap; without one, scores large
 * enough to bridge this many have steps of 16 or more in their type, between which softmax tells no
 * difference any more. So have the products that constants made that large. bf16 has f32's range:
 * the same counts as low. */
static double hidden_below(const attention *a)
{
    enum { UNDERFLOW = 104 };
    double low = a->dtype == ZC_F64 ? -0x1p57 : a->dtype == ZC_F16 ? -0x1p15 : -0x1p28;
    if (a->factor > 1) low *= a->factor;
    return a->softcap > 0 ? fmax(low, -2 * (double)a->softcap - UNDERFLOW) : low;
}

/* A mask of zeros, or true, where a key is seen, and what hides it elsewhere: `no` becomes the
 * number that a hidden key's score becomes, or that is added to it. */
static bool hides(const zc_graph *g, const attention *a, zc_mask *m)
{
    bool is_bool = zc_val(g, a->mask)->type.dtype == ZC_BOOL;
    if (is_bool && m->yes == 1 && m->no == 0) {
        m->no = a->mask_value != 0 ? (double)a->mask_value : -(double)INFINITY;
        return m->no <= hidden_below(a);
    }
    return !is_bool && m->yes == 0 && m->no <= hidden_below(a);
}

static bool always_seen(const zc_graph *g, const attention *a, const zc_mask *m)
{
    bool none = !m->seen.causal && !m->seen.lengths && !m->seen.rest;
    return none && m->yes == (zc_val(g, a->mask)->type.dtype == ZC_BOOL ? 1 : 0);
}

/* ---- rewriting ---- */

/* What an attention is told instead of its mask. */
typedef struct told {
    zc_vid mask, lengths; /* 0: none */
    bool causal;
    float mask_value;
} told;

static bool give(masking *m, const attention *a, const told *what)
{
    zc_node *n = zc_node_at(m->g, a->n);
    int room = n->nin > ZC_IN_Attention_lengths ? n->nin : ZC_IN_Attention_lengths + 1;
    zc_vid *in = zc_arena_alloc(&m->g->arena, (size_t)room, sizeof *in);
    if (!in) return false;
    for (int i = 0; i < room; i++) in[i] = i < n->nin ? n->in[i] : 0;
    in[ZC_IN_Attention_mask] = what->mask;
    in[ZC_IN_Attention_lengths] = what->lengths;
    n->in = in;
    n->nin = room;
    while (n->nin > 1 && !in[n->nin - 1]) n->nin--;
    zc_attrs_Attention *t = n->attrs;
    ZC_ATTR_SET(Attention, t, is_causal, what->causal);
    ZC_ATTR_SET(Attention, t, mask_value, what->mask_value);
    if (t->mask_value == 0) zc_attr_unmark(t, ZC_AT_Attention_mask_value);
    return true;
}

/* The mask that is left beside a causal one. */
static zc_vid rest_of(masking *m, const zc_seen *s)
{
    bool is_bool = zc_val(m->g, s->rest)->type.dtype == ZC_BOOL;
    if (s->not_rest && !is_bool) return 0;
    return s->not_rest ? make(m, ZC_OP_Not, 1, &s->rest, NULL) : s->rest;
}

/* Is this the diagonal that ends at the last key: as many keys stand before the first query as
 * there are more of them? */
static bool ends_at_last(masking *m, const attention *a, const zc_seen *s)
{
    zc_dim before = zc_dim_sub(&m->g->dims, a->scores[3], a->scores[2]);
    return zc_dim_eq(before, s->offset) && zc_dim_known_ge(&m->g->dims, before, 0);
}

/* Behind past keys the diagonal of is_causal begins with them. */
static bool tell_causal_past(masking *m, const attention *a, const zc_seen *s, told *out)
{
    bool alone = s->causal && !s->lengths && !s->rest && !a->causal;
    out->causal = alone && ends_at_last(m, a, s);
    return out->causal;
}

/* false: it stays as it is, or there is no memory. */
static bool tell_causal(masking *m, const attention *a, const zc_mask *mask, told *out)
{
    const zc_seen *s = &mask->seen;
    bool last = !zc_dim_is(s->offset, 0);
    if (last && (a->causal || s->rest || a->packed || !ends_at_last(m, a, s))) return false;
    if (s->rest && !isinf(mask->no)) return false;
    out->causal = true;
    if (last) out->lengths = lengths_of(m, a, NULL);
    if (s->rest) out->mask = rest_of(m, s);
    return (!last || out->lengths) && (!s->rest || out->mask);
}

static bool tell_lengths(masking *m, const attention *a, const zc_mask *mask, told *out)
{
    if (a->causal || !zc_dim_is_const(mask->seen.more)) return false;
    out->lengths = lengths_of(m, a, mask);
    if (isfinite(mask->no) && absorbs(m, a, mask))
        out->mask_value = (float)fmax(mask->no, -FLT_MAX);
    return out->lengths != 0;
}

/* A mask of truths instead of one of numbers that are added. */
static bool tell_rest(masking *m, const attention *a, const zc_mask *mask, told *out)
{
    const zc_type *t = &zc_val(m->g, mask->seen.rest)->type;
    if (zc_val(m->g, a->mask)->type.dtype == ZC_BOOL || t->dtype != ZC_BOOL) return false;
    if (isfinite(mask->no) && !absorbs(m, a, mask)) return false;
    out->mask = rest_of(m, &mask->seen);
    if (isfinite(mask->no)) out->mask_value = (float)fmax(mask->no, -FLT_MAX);
    return out->mask != 0;
}

/* 1: rewritten; 0: left as it is; -1: no memory. */
static int visit(masking *m, zc_nid id)
{
    attention a;
    zc_mask mask;
    if (!read_attention(m->g, id, &a) || !zc_mask_read(m->g, a.mask, a.scores, &mask)) return 0;
    const zc_seen *s = &mask.seen;
    told what = {.causal = a.causal};
    bool done = always_seen(m->g, &a, &mask);
    if (!done && !hides(m->g, &a, &mask)) return 0;
    if (!done && a.past && !tell_causal_past(m, &a, s, &what)) return 0;
    done |= a.past;
    if (!done && s->causal && !s->lengths) done = tell_causal(m, &a, &mask, &what);
    if (!done && s->lengths && !s->causal && !s->rest) done = tell_lengths(m, &a, &mask, &what);
    if (!done && s->rest && !s->causal && !s->lengths) done = tell_rest(m, &a, &mask, &what);
    if (m->nomem || (done && !give(m, &a, &what))) return -1;
    return done;
}

static bool visit_block(masking *m, zc_block *b, size_t *changes)
{
    m->block = b;
    for (m->at = 0; m->at < b->nodes.len; m->at++) {
        zc_nid n = b->nodes.data[m->at];
        if (zc_node_at(m->g, n)->op == ZC_OP_NONE) continue;
        int changed = visit(m, n);
        if (changed < 0 || m->nomem) return false;
        *changes += (size_t)changed;
    }
    return true;
}

zc_status zc_pass_opt_mask(zc_pass *p)
{
    masking m = {.g = p->g};
    bool ok = visit_block(&m, &p->g->top, &p->changes);
    for (size_t i = 0; ok && i < p->g->blocks.len; i++)
        ok = visit_block(&m, p->g->blocks.data[i], &p->changes);
    ZC_VEC_FINI(&m.lengths);
    ok = ok && !p->g->dims.failed;
    return ok ? ZC_OK : zc_fail_nomem(p->diag, "masks", 0);
}
