#include "prover/hints.h"

#include <math.h>
#include <string.h>

#include "prover/sample.h"

#define SIZE_LIMIT (1 << 20) /* no sample is longer in a dimension */
#define PASSES     4         /* conditions may undo each other */

/* What has been found: `call` of the operand, or the attribute itself (call NULL), is to be n. */
typedef struct finding {
    const zc_rl_expr *call;
    double n;
} finding;

typedef struct finder {
    const zc_rl_solver *s;
    const zc_rl_env *env;
    bool any;     /* calls of any value count */
    bool no_data; /* the operand has no elements yet */
    bool (*take)(void *user, const finding *f);
    void *user;
} finder;

static int64_t below(const finder *f, int64_t n)
{
    return (int64_t)(zc_rl_random(f->s->random) % (uint64_t)n);
}

static bool is_known(const zc_rl_val *v, double *out)
{
    if (v->type == ZC_RT_INT && zc_dim_is_const(v->dim)) *out = (double)v->dim.k;
    if (v->type == ZC_RT_REAL) *out = v->real;
    return v->type == ZC_RT_REAL || (v->type == ZC_RT_INT && zc_dim_is_const(v->dim));
}

static bool names(const zc_rl_expr *e, int var)
{
    if (e->kind == ZC_RE_NAME && e->word == ZC_RW_VAR) return e->index == var;
    for (int i = 0; i < e->args.n; i++)
        if (names(zc_rl_expr_at(&e->args, i), var)) return true;
    return false;
}

/* ---- turning an expression round ---- */

static bool invert(const finder *f, const zc_rl_expr *e, double n);

/* e is `a op b`: what a or b is to be, the other being known. */
static bool invert_arithmetic(const finder *f, const zc_rl_expr *e, double n)
{
    const zc_rl_expr *a = zc_rl_expr_at(&e->args, 0), *b = zc_rl_expr_at(&e->args, 1);
    zc_rl_val va = zc_rl_eval(f->env, a), vb = zc_rl_eval(f->env, b);
    double x, y;
    bool has_x = is_known(&va, &x), has_y = is_known(&vb, &y);
    switch (e->kind) {
    case ZC_RE_ADD:
        return (has_y && invert(f, a, n - y)) || (has_x && invert(f, b, n - x));
    case ZC_RE_SUB:
        return (has_y && invert(f, a, n + y)) || (has_x && invert(f, b, x - n));
    case ZC_RE_MUL:
        return (has_y && y != 0 && invert(f, a, n / y)) || (has_x && x != 0 && invert(f, b, n / x));
    case ZC_RE_DIV:
        return has_y && invert(f, a, n * y);
    case ZC_RE_MOD:
        return has_y && invert(f, a, n + y * (double)(1 + below(f, 3)));
    default:
        return false;
    }
}

static bool is_atom(const finder *f, const zc_rl_expr *e)
{
    if (e->kind != ZC_RE_CALL || !e->args.n) return false;
    const zc_rl_expr *of = zc_rl_expr_at(&e->args, 0);
    if (of->kind != ZC_RE_NAME || of->word != ZC_RW_VAR) return false;
    return f->any || of->index == f->s->var;
}

static bool invert_call(const finder *f, const zc_rl_expr *e, double n)
{
    if (is_atom(f, e)) return f->take(f->user, &(finding){.call = e, .n = n});
    const zc_rl_expr *a = zc_rl_expr_at(&e->args, 0);
    switch ((zc_rl_function)e->index) {
    case ZC_RF_abs:
        return invert(f, a, below(f, 2) ? n : -n);
    case ZC_RF_sqrt:
        return invert(f, a, n * n);
    case ZC_RF_wrap:
    case ZC_RF_default:
        return invert(f, a, n);
    case ZC_RF_min:
    case ZC_RF_max:
        return invert(f, a, n) || invert(f, zc_rl_expr_at(&e->args, 1), n);
    case ZC_RF_ceil_div: {
        zc_rl_val by = zc_rl_eval(f->env, zc_rl_expr_at(&e->args, 1));
        double y;
        return is_known(&by, &y) && invert(f, a, n * y);
    }
    default:
        return false;
    }
}

