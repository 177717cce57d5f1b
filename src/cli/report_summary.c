/* The report's summary: a row a fact, a column a plan. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report_html.h"
#include "cli/stats.h"
#include "runtime/plan.h"

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
    bool apart = cli_chance(a->v, a->n, b->v, b->n, CLI_ANY) < CLI_CHANCE ||
                 cli_chance(b->v, b->n, a->v, a->n, CLI_ANY) < CLI_CHANCE;
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

static void put_energy(const char *whose, const bench_saved_energy *e, zc_buf *out)
{
    if (e->joules > 0)
        zc_buf_printf(out, "<div>%s: %.4g J a run, %.1f W on average</div>", whose, e->joules,
                      e->watts);
}

static void fact_energy(const report *r, const report_plan *p, zc_buf *out)
{
    put_energy("GPU", &p->saved.gpu, out);
    put_energy("CPU's packages", &p->saved.cpu, out);
}

static void fact_clocks(const report *r, const report_plan *p, zc_buf *out)
{
    if (p->saved.clocks) report_text(out, p->saved.clocks);
}

static void fact_peaks(const report *r, const report_plan *p, zc_buf *out)
{
    const zc_peaks *peaks = &p->saved.peaks;
    if (peaks->bytes > 0) zc_buf_printf(out, "%.1f GB/s", peaks->bytes * 1e-9);
    if (peaks->operations[ZC_PEAK_F32] > 0)
        zc_buf_printf(out, ", %.1f GFLOP/s", peaks->operations[ZC_PEAK_F32] * 1e-9);
    for (int k = ZC_PEAK_F32 + 1; k < ZC_PEAK_COUNT; k++)
        if (peaks->operations[k] > 0)
            zc_buf_printf(out, ", %s %.1f TFLOP/s", zc_peak_name((zc_peak)k),
                          peaks->operations[k] * 1e-12);
}

static const struct fact {
    const char *name;
    report_put *put;
} facts[] = {
    {"median of a run", fact_median},
    {"times the first's", fact_ratio},
    {"90 and 99 of 100 runs within", fact_percentiles},
    {"runs", fact_range},
    {"their manner", fact_manner},
    {"energy", fact_energy},
    {"clocks", fact_clocks},
    {"steps", fact_steps},
    {"ONNX nodes", report_nodes},
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
