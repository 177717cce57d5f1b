/* Times in a file (cli/bench_saved.h), and comparing with them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/bench.h"
#include "cli/bench_saved.h"
#include "cli/environment.h"
#include "cli/stats.h"

/* ---- what the times are of ---- */

static void put_identity(FILE *out, const bench_target *t, const bench_options *o)
{
    zc_device_info device = {.name = "", .kind = ZC_DEVICE_CPU};
    char cpu[CLI_CPU_MAX];
    (void)zc_session_device(t->session, &device);
    fprintf(out, "%s\nmodel %s\ndevice ", BENCH_FIRST_LINE, t->info.model_sha256);
    const char *name = device.kind == ZC_DEVICE_CUDA ? device.name : cli_cpu_name(cpu);
    cli_put(out, *name ? name : "cpu");
    fprintf(out, "\nthreads %d\nconcurrency %lld\n", bench_threads(o), (long long)o->concurrency);
    if (o->no_transfers) fputs("transfers none\n", out);
    for (size_t i = 0; i < t->values.n; i++) {
        char type[256];
        zc_io_info io;
        if (zc_plan_input(t->plan, i, &io, NULL) != ZC_OK) continue;
        fprintf(out, "input %s ", zc_tensor_type_text(&t->values.v[i], type, sizeof type));
        cli_put(out, io.name);
        fputc('\n', out);
    }
}

static void put_step(FILE *out, const cli_profile *p, size_t i)
{
    const cli_profile_step *s = &p->steps[i];
    fprintf(out, "step %zu %s ", i, s->info.op);
    cli_put(out, s->info.name);
    fputs("\nus", out);
    for (size_t r = 0; r < p->runs; r++) fprintf(out, " %.3f", s->us[r]);
    fprintf(out, "\nwork %.0f %.0f %.0f", s->info.bytes_in, s->info.bytes_out, s->info.operations);
    if (s->info.kernel) {
        fputc(' ', out);
        cli_put(out, s->info.kernel);
    }
    fputc('\n', out);
    if (*s->info.products) fprintf(out, "products %s\n", s->info.products);
}

static void put_energy(FILE *out, const char *whose, double joules, double watts, double runs)
{
    if (!isnan(joules)) fprintf(out, "energy %s %.9f %.3f\n", whose, joules / runs, watts);
}

static void put_reading(FILE *out, const cli_reading *r, double runs)
{
    put_energy(out, "gpu", r->gpu_joules, r->gpu_watts, runs);
    put_energy(out, "cpu", r->cpu_joules, r->cpu_watts, runs);
    if (isnan(r->sm_low)) return;
    fputs("clocks ", out);
    cli_put_clocks(out, r);
    fputc('\n', out);
}

static void put_peaks(FILE *out, const zc_peaks *v)
{
    if (!(v->bytes > 0)) return;
    fprintf(out, "peaks %.0f %.0f\n", v->bytes, v->operations[ZC_PEAK_F32]);
    for (int p = ZC_PEAK_F32 + 1; p < ZC_PEAK_COUNT; p++)
        if (v->operations[p] > 0)
            fprintf(out, "peak %s %.0f\n", zc_peak_name((zc_peak)p), v->operations[p]);
    if (v->launch > 0) fprintf(out, "launch %.3f\n", v->launch * 1e6);
}

static void put_all(FILE *out, const bench_target *t, const bench_options *o)
{
    const bench_times *times = &t->times;
    size_t kept = times->n < BENCH_RUNS_KEPT ? times->n : BENCH_RUNS_KEPT;
    put_identity(out, t, o);
    for (size_t i = 0; i < kept; i++)
        fprintf(out, "run %.6f\n", times->v[times->n * i / kept] * 1e3);
    put_reading(out, &t->reading, (double)times->runs);
    put_peaks(out, &t->peaks);
    for (size_t i = 0; i < t->steps.n; i++) put_step(out, &t->steps, i);
}

