/* A rule's two sides against each other by numbers: the search for samples.
 *
 * What must be among the samples is there whatever the seed: a fixed stream of random numbers finds
 * places of every kind in `tasks`. The seed adds more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prover/hints.h"
#include "prover/run.h"

#define TRIES_MAX   200000 /* graphs made in search of the first place */
#define CORE_SEED   1
#define SEED_PLACES 6    /* beside what is always there */
#define LARGE       3000 /* work of one side; with more, fewer kinds of values are computed */
/* Elements of a result; where none with so few are found, more, as many as conditions speak of. */
#define ELEMENTS      (1 << 11)
#define ELEMENTS_MORE (1 << 14)
#define WORK_MAX                                                                                   \
    3000000 /* of all places; beyond, there is one place of a kind, beyond twice that none */

/* ---- one sample ---- */

typedef struct checker {
    const zc_rules *r;
    size_t index;
    const zc_rl_rule *rule;
    const zc_rule_device *device;
    zc_rl_choice c;
    zc_rl_role roles[ZC_RL_VARS_MAX];
    zc_rl_sides sides; /* of the sample in work */
    zc_rules_report report;
    /* In some place, as what a choice may want is numbered. */
    bool made[ZC_RL_NODES_MAX + ZC_RL_VARS_MAX], absent[ZC_RL_NODES_MAX + ZC_RL_VARS_MAX];
    bool keeps_forms;
    int64_t most_elements;
    size_t tries, work;
    zc_rule_check *out;
    zc_status status;
    zc_diag *diag;
} checker;

static void sides_fini(zc_rl_sides *s)
{
    zc_rl_run_fini(&s->match);
    zc_rl_run_fini(&s->emit);
    zc_rl_run_fini(&s->wide);
    zc_rl_run_fini(&s->exact);
}

static void fail(checker *k, const zc_rl_sides *s, const char *why)
{
    k->out->failed = true;
    snprintf(k->out->why, sizeof k->out->why, "%s", why);
    if (s->match.value) zc_rl_describe(s, k->out->input, sizeof k->out->input);
}

/* The emit side: the rule applied to the sample. */
static bool apply(checker *k, zc_rl_sides *s)
{
    zc_rule_stats *stats = &k->report.stats[k->index];
    size_t changes = 0;
    stats->refused = 0;
    if (!zc_rl_make_sample(k->rule, &k->c, &s->emit.s)) return false;
    k->status =
        zc_rl_apply(k->r, k->index, s->emit.s.g, &k->c.target, &k->report, &changes, k->diag);
    if (k->status == ZC_ERR_LIMIT) {
        k->status = ZC_OK;
        fail(k, s, "the rule rewrites what it made, again and again");
        return false;
    }
    if (k->status != ZC_OK) return false;
    if (stats->refused && !changes) {
        k->out->refused++;
        snprintf(k->out->refusal, sizeof k->out->refusal, "%s", stats->why);
    }
    zc_graph_compact(s->emit.s.g);
    return changes > 0;
}

/* Computes all that is known of the sample. false: no model computes such a thing. */
static bool compute(checker *k, zc_rl_sides *s, int binding)
{
    if (!zc_rl_run_all(&s->match, k->rule, &k->c, binding)) return false;
    if (!zc_rl_run_all(&s->emit, k->rule, &k->c, binding)) {
        fail(k, s, "the emit side cannot be computed");
        return true;
    }
    k->work += s->match.work;
    if (s->wide.s.g && !zc_rl_run_all(&s->wide, k->rule, &k->c, binding)) zc_rl_run_fini(&s->wide);
    if (s->exact.s.g && !zc_rl_run_all(&s->exact, k->rule, &k->c, binding))
        zc_rl_run_fini(&s->exact);
    return true;
}

static bool check_values(checker *k, zc_rl_sides *s, zc_rl_values values, int binding)
{
    k->c.values = values;
    if (!compute(k, s, binding)) return false;
    if (!k->out->failed) zc_rl_compare_sides(s, k->out);
    if (!k->out->failed && k->device && binding == 0)
        k->status = zc_rl_compare_device(s, k->device, k->out, k->diag);
    return true;
}

