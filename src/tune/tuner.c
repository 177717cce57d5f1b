#include "tune/tuner.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/number.h"
#include "codegen/codegen.h"
#include "cuda/device.h"
#include "runtime/alternatives.h"
#include "tune/problem.h"
#include "tune/same.h"

enum {
    ALTERNATIVES = 16,       /* of each family */
    ROUNDING = 16,           /* units of precision by which results may differ */
    COMPARED_MOST = 1 << 18, /* elements of a result */
    BATCHES = 3,             /* of runs that follow each other: the least time counts */
    BATCH_US = 3000,
    BATCH_RUNS_MOST = 200
};
#define WORTH 0.999 /* less of the whole run's time than this is a gain */
#define NEAR  1.01  /* worth another look */

/* ---- what is known ---- */

typedef bool (*problem_fn)(const zc_program *p, const zc_pstep *step, zc_buf *out);

static const zc_tuned_entry *find(const zc_tuner_lookup *l, const zc_program *p, uint32_t step,
                                  int arch, problem_fn problem)
{
    zc_buf text = {0};
    const zc_tuned_entry *e = NULL;
    if (problem(p, &p->steps[step], &text)) e = zc_tuned_find(l->known, arch, l->gpu, text.data);
    zc_buf_fini(&text);
    return e;
}

bool zc_tuner_measured(void *user, const zc_program *p, uint32_t step, int arch, zc_measured *out)
{
    zc_tuner_lookup *l = user;
    const zc_tuned_entry *e = find(l, p, step, arch, zc_problem_text);
    const char *how = "";
    if (!e) {
        e = find(l, p, step, arch, zc_problem_transposed);
        how = " with weights stored the other way";
    }
    if (!e) return false;
    zc_snprintf(l->why, sizeof l->why, "measured: %.2f us saved%s, %s, CUDA %s, %s", e->saved, how,
                e->gpu, e->cuda, e->day);
    *out = (zc_measured){.family = e->family, .config = e->config, .why = l->why};
    return true;
}

/* ---- the state ---- */

/* Steps that are the same problem. */
typedef struct problem {
    const char *text;
    uint32_t first, uses; /* its first step, and how many */
    uint32_t nchoices, holds, began;
    bool *bad;    /* by choice */
    double *us;   /* by choice: of the whole run, when it was tried last; 0: it was not */
    double saved; /* of the whole run */
    bool known, done;
} problem;

typedef struct tuner {
    const zc_tuner_params *params;
    zc_arena arena;
    zc_program program;
    const zc_program *sized; /* the same with the sizes that are measured */
    zc_device device;
    char cuda[16], day[16];
    zc_tuner_lookup lookup;
    const char **texts; /* by step; NULL: nothing to measure */
    bool nomem;
    ZC_VEC(problem) problems;
    uint32_t *problem_of; /* by step: 1 + number; 0: none */
    zc_plan *plan;
    zc_session *session;
    ZC_VEC(zc_cu_ptr) memory;    /* inputs and outputs */
    int batch;                   /* runs */
    double end;                  /* when the time is up */
    double compiling, measuring; /* seconds */
    size_t tried;
    const problem *running; /* whose kernel runs; NULL: none in particular */
    uint32_t choice;
    zc_diag *diag;
} tuner;

