/* The report's charts of times. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report_html.h"
#include "cli/report_svg.h"

/* "step 12, Conv, 3.40 µs: name", for who points at it or has it read out. */
static void put_step_title(const report_plan *p, size_t i, zc_buf *out)
{
    const cli_profile_step *s = &p->steps.steps[i];
    zc_buf_printf(out, "<title>step %zu, ", i);
    report_text(out, s->info.op);
    zc_buf_puts(out, ", ");
    report_time(out, s->time.mid);
    zc_buf_puts(out, ": ");
    report_text(out, s->info.name);
    zc_buf_puts(out, "</title>");
}

/* ---- runs ---- */

enum { RUNS_BOTTOM = 180, POINTS_MOST = 1000 };

void report_runs(const report *r, const report_plan *p, zc_buf *out)
{
    const bench_times *t = &p->runs;
    const svg_scale x = svg_scale_count((double)t->n, SVG_LEFT, SVG_RIGHT);
    /* A few very long runs would leave nothing to be seen of all others. */
    const double most = fmin(p->summary.max, 4 * p->summary.p90 - 3 * p->summary.p50);
    const svg_scale y = svg_scale_between(p->summary.min, most, RUNS_BOTTOM, SVG_TOP);
    const size_t shown = t->n < POINTS_MOST ? t->n : POINTS_MOST;
    svg_begin(out, "runs", RUNS_BOTTOM + 44, "time of each run");
    svg_axes(out, &x, "run", 1, &y, "ms", 1e-3);
    zc_buf_printf(out, "<path class=\"median\" d=\"M%.1f %.1fH%.1f\"/>\n<path class=\"line\" d=\"",
                  x.from, svg_at(&y, p->summary.p50), x.to);
    for (size_t i = 0; i < shown; i++) {
        size_t k = t->n * i / shown;
        zc_buf_printf(out, "%s%.1f %.1f", i ? "L" : "M", svg_at(&x, (double)k + 0.5),
                      svg_at(&y, t->v[k]));
    }
    zc_buf_puts(out, "\"/>\n");
    svg_end(out);
}

/* ---- roofline ---- */

enum { ROOF_BOTTOM = 380 };

typedef struct spot {
    double x, y; /* operations a byte; operations a second */
    zc_peak peak;
} spot;

/* false: the step does no arithmetic that is counted, or nothing is known. */
static bool spot_of(const report_plan *p, size_t i, spot *out)
{
    cli_reach at = cli_profile_reach(&p->steps.steps[i], &p->saved.peaks);
    if (!(at.operations > 0) || !(at.bytes > 0) || !(at.speed > 0)) return false;
    *out = (spot){at.intensity, at.speed, at.peak};
    return true;
}

typedef struct span {
    double least, most;
} span;

static void widen(span *s, double v)
{
    s->least = fmin(s->least, v);
    s->most = fmax(s->most, v);
}

/* Of all spots, and of their roofs' corners or, where they have none, the slope; their number.
 * used[ZC_PEAK_COUNT]: which roofs there are spots of. */
static size_t find_spans(const report_plan *p, span *x, span *y, bool *used)
{
    const zc_peaks *peaks = &p->saved.peaks;
    size_t n = 0;
    spot s;
    *x = *y = (span){INFINITY, 0};
    for (size_t i = 0; i < p->steps.n; i++) {
        if (!spot_of(p, i, &s)) continue;
        widen(x, s.x);
        widen(y, s.y);
        used[s.peak] = true;
        n++;
    }
    for (int k = 0; k < ZC_PEAK_COUNT; k++) {
        if (!used[k] || !(peaks->bytes > 0)) continue;
        if (peaks->operations[k] > 0) widen(x, peaks->operations[k] / peaks->bytes);
        widen(y, peaks->operations[k] > 0 ? peaks->operations[k] : x->most * peaks->bytes);
    }
    return n;
}

/* What memory's rate allows and, where it is known, the arithmetic of a type. */
static void put_roof(const zc_peaks *peaks, zc_peak k, const svg_scale *x, const svg_scale *y,
                     zc_buf *out)
{
    if (peaks->bytes <= 0) return;
    const double flat = peaks->operations[k];
    double begin = fmax(x->low, y->low / peaks->bytes);
    double end = fmin(x->high, (flat > 0 ? flat : y->high) / peaks->bytes);
    if (!(begin < end)) return;
    zc_buf_printf(out, "<path class=\"roof\" d=\"M%.1f %.1fL%.1f %.1f", svg_at(x, begin),
                  svg_at(y, begin * peaks->bytes), svg_at(x, end), svg_at(y, end * peaks->bytes));
    if (flat > 0) zc_buf_printf(out, "H%.1f", x->to);
    zc_buf_puts(out, "\"/>\n");
    if (flat > 0)
        zc_buf_printf(out, "<text class=\"tick end\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", x->to - 6,
                      svg_at(y, flat) - 5, zc_peak_name(k));
}

static void put_spot(const report *r, const report_plan *p, size_t i, const svg_scale *x,
                     const svg_scale *y, zc_buf *out)
{
    spot s;
    const cli_profile_step *step = &p->steps.steps[i];
    if (!spot_of(p, i, &s)) return;
    double share = p->steps.sum > 0 ? step->time.mid / p->steps.sum : 0;
    zc_buf_printf(out, "<circle class=\"c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\">",
                  report_colour(r, step->info.op), svg_at(x, s.x), svg_at(y, s.y),
                  3 + 12 * sqrt(share));
    put_step_title(p, i, out);
    zc_buf_puts(out, "</circle>\n");
}