/* What is to be changed so that e is n? false: nothing that would be in this operand's power. */
static bool invert(const finder *f, const zc_rl_expr *e, double n)
{
    switch (e->kind) {
    case ZC_RE_NAME:
        return e->word == ZC_RW_VAR && e->index == f->s->var &&
               f->take(f->user, &(finding){.n = n});
    case ZC_RE_NEG:
        return invert(f, zc_rl_expr_at(&e->args, 0), -n);
    case ZC_RE_CALL:
        return invert_call(f, e, n);
    case ZC_RE_ADD:
    case ZC_RE_SUB:
    case ZC_RE_MUL:
    case ZC_RE_DIV:
    case ZC_RE_MOD:
        return invert_arithmetic(f, e, n);
    default:
        return false;
    }
}

/* ---- conditions ---- */

static zc_rl_expr_kind opposite(zc_rl_expr_kind op)
{
    switch (op) {
    case ZC_RE_EQ:
    case ZC_RE_NEAR:
        return ZC_RE_NE;
    case ZC_RE_NE:
        return ZC_RE_EQ;
    case ZC_RE_LT:
        return ZC_RE_GE;
    case ZC_RE_LE:
        return ZC_RE_GT;
    case ZC_RE_GT:
        return ZC_RE_LE;
    case ZC_RE_GE:
        return ZC_RE_LT;
    default:
        return op;
    }
}

/* a op b is b mirrored(op) a. */
static zc_rl_expr_kind mirrored(zc_rl_expr_kind op)
{
    switch (op) {
    case ZC_RE_LT:
        return ZC_RE_GT;
    case ZC_RE_LE:
        return ZC_RE_GE;
    case ZC_RE_GT:
        return ZC_RE_LT;
    case ZC_RE_GE:
        return ZC_RE_LE;
    default:
        return op;
    }
}

/* A number for which `it op n` holds: the limit itself, next to it, or beyond. */
static double satisfying(const finder *f, zc_rl_expr_kind op, double n)
{
    double beyond = (double)below(f, 8);
    bool at_limit = below(f, 2);
    switch (op) {
    case ZC_RE_NE:
    case ZC_RE_GT:
        return n + 1 + (at_limit ? 0 : beyond);
    case ZC_RE_GE:
        return n + (at_limit ? 0 : beyond);
    case ZC_RE_LT:
        return n - 1 - (at_limit ? 0 : beyond);
    case ZC_RE_LE:
        return n - (at_limit ? 0 : beyond);
    default:
        return n;
    }
}

static bool solve_relation(const finder *f, const zc_rl_expr *e, bool want)
{
    zc_rl_expr_kind op = want ? e->kind : opposite(e->kind);
    for (int side = 0; side < 2; side++) {
        zc_rl_val v = zc_rl_eval(f->env, zc_rl_expr_at(&e->args, 1 - side));
        double n;
        if (!is_known(&v, &n)) continue;
        n = satisfying(f, side ? mirrored(op) : op, n);
        if (invert(f, zc_rl_expr_at(&e->args, side), n)) return true;
    }
    return false;
}

static bool solve_membership(const finder *f, const zc_rl_expr *e, bool want)
{
    const zc_rl_expr *set = zc_rl_expr_at(&e->args, 1);
    if (!set->args.n) return false;
    zc_rl_val v = zc_rl_eval(f->env, zc_rl_expr_at(&set->args, (int)below(f, set->args.n)));
    double n;
    return is_known(&v, &n) && invert(f, zc_rl_expr_at(&e->args, 0), want ? n : n + 1);
}

