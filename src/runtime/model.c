/* What a plan's model says of itself. */
#include <string.h>

#include "base/sized.h"
#include "runtime/plan.h"

zc_status zc_plan_model_fill(const zc_plan *plan, zc_model_info *out)
{
    if (!plan || !out) return ZC_ERR_ARG;
    const zc_origin *o = &plan->program.origin;
    const zc_model_info own = {.name = plan->program.model_name,
                               .producer = o->producer,
                               .producer_version = o->producer_version,
                               .domain = o->domain,
                               .doc = o->doc,
                               .version = o->version,
                               .pairs = o->npairs};
    return zc_sized_give(&own, sizeof own, ZC_SIZE_UPTO(zc_model_info, pairs), out, NULL);
}

zc_status zc_plan_model_pair(const zc_plan *plan, size_t i, const char **key, const char **value,
                             zc_diag *diag)
{
    if (!plan) return zc_fail(diag, ZC_ERR_ARG, "plan", "is NULL");
    if (!key || !value) return zc_fail(diag, ZC_ERR_ARG, key ? "value" : "key", "is NULL");
    const zc_origin *o = &plan->program.origin;
    if (i >= o->npairs)
        return zc_fail(diag, ZC_ERR_ARG, "i", "no such pair (got %zu, need < %u)", i, o->npairs);
    *key = o->pairs[2 * i];
    *value = o->pairs[2 * i + 1];
    return ZC_OK;
}

const char *zc_plan_model_value(const zc_plan *plan, const char *key)
{
    if (!plan || !key) return NULL;
    const zc_origin *o = &plan->program.origin;
    for (uint32_t i = 0; i < o->npairs; i++)
        if (strcmp(o->pairs[2 * i], key) == 0) return o->pairs[2 * i + 1];
    return NULL;
}
