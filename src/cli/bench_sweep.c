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

static zc_status measure(const char *path, const bench_options *o, bool first, zc_diag *diag)
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
    bench_free(&t, 1);
    return status;
}

zc_status bench_sweep(const char *path, const bench_options *o, zc_diag *diag)
{
    bench_options one = *o;
    if (o->json)
        puts("{\"sweep\": [");
    else
        print_head(&o->sweep);
    for (size_t at = 0; combine(&o->sweep, at, &one.in.dims); at++) {
        ZC_TRY(measure(path, &one, at == 0, diag));
        fflush(stdout);
        one.in.dims = o->in.dims;
        one.in.quiet = true;
    }
    if (o->json) puts("]}");
    return ZC_OK;
}
