/* What the commands share. */
#ifndef ZC_CLI_CLI_H
#define ZC_CLI_CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/mem.h"
#include "zc/zc.h"

/* Exit codes, the same for every command. */
enum { EXIT_OK = 0, EXIT_USAGE = 1, EXIT_REFUSED = 2, EXIT_ACCURACY = 3, EXIT_DEVICE = 5 };

#define CMD(name, summary)                                                                         \
    int cli_##name(int argc, char **argv);                                                         \
    extern const char cli_##name##_help[];
#include "cli/commands.def"
#undef CMD

/* Prints every entry as "zc: error: ..." and returns the exit code of the status. */
int cli_report(const zc_diag *diag, zc_status status);
/* "zc COMMAND: ..." and how to get help; returns EXIT_USAGE. */
int cli_usage(const char *command, const char *fmt, ...) ZC_PRINTF(2, 3);
/* After getopt_long returned '?' or ':': it has printed what is wrong. */
int cli_bad_option(const char *command);

/* Whole numbers and reals that fill the text; false otherwise. */
bool cli_int(const char *text, int64_t least, int64_t most, int64_t *out);
bool cli_real(const char *text, double *out);
/* "name=value" cut in place at the first '='; NULL when there is none. */
char *cli_value(char *text);

/* Prints text with control characters and bytes that are not UTF-8 as \xNN. */
void cli_put(FILE *out, const char *text);
/* The same inside a JSON string, quotes included. */
void cli_json(FILE *out, const char *text);

/* Seconds since some fixed moment. */
double cli_now(void);

#endif
