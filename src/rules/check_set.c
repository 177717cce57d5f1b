/* Rules against each other: one that another always forestalls, one that feeds itself. */
#include <string.h>

#include "rules/check.h"

/* One pattern seen as a case of another: variables of the general one stand for parts of the
 * special one. */
typedef struct fit {
    const zc_rl_rule *general, *special;
    const zc_rl_pat *bound[ZC_RL_VARS_MAX]; /* by the general rule's variable */
    bool by_emit;                           /* special's emit side is the text to fit */
} fit;

static bool fits(fit *f, const zc_rl_pat *g, const zc_rl_pat *s, int depth);

/* The statement's pattern that a name stands for, or the name itself. */
static const zc_rl_pat *defined(const fit *f, const zc_rl_pat *s)
{
    if (s->kind != ZC_RP_NAME || s->var < 0) return s;
    const zc_rl_var *v = &f->special->vars[s->var];
    int stmt = f->by_emit ? v->emit : v->stmt;
    const zc_rl_list *side = f->by_emit ? &f->special->emit : &f->special->match;
    return stmt >= 0 ? zc_rl_stmt_at(side, stmt)->pat : s;
}

static bool same_expr(const fit *f, const zc_rl_expr *a, const zc_rl_expr *b);

static bool same_exprs(const fit *f, const zc_rl_list *a, const zc_rl_list *b)
{
    if (a->n != b->n) return false;
    for (int i = 0; i < a->n; i++)
        if (!same_expr(f, zc_rl_expr_at(a, i), zc_rl_expr_at(b, i))) return false;
    return true;
}

/* Do both say the same, with the general rule's names read as what they stand for? */
static bool same_name(const fit *f, const zc_rl_expr *a, const zc_rl_expr *b)
{
    if (a->word != b->word) return false;
    if (a->word != ZC_RW_VAR) return a->index == b->index;
    const zc_rl_pat *p = f->bound[a->index];
    return p && p->kind == ZC_RP_NAME && p->var == b->index;
}

static bool same_expr(const fit *f, const zc_rl_expr *a, const zc_rl_expr *b)
{
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case ZC_RE_INT:
        return a->i == b->i;
    case ZC_RE_REAL:
        return a->real == b->real;
    case ZC_RE_STR:
        return strcmp(a->text, b->text) == 0;
    case ZC_RE_NAME:
        return same_name(f, a, b);
    default:
        return a->index == b->index && same_exprs(f, &a->args, &b->args);
    }
}

static bool same_attr(const fit *f, const zc_rl_attr *a, const zc_rl_pat *s)
{
    for (int i = 0; i < s->attrs.n; i++) {
        const zc_rl_attr *b = zc_rl_attr_at(&s->attrs, i);
        if (a->field != b->field) continue;
        if (a->is_capture) return true;
        return !b->is_capture && a->op == b->op && same_expr(f, a->value, b->value);
    }
    return a->is_capture;
}

/* Is what s says of attributes at least what g asks? */
static bool fits_attrs(const fit *f, const zc_rl_pat *g, const zc_rl_pat *s)
{
    for (int i = 0; i < g->attrs.n; i++)
        if (!same_attr(f, zc_rl_attr_at(&g->attrs, i), s)) return false;
    if (g->any_attrs) return true;
    if (s->any_attrs) return false;
    for (int i = 0; i < s->attrs.n; i++) {
        const zc_rl_attr *b = zc_rl_attr_at(&s->attrs, i);
        bool named = false;
        for (int k = 0; k < g->attrs.n; k++)
            named |= zc_rl_attr_at(&g->attrs, k)->field == b->field;
        if (!named) return false;
    }
    return true;
}

static bool fits_args(fit *f, const zc_rl_pat *g, const zc_rl_pat *s, bool swapped, int depth)
{
    for (int i = 0; i < g->args.n; i++) {
        int at = swapped && i < 2 ? 1 - i : i;
        if (!fits(f, zc_rl_pat_at(&g->args, i), zc_rl_pat_at(&s->args, at), depth + 1))
            return false;
    }
    return true;
}

