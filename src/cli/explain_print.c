#include "cli/explain_print.h"

#include <string.h>

#include "cli/cli.h"

/* Different reasons that are told of one rule or kind; JSON tells all. */
#define REASONS_MAX 12

static const zc_rule_miss *miss_at(const zc_explain *e, uint32_t i)
{
    return i == ZC_CENSUS_NONE ? NULL : &e->census.misses.data[i];
}

/* ---- text ---- */

static uint32_t taker_of(const zc_rule_miss *m)
{
    return m->is_over ? m->taker : ZC_CENSUS_NONE;
}

static bool same_reason(const zc_rule_miss *a, const zc_rule_miss *b)
{
    if (!a || !b) return a == b;
    return a->rule == b->rule && a->matched == b->matched && taker_of(a) == taker_of(b) &&
           strcmp(a->why, b->why) == 0;
}

static void put_reason(const zc_explain *e, const zc_rule_miss *m)
{
    printf("%zu of %d operations matched", m->matched, m->of);
    if (*m->node) {
        fputs(", at node ", stdout);
        cli_put(stdout, m->node);
    }
    fputs(": ", stdout);
    cli_put(stdout, m->why);
    if (taker_of(m) != ZC_CENSUS_NONE)
        printf("; rule '%s' took its place", zc_rules_at(e->rules, taker_of(m)).name);
    putchar('\n');
}

static void put_places(size_t n, const char *first)
{
    fputs("    at ", stdout);
    cli_put(stdout, first);
    if (n > 1) printf(" and %zu more", n - 1);
    fputs(": ", stdout);
}

/* What the rule itself took later is no miss, and what another one took, is. */
static bool is_of_rule(const zc_rule_miss *m, size_t rule)
{
    bool is_miss = !m->is_over || (m->taker != ZC_CENSUS_NONE && m->taker != rule);
    return m->rule == rule && is_miss && !zc_rule_miss_is_slight(m);
}

/* How many places share miss i's reason; 0 when an earlier one does. */
static size_t count_like(const zc_explain *e, size_t i)
{
    size_t n = 0;
    const zc_rule_miss *m = e->census.misses.data;
    for (size_t k = 0; k < e->census.misses.len; k++) {
        if (!is_of_rule(&m[k], m[i].rule) || !same_reason(&m[k], &m[i])) continue;
        if (k < i) return 0;
        n++;
    }
    return n;
}

static void put_rule_places(const zc_explain *e, size_t rule)
{
    size_t told = 0, untold = 0;
    for (size_t i = 0; i < e->census.misses.len; i++) {
        const zc_rule_miss *m = &e->census.misses.data[i];
        if (!is_of_rule(m, rule)) continue;
        size_t n = told < REASONS_MAX ? count_like(e, i) : 0;
        untold += told >= REASONS_MAX;
        if (!n) continue;
        put_places(n, m->root_name);
        put_reason(e, m);
        told++;
    }
    if (untold) printf("    and others (--json tells all)\n");
}

void cli_explain_rule(const zc_explain *e, size_t rule)
{
    zc_rule_info info = zc_rules_at(e->rules, rule);
    const zc_rule_stats *s = &e->stats[rule];
    printf("%s: %zu places tried, %zu rewritten, %zu refused\n", info.name, s->tried, s->applied,
           s->refused);
    if (s->gave_up) printf("    gave up after too many steps at %zu places\n", s->gave_up);
    if (s->tried == 0 && s->taken)
        printf("    the %zu operations that it might have ended with became part of other rules' "
               "matches, the last of '%s'\n",
               s->taken, zc_rules_at(e->rules, s->taker).name);
    else if (s->tried == 0)
        printf("    the model has no operation that it may end with\n");
    put_rule_places(e, rule);
}

static const char *lone_reason(const zc_explain *e, const zc_candidate *c)
{
    if (!zc_rule_kind_by_rule(c->kind)) return "it still stands by itself";
    for (size_t i = 0; i < zc_rules_count(e->rules); i++)
        if (zc_rules_at(e->rules, i).kind == c->kind) return "no rule of this kind begins near it";
    return "there is no rule of this kind";
}

