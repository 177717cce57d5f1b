/* What a caller of the compiler gives, checked before anything is done. */
#include <string.h>

#include "base/diag.h"
#include "base/sized.h"
#include "driver/params.h"
#include "op/custom.h"

static zc_status check_list(const char *name, const void *list, size_t n, zc_diag *diag)
{
    return list || n == 0 ? ZC_OK : zc_fail(diag, ZC_ERR_ARG, name, "is NULL");
}

static zc_status check_name(const char *list, const char *name, zc_diag *diag)
{
    return name ? ZC_OK : zc_fail(diag, ZC_ERR_ARG, list, "a name is NULL");
}

static zc_status check_lists(const zc_compile_params *p, zc_diag *diag)
{
    ZC_TRY(check_list("dims", p->dims, p->dim_count, diag));
    ZC_TRY(check_list("shapes", p->shapes, p->shape_count, diag));
    ZC_TRY(check_list("skip_passes", p->skip_passes, p->skip_pass_count, diag));
    ZC_TRY(check_list("profiles", p->profiles, p->profile_count, diag));
    for (size_t i = 0; i < p->profile_count; i++) {
        ZC_TRY(check_name("profiles", p->profiles[i].name, diag));
        ZC_TRY(check_list("profiles", p->profiles[i].values, p->profiles[i].count, diag));
    }
    ZC_TRY(check_list("targets", p->targets, p->target_count, diag));
    ZC_TRY(check_list("allow", p->allow, p->allow_count, diag));
    for (size_t i = 0; i < p->allow_count; i++) ZC_TRY(check_name("allow", p->allow[i], diag));
    ZC_TRY(check_list("rules", p->rules, p->rule_count, diag));
    ZC_TRY(zc_custom_check(&(zc_custom_set){p->custom_ops, p->custom_op_count}, diag));
    ZC_TRY(check_list("skip_rules", p->skip_rules, p->skip_rule_count, diag));
    for (size_t i = 0; i < p->rule_count; i++) ZC_TRY(check_name("rules", p->rules[i], diag));
    for (size_t i = 0; i < p->skip_rule_count; i++)
        ZC_TRY(check_name("skip_rules", p->skip_rules[i], diag));
    for (size_t i = 0; i < p->target_count; i++) ZC_TRY(check_name("targets", p->targets[i], diag));
    for (size_t i = 0; i < p->dim_count; i++) ZC_TRY(check_name("dims", p->dims[i].name, diag));
    for (size_t i = 0; i < p->shape_count; i++)
        ZC_TRY(check_name("shapes", p->shapes[i].input, diag));
    for (size_t i = 0; i < p->skip_pass_count; i++)
        ZC_TRY(check_name("skip_passes", p->skip_passes[i], diag));
    return ZC_OK;
}

zc_status zc_params_take(const zc_compile_params *given, zc_compile_params *out, zc_diag *diag)
{
    *out = (zc_compile_params){.size = sizeof *out};
    if (!given) return ZC_OK;
    ZC_TRY(zc_sized_take(given, ZC_SIZE_UPTO(zc_compile_params, progress_user), out, sizeof *out,
                         "params", diag));
    if (out->threads < 0 || out->threads > ZC_THREADS_MAX)
        return zc_fail(diag, ZC_ERR_ARG, "threads", "out of range (got %d, need 0 to %d)",
                       out->threads, ZC_THREADS_MAX);
    return check_lists(out, diag);
}

zc_status zc_precision_parse(const char *name, zc_precision_choice *out, zc_diag *diag)
{
    *out = (zc_precision_choice){.narrow = ZC_NONE};
    out->is_auto = name && strcmp(name, "auto") == 0;
    if (out->is_auto || !name || strcmp(name, "f32") == 0) return ZC_OK;
    out->tf32 = strcmp(name, "tf32") == 0;
    if (out->tf32) return ZC_OK;
    zc_dtype d = zc_dtype_parse(name);
    if (d != ZC_F16 && d != ZC_BF16)
        return zc_fail(diag, ZC_ERR_ARG, name,
                       "is no precision (need f32, tf32, f16, bf16 or auto)");
    out->narrow = d;
    return ZC_OK;
}
