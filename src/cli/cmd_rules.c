/* Rule files: check, list, test, explain. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/device.h"
#include "cli/explain_print.h"
#include "cli/model.h"
#include "driver/compile.h"
#include "driver/trial.h"
#include "prover/prover.h"

typedef struct options {
    bool quiet, all;
    int64_t seed;
    cli_device device;
} options;

static const cli_option table[] = {
    {.name = "all",
     .help = "test, explain: the built-in rules too",
     .set = cli_set_flag,
     .at = offsetof(options, all)},
    {.name = "seed",
     .arg = "N",
     .help = "test: the numbers that operands are drawn from (default: 1)",
     .most = INT64_MAX,
     .set = cli_set_int,
     .at = offsetof(options, seed)},
    {.name = "device",
     .arg = "DEVICE",
     .help = "test: cuda[:N] also runs the kernels that rules bring along, against their meaning",
     .set = cli_set_device,
     .at = offsetof(options, device)},
    {.name = "quiet",
     .letter = 'q',
     .help = "print nothing on success",
     .set = cli_set_flag,
     .at = offsetof(options, quiet)},
};

/* Prints what loading said; true when it was errors. */
static bool print_messages(const zc_rules *r)
{
    bool bad = false;
    for (size_t i = 0; i < zc_rules_message_count(r); i++) {
        zc_buf text = {0};
        bad |= zc_rules_message_print(r, i, &text);
        fputs(text.data ? text.data : "", stderr);
        zc_buf_fini(&text);
    }
    return bad;
}

/* Loads the built-in rules and the files; every message is printed. */
static int load(char **files, int n, zc_rules **out)
{
    zc_diag *diag = zc_diag_create();
    int code = EXIT_OK;
    zc_status status = zc_rules_create(out, diag);
    if (status == ZC_OK) status = zc_rules_add_builtin(*out, diag);
    for (int i = 0; i < n && (status == ZC_OK || status == ZC_ERR_FORMAT); i++) {
        zc_status one = zc_rules_add_file(*out, files[i], diag);
        if (one != ZC_OK) status = one;
    }
    if (*out && print_messages(*out) && status == ZC_ERR_FORMAT)
        code = EXIT_REFUSED;
    else if (status != ZC_OK)
        code = cli_report(diag, status);
    zc_diag_destroy(&diag);
    return code;
}

static int check(int argc, char **argv, const options *o)
{
    zc_rules *r = NULL;
    if (argc == 0) return cli_usage("rules", "check needs a rule file");
    int code = load(argv, argc, &r);
    size_t own = 0;
    for (size_t i = 0; r && i < zc_rules_count(r); i++) own += !zc_rules_at(r, i).is_builtin;
    if (code == EXIT_OK && !o->quiet) printf("%zu rules\n", own);
    zc_rules_destroy(&r);
    return code;
}

static int list(int argc, char **argv, const options *o)
{
    zc_rules *r = NULL;
    int code = load(argv, argc, &r);
    for (size_t i = 0; code == EXIT_OK && i < zc_rules_count(r); i++) {
        zc_rule_info info = zc_rules_at(r, i);
        printf("%-32s priority %-4lld %2d nodes  ", info.name, (long long)info.priority,
               info.nodes);
        cli_put(stdout, info.file);
        printf(":%d%s\n", info.line, info.is_builtin ? " (built in)" : "");
    }
    zc_rules_destroy(&r);
    return code;
}

/* ---- test ---- */

static int test_rule(const zc_rules *r, size_t i, zc_trial_gpu *gpu, const options *o)
{
    zc_rule_check check;
    zc_diag *diag = zc_diag_create();
    const zc_rule_device device = {.run = zc_trial_run_once, .user = gpu};
    bool on_device = o->device.kind == ZC_DEVICE_CUDA && zc_rules_has_kernels(r, i);
    zc_status status = zc_rules_check_kernels(r, i, (uint64_t)(o->seed < 0 ? 1 : o->seed),
                                              on_device ? &device : NULL, &check, diag);
    int code = status == ZC_OK ? EXIT_OK : cli_report(diag, status);
    zc_diag_destroy(&diag);
    if (code) return code;
    if (!check.failed && o->quiet) return EXIT_OK;
    printf("%-32s %s  %zu places, %zu values, worst error %.3g\n", zc_rules_at(r, i).name,
           check.failed ? "FAIL" : "ok  ", check.places, check.values, check.worst);
    if (check.refused)
        printf("    at %zu more the rewrite was refused: %s\n", check.refused, check.refusal);
    if (check.failed) printf("    %s\n", check.why);
    if (!on_device && zc_rules_has_kernels(r, i))
        puts("    its kernels were not run: no GPU (--device cuda runs them on one)");
    if (zc_rules_at(r, i).unchecked)
        printf("    compiled without this check: %s\n", zc_rules_at(r, i).unchecked);
    if (*check.input) printf("    for %s\n", check.input);
    return check.failed ? EXIT_ACCURACY : EXIT_OK;
}

