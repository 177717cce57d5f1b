#include <string.h>

#include "cli/cli.h"
#include "cli/model.h"
#include "cli/samples.h"
#include "precision/calibration.h"

typedef struct options {
    const char *output, *data_root, *method;
    bool merge, quiet;
    int64_t random;
    cli_list inputs;
    cli_dims dims;
    cli_shapes shapes;
} options;

#define X(name, meaning) " " #name
static const char method_names[] = ZC_CALIBRATION_METHODS(X);
#undef X
#define X(name, meaning) #name ": " meaning "; "
#define METHODS_HELP     ZC_CALIBRATION_METHODS(X)

static const cli_option table[] = {
    {.name = "output",
     .letter = 'o',
     .arg = "FILE",
     .help = "the calibration file; an existing one is replaced only on success",
     .words = CLI_WORDS_FILE,
     .set = cli_set_text,
     .at = offsetof(options, output)},
    {.name = "inputs",
     .repeated = true,
     .arg = "DIR",
     .help = "inputs to run, as run's --inputs takes them, or a folder of such folders",
     .words = CLI_WORDS_DIR,
     .set = cli_set_list,
     .at = offsetof(options, inputs)},
    {.name = "random",
     .arg = "N",
     .help = "run N random inputs instead: for a trial",
     .least = 1,
     .most = CLI_SAMPLES_MAX,
     .set = cli_set_int,
     .at = offsetof(options, random)},
    {.name = "method",
     .arg = "METHOD",
     .choices = method_names + 1,
     .help = "how thresholds of a symmetric 8-bit type follow. " METHODS_HELP "default: minmax",
     .set = cli_set_text,
     .at = offsetof(options, method)},
    {.name = "merge",
     .help = "the operands are calibration files of one model: add them up",
     .set = cli_set_flag,
     .at = offsetof(options, merge)},
    CLI_DIM_OPTION(options, dims, "fix a symbolic dimension"),
    CLI_SHAPE_OPTION(options, shapes),
    CLI_DATA_ROOT_OPTION(options, data_root),
    {.name = "quiet",
     .letter = 'q',
     .help = "print nothing on success",
     .set = cli_set_flag,
     .at = offsetof(options, quiet)},
};
#undef X

/* ---- activations ---- */

static zc_status add_inputs(const zc_plan *plan, const cli_values *run, zc_calibration *c,
                            zc_diag *diag)
{
    for (size_t i = 0; i < run->n; i++) {
        zc_io_info io;
        ZC_TRY(zc_plan_input(plan, i, &io, diag));
        ZC_TRY(zc_calibration_add(c, io.name, &run->v[i], diag));
    }
    return ZC_OK;
}

static zc_status add_outputs(const zc_plan *plan, const zc_session *s, zc_calibration *c,
                             zc_diag *diag)
{
    zc_plan_info info;
    ZC_TRY(zc_plan_info_get(plan, &info));
    for (size_t i = 0; i < info.outputs; i++) {
        zc_io_info io;
        zc_view v;
        ZC_TRY(zc_plan_output(plan, i, &io, diag));
        ZC_TRY(zc_session_output(s, i, &v, diag));
        const zc_tensor t = cli_tensor(&v);
        ZC_TRY(zc_calibration_add(c, io.name, &t, diag));
    }
    return ZC_OK;
}

static zc_status run_samples(const zc_plan *plan, zc_session *s, const cli_samples *samples,
                             zc_calibration *c, zc_diag *diag)
{
    for (size_t k = 0; k < samples->runs.len; k++) {
        const cli_values *run = &samples->runs.data[k];
        ZC_TRY(cli_give_inputs(s, run, diag));
        ZC_TRY(zc_session_run(s, diag));
        ZC_TRY(add_inputs(plan, run, c, diag));
        ZC_TRY(add_outputs(plan, s, c, diag));
        c->runs++;
    }
    return ZC_OK;
}

/* The model without passes, all its tensors outputs. */
static zc_status load_exposed(const zc_model_source *model, const zc_compile_params *p,
                              zc_plan **out, zc_diag *diag)
{
    void *bytes = NULL;
    size_t len = 0;
    zc_explain e = {.expose = true};
    zc_status status = zc_compile_model(model, p, &bytes, &len, &e, diag);
    if (status == ZC_OK) status = zc_plan_load_bytes(bytes, len, out, diag);
    zc_explain_fini(&e);
    zc_free(bytes);
    return status;
}

static zc_status calibrate_activations(zc_plan *plan, const options *o, zc_calibration *c,
                                       zc_diag *diag)
{
    zc_plan_info info;
    zc_session *s = NULL;
    cli_samples samples;
    ZC_TRY(zc_plan_info_get(plan, &info));
    memcpy(c->model, info.model_sha256, sizeof c->model);
    zc_status status = cli_read_samples(plan, &o->inputs, o->random, &samples, diag);
    if (status == ZC_OK) status = zc_session_create(plan, NULL, &s, diag);
    if (status == ZC_OK) status = run_samples(plan, s, &samples, c, diag);
    (void)zc_session_destroy(&s);
    cli_free_samples(&samples);
    return status;
}

/* ---- weights ---- */

/* Which operand is a weight, and the axis of its channels; -1: none. */
static int channel_axis(const zc_node *n, int rank)
{
    switch (n->op) {
    case ZC_OP_Conv:
        return 0;
    case ZC_OP_ConvTranspose:
        return 1;
    case ZC_OP_MatMul:
        return rank - 1;
    case ZC_OP_Gemm:
        return ((const zc_attrs_Gemm *)n->attrs)->transB ? 0 : 1;
    default:
        return -1;
    }
}

