/* Masks are read from their last operation back to ranges, comparisons, triangles and constants. A
 * value is looked at in one place: along each of its axes stands one coordinate of the scores. */
#include "passes/mask_fact.h"

#include <math.h>
#include <string.h>

#include "passes/query.h"

enum { STEPS_MAX = 1000, DEPTH_MAX = 64 };

typedef struct reader {
    zc_graph *g;
    zc_dim keys; /* how many there are */
    int steps, depth;
} reader;

static mask_fact look(reader *r, zc_vid v, const mask_view *at);

/* ---- facts ---- */

static bool is_plain(const mask_fact *f)
{
    return f->kind == INDEX && !f->query && !f->key && !f->length;
}

/* What has a number, as a choice. */
static mask_fact as_choice(const mask_fact *f)
{
    if (is_plain(f) && zc_dim_is_const(f->more))
        return mask_choice((double)f->more.k, (double)f->more.k);
    return f->kind == CHOICE ? *f : mask_unknown();
}

static bool is_free(const zc_seen *s)
{
    return !s->causal && !s->lengths && !s->rest;
}

static bool same_seen(const zc_seen *a, const zc_seen *b)
{
    return a->causal == b->causal && a->lengths == b->lengths && a->rest == b->rest &&
           a->not_rest == b->not_rest && (!a->causal || zc_dim_eq(a->offset, b->offset)) &&
           (!a->lengths || zc_dim_eq(a->more, b->more));
}

static bool only_causal(const zc_seen *s)
{
    return s->causal && !s->lengths && !s->rest;
}

/* ---- coordinates ---- */

/* The same place in an operand that broadcasts to a value of those dims. */
static bool broadcast(const reader *r, const mask_view *at, const zc_dim *dims, zc_vid operand,
                      mask_view *out)
{
    const zc_type *t = &zc_val(r->g, operand)->type;
    if (t->rank < 0 || t->rank > at->rank) return false;
    out->rank = t->rank;
    for (int i = 0; i < t->rank; i++) {
        int from = i + at->rank - t->rank;
        out->at[i] =
            zc_dim_is(t->dims[i], 1) ? (mask_place){NOWHERE, zc_dim_const(0)} : at->at[from];
        if (!zc_dim_is(t->dims[i], 1) && !zc_dim_eq(t->dims[i], dims[from])) return false;
    }
    return true;
}

/* Do both have the same dims but for ones? Then the place in b. */
static bool through_ones(const zc_type *a, const mask_view *at, const zc_type *b, mask_view *out)
{
    int k = 0;
    if (a->rank < 0 || b->rank < 0) return false;
    out->rank = b->rank;
    for (int i = 0; i < b->rank; i++) {
        out->at[i] = (mask_place){NOWHERE, zc_dim_const(0)};
        if (zc_dim_is(b->dims[i], 1)) continue;
        while (k < a->rank && zc_dim_is(a->dims[k], 1)) k++;
        if (k == a->rank || !zc_dim_eq(a->dims[k], b->dims[i])) return false;
        out->at[i] = at->at[k++];
    }
    while (k < a->rank && zc_dim_is(a->dims[k], 1)) k++;
    return k == a->rank;
}

/* Is the place that of the scores themselves, so that the value could be a mask? */
static bool is_mask_of_scores(const mask_view *at)
{
    if (at->rank < 1 || at->rank > 4) return false;
    for (int i = 0; i < at->rank; i++) {
        const mask_place *p = &at->at[i];
        bool own = p->c == NOWHERE || (int)p->c == BATCH + i + 4 - at->rank;
        if (!own || !zc_dim_is(p->more, 0)) return false;
    }
    return at->at[at->rank - 1].c == KEY;
}

/* ---- conditions ---- */

/* Both conditions. a and b were at values va and vb; what does not join a causal one stays beside
 * it. */
typedef struct side {
    mask_fact f;
    zc_vid v;
    const mask_view *at;
    bool inverted;
} side;

