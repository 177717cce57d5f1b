#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/inputs.h"

const char cli_bench_help[] =
    "usage: zc bench PLAN [OPTIONS]\n"
    "\n"
    "Times runs of a plan: median with its 95 % confidence interval (by order statistics), and "
    "outliers beyond\n"
    "Tukey's fences. Random inputs unless files are given.\n"
    "\n" CLI_INPUT_HELP "      --threads N          threads to use (default: one a CPU)\n"
    "      --seconds S          measure for at least S seconds (default 3)\n"
    "      --warmup N           runs before measuring (default 3)\n"
    "      --json               print one JSON document\n"
    "\n"
    "examples:\n"
    "  zc bench resnet50.plan --threads 2\n"
    "  zc bench bert.plan --random --dim batch=1 --dim sequence=128 --seconds 10\n";

#define RUNS_MAX 100000

typedef struct options {
    cli_inputs in;
    int64_t threads, warmup;
    double seconds;
    bool json;
} options;

typedef struct timing {
    double *times; /* sorted */
    size_t n;
} timing;

static int parse(int argc, char **argv, options *o)
{
    static const struct option longs[] = {
        CLI_INPUT_OPTIONS,
        {"threads", required_argument, NULL, 't'},
        {"seconds", required_argument, NULL, 's'},
        {"warmup", required_argument, NULL, 'w'},
        {"json", no_argument, NULL, 'j'},
        {NULL, 0, NULL, 0},
    };
    int c, code;
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        bool ok = true;
        if (cli_input_option("bench", c, optarg, &o->in, &code)) {
            if (code) return code;
            continue;
        }
        switch (c) {
        case 't':
            ok = cli_int(optarg, 1, 1024, &o->threads);
            break;
        case 'w':
            ok = cli_int(optarg, 0, 1000, &o->warmup);
            break;
        case 's':
            ok = cli_real(optarg, &o->seconds) && o->seconds > 0;
            break;
        case 'j':
            o->json = true;
            break;
        default:
            return cli_bad_option("bench");
        }
        if (!ok) return cli_usage("bench", "bad value '%s'", optarg);
    }
    if (!o->in.count && !o->in.dir) o->in.random = true;
    return optind + 1 == argc ? EXIT_OK : cli_usage("bench", "needs one plan");
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static zc_status measure(zc_session *s, const options *o, timing *t, zc_diag *diag)
{
    t->times = zc_calloc(RUNS_MAX, sizeof *t->times);
    if (!t->times) return zc_fail_nomem(diag, "timings", RUNS_MAX);
    zc_status status = ZC_OK;
    for (int64_t i = 0; i < o->warmup && status == ZC_OK; i++) status = zc_session_run(s, diag);
    double end = cli_now() + o->seconds;
    while (status == ZC_OK && t->n < RUNS_MAX && (t->n < 5 || cli_now() < end)) {
        double start = cli_now();
        status = zc_session_run(s, diag);
        t->times[t->n++] = cli_now() - start;
    }
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
    printf(form, t->n, quantile(t, 0.5) * 1e3, t->times[low] * 1e3, t->times[high] * 1e3,
           t->times[0] * 1e3, t->times[t->n - 1] * 1e3, outliers, (unsigned long long)memory);
}

static zc_status bench(const char *path, const options *o, zc_diag *diag)
{
    zc_plan *plan = NULL;
    zc_session *session = NULL;
    timing t = {.n = 0};
    zc_status status = zc_plan_load_file(path, &plan, diag);
    if (status == ZC_OK)
        status =
            zc_session_create(plan, ZC_SESSION_PARAMS(.threads = (int)o->threads), &session, diag);
    if (status == ZC_OK) status = cli_set_inputs(plan, session, &o->in, diag);
    if (status == ZC_OK) status = measure(session, o, &t, diag);
    if (status == ZC_OK) print(&t, o, zc_session_memory(session));
    free(t.times);
    (void)zc_session_destroy(&session);
    zc_plan_destroy(&plan);
    return status;
}

int cli_bench(int argc, char **argv)
{
    options o = {.in = {.seed = 1}, .warmup = 3, .seconds = 3};
    int code = parse(argc, argv, &o);
    if (code) return code;
    zc_diag *diag = zc_diag_create();
    zc_status status = bench(argv[optind], &o, diag);
    if (status != ZC_OK) code = cli_report(diag, status);
    zc_diag_destroy(&diag);
    return code;
}
