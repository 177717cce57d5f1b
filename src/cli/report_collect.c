/* What a report tells. Times always come as the text that zc bench --save writes, whether they are
 * measured now or were saved: a report of saved times is the same as of those measured. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/number.h"
#include "cli/debug.h"
#include "cli/inspect.h"
#include "cli/model.h"
#include "cli/peaks.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "runtime/plan.h"

/* ---- times as they are saved ---- */

const char *report_head(const report_plan *p, const char *key)
{
    for (size_t i = 0; i < p->saved.head.len; i++) {
        const char *text = bench_saved_behind(p->saved.head.data[i], key);
        if (text) return text;
    }
    return "";
}

static zc_status take_runs(report_plan *p, zc_diag *diag)
{
    const size_t n = p->saved.runs.len;
    p->runs = (bench_times){.v = zc_calloc(n, sizeof(double)), .n = n, .runs = n, .stride = 1};
    if (!p->runs.v) return zc_fail_nomem(diag, "timings", n);
    for (size_t i = 0; i < n; i++) p->runs.v[i] = p->saved.runs.data[i] * 1e-3;
    return bench_summarise(&p->runs, &p->summary) ? ZC_OK : zc_fail_nomem(diag, "timings", n);
}

static zc_status take_steps(report_plan *p, zc_diag *diag)
{
    cli_profile *out = &p->steps;
    const size_t n = p->saved.steps.len;
    out->steps = zc_calloc(n ? n : 1, sizeof *out->steps);
    if (!out->steps) return zc_fail_nomem(diag, "steps", n);
    for (out->n = 0; out->n < n; out->n++) {
        const bench_saved_step *s = &p->saved.steps.data[out->n];
        cli_profile_step *step = &out->steps[out->n];
        *step = (cli_profile_step){.info = {.name = s->name,
                                            .op = s->op,
                                            .kernel = s->kernel,
                                            .why = "",
                                            .products = s->products,
                                            .choice = "",
                                            .bytes_in = s->bytes_in,
                                            .bytes_out = s->bytes_out,
                                            .operations = s->has_work ? s->operations : -1},
                                   .us = s->us};
        if (!zc_median_of(s->us, s->runs, &step->time)) return zc_fail_nomem(diag, "times", n);
        if (!out->runs || s->runs < out->runs) out->runs = s->runs;
        out->sum += step->time.mid;
    }
    return ZC_OK;
}

static zc_status take_saved(report_plan *p, const report_options *o, zc_diag *diag)
{
    p->model_sha256 = report_head(p, "model");
    if (o->peaks.bytes > 0) p->saved.peaks = o->peaks;
    ZC_TRY(take_runs(p, diag));
    return take_steps(p, diag);
}

/* ---- times that are measured ---- */

/* What each one's device can do. */
static zc_status find_peaks(bench_target *targets, size_t n, const report_options *o, zc_diag *diag)
{
    const bench_options *b = &o->bench;
    cli_peaks peaks[] = {[ZC_DEVICE_CPU] = {.kept = false}, [ZC_DEVICE_CUDA] = {.kept = false}};
    for (size_t i = 0; i < n; i++) {
        zc_device_info device;
        ZC_TRY(zc_session_device(targets[i].session, &device));
        cli_peaks *own = &peaks[device.kind];
        if (!(own->v.bytes > 0))
            ZC_TRY(cli_peaks_get(&device, b->device.ordinal, bench_threads(b), own, diag));
        targets[i].peaks = own->v;
    }
    return ZC_OK;
}

/* The plan becomes the column's. */
static zc_status take_target(report_plan *p, bench_target *t, const report_options *o,
                             zc_diag *diag)
{
    char *text = NULL;
    size_t len = 0;
    zc_status status = bench_text(t, &o->bench, &text, &len, diag);
    if (status == ZC_OK) status = bench_saved_parse(text, len, p->path, &p->saved, diag);
    if (status == ZC_OK && o->bench.save) status = zc_file_write(o->bench.save, text, len, diag);
    free(text);
    p->plan = t->plan;
    t->plan = NULL;
    return status == ZC_OK ? take_saved(p, o, diag) : status;
}

/* Those columns that have no times, by turns. */
static zc_status measure(report *r, zc_diag *diag)
{
    bench_target targets[BENCH_PLANS_MAX] = {0};
    report_plan *columns[BENCH_PLANS_MAX];
    const report_options *o = r->o;
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        if (!r->plans[i].times) {
            columns[n] = &r->plans[i];
            targets[n++].path = r->plans[i].path;
        }
    zc_status status = n ? bench_measure(targets, n, &o->bench, diag) : ZC_OK;
    if (status == ZC_OK && !o->no_peaks && !(o->peaks.bytes > 0))
        status = find_peaks(targets, n, o, diag);
    for (size_t i = 0; status == ZC_OK && i < n; i++)
        status = take_target(columns[i], &targets[i], o, diag);
    bench_free(targets, n);
    return status;
}

