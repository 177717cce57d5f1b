/* What the commands share. */
#ifndef ZC_CLI_CLI_H
#define ZC_CLI_CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "base/mem.h"
#include "cli/options.h"
#include "zc/zc.h"

/* Exit codes, the same for every command: X(name, code, meaning). */
#define CLI_EXITS(X)                                                                               \
    X(OK, 0, "ok")                                                                                 \
    X(USAGE, 1, "usage")                                                                           \
    X(REFUSED, 2, "model or input refused")                                                        \
    X(ACCURACY, 3, "accuracy")                                                                     \
    X(DEVICE, 5, "device")
enum {
#define X(name, code, meaning) EXIT_##name = code,
    CLI_EXITS(X)
#undef X
};
typedef struct cli_exit {
    int code;
    const char *name;
} cli_exit;
/* NULL past the end. */
const cli_exit *cli_exit_at(size_t i);

/* The topic of `zc help` that is no command. */
#define CLI_TOPIC_ENV "env"

/* Prints every entry as "zc: error: ..." and returns the exit code of the status; of the newest
 * entry where that is a device's fault (memory that a GPU lacks). */
int cli_report(const zc_diag *diag, zc_status status);
/* "zc COMMAND: ..." and how to get help; returns EXIT_USAGE. */
int cli_usage(const char *command, const char *fmt, ...) ZC_PRINTF(2, 3);

/* An option that does something only together with another. */
typedef struct cli_need {
    bool given;
    const char *option;
    bool met;
    const char *need;
} cli_need;
/* EXIT_OK, or reports the first that is given and not met. */
int cli_check_needs(const char *command, const cli_need *needs, size_t n);

/* Whole numbers and reals that fill the text; false otherwise. */
bool cli_int(const char *text, int64_t least, int64_t most, int64_t *out);
bool cli_real(const char *text, double *out);

/* Prints text with control characters and bytes that are not UTF-8 as \xNN. */
void cli_put(FILE *out, const char *text);
/* The same of what may be long, between quotes: its first 200 bytes, and how many more there are.
 */
void cli_put_short(FILE *out, const char *text, const char *quote);
/* All of it inside a JSON string, quotes included. */
void cli_json(FILE *out, const char *text);
/* The same of several, as the member `key`. */
void cli_json_texts(FILE *out, const char *key, const char *const *texts, size_t n);

/* Seconds that a clock shows. */
double cli_clock(clockid_t clock);
/* Seconds since some fixed moment. */
double cli_now(void);

#endif