static bool join_causal(const zc_seen *a, const zc_seen *b, zc_seen *out)
{
    if (!zc_dim_is_const(a->offset) || !zc_dim_is_const(b->offset))
        return zc_dim_eq(a->offset, b->offset);
    if (b->offset.k < out->offset.k) out->offset = b->offset;
    return true;
}

static bool both(const side *a, const side *b, zc_seen *out)
{
    const zc_seen *x = &a->f.choice.seen, *y = &b->f.choice.seen;
    bool known = a->f.kind == CHOICE && b->f.kind == CHOICE;
    if (known && (is_free(x) || same_seen(x, y))) {
        *out = *y;
        return true;
    }
    if (known && is_free(y)) {
        *out = *x;
        return true;
    }
    if (known && only_causal(x) && only_causal(y)) {
        *out = *x;
        return join_causal(x, y, out);
    }
    const side *other = a->f.kind == CHOICE && only_causal(x) ? b : a;
    const side *causal = other == a ? b : a;
    if (causal->f.kind != CHOICE || !only_causal(&causal->f.choice.seen)) return false;
    if (other->f.kind == CHOICE && other->f.choice.seen.causal) return false;
    if (!is_mask_of_scores(other->at)) return false;
    *out = causal->f.choice.seen;
    out->rest = other->v;
    out->not_rest = other->inverted;
    return true;
}

/* ---- operations ---- */

/* Operand i of a node whose result is broadcast from its operands. */
static mask_fact operand(reader *r, const zc_node *n, int i, const mask_view *at, mask_view *own)
{
    const zc_type *t = &zc_val(r->g, n->out[0])->type;
    if (broadcast(r, at, t->dims, n->in[i], own)) return look(r, n->in[i], own);
    own->rank = -1;
    return mask_unknown();
}

static bool is_bool(const mask_fact *f)
{
    return f->kind == CHOICE && (f->choice.yes == 0 || f->choice.yes == 1) &&
           (f->choice.no == 0 || f->choice.no == 1);
}

/* A mask by itself may be said either way. */
static void turn_rest(mask_fact *f, double seen)
{
    zc_seen *s = &f->choice.seen;
    if (!s->rest || s->causal || s->lengths || f->choice.yes == seen) return;
    s->not_rest = !s->not_rest;
    f->choice.yes = seen;
    f->choice.no = 1 - seen;
}

/* And of seen ones; or of hidden ones. */
static mask_fact look_logic(reader *r, const zc_node *n, const mask_view *at)
{
    mask_view va, vb;
    side a = {.f = operand(r, n, 0, at, &va), .v = n->in[0], .at = &va};
    side b = {.f = operand(r, n, 1, at, &vb), .v = n->in[1], .at = &vb};
    double seen = n->op == ZC_OP_And ? 1 : 0;
    side *sides[] = {&a, &b};
    zc_seen s = {.causal = false};
    if (va.rank < 0 || vb.rank < 0) return mask_unknown();
    for (int i = 0; i < 2; i++) {
        mask_fact *f = &sides[i]->f;
        if (f->kind == INDEX) *f = mask_unknown();
        sides[i]->inverted = seen == 0;
        if (f->kind != CHOICE) continue;
        if (!is_bool(f)) return mask_unknown();
        turn_rest(f, seen);
        if (is_free(&f->choice.seen) && f->choice.yes != seen) return *f; /* decides alone */
        if (!is_free(&f->choice.seen) && (f->choice.yes != seen || f->choice.no != 1 - seen))
            return mask_unknown();
    }
    if (!both(&a, &b, &s)) return mask_unknown();
    mask_fact f = mask_choice(seen, 1 - seen);
    f.choice.seen = s;
    return f;
}