/* ---- plans beside saved times ---- */

static zc_status other(const report_plan *p, const char *what, const char *got, const char *need,
                       zc_diag *diag)
{
    return zc_fail(diag, ZC_ERR_INPUT, p->times,
                   "times of something else: %s (got '" ZC_NAME "', need '" ZC_NAME "' of " ZC_NAME
                   ")",
                   what, got, need, p->path);
}

/* Are the times of this plan's steps? */
static zc_status check_steps(const report_plan *p, zc_diag *diag)
{
    const zc_pblock *top = &p->plan->program.blocks[0];
    char got[24], need[24];
    if (p->steps.n == 0) return ZC_OK;
    snprintf(got, sizeof got, "%zu", p->steps.n);
    snprintf(need, sizeof need, "%" PRIu32, top->nsteps);
    if (p->steps.n != top->nsteps) return other(p, "number of steps", got, need, diag);
    for (size_t i = 0; i < p->steps.n; i++) {
        const zc_pstep *step = report_step(p, i);
        const cli_profile_step own = {
            .info = {.op = zc_op_get(step->op)->name, .name = step->name}};
        if (!bench_is_step(&own, &p->saved.steps.data[i]))
            return other(p, "a step", p->saved.steps.data[i].name, step->name, diag);
    }
    return ZC_OK;
}

static zc_status load_plan(report_plan *p, zc_diag *diag)
{
    zc_plan_info info;
    ZC_TRY(cli_load_plan(p->path, &p->plan, diag));
    ZC_TRY(zc_plan_info_get(p->plan, &info));
    if (strcmp(info.model_sha256, p->model_sha256) != 0)
        return other(p, "model", p->model_sha256, info.model_sha256, diag);
    return check_steps(p, diag);
}

static bool is_saved(const char *path)
{
    static const char mark[] = "zc-bench ";
    char head[sizeof mark - 1];
    int fd;
    uint64_t size;
    if (zc_file_is_stream(path) || zc_file_open(path, &fd, &size, NULL) != ZC_OK) return false;
    bool is = size >= sizeof head && zc_file_pread(fd, head, sizeof head, 0, path, NULL) == ZC_OK &&
              memcmp(head, mark, sizeof head) == 0;
    zc_file_close(fd);
    return is;
}

static zc_status open_columns(report *r, char **paths, size_t n, zc_diag *diag)
{
    const report_options *o = r->o;
    for (r->n = 0; r->n < n; r->n++) {
        report_plan *p = &r->plans[r->n];
        p->path = paths[r->n];
        if (o->times.n)
            p->times = o->times.v[r->n];
        else if (is_saved(p->path))
            p->times = p->path;
        if (!p->times) continue;
        zc_status status = bench_saved_read(p->times, &p->saved, diag);
        if (status == ZC_OK) status = take_saved(p, o, diag);
        if (status == ZC_OK && p->times != p->path) status = load_plan(p, diag);
        if (status != ZC_OK) {
            r->n++;
            return status;
        }
    }
    return ZC_OK;
}

/* ---- memory ---- */

/* "f32[1,3,224,224] NAME", as the file says of an input; false when it is not this input's. */
static bool take_dims(const char *text, zc_io_info *io)
{
    const char *at = strchr(text, '[');
    zc_buf name = {0};
    if (!at) return false;
    for (int d = 0; d < io->rank; d++) {
        char *end;
        long long size = strtoll(++at, &end, 10);
        if (end == at || size < 0 || *end != (d + 1 < io->rank ? ',' : ']')) return false;
        io->dims[d] = size;
        at = end;
    }
    if (io->rank == 0) at++;
    if (strncmp(at, "] ", 2) != 0) return false;
    zc_buf_escape(&name, io->name, strlen(io->name));
    bool same = name.data && strcmp(name.data, at + 2) == 0;
    zc_buf_fini(&name);
    return same;
}

static bool find_dims(const report_plan *p, zc_io_info *io)
{
    for (size_t i = 0; i < p->saved.head.len; i++) {
        const char *text = bench_saved_behind(p->saved.head.data[i], "input");
        if (text && take_dims(text, io)) return true;
    }
    return false;
}

static zc_status find_memory(report_plan *p, zc_diag *diag)
{
    const size_t n = p->plan->program.blocks[0].nparams;
    zc_io_info *inputs = zc_calloc(n ? n : 1, sizeof *inputs);
    zc_status status = inputs ? ZC_OK : zc_fail_nomem(diag, "inputs", n);
    p->memory_known = true;
    for (size_t i = 0; status == ZC_OK && i < n; i++) {
        status = zc_plan_input(p->plan, i, &inputs[i], diag);
        p->memory_known &= inputs[i].rank >= 0 && find_dims(p, &inputs[i]);
    }
    if (status == ZC_OK && p->memory_known)
        status = zc_memory_map_make(p->plan, zc_program_arch(&p->plan->program), inputs, n,
                                    &p->memory, diag);
    free(inputs);
    return status;
}

