#include <stdlib.h>
#include <string.h>

#include "cli/model.h"
#include "cli/progress.h"
#include "cli/verify.h"
#include "cuda/device.h"

static const cli_option table[] = {
    CLI_INPUT_OPTIONS(debug, in),
    CLI_DEVICE_OPTION(debug, device),
    {.name = "rtol",
     .arg = "R",
     .help = "relative tolerance (default 1e-3; 2e-2 with --precision f16 or tf32, 1e-1 with bf16)",
     .most = 1000000,
     .set = cli_set_real,
     .at = offsetof(verify, rtol)},
    {.name = "atol",
     .arg = "A",
     .help = "absolute tolerance (default: a tenth of the relative one's default)",
     .most = 1000000,
     .set = cli_set_real,
     .at = offsetof(verify, atol)},
    {.name = "layers",
     .help = "compare every tensor of the model that is still there after fusion",
     .set = cli_set_flag,
     .at = offsetof(verify, layers)},
    DEBUG_OPTIONS,
};

/* ---- NaN and infinity ---- */

static const char *first_input(const verify *v, const char **kind)
{
    debug_results all = {.names = {.len = 0}};
    int64_t count;
    const cli_values *in = &v->d.reference.inputs;
    all.outputs.data = in->v;
    all.outputs.len = in->n;
    all.names.data = v->d.reference.input_names.data;
    return cli_verify_not_finite(&all, kind, &count, 0);
}

/* Runs once more with all tensors to find the first one; only a run of zc has them. */
static void name_origin(const verify *v, const debug_variant *how)
{
    const char *kind;
    int64_t count;
    const char *name = first_input(v, &kind);
    debug_variant all = *how;
    debug_results r = {.names = {.len = 0}};
    zc_diag *diag = zc_diag_create();
    all.expose = true;
    if (!name && cli_debug_run(&v->d, &all, &r, NULL, diag) == ZC_OK)
        name = cli_verify_not_finite(&r, &kind, &count, v->models_outputs);
    if (name) {
        printf("; %s is first in '", kind);
        cli_put(stdout, name);
        fputs("'", stdout);
    }
    cli_debug_free(&r);
    zc_diag_destroy(&diag);
}

/* how: NULL for a run that is not zc's. */
static void watch(const verify *v, const char *runner, const debug_results *got,
                  const debug_variant *how)
{
    const char *kind;
    int64_t count;
    debug_results outputs = *got;
    if (outputs.outputs.len > v->models_outputs) outputs.outputs.len = v->models_outputs;
    const char *name = cli_verify_not_finite(&outputs, &kind, &count, 0);
    if (!name) return;
    printf("%-12s %s in output '", runner, kind);
    cli_put(stdout, name);
    printf("' (%lld elements)", (long long)count);
    if (how) name_origin(v, how);
    puts("");
}

/* ---- the runs ---- */

static int run_zc(verify *v, const char *runner, zc_device_kind kind)
{
    const debug_variant how = {.passes = SIZE_MAX, .expose = v->layers};
    debug_results got = {.names = {.len = 0}};
    zc_diag *diag = zc_diag_create();
    int code = EXIT_OK;
    v->d.device.kind = kind;
    zc_status status = cli_debug_run(&v->d, &how, &got, NULL, diag);
    if (status != ZC_OK) {
        cli_verify_absent(runner, zc_diag_text(diag, 0));
        code = cli_report(diag, status);
    } else {
        if (!cli_verify_rows(v, runner, &got)) code = EXIT_ACCURACY;
        watch(v, runner, &got, &how);
    }
    cli_debug_free(&got);
    zc_diag_destroy(&diag);
    return code;
}

/* Without a GPU there is nothing to verify there, unless it was asked for. */
static int run_cuda(verify *v, cli_device asked)
{
    int arch, code = EXIT_OK;
    zc_diag *diag = zc_diag_create();
    zc_status status = zc_device_arch(asked.ordinal, &arch, diag);
    v->d.device = asked;
    if (status == ZC_OK)
        code = run_zc(v, "cuda", ZC_DEVICE_CUDA);
    else
        cli_verify_absent("cuda", zc_diag_text(diag, 0));
    if (status != ZC_OK && asked.kind == ZC_DEVICE_CUDA) code = cli_report(diag, status);
    zc_diag_destroy(&diag);
    return code;
}

