#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/cli.h"
#include "driver/compile.h"
#include "passes/passes.h"
#include "planfile/program.h"

const char cli_inspect_help[] =
    "usage: zc inspect FILE [OPTIONS]\n"
    "\n"
    "Prints a model's graph as text (docs/ir.md), or what a plan holds.\n"
    "\n"
    "      --stage STAGE        of a model: import (default) or optimised\n"
    "      --skip-pass NAME     with --stage optimised: leave out a pass, or 'all' (repeatable)\n"
    "      --full               print all elements of constants\n"
    "      --dot                print the graph for Graphviz\n"
    "      --json               of a plan: print one JSON document\n"
    "      --passes             list the passes and what they do\n"
    "\n"
    "examples:\n"
    "  zc inspect model.onnx\n"
    "  zc inspect model.onnx --stage optimised --dot | dot -Tsvg > model.svg\n"
    "  zc inspect model.plan --json\n";

#define SKIPS_MAX 32

typedef struct options {
    bool optimised, full, dot, json, passes;
    const char *skips[SKIPS_MAX];
    size_t nskips;
} options;

static int parse(int argc, char **argv, options *o)
{
    static const struct option longs[] = {
        {"stage", required_argument, NULL, 's'},
        {"skip-pass", required_argument, NULL, 'p'},
        {"full", no_argument, NULL, 'f'},
        {"dot", no_argument, NULL, 'd'},
        {"json", no_argument, NULL, 'j'},
        {"passes", no_argument, NULL, 'P'},
        {NULL, 0, NULL, 0},
    };
    int c;
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        switch (c) {
        case 'f':
            o->full = true;
            break;
        case 'd':
            o->dot = true;
            break;
        case 'j':
            o->json = true;
            break;
        case 'P':
            o->passes = true;
            break;
        case 'p':
            if (o->nskips == SKIPS_MAX) return cli_usage("inspect", "too many --skip-pass");
            o->skips[o->nskips++] = optarg;
            break;
        case 's':
            o->optimised = strcmp(optarg, "optimised") == 0;
            if (!o->optimised && strcmp(optarg, "import") != 0)
                return cli_usage("inspect", "no stage '%s' (need import or optimised)", optarg);
            break;
        default:
            return cli_bad_option("inspect");
        }
    }
    return o->passes || optind + 1 == argc ? EXIT_OK : cli_usage("inspect", "needs one file");
}

static void list_passes(void)
{
    bool required;
    const char *name, *summary;
    for (size_t i = 0; (name = zc_pass_name(i, &required, &summary)); i++)
        printf("%-20s %s%s\n", name, summary, required ? " (required)" : "");
}

/* ---- models ---- */

/* A box a node, an arrow a use; values of one node have one arrow to each user. */
static void print_dot(const zc_graph *g)
{
    puts("digraph model {\n  node [shape=box];");
    for (size_t n = 1; n < g->nodes.len; n++) {
        const zc_node *node = zc_node_at(g, (zc_nid)n);
        if (node->op == ZC_OP_NONE) continue;
        printf("  n%zu [label=", n);
        cli_json(stdout, zc_op_get(node->op)->name);
        puts("];");
        for (int i = 0; i < node->nin; i++) {
            const zc_value *v = node->in[i] ? zc_val(g, node->in[i]) : NULL;
            if (!v || v->kind == ZC_VALUE_CONST) continue;
            if (v->kind == ZC_VALUE_NODE)
                printf("  n%u -> n%zu;\n", v->producer, n);
            else
                printf("  v%u [shape=ellipse]; v%u -> n%zu;\n", node->in[i], node->in[i], n);
        }
    }
    puts("}");
}

static zc_status inspect_model(const char *path, const options *o, zc_diag *diag)
{
    zc_graph *g = NULL;
    zc_compile_params params = {.size = sizeof params};
    zc_model_source model = {.path = path};
    zc_pass_options passes = {.skip = o->skips, .skip_count = o->nskips};
    zc_status status = zc_compile_import_weightless(&model, &params, &g, diag);
    if (status == ZC_OK && o->optimised) status = zc_run_passes(g, &passes, diag);
    zc_buf text = {0};
    if (status == ZC_OK && o->dot) print_dot(g);
    if (status == ZC_OK && !o->dot) {
        zc_graph_print(g, o->full, &text);
        if (text.failed)
            status = zc_fail_nomem(diag, "text", text.len);
        else
            fwrite(text.data, 1, text.len, stdout);
    }
    zc_buf_fini(&text);
    zc_graph_destroy(&g);
    return status;
}

/* ---- plans ---- */

static void print_io(const char *what, const zc_io_info *io, bool json, bool last)
{
    if (json) {
        fputs("    {\"name\": ", stdout);
        cli_json(stdout, io->name);
        printf(", \"type\": \"%s\", \"dims\": [", zc_elem_name(io->elem));
    } else {
        printf("%s ", what);
        cli_put(stdout, io->name);
        printf(": %s[", zc_elem_name(io->elem));
    }
    for (int d = 0; d < io->rank; d++) {
        if (d) fputs(json ? ", " : ",", stdout);
        if (json)
            cli_json(stdout, io->dim_texts[d] ? io->dim_texts[d] : "?");
        else
            cli_put(stdout, io->dim_texts[d] ? io->dim_texts[d] : "?");
    }
    if (json)
        puts(last ? "]}" : "]},");
    else
        puts(io->rank < 0 ? "*]" : "]");
}

static void print_ios(const zc_plan *plan, const char *what, size_t n, bool json,
                      zc_status (*get)(const zc_plan *, size_t, zc_io_info *, zc_diag *))
{
    for (size_t i = 0; i < n; i++) {
        zc_io_info io;
        if (get(plan, i, &io, NULL) == ZC_OK) print_io(what, &io, json, i + 1 == n);
    }
}

static zc_status inspect_plan(const char *path, const options *o, zc_diag *diag)
{
    zc_plan *plan = NULL;
    zc_plan_info info;
    zc_status status = zc_plan_load_file(path, &plan, diag);
    if (status == ZC_OK) status = zc_plan_info_get(plan, &info);
    if (status == ZC_OK) {
        printf(
            o->json
                ? "{\"zc\": \"%s\", \"target\": \"%s\", \"model_sha256\": \"%s\", \"steps\": %zu, "
                  "\"weight_bytes\": %llu,\n  \"inputs\": [\n"
                : "plan by zc %s for %s\nmodel SHA-256 %s\n%zu steps, %llu bytes of weights\n",
            info.zc_version, info.target, info.model_sha256, info.steps,
            (unsigned long long)info.weight_bytes);
        print_ios(plan, "input", info.inputs, o->json, zc_plan_input);
        if (o->json) puts("  ], \"outputs\": [");
        print_ios(plan, "output", info.outputs, o->json, zc_plan_output);
        if (o->json) puts("  ]}");
    }
    zc_plan_destroy(&plan);
    return status;
}

static bool is_plan(const char *path)
{
    uint8_t head[8];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(head, 1, sizeof head, f) : 0;
    if (f) fclose(f);
    return zc_program_magic(head, n);
}

int cli_inspect(int argc, char **argv)
{
    options o = {.full = false};
    int code = parse(argc, argv, &o);
    if (code) return code;
    if (o.passes) {
        list_passes();
        return EXIT_OK;
    }
    zc_diag *diag = zc_diag_create();
    const char *path = argv[optind];
    zc_status status = is_plan(path) ? inspect_plan(path, &o, diag) : inspect_model(path, &o, diag);
    if (status != ZC_OK) code = cli_report(diag, status);
    zc_diag_destroy(&diag);
    return code;
}