/* The same as text in memory, which the caller frees. */
static zc_status text_of(void (*put)(FILE *, const bench_target *, const bench_options *),
                         const bench_target *t, const bench_options *o, char **text, size_t *len,
                         zc_diag *diag)
{
    FILE *out = open_memstream(text, len);
    if (out) put(out, t, o);
    if (!out || fclose(out) != 0) return zc_fail_nomem(diag, "times", 0);
    return ZC_OK;
}

zc_status bench_text(const bench_target *t, const bench_options *o, char **text, size_t *len,
                     zc_diag *diag)
{
    return text_of(put_all, t, o, text, len, diag);
}

zc_status bench_save(const bench_target *t, const bench_options *o, const char *path, zc_diag *diag)
{
    char *text = NULL;
    size_t len = 0;
    zc_status status = bench_text(t, o, &text, &len, diag);
    if (status == ZC_OK) status = zc_file_write(path, text, len, diag);
    free(text);
    return status;
}

/* ---- judging ---- */

/* The file's first lines say what these do: `need` is text of put_identity. */
static zc_status same_identity(const bench_saved *was, const char *path, char *need, zc_diag *diag)
{
    size_t i = 0;
    for (char *rest = need, *want; (want = strsep(&rest, "\n")) && *want; i++) {
        const char *got = i < was->head.len ? was->head.data[i] : "";
        if (strcmp(got, want) != 0)
            return zc_fail(diag, ZC_ERR_INPUT, path,
                           "times of something else (got '" ZC_NAME "', need '" ZC_NAME "')", got,
                           want);
    }
    return ZC_OK;
}

static zc_status slower(const char *than, const bench_target *t, const bench_options *o, double was,
                        double is, zc_diag *diag)
{
    return zc_fail(diag, ZC_ERR_ACCURACY, t->path,
                   "slower than " ZC_NAME " by more than %s (got %.3f ms, was %.3f, %+.1f %%)",
                   than, o->max_slowdown, is, was, 100 * (is / was - 1));
}

/* Is the text what cli_put prints of the name? */
static bool is_named(const char *name, const char *text)
{
    zc_buf own = {0};
    zc_buf_escape(&own, name, strlen(name));
    bool same = !own.failed && strcmp(own.data ? own.data : "", text) == 0;
    zc_buf_fini(&own);
    return same;
}

bool bench_is_step(const cli_profile_step *s, const bench_saved_step *was)
{
    return strcmp(s->info.op, was->op) == 0 && is_named(s->info.name, was->name);
}

/* The step that was the file's step: under the same number where the name is the same, else the
 * first of this name. */
static const cli_profile_step *find_step(const cli_profile *p, const bench_saved_step *was)
{
    if (was->number < p->n && bench_is_step(&p->steps[was->number], was))
        return &p->steps[was->number];
    for (size_t i = 0; i < p->n; i++)
        if (bench_is_step(&p->steps[i], was)) return &p->steps[i];
    return NULL;
}

static bool is_run_slower(const double *was, size_t nwas, const double *is, size_t nis,
                          const bench_options *o)
{
    const cli_limit limit = {.factor = 1 + o->slowdown};
    return cli_chance(was, nwas, is, nis, limit) < CLI_CHANCE;
}

static zc_status judge_run(const bench_saved *was, const bench_target *t, const bench_options *o,
                           const double *is, zc_diag *diag)
{
    zc_interval before, now;
    if (!zc_median_of(was->runs.data, was->runs.len, &before) ||
        !zc_median_of(is, t->times.n, &now))
        return zc_fail_nomem(diag, "times", was->runs.len);
    if (is_run_slower(was->runs.data, was->runs.len, is, t->times.n, o))
        return slower(o->baseline, t, o, before.mid, now.mid, diag);
    if (!o->json)
        printf("the run is not slower than the baseline by more than %s (%.3f ms, was %.3f)\n",
               o->max_slowdown, now.mid, before.mid);
    return ZC_OK;
}

/* Steps of both; returns how many. */
static size_t pair_steps(const bench_saved *was, const cli_profile *p, bench_pair *out)
{
    size_t n = 0;
    for (size_t i = 0; i < was->steps.len; i++) {
        const bench_saved_step *before = &was->steps.data[i];
        const cli_profile_step *s = find_step(p, before);
        if (!s) continue;
        out[n++] = (bench_pair){
            .step = s, .was = before->us, .was_n = before->runs, .is = s->us, .is_n = p->runs};
    }
    return n;
}

