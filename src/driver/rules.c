#include "driver/rules.h"

/* Of the check's samples; any number serves. */
#define SEED 1

static zc_status check_numbers(const zc_rules *r, size_t i, zc_diag *diag)
{
    zc_rule_check check;
    zc_rule_info info = zc_rules_at(r, i);
    ZC_TRY(zc_rules_check_numbers(r, i, SEED, &check, diag));
    if (!check.failed) return ZC_OK;
    return zc_fail(diag, ZC_ERR_ACCURACY, info.file, "rule '%s' (line %d) is refused: %s%s%s",
                   info.name, info.line, check.why, *check.input ? " for " : "", check.input);
}

static zc_status load(const zc_compile_params *p, zc_rules *r, zc_diag *diag)
{
    ZC_TRY(zc_rules_add_builtin(r, diag));
    for (size_t i = 0; i < p->rule_count; i++) ZC_TRY(zc_rules_add_file(r, p->rules[i], diag));
    for (size_t i = 0; i < p->skip_rule_count; i++)
        ZC_TRY(zc_rules_disable(r, p->skip_rules[i], diag));
    for (size_t i = 0; !p->force_rules && i < zc_rules_count(r); i++) {
        zc_rule_info info = zc_rules_at(r, i);
        if (!info.is_builtin && !info.is_disabled) ZC_TRY(check_numbers(r, i, diag));
    }
    return ZC_OK;
}

zc_status zc_compile_rules(const zc_compile_params *p, zc_rules **out, zc_diag *diag)
{
    ZC_TRY(zc_rules_create(out, diag));
    zc_status status = load(p, *out, diag);
    if (status != ZC_OK) zc_rules_destroy(out);
    return status;
}

zc_rule_target zc_compile_rule_target(const zc_targets *targets)
{
    return (zc_rule_target){.cuda = targets->narchs > 0,
                            .sm = targets->narchs ? targets->archs[0] : 0};
}
