/* Rules by themselves: names, connection, both sides. */
#include "rules/check.h"

#include <string.h>

#include "rules/binding/binding.h"

/* ---- variables ---- */

int zc_rl_var_find(const zc_rl_rule *rule, const char *name)
{
    for (int i = 0; i < rule->nvars; i++)
        if (strcmp(rule->vars[i].name, name) == 0) return i;
    return -1;
}

int zc_rl_var_add(zc_rl_checker *c, const char *name, zc_rl_loc loc, zc_rl_var_kind kind)
{
    zc_rl_rule *rule = c->rule;
    if (rule->nvars == ZC_RL_VARS_MAX) {
        zc_rl_fault(c, loc, "too many names in one rule (need at most %d)", ZC_RL_VARS_MAX);
        return -1;
    }
    rule->vars[rule->nvars] = (zc_rl_var){
        .name = name, .loc = loc, .kind = kind, .stmt = -1, .emit = -1, .in_match = !c->in_emit};
    return rule->nvars++;
}

static const char *var_name(const void *ctx, int i)
{
    const zc_rl_rule *rule = ctx;
    return i < rule->nvars ? rule->vars[i].name : NULL;
}

void zc_rl_unbound(zc_rl_checker *c, const char *name, zc_rl_loc loc)
{
    zc_buf hint = {0};
    zc_rl_suggest(&hint, name, var_name, c->rule);
    zc_rl_fault(c, loc, "'%s' is not bound by match%s", name, hint.data ? hint.data : "");
    zc_buf_fini(&hint);
}

/* ---- the match side ---- */

static void match_pat(zc_rl_checker *c, zc_rl_pat *p);

static void merge_kinds(zc_rl_checker *c, zc_rl_var *v, const zc_rl_pat *p)
{
    if (p->dtype != ZC_NONE && v->dtype != ZC_NONE && p->dtype != v->dtype)
        zc_rl_fault(c, p->loc, "'%s' has another element type elsewhere (got %s and %s)", v->name,
                    zc_dtype_name(p->dtype), zc_dtype_name(v->dtype));
    if (p->dtype != ZC_NONE) v->dtype = p->dtype;
    v->flags |= p->flags;
}

static void match_name(zc_rl_checker *c, zc_rl_pat *p)
{
    if (p->of && !zc_rl_add_collected(c, p->of)) return;
    int var = zc_rl_var_find(c->rule, p->text);
    if (var >= 0 && (p->optional || c->rule->vars[var].is_optional))
        zc_rl_fault(c, p->loc, "'%s' may be left out, so it stands in one place of match", p->text);
    if (var >= 0) {
        if (c->rule->vars[var].kind == ZC_RV_ATTR)
            zc_rl_fault(c, p->loc, "'%s' is an attribute", p->text);
        if (c->rule->vars[var].kind == ZC_RV_LIST)
            zc_rl_fault(c, p->loc, "'%s' stands for several values", p->text);
        c->rule->vars[var].uses++;
    } else {
        var = zc_rl_var_add(c, p->text, p->loc, ZC_RV_VALUE);
        if (var < 0) return;
        c->rule->vars[var].is_optional = p->optional;
        c->rule->vars[var].maybe = p->optional || c->optional > 0;
    }
    if (c->optional == 0 && !p->optional && !c->rule->vars[var].is_listed)
        c->rule->vars[var].maybe = false;
    p->var = var;
    merge_kinds(c, &c->rule->vars[var], p);
    if (c->rule->vars[var].stmt >= 0 && (c->rule->vars[var].flags & ZC_RC_CONST))
        zc_rl_fault(c, p->loc, "'%s' is computed, so it is no constant", p->text);
}

/* ---- the same operation twice ---- */

static bool same_value(const zc_rl_expr *a, const zc_rl_expr *b)
{
    bool has_text = a->kind == ZC_RE_STR || a->kind == ZC_RE_NAME || a->kind == ZC_RE_CALL;
    if (a->kind != b->kind || a->args.n != b->args.n) return false;
    if (has_text && strcmp(a->text, b->text) != 0) return false;
    if (a->kind == ZC_RE_INT && a->i != b->i) return false;
    if (a->kind == ZC_RE_REAL && a->real != b->real) return false;
    for (int i = 0; i < a->args.n; i++)
        if (!same_value(zc_rl_expr_at(&a->args, i), zc_rl_expr_at(&b->args, i))) return false;
    return true;
}

