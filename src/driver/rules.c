#include "driver/rules.h"

#include "cuda/device.h"
#include "driver/trial.h"
#include "prover/prover.h"

/* Of the check's samples; any number serves. */
#define SEED 1

static bool has_gpu(void)
{
    int arch;
    zc_diag *diag = zc_diag_create();
    bool has = zc_device_arch(0, &arch, diag) == ZC_OK;
    zc_diag_destroy(&diag);
    return has;
}

/* device may be NULL. */
static zc_status check_rule(const zc_rules *r, size_t i, const zc_rule_device *device,
                            zc_diag *diag)
{
    zc_rule_check check;
    zc_rule_info info = zc_rules_at(r, i);
    ZC_TRY(zc_rules_check_kernels(r, i, SEED, device, &check, diag));
    if (!check.failed) return ZC_OK;
    return zc_fail(diag, ZC_ERR_ACCURACY, info.file, "rule '%s' (line %d) is refused: %s%s%s",
                   info.name, info.line, check.why, *check.input ? " for " : "", check.input);
}

static zc_status check_all(const zc_rules *r, const zc_targets *targets, zc_trial_gpu *trials,
                           zc_diag *diag)
{
    int gpu = targets->narchs ? -1 : 0; /* -1: not asked yet */
    const zc_rule_device device = {.run = zc_trial_run_once, .user = trials};
    for (size_t i = 0; i < zc_rules_count(r); i++) {
        zc_rule_info info = zc_rules_at(r, i);
        bool has_kernels = zc_rules_has_kernels(r, i);
        if (info.is_builtin || info.is_disabled || info.unchecked) continue;
        if (has_kernels && gpu < 0) gpu = has_gpu();
        ZC_TRY(check_rule(r, i, has_kernels && gpu > 0 ? &device : NULL, diag));
        if (has_kernels && gpu == 0 && targets->narchs)
            zc_warn(
                diag, info.file,
                "the kernels of rule '%s' (line %d) were not run: no GPU ('zc rules test --device "
                "cuda' runs them on one)",
                info.name, info.line);
    }
    return ZC_OK;
}

static zc_status load(const zc_compile_params *p, const zc_targets *targets, zc_rules *r,
                      zc_tuning *tuning, zc_diag *diag)
{
    ZC_TRY(zc_rules_add_builtin(r, diag));
    for (size_t i = 0; i < p->rule_count; i++) ZC_TRY(zc_rules_add_file(r, p->rules[i], diag));
    for (size_t i = 0; i < p->skip_rule_count; i++)
        ZC_TRY(zc_rules_disable(r, p->skip_rules[i], diag));
    if (p->force_rules) return ZC_OK;
    zc_trial_gpu trials = {.ordinal = 0};
    zc_status status = check_all(r, targets, &trials, diag);
    zc_trial_gpu_close(&trials);
    ZC_TRY(status);
    return tuning ? zc_tune_check(r, SEED, tuning, diag) : ZC_OK;
}

zc_status zc_compile_rules(const zc_compile_params *p, const zc_targets *targets, zc_tuning *tuning,
                           zc_rules **out, zc_diag *diag)
{
    ZC_TRY(zc_rules_create(out, diag));
    zc_status status = load(p, targets, *out, tuning, diag);
    if (status != ZC_OK) zc_rules_destroy(out);
    return status;
}

zc_rule_target zc_compile_rule_target(const zc_targets *targets)
{
    return (zc_rule_target){.cuda = targets->narchs > 0,
                            .sm = targets->narchs ? targets->archs[0] : 0,
                            .sm_most = targets->narchs ? targets->archs[targets->narchs - 1] : 0};
}
