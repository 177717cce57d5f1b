/* The matcher: a list of goals (this pattern stands for that value), solved depth first with a
 * trail of bindings to undo. Its recursion is bounded by the size of the rule. */
#include "rules/match.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "rules/check.h"
#include "rules/words.h"

typedef struct goal goal;
/* Operands that the patterns of an operation are still to be found for. */
typedef struct placing {
    const zc_rl_pat *p;
    const zc_vid *v;
    int n;
    int at;                      /* in order: the first operand that is left */
    int arg;                     /* the first pattern that is */
    uint64_t used;               /* in any order: the operands that are not left */
    uint8_t run[ZC_RL_RUNS_MAX]; /* and how many each run has */
} placing;

struct goal {
    const zc_rl_pat *pat;
    zc_vid v;
    int out;                /* which result of the pattern's operation v is */
    const placing *placing; /* or NULL; with it, pat and v say nothing */
    const goal *next;
};

static bool solve(zc_rl_matcher *m, const goal *g);
static bool solve_extra(zc_rl_matcher *m, int k);

/* ---- why not ---- */

/* Is a reason wanted that is found now? */
static bool is_farthest(const zc_rl_matcher *m)
{
    if (m->count == m->best) return m->explain && m->is_complete && !m->best_complete;
    return m->explain && m->count > m->best;
}

/* Keeps the reason of the attempt with most operations matched. Returns false. */
static bool miss(zc_rl_matcher *m, zc_nid at, const char *fmt, ...) ZC_PRINTF(3, 4);
static bool miss(zc_rl_matcher *m, zc_nid at, const char *fmt, ...)
{
    if (!is_farthest(m)) return false;
    va_list args;
    va_start(args, fmt);
    zc_vsnprintf(m->why, sizeof m->why, fmt, args);
    va_end(args);
    m->best = m->count;
    m->best_complete = m->is_complete;
    m->place = at;
    memcpy(m->best_node, m->node, sizeof m->node);
    return false;
}

static zc_nid producer_of(const zc_rl_matcher *m, zc_vid v)
{
    const zc_value *value = zc_val(m->x->g, v);
    return v && value->kind == ZC_VALUE_NODE ? value->producer : 0;
}

/* ---- bindings ---- */

/* What the rule calls the variable: of a collected value, what it is collected by. */
static const char *name_of(const zc_rl_matcher *m, int var)
{
    while (m->rule->vars[var].is_listed) var--;
    return m->rule->vars[var].name;
}

static bool fits_var(zc_rl_matcher *m, int which, zc_vid v)
{
    const zc_rl_var *var = &m->rule->vars[which];
    const char *name = name_of(m, which);
    const zc_value *value = zc_val(m->x->g, v);
    zc_nid at = producer_of(m, v);
    if (var->dtype != ZC_NONE && value->type.dtype != var->dtype)
        return miss(m, at, "'%s' has another element type (got %s, need %s)", name,
                    zc_dtype_name(value->type.dtype), zc_dtype_name(var->dtype));
    if ((var->flags & ZC_RC_CONST) && !value->data)
        return miss(m, at, "'%s' is not constant", name);
    if (!(var->flags & ZC_RC_SCALAR)) return true;
    for (int i = 0; i < value->type.rank; i++)
        if (!zc_dim_is(value->type.dims[i], 1)) return miss(m, at, "'%s' is no scalar", name);
    return value->type.rank >= 0 || miss(m, at, "'%s' has an unknown rank", name);
}

static bool bind(zc_rl_matcher *m, int var, zc_vid v)
{
    if (var < 0) return true;
    if (m->bound[var])
        return m->value[var] == v ||
               miss(m, producer_of(m, v), "'%s' stands for two values", name_of(m, var));
    if (!fits_var(m, var, v)) return false;
    m->bound[var] = true;
    m->value[var] = v;
    m->trail[m->ntrail++] = var;
    return true;
}

static void unwind(zc_rl_matcher *m, int trail)
{
    while (m->ntrail > trail) {
        int var = m->trail[--m->ntrail];
        m->bound[var] = false;
        m->value[var] = 0;
        m->attr[var].type = ZC_RT_ANY;
    }
}

zc_rl_env zc_rl_match_env(const zc_rl_matcher *m, zc_arena *arena)
{
    return (zc_rl_env){.rule = m->rule,
                       .g = m->x->g,
                       .value = m->value,
                       .attr = m->attr,
                       .uses = m->x->uses.data,
                       .target = m->target,
                       .arena = arena};
}

