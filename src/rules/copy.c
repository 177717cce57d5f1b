/* Copies of expressions and patterns, with other names. */
#include "rules/expand.h"

#include <stdarg.h>
#include <string.h>

#include "base/number.h"

/* Nodes copied for one rule. */
#define COPIES_MAX 20000

typedef zc_rl_copier copier;

/* ---- room ---- */

static bool may_copy(zc_rl_checker *c, zc_rl_loc loc)
{
    if (c->copies == COPIES_MAX)
        zc_rl_fault(c, loc, "its definitions make it too long (need at most %d parts)", COPIES_MAX);
    return ++c->copies <= COPIES_MAX;
}

/* Copies of a body stand where the call stands, others where they are written. */
static zc_rl_loc place_of(const copier *x, zc_rl_loc loc)
{
    return x->d ? x->loc : loc;
}

zc_rl_expr *zc_rl_copy_head(copier *x, const zc_rl_expr *like)
{
    zc_rl_expr *e = may_copy(x->c, x->loc) ? zc_rl_new(x->c->r, sizeof *e) : NULL;
    if (!e) return NULL;
    *e = *like;
    e->loc = place_of(x, like->loc);
    e->args = (zc_rl_list){.n = 0};
    return e;
}

static zc_rl_pat *new_pat(copier *x, const zc_rl_pat *like)
{
    zc_rl_pat *p = may_copy(x->c, x->loc) ? zc_rl_new(x->c->r, sizeof *p) : NULL;
    if (!p) return NULL;
    *p = *like;
    p->loc = place_of(x, like->loc);
    p->args = (zc_rl_list){.n = 0};
    return p;
}

void zc_rl_measure_expr(zc_rl_checker *c, zc_rl_expr *e)
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

void zc_rl_measure_pat(zc_rl_checker *c, zc_rl_pat *p)
{
    p->depth = 1;
    for (int i = 0; (p->kind == ZC_RP_NODE || p->kind == ZC_RP_ALT) && i < p->args.n; i++)
        if (zc_rl_pat_at(&p->args, i)->depth >= p->depth)
            p->depth = zc_rl_pat_at(&p->args, i)->depth + 1;
    if (p->depth <= ZC_RL_NODES_MAX) return;
    zc_rl_fault(c, p->loc, "nested too deep (need at most %d levels)", ZC_RL_NODES_MAX);
    p->args.n = 0;
}

/* ---- names ---- */

static const char *make_text(zc_rl_checker *c, const char *fmt, ...) ZC_PRINTF(2, 3);
static const char *make_text(zc_rl_checker *c, const char *fmt, ...)
{
    char text[ZC_RL_NAME_MAX + 32];
    va_list args;
    va_start(args, fmt);
    zc_vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const char *out = zc_arena_strdup(&c->r->arena, text);
    c->r->nomem |= !out;
    return out;
}

const char *zc_rl_own_name(zc_rl_checker *c, int serial, const char *text)
{
    return make_text(c, "_%d.%s", serial, text);
}

const char *zc_rl_member_name(zc_rl_checker *c, const char *text, int i)
{
    return make_text(c, "%s.%d", text, i + 1);
}

