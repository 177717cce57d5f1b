#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/device.h"
#include "cli/inputs.h"
#include "cli/progress.h"

/* Times that are kept; of more runs every second is kept, then every fourth and so on. */
#define TIMES_MAX ((size_t)1 << 22)

typedef struct options {
    cli_inputs in;
    cli_device device;
    int64_t threads, warmup, iterations;
    double seconds, warm_ms;
    const char *times; /* a file for them */
    bool json, steps;
} options;

typedef struct timing {
    double *times; /* sorted in the end */
    size_t n, runs;
} timing;

static const cli_option table[] = {
    CLI_INPUT_OPTIONS(options, in),
    CLI_DEVICE_OPTION(options, device),
    CLI_THREADS_OPTION(options, threads, "threads to use (default: one a CPU)"),
    {.name = "seconds",
     .arg = "S",
     .help = "measure for at least S seconds (default 3)",
     .most = 86400,
     .set = cli_set_real,
     .at = offsetof(options, seconds)},
    {.name = "warmup",
     .arg = "N",
     .help = "runs before measuring (default 3)",
     .most = 1000,
     .set = cli_set_int,
     .at = offsetof(options, warmup)},
    {.name = "steps",
     .help = "print how long each step takes (on a GPU: issued one by one)",
     .set = cli_set_flag,
     .at = offsetof(options, steps)},
    {.name = "iterations",
     .arg = "N",
     .help = "measure at least N runs (default 5)",
     .least = 1,
     .most = 1000000000,
     .set = cli_set_int,
     .at = offsetof(options, iterations)},
    {.name = "exportTimes",
     .arg = "FILE",
     .help = "as trtexec: write the time of each run there, as JSON",
     .words = CLI_WORDS_FILE,
     .set = cli_set_text,
     .at = offsetof(options, times)},
    {.name = "duration",
     .arg = "S",
     .help = "as trtexec: --seconds",
     .most = 86400,
     .set = cli_set_real,
     .at = offsetof(options, seconds)},
    {.name = "warmUp",
     .arg = "MS",
     .help = "as trtexec: run for at least MS milliseconds before measuring",
     .most = 86400000,
     .set = cli_set_real,
     .at = offsetof(options, warm_ms)},
    {.name = "warm-up",
     .arg = "N",
     .help = "as polygraphy: --warmup",
     .most = 1000,
     .set = cli_set_int,
     .at = offsetof(options, warmup)},
    {.name = "dumpProfile",
     .help = "as trtexec: --steps",
     .set = cli_set_flag,
     .at = offsetof(options, steps)},
    {.name = "json",
     .help = "print one JSON document",
     .set = cli_set_flag,
     .at = offsetof(options, json)},
};

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void thin_out(timing *t)
{
    for (size_t i = 0; i < t->n / 2; i++) t->times[i] = t->times[2 * i];
    t->n /= 2;
}

/* In the order of the runs, under trtexec's name for it. */
static zc_status export_times(const timing *t, const char *path, zc_diag *diag)
{
    zc_buf text = {0};
    zc_writer *writer = NULL;
    zc_buf_puts(&text, "[");
    for (size_t i = 0; i < t->n; i++)
        zc_buf_printf(&text, "%s\n  {\"latencyMs\": %.6f}", i ? "," : "", t->times[i] * 1e3);
    zc_buf_puts(&text, "\n]\n");
    zc_status status = text.failed ? zc_fail_nomem(diag, "times", text.len) : ZC_OK;
    if (status == ZC_OK) status = zc_writer_open(path, &writer, diag);
    if (status == ZC_OK) status = zc_writer_write(writer, text.data, text.len, diag);
    if (status == ZC_OK) status = zc_writer_commit(&writer, diag);
    zc_writer_abort(&writer);
    zc_buf_fini(&text);
    return status;
}

static zc_status measure(zc_session *s, const options *o, timing *t, zc_diag *diag)
{
    t->times = zc_calloc(TIMES_MAX, sizeof *t->times);
    if (!t->times) return zc_fail_nomem(diag, "timings", TIMES_MAX);
    zc_status status = ZC_OK;
    size_t stride = 1;
    double warm = cli_now() + o->warm_ms / 1e3;
    for (int64_t i = 0; status == ZC_OK && (i < o->warmup || cli_now() < warm); i++)
        status = zc_session_run(s, diag);
    double end = cli_now() + o->seconds;
    while (status == ZC_OK && (t->runs < (size_t)o->iterations || cli_now() < end)) {
        double start = cli_now();
        status = zc_session_run(s, diag);
        double seconds = cli_now() - start;
        if (t->runs++ % stride) continue;
        t->times[t->n++] = seconds;
        if (t->n < TIMES_MAX) continue;
        thin_out(t);
        stride *= 2;
    }
    if (status == ZC_OK && o->times) status = export_times(t, o->times, diag);
    qsort(t->times, t->n, sizeof *t->times, ascending);
    return status;
}

static double quantile(const timing *t, double q)
{
    double at = q * (double)(t->n - 1);
    size_t i = (size_t)at;
    double next = i + 1 < t->n ? t->times[i + 1] : t->times[i];
    return t->times[i] + (at - (double)i) * (next - t->times[i]);
}

