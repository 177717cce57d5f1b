/* Named conditions and patterns: what they stand for takes the place of their calls before a rule
 * is checked. A body is expanded when it is defined, with what was defined before it, so nothing
 * calls itself. Copies stand where the call stands: that is where messages point. */
#include <string.h>

#include "rules/check.h"

/* Nodes copied for one rule. */
#define COPIES_MAX 20000

typedef struct expander {
    zc_rl_checker *c;
    const zc_rl_define *d; /* whose body is being copied */
    const zc_rl_pat *call; /* or NULL: an expression's */
    const zc_rl_expr *expr;
    zc_rl_loc loc;
    int serial; /* of the call, which its own names bear */
} expander;

/* ---- definitions ---- */

static bool is_builtin(const zc_rules *r, int file)
{
    return r->files.data[file].is_builtin;
}

/* A user's files see their own; built-in ones stay among themselves. */
static const zc_rl_define *find(const zc_rl_checker *c, const char *name, bool is_pattern)
{
    const zc_rules *r = c->r;
    for (size_t i = r->defines.len; i-- > 0;) {
        const zc_rl_define *d = r->defines.data[i];
        if (d->is_done && d->is_pattern == is_pattern && strcmp(d->name.text, name) == 0 &&
            is_builtin(r, d->file) == is_builtin(r, c->file))
            return d;
    }
    return NULL;
}

static int param_of(const zc_rl_define *d, const char *name)
{
    for (int i = 0; i < d->params.n; i++)
        if (strcmp(((const zc_rl_name *)d->params.v[i])->text, name) == 0) return i;
    return -1;
}

/* ---- room ---- */

static bool may_copy(zc_rl_checker *c, zc_rl_loc loc)
{
    if (c->copies == COPIES_MAX)
        zc_rl_fault(c, loc, "its definitions make it too long (need at most %d parts)", COPIES_MAX);
    return ++c->copies <= COPIES_MAX;
}

static zc_rl_expr *new_expr(expander *x, const zc_rl_expr *like)
{
    zc_rl_expr *e = may_copy(x->c, x->loc) ? zc_rl_new(x->c->r, sizeof *e) : NULL;
    if (!e) return NULL;
    *e = *like;
    e->loc = x->loc;
    e->args = (zc_rl_list){.n = 0};
    return e;
}

static zc_rl_pat *new_pat(expander *x, const zc_rl_pat *like)
{
    zc_rl_pat *p = may_copy(x->c, x->loc) ? zc_rl_new(x->c->r, sizeof *p) : NULL;
    if (!p) return NULL;
    *p = *like;
    p->loc = x->loc;
    p->args = (zc_rl_list){.n = 0};
    return p;
}

/* Depth bounds what walks the tree. */
static void measure_expr(zc_rl_checker *c, zc_rl_expr *e)
{
    e->depth = 1;
    for (int i = 0; i < e->args.n; i++)
        if (zc_rl_expr_at(&e->args, i)->depth >= e->depth)
            e->depth = zc_rl_expr_at(&e->args, i)->depth + 1;
    if (e->depth <= ZC_RL_DEPTH_MAX) return;
    zc_rl_fault(c, e->loc, "nested too deep (need at most %d levels)", ZC_RL_DEPTH_MAX);
    e->kind = ZC_RE_INT;
    e->args.n = 0;
}

static void measure_pat(zc_rl_checker *c, zc_rl_pat *p)
{
    p->depth = 1;
    for (int i = 0; (p->kind == ZC_RP_NODE || p->kind == ZC_RP_ALT) && i < p->args.n; i++)
        if (zc_rl_pat_at(&p->args, i)->depth >= p->depth)
            p->depth = zc_rl_pat_at(&p->args, i)->depth + 1;
    if (p->depth <= ZC_RL_NODES_MAX) return;
    zc_rl_fault(c, p->loc, "nested too deep (need at most %d levels)", ZC_RL_NODES_MAX);
    p->args.n = 0;
}

/* ---- copies ---- */

/* A name of the body's own: no text can name it, and nobody is told that it is unused. */
static const char *own_name(expander *x, const char *text)
{
    zc_buf name = {0};
    zc_buf_printf(&name, "_%d.%s", x->serial, text);
    const char *out = name.failed ? NULL : zc_arena_strdup(&x->c->r->arena, name.data);
    zc_buf_fini(&name);
    if (!out) x->c->r->nomem = true;
    return out;
}

