/* Manual pages from the command tables. */
#include <string.h>

#include "cli/cli.h"
#include "cli/help.h"
#include "zc/version.h"

/* Text as roff takes it literally: no escapes, no requests at the beginning of a line; hyphens that
 * users type stay ASCII. */
static void put(const char *text)
{
    bool line_begins = true;
    for (; *text; text++) {
        if (line_begins && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        line_begins = *text == '\n';
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
    }
}

/* Lines become paragraphs. */
static void put_paragraphs(const char *text)
{
    for (; *text; text++) {
        char line[2000];
        size_t n = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, text);
        puts(".PP");
        put(line);
        putchar('\n');
        text += n;
        if (!*text) break;
    }
}

static void put_head(const char *page, const char *name, const char *summary)
{
    fputs(".TH ", stdout);
    for (const char *c = page; *c; c++) {
        char upper[2] = {(char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c), 0};
        put(upper);
    }
    printf(" 1 \"\" \"zc %s\" \"zc manual\"\n.nh\n.SH NAME\n", ZC_VERSION);
    put(name);
    fputs(" \\- ", stdout);
    put(summary);
    putchar('\n');
}

static void put_option(const cli_option *o)
{
    fputs(".TP\n", stdout);
    if (o->letter) printf("\\fB\\-%c\\fP, ", o->letter);
    fputs("\\fB\\-\\-", stdout);
    put(o->name);
    fputs("\\fP", stdout);
    if (o->arg) {
        fputs(o->optional ? "[=\\fI" : " \\fI", stdout);
        put(o->arg);
        fputs(o->optional ? "\\fP]" : "\\fP", stdout);
    }
    putchar('\n');
    put(o->help);
    puts(o->repeated ? " (repeatable)." : ".");
}

static void put_examples(const char *lines)
{
    puts(".SH EXAMPLES\n.nf");
    put(lines);
    puts(".fi");
}

static void put_exit_codes(void)
{
    puts(".SH \"EXIT STATUS\"");
    for (size_t i = 0; cli_exit_at(i); i++)
        printf(".TP\n.B %d\n%s.\n", cli_exit_at(i)->code, cli_exit_at(i)->name);
}

static void put_env(void)
{
    const cli_env *v;
    puts(".SH ENVIRONMENT");
    for (size_t i = 0; (v = cli_env_at(i)); i++) {
        printf(".TP\n.B %s\n", v->name);
        put(v->meaning);
        if (strcmp(v->reader, "zc") != 0) printf(" (read by %s)", v->reader);
        puts(".");
    }
}

/* Every page but its own. */
static void put_see_also(const cli_command *own)
{
    const cli_command *c;
    puts(".SH \"SEE ALSO\"");
    if (own) puts(".BR zc (1),");
    for (size_t i = 0; (c = cli_command_at(i)); i++) {
        if (c == own) continue;
        const cli_command *next = cli_command_at(i + 1);
        if (next == own && own) next = cli_command_at(i + 2);
        printf(".BR zc\\-%s (1)%s\n", c->name, next ? "," : "");
    }
}

static void print_main(void)
{
    const cli_command *c;
    put_head("zc", "zc", "compiles ONNX models to plans and runs them");
    puts(".SH SYNOPSIS\n.B zc\n.I COMMAND\n[\\fIOPTIONS\\fP]\n.PP\n.B zc \\-\\-version\n.SH "
         "COMMANDS");
    for (size_t i = 0; (c = cli_command_at(i)); i++) {
        printf(".TP\n.BR zc\\-%s (1)\n", c->name);
        put(c->summary);
        puts(".");
    }
    put_exit_codes();
    put_env();
    put_see_also(NULL);
}

void cli_print_man(const cli_command *c)
{
    if (!c) {
        print_main();
        return;
    }
    char page[100];
    snprintf(page, sizeof page, "zc-%s", c->name);
    put_head(page, page, c->summary);
    printf(".SH SYNOPSIS\n.B zc %s\n", c->name);
    put(c->operands);
    puts("\n.SH DESCRIPTION");
    put_paragraphs(c->about);
    puts(".SH OPTIONS");
    const cli_option *o;
    for (size_t i = 0; (o = cli_option_at(c, i)); i++) put_option(o);
    put_examples(c->examples);
    put_exit_codes();
    put_see_also(c);
}
