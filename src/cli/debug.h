/* zc debug: cmd_debug.c bisects, debug_run.c compiles, runs and compares one variant. */
#ifndef ZC_CLI_DEBUG_H
#define ZC_CLI_DEBUG_H

#include "cli/compare.h"
#include "cli/device.h"
#include "cli/inputs.h"
#include "driver/compile.h"

/* Results and steps of one run. */
typedef struct debug_results {
    ZC_VEC(zc_tensor) outputs;
    ZC_VEC(char *) names; /* of outputs */
    ZC_VEC(char *) steps; /* "Conv conv1" */
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
    debug_results reference;
} debug;

/* What is compiled, and how it is run. */
typedef struct debug_variant {
    bool is_reference; /* everything off, plain kernels on the CPU */
    bool is_plain;     /* in the model's own precision */
    size_t passes;     /* so many of the table's optional ones */
    size_t limit;      /* rewrites; 0: no limit */
} debug_variant;

/* The greatest difference from the reference. */
typedef struct debug_difference {
    double error;  /* relative to the output's greatest element; INFINITY: not comparable */
    size_t output; /* its number */
    cli_difference of;
} debug_difference;

/* The caller frees results, and explain (may be NULL), also after a failure. */
zc_status cli_debug_run(const debug *d, const debug_variant *v, debug_results *out,
                        zc_explain *explain, zc_diag *diag);
void cli_debug_free(debug_results *r);
debug_difference cli_debug_compare(const debug_results *got, const debug_results *need);

#endif
