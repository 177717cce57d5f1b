#include "cli/rule_device.h"

#include <stdlib.h>
#include <string.h>

#include "cuda/device.h"
#include "driver/compile.h"

/* Of the check's samples; any number serves. */
enum { SEED = 1 };

static zc_status set_inputs(zc_session *s, size_t n, const zc_tensor *in, zc_diag *diag)
{
    for (size_t i = 0; i < n; i++) {
        zc_view v = {.elem = (zc_elem)in[i].dtype, .rank = in[i].rank, .data = in[i].data};
        memcpy(v.dims, in[i].dims, sizeof in[i].dims);
        if (!zc_tensor_bytes(&in[i], &v.bytes)) return zc_fail_nomem(diag, "input", 0);
        ZC_TRY(zc_session_set_input(s, i, &v, true, diag));
    }
    return ZC_OK;
}

static zc_status take_outputs(const zc_session *s, size_t n, zc_tensor *out, zc_diag *diag)
{
    for (size_t i = 0; i < n; i++) {
        zc_view v;
        ZC_TRY(zc_session_output(s, i, &v, diag));
        out[i] = (zc_tensor){.dtype = (zc_dtype)v.elem, .rank = v.rank};
        memcpy(out[i].dims, v.dims, sizeof out[i].dims);
        out[i].data = zc_calloc(v.bytes, 1);
        if (!out[i].data) return zc_fail_nomem(diag, "result", v.bytes);
        if (v.bytes) memcpy(out[i].data, v.data, v.bytes);
    }
    return ZC_OK;
}

static zc_status run_plan(zc_plan *plan, int ordinal, const zc_graph *g, const zc_tensor *in,
                          zc_tensor *out, zc_diag *diag)
{
    zc_session *s = NULL;
    ZC_TRY(zc_session_create(plan, ZC_SESSION_PARAMS(.device = ZC_DEVICE_CUDA, .ordinal = ordinal),
                             &s, diag));
    zc_status status = set_inputs(s, g->top.params.len, in, diag);
    if (status == ZC_OK) status = zc_session_run(s, diag);
    if (status == ZC_OK) status = take_outputs(s, g->top.outputs.len, out, diag);
    (void)zc_session_destroy(&s);
    return status;
}

zc_status cli_run_graph(void *user, const zc_graph *g, const zc_tensor *in, zc_tensor *out,
                        zc_diag *diag)
{
    static const char *const native = "native";
    zc_compile_params params = {.size = sizeof params, .targets = &native, .target_count = 1};
    zc_plan *plan = NULL;
    void *bytes;
    size_t len;
    ZC_TRY(zc_compile_graph(g, &params, &bytes, &len, diag));
    zc_status status = zc_plan_load_bytes(bytes, len, &plan, diag);
    if (status == ZC_OK) status = run_plan(plan, *(const int *)user, g, in, out, diag);
    zc_plan_destroy(&plan);
    zc_free(bytes);
    return status;
}

static zc_status check_rule(const zc_rules *r, size_t i, zc_diag *diag)
{
    int ordinal = 0;
    zc_rule_check check;
    zc_rule_info info = zc_rules_at(r, i);
    zc_rule_device device = {.run = cli_run_graph, .user = &ordinal};
    if (info.is_builtin || info.is_disabled || !zc_rules_has_kernels(r, i)) return ZC_OK;
    ZC_TRY(zc_rules_check_kernels(r, i, SEED, &device, &check, diag));
    if (!check.failed) return ZC_OK;
    return zc_fail(diag, ZC_ERR_ACCURACY, info.file, "rule '%s' (line %d) is refused: %s%s%s",
                   info.name, info.line, check.why, *check.input ? " for " : "", check.input);
}

static bool has_gpu(void)
{
    int arch;
    zc_diag *diag = zc_diag_create();
    bool has = zc_device_arch(0, &arch, diag) == ZC_OK;
    zc_diag_destroy(&diag);
    return has;
}

zc_status cli_check_kernels(const cli_list *files, zc_diag *diag)
{
    zc_rules *r = NULL;
    if (!files->n || !has_gpu()) return ZC_OK;
    zc_status status = zc_rules_create(&r, diag);
    if (status == ZC_OK) status = zc_rules_add_builtin(r, diag);
    for (size_t i = 0; status == ZC_OK && i < files->n; i++)
        status = zc_rules_add_file(r, files->v[i], diag);
    for (size_t i = 0; status == ZC_OK && i < zc_rules_count(r); i++)
        status = check_rule(r, i, diag);
    zc_rules_destroy(&r);
    return status;
}
