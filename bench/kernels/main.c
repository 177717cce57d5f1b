/* bench_kernels: which cases, in which order; usage() has the options. Ends with 0 when all cases
 * that were asked for were measured and right, 1 when not, 2 for wrong options, 77 where there is
 * no GPU. */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/pool.h"
#include "bench.h"

enum { FAILED = 1, USAGE = 2, NO_GPU = 77, FEW_COPIES = 4 };
#define ROTATED (UINT64_C(128) << 20) /* bytes: more than twice any GPU's L2 */
#define MOST    (UINT64_C(1) << 30)

static int usage(void)
{
    fputs(
        "usage: bench_kernels [--filter REGEX] [--list | --compile] [--json FILE] [--libraries "
        "DIR[:DIR]...]\n"
        "                     [--rounds N] [--seconds S] [--device N] [--alone]\n"
        "                     [--tuned FILE] [--by-cost] [--offered]\n"
        "\n"
        "Times zc's kernels beside cuBLASLt, cuDNN and copies of memory, and prints a table.\n"
        "  --filter REGEX  cases whose GROUP/NAME it finds; else all but those of the group smoke\n"
        "  --list          names the cases, with the operation; needs no GPU\n"
        "  --compile       tells their kernels on sm_90, and why these; needs NVRTC, but no GPU\n"
        "  --json FILE     also writes all numbers there\n"
        "  --libraries     folders of libcublasLt.so.13 and libcudnn.so.9, before the system's\n"
        "  --rounds N      rounds, in which zc and the library take turns (7)\n"
        "  --seconds S     the most that the rounds of a case take, 3 rounds at least (1)\n"
        "  --device N      which GPU (0)\n"
        "  --alone         without the libraries\n"
        "  --tuned FILE, --by-cost, --offered: as in zc compile\n",
        stderr);
    return USAGE;
}

static bool parse_number(const char *text, double low, double high, double *out)
{
    char *end;
    *out = zc_strtod(text, &end);
    return end != text && !*end && *out >= low && *out <= high;
}

static bool parse_value(const char *name, const char *value, kb_options *o)
{
    double number = 0;
    if (strcmp(name, "--filter") == 0)
        o->filter = value;
    else if (strcmp(name, "--json") == 0)
        o->json = value;
    else if (strcmp(name, "--libraries") == 0)
        o->libraries = value;
    else if (strcmp(name, "--tuned") == 0)
        o->tuned = value;
    else if (strcmp(name, "--seconds") == 0)
        return parse_number(value, 0, 1e6, &o->seconds);
    else if (strcmp(name, "--rounds") == 0 && parse_number(value, 1, KB_ROUNDS, &number))
        o->rounds = (int)number;
    else if (strcmp(name, "--device") == 0 && parse_number(value, 0, 1023, &number))
        o->device = (int)number;
    else
        return false;
    return true;
}

static bool parse(int argc, char **argv, kb_options *o)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0)
            o->list = true;
        else if (strcmp(argv[i], "--compile") == 0)
            o->compile = true;
        else if (strcmp(argv[i], "--alone") == 0)
            o->alone = true;
        else if (strcmp(argv[i], "--by-cost") == 0)
            o->by_cost = true;
        else if (strcmp(argv[i], "--offered") == 0)
            o->offered = true;
        else if (i + 1 == argc || !parse_value(argv[i], argv[i + 1], o))
            return false;
        else
            i++;
    }
    return true;
}

/* ---- cases ---- */

typedef struct selection {
    kb_options options;
    kb_rig rig;
    const kb_case **cases;
    kb_problem *problems;
    kb_plan *plans;
    kb_result *results;
    size_t n;
} selection;

static bool is_selected(const kb_case *c, const regex_t *filter)
{
    char name[160];
    zc_snprintf(name, sizeof name, "%s/%s", c->group, c->name);
    return filter ? regexec(filter, name, 0, NULL, 0) == 0 : !kb_group_of(c)->is_optional;
}