/* Is that kind of values computed? All, those that most depends on, or of much work one. */
static bool is_computed(zc_rl_values v, bool all, size_t work)
{
    bool is_main = v == ZC_VALUES_PLAIN || v == ZC_VALUES_ODD || v == ZC_VALUES_EDGES;
    if (work > LARGE) return all ? is_main : v == ZC_VALUES_PLAIN;
    return all || is_main;
}

static bool check_sides(checker *k, zc_rl_sides *s, bool all)
{
    bool any = false;
    for (int v = 0; v < ZC_VALUES_COUNT && !k->out->failed && k->status == ZC_OK; v++) {
        if (!is_computed((zc_rl_values)v, all, s->match.work)) continue;
        any |= check_values(k, s, (zc_rl_values)v, 0);
        if (!any) return false; /* no graph for plain values: none for others */
    }
    int bindings = zc_rl_bindings(&s->match.s);
    if (bindings > 2 && s->match.work > LARGE) bindings = 2;
    for (int b = 1; b < bindings && !k->out->failed; b++) check_values(k, s, ZC_VALUES_PLAIN, b);
    return any;
}

/* The choice gives a graph, and the rule applies to it. */
static bool check_choice(checker *k, bool all)
{
    zc_rl_sides *s = &k->sides;
    const zc_rl_sample *own = &s->match.s;
    bool ok = apply(k, s) && zc_rl_make_sample(k->rule, &k->c, &s->match.s);
    if (ok) zc_rl_make_exact(k->rule, &k->c, ZC_SAMPLE_WIDE, own, &s->wide.s);
    if (ok && own->is_rounded) zc_rl_make_exact(k->rule, &k->c, ZC_SAMPLE_EXACT, own, &s->exact.s);
    ok = ok && check_sides(k, s, all);
    for (int i = 0; ok && i < k->rule->nnodes; i++) {
        k->made[i] |= own->made[i];
        k->absent[i] |= own->absent[i];
    }
    for (int i = 0; ok && i < k->rule->nvars; i++) {
        k->made[k->rule->nnodes + i] |= own->value[i] != 0;
        k->absent[k->rule->nnodes + i] |= own->value[i] == 0;
    }
    sides_fini(s);
    return ok;
}

/* ---- searching ---- */

/* Places of one kind. */
typedef struct task {
    zc_rl_sizes sizes;
    zc_dtype dtype;       /* ZC_NONE: any */
    int want, vary, turn; /* as in the choice */
    int places;
    bool all_constants; /* every variant of them at each place */
} task;

static zc_rule_target draw_target(uint64_t z)
{
    static const int archs[] = {0, 90, 80, 0, 86, 100, 120, 0};
    int sm = archs[z % ZC_COUNTOF(archs)];
    return (zc_rule_target){.cuda = sm > 0, .sm = sm};
}

static void draw(checker *k, const task *t, bool is_patient, uint64_t *random)
{
    static const zc_dtype dtypes[] = {ZC_F32, ZC_F32, ZC_F32, ZC_F16, ZC_F64};
    uint64_t z = zc_rl_random(random);
    zc_dtype named = zc_rl_hint_named_dtype(k->rule, z >> 8);
    k->c.shape_seed = zc_rl_random(random);
    k->c.value_seed = zc_rl_random(random) >> 16;
    k->c.dtype = t->dtype         ? t->dtype
                 : z % 2 && named ? named
                                  : dtypes[(z >> 1) % ZC_COUNTOF(dtypes)];
    k->c.target = draw_target(z >> 16);
    k->c.sizes = t->sizes;
    k->c.elements = is_patient ? k->most_elements : ELEMENTS;
    k->c.want = t->want;
    k->c.vary = t->vary;
    k->c.turn = t->turn;
    k->c.constants = (int)((z >> 24) % ZC_RL_CONSTANTS);
    if (!k->keeps_forms) zc_rl_choose_forms(k->rule, random, &k->c);
}

