/* Conditions and attribute values at a match: three-valued, because dimensions may be symbols. */
#include "rules/eval.h"

#include <math.h>
#include <string.h>

static const zc_rl_val unknown = {.type = ZC_RT_ANY};

static zc_rl_val of_bool(bool b)
{
    return (zc_rl_val){.type = ZC_RT_BOOL, .b = b};
}
static zc_rl_val of_dim(zc_dim d)
{
    return (zc_rl_val){.type = ZC_RT_INT, .dim = d};
}
static zc_rl_val of_int(int64_t i)
{
    return of_dim(zc_dim_const(i));
}
static zc_rl_val of_real(double v)
{
    return (zc_rl_val){.type = ZC_RT_REAL, .real = v};
}

/* Not known; what speaks of an absent operand stays marked. */
static zc_rl_val no_value(const zc_rl_val *a, const zc_rl_val *b)
{
    zc_rl_val v = unknown;
    v.absent = (a && a->absent) || (b && b->absent);
    return v;
}

static bool as_real(const zc_rl_val *v, double *out)
{
    if (v->type == ZC_RT_REAL)
        *out = v->real;
    else if (v->type == ZC_RT_INT && zc_dim_is_const(v->dim))
        *out = (double)v->dim.k;
    else
        return false;
    return true;
}

bool zc_rl_near(double a, double b, double tolerance)
{
    if (a == b) return true;
    double scale = fabs(b) > 1e-30 ? fabs(b) : 1;
    return fabs(a - b) <= tolerance * scale;
}

bool zc_rl_is_list(zc_op op, int i)
{
    return zc_op_role_of(op, i) & ZC_ROLE_INDEX || (i < 64 && (zc_op_host_inputs(op) >> i & 1));
}

/* ---- comparison: 1 true, 0 false, -1 not known ---- */

static int order_of(zc_rl_expr_kind op, double a, double b)
{
    switch (op) {
    case ZC_RE_EQ:
        return a == b;
    case ZC_RE_NE:
        return a != b;
    case ZC_RE_LT:
        return a < b;
    case ZC_RE_LE:
        return a <= b;
    case ZC_RE_GT:
        return a > b;
    case ZC_RE_GE:
        return a >= b;
    case ZC_RE_NEAR:
        return zc_rl_near(a, b, ZC_RL_TOLERANCE);
    default:
        return -1;
    }
}

/* Of symbolic integers, by what is certain of a - b. */
static int order_of_dims(zc_dims *dims, zc_rl_expr_kind op, zc_dim a, zc_dim b)
{
    if (zc_dim_is_const(a) && zc_dim_is_const(b) && op != ZC_RE_NEAR)
        return order_of(op, a.k < b.k ? -1 : a.k > b.k, 0);
    zc_dim ab = zc_dim_sub(dims, a, b), ba = zc_dim_sub(dims, b, a);
    if (zc_dim_is_const(ab)) return order_of(op == ZC_RE_NEAR ? ZC_RE_EQ : op, (double)ab.k, 0);
    bool above = zc_dim_known_ge(dims, ab, 1), below = zc_dim_known_ge(dims, ba, 1);
    switch (op) {
    case ZC_RE_EQ:
    case ZC_RE_NEAR:
        return above || below ? 0 : -1;
    case ZC_RE_NE:
        return above || below ? 1 : -1;
    case ZC_RE_GT:
        return above ? 1 : zc_dim_known_ge(dims, ba, 0) ? 0 : -1;
    case ZC_RE_GE:
        return zc_dim_known_ge(dims, ab, 0) ? 1 : below ? 0 : -1;
    case ZC_RE_LT:
        return below ? 1 : zc_dim_known_ge(dims, ab, 0) ? 0 : -1;
    case ZC_RE_LE:
        return zc_dim_known_ge(dims, ba, 0) ? 1 : above ? 0 : -1;
    default:
        return -1;
    }
}