static bool fits_node(fit *f, const zc_rl_pat *g, const zc_rl_pat *s, int depth)
{
    if (s->kind != ZC_RP_NODE || g->op != s->op || g->pointwise != s->pointwise) return false;
    if (g->optional || s->optional || zc_rl_has_runs(g) || zc_rl_has_runs(s)) return false;
    if (g->args.n != s->args.n && !(g->rest && g->args.n <= s->args.n)) return false;
    if (s->rest && !g->rest) return false;
    if (!fits_attrs(f, g, s)) return false;
    const zc_rl_pat *saved[ZC_RL_VARS_MAX];
    memcpy(saved, f->bound, sizeof saved);
    if (fits_args(f, g, s, false, depth)) return true;
    memcpy(f->bound, saved, sizeof saved);
    bool may_swap = (zc_op_get(g->op)->flags & ZC_OPF_COMMUTATIVE) && g->args.n == 2;
    return may_swap && s->args.n >= 2 && fits_args(f, g, s, true, depth);
}

static unsigned flags_of(const fit *f, const zc_rl_pat *s)
{
    if (s->kind == ZC_RP_NUM) return ZC_RC_CONST;
    return s->kind == ZC_RP_NAME && s->var >= 0 ? f->special->vars[s->var].flags : 0;
}

static zc_dtype dtype_of(const fit *f, const zc_rl_pat *s)
{
    return s->kind == ZC_RP_NAME && s->var >= 0 ? f->special->vars[s->var].dtype : ZC_NONE;
}

static bool same_part(const zc_rl_pat *a, const zc_rl_pat *b)
{
    return a == b || (a->kind == ZC_RP_NAME && b->kind == ZC_RP_NAME && a->var == b->var);
}

static bool fits_leaf(fit *f, const zc_rl_pat *g, const zc_rl_pat *s)
{
    const zc_rl_var *v = &f->general->vars[g->var];
    if (f->bound[g->var]) return same_part(f->bound[g->var], s);
    unsigned need = v->flags & (ZC_RC_CONST | ZC_RC_SCALAR);
    if (need & ~flags_of(f, s)) return false;
    if (v->dtype != ZC_NONE && v->dtype != dtype_of(f, s)) return false;
    f->bound[g->var] = s;
    return true;
}

static bool fits_name(fit *f, const zc_rl_pat *g, const zc_rl_pat *s, int depth)
{
    if (g->var < 0) return false;
    int stmt = f->general->vars[g->var].stmt;
    if (stmt < 0) return fits_leaf(f, g, s);
    if (f->bound[g->var]) return same_part(f->bound[g->var], s);
    const zc_rl_pat *body = zc_rl_stmt_at(&f->general->match, stmt)->pat;
    if (body->nouts != 1 || !fits(f, body, s, depth + 1)) return false;
    f->bound[g->var] = s;
    return true;
}

static bool fits_any(fit *f, const zc_rl_pat *g, const zc_rl_pat *s, int depth)
{
    for (int i = 0; i < g->args.n; i++) {
        const zc_rl_pat *saved[ZC_RL_VARS_MAX];
        memcpy(saved, f->bound, sizeof saved);
        if (fits(f, zc_rl_pat_at(&g->args, i), s, depth + 1)) return true;
        memcpy(f->bound, saved, sizeof saved);
    }
    return false;
}