static bool has_constants(const zc_rl_rule *rule)
{
    for (int i = 0; i < rule->nvars; i++)
        if (rule->vars[i].flags & ZC_RC_CONST) return true;
    for (int i = 0; i < rule->nnodes; i++)
        for (int a = 0; a < rule->nodes[i]->args.n; a++) {
            const zc_rl_pat *p = zc_rl_pat_at(&rule->nodes[i]->args, a);
            if (p->kind == ZC_RP_NUM && p->tol > 0) return true;
        }
    return false;
}

/* work: of the place, all kinds of values together. */
static void check_constants(checker *k, size_t work)
{
    enum { FEWER = 4 };
    if (!has_constants(k->rule)) return;
    int step = work > 10 * LARGE ? FEWER : 1;
    for (int i = 0; i < ZC_RL_CONSTANTS && !k->out->failed && k->status == ZC_OK; i += step) {
        k->c.constants = i;
        check_choice(k, false);
    }
}

/* false: none of that kind within so many tries. */
static bool find(checker *k, const task *t, uint64_t *random, size_t tries)
{
    int places = 0;
    for (size_t i = 0; i < tries && k->status == ZC_OK && !k->out->failed; i++) {
        if (places == t->places || (places && k->work > WORK_MAX)) return true;
        if (k->out->places && k->work > 2 * (size_t)WORK_MAX) return false;
        draw(k, t, i >= tries / 2 || i >= 1000, random);
        k->tries++;
        size_t before = k->work;
        bool any = check_choice(k, true);
        if (any && t->all_constants && k->work < WORK_MAX / 10)
            check_constants(k, k->work - before);
        places += any;
        k->out->places += any;
        /* Forms that matched are likely to match again, but other forms count too. */
        k->keeps_forms = any || (k->keeps_forms && zc_rl_random(random) % 64);
    }
    return places == t->places;
}

/* Tries that a place of a special kind may take: some times as many as one of any kind did. */
static size_t patience(const checker *k)
{
    enum { LEAST = 40, MOST = 1000, TIMES = 3 };
    size_t n = TIMES * k->tries / (k->out->places ? k->out->places : 1);
    return n < LEAST ? LEAST : n > MOST ? MOST : n;
}

/* Conditions that ask for long dimensions get them, and little beside. */
static int64_t most_elements(const zc_rl_rule *rule)
{
    int64_t n = 2 * zc_rl_hint_longest(rule);
    return n > ELEMENTS_MORE ? n : ELEMENTS_MORE;
}

static bool is_untyped(const zc_rl_rule *rule)
{
    for (int i = 0; i < rule->nvars; i++) {
        const zc_rl_var *v = &rule->vars[i];
        if (v->kind == ZC_RV_VALUE && v->in_match && v->stmt < 0 && !v->dtype) return true;
    }
    return false;
}

static void find_dtypes(checker *k, uint64_t *random)
{
    static const zc_dtype dtypes[] = {ZC_F32, ZC_F16, ZC_F64, ZC_BF16, ZC_I32,
                                      ZC_I64, ZC_U8,  ZC_I8,  ZC_BOOL};
    size_t tries = patience(k);
    for (size_t i = 0; i < ZC_COUNTOF(dtypes) && is_untyped(k->rule); i++)
        find(k, &(task){.dtype = dtypes[i], .places = 1}, random, tries);
}

/* Every operation of the pattern, and where it may be absent, a place without it; operands that may
 * be left out as well. */
static void find_operations(checker *k, uint64_t *random)
{
    size_t tries = patience(k);
    for (int i = 0; i < k->rule->nnodes + k->rule->nvars; i++) {
        const zc_rl_pat *p = i < k->rule->nnodes ? k->rule->nodes[i] : NULL;
        bool is_optional = p ? p->optional : k->rule->vars[i - k->rule->nnodes].is_optional;
        bool is_alike = p && (p->is_link || (p->is_copy && !p->base)); /* one tells of all */
        if (!k->made[i] && (p || is_optional) && !is_alike)
            find(k, &(task){.want = i + 1, .places = 1}, random, tries);
        if (is_optional && !k->absent[i])
            find(k, &(task){.want = -i - 1, .places = 1}, random, tries);
    }
}

/* Every attribute that may have any value, with other values than its default: a number is a
 * fraction, negative and zero. */