void report_roofline(const report *r, const report_plan *p, zc_buf *out)
{
    const zc_peaks *peaks = &p->saved.peaks;
    span xs, ys;
    bool used[ZC_PEAK_COUNT] = {false}, unknown = false;
    size_t n = find_spans(p, &xs, &ys, used);
    if (!n) {
        zc_buf_puts(out, "<p>No step does arithmetic that is counted.</p>\n");
        return;
    }
    const svg_scale x = svg_log_scale(xs.least, xs.most, SVG_LEFT, SVG_RIGHT);
    const svg_scale y = svg_log_scale(ys.least, ys.most, ROOF_BOTTOM, SVG_TOP);
    svg_begin(out, "roofline", ROOF_BOTTOM + 44, "roofline of the steps");
    svg_axes(out, &x, "operations a byte", 1, &y, "GFLOP/s", 1e9);
    for (int k = 0; k < ZC_PEAK_COUNT; k++) {
        if (used[k]) put_roof(peaks, (zc_peak)k, &x, &y, out);
        unknown |= used[k] && !(peaks->operations[k] > 0);
    }
    for (size_t i = 0; i < p->steps.n; i++) put_spot(r, p, i, &x, &y, out);
    svg_end(out);
    zc_buf_printf(out, "<p class=\"note\">%zu of %zu steps do arithmetic that is counted.%s</p>\n",
                  n, p->steps.n,
                  !(peaks->bytes > 0) ? " What the device can do is not known (--peaks)."
                  : unknown ? " How fast the device computes all of them is not known (--peaks)."
                            : "");
}

/* ---- timeline ---- */

enum { ROW_STEPS = 60, ROWS_MOST = 8, ROW_HEIGHT = 26, ROW_PITCH = 46 };

/* The part of a step that is in the row from `begin` on. */
static void put_bar(const report *r, const report_plan *p, size_t i, double at, double begin,
                    double length, double top, zc_buf *out)
{
    const cli_profile_step *s = &p->steps.steps[i];
    double from = fmax(at, begin), to = fmin(at + s->time.mid, begin + length);
    double scale = (SVG_RIGHT - SVG_LEFT) / length;
    if (!(to > from)) return;
    zc_buf_printf(out, "<rect class=\"c%d\" x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\">",
                  report_colour(r, s->info.op), SVG_LEFT + (from - begin) * scale, top,
                  (to - from) * scale, ROW_HEIGHT);
    put_step_title(p, i, out);
    zc_buf_puts(out, "</rect>\n");
}

void report_timeline(const report *r, const report_plan *p, zc_buf *out)
{
    size_t rows = (p->steps.n + ROW_STEPS - 1) / ROW_STEPS, row = 0;
    if (!(p->steps.sum > 0)) {
        zc_buf_puts(out, "<p>The steps took no time that can be measured.</p>\n");
        return;
    }
    if (rows > ROWS_MOST) rows = ROWS_MOST;
    const double length = p->steps.sum / (double)rows;
    svg_begin(out, "timeline", SVG_TOP + (double)rows * ROW_PITCH, "steps in their order");
    for (size_t i = 0; i < rows; i++) {
        zc_buf_printf(out, "<text class=\"tick y\" x=\"%d\" y=\"%.0f\">", SVG_LEFT - 6,
                      SVG_TOP + (double)i * ROW_PITCH + 17);
        report_time(out, (double)i * length);
        zc_buf_printf(
            out, "</text><rect class=\"plot\" x=\"%d\" y=\"%.0f\" width=\"%d\" height=\"%d\"/>\n",
            SVG_LEFT, SVG_TOP + (double)i * ROW_PITCH, SVG_RIGHT - SVG_LEFT, ROW_HEIGHT);
    }
    double at = 0;
    for (size_t i = 0; i < p->steps.n; i++) {
        const double end = at + p->steps.steps[i].time.mid;
        for (size_t k = row; k < rows && (double)k * length < end; k++)
            put_bar(r, p, i, at, (double)k * length, length, SVG_TOP + (double)k * ROW_PITCH, out);
        at = end;
        while (row + 1 < rows && (double)(row + 1) * length <= at) row++;
    }
    svg_end(out);
}

/* ---- comparison ---- */

void report_comparison(const report *r, const report_plan *p, zc_buf *out)
{
    double most = 0;
    for (size_t i = 0; i < r->n; i++) most = fmax(most, r->plans[i].summary.high);
    const svg_scale x = svg_scale_between(0, most, SVG_LEFT, SVG_RIGHT);
    svg_begin(out, "comparison", svg_bars_height(r->n), "medians of runs");
    for (size_t i = 0; i < r->n; i++) {
        const bench_summary *s = &r->plans[i].summary;
        zc_buf text = {0};
        report_text(&text, r->plans[i].path);
        zc_buf_puts(&text, ": ");
        report_time(&text, s->p50 * 1e6);
        out->failed |= text.failed;
        svg_bar(out, &x, i, text.data ? text.data : "", (zc_interval){s->low, s->p50, s->high});
        zc_buf_fini(&text);
    }
    svg_bars_axis(out, &x, r->n);
    svg_end(out);
}
