#include "cli/bench_saved.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/file.h"
#include "base/number.h"

enum { FILE_MOST = 64 << 20 };

typedef struct reader {
    const char *path;
    char *at; /* the rest; lines end at NUL bytes once they are read */
    size_t line;
    char *now; /* the line that is looked at; NULL at the end */
    bench_saved *out;
    zc_diag *diag;
} reader;

static void next_line(reader *r)
{
    char *end = strchr(r->at, '\n');
    r->line++;
    r->now = *r->at ? r->at : NULL;
    if (end) *end = '\0';
    r->at = end ? end + 1 : r->at + strlen(r->at);
}

static zc_status damaged(const reader *r, const char *need)
{
    return zc_fail(r->diag, ZC_ERR_INPUT, r->path, "line %zu: need %s", r->line, need);
}

static zc_status no_memory(const reader *r)
{
    return zc_fail_nomem(r->diag, "times", r->line);
}

const char *bench_saved_behind(const char *line, const char *key)
{
    size_t n = strlen(key);
    return line && strncmp(line, key, n) == 0 && line[n] == ' ' ? line + n + 1 : NULL;
}

/* The number that the text begins with, and where the next one does. */
static bool number(const char **text, double least, double most, double *out)
{
    char *end;
    double v = zc_strtod(*text, &end);
    if (end == *text || !(v >= least && v < most) || (*end && *end != ' ')) return false;
    *out = v;
    *text = *end ? end + 1 : end;
    return true;
}

/* Up to `most` positive numbers, separated by spaces; false when there is anything else. */
static bool numbers(const char *text, size_t most, double *out, size_t *n)
{
    for (*n = 0; text && *text && *n < most; ++*n)
        if (!number(&text, 0, 1e12, &out[*n])) return false;
    return *n > 0 && !*text;
}

/* ---- the parts of the file ---- */

static zc_status read_head(reader *r)
{
    next_line(r);
    if (!r->now || strcmp(r->now, BENCH_FIRST_LINE) != 0)
        return damaged(r, "\"" BENCH_FIRST_LINE "\"");
    for (; r->now && !bench_saved_behind(r->now, "run") && !bench_saved_behind(r->now, "step");
         next_line(r))
        if (!ZC_VEC_PUSH(&r->out->head, r->now)) return no_memory(r);
    return ZC_OK;
}

static zc_status read_runs(reader *r)
{
    for (const char *text; (text = bench_saved_behind(r->now, "run")); next_line(r)) {
        double ms;
        size_t one;
        if (r->out->runs.len == BENCH_RUNS_KEPT) return damaged(r, "no more runs");
        if (!numbers(text, 1, &ms, &one)) return damaged(r, "a run's milliseconds");
        if (!ZC_VEC_PUSH(&r->out->runs, ms)) return no_memory(r);
    }
    return r->out->runs.len ? ZC_OK : damaged(r, "runs");
}

/* "JOULES WATTS" */
static bool read_joules(const char *text, bench_saved_energy *out)
{
    return number(&text, 0, 1e12, &out->joules) && number(&text, 0, 1e12, &out->watts) && !*text;
}

static zc_status read_energy(reader *r)
{
    for (const char *text; (text = bench_saved_behind(r->now, "energy")); next_line(r)) {
        const char *gpu = bench_saved_behind(text, "gpu"), *cpu = bench_saved_behind(text, "cpu");
        if (!(gpu ? read_joules(gpu, &r->out->gpu) : cpu ? read_joules(cpu, &r->out->cpu) : false))
            return damaged(r, "gpu or cpu, joules a run and watts");
    }
    r->out->clocks = bench_saved_behind(r->now, "clocks");
    if (r->out->clocks) next_line(r);
    return ZC_OK;
}

/* "TYPE RATE" of the tensor cores. */
static bool read_peak(const char *text, zc_peaks *out)
{
    for (int p = ZC_PEAK_F32 + 1; p < ZC_PEAK_COUNT; p++) {
        const char *rate = bench_saved_behind(text, zc_peak_name((zc_peak)p));
        if (rate) return number(&rate, 1, 1e21, &out->operations[p]) && !*rate;
    }
    return false;
}

