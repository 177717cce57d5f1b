/* What zc bench measures, and what its times say. cmd_bench.c has the options, bench_measure.c runs
 * plans, bench_stats.c judges times, bench_print.c tells them, bench_sweep.c measures several
 * sizes, bench_baseline.c keeps times in a file and compares with one, which bench_saved.c reads.
 */
#ifndef ZC_CLI_BENCH_H
#define ZC_CLI_BENCH_H

#include "cli/bench_saved.h"
#include "cli/device.h"
#include "cli/environment.h"
#include "cli/inputs.h"
#include "cli/profile.h"

/* Plans that one call compares, and sessions that run at the same time, at most. */
enum { BENCH_PLANS_MAX = 16, BENCH_SESSIONS_MAX = 256 };
/* Microseconds that a step may take longer in one process than in another for no fault of its own:
 * on a GPU the first ones wait for the processor to issue them. */
#define BENCH_STEP_UNSURE 5.0

typedef struct bench_options {
    cli_inputs in;
    cli_device device;
    int64_t threads, warmup, iterations, concurrency; /* warmup -1: until times are stable */
    double seconds, warm_ms;
    const char *times, *save, *baseline; /* files */
    const char *max_slowdown;            /* "3%"; NULL: not given */
    double slowdown;                     /* 0.03 */
    cli_profiles sweep; /* sizes of dimensions, of which every combination is measured */
    bool json, steps, no_transfers, processor_time, chart;
    const char *picture; /* of a sweep, as SVG; NULL: none */
} bench_options;

/* Times of runs in their order, in seconds. Of very many every second is kept, then every fourth
 * and so on. */
typedef struct bench_times {
    double *v;
    size_t n, runs, stride;
} bench_times;

/* One plan. */
typedef struct bench_target {
    const char *path;
    zc_plan *plan;
    zc_plan_info info;
    cli_values values;
    zc_session *session; /* the first of those that run at the same time */
    bench_times times;
    size_t warm_runs;
    bool stable;          /* the last warm-up runs took as long as those before */
    double runs_a_second; /* of all sessions together; by turns with others, by its own times */
    cli_reading reading;  /* energy of this plan's runs alone, clocks of all plans' */
    cli_profile steps;    /* as far as it was asked for */
    zc_peaks peaks;       /* of the machine; 0: not measured */
} bench_target;

/* ---- bench_measure.c ---- */

/* Loads each plan, warms it up, and runs them by turns as long as the options say. */
zc_status bench_measure(bench_target *targets, size_t n, const bench_options *o, zc_diag *diag);
void bench_free(bench_target *targets, size_t n);
/* Threads of a session. */
int bench_threads(const bench_options *o);

/* ---- bench_stats.c ---- */

typedef struct bench_summary {
    double low, high; /* of the median, 95 %, by order statistics */
    double p50, p90, p99, p999, min, max;
    size_t outliers; /* beyond Tukey's fences */
    double drift; /* how much longer the last third took than the first; 0: no more than chance */
    double modes[2]; /* medians of two groups that the times fall into; 0: there is one */
} bench_summary;

/* false: no memory. */
bool bench_summarise(const bench_times *t, bench_summary *out);

/* Microseconds of a step in runs before, and in runs now. */
typedef struct bench_pair {
    const cli_profile_step *step;
    const double *was, *is;
    size_t was_n, is_n;
    zc_interval before, now;
    bool slower;
} bench_pair;

/* Which of n steps take more than `factor` times as long now. alone: nothing else says that any
 * does, so that CLI_CHANCE is for all of them together, and none is blamed for what the others
 * became slower by together. false: no memory. */
bool bench_judge_steps(bench_pair *pairs, size_t n, double factor, bool alone);

/* ---- bench_print.c ---- */

zc_status bench_print(const bench_target *targets, size_t n, const bench_options *o, zc_diag *diag);
/* As one object, of times that are summarised. */
void bench_print_json(const bench_target *t, const bench_summary *s, const bench_options *o);
/* trtexec's form: [{"latencyMs": ...}, ...]. */
zc_status bench_export_times(const bench_times *t, const char *path, zc_diag *diag);

/* ---- bench_sweep.c ---- */

/* A line for each combination, as soon as it is there. */
zc_status bench_sweep(const char *path, const bench_options *o, zc_diag *diag);

/* ---- bench_baseline.c ---- */

/* What bench_save writes; the caller frees *text. */
zc_status bench_text(const bench_target *t, const bench_options *o, char **text, size_t *len,
                     zc_diag *diag);
zc_status bench_save(const bench_target *t, const bench_options *o, const char *path,
                     zc_diag *diag);
/* Is it the step that was saved? */
bool bench_is_step(const cli_profile_step *s, const bench_saved_step *was);
/* ZC_ERR_INPUT when the file of --baseline is damaged, or of another model, device or input. */
zc_status bench_check(const bench_target *t, const bench_options *o, zc_diag *diag);
/* The same, and ZC_ERR_ACCURACY when t is slower than the file says by more than the options allow,
 * with the steps that are. */
zc_status bench_against(const bench_target *t, const bench_options *o, zc_diag *diag);
/* Likewise for plans after the first, against the first. */
zc_status bench_among(const bench_target *targets, size_t n, const bench_options *o, zc_diag *diag);

#endif
