#include <stdlib.h>

#include "cli/bench.h"

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

/* One combination's median. */
typedef struct point {
    size_t at;
    double seconds;
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
        if (all->data[i].seconds > most) most = all->data[i].seconds;
        zc_buf_fini(&label);
    }
    puts("");
    for (size_t i = 0; i < all->len; i++) {
        zc_buf label = label_of(sweep, all->data[i].at);
        int len = (int)(all->data[i].seconds / most * WIDTH + 0.5);
        cli_put(stdout, label.data ? label.data : "");
        printf("%*s  %-*.*s %.3f ms\n", widest - (int)label.len, "", WIDTH, len, bar,
               all->data[i].seconds * 1e3);
        zc_buf_fini(&label);
    }
}

/* ---- all ---- */

/* *median: seconds. */
static zc_status measure(const char *path, const bench_options *o, bool first, double *median,
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
    if (status == ZC_OK) *median = s.p50;
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
    ZC_VEC_FINI(&all);
    return status;
}