/* What is below `limit` when d = key * j + query * i + length * lengths[b] + more is positive. */
static mask_fact positive(reader *r, const mask_fact *d)
{
    zc_dims *t = &r->g->dims;
    bool negated = d->key > 0;
    mask_fact f = negated ? mask_choice(0, 1) : mask_choice(1, 0);
    zc_seen *s = &f.choice.seen;
    if (d->kind != INDEX) return mask_unknown();
    if (is_plain(d) && zc_dim_is_const(d->more)) return mask_choice(d->more.k > 0, d->more.k > 0);
    if (d->key >= 0 && d->query >= 0 && !d->length && zc_dim_known_ge(t, d->more, 1))
        return mask_choice(1, 1);
    /* -j + x > 0 is j < x; j - x > 0 is not j < x + 1 */
    zc_dim limit =
        negated ? zc_dim_sub(t, zc_dim_const(1), d->more) : d->more; /* beside i or the length */
    int query = negated ? -d->query : d->query, length = negated ? -d->length : d->length;
    if ((d->key != 1 && d->key != -1)) return mask_unknown();
    if (query == 1 && length == 0) {
        s->causal = true;
        s->offset = zc_dim_sub(t, limit, zc_dim_const(1));
        return f;
    }
    if (query == 0 && length == 0 && zc_dim_known_ge(t, zc_dim_sub(t, limit, r->keys), 0))
        return mask_choice(f.choice.yes, f.choice.yes); /* all keys are below it */
    if (query != 0 || length != 1) return mask_unknown();
    s->lengths = d->lengths;
    s->each = d->each;
    s->more = limit;
    return f;
}

/* a - b, or a + b. */
static mask_fact sum(reader *r, const mask_fact *a, const mask_fact *b, int sign)
{
    mask_fact f = *a;
    if (a->kind != INDEX || b->kind != INDEX) return mask_unknown();
    if (a->length && b->length && a->lengths != b->lengths) return mask_unknown();
    f.query += sign * b->query;
    f.key += sign * b->key;
    f.length += sign * b->length;
    if (!a->length) {
        f.lengths = b->lengths;
        f.each = b->each;
    }
    f.more = sign > 0 ? zc_dim_add(&r->g->dims, a->more, b->more)
                      : zc_dim_sub(&r->g->dims, a->more, b->more);
    return f;
}

static bool holds(zc_op op, double a, double b)
{
    switch (op) {
    case ZC_OP_Equal:
        return a == b;
    case ZC_OP_Less:
        return a < b;
    case ZC_OP_LessOrEqual:
        return a <= b;
    case ZC_OP_Greater:
        return a > b;
    default:
        return a >= b;
    }
}

static double calculate(zc_op op, double a, double b)
{
    switch (op) {
    case ZC_OP_Add:
        return a + b;
    case ZC_OP_Sub:
        return a - b;
    case ZC_OP_Mul:
        return a * b;
    default:
        return holds(op, a, b);
    }
}

/* Of two choices of which one has no condition, or both the same. */
static mask_fact of_choices(zc_op op, const mask_fact *x, const mask_fact *y)
{
    mask_fact a = as_choice(x), b = as_choice(y);
    if (a.kind != CHOICE || b.kind != CHOICE) return mask_unknown();
    const zc_seen *p = &a.choice.seen, *q = &b.choice.seen;
    if (!is_free(p) && !is_free(q) && !same_seen(p, q)) return mask_unknown();
    mask_fact f = mask_choice(calculate(op, a.choice.yes, b.choice.yes),
                              calculate(op, a.choice.no, b.choice.no));
    f.choice.seen = is_free(p) ? *q : *p;
    return isnan(f.choice.yes) || isnan(f.choice.no) ? mask_unknown() : f;
}

static mask_fact look_compare(reader *r, const zc_node *n, const mask_view *at)
{
    mask_view va, vb;
    mask_fact a = operand(r, n, 0, at, &va), b = operand(r, n, 1, at, &vb);
    if (a.kind != INDEX || b.kind != INDEX || n->op == ZC_OP_Equal)
        return of_choices(n->op, &a, &b);
    bool less = n->op == ZC_OP_Less || n->op == ZC_OP_LessOrEqual;
    mask_fact d = less ? sum(r, &b, &a, -1) : sum(r, &a, &b, -1);
    if (n->op == ZC_OP_LessOrEqual || n->op == ZC_OP_GreaterOrEqual)
        d.more = zc_dim_add(&r->g->dims, d.more, zc_dim_const(1));
    return positive(r, &d);
}

