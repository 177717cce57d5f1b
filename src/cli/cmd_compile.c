#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

const char cli_compile_help[] =
    "usage: zc compile MODEL -o PLAN [OPTIONS]\n"
    "\n"
    "Compiles an ONNX model to a plan that `zc run` and the runtime library execute.\n"
    "\n"
    "  -o, --output PLAN        the plan file; an existing one is replaced only on success\n"
    "      --dim NAME=VALUE     fix a symbolic dimension (repeatable)\n"
    "      --shape NAME=1x3x8   fix an input's shape (repeatable)\n"
    "      --data-root DIR      where external weights lie (default: the model's directory)\n"
    "      --skip-pass NAME     leave out an optional pass, or 'all' (repeatable)\n"
    "      --target cpu         what to compile for\n"
    "  -q, --quiet              print nothing on success\n"
    "\n"
    "examples:\n"
    "  zc compile model.onnx -o model.plan\n"
    "  zc compile bert.onnx -o bert.plan --dim batch=1\n"
    "  zc compile net.onnx -o net.plan --shape image=1x3x224x224\n";

#define LIST_MAX 64

typedef struct options {
    const char *output;
    bool quiet;
    zc_fixed_dim dims[LIST_MAX];
    zc_fixed_shape shapes[LIST_MAX];
    const char *skips[LIST_MAX];
    zc_compile_params params;
} options;

static int add_dim(options *o, char *text)
{
    char *value = cli_value(text);
    zc_fixed_dim *d = &o->dims[o->params.dim_count];
    if (o->params.dim_count == LIST_MAX) return cli_usage("compile", "too many --dim");
    if (!value || !cli_int(value, 0, INT64_MAX, &d->value))
        return cli_usage("compile", "--dim needs NAME=VALUE with a whole number");
    d->name = text;
    o->params.dim_count++;
    return EXIT_OK;
}

static int add_shape(options *o, char *text)
{
    char *value = cli_value(text);
    zc_fixed_shape *s = &o->shapes[o->params.shape_count];
    if (o->params.shape_count == LIST_MAX) return cli_usage("compile", "too many --shape");
    *s = (zc_fixed_shape){.input = text};
    for (char *rest = value, *word; (word = strsep(&rest, "x"));) {
        if (s->rank == ZC_RANK_MAX || !cli_int(word, 0, INT64_MAX, &s->dims[s->rank++]))
            s->input = NULL;
        if (!s->input) break;
    }
    if (!value || !s->input) return cli_usage("compile", "--shape needs NAME=1x3x224x224");
    o->params.shape_count++;
    return EXIT_OK;
}

static int parse(int argc, char **argv, options *o)
{
    static const struct option longs[] = {
        {"output", required_argument, NULL, 'o'},    {"dim", required_argument, NULL, 'd'},
        {"shape", required_argument, NULL, 's'},     {"data-root", required_argument, NULL, 'r'},
        {"skip-pass", required_argument, NULL, 'p'}, {"target", required_argument, NULL, 't'},
        {"quiet", no_argument, NULL, 'q'},           {NULL, 0, NULL, 0},
    };
    int c, code;
    while ((c = getopt_long(argc, argv, "o:q", longs, NULL)) != -1) {
        code = EXIT_OK;
        switch (c) {
        case 'o':
            o->output = optarg;
            break;
        case 'd':
            code = add_dim(o, optarg);
            break;
        case 's':
            code = add_shape(o, optarg);
            break;
        case 'r':
            o->params.data_root = optarg;
            break;
        case 'q':
            o->quiet = true;
            break;
        case 'p':
            if (o->params.skip_pass_count == LIST_MAX)
                return cli_usage("compile", "too many --skip-pass");
            o->skips[o->params.skip_pass_count++] = optarg;
            break;
        case 't':
            if (strcmp(optarg, "cpu") != 0)
                return cli_usage("compile", "no target '%s' (this zc has: cpu)", optarg);
            break;
        default:
            return cli_bad_option("compile");
        }
        if (code) return code;
    }
    if (optind + 1 != argc) return cli_usage("compile", "needs one model");
    return o->output ? EXIT_OK : cli_usage("compile", "needs --output PLAN");
}

static bool same_file(const char *a, const char *b)
{
    struct stat sa, sb;
    return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
           sa.st_ino == sb.st_ino;
}

/* On a terminal, what takes more than a second shows its stage. */
static bool show_stage(void *user, const char *stage, size_t done, size_t total)
{
    const double *start = user;
    if (isatty(STDERR_FILENO) && cli_now() - *start > 1)
        fprintf(stderr, "\r[%zu/%zu] %s...          \r", done + 1, total, stage);
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

int cli_compile(int argc, char **argv)
{
    double start = cli_now();
    options o = {
        .params = {.size = sizeof o.params, .progress = show_stage, .progress_user = &start}};
    int code = parse(argc, argv, &o);
    if (code) return code;
    o.params.dims = o.dims;
    o.params.shapes = o.shapes;
    o.params.skip_passes = o.skips;
    const char *model = argv[optind];
    if (same_file(model, o.output)) return cli_usage("compile", "the output is the model itself");
    zc_diag *diag = zc_diag_create();
    zc_status status = zc_compile_file(model, o.output, &o.params, diag);
    if (status != ZC_OK)
        code = cli_report(diag, status);
    else if (!o.quiet)
        summary(o.output, cli_now() - start);
    zc_diag_destroy(&diag);
    return code;
}