static bool fits(fit *f, const zc_rl_pat *g, const zc_rl_pat *s, int depth)
{
    enum {
        DEPTH_MAX = 12
    }; /* deeper pairs count as different: both tests only warn of the likely */
    bool may_lack = s->kind == ZC_RP_NAME && s->optional && !g->optional;
    if (depth > DEPTH_MAX || may_lack) return false;
    if (g->kind == ZC_RP_NAME) return fits_name(f, g, s, depth);
    if (g->kind == ZC_RP_ALT) return fits_any(f, g, defined(f, s), depth);
    s = defined(f, s);
    if (g->kind == ZC_RP_NODE) return fits_node(f, g, s, depth);
    if (g->kind == ZC_RP_ABSENT) return s->kind == ZC_RP_ABSENT;
    return g->kind == ZC_RP_NUM && s->kind == ZC_RP_NUM &&
           zc_rl_near(g->num, s->num, ZC_RL_TOLERANCE);
}

/* Of one root and one result: what these tests understand. */
static bool is_simple(const zc_rl_rule *rule)
{
    return !rule->broken && rule->nvars && rule->nextra == 0 &&
           zc_rl_stmt_at(&rule->match, rule->root)->pat->nouts == 1;
}

/* Every condition of the general rule is one of the special rule. */
static bool has_conditions(const fit *f)
{
    for (int i = 0; i < f->general->where.n; i++) {
        bool found = false;
        for (int k = 0; !found && k < f->special->where.n; k++)
            found = same_expr(f, zc_rl_expr_at(&f->general->where, i),
                              zc_rl_expr_at(&f->special->where, k));
        if (!found) return false;
    }
    return true;
}

static bool forestalls(const zc_rl_rule *a, const zc_rl_rule *b)
{
    fit f = {.general = a, .special = b};
    if (!is_simple(a) || !is_simple(b)) return false;
    return fits(&f, zc_rl_stmt_at(&a->match, a->root)->pat, zc_rl_stmt_at(&b->match, b->root)->pat,
                0) &&
           has_conditions(&f);
}

static void warn_shadowed(zc_rules *r, size_t a, size_t b)
{
    /* That a user's rule stands in for a built-in one is no mistake. */
    const zc_rl_rule *first = r->rules.data[a], *second = r->rules.data[b];
    if (zc_rl_precedence(r, (uint32_t)b, (uint32_t)a) < 0) {
        const zc_rl_rule *t = first;
        first = second;
        second = t;
    }
    if (r->files.data[second->file].is_builtin || !forestalls(first, second)) return;
    zc_rl_warn(r, second->file, second->name.loc,
               "rule '%s' never applies: '%s' (%s:%d) matches the same before it",
               second->name.text, first->name.text, r->files.data[first->file].name,
               first->name.loc.line);
}

/* Does what the rule emits match it again? */
static void check_loop(zc_rules *r, zc_rl_rule *rule)
{
    fit f = {.general = rule, .special = rule, .by_emit = true};
    if (!is_simple(rule)) return;
    const zc_rl_pat *root = zc_rl_stmt_at(&rule->match, rule->root)->pat;
    const zc_rl_var *out = root->outs[0] >= 0 ? &rule->vars[root->outs[0]] : NULL;
    if (!out || out->emit < 0) return;
    if (!fits(&f, root, zc_rl_stmt_at(&rule->emit, out->emit)->pat, 0)) return;
    if (rule->where.n) {
        zc_rl_warn(r, rule->file, rule->name.loc,
                   "rule '%s' may match what it emits, again and again", rule->name.text);
    } else {
        rule->broken = true;
        zc_rl_error(r, rule->file, rule->name.loc,
                    "rule '%s' matches what it emits, again and again", rule->name.text);
    }
}

void zc_rl_check_set(zc_rules *r, size_t first_rule)
{
    enum { PAIRS_MAX = 1 << 16 }; /* of a set with more, the rest goes unwarned */
    size_t pairs = 0;
    for (size_t i = first_rule; i < r->rules.len; i++) {
        check_loop(r, r->rules.data[i]);
        for (size_t j = 0; j < i && pairs < PAIRS_MAX; j++, pairs++) warn_shadowed(r, j, i);
    }
}
