/* Types of conditions and attribute values. */
#include <string.h>

#include "rules/check.h"

static const zc_rl_function_info functions[] = {
#define FN(name, args, result, text) {#name, args, ZC_RT_##result, text},
#include "rules/functions.def"
#undef FN
};

const zc_rl_function_info *zc_rl_function_at(int i)
{
    return i >= 0 && i < ZC_RF_COUNT ? &functions[i] : NULL;
}

const char *zc_rl_type_name(zc_rl_type t)
{
    static const char *const names[] = {
        "anything",        "a truth value", "an integer",        "a number", "a number", "a string",
        "an element type", "a list",        "a list of numbers", "a tensor", "a value"};
    return (unsigned)t < ZC_COUNTOF(names) ? names[t] : "?";
}

zc_rl_type zc_rl_attr_type(zc_attr_kind kind)
{
    switch (kind) {
    case ZC_ATTR_INT:
        return ZC_RT_INT;
    case ZC_ATTR_FLOAT:
        return ZC_RT_REAL;
    case ZC_ATTR_STR:
        return ZC_RT_STR;
    case ZC_ATTR_INTS:
        return ZC_RT_INTS;
    case ZC_ATTR_FLOATS:
        return ZC_RT_FLOATS;
    case ZC_ATTR_TENSOR:
        return ZC_RT_TENSOR;
    case ZC_ATTR_DTYPE:
        return ZC_RT_DTYPE;
    }
    return ZC_RT_ANY;
}

static bool is_number(zc_rl_type t)
{
    return t == ZC_RT_INT || t == ZC_RT_REAL || t == ZC_RT_NUM;
}

bool zc_rl_type_fits(zc_rl_type got, zc_rl_type need)
{
    if (got == need || got == ZC_RT_ANY || need == ZC_RT_ANY) return true;
    if (need == ZC_RT_INT) return got == ZC_RT_NUM;
    if (need == ZC_RT_FLOATS) return got == ZC_RT_INTS;
    return is_number(got) && (need == ZC_RT_NUM || need == ZC_RT_REAL);
}

/* ---- names ---- */

static const char *const target_words[] = {"cuda", "cpu", "sm"};

static int target_word(const char *text)
{
    for (size_t i = 0; i < ZC_COUNTOF(target_words); i++)
        if (strcmp(target_words[i], text) == 0) return (int)i;
    return -1;
}

bool zc_rl_is_word(const char *text)
{
    return target_word(text) >= 0 || zc_dtype_parse(text) != ZC_NONE || strcmp(text, "true") == 0 ||
           strcmp(text, "false") == 0;
}

/* What several values stand for: count() takes it, a condition is to hold for each. */
static void resolve_list(zc_rl_checker *c, const zc_rl_expr *e, int index)
{
    const zc_rl_var *v = &c->rule->vars[index];
    if (c->in_count) return;
    if (!c->each)
        zc_rl_fault(c, e->loc, "'%s' stands for several values (need count(%s))", v->name, v->name);
    else if (c->list < 0)
        c->list = index;
    else if (c->rule->vars[c->list].group != v->group)
        zc_rl_fault(c, e->loc, "'%s' and '%s' are not collected together", v->name,
                    c->rule->vars[c->list].name);
}

static zc_rl_type resolve_var(zc_rl_checker *c, zc_rl_expr *e, int index)
{
    zc_rl_var *v = &c->rule->vars[index];
    e->word = ZC_RW_VAR;
    e->index = index;
    v->uses++;
    if (v->kind == ZC_RV_LIST) resolve_list(c, e, index);
    return v->kind == ZC_RV_ATTR ? (zc_rl_type)v->type : ZC_RT_VALUE;
}

