/* The compiler's one road: model bytes -> graph -> passes -> program -> plan bytes. The only file
 * that names every stage, in order. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "codegen/codegen.h"
#include "driver/choose_precision.h"
#include "driver/compile.h"
#include "driver/copies.h"
#include "driver/params.h"
#include "driver/rules.h"
#include "driver/slow.h"
#include "driver/target.h"
#include "driver/tune_user.h"
#include "kernels/choose.h"
#include "passes/passes.h"
#include "program/build.h"
#include "tune/tuner.h"

enum { STAGE_IMPORT, STAGE_OPTIMISE, STAGE_KERNELS, STAGE_WRITE, STAGE_COUNT };

static zc_status progress(const zc_compile_params *p, const char *stage, size_t done, zc_diag *diag)
{
    if (!p->progress || p->progress(p->progress_user, stage, done, STAGE_COUNT)) return ZC_OK;
    return zc_fail(diag, ZC_ERR_CANCELLED, NULL, "cancelled before %s", stage);
}

/* ---- the road ---- */

static const char *model_name(const zc_model_source *model)
{
    return model->path ? model->path : model->name;
}

typedef struct plan_sink {
    const zc_sink *to; /* NULL: no plan is made */
    bool is_file;      /* whoever asked for it hears what will be slow or held twice */
} plan_sink;

/* One compilation. */
typedef struct job {
    const zc_model_source *model;
    const zc_compile_params *p;
    zc_targets targets;
    zc_precision_choice precision;
    zc_chosen_precision chosen; /* of "auto" */
    zc_variants variants;       /* that it is chosen by */
    zc_calibration calibration; /* of the file that params name */
    zc_rules *rules;
    zc_tuned known, own; /* measurements: all, and those of the file that params name */
    zc_explain *explain; /* may be NULL */
    zc_tuning *tuning;
    plan_sink sink;
} job;

static zc_choose_profile *profiles_of(const zc_compile_params *p, zc_arena *arena, zc_diag *diag)
{
    zc_choose_profile *profiles = zc_arena_alloc(arena, p->profile_count, sizeof *profiles);
    if (!profiles) (void)zc_fail_nomem(diag, "profiles", p->profile_count);
    for (size_t i = 0; profiles && i < p->profile_count; i++)
        profiles[i] = (zc_choose_profile){.name = p->profiles[i].name,
                                          .values = p->profiles[i].values,
                                          .count = p->profiles[i].count};
    return profiles;
}

static bool show_tuning(void *user, const char *text)
{
    const zc_compile_params *p = user;
    return !p->progress || p->progress(p->progress_user, text, STAGE_KERNELS, STAGE_COUNT);
}

/* Measures on this machine's GPU, and keeps what was found. */
static zc_status tune_kernels(const zc_program *program, job *j, zc_arena *arena, zc_diag *diag)
{
    const zc_compile_params *p = j->p;
    const zc_tuner_params params = {.profiles = profiles_of(p, arena, diag),
                                    .offered = p->offered,
                                    .nprofiles = p->profile_count,
                                    .threads = p->threads,
                                    .seconds = p->tune_seconds > 0 ? p->tune_seconds : 60,
                                    .known = &j->known,
                                    .again = p->tune_again,
                                    .alternatives = p->tune_alternatives,
                                    .told = &j->tuning->told,
                                    .progress = show_tuning,
                                    .progress_user = (void *)(uintptr_t)p};
    if (!params.profiles) return ZC_ERR_NOMEM;
    zc_status status = zc_tune_program(program, &params, &j->own, diag);
    if (p->tuned && (status == ZC_OK || j->own.entries.len)) {
        zc_status written = zc_tuned_write(&j->own, p->tuned, diag);
        if (status == ZC_OK) status = written;
    }
    return status == ZC_OK ? zc_tuned_add_all(&j->known, &j->own, diag) : status;
}