/* An argument of a pattern, where the body has an expression. */
static zc_rl_expr *as_expr(expander *x, const zc_rl_expr *e, const zc_rl_pat *arg)
{
    zc_rl_expr *out = new_expr(x, e);
    if (!out) return NULL;
    if (arg->kind == ZC_RP_NAME) {
        out->text = arg->text;
    } else if (arg->kind == ZC_RP_NUM) {
        out->kind = arg->is_int ? ZC_RE_INT : ZC_RE_REAL;
        out->real = arg->num;
        out->i = arg->is_int ? (int64_t)arg->num : 0;
    } else {
        zc_rl_fault(x->c, arg->loc, "'%s' is a name or a number here", e->text);
    }
    return out;
}

static zc_rl_expr *copy_expr(expander *x, zc_rl_expr *e)
{
    int param = e->kind == ZC_RE_NAME ? param_of(x->d, e->text) : -1;
    if (param >= 0 && x->expr) return zc_rl_expr_at(&x->expr->args, param);
    if (param >= 0) return as_expr(x, e, zc_rl_pat_at(&x->call->args, param));
    zc_rl_expr *out = new_expr(x, e);
    if (!out) return NULL;
    if (e->kind == ZC_RE_NAME && !zc_rl_is_word(e->text)) out->text = own_name(x, e->text);
    for (int i = 0; i < e->args.n; i++) {
        zc_rl_expr *arg = copy_expr(x, zc_rl_expr_at(&e->args, i));
        if (!arg || !zc_rl_push(x->c->r, &out->args, arg)) return NULL;
    }
    measure_expr(x->c, out);
    return out;
}

static zc_rl_pat *copy_name(expander *x, const zc_rl_pat *p)
{
    int param = param_of(x->d, p->text);
    zc_rl_pat *arg = param >= 0 ? zc_rl_pat_at(&x->call->args, param) : NULL;
    bool is_plain = !p->flags && p->dtype == ZC_NONE && !p->spread;
    if (arg && is_plain) return arg;
    if (arg && arg->kind != ZC_RP_NAME) zc_rl_fault(x->c, arg->loc, "'%s' is a name here", p->text);
    zc_rl_pat *out = new_pat(x, p);
    if (!out) return NULL;
    out->text = arg && arg->kind == ZC_RP_NAME ? arg->text : own_name(x, p->text);
    if (arg) out->flags |= arg->flags;
    if (arg && out->dtype == ZC_NONE) out->dtype = arg->dtype;
    return out->text ? out : NULL;
}

static bool copy_attrs(expander *x, const zc_rl_pat *p, zc_rl_pat *out)
{
    out->attrs = (zc_rl_list){.n = 0};
    for (int i = 0; i < p->attrs.n; i++) {
        zc_rl_attr *a = zc_rl_new(x->c->r, sizeof *a);
        if (!a) return false;
        *a = *zc_rl_attr_at(&p->attrs, i);
        a->name.loc = x->loc;
        a->value = copy_expr(x, a->value);
        if (!a->value || !zc_rl_push(x->c->r, &out->attrs, a)) return false;
    }
    return true;
}

static zc_rl_pat *copy_pat(expander *x, const zc_rl_pat *p)
{
    if (p->kind == ZC_RP_NAME) return copy_name(x, p);
    zc_rl_pat *out = new_pat(x, p);
    if (!out || !copy_attrs(x, p, out)) return NULL;
    if (p->computed && !(out->computed = copy_expr(x, p->computed))) return NULL;
    for (int i = 0; i < p->args.n; i++) {
        void *arg = p->kind == ZC_RP_LIST ? (void *)copy_expr(x, zc_rl_expr_at(&p->args, i))
                                          : (void *)copy_pat(x, zc_rl_pat_at(&p->args, i));
        if (!arg || !zc_rl_push(x->c->r, &out->args, arg)) return NULL;
    }
    measure_pat(x->c, out);
    return out;
}

static zc_rl_stmt *copy_stmt(expander *x, const zc_rl_stmt *st)
{
    zc_rl_stmt *out = zc_rl_new(x->c->r, sizeof *out);
    if (!out) return NULL;
    *out = (zc_rl_stmt){.loc = x->loc, .pat = copy_pat(x, st->pat)};
    for (int i = 0; i < st->outs.n; i++) {
        zc_rl_pat *name = copy_pat(x, zc_rl_pat_at(&st->outs, i));
        if (!name || !zc_rl_push(x->c->r, &out->outs, name)) return NULL;
        if (name->kind != ZC_RP_NAME && name->kind != ZC_RP_ABSENT)
            zc_rl_fault(x->c, x->loc, "a result needs a name");
    }
    return out->pat ? out : NULL;
}

/* ---- calls in expressions ---- */

