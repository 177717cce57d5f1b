#include "driver/trial.h"

#include <stdlib.h>
#include <string.h>

#include "driver/compile.h"

/* Runs that are measured. */
enum { TIMED_RUNS = 15 };

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

static zc_status measure(zc_session *s, double *us, zc_diag *diag)
{
    zc_profile_info all;
    ZC_TRY(zc_session_profile(
        s, ZC_PROFILE_PARAMS(.least_runs = TIMED_RUNS, .most_runs = TIMED_RUNS), &all, diag));
    *us = all.steps_us;
    return ZC_OK;
}

static zc_status run_plan(zc_plan *plan, int ordinal, const zc_graph *g, const zc_tensor *in,
                          zc_tensor *out, double *us, zc_diag *diag)
{
    zc_session *s = NULL;
    ZC_TRY(zc_session_create(
        plan,
        ZC_SESSION_PARAMS(.device = ZC_DEVICE_CUDA, .ordinal = ordinal, .profile = us != NULL), &s,
        diag));
    zc_status status = set_inputs(s, g->top.params.len, in, diag);
    if (status == ZC_OK) status = zc_session_run(s, diag);
    if (status == ZC_OK) status = take_outputs(s, g->top.outputs.len, out, diag);
    if (status == ZC_OK && us) status = measure(s, us, diag);
    (void)zc_session_destroy(&s);
    return status;
}

static zc_status open_once(zc_trial_gpu *gpu, zc_diag *diag)
{
    if (gpu->is_open) return ZC_OK;
    ZC_TRY(zc_device_open(gpu->ordinal, &gpu->device, diag));
    gpu->is_open = true;
    return ZC_OK;
}

void zc_trial_gpu_close(zc_trial_gpu *gpu)
{
    if (gpu->is_open) zc_device_close(&gpu->device);
    gpu->is_open = false;
}

zc_status zc_trial_run(zc_trial_gpu *gpu, const zc_graph *g, const zc_tensor *in, zc_tensor *out,
                       double *us, zc_diag *diag)
{
    static const char *const native = "native";
    zc_compile_params params = {.size = sizeof params, .targets = &native, .target_count = 1};
    zc_plan *plan = NULL;
    void *bytes;
    size_t len;
    ZC_TRY(open_once(gpu, diag));
    ZC_TRY(zc_compile_graph(g, &params, &bytes, &len, diag));
    zc_status status = zc_plan_load_bytes(bytes, len, &plan, diag);
    if (status == ZC_OK) status = run_plan(plan, gpu->ordinal, g, in, out, us, diag);
    zc_plan_destroy(&plan);
    zc_free(bytes);
    return status;
}

zc_status zc_trial_run_once(void *user, const zc_graph *g, const zc_tensor *in, zc_tensor *out,
                            zc_diag *diag)
{
    return zc_trial_run(user, g, in, out, NULL, diag);
}
