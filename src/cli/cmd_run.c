#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/compare.h"
#include "cli/progress.h"
#include "cli/run.h"

static const cli_option table[] = {
    CLI_INPUT_OPTIONS(run_options, in),
    {.name = "output-dir",
     .arg = "DIR",
     .help = "save results as output_0.npy and so on",
     .words = CLI_WORDS_DIR,
     .set = cli_set_text,
     .at = offsetof(run_options, output_dir)},
    {.name = "format",
     .arg = "FORMAT",
     .choices = "npy npz pb raw",
     .help = "of saved results: npy (default), npz: " RUN_ARCHIVE " by name, pb, or raw: bare "
             "elements; pb for types that .npy lacks",
     .set = cli_set_text,
     .at = offsetof(run_options, format)},
    CLI_DEVICE_OPTION(run_options, device),
    CLI_THREADS_OPTION(run_options, threads, "threads to use (default: one a CPU)"),
    {.name = "top",
     .arg = "K",
     .help = "print the K best of results that look like scores (default 5)",
     .most = 1000,
     .set = cli_set_int,
     .at = offsetof(run_options, top)},
    {.name = "labels",
     .arg = "FILE",
     .help = "names of classes, one a line",
     .words = CLI_WORDS_FILE,
     .set = cli_set_text,
     .at = offsetof(run_options, labels)},
    {.name = "expect",
     .arg = "DIR",
     .help =
         "compare results with output_0.npy or .pb and so on in this folder, or with the arrays "
         "of their names in a .npz file; exit code 3 when they differ",
     .words = CLI_WORDS_FILE,
     .set = cli_set_text,
     .at = offsetof(run_options, expect)},
    {.name = "rtol",
     .arg = "R",
     .help = "relative tolerance of --expect (default 1e-3)",
     .most = 1000000,
     .set = cli_set_real,
     .at = offsetof(run_options, rtol)},
    {.name = "atol",
     .arg = "A",
     .help = "absolute tolerance of --expect (default 1e-7)",
     .most = 1000000,
     .set = cli_set_real,
     .at = offsetof(run_options, atol)},
    {.name = "output",
     .repeated = true,
     .arg = "NAME",
     .help = "print, save and compare this output (default: all)",
     .set = cli_set_list,
     .at = offsetof(run_options, outputs)},
    {.name = "json",
     .help = "print the results, all elements of them, as one JSON document",
     .set = cli_set_flag,
     .at = offsetof(run_options, json)},
    {.name = "loop",
     .arg = "N",
     .help = "run N times (default: as many as --slice has parts, else 1)",
     .least = 1,
     .most = 1000000000,
     .set = cli_set_int,
     .at = offsetof(run_options, loop)},
    {.name = "feed",
     .repeated = true,
     .arg = "OUTPUT=INPUT",
     .help = "the next run takes this output as that input, which begins with zeros unless a file "
             "is given",
     .set = cli_set_pair,
     .at = offsetof(run_options, feeds)},
    {.name = "slice",
     .repeated = true,
     .arg = "INPUT=AXIS[:SIZE]",
     .help = "each run takes the next SIZE of the input's file along an axis (default: what the "
             "plan takes there)",
     .set = cli_set_pair,
     .at = offsetof(run_options, slices)},
    {.name = "tail",
     .arg = "HOW",
     .choices = "drop pad short",
     .help = "a last part that is too short: leave it out (default), fill it up with zeros, or run "
             "it as it is",
     .set = cli_set_text,
     .at = offsetof(run_options, tail)},
    {.name = "concat",
     .arg = "AXIS",
     .help = "join the outputs of all runs along this axis (default 0); of those that are fed the "
             "last one counts",
     .most = ZC_RANK_MAX - 1,
     .set = cli_set_int,
     .at = offsetof(run_options, concat)},
    {.name = "each",
     .help = "print and save the outputs of every run by themselves",
     .set = cli_set_flag,
     .at = offsetof(run_options, each)},
    {.name = "reference",
     .help = "use the plain reference kernels",
     .set = cli_set_flag,
     .at = offsetof(run_options, reference)},
};

/* ---- the command ---- */

static zc_status compare(const run_result *r, const run_options *o, zc_diag *diag)
{
    zc_tensor want;
    ZC_TRY(cli_read_expected(o->expect, r->name, r->number, &want, diag));
    zc_status status = cli_compare(r->name, &r->t, &want, o->rtol < 0 ? CLI_RTOL : o->rtol,
                                   o->atol < 0 ? CLI_ATOL : o->atol, diag);
    free(want.data);
    return status;
}

/* Every result is compared, also after one that differs. */
static zc_status compare_all(const run_results *r, const run_options *o, zc_diag *diag)
{
    bool differs = false;
    for (size_t i = 0; i < r->list.len; i++) {
        zc_status status = compare(&r->list.data[i], o, diag);
        if (status != ZC_OK && status != ZC_ERR_ACCURACY) return status;
        differs |= status == ZC_ERR_ACCURACY;
    }
    return differs ? ZC_ERR_ACCURACY : ZC_OK;
}

static void print_time(const run_results *r, const zc_session *session)
{
    if (r->steps == 1)
        printf("ran in %.2f ms ", r->seconds * 1e3);
    else
        printf("ran %lld times in %.2f ms ", (long long)r->steps, r->seconds * 1e3);
    cli_print_device(session);
    puts("");
}