static bool has_args(zc_rl_checker *c, const zc_rl_define *d, int n, zc_rl_loc loc)
{
    if (n == d->params.n) return true;
    zc_rl_fault(c, loc, "wrong number of arguments for '%s' (got %d, need %d)", d->name.text, n,
                d->params.n);
    return false;
}

static zc_rl_expr *expand_expr(zc_rl_checker *c, zc_rl_expr *e);

/* Appends each of the definition's conditions. */
static bool put_call(zc_rl_checker *c, const zc_rl_define *d, const zc_rl_expr *e, zc_rl_list *out)
{
    expander x = {.c = c, .d = d, .expr = e, .loc = e->loc};
    if (!has_args(c, d, e->args.n, e->loc)) return true;
    for (int i = 0; i < d->exprs.n; i++) {
        zc_rl_expr *one = copy_expr(&x, zc_rl_expr_at(&d->exprs, i));
        if (!one || !zc_rl_push(c->r, out, one)) return false;
    }
    return true;
}

static zc_rl_expr *joined(expander *x, zc_rl_expr *a, zc_rl_expr *b)
{
    const zc_rl_expr both = {.kind = ZC_RE_AND, .index = -1, .list = -1};
    zc_rl_expr *e = a && b ? new_expr(x, &both) : NULL;
    if (!e || !zc_rl_push(x->c->r, &e->args, a) || !zc_rl_push(x->c->r, &e->args, b)) return NULL;
    measure_expr(x->c, e);
    return e;
}

/* In the middle of an expression, several conditions are one. */
static zc_rl_expr *expand_call(zc_rl_checker *c, const zc_rl_define *d, zc_rl_expr *e)
{
    expander x = {.c = c, .loc = e->loc};
    zc_rl_list parts = {.n = 0};
    if (!put_call(c, d, e, &parts)) return NULL;
    zc_rl_expr *out = parts.n ? parts.v[0] : e;
    for (int i = 1; out && i < parts.n; i++) out = joined(&x, out, parts.v[i]);
    return out;
}

static bool expand_args(zc_rl_checker *c, zc_rl_list *args)
{
    for (int i = 0; i < args->n; i++) {
        args->v[i] = expand_expr(c, args->v[i]);
        if (!args->v[i]) return false;
    }
    return true;
}

static zc_rl_expr *expand_expr(zc_rl_checker *c, zc_rl_expr *e)
{
    if (!expand_args(c, &e->args)) return NULL;
    measure_expr(c, e);
    const zc_rl_define *d = e->kind == ZC_RE_CALL ? find(c, e->text, false) : NULL;
    return d ? expand_call(c, d, e) : e;
}

static bool expand_conditions(zc_rl_checker *c, zc_rl_list *list)
{
    zc_rl_list out = {.n = 0};
    for (int i = 0; i < list->n; i++) {
        zc_rl_expr *e = zc_rl_expr_at(list, i);
        const zc_rl_define *d = e->kind == ZC_RE_CALL ? find(c, e->text, false) : NULL;
        if (d ? !expand_args(c, &e->args) || !put_call(c, d, e, &out)
              : !(e = expand_expr(c, e)) || !zc_rl_push(c->r, &out, e))
            return false;
    }
    *list = out;
    return true;
}

/* ---- calls in patterns ---- */

static bool expand_attrs(zc_rl_checker *c, const zc_rl_pat *p)
{
    for (int i = 0; i < p->attrs.n; i++) {
        zc_rl_attr *a = zc_rl_attr_at(&p->attrs, i);
        a->value = expand_expr(c, a->value);
        if (!a->value) return false;
    }
    return true;
}

/* The statements of the body go to `out`, but for what the last one computes, which takes the
 * call's place; where its result has a name of the caller's, that name does. */
static zc_rl_pat *put_pattern(zc_rl_checker *c, const zc_rl_define *d, zc_rl_pat *call,
                              zc_rl_list *out)
{
    expander x = {.c = c, .d = d, .call = call, .loc = call->loc, .serial = ++c->calls};
    const zc_rl_stmt *last = NULL;
    if (call->attrs.n || call->any_attrs || call->rest || call->optional || call->most > 1)
        zc_rl_fault(c, call->loc, "the pattern '%s' has operands alone", d->name.text);
    if (!has_args(c, d, call->args.n, call->loc)) return call;
    for (int i = 0; i < d->body.n; i++) {
        last = zc_rl_stmt_at(&d->body, i);
        const zc_rl_pat *name = last->outs.n ? zc_rl_pat_at(&last->outs, 0) : NULL;
        bool is_value = i + 1 == d->body.n && (!name || param_of(d, name->text) < 0);
        if (is_value) return copy_pat(&x, last->pat);
        zc_rl_stmt *st = copy_stmt(&x, last);
        if (!st || !zc_rl_push(c->r, out, st)) return NULL;
        if (i + 1 == d->body.n) return st->outs.v[0];
    }
    return call;
}

