/* Times of a plan's steps. */
#ifndef ZC_CLI_PROFILE_H
#define ZC_CLI_PROFILE_H

#include "base/stats.h"
#include "cli/device.h"
#include "cli/inputs.h"
#include "cli/meter.h"
#include "runtime/probe.h"

typedef struct cli_profile_step {
    zc_step_info info;
    const double *us; /* of each run; the session's */
    zc_interval time;
} cli_profile_step;

/* Of runs in a session that times every step; on a GPU these are issued one by one, or in graphs.
 */
typedef struct cli_profile {
    cli_profile_step *steps;
    size_t n, runs;
    double sum;       /* of the steps' medians, in microseconds */
    double run_us;    /* of a whole run, the median */
    double share;     /* of a run that is in its steps, the median */
    double device_us; /* of a run on the GPU, the median; else 0 */
    bool in_graph;
    zc_session *session;
    cli_reading reading; /* clocks and energy, of all runs */
} cli_profile;

typedef struct cli_profile_params {
    cli_device device;
    int64_t threads;
    bool in_graph;  /* a GPU's steps as they run, by what their kernels note */
    double seconds; /* for at least so long, or until there are enough runs */
} cli_profile_params;

/* The caller frees *out, also after a failure, before the plan. */
zc_status cli_profile_run(zc_plan *plan, const cli_values *values, const cli_profile_params *params,
                          cli_profile *out, zc_diag *diag);
void cli_profile_free(cli_profile *p);
/* What step i is, and its time, as members of a JSON object. */
void cli_profile_json(const cli_profile *p, size_t i);
/* The numbers of the steps, the longest first; the caller frees them. NULL: no memory. */
size_t *cli_profile_order(const cli_profile *p);

/* ---- what it comes to (profile_sums.c) ---- */

typedef struct cli_reach {
    double bytes, rate;       /* moved; a second */
    double operations, speed; /* -1: not counted; a second */
    double intensity;         /* operations a byte; -1: not known */
    zc_peak peak;             /* of its arithmetic */
    double share;      /* of its time that what it is bound by takes at its peak; -1: not known */
    const char *bound; /* that: "memory", "arithmetic", "launch" */
} cli_reach;
cli_reach cli_profile_reach(const cli_profile_step *s, const zc_peaks *peaks);

typedef struct cli_group {
    const char *text; /* its first len bytes name the group */
    size_t len, steps;
    double us, bytes, operations;
} cli_group;
/* What sums are by; any number of 1 or more: so many parts of the nodes' paths. */
enum { CLI_BY_KERNEL = -1, CLI_BY_OPERATION = 0 };
/* Sums, the longest first. The caller frees them; NULL: no memory. */
cli_group *cli_profile_groups(const cli_profile *p, int64_t by, size_t *n);
/* The group's name by itself, which the caller frees; NULL: no memory. */
char *cli_group_name(const cli_group *g);

#endif
