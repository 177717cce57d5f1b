#include "cli/profile.h"

#include <stdlib.h>

static zc_status open_session(zc_plan *plan, const cli_values *values,
                              const cli_profile_params *params, zc_session **out, zc_diag *diag)
{
    ZC_TRY(zc_session_create(plan,
                             ZC_SESSION_PARAMS(.threads = (int)params->threads,
                                               .device = params->device.kind,
                                               .ordinal = params->device.ordinal, .profile = true,
                                               .profile_graphs = params->in_graph),
                             out, diag));
    zc_device_info device;
    ZC_TRY(zc_session_device(*out, &device));
    if (params->in_graph && device.kind != ZC_DEVICE_CUDA)
        return zc_fail(diag, ZC_ERR_ARG, "--in-graph", "needs a GPU");
    return cli_give_inputs(*out, values, diag);
}

/* Clocks are looked at behind a first run, which takes them up. */
static zc_status run_metered(cli_profile *p, double seconds, zc_profile_info *out, zc_diag *diag)
{
    zc_device_info device;
    cli_meter meter;
    ZC_TRY(zc_session_run(p->session, diag));
    ZC_TRY(zc_session_device(p->session, &device));
    cli_meter_open(&device, CLI_POWERCAP, &meter);
    zc_status status =
        zc_session_profile(p->session, ZC_PROFILE_PARAMS(.seconds = seconds), out, diag);
    cli_meter_end(&meter, &p->reading);
    cli_meter_close(&meter);
    return status;
}

zc_status cli_profile_run(zc_plan *plan, const cli_values *values, const cli_profile_params *params,
                          cli_profile *out, zc_diag *diag)
{
    zc_profile_info all;
    ZC_TRY(open_session(plan, values, params, &out->session, diag));
    out->in_graph = params->in_graph;
    ZC_TRY(run_metered(out, params->seconds, &all, diag));
    out->n = all.steps;
    out->runs = all.runs;
    out->sum = all.steps_us;
    out->run_us = all.run_us;
    out->share = all.share;
    out->device_us = all.device_us;
    out->steps = zc_calloc(all.steps ? all.steps : 1, sizeof *out->steps);
    if (!out->steps) return zc_fail_nomem(diag, "times of steps", all.steps);
    for (size_t i = 0; i < out->n; i++) {
        cli_profile_step *s = &out->steps[i];
        ZC_TRY(zc_session_step(out->session, i, &s->info, diag));
        ZC_TRY(zc_session_step_times(out->session, i, &s->us, &out->runs, diag));
        s->time = (zc_interval){s->info.low_us, s->info.median_us, s->info.high_us};
    }
    return ZC_OK;
}

void cli_profile_free(cli_profile *p)
{
    (void)zc_session_destroy(&p->session);
    free(p->steps);
    *p = (cli_profile){0};
}

void cli_profile_json(const cli_profile *p, size_t i)
{
    const cli_profile_step *s = &p->steps[i];
    printf("\"step\": %zu, \"op\": \"%s\", \"name\": ", i, s->info.op);
    cli_json(stdout, s->info.name);
    fputs(", \"kernel\": ", stdout);
    cli_json(stdout, s->info.kernel ? s->info.kernel : "");
    printf(", \"%s\": %.3f, \"ci95_low_us\": %.3f, \"ci95_high_us\": %.3f",
           p->in_graph ? "mean_us" : "median_us", s->time.mid, s->time.low, s->time.high);
    if (p->in_graph)
        printf(", \"begin_us\": %.3f, \"end_us\": %.3f, \"gap_us\": %.3f, \"overlap_us\": %.3f",
               s->info.begin_us, s->info.end_us, s->info.gap_us, s->info.overlap_us);
}

typedef struct rank {
    double us;
    size_t i;
} rank;

static int longest_first(const void *a, const void *b)
{
    const rank *x = a, *y = b;
    if (x->us != y->us) return x->us < y->us ? 1 : -1;
    return x->i < y->i ? -1 : 1;
}

size_t *cli_profile_order(const cli_profile *p)
{
    size_t n = p->n ? p->n : 1;
    rank *ranks = zc_calloc(n, sizeof *ranks);
    size_t *out = zc_calloc(n, sizeof *out);
    if (ranks && out) {
        for (size_t i = 0; i < p->n; i++) ranks[i] = (rank){p->steps[i].time.mid, i};
        qsort(ranks, p->n, sizeof *ranks, longest_first);
        for (size_t i = 0; i < p->n; i++) out[i] = ranks[i].i;
    } else {
        free(out);
        out = NULL;
    }
    free(ranks);
    return out;
}