static zc_status choose_kernels(zc_program *program, const job *j, const zc_refusals *refused,
                                zc_arena *arena, zc_diag *diag)
{
    const zc_compile_params *p = j->p;
    zc_choose_profile *profiles = profiles_of(p, arena, diag);
    zc_tuner_lookup lookup = {.known = &j->known};
    if (!profiles) return ZC_ERR_NOMEM;
    const zc_choose_params choose = {.archs = j->targets.archs,
                                     .narchs = j->targets.narchs,
                                     .offered = j->p->offered,
                                     .profiles = profiles,
                                     .nprofiles = p->profile_count,
                                     .refused = refused,
                                     .measured = zc_tuner_measured,
                                     .measured_user = &lookup};
    return zc_choose(program, &choose, arena, diag);
}

/* The constants, which one thread writes while others compile kernels. */
typedef struct constants {
    const zc_program *program;
    const zc_sink *sink;
    zc_diag *diag; /* the thread's own */
    zc_status status;
    bool are_begun;
    uint8_t sha256[32];
} constants;

static void write_constants(void *user)
{
    constants *c = user;
    if (c->are_begun) return;
    c->are_begun = true;
    c->status = zc_program_write_constants(c->program, c->sink, c->sha256, c->diag);
}

/* Machine code for the GPUs among the targets. Where the compiler's remarks refuse a kernel, others
 * are chosen. */
static zc_status build_kernels(zc_program *program, const job *j, constants *beside,
                               zc_arena *arena, zc_diag *diag)
{
    const zc_compile_params *p = j->p;
    ZC_TRY(progress(p, "kernels", STAGE_KERNELS, diag));
    zc_refusals refused = {.n = 0};
    zc_codegen_build_params build = {.archs = j->targets.archs,
                                     .narchs = j->targets.narchs,
                                     .threads = p->threads,
                                     .strip_sources = p->strip_sources,
                                     .emit_dir = p->emit_cuda,
                                     .refused = &refused,
                                     .told = j->explain ? &j->explain->compiled : NULL,
                                     .beside = write_constants,
                                     .beside_user = beside};
    for (size_t before;;) {
        before = refused.n;
        ZC_TRY(zc_codegen_build(program, &build, arena, diag));
        if (refused.n == before) return ZC_OK;
        ZC_TRY(choose_kernels(program, j, &refused, arena, diag));
    }
}

static zc_status write_plan(zc_program *program, const job *j, zc_arena *arena, zc_diag *diag)
{
    program->version = ZC_VERSION;
    if (!j->targets.narchs) program->target = "cpu";
    ZC_TRY(zc_model_hash(j->model, program->model_sha256, diag));
    constants c = {.program = program, .sink = j->sink.to, .diag = zc_diag_create()};
    zc_diag_set_file(c.diag, model_name(j->model));
    zc_status status = j->targets.narchs ? build_kernels(program, j, &c, arena, diag) : ZC_OK;
    if (status == ZC_OK) status = progress(j->p, "write", STAGE_WRITE, diag);
    if (status == ZC_OK) {
        write_constants(&c);
        status = c.status;
    }
    ZC_TRY(zc_diag_end_again(diag, &c.diag, status));
    return zc_program_write_rest(program, c.sha256, j->sink.to, diag);
}

static zc_status finish(const zc_graph *g, job *j, zc_diag *diag)
{
    zc_arena arena;
    zc_program program;
    ZC_TRY(zc_graph_recheck(g, diag));
    zc_arena_init(&arena, 0);
    zc_status status = zc_program_build(g, &arena, &program, diag);
    program.tf32 = j->precision.tf32 && j->targets.narchs;
    program.precision = j->chosen.lines;
    program.nprecision = j->chosen.line_count;
    if (status == ZC_OK && j->p->tune && j->sink.to)
        status = tune_kernels(&program, j, &arena, diag);
    if (status == ZC_OK && j->targets.narchs)
        status = choose_kernels(&program, j, NULL, &arena, diag);
    if (status == ZC_OK && j->targets.narchs && j->explain)
        zc_explain_program(j->explain, &program);
    if (status == ZC_OK && !j->targets.narchs && j->sink.is_file)
        status = zc_tell_slow_steps(&program, diag);
    if (status == ZC_OK && j->sink.is_file) status = zc_tell_copies(&program, diag);
    if (status == ZC_OK && j->sink.to) status = write_plan(&program, j, &arena, diag);
    zc_arena_fini(&arena);
    return status;
}