static void print(const timing *t, const options *o, uint64_t memory)
{
    double half = 0.98 * sqrt((double)t->n), mid = (double)t->n / 2;
    size_t low = mid - half > 0 ? (size_t)(mid - half) : 0, high = (size_t)(mid + half);
    if (high >= t->n) high = t->n - 1;
    double q1 = quantile(t, 0.25), q3 = quantile(t, 0.75), fence = 1.5 * (q3 - q1);
    size_t outliers = 0;
    for (size_t i = 0; i < t->n; i++)
        outliers += t->times[i] < q1 - fence || t->times[i] > q3 + fence;
    const char *form =
        o->json
            ? "{\"runs\": %zu, \"median_ms\": %.6f, \"ci95_low_ms\": %.6f, \"ci95_high_ms\": %.6f, "
              "\"min_ms\": %.6f, \"max_ms\": %.6f, \"outliers\": %zu, \"session_bytes\": %llu}\n"
            : "%zu runs: median %.3f ms (95 %%: %.3f to %.3f), min %.3f, max %.3f, %zu outliers; "
              "session "
              "memory %llu bytes\n";
    printf(form, t->runs, quantile(t, 0.5) * 1e3, t->times[low] * 1e3, t->times[high] * 1e3,
           t->times[0] * 1e3, t->times[t->n - 1] * 1e3, outliers, (unsigned long long)memory);
}

/* The last profiled run, longest steps first. */
typedef struct step_row {
    zc_step_info info;
    size_t i;
} step_row;

static int longest_first(const void *a, const void *b)
{
    const step_row *x = a, *y = b;
    if (x->info.us != y->info.us) return x->info.us < y->info.us ? 1 : -1;
    return x->i < y->i ? -1 : 1;
}

static zc_status print_steps(const zc_session *s, size_t n)
{
    double sum = 0;
    step_row *rows = zc_calloc(n, sizeof *rows);
    if (!rows) return ZC_ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        rows[i].i = i;
        (void)zc_session_step(s, i, &rows[i].info, NULL);
        sum += rows[i].info.us;
    }
    if (n) qsort(rows, n, sizeof *rows, longest_first);
    printf("    us  share  step  operation\n");
    for (size_t i = 0; i < n; i++) {
        const zc_step_info *r = &rows[i].info;
        printf("%8.2f %5.1f%% %5zu  %-20s ", r->us, sum > 0 ? 100 * r->us / sum : 0, rows[i].i,
               r->op);
        cli_put(stdout, r->kernel ? r->kernel : r->why);
        fputs("  ", stdout);
        cli_put(stdout, r->name);
        puts("");
    }
    printf("%8.2f us in all steps\n", sum);
    free(rows);
    return ZC_OK;
}

static zc_status profile(zc_plan *plan, const options *o, zc_diag *diag)
{
    zc_plan_info info;
    zc_session *session = NULL;
    cli_inputs in = o->in;
    in.quiet = true; /* the same inputs as before */
    zc_status status = zc_plan_info_get(plan, &info);
    if (status == ZC_OK)
        status = zc_session_create(plan,
                                   ZC_SESSION_PARAMS(.threads = (int)o->threads,
                                                     .device = o->device.kind,
                                                     .ordinal = o->device.ordinal, .profile = true),
                                   &session, diag);
    if (status == ZC_OK) status = cli_set_inputs(plan, session, &in, diag);
    for (int i = 0; status == ZC_OK && i < 5; i++) status = zc_session_run(session, diag);
    if (status == ZC_OK) status = print_steps(session, info.steps);
    (void)zc_session_destroy(&session);
    return status;
}

static zc_status bench(const char *path, const options *o, zc_diag *diag)
{
    zc_plan *plan = NULL;
    zc_session *session = NULL;
    timing t = {.n = 0};
    zc_status status = cli_load_plan(path, &plan, diag);
    if (status == ZC_OK)
        status = zc_session_create(plan,
                                   ZC_SESSION_PARAMS(.threads = (int)o->threads,
                                                     .device = o->device.kind,
                                                     .ordinal = o->device.ordinal),
                                   &session, diag);
    if (status == ZC_OK) status = cli_set_inputs(plan, session, &o->in, diag);
    cli_progress progress;
    cli_progress_begin(&progress);
    cli_progress_set(&progress, "measuring");
    if (status == ZC_OK) status = measure(session, o, &t, diag);
    cli_progress_end(&progress);
    if (status == ZC_OK) print(&t, o, zc_session_memory(session));
    if (status == ZC_OK && !o->json) {
        cli_print_device(session);
        puts("");
    }
    free(t.times);
    (void)zc_session_destroy(&session);
    if (status == ZC_OK && o->steps) status = profile(plan, o, diag);
    zc_plan_destroy(&plan);
    return status;
}

static int run(int argc, char **argv)
{
    options o = {.device = {.kind = ZC_DEVICE_AUTO},
                 .in = {.seed = -1, .random = true},
                 .warmup = 3,
                 .iterations = 5,
                 .seconds = 3};
    const char *plan;
    int code = cli_parse_one(&cli_bench_command, argc, argv, &o, "one plan", &plan);
    if (code != CLI_GO) return code;
    if (o.steps && o.json) return cli_usage("bench", "--steps and --json exclude each other");
    code = EXIT_OK;
    zc_diag *diag = zc_diag_create();
    zc_status status = bench(plan, &o, diag);
    if (status != ZC_OK) code = cli_report(diag, status);
    zc_diag_destroy(&diag);
    return code;
}

const cli_command cli_bench_command = {
    .name = "bench",
    .summary = "time a plan",
    .operands = "PLAN [OPTIONS]",
    .about =
        "Times runs of a plan: median with its 95 % confidence interval (by order "
        "statistics), and outliers beyond Tukey's fences. Inputs that no file is given for are "
        "random.",
    .examples = "zc bench resnet50.plan --threads 2\n"
                "zc bench bert.plan --random --dim batch=1 --dim sequence=128 --seconds 10\n",
    .options = table,
    .option_count = ZC_COUNTOF(table),
    .words = CLI_WORDS_FILE,
    .run = run,
};
