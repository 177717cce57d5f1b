/* Every test runs in a process of its own, so that a crash or a hang is one failed test. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <regex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/inputs.h"
#include "driver/compile.h"
#include "import/load.h"
#include "import/tensor_proto.h"

const char cli_conform_help[] =
    "usage: zc conform DIR [OPTIONS]\n"
    "\n"
    "Runs tests in ONNX's layout: folders with model.onnx and test_data_set_*/{input,output}_*.pb, "
    "and ONNX's\n"
    "light models, NAME.onnx with NAME_output_*.pb, whose inputs count up from 0 to 1. DIR is one "
    "test or a\n"
    "tree of them.\n"
    "\n"
    "      --include REGEX      only tests whose name matches\n"
    "      --skip-list FILE     lines of REGEX<tab>REASON: tests that are not run, and why\n"
    "      --rtol R --atol A    tolerance (default 1e-3 and 1e-7, as ONNX)\n"
    "      --timeout S          seconds a test may take (default 30)\n"
    "      --threads N          threads of each test (default 1)\n"
    "      --reference          use the plain reference kernels\n"
    "      --device cpu         where to run\n"
    "      --json               print one JSON document\n"
    "  -v, --verbose            print every test, not only failures\n"
    "\n"
    "examples:\n"
    "  zc conform onnx/backend/test/data/node --skip-list tests/onnx/skip.txt\n"
    "  zc conform my_model --rtol 1e-2\n";

typedef enum outcome { PASS, FAIL, SKIP, CRASH, HANG, OUTCOMES } outcome;
static const char *const outcome_names[] = {"pass", "fail", "skip", "crash", "hang"};

#define OPSET_MAX 64
#define TEXT_MAX  600

/* What a test's process writes to its parent. */
typedef struct result {
    int outcome, opset;
    char text[TEXT_MAX];
} result;

typedef struct skip_rule {
    regex_t name;
    char *reason;
} skip_rule;

typedef struct conform {
    const char *include_text, *skip_file;
    regex_t include;
    ZC_VEC(skip_rule) skips;
    uint8_t *skip_text;
    double rtol, atol;
    int64_t timeout, threads;
    bool reference, json, verbose;
    size_t counts[OPSET_MAX + 1][OUTCOMES], totals[OUTCOMES];
    bool first; /* of the JSON list */
} conform;

/* ---- one test, in its own process ---- */

static void say(result *r, outcome o, const char *fmt, ...) ZC_PRINTF(3, 4);
static void say(result *r, outcome o, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    r->outcome = o;
    vsnprintf(r->text, sizeof r->text, fmt, args);
    va_end(args);
}

/* The first diagnostic. What is not supported at all is a skip that says so. */
static void say_diag(result *r, zc_status status, const zc_diag *diag)
{
    say(r, status == ZC_ERR_UNSUPPORTED ? SKIP : FAIL, "%s", zc_diag_text(diag, 0));
}

static bool close_enough(double got, double want, double rtol, double atol)
{
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want);
    if (got == want) return true;
    return isfinite(got) && isfinite(want) && fabs(got - want) <= atol + rtol * fabs(want);
}

static double element(const zc_tensor *t, int64_t i)
{
    zc_dtype half = t->dtype == ZC_C64 ? ZC_F32 : ZC_F64;
    bool is_complex = zc_dtype_class(t->dtype) == ZC_CLASS_COMPLEX;
    return zc_load_f64(is_complex ? half : t->dtype, t->data, i);
}

