/* Operations in rules against the op table. */
#include <string.h>

#include "rules/check.h"

/* ---- names ---- */

static const char *op_name(const void *ctx, int i)
{
    const zc_rules *r = ctx;
    if (i < ZC_OP_COUNT - 1) return zc_op_get((zc_op)(i + 1))->name;
    i -= ZC_OP_COUNT - 1;
    if ((size_t)i < r->pointwise.len) return r->pointwise.data[i]->name.text;
    i -= (int)r->pointwise.len;
    return (size_t)i < r->kernels.len ? r->kernels.data[i]->name.text : NULL;
}

static const char *field_name(const void *ctx, int i)
{
    const zc_op_info *info = ctx;
    return i < info->field_count ? info->fields[i].name : NULL;
}

/* Is it an operator of ONNX that is no operation here? */
static bool is_expanded(const char *name)
{
    static const char *const names[] = {
#define BUILD(domain, op_type, fn) op_type,
#define ALIAS(domain, op_type, op) op_type,
#include "import/onnx_ops.def"
    };
    for (size_t i = 0; i < ZC_COUNTOF(names); i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

static bool find_op(zc_rl_checker *c, zc_rl_pat *p)
{
    zc_buf hint = {0};
    p->op = zc_op_find(p->text, strlen(p->text));
    if (p->op != ZC_OP_NONE) return true;
    p->pointwise = zc_rl_find_pointwise(c->r, p->text);
    p->kernel = p->pointwise ? NULL : zc_rl_find_kernel(c->r, p->text);
    if ((p->pointwise || p->kernel) && c->in_emit) {
        p->op = p->kernel ? ZC_OP_UserKernel : ZC_OP_Pointwise;
        return true;
    }
    if (p->pointwise || p->kernel) {
        zc_rl_fault(c, p->loc, "'%s' is a definition, which can be emitted but not matched",
                    p->text);
        return false;
    }
    if (is_expanded(p->text)) {
        zc_rl_fault(c, p->loc,
                    "no such operation '%s': ONNX's becomes others when a model is read, which "
                    "'zc inspect MODEL --pass opt_cse' shows",
                    p->text);
        return false;
    }
    zc_rl_suggest(&hint, p->text, op_name, c->r);
    zc_rl_fault(c, p->loc, "no such operation '%s'%s", p->text, hint.data ? hint.data : "");
    zc_buf_fini(&hint);
    return false;
}

/* ---- arity ---- */

bool zc_rl_has_runs(const zc_rl_pat *p)
{
    for (int i = 0; i < p->args.n; i++)
        if (zc_rl_pat_at(&p->args, i)->run) return true;
    return false;
}

/* Operands that stand for one each. */
static int count_single(const zc_rl_pat *p)
{
    int n = 0;
    for (int i = 0; i < p->args.n; i++)
        n += !zc_rl_pat_at(&p->args, i)->run && !zc_rl_pat_at(&p->args, i)->spread;
    return n;
}

static void check_arity(zc_rl_checker *c, zc_rl_pat *p)
{
    const zc_op_info *info = zc_op_get(p->op);
    int own = p->pointwise ? p->pointwise->params.n : p->kernel ? p->kernel->params.n : -1;
    int least = own >= 0 ? own : info->min_in, most = own >= 0 ? own : info->max_in;
    int single = c->in_each ? p->args.n : count_single(p);
    bool has_any = single < p->args.n;
    if (has_any && own >= 0) {
        zc_rl_fault(c, p->loc, "operands of a definition are named one by one");
        return;
    }
    if (info->flags & ZC_OPF_ASSOCIATIVE && !c->in_kernel && (has_any || single > 2)) {
        p->is_chain = true;
        if (p->base) zc_rl_fault(c, p->loc, "a repeated operation has no more operands than two");
        return;
    }
    if (has_any && most < ZC_VARIADIC) {
        zc_rl_fault(c, p->loc, "dots stand in an operation with any number of operands");
        return;
    }
    if (has_any && single <= most) return; /* counted when a rule is applied */
    if (p->args.n <= most && (p->args.n >= least || p->rest)) return;
    if (least == most)
        zc_rl_fault(c, p->loc, "wrong number of operands of %s (got %d, need %d)", p->text,
                    p->args.n, most);
    else if (most >= ZC_VARIADIC)
        zc_rl_fault(c, p->loc, "wrong number of operands of %s (got %d, need at least %d)", p->text,
                    p->args.n, least);
    else
        zc_rl_fault(c, p->loc, "wrong number of operands of %s (got %d, need %d to %d)", p->text,
                    p->args.n, least, most);
}

/* Of operands that are or may be left out: an operation can do without them, and they have places.
 */
static void check_optional(zc_rl_checker *c, const zc_rl_pat *p)
{
    for (int i = 0; i < p->args.n; i++) {
        const zc_rl_pat *a = zc_rl_pat_at(&p->args, i);
        bool is_optional = a->kind == ZC_RP_NAME && a->optional;
        if (!is_optional && a->kind != ZC_RP_ABSENT) continue;
        if (zc_rl_has_runs(p) || p->is_chain)
            zc_rl_fault(c, a->loc, "an operand that may be left out stands beside no dots");
        else if (i < zc_op_get(p->op)->min_in)
            zc_rl_fault(c, a->loc, "%s cannot do without operand %d", p->text, i + 1);
    }
}

static void check_regions(zc_rl_checker *c, const zc_rl_pat *p)
{
    if (zc_op_get(p->op)->flags & ZC_OPF_REGIONS)
        zc_rl_fault(c, p->loc, "%s holds graphs, which rules cannot say", p->text);
    if (!c->in_emit && p->op == ZC_OP_Pointwise)
        zc_rl_fault(c, p->loc, "Pointwise nodes are made after the rules ran");
    if (p->op == ZC_OP_UserKernel && !p->kernel)
        zc_rl_fault(c, p->loc, "a kernel is emitted by the name of its definition");
    if (p->kernel && c->in_kernel)
        zc_rl_fault(c, p->loc, "a meaning is made of operations, not of kernels");
    if (c->in_emit && (zc_op_get(p->op)->flags & ZC_OPF_RANDOM))
        zc_rl_fault(c, p->loc, "%s is random, which no check can compare", p->text);
}

/* ---- attributes ---- */

/* match: `field = name` with a name that is nothing yet binds it. */
static bool is_capture(const zc_rl_checker *c, const zc_rl_attr *a)
{
    if (c->in_emit || !a->assign || a->value->kind != ZC_RE_NAME) return false;
    if (zc_dtype_parse(a->value->text) != ZC_NONE) return false;
    int var = zc_rl_var_find(c->rule, a->value->text);
    return var < 0 || c->rule->vars[var].kind == ZC_RV_ATTR;
}

static void capture(zc_rl_checker *c, zc_rl_attr *a, zc_rl_type type)
{
    const char *name = a->value->text;
    int var = zc_rl_var_find(c->rule, name);
    a->is_capture = true;
    if (var < 0) {
        var = zc_rl_var_add(c, name, a->value->loc, ZC_RV_ATTR);
        if (var >= 0) c->rule->vars[var].type = type;
        if (var >= 0) c->rule->vars[var].maybe = c->optional > 0;
    } else {
        c->rule->vars[var].uses++;
        if (c->rule->vars[var].type != (int)type)
            zc_rl_fault(c, a->value->loc, "'%s' is %s elsewhere (got %s)", name,
                        zc_rl_type_name((zc_rl_type)c->rule->vars[var].type),
                        zc_rl_type_name(type));
    }
    a->var = var;
}

static void check_attr_value(zc_rl_checker *c, zc_rl_attr *a, zc_rl_type type)
{
    bool is_set = a->op == ZC_RE_IN;
    if (type == ZC_RT_TENSOR) {
        zc_rl_fault(c, a->name.loc, "attributes that are tensors cannot be said in rules");
        return;
    }
    if (!is_set) {
        zc_rl_check_expr_is(c, a->value, type);
        return;
    }
    for (int i = 0; i < a->value->args.n; i++)
        zc_rl_check_expr_is(c, zc_rl_expr_at(&a->value->args, i), type);
}

static void check_attr(zc_rl_checker *c, const zc_op_info *info, zc_rl_attr *a)
{
    a->field = zc_attr_find(info, a->name.text, strlen(a->name.text));
    if (a->field < 0) {
        zc_buf hint = {0};
        zc_rl_suggest(&hint, a->name.text, field_name, info);
        zc_rl_fault(c, a->name.loc, "%s has no attribute '%s'%s", info->name, a->name.text,
                    hint.data ? hint.data : "");
        zc_buf_fini(&hint);
        return;
    }
    if (c->in_emit && !a->assign)
        zc_rl_fault(c, a->name.loc, "an attribute is given with '=' in emit");
    zc_rl_type type = zc_rl_attr_type(info->fields[a->field].kind);
    if (is_capture(c, a))
        capture(c, a, type);
    else
        check_attr_value(c, a, type);
}

static const char *preset_name(const void *ctx, int i)
{
    const zc_rl_list *defaults = ctx;
    return i < defaults->n ? ((const zc_rl_default *)defaults->v[i])->name.text : NULL;
}

/* Attributes of a definition: numbers that its head names. */
static void check_presets(zc_rl_checker *c, const zc_rl_pat *p)
{
    static const zc_rl_list none = {0};
    const zc_rl_list *defaults = p->pointwise ? &p->pointwise->defaults : &none;
    for (int i = 0; i < p->attrs.n; i++) {
        zc_rl_attr *a = zc_rl_attr_at(&p->attrs, i);
        a->field = 0;
        while (a->field < defaults->n && strcmp(preset_name(defaults, a->field), a->name.text) != 0)
            a->field++;
        if (a->field == defaults->n) {
            zc_buf hint = {0};
            zc_rl_suggest(&hint, a->name.text, preset_name, defaults);
            zc_rl_fault(c, a->name.loc, "%s has no attribute '%s'%s", p->text, a->name.text,
                        hint.data ? hint.data : "");
            zc_buf_fini(&hint);
        }
        int same = 0;
        while (same < i && zc_rl_attr_at(&p->attrs, same)->field != a->field) same++;
        if (same < i && a->field < defaults->n)
            zc_rl_fault(c, a->name.loc, "attribute '%s' is given twice", a->name.text);
        if (!a->assign) zc_rl_fault(c, a->name.loc, "an attribute is given with '=' in emit");
        zc_rl_check_expr_is(c, a->value, ZC_RT_REAL);
    }
}

/* The operations of match that have `{ ... }`, of this kind (ZC_OP_NONE: of any), those of one
 * ( | ) and of one kind being one: the first one's number goes to *which. */
static int count_open(const zc_rl_rule *rule, zc_op op, int *which)
{
    const zc_rl_pat *last = NULL;
    int n = 0;
    for (int i = 0; i < rule->nnodes; i++) {
        const zc_rl_pat *p = rule->nodes[i];
        if (!p->any_attrs || p->is_copy || (op != ZC_OP_NONE && p->op != op)) continue;
        bool is_other = last && p->op == last->op && p->choice && p->choice == last->choice &&
                        p->branch != last->branch;
        if (!last) *which = i;
        n += !is_other;
        last = p;
    }
    return n;
}

/* `{ ... }` in emit passes on the attributes of one operation of match, which all are its, too. */
static void find_like(zc_rl_checker *c, zc_rl_pat *p)
{
    const zc_op_info *info = zc_op_get(p->op);
    if (p->pointwise || p->kernel) {
        zc_rl_fault(c, p->loc, "the attributes of a definition are given one by one");
        return;
    }
    int n = count_open(c->rule, p->op, &p->like);
    if (n == 0) n = count_open(c->rule, ZC_OP_NONE, &p->like);
    if (n != 1) {
        zc_rl_fault(c, p->loc,
                    "'...' in emit passes on the attributes of the one operation of match that has "
                    "'...', too (got %d of them)",
                    n);
        return;
    }
    const zc_op_info *from = zc_op_get(c->rule->nodes[p->like]->op);
    for (int i = 0; i < zc_op_own_fields(from); i++) {
        const zc_attr_field *f = &from->fields[i];
        int at = zc_attr_find(info, f->name, strlen(f->name));
        bool is_same = from == info || (at >= 0 && info->fields[at].kind == f->kind);
        if (is_same && (from == info || f->kind != ZC_ATTR_TENSOR)) continue;
        zc_rl_fault(c, p->loc, "'...' cannot pass on %s's attribute '%s', which %s lacks",
                    from->name, f->name, info->name);
    }
}

bool zc_rl_check_op(zc_rl_checker *c, zc_rl_pat *p)
{
    if (!find_op(c, p)) return false;
    check_arity(c, p);
    check_regions(c, p);
    if (p->any_attrs && c->in_emit) find_like(c, p);
    if (!p->pointwise && !p->kernel) check_optional(c, p);
    if (p->optional && c->in_emit) zc_rl_fault(c, p->loc, "'?' stands in match only");
    if (p->most > 1 && c->in_emit) zc_rl_fault(c, p->loc, "repetitions stand in match only");
    if (p->pointwise || p->kernel) {
        check_presets(c, p);
        return true;
    }
    for (int i = 0; i < p->attrs.n; i++) {
        zc_rl_attr *a = zc_rl_attr_at(&p->attrs, i);
        check_attr(c, zc_op_get(p->op), a);
        for (int j = 0; c->in_emit && a->field >= 0 && j < i; j++)
            if (zc_rl_attr_at(&p->attrs, j)->field == a->field)
                zc_rl_fault(c, a->name.loc, "attribute '%s' is given twice", a->name.text);
    }
    return true;
}
