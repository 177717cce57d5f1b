#include <string.h>

#include "cli/cli.h"
#include "cli/help.h"

typedef struct options {
    bool man;
    const char *shell;
} options;

static const cli_option table[] = {
    {.name = "man",
     .help = "print the manual page in roff",
     .set = cli_set_flag,
     .at = offsetof(options, man)},
    {.name = "completion",
     .arg = "SHELL",
     .choices = "bash zsh fish",
     .help = "print the completion of a shell",
     .set = cli_set_text,
     .at = offsetof(options, shell)},
};

static int topic(const char *name, bool man)
{
    const cli_command *c = name ? cli_command_find(name) : NULL;
    if (c)
        (man ? cli_print_man : cli_print_help)(c);
    else if (!name && man)
        cli_print_man(NULL);
    else if (!name)
        cli_print_overview(stdout);
    else if (strcmp(name, CLI_TOPIC_ENV) == 0 && !man)
        cli_print_env();
    else
        return cli_usage("help", "no command or topic '%s'", name);
    return EXIT_OK;
}

static int run(int argc, char **argv)
{
    options o = {.shell = NULL};
    int code = cli_parse(&cli_help_command, argc, argv, &o);
    if (code != CLI_GO) return code;
    if (argc - optind > 1) return cli_usage("help", "needs one topic (got %d)", argc - optind);
    if (o.shell) return cli_print_completion(o.shell);
    return topic(argv[optind], o.man);
}

const cli_command cli_help_command = {
    .name = "help",
    .summary = "print help on a command or topic",
    .operands = "[COMMAND | " CLI_TOPIC_ENV "] [OPTIONS]",
    .about =
        "Prints the list of commands, a command's options and examples, or with '" CLI_TOPIC_ENV
        "' the environment variables that change what zc does.",
    .examples = "zc help compile\n"
                "zc help " CLI_TOPIC_ENV "\n"
                "source <(zc help --completion bash)\n",
    .options = table,
    .option_count = ZC_COUNTOF(table),
    .words = CLI_WORDS_NONE,
    .run = run,
};
