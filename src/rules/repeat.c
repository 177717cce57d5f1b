/* What is repeated, written out. `Add(x, y...)*2..4` becomes four additions in each other, of which
 * the inner two may be missing; a named pattern becomes as many copies, each with statements of its
 * own. `Concat(Relu(x...)...)` becomes one operation with as many operands as there may be. */
#include "rules/expand.h"

/* ---- repetition ---- */

int zc_rl_through(const zc_rl_pat *p)
{
    for (int i = 0; i < p->args.n; i++) {
        const zc_rl_pat *a = zc_rl_pat_at(&p->args, i);
        if (a->spread) continue;
        if (a->kind == ZC_RP_NODE || a->kind == ZC_RP_ALT ||
            (a->kind == ZC_RP_NAME && !a->optional && !(a->flags & ZC_RC_CONST)))
            return i;
    }
    return -1;
}

/* `pat` as a statement of its own; a name for what it computes. */
static zc_rl_pat *name_it(zc_rl_checker *c, zc_rl_pat *pat, bool is_repeated, zc_rl_list *out)
{
    zc_rl_stmt *st = zc_rl_new(c->r, sizeof *st);
    zc_rl_pat *name = zc_rl_new(c->r, sizeof *name);
    const char *text = zc_rl_own_name(c, ++c->calls, "r");
    if (!st || !name || !text) return NULL;
    *name = (zc_rl_pat){
        .kind = ZC_RP_NAME, .loc = pat->loc, .depth = 1, .least = 1, .most = 1, .text = text};
    *st = (zc_rl_stmt){.loc = pat->loc, .pat = pat, .is_repeated = is_repeated};
    if (!zc_rl_push(c->r, &st->outs, name) || !zc_rl_push(c->r, out, st)) return NULL;
    return name;
}

/* What the innermost repetition is applied to. In a body it may stand several times, and needs a
 * name. */
static zc_rl_pat *make_base(zc_rl_checker *c, zc_rl_pat *p, bool is_call, zc_rl_list *out)
{
    zc_rl_pat *base = zc_rl_expand_pat(c, zc_rl_pat_at(&p->args, p->through), out);
    return base && is_call && base->kind != ZC_RP_NAME ? name_it(c, base, false, out) : base;
}

/* A repetition of a named pattern, whose statements go to `out`. */
static zc_rl_pat *put_body(zc_rl_checker *c, const zc_rl_define *d, zc_rl_pat *call,
                           zc_rl_list *out)
{
    int first = out->n;
    zc_rl_pat *body = zc_rl_put_pattern(c, d, call, out);
    if (body && body != call) body = zc_rl_expand_pat(c, body, out);
    for (int i = first; i < out->n; i++) zc_rl_stmt_at(out, i)->is_repeated = true;
    if (!body || (body->kind == ZC_RP_NODE && !body->optional && !body->base)) return body;
    zc_rl_fault(c, call->loc, "what is repeated ends with an operation, which '%s' does not",
                call->text);
    return NULL;
}

/* The operands beside the one that goes on. */
static bool expand_others(zc_rl_checker *c, zc_rl_pat *p, const zc_rl_pat *inner, zc_rl_list *out)
{
    for (int i = 0; i < p->args.n; i++) {
        if (p->args.v[i] != inner) p->args.v[i] = zc_rl_expand_pat(c, p->args.v[i], out);
        if (!p->args.v[i]) return false;
    }
    return true;
}

zc_rl_pat *zc_rl_repeat(zc_rl_checker *c, zc_rl_pat *p, zc_rl_list *out)
{
    const zc_rl_define *d = zc_rl_called(c, p);
    zc_rl_list lists = {.n = 0};
    int most = p->most, least = p->least;
    p->through = zc_rl_through(p);
    p->most = p->least = 1;
    if (p->through < 0) {
        zc_rl_fault(c, p->loc, "a repeated operation needs an operand that is no constant");
        return NULL;
    }
    zc_rl_copier x = {.c = c,
                      .loc = p->loc,
                      .lists = &lists,
                      .count = most,
                      .group = ++c->groups,
                      .hole = zc_rl_pat_at(&p->args, p->through)};
    zc_rl_pat *base = make_base(c, p, d != NULL, out), *one = base;
    for (int k = most - 1; k >= 0 && one; k--) {
        x.nth = most - 1 - k;
        x.is_copy = k > 0;
        x.is_extra = k >= least;
        x.filling = one;
        zc_rl_pat *inner = one;
        one = zc_rl_copy_pat(&x, p);
        if (one && d) one = put_body(c, d, one, out);
        if (!one || (!d && !expand_others(c, one, inner, out))) return NULL;
        one->base = base;
        one->through = d ? -1 : p->through;
        one->is_inner = !d && k > 0;
        one->optional = k >= least;
        if (d && k > 0) one = name_it(c, one, true, out);
    }
    return one;
}

