#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cli/bench.h"

/* "3%". */
static int set_slowdown(const cli_call *call, void *at, char *value)
{
    char *end;
    double v = zc_strtod(value, &end);
    if (end == value || strcmp(end, "%") != 0 || !(v >= 0 && v <= 1000))
        return cli_bad_value(call, value, "a share from 0% to 1000%, as in 3%");
    *(const char **)at = value;
    return EXIT_OK;
}

static const cli_option table[] = {
    CLI_INPUT_OPTIONS(bench_options, in),
    CLI_DEVICE_OPTION(bench_options, device),
    CLI_THREADS_OPTION(bench_options, threads, "threads to use (default: one a CPU)"),
    {.name = "seconds",
     .arg = "S",
     .help = "measure for at least S seconds (default 3)",
     .most = 86400,
     .set = cli_set_real,
     .at = offsetof(bench_options, seconds)},
    {.name = "warmup",
     .arg = "N",
     .help =
         "runs before measuring (default: 3 or more, until their times are alike, for a third of "
         "--seconds at most)",
     .most = 1000,
     .set = cli_set_int,
     .at = offsetof(bench_options, warmup)},
    {.name = "steps",
     .help = "print how long each step takes (on a GPU: issued one by one)",
     .set = cli_set_flag,
     .at = offsetof(bench_options, steps)},
    {.name = "no-transfers",
     .help = "on a GPU: leave out of a run's time that inputs come from the host's memory and "
             "results go there; both stay on the GPU",
     .set = cli_set_flag,
     .at = offsetof(bench_options, no_transfers)},
    {.name = "processor-time",
     .help = "measure how long processors worked, all threads together, in place of the time that "
             "passed: for machines that others use, too",
     .set = cli_set_flag,
     .at = offsetof(bench_options, processor_time)},
    {.name = "iterations",
     .arg = "N",
     .help = "measure at least N runs (default 5)",
     .least = 1,
     .most = 1000000000,
     .set = cli_set_int,
     .at = offsetof(bench_options, iterations)},
    {.name = "concurrency",
     .arg = "N",
     .help = "sessions that run at the same time, each with --threads (default 1)",
     .least = 1,
     .most = BENCH_SESSIONS_MAX,
     .set = cli_set_int,
     .at = offsetof(bench_options, concurrency)},
    {.name = "sweep",
     .repeated = true,
     .arg = "NAME=1,8,32",
     .help =
         "measure these sizes of a symbolic dimension, each with each of the others' (repeatable)",
     .set = cli_set_profile,
     .at = offsetof(bench_options, sweep)},
    {.name = "chart",
     .help = "behind the lines of --sweep their medians as bars",
     .set = cli_set_flag,
     .at = offsetof(bench_options, chart)},
    {.name = "chart-file",
     .arg = "FILE",
     .help = "write the medians of --sweep and their intervals there, as bars in an SVG picture",
     .words = CLI_WORDS_FILE,
     .writes = true,
     .set = cli_set_text,
     .at = offsetof(bench_options, picture)},
    {.name = "save",
     .arg = "FILE",
     .help = "write times of runs and steps there, for --baseline",
     .words = CLI_WORDS_FILE,
     .writes = true,
     .set = cli_set_text,
     .at = offsetof(bench_options, save)},
    {.name = "baseline",
     .arg = "FILE",
     .help = "compare with times that --save wrote; exit code 3 when they were less, beyond "
             "chance and --max-slowdown",
     .words = CLI_WORDS_FILE,
     .set = cli_set_text,
     .at = offsetof(bench_options, baseline)},
    {.name = "max-slowdown",
     .arg = "P%",
     .help = "how much longer runs may take than --baseline's (default 3%), or than those of the "
             "first of several plans",
     .set = set_slowdown,
     .at = offsetof(bench_options, max_slowdown)},
    {.name = "export-times",
     .arg = "FILE",
     .help = "write the time of each run there, as JSON",
     .words = CLI_WORDS_FILE,
     .writes = true,
     .set = cli_set_text,
     .at = offsetof(bench_options, times)},
    {.name = "exportTimes",
     .arg = "FILE",
     .help = "as trtexec: --export-times",
     .words = CLI_WORDS_FILE,
     .writes = true,
     .set = cli_set_text,
     .at = offsetof(bench_options, times)},
    {.name = "duration",
     .arg = "S",
     .help = "as trtexec: --seconds",
     .most = 86400,
     .set = cli_set_real,
     .at = offsetof(bench_options, seconds)},
    {.name = "warmUp",
     .arg = "MS",
     .help = "as trtexec: run for at least MS milliseconds before measuring",
     .most = 86400000,
     .set = cli_set_real,
     .at = offsetof(bench_options, warm_ms)},
    {.name = "warm-up",
     .arg = "N",
     .help = "as polygraphy: --warmup",
     .most = 1000,
     .set = cli_set_int,
     .at = offsetof(bench_options, warmup)},
    {.name = "dumpProfile",
     .help = "as trtexec: --steps",
     .set = cli_set_flag,
     .at = offsetof(bench_options, steps)},
    {.name = "noDataTransfers",
     .help = "as trtexec: --no-transfers",
     .set = cli_set_flag,
     .at = offsetof(bench_options, no_transfers)},
    {.name = "json",
     .help = "print one JSON document",
     .set = cli_set_flag,
     .at = offsetof(bench_options, json)},
};

