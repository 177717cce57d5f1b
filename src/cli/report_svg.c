#include "cli/report_svg.h"

#include <math.h>

svg_scale svg_log_scale(double least, double most, double from, double to)
{
    double low = floor(log10(least)), high = ceil(log10(most));
    if (high <= low) high = low + 1;
    return (svg_scale){pow(10, low), pow(10, high), from, to, 0};
}

/* 1, 2 or 5 times a power of ten: about `parts` of them make the span. */
static double round_step(double span, int parts)
{
    double rough = span / parts, power = pow(10, floor(log10(rough))), times = rough / power;
    return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

enum { PARTS = 6 };

svg_scale svg_scale_between(double least, double most, double from, double to)
{
    if (!(most > least)) most = least + (least > 0 ? least / 10 : 1);
    double step = round_step(most - least, PARTS);
    return (svg_scale){floor(least / step) * step, ceil(most / step) * step, from, to, step};
}

svg_scale svg_scale_count(double most, double from, double to)
{
    return (svg_scale){0, most, from, to, fmax(1, round_step(most, PARTS))};
}

double svg_at(const svg_scale *s, double value)
{
    double v = fmin(fmax(value, s->low), s->high);
    double part = s->step > 0 ? (v - s->low) / (s->high - s->low)
                              : log10(v / s->low) / log10(s->high / s->low);
    return s->from + part * (s->to - s->from);
}

void svg_begin(zc_buf *out, const char *class_name, double height, const char *label)
{
    zc_buf_printf(out,
                  "<svg class=\"%s\" viewBox=\"0 0 %d %.0f\" "
                  "role=\"img\" aria-label=\"%s\">\n",
                  class_name, SVG_WIDTH, height, label);
}

void svg_end(zc_buf *out)
{
    zc_buf_puts(out, "</svg>\n");
}

static void put_ticks(zc_buf *out, const svg_scale *s, double unit, bool is_x, double from,
                      double to)
{
    for (double v = s->low; v <= s->high * (1 + 1e-9); v = s->step > 0 ? v + s->step : v * 10) {
        double at = svg_at(s, v);
        if (is_x)
            zc_buf_printf(out,
                          "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>"
                          "<text class=\"tick x\" x=\"%.1f\" y=\"%.1f\">%.6g</text>\n",
                          at, from, to, at, from + 16, v / unit);
        else
            zc_buf_printf(out,
                          "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>"
                          "<text class=\"tick y\" x=\"%.1f\" y=\"%.1f\">%.6g</text>\n",
                          from, at, to, from - 6, at + 4, v / unit);
    }
}

void svg_axes(zc_buf *out, const svg_scale *x, const char *x_title, double x_unit,
              const svg_scale *y, const char *y_title, double y_unit)
{
    put_ticks(out, x, x_unit, true, y->from, y->to);
    put_ticks(out, y, y_unit, false, x->from, x->to);
    zc_buf_printf(out,
                  "<rect class=\"plot\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                  x->from, y->to, x->to - x->from, y->from - y->to);
    zc_buf_printf(out, "<text class=\"title x\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                  (x->from + x->to) / 2, y->from + 34, x_title);
    zc_buf_printf(out,
                  "<text class=\"title y\" transform=\"translate(14 %.1f)rotate(-90)\">%s</text>\n",
                  (y->from + y->to) / 2, y_title);
}

enum { BAR_HEIGHT = 22, BAR_PITCH = 50, AXIS_HEIGHT = 44 };

static double bars_bottom(size_t n)
{
    return SVG_TOP + (double)n * BAR_PITCH;
}

double svg_bars_height(size_t n)
{
    return bars_bottom(n) + AXIS_HEIGHT;
}

void svg_bar(zc_buf *out, const svg_scale *x, size_t i, const char *text, zc_interval v)
{
    const double top = bars_bottom(i), middle = top + 18 + BAR_HEIGHT / 2.0;
    zc_buf_printf(out, "<text class=\"tick\" x=\"%d\" y=\"%.0f\">%s</text>", SVG_LEFT, top + 12,
                  text);
    zc_buf_printf(out,
                  "<rect class=\"c0\" x=\"%d\" y=\"%.0f\" width=\"%.1f\" height=\"%d\"/>"
                  "<path class=\"interval\" d=\"M%.1f %.1fH%.1fM%.1f %.1fv10M%.1f %.1fv10\"/>\n",
                  SVG_LEFT, top + 18, svg_at(x, v.mid) - SVG_LEFT, BAR_HEIGHT, svg_at(x, v.low),
                  middle, svg_at(x, v.high), svg_at(x, v.low), middle - 5, svg_at(x, v.high),
                  middle - 5);
}

void svg_bars_axis(zc_buf *out, const svg_scale *x, size_t n)
{
    const double bottom = bars_bottom(n);
    zc_buf_printf(out, "<path class=\"axis\" d=\"M%d %.0fH%d\"/>\n", SVG_LEFT, bottom, SVG_RIGHT);
    zc_buf_printf(out, "<text class=\"tick y\" x=\"%d\" y=\"%.0f\">0</text>", SVG_LEFT - 6,
                  bottom + 4);
    zc_buf_printf(out, "<text class=\"tick end\" x=\"%d\" y=\"%.0f\">%.4g ms</text>\n", SVG_RIGHT,
                  bottom + 16, x->high * 1e3);
}