/* ---- any number of operands ---- */

/* Dots alone collect what nobody asks for. */
static bool name_rest(zc_rl_checker *c, zc_rl_pat *p)
{
    p->kind = ZC_RP_NAME;
    p->text = zc_rl_own_name(c, ++c->calls, "rest");
    p->spread = true;
    return p->text != NULL;
}

static bool put_run(zc_rl_checker *c, zc_rl_pat *a, int run, zc_rl_list *args)
{
    zc_rl_list lists = {.n = 0};
    zc_rl_copier x = {.c = c,
                      .loc = a->loc,
                      .lists = &lists,
                      .count = ZC_RL_REPEAT_MAX,
                      .group = ++c->groups,
                      .is_extra = true};
    a->spread = a->kind == ZC_RP_NAME;
    for (x.nth = 0; x.nth < ZC_RL_REPEAT_MAX; x.nth++) {
        x.is_copy = x.nth > 0;
        zc_rl_pat *one = zc_rl_copy_pat(&x, a);
        if (!one || !zc_rl_push(c->r, args, one)) return false;
        one->run = run;
    }
    if (!lists.n)
        zc_rl_fault(c, a->loc, "dots behind what collects nothing (need dots behind a name in it)");
    return true;
}

static bool has_dots(const zc_rl_pat *p)
{
    for (int i = 0; i < p->args.n; i++)
        if (zc_rl_pat_at(&p->args, i)->spread || zc_rl_pat_at(&p->args, i)->kind == ZC_RP_REST)
            return true;
    return false;
}

/* Dots in an operation that takes no more than it has names for: what follows may be there. */
static bool put_rest(zc_rl_checker *c, zc_rl_pat *p)
{
    zc_rl_pat *last = zc_rl_pat_at(&p->args, p->args.n - 1);
    if (last->kind == ZC_RP_REST) {
        p->args.n--;
        p->rest = true;
    }
    for (int i = 0; i < p->args.n; i++) {
        zc_rl_pat *a = zc_rl_pat_at(&p->args, i);
        if (!a->spread && a->kind != ZC_RP_REST) continue;
        zc_rl_fault(c, a->loc, "dots stand in an operation with any number of operands%s",
                    a->spread ? "" : ", or last");
        return false;
    }
    return true;
}

bool zc_rl_spread(zc_rl_checker *c, zc_rl_pat *p)
{
    const zc_op_info *info = zc_op_get(zc_op_find(p->text, strlen(p->text)));
    zc_rl_list args = {.n = 0};
    int runs = 0;
    if (!has_dots(p)) return true;
    if (info->max_in < ZC_VARIADIC && !(info->flags & ZC_OPF_ASSOCIATIVE)) return put_rest(c, p);
    for (int i = 0; i < p->args.n; i++) {
        zc_rl_pat *a = zc_rl_pat_at(&p->args, i);
        if (a->kind == ZC_RP_REST && !name_rest(c, a)) return false;
        if (a->spread ? !put_run(c, a, ++runs, &args) : !zc_rl_push(c->r, &args, a)) return false;
    }
    if (runs > ZC_RL_RUNS_MAX || args.n > ZC_RL_LIST_MAX) {
        zc_rl_fault(c, p->loc, "too many operands (need at most %d with dots, and %d in all)",
                    ZC_RL_RUNS_MAX, ZC_RL_LIST_MAX);
        return false;
    }
    p->args = args;
    return true;
}

/* ---- variables ---- */

bool zc_rl_add_collected(zc_rl_checker *c, zc_rl_collected *of)
{
    if (of->var >= 0) return true;
    if (zc_rl_var_find(c->rule, of->text) >= 0) {
        zc_rl_fault(c, of->loc, "'%s' is bound elsewhere too; '%s...' collects by itself", of->text,
                    of->text);
        return false;
    }
    of->var = zc_rl_var_add(c, of->text, of->loc, ZC_RV_LIST);
    for (int i = 0; i < of->count && of->var >= 0; i++) {
        const char *text = zc_rl_member_name(c, of->text, i);
        int var = text ? zc_rl_var_add(c, text, of->loc, ZC_RV_VALUE) : -1;
        if (var < 0) return false;
        c->rule->vars[var].is_listed = true;
        c->rule->vars[var].maybe = true;
    }
    if (of->var < 0) return false;
    zc_rl_var *list = &c->rule->vars[of->var];
    list->first = of->var + 1;
    list->count = of->count;
    list->group = of->group;
    return true;
}
