/* Golden tests of rules. A .zrt file has two or three parts between lines of dashes:
 *
 *   rules                         the text of a rule file; "# builtin" first: with zc's own
 *   ---
 *   messages                      what loading says, or
 *   graph "..." { ... }           a graph, and then
 *   ---
 *   graph "..." { ... }           what it becomes, or "error: text"
 *
 * usage: run_rules FILE-OR-FOLDER...; with ZC_BLESS=1 in the environment the last part is
 * rewritten.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "rules/rules.h"

static const char dashes[] = "\n---\n";

typedef struct golden {
    const char *path;
    char *rules, *graph, *expected; /* graph NULL: messages are expected */
} golden;

static bool load(const char *path, golden *out)
{
    uint8_t *data;
    size_t len;
    *out = (golden){.path = path};
    if (zc_file_read(path, 1 << 24, &data, &len, NULL) != ZC_OK) {
        printf("%s: cannot be read\n", path);
        return false;
    }
    out->rules = (char *)data;
    char *next = strstr(out->rules, dashes);
    if (!next) {
        printf("%s: not a golden test (need a line of ---)\n", path);
        return false;
    }
    next[1] = 0;
    out->expected = next + strlen(dashes);
    next = strstr(out->expected, dashes);
    if (!next) return true;
    next[1] = 0;
    out->graph = out->expected;
    out->expected = next + strlen(dashes);
    return true;
}

/* Every source is there but "none.cu". */
static zc_status read_source(void *user, const char *name, uint8_t **data, size_t *len,
                             zc_diag *diag)
{
    if (strcmp(name, "none.cu") == 0) return zc_fail(diag, ZC_ERR_IO, name, "is not there");
    *data = (uint8_t *)strdup("// scale, pair, e");
    *len = strlen("// scale, pair, e");
    return *data ? ZC_OK : zc_fail_nomem(diag, name, *len);
}

static void transform(zc_rules *r, const char *text, zc_buf *out)
{
    zc_diag *diag = zc_diag_create();
    zc_graph *g = NULL;
    zc_status status = zc_graph_parse(text, strlen(text), &g, diag);
    if (status == ZC_OK) status = zc_rules_apply(r, g, NULL, NULL, NULL, diag);
    if (g) zc_graph_compact(g);
    if (g && zc_graph_validate(g, "the rules", diag) != ZC_OK) status = ZC_ERR_INTERNAL;
    if (status == ZC_OK)
        zc_graph_print(g, false, out);
    else
        zc_buf_printf(out, "error: %s\n", zc_diag_text(diag, 0));
    zc_graph_destroy(&g);
    zc_diag_destroy(&diag);
}

static void run(const golden *t, zc_buf *out)
{
    zc_rules *r = NULL;
    if (zc_rules_create(&r, NULL) != ZC_OK) return;
    zc_status status = ZC_OK;
    zc_rules_set_reader(r, read_source, NULL);
    if (strncmp(t->rules, "# builtin", 9) == 0) status = zc_rules_add_builtin(r, NULL);
    if (status == ZC_OK)
        status = zc_rules_add_text(r, "test.zcr", t->rules, strlen(t->rules), NULL);
    zc_buf_puts(out, "");
    if (!t->graph || status != ZC_OK)
        for (size_t i = 0; i < zc_rules_message_count(r); i++) zc_rules_message_print(r, i, out);
    else
        transform(r, t->graph, out);
    zc_rules_destroy(&r);
}

static bool bless(const golden *t, const zc_buf *got)
{
    FILE *f = fopen(t->path, "wb");
    if (!f) return false;
    fprintf(f, "%s---\n", t->rules);
    if (t->graph) fprintf(f, "%s---\n", t->graph);
    fputs(got->data, f);
    printf("%s: blessed\n", t->path);
    return fclose(f) == 0;
}

static bool check(const char *path)
{
    golden t;
    zc_buf got = {0};
    bool ok = load(path, &t);
    if (ok) {
        run(&t, &got);
        ok = got.data && strcmp(got.data, t.expected) == 0;
        if (!ok && got.data && getenv("ZC_BLESS"))
            ok = bless(&t, &got);
        else if (!ok)
            printf("%s: the result differs (ZC_BLESS=1 accepts it). Got:\n%s", path,
                   got.data ? got.data : "");
    }
    zc_buf_fini(&got);
    free(t.rules);
    return ok;
}

/* A file, or all .zrt files of a folder. */
static bool expand(const char *path, glob_t *out, bool first)
{
    char pattern[4096];
    size_t n = strlen(path);
    bool is_file = n > 4 && strcmp(path + n - 4, ".zrt") == 0;
    snprintf(pattern, sizeof pattern, is_file ? "%s" : "%s/*.zrt", path);
    return glob(pattern, first ? 0 : GLOB_APPEND, NULL, out) == 0;
}

int main(int argc, char **argv)
{
    glob_t files = {0};
    int failed = 0;
    for (int i = 1; i < argc; i++)
        if (!expand(argv[i], &files, i == 1)) {
            printf("%s: no golden tests\n", argv[i]);
            return 2;
        }
    for (size_t i = 0; i < files.gl_pathc; i++) failed += !check(files.gl_pathv[i]);
    printf("%zu passed, %d failed\n", files.gl_pathc - (size_t)failed, failed);
    globfree(&files);
    return failed || argc < 2;
}
