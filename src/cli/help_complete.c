/* Shell completion from the command tables. */
#include <string.h>

#include "cli/cli.h"
#include "cli/help.h"

/* Inside single quotes; zsh's _arguments also reads brackets and colons, which `escaped` lists. */
static void put_quoted(const char *text, const char *escaped)
{
    for (; *text; text++) {
        if (*text == '\'') fputs("'\\'", stdout);
        if (strchr(escaped, *text)) putchar('\\');
        putchar(*text);
    }
}

static void put_commands(void)
{
    for (size_t i = 0; cli_command_at(i); i++)
        printf("%s%s", i ? " " : "", cli_command_at(i)->name);
}

static void put_topics(void)
{
    put_commands();
    fputs(" " CLI_TOPIC_ENV, stdout);
}

/* ---- bash ---- */

static void bash_value(const cli_command *c, const cli_option *o)
{
    printf("    %s:--%s", c->name, o->name);
    if (o->letter) printf("|%s:-%c", c->name, o->letter);
    fputs(") ", stdout);
    if (o->choices)
        printf("_zc_words '%s'", o->choices);
    else if (o->words == CLI_WORDS_FILE)
        fputs("_zc_paths -f", stdout);
    else if (o->words == CLI_WORDS_DIR)
        fputs("_zc_paths -d", stdout);
    puts(o->choices || o->words != CLI_WORDS_NONE ? "; return ;;" : "return ;;");
}

static void bash_options(const cli_command *c)
{
    const cli_option *o;
    printf("        %s) _zc_words '", c->name);
    for (size_t i = 0; (o = cli_option_at(c, i)); i++) {
        printf("%s--%s", i ? " " : "", o->name);
        if (o->letter) printf(" -%c", o->letter);
    }
    puts("' ;;");
}

static void print_bash(void)
{
    const cli_command *c;
    fputs("# bash completion of zc, generated from its option tables.\n"
          "_zc_words() {\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n"
          "}\n"
          "_zc_paths() {\n"
          "    compopt -o filenames 2>/dev/null\n"
          "    mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$cur\")\n"
          "}\n"
          "_zc() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} at=$((COMP_CWORD - 1))\n"
          "    # bash takes '=' as a word of its own: NAME=FILE, --option=value.\n"
          "    if [[ $cur == = ]]; then cur=; elif [[ ${COMP_WORDS[at]} == = ]]; then at=$((at - "
          "1)); "
          "fi\n"
          "    local prev=${COMP_WORDS[at]} command=${COMP_WORDS[1]}\n"
          "    COMPREPLY=()\n"
          "    if ((COMP_CWORD == 1)); then\n"
          "        _zc_words '",
          stdout);
    put_commands();
    puts(" --version'\n        return\n    fi\n    case $command:$prev in");
    for (size_t i = 0; (c = cli_command_at(i)); i++)
        for (size_t k = 0; k < c->option_count; k++)
            if (c->options[k].arg && !c->options[k].optional) bash_value(c, &c->options[k]);
    puts("    esac\n    case $cur in\n    -*)\n        case $command in");
    for (size_t i = 0; (c = cli_command_at(i)); i++) bash_options(c);
    fputs("        esac\n        ;;\n    *)\n        case $command in\n        help) _zc_words '",
          stdout);
    put_topics();
    puts("' ;;\n        *) _zc_paths -f ;;\n        esac\n        ;;\n    esac\n}\n"
         "complete -F _zc zc");
}

/* ---- zsh ---- */