static zc_status bench(bench_target *targets, size_t n, const bench_options *o, zc_diag *diag)
{
    ZC_TRY(bench_measure(targets, n, o, diag));
    ZC_TRY(bench_print(targets, n, o, diag));
    if (o->times) ZC_TRY(bench_export_times(&targets[0].times, o->times, diag));
    if (o->save) ZC_TRY(bench_save(&targets[0], o, o->save, diag));
    if (o->baseline) return bench_against(&targets[0], o, diag);
    return n > 1 && o->slowdown >= 0 ? bench_among(targets, n, o, diag) : ZC_OK;
}

/* What does not go together. */
static int check(const bench_options *o, int plans)
{
    const cli_need needs[] = {
        {o->concurrency > 1, "--concurrency", plans == 1, "one plan"},
        {o->times != NULL, "--export-times", plans == 1, "one plan"},
        {o->save != NULL, "--save", plans == 1, "one plan"},
        {o->baseline != NULL, "--baseline", plans == 1, "one plan"},
        {o->sweep.n > 0, "--sweep", plans == 1 && !o->times && !o->save && !o->baseline,
         "one plan alone, and no file of times"},
        {o->processor_time, "--processor-time", o->concurrency == 1 && !o->save && !o->baseline,
         "one session, and no file of times"},
        {o->chart, "--chart", o->sweep.n > 0 && !o->json, "--sweep, and no --json"},
        {o->picture != NULL, "--chart-file", o->sweep.n > 0, "--sweep"},
        {o->max_slowdown != NULL, "--max-slowdown", o->baseline || plans > 1,
         "--baseline, or several plans"},
    };
    if (plans < 1 || plans > BENCH_PLANS_MAX)
        return cli_usage("bench", "needs 1 to %d plans (got %d)", BENCH_PLANS_MAX, plans);
    return cli_check_needs("bench", needs, ZC_COUNTOF(needs));
}

static int run(int argc, char **argv)
{
    bench_options o = {.device = {.kind = ZC_DEVICE_AUTO},
                       .in = {.seed = -1, .random = true},
                       .warmup = -1,
                       .iterations = 5,
                       .concurrency = 1,
                       .seconds = 3,
                       .slowdown = -1};
    bench_target targets[BENCH_PLANS_MAX] = {0};
    int code = cli_parse(&cli_bench_command, argc, argv, &o);
    if (code != CLI_GO) return code;
    int n = argc - optind;
    if ((code = check(&o, n)) != EXIT_OK) return code;
    if (o.baseline && !o.max_slowdown) o.max_slowdown = "3%";
    if (o.max_slowdown) o.slowdown = zc_strtod(o.max_slowdown, NULL) / 100;
    for (int i = 0; i < n; i++) targets[i].path = argv[optind + i];
    zc_diag *diag = zc_diag_create();
    zc_status status =
        o.sweep.n ? bench_sweep(argv[optind], &o, diag) : bench(targets, (size_t)n, &o, diag);
    if (status != ZC_OK) code = cli_report(diag, status);
    bench_free(targets, (size_t)n);
    zc_diag_destroy(&diag);
    return code;
}

const cli_command cli_bench_command = {
    .name = "bench",
    .summary = "time plans",
    .operands = "PLAN... [OPTIONS]",
    .about =
        "Times runs of a plan: median with its 95 % confidence interval (by order statistics), "
        "percentiles, outliers beyond Tukey's fences, and whether times drift or fall into two "
        "groups. Inputs that no file is given for are random.\n\n"
        "Several plans run by turns, and are compared with the first. --save keeps times, "
        "--baseline compares with them on the same device and inputs: exit code 3 names the steps "
        "that became slower.",
    .examples = "zc bench resnet50.plan --threads 2\n"
                "zc bench bert.plan --random --dim batch=1 --dim sequence=128 --seconds 10\n"
                "zc bench bert.plan --sweep batch=1,2,4,8 --sweep sequence=128,512 --seconds 1\n"
                "zc bench old.plan new.plan --max-slowdown 2%\n"
                "zc bench net.plan --save net.times\n"
                "zc bench net.plan --baseline net.times --max-slowdown 3%\n",
    .options = table,
    .option_count = ZC_COUNTOF(table),
    .words = CLI_WORDS_FILE,
    .run = run,
};
