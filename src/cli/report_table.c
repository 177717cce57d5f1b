/* The report's tables. A cell that is sorted by something else than its text has that in data-v. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/explain_print.h"
#include "cli/report.h"
#include "cli/stats.h"
#include "rules/census.h"
#include "runtime/plan.h"

/* ---- cells ---- */

static void put_cell(zc_buf *out, const char *text)
{
    zc_buf_puts(out, "<td class=\"t\">");
    report_text(out, text);
    zc_buf_puts(out, "</td>");
}

/* A number as it is sorted; the caller prints it and ends the cell. */
static void begin_number(zc_buf *out, double v)
{
    zc_buf_printf(out, "<td class=\"n\" data-v=\"%.6g\">", v);
}

static void put_number(zc_buf *out, double v, int decimals)
{
    begin_number(out, v);
    zc_buf_printf(out, "%.*f</td>", decimals, v);
}

static void put_nothing(zc_buf *out)
{
    zc_buf_puts(out, "<td class=\"n\" data-v=\"-1\">–</td>");
}

static void put_operation(const report *r, zc_buf *out, const char *op)
{
    zc_buf_printf(
        out,
        "<td class=\"o\"><svg class=\"key\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect "
        "class=\"c%d\" width=\"10\" height=\"10\"/></svg> ",
        report_colour(r, op));
    report_text(out, op);
    zc_buf_puts(out, "</td>");
}

/* ---- summary: a row a fact, a column a plan ---- */

typedef void put_fact(const report *r, const report_plan *p, zc_buf *out);

static void fact_times(const report *r, const report_plan *p, zc_buf *out)
{
    report_text(out, p->times ? p->times : "measured for this report");
}

static void fact_model(const report *r, const report_plan *p, zc_buf *out)
{
    if (p->plan) report_text(out, p->plan->program.model_name);
}

static void fact_hash(const report *r, const report_plan *p, zc_buf *out)
{
    zc_buf_puts(out, "<code>");
    report_text(out, p->model_sha256);
    zc_buf_puts(out, "</code>");
}

static void fact_compiler(const report *r, const report_plan *p, zc_buf *out)
{
    if (!p->plan) return;
    zc_buf_puts(out, "zc ");
    report_text(out, p->plan->program.version);
    zc_buf_puts(out, " for ");
    report_text(out, p->plan->program.target);
}

static void fact_device(const report *r, const report_plan *p, zc_buf *out)
{
    report_text(out, report_head(p, "device"));
}

static void fact_threads(const report *r, const report_plan *p, zc_buf *out)
{
    report_text(out, report_head(p, "threads"));
}

/* The lines that have no row of their own: inputs, and what this zc does not know. */
static void put_lines(const report_plan *p, bool inputs, zc_buf *out)
{
    static const char *const told[] = {"model", "device", "threads"};
    for (size_t i = 1; i < p->saved.head.len; i++) {
        const char *line = p->saved.head.data[i], *input = bench_saved_behind(line, "input");
        bool is_told = strcmp(line, "concurrency 1") == 0;
        for (size_t k = 0; k < ZC_COUNTOF(told); k++)
            is_told |= bench_saved_behind(line, told[k]) != NULL;
        if (is_told || (input != NULL) != inputs) continue;
        zc_buf_puts(out, "<div>");
        report_text(out, input ? input : line);
        zc_buf_puts(out, "</div>");
    }
}

static void fact_inputs(const report *r, const report_plan *p, zc_buf *out)
{
    put_lines(p, true, out);
}

static void fact_others(const report *r, const report_plan *p, zc_buf *out)
{
    put_lines(p, false, out);
}

static void fact_median(const report *r, const report_plan *p, zc_buf *out)
{
    zc_buf_puts(out, "<strong>");
    report_time(out, p->summary.p50 * 1e6);
    zc_buf_puts(out, "</strong> (95 %: ");
    report_time(out, p->summary.low * 1e6);
    zc_buf_puts(out, " to ");
    report_time(out, p->summary.high * 1e6);
    zc_buf_puts(out, ")");
}

