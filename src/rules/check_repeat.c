/* Repeated operations and collected operands, written out: `Add(x, y...)*2..4` becomes four
 * operations in each other, of which the inner two may be missing, and `Sum(x, y...)` one with as
 * many operands as there may be. What y collects are variables of their own. */
#include "rules/check.h"

/* Adds the variable `name` for all that it collects, and `count` more for each. -1: reported. */
static int add_list(zc_rl_checker *c, const zc_rl_pat *p, int count)
{
    if (zc_rl_var_find(c->rule, p->text) >= 0) {
        zc_rl_fault(c, p->loc, "'%s' is bound elsewhere too; '%s...' collects by itself", p->text,
                    p->text);
        return -1;
    }
    int list = zc_rl_var_add(c, p->text, p->loc, ZC_RV_LIST);
    for (int i = 0; i < count && list >= 0; i++) {
        zc_buf name = {0};
        zc_buf_printf(&name, "%s.%d", p->text, i + 1);
        const char *text = name.failed ? NULL : zc_arena_strdup(&c->r->arena, name.data);
        zc_buf_fini(&name);
        c->r->nomem |= !text;
        int var = text ? zc_rl_var_add(c, text, p->loc, ZC_RV_VALUE) : -1;
        if (var < 0) return -1;
        c->rule->vars[var].is_listed = true;
        c->rule->vars[var].maybe = true;
    }
    if (list < 0) return -1;
    c->rule->vars[list].first = list + 1;
    c->rule->vars[list].count = count;
    c->rule->vars[list].group = list;
    return list;
}

/* The pattern of the i-th value of a list. */
static zc_rl_pat *member(zc_rl_checker *c, const zc_rl_pat *p, int list, int i)
{
    zc_rl_pat *one = zc_rl_new(c->r, sizeof *one);
    if (!one) return NULL;
    *one = *p;
    one->spread = false;
    one->text = c->rule->vars[c->rule->vars[list].first + i].name;
    return one;
}

/* ---- any number of operands ---- */

static bool collect(zc_rl_checker *c, zc_rl_pat *p, int at)
{
    const zc_rl_pat *last = zc_rl_pat_at(&p->args, at);
    if (at + 1 != p->args.n || zc_op_get(p->op)->max_in < ZC_VARIADIC) {
        zc_rl_fault(c, last->loc,
                    "'%s...' stands last, in an operation with any number of operands", last->text);
        return false;
    }
    int list = add_list(c, last, ZC_RL_REPEAT_MAX);
    if (list < 0) return false;
    zc_rl_list args = {0};
    for (int i = 0; i < at; i++) zc_rl_push(c->r, &args, p->args.v[i]);
    for (int i = 0; i < ZC_RL_REPEAT_MAX; i++) zc_rl_push(c->r, &args, member(c, last, list, i));
    if (args.n > ZC_RL_LIST_MAX) {
        zc_rl_fault(c, p->loc, "too many operands (got %d, need at most %d)", args.n,
                    ZC_RL_LIST_MAX);
        return false;
    }
    p->args = args;
    p->loose = at;
    return !c->r->nomem;
}

/* ---- repetition ---- */

/* The operand that the next repetition stands for. */
static int through(const zc_rl_pat *p)
{
    for (int i = 0; i < p->args.n; i++) {
        const zc_rl_pat *a = zc_rl_pat_at(&p->args, i);
        if (a->kind == ZC_RP_NODE || a->kind == ZC_RP_ALT ||
            (a->kind == ZC_RP_NAME && !a->spread && !(a->flags & ZC_RC_CONST)))
            return i;
    }
    return -1;
}

static bool is_plain(zc_rl_checker *c, const zc_rl_pat *p)
{
    if (p->through < 0) {
        zc_rl_fault(c, p->loc, "a repeated operation needs an operand that is no constant");
        return false;
    }
    for (int i = 0; i < p->args.n; i++) {
        const zc_rl_pat *a = zc_rl_pat_at(&p->args, i);
        if (i == p->through || a->kind == ZC_RP_NAME || a->kind == ZC_RP_NUM ||
            a->kind == ZC_RP_ABSENT)
            continue;
        zc_rl_fault(c, a->loc,
                    "beside the operand that goes on, a repeated operation has names and numbers");
        return false;
    }
    return true;
}

/* Operands of repetition k, the outermost being 0: what is collected is numbered from inside. */
static zc_rl_list operands(zc_rl_checker *c, const zc_rl_pat *p, const int *lists, int k,
                           zc_rl_pat *inner)
{
    zc_rl_list args = {0};
    for (int i = 0; i < p->args.n; i++) {
        zc_rl_pat *a = zc_rl_pat_at(&p->args, i);
        zc_rl_push(c->r, &args,
                   i == p->through ? inner
                   : a->spread     ? member(c, a, lists[i], p->most - 1 - k)
                                   : a);
    }
    return args;
}

static bool repeat(zc_rl_checker *c, zc_rl_pat *p)
{
    int lists[ZC_RL_LIST_MAX], group = -1;
    p->through = through(p);
    if (!is_plain(c, p)) return false;
    for (int i = 0; i < p->args.n; i++) {
        const zc_rl_pat *a = zc_rl_pat_at(&p->args, i);
        if (!a->spread) continue;
        lists[i] = add_list(c, a, p->most);
        if (lists[i] < 0) return false;
        if (group < 0) group = lists[i];
        c->rule->vars[lists[i]].group = group;
    }
    zc_rl_pat *inner = p->base = zc_rl_pat_at(&p->args, p->through);
    for (int k = p->most - 1; k > 0 && !c->r->nomem; k--) {
        zc_rl_pat *one = zc_rl_new(c->r, sizeof *one);
        if (!one) break;
        *one = *p;
        one->args = operands(c, p, lists, k, inner);
        one->is_inner = true;
        one->optional = k >= p->least;
        inner = one;
    }
    p->args = operands(c, p, lists, 0, inner);
    return !c->r->nomem;
}

void zc_rl_write_out(zc_rl_checker *c, zc_rl_pat *p)
{
    bool ok = true;
    if (p->is_inner) return;
    if (p->most > 1) ok = repeat(c, p);
    for (int i = 0; ok && p->most == 1 && i < p->args.n; i++)
        if (zc_rl_pat_at(&p->args, i)->spread) ok = collect(c, p, i);
    /* What was reported is read on as plain names. */
    for (int i = 0; !ok && i < p->args.n; i++) zc_rl_pat_at(&p->args, i)->spread = false;
}