static zc_status nomem(const tuner *t)
{
    return zc_fail_nomem(t->diag, "tuning", 0);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void tell(tuner *t, const char *fmt, ...) ZC_PRINTF(2, 3);
static void tell(tuner *t, const char *fmt, ...)
{
    char line[1600];
    va_list args;
    va_start(args, fmt);
    zc_vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (t->params->told) zc_buf_puts(t->params->told, line);
}

/* ---- a plan with alternatives ---- */

/* Each step's text, on the way to its choice. */
static bool note(void *user, const zc_program *p, uint32_t step, int arch, zc_measured *out)
{
    tuner *t = user;
    zc_buf text = {0};
    t->sized = p;
    if (zc_problem_text(p, &p->steps[step], &text)) {
        t->texts[step] = zc_arena_strdup(&t->arena, text.data);
        t->nomem |= !t->texts[step];
    }
    t->nomem |= text.failed;
    zc_buf_fini(&text);
    return zc_tuner_measured(&t->lookup, p, step, arch, out);
}

/* Compiles, and chooses again as long as the compiler refuses kernels. */
static zc_status choose(tuner *t, const zc_program *p, size_t variant)
{
    zc_refusals *refused = zc_arena_alloc(&t->arena, 1, sizeof *refused);
    t->texts = zc_arena_alloc(&t->arena, p->nsteps, sizeof *t->texts);
    if (!refused || !t->texts) return nomem(t);
    const zc_choose_params params = {
        .archs = &t->device.arch,
        .narchs = 1,
        .profiles = t->params->profiles,
        .nprofiles = t->params->nprofiles,
        .offered = t->params->offered,
        .refused = refused,
        .measured = note,
        .measured_user = t,
        .alternatives = t->params->alternatives > 0 ? t->params->alternatives : ALTERNATIVES,
        .variant = variant};
    const zc_codegen_build_params build = {
        .archs = &t->device.arch, .narchs = 1, .threads = t->params->threads, .refused = refused};
    for (size_t before = SIZE_MAX; before != refused->n;) {
        before = refused->n;
        t->program = *p;
        ZC_TRY(zc_choose(&t->program, &params, &t->arena, t->diag));
        if (t->nomem) return nomem(t);
        ZC_TRY(zc_codegen_build(&t->program, &build, &t->arena, t->diag));
    }
    return ZC_OK;
}

static zc_status load(tuner *t)
{
    zc_buf bytes = {0};
    t->program.version = "tuning";
    t->program.nsources = 0;
    const zc_sink sink = zc_sink_to_buffer(&bytes);
    zc_status status = zc_program_write(&t->program, &sink, t->diag);
    if (status == ZC_OK) status = zc_plan_load_bytes(bytes.data, bytes.len, &t->plan, t->diag);
    zc_buf_fini(&bytes);
    if (status != ZC_OK) return status;
    return zc_session_create(t->plan, ZC_SESSION_PARAMS(.device = ZC_DEVICE_CUDA), &t->session,
                             t->diag);
}

/* ---- inputs ---- */

/* Numbers from -1 to 1, or 0 and 1. */
static void fill(zc_dtype dtype, int64_t n, void *data)
{
    uint64_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        zc_store_f64(dtype, data, i,
                     zc_dtype_is_float(dtype) ? (double)(state >> 33) / 0x1p30 - 1
                                              : (double)(state >> 63));
    }
}

/* The shape of a value where the sizes that are measured decide it. */
static bool shape_of(const tuner *t, uint32_t value, zc_tensor *out, size_t *bytes)
{
    const zc_pvalue *v = &t->sized->values[value];
    *out = (zc_tensor){.dtype = v->dtype, .rank = v->rank};
    for (int d = 0; d < v->rank; d++) {
        if (!zc_dim_is_const(v->dims[d])) return false;
        out->dims[d] = v->dims[d].k;
    }
    return v->rank >= 0 && zc_tensor_bytes(out, bytes);
}

/* Device memory that lives as long as the tuner's session. */
static zc_status allocate(tuner *t, size_t bytes, zc_cu_ptr *out)
{
    ZC_TRY(zc_device_alloc(&t->device, bytes, "tuning", out, t->diag));
    if (ZC_VEC_PUSH(&t->memory, *out)) return ZC_OK;
    zc_device_free(&t->device, out);
    return nomem(t);
}

static zc_status set_input(tuner *t, size_t i)
{
    uint32_t value = t->program.blocks[0].params[i];
    zc_tensor in;
    zc_view view = {.on_device = true};
    zc_cu_ptr at;
    if (!shape_of(t, value, &in, &view.bytes)) return nomem(t);
    ZC_TRY(allocate(t, view.bytes, &at));
    in.data = zc_calloc(view.bytes + 1, 1);
    if (!in.data) return nomem(t);
    fill(in.dtype, zc_tensor_numel(&in), in.data);
    zc_status status = zc_device_check(
        &t->device, t->device.cu.copy_in(at, in.data, view.bytes, NULL), "tuning", t->diag);
    if (status == ZC_OK)
        status = zc_device_check(&t->device, t->device.cu.stream_wait(NULL), "tuning", t->diag);
    free(in.data);
    view.elem = (zc_elem)in.dtype;
    view.rank = in.rank;
    memcpy(view.dims, in.dims, sizeof in.dims);
    view.data = (void *)(uintptr_t)at;
    return status == ZC_OK ? zc_session_set_input(t->session, i, &view, true, t->diag) : status;
}