static void fact_ratio(const report *r, const report_plan *p, zc_buf *out)
{
    const bench_times *a = &r->plans[0].runs, *b = &p->runs;
    if (p == &r->plans[0]) return;
    bool apart = cli_chance(a->v, a->n, b->v, b->n, 1) < CLI_CHANCE ||
                 cli_chance(b->v, b->n, a->v, a->n, 1) < CLI_CHANCE;
    zc_buf_printf(out, "%.4f%s", p->summary.p50 / r->plans[0].summary.p50,
                  apart ? "" : ", which may be chance");
}

static void fact_percentiles(const report *r, const report_plan *p, zc_buf *out)
{
    report_time(out, p->summary.p90 * 1e6);
    zc_buf_puts(out, ", ");
    report_time(out, p->summary.p99 * 1e6);
}

static void fact_range(const report *r, const report_plan *p, zc_buf *out)
{
    report_time(out, p->summary.min * 1e6);
    zc_buf_puts(out, " to ");
    report_time(out, p->summary.max * 1e6);
    zc_buf_printf(out, ", %zu outliers of %zu runs", p->summary.outliers, p->runs.n);
}

static void fact_manner(const report *r, const report_plan *p, zc_buf *out)
{
    const bench_summary *s = &p->summary;
    if (s->drift != 0)
        zc_buf_printf(out, "<div>the last third took %.1f %% %s than the first</div>",
                      100 * fabs(s->drift), s->drift > 0 ? "longer" : "less");
    if (s->modes[0] <= 0) return;
    zc_buf_puts(out, "<div>two modes: about ");
    report_time(out, s->modes[0] * 1e6);
    zc_buf_puts(out, " or ");
    report_time(out, s->modes[1] * 1e6);
    zc_buf_puts(out, "</div>");
}

static void fact_steps(const report *r, const report_plan *p, zc_buf *out)
{
    if (!p->steps.n) return;
    zc_buf_printf(out, "%zu, together ", p->steps.n);
    report_time(out, p->steps.sum);
}

static void fact_nodes(const report *r, const report_plan *p, zc_buf *out)
{
    size_t nodes = 0, joined = 0;
    if (!p->plan) return;
    const zc_program *program = &p->plan->program;
    for (uint32_t i = 0; i < program->nsteps; i++) {
        nodes += program->steps[i].nprov;
        joined += program->steps[i].nprov > 1;
    }
    zc_buf_printf(out, "%zu nodes in %zu steps; %zu steps stand for several", nodes,
                  (size_t)program->nsteps, joined);
}

static void fact_weights(const report *r, const report_plan *p, zc_buf *out)
{
    if (p->plan) report_bytes(out, (double)p->plan->weight_bytes);
}

static void fact_arena(const report *r, const report_plan *p, zc_buf *out)
{
    if (!p->memory_known) return;
    report_bytes(out, (double)p->memory.info.arena_bytes);
    zc_buf_puts(out, ", of which one step needs at most ");
    report_bytes(out, (double)p->memory.info.live_bytes);
}

static void fact_gpu_memory(const report *r, const report_plan *p, zc_buf *out)
{
    const zc_memory_map *m = &p->memory;
    if (!p->memory_known || !m->arch) return;
    report_bytes(out, (double)m->code_bytes);
    zc_buf_printf(out, " of code for sm_%d, ", m->arch);
    report_bytes(out, (double)m->workspace);
    zc_buf_puts(out, " of workspace");
    if (m->unknown) zc_buf_printf(out, ", not known of %zu steps", m->unknown);
}

static void fact_peaks(const report *r, const report_plan *p, zc_buf *out)
{
    if (p->saved.peaks.bytes > 0)
        zc_buf_printf(out, "%.1f GB/s, %.1f GFLOP/s", p->saved.peaks.bytes * 1e-9,
                      p->saved.peaks.operations * 1e-9);
}

