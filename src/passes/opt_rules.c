/* The fusion rules: those of the options, or those that zc brings along. */
#include "passes/passes.h"

zc_status zc_pass_opt_rules(zc_pass *p)
{
    const zc_pass_options *o = p->options;
    zc_rules *own = NULL;
    zc_status status = ZC_OK;
    if (!o->rules) {
        status = zc_rules_create(&own, p->diag);
        if (status == ZC_OK) status = zc_rules_add_builtin(own, p->diag);
    }
    if (status == ZC_OK)
        status = zc_rules_apply(o->rules ? o->rules : own, p->g, o->target, o->rules_report,
                                &p->changes, p->diag);
    zc_rules_destroy(&own);
    return status;
}