/* Makes condition e hold, or not hold, as far as the operand can. */
static void solve(const finder *f, const zc_rl_expr *e, bool want)
{
    zc_rl_val v = zc_rl_eval(f->env, e);
    if (!f->any && v.type == ZC_RT_BOOL && v.b == want) return;
    switch (e->kind) {
    case ZC_RE_NOT:
        solve(f, zc_rl_expr_at(&e->args, 0), !want);
        break;
    case ZC_RE_AND:
    case ZC_RE_OR:
        if ((e->kind == ZC_RE_AND) == want)
            for (int i = 0; i < 2; i++) solve(f, zc_rl_expr_at(&e->args, i), want);
        else
            solve(f, zc_rl_expr_at(&e->args, (int)below(f, 2)), want);
        break;
    case ZC_RE_EQ:
    case ZC_RE_NE:
    case ZC_RE_LT:
    case ZC_RE_LE:
    case ZC_RE_GT:
    case ZC_RE_GE:
    case ZC_RE_NEAR:
        solve_relation(f, e, want);
        break;
    case ZC_RE_IN:
        solve_membership(f, e, want);
        break;
    default:
        break;
    }
}

static void solve_all(const finder *f)
{
    const zc_rl_rule *rule = f->s->env.rule;
    const zc_rl_var *var = &rule->vars[f->s->var];
    uint64_t which = (f->any ? ~UINT64_C(0) : var->where) & ~rule->of_uses;
    if (f->no_data) which &= ~var->of_data;
    for (int i = 0; i < rule->where.n; i++)
        if (which >> i & 1) solve(f, zc_rl_expr_at(&rule->where, i), true);
}

/* ---- shapes ---- */

/* Where t has fewer dimensions, ones come first. */
static void set_rank(zc_tensor *t, int rank)
{
    int64_t dims[ZC_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        int from = i + t->rank - rank;
        dims[i] = from >= 0 ? t->dims[from] : 1;
    }
    t->rank = rank;
    for (int i = 0; i < rank; i++) t->dims[i] = dims[i];
}

/* One dimension has all elements: one that has them already, or the last. */
static void set_size(zc_tensor *t, int64_t size)
{
    int at = t->rank - 1;
    if (t->rank == 0) set_rank(t, 1), at = 0;
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] == size) at = i;
    for (int i = 0; i < t->rank; i++) t->dims[i] = i == at ? size : 1;
}

typedef struct draft {
    const zc_rl_env *env;
    zc_tensor *t;
} draft;

static void set_dim(const draft *d, const zc_rl_expr *call, int64_t n)
{
    zc_rl_val at = zc_rl_eval(d->env, zc_rl_expr_at(&call->args, 1));
    double x;
    if (!is_known(&at, &x) || x < -ZC_MAX_RANK || x >= ZC_MAX_RANK) return;
    int need = (int)(x < 0 ? -x : x + 1);
    if (d->t->rank < need) set_rank(d->t, need);
    d->t->dims[(int)(x < 0 ? x + d->t->rank : x)] = n;
}

/* The value that stands for the operand becomes what t is now. */
static void show(const draft *d, zc_vid v)
{
    zc_value *value = zc_val(d->env->g, v);
    value->type.dtype = d->t->dtype;
    value->type.rank = d->t->rank;
    for (int i = 0; i < d->t->rank; i++) value->type.dims[i] = zc_dim_const(d->t->dims[i]);
    value->data = d->t->data ? d->t : NULL;
}

static bool take_shape(void *user, const finding *f)
{
    const draft *d = user;
    if (!f->call || f->n < 0 || f->n > SIZE_LIMIT || f->n != floor(f->n)) return false;
    switch ((zc_rl_function)f->call->index) {
    case ZC_RF_rank:
        if (f->n > ZC_MAX_RANK) return false;
        set_rank(d->t, (int)f->n);
        break;
    case ZC_RF_dim:
        set_dim(d, f->call, (int64_t)f->n);
        break;
    case ZC_RF_size:
        set_size(d->t, (int64_t)f->n);
        break;
    default:
        return false;
    }
    return true;
}

