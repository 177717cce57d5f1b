/* zc debug and zc verify: cmd_debug.c bisects, cmd_verify.c compares devices, debug_run.c compiles,
 * runs and compares one variant. */
#ifndef ZC_CLI_DEBUG_H
#define ZC_CLI_DEBUG_H

#include "cli/compare.h"
#include "cli/device.h"
#include "cli/inputs.h"
#include "driver/compile.h"

/* Results and steps of one run. */
typedef struct debug_results {
    cli_values inputs; /* of the reference, which the others take too */
    ZC_VEC(zc_tensor) outputs;
    ZC_VEC(char *) input_names;
    size_t models_outputs; /* the first ones; the others are exposed tensors */
    ZC_VEC(char *) names;  /* of outputs */
    ZC_VEC(char *) steps;  /* "Conv conv1" */
} debug_results;

typedef struct debug {
    cli_inputs in;
    cli_device device;
    cli_list rules, no_rules, skips;
    zc_model_source model;
    const char *data_root, *precision;
    bool force_rules;
    int64_t threads;
    double bound;
    debug_results reference; /* its inputs are read when it runs, unless they are there */
} debug;

/* Rows of the tables of both commands, whose options are a `debug`. */
#define DEBUG_OPTIONS                                                                              \
    {.name = "rules",                                                                              \
     .repeated = true,                                                                             \
     .arg = "FILE",                                                                                \
     .help = "a file of fusion rules, beside the built-in ones",                                   \
     .words = CLI_WORDS_FILE,                                                                      \
     .set = cli_set_list,                                                                          \
     .at = offsetof(debug, rules)},                                                                \
        {.name = "no-rule",                                                                        \
         .repeated = true,                                                                         \
         .arg = "NAME",                                                                            \
         .help = "leave out a fusion rule",                                                        \
         .set = cli_set_list,                                                                      \
         .at = offsetof(debug, no_rules)},                                                         \
        {.name = "force-rules",                                                                    \
         .help = "take rules that fail the check by numbers",                                      \
         .set = cli_set_flag,                                                                      \
         .at = offsetof(debug, force_rules)},                                                      \
        {.name = "skip-pass",                                                                      \
         .repeated = true,                                                                         \
         .arg = "NAME",                                                                            \
         .choices = cli_skip_names,                                                                \
         .help = "leave out an optional pass",                                                     \
         .set = cli_set_list,                                                                      \
         .at = offsetof(debug, skips)},                                                            \
        {.name = "precision",                                                                      \
         .arg = "TYPE",                                                                            \
         .choices = "f32 tf32 f16 bf16",                                                           \
         .help = "compile to this precision",                                                      \
         .set = cli_set_text,                                                                      \
         .at = offsetof(debug, precision)},                                                        \
        CLI_DATA_ROOT_OPTION(debug, data_root),                                                    \
        CLI_THREADS_OPTION(debug, threads, "threads to use (default: one a CPU)")

/* What is compiled, and how it is run. */
typedef struct debug_variant {
    bool is_reference; /* everything off, plain kernels on the CPU */
    bool is_plain;     /* in the model's own precision */
    size_t passes;     /* so many of the table's optional ones */
    size_t limit;      /* rewrites; 0: no limit */
    bool expose;       /* with all tensors of the model as outputs */
} debug_variant;

/* The greatest difference from the reference. */
typedef struct debug_difference {
    double error;  /* relative to the output's greatest element; INFINITY: not comparable */
    size_t output; /* its number */
    zc_difference of;
} debug_difference;

/* The caller frees results, and explain (may be NULL), also after a failure. */
zc_status cli_debug_run(const debug *d, const debug_variant *v, debug_results *out,
                        zc_explain *explain, zc_diag *diag);
/* Takes t's data over, also when it fails. */
zc_status cli_debug_keep(debug_results *out, const char *name, zc_tensor *t, zc_diag *diag);
void cli_debug_free(debug_results *r);
/* The error that rounding to this precision makes, relative to an output's greatest element. */
double cli_debug_bound(const char *precision);
/* Errors in the rules and names that were given: before anything is compiled. */
zc_status cli_debug_check(const debug *d, zc_diag *diag);
debug_difference cli_debug_compare(const debug_results *got, const debug_results *need);

#endif
