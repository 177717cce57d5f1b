/* Where intermediate results lie in working memory, from the step that makes them to the last one
 * that reads them. */
#include "cli/report_html.h"
#include "cli/report_svg.h"

enum { BOTTOM = 380, BOXES_MOST = 4000 };

static void put_box(const report *r, const zc_memory_map *m, const zc_memory_value *v,
                    const svg_scale *x, const svg_scale *y, zc_buf *out)
{
    double left = svg_at(x, (double)v->first), right = svg_at(x, (double)v->last + 1);
    double low = svg_at(y, (double)v->offset), high = svg_at(y, (double)(v->offset + v->bytes));
    zc_buf_printf(
        out, "<rect class=\"c%d\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"><title>",
        report_colour(r, m->steps[v->first].op), left, high, right - left, low - high);
    report_text(out, v->name);
    zc_buf_puts(out, ": ");
    report_bytes(out, (double)v->bytes);
    zc_buf_printf(out, ", steps %zu to %zu</title></rect>\n", v->first, v->last);
}

static void put_live(const zc_memory_map *m, const svg_scale *x, const svg_scale *y, zc_buf *out)
{
    zc_buf_puts(out, "<path class=\"live\" d=\"");
    for (size_t s = 0; s < m->nsteps; s++)
        zc_buf_printf(out, "%s%.1f %.1fH%.1f", s ? "L" : "M", svg_at(x, (double)s),
                      svg_at(y, (double)m->steps[s].live), svg_at(x, (double)s + 1));
    zc_buf_puts(out, "\"/>\n");
}

void report_memory(const report *r, const report_plan *p, zc_buf *out)
{
    const zc_memory_map *m = &p->memory;
    const size_t n = m->nvalues < BOXES_MOST ? m->nvalues : BOXES_MOST;
    const svg_scale x = svg_scale_count((double)m->nsteps, SVG_LEFT, SVG_RIGHT);
    const svg_scale y = svg_scale_between(0, (double)m->info.arena_bytes, BOTTOM, SVG_TOP);
    svg_begin(out, "memory", BOTTOM + 44, "working memory over the steps");
    svg_axes(out, &x, "step", 1, &y, "MB", 1e6);
    for (size_t i = 0; i < n; i++) put_box(r, m, &m->values[i], &x, &y, out);
    put_live(m, &x, &y, out);
    svg_end(out);
    if (n < m->nvalues)
        zc_buf_printf(out, "<p class=\"note\">The %zu largest of %zu results.</p>\n", n,
                      m->nvalues);
}
