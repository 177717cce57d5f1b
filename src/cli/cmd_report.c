/* zc report: everything about plans on one page. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/number.h"
#include "cli/report.h"

/* "204.8,1500": GB/s and GFLOP/s. */
static int set_peaks(const cli_call *call, void *at, char *value)
{
    zc_peaks *p = at;
    char *end, *second;
    double bytes = zc_strtod(value, &end);
    double operations = *end == ',' ? zc_strtod(end + 1, &second) : 0;
    if (end == value || *end != ',' || second == end + 1 || *second ||
        !(bytes > 0 && bytes < 1e9) || !(operations > 0 && operations < 1e9))
        return cli_bad_value(call, value, "GB/s,GFLOP/s, as in 204.8,1500");
    *p = (zc_peaks){.bytes = bytes * 1e9, .operations[ZC_PEAK_F32] = operations * 1e9};
    return EXIT_OK;
}

static const cli_option table[] = {
    {.name = "output",
     .letter = 'o',
     .arg = "FILE",
     .help = "the page; an existing one is replaced only on success",
     .words = CLI_WORDS_FILE,
     .writes = true,
     .set = cli_set_text,
     .at = offsetof(report_options, output)},
    CLI_INPUT_OPTIONS(report_options, bench.in),
    CLI_DEVICE_OPTION(report_options, bench.device),
    CLI_THREADS_OPTION(report_options, bench.threads, "threads to use (default: one a CPU)"),
    {.name = "seconds",
     .arg = "S",
     .help = "measure for at least S seconds (default 3)",
     .most = 86400,
     .set = cli_set_real,
     .at = offsetof(report_options, bench.seconds)},
    {.name = "times",
     .repeated = true,
     .arg = "FILE",
     .help = "take the times that 'zc bench --save' wrote, and measure nothing; with several plans "
             "one for each, in their order",
     .words = CLI_WORDS_FILE,
     .set = cli_set_list,
     .at = offsetof(report_options, times)},
    {.name = "save",
     .arg = "FILE",
     .help = "write what was measured there, as 'zc bench --save' does, with what the machine can "
             "do",
     .words = CLI_WORDS_FILE,
     .writes = true,
     .set = cli_set_text,
     .at = offsetof(report_options, bench.save)},
    {.name = "peaks",
     .arg = "GB/s,GFLOP/s",
     .help =
         "what the device can do, with f32 on ordinary cores, for the roofline (default: measured)",
     .set = set_peaks,
     .at = offsetof(report_options, peaks)},
    {.name = "no-peaks",
     .help = "do not measure what the device can do",
     .set = cli_set_flag,
     .at = offsetof(report_options, no_peaks)},
    {.name = "model",
     .arg = "MODEL",
     .help = "the plans' ONNX model: tell what was fused, what was not and why",
     .words = CLI_WORDS_FILE,
     .set = cli_set_text,
     .at = offsetof(report_options, model)},
    CLI_PRECISION_OPTION(report_options, precision, "of --model, as it was compiled"),
    {.name = "rules",
     .repeated = true,
     .arg = "FILE",
     .help = "of --model: a file of fusion rules, as it was compiled",
     .words = CLI_WORDS_FILE,
     .set = cli_set_list,
     .at = offsetof(report_options, rules)},
    {.name = "expect",
     .arg = "DIR",
     .help = "compare results as 'zc run --expect' does; exit code 3 when they differ, which the "
             "page then tells",
     .words = CLI_WORDS_FILE,
     .set = cli_set_text,
     .at = offsetof(report_options, expect)},
    {.name = "verify",
     .help = "with --model: compare results with those of the model as it was written, by plain "
             "kernels, as 'zc verify' does; exit code 3 when they differ",
     .set = cli_set_flag,
     .at = offsetof(report_options, verify)},
    {.name = "rtol",
     .arg = "R",
     .help = "relative tolerance (default: that of 'zc run --expect', or of 'zc verify')",
     .most = 1000000,
     .set = cli_set_real,
     .at = offsetof(report_options, rtol)},
    {.name = "atol",
     .arg = "A",
     .help = "absolute tolerance (default likewise)",
     .most = 1000000,
     .set = cli_set_real,
     .at = offsetof(report_options, atol)},
};

/* What differs has been written down: it is told again, as zc run does. */
static zc_status judge(const report *r, zc_diag *diag)
{
    zc_status status = ZC_OK;
    for (size_t i = 0; i < r->accuracy.len; i++) {
        const report_accuracy *a = &r->accuracy.data[i];
        if (a->off.is_other_type)
            status = zc_fail(diag, ZC_ERR_ACCURACY, a->name, "wrong type (got %s, need %s)", a->got,
                             a->need);
        else if (a->off.wrong)
            status = zc_fail(diag, ZC_ERR_ACCURACY, a->name,
                             "%lld of %lld elements differ, worst at %s (got %.9g, need %.9g)",
                             (long long)a->off.wrong, (long long)a->off.n, a->at, a->off.got,
                             a->off.need);
    }
    return status;
}