/* ---- fusions ---- */

static zc_status check_model(report *r, const zc_model_source *model, zc_diag *diag)
{
    uint8_t hash[32];
    ZC_TRY(zc_model_hash(model, hash, diag));
    for (size_t i = 0; i < sizeof hash; i++) snprintf(r->model_sha256 + 2 * i, 3, "%02x", hash[i]);
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->plans[i].model_sha256, r->model_sha256) == 0) return ZC_OK;
    return zc_fail(diag, ZC_ERR_INPUT, r->o->model,
                   "is the model of no plan here (got SHA-256 %s, need %s)", r->model_sha256,
                   r->plans[0].model_sha256);
}

/* The inputs whose shapes the plan has fixed, of the first plan of the model; their number. */
static size_t fixed_shapes(const report *r, zc_fixed_shape *out, size_t most)
{
    const report_plan *p = r->plans;
    size_t n = 0;
    while (p < r->plans + r->n && !p->plan) p++;
    zc_io_info io;
    for (size_t i = 0; p < r->plans + r->n && n < most; i++) {
        if (zc_plan_input(p->plan, i, &io, NULL) != ZC_OK) break;
        if (io.bytes < 0) continue;
        out[n] = (zc_fixed_shape){.input = io.name, .rank = io.rank};
        memcpy(out[n++].dims, io.dims, sizeof io.dims);
    }
    return n;
}

static zc_status find_fusions(report *r, zc_diag *diag)
{
    const report_options *o = r->o;
    zc_model_source model;
    zc_fixed_shape shapes[CLI_LIST_MAX];
    zc_compile_params params = {.size = sizeof params,
                                .shapes = shapes,
                                .shape_count = fixed_shapes(r, shapes, CLI_LIST_MAX),
                                .precision = o->precision,
                                .rules = o->rules.v,
                                .rule_count = o->rules.n};
    zc_status status = cli_model_open(o->model, &model, diag);
    if (status == ZC_OK) status = check_model(r, &model, diag);
    if (status == ZC_OK) status = zc_compile_model(&model, &params, NULL, NULL, &r->explain, diag);
    r->has_fusion = status == ZC_OK;
    cli_model_close(&model);
    return status;
}

/* ---- all ---- */

static zc_status sum_operations(report *r, zc_diag *diag)
{
    cli_profile all = {.n = 0};
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) n += r->plans[i].steps.n;
    all.steps = zc_calloc(n ? n : 1, sizeof *all.steps);
    for (size_t i = 0; all.steps && i < r->n; i++)
        for (size_t s = 0; s < r->plans[i].steps.n; s++)
            all.steps[all.n++] = r->plans[i].steps.steps[s];
    if (all.steps) r->operations = cli_profile_groups(&all, CLI_BY_OPERATION, &r->operation_count);
    free(all.steps);
    return r->operations ? ZC_OK : zc_fail_nomem(diag, "steps", n);
}

static zc_status sort_first(report *r, zc_diag *diag)
{
    const cli_profile *p = &r->plans[0].steps;
    r->first = zc_calloc(p->n ? p->n : 1, sizeof *r->first);
    if (!r->first) return zc_fail_nomem(diag, "steps", p->n);
    for (size_t i = 0; i < p->n; i++) r->first[i] = &p->steps[i];
    qsort(r->first, p->n, sizeof *r->first, report_by_name);
    return ZC_OK;
}

static zc_status collect(report *r, zc_diag *diag)
{
    const report_options *o = r->o;
    if (o->model) ZC_TRY(find_fusions(r, diag));
    for (size_t i = 0; i < r->n; i++) {
        report_plan *p = &r->plans[i];
        if (p->plan) ZC_TRY(find_memory(p, diag));
        if ((o->expect || o->verify) && p->plan) ZC_TRY(report_find_accuracy(r, i, diag));
    }
    ZC_TRY(sort_first(r, diag));
    return sum_operations(r, diag);
}

zc_status report_collect(report *r, char **paths, size_t n, const report_options *o, zc_diag *diag)
{
    r->o = o;
    ZC_TRY(open_columns(r, paths, n, diag));
    ZC_TRY(measure(r, diag));
    cli_progress progress;
    cli_progress_begin(&progress);
    cli_progress_set(&progress, "looking at the plans");
    zc_status status = collect(r, diag);
    cli_progress_end(&progress);
    return status;
}

void report_free(report *r)
{
    for (size_t i = 0; i < r->n; i++) {
        report_plan *p = &r->plans[i];
        bench_saved_free(&p->saved);
        free(p->runs.v);
        cli_profile_free(&p->steps);
        zc_memory_map_free(&p->memory);
        zc_plan_destroy(&p->plan);
    }
    free(r->operations);
    free(r->first);
    zc_explain_fini(&r->explain);
    ZC_VEC_FINI(&r->accuracy);
}
