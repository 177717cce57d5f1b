/* Checks every row of the CUDA kernel table against the CPU's reference kernels, or measures it, or
 * compiles it; usage() names the options. Needs a CUDA driver and NVRTC: real ones, or the tests'
 * own, which execute kernels on the CPU. --compile needs a real NVRTC alone. --filter: of names
 * "operation/family/types operands". --brief: one pair of element types of each case, the cases of
 * a row having them in turn; --rows: of each row's first case, not compiled for fixed sizes where
 * that is not needed. --small: not the sizes for a real GPU;
 * --not-finite: NaN and infinity in the operands, too; --part: every N-th variant. --cpu: the
 * CPU's fast kernels, with NaN and infinity in the operands. --takes: what each row takes of
 * pointwise work, without running anything. */
#include <regex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { FAMILIES_MAX = 96, ROWS_MAX = 256 };

static const struct {
    const char *op, *family;
} rows[] = {
#define KERNEL(op, family) {#op, #family},
#include "op/kernels.def"
};

static const char *const families[] = {
#define FAMILY(name, template) #name,
#include "op/kernels.def"
};

typedef struct totals {
    kc_result family[FAMILIES_MAX];
    int row[ROWS_MAX];  /* variants whose kernel was run, or compiled */
    bool fast[KC_FAST]; /* by row of fast.def: was run */
    int variants;
} totals;

typedef struct job {
    const kc_options *o;
    const regex_t *filter;
    int index, pair;   /* `pair` of the case's element types is next */
    atomic_int *taken; /* how many variants the workers have taken */
    int mine;          /* the one that this worker has */
    zc_device *d;
    kc_compiler *compiler;
    const kc_case *c;
    totals sum;
    bool ok;
} job;

/* ---- coverage ---- */

static bool has_case(const char *op, const char *family)
{
    for (size_t i = 0; i < kc_case_count; i++)
        if (strcmp(kc_cases[i].op, op) == 0 && strcmp(kc_cases[i].family, family) == 0) return true;
    return false;
}

static int check_coverage(void)
{
    int missing = 0;
    for (size_t i = 0; i < ZC_COUNTOF(rows); i++) {
        if (has_case(rows[i].op, rows[i].family)) continue;
        printf("FAIL no case for the row KERNEL(%s, %s)\n", rows[i].op, rows[i].family);
        missing++;
    }
    for (int op = 1; op < ZC_OP_COUNT; op++) {
        const zc_op_info *info = zc_op_get((zc_op)op);
        if (!(info->flags & ZC_OPF_POINTWISE) || has_case(info->name, "pointwise")) continue;
        printf("FAIL no case for the pointwise operation %s\n", info->name);
        missing++;
    }
    for (size_t i = 0; i < kc_case_count; i++) {
        if (!kc_cases[i].finite == !kc_cases[i].because) continue;
        printf("FAIL %s (%s): operands without NaN and a reason for it go together\n",
               kc_cases[i].op, kc_cases[i].in);
        missing++;
    }
    return missing;
}

static int check_takes(void)
{
    int failed = 0;
    for (size_t i = 0; i < ZC_COUNTOF(rows); i++)
        failed += kc_check_takes(rows[i].op, rows[i].family);
    return failed ? 1 : 0;
}

/* When all is done every row must have been executed where this runs, or compiled. */
static int check_rows(const kc_options *o, const totals *sum)
{
    const char *done = o->targets.narchs ? "compiled" : "executed";
    int missing = 0;
    if (o->filter || o->parts > 1) return 0;
    if (o->cpu) return kc_check_cpu_rows(sum->fast);
    for (size_t i = 0; i < ZC_COUNTOF(rows); i++) {
        if (sum->row[i]) continue;
        printf("FAIL the row KERNEL(%s, %s) was not %s\n", rows[i].op, rows[i].family, done);
        missing++;
    }
    printf("%d of %zu rows were not %s\n", missing, ZC_COUNTOF(rows), done);
    return missing;
}

/* ---- work ---- */

