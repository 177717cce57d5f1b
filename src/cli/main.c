/* zc: one program, one command a file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "driver/version.h"

static const struct command {
    const char *name, *summary, *help;
    int (*run)(int argc, char **argv);
} commands[] = {
#define CMD(name, summary) {#name, summary, cli_##name##_help, cli_##name},
#include "cli/commands.def"
#undef CMD
};

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < ZC_COUNTOF(commands); i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

static void overview(FILE *out)
{
    fputs("usage: zc COMMAND [OPTIONS]\n\nCompiles ONNX models to plans and runs them.\n\n", out);
    for (size_t i = 0; i < ZC_COUNTOF(commands); i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("  help       print this, or a command's help\n\n"
          "zc COMMAND --help has options and examples.\n"
          "Exit codes: 0 ok, 1 usage, 2 model or input refused, 3 accuracy, 5 device.\n",
          out);
}

static int help(const char *name)
{
    if (!name) {
        overview(stdout);
        return EXIT_OK;
    }
    const struct command *c = find(name);
    if (!c) return cli_usage("help", "no command '%s'", name);
    fputs(c->help, stdout);
    return EXIT_OK;
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    return false;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        overview(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(argc > 2 ? argv[2] : NULL);
    if (strcmp(name, "--version") == 0) {
        printf("zc %s\n", ZC_VERSION);
        return EXIT_OK;
    }
    const struct command *c = find(name);
    if (!c) {
        fputs("zc: no command '", stderr);
        cli_put(stderr, name);
        fputs("'\nTry 'zc help'.\n", stderr);
        return EXIT_USAGE;
    }
    if (asks_for_help(argc - 1, argv + 1)) return help(name);
    return c->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    int code = dispatch(argc, argv);
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "zc: error: standard output: %s\n",
                errno ? strerror(errno) : "cannot be written");
        return code ? code : EXIT_REFUSED;
    }
    return code;
}