/* n is the smallest element, or the largest, and stands first, or last. */
static void bound_elements(zc_tensor *t, bool is_least, double n)
{
    int64_t count = zc_tensor_numel(t), own = is_least ? 0 : count - 1;
    for (int64_t i = 0; i < count; i++) {
        double x = zc_load_f64(t->dtype, t->data, i);
        bool is_beyond = is_least ? !(x >= n) : !(x <= n);
        if (is_beyond || i == own) zc_store_f64(t->dtype, t->data, i, n);
    }
}

static bool take_data(void *user, const finding *f)
{
    const draft *d = user;
    int64_t n = zc_tensor_numel(d->t), first = 0, last = n;
    double at;
    if (!f->call) return false;
    if (f->call->index == ZC_RF_repeats) {
        for (int64_t i = 0; f->n >= 1 && i < n; i++)
            zc_store_i64(d->t->dtype, d->t->data, i, i / (int64_t)f->n);
        return f->n >= 1;
    }
    if (f->call->index == ZC_RF_least || f->call->index == ZC_RF_greatest) {
        bound_elements(d->t, f->call->index == ZC_RF_least, f->n);
        return n > 0;
    }
    if (f->call->index == ZC_RF_element) {
        zc_rl_val i = zc_rl_eval(d->env, zc_rl_expr_at(&f->call->args, 1));
        if (!is_known(&i, &at) || at < 0 || at >= (double)n) return false;
        first = (int64_t)at;
        last = first + 1;
    } else if (f->call->index != ZC_RF_value) {
        return false;
    }
    for (int64_t i = first; i < last; i++) zc_store_f64(d->t->dtype, d->t->data, i, f->n);
    return true;
}

static void solve_tensor(const zc_rl_solver *s, zc_tensor *t,
                         bool (*take)(void *user, const finding *f))
{
    zc_vid value[ZC_RL_VARS_MAX];
    zc_rl_env env = s->env;
    draft d = {.env = &env, .t = t};
    finder f = {.s = s, .env = &env, .no_data = !t->data, .take = take, .user = &d};
    memcpy(value, s->env.value, sizeof value);
    value[s->var] = s->draft;
    env.value = value;
    for (int i = 0; i < PASSES && s->env.rule->vars[s->var].where; i++) {
        show(&d, s->draft);
        solve_all(&f);
    }
    /* What is drawn from the graph's values must not depend on what was solved. */
    zc_val(env.g, s->draft)->data = NULL;
    zc_val(env.g, s->draft)->type.rank = 0;
}

void zc_rl_hint_shape(const zc_rl_solver *s, zc_tensor *t)
{
    solve_tensor(s, t, take_shape);
}

void zc_rl_hint_data(const zc_rl_solver *s, zc_tensor *t)
{
    solve_tensor(s, t, take_data);
}

/* ---- attributes ---- */

static bool take_attr(void *user, const finding *f)
{
    zc_rl_val *v = user;
    if (f->call) return false;
    if (v->type == ZC_RT_REAL)
        v->real = f->n;
    else if (v->type == ZC_RT_INT && f->n == floor(f->n) && fabs(f->n) < 0x1p62)
        v->dim = zc_dim_const((int64_t)f->n);
    else
        return false;
    return true;
}

void zc_rl_hint_attr(const zc_rl_solver *s, zc_rl_val *v)
{
    zc_rl_val attr[ZC_RL_VARS_MAX];
    zc_rl_env env = s->env;
    finder f = {.s = s, .env = &env, .take = take_attr, .user = v};
    memcpy(attr, s->env.attr, sizeof attr);
    env.attr = attr;
    for (int i = 0; i < PASSES && s->env.rule->where.n; i++) {
        attr[s->var] = *v;
        solve_all(&f);
    }
}

/* ---- numbers of any operand ---- */

typedef struct numbers {
    zc_rl_function f;
    int64_t n[32];
    int count;
} numbers;