static bool same_attrs(const zc_rl_pat *a, const zc_rl_pat *b)
{
    if (a->attrs.n != b->attrs.n || a->any_attrs != b->any_attrs) return false;
    for (int i = 0; i < a->attrs.n; i++) {
        const zc_rl_attr *x = zc_rl_attr_at(&a->attrs, i), *y = zc_rl_attr_at(&b->attrs, i);
        if (strcmp(x->name.text, y->name.text) != 0 || x->op != y->op ||
            !same_value(x->value, y->value))
            return false;
    }
    return true;
}

/* Do both say the same, so that one operation can be both? */
static bool same_pat(const zc_rl_pat *a, const zc_rl_pat *b)
{
    bool is_plain = !a->optional && !b->optional && !a->base && !b->base && !a->run && !b->run;
    if (a->kind != b->kind || !is_plain || a->rest != b->rest) return false;
    if (a->kind == ZC_RP_ABSENT) return true;
    if (a->kind == ZC_RP_NUM) return a->num == b->num && a->tol == b->tol;
    if (a->kind == ZC_RP_NAME) return strcmp(a->text, b->text) == 0;
    if (a->kind != ZC_RP_NODE || strcmp(a->text, b->text) != 0 || a->args.n != b->args.n)
        return false;
    for (int i = 0; i < a->args.n; i++)
        if (!same_pat(zc_rl_pat_at(&a->args, i), zc_rl_pat_at(&b->args, i))) return false;
    return same_attrs(a, b);
}

static int twin_of(const zc_rl_rule *rule, const zc_rl_pat *p)
{
    for (int i = 0; i < p->node; i++)
        if (same_pat(rule->nodes[i], p)) return i;
    return p->node;
}

static bool add_node(zc_rl_checker *c, zc_rl_pat *p)
{
    zc_rl_rule *rule = c->rule;
    if (rule->nnodes == ZC_RL_NODES_MAX) {
        zc_rl_fault(c, p->loc, "too many operations in match (need at most %d)", ZC_RL_NODES_MAX);
        return false;
    }
    p->node = p->twin = rule->nnodes;
    rule->nodes[rule->nnodes++] = p;
    p->choice = c->choice;
    p->branch = c->branch;
    return true;
}

/* A chain of n operands takes n - 1 operations: the last is the pattern's own. */
static void add_links(zc_rl_checker *c, zc_rl_pat *p)
{
    p->links = c->rule->nnodes;
    for (int i = 0; i < p->args.n - 2; i++) {
        zc_rl_pat *link = zc_rl_new(c->r, sizeof *link);
        if (!link) return;
        *link = (zc_rl_pat){.kind = ZC_RP_NODE,
                            .loc = p->loc,
                            .text = p->text,
                            .op = p->op,
                            .through = -1,
                            .like = -1,
                            .is_copy = true,
                            .is_link = true};
        if (!add_node(c, link)) return;
        c->rule->nsure += !zc_rl_has_runs(p);
    }
}

static void match_operands(zc_rl_checker *c, zc_rl_pat *p)
{
    for (int i = 0; i < p->args.n; i++) {
        zc_rl_pat *a = zc_rl_pat_at(&p->args, i);
        bool passes = p->optional && i == p->through;
        c->optional += (a->run > 0) - passes;
        match_pat(c, a);
        c->optional -= (a->run > 0) - passes;
    }
}

static void match_node(zc_rl_checker *c, zc_rl_pat *p)
{
    zc_rl_rule *rule = c->rule;
    if (!add_node(c, p)) return;
    p->is_nested = p != zc_rl_stmt_at(&rule->match, c->stmt)->pat;
    p->twin = twin_of(rule, p);
    rule->nsure += !p->is_extra;
    if (!p->base) p->through = p->optional ? zc_rl_through(p) : -1;
    if (p->optional && !p->base && p->through < 0)
        zc_rl_fault(c, p->loc, "an optional operation needs an operand that is no constant");
    if (zc_rl_check_op(c, p) && p->is_chain) add_links(c, p);
    /* What a named pattern is repeated on is there in any case. */
    if (p->base && p->through < 0) match_pat(c, p->base);
    c->optional += p->optional;
    match_operands(c, p);
    c->optional -= p->optional;
}