static zc_status write_page(const report *r, zc_writer *out, zc_diag *diag)
{
    zc_buf page = {0};
    zc_status status = report_page(r, &page, diag);
    if (status == ZC_OK) status = zc_writer_write(out, page.data, page.len, diag);
    zc_buf_fini(&page);
    return status;
}

/* The file is opened first: what cannot be written need not be measured. */
static zc_status make(char **paths, size_t n, const report_options *o, zc_diag *diag)
{
    zc_writer *out = NULL;
    report r = {.n = 0};
    ZC_TRY(zc_writer_open(o->output, &out, diag));
    zc_status status = report_collect(&r, paths, n, o, diag);
    if (status == ZC_OK) status = write_page(&r, out, diag);
    if (status == ZC_OK) status = zc_writer_commit(&out, diag);
    zc_writer_abort(&out);
    if (status == ZC_OK) status = judge(&r, diag);
    report_free(&r);
    return status;
}

static int check(const report_options *o, int n)
{
    const cli_need needs[] = {
        {o->bench.save, "--save", n == 1 && !o->times.n, "one plan that is measured"},
        {o->precision, "--precision", o->model, "--model MODEL"},
        {o->rules.n, "--rules", o->model, "--model MODEL"},
        {o->verify, "--verify", o->model, "--model MODEL"},
        {o->rtol >= 0, "--rtol", o->expect || o->verify, "--expect DIR or --verify"},
        {o->atol >= 0, "--atol", o->expect || o->verify, "--expect DIR or --verify"},
    };
    if (n < 1 || n > BENCH_PLANS_MAX)
        return cli_usage("report", "needs 1 to %d plans or files of times (got %d)",
                         BENCH_PLANS_MAX, n);
    if (!o->output) return cli_usage("report", "needs --output FILE");
    if (o->times.n && o->times.n != (size_t)n)
        return cli_usage("report", "needs --times for every plan (got %zu, need %d)", o->times.n,
                         n);
    if (o->no_peaks && o->peaks.bytes > 0)
        return cli_usage("report", "--peaks and --no-peaks exclude each other");
    return cli_check_needs("report", needs, ZC_COUNTOF(needs));
}

static int run(int argc, char **argv)
{
    report_options o = {.bench = {.device = {.kind = ZC_DEVICE_AUTO},
                                  .in = {.seed = -1, .random = true},
                                  .warmup = -1,
                                  .iterations = 5,
                                  .concurrency = 1,
                                  .seconds = 3,
                                  .slowdown = -1,
                                  .steps = true},
                        .rtol = -1,
                        .atol = -1};
    int code = cli_parse(&cli_report_command, argc, argv, &o);
    if (code != CLI_GO) return code;
    code = check(&o, argc - optind);
    if (code) return code;
    zc_diag *diag = zc_diag_create();
    zc_status status = make(argv + optind, (size_t)(argc - optind), &o, diag);
    if (status != ZC_OK) code = cli_report(diag, status);
    zc_diag_destroy(&diag);
    return code;
}

const cli_command cli_report_command = {
    .name = "report",
    .summary = "write a page about plans: times, roofline, memory, fusions",
    .operands = "PLAN... -o FILE [OPTIONS]",
    .about =
        "Measures plans as 'zc bench' and 'zc profile' do, and writes one HTML file that needs "
        "nothing else: a summary, times of runs, a roofline, the steps in their order and as a "
        "table, where results lie in working memory, and with --model and --expect or --verify "
        "what "
        "was fused or not and how accurate results are. Several plans run by turns and stand side "
        "by side, "
        "and so do files of 'zc bench --save', which may take the place of plans.\n"
        "With --times nothing is measured: the same times give the same bytes.",
    .examples = "zc report resnet50.plan -o resnet50.html --model resnet50.onnx --verify\n"
                "zc report net.plan -o net.html --inputs test_data_set_0 --expect test_data_set_0\n"
                "zc report old.plan new.plan -o change.html --seconds 10\n"
                "zc bench net.plan --save net.times\n"
                "zc report net.plan --times net.times -o net.html\n"
                "zc report monday.times tuesday.times -o week.html\n",
    .options = table,
    .option_count = ZC_COUNTOF(table),
    .words = CLI_WORDS_FILE,
    .run = run,
};