static bool take_number(void *user, const finding *f)
{
    numbers *out = user;
    if (!f->call || f->call->index != (int)out->f || f->n < 0 || f->n > SIZE_LIMIT) return false;
    if (f->n == floor(f->n) && out->count < (int)ZC_COUNTOF(out->n))
        out->n[out->count++] = (int64_t)f->n;
    return true;
}

bool zc_rl_hint_number(const zc_rl_solver *s, zc_rl_function f, int64_t *out)
{
    numbers all = {.f = f};
    finder any = {.s = s, .env = &s->env, .any = true, .take = take_number, .user = &all};
    solve_all(&any);
    if (all.count) *out = all.n[below(&any, all.count)];
    return all.count > 0;
}

static int64_t longest_in(const zc_rl_expr *e)
{
    int64_t longest = e->kind == ZC_RE_INT && e->i <= SIZE_LIMIT ? e->i : 0;
    for (int i = 0; i < e->args.n; i++) {
        int64_t n = longest_in(zc_rl_expr_at(&e->args, i));
        if (n > longest) longest = n;
    }
    return longest;
}

int64_t zc_rl_hint_longest(const zc_rl_rule *rule)
{
    int64_t longest = 0;
    for (int i = 0; i < rule->where.n; i++) {
        int64_t n = longest_in(zc_rl_expr_at(&rule->where, i));
        if (n > longest) longest = n;
    }
    return longest;
}

/* ---- element types ---- */

/* Calls fn for each element type that e names as one of `var` (-1: of any operand). */
typedef struct dtypes {
    int var;
    zc_dtype d[16];
    int count;
} dtypes;

static void add_dtype(dtypes *out, const zc_rl_expr *e)
{
    if (e->kind == ZC_RE_NAME && e->word == ZC_RW_DTYPE && out->count < (int)ZC_COUNTOF(out->d))
        out->d[out->count++] = (zc_dtype)e->index;
    for (int i = 0; e->kind == ZC_RE_LIST && i < e->args.n; i++)
        add_dtype(out, zc_rl_expr_at(&e->args, i));
}

static void find_dtypes(dtypes *out, const zc_rl_expr *e)
{
    bool is_positive = e->kind == ZC_RE_EQ || e->kind == ZC_RE_IN;
    for (int side = 0; is_positive && side < 2; side++) {
        const zc_rl_expr *call = zc_rl_expr_at(&e->args, side);
        if (call->kind != ZC_RE_CALL || call->index != ZC_RF_dtype) continue;
        if (out->var < 0 || names(call, out->var))
            add_dtype(out, zc_rl_expr_at(&e->args, 1 - side));
    }
    for (int i = 0; e->kind != ZC_RE_NOT && i < e->args.n; i++)
        find_dtypes(out, zc_rl_expr_at(&e->args, i));
}

static void all_dtypes(const zc_rl_rule *rule, dtypes *out)
{
    for (int i = 0; i < rule->where.n; i++) find_dtypes(out, zc_rl_expr_at(&rule->where, i));
}

void zc_rl_hint_dtype(const zc_rl_solver *s, zc_dtype *d)
{
    dtypes of = {.var = s->var};
    all_dtypes(s->env.rule, &of);
    for (int i = 0; i < of.count; i++)
        if (of.d[i] == *d) return;
    if (of.count) *d = of.d[zc_rl_random(s->random) % (uint64_t)of.count];
}

zc_dtype zc_rl_hint_named_dtype(const zc_rl_rule *rule, uint64_t which)
{
    dtypes of = {.var = -1};
    all_dtypes(rule, &of);
    for (int i = 0; i < rule->nvars && of.count < (int)ZC_COUNTOF(of.d); i++)
        if (rule->vars[i].dtype != ZC_NONE) of.d[of.count++] = rule->vars[i].dtype;
    return of.count ? of.d[which % (uint64_t)of.count] : ZC_NONE;
}
