#include "driver/choose_precision.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "driver/rules.h"
#include "op/differ.h"
#include "passes/quantise.h"
#include "precision/search.h"

/* The runs that errors are measured by. */
typedef struct bench {
    const zc_choose_precision_params *params;
    zc_mixed *mixed;
    size_t inputs, outputs;
    zc_part_spans *spans;       /* by part: zc_mixed.spans */
    const char **names;         /* of outputs */
    ZC_VEC(zc_tensor) expected; /* by sample and output */
    double enough;              /* of what is measured: no error beyond it matters */
    bool has_enough;
} bench;

/* ---- runs ---- */

static zc_status make(const bench *b, zc_mixed *mixed, zc_variant *out, zc_diag *diag)
{
    return b->params->compile(b->params->user, mixed, out, diag);
}

static zc_status run_sample(const bench *b, zc_session *s, size_t sample, zc_diag *diag)
{
    const zc_view *values = b->params->p->samples + sample * b->inputs;
    for (size_t i = 0; i < b->inputs; i++)
        ZC_TRY(zc_session_set_input(s, i, &values[i], true, diag));
    return zc_session_run(s, diag);
}

static zc_status tensor_of(const zc_session *s, size_t i, zc_tensor *out, zc_diag *diag)
{
    zc_view v;
    ZC_TRY(zc_session_output(s, i, &v, diag));
    *out =
        (zc_tensor){.dtype = (zc_dtype)v.elem, .rank = v.rank, .data = (void *)(uintptr_t)v.data};
    memcpy(out->dims, v.dims, sizeof out->dims);
    return ZC_OK;
}

typedef zc_status result_fn(bench *b, size_t sample, size_t output, const zc_tensor *t, void *user,
                            zc_diag *diag);

/* Tells the results from `first` to `end` of every sample, until there is enough. */
static zc_status run_all(bench *b, zc_plan *plan, size_t first, size_t end, result_fn *told,
                         void *user, zc_diag *diag)
{
    zc_session *s = NULL;
    ZC_TRY(zc_session_create(plan, NULL, &s, diag));
    zc_status status = ZC_OK;
    b->has_enough = false;
    for (size_t k = 0; k < b->params->p->sample_count && status == ZC_OK && !b->has_enough; k++) {
        status = run_sample(b, s, k, diag);
        for (size_t i = first; i < end && status == ZC_OK; i++) {
            zc_tensor t;
            status = tensor_of(s, i, &t, diag);
            if (status == ZC_OK) status = told(b, k, i, &t, user, diag);
        }
    }
    (void)zc_session_destroy(&s);
    return status;
}

static zc_status keep(bench *b, size_t sample, size_t output, const zc_tensor *t, void *user,
                      zc_diag *diag)
{
    size_t bytes;
    zc_tensor copy = *t;
    (void)sample, (void)user;
    if (!zc_tensor_bytes(t, &bytes) || !(copy.data = zc_calloc(bytes, 1)))
        return zc_fail_nomem(diag, b->names[output], 0);
    if (bytes) memcpy(copy.data, t->data, bytes);
    if (ZC_VEC_PUSH(&b->expected, copy)) return ZC_OK;
    free(copy.data);
    return zc_fail_nomem(diag, b->names[output], bytes);
}

static zc_status compare(bench *b, size_t sample, size_t output, const zc_tensor *t, void *user,
                         zc_diag *diag)
{
    zc_precision_error *worst = user;
    const zc_tensor *need = &b->expected.data[sample * b->outputs + output];
    zc_difference d = zc_differ(t, need, 0, 0);
    double error = zc_difference_error(&d, need->dtype);
    (void)diag;
    if (error > worst->error) *worst = (zc_precision_error){error, output};
    b->has_enough |= error > b->enough;
    return ZC_OK;
}

static zc_status measure(void *user, const zc_precision_type *types, double enough,
                         zc_precision_error *out, zc_diag *diag)
{
    bench *b = user;
    zc_variant v = {.plan = NULL};
    *out = (zc_precision_error){.error = 0};
    b->mixed->types = types;
    b->enough = enough;
    zc_status status = make(b, b->mixed, &v, diag);
    if (status == ZC_OK) status = run_all(b, v.plan, 0, b->outputs, compare, out, diag);
    zc_variant_end(&v);
    return status;
}

static zc_status take_outputs(bench *b, const zc_plan *plan, zc_diag *diag)
{
    zc_plan_info info;
    ZC_TRY(zc_plan_info_get(plan, &info));
    b->inputs = info.inputs;
    b->outputs = info.outputs;
    b->names = zc_arena_alloc(b->mixed->arena, info.outputs + 1, sizeof *b->names);
    if (!b->names) return zc_fail_nomem(diag, "outputs", info.outputs);
    for (size_t i = 0; i < info.outputs; i++) {
        zc_io_info io;
        ZC_TRY(zc_plan_output(plan, i, &io, diag));
        b->names[i] = zc_arena_strdup(b->mixed->arena, io.name);
        if (!b->names[i]) return zc_fail_nomem(diag, "outputs", info.outputs);
    }
    return ZC_OK;
}