/* Minus infinity where one hides a key, and another mask beside it. */
static mask_fact sum_of_masks(const side *a, const side *b)
{
    zc_seen s = {.causal = false};
    const side *causal = a->f.kind == CHOICE && only_causal(&a->f.choice.seen) ? a : b;
    const zc_mask *m = &causal->f.choice;
    if (causal->f.kind != CHOICE || m->yes != 0 || m->no != -(double)INFINITY)
        return mask_unknown();
    if (!both(a, b, &s)) return mask_unknown();
    mask_fact f = mask_choice(0, m->no);
    f.choice.seen = s;
    return f;
}

static mask_fact look_sum(reader *r, const zc_node *n, const mask_view *at)
{
    mask_view va, vb;
    side a = {.f = operand(r, n, 0, at, &va), .v = n->in[0], .at = &va};
    side b = {.f = operand(r, n, 1, at, &vb), .v = n->in[1], .at = &vb};
    if (a.f.kind == INDEX && b.f.kind == INDEX)
        return sum(r, &a.f, &b.f, n->op == ZC_OP_Add ? 1 : -1);
    mask_fact f = of_choices(n->op, &a.f, &b.f);
    if (f.kind != UNKNOWN || n->op != ZC_OP_Add || va.rank < 0 || vb.rank < 0) return f;
    return sum_of_masks(&a, &b);
}

static mask_fact look_product(reader *r, const zc_node *n, const mask_view *at)
{
    mask_view va, vb;
    mask_fact a = operand(r, n, 0, at, &va), b = operand(r, n, 1, at, &vb);
    mask_fact f = of_choices(n->op, &a, &b);
    if (f.kind != UNKNOWN || !is_bool(&a) || !is_bool(&b)) return f;
    side x = {.f = a, .v = n->in[0], .at = &va}, y = {.f = b, .v = n->in[1], .at = &vb};
    bool seen = a.choice.yes == 1 && a.choice.no == 0 && b.choice.yes == 1 && b.choice.no == 0;
    zc_seen s;
    if (!seen || !both(&x, &y, &s)) return mask_unknown();
    f = mask_choice(1, 0);
    f.choice.seen = s;
    return f;
}

/* The number that f is where the condition s holds, or does not. */
static bool number_where(const mask_fact *f, const zc_seen *s, bool holds_there, double *out)
{
    mask_fact x = as_choice(f);
    if (x.kind != CHOICE) return false;
    if (!is_free(&x.choice.seen) && !same_seen(&x.choice.seen, s)) return false;
    *out = is_free(&x.choice.seen) || holds_there ? x.choice.yes : x.choice.no;
    return true;
}

static mask_fact look_where(reader *r, const zc_node *n, const mask_view *at)
{
    mask_view vc, va, vb;
    mask_fact c = operand(r, n, 0, at, &vc), a = operand(r, n, 1, at, &va),
              b = operand(r, n, 2, at, &vb);
    if (!is_bool(&c)) return mask_unknown();
    const mask_fact *yes = c.choice.yes != 0 ? &a : &b, *no = c.choice.no != 0 ? &a : &b;
    if (is_free(&c.choice.seen)) return *yes;
    mask_fact f = c;
    bool known = number_where(yes, &c.choice.seen, true, &f.choice.yes) &&
                 number_where(no, &c.choice.seen, false, &f.choice.no);
    return known ? f : mask_unknown();
}

static mask_fact look_not(reader *r, const zc_node *n, const mask_view *at)
{
    mask_fact f = look(r, n->in[0], at);
    if (!is_bool(&f)) return mask_unknown();
    f.choice.yes = f.choice.yes == 0;
    f.choice.no = f.choice.no == 0;
    return f;
}

static mask_fact look_neg(reader *r, const zc_node *n, const mask_view *at)
{
    mask_fact f = look(r, n->in[0], at);
    f = as_choice(&f);
    f.choice.yes = -f.choice.yes;
    f.choice.no = -f.choice.no;
    return f;
}