static int family_index(const char *name)
{
    for (size_t i = 0; i < ZC_COUNTOF(families); i++)
        if (strcmp(families[i], name) == 0) return (int)i;
    return FAMILIES_MAX - 1;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void count_row(totals *sum, const kc_case *c)
{
    for (size_t i = 0; i < ZC_COUNTOF(rows); i++)
        if (strcmp(rows[i].op, c->op) == 0 && strcmp(rows[i].family, c->family) == 0) sum->row[i]++;
}

static bool check_variant(job *j, const kc_variant *v, const char *name)
{
    kc_result *r = &j->sum.family[family_index(j->c->family)], one = {0};
    double start = seconds();
    bool ok = j->o->cpu ? kc_check_cpu(j->o, v, j->sum.fast, &one)
                        : kc_check_variant(j->o, j->d, v, &one);
    if (j->o->verbose)
        printf("%s %s: %d runs, worst %.4g units, %.0f%% of what is allowed, %.2f s\n",
               one.failed ? "fail" : "pass", name, one.runs, one.worst, 100 * one.tightest,
               seconds() - start);
    r->runs += one.runs;
    r->failed += one.failed;
    r->without_f64 += one.without_f64;
    if (one.worst > r->worst) r->worst = one.worst;
    if (one.tightest > r->tightest) r->tightest = one.tightest;
    return ok;
}

/* Compiling alone is one process's work. */
static int workers(const kc_options *o)
{
    return o->list || o->targets.narchs ? 1 : o->jobs;
}

int kc_row_number(const kc_case *c)
{
    int n = 0;
    for (const kc_case *k = kc_cases; k != c; k++)
        n += strcmp(k->op, c->op) == 0 && strcmp(k->family, c->family) == 0;
    return n;
}

/* The number of the pair of element types that stands for its case. */
static int fixed_pair(const kc_options *o, const kc_case *c)
{
    int pairs = 1;
    for (const char *p = c->types; (p = strchr(p, ' ')); p++) pairs++;
    return o->brief ? kc_row_number(c) % pairs : 0;
}

static void run_variant(job *j, const kc_variant *v, const char *name)
{
    if (j->o->list) {
        printf("%s %s\n", name, j->c->in);
        return;
    }
    if (j->o->bench) {
        j->ok &= kc_bench_variant(j->o, j->d, v);
        return;
    }
    j->sum.variants++;
    count_row(&j->sum, j->c);
    j->ok &= j->compiler ? kc_compile_add(j->compiler, v) : check_variant(j, v, name);
}

static bool one_variant(void *arg, const char *pair)
{
    job *j = arg;
    kc_variant v;
    char name[160], full[512];
    if (!kc_variant_of(j->c, pair, &v)) {
        printf("FAIL %s: no element types: %s\n", j->c->op, pair);
        j->ok = false;
        return true;
    }
    v.fixed = j->pair++ == fixed_pair(j->o, j->c);
    snprintf(name, sizeof name, "%s/%s/%s", j->c->op, j->c->family, pair);
    snprintf(full, sizeof full, "%s %s", name, j->c->in);
    if (j->filter && regexec(j->filter, full, 0, NULL, 0) != 0) return true;
    if (j->c->flags & KC_BENCH_ONLY && !j->o->bench) return true;
    if (j->o->brief && !v.fixed) return true;
    if (j->o->rows && kc_row_number(j->c) > 0) return true;
    int i = j->index++, parts = j->o->parts;
    if (i % parts != j->o->part || i / parts != j->mine) return true;
    run_variant(j, &v, name);
    j->mine = atomic_fetch_add(j->taken, 1);
    return true;
}

static void all_cases(job *j)
{
    for (size_t i = 0; i < kc_case_count; i++) {
        j->c = &kc_cases[i];
        j->pair = 0;
        (void)kc_each(j->c->types, ' ', one_variant, j);
    }
}

static void on_device(job *j)
{
    zc_device d;
    zc_diag *diag = zc_diag_create();
    kc_options o = *j->o;
    if (zc_device_open(o.ordinal, &d, diag) != ZC_OK) {
        printf("FAIL %s\n", zc_diag_text(diag, 0));
        j->ok = false;
    } else {
        o.real = strncmp(d.name, "hostcuda", 8) != 0;
        j->o = &o;
        j->d = &d;
        all_cases(j);
        zc_device_close(&d);
    }
    zc_diag_destroy(&diag);
}

static void compile(job *j)
{
    j->compiler = kc_compile_create(j->o);
    if (j->compiler) all_cases(j);
    j->ok = j->compiler && kc_compile_all(j->compiler) && j->ok;
    kc_compile_destroy(j->compiler);
}

static void work(job *j)
{
    j->ok = true;
    j->mine = atomic_fetch_add(j->taken, 1);
    if (j->o->list)
        all_cases(j);
    else if (j->o->targets.narchs)
        compile(j);
    else if (j->o->cpu)
        all_cases(j);
    else
        on_device(j);
    fflush(stdout);
}

/* ---- workers ---- */

static void add(totals *to, const totals *from)
{
    to->variants += from->variants;
    for (int i = 0; i < ROWS_MAX; i++) to->row[i] += from->row[i];
    for (int i = 0; i < KC_FAST; i++) to->fast[i] |= from->fast[i];
    for (int f = 0; f < FAMILIES_MAX; f++) {
        kc_result *a = &to->family[f];
        const kc_result *b = &from->family[f];
        a->runs += b->runs;
        a->failed += b->failed;
        a->without_f64 += b->without_f64;
        if (b->worst > a->worst) a->worst = b->worst;
        if (b->tightest > a->tightest) a->tightest = b->tightest;
    }
}

static bool collect(int fd, pid_t child, totals *sum)
{
    totals t;
    size_t got = 0;
    for (ssize_t n; got < sizeof t && (n = read(fd, (char *)&t + got, sizeof t - got)) > 0;)
        got += (size_t)n;
    close(fd);
    int status = 0;
    waitpid(child, &status, 0);
    if (got == sizeof t) add(sum, &t);
    if (WIFSIGNALED(status)) printf("FAIL a worker ended by signal %d\n", WTERMSIG(status));
    return got == sizeof t && status == 0;
}

static bool spread(const kc_options *o, const regex_t *filter, totals *sum)
{
    int fds[64][2];
    pid_t children[64];
    bool ok = true;
    atomic_int *taken =
        mmap(NULL, sizeof *taken, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (taken == MAP_FAILED) return false;
    if (workers(o) == 1) {
        job j = {.o = o, .filter = filter, .taken = taken};
        work(&j);
        *sum = j.sum;
        return j.ok;
    }
    for (int w = 0; w < workers(o); w++) {
        fflush(stdout);
        if (pipe(fds[w]) != 0 || (children[w] = fork()) < 0) return false;
        if (children[w] == 0) {
            job j = {.o = o, .filter = filter, .taken = taken};
            close(fds[w][0]);
            work(&j);
            ssize_t n = write(fds[w][1], &j.sum, sizeof j.sum);
            _exit(j.ok && n == (ssize_t)sizeof j.sum ? 0 : 1);
        }
        close(fds[w][1]);
    }
    for (int w = 0; w < workers(o); w++) ok &= collect(fds[w][0], children[w], sum);
    return ok;
}

static void report(const totals *sum)
{
    kc_result all = {0};
    printf("\n%-18s %6s %6s %12s %10s\n", "family", "runs", "failed", "worst (ulp)", "of allowed");
    for (size_t f = 0; f < ZC_COUNTOF(families); f++) {
        const kc_result *r = &sum->family[f];
        all.runs += r->runs;
        all.failed += r->failed;
        all.without_f64 += r->without_f64;
        if (r->runs)
            printf("%-18s %6d %6d %12.4g %9.0f%%\n", families[f], r->runs, r->failed, r->worst,
                   100 * r->tightest);
    }
    printf("%zu rows, %d variants, %d runs, %d failed; %d runs were held to the reference in the "
           "same type alone\n",
           ZC_COUNTOF(rows), sum->variants, all.runs, all.failed, all.without_f64);
}

/* ---- options ---- */

static int usage(void)
{
    fputs("usage: kernel_check [--filter REGEX] [--device N] [--seed N] [--jobs N] [--brief | "
          "--rows] [--small] [--cpu | --takes] [--not-finite]\n"
          "                    [--part K/N] [--no-graphs] [--list] [--verbose] [--bench [--json] | "
          "--compile "
          "ARCH[,ARCH]... [--noted]]\n",
          stderr);
    return 2;
}

static bool parse_targets(const char *list, kc_options *o)
{
    char text[128];
    const char *names[ZC_TARGETS_MAX];
    size_t n = 0;
    snprintf(text, sizeof text, "%s", list);
    for (char *name = strtok(text, ","); name; name = strtok(NULL, ",")) {
        if (n == ZC_COUNTOF(names)) return false;
        names[n++] = name;
    }
    return zc_targets_parse(names, n, &o->targets, NULL) == ZC_OK && o->targets.narchs > 0;
}

/* "2/5" */
static bool parse_part(const char *text, kc_options *o)
{
    if (sscanf(text, "%d/%d", &o->part, &o->parts) != 2) return false;
    o->part--;
    return o->parts >= 1 && o->part >= 0 && o->part < o->parts;
}

static bool parse(int argc, char **argv, kc_options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(a, "--bench") == 0)
            o->bench = true;
        else if (strcmp(a, "--json") == 0)
            o->json = true;
        else if (strcmp(a, "--list") == 0)
            o->list = true;
        else if (strcmp(a, "--brief") == 0)
            o->brief = true;
        else if (strcmp(a, "--rows") == 0)
            o->brief = o->rows = true;
        else if (strcmp(a, "--no-graphs") == 0)
            o->no_graphs = true;
        else if (strcmp(a, "--not-finite") == 0)
            o->planted = true;
        else if (strcmp(a, "--small") == 0)
            o->small = true;
        else if (strcmp(a, "--cpu") == 0)
            o->cpu = true;
        else if (strcmp(a, "--takes") == 0)
            o->takes = true;
        else if (strcmp(a, "--noted") == 0)
            o->noted = true;
        else if (strcmp(a, "--verbose") == 0)
            o->verbose = true;
        else if (!value)
            return false;
        else if (i++, strcmp(a, "--filter") == 0)
            o->filter = value;
        else if (strcmp(a, "--device") == 0)
            o->ordinal = atoi(value);
        else if (strcmp(a, "--seed") == 0)
            o->seed = strtoull(value, NULL, 10);
        else if (strcmp(a, "--jobs") == 0)
            o->jobs = atoi(value);
        else if (strcmp(a, "--part") == 0 && parse_part(value, o))
            continue;
        else if (strcmp(a, "--compile") == 0 && parse_targets(value, o))
            continue;
        else
            return false;
    }
    return o->jobs >= 1 && o->jobs <= 64;
}

int main(int argc, char **argv)
{
    kc_options o = {.jobs = 1, .parts = 1, .turn = -1, .seed = (uint64_t)time(NULL) % 100000};
    regex_t filter;
    FILE *turn = NULL;
    totals sum = {.variants = 0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!parse(argc, argv, &o)) return usage();
    if (o.takes) return check_takes();
    if (o.filter && regcomp(&filter, o.filter, REG_EXTENDED | REG_NOSUB) != 0) return usage();
    if (o.bench && workers(&o) > 1) {
        if (!(turn = tmpfile())) return perror("temporary file"), 1;
        o.turn = fileno(turn);
    }
    int missing = check_coverage();
    if (!o.bench && !o.list) printf("seed %llu\n", (unsigned long long)o.seed);
    bool ok = spread(&o, o.filter ? &filter : NULL, &sum);
    if (!o.bench && !o.list) missing += check_rows(&o, &sum);
    if (!o.bench && !o.list && !o.targets.narchs) report(&sum);
    if (o.filter) regfree(&filter);
    if (turn) fclose(turn);
    return ok && !missing ? 0 : 1;
}
