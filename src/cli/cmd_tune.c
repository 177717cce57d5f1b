#include "cli/cli.h"
#include "cli/model.h"
#include "cli/progress.h"
#include "driver/compile.h"
#include "tune/database.h"

typedef struct options {
    const char *output, *data_root, *precision;
    bool merge, again, offered, quiet;
    double seconds;
    int64_t threads, alternatives;
    cli_profiles profiles;
    cli_dims dims;
    cli_shapes shapes;
} options;

static const cli_option table[] = {
    {.name = "output",
     .letter = 'o',
     .arg = "FILE",
     .help = "the file of measurements; what it holds already is kept, and not measured again",
     .words = CLI_WORDS_FILE,
     .set = cli_set_text,
     .at = offsetof(options, output)},
    {.name = "merge",
     .help = "the operands are files of measurements: write them all to one",
     .set = cli_set_flag,
     .at = offsetof(options, merge)},
    {.name = "seconds",
     .arg = "N",
     .help = "how long to measure each combination of sizes of a model; compiling is not counted "
             "(default: 60)",
     .most = 86400,
     .set = cli_set_real,
     .at = offsetof(options, seconds)},
    {.name = "again",
     .help = "measure also what is known already",
     .set = cli_set_flag,
     .at = offsetof(options, again)},
    {.name = "alternatives",
     .arg = "N",
     .help = "how many configurations of each kernel family to measure, the best by cost (default: "
             "16), and print the times of all",
     .least = 1,
     .most = 4096,
     .set = cli_set_int,
     .at = offsetof(options, alternatives)},
    CLI_OFFERED_OPTION(options, offered),
    CLI_DIM_OPTION(options, dims, "fix a symbolic dimension"),
    CLI_SHAPE_OPTION(options, shapes),
    CLI_PROFILE_OPTION(options, profiles, "measure with these sizes of a symbolic dimension"),
    CLI_PRECISION_OPTION(options, precision, "as of zc compile"),
    CLI_DATA_ROOT_OPTION(options, data_root),
    CLI_THREADS_OPTION(options, threads, "threads that compile kernels (default: one a CPU)"),
    {.name = "quiet",
     .letter = 'q',
     .help = "print nothing on success",
     .set = cli_set_flag,
     .at = offsetof(options, quiet)},
};

static bool show_stage(void *user, const char *stage, size_t done, size_t total)
{
    cli_progress_set(user, "%s", stage);
    return true;
}

static zc_status tune_model(const char *path, const options *o, zc_diag *diag)
{
    static const char *const native = "native";
    cli_progress progress;
    zc_explain e = {.limit = 0};
    zc_model_source model;
    const zc_compile_params params = {.size = sizeof params,
                                      .data_root = o->data_root,
                                      .dims = o->dims.v,
                                      .dim_count = o->dims.n,
                                      .shapes = o->shapes.v,
                                      .shape_count = o->shapes.n,
                                      .precision = o->precision,
                                      .targets = &native,
                                      .target_count = 1,
                                      .profiles = o->profiles.v,
                                      .profile_count = o->profiles.n,
                                      .threads = (int)o->threads,
                                      .tune = true,
                                      .tune_seconds = o->seconds,
                                      .tune_again = o->again,
                                      .tune_alternatives = (int)o->alternatives,
                                      .offered = o->offered,
                                      .tuned = o->output,
                                      .progress = show_stage,
                                      .progress_user = &progress};
    cli_progress_begin(&progress);
    zc_status status = cli_model_open(path, &model, diag);
    if (status == ZC_OK) status = zc_compile_nothing(&model, &params, &e, diag);
    cli_progress_end(&progress);
    if (!o->quiet && e.tuning.told.len) fputs(e.tuning.told.data, stdout);
    zc_explain_fini(&e);
    cli_model_close(&model);
    return status;
}

static zc_status merge(char *const *files, int n, const options *o, zc_diag *diag)
{
    zc_tuned all;
    zc_tuned_init(&all);
    zc_status status = ZC_OK;
    for (int i = 0; status == ZC_OK && i < n; i++) status = zc_tuned_read(&all, files[i], diag);
    if (status == ZC_OK) status = zc_tuned_write(&all, o->output, diag);
    if (status == ZC_OK && !o->quiet) {
        cli_put(stdout, o->output);
        printf(": %zu problems\n", all.entries.len);
    }
    zc_tuned_fini(&all);
    return status;
}

static int run(int argc, char **argv)
{
    options o = {.quiet = false};
    int code = cli_parse(&cli_tune_command, argc, argv, &o);
    if (code != CLI_GO) return code;
    char *const *operands = argv + optind;
    int n = argc - optind;
    if (!n) return cli_usage("tune", "needs a model, or files to merge");
    if (!o.output) return cli_usage("tune", "needs --output FILE");
    if (!o.merge && cli_check_written("tune", "output", o.output, operands, n)) return EXIT_USAGE;
    zc_diag *diag = zc_diag_create();
    zc_status status = o.merge ? merge(operands, n, &o, diag) : ZC_OK;
    for (int i = 0; !o.merge && status == ZC_OK && i < n; i++)
        status = tune_model(operands[i], &o, diag);
    if (status != ZC_OK || !o.quiet) code = cli_report(diag, status);
    zc_diag_destroy(&diag);
    return status == ZC_OK ? EXIT_OK : code;
}

const cli_command cli_tune_command = {
    .name = "tune",
    .summary = "measure kernels for models on this machine's GPU",
    .operands = "MODEL... -o FILE [OPTIONS]",
    .about =
        "Tries the kernels that may serve each step of a model, in runs of the whole model on this "
        "machine's first GPU, and writes down which are fastest. 'zc compile --tuned FILE' chooses "
        "by that, on any machine (docs/tuning.md).",
    .examples = "zc tune bert.onnx -o my.tuned --precision f16 --dim batch=1 --profile "
                "sequence=128,512\n"
                "zc compile bert.onnx -o bert.plan --target sm_90 --precision f16 --dim batch=1 "
                "--profile sequence=128,512 --tuned my.tuned\n"
                "zc tune --merge mine.tuned yours.tuned -o all.tuned\n",
    .options = table,
    .option_count = ZC_COUNTOF(table),
    .words = CLI_WORDS_FILE,
    .run = run,
};