/* ---- attributes ---- */

static bool match_value(zc_rl_matcher *m, const zc_rl_attr *a, const zc_rl_val *got)
{
    zc_rl_env env = zc_rl_match_env(m, &m->scratch);
    zc_dims *dims = &m->x->g->dims;
    if (a->op != ZC_RE_IN) {
        zc_rl_val need = zc_rl_eval(&env, a->value);
        bool is_real = got->type == ZC_RT_REAL && a->op == ZC_RE_EQ;
        return zc_rl_compare(dims, is_real ? ZC_RE_NEAR : a->op, got, &need);
    }
    for (int i = 0; i < a->value->args.n; i++) {
        zc_rl_val need = zc_rl_eval(&env, zc_rl_expr_at(&a->value->args, i));
        if (zc_rl_compare(dims, ZC_RE_EQ, got, &need)) return true;
    }
    return false;
}

static bool capture(zc_rl_matcher *m, const zc_rl_attr *a, const zc_rl_val *got)
{
    if (m->bound[a->var]) return zc_rl_compare(&m->x->g->dims, ZC_RE_EQ, &m->attr[a->var], got);
    m->bound[a->var] = true;
    m->attr[a->var] = *got;
    m->trail[m->ntrail++] = a->var;
    return true;
}

static bool miss_value(zc_rl_matcher *m, zc_nid n, const zc_rl_attr *a, const zc_rl_val *got)
{
    zc_buf text = {0};
    if (!is_farthest(m)) return false;
    zc_rl_put_value(&text, &m->x->g->dims, got);
    miss(m, n, "attribute '%s' has another value (got %s)", a->name.text,
         text.data ? text.data : "");
    zc_buf_fini(&text);
    return false;
}

static bool match_attr(zc_rl_matcher *m, const zc_rl_attr *a, zc_nid n)
{
    const zc_node *node = zc_node_at(m->x->g, n);
    zc_rl_val got = zc_rl_attr_value(zc_op_get(node->op), node->attrs, a->field);
    if (a->is_capture ? capture(m, a, &got) : match_value(m, a, &got)) return true;
    return miss_value(m, n, a, &got);
}

static bool is_named(const zc_rl_pat *p, int field)
{
    for (int i = 0; i < p->attrs.n; i++)
        if (zc_rl_attr_at(&p->attrs, i)->field == field) return true;
    return false;
}

/* The only attribute that is a tensor, ConstantOfShape's value, is one f32 of 0 when left out. */
static bool is_default_tensor(const zc_tensor *t)
{
    if (!t) return true;
    if (t->dtype != ZC_F32 || !t->data || zc_tensor_numel(t) != 1) return false;
    double v = zc_load_f64(t->dtype, t->data, 0);
    return v == 0 && !signbit(v);
}

static bool is_default(const zc_rl_matcher *m, const zc_op_info *info, const void *attrs,
                       const void *defaults, int field)
{
    if (info->fields[field].kind == ZC_ATTR_TENSOR)
        return is_default_tensor(
            *(const zc_tensor *const *)((const char *)attrs + info->fields[field].offset));
    zc_rl_val got = zc_rl_attr_value(info, attrs, field);
    zc_rl_val need = zc_rl_attr_value(info, defaults, field);
    return zc_rl_compare(&m->x->g->dims, ZC_RE_EQ, &got, &need);
}

/* Attributes that the pattern does not name have their defaults. */
static bool match_attrs(zc_rl_matcher *m, const zc_rl_pat *p, zc_nid n)
{
    const zc_node *node = zc_node_at(m->x->g, n);
    const zc_op_info *info = zc_op_get(node->op);
    for (int i = 0; i < p->attrs.n; i++)
        if (!match_attr(m, zc_rl_attr_at(&p->attrs, i), n)) return false;
    if (p->any_attrs || !info->field_count) return true;
    void *defaults = zc_arena_alloc(&m->scratch, 1, info->attrs_size);
    if (!defaults) return false;
    zc_attrs_default(info, defaults);
    for (int i = 0; i < info->field_count; i++) {
        if (!is_named(p, i) && !is_default(m, info, node->attrs, defaults, i))
            return miss(m, n, "attribute '%s' is not the default, and the rule does not name it",
                        info->fields[i].name);
    }
    return true;
}

/* ---- operations ---- */

