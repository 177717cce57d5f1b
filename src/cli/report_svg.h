/* Axes of the report's charts. */
#ifndef ZC_CLI_REPORT_SVG_H
#define ZC_CLI_REPORT_SVG_H

#include "base/mem.h"
#include "base/stats.h"

/* Values from `low` to `high` are drawn from `from` to `to`, with a line every `step`. */
typedef struct svg_scale {
    double low, high, from, to;
    double step; /* 0: logarithmic, a line at each power of ten */
} svg_scale;

/* Powers of ten around the values, which are above 0. */
svg_scale svg_log_scale(double least, double most, double from, double to);
/* From 0 to exactly `most`, which is above 0: of things that are counted. */
svg_scale svg_scale_count(double most, double from, double to);
/* Between round numbers. */
svg_scale svg_scale_between(double least, double most, double from, double to);
/* Where the value is drawn; those outside at the nearer end. */
double svg_at(const svg_scale *s, double value);

/* The picture's beginning: as wide as all are, so high; what it shows, in words. */
void svg_begin(zc_buf *out, const char *class_name, double height, const char *label);
void svg_end(zc_buf *out);
/* The plot's frame, lines at round values, and these beside them, `unit` dividing what is printed;
 * the axis' titles are plain text. */
void svg_axes(zc_buf *out, const svg_scale *x, const char *x_title, double x_unit,
              const svg_scale *y, const char *y_title, double y_unit);

/* Bars one below the other, from 0: number i with its interval, under text that is already escaped;
 * below n of them the axis, in milliseconds of x's seconds. */
void svg_bar(zc_buf *out, const svg_scale *x, size_t i, const char *text, zc_interval v);
void svg_bars_axis(zc_buf *out, const svg_scale *x, size_t n);
double svg_bars_height(size_t n);

enum { SVG_WIDTH = 960, SVG_LEFT = 80, SVG_RIGHT = 940, SVG_TOP = 16 };

#endif
