/* The fusion rules of one compilation. */
#ifndef ZC_DRIVER_RULES_H
#define ZC_DRIVER_RULES_H

#include "driver/target.h"
#include "driver/tune_user.h"
#include "rules/rules.h"
#include "zc/zc.h"

/* The built-in rules and those of p->rules, without p->skip_rules. Each of the latter is checked by
 * numbers unless forced; the kernels that it brings along too, where there is a GPU among the
 * targets and one in this machine. tuning (may be NULL) gets the combinations of tuning parameters
 * that are refused. The caller destroys *out. */
zc_status zc_compile_rules(const zc_compile_params *p, const zc_targets *targets, zc_tuning *tuning,
                           zc_rules **out, zc_diag *diag);

/* What conditions on the device ask. */
zc_rule_target zc_compile_rule_target(const zc_targets *targets);

#endif