static bool equal_lists(const zc_rl_val *a, const zc_rl_val *b)
{
    if (a->type == ZC_RT_INTS && b->type == ZC_RT_INTS) {
        if (a->ints.n != b->ints.n) return false;
        for (int i = 0; i < a->ints.n; i++)
            if (a->ints.v[i] != b->ints.v[i]) return false;
        return true;
    }
    int n = a->type == ZC_RT_INTS ? a->ints.n : a->floats.n;
    if (n != (b->type == ZC_RT_INTS ? b->ints.n : b->floats.n)) return false;
    for (int i = 0; i < n; i++) {
        double x = a->type == ZC_RT_INTS ? (double)a->ints.v[i] : (double)a->floats.v[i];
        double y = b->type == ZC_RT_INTS ? (double)b->ints.v[i] : (double)b->floats.v[i];
        if (!zc_rl_near(x, y, ZC_RL_TOLERANCE)) return false;
    }
    return true;
}

static int equality(zc_rl_expr_kind op, bool is_equal)
{
    if (op == ZC_RE_EQ || op == ZC_RE_NEAR) return is_equal;
    return op == ZC_RE_NE ? !is_equal : -1;
}

static bool is_list(const zc_rl_val *v)
{
    return v->type == ZC_RT_INTS || v->type == ZC_RT_FLOATS;
}

static int compare(zc_dims *dims, zc_rl_expr_kind op, const zc_rl_val *a, const zc_rl_val *b)
{
    double x, y;
    if (a->type == ZC_RT_INT && b->type == ZC_RT_INT)
        return order_of_dims(dims, op, a->dim, b->dim);
    if (as_real(a, &x) && as_real(b, &y)) return order_of(op, x, y);
    if (is_list(a) && is_list(b)) return equality(op, equal_lists(a, b));
    if (a->type != b->type) return -1;
    if (a->type == ZC_RT_BOOL) return equality(op, a->b == b->b);
    if (a->type == ZC_RT_DTYPE) return equality(op, a->dtype == b->dtype);
    if (a->type == ZC_RT_STR)
        return equality(op, strcmp(a->str ? a->str : "", b->str ? b->str : "") == 0);
    return -1;
}

bool zc_rl_compare(zc_dims *dims, zc_rl_expr_kind op, const zc_rl_val *a, const zc_rl_val *b)
{
    return compare(dims, op, a, b) == 1;
}

static zc_rl_val relation(const zc_rl_env *env, const zc_rl_expr *e)
{
    zc_rl_val a = zc_rl_eval(env, zc_rl_expr_at(&e->args, 0));
    zc_rl_val b = zc_rl_eval(env, zc_rl_expr_at(&e->args, 1));
    int r = compare(&env->g->dims, e->kind, &a, &b);
    return r < 0 ? no_value(&a, &b) : of_bool(r);
}

static zc_rl_val membership(const zc_rl_env *env, const zc_rl_expr *e)
{
    zc_rl_val a = zc_rl_eval(env, zc_rl_expr_at(&e->args, 0));
    const zc_rl_expr *set = zc_rl_expr_at(&e->args, 1);
    bool known = true;
    for (int i = 0; i < set->args.n; i++) {
        zc_rl_val b = zc_rl_eval(env, zc_rl_expr_at(&set->args, i));
        int r = compare(&env->g->dims, ZC_RE_EQ, &a, &b);
        if (r == 1) return of_bool(true);
        known &= r == 0;
    }
    return known ? of_bool(false) : no_value(&a, NULL);
}

/* ---- functions ---- */

static zc_vid value_of(const zc_rl_env *env, const zc_rl_expr *e)
{
    return e->kind == ZC_RE_NAME && e->word == ZC_RW_VAR ? env->value[e->index] : 0;
}