static zc_status read_peaks(reader *r)
{
    const char *text = bench_saved_behind(r->now, "peaks");
    zc_peaks *p = &r->out->peaks;
    if (!text) return ZC_OK;
    if (!number(&text, 1, 1e18, &p->bytes) ||
        !number(&text, 0, 1e18, &p->operations[ZC_PEAK_F32]) || *text)
        return damaged(r, "bytes and operations a second");
    for (next_line(r); (text = bench_saved_behind(r->now, "peak")); next_line(r))
        if (!read_peak(text, p)) return damaged(r, "a type and its operations a second");
    text = bench_saved_behind(r->now, "launch");
    if (!text) return ZC_OK;
    if (!number(&text, 0, 1e9, &p->launch) || *text) return damaged(r, "a launch's microseconds");
    p->launch *= 1e-6;
    next_line(r);
    return ZC_OK;
}

/* "NUMBER OPERATION NAME" */
static bool read_named(char *text, bench_saved_step *s)
{
    char *op;
    s->number = strtoull(text, &op, 10);
    if (op == text || *op != ' ') return false;
    char *name = strchr(++op, ' ');
    if (!name) return false;
    *name = '\0';
    s->op = op;
    s->name = name + 1;
    return true;
}

static bool read_work(const char *text, bench_saved_step *s)
{
    s->has_work = number(&text, 0, 1e18, &s->bytes_in) && number(&text, 0, 1e18, &s->bytes_out) &&
                  number(&text, -1, 1e21, &s->operations);
    if (*text) s->kernel = text;
    return s->has_work;
}

static zc_status read_step(reader *r)
{
    double us[BENCH_STEP_RUNS];
    bench_saved_step s = {.op = NULL};
    const char *text = bench_saved_behind(r->now, "step");
    if (r->out->steps.len == BENCH_STEPS_MOST) return damaged(r, "no more steps");
    if (!text || !read_named(r->now + (text - r->now), &s)) return damaged(r, "a step");
    next_line(r);
    if (!numbers(bench_saved_behind(r->now, "us"), BENCH_STEP_RUNS, us, &s.runs))
        return damaged(r, "a step's microseconds");
    s.us = zc_arena_dup(&r->out->arena, us, s.runs, sizeof *us);
    if (!s.us) return no_memory(r);
    next_line(r);
    text = bench_saved_behind(r->now, "work");
    if (text && !read_work(text, &s)) return damaged(r, "a step's bytes and operations");
    if (text) next_line(r);
    text = bench_saved_behind(r->now, "products");
    s.products = text ? text : "";
    if (text) next_line(r);
    return ZC_VEC_PUSH(&r->out->steps, s) ? ZC_OK : no_memory(r);
}

zc_status bench_saved_parse(const char *text, size_t len, const char *path, bench_saved *out,
                            zc_diag *diag)
{
    zc_arena_init(&out->arena, 0);
    char *own = zc_arena_strndup(&out->arena, text, len);
    if (!own) return zc_fail_nomem(diag, "times", len);
    reader r = {.path = path, .at = own, .out = out, .diag = diag};
    const size_t text_len = strlen(own);
    ZC_TRY(read_head(&r));
    if (text_len != len) return zc_fail(diag, ZC_ERR_INPUT, path, "need text (got a NUL byte)");
    ZC_TRY(read_runs(&r));
    ZC_TRY(read_energy(&r));
    ZC_TRY(read_peaks(&r));
    while (r.now) ZC_TRY(read_step(&r));
    return ZC_OK;
}

zc_status bench_saved_read(const char *path, bench_saved *out, zc_diag *diag)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    ZC_TRY(zc_file_read(path, FILE_MOST, &bytes, &len, diag));
    zc_status status = bench_saved_parse((const char *)bytes, len, path, out, diag);
    free(bytes);
    return status;
}

void bench_saved_free(bench_saved *s)
{
    ZC_VEC_FINI(&s->head);
    ZC_VEC_FINI(&s->runs);
    ZC_VEC_FINI(&s->steps);
    zc_arena_fini(&s->arena);
}