static bool cast_number(zc_dtype to, double *x)
{
    uint64_t slot[2] = {0};
    if (to == ZC_BOOL) *x = *x != 0;
    if (zc_dtype_is_int(to)) return fabs(*x) <= 1024 && floor(*x) == *x && zc_dtype_bits(to) >= 16;
    if (!zc_dtype_is_float(to) || zc_dtype_bits(to) < 16) return to == ZC_BOOL;
    zc_store_f64(to, slot, 0, *x);
    *x = zc_load_f64(to, slot, 0);
    return true;
}

static mask_fact look_cast(reader *r, const zc_node *n, const mask_view *at)
{
    zc_dtype to = zc_val(r->g, n->out[0])->type.dtype;
    mask_fact f = look(r, n->in[0], at);
    if (f.kind == INDEX) return zc_dtype_is_int(to) && zc_dtype_bits(to) >= 32 ? f : as_choice(&f);
    if (f.kind != CHOICE) return f;
    bool known = cast_number(to, &f.choice.yes) && cast_number(to, &f.choice.no);
    return known ? f : mask_unknown();
}

/* The diagonal of the last two axes: col - row >= k, or <= k. */
static mask_fact look_trilu(reader *r, const zc_node *n, const mask_view *at)
{
    zc_dims *t = &r->g->dims;
    bool upper = ((const zc_attrs_Trilu *)n->attrs)->upper != 0;
    mask_fact x = look(r, n->in[0], at);
    x = as_choice(&x);
    const mask_place *row = &at->at[at->rank - 2], *col = row + 1;
    zc_dim k = zc_dim_const(0);
    zc_vid diagonal = zc_node_in(n, ZC_IN_Trilu_k);
    if (diagonal) {
        const zc_vals *v = &zc_val(r->g, diagonal)->vals;
        if (v->n != 1) return mask_unknown();
        k = v->v[0];
    }
    bool turned = row->c == KEY && col->c == QUERY;
    if (x.kind != CHOICE || !is_free(&x.choice.seen)) return mask_unknown();
    if (!turned && (row->c != QUERY || col->c != KEY)) return mask_unknown();
    /* d = j - i (turned: i - j) + col's - row's - k; kept where d >= 0, or where d <= 0 */
    zc_dim rest = zc_dim_sub(t, zc_dim_sub(t, col->more, row->more), k);
    mask_fact d = {.kind = INDEX, .key = turned ? -1 : 1, .query = turned ? 1 : -1, .more = rest};
    mask_fact none = {.kind = INDEX, .more = zc_dim_const(0)};
    if (!upper) d = sum(r, &none, &d, -1);
    d.more = zc_dim_add(t, d.more, zc_dim_const(1));
    mask_fact f = positive(r, &d);
    if (f.kind != CHOICE) return mask_unknown();
    f.choice.yes = f.choice.yes != 0 ? x.choice.yes : 0;
    f.choice.no = f.choice.no != 0 ? x.choice.yes : 0;
    return f;
}

static mask_fact look_range(reader *r, const zc_node *n, const mask_view *at)
{
    const zc_vals *first = &zc_val(r->g, n->in[0])->vals, *step = &zc_val(r->g, n->in[2])->vals;
    const mask_place *p = &at->at[0];
    if (first->n != 1 || step->n != 1 || !zc_dim_is(step->v[0], 1) || p->c < QUERY)
        return mask_unknown();
    bool key = p->c == KEY;
    return (mask_fact){.kind = INDEX,
                       .query = !key,
                       .key = key,
                       .more = zc_dim_add(&r->g->dims, p->more, first->v[0])};
}

static mask_fact look_transpose(reader *r, const zc_node *n, const mask_view *at)
{
    const zc_attrs_Transpose *a = n->attrs;
    mask_view own = {.rank = at->rank};
    for (int i = 0; i < at->rank; i++) {
        int64_t to = ZC_ATTR_GIVEN(Transpose, a, perm) ? a->perm.v[i] : at->rank - 1 - i;
        own.at[to] = at->at[i];
    }
    return look(r, n->in[0], &own);
}

