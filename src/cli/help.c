#include "cli/help.h"

#include <string.h>

#include "cli/cli.h"

#define WIDTH  100
#define COLUMN 29 /* where the options' texts begin */

static const cli_env variables[] = {
#define ENV(name, reader, meaning) {#name, #reader, meaning},
#include "cli/env.def"
#undef ENV
};

const cli_env *cli_env_at(size_t i)
{
    return i < ZC_COUNTOF(variables) ? &variables[i] : NULL;
}

const cli_option cli_help_option = {.name = "help", .letter = 'h', .help = "print this help"};

const cli_option *cli_option_at(const cli_command *command, size_t i)
{
    if (i < command->option_count) return &command->options[i];
    return i == command->option_count ? &cli_help_option : NULL;
}

/* ---- text in columns ---- */

/* Prints words, breaking lines before WIDTH; `at` is the column that has been reached, later lines
 * are indented. A newline in the text ends a paragraph. */
static void put_wrapped(FILE *out, const char *text, int at, int indent)
{
    const char *gap = "";
    while (*text) {
        int n = (int)strcspn(text, " \n");
        if (*gap && at + 1 + n > WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
            gap = "";
        }
        fprintf(out, "%s%.*s", gap, n, text);
        at += n + (*gap != 0);
        gap = " ";
        text += n;
        if (*text == '\n') {
            fprintf(out, "\n%*s", text[1] ? indent : 0, "");
            at = indent;
            gap = "";
        }
        text += *text != 0;
    }
    putc('\n', out);
}

/* Brings the line to COLUMN, or begins another. */
static void put_tab(FILE *out, int at)
{
    if (at < COLUMN - 1)
        fprintf(out, "%*s", COLUMN - at, "");
    else
        fprintf(out, "\n%*s", COLUMN, "");
}

static void put_option(FILE *out, const cli_option *o)
{
    char left[100], text[600];
    int at = snprintf(left, sizeof left, o->letter ? "  -%c, --%s%s%s%s" : "  %c   --%s%s%s%s",
                      o->letter ? o->letter : ' ', o->name,
                      o->optional ? "[="
                      : o->arg    ? " "
                                  : "",
                      o->arg ? o->arg : "", o->optional ? "]" : "");
    fputs(left, out);
    put_tab(out, at);
    snprintf(text, sizeof text, "%s%s", o->help, o->repeated ? " (repeatable)" : "");
    put_wrapped(out, text, COLUMN, COLUMN);
}

static void put_examples(FILE *out, const char *lines)
{
    fputs("\nexamples:\n", out);
    while (*lines) {
        int n = (int)strcspn(lines, "\n");
        fprintf(out, "  %.*s\n", n, lines);
        lines += n + (lines[n] != 0);
    }
}

/* ---- pages ---- */

void cli_print_overview(FILE *out)
{
    fputs("usage: zc COMMAND [OPTIONS]\n\nCompiles ONNX models to plans and runs them.\n\n", out);
    for (size_t i = 0; cli_command_at(i); i++)
        fprintf(out, "  %-10s %s\n", cli_command_at(i)->name, cli_command_at(i)->summary);
    fputs("\nzc --version prints the version; zc COMMAND --help has options and examples.\n"
          "Exit codes: ",
          out);
    for (size_t i = 0; cli_exit_at(i); i++)
        fprintf(out, "%s%d %s", i ? ", " : "", cli_exit_at(i)->code, cli_exit_at(i)->name);
    fputs(".\n", out);
}

void cli_print_help(const cli_command *c)
{
    printf("usage: zc %s %s\n\n", c->name, c->operands);
    put_wrapped(stdout, c->about, 0, 0);
    putchar('\n');
    const cli_option *o;
    for (size_t i = 0; (o = cli_option_at(c, i)); i++) put_option(stdout, o);
    put_examples(stdout, c->examples);
}

void cli_print_env(void)
{
    puts("Environment variables:\n");
    const cli_env *v;
    for (size_t i = 0; (v = cli_env_at(i)); i++) {
        char text[600];
        int at = printf("  %s", v->name);
        put_tab(stdout, at);
        snprintf(text, sizeof text, strcmp(v->reader, "zc") == 0 ? "%s" : "%s (read by %s)",
                 v->meaning, v->reader);
        put_wrapped(stdout, text, COLUMN, COLUMN);
    }
}
