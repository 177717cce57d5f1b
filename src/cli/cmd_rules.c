/* Rule files: check, list. */
#include <string.h>

#include "cli/cli.h"
#include "rules/rules.h"

typedef struct options {
    bool quiet;
} options;

static const cli_option table[] = {
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

static const struct {
    const char *name;
    int (*run)(int argc, char **argv, const options *o);
} actions[] = {{"check", check}, {"list", list}};

static int run(int argc, char **argv)
{
    options o = {.quiet = false};
    int code = cli_parse(&cli_rules_command, argc, argv, &o);
    if (code != CLI_GO) return code;
    if (optind == argc) return cli_usage("rules", "needs an action");
    for (size_t i = 0; i < ZC_COUNTOF(actions); i++)
        if (strcmp(argv[optind], actions[i].name) == 0)
            return actions[i].run(argc - optind - 1, argv + optind + 1, &o);
    return cli_usage("rules", "unknown action '%s'", argv[optind]);
}

const cli_command cli_rules_command = {
    .name = "rules",
    .summary = "check and list fusion rules",
    .operands = "check FILE... | list [FILE...]",
    .about = "Works with files of fusion rules (docs/rules.md).\n"
             "check reads rule files and reports everything that is wrong with them.\n"
             "list names the rules built in, and those of the files.",
    .examples = "zc rules check my.zcr\n"
                "zc rules list\n",
    .options = table,
    .option_count = ZC_COUNTOF(table),
    .words = CLI_WORDS_FILE,
    .run = run,
};