static bool is_taken(const zc_rl_matcher *m, zc_nid n)
{
    for (int i = 0; i < m->rule->nnodes; i++)
        if (m->node[i] == n) return true;
    return false;
}

static int operand_count(const zc_node *n)
{
    int nin = n->nin;
    while (nin > 0 && !n->in[nin - 1]) nin--;
    return nin;
}

/* A repetition's own operands come before the one that goes on: then the ways to go on share them.
 */
static bool match_args(zc_rl_matcher *m, const zc_rl_pat *p, zc_nid n, bool swapped,
                       const goal *next)
{
    goal goals[ZC_RL_LIST_MAX];
    const zc_node *node = zc_node_at(m->x->g, n);
    bool is_repeated = p->base && p->through >= 0;
    for (int k = p->args.n - 1 + is_repeated; k >= 0; k--) {
        bool goes_on = k == p->args.n;
        int i = goes_on ? p->through : k, at = swapped ? 1 - i : i;
        if (is_repeated && !goes_on && i == p->through) continue;
        goals[i] = (goal){
            .pat = zc_rl_pat_at(&p->args, i), .v = at < node->nin ? node->in[at] : 0, .next = next};
        next = &goals[i];
    }
    return solve(m, next);
}

/* Does a repetition go on in the second operand alone? Then that way is tried first, for the most
 * of them. */
static bool goes_on_second(const zc_rl_matcher *m, const zc_rl_pat *p, const zc_node *node)
{
    bool goes_on[2];
    for (int i = 0; i < 2; i++) {
        zc_nid n = producer_of(m, node->in[i]);
        goes_on[i] = n && zc_node_at(m->x->g, n)->op == p->op;
    }
    return !goes_on[p->through] && goes_on[1 - p->through];
}

/* ---- any number of operands ---- */

static int end_of_run(const zc_rl_pat *p, int arg)
{
    int run = zc_rl_pat_at(&p->args, arg)->run;
    while (arg < p->args.n && zc_rl_pat_at(&p->args, arg)->run == run) arg++;
    return arg;
}

/* Pattern a stands for operand `at`, and then the others as `left` says. */
static bool place_one(zc_rl_matcher *m, const goal *g, const placing *left, const zc_rl_pat *a,
                      int at)
{
    int trail = m->ntrail;
    goal others = {.placing = left, .next = g->next};
    goal one = {.pat = a, .v = at < left->n ? left->v[at] : 0, .next = &others};
    if (solve(m, &one)) return true;
    unwind(m, trail);
    return false;
}

/* A run takes as many operands as there are, or else fewer. */
static bool place_in_order(zc_rl_matcher *m, const goal *g)
{
    placing left = *g->placing;
    if (left.arg == left.p->args.n)
        return left.at == left.n ? solve(m, g->next)
                                 : miss(m, 0, "%s has more operands (got %d, need %d)",
                                        left.p->text, left.n, left.at);
    const zc_rl_pat *a = zc_rl_pat_at(&left.p->args, left.arg);
    int at = left.at++;
    left.arg++;
    if (!a->run) return place_one(m, g, &left, a, at);
    if (at < left.n && place_one(m, g, &left, a, at)) return true;
    left.at = at;
    left.arg = end_of_run(left.p, left.arg - 1);
    return place_in_order(m, &(goal){.placing = &left, .next = g->next});
}

/* The next pattern that stands for one operand is found for any. */
static bool place_single(zc_rl_matcher *m, const goal *g, placing left)
{
    const zc_rl_pat *a = zc_rl_pat_at(&left.p->args, left.arg++);
    for (int at = 0; at < left.n; at++) {
        if (left.used >> at & 1) continue;
        left.used |= UINT64_C(1) << at;
        if (place_one(m, g, &left, a, at)) return true;
        left.used = g->placing->used;
    }
    return false;
}

/* The next operand goes to the first run that takes it. */
static bool place_in_run(zc_rl_matcher *m, const goal *g, placing left)
{
    int at = 0;
    while (at < left.n && left.used >> at & 1) at++;
    if (at == left.n) return solve(m, g->next);
    left.used |= UINT64_C(1) << at;
    for (int first = 0, end; first < left.p->args.n; first = end) {
        int run = zc_rl_pat_at(&left.p->args, first)->run;
        end = run ? end_of_run(left.p, first) : first + 1;
        if (!run || first + left.run[run - 1] == end) continue;
        const zc_rl_pat *a = zc_rl_pat_at(&left.p->args, first + left.run[run - 1]++);
        if (place_one(m, g, &left, a, at)) return true;
        left.run[run - 1]--;
    }
    return false;
}