/* Reshapes may undo each other. */
static mask_fact look_reshape(reader *r, const zc_node *n, const mask_view *at)
{
    const zc_type *type = &zc_val(r->g, n->out[0])->type;
    for (int i = 0; i < DEPTH_MAX; i++) {
        mask_view own;
        if (through_ones(type, at, &zc_val(r->g, n->in[0])->type, &own))
            return look(r, n->in[0], &own);
        zc_nid p = zc_producer(r->g, n->in[0]);
        if (!p || zc_node_at(r->g, p)->op != ZC_OP_Reshape) return mask_unknown();
        n = zc_node_at(r->g, p);
    }
    return mask_unknown();
}

static bool slice_axis(reader *r, const zc_node *n, int i, const zc_vals *start, mask_view *at)
{
    const zc_type *t = &zc_val(r->g, n->in[0])->type;
    int64_t axis = i;
    zc_vid given = zc_node_in(n, ZC_IN_Slice_axes);
    if (given) {
        const zc_vals *axes = &zc_val(r->g, given)->vals;
        if (axes->n != start->n || !zc_dim_is_const(axes->v[i])) return false;
        axis = axes->v[i].k;
    }
    if (axis < 0) axis += t->rank;
    if (axis < 0 || axis >= t->rank) return false;
    zc_dim first = start->v[i];
    if (zc_dim_is_const(first) && first.k < 0)
        first = zc_dim_add(&r->g->dims, t->dims[axis], first);
    at->at[axis].more = zc_dim_add(&r->g->dims, at->at[axis].more, first);
    return zc_dim_known_ge(&r->g->dims, first, 0);
}

static mask_fact look_slice(reader *r, const zc_node *n, const mask_view *at)
{
    const zc_vals *start = &zc_val(r->g, n->in[ZC_IN_Slice_starts])->vals;
    mask_view own = *at;
    if (start->n < 0) return mask_unknown();
    zc_vid by = zc_node_in(n, ZC_IN_Slice_steps);
    if (by) {
        const zc_vals *steps = &zc_val(r->g, by)->vals;
        for (int i = 0; i < steps->n; i++)
            if (!zc_dim_is(steps->v[i], 1)) return mask_unknown();
        if (steps->n < 0) return mask_unknown();
    }
    for (int i = 0; i < start->n; i++)
        if (!slice_axis(r, n, i, start, &own)) return mask_unknown();
    return look(r, n->in[0], &own);
}

/* A mask that says nothing but itself. */
static mask_fact look_mask(zc_vid v)
{
    mask_fact f = mask_choice(1, 0);
    f.choice.seen.rest = v;
    return f;
}

/* An integer of each batch item, or one. */
static mask_fact look_leaf(reader *r, zc_vid v, const mask_view *at)
{
    const zc_value *value = zc_val(r->g, v);
    int batches = 0;
    if (value->type.dtype == ZC_BOOL && is_mask_of_scores(at)) return look_mask(v);
    if (!zc_dtype_is_int(value->type.dtype) || zc_dtype_bits(value->type.dtype) < 32)
        return mask_unknown();
    if (value->vals.n == 1 && at->rank <= 1)
        return (mask_fact){.kind = INDEX, .more = value->vals.v[0]};
    for (int i = 0; i < at->rank; i++) {
        const mask_place *p = &at->at[i];
        bool one = p->c == NOWHERE && zc_dim_is(value->type.dims[i], 1);
        if (!zc_dim_is(p->more, 0) || (!one && p->c != BATCH)) return mask_unknown();
        batches += p->c == BATCH;
    }
    return (mask_fact){
        .kind = INDEX, .length = 1, .lengths = v, .each = batches > 0, .more = zc_dim_const(0)};
}

static mask_fact look_splat(const zc_node *n)
{
    const zc_attrs_ConstantOfShape *a = n->attrs;
    double x = a->value && a->value->data ? zc_load_f64(a->value->dtype, a->value->data, 0) : 0;
    return mask_choice(x, x);
}

