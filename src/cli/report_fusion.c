/* What the report says of how steps came to be: nodes, rules, what was not fused, and what is left
 * to the CPU. */
#include <stdlib.h>
#include <string.h>

#include "census/census.h"
#include "cli/explain_print.h"
#include "cli/report_html.h"
#include "runtime/plan.h"

/* ---- where steps are from ---- */

/* Names among those that a step stands for: of ONNX nodes, and of the rules that joined them. */
static bool is_rule(const char *name)
{
    return strncmp(name, ZC_RULE_LABEL, strlen(ZC_RULE_LABEL)) == 0;
}

size_t report_node_count(const zc_pstep *step)
{
    size_t n = 0;
    for (uint32_t i = 0; i < step->nprov; i++) n += !is_rule(step->prov[i]);
    return n;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* All of one kind, of all steps, sorted; the caller frees it. NULL: no memory. */
static const char **names_of(const zc_program *p, bool rules, size_t *n)
{
    size_t all = 1;
    for (uint32_t i = 0; i < p->nsteps; i++) all += p->steps[i].nprov;
    const char **names = zc_calloc(all, sizeof *names);
    *n = 0;
    if (!names) return NULL;
    for (uint32_t s = 0; s < p->nsteps; s++)
        for (uint32_t i = 0; i < p->steps[s].nprov; i++)
            if (is_rule(p->steps[s].prov[i]) == rules) names[(*n)++] = p->steps[s].prov[i];
    qsort(names, *n, sizeof *names, by_text);
    return names;
}

/* How many from names[i] on are the same. */
static size_t run_length(const char *const *names, size_t n, size_t i)
{
    size_t k = i;
    while (k < n && strcmp(names[k], names[i]) == 0) k++;
    return k - i;
}

/* ---- fusions ---- */

void report_nodes(const report *r, const report_plan *p, zc_buf *out)
{
    size_t n, nodes = 0, joined = 0;
    if (!p->plan) return;
    const zc_program *program = &p->plan->program;
    const char **names = names_of(program, false, &n);
    out->failed |= !names;
    for (size_t i = 0; names && i < n; i += run_length(names, n, i)) nodes++;
    for (uint32_t i = 0; i < program->nsteps; i++)
        joined += report_node_count(&program->steps[i]) > 1;
    zc_buf_printf(out, "%zu nodes in %u steps, of which %zu stand for several", nodes,
                  (unsigned)program->nsteps, joined);
    free(names);
}

void report_rules(const report *r, const report_plan *p, zc_buf *out)
{
    size_t n;
    const char **names = names_of(&p->plan->program, true, &n);
    out->failed |= !names;
    for (size_t i = 0, same; names && i < n; i += same) {
        same = run_length(names, n, i);
        zc_buf_puts(out, "<tr>");
        report_cell(names[i] + strlen(ZC_RULE_LABEL), out);
        report_number((double)same, 0, out);
        zc_buf_puts(out, "</tr>\n");
    }
    free(names);
}

static void put_missed(const report *r, const cli_missed *m, zc_buf *out)
{
    const zc_explain *e = &r->explain;
    zc_buf_printf(out, "<li>%zu at ", m->places);
    report_text(out, m->node);
    zc_buf_puts(out, m->places > 1 ? " and others: " : ": ");
    if (!m->miss) {
        report_text(out, m->why);
    } else {
        zc_buf_puts(out, "rule ");
        report_text(out, zc_rules_at(e->rules, m->miss->rule).name);
        zc_buf_printf(out, " matched %zu of %d operations", m->miss->matched, m->miss->of);
        if (*m->miss->node) {
            zc_buf_puts(out, ", not ");
            report_text(out, m->miss->node);
        }
        zc_buf_puts(out, ": ");
        report_text(out, m->miss->why);
        if (m->miss->is_over && m->miss->taker != ZC_CENSUS_NONE) {
            zc_buf_puts(out, "; taken by rule ");
            report_text(out, zc_rules_at(e->rules, m->miss->taker).name);
        }
    }
    zc_buf_puts(out, "</li>");
}

static void put_kind(const report *r, zc_rule_kind kind, zc_buf *out)
{
    size_t found, n = zc_census_count(&r->explain.census, kind, &found), at = 0;
    if (!n) return;
    zc_buf_puts(out, "<tr>");
    report_cell(zc_rule_kind_name(kind), out);
    report_cell(zc_rule_kind_about(kind), out);
    report_number((double)found, 0, out);
    report_number((double)n, 0, out);
    zc_buf_puts(out, "<td><ul>");
    for (cli_missed m; cli_explain_missed(&r->explain, kind, &at, &m);) put_missed(r, &m, out);
    zc_buf_puts(out, "</ul></td></tr>\n");
}

void report_fusions(const report *r, const report_plan *p, zc_buf *out)
{
    for (int k = 1; k < ZC_RULE_KIND_COUNT; k++) put_kind(r, (zc_rule_kind)k, out);
}

/* ---- steps on the CPU ---- */

void report_cpu_steps(const report *r, const report_plan *p, zc_buf *out)
{
    const zc_program *program = &p->plan->program;
    size_t n = 0;
    for (uint32_t i = 0; i < program->nsteps; i++) {
        const zc_pstep *step = &program->steps[i];
        if (step->nchoices || !step->why || !*step->why) continue;
        zc_buf_puts(out, n++ ? "<tr>"
                             : "<table><thead><tr><th>operation</th><th>name</th><th>why on "
                               "the CPU</th></tr></thead><tbody>\n<tr>");
        report_operation(r, zc_op_get(step->op)->name, out);
        report_cell(step->name, out);
        report_cell(step->why, out);
        zc_buf_puts(out, "</tr>\n");
    }
    zc_buf_puts(out, n ? "</tbody></table>\n" : "<p>There is none.</p>\n");
}