static zc_status show(const run_results *r, const zc_session *session, const run_options *o,
                      const run_labels *labels, zc_diag *diag)
{
    for (size_t i = 0; i < r->list.len && !o->json; i++) cli_run_print(&r->list.data[i], o, labels);
    if (o->output_dir) ZC_TRY(cli_run_save(r, o, diag));
    if (o->json) cli_run_json(r);
    if (o->expect) ZC_TRY(compare_all(r, o, diag));
    if (!o->json) print_time(r, session);
    return ZC_OK;
}

static zc_status run_plan(const char *path, const run_options *o, zc_diag *diag)
{
    zc_plan *plan = NULL;
    zc_session *session = NULL;
    run_labels labels = {.text = NULL};
    run_results results = {.steps = 0};
    zc_status status = o->labels ? cli_run_labels(o->labels, &labels, diag) : ZC_OK;
    if (status == ZC_OK) status = cli_load_plan(path, &plan, diag);
    if (status == ZC_OK && o->output_dir) status = cli_run_make_dir(o->output_dir, diag);
    if (status == ZC_OK)
        status = zc_session_create(
            plan,
            ZC_SESSION_PARAMS(.threads = (int)o->threads, .reference = o->reference,
                              .device = o->device.kind, .ordinal = o->device.ordinal),
            &session, diag);
    cli_progress progress;
    cli_progress_begin(&progress);
    cli_progress_set(&progress, "running");
    if (status == ZC_OK) status = cli_run(plan, session, o, &results, diag);
    cli_progress_end(&progress);
    if (status == ZC_OK) status = show(&results, session, o, &labels, diag);
    cli_run_free(&results);
    (void)zc_session_destroy(&session);
    zc_plan_destroy(&plan);
    ZC_VEC_FINI(&labels.lines);
    free(labels.text);
    return status;
}

/* They would be compared with themselves. */
static bool saves_over_expected(const run_options *o)
{
    char archive[4096];
    if (!o->expect || !o->output_dir) return false;
    snprintf(archive, sizeof archive, "%s/" RUN_ARCHIVE, o->output_dir);
    return zc_file_is_same(o->expect, o->output_dir) || zc_file_is_same(o->expect, archive);
}

static int check(const run_options *o)
{
    static const char loop[] = "--loop N or --slice";
    bool is_loop = o->loop || o->slices.n;
    const cli_need needs[] = {
        {o->format, "--format", o->output_dir, "--output-dir DIR"},
        {o->labels, "--labels", o->top != 0, "--top K"},
        {o->rtol >= 0, "--rtol", o->expect, "--expect DIR"},
        {o->atol >= 0, "--atol", o->expect, "--expect DIR"},
        {o->in.seed >= 0, "--seed", o->in.random, "--random"},
        {o->feeds.n, "--feed", is_loop, loop},
        {o->tail, "--tail", o->slices.n, "--slice"},
        {o->concat >= 0, "--concat", is_loop, loop},
        {o->each, "--each", is_loop, loop},
    };
    if (o->reference && o->device.kind == ZC_DEVICE_CUDA)
        return cli_usage("run", "--reference is of the CPU (got --device cuda)");
    if (o->each && o->concat >= 0)
        return cli_usage("run", "--each and --concat exclude each other");
    if (o->each && o->expect) return cli_usage("run", "--each and --expect exclude each other");
    if (saves_over_expected(o))
        return cli_usage("run", "results would take the place of what --expect names");
    if (o->json && o->labels) return cli_usage("run", "--json and --labels exclude each other");
    if (o->json && o->top >= 0) return cli_usage("run", "--json and --top exclude each other");
    return cli_check_needs("run", needs, ZC_COUNTOF(needs));
}

static int run(int argc, char **argv)
{
    run_options o = {.in = {.seed = -1},
                     .top = -1,
                     .concat = -1,
                     .rtol = -1,
                     .atol = -1,
                     .device = {.kind = ZC_DEVICE_AUTO}};
    const char *plan;
    int code = cli_parse_one(&cli_run_command, argc, argv, &o, "one plan", &plan);
    if (code != CLI_GO) return code;
    code = check(&o);
    if (code) return code;
    if (o.top < 0) o.top = 5;
    zc_diag *diag = zc_diag_create();
    zc_status status = run_plan(plan, &o, diag);
    if (status != ZC_OK) code = cli_report(diag, status);
    zc_diag_destroy(&diag);
    return code;
}

const cli_command cli_run_command = {
    .name = "run",
    .summary = "run a plan on inputs and print or save the results",
    .operands = "PLAN [OPTIONS]",
    .about = "Runs a plan, once or in a loop, and prints its results.\n"
             "A loop is for models with a state, and for recordings: --feed hands an output on to "
             "the next run, --slice gives every run the next part of an input, and the outputs of "
             "all runs are joined.",
    .examples =
        "zc run digits.plan --input image=seven.npy --top 3 --labels labels.txt\n"
        "zc run bert.plan --random --dim batch=2 --dim sequence=128\n"
        "zc run net.plan --inputs test_data_set_0 --output-dir results\n"
        "zc run net.plan --inputs test_data_set_0 --expect test_data_set_0 --rtol 1e-2\n"
        "zc run vad.plan --input sound=talk.npy --slice sound=1:512 --feed state_out=state\n",
    .options = table,
    .option_count = ZC_COUNTOF(table),
    .words = CLI_WORDS_FILE,
    .run = run,
};