/* Those that stand for one operand come first; what is left goes to the runs. */
static bool place_in_any_order(zc_rl_matcher *m, const goal *g)
{
    placing left = *g->placing;
    while (left.arg < left.p->args.n && zc_rl_pat_at(&left.p->args, left.arg)->run) left.arg++;
    return left.arg < left.p->args.n ? place_single(m, g, left) : place_in_run(m, g, left);
}

/* ---- chains: of an associative operation, whatever their shape ---- */

typedef struct chain {
    const zc_rl_pat *p;
    zc_vid v[ZC_RL_LIST_MAX]; /* what is joined, in the order of the graph */
    int n, links;
    bool is_whole; /* what may be taken apart is */
    const goal *next;
} chain;

/* The operation that v can be taken apart by: nothing else uses it. */
static zc_nid link_of(const zc_rl_matcher *m, const chain *c, zc_vid v)
{
    zc_nid n = producer_of(m, v);
    if (!n || zc_node_at(m->x->g, n)->op != c->p->op || m->x->uses.data[v] != 1) return 0;
    return zc_index_place(m->x, n)->block == m->block && !is_taken(m, n) ? n : 0;
}

static bool match_chain_from(zc_rl_matcher *m, chain *c, int i);

static bool take_apart(zc_rl_matcher *m, chain *c, int i, zc_nid n)
{
    const zc_node *node = zc_node_at(m->x->g, n);
    zc_vid v = c->v[i];
    int at = c->p->links + c->links++;
    m->node[at] = n;
    m->count++;
    memmove(&c->v[i + 1], &c->v[i], (size_t)(c->n++ - i) * sizeof *c->v);
    c->v[i] = node->in[0];
    c->v[i + 1] = node->in[1];
    if (match_chain_from(m, c, i)) return true;
    memmove(&c->v[i], &c->v[i + 1], (size_t)(--c->n - i) * sizeof *c->v);
    c->v[i] = v;
    c->links--;
    m->node[at] = 0;
    m->count--;
    return false;
}

/* Takes apart what can be, from value i on; where the pattern says how many there are, only so many
 * and in every way. */
static bool match_chain_from(zc_rl_matcher *m, chain *c, int i)
{
    if (m->gave_up || ++m->steps > ZC_RL_STEPS_MAX) {
        m->gave_up = true;
        return false;
    }
    if (i == c->n) {
        placing all = {.p = c->p, .v = c->v, .n = c->n};
        if (!c->is_whole && c->n < c->p->args.n)
            return miss(m, 0, "%s joins too few (got %d, need %d)", c->p->text, c->n, c->p->args.n);
        return solve(m, &(goal){.placing = &all, .next = c->next});
    }
    zc_nid n = link_of(m, c, c->v[i]);
    if (n && c->n < c->p->args.n && take_apart(m, c, i, n)) return true;
    return !(n && c->is_whole) && match_chain_from(m, c, i + 1);
}

static bool match_chain(zc_rl_matcher *m, const zc_rl_pat *p, zc_nid n, const goal *next)
{
    const zc_node *node = zc_node_at(m->x->g, n);
    chain c = {.p = p,
               .v = {node->in[0], node->in[1]},
               .n = 2,
               .is_whole = zc_rl_has_runs(p),
               .next = next};
    return match_chain_from(m, &c, 0);
}

static bool match_operands(zc_rl_matcher *m, const zc_rl_pat *p, zc_nid n, const goal *next)
{
    const zc_node *node = zc_node_at(m->x->g, n);
    int nin = operand_count(node), trail = m->ntrail;
    if (p->is_chain) return match_chain(m, p, n, next);
    if (zc_rl_has_runs(p)) {
        placing all = {.p = p, .v = node->in, .n = nin};
        return solve(m, &(goal){.placing = &all, .next = next});
    }
    if (nin > p->args.n && !p->rest)
        return miss(m, n, "has more operands (got %d, need %d)", nin, p->args.n);
    bool may_swap = (zc_op_get(node->op)->flags & ZC_OPF_COMMUTATIVE) && p->args.n == 2 &&
                    nin == 2 && node->in[0] != node->in[1];
    bool swap = may_swap && p->base && p->through >= 0 && goes_on_second(m, p, node);
    if (match_args(m, p, n, swap, next)) return true;
    unwind(m, trail);
    return may_swap && match_args(m, p, n, !swap, next);
}