static zc_rl_val dimension(const zc_rl_env *env, const zc_type *t, const zc_rl_expr *index)
{
    zc_rl_val i = zc_rl_eval(env, index);
    if (i.type != ZC_RT_INT || !zc_dim_is_const(i.dim) || t->rank < 0) return no_value(&i, NULL);
    int64_t at = i.dim.k < 0 ? i.dim.k + t->rank : i.dim.k;
    return at >= 0 && at < t->rank ? of_dim(t->dims[at]) : unknown;
}

static zc_rl_val stored(const zc_tensor *t, int64_t i)
{
    if (zc_dtype_class(t->dtype) == ZC_CLASS_COMPLEX) return unknown;
    return zc_dtype_is_float(t->dtype) ? of_real(zc_load_f64(t->dtype, t->data, i))
                                       : of_int(zc_load_i64(t->dtype, t->data, i));
}

static zc_rl_val element_of(const zc_rl_env *env, zc_vid v, const zc_rl_expr *index)
{
    zc_rl_val i = zc_rl_eval(env, index);
    const zc_tensor *t = zc_val(env->g, v)->data;
    if (i.type != ZC_RT_INT || !zc_dim_is_const(i.dim) || !t || !t->data) return no_value(&i, NULL);
    if (i.dim.k < 0 || i.dim.k >= zc_tensor_numel(t)) return unknown;
    return stored(t, i.dim.k);
}

static zc_rl_val number_of(const zc_graph *g, zc_vid v)
{
    double x;
    if (!zc_graph_splat(g, v, &x)) return unknown;
    const zc_tensor *t = zc_val(g, v)->data;
    return zc_dtype_is_float(t->dtype) ? of_real(x) : of_int(zc_load_i64(t->dtype, t->data, 0));
}

static bool is_below(const zc_tensor *t, int64_t i, int64_t j)
{
    if (zc_dtype_is_float(t->dtype))
        return zc_load_f64(t->dtype, t->data, i) < zc_load_f64(t->dtype, t->data, j);
    return zc_load_i64(t->dtype, t->data, i) < zc_load_i64(t->dtype, t->data, j);
}

/* The smallest element of a constant, or the largest; not known of an empty one, and beside NaN. */
static zc_rl_val extreme_of(const zc_graph *g, zc_vid v, bool is_least)
{
    const zc_tensor *t = zc_val(g, v)->data;
    int64_t n = t && t->data ? zc_tensor_numel(t) : 0, at = 0;
    if (n < 1 || zc_dtype_class(t->dtype) == ZC_CLASS_COMPLEX) return unknown;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(zc_load_f64(t->dtype, t->data, i))) return unknown;
        if (is_least ? is_below(t, i, at) : is_below(t, at, i)) at = i;
    }
    return stored(t, at);
}

static zc_rl_val size_of(const zc_rl_env *env, const zc_type *t)
{
    zc_dim n = zc_dim_const(1);
    if (t->rank < 0) return unknown;
    for (int i = 0; i < t->rank; i++) n = zc_dim_mul(&env->g->dims, n, t->dims[i]);
    return of_dim(n);
}

/* 1: the shapes are the same; 0: they differ; -1: not known. `one_fits`: a's 1 goes with anything,
 * and a may have fewer dimensions. */
static int compare_shapes(const zc_rl_env *env, const zc_type *a, const zc_type *b, bool one_fits)
{
    int result = 1;
    if (a->rank < 0 || b->rank < 0) return -1;
    if (a->rank > b->rank || (!one_fits && a->rank != b->rank)) return 0;
    for (int i = 0; i < a->rank; i++) {
        zc_dim x = a->dims[i], y = b->dims[i + b->rank - a->rank];
        if (one_fits && zc_dim_is(x, 1)) continue;
        int r = order_of_dims(&env->g->dims, ZC_RE_EQ, x, y);
        if (r == 0) return 0;
        if (r < 0) result = -1;
    }
    return result;
}