static zc_status report_steps(const bench_pair *pairs, size_t n, const cli_profile *p,
                              zc_diag *diag)
{
    zc_status status = ZC_OK;
    for (const bench_pair *s = pairs; s < pairs + n; s++)
        if (s->slower)
            status = zc_fail(diag, ZC_ERR_ACCURACY, s->step->info.name,
                             "step %zu (%s) became slower (got %.2f us, was %.2f, %+.1f %%)",
                             (size_t)(s->step - p->steps), s->step->info.op, s->now.mid,
                             s->before.mid, 100 * (s->now.mid / s->before.mid - 1));
    return status;
}

/* alone: the run is not slower. */
static zc_status judge_steps(const bench_saved *was, const bench_target *t, const bench_options *o,
                             bool alone, zc_diag *diag)
{
    bench_pair *pairs = zc_calloc(was->steps.len ? was->steps.len : 1, sizeof *pairs);
    if (!pairs) return zc_fail_nomem(diag, "steps", was->steps.len);
    const size_t n = pair_steps(was, &t->steps, pairs);
    zc_status status = bench_judge_steps(pairs, n, 1 + o->slowdown, alone)
                           ? report_steps(pairs, n, &t->steps, diag)
                           : zc_fail_nomem(diag, "times of steps", n);
    if (status == ZC_OK && n && alone && !o->json) printf("nor is one of %zu steps\n", n);
    free(pairs);
    return status;
}

static zc_status judge(const bench_saved *was, const bench_target *t, const bench_options *o,
                       double *is, zc_diag *diag)
{
    for (size_t i = 0; i < t->times.n; i++) is[i] = t->times.v[i] * 1e3;
    const zc_status run = judge_run(was, t, o, is, diag);
    if (run != ZC_OK && run != ZC_ERR_ACCURACY) return run;
    const zc_status steps = judge_steps(was, t, o, run == ZC_OK, diag);
    return steps == ZC_OK ? run : steps;
}

/* The caller frees *was, also after a failure. */
static zc_status open_times(const bench_target *t, const bench_options *o, bench_saved *was,
                            zc_diag *diag)
{
    size_t len = 0;
    char *own = NULL;
    ZC_TRY(bench_saved_read(o->baseline, was, diag));
    zc_status status = text_of(put_identity, t, o, &own, &len, diag);
    if (status == ZC_OK) status = same_identity(was, o->baseline, own, diag);
    free(own);
    return status;
}

zc_status bench_check(const bench_target *t, const bench_options *o, zc_diag *diag)
{
    bench_saved was = {.peaks = {0}};
    zc_status status = open_times(t, o, &was, diag);
    bench_saved_free(&was);
    return status;
}

zc_status bench_against(const bench_target *t, const bench_options *o, zc_diag *diag)
{
    bench_saved was = {.peaks = {0}};
    double *is = zc_calloc(t->times.n, sizeof *is);
    zc_status status = is ? open_times(t, o, &was, diag) : zc_fail_nomem(diag, "times", t->times.n);
    if (status == ZC_OK) status = judge(&was, t, o, is, diag);
    bench_saved_free(&was);
    free(is);
    return status;
}

zc_status bench_among(const bench_target *targets, size_t n, const bench_options *o, zc_diag *diag)
{
    zc_status status = ZC_OK;
    const bench_times *a = &targets[0].times;
    for (size_t i = 1; i < n; i++) {
        const bench_times *b = &targets[i].times;
        zc_interval was, is;
        if (!is_run_slower(a->v, a->n, b->v, b->n, o)) continue;
        if (!zc_median_of(a->v, a->n, &was) || !zc_median_of(b->v, b->n, &is))
            return zc_fail_nomem(diag, "times", b->n);
        status = slower(targets[0].path, &targets[i], o, was.mid * 1e3, is.mid * 1e3, diag);
    }
    return status;
}