/* A result whose shape only a run knows is left where it is. */
static zc_status bind_output(tuner *t, size_t i)
{
    zc_tensor out;
    size_t bytes;
    zc_cu_ptr at;
    if (!shape_of(t, t->program.blocks[0].outs[i], &out, &bytes)) return ZC_OK;
    ZC_TRY(allocate(t, bytes, &at));
    return zc_session_bind_output_device(t->session, i, (void *)(uintptr_t)at, bytes, t->diag);
}

/* Both are on the device, so that runs copy nothing. */
static zc_status bind(tuner *t)
{
    const zc_pblock *top = &t->program.blocks[0];
    ZC_TRY(zc_device_enter(&t->device, t->diag));
    zc_status status = ZC_OK;
    for (uint32_t i = 0; status == ZC_OK && i < top->nparams; i++) status = set_input(t, i);
    for (uint32_t i = 0; status == ZC_OK && i < top->nouts; i++) status = bind_output(t, i);
    zc_device_leave(&t->device);
    return status;
}

static void release(tuner *t)
{
    (void)zc_session_destroy(&t->session);
    zc_plan_destroy(&t->plan);
    if (!t->memory.len || zc_device_enter(&t->device, NULL) != ZC_OK) return;
    for (size_t i = 0; i < t->memory.len; i++) zc_device_free(&t->device, &t->memory.data[i]);
    zc_device_leave(&t->device);
    t->memory.len = 0;
}

/* ---- problems ---- */

static zc_status add_problem(tuner *t, uint32_t step)
{
    const zc_pstep *s = &t->program.steps[step];
    problem p = {.text = t->texts[step], .first = step, .nchoices = s->nchoices};
    p.bad = zc_arena_alloc(&t->arena, p.nchoices, sizeof *p.bad);
    p.us = zc_arena_alloc(&t->arena, p.nchoices, sizeof *p.us);
    p.holds = p.began = p.nchoices - 1;
    p.known = !t->params->again &&
              zc_tuned_find(t->params->known, t->device.arch, t->device.name, p.text) != NULL;
    return p.bad && p.us && ZC_VEC_PUSH(&t->problems, p) ? ZC_OK : nomem(t);
}

/* A choice is forced by its number on all steps of a problem. */
static bool same_choices(const tuner *t, uint32_t step, uint32_t other)
{
    const zc_pstep *a = &t->program.steps[step], *b = &t->program.steps[other];
    bool same = a->nchoices == b->nchoices;
    for (uint32_t c = 0; same && c < a->nchoices; c++) {
        const zc_pkernel *x = &t->program.kernels[a->choices[c].kernel],
                         *y = &t->program.kernels[b->choices[c].kernel];
        same = strcmp(x->family, y->family) == 0 &&
               memcmp(x->config, y->config, x->nconfig * sizeof *x->config) == 0;
    }
    return same;
}

static zc_status find_problems(tuner *t)
{
    const zc_pblock *top = &t->program.blocks[0];
    t->problem_of = zc_arena_alloc(&t->arena, t->program.nsteps, sizeof *t->problem_of);
    if (!t->problem_of) return nomem(t);
    for (uint32_t i = 0; i < top->nsteps; i++) {
        uint32_t step = top->steps[i];
        const zc_pstep *s = &t->program.steps[step];
        size_t n = 0;
        if (!t->texts[step] || s->nchoices < 2) continue;
        while (n < t->problems.len && strcmp(t->problems.data[n].text, t->texts[step]) != 0) n++;
        if (n == t->problems.len) ZC_TRY(add_problem(t, step));
        if (!same_choices(t, step, t->problems.data[n].first)) continue;
        t->problem_of[step] = (uint32_t)n + 1;
        t->problems.data[n].uses++;
    }
    return ZC_OK;
}

static const zc_pkernel *kernel_of(const tuner *t, const problem *p, uint32_t choice)
{
    return &t->program.kernels[t->program.steps[p->first].choices[choice].kernel];
}

