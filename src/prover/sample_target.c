#include "prover/sample_target.h"

#include <string.h>

#include "prover/sample.h"

typedef zc_rl_dims target;

typedef struct maker {
    const zc_graph *g;
    uint64_t *random;
} maker;

static int64_t below(maker *m, int64_t n)
{
    return (int64_t)(zc_rl_random(m->random) % (uint64_t)n);
}

static target dims_of(const maker *m, zc_vid v)
{
    const zc_type *type = &zc_val(m->g, v)->type;
    target t = {.n = type->rank > 0 ? type->rank : 0};
    for (int i = 0; i < t.n; i++) t.v[i] = type->dims[i].k;
    return t;
}

static int64_t divisor(maker *m, int64_t k)
{
    int64_t f = k > 0 ? below(m, k) + 1 : 1;
    while (k % f) f--;
    return f;
}

static void insert(target *t, int at, int64_t v)
{
    if (t->n == ZC_MAX_RANK) return;
    for (int i = t->n; i > at; i--) t->v[i] = t->v[i - 1];
    t->v[at] = v;
    t->n++;
}

/* One dimension in two. */
static void split_at(maker *m, target *t, int at)
{
    int64_t f = divisor(m, t->v[at]);
    t->v[at] /= f;
    insert(t, at, f);
}

static void split_last(maker *m, target *t)
{
    if (t->n > 0) split_at(m, t, t->n - 1);
}

static void split_first(maker *m, target *t)
{
    if (t->n > 0) split_at(m, t, 0);
}

/* Queries, keys and values, of heads or under a leading 1. */
static void split_in_three(maker *m, target *t)
{
    int last = t->n - 1;
    if (t->n < 1 || t->v[last] % 3) return;
    t->v[last] /= 3;
    insert(t, last, 3);
    if (below(m, 2))
        split_last(m, t);
    else
        insert(t, 0, 1);
}

static void join_at(target *t, int at)
{
    t->v[at] *= t->v[at + 1];
    for (int i = at + 1; i + 1 < t->n; i++) t->v[i] = t->v[i + 1];
    t->n--;
}

/* Two neighbours in one, often the last ones. */
static void join_two(maker *m, target *t)
{
    if (t->n > 1) join_at(t, below(m, 2) ? t->n - 2 : (int)below(m, t->n - 1));
}

/* Heads from the last dimension into the one before it. */
static void regroup(maker *m, target *t)
{
    if (t->n < 2) return;
    int64_t f = divisor(m, t->v[t->n - 1]);
    t->v[t->n - 2] *= f;
    t->v[t->n - 1] /= f;
}

/* Channels in groups, each with its plane in one dimension. */
static void to_groups(maker *m, target *t)
{
    if (t->n < 3) return;
    int64_t f = divisor(m, t->v[1]);
    while (t->n > 2) join_at(t, 1);
    if (t->v[1] % f) return;
    t->v[1] /= f;
    insert(t, 1, f);
}

/* The dimensions that another value of as many elements has. */
static void as_other(maker *m, target *t)
{
    int64_t n = 1, start = below(m, (int64_t)m->g->values.len - 1);
    for (int i = 0; i < t->n; i++) n *= t->v[i];
    for (int64_t i = 1; i < (int64_t)m->g->values.len; i++) {
        zc_vid v = (zc_vid)((start + i) % ((int64_t)m->g->values.len - 1)) + 1;
        target other = dims_of(m, v);
        int64_t elements = 1;
        for (int k = 0; k < other.n; k++) elements *= other.v[k];
        bool is_same = other.n == t->n && memcmp(other.v, t->v, (size_t)t->n * sizeof *t->v) == 0;
        if (elements != n || is_same) continue;
        *t = other;
        return;
    }
}

static void insert_one(maker *m, target *t)
{
    insert(t, (int)below(m, t->n + 1), 1);
}

/* The first dimensions of another value, the last of its own. */
static void like_other(maker *m, target *t)
{
    zc_vid v = (zc_vid)below(m, (int64_t)m->g->values.len - 1) + 1;
    target other = dims_of(m, v);
    int first = (int)below(m, other.n + 1), last = (int)below(m, t->n + 1);
    if (first + last > ZC_MAX_RANK) return;
    for (int i = 0; i < last; i++) other.v[first + i] = t->v[t->n - last + i];
    other.n = first + last;
    *t = other;
}

/* Dimensions of 1 become longer. */
static void widen(maker *m, target *t)
{
    for (int i = 0; i < t->n; i++)
        if (t->v[i] == 1) t->v[i] = below(m, 3) + 1;
}

/* Values of the same shape mostly get the same target, as queries, keys and values do. */
static zc_vid target_before(const maker *m, const zc_rl_targets *so_far, zc_op op, const target *of)
{
    for (int i = 0; i < so_far->count; i++) {
        target t = dims_of(m, so_far->made[i].of);
        if (so_far->made[i].op == op && t.n == of->n &&
            memcmp(t.v, of->v, (size_t)t.n * sizeof *t.v) == 0)
            return so_far->made[i].target;
    }
    return 0;
}

/* What a model may do to these dimensions. */
static void change(maker *m, zc_op op, zc_vid of, const target *base, target *t)
{
    static void (*const ways[])(maker * m, target * t) = {split_last, split_first, split_in_three,
                                                          join_two,   regroup,     insert_one,
                                                          like_other, to_groups,   as_other};
    bool is_wide = zc_val(m->g, of)->kind == ZC_VALUE_NODE &&
                   zc_node_at(m->g, zc_val(m->g, of)->producer)->op == ZC_OP_Expand;
    if (op == ZC_OP_Expand && (t->n == 0 || below(m, 2)))
        *t = *base;
    else if (op == ZC_OP_Expand)
        widen(m, t);
    else if (is_wide && t->n > 2)
        join_at(t, 1);
    else
        ways[below(m, (int64_t)ZC_COUNTOF(ways))](m, t);
}

zc_vid zc_rl_draw_target(const zc_rl_targets *so_far, const zc_graph *g, uint64_t *random,
                         const zc_rl_dims *base, zc_op op, zc_vid of, zc_rl_dims *out)
{
    maker m = {.g = g, .random = random};
    *out = dims_of(&m, of);
    zc_vid before = target_before(&m, so_far, op, out);
    if (before && below(&m, 8)) return before;
    change(&m, op, of, base, out);
    return 0;
}

void zc_rl_keep_target(zc_rl_targets *so_far, zc_op op, zc_vid of, zc_vid made)
{
    if (so_far->count == (int)ZC_COUNTOF(so_far->made)) return;
    so_far->made[so_far->count].op = op;
    so_far->made[so_far->count].of = of;
    so_far->made[so_far->count++].target = made;
}
