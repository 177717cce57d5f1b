/* Where intermediate results lie in working memory, from the step that makes them to the last one
 * that reads them. */
#include <stdlib.h>
#include <string.h>

#include "cli/report.h"
#include "cli/report_svg.h"
#include "runtime/plan.h"

enum { BOTTOM = 380, BOXES_MOST = 4000 };

/* By value of the plan: the operation that makes it, or "". */
static const char *maker_of(const zc_program *p, const zc_placement *at)
{
    const zc_pblock *top = &p->blocks[0];
    if (at->first < 0 || (uint32_t)at->first >= top->nsteps) return "";
    return zc_op_get(p->steps[top->steps[at->first]].op)->name;
}

static void put_box(const report *r, const report_plan *p, const zc_placement *at,
                    const svg_scale *x, const svg_scale *y, zc_buf *out)
{
    const zc_program *program = &p->plan->program;
    double left = svg_at(x, at->first), right = svg_at(x, (double)at->last + 1);
    double low = svg_at(y, (double)at->offset), high = svg_at(y, (double)(at->offset + at->bytes));
    zc_buf_printf(
        out, "<rect class=\"c%d\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"><title>",
        report_colour(r, maker_of(program, at)), left, high, right - left, low - high);
    report_text(out, program->values[at->id].name);
    zc_buf_puts(out, ": ");
    report_bytes(out, (double)at->bytes);
    zc_buf_printf(out, " at %zu, steps %d to %d</title></rect>\n", at->offset, at->first, at->last);
}

/* What is needed at each step; the caller frees it, NULL: no memory. */
static double *live_bytes(const report_plan *p, size_t steps)
{
    double *live = zc_calloc(steps + 1, sizeof *live);
    for (size_t i = 0; live && i < p->place_count; i++) {
        const zc_placement *at = &p->places[i];
        size_t first = at->first < 0 ? 0 : (size_t)at->first;
        for (size_t s = first; s < steps && (int64_t)s <= at->last; s++)
            live[s] += (double)zc_align_up(at->bytes, ZC_TENSOR_ALIGN);
    }
    return live;
}

static void put_live(const report_plan *p, size_t steps, const svg_scale *x, const svg_scale *y,
                     zc_buf *out)
{
    double *live = live_bytes(p, steps);
    out->failed |= !live;
    zc_buf_puts(out, "<path class=\"live\" d=\"");
    for (size_t s = 0; live && s < steps; s++)
        zc_buf_printf(out, "%s%.1f %.1fH%.1f", s ? "L" : "M", svg_at(x, (double)s),
                      svg_at(y, live[s]), svg_at(x, (double)s + 1));
    zc_buf_puts(out, "\"/>\n");
    free(live);
}

void report_memory(const report *r, const report_plan *p, zc_buf *out)
{
    const size_t steps = p->plan->program.blocks[0].nsteps;
    const size_t n = p->place_count < BOXES_MOST ? p->place_count : BOXES_MOST;
    const svg_scale x = svg_scale_count((double)steps, SVG_LEFT, SVG_RIGHT);
    const svg_scale y = svg_scale_between(0, (double)p->memory.arena_bytes, BOTTOM, SVG_TOP);
    svg_begin(out, "memory", BOTTOM + 44, "working memory over the steps");
    svg_axes(out, &x, "step", 1, &y, "MB", 1e6);
    for (size_t i = 0; i < n; i++) put_box(r, p, &p->places[i], &x, &y, out);
    put_live(p, steps, &x, &y, out);
    svg_end(out);
    if (n < p->place_count)
        zc_buf_printf(out, "<p class=\"note\">The %zu largest of %zu results.</p>\n", n,
                      p->place_count);
}