static zc_rl_type check_name(zc_rl_checker *c, zc_rl_expr *e)
{
    int var = zc_rl_var_find(c->rule, e->text), word = target_word(e->text);
    zc_dtype d = zc_dtype_parse(e->text);
    if (var >= 0) return resolve_var(c, e, var);
    if (d != ZC_NONE) {
        e->word = ZC_RW_DTYPE;
        e->index = (int)d;
        return ZC_RT_DTYPE;
    }
    if (word >= 0) {
        e->word = ZC_RW_TARGET;
        e->index = word;
        return word == ZC_RW_SM ? ZC_RT_INT : ZC_RT_BOOL;
    }
    if (strcmp(e->text, "true") == 0 || strcmp(e->text, "false") == 0) {
        e->word = ZC_RW_BOOL;
        e->index = e->text[0] == 't';
        return ZC_RT_BOOL;
    }
    zc_rl_unbound(c, e->text, e->loc);
    return ZC_RT_ANY;
}

static const char *function_name(const void *ctx, int i)
{
    return i < ZC_RF_COUNT ? functions[i].name : NULL;
}

static void check_argument(zc_rl_checker *c, zc_rl_expr *e, char letter)
{
    zc_rl_type need = letter == 'V'   ? ZC_RT_VALUE
                      : letter == 'I' ? ZC_RT_INT
                      : letter == 'L' ? ZC_RT_INTS
                                      : ZC_RT_NUM;
    zc_rl_check_expr_is(c, e, need);
}

static zc_rl_type check_call(zc_rl_checker *c, zc_rl_expr *e)
{
    int f = 0;
    while (f < ZC_RF_COUNT && strcmp(functions[f].name, e->text) != 0) f++;
    if (f == ZC_RF_COUNT) {
        zc_buf hint = {0};
        zc_rl_suggest(&hint, e->text, function_name, NULL);
        zc_rl_fault(c, e->loc, "no such function '%s'%s", e->text, hint.data ? hint.data : "");
        zc_buf_fini(&hint);
        return ZC_RT_ANY;
    }
    int need = (int)strlen(functions[f].args);
    e->index = f;
    if (e->args.n != need) {
        zc_rl_fault(c, e->loc, "wrong number of arguments of %s (got %d, need %d)", e->text,
                    e->args.n, need);
        return ZC_RT_ANY;
    }
    c->in_count = f == ZC_RF_count;
    for (int i = 0; i < need; i++)
        check_argument(c, zc_rl_expr_at(&e->args, i), functions[f].args[i]);
    c->in_count = false;
    return functions[f].result;
}

/* ---- operators ---- */

static zc_rl_type check_list(zc_rl_checker *c, zc_rl_expr *e)
{
    zc_rl_type t = ZC_RT_INTS;
    for (int i = 0; i < e->args.n; i++) {
        zc_rl_type item = zc_rl_check_expr(c, zc_rl_expr_at(&e->args, i));
        if (item == ZC_RT_REAL) t = ZC_RT_FLOATS;
        if (!zc_rl_type_fits(item, ZC_RT_REAL))
            zc_rl_fault(c, zc_rl_expr_at(&e->args, i)->loc, "a list is of numbers (got %s)",
                        zc_rl_type_name(item));
    }
    return t;
}

static bool comparable(zc_rl_type a, zc_rl_type b)
{
    return zc_rl_type_fits(a, b) || zc_rl_type_fits(b, a) || (is_number(a) && is_number(b));
}

static void check_same(zc_rl_checker *c, zc_rl_loc loc, zc_rl_type a, zc_rl_type b)
{
    if (a == ZC_RT_VALUE || b == ZC_RT_VALUE)
        zc_rl_fault(c, loc, "values have no comparison; compare value(), dtype(), rank(), dim()");
    else if (!comparable(a, b))
        zc_rl_fault(c, loc, "compares %s with %s", zc_rl_type_name(a), zc_rl_type_name(b));
}