static void match_choice(zc_rl_checker *c, zc_rl_pat *p)
{
    bool is_outermost = c->choice == 0;
    if (is_outermost) c->choice = ++c->choices;
    c->optional++;
    for (int i = 0; i < p->args.n; i++) {
        if (is_outermost) c->branch = i;
        match_pat(c, zc_rl_pat_at(&p->args, i));
    }
    c->optional--;
    if (is_outermost) c->choice = c->branch = 0;
}

static void match_pat(zc_rl_checker *c, zc_rl_pat *p)
{
    if (p->spread) {
        zc_rl_fault(c, p->loc, "dots stand among the operands of an operation");
        return;
    }
    switch (p->kind) {
    case ZC_RP_NAME:
        match_name(c, p);
        break;
    case ZC_RP_NODE:
        match_node(c, p);
        break;
    case ZC_RP_ALT:
        match_choice(c, p);
        break;
    case ZC_RP_LIST:
        zc_rl_fault(c, p->loc, "a list stands in emit only; match a name and compare element()");
        break;
    case ZC_RP_NUM:
        if (p->computed)
            zc_rl_fault(c, p->loc,
                        "a computed number stands in emit only; match a name and compare value()");
        break;
    case ZC_RP_ABSENT:
    case ZC_RP_REST:
        break;
    }
}

static void bind_out(zc_rl_checker *c, zc_rl_stmt *st, int i)
{
    const zc_rl_pat *out = zc_rl_pat_at(&st->outs, i);
    int var = -1;
    if (out->kind == ZC_RP_NAME) {
        int old = zc_rl_var_find(c->rule, out->text);
        if (old >= 0)
            zc_rl_fault(c, out->loc, "'%s' is named before the statement that defines it (line %d)",
                        out->text, c->rule->vars[old].loc.line);
        else
            var = zc_rl_var_add(c, out->text, out->loc, ZC_RV_VALUE);
    }
    if (var >= 0) {
        c->rule->vars[var].stmt = c->stmt;
        merge_kinds(c, &c->rule->vars[var], out);
        if (out->flags & ZC_RC_CONST)
            zc_rl_fault(c, out->loc, "'%s' is computed, so it is no constant", out->text);
    }
    st->pat->outs[i] = var;
}

static void match_stmt(zc_rl_checker *c, zc_rl_stmt *st)
{
    zc_rl_pat *p = st->pat;
    match_pat(c, p);
    if (p->kind != ZC_RP_NODE && p->kind != ZC_RP_ALT) {
        zc_rl_fault(c, p->loc, "a statement of match needs an operation");
        return;
    }
    int most = p->kind == ZC_RP_NODE && p->op ? zc_op_get(p->op)->max_out : 1;
    if (p->kind == ZC_RP_ALT || p->optional) most = 1;
    if (most > (int)ZC_COUNTOF(p->outs)) most = (int)ZC_COUNTOF(p->outs);
    if (st->outs.n > most) {
        zc_rl_fault(c, st->loc, "too many results (got %d, need at most %d)", st->outs.n, most);
        return;
    }
    p->nouts = st->outs.n;
    for (int i = 0; i < st->outs.n; i++) bind_out(c, st, i);
}

/* ---- the emit side ---- */

static void emit_pat(zc_rl_checker *c, zc_rl_pat *p);

/* What one operand with dots behind it is made from is collected together. */
static void join_group(zc_rl_checker *c, const zc_rl_pat *p, const zc_rl_var *v)
{
    if (c->list < 0)
        c->list = p->var;
    else if (c->rule->vars[c->list].group != v->group)
        zc_rl_fault(c, p->loc, "'%s' and '%s' are not collected together", p->text,
                    c->rule->vars[c->list].name);
}

