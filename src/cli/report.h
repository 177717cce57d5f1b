/* zc report: cmd_report.c is the command. report_collect.c brings together what is told: times,
 * measured or saved, memory, fusions. report_page.c fills report.html, the page as a template; each
 * of its places in braces is a function of report_summary.c, report_steps.c, report_fusion.c,
 * report_accuracy.c (tables), report_chart.c (runs, roofline, timeline, comparison) or
 * report_memory.c. report_html.c writes text and cells, report_svg.c draws axes. */
#ifndef ZC_CLI_REPORT_H
#define ZC_CLI_REPORT_H

#include "cli/bench.h"
#include "cli/compare.h"
#include "driver/explain.h"
#include "planfile/program.h"
#include "runtime/memory_map.h"

typedef struct report_options {
    bench_options bench; /* inputs, device, threads, seconds */
    const char *output, *expect, *model, *precision;
    cli_list times, rules;
    double rtol, atol; /* below 0: not given */
    zc_peaks peaks;    /* 0: not given */
    bool no_peaks, verify;
} report_options;

/* One column: a plan, or saved times by themselves. */
typedef struct report_plan {
    const char *path;  /* as it was named */
    const char *times; /* the file that the times are from; NULL: they were measured */
    zc_plan *plan;     /* NULL: there is none */
    bench_saved saved; /* what was measured; texts below are its */
    const char *model_sha256;
    bench_times runs;
    bench_summary summary;
    cli_profile steps; /* n is 0 where the file has none; without run_us, share and session */
    bool memory_known; /* the sizes of all inputs are */
    zc_memory_map memory;
} report_plan;

/* An output against another. */
typedef struct report_accuracy {
    size_t plan;
    const char *against; /* what: the folder of --expect, or the model's plain kernels */
    const char *name;
    zc_difference off;
    char at[128], got[200], need[200]; /* the worst element's index; types, where they differ */
} report_accuracy;

/* So many operations have a colour of their own; all others share one more. */
enum { REPORT_COLOURS = 8 };

typedef struct report {
    const report_options *o;
    report_plan plans[BENCH_PLANS_MAX];
    size_t n;
    cli_group *operations; /* of all plans together, those first that take longest */
    size_t operation_count;
    const cli_profile_step **first; /* the first plan's steps, by operation and name */
    char model_sha256[65];          /* of --model */
    bool has_fusion;
    zc_explain explain; /* of --model */
    ZC_VEC(report_accuracy) accuracy;
} report;

/* ---- report_collect.c ---- */

/* The caller frees *r, also after a failure. */
zc_status report_collect(report *r, char **paths, size_t n, const report_options *o, zc_diag *diag);
void report_free(report *r);
/* What the times' file says of a key ("device"), or "". */
const char *report_head(const report_plan *p, const char *key);

/* ---- report_page.c ---- */

/* The whole page. */
zc_status report_page(const report *r, zc_buf *out, zc_diag *diag);

/* What fills a place of the template: of the whole report, or of the plan whose part it is in. */
typedef void report_put(const report *r, const report_plan *p, zc_buf *out);

/* ---- report_summary.c ---- */
report_put report_summary;

/* ---- report_steps.c ---- */

report_put report_operations, report_compared_operations, report_steps;
/* Step i of the plan's program; NULL without a plan. */
const zc_pstep *report_step(const report_plan *p, size_t i);
/* By operation, then name, then where they stand in one profile: for qsort of pointers. */
int report_by_name(const void *a, const void *b);

/* ---- report_fusion.c ---- */

report_put report_nodes, report_rules, report_fusions, report_cpu_steps;
/* How many ONNX nodes the step stands for. */
size_t report_node_count(const zc_pstep *step);

/* ---- report_accuracy.c ---- */

/* Runs the plan, and adds what its results are compared with. */
zc_status report_find_accuracy(report *r, size_t plan, zc_diag *diag);
report_put report_accuracies;

/* ---- report_chart.c, report_memory.c ---- */
report_put report_runs, report_roofline, report_timeline, report_comparison, report_memory;

#endif