/* Results that the pattern does not list are not used. */
static bool match_results(zc_rl_matcher *m, const zc_rl_pat *p, zc_nid n)
{
    const zc_node *node = zc_node_at(m->x->g, n);
    for (int i = 0; i < node->nout; i++) {
        zc_vid v = node->out[i];
        int var = i < p->nouts ? p->outs[i] : -1;
        bool is_listed = i < p->nouts ? var >= 0 : p->nouts == 0 && i == 0;
        if (is_listed ? v && !bind(m, var, v) : v && m->x->uses.data[v] > 0)
            return miss(m, n, "result %d is used", i);
    }
    return true;
}

static bool is_result(const zc_node *n, int out, zc_vid v)
{
    return out < n->nout && n->out[out] == v;
}

/* Equal operations are one when rules run. Is n that of a pattern that says the same, and of which
 * at least one is an operand that nothing names? */
static bool is_twin(const zc_rl_matcher *m, const zc_rl_pat *p, zc_nid n)
{
    for (int i = 0; i < m->rule->nnodes; i++) {
        const zc_rl_pat *other = m->rule->nodes[i];
        if (m->node[i] == n)
            return other != p && other->twin == p->twin && (other->is_nested || p->is_nested);
    }
    return false;
}

/* Of what is repeated, copies that stand for the same values are one operation, too. Is n that of
 * another copy? */
static bool is_copy_of(const zc_rl_matcher *m, const zc_rl_pat *p, zc_nid n)
{
    for (int i = 0; p->repetition && i < m->rule->nnodes; i++) {
        const zc_rl_pat *other = m->rule->nodes[i];
        if (m->node[i] == n)
            return other->origin == p->origin && other->repetition == p->repetition;
    }
    return false;
}

/* Does one node alone use v? What is between repetitions is theirs, which also keeps the ways to
 * walk them as few as the nodes. */
static bool has_one_user(const zc_rl_matcher *m, zc_vid v)
{
    uint32_t e = m->x->users.data[v];
    while (e && !zc_use_live(m->x, e, v)) e = m->x->edges.data[e].next;
    const zc_node *n = e ? zc_node_at(m->x->g, m->x->edges.data[e].node) : NULL;
    uint32_t uses = 0;
    for (int i = 0; n && i < n->nin; i++) uses += n->in[i] == v;
    return uses == m->x->uses.data[v];
}

/* Can the pattern's operation be node n, for what is seen of it alone? */
static bool may_be(zc_rl_matcher *m, const zc_rl_pat *p, zc_nid n, zc_vid v, int out)
{
    if (!n || zc_node_at(m->x->g, n)->op != p->op)
        return miss(m, n, "need %s, got %s", p->text,
                    n ? zc_op_get(zc_node_at(m->x->g, n)->op)->name : "no operation");
    if (zc_index_place(m->x, n)->block != m->block)
        return miss(m, n, "%s stands in another graph", p->text);
    if (!is_result(zc_node_at(m->x->g, n), out, v) ||
        (is_taken(m, n) && !is_twin(m, p, n) && !is_copy_of(m, p, n)))
        return miss(m, n, "%s stands for something else already", p->text);
    if (p->is_inner && !has_one_user(m, v))
        return miss(m, n, "its result is used outside of the repetition too");
    return true;
}

/* The operation has been matched already, operands and attributes too. */
static bool match_twin(zc_rl_matcher *m, const zc_rl_pat *p, zc_nid n, const goal *next)
{
    int trail = m->ntrail;
    m->absent[p->node] = true;
    if (match_results(m, p, n) && solve(m, next)) return true;
    m->absent[p->node] = false;
    unwind(m, trail);
    return false;
}

static bool match_present(zc_rl_matcher *m, const zc_rl_pat *p, zc_vid v, int out, const goal *next)
{
    zc_nid n = producer_of(m, v);
    bool explain = m->explain;
    /* That a repetition ends is no reason. */
    m->explain &= !(p->is_inner && p->optional);
    bool may = may_be(m, p, n, v, out);
    m->explain = explain;
    if (!may) return false;
    bool is_known = is_taken(m, n);
    if (is_known && is_twin(m, p, n)) return match_twin(m, p, n, next);
    int trail = m->ntrail;
    if (!is_known) m->node[p->node] = n;
    m->count += !is_known;
    bool ok = match_results(m, p, n) && match_attrs(m, p, n) && match_operands(m, p, n, next);
    if (ok) return true;
    unwind(m, trail);
    m->node[p->node] = 0;
    m->count -= !is_known;
    return false;
}