static int test(int argc, char **argv, const options *o)
{
    zc_rules *r = NULL;
    zc_trial_gpu gpu = {.ordinal = o->device.ordinal};
    if (argc == 0 && !o->all) return cli_usage("rules", "test needs a rule file, or --all");
    int code = load(argv, argc, &r);
    for (size_t i = 0; (code == EXIT_OK || code == EXIT_ACCURACY) && i < zc_rules_count(r); i++) {
        if (zc_rules_at(r, i).is_builtin && !o->all) continue;
        int one = test_rule(r, i, &gpu, o);
        if (one) code = one;
    }
    zc_trial_gpu_close(&gpu);
    zc_rules_destroy(&r);
    return code;
}

/* ---- explain ---- */

static zc_status explain_model(const zc_compile_params *params, const char *path, const options *o,
                               zc_diag *diag)
{
    zc_explain e = {.limit = 0};
    zc_model_source model;
    zc_status status = cli_model_open(path, &model, diag);
    if (status == ZC_OK) status = zc_compile_model(&model, params, NULL, NULL, &e, diag);
    for (size_t i = 0; status == ZC_OK && i < zc_rules_count(e.rules); i++)
        if (!zc_rules_at(e.rules, i).is_builtin || o->all) cli_explain_rule(&e, i);
    zc_explain_fini(&e);
    cli_model_close(&model);
    return status;
}

static int explain(int argc, char **argv, const options *o)
{
    zc_rules *r = NULL;
    if (argc < 1 || (argc < 2 && !o->all))
        return cli_usage("rules", "explain needs rule files (or --all) and a model");
    int code = load(argv, argc - 1, &r);
    zc_rules_destroy(&r);
    if (code != EXIT_OK) return code;
    zc_compile_params params = {.size = sizeof params,
                                .rules = (const char *const *)argv,
                                .rule_count = (size_t)argc - 1,
                                .force_rules = true};
    zc_diag *diag = zc_diag_create();
    zc_status status = explain_model(&params, argv[argc - 1], o, diag);
    if (status != ZC_OK) code = cli_report(diag, status);
    zc_diag_destroy(&diag);
    return code;
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv, const options *o);
} actions[] = {{"check", check}, {"list", list}, {"test", test}, {"explain", explain}};

static int check_options(const char *action, const options *o)
{
    bool is_test = strcmp(action, "test") == 0, is_explain = strcmp(action, "explain") == 0;
    const cli_need needs[] = {
        {o->all, "--all", is_test || is_explain, "test or explain"},
        {o->seed >= 0, "--seed", is_test, "test"},
        {o->device.kind != ZC_DEVICE_CPU, "--device", is_test, "test"},
        {o->quiet, "--quiet", is_test || strcmp(action, "check") == 0, "check or test"},
    };
    return cli_check_needs("rules", needs, ZC_COUNTOF(needs));
}

static int run(int argc, char **argv)
{
    options o = {.seed = -1};
    int code = cli_parse(&cli_rules_command, argc, argv, &o);
    if (code != CLI_GO) return code;
    if (optind == argc) return cli_usage("rules", "needs an action");
    const char *action = argv[optind];
    for (size_t i = 0; i < ZC_COUNTOF(actions); i++) {
        if (strcmp(action, actions[i].name) != 0) continue;
        code = check_options(action, &o);
        return code ? code : actions[i].run(argc - optind - 1, argv + optind + 1, &o);
    }
    return cli_usage("rules", "unknown action '%s'", argv[optind]);
}

const cli_command cli_rules_command = {
    .name = "rules",
    .summary = "check, test and explain fusion rules",
    .operands = "check FILE... | list [FILE...] | test FILE... | explain FILE... MODEL",
    .about = "Works with files of fusion rules (docs/rules.md).\n"
             "check reads rule files and reports everything that is wrong with them.\n"
             "list names the rules built in, and those of the files.\n"
             "test computes both sides of each rule on operands of many shapes and values, and "
             "prints the worst error and the operands that gave it.\n"
             "explain says for each rule how often it applies to a model, and how far the best "
             "match went that failed, and why.",
    .examples = "zc rules check my.zcr\n"
                "zc rules list\n"
                "zc rules test my.zcr\n"
                "zc rules explain my.zcr model.onnx\n",
    .options = table,
    .option_count = ZC_COUNTOF(table),
    .words = CLI_WORDS_FILE,
    .run = run,
};