static void emit_name(zc_rl_checker *c, zc_rl_pat *p)
{
    int var = zc_rl_var_find(c->rule, p->text);
    if (p->flags || p->dtype != ZC_NONE) zc_rl_fault(c, p->loc, "kinds of values stand in match");
    if (p->optional) zc_rl_fault(c, p->loc, "'?' stands in match only");
    if (var < 0) {
        zc_rl_unbound(c, p->text, p->loc);
        return;
    }
    zc_rl_var *v = &c->rule->vars[var];
    p->var = var;
    v->uses++;
    if (v->kind == ZC_RV_ATTR) zc_rl_fault(c, p->loc, "'%s' is an attribute", p->text);
    if (v->kind == ZC_RV_LIST && !p->spread)
        zc_rl_fault(c, p->loc, "'%s' stands for several values (need %s...)", p->text, p->text);
    if (v->kind == ZC_RV_LIST && c->in_each) join_group(c, p, v);
    if (v->kind != ZC_RV_LIST && p->spread)
        zc_rl_fault(c, p->loc, "'%s' stands for one value, without the dots", p->text);
    if (v->is_output && v->emit < 0)
        zc_rl_fault(c, p->loc, "'%s' is used before emit defines it", p->text);
    if (v->stmt >= 0 && v->emit < 0) v->flags |= ZC_RC_SHARED; /* it stays */
}

/* Behind other patterns than names, dots make one for each of what is collected. */
static void emit_operand(zc_rl_checker *c, zc_rl_pat *p)
{
    if (!p->spread || p->kind == ZC_RP_NAME) {
        emit_pat(c, p);
        return;
    }
    if (c->in_each) zc_rl_fault(c, p->loc, "dots within dots stand behind names");
    c->in_each = true;
    c->list = -1;
    emit_pat(c, p);
    c->in_each = false;
    p->var = c->list;
    if (p->var < 0)
        zc_rl_fault(c, p->loc, "dots behind what collects nothing (need dots behind a name in it)");
}

static void emit_pat(zc_rl_checker *c, zc_rl_pat *p)
{
    switch (p->kind) {
    case ZC_RP_NAME:
        emit_name(c, p);
        break;
    case ZC_RP_NODE:
        zc_rl_check_op(c, p);
        for (int i = 0; i < p->args.n; i++) emit_operand(c, zc_rl_pat_at(&p->args, i));
        break;
    case ZC_RP_ALT:
        zc_rl_fault(c, p->loc, "alternatives stand in match only");
        break;
    case ZC_RP_LIST:
        for (int i = 0; i < p->args.n; i++)
            zc_rl_check_expr_is(c, zc_rl_expr_at(&p->args, i), ZC_RT_INT);
        break;
    case ZC_RP_NUM:
        if (p->tol != 0) zc_rl_fault(c, p->loc, "tolerances stand in match");
        if (p->computed && c->in_kernel)
            zc_rl_fault(c, p->loc, "the numbers of a meaning are written out");
        else if (p->computed)
            zc_rl_check_expr_is(c, p->computed, ZC_RT_NUM);
        break;
    case ZC_RP_REST:
        zc_rl_fault(c, p->loc, "'...' stands in match only");
        break;
    case ZC_RP_ABSENT:
        break;
    }
}

static void emit_out(zc_rl_checker *c, zc_rl_stmt *st, int i)
{
    const zc_rl_pat *out = zc_rl_pat_at(&st->outs, i);
    st->pat->outs[i] = -1;
    if (out->kind != ZC_RP_NAME) return;
    int var = zc_rl_var_find(c->rule, out->text);
    if (var < 0) var = zc_rl_var_add(c, out->text, out->loc, ZC_RV_VALUE);
    if (var < 0) return;
    zc_rl_var *v = &c->rule->vars[var];
    if (v->emit >= 0)
        zc_rl_fault(c, out->loc, "emit defines '%s' twice", out->text);
    else if (v->in_match && v->stmt < 0)
        zc_rl_fault(c, out->loc, "'%s' is an operand of match, which emit cannot define",
                    out->text);
    v->emit = c->stmt;
    st->pat->outs[i] = var;
}

static void emit_stmt(zc_rl_checker *c, zc_rl_stmt *st)
{
    zc_rl_pat *p = st->pat;
    emit_pat(c, p);
    int most = p->kernel                        ? p->kernel->nresults
               : p->kind == ZC_RP_NODE && p->op ? zc_op_get(p->op)->max_out
                                                : 1;
    if (most > (int)ZC_COUNTOF(p->outs)) most = (int)ZC_COUNTOF(p->outs);
    if (p->kind == ZC_RP_ABSENT) zc_rl_fault(c, p->loc, "a statement of emit needs a value");
    if (st->outs.n > most) {
        zc_rl_fault(c, st->loc, "too many results (got %d, need at most %d)", st->outs.n, most);
        return;
    }
    p->nouts = st->outs.n;
    for (int i = 0; i < st->outs.n; i++) emit_out(c, st, i);
}