static zc_rl_val shapes(const zc_rl_env *env, const zc_rl_expr *e, bool one_fits)
{
    zc_vid b = value_of(env, zc_rl_expr_at(&e->args, 1));
    zc_vid a = value_of(env, zc_rl_expr_at(&e->args, 0));
    if (!b) return (zc_rl_val){.type = ZC_RT_ANY, .absent = true};
    int r = compare_shapes(env, &zc_val(env->g, a)->type, &zc_val(env->g, b)->type, one_fits);
    return r < 0 ? unknown : of_bool(r);
}

/* Are both halves of every row equal? */
static zc_rl_val has_halves(const zc_tensor *t)
{
    if (!t || !t->data || t->rank < 1 || t->dims[t->rank - 1] % 2) return of_bool(false);
    int64_t n = zc_tensor_numel(t), half = t->dims[t->rank - 1] / 2;
    for (int64_t i = 0; i < n; i++)
        if (i / half % 2 == 0 &&
            zc_load_f64(t->dtype, t->data, i) != zc_load_f64(t->dtype, t->data, i + half))
            return of_bool(false);
    return of_bool(true);
}

static zc_rl_val count_of(const zc_rl_env *env, const zc_rl_expr *e)
{
    int n = 0;
    if (e->kind != ZC_RE_NAME || e->word != ZC_RW_VAR) return unknown;
    const zc_rl_var *v = &env->rule->vars[e->index];
    if (v->kind != ZC_RV_LIST) return of_int(env->value[e->index] != 0);
    for (int i = 0; i < v->count; i++) n += env->value[v->first + i] != 0;
    return of_int(n);
}