static const struct fact {
    const char *name;
    put_fact *put;
} facts[] = {
    {"median of a run", fact_median},
    {"times the first's", fact_ratio},
    {"90 and 99 of 100 runs within", fact_percentiles},
    {"runs", fact_range},
    {"their manner", fact_manner},
    {"steps", fact_steps},
    {"ONNX nodes", fact_nodes},
    {"weights", fact_weights},
    {"working memory", fact_arena},
    {"on the GPU also", fact_gpu_memory},
    {"device", fact_device},
    {"threads", fact_threads},
    {"what it can do", fact_peaks},
    {"inputs", fact_inputs},
    {"also", fact_others},
    {"times", fact_times},
    {"model", fact_model},
    {"its SHA-256", fact_hash},
    {"compiled by", fact_compiler},
};

/* The row, unless it says nothing of any plan. */
static void put_row(const report *r, const struct fact *f, zc_buf *out)
{
    bool says = false;
    const size_t before = out->len;
    zc_buf_printf(out, "<tr><th scope=\"row\">%s</th>", f->name);
    for (size_t i = 0; i < r->n; i++) {
        zc_buf_puts(out, "<td>");
        const size_t at = out->len;
        f->put(r, &r->plans[i], out);
        says |= out->len > at;
        zc_buf_puts(out, "</td>");
    }
    zc_buf_puts(out, "</tr>\n");
    if (says || out->failed) return;
    out->len = before;
    out->data[before] = '\0';
}

static void put_plan_heads(const report *r, zc_buf *out)
{
    for (size_t i = 0; i < r->n; i++) {
        zc_buf_puts(out, "<th scope=\"col\">");
        report_text(out, r->plans[i].path);
        zc_buf_puts(out, "</th>");
    }
}

void report_summary(const report *r, const report_plan *p, zc_buf *out)
{
    zc_buf_puts(out, "<table class=\"facts\"><thead><tr><td></td>");
    put_plan_heads(r, out);
    zc_buf_puts(out, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < ZC_COUNTOF(facts); i++) put_row(r, &facts[i], out);
    zc_buf_puts(out, "</tbody></table>\n");
}

/* ---- operations ---- */

void report_operations(const report *r, const report_plan *p, zc_buf *out)
{
    size_t n = 0;
    cli_group *groups = cli_profile_groups(&p->steps, 0, &n);
    out->failed |= !groups;
    for (size_t i = 0; groups && i < n; i++) {
        const cli_group *g = &groups[i];
        zc_buf_puts(out, "<tr>");
        put_operation(r, out, g->text);
        put_number(out, (double)g->steps, 0);
        put_number(out, g->us, 2);
        put_number(out, p->steps.sum > 0 ? 100 * g->us / p->steps.sum : 0, 1);
        put_number(out, g->bytes * 1e-6, 3);
        put_number(out, g->operations * 1e-9, 3);
        zc_buf_puts(out, "</tr>\n");
    }
    free(groups);
}

static double time_of(const report_plan *p, const char *op, size_t *steps)
{
    double us = 0;
    *steps = 0;
    for (size_t i = 0; i < p->steps.n; i++) {
        if (strcmp(p->steps.steps[i].info.op, op) != 0) continue;
        us += p->steps.steps[i].time.mid;
        ++*steps;
    }
    return us;
}

static void put_compared(const report *r, const char *op, zc_buf *out)
{
    size_t steps;
    double first = time_of(&r->plans[0], op, &steps);
    zc_buf_puts(out, "<tr>");
    put_operation(r, out, op);
    for (size_t i = 0; i < r->n; i++) {
        double us = time_of(&r->plans[i], op, &steps);
        if (!steps) {
            put_nothing(out);
            continue;
        }
        begin_number(out, us);
        zc_buf_printf(out, "%.2f (%zu)", us, steps);
        if (i > 0 && first > 0)
            zc_buf_printf(out, " <small>%+.1f %%</small>", 100 * (us / first - 1));
        zc_buf_puts(out, "</td>");
    }
    zc_buf_puts(out, "</tr>\n");
}

