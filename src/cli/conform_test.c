/* One conformance test: compile, run, compare. */
#include <dirent.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/number.h"
#include "cli/compare.h"
#include "cli/conform.h"
#include "cli/inputs.h"
#include "driver/compile.h"
#include "import/load.h"

void cli_conform_say(result *r, outcome o, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    r->outcome = o;
    zc_vsnprintf(r->text, sizeof r->text, fmt, args);
    va_end(args);
}

/* The first diagnostic. What is not supported at all is a skip that says so. */
static void say_diag(result *r, zc_status status, const zc_diag *diag)
{
    cli_conform_say(r, status == ZC_ERR_UNSUPPORTED ? SKIP : FAIL, "%s", zc_diag_text(diag, 0));
}

/* The model's opset, 0 when unknown. */
static int opset_of(const Onnx__ModelProto *m)
{
    int opset = 0;
    for (size_t i = 0; i < m->n_opset_import; i++) {
        const char *domain = m->opset_import[i]->domain;
        if ((!domain || !*domain || strcmp(domain, "ai.onnx") == 0) &&
            m->opset_import[i]->version > 0 && m->opset_import[i]->version < OPSET_MAX)
            opset = (int)m->opset_import[i]->version;
    }
    return opset;
}

/* One output of the plan against the tensor that is expected. */
static zc_status check_output(const conform *c, const zc_plan *plan, const zc_session *s, size_t i,
                              const zc_tensor *want, zc_diag *diag)
{
    zc_view got;
    zc_io_info io;
    ZC_TRY(zc_plan_output(plan, i, &io, diag));
    ZC_TRY(zc_session_output(s, i, &got, diag));
    zc_tensor t = cli_tensor(&got);
    return cli_compare(io.name, &t, want, c->rtol, c->atol, diag);
}

/* How many of the plan's outputs from `first` on are the model's output of that name. */
static size_t width_of(const zc_plan *plan, size_t first, size_t n, const char *name, bool one)
{
    size_t width = 0, len = strlen(name);
    zc_io_info io;
    for (; first + width < n && zc_plan_output(plan, first + width, &io, NULL) == ZC_OK; width++)
        if (strncmp(io.name, name, len) != 0 || io.name[len] != (one ? 0 : '/')) break;
    return width;
}

/* Expected results are the files <prefix>output_<i>.pb, one for each output of the model. */
static zc_status check_outputs(const conform *c, const Onnx__GraphProto *graph, const zc_plan *plan,
                               const zc_session *s, const char *prefix, size_t n, zc_diag *diag)
{
    size_t next = 0;
    for (size_t i = 0; i < graph->n_output; i++) {
        char path[8192];
        zc_tensor_list want;
        const zc_wire_message kind = cli_conform_kind(graph->output[i]);
        snprintf(path, sizeof path, "%soutput_%zu.pb", prefix, i);
        zc_status status = zc_tensor_list_read(path, kind, &want, diag);
        size_t width = width_of(plan, next, n, graph->output[i]->name, kind == ZC_WIRE_TENSOR);
        if (!width && kind == ZC_WIRE_OPTIONAL)
            width = width_of(plan, next, n, graph->output[i]->name, true);
        if (status == ZC_OK && width != want.n)
            status = zc_fail(diag, ZC_ERR_ACCURACY, graph->output[i]->name,
                             "wrong number of tensors (got %zu, need %zu)", width, want.n);
        for (size_t k = 0; k < want.n && status == ZC_OK; k++)
            status = check_output(c, plan, s, next + k, &want.v[k], diag);
        next += width;
        zc_tensor_list_free(&want);
        if (status != ZC_OK) return status;
    }
    return ZC_OK;
}

/* A light model's input: element i of n is i/n, symbolic dimensions are 1. */
static zc_status set_counting(const zc_plan *plan, zc_session *s, size_t i, zc_diag *diag)
{
    zc_io_info io;
    size_t bytes;
    zc_status status = zc_plan_input(plan, i, &io, diag);
    if (status != ZC_OK) return status;
    zc_tensor t = {.dtype = (zc_dtype)io.elem, .rank = io.rank};
    for (int d = 0; d < io.rank; d++) t.dims[d] = io.dims[d] < 0 ? 1 : io.dims[d];
    if (!zc_tensor_bytes(&t, &bytes) || !(t.data = zc_calloc(bytes, 1)))
        return zc_fail_nomem(diag, io.name, 0);
    int64_t n = zc_tensor_numel(&t);
    for (int64_t e = 0; e < n; e++) zc_store_f64(t.dtype, t.data, e, (double)e / (double)n);
    zc_view v = cli_view(&t);
    status = zc_session_set_input(s, i, &v, false, diag);
    free(t.data);
    return status;
}

static zc_status set_inputs(const Onnx__GraphProto *graph, const zc_plan *plan, zc_session *s,
                            const char *dir, size_t n, zc_diag *diag)
{
    cli_inputs in = {.dir = dir};
    if (dir && cli_conform_composites(graph)) return cli_conform_set(graph, dir, s, diag);
    if (dir) return cli_set_inputs(plan, s, &in, diag);
    zc_status status = ZC_OK;
    for (size_t i = 0; i < n && status == ZC_OK; i++) status = set_counting(plan, s, i, diag);
    return status;
}

/* On a GPU the first run issues every step by itself; the second one replays graphs, and is the one
 * that counts. */