static void zsh_option(const cli_option *o)
{
    fputs(" \\\n            '", stdout);
    if (o->repeated)
        putchar('*');
    else if (o->letter)
        printf("(-%c --%s)", o->letter, o->name);
    if (o->letter)
        printf("'{-%c%s,--%s%s}'", o->letter, o->arg ? "+" : "", o->name, o->arg ? "=" : "");
    else
        printf("--%s%s", o->name, o->optional ? "=-" : o->arg ? "=" : "");
    putchar('[');
    put_quoted(o->help, "[]:\\");
    putchar(']');
    if (o->arg) {
        fputs(o->optional ? "::" : ":", stdout);
        put_quoted(o->arg, "[]:\\");
        if (o->choices)
            printf(":(%s)", o->choices);
        else
            fputs(o->words == CLI_WORDS_FILE  ? ":_files"
                  : o->words == CLI_WORDS_DIR ? ":_files -/"
                                              : ": ",
                  stdout);
    }
    putchar('\'');
}

static void zsh_operand(const cli_command *c)
{
    fputs(" \\\n            '*: :", stdout);
    if (c->words == CLI_WORDS_FILE) fputs("_files", stdout);
    if (c->words == CLI_WORDS_DIR) fputs("_files -/", stdout);
    if (c->words == CLI_WORDS_NONE) {
        putchar('(');
        put_topics();
        putchar(')');
    }
    puts("' ;;");
}

static void print_zsh(void)
{
    const cli_command *c;
    const cli_option *o;
    puts("#compdef zc\n# zsh completion of zc, generated from its option tables.\n_zc() {\n"
         "    local -a commands\n    commands=(");
    for (size_t i = 0; (c = cli_command_at(i)); i++) {
        printf("        '%s:", c->name);
        put_quoted(c->summary, ":\\");
        puts("'");
    }
    puts(
        "    )\n    if ((CURRENT == 2)); then\n        _describe command commands\n        return\n"
        "    fi\n    local command=$words[2]\n    shift words\n    ((CURRENT--))\n"
        "    case $command in");
    for (size_t i = 0; (c = cli_command_at(i)); i++) {
        printf("    %s)\n        _arguments -s -S", c->name);
        for (size_t k = 0; (o = cli_option_at(c, k)); k++) zsh_option(o);
        zsh_operand(c);
    }
    puts("    esac\n}\n_zc \"$@\"");
}

/* ---- fish ---- */

static void fish_option(const cli_command *c, const cli_option *o)
{
    printf("complete -c zc -n '__zc_is %s'", c->name);
    if (o->letter) printf(" -s %c", o->letter);
    printf(" -l %s", o->name);
    if (o->choices)
        printf(" -x -a '%s'", o->choices);
    else if (o->words == CLI_WORDS_FILE)
        fputs(" -r -F", stdout);
    else if (o->words == CLI_WORDS_DIR)
        fputs(" -x -a '(__fish_complete_directories)'", stdout);
    else if (o->arg && !o->optional)
        fputs(" -x", stdout);
    fputs(" -d '", stdout);
    put_quoted(o->help, "\\");
    puts("'");
}

static void print_fish(void)
{
    const cli_command *c;
    const cli_option *o;
    puts("# fish completion of zc, generated from its option tables.\n"
         "function __zc_is\n"
         "    set -l words (commandline -opc)\n"
         "    test (count $words) -gt 1; and test $words[2] = $argv[1]\n"
         "end\n"
         "function __zc_first\n"
         "    test (count (commandline -opc)) -eq 1\n"
         "end");
    for (size_t i = 0; (c = cli_command_at(i)); i++) {
        printf("complete -c zc -n __zc_first -f -a %s -d '", c->name);
        put_quoted(c->summary, "\\");
        puts("'");
    }
    for (size_t i = 0; (c = cli_command_at(i)); i++) {
        if (c->words == CLI_WORDS_NONE) {
            printf("complete -c zc -n '__zc_is %s' -f -a '", c->name);
            put_topics();
            puts("'");
        }
        for (size_t k = 0; (o = cli_option_at(c, k)); k++) fish_option(c, o);
    }
}

int cli_print_completion(const char *shell)
{
    static const struct {
        const char *shell;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; i < ZC_COUNTOF(shells); i++) {
        if (strcmp(shells[i].shell, shell) != 0) continue;
        shells[i].print();
        return EXIT_OK;
    }
    return cli_usage("help", "no completion for '%s'", shell);
}