void report_compared_operations(const report *r, const report_plan *p, zc_buf *out)
{
    zc_buf_puts(out, "<table class=\"sort\"><thead><tr><th data-sort=\"text\">operation</th>");
    for (size_t i = 0; i < r->n; i++) {
        zc_buf_puts(out, "<th data-sort=\"number\">µs in ");
        report_text(out, r->plans[i].path);
        zc_buf_puts(out, " (steps)</th>");
    }
    zc_buf_puts(out, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < r->operation_count; i++) put_compared(r, r->operations[i].text, out);
    zc_buf_puts(out, "</tbody></table>\n");
}

/* ---- steps ---- */

static void put_work(const cli_profile_step *s, const zc_peaks *peaks, zc_buf *out)
{
    cli_reach at = cli_profile_reach(s, peaks);
    put_number(out, at.bytes * 1e-6, 3);
    put_number(out, at.rate * 1e-9, 2);
    if (at.operations < 0)
        put_nothing(out);
    else
        put_number(out, at.speed * 1e-9, 2);
    if (at.share < 0) {
        put_nothing(out);
        return;
    }
    begin_number(out, at.share);
    zc_buf_printf(out, "%.1f %s</td>", 100 * at.share, at.bound);
}

static void put_nodes(const zc_pstep *step, zc_buf *out)
{
    begin_number(out, step->nprov);
    if (step->nprov > 1) zc_buf_puts(out, "<details><summary>");
    zc_buf_printf(out, "%u", (unsigned)step->nprov);
    if (step->nprov > 1) {
        zc_buf_puts(out, "</summary><ul>");
        for (uint32_t i = 0; i < step->nprov; i++) {
            zc_buf_puts(out, "<li>");
            report_text(out, step->prov[i]);
            zc_buf_puts(out, "</li>");
        }
        zc_buf_puts(out, "</ul></details>");
    }
    zc_buf_puts(out, "</td>");
}

static void put_change(const cli_profile_step *s, const cli_profile_step *was, zc_buf *out)
{
    if (!was || !(was->time.mid > 0)) {
        zc_buf_puts(out, "<td class=\"n\" data-v=\"0\">–</td>");
        return;
    }
    double change = s->time.mid / was->time.mid - 1;
    bool apart = s->time.low > was->time.high || s->time.high < was->time.low;
    begin_number(out, change);
    zc_buf_printf(out, "%s%+.1f%s</td>", apart ? "<strong>" : "", 100 * change,
                  apart ? "</strong>" : "");
}

static bool has_kernels(const report_plan *p)
{
    for (size_t i = 0; i < p->steps.n; i++)
        if (p->steps.steps[i].info.kernel) return true;
    return false;
}

static void put_step(const report *r, const report_plan *p, size_t i, bool kernels, zc_buf *out)
{
    const cli_profile_step *s = &p->steps.steps[i];
    const zc_pstep *step = report_step(p, i);
    zc_buf_puts(out, "<tr>");
    put_number(out, (double)i, 0);
    put_operation(r, out, s->info.op);
    put_cell(out, s->info.name);
    if (kernels) put_cell(out, s->info.kernel ? s->info.kernel : "");
    put_number(out, s->time.mid, 2);
    put_number(out, (s->time.high - s->time.low) / 2, 2);
    put_number(out, p->steps.sum > 0 ? 100 * s->time.mid / p->steps.sum : 0, 1);
    put_work(s, &p->saved.peaks, out);
    if (step) put_nodes(step, out);
    if (r->n > 1) put_change(s, report_was(r, p, i), out);
    zc_buf_puts(out, "</tr>\n");
}