static zc_status run_again(const conform *c, zc_session *s, zc_diag *diag)
{
    return c->device.kind == ZC_DEVICE_CPU ? ZC_OK : zc_session_run(s, diag);
}

/* dir: of the input files, NULL for a light model. */
static bool run_set(const conform *c, const Onnx__GraphProto *graph, zc_plan *plan, const char *dir,
                    const char *prefix, result *r, zc_diag *diag)
{
    zc_session *s = NULL;
    zc_plan_info info;
    (void)zc_plan_info_get(plan, &info);
    zc_status status =
        zc_session_create(plan,
                          ZC_SESSION_PARAMS(.threads = (int)c->threads, .reference = c->reference,
                                            .device = c->device.kind, .ordinal = c->device.ordinal),
                          &s, diag);
    if (status == ZC_OK) status = set_inputs(graph, plan, s, dir, info.inputs, diag);
    if (status == ZC_OK) status = zc_session_run(s, diag);
    if (status == ZC_OK) status = run_again(c, s, diag);
    zc_device_info where;
    if (status == ZC_OK && zc_session_device(s, &where) == ZC_OK)
        r->cpu_steps = (int)where.cpu_steps;
    if (status == ZC_OK) status = check_outputs(c, graph, plan, s, prefix, info.outputs, diag);
    if (status != ZC_OK) say_diag(r, status, diag);
    (void)zc_session_destroy(&s);
    return status == ZC_OK;
}

static void run_sets(const conform *c, const Onnx__GraphProto *graph, zc_plan *plan,
                     const char *dir, result *r, zc_diag *diag)
{
    char set[8192], prefix[8200];
    struct stat st;
    for (int sets = 0;; sets++) {
        snprintf(set, sizeof set, "%s/test_data_set_%d", dir, sets);
        snprintf(prefix, sizeof prefix, "%s/", set);
        if (stat(set, &st) != 0) {
            cli_conform_say(r, sets ? PASS : SKIP,
                            sets ? "%d data sets" : "has no test_data_set_%d", sets);
            return;
        }
        if (!run_set(c, graph, plan, set, prefix, r, diag)) return;
    }
}

bool cli_conform_model(const char *dir, char *path, size_t n)
{
    struct stat st;
    int found = 0;
    snprintf(path, n, "%s/model.onnx", dir);
    if (stat(path, &st) == 0) return true;
    snprintf(path, n, "%s/test_data_set_0", dir);
    DIR *d = stat(path, &st) == 0 ? opendir(dir) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t len = strlen(e->d_name), tail = strlen(".onnx");
        if (len <= tail || strcmp(e->d_name + len - tail, ".onnx") != 0) continue;
        snprintf(path, n, "%s/%s", dir, e->d_name);
        found++;
    }
    if (d) closedir(d);
    return found == 1;
}

/* Compiles the model and runs its data; dir: of the test, NULL for a light model. */
static void run_model(const conform *c, const Onnx__ModelProto *proto, char *model, const char *dir,
                      result *r, zc_diag *diag)
{
    char set[8192];
    void *bytes = NULL;
    size_t len = 0;
    zc_plan *plan = NULL;
    cli_conform_fixed fixed = {0};
    zc_arena_init(&fixed.arena, 0);
    snprintf(set, sizeof set, "%s/test_data_set_0", dir ? dir : "");
    zc_status status = dir ? cli_conform_fix(proto->graph, set, &fixed, diag) : ZC_OK;
    const char *target = "native";
    zc_compile_params params = {.size = sizeof params,
                                .dims = fixed.dims.data,
                                .dim_count = fixed.dims.len,
                                .shapes = fixed.shapes.data,
                                .shape_count = fixed.shapes.len,
                                .targets = &target,
                                .target_count = c->device.kind != ZC_DEVICE_CPU,
                                .threads = 1};
    if (status == ZC_OK)
        status =
            zc_compile_model(&(zc_model_source){.path = model}, &params, &bytes, &len, NULL, diag);
    if (status == ZC_OK) status = zc_plan_load_bytes(bytes, len, &plan, diag);
    if (status != ZC_OK) {
        say_diag(r, status, diag);
    } else if (!dir) {
        snprintf(model + strlen(model) - strlen(".onnx"), 16, "_");
        if (run_set(c, proto->graph, plan, NULL, model, r, diag))
            cli_conform_say(r, PASS, "1 data set");
    } else {
        run_sets(c, proto->graph, plan, dir, r, diag);
    }
    zc_plan_destroy(&plan);
    zc_free(bytes);
    ZC_VEC_FINI(&fixed.dims);
    ZC_VEC_FINI(&fixed.shapes);
    zc_arena_fini(&fixed.arena);
}

void cli_conform_run(const conform *c, const char *path, bool light, result *r)
{
    char model[8192];
    Onnx__ModelProto *proto = NULL;
    zc_diag *diag = zc_diag_create();
    if (light)
        snprintf(model, sizeof model, "%s", path);
    else
        (void)cli_conform_model(path, model, sizeof model);
    zc_status status = zc_onnx_load(model, &proto, diag);
    if (status == ZC_OK) {
        r->opset = opset_of(proto);
        run_model(c, proto, model, light ? NULL : path, r, diag);
    } else {
        say_diag(r, status, diag);
    }
    zc_onnx_free(&proto);
    zc_diag_destroy(&diag);
}
