/* Named conditions and patterns: what they stand for takes the place of their calls before a rule
 * is checked. A body is expanded when it is defined, with what was defined before it, so nothing
 * calls itself. Copies stand where the call stands: that is where messages point. */
#include "rules/expand.h"

#include <string.h>

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

int zc_rl_param_of(const zc_rl_define *d, const char *name)
{
    for (int i = 0; d && i < d->params.n; i++)
        if (strcmp(((const zc_rl_name *)d->params.v[i])->text, name) == 0) return i;
    return -1;
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
    zc_rl_copier x = {.c = c, .d = d, .expr = e, .loc = e->loc};
    if (!has_args(c, d, e->args.n, e->loc)) return true;
    for (int i = 0; i < d->exprs.n; i++) {
        zc_rl_expr *one = zc_rl_copy_expr(&x, zc_rl_expr_at(&d->exprs, i));
        if (!one || !zc_rl_push(c->r, out, one)) return false;
    }
    return true;
}

static zc_rl_expr *joined(zc_rl_copier *x, zc_rl_expr *a, zc_rl_expr *b)
{
    const zc_rl_expr both = {.kind = ZC_RE_AND, .index = -1, .list = -1};
    zc_rl_expr *e = a && b ? zc_rl_copy_head(x, &both) : NULL;
    if (!e || !zc_rl_push(x->c->r, &e->args, a) || !zc_rl_push(x->c->r, &e->args, b)) return NULL;
    zc_rl_measure_expr(x->c, e);
    return e;
}

/* In the middle of an expression, several conditions are one. */
static zc_rl_expr *expand_call(zc_rl_checker *c, const zc_rl_define *d, zc_rl_expr *e)
{
    zc_rl_copier x = {.c = c, .loc = e->loc};
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
    zc_rl_measure_expr(c, e);
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

const zc_rl_define *zc_rl_called(const zc_rl_checker *c, const zc_rl_pat *p)
{
    return p->kind == ZC_RP_NODE ? find(c, p->text, true) : NULL;
}

static bool has_operands_alone(const zc_rl_pat *call)
{
    for (int i = 0; i < call->args.n; i++)
        if (zc_rl_pat_at(&call->args, i)->kind == ZC_RP_REST) return false;
    return !call->attrs.n && !call->any_attrs && !call->optional;
}

zc_rl_pat *zc_rl_put_pattern(zc_rl_checker *c, const zc_rl_define *d, zc_rl_pat *call,
                             zc_rl_list *out)
{
    zc_rl_copier x = {.c = c, .d = d, .call = call, .loc = call->loc, .serial = ++c->calls};
    const zc_rl_stmt *last = NULL;
    if (!has_operands_alone(call))
        zc_rl_fault(c, call->loc, "the pattern '%s' has operands alone", d->name.text);
    if (!has_args(c, d, call->args.n, call->loc)) return call;
    x.is_copy = call->is_copy;
    x.is_extra = call->is_extra;
    x.group = call->repetition;
    for (int i = 0; i < d->body.n; i++) {
        last = zc_rl_stmt_at(&d->body, i);
        const zc_rl_pat *name = last->outs.n ? zc_rl_pat_at(&last->outs, 0) : NULL;
        bool is_value = i + 1 == d->body.n && (!name || zc_rl_param_of(d, name->text) < 0);
        if (is_value) return zc_rl_copy_pat(&x, last->pat);
        zc_rl_stmt *st = zc_rl_copy_stmt(&x, last);
        if (st && c->rule) st->pat = zc_rl_expand_pat(c, st->pat, out);
        if (!st || !st->pat || !zc_rl_push(c->r, out, st)) return NULL;
        if (i + 1 == d->body.n) return st->outs.v[0];
    }
    return call;
}

static bool expand_operands(zc_rl_checker *c, zc_rl_pat *p, zc_rl_list *out)
{
    for (int i = 0; i < p->args.n; i++) {
        p->args.v[i] = zc_rl_expand_pat(c, p->args.v[i], out);
        if (!p->args.v[i]) return false;
    }
    zc_rl_measure_pat(c, p);
    return true;
}

/* In a definition, what is repeated stays as it is: it is written out in the rules that call it. */
static zc_rl_pat *expand_node(zc_rl_checker *c, zc_rl_pat *p, zc_rl_list *out)
{
    const zc_rl_define *d = zc_rl_called(c, p);
    bool is_written_out = c->rule && !c->in_emit;
    if (is_written_out && p->most > 1) return zc_rl_repeat(c, p, out);
    if (is_written_out && !d && !zc_rl_spread(c, p)) return NULL;
    bool is_read = d && is_written_out; /* as a part of the body */
    if (!is_read && (!expand_operands(c, p, out) || !expand_attrs(c, p))) return NULL;
    if (!d || p->most > 1) return p;
    zc_rl_pat *body = zc_rl_put_pattern(c, d, p, out);
    return body && body != p && c->rule ? zc_rl_expand_pat(c, body, out) : body;
}

zc_rl_pat *zc_rl_expand_pat(zc_rl_checker *c, zc_rl_pat *p, zc_rl_list *out)
{
    if (p->kind == ZC_RP_LIST) return expand_args(c, &p->args) ? p : NULL;
    if (p->computed && !(p->computed = expand_expr(c, p->computed))) return NULL;
    if (p->kind == ZC_RP_NODE) return expand_node(c, p, out);
    return p->kind != ZC_RP_ALT || expand_operands(c, p, out) ? p : NULL;
}

static bool expand_statements(zc_rl_checker *c, zc_rl_list *list)
{
    zc_rl_list out = {.n = 0};
    for (int i = 0; i < list->n; i++) {
        zc_rl_stmt *st = zc_rl_stmt_at(list, i);
        st->pat = zc_rl_expand_pat(c, st->pat, &out);
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
    if (e->kind == ZC_RE_NAME && !zc_rl_is_word(e->text) && zc_rl_param_of(d, e->text) < 0)
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
        if (zc_rl_param_of(d, n->text) != i)
            zc_rl_fault(c, n->loc, "a second parameter '%s'", n->text);
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