void zc_rl_check_emit(zc_rl_checker *c)
{
    c->in_emit = true;
    for (c->stmt = 0; c->stmt < c->rule->emit.n; c->stmt++)
        emit_stmt(c, zc_rl_stmt_at(&c->rule->emit, c->stmt));
}

/* What match defines and emit defines again is an output; known before emit is read. */
static void find_outputs(zc_rl_checker *c)
{
    bool any = false;
    for (int i = 0; i < c->rule->emit.n; i++) {
        const zc_rl_stmt *st = zc_rl_stmt_at(&c->rule->emit, i);
        for (int j = 0; j < st->outs.n; j++) {
            const zc_rl_pat *out = zc_rl_pat_at(&st->outs, j);
            int var = out->kind == ZC_RP_NAME ? zc_rl_var_find(c->rule, out->text) : -1;
            if (var < 0 || c->rule->vars[var].stmt < 0) continue;
            c->rule->vars[var].is_output = any = true;
        }
    }
    if (!any)
        zc_rl_fault(c, c->rule->name.loc, "emit defines no result of match (need at least one)");
}

/* ---- connection ---- */

typedef struct reach {
    zc_rl_checker *c;
    bool stmt[ZC_RL_STMTS_MAX];
    bool var[ZC_RL_VARS_MAX];
} reach;

static void reach_pat(reach *r, const zc_rl_pat *p);

static void reach_stmt(reach *r, int i)
{
    if (r->stmt[i]) return;
    const zc_rl_stmt *st = zc_rl_stmt_at(&r->c->rule->match, i);
    r->stmt[i] = true;
    for (int k = 0; k < st->pat->nouts; k++)
        if (st->pat->outs[k] >= 0) r->var[st->pat->outs[k]] = true;
    reach_pat(r, st->pat);
}

static void reach_pat(reach *r, const zc_rl_pat *p)
{
    if (p->kind == ZC_RP_NAME && p->var >= 0) {
        r->var[p->var] = true;
        if (r->c->rule->vars[p->var].stmt >= 0) reach_stmt(r, r->c->rule->vars[p->var].stmt);
    }
    if (p->kind == ZC_RP_NODE || p->kind == ZC_RP_ALT)
        for (int i = 0; i < p->args.n; i++) reach_pat(r, zc_rl_pat_at(&p->args, i));
}

/* A variable among the operands of the operation, or of each alternative, that is bound already, or
 * -1. */
static int pivot_of(const reach *r, const zc_rl_pat *p)
{
    int pivot = -1;
    for (int k = 0; p->kind == ZC_RP_NODE && k < p->args.n; k++) {
        const zc_rl_pat *a = zc_rl_pat_at(&p->args, k);
        if (a->kind == ZC_RP_NAME && a->var >= 0 && r->var[a->var]) return a->var;
    }
    for (int k = 0; p->kind == ZC_RP_ALT && k < p->args.n; k++) {
        int one = pivot_of(r, zc_rl_pat_at(&p->args, k));
        if (one < 0 || (k && one != pivot)) return -1;
        pivot = one;
    }
    return pivot;
}

static bool reach_more(reach *r)
{
    zc_rl_rule *rule = r->c->rule;
    for (int i = rule->match.n - 1; i >= 0; i--) {
        bool is_taken = r->stmt[i] || zc_rl_stmt_at(&rule->match, i)->is_repeated;
        int pivot = is_taken ? -1 : pivot_of(r, zc_rl_stmt_at(&rule->match, i)->pat);
        if (pivot < 0) continue;
        rule->extra[rule->nextra].stmt = i;
        rule->extra[rule->nextra++].pivot = pivot;
        reach_stmt(r, i);
        return true;
    }
    return false;
}