static bool has_hollow_weights(const zc_graph *g)
{
    for (zc_vid v = 1; v < g->values.len; v++)
        if (zc_graph_is_hollow(g, v)) return true;
    return false;
}

static zc_pass_options pass_options(const job *j, zc_mixed *mixed, const zc_rule_target *target)
{
    return (zc_pass_options){.skip = j->p->skip_passes,
                             .skip_count = j->p->skip_pass_count,
                             .precision = j->precision.narrow,
                             .tf32 = j->precision.tf32,
                             .mixed = mixed,
                             .offered = j->p->offered,
                             .rules = j->rules,
                             .target = target};
}

static zc_status optimise(zc_graph *g, const job *j, zc_mixed *mixed, zc_diag *diag)
{
    zc_rule_target target = zc_compile_rule_target(&j->targets);
    zc_pass_options options = pass_options(j, mixed, &target);
    options.rules_report = j->explain ? &j->explain->report : NULL;
    options.told = j->explain ? &j->explain->left : NULL;
    size_t imported = g->values.len;
    ZC_TRY(progress(j->p, "optimise", STAGE_OPTIMISE, diag));
    ZC_TRY(zc_run_passes(g, &options, diag));
    if (j->explain && j->explain->expose) ZC_TRY(zc_explain_expose(j->explain, g, imported, diag));
    if (j->explain) zc_explain_graph(j->explain, g);
    return ZC_OK;
}

/* ---- types by part ---- */

static zc_status import_again(const job *j, zc_graph **out, zc_diag *diag)
{
    const zc_custom_set custom = {j->p->custom_ops, j->p->custom_op_count};
    return zc_model_import(j->model, j->p, &custom, false, out, diag);
}

/* The model as it is. */
static zc_status import_plain(const job *j, zc_graph **out, zc_diag *diag)
{
    static const char *const all = "all";
    const zc_pass_options none = {.skip = &all, .skip_count = 1};
    ZC_TRY(import_again(j, out, diag));
    return zc_run_passes(*out, &none, diag);
}

/* What the targets' passes make of it before types are lowered. */
static zc_status import_base(job *j, const zc_pass_options *options, zc_diag *diag)
{
    zc_graph *base = NULL;
    zc_status status = import_again(j, &base, diag);
    if (status == ZC_OK) status = zc_run_passes_before(base, "lower_precision", options, diag);
    if (status == ZC_OK && !zc_graph_shed(base)) status = zc_fail_nomem(diag, "graph", 0);
    if (status == ZC_OK)
        zc_variants_begin(&j->variants, base);
    else
        zc_graph_destroy(&base);
    return status;
}

/* And with these types. */
static zc_status lower_variant(job *j, zc_mixed *mixed, zc_graph **out, zc_diag *diag)
{
    const zc_rule_target target = zc_compile_rule_target(&j->targets);
    const zc_pass_options options = pass_options(j, mixed, &target);
    if (!j->variants.base) ZC_TRY(import_base(j, &options, diag));
    ZC_TRY(zc_graph_copy(j->variants.base, out, diag));
    mixed->kept = &j->variants.kept;
    return zc_run_passes_from(*out, "lower_precision", &options, diag);
}

static zc_status make_variant(job *j, zc_mixed *mixed, zc_variant *out, zc_diag *diag)
{
    zc_status status =
        mixed ? lower_variant(j, mixed, &out->graph, diag) : import_plain(j, &out->graph, diag);
    return status == ZC_OK ? zc_variant_make(out, &j->variants, diag) : status;
}

