/* What a compilation did, for tools: fusions found and missed, steps, kernels. */
#ifndef ZC_DRIVER_EXPLAIN_H
#define ZC_DRIVER_EXPLAIN_H

#include "census/census.h"
#include "driver/tune_user.h"
#include "planfile/program.h"

/* Zeroed and given `limit` and `expose` by the caller, filled in by compiling, also when that
 * fails. */
typedef struct zc_explain {
    size_t limit;   /* rewrites after which the rules are done; 0: no limit */
    bool expose;    /* all tensors of the model that the passes leave become outputs, in order */
    size_t exposed; /* tensors that it made outputs */
    zc_rules *rules;
    zc_rule_stats *stats; /* by rule */
    zc_rules_report report;
    zc_census census;
    bool is_begun;
    zc_tuning tuning; /* what was measured */
    /* Of the final graph, regions included. Constants are no steps. */
    size_t steps;              /* views and shape arithmetic not counted */
    size_t views, shapes;      /* these: steps without a kernel, and steps on shapes alone */
    size_t by_op[ZC_OP_COUNT]; /* of `steps` */
    /* Of a GPU program. */
    bool has_gpu;
    bool lacks_weights;          /* there would be one if the weights were there */
    size_t gpu_steps, cpu_steps; /* of `steps` */
    size_t kernels;              /* different ones */
    zc_buf compiled;             /* text: how long each kernel took */
    zc_buf precision;            /* text: how types were chosen; empty: nobody asked */
    zc_buf left;                 /* text: what passes left as it was, and why */
} zc_explain;

/* Takes the rules over. */
zc_status zc_explain_begin(zc_explain *e, zc_rules *rules, zc_diag *diag);
/* `imported`: values that the graph had before the passes. */
zc_status zc_explain_expose(zc_explain *e, zc_graph *g, size_t imported, zc_diag *diag);
void zc_explain_graph(zc_explain *e, const zc_graph *g);
void zc_explain_program(zc_explain *e, const zc_program *p);
void zc_explain_fini(zc_explain *e);

#endif
