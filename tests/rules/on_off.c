/* Results with all fusions against results without any: graphs of the golden tests (.zrt that begin
 * with "# builtin", .zir; those that say "# not on and off: REASON" are skipped), and models
 (.onnx), on the CPU, and with --cuda on a GPU. See support/on_off.h.
 *
 * usage: on_off [--cuda] FILE-OR-FOLDER... [--part K/N]: each, or each N-th from the K-th on, with
 * five sizes of its symbols, or with the first ZC_ON_OFF_SIZES of them that it runs with. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "support/on_off.h"

static bool check(const on_off *s, size_t *outputs, double *worst)
{
    static const int64_t sizes[] = {3, 4, 1, 8, 17};
    const char *limit = getenv("ZC_ON_OFF_SIZES");
    size_t runs = 0, count = sizeof sizes / sizeof *sizes,
           most = limit ? strtoul(limit, NULL, 10) : count;
    on_off_run run = {.sized = true};
    for (size_t i = 0; i < count && runs < most && run.sized; i++) {
        if (!on_off_check(s, sizes[i], &run, outputs, worst)) return false;
        runs += run.ran;
    }
    /* Graphs of passes may be such that random operands do not fit. */
    bool may_skip = strcmp(s->name + strlen(s->name) - 4, ".zir") == 0;
    if (!runs)
        printf("%s %s: runs with no size of its dimensions\n", may_skip ? "SKIP" : "FAIL", s->name);
    return runs > 0 || may_skip;
}

/* Does the file say that it is not to run, and why? */
static bool says_not(const char *path, const char *text)
{
    static const char mark[] = "\n# not on and off: ";
    const char *at = strstr(text, mark);
    if (!at) return false;
    const char *reason = at + strlen(mark);
    printf("SKIP %s: %.*s\n", path, (int)strcspn(reason, "\n"), reason);
    return true;
}

/* The graph in a golden test's file. *skip: there is none that is to run. */
static bool load(const char *path, zc_buf *out, bool *skip)
{
    static const char dashes[] = "\n---\n";
    uint8_t *data;
    size_t len;
    if (zc_file_read(path, 1 << 24, &data, &len, NULL) != ZC_OK) return false;
    char *text = (char *)data, *end = strstr(text, dashes);
    bool is_rules = strlen(path) > 4 && strcmp(path + strlen(path) - 4, ".zrt") == 0;
    *skip = is_rules ? strncmp(text, "# builtin", 9) != 0 : strncmp(text, "# passes:\n", 10) == 0;
    *skip |= says_not(path, text);
    if (is_rules && end) {
        text = end + strlen(dashes);
        end = strstr(text, dashes);
        *skip |= !end;
    }
    if (end) end[1] = 0;
    zc_buf_puts(out, text);
    free(data);
    return true;
}

/* A file, or the golden tests of a folder. */
static void expand(const char *path, glob_t *out, bool first)
{
    static const char *const kinds[] = {"/*.zrt", "/*.zir"};
    bool is_file = strlen(path) > 5 && strchr(path + strlen(path) - 5, '.');
    for (size_t i = 0; i < (is_file ? 1 : sizeof kinds / sizeof *kinds); i++) {
        zc_buf pattern = {0};
        zc_buf_printf(&pattern, "%s%s", path, is_file ? "" : kinds[i]);
        int flags = (first && i == 0 ? 0 : GLOB_APPEND) | (is_file ? GLOB_NOCHECK : 0);
        if (!pattern.failed) (void)glob(pattern.data, flags, NULL, out);
        zc_buf_fini(&pattern);
    }
}

/* Counts into *files what was to be run. false: it failed. */
static bool check_file(const char *path, bool on_gpu, size_t *files, size_t *outputs, double *worst)
{
    on_off s = {.name = path, .real = ZC_F32, .on_gpu = on_gpu};
    zc_buf text = {0};
    size_t n = strlen(path);
    bool skip = false, is_model = n > 5 && strcmp(path + n - 5, ".onnx") == 0;
    bool ok = is_model || load(path, &text, &skip);
    if (!ok) printf("FAIL %s: cannot be read\n", path);
    if (!is_model) s.text = text.data;
    if (ok && !is_model && strstr(text.data, ": f16[")) s.real = ZC_F16;
    if (ok && !skip) ok = check(&s, outputs, worst);
    *files += !skip;
    zc_buf_fini(&text);
    return ok;
}

/* Takes --part K/N from the end of the arguments. */
static void read_part(int *argc, char **argv, size_t *first, size_t *parts)
{
    if (*argc < 3 || strcmp(argv[*argc - 2], "--part") != 0) return;
    if (sscanf(argv[*argc - 1], "%zu/%zu", first, parts) != 2 || *first < 1 || *first > *parts) {
        fprintf(stderr, "on_off: --part K/N (got '%s')\n", argv[*argc - 1]);
        exit(2);
    }
    *argc -= 2;
}

int main(int argc, char **argv)
{
    glob_t paths = {0};
    size_t first = 1, parts = 1;
    read_part(&argc, argv, &first, &parts);
    size_t files = 0, failed = 0, outputs = 0;
    double worst = 0;
    bool on_gpu = argc > 1 && strcmp(argv[1], "--cuda") == 0;
    for (int i = 1 + on_gpu; i < argc; i++) expand(argv[i], &paths, i == 1 + on_gpu);
    for (size_t i = first - 1; i < paths.gl_pathc; i += parts)
        failed += !check_file(paths.gl_pathv[i], on_gpu, &files, &outputs, &worst);
    printf("%zu graphs, %zu outputs, worst error %.3g of the greatest element, %zu failed\n", files,
           outputs, worst, failed);
    globfree(&paths);
    return failed || !outputs;
}
