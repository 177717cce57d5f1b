#include "cli/profile.h"

#include <stdlib.h>

enum { WARM = 2, RUNS_LEAST = 5, RUNS_MOST = 200 };

static zc_status open_session(zc_plan *plan, const cli_values *values,
                              const cli_profile_params *params, zc_session **out, zc_diag *diag)
{
    ZC_TRY(zc_session_create(plan,
                             ZC_SESSION_PARAMS(.threads = (int)params->threads,
                                               .device = params->device.kind,
                                               .ordinal = params->device.ordinal, .profile = true),
                             out, diag));
    return cli_give_inputs(*out, values, diag);
}

/* times[i * RUNS_MOST + r]: step i in run r. */
static zc_status run(cli_profile *p, double seconds, zc_diag *diag)
{
    double us[RUNS_MOST], shares[RUNS_MOST];
    for (int i = 0; i < WARM; i++) ZC_TRY(zc_session_run(p->session, diag));
    double end = cli_now() + seconds;
    for (; p->runs < RUNS_LEAST || (p->runs < RUNS_MOST && cli_now() < end); p->runs++) {
        double start = cli_now(), sum = 0;
        ZC_TRY(zc_session_run(p->session, diag));
        us[p->runs] = (cli_now() - start) * 1e6;
        for (size_t i = 0; i < p->n; i++) {
            ZC_TRY(zc_session_step(p->session, i, &p->steps[i].info, diag));
            sum += p->times[i * RUNS_MOST + p->runs] = p->steps[i].info.us;
        }
        shares[p->runs] = sum / us[p->runs];
    }
    cli_interval all, share;
    if (!cli_median_of(us, p->runs, &all) || !cli_median_of(shares, p->runs, &share))
        return zc_fail_nomem(diag, "times of runs", p->runs);
    p->run_us = all.mid;
    p->share = share.mid;
    return ZC_OK;
}

static zc_status run_metered(cli_profile *p, double seconds, zc_diag *diag)
{
    zc_device_info device;
    cli_meter meter;
    ZC_TRY(zc_session_device(p->session, &device));
    cli_meter_open(&device, CLI_POWERCAP, &meter);
    zc_status status = run(p, seconds, diag);
    cli_meter_end(&meter, &p->reading);
    cli_meter_close(&meter);
    return status;
}

zc_status cli_profile_run(zc_plan *plan, const cli_values *values, const cli_profile_params *params,
                          cli_profile *out, zc_diag *diag)
{
    zc_plan_info info;
    ZC_TRY(zc_plan_info_get(plan, &info));
    out->n = info.steps;
    out->steps = zc_calloc(info.steps ? info.steps : 1, sizeof *out->steps);
    out->times = zc_calloc(info.steps ? info.steps : 1, RUNS_MOST * sizeof *out->times);
    if (!out->steps || !out->times) return zc_fail_nomem(diag, "times of steps", info.steps);
    ZC_TRY(open_session(plan, values, params, &out->session, diag));
    ZC_TRY(run_metered(out, params->seconds, diag));
    for (size_t i = 0; i < out->n; i++) {
        out->steps[i].us = out->times + i * RUNS_MOST;
        if (!cli_median_of(out->steps[i].us, out->runs, &out->steps[i].time))
            return zc_fail_nomem(diag, "times of steps", out->runs);
        out->sum += out->steps[i].time.mid;
    }
    return ZC_OK;
}

void cli_profile_free(cli_profile *p)
{
    (void)zc_session_destroy(&p->session);
    free(p->steps);
    free(p->times);
    *p = (cli_profile){0};
}

void cli_profile_json(const cli_profile *p, size_t i)
{
    const cli_profile_step *s = &p->steps[i];
    printf("\"step\": %zu, \"op\": \"%s\", \"name\": ", i, s->info.op);
    cli_json(stdout, s->info.name);
    fputs(", \"kernel\": ", stdout);
    cli_json(stdout, s->info.kernel ? s->info.kernel : "");
    printf(", \"median_us\": %.3f, \"ci95_low_us\": %.3f, \"ci95_high_us\": %.3f", s->time.mid,
           s->time.low, s->time.high);
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
