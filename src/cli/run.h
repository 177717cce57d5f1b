/* zc run: cmd_run.c is the command, run_loop.c runs once or in a loop, run_print.c and run_save.c
 * say and save what came out. */
#ifndef ZC_CLI_RUN_H
#define ZC_CLI_RUN_H

#include "cli/device.h"
#include "cli/inputs.h"

/* In --output-dir, with --format npz. */
#define RUN_ARCHIVE "outputs.npz"

typedef struct run_options {
    cli_inputs in;
    const char *output_dir, *format, *labels, *expect, *tail;
    double rtol, atol; /* below 0: not given */
    cli_device device;
    bool reference, each, json;
    int64_t threads, top, loop, concat;
    cli_list feeds, slices, outputs;
} run_options;

/* A tensor that came out. Its name is the plan's. */
typedef struct run_result {
    const char *name;
    size_t number; /* of the output */
    int64_t step;  /* with --each; else -1 */
    bool is_owned; /* data is freed; else it is the session's */
    zc_tensor t;
} run_result;

typedef struct run_results {
    ZC_VEC(run_result) list;
    int64_t steps;
    double seconds; /* of all runs together */
} run_results;

/* Reads the inputs and runs, as often as the options say. The caller frees *out, also after a
 * failure, and before the session ends. */
zc_status cli_run(const zc_plan *plan, zc_session *session, const run_options *o, run_results *out,
                  zc_diag *diag);
void cli_run_free(run_results *r);

typedef struct run_labels {
    ZC_VEC(char *) lines;
    uint8_t *text;
} run_labels;
zc_status cli_run_labels(const char *path, run_labels *out, zc_diag *diag);
void cli_run_print(const run_result *r, const run_options *o, const run_labels *labels);
/* All results and the time, as one JSON document. */
void cli_run_json(const run_results *r);

/* Before the run: what cannot be saved need not be computed. */
zc_status cli_run_make_dir(const char *dir, zc_diag *diag);
zc_status cli_run_save(const run_results *r, const run_options *o, zc_diag *diag);

#endif
