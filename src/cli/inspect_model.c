/* A model's graph at a stage of compiling, as text or for Graphviz. */
#include <string.h>

#include "cli/inspect.h"
#include "driver/compile.h"
#include "driver/params.h"
#include "import/load.h"
#include "passes/passes.h"

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

static void put_comment(const char *key, const char *value)
{
    if (!value || !*value) return;
    printf("# %s: ", key);
    cli_put_short(stdout, value, "");
    putchar('\n');
}

/* What a model says of itself, as comments of the graph's text. */
static zc_status print_metadata(const zc_model_source *model, zc_diag *diag)
{
    Onnx__ModelProto *m = NULL;
    ZC_TRY(model->path ? zc_onnx_load(model->path, &m, diag)
                       : zc_onnx_load_bytes(model->bytes, model->len, &m, diag));
    printf("# IR version: %lld\n", (long long)m->ir_version);
    for (size_t i = 0; i < m->n_opset_import; i++) {
        const char *domain = m->opset_import[i]->domain;
        fputs("# opset: ", stdout);
        cli_put(stdout, domain && *domain ? domain : "ai.onnx");
        printf(" %lld\n", (long long)m->opset_import[i]->version);
    }
    put_comment("producer", m->producer_name);
    put_comment("producer version", m->producer_version);
    put_comment("domain", m->domain);
    put_comment("description", m->doc_string);
    if (m->model_version) printf("# model version: %lld\n", (long long)m->model_version);
    for (size_t i = 0; i < m->n_metadata_props; i++) {
        fputs("# metadata ", stdout);
        cli_put(stdout, m->metadata_props[i]->key ? m->metadata_props[i]->key : "");
        fputs(": ", stdout);
        cli_put_short(stdout, m->metadata_props[i]->value ? m->metadata_props[i]->value : "", "");
        putchar('\n');
    }
    zc_onnx_free(&m);
    return ZC_OK;
}

static zc_status print_graph(const zc_graph *g, const inspect *o, zc_diag *diag)
{
    if (o->dot) {
        print_dot(g);
        return ZC_OK;
    }
    zc_buf text = {0};
    zc_graph_print(g, o->full, &text);
    bool ok = !text.failed;
    if (ok) fwrite(text.data, 1, text.len, stdout);
    zc_status status = ok ? ZC_OK : zc_fail_nomem(diag, "text", text.len);
    zc_buf_fini(&text);
    return status;
}

/* ---- after one pass ---- */

typedef struct watch {
    const inspect *o;
    zc_diag *diag;
    bool seen;
    zc_status status;
} watch;

static void after_pass(void *user, const zc_pass_report *report, const zc_graph *g)
{
    watch *w = user;
    if (strcmp(report->name, w->o->pass) != 0) return;
    w->seen = true;
    w->status = print_graph(g, w->o, w->diag);
}

static zc_status run_passes(zc_graph *g, const inspect *o, zc_diag *diag)
{
    watch w = {.o = o, .diag = diag};
    zc_precision_choice precision;
    ZC_TRY(zc_precision_parse(o->precision, &precision, diag));
    zc_pass_options passes = {.skip = o->skips.v,
                              .skip_count = o->skips.n,
                              .precision = precision.narrow,
                              .tf32 = precision.tf32,
                              .after = o->pass ? after_pass : NULL,
                              .user = &w};
    ZC_TRY(zc_run_passes(g, &passes, diag));
    if (!o->pass) return print_graph(g, o, diag);
    if (w.seen) return w.status;
    return zc_fail(diag, ZC_ERR_ARG, o->pass, "this pass was not run (it is left out)");
}

/* ---- the stages ---- */

static zc_status show_graph(const zc_model_source *model, const zc_compile_params *params,
                            const inspect *o, zc_diag *diag)
{
    zc_graph *g = NULL;
    ZC_TRY(zc_model_import(model, params, NULL, true, &g, diag));
    bool is_import = !o->pass && (!o->stage || strcmp(o->stage, STAGE_IMPORT) == 0);
    zc_status status = is_import && !o->dot ? print_metadata(model, diag) : ZC_OK;
    if (status == ZC_OK) status = is_import ? print_graph(g, o, diag) : run_passes(g, o, diag);
    zc_graph_destroy(&g);
    return status;
}

static zc_status show_program(const zc_model_source *model, const zc_compile_params *params,
                              const inspect *o, zc_diag *diag)
{
    void *bytes = NULL;
    size_t len = 0;
    inspect plan = *o;
    plan.dims.n = 0; /* they have been fixed */
    ZC_TRY(zc_compile_model(model, params, &bytes, &len, NULL, diag));
    zc_model_source made = {.bytes = bytes, .len = len};
    zc_status status = cli_inspect_plan(&made, &plan, diag);
    zc_free(bytes);
    return status;
}

zc_status cli_inspect_model(const zc_model_source *model, const inspect *o, zc_diag *diag)
{
    zc_compile_params params = {.size = sizeof params,
                                .dims = o->dims.v,
                                .dim_count = o->dims.n,
                                .precision = o->precision,
                                .skip_passes = o->skips.v,
                                .skip_pass_count = o->skips.n};
    bool is_program = !o->pass && o->stage && strcmp(o->stage, STAGE_PROGRAM) == 0;
    if (is_program) return show_program(model, &params, o, diag);
    if (o->json || o->hashes)
        return zc_fail(diag, ZC_ERR_ARG, o->json ? "--json" : "--hashes",
                       "is of plans (got a model, need a plan or --stage " STAGE_PROGRAM ")");
    return show_graph(model, &params, o, diag);
}