static bool select_cases(selection *s, const regex_t *filter)
{
    s->cases = zc_calloc(kb_case_count, sizeof *s->cases);
    s->problems = zc_calloc(kb_case_count, sizeof *s->problems);
    s->plans = zc_calloc(kb_case_count, sizeof *s->plans);
    s->results = zc_calloc(kb_case_count, sizeof *s->results);
    if (!s->cases || !s->problems || !s->plans || !s->results) return false;
    for (size_t i = 0; i < kb_case_count; i++) {
        if (!is_selected(&kb_cases[i], filter)) continue;
        if (!kb_describe(&kb_cases[i], &s->problems[s->n])) return false;
        s->results[s->n] =
            (kb_result){.c = &kb_cases[i], .p = &s->problems[s->n], .plan = &s->plans[s->n]};
        s->cases[s->n++] = &kb_cases[i];
    }
    return true;
}

static void free_cases(selection *s)
{
    for (size_t i = 0; s->plans && i < s->n; i++) zc_plan_destroy(&s->plans[i].plan);
    free(s->cases);
    free(s->problems);
    free(s->plans);
    free(s->results);
}

static void list_cases(const selection *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const kb_problem *p = &s->problems[i];
        printf("%s/%s: %s(", s->cases[i]->group, s->cases[i]->name, p->op);
        for (int in = 0; in < p->nin; in++) {
            const kb_tensor *t = &p->t[p->order[in]];
            printf("%s%s", in ? ", " : "", p->order[in] == KB_OUT ? "_" : zc_dtype_name(t->dtype));
            for (int d = 0; p->order[in] != KB_OUT && d < t->rank; d++)
                printf("%c%lld", d ? ',' : '[', (long long)t->dims[d]);
            if (p->order[in] != KB_OUT) printf("]%s", t->constant ? "=" : "");
        }
        printf(") %s\n", p->attrs);
    }
}

/* ---- compiling, all at once ---- */

/* So many that all data come from memory, and that what the launch of a graph costs is little. */
static int copies_of(const selection *s, const kb_problem *p)
{
    uint64_t n = ROTATED / p->bytes + 1, fit = MOST / p->bytes;
    if (n < FEW_COPIES) n = fit < FEW_COPIES ? fit : FEW_COPIES;
    return !s->rig.is_real ? 2 : n < 1 ? 1 : n > KB_COPIES ? KB_COPIES : (int)n;
}

static void compile_one(void *arg, int i)
{
    selection *s = arg;
    kb_compile(&s->problems[i], &s->rig.pools, &s->options, s->rig.device.arch,
               copies_of(s, &s->problems[i]), &s->plans[i]);
}

static bool compile_all(selection *s)
{
    zc_pool *pool = NULL;
    int64_t begin = zc_clock_ns();
    zc_diag *diag = zc_diag_create();
    bool ok = zc_pool_create(zc_usable_cpus(), &pool, diag) == ZC_OK;
    if (ok)
        zc_pool_run(pool, (int)s->n, compile_one, s);
    else
        fprintf(stderr, "bench_kernels: %s\n", zc_diag_text(diag, 0));
    zc_pool_destroy(&pool);
    zc_diag_destroy(&diag);
    fprintf(stderr, "bench_kernels: %zu cases compiled in %.1f s\n", s->n,
            (double)(zc_clock_ns() - begin) * 1e-9);
    return ok;
}

static bool tell_compiled(const selection *s)
{
    bool ok = true;
    for (size_t i = 0; i < s->n; i++) {
        const kb_plan *p = &s->plans[i];
        ok &= p->plan != NULL;
        printf("%s/%s: %s\n", s->cases[i]->group, s->cases[i]->name,
               p->plan ? p->kernel : p->failed);
        if (p->plan) printf("  %s\n  %s\n", p->config, p->why);
    }
    return ok;
}

/* Without a GPU. */
static int only_compile(selection *s, zc_diag *diag)
{
    int code = FAILED;
    s->rig.device.arch = 90;
    if (kb_pools_make(&s->rig.pools, diag) != ZC_OK)
        fprintf(stderr, "bench_kernels: %s\n", zc_diag_text(diag, 0));
    else if (compile_all(s) && tell_compiled(s))
        code = 0;
    kb_pools_free(&s->rig.pools);
    return code;
}

/* ---- measuring, one by one ---- */

static zc_status open_yardstick(kb_run *r, zc_diag *diag)
{
    switch (r->c->kind) {
    case KB_PRODUCT:
        return kb_cublaslt_product(r, diag);
    case KB_CONV:
        return kb_cudnn_conv(r, diag);
    case KB_ATTENTION:
        return kb_cudnn_attention(r, diag);
    case KB_LAYER_NORM:
    case KB_SOFTMAX:
        return kb_copy(r, diag);
    }
    return ZC_ERR_INTERNAL;
}

