/* What a measurement is of, and what it was made with and on. */
#ifndef ZC_CLI_ENVIRONMENT_H
#define ZC_CLI_ENVIRONMENT_H

#include <stdio.h>

#include "cli/inputs.h"
#include "cli/meter.h"

typedef struct cli_environment {
    const char *path; /* the plan's */
    const zc_plan *plan;
    const zc_session *session;
    const cli_values *values; /* of the inputs */
    const cli_reading *reading;
    int threads, sessions; /* of each session; that ran at the same time */
    bool no_transfers;     /* inputs and results stayed on the GPU */
} cli_environment;

/* As a JSON object: "plan" the file, "model" the name that the model gives itself, its SHA-256, the
 * versions of zc that compiled and that runs, the device with its address and driver, clocks,
 * the processor, threads, sessions, transfers, inputs with their shapes. What is not known, or is
 * not there on this device, is null. */
void cli_environment_json(FILE *out, const cli_environment *e);
/* Clocks, temperature and what held clocks down, as a line of text; nothing where they are not
 * known. */
void cli_print_clocks(const cli_reading *r);
/* The same words, where they are known, without what they are and the line's end. */
void cli_put_clocks(FILE *out, const cli_reading *r);

#endif