/* Messages that were told are not told again. */
static zc_status compile_variant(void *user, zc_mixed *mixed, zc_variant *out, zc_diag *diag)
{
    job *j = user;
    zc_variant parts_alone = {.plan = NULL};
    zc_diag *own = zc_diag_create();
    zc_diag_set_file(own, model_name(j->model));
    zc_status status = make_variant(j, mixed, out ? out : &parts_alone, own);
    zc_variant_end(&parts_alone);
    return zc_diag_end_again(diag, &own, status);
}

static zc_status load_calibration(job *j, zc_diag *diag)
{
    const zc_custom_set custom = {j->p->custom_ops, j->p->custom_op_count};
    uint8_t sha256[32];
    zc_graph *g = NULL;
    zc_diag *own = zc_diag_create();
    zc_diag_set_file(own, model_name(j->model));
    zc_status status = zc_model_hash(j->model, sha256, own);
    if (status == ZC_OK) status = zc_model_import(j->model, j->p, &custom, true, &g, own);
    if (status == ZC_OK)
        status = zc_thresholds_read(&j->calibration, j->p->calibration, g, sha256, own);
    zc_graph_destroy(&g);
    return zc_diag_end_again(diag, &own, status);
}

static zc_status choose_precision(job *j, zc_diag *diag)
{
    ZC_TRY(progress(j->p, "precision", STAGE_IMPORT, diag));
    if (j->p->calibration) ZC_TRY(load_calibration(j, diag));
    const zc_choose_precision_params params = {.p = j->p,
                                               .targets = &j->targets,
                                               .compile = compile_variant,
                                               .user = j,
                                               .calibration =
                                                   j->p->calibration ? &j->calibration : NULL,
                                               .told = j->explain ? &j->explain->precision : NULL};
    zc_variants_init(&j->variants);
    zc_status status = zc_choose_precision(&params, &j->chosen, diag);
    zc_variants_fini(&j->variants);
    return status;
}

static zc_status compile_with(job *j, zc_diag *diag)
{
    zc_graph *g = NULL;
    ZC_TRY(zc_precision_parse(j->p->precision, &j->precision, diag));
    if (j->p->sparsify && !j->precision.is_auto)
        return zc_fail(diag, ZC_ERR_ARG, "sparsify",
                       "needs a bound of the error: precision auto and max_error");
    if (j->precision.is_auto) ZC_TRY(choose_precision(j, diag));
    if (j->p->profile_count && !j->targets.narchs)
        return zc_fail(diag, ZC_ERR_ARG, j->p->profiles[0].name,
                       "a profile needs a GPU among the targets");
    ZC_TRY(progress(j->p, "import", STAGE_IMPORT, diag));
    const zc_custom_set custom = {j->p->custom_ops, j->p->custom_op_count};
    ZC_TRY(zc_model_import(j->model, j->p, &custom, !j->sink.to, &g, diag));
    zc_status status = optimise(g, j, j->precision.is_auto ? &j->chosen.mixed : NULL, diag);
    if (status == ZC_OK && j->p->tune && j->p->rule_count)
        status = zc_tune_graph(g, j->p, j->tuning, diag);
    /* Without a plan, kernels are only counted. */
    bool is_hollow = !j->sink.to && has_hollow_weights(g);
    bool counts = !j->sink.to && j->explain && j->targets.narchs;
    if (counts) j->explain->lacks_weights = is_hollow;
    if (status == ZC_OK && (j->sink.to || (counts && !is_hollow))) status = finish(g, j, diag);
    zc_graph_destroy(&g);
    return status;
}

static zc_status load_rules(job *j, zc_diag *diag)
{
    const zc_compile_params *p = j->p;
    zc_diag_set_file(diag, NULL); /* rules name their own */
    ZC_TRY(zc_targets_parse(p->targets, p->target_count, &j->targets, diag));
    if (p->tune && !j->targets.narchs)
        return zc_fail(diag, ZC_ERR_ARG, "tune", "tuning needs a GPU among the targets");
    if (p->tune) ZC_TRY(zc_tune_ready(diag));
    ZC_TRY(zc_compile_rules(p, &j->targets, p->tune ? j->tuning : NULL, &j->rules, diag));
    zc_diag_set_file(diag, model_name(j->model));
    return ZC_OK;
}