static void find_attributes(checker *k, uint64_t *random)
{
    size_t tries = patience(k);
    for (int i = 0; i < k->rule->nnodes; i++) {
        const zc_op_info *info = zc_op_get(k->rule->nodes[i]->op);
        for (int a = 0; a < info->field_count; a++) {
            if (!zc_rl_is_free_attr(k->rule->nodes[i], a)) continue;
            for (int turn = 0; turn < zc_rl_attr_turns(&info->fields[a]); turn++)
                find(k,
                     &(task){.sizes = turn % 2 ? ZC_SIZES_ANY : ZC_SIZES_SQUARE,
                             .want = i + 1,
                             .vary = a + 1,
                             .turn = turn,
                             .places = 1},
                     random, tries);
        }
    }
}

/* What is there whatever the seed. */
static void find_core(checker *k)
{
    static const task first = {.places = 1, .all_constants = true}, plain = {.places = 4},
                      many = {.sizes = ZC_SIZES_MANY, .places = 2, .all_constants = true},
                      square = {.sizes = ZC_SIZES_SQUARE, .places = 2},
                      zero = {.sizes = ZC_SIZES_ZERO, .places = 3},
                      symbolic = {.sizes = ZC_SIZES_SYMBOLIC, .places = 4};
    uint64_t random = CORE_SEED;
    if (!find(k, &first, &random, TRIES_MAX)) return;
    find(k, &plain, &random, TRIES_MAX / 20);
    find_dtypes(k, &random);
    find(k, &many, &random, patience(k));
    find(k, &zero, &random, patience(k));
    find(k, &square, &random, patience(k));
    find(k, &symbolic, &random, 2 * patience(k));
    find_operations(k, &random);
    find_attributes(k, &random);
}

/* ---- the check ---- */

/* Nothing found, or nothing compared, is no success. */
static void check_extent(zc_rule_check *out)
{
    if (out->failed || out->values) return;
    out->failed = true;
    if (out->places)
        snprintf(out->why, sizeof out->why, "nothing was compared: every result found is empty");
    else if (out->refused)
        snprintf(out->why, sizeof out->why, "every rewrite was refused: %.200s", out->refusal);
    else
        snprintf(out->why, sizeof out->why, "no operands were found for which the rule applies");
}

zc_status zc_rules_check_numbers(const zc_rules *r, size_t i, uint64_t seed, zc_rule_check *out,
                                 zc_diag *diag)
{
    return zc_rules_check_kernels(r, i, seed, NULL, out, diag);
}

zc_status zc_rules_check_kernels(const zc_rules *r, size_t i, uint64_t seed,
                                 const zc_rule_device *device, zc_rule_check *out, zc_diag *diag)
{
    *out = (zc_rule_check){.places = 0};
    if (i >= r->rules.len || r->errors)
        return zc_fail(diag, ZC_ERR_ARG, "rules", "the set has errors");
    checker *k = zc_calloc(1, sizeof *k);
    zc_rule_stats *stats = zc_calloc(r->rules.len, sizeof *stats);
    zc_status status = k && stats ? ZC_OK : zc_fail_nomem(diag, "check", sizeof *k);
    if (status == ZC_OK) {
        *k = (checker){.r = r,
                       .index = i,
                       .rule = r->rules.data[i],
                       .device = device,
                       .most_elements = most_elements(r->rules.data[i]),
                       .report = {.stats = stats},
                       .out = out,
                       .diag = diag};
        uint64_t random = seed + CORE_SEED;
        k->sides = (zc_rl_sides){.rule = k->rule, .c = &k->c};
        k->c.roles = k->roles;
        zc_rl_find_roles(k->rule, k->roles);
        zc_rl_choose_numbers(k->rule, &k->c);
        k->c.is_narrow = zc_rl_is_narrow(k->rule);
        find_core(k);
        if (out->places)
            find(k, &(task){.places = SEED_PLACES}, &random, SEED_PLACES * patience(k));
        if (k->status == ZC_OK) check_extent(out);
        status = k->status;
    }
    free(stats);
    free(k);
    return status;
}