static zc_rl_pat *expand_pat(zc_rl_checker *c, zc_rl_pat *p, zc_rl_list *out)
{
    if (p->kind == ZC_RP_LIST) return expand_args(c, &p->args) ? p : NULL;
    if (p->computed && !(p->computed = expand_expr(c, p->computed))) return NULL;
    if (p->kind != ZC_RP_NODE && p->kind != ZC_RP_ALT) return p;
    for (int i = 0; i < p->args.n; i++) {
        p->args.v[i] = expand_pat(c, p->args.v[i], out);
        if (!p->args.v[i]) return NULL;
    }
    measure_pat(c, p);
    if (!expand_attrs(c, p)) return NULL;
    const zc_rl_define *d = p->kind == ZC_RP_NODE ? find(c, p->text, true) : NULL;
    if (d && c->in_emit) zc_rl_fault(c, p->loc, "the pattern '%s' stands in match only", p->text);
    return d && !c->in_emit ? put_pattern(c, d, p, out) : p;
}

static bool expand_statements(zc_rl_checker *c, zc_rl_list *list)
{
    zc_rl_list out = {.n = 0};
    for (int i = 0; i < list->n; i++) {
        zc_rl_stmt *st = zc_rl_stmt_at(list, i);
        st->pat = expand_pat(c, st->pat, &out);
        if (!st->pat || !zc_rl_push(c->r, &out, st)) return false;
    }
    *list = out;
    return true;
}

bool zc_rl_expand(zc_rl_checker *c)
{
    size_t errors = c->r->errors;
    bool ok = expand_statements(c, &c->rule->match) && expand_conditions(c, &c->rule->where);
    c->in_emit = true;
    ok = ok && expand_statements(c, &c->rule->emit);
    c->in_emit = false;
    return ok && c->r->errors == errors;
}

/* ---- the definitions themselves ---- */

static void check_free(zc_rl_checker *c, const zc_rl_define *d, const zc_rl_expr *e)
{
    if (e->kind == ZC_RE_NAME && !zc_rl_is_word(e->text) && param_of(d, e->text) < 0)
        zc_rl_fault(c, e->loc, "'%s' is no parameter", e->text);
    for (int i = 0; i < e->args.n; i++) check_free(c, d, zc_rl_expr_at(&e->args, i));
}

static void check_name(zc_rl_checker *c, const zc_rl_define *d)
{
    const zc_rl_define *first = find(c, d->name.text, d->is_pattern);
    bool is_function = false;
    for (int i = 0; zc_rl_function_at(i); i++)
        is_function |= strcmp(zc_rl_function_at(i)->name, d->name.text) == 0;
    if (first)
        zc_rl_fault(c, d->name.loc, "a second definition '%s' (the first: %s:%d)", d->name.text,
                    c->r->files.data[first->file].name, first->name.loc.line);
    if (!d->is_pattern && is_function)
        zc_rl_fault(c, d->name.loc, "'%s' is a function already", d->name.text);
    if (d->is_pattern && zc_op_find(d->name.text, strlen(d->name.text)) != ZC_OP_NONE)
        zc_rl_fault(c, d->name.loc, "'%s' is an operation already", d->name.text);
    for (int i = 0; i < d->params.n; i++) {
        const zc_rl_name *n = d->params.v[i];
        if (param_of(d, n->text) != i) zc_rl_fault(c, n->loc, "a second parameter '%s'", n->text);
    }
}

void zc_rl_check_define(zc_rules *r, zc_rl_define *d)
{
    zc_rl_checker c = {.r = r, .file = d->file};
    size_t errors = r->errors;
    check_name(&c, d);
    if (d->exprs.n > ZC_RL_LIST_MAX || d->body.n > ZC_RL_STMTS_MAX)
        zc_rl_fault(&c, d->name.loc, "definition too long (need at most %d parts)",
                    ZC_RL_STMTS_MAX);
    for (int i = 0; i < d->exprs.n; i++) check_free(&c, d, zc_rl_expr_at(&d->exprs, i));
    if (r->errors == errors && !r->nomem)
        d->is_done =
            d->is_pattern ? expand_statements(&c, &d->body) : expand_conditions(&c, &d->exprs);
}
