/* The fusion rules that zc brings along; with options, passes.c applies the caller's set. */
#include "passes/passes.h"

zc_status zc_pass_opt_rules(zc_graph *g, size_t *changes, zc_diag *diag)
{
    zc_rules *rules = NULL;
    zc_status status = zc_rules_create(&rules, diag);
    if (status == ZC_OK) status = zc_rules_add_builtin(rules, diag);
    if (status == ZC_OK) status = zc_rules_apply(rules, g, NULL, NULL, changes, diag);
    zc_rules_destroy(&rules);
    return status;
}