static size_t count_candidates_like(const zc_explain *e, size_t i)
{
    size_t n = 0;
    const zc_candidate *c = e->census.candidates.data;
    for (size_t k = 0; k < e->census.candidates.len; k++) {
        if (c[k].kind != c[i].kind || c[k].found) continue;
        if (!same_reason(miss_at(e, c[k].miss), miss_at(e, c[i].miss))) continue;
        if (k < i) return 0;
        n++;
    }
    return n;
}

bool cli_explain_missed(const zc_explain *e, zc_rule_kind kind, size_t *at, cli_missed *out)
{
    for (; *at < e->census.candidates.len; ++*at) {
        const zc_candidate *c = &e->census.candidates.data[*at];
        size_t n = c->kind == kind && !c->found ? count_candidates_like(e, *at) : 0;
        if (!n) continue;
        *out = (cli_missed){.places = n, .node = c->node, .miss = miss_at(e, c->miss)};
        if (!out->miss) out->why = lone_reason(e, c);
        ++*at;
        return true;
    }
    return false;
}

static void put_missed(const zc_explain *e, zc_rule_kind kind)
{
    cli_missed m;
    for (size_t at = 0, told = 0; cli_explain_missed(e, kind, &at, &m); told++) {
        if (told == REASONS_MAX) {
            puts("    and others (--json tells all)");
            break;
        }
        put_places(m.places, m.node);
        if (!m.miss) {
            puts(m.why);
            continue;
        }
        printf("%s: ", zc_rules_at(e->rules, m.miss->rule).name);
        put_reason(e, m.miss);
    }
}

static void put_kinds(const zc_explain *e)
{
    puts("fusions          found  there are");
    for (int k = 1; k < ZC_RULE_KIND_COUNT; k++) {
        size_t found, n = zc_census_count(&e->census, (zc_rule_kind)k, &found);
        if (!n) continue;
        printf("%-16s %5zu  %9zu  %s\n", zc_rule_kind_name((zc_rule_kind)k), found, n,
               zc_rule_kind_about((zc_rule_kind)k));
        put_missed(e, (zc_rule_kind)k);
    }
}

static void put_steps(const zc_explain *e)
{
    printf("%zu steps, and %zu views and %zu of shape arithmetic\n", e->steps, e->views, e->shapes);
    for (int op = 1; op < ZC_OP_COUNT; op++)
        if (e->by_op[op]) printf("%6zu %s\n", e->by_op[op], zc_op_get((zc_op)op)->name);
    if (e->lacks_weights) puts("kernels for the GPU cannot be counted: weights are absent");
    if (e->has_gpu)
        printf("%zu steps on the GPU by %zu kernels, %zu on the CPU\n", e->gpu_steps, e->kernels,
               e->cpu_steps);
}

/* Lines, each further in. */
static void put_lines(const char *text)
{
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        printf("    %.*s\n", (int)n, text);
    }
}

void cli_explain_text(const zc_explain *e)
{
    if (e->precision.len) {
        puts("precision");
        put_lines(e->precision.data);
    }
    if (e->left.len) {
        puts("left as it was");
        put_lines(e->left.data);
    }
    for (size_t i = 0; i < zc_rules_count(e->rules); i++)
        if (!zc_rules_at(e->rules, i).is_builtin) cli_explain_rule(e, i);
    put_kinds(e);
    put_steps(e);
}

/* ---- JSON ---- */

static void put_string(const char *key, const char *text)
{
    printf("\"%s\": ", key);
    cli_json(stdout, text);
}

static void put_json_miss(const zc_rule_miss *m)
{
    printf(", \"matched\": %zu, \"of\": %d, ", m->matched, m->of);
    put_string("at", m->node);
    fputs(", ", stdout);
    put_string("why", m->why);
}

static void put_json_candidate(const zc_explain *e, const zc_candidate *c)
{
    const zc_rule_miss *m = miss_at(e, c->miss);
    putchar('{');
    put_string("node", c->node);
    fputs(", ", stdout);
    if (m) {
        put_string("rule", zc_rules_at(e->rules, m->rule).name);
        put_json_miss(m);
    } else {
        put_string("why", lone_reason(e, c));
    }
    putchar('}');
}

