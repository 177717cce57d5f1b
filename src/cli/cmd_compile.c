#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/explain_print.h"
#include "cli/model.h"
#include "cli/progress.h"
#include "cli/ranges.h"
#include "cli/samples.h"
#include "driver/compile.h"

/* Of --precision auto without --calibration. */
enum { RANDOM_SAMPLES = 4 };

typedef struct options {
    const char *output, *data_root, *emit_cuda, *precision, *pareto, *sparsify;
    double max_error;
    cli_list allow, calibration; /* the folders, once a file among them is taken out */
    const char *thresholds;
    bool quiet, verbose, strict, strip, offered, explain, json;
    cli_tune tune;
    int64_t threads, weight_group;
    cli_list targets;
    cli_profiles profiles;
    cli_dims dims;
    cli_shapes shapes, min, opt, max;
    cli_list skips, rules, no_rules;
} options;

static const cli_option table[] = {
    {.name = "output",
     .letter = 'o',
     .arg = "PLAN",
     .help = "the plan file; an existing one is replaced only on success",
     .words = CLI_WORDS_FILE,
     .set = cli_set_text,
     .at = offsetof(options, output)},
    CLI_DIM_OPTION(options, dims, "fix a symbolic dimension; NAME/length: of a sequence input"),
    CLI_SHAPE_OPTION(options, shapes),
    {.name = "minShapes",
     .repeated = true,
     .arg = "NAME:1x3x8,...",
     .help = "as trtexec: the least sizes of inputs; a plan takes all sizes, but see --optShapes",
     .set = cli_set_named,
     .at = offsetof(options, min)},
    {.name = "optShapes",
     .repeated = true,
     .arg = "NAME:8x3x8,...",
     .help =
         "as trtexec: symbolic dimensions get --profile with this size on a GPU; where the least "
         "and the greatest size are equal, --dim",
     .set = cli_set_named,
     .at = offsetof(options, opt)},
    {.name = "maxShapes",
     .repeated = true,
     .arg = "NAME:32x3x8,...",
     .help = "as trtexec: the greatest sizes of inputs",
     .set = cli_set_named,
     .at = offsetof(options, max)},
    CLI_DATA_ROOT_OPTION(options, data_root),
    {.name = "skip-pass",
     .repeated = true,
     .arg = "NAME",
     .choices = cli_skip_names,
     .help = "leave out an optional pass, or 'all'",
     .set = cli_set_list,
     .at = offsetof(options, skips)},
    {.name = "precision",
     .arg = "TYPE",
     .choices = CLI_PRECISIONS " auto",
     .help = "the type of weights and intermediate results (default: f32, exactly the model's); "
             "sums stay f32. tf32: f32, but matrix products on a GPU round their factors. auto: "
             "of each part of the model the cheapest with which --max-error holds",
     .set = cli_set_text,
     .at = offsetof(options, precision)},
    {.name = "max-error",
     .arg = "E",
     .help = "with --precision auto: the most that an output may differ from the model's in f32, "
             "relative to its greatest magnitude",
     .set = cli_set_positive,
     .at = offsetof(options, max_error)},
    {.name = "calibration",
     .repeated = true,
     .arg = "DIR|FILE",
     .help = "inputs to measure errors on, as run's --inputs takes them, or a folder of such "
             "folders (default: 4 random runs); or what 'zc calibrate' wrote, for the ranges of "
             "int8 and fp8",
     .words = CLI_WORDS_FILE,
     .set = cli_set_list,
     .at = offsetof(options, calibration)},
    {.name = "allow",
     .repeated = true,
     .arg = "TYPE,...",
     .choices = CLI_PRECISIONS " int8 fp8 int4 fp4 w8",
     .help = "types that may be chosen beside f32 (default: those that the targets are known to "
             "run faster, on the CPU none; int8 and fp8 only where they are named, with "
             "--calibration, and int4, fp4 and w8, of which weights alone have 4 and 8 bits, only "
             "where they are named)",
     .set = cli_set_words,
     .at = offsetof(options, allow)},
    {.name = "sparsify",
     .arg = "2:4",
     .choices = "2:4",
     .help =
         "with --precision auto: prune weights of products, of each four along the summed axis "
         "the two of the least magnitude, where a target multiplies such faster and --max-error "
         "holds. Weights that have such zeros need no leave",
     .set = cli_set_text,
     .at = offsetof(options, sparsify)},
    {.name = "weight-group",
     .arg = "N",
     .choices = "32 64 128",
     .help = "with --allow int4 or w8: weights that share a scale, along the summed axis (default: "
             "of each part what is best)",
     .least = 32,
     .most = 128,
     .set = cli_set_int,
     .at = offsetof(options, weight_group)},
    {.name = "pareto",
     .arg = "FILE",
     .help = "write the front of modelled time, bytes of weights and error among what was measured",
     .words = CLI_WORDS_FILE,
     .writes = true,
     .set = cli_set_text,
     .at = offsetof(options, pareto)},
    {.name = "strict",
     .help = "refuse a model that declares a type which contradicts the inferred one (else: a "
             "warning)",
     .set = cli_set_flag,
     .at = offsetof(options, strict)},
    {.name = "rules",
     .repeated = true,
     .arg = "FILE",
     .help = "a file of fusion rules, beside the built-in ones (docs/rules.md)",
     .words = CLI_WORDS_FILE,
     .set = cli_set_list,
     .at = offsetof(options, rules)},
    {.name = "no-rule",
     .repeated = true,
     .arg = "NAME",
     .help = "leave out a fusion rule ('zc rules list' names them)",
     .set = cli_set_list,
     .at = offsetof(options, no_rules)},
    {.name = "tune",
     .arg = "SECONDS",
     .optional = true,
     .help = "measure kernels on this machine's first GPU, for 60 seconds or so many, and take the "
             "fastest (docs/tuning.md); also the tuning parameters of kernels that --rules bring "
             "along",
     .set = cli_set_tune,
     .at = offsetof(options, tune)},
    {.name = "tuned",
     .arg = "FILE",
     .help = "measurements to choose kernels by, beside those that zc brings along; --tune adds to "
             "them",
     .words = CLI_WORDS_FILE,
     .set = cli_set_text,
     .at = offsetof(options, tune.file)},
    {.name = "by-cost",
     .help = "choose kernels by the models of their cost, whatever was measured",
     .set = cli_set_flag,
     .at = offsetof(options, tune.by_cost)},
    CLI_OFFERED_OPTION(options, offered),
    {.name = "explain",
     .help = "tell what was fused, what was not and why, and the steps; --output may be left out",
     .set = cli_set_flag,
     .at = offsetof(options, explain)},
    {.name = "json",
     .help = "with --explain: print one JSON document",
     .set = cli_set_flag,
     .at = offsetof(options, json)},
    {.name = "target",
     .repeated = true,
     .arg = "TARGET",
     .choices = "cpu native sm_80 sm_86 sm_89 sm_90 sm_100 sm_120",
     .help = "a GPU to compile for; native: this machine's (default: cpu alone)",
     .set = cli_set_list,
     .at = offsetof(options, targets)},
    CLI_PROFILE_OPTION(options, profiles,
                       "GPU kernels of their own for these sizes of a symbolic dimension"),
    {.name = "emit-cuda",
     .arg = "DIR",
     .help = "also write the kernels' readable sources there",
     .words = CLI_WORDS_DIR,
     .set = cli_set_text,
     .at = offsetof(options, emit_cuda)},
    {.name = "strip-sources",
     .help = "keep the kernels' sources out of the plan: no building for other GPUs later",
     .set = cli_set_flag,
     .at = offsetof(options, strip)},
    CLI_THREADS_OPTION(options, threads, "threads that compile kernels (default: one a CPU)"),
    {.name = "verbose",
     .help = "tell how much CPU time each kernel took to compile",
     .set = cli_set_flag,
     .at = offsetof(options, verbose)},
    {.name = "quiet",
     .letter = 'q',
     .help = "print nothing on success",
     .set = cli_set_flag,
     .at = offsetof(options, quiet)},
};

