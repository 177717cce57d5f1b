/* All rules over the whole graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "census/census.h"
#include "rules/rewrite.h"

/* Rewrites of one run: what is more does not end by itself. */
#define REWRITES_BASE     1000
#define REWRITES_PER_NODE 8
/* Steps of one rule in one run. */
#define STEPS_BASE     ((size_t)1 << 22)
#define STEPS_PER_NODE 500
#define SWEEPS_MAX     64
/* Rewrites that tell which rules go on without end. */
#define NEWEST 64

typedef struct engine {
    const zc_rules *r;
    size_t only; /* SIZE_MAX: all rules */
    zc_index x;
    zc_rl_matcher *m;
    zc_rl_patch *patch;
    uint32_t *order; /* rules by precedence */
    size_t norder;
    /* By operation: rules that may begin there, in order of precedence. */
    struct bucket {
        ZC_VEC(uint32_t) rules;
    } by_op[ZC_OP_COUNT];
    uint32_t adding;     /* the rule whose buckets are being filled */
    const char **labels; /* by rule */
    size_t *steps;
    uint32_t newest[NEWEST]; /* rules of the newest rewrites, in a ring */
    size_t rewrites, rewrites_max, steps_max;
    zc_rules_report *report;
    bool nomem;
    zc_diag *diag;
} engine;

/* ---- precedence ---- */