static zc_status force(tuner *t, const problem *p, uint32_t choice)
{
    for (uint32_t s = p->first; s < t->program.nsteps; s++)
        if (t->problem_of[s] && p == &t->problems.data[t->problem_of[s] - 1])
            ZC_TRY(zc_session_force(t->session, s, choice, t->diag));
    return ZC_OK;
}

/* ---- results ---- */

/* What comes with a result of 16 bits (its rows' moments) is no more precise than that. */
static zc_dtype precision_of(const zc_tensor *results, int i)
{
    zc_dtype first = results[0].dtype;
    return first == ZC_F16 || first == ZC_BF16 ? first : results[i].dtype;
}

static void compared(void *user, uint32_t step, uint32_t choice, int nout, const zc_tensor *got,
                     const zc_tensor *need, const char *error, bool lost)
{
    tuner *t = user;
    problem *p = &t->problems.data[t->problem_of[step] - 1];
    if (lost) t->running = p;
    if (lost) t->choice = choice;
    bool same = !error;
    for (int o = 0; same && o < nout; o++)
        if (need[o].data)
            same = zc_same_tensor(&got[o], &need[o], precision_of(need, o), ROUNDING,
                                  zc_tensor_numel(&need[o]) / COMPARED_MOST + 1);
    if (same) return;
    p->bad[choice] = true;
    tell(t, "%s: %s is refused: %s\n", p->text, kernel_of(t, p, choice)->name,
         error ? error : "its results are not those of the first choice");
}

static zc_status compare(tuner *t)
{
    bool *steps = zc_arena_alloc(&t->arena, t->program.nsteps, sizeof *steps);
    if (!steps) return nomem(t);
    for (size_t i = 0; i < t->problems.len; i++)
        steps[t->problems.data[i].first] = !t->problems.data[i].known;
    return zc_session_compare(t->session, steps, compared, t, t->diag);
}

/* ---- time ---- */

/* Microseconds of each of `runs` runs that follow each other. */
static zc_status time_batch(tuner *t, int runs, double *us)
{
    double start = now();
    for (int i = 0; i < runs; i++) ZC_TRY(zc_session_enqueue(t->session, t->diag));
    ZC_TRY(zc_session_wait(t->session, t->diag));
    *us = (now() - start) / runs * 1e6;
    return ZC_OK;
}

static zc_status time_runs(tuner *t, double *us)
{
    *us = INFINITY;
    for (int i = 0; i < 3; i++) ZC_TRY(zc_session_run(t->session, t->diag)); /* the 2nd records */
    for (int i = 0; i < BATCHES; i++) {
        double one;
        ZC_TRY(time_batch(t, t->batch, &one));
        if (one < *us) *us = one;
    }
    return ZC_OK;
}

static zc_status time_choice(tuner *t, problem *p, uint32_t choice, double *us)
{
    ZC_TRY(force(t, p, choice));
    t->running = p;
    t->choice = choice;
    ZC_TRY(time_runs(t, us));
    t->running = NULL;
    p->us[choice] = *us;
    t->tried++;
    return ZC_OK;
}

static zc_status find_batch(tuner *t, double *us)
{
    t->batch = 1;
    ZC_TRY(time_runs(t, us));
    double runs = BATCH_US / *us;
    t->batch = runs < 1 ? 1 : runs > BATCH_RUNS_MOST ? BATCH_RUNS_MOST : (int)runs;
    return time_runs(t, us);
}

/* ---- descent ---- */

/* Both in turn, so that a clock that drifts favours neither. */
static zc_status settle(tuner *t, problem *p, uint32_t best, double *total, bool *changed)
{
    double least[2] = {INFINITY, INFINITY};
    const uint32_t both[2] = {p->holds, best};
    for (int i = 0; i < 2 * BATCHES; i++) {
        double us;
        ZC_TRY(time_choice(t, p, both[i % 2], &us));
        if (us < least[i % 2]) least[i % 2] = us;
    }
    *total = least[0];
    if (least[1] >= least[0] * WORTH) return force(t, p, p->holds);
    p->saved += least[0] - least[1];
    p->holds = best;
    *total = least[1];
    *changed = true;
    return ZC_OK;
}