static zc_status run_reference(bench *b, zc_diag *diag)
{
    zc_variant v = {.plan = NULL};
    zc_status status = make(b, NULL, &v, diag);
    if (status == ZC_OK) status = take_outputs(b, v.plan, diag);
    if (status == ZC_OK) status = run_all(b, v.plan, 0, b->outputs, keep, NULL, diag);
    zc_variant_end(&v);
    return status;
}

/* ---- spans of operands and results ---- */

/* NaN stays. */
static void widen(zc_span *s, bool high, double v)
{
    if (high && !(v <= s->high) && !isnan(s->high)) s->high = v;
    if (!high && !(v >= s->low) && !isnan(s->low)) s->low = v;
}

/* Behind the model's own, the outputs are the least and the greatest of each span of each part. */
static zc_span *span_at(const bench *b, size_t output, bool *high)
{
    size_t left = output - b->outputs, part = 0;
    for (; left >= 2 * (size_t)b->mixed->parts.data[part].spans; part++)
        left -= 2 * (size_t)b->mixed->parts.data[part].spans;
    *high = left % 2;
    return &b->spans[part].of[left / 2];
}

static zc_status widen_span(bench *b, size_t sample, size_t output, const zc_tensor *t, void *user,
                            zc_diag *diag)
{
    bool high;
    zc_span *s = span_at(b, output, &high);
    (void)sample, (void)user, (void)diag;
    widen(s, high, zc_load_f64(t->dtype, t->data, 0));
    return ZC_OK;
}

/* Those of tensors that the calibration knows are its own. */
static zc_status take_calibrated(const bench *b, const zc_plan *plan, size_t end, zc_diag *diag)
{
    for (size_t i = b->outputs; i < end && b->params->calibration; i += 2) {
        bool high;
        zc_io_info io;
        ZC_TRY(zc_plan_output(plan, i, &io, diag));
        ZC_TRY(zc_thresholds_span(b->params->calibration, io.name, span_at(b, i, &high), diag));
    }
    return ZC_OK;
}

/* A part whose spans bytes cannot hold is not int8. */
static void check_spans(bench *b)
{
    for (size_t i = 0; i < b->mixed->parts.len; i++) {
        zc_precision_part *part = &b->mixed->parts.data[i];
        for (int k = 0; k < part->spans && part->quantises; k++) {
            part->no_span = zc_span_fault(&b->spans[i].of[k]);
            part->no_span_of = k;
            part->quantises = !part->no_span;
        }
    }
}

static zc_status find_spans(bench *b, zc_diag *diag)
{
    static const zc_span none = {INFINITY, -INFINITY};
    zc_variant v = {.plan = NULL};
    size_t observed = 0, n = b->mixed->parts.len;
    b->spans = zc_arena_alloc(b->mixed->arena, n + 1, sizeof *b->spans);
    if (!b->spans) return zc_fail_nomem(diag, "ranges", n);
    for (size_t i = 0; i < n; i++) {
        observed += 2 * (size_t)b->mixed->parts.data[i].spans;
        for (int k = 0; k < ZC_SPANS; k++) b->spans[i].of[k] = none;
    }
    b->mixed->observe = true;
    zc_status status = make(b, b->mixed, &v, diag);
    b->mixed->observe = false;
    if (status == ZC_OK)
        status = run_all(b, v.plan, b->outputs, b->outputs + observed, widen_span, NULL, diag);
    if (status == ZC_OK) status = take_calibrated(b, v.plan, b->outputs + observed, diag);
    zc_variant_end(&v);
    b->mixed->spans = b->spans;
    check_spans(b);
    return status;
}

static void end_bench(bench *b)
{
    for (size_t i = 0; i < b->expected.len; i++) free(b->expected.data[i].data);
    ZC_VEC_FINI(&b->expected);
}

/* ---- parameters ---- */

static zc_status take_allowed(const zc_compile_params *p, zc_precision_params *out, zc_diag *diag)
{
    for (size_t i = 0; i < p->allow_count; i++) {
        zc_precision_type t = zc_precision_type_find(p->allow[i]);
        if (t == ZC_PRECISION_COUNT || t == ZC_PRECISION_sparse)
            return zc_fail(diag, ZC_ERR_ARG, p->allow[i],
                           "is no type that may be allowed (need int4, fp4, w8, int8, fp8, f16, "
                           "bf16, tf32 or f32)");
        out->allowed[t] = true;
    }
    for (int t = 0; t < ZC_PRECISION_COUNT && !p->allow_count; t++)
        out->allowed[t] = !zc_precision_is_asked_for((zc_precision_type)t);
    out->allowed[ZC_PRECISION_sparse] = p->sparsify != NULL;
    return ZC_OK;
}

