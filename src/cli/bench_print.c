#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/bench.h"
#include "cli/stats.h"

/* ---- the times alone ---- */

zc_status bench_export_times(const bench_times *t, const char *path, zc_diag *diag)
{
    zc_buf text = {0};
    zc_buf_puts(&text, "[");
    for (size_t i = 0; i < t->n; i++)
        zc_buf_printf(&text, "%s\n  {\"latencyMs\": %.6f}", i ? "," : "", t->v[i] * 1e3);
    zc_buf_puts(&text, "\n]\n");
    zc_status status = text.failed ? zc_fail_nomem(diag, "times", text.len)
                                   : zc_file_write(path, text.data, text.len, diag);
    zc_buf_fini(&text);
    return status;
}

/* ---- text ---- */

static zc_status print_steps(const cli_profile *p, zc_diag *diag)
{
    size_t *order = cli_profile_order(p);
    if (!order) return zc_fail_nomem(diag, "steps", p->n);
    printf("    us  share  step  operation\n");
    for (size_t i = 0; i < p->n; i++) {
        const cli_profile_step *s = &p->steps[order[i]];
        printf("%8.2f %5.1f%% %5zu  %-20s ", s->time.mid,
               p->sum > 0 ? 100 * s->time.mid / p->sum : 0, order[i], s->info.op);
        cli_put(stdout, s->info.kernel ? s->info.kernel : s->info.why);
        fputs("  ", stdout);
        cli_put(stdout, s->info.name);
        puts("");
    }
    printf("%8.2f us in all steps\n", p->sum);
    free(order);
    return ZC_OK;
}

static void print_joules(const char *whose, double joules, double watts, double runs)
{
    if (!isnan(joules))
        printf("%s: %.6g J a run, %.1f W on average\n", whose, joules / runs, watts);
}

static void print_energy(const bench_target *t)
{
    const cli_reading *r = &t->reading;
    print_joules("energy of the GPU", r->gpu_joules, r->gpu_watts, (double)t->times.runs);
    print_joules("energy of the CPU's packages", r->cpu_joules, r->cpu_watts,
                 (double)t->times.runs);
}

static void print_transfers(const zc_session *session, const bench_options *o)
{
    zc_device_info device;
    if (zc_session_device(session, &device) != ZC_OK || device.kind != ZC_DEVICE_CUDA) return;
    fputs(o->no_transfers ? "; inputs and results stayed there"
                          : "; with inputs brought there and results brought back",
          stdout);
}

static zc_status print_text(const bench_target *t, const bench_summary *s, const bench_options *o,
                            zc_diag *diag)
{
    printf("%zu runs: median %.3f ms%s (95 %%: %.3f to %.3f), min %.3f, max %.3f, %zu outliers; "
           "session memory %llu bytes\n",
           t->times.runs, s->p50 * 1e3, o->processor_time ? " of processor time" : "", s->low * 1e3,
           s->high * 1e3, s->min * 1e3, s->max * 1e3, s->outliers,
           (unsigned long long)zc_session_memory(t->session));
    printf(
        "90 of 100 within %.3f ms, 99 within %.3f, 999 of 1000 within %.3f; %.1f runs a second\n",
        s->p90 * 1e3, s->p99 * 1e3, s->p999 * 1e3, t->runs_a_second);
    if (s->drift != 0)
        printf("drift: the last third of the runs took %.1f %% %s than the first\n",
               100 * (s->drift < 0 ? -s->drift : s->drift), s->drift > 0 ? "longer" : "less");
    if (s->modes[0] > 0)
        printf("two modes: runs take about %.3f ms or about %.3f ms\n", s->modes[0] * 1e3,
               s->modes[1] * 1e3);
    if (o->warmup < 0 && !t->stable) puts("not stable: warming up ended before times were alike");
    print_energy(t);
    cli_print_clocks(&t->reading);
    cli_print_device(t->session);
    print_transfers(t->session, o);
    puts("");
    return o->steps ? print_steps(&t->steps, diag) : ZC_OK;
}

/* ---- JSON ---- */

/* Whose joules: of the GPU, of the CPU's packages; null where they are not known. */
static void put_json_energy(const char *whose, double joules, double watts, double runs)
{
    printf("\"%s\": ", whose);
    if (isnan(joules)) {
        fputs("null", stdout);
        return;
    }
    printf("{\"joules\": %.6f, \"joules_per_run\": %.9f, \"watts\": %.3f}", joules, joules / runs,
           watts);
}