/* The optional operation is not there: its operand takes its place. */
static bool match_absent(zc_rl_matcher *m, const zc_rl_pat *p, zc_vid v, const goal *next)
{
    const zc_rl_pat *inner = p->base ? p->base : zc_rl_pat_at(&p->args, p->through);
    goal pass = {.pat = inner, .v = v, .next = next};
    int trail = m->ntrail;
    m->absent[p->node] = true;
    if (bind(m, p->nouts ? p->outs[0] : -1, v) && solve(m, &pass)) return true;
    m->absent[p->node] = false;
    unwind(m, trail);
    return false;
}

static bool match_node(zc_rl_matcher *m, const goal *g)
{
    if (match_present(m, g->pat, g->v, g->out, g->next)) return true;
    return g->pat->optional && match_absent(m, g->pat, g->v, g->next);
}

/* ---- the other goals ---- */

static double tolerance_of(const zc_rl_pat *p, zc_dtype dtype)
{
    double least = dtype == ZC_F16 ? 1e-3 : dtype == ZC_BF16 ? 8e-3 : ZC_RL_TOLERANCE;
    return p->tol > least ? p->tol : least;
}

static bool match_number(zc_rl_matcher *m, const goal *g)
{
    double x;
    zc_nid at = producer_of(m, g->v);
    if (!zc_graph_splat(m->x->g, g->v, &x)) return miss(m, at, "need the constant %g", g->pat->num);
    zc_dtype dtype = zc_val(m->x->g, g->v)->type.dtype;
    double tolerance = zc_dtype_is_float(dtype) ? tolerance_of(g->pat, dtype) : 0;
    if (!zc_rl_near(x, g->pat->num, tolerance))
        return miss(m, at, "need the constant %g (got %g)", g->pat->num, x);
    return solve(m, g->next);
}

static bool match_name(zc_rl_matcher *m, const goal *g)
{
    int var = g->pat->var, stmt = m->rule->vars[var].stmt;
    if (!g->v && g->pat->optional) return solve(m, g->next);
    if (!g->v) return miss(m, 0, "the operand '%s' is left out", name_of(m, var));
    if (stmt < 0 || m->bound[var]) {
        int trail = m->ntrail;
        if (bind(m, var, g->v) && solve(m, g->next)) return true;
        unwind(m, trail);
        return false;
    }
    const zc_rl_pat *body = zc_rl_stmt_at(&m->rule->match, stmt)->pat;
    goal inner = {.pat = body, .v = g->v, .next = g->next};
    while (inner.out < body->nouts && body->outs[inner.out] != var) inner.out++;
    return solve(m, &inner);
}

static bool match_alternatives(zc_rl_matcher *m, const goal *g)
{
    int trail = m->ntrail;
    if (!bind(m, g->pat->nouts ? g->pat->outs[0] : -1, g->v)) return false;
    for (int i = 0; i < g->pat->args.n; i++) {
        int inner = m->ntrail;
        goal one = {.pat = zc_rl_pat_at(&g->pat->args, i), .v = g->v, .next = g->next};
        if (solve(m, &one)) return true;
        unwind(m, inner);
    }
    unwind(m, trail);
    return false;
}

static bool solve(zc_rl_matcher *m, const goal *g)
{
    if (!g) return solve_extra(m, 0);
    if (m->gave_up || ++m->steps > ZC_RL_STEPS_MAX) {
        m->gave_up = true;
        return false;
    }
    if (g->placing)
        return g->placing->p->is_chain ? place_in_any_order(m, g) : place_in_order(m, g);
    switch (g->pat->kind) {
    case ZC_RP_NAME:
        return match_name(m, g);
    case ZC_RP_NUM:
        return match_number(m, g);
    case ZC_RP_NODE:
        return g->v ? match_node(m, g) : miss(m, 0, "the operand %s is left out", g->pat->text);
    case ZC_RP_ALT:
        return match_alternatives(m, g);
    case ZC_RP_ABSENT:
        return g->v ? miss(m, producer_of(m, g->v), "an operand is there") : solve(m, g->next);
    case ZC_RP_LIST:
    case ZC_RP_REST:
        break;
    }
    return false;
}

/* ---- all patterns matched: conditions, and values used elsewhere ---- */