static bool show_stage(void *user, const char *stage, size_t done, size_t total)
{
    cli_progress_set(user, "[%zu/%zu] %s", done + 1, total, stage);
    return true;
}

static void summary(const char *path, double seconds)
{
    zc_plan *plan = NULL;
    zc_plan_info info;
    struct stat st;
    if (zc_plan_load_file(path, &plan, NULL) != ZC_OK || zc_plan_info_get(plan, &info) != ZC_OK)
        return;
    cli_put(stdout, path);
    printf(": %zu steps, %.1f MB of weights, %.1f MB, compiled in %.2f s\n", info.steps,
           (double)info.weight_bytes / 1e6, stat(path, &st) == 0 ? (double)st.st_size / 1e6 : 0,
           seconds);
    zc_plan_destroy(&plan);
}

static void print_explanation(const zc_explain *e, const char *model, const options *o)
{
    if (o->json)
        cli_explain_json(e, model);
    else
        cli_explain_text(e);
}

static bool has_gpu(const options *o)
{
    bool has = false;
    for (size_t i = 0; i < o->targets.n; i++) has |= strcmp(o->targets.v[i], "cpu") != 0;
    return has;
}

static bool is_auto(const options *o)
{
    return o->precision && strcmp(o->precision, "auto") == 0;
}