static void put_json_steps(const cli_profile *p)
{
    fputs(", \"steps\": [", stdout);
    for (size_t i = 0; i < p->n; i++) {
        fputs(i ? ", {" : "{", stdout);
        cli_profile_json(p, i);
        putchar('}');
    }
    putchar(']');
}

void bench_print_json(const bench_target *t, const bench_summary *s, const bench_options *o)
{
    const cli_reading *r = &t->reading;
    const double runs = (double)t->times.runs;
    printf("{\"runs\": %zu, \"processor_time\": %s, \"median_ms\": %.6f, \"ci95_low_ms\": %.6f, "
           "\"ci95_high_ms\": %.6f, "
           "\"min_ms\": %.6f, \"max_ms\": %.6f, \"p90_ms\": %.6f, \"p99_ms\": %.6f, "
           "\"p999_ms\": %.6f, \"outliers\": %zu, \"session_bytes\": %llu, "
           "\"runs_per_second\": %.3f, \"warmup_runs\": %zu, \"stable\": %s, \"drift\": %.4f, "
           "\"modes_ms\": [",
           t->times.runs, o->processor_time ? "true" : "false", s->p50 * 1e3, s->low * 1e3,
           s->high * 1e3, s->min * 1e3, s->max * 1e3, s->p90 * 1e3, s->p99 * 1e3, s->p999 * 1e3,
           s->outliers, (unsigned long long)zc_session_memory(t->session), t->runs_a_second,
           t->warm_runs,
           o->warmup >= 0 ? "null"
           : t->stable    ? "true"
                          : "false",
           s->drift);
    if (s->modes[0] > 0) printf("%.6f, %.6f", s->modes[0] * 1e3, s->modes[1] * 1e3);
    putchar(']');
    fputs(", \"energy\": {", stdout);
    put_json_energy("gpu", r->gpu_joules, r->gpu_watts, runs);
    fputs(", ", stdout);
    put_json_energy("cpu", r->cpu_joules, r->cpu_watts, runs);
    fputs("}, \"environment\": ", stdout);
    cli_environment_json(stdout, &(cli_environment){.path = t->path,
                                                    .plan = t->plan,
                                                    .session = t->session,
                                                    .values = &t->values,
                                                    .reading = r,
                                                    .threads = bench_threads(o),
                                                    .sessions = (int)o->concurrency,
                                                    .no_transfers = o->no_transfers});
    if (o->steps) put_json_steps(&t->steps);
    putchar('}');
}

/* ---- all ---- */

static zc_status print_one(const bench_target *t, bool named, const bench_options *o,
                           bench_summary *s, zc_diag *diag)
{
    if (!bench_summarise(&t->times, s)) return zc_fail_nomem(diag, "timings", t->times.n);
    if (o->json) {
        bench_print_json(t, s, o);
        return ZC_OK;
    }
    if (named) {
        cli_put(stdout, t->path);
        puts(":");
    }
    return print_text(t, s, o, diag);
}

static void print_ratio(const bench_target *first, const bench_target *t, double ratio,
                        const bench_options *o)
{
    const bench_times *a = &first->times, *b = &t->times;
    double longer = cli_chance(a->v, a->n, b->v, b->n, CLI_ANY);
    double less = cli_chance(b->v, b->n, a->v, a->n, CLI_ANY);
    bool apart = longer < CLI_CHANCE || less < CLI_CHANCE;
    if (o->json) {
        fputs("{\"plan\": ", stdout);
        cli_json(stdout, t->path);
        printf(", \"ratio\": %.6f, \"chance_longer\": %.3g, \"chance_less\": %.3g}", ratio, longer,
               less);
        return;
    }
    cli_put(stdout, t->path);
    printf(" takes %.4f of the time of ", ratio);
    cli_put(stdout, first->path);
    printf("%s\n", apart ? "" : ", which may be chance");
}

zc_status bench_print(const bench_target *targets, size_t n, const bench_options *o, zc_diag *diag)
{
    bench_summary s[BENCH_PLANS_MAX];
    if (o->json && n > 1) fputs("{\"plans\": [", stdout);
    for (size_t i = 0; i < n; i++) {
        if (o->json && i > 0) fputs(", ", stdout);
        ZC_TRY(print_one(&targets[i], n > 1, o, &s[i], diag));
    }
    if (o->json && n > 1) fputs("], \"ratios\": [", stdout);
    for (size_t i = 1; i < n; i++) {
        if (o->json && i > 1) fputs(", ", stdout);
        print_ratio(&targets[0], &targets[i], s[i].p50 / s[0].p50, o);
    }
    if (o->json) puts(n > 1 ? "]}" : "");
    return ZC_OK;
}
