#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/fill.h"

typedef struct options {
    const char *output;
    int64_t seed;
    bool quiet;
} options;

static const cli_option table[] = {
    {.name = "output",
     .letter = 'o',
     .arg = "DIR",
     .help = "where to write; made when it does not exist",
     .words = CLI_WORDS_DIR,
     .set = cli_set_text,
     .at = offsetof(options, output)},
    {.name = "seed",
     .arg = "N",
     .help = "another seed gives other values (default 0)",
     .most = INT64_MAX,
     .set = cli_set_int,
     .at = offsetof(options, seed)},
    {.name = "quiet",
     .letter = 'q',
     .help = "print nothing on success",
     .set = cli_set_flag,
     .at = offsetof(options, quiet)},
};

static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static zc_status fill_model(fill *f)
{
    Onnx__ModelProto *model = NULL;
    ZC_TRY(zc_onnx_load(f->model, &model, f->diag));
    f->root = directory_of(f->model);
    f->chunk = zc_calloc(1, CHUNK_BYTES);
    zc_status status = f->root && f->chunk ? cli_fill_collect(f, model) : cli_fill_nomem(f);
    if (status == ZC_OK) status = cli_fill_write_files(f);
    ZC_VEC_FINI(&f->scopes);
    ZC_VEC_FINI(&f->uses);
    ZC_VEC_FINI(&f->pieces);
    free(f->chunk);
    free(f->root);
    zc_onnx_free(&model);
    return status;
}

static void summary(const fill *f, double seconds)
{
    cli_put(stdout, f->output);
    printf(": tensors filled: %zu (%.1f MB, %zu share the bytes of others), files copied: %zu, in "
           "%.2f s\n",
           f->tensors, (double)f->bytes / 1e6, f->shared, f->copied, seconds);
}

static int run(int argc, char **argv)
{
    double start = cli_now();
    options o = {.quiet = false};
    fill f = {.tensors = 0};
    int code = cli_parse_one(&cli_fill_command, argc, argv, &o, "one model", &f.model);
    if (code != CLI_GO) return code;
    if (!o.output || !*o.output) return cli_usage("fill", "needs --output DIR");
    f.output = o.output;
    f.seed = (uint64_t)o.seed;
    f.diag = zc_diag_create();
    cli_progress_begin(&f.progress);
    zc_status status = fill_model(&f);
    cli_progress_end(&f.progress);
    code = EXIT_OK;
    if (status != ZC_OK)
        code = cli_report(f.diag, status);
    else if (!o.quiet)
        summary(&f, cli_now() - start);
    zc_diag_destroy(&f.diag);
    return code;
}

const cli_command cli_fill_command = {
    .name = "fill",
    .summary = "complete a model without weights with random ones",
    .operands = "MODEL -o DIR [OPTIONS]",
    .about = "Completes a model whose external weights are missing: DIR gets model.onnx, a copy of "
             "MODEL, and the files that its tensors name. Tensors of a missing file get random "
             "values that keep the activations finite: scaled by the fan-in where they are "
             "multiplied. A file that lies beside MODEL is copied. The same seed always gives the "
             "same bytes.",
    .examples = "zc fill bert.onnx -o filled\n"
                "zc fill llama.onnx -o filled --seed 7\n",
    .options = table,
    .option_count = ZC_COUNTOF(table),
    .words = CLI_WORDS_FILE,
    .run = run,
};