static bool equal_constants(const zc_tensor *a, const zc_tensor *b)
{
    size_t bytes, other;
    if (!a || !b || !a->data || !b->data || a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return zc_tensor_bytes(a, &bytes) && zc_tensor_bytes(b, &other) && bytes == other &&
           memcmp(a->data, b->data, bytes) == 0;
}

/* Views of the same value, with the same axes, are the same. */
static bool is_same(const zc_graph *g, zc_vid a, zc_vid b)
{
    while (a && b && a != b) {
        const zc_value *x = zc_val(g, a), *y = zc_val(g, b);
        if (equal_constants(x->data, y->data)) return true;
        if (x->kind != ZC_VALUE_NODE || y->kind != ZC_VALUE_NODE) return false;
        const zc_node *m = zc_node_at(g, x->producer), *n = zc_node_at(g, y->producer);
        bool view = m->op == ZC_OP_Unsqueeze || m->op == ZC_OP_Squeeze;
        if (!view || m->op != n->op || m->nin != 2 || n->nin != 2) return false;
        bool axes = m->in[1] == n->in[1] ||
                    equal_constants(zc_val(g, m->in[1])->data, zc_val(g, n->in[1])->data);
        if (!axes) return false;
        a = m->in[0];
        b = n->in[0];
    }
    return a == b;
}

static zc_rl_val covers(const zc_rl_env *env, const zc_type *a, zc_vid v)
{
    if (!v) return (zc_rl_val){.type = ZC_RT_ANY, .absent = true};
    const zc_type *b = &zc_val(env->g, v)->type;
    if (a->rank < 1 || b->rank < 1) return unknown;
    return of_bool(zc_dim_covers(&env->g->dims, a->dims[a->rank - 1], b->dims[b->rank - 1]));
}

/* n, where the constant is 0, 0, ... 1, 1, ... with each number n times; else 0. */
static int64_t repeats(const zc_tensor *t)
{
    int64_t n = 0, size = t && t->data ? zc_tensor_numel(t) : 0;
    if (size < 1 || !zc_dtype_is_int(t->dtype)) return 0;
    while (n < size && zc_load_i64(t->dtype, t->data, n) == 0) n++;
    if (n == 0 || size % n) return 0;
    for (int64_t i = 0; i < size; i++)
        if (zc_load_i64(t->dtype, t->data, i) != i / n) return 0;
    return n;
}

static zc_rl_val of_value(const zc_rl_env *env, const zc_rl_expr *e)
{
    zc_vid v = value_of(env, zc_rl_expr_at(&e->args, 0));
    if (e->index == ZC_RF_count) return count_of(env, zc_rl_expr_at(&e->args, 0));
    if (e->index == ZC_RF_present) return of_bool(v != 0);
    if (!v) return (zc_rl_val){.type = ZC_RT_ANY, .absent = true};
    const zc_type *t = &zc_val(env->g, v)->type;
    switch ((zc_rl_function)e->index) {
    case ZC_RF_rank:
        return t->rank < 0 ? unknown : of_int(t->rank);
    case ZC_RF_dim:
        return dimension(env, t, zc_rl_expr_at(&e->args, 1));
    case ZC_RF_size:
        return size_of(env, t);
    case ZC_RF_dtype:
        return (zc_rl_val){.type = ZC_RT_DTYPE, .dtype = t->dtype};
    case ZC_RF_value:
        return number_of(env->g, v);
    case ZC_RF_least:
    case ZC_RF_greatest:
        return extreme_of(env->g, v, e->index == ZC_RF_least);
    case ZC_RF_element:
        return element_of(env, v, zc_rl_expr_at(&e->args, 1));
    case ZC_RF_uses:
        return of_int(env->uses[v]);
    case ZC_RF_is_const:
        return of_bool(zc_val(env->g, v)->data != NULL);
    case ZC_RF_halves:
        return has_halves(zc_val(env->g, v)->data);
    case ZC_RF_same_shape:
        return shapes(env, e, false);
    case ZC_RF_same:
        return of_bool(is_same(env->g, v, value_of(env, zc_rl_expr_at(&e->args, 1))));
    case ZC_RF_covers:
        return covers(env, t, value_of(env, zc_rl_expr_at(&e->args, 1)));
    case ZC_RF_repeats:
        return of_int(repeats(zc_val(env->g, v)->data));
    case ZC_RF_fits:
        return shapes(env, e, true);
    default:
        return unknown;
    }
}

static zc_rl_val wrapped(const zc_rl_env *env, const zc_rl_val *i, const zc_rl_val *n)
{
    if (i->type != ZC_RT_INT || n->type != ZC_RT_INT || !zc_dim_is_const(i->dim))
        return no_value(i, n);
    return i->dim.k < 0 ? of_dim(zc_dim_add(&env->g->dims, i->dim, n->dim)) : *i;
}

static zc_rl_val entry(const zc_rl_val *list, const zc_rl_val *i)
{
    if (list->type != ZC_RT_INTS || i->type != ZC_RT_INT || !zc_dim_is_const(i->dim))
        return no_value(list, i);
    int64_t at = i->dim.k < 0 ? i->dim.k + list->ints.n : i->dim.k;
    return at >= 0 && at < list->ints.n ? of_int(list->ints.v[at]) : unknown;
}

static zc_rl_val picked(const zc_rl_env *env, const zc_rl_val *list, const zc_rl_val *which)
{
    if (list->type != ZC_RT_INTS || which->type != ZC_RT_INTS) return no_value(list, which);
    int64_t *v = zc_arena_alloc(env->arena, (size_t)which->ints.n, sizeof *v);
    if (!v) return unknown;
    for (int i = 0; i < which->ints.n; i++) {
        zc_rl_val at = of_int(which->ints.v[i]), one = entry(list, &at);
        if (one.type != ZC_RT_INT) return unknown;
        v[i] = one.dim.k;
    }
    return (zc_rl_val){.type = ZC_RT_INTS, .ints = {which->ints.n, v}};
}

/* Of integers the arithmetic of dimensions tells, with symbols too. */
static zc_rl_val extreme(const zc_rl_env *env, const zc_rl_val *a, const zc_rl_val *b, bool least)
{
    double x, y;
    if (a->type == ZC_RT_INT && b->type == ZC_RT_INT)
        return of_dim((least ? zc_dim_min : zc_dim_max)(&env->g->dims, a->dim, b->dim));
    if (!as_real(a, &x) || !as_real(b, &y)) return no_value(a, b);
    return (least ? x <= y : x >= y) ? *a : *b;
}

static zc_rl_val of_numbers(const zc_rl_env *env, const zc_rl_expr *e)
{
    zc_rl_val a = zc_rl_eval(env, zc_rl_expr_at(&e->args, 0));
    zc_rl_val b = e->args.n > 1 ? zc_rl_eval(env, zc_rl_expr_at(&e->args, 1)) : unknown;
    double x;
    if (e->index == ZC_RF_default) return a.type == ZC_RT_ANY && a.absent ? b : a;
    if (e->index == ZC_RF_wrap) return wrapped(env, &a, &b);
    if (e->index == ZC_RF_at) return entry(&a, &b);
    if (e->index == ZC_RF_pick) return picked(env, &a, &b);
    if (e->index == ZC_RF_ceil_div)
        return a.type == ZC_RT_INT && b.type == ZC_RT_INT
                   ? of_dim(zc_dim_cdiv(&env->g->dims, a.dim, b.dim))
                   : no_value(&a, &b);
    if (e->index == ZC_RF_len) return a.type == ZC_RT_INTS ? of_int(a.ints.n) : no_value(&a, NULL);
    if (e->index == ZC_RF_min || e->index == ZC_RF_max)
        return extreme(env, &a, &b, e->index == ZC_RF_min);
    if (!as_real(&a, &x)) return no_value(&a, NULL);
    switch ((zc_rl_function)e->index) {
    case ZC_RF_abs:
        if (a.type == ZC_RT_INT && a.dim.k > INT64_MIN)
            return of_int(a.dim.k < 0 ? -a.dim.k : a.dim.k);
        return of_real(fabs(x));
    case ZC_RF_sqrt:
        return of_real(sqrt(x));
    default:
        return unknown;
    }
}

static zc_rl_val call(const zc_rl_env *env, const zc_rl_expr *e)
{
    return zc_rl_function_at(e->index)->args[0] == 'V' ? of_value(env, e) : of_numbers(env, e);
}

/* ---- operators ---- */

/* Of an operation that is absent it is, too. */
static zc_rl_val attribute(const zc_rl_env *env, int var)
{
    if (env->rule->vars[var].kind != ZC_RV_ATTR) return unknown;
    zc_rl_val v = env->attr[var];
    v.absent |= v.type == ZC_RT_ANY;
    return v;
}

static zc_rl_val name(const zc_rl_env *env, const zc_rl_expr *e)
{
    switch (e->word) {
    case ZC_RW_VAR:
        return attribute(env, e->index);
    case ZC_RW_DTYPE:
        return (zc_rl_val){.type = ZC_RT_DTYPE, .dtype = (zc_dtype)e->index};
    case ZC_RW_BOOL:
        return of_bool(e->index != 0);
    case ZC_RW_TARGET:
        if (e->index == ZC_RW_SM) return of_int(env->target->sm);
        return of_bool(env->target->cuda == (e->index == ZC_RW_CUDA));
    case ZC_RW_NONE:
        break;
    }
    return unknown;
}

static zc_rl_val list(const zc_rl_env *env, const zc_rl_expr *e)
{
    int64_t *ints = zc_arena_alloc(env->arena, (size_t)e->args.n, sizeof *ints);
    float *floats = zc_arena_alloc(env->arena, (size_t)e->args.n, sizeof *floats);
    bool is_ints = true;
    if (!ints || !floats) return unknown;
    for (int i = 0; i < e->args.n; i++) {
        double x;
        zc_rl_val v = zc_rl_eval(env, zc_rl_expr_at(&e->args, i));
        if (!as_real(&v, &x)) return no_value(&v, NULL);
        is_ints &= v.type == ZC_RT_INT;
        ints[i] = v.dim.k;
        floats[i] = (float)x;
    }
    if (is_ints) return (zc_rl_val){.type = ZC_RT_INTS, .ints = {e->args.n, ints}};
    return (zc_rl_val){.type = ZC_RT_FLOATS, .floats = {e->args.n, floats}};
}

static zc_rl_val not(const zc_rl_env *env, const zc_rl_expr *e)
{
    zc_rl_val a = zc_rl_eval(env, zc_rl_expr_at(&e->args, 0));
    return a.type == ZC_RT_BOOL ? of_bool(!a.b) : no_value(&a, NULL);
}

/* One operand that decides is enough. */
static zc_rl_val logic(const zc_rl_env *env, const zc_rl_expr *e)
{
    bool decides = e->kind == ZC_RE_OR;
    zc_rl_val a = zc_rl_eval(env, zc_rl_expr_at(&e->args, 0));
    if (a.type == ZC_RT_BOOL && a.b == decides) return a;
    zc_rl_val b = zc_rl_eval(env, zc_rl_expr_at(&e->args, 1));
    if (b.type == ZC_RT_BOOL && b.b == decides) return b;
    if (a.type != ZC_RT_BOOL || b.type != ZC_RT_BOOL) return no_value(&a, &b);
    return of_bool(!decides);
}

static zc_rl_val of_dims(const zc_rl_env *env, zc_rl_expr_kind op, zc_dim a, zc_dim b)
{
    zc_dims *t = &env->g->dims;
    switch (op) {
    case ZC_RE_ADD:
        return of_dim(zc_dim_add(t, a, b));
    case ZC_RE_SUB:
        return of_dim(zc_dim_sub(t, a, b));
    case ZC_RE_MUL:
        return of_dim(zc_dim_mul(t, a, b));
    case ZC_RE_DIV:
    case ZC_RE_MOD:
        if (!zc_dim_known_ge(t, b, 1)) return unknown;
        return of_dim(op == ZC_RE_DIV ? zc_dim_div(t, a, b) : zc_dim_mod(t, a, b));
    default:
        return unknown;
    }
}

static zc_rl_val of_reals(zc_rl_expr_kind op, double a, double b)
{
    switch (op) {
    case ZC_RE_ADD:
        return of_real(a + b);
    case ZC_RE_SUB:
        return of_real(a - b);
    case ZC_RE_MUL:
        return of_real(a * b);
    case ZC_RE_DIV:
        return of_real(a / b);
    case ZC_RE_MOD:
        return of_real(fmod(a, b));
    default:
        return unknown;
    }
}

static zc_rl_val arithmetic(const zc_rl_env *env, const zc_rl_expr *e)
{
    double x, y;
    zc_rl_val a = zc_rl_eval(env, zc_rl_expr_at(&e->args, 0));
    zc_rl_val b = zc_rl_eval(env, zc_rl_expr_at(&e->args, 1));
    if (a.type == ZC_RT_INT && b.type == ZC_RT_INT) return of_dims(env, e->kind, a.dim, b.dim);
    if (!as_real(&a, &x) || !as_real(&b, &y)) return no_value(&a, &b);
    return of_reals(e->kind, x, y);
}

static zc_rl_val negated(const zc_rl_env *env, const zc_rl_expr *e)
{
    zc_rl_val a = zc_rl_eval(env, zc_rl_expr_at(&e->args, 0));
    if (a.type == ZC_RT_INT) return of_dim(zc_dim_sub(&env->g->dims, zc_dim_const(0), a.dim));
    return a.type == ZC_RT_REAL ? of_real(-a.real) : no_value(&a, NULL);
}

zc_rl_val zc_rl_eval(const zc_rl_env *env, const zc_rl_expr *e)
{
    switch (e->kind) {
    case ZC_RE_INT:
        return of_int(e->i);
    case ZC_RE_REAL:
        return of_real(e->real);
    case ZC_RE_STR:
        return (zc_rl_val){.type = ZC_RT_STR, .str = e->text};
    case ZC_RE_NAME:
        return name(env, e);
    case ZC_RE_CALL:
        return call(env, e);
    case ZC_RE_LIST:
        return list(env, e);
    case ZC_RE_NOT:
        return not(env, e);
    case ZC_RE_NEG:
        return negated(env, e);
    case ZC_RE_OR:
    case ZC_RE_AND:
        return logic(env, e);
    case ZC_RE_IN:
        return membership(env, e);
    case ZC_RE_ADD:
    case ZC_RE_SUB:
    case ZC_RE_MUL:
    case ZC_RE_DIV:
    case ZC_RE_MOD:
        return arithmetic(env, e);
    default:
        return relation(env, e);
    }
}

bool zc_rl_holds(const zc_rl_env *env, const zc_rl_expr *e)
{
    zc_rl_val v = zc_rl_eval(env, e);
    return v.type == ZC_RT_BOOL ? v.b : v.absent;
}

zc_rl_val zc_rl_attr_value(const zc_op_info *info, const void *attrs, int field)
{
    const void *at = (const char *)attrs + info->fields[field].offset;
    switch (info->fields[field].kind) {
    case ZC_ATTR_INT:
        return of_int(*(const int64_t *)at);
    case ZC_ATTR_FLOAT:
        return of_real((double)*(const float *)at);
    case ZC_ATTR_STR: {
        const char *s = *(const char *const *)at;
        return (zc_rl_val){.type = ZC_RT_STR, .str = s ? s : ""};
    }
    case ZC_ATTR_INTS:
        return (zc_rl_val){.type = ZC_RT_INTS, .ints = *(const zc_ints *)at};
    case ZC_ATTR_FLOATS:
        return (zc_rl_val){.type = ZC_RT_FLOATS, .floats = *(const zc_floats *)at};
    case ZC_ATTR_DTYPE:
        return (zc_rl_val){.type = ZC_RT_DTYPE, .dtype = *(const zc_dtype *)at};
    case ZC_ATTR_TENSOR:
        break;
    }
    return unknown;
}

static bool set_floats(zc_arena *arena, const zc_rl_val *v, zc_floats *out)
{
    float *f = v->type == ZC_RT_INTS ? zc_arena_alloc(arena, (size_t)v->ints.n, sizeof *f) : NULL;
    *out = v->floats;
    if (v->type != ZC_RT_INTS) return v->type == ZC_RT_FLOATS;
    for (int i = 0; f && i < v->ints.n; i++) f[i] = (float)v->ints.v[i];
    *out = (zc_floats){v->ints.n, f};
    return f != NULL;
}

bool zc_rl_attr_set(zc_arena *arena, const zc_attr_field *field, const zc_rl_val *v, void *at)
{
    bool is_int = v->type == ZC_RT_INT && zc_dim_is_const(v->dim);
    switch (field->kind) {
    case ZC_ATTR_INT:
        if (is_int) *(int64_t *)at = v->dim.k;
        return is_int;
    case ZC_ATTR_FLOAT:
        *(float *)at = (float)(is_int ? (double)v->dim.k : v->real);
        return is_int || v->type == ZC_RT_REAL;
    case ZC_ATTR_STR:
        *(const char **)at = v->str;
        return v->type == ZC_RT_STR;
    case ZC_ATTR_INTS:
        *(zc_ints *)at = v->ints;
        return v->type == ZC_RT_INTS;
    case ZC_ATTR_FLOATS:
        return set_floats(arena, v, at);
    case ZC_ATTR_DTYPE:
        *(zc_dtype *)at = v->dtype;
        return v->type == ZC_RT_DTYPE;
    case ZC_ATTR_TENSOR:
        break;
    }
    return false;
}