int zc_rl_precedence(const zc_rules *r, uint32_t a, uint32_t b)
{
    const zc_rl_rule *x = r->rules.data[a], *y = r->rules.data[b];
    bool bx = r->files.data[x->file].is_builtin, by = r->files.data[y->file].is_builtin;
    if (x->priority != y->priority) return x->priority > y->priority ? -1 : 1;
    if (bx != by) return bx ? 1 : -1;
    if (x->nsure != y->nsure) return x->nsure > y->nsure ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* Few rules, mostly in order. */
static void sort_rules(engine *e)
{
    for (size_t i = 1; i < e->norder; i++)
        for (size_t j = i; j > 0 && zc_rl_precedence(e->r, e->order[j], e->order[j - 1]) < 0; j--) {
            uint32_t t = e->order[j];
            e->order[j] = e->order[j - 1];
            e->order[j - 1] = t;
        }
}

static void add_root(void *user, zc_op op)
{
    engine *e = user;
    struct bucket *b = &e->by_op[op];
    if (b->rules.len && b->rules.data[b->rules.len - 1] == e->adding) return;
    if (!ZC_VEC_PUSH(&b->rules, e->adding)) e->nomem = true;
}

static bool make_labels(engine *e)
{
    for (size_t k = 0; k < e->norder; k++) {
        uint32_t i = e->order[k];
        const zc_rl_rule *rule = e->r->rules.data[i];
        char label[640];
        snprintf(label, sizeof label, ZC_RULE_LABEL "%s (%.300s:%d%s%s)", rule->name.text,
                 e->r->files.data[rule->file].name, rule->name.loc.line,
                 rule->unchecked ? ", unchecked: " : "", rule->unchecked ? rule->unchecked : "");
        e->labels[i] = zc_arena_strdup(&e->x.g->arena, label);
        if (!e->labels[i]) return false;
    }
    return true;
}

static bool init(engine *e, zc_graph *g, const zc_rule_target *target)
{
    size_t n = e->r->rules.len;
    e->m = zc_calloc(1, sizeof *e->m);
    e->patch = zc_calloc(1, sizeof *e->patch);
    e->order = zc_calloc(n, sizeof *e->order);
    e->labels = zc_calloc(n, sizeof *e->labels);
    e->steps = zc_calloc(n, sizeof *e->steps);
    if (!e->m || !e->patch || !e->order || !e->labels || !e->steps) return false;
    if (!zc_index_init(&e->x, g)) return false;
    for (size_t i = 0; i < n; i++) {
        const zc_rl_rule *rule = e->r->rules.data[i];
        if (e->only != SIZE_MAX ? i == e->only : !rule->disabled && !rule->broken)
            e->order[e->norder++] = (uint32_t)i;
    }
    sort_rules(e);
    if (!make_labels(e)) return false;
    for (size_t i = 0; i < e->norder; i++) {
        e->adding = e->order[i];
        zc_rl_root_ops(e->r->rules.data[e->adding], add_root, e);
    }
    zc_arena_init(&e->m->scratch, 0);
    e->m->x = &e->x;
    e->m->target = target;
    e->m->explain = e->report != NULL;
    e->rewrites_max = REWRITES_BASE + REWRITES_PER_NODE * g->nodes.len;
    e->steps_max = STEPS_BASE + STEPS_PER_NODE * g->nodes.len;
    return !e->nomem;
}

static void fini(engine *e)
{
    for (size_t i = 0; i < ZC_OP_COUNT; i++) ZC_VEC_FINI(&e->by_op[i].rules);
    zc_index_fini(&e->x);
    if (e->m) zc_arena_fini(&e->m->scratch);
    free(e->m);
    free(e->patch);
    free(e->order);
    free(e->labels);
    free(e->steps);
}

/* ---- reports ---- */

static void note_place(engine *e, zc_rule_stats *s, zc_nid at, size_t count, const char *why)
{
    s->best = count;
    snprintf(s->place, sizeof s->place, "%s", at ? zc_node_at(e->x.g, at)->name : "");
    snprintf(s->why, sizeof s->why, "%s", why);
}

/* What matched no more than the operation that every match begins with says little: it is kept
 * where it may be all that is known about a kind. */
static void note_census(engine *e, uint32_t rule, const zc_nid *nodes, size_t count, zc_nid place,
                        const char *why)
{
    const zc_rl_rule *which = e->r->rules.data[rule];
    zc_rule_miss miss = {.rule = rule,
                         .kind = which->kind,
                         .root = e->m->root,
                         .root_name = zc_node_at(e->x.g, e->m->root)->name,
                         .node = place ? zc_node_at(e->x.g, place)->name : "",
                         .why = why,
                         .matched = count,
                         .of = which->nsure > (int)count ? which->nsure : (int)count,
                         .nodes = (zc_nid *)(uintptr_t)nodes,
                         .nnodes = which->nnodes,
                         .place = place};
    if (!e->report->census || !count) return;
    if (which->kind != ZC_RULE_KIND_NONE || !zc_rule_miss_is_slight(&miss))
        zc_census_miss(e->report->census, &miss);
}

static void note_miss(engine *e, uint32_t rule, zc_rule_stats *s)
{
    s->gave_up += e->m->gave_up;
    note_census(e, rule, e->m->best_node, (size_t)e->m->best, e->m->place, e->m->why);
    if (e->m->best > (int)s->best)
        note_place(e, s, e->m->place ? e->m->place : e->m->root, (size_t)e->m->best, e->m->why);
}

/* Names of the matched nodes, as many as there is room for. */
static void name_nodes(const engine *e, const zc_rl_rule *rule, char *out, size_t size)
{
    size_t len = 0;
    *out = 0;
    for (int i = 0; i < rule->nnodes; i++) {
        if (!e->m->node[i]) continue;
        const char *name = zc_node_at(e->x.g, e->m->node[i])->name;
        if (len + strlen(name) + 3 > size) return;
        len += (size_t)snprintf(out + len, size - len, "%s%s", len ? ", " : "", name);
    }
}

/* Rules that may end with an operation that this rewrite takes have not been tried there, if they
 * come later. */
static void note_taken(engine *e, uint32_t rule, const zc_op *ops, int n)
{
    for (int i = 0; i < n; i++) {
        const struct bucket *b = &e->by_op[ops[i]];
        bool is_gone = e->m->node[i] && zc_node_at(e->x.g, e->m->node[i])->op == ZC_OP_NONE;
        for (size_t k = 0; is_gone && k < b->rules.len; k++) {
            zc_rule_stats *s = &e->report->stats[b->rules.data[k]];
            if (b->rules.data[k] == rule) continue;
            s->taken++;
            s->taker = rule;
        }
    }
}

static void note_rewrite(engine *e, uint32_t rule)
{
    const zc_rl_rule *which = e->r->rules.data[rule];
    e->report->stats[rule].applied++;
    e->report->rewrites++;
    e->report->last = rule;
    if (e->report->rewrites == e->report->limit)
        name_nodes(e, which, e->report->last_nodes, sizeof e->report->last_nodes);
    if (e->report->census)
        zc_census_rewrite(e->report->census, rule, which->kind, e->m->node, which->nnodes,
                          e->patch->made, e->patch->nmade);
}

/* Has the caller had enough? */
static bool is_limit_reached(const engine *e)
{
    return e->report && e->report->limit && e->report->rewrites >= e->report->limit;
}

/* ---- budgets ---- */

/* Those that rewrite to the end, not those that rewrote much before. */
static zc_status out_of_rewrites(engine *e)
{
    size_t times[2] = {0};
    uint32_t names[2] = {e->newest[0], e->newest[0]};
    for (size_t k = 0; k < e->norder; k++) {
        size_t n = 0;
        for (size_t i = 0; i < NEWEST; i++) n += e->newest[i] == e->order[k];
        int at = n > times[0] ? 0 : n > times[1] ? 1 : -1;
        if (at == 0) {
            names[1] = names[0];
            times[1] = times[0];
        }
        if (at < 0) continue;
        names[at] = e->order[k];
        times[at] = n;
    }
    const char *first = e->r->rules.data[names[0]]->name.text;
    if (!times[1])
        return zc_fail(e->diag, ZC_ERR_LIMIT, first,
                       "it rewrites without end (%zu rewrites; '%s' did the last %zu)", e->rewrites,
                       e->labels[names[0]], times[0]);
    return zc_fail(
        e->diag, ZC_ERR_LIMIT, first,
        "rules rewrite without end (%zu rewrites; of the last %d '%s' did %zu, '%s' %zu)",
        e->rewrites, NEWEST, e->labels[names[0]], times[0], e->labels[names[1]], times[1]);
}

static zc_status out_of_steps(engine *e, uint32_t rule)
{
    return zc_fail(e->diag, ZC_ERR_LIMIT, e->r->rules.data[rule]->name.text,
                   "%s takes too many steps to match (got more than %zu)", e->labels[rule],
                   e->steps_max);
}

/* ---- one place ---- */

/* *next: the node to go on with. */
static zc_status rewrite(engine *e, uint32_t rule, zc_nid *next, bool *done)
{
    zc_rl_patch *p = e->patch;
    p->x = &e->x;
    p->m = e->m;
    p->label = e->labels[rule];
    zc_op ops[ZC_RL_NODES_MAX];
    for (int i = 0; i < ZC_RL_NODES_MAX; i++)
        ops[i] = e->m->node[i] ? zc_node_at(e->x.g, e->m->node[i])->op : ZC_OP_NONE;
    *done = zc_rl_rewrite(p);
    if (p->nomem) return zc_fail_nomem(e->diag, "rewriting", 0);
    zc_rule_stats *s = e->report ? &e->report->stats[rule] : NULL;
    if (!*done) {
        if (!zc_index_grow(&e->x)) return zc_fail_nomem(e->diag, "rewriting", 0);
        if (s) s->refused++;
        if (s) note_place(e, s, e->m->root, (size_t)e->m->count, p->why);
        if (s) note_census(e, rule, e->m->node, (size_t)e->m->count, e->m->root, p->why);
        return ZC_OK;
    }
    e->newest[e->rewrites % NEWEST] = rule;
    *next = p->resume;
    e->rewrites++;
    if (s) note_rewrite(e, rule);
    if (s) note_taken(e, rule, ops, e->r->rules.data[rule]->nnodes);
    return e->rewrites > e->rewrites_max ? out_of_rewrites(e) : ZC_OK;
}

static zc_status try_rule(engine *e, uint32_t rule, zc_nid n, zc_nid *next, bool *done)
{
    zc_rule_stats *s = e->report ? &e->report->stats[rule] : NULL;
    e->m->best = 0;
    e->m->best_complete = false;
    if (s) s->tried++;
    bool matched = zc_rl_match_at(e->m, e->r->rules.data[rule], n);
    e->steps[rule] += e->m->steps;
    if (s) s->steps += e->m->steps;
    if (matched) return rewrite(e, rule, next, done);
    if (s) note_miss(e, rule, s);
    return e->steps[rule] > e->steps_max ? out_of_steps(e, rule) : ZC_OK;
}

/* ---- sweeps ---- */

static zc_status visit(engine *e, zc_nid n, int64_t priority, zc_nid *next, bool *done)
{
    const struct bucket *b = &e->by_op[zc_node_at(e->x.g, n)->op];
    for (size_t i = 0; i < b->rules.len && !*done; i++)
        if (e->r->rules.data[b->rules.data[i]]->priority == priority)
            ZC_TRY(try_rule(e, b->rules.data[i], n, next, done));
    return ZC_OK;
}

/* From the last node to the first, so that the largest pattern that ends at a node is seen first.
 */
static zc_status sweep_block(engine *e, size_t block, int64_t priority, bool *changed)
{
    for (zc_nid n = e->x.blocks.data[block].tail; n && !is_limit_reached(e);) {
        zc_nid next = zc_index_place(&e->x, n)->prev;
        bool done = false;
        ZC_TRY(visit(e, n, priority, &next, &done));
        *changed |= done;
        n = next;
    }
    return ZC_OK;
}

static zc_status sweep(engine *e, int64_t priority, bool *changed)
{
    bool again = true;
    for (int i = 0; again && i < SWEEPS_MAX; i++) {
        again = false;
        for (size_t b = 0; b < e->x.blocks.len; b++) ZC_TRY(sweep_block(e, b, priority, &again));
        *changed |= again;
    }
    return ZC_OK;
}

static zc_status run_priorities(engine *e, bool *changed)
{
    for (size_t i = 0; i < e->norder; i++) {
        int64_t priority = e->r->rules.data[e->order[i]]->priority;
        if (i == 0 || priority != e->r->rules.data[e->order[i - 1]]->priority)
            ZC_TRY(sweep(e, priority, changed));
    }
    return ZC_OK;
}

/* What a rule makes may suit one of higher priority. */
static zc_status run(engine *e)
{
    bool changed = true;
    for (int i = 0; changed && i < SWEEPS_MAX; i++) {
        changed = false;
        ZC_TRY(run_priorities(e, &changed));
    }
    return ZC_OK;
}

zc_status zc_rl_apply(const zc_rules *r, size_t only, zc_graph *g, const zc_rule_target *target,
                      zc_rules_report *report, size_t *changes, zc_diag *diag)
{
    static const zc_rule_target cpu = {.cuda = false};
    if (r->errors) return zc_fail(diag, ZC_ERR_ARG, "rules", "the set has errors");
    if (r->rules.len == 0) return ZC_OK;
    engine *e = zc_calloc(1, sizeof *e);
    if (!e) return zc_fail_nomem(diag, "rules", sizeof *e);
    e->r = r;
    e->only = only;
    e->report = report;
    e->diag = diag;
    zc_status status =
        init(e, g, target ? target : &cpu) ? run(e) : zc_fail_nomem(diag, "rules", g->nodes.len);
    if (e->x.g && !zc_index_finish(&e->x)) status = zc_fail_nomem(diag, "rules", g->nodes.len);
    zc_graph_resolve(g);
    if (status == ZC_OK && report && report->census) zc_census_settle(report->census, &e->x);
    if (changes) *changes += e->rewrites;
    fini(e);
    free(e);
    return status;
}

zc_status zc_rules_apply(const zc_rules *r, zc_graph *g, const zc_rule_target *target,
                         zc_rules_report *report, size_t *changes, zc_diag *diag)
{
    return zc_rl_apply(r, SIZE_MAX, g, target, report, changes, diag);
}