/* Every statement is reached from the last one, or through the users of a value it shares. */
static void check_connection(zc_rl_checker *c)
{
    reach r = {.c = c};
    zc_rl_rule *rule = c->rule;
    rule->root = rule->match.n - 1;
    reach_stmt(&r, rule->root);
    while (reach_more(&r)) {
    }
    for (int i = 0; i < rule->match.n; i++) {
        const zc_rl_stmt *st = zc_rl_stmt_at(&rule->match, i);
        if (!r.stmt[i])
            zc_rl_fault(c, st->loc,
                        st->is_repeated ? "what a repeated pattern computes is part of its result"
                                        : "this statement shares no value with the others");
    }
}

/* Can the root be any value at all? Then nothing says where to look. */
static bool is_open(const zc_rl_rule *rule, const zc_rl_pat *p, int depth)
{
    if (depth > ZC_RL_STMTS_MAX) return true;
    switch (p->kind) {
    case ZC_RP_NAME: {
        int stmt = p->var >= 0 ? rule->vars[p->var].stmt : -1;
        return stmt < 0 || is_open(rule, zc_rl_stmt_at(&rule->match, stmt)->pat, depth + 1);
    }
    case ZC_RP_NODE:
        return p->optional && p->through >= 0 &&
               is_open(rule, zc_rl_pat_at(&p->args, p->through), depth + 1);
    case ZC_RP_ALT:
        for (int i = 0; i < p->args.n; i++)
            if (is_open(rule, zc_rl_pat_at(&p->args, i), depth + 1)) return true;
        return false;
    case ZC_RP_NUM:
    case ZC_RP_ABSENT:
    case ZC_RP_LIST:
    case ZC_RP_REST:
        return true;
    }
    return true;
}

/* ---- names that nobody uses ---- */

static void check_unused(zc_rl_checker *c)
{
    for (int i = 0; i < c->rule->nvars; i++) {
        const zc_rl_var *v = &c->rule->vars[i];
        if (v->uses || v->is_output || v->is_listed || v->name[0] == '_') continue;
        zc_rl_warn(c->r, c->file, v->loc, "'%s' is never used (a name that begins with _ may be)",
                   v->name);
    }
}

bool zc_rl_alloc_rule(zc_rules *r, zc_rl_rule *rule)
{
    rule->vars = zc_arena_alloc(&r->arena, ZC_RL_VARS_MAX, sizeof *rule->vars);
    rule->nodes = zc_arena_alloc(&r->arena, ZC_RL_NODES_MAX, sizeof *rule->nodes);
    if (rule->vars && rule->nodes) return true;
    r->nomem = true;
    return false;
}

static bool is_sized(zc_rl_checker *c)
{
    int most = c->rule->match.n > c->rule->emit.n ? c->rule->match.n : c->rule->emit.n;
    if (most <= ZC_RL_STMTS_MAX && c->rule->where.n <= ZC_RL_LIST_MAX) return true;
    zc_rl_fault(c, c->rule->name.loc, "rule too long (need at most %d statements on a side)",
                ZC_RL_STMTS_MAX);
    return false;
}

static bool is_of_elements(zc_rl_function f)
{
    return f == ZC_RF_value || f == ZC_RF_element || f == ZC_RF_least || f == ZC_RF_greatest ||
           f == ZC_RF_repeats || f == ZC_RF_halves;
}

/* What the condition speaks of. */
static void note_condition(zc_rl_rule *rule, const zc_rl_expr *e, uint64_t bit)
{
    if (e->kind == ZC_RE_NAME && e->word == ZC_RW_VAR) rule->vars[e->index].where |= bit;
    if (e->kind == ZC_RE_CALL && e->index == ZC_RF_uses) rule->of_uses |= bit;
    if (e->kind == ZC_RE_CALL && is_of_elements((zc_rl_function)e->index))
        rule->vars[zc_rl_expr_at(&e->args, 0)->index].of_data |= bit;
    for (int i = 0; i < e->args.n; i++) note_condition(rule, zc_rl_expr_at(&e->args, i), bit);
}

static void check_conditions(zc_rl_checker *c)
{
    c->each = true;
    for (int i = 0; i < c->rule->where.n; i++) {
        zc_rl_expr *e = zc_rl_expr_at(&c->rule->where, i);
        c->list = -1;
        zc_rl_check_expr_is(c, e, ZC_RT_BOOL);
        e->list = c->list;
    }
    c->each = false;
}

