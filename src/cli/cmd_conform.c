/* Which tests there are, and which of them are run. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/compare.h"
#include "cli/conform.h"
#include "cli/signals.h"
#include "cuda/device.h"

static const cli_option table[] = {
    {.name = "include",
     .arg = "REGEX",
     .help = "only tests whose name matches",
     .set = cli_set_text,
     .at = offsetof(conform, include_text)},
    {.name = "skip-list",
     .arg = "FILE",
     .help = "lines of REGEX<tab>REASON: tests that are not run, and why",
     .words = CLI_WORDS_FILE,
     .set = cli_set_text,
     .at = offsetof(conform, skip_file)},
    {.name = "rtol",
     .arg = "R",
     .help = "relative tolerance (default 1e-3, as ONNX)",
     .most = 1000000,
     .set = cli_set_real,
     .at = offsetof(conform, rtol)},
    {.name = "atol",
     .arg = "A",
     .help = "absolute tolerance (default 1e-7, as ONNX)",
     .most = 1000000,
     .set = cli_set_real,
     .at = offsetof(conform, atol)},
    {.name = "timeout",
     .arg = "S",
     .help = "seconds a test may take (default 30)",
     .least = 1,
     .most = 86400,
     .set = cli_set_int,
     .at = offsetof(conform, timeout)},
    CLI_THREADS_OPTION(conform, threads, "threads of each test (default 1)"),
    {.name = "reference",
     .help = "use the plain reference kernels",
     .set = cli_set_flag,
     .at = offsetof(conform, reference)},
    CLI_DEVICE_OPTION(conform, device),
    {.name = "in-process",
     .help = "no process for each test: much faster on a GPU, but a crash ends everything",
     .set = cli_set_flag,
     .at = offsetof(conform, in_process)},
    {.name = "json",
     .help = "print one JSON document",
     .set = cli_set_flag,
     .at = offsetof(conform, json)},
    {.name = "verbose",
     .letter = 'v',
     .help = "print every test, not only failures",
     .set = cli_set_flag,
     .at = offsetof(conform, verbose)},
};

/* ---- finding tests ---- */

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
    cli_progress_set(&c->progress, "%.80s", name);
    if (reason)
        cli_conform_say(&r, SKIP, "%s", reason);
    else if (c->in_process)
        cli_conform_run(c, path, light, &r);
    else
        cli_conform_isolated(c, path, light, &r);
    cli_conform_report(c, name, &r);
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
    if (cli_conform_model(dir, path, sizeof path)) {
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

/* ---- the command ---- */

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

static int verdict(const conform *c)
{
    size_t run = 0;
    for (int k = 0; k < OUTCOMES; k++) run += c->totals[k];
    if (run == 0) return cli_usage("conform", "no tests found");
    if (c->totals[CRASH] + c->totals[HANG]) return EXIT_REFUSED;
    return c->totals[FAIL] ? EXIT_ACCURACY : EXIT_OK;
}

/* Between tests a GPU that nobody uses would be closed and started anew, at a third of a second
 * each. */
static bool hold_device(const conform *c, zc_device *d)
{
    return c->in_process && c->device.kind == ZC_DEVICE_CUDA &&
           zc_device_open(c->device.ordinal, d, NULL) == ZC_OK;
}

static int conform_tree(conform *c, const char *root, zc_diag *diag)
{
    char dir[4096];
    snprintf(dir, sizeof dir, "%s", root);
    for (size_t n = strlen(dir); n > 1 && dir[n - 1] == '/'; n--) dir[n - 1] = 0;
    if (c->json) fputs("{\"tests\": [", stdout);
    cli_progress_begin(&c->progress);
    zc_device device;
    bool held = hold_device(c, &device);
    zc_status status = walk(c, dir, 0, diag);
    if (held) zc_device_close(&device);
    cli_progress_end(&c->progress);
    if (status != ZC_OK) return cli_report(diag, status);
    cli_conform_summary(c);
    return verdict(c);
}

static int check(const conform *c)
{
    const cli_need needs[] = {
        {c->timeout, "--timeout", !c->in_process, "a process for each test (--in-process)"},
        {c->verbose, "--verbose", !c->json, "text (--json has every test)"},
    };
    if (c->reference && c->device.kind == ZC_DEVICE_CUDA)
        return cli_usage("conform", "--reference is of the CPU (got --device cuda)");
    return cli_check_needs("conform", needs, ZC_COUNTOF(needs));
}

/* A driver does not survive fork(), so it is asked in a child. 'auto' becomes what there is. */
static int choose_device(cli_device *device)
{
    int ended = 0, arch;
    if (device->kind == ZC_DEVICE_CPU) return EXIT_OK;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        cli_catch_signals();
        zc_diag *diag = zc_diag_create();
        zc_status status = zc_device_arch(device->ordinal, &arch, diag);
        _exit(device->kind == ZC_DEVICE_CUDA ? cli_report(diag, status) : status != ZC_OK);
    }
    if (child > 0) waitpid(child, &ended, 0);
    bool is_there = child > 0 && WIFEXITED(ended) && WEXITSTATUS(ended) == EXIT_OK;
    if (device->kind == ZC_DEVICE_CUDA) return is_there ? EXIT_OK : EXIT_DEVICE;
    device->kind = is_there ? ZC_DEVICE_CUDA : ZC_DEVICE_CPU;
    return EXIT_OK;
}

static int run(int argc, char **argv)
{
    conform c = {.rtol = CLI_RTOL, .atol = CLI_ATOL, .threads = 1, .first = true};
    const char *root;
    int code = cli_parse_one(&cli_conform_command, argc, argv, &c, "one folder", &root);
    if (code != CLI_GO) return code;
    code = check(&c);
    if (!code) code = choose_device(&c.device);
    if (code) return code;
    if (!c.timeout) c.timeout = 30;
    if (c.include_text && regcomp(&c.include, c.include_text, REG_EXTENDED | REG_NOSUB) != 0)
        return cli_usage("conform", "--include: not a regular expression (got '%s')",
                         c.include_text);
    zc_diag *diag = zc_diag_create();
    code = c.skip_file ? read_skips(&c, c.skip_file, diag) : EXIT_OK;
    if (!code) code = conform_tree(&c, root, diag);
    for (size_t i = 0; i < c.skips.len; i++) regfree(&c.skips.data[i].name);
    ZC_VEC_FINI(&c.skips);
    free(c.skip_text);
    if (c.include_text) regfree(&c.include);
    zc_diag_destroy(&diag);
    return code;
}

const cli_command cli_conform_command = {
    .name = "conform",
    .summary = "run ONNX conformance tests",
    .operands = "DIR [OPTIONS]",
    .about = "Runs tests in ONNX's layout: folders with model.onnx (or one other .onnx file) and "
             "test_data_set_*/{input,output}_*.pb, and ONNX's light models, NAME.onnx with "
             "NAME_output_*.pb, whose inputs count up from 0 to 1. DIR is one test or a tree of "
             "them.",
    .examples = "zc conform onnx/backend/test/data/node --skip-list tests/onnx/skip.txt\n"
                "zc conform my_model --rtol 1e-2\n",
    .options = table,
    .option_count = ZC_COUNTOF(table),
    .words = CLI_WORDS_DIR,
    .run = run,
};