/* An argument of a pattern, where the body has an expression. */
static zc_rl_expr *as_expr(copier *x, const zc_rl_expr *e, const zc_rl_pat *arg)
{
    zc_rl_expr *out = zc_rl_copy_head(x, e);
    if (!out) return NULL;
    if (arg->kind == ZC_RP_NAME && !arg->spread && !arg->of) {
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

zc_rl_expr *zc_rl_copy_expr(copier *x, zc_rl_expr *e)
{
    bool is_own = x->d && e->kind == ZC_RE_NAME && !zc_rl_is_word(e->text);
    int param = is_own ? zc_rl_param_of(x->d, e->text) : -1;
    if (param >= 0 && x->expr) return zc_rl_expr_at(&x->expr->args, param);
    if (param >= 0) return as_expr(x, e, zc_rl_pat_at(&x->call->args, param));
    zc_rl_expr *out = zc_rl_copy_head(x, e);
    if (!out) return NULL;
    if (is_own) out->text = zc_rl_own_name(x->c, x->serial, e->text);
    for (int i = 0; i < e->args.n; i++) {
        zc_rl_expr *arg = zc_rl_copy_expr(x, zc_rl_expr_at(&e->args, i));
        if (!arg || !zc_rl_push(x->c->r, &out->args, arg)) return NULL;
    }
    zc_rl_measure_expr(x->c, out);
    return out;
}

/* What the name collects, which is new or has been met in this repetition or one before it. */
static zc_rl_collected *collected(copier *x, const zc_rl_pat *p)
{
    for (int i = 0; i < x->lists->n; i++) {
        zc_rl_collected *one = x->lists->v[i];
        if (strcmp(one->text, p->text) == 0) return one;
    }
    zc_rl_collected *one = zc_rl_new(x->c->r, sizeof *one);
    if (!one || !zc_rl_push(x->c->r, x->lists, one)) return NULL;
    *one = (zc_rl_collected){
        .text = p->text, .loc = p->loc, .count = x->count, .group = x->group, .var = -1};
    return one;
}

/* A name in what is repeated, or in an argument. */
static zc_rl_pat *copy_repeated(copier *x, const zc_rl_pat *p)
{
    zc_rl_pat *out = new_pat(x, p);
    if (!out || !p->spread || !x->lists) return out;
    out->spread = false;
    out->of = collected(x, p);
    out->text = zc_rl_member_name(x->c, p->text, x->nth);
    return out->of && out->text ? out : NULL;
}

static zc_rl_pat *copy_name(copier *x, const zc_rl_pat *p)
{
    int param = zc_rl_param_of(x->d, p->text);
    zc_rl_pat *arg = param >= 0 ? zc_rl_pat_at(&x->call->args, param) : NULL;
    bool is_plain = !p->flags && p->dtype == ZC_NONE && !p->spread && !p->optional;
    if (arg && is_plain) return zc_rl_copy_pat(&(copier){.c = x->c, .loc = x->loc}, arg);
    if (arg && arg->kind != ZC_RP_NAME) zc_rl_fault(x->c, arg->loc, "'%s' is a name here", p->text);
    zc_rl_pat *out = new_pat(x, p);
    if (!out) return NULL;
    bool is_named = arg && arg->kind == ZC_RP_NAME;
    out->text = is_named ? arg->text : zc_rl_own_name(x->c, x->serial, p->text);
    if (arg) out->flags |= arg->flags;
    if (arg && out->dtype == ZC_NONE) out->dtype = arg->dtype;
    if (is_named) out->of = arg->of;
    if (is_named) out->spread |= arg->spread;
    if (is_named) out->optional |= arg->optional;
    return out->text ? out : NULL;
}

/* ---- parts ---- */

static bool copy_attrs(copier *x, const zc_rl_pat *p, zc_rl_pat *out)
{
    out->attrs = (zc_rl_list){.n = 0};
    for (int i = 0; i < p->attrs.n; i++) {
        zc_rl_attr *a = zc_rl_new(x->c->r, sizeof *a);
        if (!a) return false;
        *a = *zc_rl_attr_at(&p->attrs, i);
        a->name.loc = place_of(x, a->name.loc);
        a->value = zc_rl_copy_expr(x, a->value);
        if (!a->value || !zc_rl_push(x->c->r, &out->attrs, a)) return false;
    }
    return true;
}

zc_rl_pat *zc_rl_copy_pat(copier *x, const zc_rl_pat *p)
{
    if (p == x->hole) return x->filling;
    if (p->kind == ZC_RP_NAME) return x->d ? copy_name(x, p) : copy_repeated(x, p);
    if (x->lists && (p->most > 1 || p->spread))
        zc_rl_fault(x->c, p->loc, "a repetition stands within another");
    zc_rl_pat *out = new_pat(x, p);
    if (!out || !copy_attrs(x, p, out)) return NULL;
    out->is_copy |= x->is_copy;
    out->is_extra |= x->is_extra;
    if (x->group) out->repetition = x->group;
    if (x->group) out->origin = p;
    if (p->computed && !(out->computed = zc_rl_copy_expr(x, p->computed))) return NULL;
    for (int i = 0; i < p->args.n; i++) {
        void *arg = p->kind == ZC_RP_LIST ? (void *)zc_rl_copy_expr(x, zc_rl_expr_at(&p->args, i))
                                          : (void *)zc_rl_copy_pat(x, zc_rl_pat_at(&p->args, i));
        if (!arg || !zc_rl_push(x->c->r, &out->args, arg)) return NULL;
    }
    zc_rl_measure_pat(x->c, out);
    return out;
}

zc_rl_stmt *zc_rl_copy_stmt(copier *x, const zc_rl_stmt *st)
{
    zc_rl_stmt *out = zc_rl_new(x->c->r, sizeof *out);
    if (!out) return NULL;
    *out = (zc_rl_stmt){.loc = x->loc, .pat = zc_rl_copy_pat(x, st->pat)};
    for (int i = 0; i < st->outs.n; i++) {
        zc_rl_pat *name = zc_rl_copy_pat(x, zc_rl_pat_at(&st->outs, i));
        if (!name || !zc_rl_push(x->c->r, &out->outs, name)) return NULL;
        if (name->kind != ZC_RP_NAME && name->kind != ZC_RP_ABSENT)
            zc_rl_fault(x->c, x->loc, "a result needs a name");
    }
    return out->pat ? out : NULL;
}