static bool is_kept(const zc_rl_matcher *m, zc_vid v)
{
    for (int i = 0; i < m->rule->nvars; i++) {
        const zc_rl_var *var = &m->rule->vars[i];
        bool keeps = var->is_output || (var->stmt >= 0 && (var->flags & ZC_RC_SHARED));
        if (keeps && m->bound[i] && m->value[i] == v) return true;
    }
    return false;
}

static uint32_t inner_uses(const zc_rl_matcher *m, zc_vid v)
{
    uint32_t n = 0;
    for (int i = 0; i < m->rule->nnodes; i++) {
        const zc_node *node = m->node[i] ? zc_node_at(m->x->g, m->node[i]) : NULL;
        for (int k = 0; node && k < node->nin; k++) n += node->in[k] == v;
    }
    return n;
}

static bool check_uses(zc_rl_matcher *m)
{
    for (int i = 0; i < m->rule->nnodes; i++) {
        const zc_node *node = m->node[i] ? zc_node_at(m->x->g, m->node[i]) : NULL;
        for (int k = 0; node && k < node->nout; k++) {
            zc_vid v = node->out[k];
            if (!v || is_kept(m, v) || inner_uses(m, v) == m->x->uses.data[v]) continue;
            return miss(m, m->node[i], "its result is used outside of the match too");
        }
    }
    return true;
}

/* What emit defines again has been computed by what was matched. */
static bool check_outputs(zc_rl_matcher *m)
{
    for (int i = 0; i < m->rule->nvars; i++) {
        const zc_rl_var *var = &m->rule->vars[i];
        if (var->is_output && m->bound[i] && !is_taken(m, producer_of(m, m->value[i])))
            return miss(m, 0, "'%s' is not computed here", var->name);
    }
    return true;
}

/* The lists of a group stand for their i-th values; false: there are none. */
static bool set_lists(zc_rl_matcher *m, int group, int i)
{
    bool any = false;
    for (int k = 0; k < m->rule->nvars; k++) {
        const zc_rl_var *v = &m->rule->vars[k];
        if (v->kind != ZC_RV_LIST || v->group != group) continue;
        m->value[k] = i < v->count ? m->value[v->first + i] : 0;
        any |= m->value[k] != 0;
    }
    return any;
}

static bool miss_condition(zc_rl_matcher *m, const zc_rl_env *env, const zc_rl_expr *e)
{
    zc_buf text = {0};
    if (!is_farthest(m)) return false;
    zc_rl_put_failed(&text, env, e);
    miss(m, m->root, "%s", text.data ? text.data : "");
    zc_buf_fini(&text);
    return false;
}

/* A condition about collected values holds for each of them. */
static bool holds(zc_rl_matcher *m, const zc_rl_env *env, const zc_rl_expr *e)
{
    bool ok = true;
    if (e->list < 0) return zc_rl_holds(env, e) || miss_condition(m, env, e);
    const zc_rl_var *list = &m->rule->vars[e->list];
    for (int i = 0; ok && i < list->count; i++)
        if (set_lists(m, list->group, i)) ok = zc_rl_holds(env, e) || miss_condition(m, env, e);
    set_lists(m, list->group, list->count);
    return ok;
}

static bool meets_all(zc_rl_matcher *m)
{
    zc_rl_env env = zc_rl_match_env(m, &m->scratch);
    if (!check_outputs(m) || !check_uses(m)) return false;
    for (int i = 0; i < m->rule->where.n; i++)
        if (!holds(m, &env, zc_rl_expr_at(&m->rule->where, i))) return false;
    return true;
}

static bool complete(zc_rl_matcher *m)
{
    m->is_complete = true;
    bool ok = meets_all(m);
    m->is_complete = false;
    return ok;
}

/* ---- further statements, found among the users of a bound value ---- */

static bool is_done(const zc_rl_matcher *m, const zc_rl_pat *p)
{
    if (p->kind == ZC_RP_NODE) return m->node[p->node] || m->absent[p->node];
    for (int i = 0; i < p->args.n; i++)
        if (is_done(m, zc_rl_pat_at(&p->args, i))) return true;
    return false;
}

/* Is that operation the pattern's, or one of its alternatives'? */
static bool may_be_op(const zc_rl_pat *p, zc_op op)
{
    if (p->kind == ZC_RP_NODE) return p->op == op;
    for (int i = 0; i < p->args.n; i++)
        if (may_be_op(zc_rl_pat_at(&p->args, i), op)) return true;
    return false;
}