static zc_status check(const zc_compile_params *p, zc_diag *diag)
{
    if (!(p->max_error > 0) || isinf(p->max_error))
        return zc_fail(diag, ZC_ERR_ARG, "max_error", "got %g, need more than 0", p->max_error);
    if (p->weight_group && p->weight_group != 32 && p->weight_group != 64 && p->weight_group != 128)
        return zc_fail(diag, ZC_ERR_ARG, "weight_group", "got %lld, need 32, 64, 128, or 0",
                       (long long)p->weight_group);
    if (p->sparsify && strcmp(p->sparsify, "2:4") != 0)
        return zc_fail(diag, ZC_ERR_ARG, "sparsify", "got '%s', need 2:4", p->sparsify);
    if (!p->sample_count)
        return zc_fail(diag, ZC_ERR_ARG, "samples", "errors are measured on samples (got none)");
    return ZC_OK;
}

/* ---- what was found ---- */

static zc_status take_types(const zc_precision_found *found, zc_chosen_precision *out,
                            zc_diag *diag)
{
    zc_precision_type *types = zc_arena_alloc(&out->arena, found->parts.len + 1, sizeof *types);
    if (!types) return zc_fail_nomem(diag, "precision", found->parts.len);
    for (size_t i = 0; i < found->parts.len; i++) types[i] = found->parts.data[i].type;
    out->mixed.types = types;
    out->mixed.emulate = false;
    out->mixed.kept = NULL;
    return ZC_OK;
}

static zc_status take_lines(const zc_buf *text, zc_chosen_precision *out, zc_diag *diag)
{
    size_t n = 0;
    char *copy = text->failed ? NULL : zc_arena_strndup(&out->arena, text->data, text->len);
    for (size_t i = 0; copy && i < text->len; i++) n += copy[i] == '\n';
    out->lines = copy ? zc_arena_alloc(&out->arena, n + 1, sizeof *out->lines) : NULL;
    if (!out->lines) return zc_fail_nomem(diag, "report", text->len);
    for (char *line = copy, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        out->lines[out->line_count++] = line;
    }
    return ZC_OK;
}

static zc_status write_front(const zc_compile_params *p, const zc_precision_found *found,
                             zc_diag *diag)
{
    zc_buf text = {0};
    if (!p->pareto) return ZC_OK;
    zc_status status = zc_precision_front(found, &text)
                           ? zc_file_write(p->pareto, text.data, text.len, diag)
                           : zc_fail_nomem(diag, "front", 0);
    zc_buf_fini(&text);
    return status;
}

static zc_status tell(const bench *b, const zc_precision_params *search,
                      const zc_precision_found *found, zc_chosen_precision *out, zc_diag *diag)
{
    zc_buf text = {0};
    zc_precision_report(search, b->mixed, found, &text);
    zc_status status = take_lines(&text, out, diag);
    if (status == ZC_OK && b->params->told) zc_buf_append(b->params->told, text.data, text.len);
    zc_buf_fini(&text);
    return status;
}

static zc_status choose(bench *b, zc_chosen_precision *out, zc_diag *diag)
{
    const zc_compile_params *p = b->params->p;
    zc_precision_found found;
    zc_precision_params search = {.max_error = p->max_error,
                                  .any_speed = p->allow_count && !b->params->targets->narchs,
                                  .wants_front = p->pareto,
                                  .chips = {b->params->targets->archs, b->params->targets->narchs},
                                  .calibration = b->params->calibration,
                                  .measure = measure,
                                  .user = b};
    ZC_TRY(check(p, diag));
    ZC_TRY(take_allowed(p, &search, diag));
    ZC_TRY(run_reference(b, diag));
    for (int t = 0; t < ZC_CODED_TYPES; t++) b->mixed->codes |= search.allowed[t];
    b->mixed->prunes = search.allowed[ZC_PRECISION_sparse];
    b->mixed->target = zc_compile_rule_target(b->params->targets);
    b->mixed->group = p->weight_group;
    ZC_TRY(make(b, b->mixed, NULL, diag));
    if (search.allowed[ZC_PRECISION_int8] || search.allowed[ZC_PRECISION_fp8])
        ZC_TRY(find_spans(b, diag));
    search.outputs = b->names;
    zc_status status = zc_precision_search(&search, b->mixed, &found, diag);
    if (status == ZC_OK) status = tell(b, &search, &found, out, diag);
    if (status == ZC_OK) status = take_types(&found, out, diag);
    if (status == ZC_OK) status = write_front(p, &found, diag);
    zc_precision_found_fini(&found);
    return status;
}

zc_status zc_choose_precision(const zc_choose_precision_params *params, zc_chosen_precision *out,
                              zc_diag *diag)
{
    zc_arena_init(&out->arena, 0);
    out->is_begun = true;
    out->mixed = (zc_mixed){.emulate = true, .arena = &out->arena};
    if (params->calibration) {
        out->mixed.limits = zc_thresholds_limits;
        out->mixed.limits_user = params->calibration;
    }
    bench b = {.params = params, .mixed = &out->mixed};
    zc_status status = choose(&b, out, diag);
    end_bench(&b);
    return status;
}

void zc_chosen_precision_fini(zc_chosen_precision *c)
{
    if (c->is_begun) zc_arena_fini(&c->arena);
    ZC_VEC_FINI(&c->mixed.parts);
    ZC_VEC_FINI(&c->mixed.edges);
}
