/* The report's tables of steps, and of operations. */
#include <stdlib.h>
#include <string.h>

#include "cli/report_html.h"
#include "runtime/plan.h"

/* ---- the first plan's steps ---- */

static int compare_names(const cli_profile_step *a, const cli_profile_step *b)
{
    int order = strcmp(a->info.op, b->info.op);
    return order ? order : strcmp(a->info.name, b->info.name);
}

int report_by_name(const void *a, const void *b)
{
    const cli_profile_step *x = *(const cli_profile_step *const *)a;
    const cli_profile_step *y = *(const cli_profile_step *const *)b;
    int order = compare_names(x, y);
    return order ? order : x < y ? -1 : x > y;
}

static const cli_profile_step *was_of(const report *r, const report_plan *p, size_t i)
{
    const cli_profile *first = &r->plans[0].steps;
    const cli_profile_step *s = &p->steps.steps[i];
    if (p == &r->plans[0]) return NULL;
    if (i < first->n && compare_names(&first->steps[i], s) == 0) return &first->steps[i];
    size_t low = 0, high = first->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_names(r->first[middle], s) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < first->n && compare_names(r->first[low], s) == 0 ? r->first[low] : NULL;
}

const zc_pstep *report_step(const report_plan *p, size_t i)
{
    if (!p->plan) return NULL;
    const zc_program *program = &p->plan->program;
    return &program->steps[program->blocks[0].steps[i]];
}

/* ---- operations ---- */

/* More than there are: a file of times may say anything. */
enum { COMPARED_MOST = 1000 };

void report_operations(const report *r, const report_plan *p, zc_buf *out)
{
    size_t n = 0;
    cli_group *groups = cli_profile_groups(&p->steps, CLI_BY_OPERATION, &n);
    out->failed |= !groups;
    for (size_t i = 0; groups && i < n; i++) {
        const cli_group *g = &groups[i];
        zc_buf_puts(out, "<tr>");
        report_operation(r, g->text, out);
        report_number((double)g->steps, 0, out);
        report_number(g->us, 2, out);
        report_number(p->steps.sum > 0 ? 100 * g->us / p->steps.sum : 0, 1, out);
        report_number(g->bytes * 1e-6, 3, out);
        report_number(g->operations * 1e-9, 3, out);
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
    report_operation(r, op, out);
    for (size_t i = 0; i < r->n; i++) {
        double us = time_of(&r->plans[i], op, &steps);
        if (!steps) {
            report_nothing(out);
            continue;
        }
        report_begin_number(us, out);
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
    for (size_t i = 0; i < r->operation_count && i < COMPARED_MOST; i++)
        put_compared(r, r->operations[i].text, out);
    zc_buf_puts(out, "</tbody></table>\n");
}

/* ---- steps ---- */

static void put_work(const cli_profile_step *s, const zc_peaks *peaks, zc_buf *out)
{
    cli_reach at = cli_profile_reach(s, peaks);
    report_number(at.bytes * 1e-6, 3, out);
    report_number(at.rate * 1e-9, 2, out);
    if (at.operations < 0)
        report_nothing(out);
    else
        report_number(at.speed * 1e-9, 2, out);
    if (at.share < 0) {
        report_nothing(out);
        return;
    }
    report_begin_number(at.share, out);
    zc_buf_printf(out, "%.1f %s</td>", 100 * at.share, at.bound);
}

static void put_nodes(const zc_pstep *step, zc_buf *out)
{
    const size_t n = report_node_count(step);
    report_begin_number((double)n, out);
    if (step->nprov > 1) zc_buf_puts(out, "<details><summary>");
    zc_buf_printf(out, "%zu", n);
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
    report_begin_number(change, out);
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
    report_number((double)i, 0, out);
    report_operation(r, s->info.op, out);
    report_cell(s->info.name, out);
    if (kernels) report_cell(s->info.kernel ? s->info.kernel : "", out);
    if (kernels) report_cell(s->info.products, out);
    report_number(s->time.mid, 2, out);
    report_number((s->time.high - s->time.low) / 2, 2, out);
    report_number(p->steps.sum > 0 ? 100 * s->time.mid / p->steps.sum : 0, 1, out);
    put_work(s, &p->saved.peaks, out);
    if (step) put_nodes(step, out);
    if (r->n > 1) put_change(s, was_of(r, p, i), out);
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
    if (kernels) put_head(out, "products", false);
    for (size_t i = 0; i < ZC_COUNTOF(numbers); i++) put_head(out, numbers[i], true);
    if (p->plan) put_head(out, "nodes", true);
    if (r->n > 1) put_head(out, "% longer than the first's", true);
    zc_buf_puts(out, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < p->steps.n; i++) put_step(r, p, i, kernels, out);
    zc_buf_puts(out, "</tbody></table>\n");
}