static bool allows(const options *o, const char *type)
{
    for (size_t i = 0; i < o->allow.n; i++)
        if (strcmp(o->allow.v[i], type) == 0) return true;
    return false;
}

/* What errors are measured on. */
static zc_status take_samples(const zc_model_source *model, const options *o, cli_samples *samples,
                              zc_compile_params *params, zc_diag *diag)
{
    zc_plan *plan = NULL;
    zc_plan_info info;
    zc_status status = cli_load_model(model, params, &plan, diag);
    if (status == ZC_OK) status = zc_plan_info_get(plan, &info);
    if (status == ZC_OK)
        status = cli_read_samples(plan, &o->calibration, RANDOM_SAMPLES, samples, diag);
    params->samples = samples->views.data;
    params->sample_count = samples->runs.len;
    zc_plan_destroy(&plan);
    return status;
}

static int compile(const char *path, options *o)
{
    double start = cli_now();
    cli_progress progress;
    zc_compile_params params = {.size = sizeof params,
                                .data_root = o->data_root,
                                .dims = o->dims.v,
                                .dim_count = o->dims.n,
                                .shapes = o->shapes.v,
                                .shape_count = o->shapes.n,
                                .skip_passes = o->skips.v,
                                .skip_pass_count = o->skips.n,
                                .precision = o->precision,
                                .max_error = o->max_error,
                                .allow = o->allow.v,
                                .allow_count = o->allow.n,
                                .pareto = o->pareto,
                                .weight_group = o->weight_group,
                                .sparsify = o->sparsify,
                                .calibration = o->thresholds,
                                .rules = o->rules.v,
                                .rule_count = o->rules.n,
                                .skip_rules = o->no_rules.v,
                                .skip_rule_count = o->no_rules.n,
                                .strict = o->strict,
                                .tune = o->tune.on,
                                .tune_seconds = o->tune.seconds,
                                .tuned = o->tune.file,
                                .by_cost = o->tune.by_cost,
                                .offered = o->offered,
                                .targets = o->targets.v,
                                .target_count = o->targets.n,
                                .profiles = o->profiles.v,
                                .profile_count = o->profiles.n,
                                .strip_sources = o->strip,
                                .emit_cuda = o->emit_cuda,
                                .threads = (int)o->threads,
                                .progress = show_stage,
                                .progress_user = &progress};
    int code = EXIT_OK;
    zc_diag *diag = zc_diag_create();
    cli_progress_begin(&progress);
    cli_progress_set(&progress, "reading the model");
    zc_explain e = {.limit = 0};
    zc_arena names;
    cli_samples samples = {.runs = {.len = 0}};
    zc_arena_init(&names, 0);
    zc_model_source model;
    zc_explain *explain = o->explain || o->tune.on || o->verbose ? &e : NULL;
    zc_status status = cli_model_open(path, &model, diag);
    const cli_ranges ranges = {&o->min, &o->opt, &o->max, has_gpu(o)};
    if (status == ZC_OK && (o->min.n || o->opt.n || o->max.n))
        status = cli_take_ranges(&model, &params, &ranges, &o->dims, &o->profiles, &names, diag);
    params.dim_count = o->dims.n;
    params.profile_count = o->profiles.n;
    if (status == ZC_OK && is_auto(o)) status = take_samples(&model, o, &samples, &params, diag);
    if (status == ZC_OK)
        status = o->output ? zc_compile_model_to_file(&model, o->output, &params, explain, diag)
                           : zc_compile_model(&model, &params, NULL, NULL, explain, diag);
    cli_progress_end(&progress);
    if (!o->quiet && !o->json && e.tuning.told.len) fputs(e.tuning.told.data, stdout);
    if (o->verbose && e.precision.len) fputs(e.precision.data, stdout);
    if (o->verbose && e.compiled.len) fputs(e.compiled.data, stdout);
    if (status != ZC_OK || !o->quiet) code = cli_report(diag, status);
    if (status == ZC_OK && o->explain)
        print_explanation(&e, path, o);
    else if (status == ZC_OK && !o->quiet)
        summary(o->output, cli_now() - start);
    zc_arena_fini(&names);
    cli_free_samples(&samples);
    zc_explain_fini(&e);
    cli_model_close(&model);
    zc_diag_destroy(&diag);
    return code;
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Takes the calibration file out of the folders of inputs. */
static int take_thresholds(options *o)
{
    size_t kept = 0;
    for (size_t i = 0; i < o->calibration.n; i++) {
        const char *path = o->calibration.v[i];
        if (!is_file(path)) {
            o->calibration.v[kept++] = path;
            continue;
        }
        if (o->thresholds)
            return cli_usage("compile", "--calibration takes one file (zc calibrate --merge adds "
                                        "several up)");
        o->thresholds = path;
    }
    o->calibration.n = kept;
    return EXIT_OK;
}

static int check(const options *o)
{
    static const char gpu[] = "--target of a GPU", by_error[] = "--precision auto";
    bool gpus = has_gpu(o);
    const cli_need needs[] = {
        {o->json, "--json", o->explain, "--explain"},
        {o->emit_cuda, "--emit-cuda", gpus, gpu},
        {o->strip, "--strip-sources", gpus, gpu},
        {o->profiles.n, "--profile", gpus, gpu},
        {o->threads, "--threads", gpus, gpu},
        {o->tune.on, "--tune", gpus, gpu},
        {o->tune.on, "--tune", o->output, "--output"},
        {o->tune.file, "--tuned", gpus, gpu},
        {o->tune.by_cost, "--by-cost", gpus, gpu},
        {o->offered, "--offered", gpus, gpu},
        {o->verbose, "--verbose", (gpus || is_auto(o)) && o->output,
         "--output, and --target of a GPU or --precision auto"},
        {is_auto(o), "--precision auto", o->max_error > 0, "--max-error"},
        {o->max_error > 0, "--max-error", is_auto(o), by_error},
        {o->calibration.n || o->thresholds, "--calibration", is_auto(o), by_error},
        {o->allow.n, "--allow", is_auto(o), by_error},
        {allows(o, "int8"), "--allow int8", o->calibration.n || o->thresholds, "--calibration"},
        {allows(o, "fp8"), "--allow fp8", o->calibration.n || o->thresholds, "--calibration"},
        {o->weight_group, "--weight-group", allows(o, "int4") || allows(o, "w8"),
         "--allow int4 or w8"},
        {o->pareto, "--pareto", is_auto(o), by_error},
    };
    if (o->quiet && (o->explain || o->verbose))
        return cli_usage("compile", "--quiet excludes --explain and --verbose");
    if (o->tune.by_cost && (o->tune.on || o->tune.file))
        return cli_usage("compile", "--by-cost excludes --tune and --tuned");
    if (o->sparsify && !(o->max_error > 0))
        return cli_usage("compile", "--sparsify needs a bound of the error: --precision auto and "
                                    "--max-error E");
    return cli_check_needs("compile", needs, ZC_COUNTOF(needs));
}

static int run(int argc, char **argv)
{
    options o = {.quiet = false};
    const char *model;
    int code = cli_parse_one(&cli_compile_command, argc, argv, &o, "one model", &model);
    if (code != CLI_GO) return code;
    code = take_thresholds(&o);
    if (code == EXIT_OK) code = check(&o);
    if (code) return code;
    if (!o.output && !o.explain) return cli_usage("compile", "needs --output PLAN or --explain");
    return compile(model, &o);
}

const cli_command cli_compile_command = {
    .name = "compile",
    .summary = "compile an ONNX model to a plan",
    .operands = "MODEL -o PLAN [OPTIONS]",
    .about =
        "Compiles an ONNX model to a plan that 'zc run' and the runtime library execute. A model "
        "of '-' is the standard input.\n"
        "--explain tells, for each rule of --rules and each place, how far the match went and what "
        "failed; for each kind of fusion how many were found and how many there are, and why "
        "others were missed; and the steps (docs/rules.md). Without --output the weights need not "
        "be there.",
    .examples = "zc compile model.onnx -o model.plan\n"
                "zc compile bert.onnx -o bert.plan --dim batch=1\n"
                "zc compile vit.onnx -o vit.plan --target sm_90 --target sm_80\n"
                "zc compile vit.onnx -o vit.plan --target sm_90 --precision f16\n"
                "zc compile vit.onnx -o vit.plan --target native --precision f16 --tune\n"
                "zc compile vit.onnx -o vit.plan --target sm_90 --precision auto --max-error 1e-3 "
                "--calibration inputs\n"
                "zc compile net.onnx -o net.plan --shape image=1x3x224x224\n"
                "zc compile net.onnx --explain --json\n"
                "curl -s https://example.com/net.onnx | zc compile - -o net.plan\n",
    .options = table,
    .option_count = ZC_COUNTOF(table),
    .words = CLI_WORDS_FILE,
    .run = run,
};