static zc_status measure(const selection *s, kb_run *r, kb_result *result, zc_diag *diag)
{
    ZC_TRY(kb_run_open(r, diag));
    ZC_TRY(kb_ours_open(r, result->plan, diag));
    ZC_TRY(kb_check(r, &r->ours, diag));
    zc_diag *own = zc_diag_create();
    zc_status status = open_yardstick(r, own);
    if (status == ZC_OK && r->c->kind <= KB_ATTENTION) status = kb_check(r, &r->yardstick, own);
    if (status != ZC_OK)
        zc_snprintf(result->no_yardstick, sizeof result->no_yardstick, "%s", zc_diag_text(own, 0));
    zc_diag_destroy(&own);
    return kb_measure(r, s->options.rounds, s->options.seconds, diag);
}

static void measure_one(selection *s, size_t i)
{
    kb_result *result = &s->results[i];
    kb_run r = {
        .rig = &s->rig, .c = s->cases[i], .p = &s->problems[i], .copies = s->plans[i].copies};
    zc_diag *diag = zc_diag_create();
    const char *failed = s->plans[i].failed;
    if (!s->plans[i].plan)
        zc_snprintf(result->failed, sizeof result->failed, "%s", failed);
    else if (measure(s, &r, result, diag) == ZC_OK)
        result->is_measured = true;
    else
        zc_snprintf(result->failed, sizeof result->failed, "%s", zc_diag_text(diag, 0));
    result->ours = r.ours;
    result->yardstick = r.yardstick;
    kb_run_close(&r);
    zc_plan_destroy(&s->plans[i].plan);
    zc_diag_destroy(&diag);
    kb_table_row(result);
}

static bool measure_all(selection *s)
{
    bool ok = true;
    kb_table_head(&s->rig);
    for (size_t i = 0; i < s->n; i++) {
        measure_one(s, i);
        ok &= s->results[i].is_measured && !kb_is_wrong(s->cases[i], s->results[i].ours.error);
    }
    kb_table_groups(s->results, s->n);
    return ok;
}

static zc_status on_gpu(selection *s, int *code, zc_diag *diag)
{
    zc_writer *json = NULL;
    zc_status status = ZC_OK;
    *code = FAILED;
    if (s->options.json) ZC_TRY(zc_writer_open(s->options.json, &json, diag));
    if (compile_all(s)) *code = measure_all(s) ? 0 : FAILED;
    if (!json) return ZC_OK;
    status = kb_table_json(json, &s->rig, s->results, s->n, diag);
    if (status == ZC_OK) return zc_writer_commit(&json, diag);
    zc_writer_abort(&json);
    return status;
}

static int with_gpu(selection *s, zc_diag *diag)
{
    int code = NO_GPU;
    zc_status status = kb_rig_open(&s->rig, &s->options, diag);
    if (status == ZC_OK && (status = on_gpu(s, &code, diag)) != ZC_OK) code = FAILED;
    if (status != ZC_OK) fprintf(stderr, "bench_kernels: %s\n", zc_diag_text(diag, 0));
    kb_rig_close(&s->rig);
    return code;
}

static int run(selection *s)
{
    zc_diag *diag = zc_diag_create();
    int code = 0;
    if (s->options.list)
        list_cases(s);
    else
        code = s->options.compile ? only_compile(s, diag) : with_gpu(s, diag);
    zc_diag_destroy(&diag);
    return code;
}

int main(int argc, char **argv)
{
    selection s = {.options = {.rounds = 7, .seconds = 1}};
    regex_t filter;
    if (!parse(argc, argv, &s.options)) return usage();
    const char *text = s.options.filter;
    if (text && regcomp(&filter, text, REG_EXTENDED | REG_NOSUB) != 0) return usage();
    int code = FAILED;
    if (!select_cases(&s, text ? &filter : NULL))
        fputs("bench_kernels: no memory\n", stderr);
    else if (!s.n)
        fprintf(stderr, "bench_kernels: no case is named %s\n", text);
    else
        code = run(&s);
    free_cases(&s);
    if (text) regfree(&filter);
    return code;
}
