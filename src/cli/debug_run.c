#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/debug.h"
#include "driver/rules.h"
#include "passes/passes.h"

void cli_debug_free(debug_results *r)
{
    cli_free_values(&r->inputs);
    for (size_t i = 0; i < r->outputs.len; i++) free(r->outputs.data[i].data);
    for (size_t i = 0; i < r->input_names.len; i++) free(r->input_names.data[i]);
    for (size_t i = 0; i < r->names.len; i++) free(r->names.data[i]);
    for (size_t i = 0; i < r->steps.len; i++) free(r->steps.data[i]);
    ZC_VEC_FINI(&r->outputs);
    ZC_VEC_FINI(&r->input_names);
    ZC_VEC_FINI(&r->names);
    ZC_VEC_FINI(&r->steps);
}

/* ---- compiling ---- */

/* The passes beyond the variant's, and those that the user leaves out. */
static void choose_passes(const debug *d, const debug_variant *v, cli_list *skips)
{
    bool required;
    const char *name;
    *skips = d->skips;
    for (size_t i = 0, optional = 0; (name = zc_pass_name(i, &required, NULL)); i++)
        if (!required && optional++ >= v->passes && skips->n < CLI_LIST_MAX)
            skips->v[skips->n++] = name;
}

static zc_status compile(const debug *d, const debug_variant *v, zc_explain *explain, void **bytes,
                         size_t *len, zc_diag *diag)
{
    static const char *const native = "native";
    cli_list skips;
    choose_passes(d, v, &skips);
    zc_compile_params p = {.size = sizeof p,
                           .data_root = d->data_root,
                           .skip_passes = skips.v,
                           .skip_pass_count = skips.n,
                           .threads = (int)d->threads};
    if (!v->is_reference) {
        p.targets = &native;
        p.target_count = d->device.kind != ZC_DEVICE_CPU;
        p.rules = d->rules.v;
        p.rule_count = d->rules.n;
        p.skip_rules = d->no_rules.v;
        p.skip_rule_count = d->no_rules.n;
        p.force_rules = d->force_rules;
        p.precision = v->is_plain ? NULL : d->precision;
    }
    explain->limit = v->limit;
    explain->expose = v->expose;
    return zc_compile_model(&d->model, &p, bytes, len, explain, diag);
}

/* ---- results ---- */

static zc_status keep_text(const char *text, void *list, zc_diag *diag)
{
    ZC_VEC(char *) *texts = list;
    char *copy = strdup(text);
    if (copy && ZC_VEC_PUSH(texts, copy)) return ZC_OK;
    free(copy);
    return zc_fail_nomem(diag, "results", strlen(text));
}

zc_status cli_debug_keep(debug_results *out, const char *name, zc_tensor *t, zc_diag *diag)
{
    zc_status status = keep_text(name, &out->names, diag);
    if (status == ZC_OK && !ZC_VEC_PUSH(&out->outputs, *t))
        status = zc_fail_nomem(diag, name, sizeof *t);
    if (status != ZC_OK) free(t->data);
    return status;
}

static zc_status keep_output(const zc_plan *plan, const zc_session *s, size_t i, debug_results *out,
                             zc_diag *diag)
{
    zc_io_info io;
    zc_view v;
    size_t bytes;
    ZC_TRY(zc_plan_output(plan, i, &io, diag));
    ZC_TRY(zc_session_output(s, i, &v, diag));
    zc_tensor t = {.dtype = (zc_dtype)v.elem, .rank = v.rank};
    memcpy(t.dims, v.dims, sizeof t.dims);
    if (!zc_tensor_bytes(&t, &bytes) || !(t.data = zc_calloc(bytes, 1)))
        return zc_fail_nomem(diag, io.name, 0);
    if (bytes) memcpy(t.data, v.data, bytes);
    return cli_debug_keep(out, io.name, &t, diag);
}

static zc_status keep_steps(const zc_session *s, size_t n, debug_results *out, zc_diag *diag)
{
    for (size_t i = 0; i < n; i++) {
        zc_step_info step;
        char text[400];
        ZC_TRY(zc_session_step(s, i, &step, diag));
        snprintf(text, sizeof text, "%s %.300s", step.op, step.name);
        ZC_TRY(keep_text(text, &out->steps, diag));
    }
    return ZC_OK;
}