/* What has been measured. A file that `tune` is to write need not be there. */
static zc_status load_measurements(job *j, zc_diag *diag)
{
    const zc_compile_params *p = j->p;
    if (p->by_cost || !j->targets.narchs) return ZC_OK;
    if (p->tuned && !(p->tune && access(p->tuned, F_OK) != 0))
        ZC_TRY(zc_tuned_read(&j->own, p->tuned, diag));
    ZC_TRY(zc_tuned_add_builtin(&j->known, diag));
    return zc_tuned_add_all(&j->known, &j->own, diag);
}

static zc_status compile(const zc_model_source *model, const zc_compile_params *p,
                         zc_explain *explain, plan_sink sink, zc_diag *diag)
{
    zc_tuning own = {.told = {0}};
    job j = {.model = model,
             .p = p,
             .explain = explain,
             .tuning = explain ? &explain->tuning : &own,
             .sink = sink};
    zc_tuned_init(&j.known);
    zc_tuned_init(&j.own);
    zc_calibration_init(&j.calibration);
    zc_status status = load_rules(&j, diag);
    if (status == ZC_OK) status = load_measurements(&j, diag);
    if (status == ZC_OK && explain) status = zc_explain_begin(explain, j.rules, diag);
    if (status == ZC_OK) status = compile_with(&j, diag);
    if (!explain || !explain->is_begun) zc_rules_destroy(&j.rules);
    zc_chosen_precision_fini(&j.chosen);
    zc_calibration_fini(&j.calibration);
    zc_tuning_fini(&own);
    zc_tuned_fini(&j.known);
    zc_tuned_fini(&j.own);
    zc_diag_set_file(diag, NULL);
    return status;
}

/* ---- sinks ---- */

static zc_status append_to_file(void *user, const void *data, size_t len, zc_diag *diag)
{
    return zc_writer_write(user, data, len, diag);
}

static zc_status overwrite_file(void *user, const void *data, size_t len, uint64_t at,
                                zc_diag *diag)
{
    return zc_writer_pwrite(user, data, len, at, diag);
}

/* Nobody gets a plan that would not load. */
static zc_status verify(const void *plan, size_t len, zc_diag *diag)
{
    zc_arena arena;
    zc_program program;
    zc_arena_init(&arena, 0);
    zc_status status = zc_program_read(plan, len, &arena, &program, diag);
    zc_arena_fini(&arena);
    return status;
}

static zc_status verify_file(zc_writer *writer, const char *path, zc_diag *diag)
{
    const void *plan;
    size_t len;
    zc_diag_lend_file(diag, path);
    zc_status status = zc_writer_view(writer, &plan, &len, diag);
    if (status == ZC_OK) status = verify(plan, len, diag);
    zc_diag_lend_file(diag, NULL);
    return status;
}

zc_status zc_compile_model_to_file(const zc_model_source *model, const char *plan_path,
                                   const zc_compile_params *params, zc_explain *explain,
                                   zc_diag *diag)
{
    zc_compile_params p;
    ZC_TRY(zc_params_take(params, &p, diag));
    if (model->path && zc_file_is_same(model->path, plan_path))
        return zc_fail(diag, ZC_ERR_ARG, plan_path, "the output is the model itself");
    zc_writer *writer;
    ZC_TRY(zc_writer_open(plan_path, &writer, diag));
    const zc_sink file = {append_to_file, overwrite_file, writer};
    zc_status status = compile(model, &p, explain, (plan_sink){&file, .is_file = true}, diag);
    if (status == ZC_OK) status = verify_file(writer, plan_path, diag);
    if (status == ZC_OK) return zc_writer_commit(&writer, diag);
    zc_writer_abort(&writer);
    return status;
}