static zc_status add_weights(const zc_graph *g, zc_calibration *c, zc_diag *diag)
{
    for (zc_nid i = 1; i < g->nodes.len; i++) {
        const zc_node *n = zc_node_at(g, i);
        zc_vid w = n->op == ZC_OP_NONE ? 0 : zc_node_in(n, 1);
        const zc_value *v = w ? zc_val(g, w) : NULL;
        if (!v || v->kind != ZC_VALUE_CONST || v->data->dtype != ZC_F32) continue;
        int axis = channel_axis(n, v->data->rank);
        if (axis < 0 || axis >= v->data->rank) continue;
        ZC_TRY(zc_calibration_add_weight(c, v->name, v->data, axis, diag));
    }
    return ZC_OK;
}

static zc_status calibrate_weights(const zc_model_source *model, const zc_compile_params *p,
                                   zc_calibration *c, zc_diag *diag)
{
    zc_graph *g = NULL;
    zc_diag *own = zc_diag_create();
    zc_status status = zc_model_import(model, p, NULL, false, &g, own);
    if (status == ZC_OK) status = add_weights(g, c, own);
    zc_graph_destroy(&g);
    return zc_diag_end_again(diag, &own, status);
}

/* ---- the command ---- */

static zc_status calibrate(const char *path, const options *o, zc_calibration *c, zc_diag *diag)
{
    static const char *const all = "all";
    const zc_compile_params p = {.size = sizeof p,
                                 .data_root = o->data_root,
                                 .dims = o->dims.v,
                                 .dim_count = o->dims.n,
                                 .shapes = o->shapes.v,
                                 .shape_count = o->shapes.n,
                                 .skip_passes = &all,
                                 .skip_pass_count = 1};
    zc_model_source model;
    zc_plan *plan = NULL;
    zc_status status = cli_model_open(path, &model, diag);
    if (status == ZC_OK) status = load_exposed(&model, &p, &plan, diag);
    if (status == ZC_OK) status = calibrate_activations(plan, o, c, diag);
    if (status == ZC_OK) status = calibrate_weights(&model, &p, c, diag);
    zc_plan_destroy(&plan);
    cli_model_close(&model);
    return status;
}

static zc_status merge(char *const *files, int n, zc_calibration *c, zc_diag *diag)
{
    zc_status status = ZC_OK;
    for (int i = 0; i < n && status == ZC_OK; i++) {
        zc_calibration one;
        zc_calibration_init(&one);
        status = zc_calibration_read(&one, files[i], diag);
        zc_diag_set_file(diag, files[i]);
        if (status == ZC_OK) status = zc_calibration_merge(c, &one, diag);
        zc_diag_set_file(diag, NULL);
        zc_calibration_fini(&one);
    }
    return status;
}

static int check(const options *o, char *const *paths, int operands)
{
    if (!operands) return cli_usage("calibrate", "needs a model, or files to merge");
    if (!o->output) return cli_usage("calibrate", "needs --output FILE");
    if (o->merge && (o->inputs.n || o->random || o->method))
        return cli_usage("calibrate", "--merge excludes --inputs, --random and --method");
    if (!o->merge && operands > 1) return cli_usage("calibrate", "needs one model");
    if (!o->merge && !o->inputs.n == !o->random)
        return cli_usage("calibrate", "needs --inputs DIR or --random N");
    if (!o->merge) return cli_check_written("calibrate", "output", o->output, paths, operands);
    return EXIT_OK;
}

static int run(int argc, char **argv)
{
    options o = {.quiet = false};
    int code = cli_parse(&cli_calibrate_command, argc, argv, &o);
    if (code != CLI_GO) return code;
    char *const *operands = argv + optind;
    int n = argc - optind;
    code = check(&o, operands, n);
    if (code) return code;
    zc_diag *diag = zc_diag_create();
    zc_calibration c;
    zc_calibration_init(&c);
    if (o.method) c.method = zc_calibration_method_find(o.method);
    zc_status status =
        o.merge ? merge(operands, n, &c, diag) : calibrate(operands[0], &o, &c, diag);
    if (status == ZC_OK) status = zc_calibration_write(&c, o.output, diag);
    if (status != ZC_OK || !o.quiet) code = cli_report(diag, status);
    if (status == ZC_OK && !o.quiet) {
        cli_put(stdout, o.output);
        printf(": %zu activations of %llu runs, %zu weights\n", c.activations.len,
               (unsigned long long)c.runs, c.weights.len);
    }
    zc_calibration_fini(&c);
    zc_diag_destroy(&diag);
    return code;
}

const cli_command cli_calibrate_command = {
    .name = "calibrate",
    .summary = "find the ranges of a model's tensors",
    .operands = "MODEL -o FILE [OPTIONS]",
    .about =
        "Runs a model on given inputs and writes down a histogram of every float tensor, with the "
        "threshold that a symmetric 8-bit type should have, and such thresholds for each channel "
        "of the weights of products and convolutions. Inputs are read once; files of several runs "
        "add up without loss (docs/precision.md). NaN is an error.",
    .examples = "zc calibrate model.onnx --inputs calibration -o model.cal\n"
                "zc calibrate model.onnx --random 8 --method entropy -o trial.cal\n"
                "zc calibrate --merge monday.cal tuesday.cal -o all.cal\n",
    .options = table,
    .option_count = ZC_COUNTOF(table),
    .words = CLI_WORDS_FILE,
    .run = run,
};