static mask_fact look_node(reader *r, const zc_node *n, const mask_view *at)
{
    mask_view own;
    switch (n->op) {
    case ZC_OP_And:
    case ZC_OP_Or:
        return look_logic(r, n, at);
    case ZC_OP_Not:
        return look_not(r, n, at);
    case ZC_OP_Neg:
        return look_neg(r, n, at);
    case ZC_OP_Cast:
        return look_cast(r, n, at);
    case ZC_OP_Equal:
    case ZC_OP_Less:
    case ZC_OP_LessOrEqual:
    case ZC_OP_Greater:
    case ZC_OP_GreaterOrEqual:
        return look_compare(r, n, at);
    case ZC_OP_Add:
    case ZC_OP_Sub:
        return look_sum(r, n, at);
    case ZC_OP_Mul:
        return look_product(r, n, at);
    case ZC_OP_Where:
        return look_where(r, n, at);
    case ZC_OP_Trilu:
        return look_trilu(r, n, at);
    case ZC_OP_Range:
        return look_range(r, n, at);
    case ZC_OP_ConstantOfShape:
        return look_splat(n);
    case ZC_OP_Transpose:
        return look_transpose(r, n, at);
    case ZC_OP_Reshape:
    case ZC_OP_Unsqueeze:
    case ZC_OP_Squeeze:
    case ZC_OP_Flatten:
        return look_reshape(r, n, at);
    case ZC_OP_Slice:
        return look_slice(r, n, at);
    case ZC_OP_Expand:
        return broadcast(r, at, zc_val(r->g, n->out[0])->type.dims, n->in[0], &own)
                   ? look(r, n->in[0], &own)
                   : mask_unknown();
    default:
        return mask_unknown();
    }
}

static mask_fact look(reader *r, zc_vid v, const mask_view *at)
{
    const zc_value *value = zc_val(r->g, v);
    if (value->type.rank != at->rank || r->depth >= DEPTH_MAX || r->steps++ >= STEPS_MAX)
        return mask_unknown();
    if (value->data) return zc_mask_const(r->g, v, at);
    zc_nid n = zc_producer(r->g, v);
    mask_fact f = mask_unknown();
    r->depth++;
    if (n && zc_node_at(r->g, n)->out[0] == v) f = look_node(r, zc_node_at(r->g, n), at);
    r->depth--;
    return f.kind == UNKNOWN ? look_leaf(r, v, at) : f;
}

/* A mask for fewer keys than there are hides the others. It cannot be one where its rows are as
 * many as its columns, and must be as many as there are queries. */
static bool has_all_keys(const zc_graph *g, const zc_type *t, const zc_dim scores[4])
{
    zc_dim cols = t->dims[t->rank - 1], rows = t->dims[t->rank > 1 ? t->rank - 2 : 0];
    if (zc_dim_eq(cols, scores[3])) return true;
    return t->rank > 1 && zc_dim_eq(rows, cols) && zc_dim_eq(scores[2], scores[3]) &&
           zc_dim_covers(&g->dims, rows, scores[2]);
}

bool zc_mask_read(zc_graph *g, zc_vid mask, const zc_dim scores[4], zc_mask *out)
{
    const zc_type *t = &zc_val(g, mask)->type;
    reader r = {.g = g, .keys = scores[3]};
    mask_view at = {.rank = t->rank};
    if (t->rank < 1 || t->rank > 4) return false;
    for (int i = 0; i < t->rank; i++) {
        int axis = i + 4 - t->rank;
        bool one = zc_dim_is(t->dims[i], 1);
        at.at[i] = (mask_place){one ? NOWHERE : (mask_coord)(BATCH + axis), zc_dim_const(0)};
        if (!one && !zc_dim_covers(&g->dims, t->dims[i], scores[axis])) return false;
    }
    if (!has_all_keys(g, t, scores)) return false;
    mask_fact f = look(&r, mask, &at);
    *out = f.choice;
    return f.kind == CHOICE;
}
