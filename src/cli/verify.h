/* zc verify: cmd_verify.c is the command, verify_onnxruntime.c asks onnxruntime in a process of its
 * own, verify_report.c prints. */
#ifndef ZC_CLI_VERIFY_H
#define ZC_CLI_VERIFY_H

#include "cli/debug.h"

typedef struct verify {
    debug d; /* first: the options of zc debug are its own */
    double rtol, atol;
    bool layers;
    size_t models_outputs; /* the first of all results */
} verify;

/* The model's outputs for these inputs by onnxruntime in python3. *why (of `n` bytes) says why it
 * is not there, and is empty when it ran. What is wrong with the run is a failure. */
zc_status cli_verify_onnxruntime(const verify *v, debug_results *out, char *why, size_t n,
                                 zc_diag *diag);

void cli_verify_header(void);
/* A row for every tensor that both have. False when one differs. */
bool cli_verify_rows(const verify *v, const char *runner, const debug_results *got);
void cli_verify_absent(const char *runner, const char *why);

/* The first result that has a NaN, else an infinity; its number of elements like this in *count. */
const char *cli_verify_not_finite(const debug_results *r, const char **kind, int64_t *count,
                                  size_t models_outputs);

#endif
