/* Times in a file, one fact a line:
 *
 *   zc-bench 1
 *   model SHA-256
 *   device NAME
 *   threads N
 *   concurrency N
 *   transfers none                with --no-transfers alone
 *   input TYPE NAME
 *   run MS                        in their order, at most RUNS_KEPT, evenly chosen
 *   step NUMBER OPERATION NAME
 *   us MICROSECONDS ...           of the step before, a run each
 *
 * Names are written as cli_put prints them, so that each stays in its line. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/number.h"
#include "cli/bench.h"
#include "cli/stats.h"

enum { RUNS_KEPT = 3000, STEP_RUNS = 200, FILE_MOST = 64 << 20 };

static const char first_line[] = "zc-bench 1";

/* ---- what the times are of ---- */

static void put_identity(FILE *out, const bench_target *t, const bench_options *o)
{
    zc_device_info device = {.name = "", .kind = ZC_DEVICE_CPU};
    char cpu[CLI_CPU_MAX];
    (void)zc_session_device(t->session, &device);
    fprintf(out, "%s\nmodel %s\ndevice ", first_line, t->info.model_sha256);
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

static void put_step(FILE *out, size_t i, const cli_profile_step *s)
{
    fprintf(out, "step %zu %s ", i, s->info.op);
    cli_put(out, s->info.name);
    fputc('\n', out);
}

static void put_all(FILE *out, const bench_target *t, const bench_options *o)
{
    const bench_times *times = &t->times;
    size_t kept = times->n < RUNS_KEPT ? times->n : RUNS_KEPT;
    put_identity(out, t, o);
    for (size_t i = 0; i < kept; i++)
        fprintf(out, "run %.6f\n", times->v[times->n * i / kept] * 1e3);
    for (size_t i = 0; i < t->steps.n; i++) {
        put_step(out, i, &t->steps.steps[i]);
        fputs("us", out);
        for (size_t r = 0; r < t->steps.runs; r++) fprintf(out, " %.3f", t->steps.steps[i].us[r]);
        fputc('\n', out);
    }
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

zc_status bench_save(const bench_target *t, const bench_options *o, const char *path, zc_diag *diag)
{
    char *text = NULL;
    size_t len = 0;
    zc_status status = text_of(put_all, t, o, &text, &len, diag);
    if (status == ZC_OK) status = zc_file_write(path, text, len, diag);
    free(text);
    return status;
}

/* ---- reading ---- */

typedef struct reader {
    const char *path;
    char *at; /* the rest; lines end at NUL bytes once they are read */
    size_t line;
    zc_diag *diag;
} reader;

static char *next_line(reader *r)
{
    char *line = r->at, *end = strchr(line, '\n');
    if (!*line) return NULL;
    if (end) *end = '\0';
    r->at = end ? end + 1 : line + strlen(line);
    r->line++;
    return line;
}

static zc_status damaged(const reader *r, const char *need)
{
    return zc_fail(r->diag, ZC_ERR_INPUT, r->path, "line %zu: need %s", r->line, need);
}

static const char *behind(const char *line, const char *word)
{
    size_t n = strlen(word);
    return line && strncmp(line, word, n) == 0 && line[n] == ' ' ? line + n + 1 : NULL;
}

/* Up to `most` positive numbers, separated by spaces; false when there is anything else. */
static bool numbers(const char *text, size_t most, double *out, size_t *n)
{
    for (*n = 0; text && *text && *n < most; ++*n) {
        char *end;
        double v = zc_strtod(text, &end);
        if (end == text || !(v >= 0 && v < 1e12) || (*end && *end != ' ')) return false;
        out[*n] = v;
        text = *end ? end + 1 : end;
    }
    return *n > 0 && !*text;
}

/* The file's first lines say what these do: `need` is text of put_identity. */
static zc_status same_identity(reader *r, char *need)
{
    reader own = {.at = need};
    for (char *want; (want = next_line(&own));) {
        char *got = next_line(r);
        if (got && strcmp(got, want) == 0) continue;
        if (r->line <= 1) return damaged(r, "\"zc-bench 1\"");
        return zc_fail(r->diag, ZC_ERR_INPUT, r->path,
                       "times of something else (got '" ZC_NAME "', need '" ZC_NAME "')",
                       got ? got : "", want);
    }
    return ZC_OK;
}

static zc_status read_runs(reader *r, double *out, size_t *n, char **line)
{
    for (*n = 0; (*line = next_line(r)) && behind(*line, "run"); ++*n) {
        size_t one;
        if (*n == RUNS_KEPT) return damaged(r, "no more runs");
        if (!numbers(behind(*line, "run"), 1, &out[*n], &one))
            return damaged(r, "a run's milliseconds");
    }
    return *n ? ZC_OK : damaged(r, "runs");
}

/* ---- judging ---- */

static zc_status slower(const reader *r, const bench_target *t, const bench_options *o, double was,
                        double is)
{
    return zc_fail(r->diag, ZC_ERR_ACCURACY, t->path,
                   "slower than " ZC_NAME " by more than %s (got %.3f ms, was %.3f, %+.1f %%)",
                   r->path, o->max_slowdown, is, was, 100 * (is / was - 1));
}

/* "OPERATION NAME", as the file has it. */
static bool is_step(const cli_profile_step *s, const char *named)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (out) {
        fprintf(out, "%s ", s->info.op);
        cli_put(out, s->info.name);
    }
    bool same = out && fclose(out) == 0 && strcmp(text, named) == 0;
    free(text);
    return same;
}

/* The step that was the file's step `was`: under the same number where the name is the same, else
 * the first of this name. */
static const cli_profile_step *find_step(const cli_profile *p, uint64_t was, const char *named)
{
    if (was < p->n && is_step(&p->steps[was], named)) return &p->steps[was];
    for (size_t i = 0; i < p->n; i++)
        if (is_step(&p->steps[i], named)) return &p->steps[i];
    return NULL;
}

static void judge_step(const reader *r, const cli_profile *p, const bench_options *o,
                       const cli_profile_step *s, const double *us, size_t n)
{
    zc_interval was;
    if (cli_chance(us, n, s->us, p->runs, 1 + o->slowdown) >= CLI_CHANCE ||
        !zc_median_of(us, n, &was))
        return;
    (void)zc_fail(r->diag, ZC_ERR_ACCURACY, s->info.name,
                  "step %zu (%s) became slower (got %.2f us, was %.2f, %+.1f %%)",
                  (size_t)(s - p->steps), s->info.op, s->time.mid, was.mid,
                  100 * (s->time.mid / was.mid - 1));
}

static zc_status judge_steps(reader *r, const bench_target *t, const bench_options *o, char *line)
{
    double us[STEP_RUNS];
    for (size_t n; line; line = next_line(r)) {
        char *named = NULL;
        const char *number = behind(line, "step");
        uint64_t i = number ? strtoull(number, &named, 10) : 0;
        if (!number || named == number || *named != ' ') return damaged(r, "a step");
        if (!numbers(behind(next_line(r), "us"), STEP_RUNS, us, &n))
            return damaged(r, "a step's microseconds");
        const cli_profile_step *s = find_step(&t->steps, i, named + 1);
        if (s) judge_step(r, &t->steps, o, s, us, n);
    }
    return ZC_OK;
}

static zc_status judge(reader *r, const bench_target *t, const bench_options *o, double *was,
                       double *is)
{
    size_t n;
    char *line;
    zc_interval before, now;
    ZC_TRY(read_runs(r, was, &n, &line));
    for (size_t i = 0; i < t->times.n; i++) is[i] = t->times.v[i] * 1e3;
    if (!zc_median_of(was, n, &before) || !zc_median_of(is, t->times.n, &now))
        return zc_fail_nomem(r->diag, "times", n);
    if (cli_chance(was, n, is, t->times.n, 1 + o->slowdown) >= CLI_CHANCE) {
        if (!o->json)
            printf("not slower than the baseline by more than %s (%.3f ms, was %.3f)\n",
                   o->max_slowdown, now.mid, before.mid);
        return ZC_OK;
    }
    zc_status status = slower(r, t, o, before.mid, now.mid);
    zc_status steps = judge_steps(r, t, o, line);
    return steps == ZC_OK ? status : steps;
}

/* r stands behind what the times are of; the caller frees *bytes. */
static zc_status open_times(reader *r, const bench_target *t, const bench_options *o,
                            uint8_t **bytes)
{
    size_t len = 0;
    char *own = NULL;
    ZC_TRY(zc_file_read(r->path, FILE_MOST, bytes, &len, r->diag));
    r->at = (char *)*bytes;
    zc_status status = text_of(put_identity, t, o, &own, &len, r->diag);
    if (status == ZC_OK) status = same_identity(r, own);
    free(own);
    return status;
}

zc_status bench_check(const bench_target *t, const bench_options *o, zc_diag *diag)
{
    uint8_t *bytes = NULL;
    reader r = {.path = o->baseline, .diag = diag};
    zc_status status = open_times(&r, t, o, &bytes);
    free(bytes);
    return status;
}

zc_status bench_against(const bench_target *t, const bench_options *o, zc_diag *diag)
{
    uint8_t *bytes = NULL;
    double *was = zc_calloc(RUNS_KEPT, sizeof *was), *is = zc_calloc(t->times.n, sizeof *is);
    reader r = {.path = o->baseline, .diag = diag};
    zc_status status = was && is ? ZC_OK : zc_fail_nomem(diag, "times", t->times.n);
    if (status == ZC_OK) status = open_times(&r, t, o, &bytes);
    if (status == ZC_OK) status = judge(&r, t, o, was, is);
    free(bytes);
    free(was);
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
        if (cli_chance(a->v, a->n, b->v, b->n, 1 + o->slowdown) >= CLI_CHANCE) continue;
        if (!zc_median_of(a->v, a->n, &was) || !zc_median_of(b->v, b->n, &is))
            return zc_fail_nomem(diag, "times", b->n);
        reader r = {.path = targets[0].path, .diag = diag};
        status = slower(&r, &targets[i], o, was.mid * 1e3, is.mid * 1e3);
    }
    return status;
}
