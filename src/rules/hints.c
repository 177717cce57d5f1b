#include "rules/hints.h"

/* rank(v), dim(v, i), size(v) or value(v): the function, and -1 for anything else. */
static int function_of(const zc_rl_expr *e, int var)
{
    if (e->kind != ZC_RE_CALL || !e->args.n) return -1;
    const zc_rl_expr *of = zc_rl_expr_at(&e->args, 0);
    bool is_it = of->kind == ZC_RE_NAME && of->word == ZC_RW_VAR && (var < 0 || of->index == var);
    return is_it ? e->index : -1;
}

static bool speaks_of_uses(const zc_rl_expr *e)
{
    if (e->kind == ZC_RE_CALL && e->index == ZC_RF_uses) return true;
    for (int i = 0; i < e->args.n; i++)
        if (speaks_of_uses(zc_rl_expr_at(&e->args, i))) return true;
    return false;
}

static bool known_int(const zc_rl_env *env, const zc_rl_expr *e, int64_t *out)
{
    if (speaks_of_uses(e)) return false;
    zc_rl_val v = zc_rl_eval(env, e);
    if (v.type != ZC_RT_INT || !zc_dim_is_const(v.dim)) return false;
    *out = v.dim.k;
    return true;
}

static void note_value(const zc_rl_env *env, const zc_rl_expr *e, zc_rl_hint *out)
{
    if (speaks_of_uses(e)) return;
    zc_rl_val v = zc_rl_eval(env, e);
    out->has_value = v.type == ZC_RT_REAL || (v.type == ZC_RT_INT && zc_dim_is_const(v.dim));
    if (out->has_value) out->value = v.type == ZC_RT_REAL ? v.real : (double)v.dim.k;
}

/* function(v, ...) == wanted */
static void note(const zc_rl_env *env, const zc_rl_expr *call, const zc_rl_expr *wanted,
                 zc_rl_hint *out)
{
    int64_t n, at;
    switch (call->index) {
    case ZC_RF_rank:
        if (known_int(env, wanted, &n) && n >= 0 && n <= ZC_MAX_RANK) out->rank = n;
        break;
    case ZC_RF_size:
        if (known_int(env, wanted, &n) && n >= 0) out->size = n;
        break;
    case ZC_RF_dim:
        if (!known_int(env, wanted, &n) || n < 0) break;
        if (!known_int(env, zc_rl_expr_at(&call->args, 1), &at)) break;
        if (at >= 0 && at < ZC_MAX_RANK) out->front[at] = n;
        if (at < 0 && at >= -ZC_MAX_RANK) out->back[-1 - at] = n;
        break;
    case ZC_RF_value:
        note_value(env, wanted, out);
        break;
    default:
        break;
    }
}

/* Where a slice ends: at the end or beyond. */
static bool reaches_end(const zc_rl_expr *e)
{
    return e->kind == ZC_RE_GE && function_of(zc_rl_expr_at(&e->args, 0), -1) == ZC_RF_value &&
           function_of(zc_rl_expr_at(&e->args, 1), -1) == ZC_RF_dim;
}

void zc_rl_hint_find(const zc_rl_env *env, int var, zc_rl_hint *out)
{
    *out = (zc_rl_hint){.rank = -1, .size = -1};
    for (int i = 0; i < ZC_MAX_RANK; i++) out->front[i] = out->back[i] = -1;
    for (int i = 0; i < env->rule->where.n; i++) {
        const zc_rl_expr *e = zc_rl_expr_at(&env->rule->where, i);
        if (e->kind != ZC_RE_EQ && e->kind != ZC_RE_NEAR && !reaches_end(e)) continue;
        for (int side = 0; side < 2; side++) {
            const zc_rl_expr *call = zc_rl_expr_at(&e->args, side);
            if (function_of(call, var) >= 0)
                note(env, call, zc_rl_expr_at(&e->args, 1 - side), out);
        }
    }
}

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

static int least_rank(const zc_rl_hint *hint)
{
    int n = 0;
    for (int i = 0; i < ZC_MAX_RANK; i++)
        if (hint->front[i] >= 0 || hint->back[i] >= 0) n = i + 1;
    return n;
}

/* One dimension has all elements. */
static void set_size(const zc_rl_hint *hint, zc_tensor *t)
{
    int at = t->rank - 1;
    if (zc_tensor_numel(t) == hint->size || t->rank == 0) return;
    for (int i = 0; i < t->rank; i++)
        if (hint->front[i] == hint->size || hint->back[t->rank - 1 - i] == hint->size) at = i;
    for (int i = 0; i < t->rank; i++) t->dims[i] = i == at ? hint->size : 1;
}

void zc_rl_hint_apply(const zc_rl_hint *hint, zc_tensor *t)
{
    int least = least_rank(hint);
    if (hint->rank >= 0 && hint->rank != t->rank)
        set_rank(t, (int)hint->rank);
    else if (t->rank < least)
        set_rank(t, least);
    for (int i = 0; i < t->rank; i++) {
        if (hint->front[i] >= 0) t->dims[i] = hint->front[i];
        if (hint->back[i] >= 0) t->dims[t->rank - 1 - i] = hint->back[i];
    }
    if (hint->size >= 0) set_size(hint, t);
}

int zc_rl_hint_rank(const zc_rl_rule *rule, int i)
{
    for (int k = 0; k < rule->where.n; k++) {
        const zc_rl_expr *e = zc_rl_expr_at(&rule->where, k);
        if (e->kind != ZC_RE_EQ) continue;
        const zc_rl_expr *call = zc_rl_expr_at(&e->args, 0), *n = zc_rl_expr_at(&e->args, 1);
        if (function_of(call, -1) == ZC_RF_rank && n->kind == ZC_RE_INT && i-- == 0)
            return n->i > 0 && n->i <= ZC_MAX_RANK ? (int)n->i : 0;
    }
    return 0;
}