static zc_rl_type check_in(zc_rl_checker *c, zc_rl_expr *e)
{
    zc_rl_type a = zc_rl_check_expr(c, zc_rl_expr_at(&e->args, 0));
    const zc_rl_expr *set = zc_rl_expr_at(&e->args, 1);
    if (!set->args.n) zc_rl_fault(c, set->loc, "nothing is in an empty set");
    for (int i = 0; i < set->args.n; i++) {
        zc_rl_expr *item = zc_rl_expr_at(&set->args, i);
        check_same(c, item->loc, a, zc_rl_check_expr(c, item));
    }
    return ZC_RT_BOOL;
}

static zc_rl_type check_relation(zc_rl_checker *c, zc_rl_expr *e)
{
    zc_rl_type a = zc_rl_check_expr(c, zc_rl_expr_at(&e->args, 0));
    zc_rl_type b = zc_rl_check_expr(c, zc_rl_expr_at(&e->args, 1));
    check_same(c, e->loc, a, b);
    bool is_ordered = e->kind != ZC_RE_EQ && e->kind != ZC_RE_NE;
    if (is_ordered && (!zc_rl_type_fits(a, ZC_RT_REAL) || !zc_rl_type_fits(b, ZC_RT_REAL)))
        zc_rl_fault(c, e->loc, "orders what has no order (got %s and %s)", zc_rl_type_name(a),
                    zc_rl_type_name(b));
    return ZC_RT_BOOL;
}

static zc_rl_type check_arithmetic(zc_rl_checker *c, zc_rl_expr *e)
{
    zc_rl_type t = ZC_RT_INT;
    for (int i = 0; i < e->args.n; i++) {
        zc_rl_type a = zc_rl_check_expr(c, zc_rl_expr_at(&e->args, i));
        if (!zc_rl_type_fits(a, ZC_RT_REAL))
            zc_rl_fault(c, zc_rl_expr_at(&e->args, i)->loc, "no number (got %s)",
                        zc_rl_type_name(a));
        if (a == ZC_RT_REAL || (a == ZC_RT_NUM && t == ZC_RT_INT)) t = a;
    }
    return t;
}

static zc_rl_type check_logic(zc_rl_checker *c, zc_rl_expr *e)
{
    for (int i = 0; i < e->args.n; i++)
        zc_rl_check_expr_is(c, zc_rl_expr_at(&e->args, i), ZC_RT_BOOL);
    return ZC_RT_BOOL;
}

zc_rl_type zc_rl_check_expr(zc_rl_checker *c, zc_rl_expr *e)
{
    switch (e->kind) {
    case ZC_RE_INT:
        return ZC_RT_INT;
    case ZC_RE_REAL:
        return ZC_RT_REAL;
    case ZC_RE_STR:
        return ZC_RT_STR;
    case ZC_RE_NAME:
        return check_name(c, e);
    case ZC_RE_CALL:
        return check_call(c, e);
    case ZC_RE_LIST:
        return check_list(c, e);
    case ZC_RE_NOT:
    case ZC_RE_OR:
    case ZC_RE_AND:
        return check_logic(c, e);
    case ZC_RE_IN:
        return check_in(c, e);
    case ZC_RE_EQ:
    case ZC_RE_NE:
    case ZC_RE_LT:
    case ZC_RE_LE:
    case ZC_RE_GT:
    case ZC_RE_GE:
    case ZC_RE_NEAR:
        return check_relation(c, e);
    case ZC_RE_NEG:
    case ZC_RE_ADD:
    case ZC_RE_SUB:
    case ZC_RE_MUL:
    case ZC_RE_DIV:
    case ZC_RE_MOD:
        return check_arithmetic(c, e);
    }
    return ZC_RT_ANY;
}

void zc_rl_check_expr_is(zc_rl_checker *c, zc_rl_expr *e, zc_rl_type need)
{
    zc_rl_type got = zc_rl_check_expr(c, e);
    if (!zc_rl_type_fits(got, need))
        zc_rl_fault(c, e->loc, "wrong type (got %s, need %s)", zc_rl_type_name(got),
                    zc_rl_type_name(need));
}