static bool try_user(zc_rl_matcher *m, const zc_rl_pat *p, zc_vid v, int out)
{
    if (p->kind == ZC_RP_NODE) return match_present(m, p, v, out, NULL);
    return match_alternatives(m, &(goal){.pat = p, .v = v});
}

static bool try_users(zc_rl_matcher *m, const zc_rl_pat *p, zc_vid pivot)
{
    int out = 0;
    while (out < p->nouts - 1 && p->outs[out] < 0) out++;
    for (uint32_t e = m->x->users.data[pivot]; e && !m->gave_up; e = m->x->edges.data[e].next) {
        zc_nid n = m->x->edges.data[e].node;
        const zc_node *node = zc_node_at(m->x->g, n);
        if (++m->steps > ZC_RL_STEPS_MAX) m->gave_up = true;
        if (!may_be_op(p, node->op) || !zc_use_live(m->x, e, pivot) || out >= node->nout) continue;
        if (node->out[out] && try_user(m, p, node->out[out], out)) return true;
    }
    return false;
}

static bool solve_extra(zc_rl_matcher *m, int k)
{
    while (k < m->rule->nextra &&
           is_done(m, zc_rl_stmt_at(&m->rule->match, m->rule->extra[k].stmt)->pat))
        k++;
    if (k == m->rule->nextra) return complete(m);
    const zc_rl_pat *p = zc_rl_stmt_at(&m->rule->match, m->rule->extra[k].stmt)->pat;
    zc_vid pivot = m->value[m->rule->extra[k].pivot];
    if (!pivot) return false;
    if (try_users(m, p, pivot)) return true;
    if (p->kind == ZC_RP_ALT) return miss(m, 0, "no alternative uses the shared value");
    if (!p->optional) return miss(m, 0, "no %s uses the shared value", p->text);
    const zc_rl_pat *through = zc_rl_pat_at(&p->args, p->through);
    return through->kind == ZC_RP_NAME && m->value[through->var] &&
           match_absent(m, p, m->value[through->var], NULL);
}

/* ---- roots ---- */

static bool root_goal(zc_rl_matcher *m, zc_nid n)
{
    const zc_rl_pat *p = zc_rl_stmt_at(&m->rule->match, m->rule->root)->pat;
    goal g = {.pat = p};
    while (g.out < p->nouts - 1 && p->outs[g.out] < 0) g.out++;
    if (p->kind == ZC_RP_ALT) g.out = 0;
    const zc_node *node = zc_node_at(m->x->g, n);
    if (g.out >= node->nout || !node->out[g.out]) return false;
    g.v = node->out[g.out];
    return solve(m, &g);
}

bool zc_rl_match_at(zc_rl_matcher *m, const zc_rl_rule *rule, zc_nid n)
{
    m->rule = rule;
    m->root = n;
    m->block = zc_index_place(m->x, n)->block;
    memset(m->bound, 0, sizeof m->bound);
    memset(m->value, 0, sizeof m->value);
    memset(m->node, 0, sizeof m->node);
    memset(m->absent, 0, sizeof m->absent);
    for (int i = 0; i < rule->nvars; i++) m->attr[i].type = ZC_RT_ANY;
    m->ntrail = m->count = 0;
    m->steps = 0;
    m->gave_up = false;
    zc_arena_reset(&m->scratch);
    return root_goal(m, n);
}

static void root_ops(const zc_rl_rule *rule, const zc_rl_pat *p, void (*fn)(void *user, zc_op op),
                     void *user, int depth)
{
    if (depth > ZC_RL_STMTS_MAX) return;
    if (p->kind == ZC_RP_NODE) {
        fn(user, p->op);
        if (p->optional) root_ops(rule, zc_rl_pat_at(&p->args, p->through), fn, user, depth + 1);
    }
    if (p->kind == ZC_RP_NAME && rule->vars[p->var].stmt >= 0)
        root_ops(rule, zc_rl_stmt_at(&rule->match, rule->vars[p->var].stmt)->pat, fn, user,
                 depth + 1);
    for (int i = 0; p->kind == ZC_RP_ALT && i < p->args.n; i++)
        root_ops(rule, zc_rl_pat_at(&p->args, i), fn, user, depth + 1);
}

void zc_rl_root_ops(const zc_rl_rule *rule, void (*fn)(void *user, zc_op op), void *user)
{
    root_ops(rule, zc_rl_stmt_at(&rule->match, rule->root)->pat, fn, user, 0);
}
