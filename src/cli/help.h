/* What is printed from the command tables. */
#ifndef ZC_CLI_HELP_H
#define ZC_CLI_HELP_H

#include <stdio.h>

#include "cli/options.h"

/* An environment variable; reader is "zc" or the library that asks for it. */
typedef struct cli_env {
    const char *name, *reader, *meaning;
} cli_env;
/* NULL past the end. */
const cli_env *cli_env_at(size_t i);

/* The commands and what they do. */
void cli_print_overview(FILE *out);
/* One command's help. */
void cli_print_help(const cli_command *command);
void cli_print_env(void);
/* A manual page in roff: of a command, or zc.1 for NULL. */
void cli_print_man(const cli_command *command);
/* The completion of a shell: bash, zsh or fish. */
int cli_print_completion(const char *shell);

/* --help as every command has it, for what is generated from the tables. */
extern const cli_option cli_help_option;
/* The command's options in order, then --help; NULL past the end. */
const cli_option *cli_option_at(const cli_command *command, size_t i);

#endif
