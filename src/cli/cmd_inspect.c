#include <string.h>

#include "base/file.h"
#include "cli/inspect.h"
#include "cli/model.h"
#include "passes/passes.h"

static const cli_option table[] = {
    {.name = "stage",
     .arg = "STAGE",
     .choices = STAGE_IMPORT " " STAGE_OPTIMISED " " STAGE_PROGRAM,
     .help = "of a model: the graph as imported (default), after all passes, or the final program",
     .set = cli_set_text,
     .at = offsetof(inspect, stage)},
    {.name = "pass",
     .arg = "NAME",
     .choices = cli_pass_names,
     .help = "of a model: the graph after this pass",
     .set = cli_set_text,
     .at = offsetof(inspect, pass)},
    {.name = "skip-pass",
     .repeated = true,
     .arg = "NAME",
     .choices = cli_skip_names,
     .help = "of a model: leave out an optional pass, or 'all'",
     .set = cli_set_list,
     .at = offsetof(inspect, skips)},
    CLI_PRECISION_OPTION(inspect, precision, "of a model: compile to this precision"),
    CLI_DIM_OPTION(
        inspect, dims,
        "a symbolic dimension: fixed in a model, given for the working memory of a plan"),
    {.name = "full",
     .help = "of a model: print all elements of constants",
     .set = cli_set_flag,
     .at = offsetof(inspect, full)},
    {.name = "hashes",
     .help = "of a plan: print the SHA-256 of every constant",
     .set = cli_set_flag,
     .at = offsetof(inspect, hashes)},
    {.name = "memory",
     .help = "of a plan: what a run with these --dim holds in memory, step by step, and who holds "
             "the most",
     .set = cli_set_flag,
     .at = offsetof(inspect, memory)},
    {.name = "dot",
     .help = "print the graph for Graphviz",
     .set = cli_set_flag,
     .at = offsetof(inspect, dot)},
    {.name = "json",
     .help = "of a plan: print one JSON document",
     .set = cli_set_flag,
     .at = offsetof(inspect, json)},
    {.name = "passes",
     .help = "list the passes and what they do",
     .set = cli_set_flag,
     .at = offsetof(inspect, passes)},
    {.name = "operators",
     .help = "list the ONNX operators that are read, as Markdown",
     .set = cli_set_flag,
     .at = offsetof(inspect, operators)},
};

static void list_passes(void)
{
    bool required;
    const char *name, *summary;
    for (size_t i = 0; (name = zc_pass_name(i, &required, &summary)); i++)
        printf("%-20s %s%s\n", name, summary, required ? " (required)" : "");
}

static zc_status find_kind(const zc_model_source *from, bool *is_plan, zc_diag *diag)
{
    uint8_t head[8];
    int fd;
    uint64_t size;
    const char *path = from->path;
    if (!path) {
        *is_plan = from->len >= sizeof head && zc_program_magic(from->bytes, sizeof head);
        return ZC_OK;
    }
    ZC_TRY(zc_file_open(path, &fd, &size, diag));
    *is_plan = size >= sizeof head &&
               zc_file_pread(fd, head, sizeof head, 0, path, NULL) == ZC_OK &&
               zc_program_magic(head, sizeof head);
    zc_file_close(fd);
    return ZC_OK;
}

/* What is only said of models is a mistake with a plan. */
static int check_plan_options(const inspect *o)
{
    const char *name = o->stage       ? "stage"
                       : o->pass      ? "pass"
                       : o->skips.n   ? "skip-pass"
                       : o->precision ? "precision"
                       : o->full      ? "full"
                                      : NULL;
    return name ? cli_usage("inspect", "--%s is of models (got a plan)", name) : EXIT_OK;
}

static int check_model_options(const inspect *o)
{
    static const char later[] = "--pass, or --stage optimised or program";
    const bool program = o->stage && strcmp(o->stage, STAGE_PROGRAM) == 0;
    const bool changed = o->pass || program || (o->stage && strcmp(o->stage, STAGE_OPTIMISED) == 0);
    if (o->memory) return cli_usage("inspect", "--memory is of plans (got a model)");
    const cli_need needs[] = {
        {o->skips.n, "--skip-pass", changed, later},
        {o->precision, "--precision", changed, later},
        {o->hashes, "--hashes", program, "a plan, or --stage program"},
        {o->full, "--full", !program && !o->dot, "the graph as text"},
    };
    return cli_check_needs("inspect", needs, ZC_COUNTOF(needs));
}

/* Lists are of zc, not of a file. */
static int check_lists(const inspect *o, int files, const char *file)
{
    const char *name = o->operators ? "operators" : "passes";
    if (files) return cli_usage("inspect", "--%s takes no file (got '%s')", name, file);
    if ((o->operators && o->passes) || o->stage || o->pass || o->precision || o->full || o->dot ||
        o->json || o->hashes || o->memory || o->skips.n || o->dims.n)
        return cli_usage("inspect", "--%s goes with no other option", name);
    return EXIT_OK;
}

static int show(const char *path, const inspect *o)
{
    zc_model_source from;
    zc_diag *diag = zc_diag_create();
    bool plan = false;
    int code = EXIT_OK;
    zc_status status = cli_model_open(path, &from, diag);
    if (status == ZC_OK) status = find_kind(&from, &plan, diag);
    if (status == ZC_OK) code = plan ? check_plan_options(o) : check_model_options(o);
    zc_diag_set_file(diag, from.name);
    if (status == ZC_OK && code == EXIT_OK)
        status = plan ? cli_inspect_plan(&from, o, diag) : cli_inspect_model(&from, o, diag);
    if (status != ZC_OK) code = cli_report(diag, status);
    cli_model_close(&from);
    zc_diag_destroy(&diag);
    return code;
}

static int run(int argc, char **argv)
{
    inspect o = {.full = false};
    int code = cli_parse(&cli_inspect_command, argc, argv, &o);
    if (code != CLI_GO) return code;
    if ((o.operators || o.passes) &&
        (code = check_lists(&o, argc - optind, argv[optind])) != EXIT_OK)
        return code;
    if (o.operators) return cli_print_operators();
    if (o.passes) {
        list_passes();
        return EXIT_OK;
    }
    if (optind + 1 != argc) return cli_usage("inspect", "needs one file (got %d)", argc - optind);
    if (o.memory && (o.dot || o.hashes))
        return cli_usage("inspect", "needs one of --memory and --%s", o.dot ? "dot" : "hashes");
    if (o.json && o.dot) return cli_usage("inspect", "needs one of --json and --dot");
    if (o.pass && o.stage) return cli_usage("inspect", "needs one of --pass and --stage");
    return show(argv[optind], &o);
}

const cli_command cli_inspect_command = {
    .name = "inspect",
    .summary = "print a model's graph, or what a plan holds",
    .operands = "FILE [OPTIONS]",
    .about =
        "Prints a model's graph as text (docs/ir.md), or what a plan holds: inputs and outputs, "
        "constants, steps with the ONNX nodes that they stand for, and the working memory "
        "that runs need. A file of '-' is the standard input.",
    .examples = "zc inspect model.onnx\n"
                "zc inspect model.onnx --pass opt_fold\n"
                "zc inspect model.onnx --stage optimised --dot | dot -Tsvg > model.svg\n"
                "zc inspect model.plan --dim batch=1 --hashes\n"
                "zc inspect model.plan --dim batch=8 --memory\n"
                "zc inspect model.plan --json\n",
    .options = table,
    .option_count = ZC_COUNTOF(table),
    .words = CLI_WORDS_FILE,
    .run = run,
};
