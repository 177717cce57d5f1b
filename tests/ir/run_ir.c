/* Golden tests of passes on the printed graph. A .zir file:
 *
 *   # passes: NAME NAME=f16 ...   (none: the text must come back unchanged; f16, tf32: the
 * precision; sm_90: the target; sm_90+: with what has not run on a GPU) graph "..." { ... }
 *   ---
 *   graph "..." { ... }           the expected text, or "error: text" that the parser must say
 *
 * usage: run_ir FILE...; with ZC_BLESS=1 in the environment the expected text is rewritten. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "passes/passes.h"

#define PASSES_MAX 16

typedef struct golden {
    const char *path;
    char *text;     /* the whole file */
    char *expected; /* after the line of dashes */
    char passes[PASSES_MAX][64];
    int npasses;
    zc_dtype precision;
    bool tf32;
    zc_rule_target target; /* the CPU, unless one is named */
    bool offered;
} golden;

static bool load(const char *path, golden *out)
{
    uint8_t *data;
    size_t len;
    zc_diag *diag = zc_diag_create();
    *out = (golden){.path = path};
    if (zc_file_read(path, 1 << 20, &data, &len, diag) != ZC_OK) {
        printf("%s\n", zc_diag_text(diag, 0));
        zc_diag_destroy(&diag);
        return false;
    }
    zc_diag_destroy(&diag);
    out->text = (char *)data;
    char *dashes = strstr(out->text, "\n---\n");
    const char *head = "# passes:";
    if (!dashes || strncmp(out->text, head, strlen(head)) != 0) {
        printf("%s: not a golden test (need '# passes:' and a line of ---)\n", path);
        return false;
    }
    dashes[1] = 0;
    out->expected = dashes + 5;
    char line[512];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(out->text + strlen(head), "\n"),
             out->text + strlen(head));
    for (char *w = strtok(line, " "); w && out->npasses < PASSES_MAX; w = strtok(NULL, " ")) {
        char *type = strchr(w, '=');
        int sm = 0;
        if (type && sscanf(type, "=sm_%d", &sm) == 1) {
            out->target = (zc_rule_target){.cuda = true, .sm = sm, .sm_most = sm};
            out->offered = strchr(type, '+') != NULL;
        } else if (type && strcmp(type, "=tf32") == 0) {
            out->tf32 = true;
        } else if (type) {
            out->precision = zc_dtype_parse(type + 1);
        }
        snprintf(out->passes[out->npasses++], sizeof out->passes[0], "%.*s", (int)strcspn(w, "="),
                 w);
    }
    return true;
}

/* What the file's graph becomes: its text, or "error: ..." and a newline. */
static void transform(const golden *t, zc_buf *out)
{
    zc_diag *diag = zc_diag_create();
    zc_graph *g = NULL;
    zc_status status = zc_graph_parse(t->text, strlen(t->text), &g, diag);
    const zc_pass_options options = {
        .precision = t->precision, .tf32 = t->tf32, .target = &t->target, .offered = t->offered};
    for (int i = 0; status == ZC_OK && i < t->npasses; i++)
        status = zc_run_pass(g, t->passes[i], &options, diag);
    if (status == ZC_OK)
        zc_graph_print(g, false, out);
    else
        zc_buf_printf(out, "%s: %s\n", status == ZC_ERR_INTERNAL ? "internal error" : "error",
                      zc_diag_text(diag, 0));
    zc_graph_destroy(&g);
    zc_diag_destroy(&diag);
}

static bool bless(const golden *t, const zc_buf *got)
{
    FILE *f = fopen(t->path, "wb");
    if (!f) return false;
    fprintf(f, "%s---\n%s", t->text, got->data);
    return fclose(f) == 0;
}

static bool check(const char *path)
{
    golden t;
    zc_buf got = {0};
    bool ok = load(path, &t);
    if (ok) {
        transform(&t, &got);
        ok = got.data && strcmp(got.data, t.expected) == 0;
        if (!ok && getenv("ZC_BLESS")) {
            ok = bless(&t, &got);
            printf("%s: blessed\n", path);
        } else if (!ok) {
            printf("%s: the result differs (ZC_BLESS=1 accepts it). Got:\n%s", path,
                   got.data ? got.data : "");
        }
    }
    zc_buf_fini(&got);
    free(t.text);
    return ok;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++) failed += !check(argv[i]);
    printf("%d passed, %d failed\n", argc - 1 - failed, failed);
    return failed || argc < 2;
}