static void put_head(zc_buf *out, const char *title, bool is_number)
{
    zc_buf_printf(out, "<th scope=\"col\" data-sort=\"%s\">%s</th>", is_number ? "number" : "text",
                  title);
}

void report_steps(const report *r, const report_plan *p, zc_buf *out)
{
    static const char *const numbers[] = {"µs", "±", "%", "MB", "GB/s", "GFLOP/s", "% of peak"};
    const bool kernels = has_kernels(p);
    zc_buf_puts(out, "<table class=\"sort search\"><thead><tr>");
    put_head(out, "step", true);
    put_head(out, "operation", false);
    put_head(out, "name", false);
    if (kernels) put_head(out, "GPU kernel", false);
    for (size_t i = 0; i < ZC_COUNTOF(numbers); i++) put_head(out, numbers[i], true);
    if (p->plan) put_head(out, "nodes", true);
    if (r->n > 1) put_head(out, "% longer than the first's", true);
    zc_buf_puts(out, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < p->steps.n; i++) put_step(r, p, i, kernels, out);
    zc_buf_puts(out, "</tbody></table>\n");
}

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
        put_operation(r, out, zc_op_get(step->op)->name);
        put_cell(out, step->name);
        put_cell(out, step->why);
        zc_buf_puts(out, "</tr>\n");
    }
    zc_buf_puts(out, n ? "</tbody></table>\n" : "<p>There is none.</p>\n");
}

/* ---- fusions ---- */

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
    put_cell(out, zc_rule_kind_name(kind));
    put_cell(out, zc_rule_kind_about(kind));
    put_number(out, (double)found, 0);
    put_number(out, (double)n, 0);
    zc_buf_puts(out, "<td><ul>");
    for (cli_missed m; cli_explain_missed(&r->explain, kind, &at, &m);) put_missed(r, &m, out);
    zc_buf_puts(out, "</ul></td></tr>\n");
}

void report_fusions(const report *r, const report_plan *p, zc_buf *out)
{
    for (int k = 1; k < ZC_RULE_KIND_COUNT; k++) put_kind(r, (zc_rule_kind)k, out);
}

/* ---- accuracy ---- */

static void put_difference(const report_accuracy *a, zc_buf *out)
{
    const cli_difference *d = &a->off;
    if (d->is_other_type) {
        put_nothing(out);
        put_nothing(out);
        zc_buf_puts(out, "<td class=\"bad\">wrong type: got ");
        report_text(out, a->got);
        zc_buf_puts(out, ", need ");
        report_text(out, a->need);
        zc_buf_puts(out, "</td>");
        return;
    }
    begin_number(out, d->absolute);
    zc_buf_printf(out, "%.3g</td>", d->absolute);
    double relative = d->greatest > 0 ? d->absolute / d->greatest : d->absolute;
    begin_number(out, relative);
    zc_buf_printf(out, "%.3g</td>", relative);
    if (!d->wrong) {
        zc_buf_printf(out, "<td class=\"good\">ok, %lld elements</td>", (long long)d->n);
        return;
    }
    zc_buf_printf(out, "<td class=\"bad\">%lld of %lld elements differ, worst at ",
                  (long long)d->wrong, (long long)d->n);
    report_text(out, a->at);
    zc_buf_printf(out, ": got %.9g, need %.9g</td>", d->got, d->need);
}

void report_accuracies(const report *r, const report_plan *p, zc_buf *out)
{
    for (size_t i = 0; i < r->accuracy.len; i++) {
        const report_accuracy *a = &r->accuracy.data[i];
        zc_buf_puts(out, "<tr>");
        put_cell(out, r->plans[a->plan].path);
        put_cell(out, a->against);
        put_cell(out, a->name);
        put_difference(a, out);
        zc_buf_puts(out, "</tr>\n");
    }
}
