/* Passes: graph to graph. THE table is passes.def. */
#ifndef ZC_PASSES_PASSES_H
#define ZC_PASSES_PASSES_H

#include "ir/graph.h"
#include "op/kernels.h"
#include "passes/mixed.h"
#include "rules/rules.h"

/* What one pass did, for reports. */
typedef struct zc_pass_report {
    const char *name;
    size_t nodes_before, nodes_after;
    size_t changes;
    double seconds;
} zc_pass_report;

typedef struct zc_pass_options {
    const char *const *skip; /* names of optional passes; "all" skips every optional one */
    size_t skip_count;
    zc_dtype
        precision; /* ZC_F16 or ZC_BF16: what lower_precision turns f32 into; ZC_NONE: nothing */
    bool tf32;     /* products of f32 on a GPU may round their factors to tf32 */
    zc_mixed
        *mixed;   /* instead of it: types by part; NULL: none. No pass but lower_precision asks */
    bool offered; /* also what has not run on a GPU yet */
    const zc_rules *rules;         /* of opt_rules; NULL: the built-in ones */
    const zc_rule_target *target;  /* NULL: the CPU */
    zc_rules_report *rules_report; /* with rules; may be NULL */
    zc_buf *told;                  /* text: what passes left as it was, and why; may be NULL */
    /* Called after each pass that ran, when not NULL (dumps, timing). */
    void (*after)(void *user, const zc_pass_report *report, const zc_graph *g);
    void *user;
} zc_pass_options;

/* Runs the table's passes in order, validating the graph after each. options may be NULL. Unknown
 * names in skip, and names of required passes, are errors. */
zc_status zc_run_passes(zc_graph *g, const zc_pass_options *options, zc_diag *diag);

/* The same in two parts: the passes before the one of that name, and it with those behind it. */
zc_status zc_run_passes_before(zc_graph *g, const char *name, const zc_pass_options *options,
                               zc_diag *diag);
zc_status zc_run_passes_from(zc_graph *g, const char *name, const zc_pass_options *options,
                             zc_diag *diag);

/* Runs one pass of the table and validates. options may be NULL. */
zc_status zc_run_pass(zc_graph *g, const char *name, const zc_pass_options *options, zc_diag *diag);

/* The table's i-th row: NULL past the end. */
const char *zc_pass_name(size_t i, bool *required, const char **summary);

/* What a pass works on and may ask. */
typedef struct zc_pass {
    zc_graph *g;
    const zc_pass_options *options; /* never NULL */
    size_t changes;                 /* the pass adds its own */
    zc_diag *diag;
} zc_pass;

/* Have all GPUs that are compiled for the family of kernels? */
bool zc_pass_has(const zc_pass *p, int family);

/* Is the optional pass of the table left out? */
bool zc_pass_is_skipped(const zc_pass_options *o, const char *name);
bool zc_pass_on_cpu(const zc_pass *p);
/* Do bytes have kernels of their own for convolutions between quantisations? */
bool zc_pass_bytes(const zc_pass *p);

typedef zc_status (*zc_pass_fn)(zc_pass *p);
#define PASS(name, required, summary) zc_status zc_pass_##name(zc_pass *p);
#include "passes/passes.def"
#undef PASS

#endif