static int run_onnxruntime(const verify *v)
{
    char why[300];
    debug_results got = {.names = {.len = 0}};
    zc_diag *diag = zc_diag_create();
    int code = EXIT_OK;
    zc_status status = cli_verify_onnxruntime(v, &got, why, sizeof why, diag);
    if (status != ZC_OK) {
        cli_verify_absent("onnxruntime", zc_diag_text(diag, 0));
        code = cli_report(diag, status);
    } else if (*why) {
        cli_verify_absent("onnxruntime", why);
    } else {
        if (!cli_verify_rows(v, "onnxruntime", &got)) code = EXIT_ACCURACY;
        watch(v, "onnxruntime", &got, NULL);
    }
    cli_debug_free(&got);
    zc_diag_destroy(&diag);
    return code;
}

/* A run that cannot be is worse than one that differs. */
static void worse(int *code, int other)
{
    if (*code == EXIT_OK || *code == EXIT_ACCURACY) *code = other ? other : *code;
}

static int run_others(verify *v)
{
    const cli_device asked = v->d.device;
    int code = EXIT_OK;
    cli_verify_header();
    watch(v, "reference", &v->d.reference,
          &(debug_variant){.is_reference = true, .expose = v->layers});
    worse(&code, run_zc(v, "cpu", ZC_DEVICE_CPU));
    if (asked.kind != ZC_DEVICE_CPU) worse(&code, run_cuda(v, asked));
    worse(&code, run_onnxruntime(v));
    printf("%s (rtol %.3g, atol %.3g)\n",
           code == EXIT_OK         ? "no difference"
           : code == EXIT_ACCURACY ? "results differ"
                                   : "not every run came to an end",
           v->rtol, v->atol);
    return code;
}

static zc_status run_reference(verify *v, const char *model, zc_diag *diag)
{
    const debug_variant how = {.is_reference = true, .expose = v->layers};
    ZC_TRY(cli_debug_check(&v->d, diag));
    ZC_TRY(cli_model_open(model, &v->d.model, diag));
    ZC_TRY(cli_debug_run(&v->d, &how, &v->d.reference, NULL, diag));
    v->models_outputs = v->d.reference.models_outputs;
    return ZC_OK;
}

static int run(int argc, char **argv)
{
    const char *model;
    verify v = {.d = {.in = {.seed = -1, .random = true}, .device = {.kind = ZC_DEVICE_AUTO}},
                .rtol = -1,
                .atol = -1};
    int code = cli_parse_one(&cli_verify_command, argc, argv, &v, "one model", &model);
    if (code != CLI_GO) return code;
    const cli_need needs[] = {{v.d.force_rules, "--force-rules", v.d.rules.n, "--rules FILE"}};
    code = cli_check_needs("verify", needs, ZC_COUNTOF(needs));
    if (code) return code;
    if (v.rtol < 0) v.rtol = cli_debug_bound(v.d.precision);
    if (v.atol < 0) v.atol = cli_debug_bound(v.d.precision) / 10;
    zc_diag *diag = zc_diag_create();
    cli_progress progress;
    cli_progress_begin(&progress);
    cli_progress_set(&progress, "verifying");
    zc_status status = run_reference(&v, model, diag);
    cli_progress_end(&progress);
    code = status == ZC_OK ? run_others(&v) : cli_report(diag, status);
    cli_debug_free(&v.d.reference);
    cli_model_close(&v.d.model);
    zc_diag_destroy(&diag);
    return code;
}

const cli_command cli_verify_command = {
    .name = "verify",
    .summary = "compare a model's answers: plain kernels, fused, GPU, onnxruntime",
    .operands = "MODEL [OPTIONS]",
    .about =
        "Runs a model without any optimisation by the plain kernels, and compares with this what "
        "'zc compile' makes of it on the CPU, on the GPU where there is one, and what onnxruntime "
        "says where python3 has it. A row tells an output's greatest difference, absolute and "
        "relative to its greatest element. An element may be off by atol + rtol * |reference|.\n"
        "Where an output has NaN or infinity, the first tensor that has is named. The exit code is "
        "3 when results differ. Inputs that no file is given for are random.",
    .examples = "zc verify model.onnx\n"
                "zc verify model.onnx --inputs test_data_set_0 --rtol 1e-4 --atol 1e-5\n"
                "zc verify model.onnx --layers --precision f16 --device cuda\n",
    .options = table,
    .option_count = ZC_COUNTOF(table),
    .words = CLI_WORDS_FILE,
    .run = run,
};