static void check_rule(zc_rules *r, zc_rl_rule *rule)
{
    zc_rl_checker c = {.r = r, .rule = rule, .file = rule->file};
    if (!zc_rl_expand(&c) || !is_sized(&c) || !zc_rl_alloc_rule(r, rule)) return;
    for (c.stmt = 0; c.stmt < rule->match.n; c.stmt++)
        match_stmt(&c, zc_rl_stmt_at(&rule->match, c.stmt));
    check_conditions(&c);
    find_outputs(&c);
    zc_rl_check_emit(&c);
    if (rule->broken) return;
    for (int i = 0; i < rule->where.n; i++)
        note_condition(rule, zc_rl_expr_at(&rule->where, i), UINT64_C(1) << i);
    check_connection(&c);
    if (!rule->broken && is_open(rule, zc_rl_stmt_at(&rule->match, rule->root)->pat, 0))
        zc_rl_fault(&c, zc_rl_stmt_at(&rule->match, rule->root)->loc,
                    "the last statement of match must be an operation in every case");
    if (!rule->broken) check_unused(&c);
}

/* ---- names of definitions ---- */

const zc_rl_pointwise *zc_rl_find_pointwise(const zc_rules *r, const char *name)
{
    for (size_t i = 0; i < r->pointwise.len; i++)
        if (strcmp(r->pointwise.data[i]->name.text, name) == 0) return r->pointwise.data[i];
    return NULL;
}

const zc_rl_kernel *zc_rl_find_kernel(const zc_rules *r, const char *name)
{
    for (size_t i = 0; i < r->kernels.len; i++)
        if (strcmp(r->kernels.data[i]->name.text, name) == 0) return r->kernels.data[i];
    return NULL;
}

static void check_name(zc_rules *r, const zc_rl_name *name, int file)
{
    const zc_rl_pointwise *p = zc_rl_find_pointwise(r, name->text);
    const zc_rl_kernel *k = zc_rl_find_kernel(r, name->text);
    const zc_rl_name *first = p ? &p->name : &k->name;
    if (first != name)
        zc_rl_error(r, file, name->loc, "a second definition '%s' (the first: %s:%d)", name->text,
                    r->files.data[p ? p->file : k->file].name, first->loc.line);
    if (zc_op_find(name->text, strlen(name->text)) != ZC_OP_NONE)
        zc_rl_error(r, file, name->loc, "'%s' is an operation already", name->text);
}

/* A user's rule replaces a built-in one of its name. */
static void check_rule_name(zc_rules *r, size_t i)
{
    zc_rl_rule *rule = r->rules.data[i];
    bool is_builtin = r->files.data[rule->file].is_builtin;
    for (size_t j = 0; j < i; j++) {
        zc_rl_rule *first = r->rules.data[j];
        if (strcmp(first->name.text, rule->name.text) != 0) continue;
        if (r->files.data[first->file].is_builtin && !is_builtin) {
            first->disabled = true;
            continue;
        }
        rule->broken = true;
        zc_rl_error(r, rule->file, rule->name.loc, "a second rule '%s' (the first: %s:%d)",
                    rule->name.text, r->files.data[first->file].name, first->name.loc.line);
        return;
    }
}

void zc_rl_check(zc_rules *r, size_t first_rule, size_t first_pw, size_t first_kernel,
                 size_t first_define)
{
    for (size_t i = first_pw; !r->nomem && i < r->pointwise.len; i++) {
        check_name(r, &r->pointwise.data[i]->name, r->pointwise.data[i]->file);
        zc_rl_check_pointwise(r, r->pointwise.data[i]);
    }
    for (size_t i = first_kernel; !r->nomem && i < r->kernels.len; i++) {
        check_name(r, &r->kernels.data[i]->name, r->kernels.data[i]->file);
        zc_rl_check_kernel(r, r->kernels.data[i]);
    }
    for (size_t i = first_define; !r->nomem && i < r->defines.len; i++)
        zc_rl_check_define(r, r->defines.data[i]);
    for (size_t i = first_rule; !r->nomem && i < r->rules.len; i++) {
        check_rule_name(r, i);
        check_rule(r, r->rules.data[i]);
    }
}
