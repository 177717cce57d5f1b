/* Writes kernels/abi.h's tables: abi OUT ROOT TEMPLATE... -- HEADER... A template's hash covers the
 * headers below ROOT/abi that it includes, itself or through others, each once, without comments
 * and spaces; a source's every byte. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 128 };

typedef struct walk {
    const char *root;
    char *seen[MOST];
    int n;
    uint64_t hash;
} walk;

static char *read_all(const char *root, const char *name)
{
    char *path = NULL, *text = NULL;
    long size;
    FILE *in = asprintf(&path, "%s/%s", root, name) < 0 ? NULL : fopen(path, "rb");
    if (in && fseek(in, 0, SEEK_END) == 0 && (size = ftell(in)) >= 0 &&
        fseek(in, 0, SEEK_SET) == 0 && (text = calloc((size_t)size + 1, 1)) &&
        fread(text, 1, (size_t)size, in) != (size_t)size) {
        free(text);
        text = NULL;
    }
    if (in) fclose(in);
    free(path);
    return text;
}

static void add(walk *w, const char *at)
{
    while (*at) {
        if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            at = end ? end + 2 : at + strlen(at);
        } else if (at[0] == '/' && at[1] == '/') {
            at += strcspn(at, "\n");
        } else {
            if (!isspace((unsigned char)*at))
                w->hash = (w->hash ^ (unsigned char)*at) * 0x100000001b3u;
            at++;
        }
    }
}

/* What is not there is generated (spec.h), or the other half of a pair (zc/ptx.cuh for the tests).
 */
static int visit(walk *w, const char *name)
{
    for (int i = 0; i < w->n; i++)
        if (strcmp(w->seen[i], name) == 0) return 0;
    char *text = read_all(w->root, name);
    if (!text) return strcmp(name, "spec.h") != 0;
    if (w->n == MOST || !(w->seen[w->n++] = strdup(name))) return 1;
    static const char include[] = "#include \"";
    int bad = 0;
    for (const char *at = text; !bad && (at = strstr(at, include)) != NULL;) {
        char inner[128];
        at += sizeof include - 1;
        size_t n = strcspn(at, "\"\n");
        bad = n >= sizeof inner;
        if (!bad) {
            memcpy(inner, at, n);
            inner[n] = '\0';
            bad = visit(w, inner);
        }
    }
    if (strncmp(name, "abi/", 4) == 0) add(w, text);
    free(text);
    return bad;
}

static const char *below(const char *root, const char *path)
{
    static char real[2][4096];
    if (!realpath(root, real[0]) || !realpath(path, real[1])) return NULL;
    size_t n = strlen(real[0]);
    return strncmp(real[1], real[0], n) == 0 && real[1][n] == '/' ? real[1] + n + 1 : NULL;
}

static int put_abi(FILE *out, const char *root, const char *name)
{
    walk w = {.root = root, .hash = 0xcbf29ce484222325u};
    int bad = visit(&w, name);
    fprintf(out, "    {\"%s\", 0x%016llxu},\n", name, (unsigned long long)w.hash);
    while (w.n) free(w.seen[--w.n]);
    return bad;
}

static int put_source(FILE *out, const char *root, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    char *text = read_all(root, name);
    for (const char *c = text; c && *c; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    fprintf(out, "    {\"%s\", 0x%016llxu},\n", name, (unsigned long long)hash);
    free(text);
    return !text;
}

int main(int argc, char **argv)
{
    FILE *out = argc > 3 ? fopen(argv[1], "wb") : NULL;
    int bad = !out, headers = 0;
    if (out)
        fprintf(out, "#include \"kernels/abi.h\"\n\nconst zc_source_hash zc_template_abis[] = {\n");
    for (int i = 3; !bad && i < argc && !headers; i++) {
        headers = strcmp(argv[i], "--") == 0;
        const char *name = headers ? NULL : below(argv[2], argv[i]);
        bad = !headers && (!name || put_abi(out, argv[2], name));
    }
    if (out) fprintf(out, "    {0, 0},\n};\n\nconst zc_source_hash zc_source_hashes[] = {\n");
    for (int i = 3; !bad && i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) continue;
        const char *name = below(argv[2], argv[i]);
        bad = !name || put_source(out, argv[2], name);
    }
    if (out) fprintf(out, "    {0, 0},\n};\n");
    if (bad)
        fprintf(stderr,
                "usage: abi OUT ROOT TEMPLATE... -- HEADER..., readable files below ROOT\n");
    return (out && fclose(out)) || bad;
}