/* The first time all alternatives are worth trying, then those that were not far from the best. */
static double limit_of(const problem *p)
{
    double least = INFINITY;
    for (uint32_t c = 0; p->done && c < p->nchoices; c++)
        if (c != p->holds && p->us[c] > 0 && p->us[c] < least) least = p->us[c];
    return least * NEAR;
}

static zc_status try_problem(tuner *t, problem *p, double *total, bool *changed)
{
    uint32_t best = p->holds;
    double least = INFINITY, limit = limit_of(p);
    ZC_TRY(time_choice(t, p, p->holds, total)); /* clocks drift */
    for (uint32_t c = 0; c < p->nchoices; c++) {
        double us;
        if (c == p->holds || p->bad[c] || p->us[c] > limit) continue;
        if (now() > t->end) return force(t, p, p->holds);
        ZC_TRY(time_choice(t, p, c, &us));
        if (us < least) best = c;
        if (us < least) least = us;
    }
    p->done = true;
    if (least < *total * NEAR) return settle(t, p, best, total, changed);
    return force(t, p, p->holds);
}

static zc_status progress(const tuner *t, size_t i, double first, double total)
{
    char text[120];
    if (!t->params->progress) return ZC_OK;
    zc_snprintf(text, sizeof text, "tuning %zu of %zu: %.1f us a run, %.1f at first", i + 1,
                t->problems.len, total, first);
    if (t->params->progress(t->params->progress_user, text)) return ZC_OK;
    return zc_fail(t->diag, ZC_ERR_CANCELLED, NULL, "cancelled while tuning");
}

static zc_status descend(tuner *t, double first, double *total)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < t->problems.len; i++) {
            problem *p = &t->problems.data[i];
            if (p->known) continue;
            if (now() > t->end) return ZC_OK;
            ZC_TRY(progress(t, i, first, *total));
            ZC_TRY(try_problem(t, p, total, &changed));
        }
    }
    return ZC_OK;
}

/* ---- what was found ---- */

static zc_status config_of(const tuner *t, const problem *p, uint32_t choice, zc_buf *out)
{
    const zc_pkernel *k = kernel_of(t, p, choice);
    if (zc_config_text(k->family, k->config, out)) return ZC_OK;
    zc_buf_fini(out);
    return nomem(t);
}

static zc_status keep(tuner *t, const problem *p, zc_tuned *found)
{
    zc_buf config = {0};
    const zc_pkernel *k = kernel_of(t, p, p->holds);
    ZC_TRY(config_of(t, p, p->holds, &config));
    const zc_tuned_entry e = {.arch = t->device.arch,
                              .gpu = t->device.name,
                              .problem = p->text,
                              .family = k->family,
                              .config = config.len ? config.data : "",
                              .saved = p->saved / p->uses,
                              .cuda = t->cuda,
                              .day = t->day};
    zc_status status = zc_tuned_add(found, &e, t->diag);
    if (p->holds != p->began)
        tell(t, "%s: %s %s: %.2f us saved, %u times\n", p->text, e.family, e.config, e.saved,
             p->uses);
    zc_buf_fini(&config);
    return status;
}

static zc_status tell_times(tuner *t, const problem *p)
{
    for (uint32_t c = 0; t->params->alternatives && c < p->nchoices; c++) {
        zc_buf config = {0};
        if (!(p->us[c] > 0)) continue;
        ZC_TRY(config_of(t, p, c, &config));
        tell(t, "%s: %s %s: %.2f us a run\n", p->text, kernel_of(t, p, c)->family,
             config.len ? config.data : "", p->us[c]);
        zc_buf_fini(&config);
    }
    return ZC_OK;
}

static zc_status keep_all(tuner *t, double first, double total, zc_tuned *found)
{
    size_t known = 0, left = 0;
    for (size_t i = 0; i < t->problems.len; i++) {
        const problem *p = &t->problems.data[i];
        known += p->known;
        left += !p->known && !p->done;
        if (!p->done) continue;
        ZC_TRY(tell_times(t, p));
        ZC_TRY(keep(t, p, found));
    }
    tell(t,
         "%.1f us a run, %.1f at first: %zu problems (%zu known, %zu left for lack of time), %zu "
         "trials in %.1f s, %u kernels compiled in %.1f s\n",
         total, first, t->problems.len, known, left, t->tried, t->measuring, t->program.nkernels,
         t->compiling);
    return ZC_OK;
}