static bool compare(const conform *c, const zc_view *got, const zc_tensor *want, const char *name,
                    result *r)
{
    zc_tensor t = {.dtype = (zc_dtype)got->elem, .rank = got->rank, .data = got->data};
    char a[200], b[200];
    memcpy(t.dims, got->dims, sizeof t.dims);
    if (t.dtype != want->dtype || t.rank != want->rank ||
        memcmp(t.dims, want->dims, (size_t)t.rank * sizeof *t.dims) != 0) {
        say(r, FAIL, "%s: wrong type (got %s, need %s)", name, zc_tensor_type_text(&t, a, sizeof a),
            zc_tensor_type_text(want, b, sizeof b));
        return false;
    }
    int64_t n = zc_tensor_numel(want) * (zc_dtype_class(t.dtype) == ZC_CLASS_COMPLEX ? 2 : 1),
            wrong = 0, at = 0;
    double worst = -1;
    for (int64_t i = 0; i < n; i++) {
        double g = element(&t, i), w = element(want, i);
        if (close_enough(g, w, c->rtol, c->atol)) continue;
        double off = isfinite(g) && isfinite(w) ? fabs(g - w) : INFINITY;
        if (off > worst) {
            worst = off;
            at = i;
        }
        wrong++;
    }
    if (wrong)
        say(r, FAIL, "%s: %lld of %lld elements differ, worst at %lld (got %.9g, need %.9g)", name,
            (long long)wrong, (long long)n, (long long)at, element(&t, at), element(want, at));
    return wrong == 0;
}

/* The model's opset, 0 when unknown. */
static int opset_of(const char *model)
{
    Onnx__ModelProto *m = NULL;
    int opset = 0;
    if (zc_onnx_load(model, &m, NULL) != ZC_OK) return 0;
    for (size_t i = 0; i < m->n_opset_import; i++) {
        const char *domain = m->opset_import[i]->domain;
        if ((!domain || !*domain || strcmp(domain, "ai.onnx") == 0) &&
            m->opset_import[i]->version > 0 && m->opset_import[i]->version < OPSET_MAX)
            opset = (int)m->opset_import[i]->version;
    }
    zc_onnx_free(&m);
    return opset;
}

