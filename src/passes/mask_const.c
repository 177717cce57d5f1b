/* What constants in masks are: numbers, positions that are counted, triangles. */
#include "passes/mask_fact.h"
#include "passes/query.h"

typedef struct grid {
    const zc_tensor *t;
    int query, key; /* axes; -1: none */
} grid;

static double number(const zc_tensor *t, int64_t i)
{
    return zc_load_f64(t->dtype, t->data, i);
}

/* Element counts before and behind each axis. */
static int64_t stride_of(const zc_tensor *t, int axis)
{
    int64_t n = 1;
    for (int d = axis + 1; d < t->rank; d++) n *= t->dims[d];
    return n;
}

static int64_t index_along(const zc_tensor *t, int axis, int64_t i)
{
    return i / stride_of(t, axis) % t->dims[axis];
}

/* `yes` up to the diagonal `offset`, `no` beyond it. */
static bool is_triangle(const grid *a, int64_t n, double yes, double no, int64_t offset)
{
    for (int64_t i = 0; i < n; i++) {
        bool seen = index_along(a->t, a->key, i) <= index_along(a->t, a->query, i) + offset;
        if (number(a->t, i) != (seen ? yes : no)) return false;
    }
    return true;
}

static mask_fact triangle(zc_graph *g, const grid *a, const mask_view *at, int64_t n)
{
    int64_t step = stride_of(a->t, a->key), keys = a->t->dims[a->key], row = 0;
    while (row < keys && number(a->t, row * step) == number(a->t, 0)) row++;
    if (row == keys) return mask_unknown();
    mask_fact f = mask_choice(number(a->t, 0), number(a->t, row * step));
    if (!is_triangle(a, n, f.choice.yes, f.choice.no, row - 1)) return mask_unknown();
    zc_dims *d = &g->dims;
    f.choice.seen.causal = true;
    f.choice.seen.offset = zc_dim_sub(
        d, zc_dim_add(d, at->at[a->query].more, zc_dim_const(row - 1)), at->at[a->key].more);
    return f;
}

/* Integers that count on along one axis, the same along all others. */
static mask_fact counting(zc_graph *g, const zc_tensor *t, const mask_view *at, int64_t n)
{
    int axis = -1;
    if (!zc_dtype_is_int(t->dtype)) return mask_unknown();
    int64_t first = zc_load_i64(t->dtype, t->data, 0);
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] > 1 && zc_load_i64(t->dtype, t->data, stride_of(t, i)) == first + 1)
            axis = i;
    if (axis < 0 || at->at[axis].c < QUERY) return mask_unknown();
    for (int64_t i = 0; i < n; i++)
        if (zc_load_i64(t->dtype, t->data, i) != first + index_along(t, axis, i))
            return mask_unknown();
    bool key = at->at[axis].c == KEY;
    zc_dim more = zc_dim_add(&g->dims, at->at[axis].more, zc_dim_const(first));
    return (mask_fact){.kind = INDEX, .query = !key, .key = key, .more = more};
}

mask_fact zc_mask_const(zc_graph *g, zc_vid v, const mask_view *at)
{
    const zc_tensor *t = zc_val(g, v)->data;
    grid a = {t, -1, -1};
    if (!t || !t->data || zc_graph_is_hollow(g, v)) return mask_unknown();
    int64_t n = zc_tensor_numel(t);
    if (n < 1 || zc_dtype_class(t->dtype) == ZC_CLASS_COMPLEX) return mask_unknown();
    if (n == 1 && t->dtype != ZC_BOOL && zc_dtype_is_int(t->dtype))
        return (mask_fact){.kind = INDEX, .more = zc_dim_const(zc_load_i64(t->dtype, t->data, 0))};
    if (zc_is_splat(g, v, number(t, 0))) return mask_choice(number(t, 0), number(t, 0));
    mask_fact f = counting(g, t, at, n);
    if (f.kind != UNKNOWN) return f;
    for (int i = 0; i < t->rank; i++) {
        if (at->at[i].c == QUERY) a.query = i;
        if (at->at[i].c == KEY) a.key = i;
        if (at->at[i].c == NOWHERE && t->dims[i] != 1) return mask_unknown();
    }
    return a.query >= 0 && a.key >= 0 ? triangle(g, &a, at, n) : mask_unknown();
}
