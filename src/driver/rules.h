/* The fusion rules of one compilation. */
#ifndef ZC_DRIVER_RULES_H
#define ZC_DRIVER_RULES_H

#include "driver/target.h"
#include "rules/rules.h"
#include "zc/zc.h"

/* The built-in rules and those of p->rules, each checked by numbers unless forced, without
 * p->skip_rules. The caller destroys *out. */
zc_status zc_compile_rules(const zc_compile_params *p, zc_rules **out, zc_diag *diag);

/* What conditions on the device ask. */
zc_rule_target zc_compile_rule_target(const zc_targets *targets);

#endif