/* Expected results are the files <prefix>output_<i>.pb. */
static bool check_outputs(const conform *c, const zc_plan *plan, const zc_session *s,
                          const char *prefix, size_t n, result *r, zc_diag *diag)
{
    for (size_t i = 0; i < n; i++) {
        char path[8192];
        zc_tensor want;
        zc_view got;
        zc_io_info io;
        if (snprintf(path, sizeof path, "%soutput_%zu.pb", prefix, i) >= (int)sizeof path) {
            say(r, FAIL, "path too long");
            return false;
        }
        zc_status status = cli_read_tensor(path, &want, diag);
        if (status != ZC_OK) {
            say_diag(r, status, diag);
            return false;
        }
        status = zc_plan_output(plan, i, &io, diag);
        if (status == ZC_OK) status = zc_session_output(s, i, &got, diag);
        bool ok = status == ZC_OK && compare(c, &got, &want, io.name, r);
        free(want.data);
        if (status != ZC_OK) say_diag(r, status, diag);
        if (!ok) return false;
    }
    return true;
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

static zc_status set_inputs(const zc_plan *plan, zc_session *s, const char *dir, size_t n,
                            zc_diag *diag)
{
    cli_inputs in = {.dir = dir};
    if (dir) return cli_set_inputs(plan, s, &in, diag);
    zc_status status = ZC_OK;
    for (size_t i = 0; i < n && status == ZC_OK; i++) status = set_counting(plan, s, i, diag);
    return status;
}

/* dir: of the input files, NULL for a light model. */
static bool run_set(const conform *c, zc_plan *plan, const char *dir, const char *prefix, result *r,
                    zc_diag *diag)
{
    zc_session *s = NULL;
    zc_plan_info info;
    (void)zc_plan_info_get(plan, &info);
    zc_status status = zc_session_create(
        plan, ZC_SESSION_PARAMS(.threads = (int)c->threads, .reference = c->reference), &s, diag);
    if (status == ZC_OK) status = set_inputs(plan, s, dir, info.inputs, diag);
    if (status == ZC_OK) status = zc_session_run(s, diag);
    bool ok = status == ZC_OK && check_outputs(c, plan, s, prefix, info.outputs, r, diag);
    if (status != ZC_OK) say_diag(r, status, diag);
    (void)zc_session_destroy(&s);
    return ok;
}

static void run_sets(const conform *c, zc_plan *plan, const char *dir, result *r, zc_diag *diag)
{
    char set[8192], prefix[8200];
    struct stat st;
    for (int sets = 0;; sets++) {
        snprintf(set, sizeof set, "%s/test_data_set_%d", dir, sets);
        snprintf(prefix, sizeof prefix, "%s/", set);
        if (stat(set, &st) != 0) {
            say(r, sets ? PASS : SKIP, sets ? "%d data sets" : "has no test_data_set_%d", sets);
            return;
        }
        if (!run_set(c, plan, set, prefix, r, diag)) return;
    }
}

/* path: a test's folder, or a light model's file. */
static void run_test(const conform *c, const char *path, bool light, result *r)
{
    char model[8192];
    void *bytes = NULL;
    size_t len = 0;
    zc_plan *plan = NULL;
    zc_diag *diag = zc_diag_create();
    snprintf(model, sizeof model, light ? "%s" : "%s/model.onnx", path);
    r->opset = opset_of(model);
    zc_status status = zc_compile_model_file(model, NULL, &bytes, &len, diag);
    if (status == ZC_OK) status = zc_plan_load_bytes(bytes, len, &plan, diag);
    if (status != ZC_OK) {
        say_diag(r, status, diag);
    } else if (light) {
        snprintf(model + strlen(model) - strlen(".onnx"), 16, "_");
        if (run_set(c, plan, NULL, model, r, diag)) say(r, PASS, "1 data set");
    } else {
        run_sets(c, plan, path, r, diag);
    }
    zc_plan_destroy(&plan);
    zc_free(bytes);
    zc_diag_destroy(&diag);
}

/* ---- processes ---- */

static bool read_result(int fd, result *r)
{
    size_t got = 0;
    while (got < sizeof *r) {
        ssize_t n = read(fd, (char *)r + got, sizeof *r - got);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        got += (size_t)n;
    }
    r->text[TEXT_MAX - 1] = 0;
    return r->outcome >= 0 && r->outcome < OUTCOMES && r->opset >= 0 && r->opset <= OPSET_MAX;
}

static void isolated(const conform *c, const char *path, bool light, result *r)
{
    int fds[2], status = 0;
    fflush(stdout);
    if (pipe(fds) != 0) {
        say(r, FAIL, "no pipe: %s", strerror(errno));
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        result own = {.outcome = FAIL};
        close(fds[0]);
        alarm((unsigned)c->timeout); /* SIGALRM ends the process */
        run_test(c, path, light, &own);
        ssize_t n = write(fds[1], &own, sizeof own);
        _exit(n == (ssize_t)sizeof own ? 0 : 1);
    }
    close(fds[1]);
    bool whole = child > 0 && read_result(fds[0], r);
    close(fds[0]);
    if (child > 0) waitpid(child, &status, 0);
    if (whole) return;
    *r = (result){.outcome = CRASH};
    if (child < 0)
        say(r, FAIL, "no process: %s", strerror(errno));
    else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        say(r, HANG, "took more than %lld s", (long long)c->timeout);
    else
        say(r, CRASH, "ended by signal %d", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* ---- reporting ---- */

static void report(conform *c, const char *name, const result *r)
{
    c->counts[r->opset][r->outcome]++;
    c->totals[r->outcome]++;
    if (c->json) {
        printf("%s\n  {\"name\": ", c->first ? "" : ",");
        cli_json(stdout, name);
        printf(", \"opset\": %d, \"outcome\": \"%s\", \"text\": ", r->opset,
               outcome_names[r->outcome]);
        cli_json(stdout, r->text);
        fputs("}", stdout);
        c->first = false;
    } else if (c->verbose || (r->outcome != PASS && r->outcome != SKIP)) {
        printf("%-5s %s: ", outcome_names[r->outcome], name);
        cli_put(stdout, r->text);
        puts("");
    }
}

static const char *skip_reason(const conform *c, const char *name)
{
    for (size_t i = 0; i < c->skips.len; i++)
        if (regexec(&c->skips.data[i].name, name, 0, NULL, 0) == 0) return c->skips.data[i].reason;
    return NULL;
}

static void one_test(conform *c, const char *path, bool light)
{
    char name[1024];
    const char *slash = strrchr(path, '/');
    result r = {.outcome = FAIL};
    snprintf(name, sizeof name, "%s", slash ? slash + 1 : path);
    if (light) name[strlen(name) - strlen(".onnx")] = 0;
    if (c->include_text && regexec(&c->include, name, 0, NULL, 0) != 0) return;
    const char *reason = skip_reason(c, name);
    if (reason)
        say(&r, SKIP, "%s", reason);
    else
        isolated(c, path, light, &r);
    report(c, name, &r);
}

/* NAME.onnx beside NAME_output_0.pb. */
static bool is_light(const char *path)
{
    char output[8192];
    struct stat st;
    size_t n = strlen(path), tail = strlen(".onnx");
    if (n <= tail || n > 8000 || strcmp(path + n - tail, ".onnx") != 0) return false;
    snprintf(output, sizeof output, "%.*s_output_0.pb", (int)(n - tail), path);
    return stat(output, &st) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Folders in name order; one with a model.onnx is a test. */
static zc_status walk(conform *c, const char *dir, int depth, zc_diag *diag)
{
    char path[8192];
    struct stat st;
    snprintf(path, sizeof path, "%s/model.onnx", dir);
    if (stat(path, &st) == 0) {
        one_test(c, dir, false);
        return ZC_OK;
    }
    DIR *d = opendir(dir);
    if (!d) return zc_fail(diag, ZC_ERR_IO, dir, "cannot be opened: %s", strerror(errno));
    ZC_VEC(char *) names = {0};
    for (struct dirent *e; (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (e->d_name[0] != '.' && stat(path, &st) == 0 &&
            (S_ISDIR(st.st_mode) || is_light(path))) {
            char *copy = strdup(path);
            if (!copy || !ZC_VEC_PUSH(&names, copy)) free(copy);
        }
    }
    closedir(d);
    if (names.len) qsort(names.data, names.len, sizeof *names.data, by_name);
    zc_status status = ZC_OK;
    for (size_t i = 0; i < names.len; i++) {
        if (status == ZC_OK && is_light(names.data[i]))
            one_test(c, names.data[i], true);
        else if (status == ZC_OK && depth < 8)
            status = walk(c, names.data[i], depth + 1, diag);
        free(names.data[i]);
    }
    ZC_VEC_FINI(&names);
    return status;
}

static void summary(const conform *c)
{
    if (c->json) {
        printf("\n],\n\"passed\": %zu, \"failed\": %zu, \"skipped\": %zu, \"crashed\": %zu, "
               "\"hung\": %zu}\n",
               c->totals[PASS], c->totals[FAIL], c->totals[SKIP], c->totals[CRASH],
               c->totals[HANG]);
        return;
    }
    printf("\nopset    pass   fail   skip  crash   hang\n");
    for (int o = 0; o <= OPSET_MAX; o++) {
        size_t sum = 0;
        for (int k = 0; k < OUTCOMES; k++) sum += c->counts[o][k];
        if (!sum) continue;
        if (o)
            printf("%5d ", o);
        else
            printf("    - ");
        for (int k = 0; k < OUTCOMES; k++) printf(" %6zu", c->counts[o][k]);
        puts("");
    }
    printf("%zu passed, %zu failed, %zu skipped\n", c->totals[PASS],
           c->totals[FAIL] + c->totals[CRASH] + c->totals[HANG], c->totals[SKIP]);
}

/* ---- options ---- */

static int read_skips(conform *c, const char *path, zc_diag *diag)
{
    size_t len;
    zc_status status = zc_file_read(path, 1 << 22, &c->skip_text, &len, diag);
    if (status != ZC_OK) return cli_report(diag, status);
    char *rest = (char *)c->skip_text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (!*line || *line == '#') continue;
        skip_rule rule = {.reason = strchr(line, '\t')};
        if (!rule.reason || !rule.reason[1])
            return cli_usage("conform", "%s: a line without a reason: %s", path, line);
        *rule.reason++ = 0;
        if (regcomp(&rule.name, line, REG_EXTENDED | REG_NOSUB) != 0)
            return cli_usage("conform", "%s: not a regular expression: %s", path, line);
        if (!ZC_VEC_PUSH(&c->skips, rule)) return EXIT_REFUSED;
    }
    return EXIT_OK;
}

static int parse(int argc, char **argv, conform *c)
{
    static const struct option longs[] = {
        {"include", required_argument, NULL, 'i'},
        {"skip-list", required_argument, NULL, 's'},
        {"rtol", required_argument, NULL, 'R'},
        {"atol", required_argument, NULL, 'A'},
        {"timeout", required_argument, NULL, 'T'},
        {"threads", required_argument, NULL, 't'},
        {"reference", no_argument, NULL, 'r'},
        {"device", required_argument, NULL, 'd'},
        {"json", no_argument, NULL, 'j'},
        {"verbose", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    int o;
    while ((o = getopt_long(argc, argv, "v", longs, NULL)) != -1) {
        bool ok = true;
        switch (o) {
        case 'i':
            c->include_text = optarg;
            break;
        case 's':
            c->skip_file = optarg;
            break;
        case 'R':
            ok = cli_real(optarg, &c->rtol) && c->rtol >= 0;
            break;
        case 'A':
            ok = cli_real(optarg, &c->atol) && c->atol >= 0;
            break;
        case 'T':
            ok = cli_int(optarg, 1, 86400, &c->timeout);
            break;
        case 't':
            ok = cli_int(optarg, 1, 1024, &c->threads);
            break;
        case 'r':
            c->reference = true;
            break;
        case 'j':
            c->json = true;
            break;
        case 'v':
            c->verbose = true;
            break;
        case 'd':
            ok = strcmp(optarg, "cpu") == 0;
            break;
        default:
            return cli_bad_option("conform");
        }
        if (!ok) return cli_usage("conform", "bad value '%s'", optarg);
    }
    if (optind + 1 != argc) return cli_usage("conform", "needs one folder");
    if (c->include_text && regcomp(&c->include, c->include_text, REG_EXTENDED | REG_NOSUB) != 0)
        return cli_usage("conform", "--include is not a regular expression");
    return EXIT_OK;
}

static int verdict(const conform *c)
{
    size_t run = 0;
    for (int k = 0; k < OUTCOMES; k++) run += c->totals[k];
    if (run == 0) return cli_usage("conform", "no tests found");
    if (c->totals[CRASH] + c->totals[HANG]) return EXIT_REFUSED;
    return c->totals[FAIL] ? EXIT_ACCURACY : EXIT_OK;
}

int cli_conform(int argc, char **argv)
{
    conform c = {.rtol = 1e-3, .atol = 1e-7, .timeout = 30, .threads = 1, .first = true};
    int code = parse(argc, argv, &c);
    if (code) return code;
    zc_diag *diag = zc_diag_create();
    if (c.skip_file) code = read_skips(&c, c.skip_file, diag);
    if (!code) {
        if (c.json) fputs("{\"tests\": [", stdout);
        char dir[4096];
        snprintf(dir, sizeof dir, "%s", argv[optind]);
        for (size_t n = strlen(dir); n > 1 && dir[n - 1] == '/'; n--) dir[n - 1] = 0;
        zc_status status = walk(&c, dir, 0, diag);
        if (status != ZC_OK) code = cli_report(diag, status);
    }
    if (!code) {
        summary(&c);
        code = verdict(&c);
    }
    for (size_t i = 0; i < c.skips.len; i++) regfree(&c.skips.data[i].name);
    ZC_VEC_FINI(&c.skips);
    free(c.skip_text);
    if (c.include_text) regfree(&c.include);
    zc_diag_destroy(&diag);
    return code;
}