static zc_status read_inputs(const debug *d, const zc_plan *plan, debug_results *out, zc_diag *diag)
{
    ZC_TRY(cli_read_inputs(plan, &d->in, &out->inputs, diag));
    for (size_t i = 0; i < out->inputs.n; i++) {
        zc_io_info io;
        ZC_TRY(zc_plan_input(plan, i, &io, diag));
        ZC_TRY(keep_text(io.name, &out->input_names, diag));
    }
    return ZC_OK;
}

static zc_status run_plan(const debug *d, const debug_variant *v, zc_plan *plan, debug_results *out,
                          zc_diag *diag)
{
    zc_session *s = NULL;
    zc_plan_info info;
    ZC_TRY(zc_plan_info_get(plan, &info));
    ZC_TRY(zc_session_create(
        plan,
        ZC_SESSION_PARAMS(.threads = (int)d->threads, .reference = v->is_reference,
                          .device = v->is_reference ? ZC_DEVICE_CPU : d->device.kind,
                          .ordinal = v->is_reference ? 0 : d->device.ordinal),
        &s, diag));
    const cli_values *inputs = &d->reference.inputs;
    zc_status status = ZC_OK;
    if (v->is_reference && !inputs->n) {
        status = read_inputs(d, plan, out, diag);
        inputs = &out->inputs;
    }
    if (status == ZC_OK) status = cli_give_inputs(s, inputs, diag);
    if (status == ZC_OK) status = zc_session_run(s, diag);
    for (size_t i = 0; status == ZC_OK && i < info.outputs; i++)
        status = keep_output(plan, s, i, out, diag);
    if (status == ZC_OK) status = keep_steps(s, info.steps, out, diag);
    (void)zc_session_destroy(&s);
    return status;
}

zc_status cli_debug_run(const debug *d, const debug_variant *v, debug_results *out,
                        zc_explain *explain, zc_diag *diag)
{
    void *bytes = NULL;
    size_t len = 0;
    zc_plan *plan = NULL;
    zc_explain own = {.limit = 0}, *e = explain ? explain : &own;
    zc_status status = compile(d, v, e, &bytes, &len, diag);
    if (status == ZC_OK) status = zc_plan_load_bytes(bytes, len, &plan, diag);
    zc_free(bytes);
    if (status == ZC_OK) status = run_plan(d, v, plan, out, diag);
    out->models_outputs = out->outputs.len - (status == ZC_OK ? e->exposed : 0);
    zc_explain_fini(&own);
    zc_plan_destroy(&plan);
    return status;
}

/* ---- comparing ---- */

debug_difference cli_debug_compare(const debug_results *got, const debug_results *need)
{
    debug_difference worst = {.error = 0};
    for (size_t i = 0; i < need->outputs.len; i++) {
        const zc_tensor *want = &need->outputs.data[i];
        zc_difference d = zc_differ(&got->outputs.data[i], want, 0, 0);
        double error = zc_difference_error(&d, want->dtype);
        if (error > worst.error) worst = (debug_difference){error, i, d};
    }
    return worst;
}

/* ---- options ---- */

double cli_debug_bound(const char *precision)
{
    if (!precision || strcmp(precision, "f32") == 0) return 1e-3;
    return strcmp(precision, "bf16") == 0 ? 1e-1 : 2e-2;
}

zc_status cli_debug_check(const debug *d, zc_diag *diag)
{
    zc_compile_params p = {.size = sizeof p,
                           .rules = d->rules.v,
                           .rule_count = d->rules.n,
                           .skip_rules = d->no_rules.v,
                           .skip_rule_count = d->no_rules.n,
                           .force_rules = d->force_rules};
    zc_rules *rules = NULL;
    const zc_targets cpu = {.narchs = 0};
    zc_status status = zc_compile_rules(&p, &cpu, NULL, &rules, diag);
    zc_rules_destroy(&rules);
    return status;
}
