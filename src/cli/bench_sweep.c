#include <stdlib.h>

#include "base/file.h"
#include "cli/bench.h"
#include "cli/report_html.h"
#include "cli/report_svg.h"

/* One of each dimension's sizes; `at` counts combinations, the last dimension's sizes first. False
 * when there are no more. */
static bool combine(const cli_profiles *sweep, size_t at, cli_dims *dims)
{
    for (size_t d = sweep->n; d-- > 0; at /= sweep->v[d].count) {
        if (dims->n == CLI_LIST_MAX) return false;
        dims->v[dims->n++] =
            (zc_fixed_dim){sweep->v[d].name, sweep->v[d].values[at % sweep->v[d].count]};
    }
    return at == 0;
}

static void print_head(const cli_profiles *sweep)
{
    for (size_t d = 0; d < sweep->n; d++) {
        cli_put(stdout, sweep->v[d].name);
        putchar('\t');
    }
    puts("median ms\t95 % from\tto\t99 of 100 ms\truns a second");
}

static void print_row(const cli_profiles *sweep, const cli_dims *dims, const bench_summary *s,
                      const bench_target *t)
{
    for (size_t d = 0; d < sweep->n; d++)
        printf("%lld\t", (long long)dims->v[dims->n - 1 - d].value);
    printf("%.3f\t%.3f\t%.3f\t%.3f\t%.1f\n", s->p50 * 1e3, s->low * 1e3, s->high * 1e3,
           s->p99 * 1e3, t->runs_a_second);
}

/* ---- the chart ---- */

/* One combination's median and its interval, in seconds. */
typedef struct point {
    size_t at;
    zc_interval seconds;
} point;
typedef ZC_VEC(point) points;

/* "batch=8 sequence=128", which the caller frees. */
static zc_buf label_of(const cli_profiles *sweep, size_t at)
{
    cli_dims dims = {.n = 0};
    zc_buf text = {0};
    (void)combine(sweep, at, &dims);
    for (size_t d = dims.n; d-- > 0;)
        zc_buf_printf(&text, "%s=%lld%s", dims.v[d].name, (long long)dims.v[d].value, d ? " " : "");
    return text;
}

/* Bars from 0 to the longest median. */
static void print_chart(const cli_profiles *sweep, const points *all)
{
    enum { WIDTH = 60 };
    static const char bar[] = "############################################################";
    double most = 0;
    int widest = 0;
    for (size_t i = 0; i < all->len; i++) {
        zc_buf label = label_of(sweep, all->data[i].at);
        if ((int)label.len > widest) widest = (int)label.len;
        if (all->data[i].seconds.mid > most) most = all->data[i].seconds.mid;
        zc_buf_fini(&label);
    }
    puts("");
    for (size_t i = 0; i < all->len; i++) {
        zc_buf label = label_of(sweep, all->data[i].at);
        int len = (int)(all->data[i].seconds.mid / most * WIDTH + 0.5);
        cli_put(stdout, label.data ? label.data : "");
        printf("%*s  %-*.*s %.3f ms\n", widest - (int)label.len, "", WIDTH, len, bar,
               all->data[i].seconds.mid * 1e3);
        zc_buf_fini(&label);
    }
}

/* ---- the picture ---- */

/* The report's colours, light and dark. */
static const char style[] =
    "<style>\n"
    "svg { background: #fff; } text { fill: #555; font: 12px sans-serif; }\n"
    ".tick.y, .tick.end { text-anchor: end; } .axis { fill: none; stroke: #bbb; }\n"
    ".c0 { fill: #3b7dd8; } .interval { fill: none; stroke: #222; stroke-width: 2; }\n"
    "@media (prefers-color-scheme: dark) { svg { background: #181a1b; } text { fill: #aaa; }\n"
    ".interval { stroke: #eee; } .axis { stroke: #555; } }\n"
    "</style>\n";

static void put_picture(const cli_profiles *sweep, const points *all, zc_buf *out)
{
    double most = 0;
    for (size_t i = 0; i < all->len; i++)
        if (all->data[i].seconds.high > most) most = all->data[i].seconds.high;
    const svg_scale x = svg_scale_between(0, most, SVG_LEFT, SVG_RIGHT);
    /* A file by itself names its namespace; the report's pictures are part of a page. */
    zc_buf_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\">\n",
                  SVG_WIDTH, svg_bars_height(all->len));
    svg_begin(out, "sweep", svg_bars_height(all->len), "medians of runs by size");
    zc_buf_puts(out, style);
    for (size_t i = 0; i < all->len; i++) {
        zc_buf label = label_of(sweep, all->data[i].at), text = {0};
        report_text(&text, label.data ? label.data : "");
        zc_buf_printf(&text, ": %.4g ms", all->data[i].seconds.mid * 1e3);
        out->failed |= text.failed;
        svg_bar(out, &x, i, text.data ? text.data : "", all->data[i].seconds);
        zc_buf_fini(&label);
        zc_buf_fini(&text);
    }
    svg_bars_axis(out, &x, all->len);
    svg_end(out);
    svg_end(out);
}

static zc_status write_picture(const cli_profiles *sweep, const points *all, const char *path,
                               zc_diag *diag)
{
    zc_buf out = {0};
    put_picture(sweep, all, &out);
    zc_status status = out.failed ? zc_fail_nomem(diag, "picture", out.len)
                                  : zc_file_write(path, out.data, out.len, diag);
    zc_buf_fini(&out);
    return status;
}

/* ---- all ---- */

static zc_status measure(const char *path, const bench_options *o, bool first, zc_interval *median,
                         zc_diag *diag)
{
    bench_target t = {.path = path};
    bench_summary s;
    zc_status status = bench_measure(&t, 1, o, diag);
    if (status == ZC_OK && !bench_summarise(&t.times, &s))
        status = zc_fail_nomem(diag, "timings", t.times.n);
    if (status == ZC_OK && o->json) {
        if (!first) fputs(",\n", stdout);
        bench_print_json(&t, &s, o);
    } else if (status == ZC_OK) {
        print_row(&o->sweep, &o->in.dims, &s, &t);
    }
    if (status == ZC_OK) *median = (zc_interval){s.low, s.p50, s.high};
    bench_free(&t, 1);
    return status;
}

static zc_status measure_all(const char *path, const bench_options *o, points *all, zc_diag *diag)
{
    bench_options one = *o;
    for (size_t at = 0; combine(&o->sweep, at, &one.in.dims); at++) {
        point p = {.at = at};
        ZC_TRY(measure(path, &one, at == 0, &p.seconds, diag));
        if (!ZC_VEC_PUSH(all, p)) return zc_fail_nomem(diag, "medians", all->len);
        fflush(stdout);
        one.in.dims = o->in.dims;
        one.in.quiet = true;
    }
    return ZC_OK;
}

zc_status bench_sweep(const char *path, const bench_options *o, zc_diag *diag)
{
    points all = {0};
    if (o->json)
        puts("{\"sweep\": [");
    else
        print_head(&o->sweep);
    zc_status status = measure_all(path, o, &all, diag);
    if (status == ZC_OK && o->json) puts("]}");
    if (status == ZC_OK && o->chart) print_chart(&o->sweep, &all);
    if (status == ZC_OK && o->picture) status = write_picture(&o->sweep, &all, o->picture, diag);
    ZC_VEC_FINI(&all);
    return status;
}