static void put_json_kind(const zc_explain *e, zc_rule_kind kind)
{
    size_t found, n = zc_census_count(&e->census, kind, &found);
    const char *separator = "";
    printf("{\"kind\": \"%s\", \"found\": %zu, \"there_are\": %zu, \"missed\": [",
           zc_rule_kind_name(kind), found, n);
    for (size_t i = 0; i < e->census.candidates.len; i++) {
        const zc_candidate *c = &e->census.candidates.data[i];
        if (c->kind != kind || c->found) continue;
        fputs(separator, stdout);
        put_json_candidate(e, c);
        separator = ", ";
    }
    fputs("]}", stdout);
}

static void put_json_places(const zc_explain *e, size_t rule)
{
    const char *separator = "";
    for (size_t i = 0; i < e->census.misses.len; i++) {
        const zc_rule_miss *m = &e->census.misses.data[i];
        if (!is_of_rule(m, rule)) continue;
        printf("%s{", separator);
        put_string("node", m->root_name);
        put_json_miss(m);
        putchar('}');
        separator = ", ";
    }
}

static void put_json_rule(const zc_explain *e, size_t rule)
{
    zc_rule_info info = zc_rules_at(e->rules, rule);
    const zc_rule_stats *s = &e->stats[rule];
    putchar('{');
    put_string("rule", info.name);
    fputs(", ", stdout);
    put_string("kind", zc_rule_kind_name(info.kind));
    fputs(", ", stdout);
    put_string("file", info.file);
    printf(", \"line\": %d, \"builtin\": %s, \"tried\": %zu, \"rewritten\": %zu, \"refused\": %zu, "
           "\"gave_up\": %zu, \"places\": [",
           info.line, info.is_builtin ? "true" : "false", s->tried, s->applied, s->refused,
           s->gave_up);
    put_json_places(e, rule);
    fputs("]}", stdout);
}

static void put_json_steps(const zc_explain *e)
{
    const char *separator = "";
    printf("  \"steps\": {\"total\": %zu, \"views\": %zu, \"shapes\": %zu, \"operations\": {",
           e->steps, e->views, e->shapes);
    for (int op = 1; op < ZC_OP_COUNT; op++) {
        if (!e->by_op[op]) continue;
        printf("%s\"%s\": %zu", separator, zc_op_get((zc_op)op)->name, e->by_op[op]);
        separator = ", ";
    }
    fputs("}},\n  \"gpu\": ", stdout);
    if (e->has_gpu)
        printf("{\"steps\": %zu, \"cpu_steps\": %zu, \"kernels\": %zu}", e->gpu_steps, e->cpu_steps,
               e->kernels);
    else
        fputs("null", stdout);
    puts("\n}");
}

/* A list of the text's lines. */
static void put_json_lines(const char *key, const char *text)
{
    const char *separator = "";
    printf("\"%s\": [", key);
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        zc_buf line = {0};
        n = strcspn(text, "\n");
        zc_buf_append(&line, text, n);
        zc_buf_append(&line, "", 1);
        fputs(separator, stdout);
        cli_json(stdout, line.failed ? "" : line.data);
        zc_buf_fini(&line);
        separator = ", ";
    }
    putchar(']');
}

void cli_explain_json(const zc_explain *e, const char *model)
{
    fputs("{\n  ", stdout);
    put_string("model", model);
    fputs(",\n  \"kinds\": [", stdout);
    for (int k = 1; k < ZC_RULE_KIND_COUNT; k++) {
        fputs(k > 1 ? ",\n    " : "\n    ", stdout);
        put_json_kind(e, (zc_rule_kind)k);
    }
    fputs("],\n  \"rules\": [", stdout);
    for (size_t i = 0; i < zc_rules_count(e->rules); i++) {
        fputs(i ? ",\n    " : "\n    ", stdout);
        put_json_rule(e, i);
    }
    fputs("],\n  ", stdout);
    put_json_lines("precision", e->precision.len ? e->precision.data : "");
    fputs(",\n  ", stdout);
    put_json_lines("left", e->left.len ? e->left.data : "");
    puts(",");
    put_json_steps(e);
}