/* ---- the road ---- */

/* Is there something to measure, and with shapes that are certain? */
static bool has_work(tuner *t)
{
    const zc_pblock *top = &t->program.blocks[0];
    zc_tensor in;
    size_t bytes;
    for (uint32_t i = 0; t->sized && i < top->nparams; i++) {
        if (shape_of(t, top->params[i], &in, &bytes)) continue;
        tell(t,
             "no kernel is measured: the shape of input %s is not certain (fix its dimensions, or "
             "name sizes with a profile)\n",
             t->program.input_names[i]);
        return false;
    }
    for (size_t i = 0; i < t->problems.len; i++)
        if (!t->problems.data[i].known) return true;
    tell(t, "nothing is left to measure: %zu problems known\n", t->problems.len);
    return false;
}

/* What ran when the device failed; a device that is lost says only that something did. */
static zc_status blame(const tuner *t, zc_status status)
{
    zc_buf config = {0};
    if (!t->running || config_of(t, t->running, t->choice, &config) != ZC_OK) return status;
    (void)zc_fail(t->diag, status, t->running->text, "while %s %s was tried",
                  kernel_of(t, t->running, t->choice)->family, config.len ? config.data : "");
    zc_buf_fini(&config);
    return status;
}

static zc_status measure(tuner *t, zc_tuned *found)
{
    double first, total;
    ZC_TRY(load(t));
    ZC_TRY(bind(t));
    t->running = NULL;
    zc_status status = compare(t);
    if (status != ZC_OK) return blame(t, status);
    ZC_TRY(find_batch(t, &first));
    double start = now();
    t->end = start + t->params->seconds;
    total = first;
    status = descend(t, first, &total);
    t->measuring = now() - start;
    if (status != ZC_OK) (void)blame(t, status);
    zc_status kept = keep_all(t, first, total, found); /* what was measured before holds */
    return status == ZC_OK ? kept : status;
}

static zc_status tune_variant(tuner *t, const zc_program *p, size_t variant, zc_tuned *found)
{
    double start = now();
    zc_status status = choose(t, p, variant);
    t->compiling = now() - start;
    if (status == ZC_OK) status = find_problems(t);
    if (status == ZC_OK && has_work(t)) status = measure(t, found);
    release(t);
    t->problems.len = 0;
    return status;
}

static zc_status describe_machine(tuner *t)
{
    int version;
    struct tm day;
    time_t seconds = time(NULL);
    ZC_TRY(zc_device_open(0, &t->device, t->diag));
    ZC_TRY(zc_device_check(&t->device, t->device.cu.driver_version(&version), "cuDriverGetVersion",
                           t->diag));
    snprintf(t->cuda, sizeof t->cuda, "%d.%d", version / 1000, version % 1000 / 10);
    if (!gmtime_r(&seconds, &day) || !strftime(t->day, sizeof t->day, "%Y-%m-%d", &day))
        return zc_fail(t->diag, ZC_ERR_INTERNAL, "tuning", "the clock tells no day");
    return ZC_OK;
}

static zc_status tune_all(tuner *t, const zc_program *p, zc_tuned *found)
{
    size_t variants = 1;
    for (size_t i = 0; i < t->params->nprofiles; i++)
        if (!zc_mul_size(variants, t->params->profiles[i].count, &variants)) return nomem(t);
    for (size_t v = 0; v < variants; v++) ZC_TRY(tune_variant(t, p, v, found));
    return ZC_OK;
}

zc_status zc_tune_program(const zc_program *p, const zc_tuner_params *params, zc_tuned *found,
                          zc_diag *diag)
{
    tuner t = {.params = params, .diag = diag};
    zc_arena_init(&t.arena, 0);
    zc_status status = describe_machine(&t);
    static const zc_tuned nothing = {.entries = {0}};
    t.lookup =
        (zc_tuner_lookup){.known = params->again ? &nothing : params->known, .gpu = t.device.name};
    if (status == ZC_OK) status = tune_all(&t, p, found);
    ZC_VEC_FINI(&t.problems);
    ZC_VEC_FINI(&t.memory);
    zc_device_close(&t.device);
    zc_arena_fini(&t.arena);
    return status;
}