zc_status zc_compile_file(const char *model_path, const char *plan_path,
                          const zc_compile_params *params, zc_diag *diag)
{
    if (!model_path || !plan_path)
        return zc_fail(diag, ZC_ERR_ARG, model_path ? "plan_path" : "model_path", "is NULL");
    return zc_compile_model_to_file(&(zc_model_source){.path = model_path}, plan_path, params, NULL,
                                    diag);
}

static zc_status compile_to_memory(const zc_model_source *model, const zc_compile_params *params,
                                   zc_explain *explain, void **out, size_t *out_len, zc_diag *diag)
{
    *out = NULL;
    *out_len = 0;
    zc_compile_params p;
    ZC_TRY(zc_params_take(params, &p, diag));
    zc_buf buf = {0};
    const zc_sink buffer = zc_sink_to_buffer(&buf);
    zc_status status = compile(model, &p, explain, (plan_sink){.to = &buffer}, diag);
    if (status == ZC_OK) status = verify(buf.data, buf.len, diag);
    if (status != ZC_OK) {
        zc_buf_fini(&buf);
        return status;
    }
    *out = buf.data;
    *out_len = buf.len;
    return ZC_OK;
}

zc_status zc_compile_graph(const zc_graph *g, const zc_compile_params *params, void **out,
                           size_t *out_len, zc_diag *diag)
{
    zc_compile_params p;
    zc_buf buf = {0};
    const zc_sink buffer = zc_sink_to_buffer(&buf);
    zc_model_source none = {.bytes = ""};
    job j = {.model = &none, .p = &p, .sink = {.to = &buffer}};
    *out = NULL;
    *out_len = 0;
    ZC_TRY(zc_params_take(params, &p, diag));
    ZC_TRY(zc_targets_parse(p.targets, p.target_count, &j.targets, diag));
    zc_tuned_init(&j.known);
    zc_tuned_init(&j.own);
    zc_status status = load_measurements(&j, diag);
    if (status == ZC_OK) status = finish(g, &j, diag);
    if (status == ZC_OK) status = verify(buf.data, buf.len, diag);
    zc_tuned_fini(&j.known);
    zc_tuned_fini(&j.own);
    if (status != ZC_OK) {
        zc_buf_fini(&buf);
        return status;
    }
    *out = buf.data;
    *out_len = buf.len;
    return ZC_OK;
}

zc_status zc_compile_model(const zc_model_source *model, const zc_compile_params *params,
                           void **out, size_t *out_len, zc_explain *explain, zc_diag *diag)
{
    zc_compile_params p;
    if (out) return compile_to_memory(model, params, explain, out, out_len, diag);
    ZC_TRY(zc_params_take(params, &p, diag));
    return compile(model, &p, explain, (plan_sink){.to = NULL}, diag);
}

static zc_status append_nowhere(void *user, const void *data, size_t len, zc_diag *diag)
{
    return ZC_OK;
}

static zc_status overwrite_nowhere(void *user, const void *data, size_t len, uint64_t at,
                                   zc_diag *diag)
{
    return ZC_OK;
}

zc_status zc_compile_nothing(const zc_model_source *model, const zc_compile_params *params,
                             zc_explain *explain, zc_diag *diag)
{
    static const zc_sink nowhere = {append_nowhere, overwrite_nowhere, NULL};
    zc_compile_params p;
    ZC_TRY(zc_params_take(params, &p, diag));
    return compile(model, &p, explain, (plan_sink){.to = &nowhere}, diag);
}

zc_status zc_compile_bytes(const void *model, size_t model_len, const zc_compile_params *params,
                           void **out, size_t *out_len, zc_diag *diag)
{
    if (!model || !out || !out_len)
        return zc_fail(diag, ZC_ERR_ARG, !model ? "model" : !out ? "out" : "out_len", "is NULL");
    return compile_to_memory(&(zc_model_source){.bytes = model, .len = model_len}, params, NULL,
                             out, out_len, diag);
}

void zc_free(void *p)
{
    free(p);
}
