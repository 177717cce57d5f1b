/* Finds the kernels in preprocessed source: the name before the first parenthesis that follows
 * __global__, attributes aside. */
#include "kernel_table.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Past spaces and the preprocessor's line marks. */
static char *skip_space(char *p)
{
    for (;;) {
        while (isspace((unsigned char)*p)) p++;
        if (*p != '#') return p;
        while (*p && *p != '\n') p++;
    }
}

/* p at '(': past the ')' that closes it. *comma: the first one directly inside, or that ')'. */
static char *skip_parens(char *p, char **comma)
{
    int depth = 0;
    *comma = NULL;
    for (; *p; p++) {
        if (*p == '(') depth++;
        if (*p == ')' && --depth == 0) break;
        if (*p == ',' && depth == 1 && !*comma) *comma = p;
    }
    if (!*comma) *comma = p;
    return *p ? p + 1 : p;
}

static void blank(char *from, const char *to)
{
    for (; from < to; from++)
        if (*from != '\n') *from = ' ';
}

static char *next_word(char *text, const char *word)
{
    size_t n = strlen(word);
    for (char *p = text; (p = strstr(p, word)); p += n)
        if ((p == text || !is_word(p[-1])) && !is_word(p[n])) return p;
    return NULL;
}

typedef struct found {
    const char *name, *bound;
    size_t name_size, bound_size;
} found;

/* p behind __global__. */
static found find_name(char *p)
{
    found f = {.bound = "1024", .bound_size = 4};
    char *comma;
    for (p = skip_space(p); *p && *p != '(' && *p != ';' && *p != '{'; p = skip_space(p)) {
        char *word = p;
        while (is_word(*p)) p++;
        if (p == word) {
            p++; /* a sign of the return type */
            continue;
        }
        size_t n = (size_t)(p - word);
        char *next = skip_space(p);
        if (*next != '(') continue;
        if (n == 17 && strncmp(word, "__launch_bounds__", n) == 0) {
            p = skip_parens(next, &comma);
            f.bound = next + 1;
            f.bound_size = (size_t)(comma - next - 1);
        } else if (n == 13 && strncmp(word, "__attribute__", n) == 0) {
            p = skip_parens(next, &comma);
        } else {
            f.name = word;
            f.name_size = n;
            return f;
        }
    }
    return f;
}

static bool seen_before(const char *table, const found *f)
{
    char *entry = NULL;
    if (asprintf(&entry, "<&::%.*s>", (int)f->name_size, f->name) < 0) return true;
    bool seen = strstr(table, entry) != NULL;
    free(entry);
    return seen;
}

/* An entry that the kernel has not: a template that nobody instantiates. */
static bool is_template(const char *text, const char *p)
{
    while (p > text && isspace((unsigned char)p[-1])) p--;
    return p > text && p[-1] == '>';
}

static void blank_all(char *text)
{
    char *p = text, *comma;
    while ((p = next_word(p, "__launch_bounds__"))) {
        char *open = skip_space(p + 17), *end = *open == '(' ? skip_parens(open, &comma) : p + 17;
        blank(p, end);
        p = end;
    }
    for (p = text; (p = next_word(p, "__global__")); p += 10) blank(p, p + 10);
}

static const char head[] = "static const zc_host_kernel zc_host_kernels[] = {\n";
static const char tail[] =
    "{}};\n"
    "extern \"C\" __attribute__((visibility(\"default\"))) const zc_host_module "
    "*zc_hostcuda_bind(\n"
    "    const zc_host_api *api)\n"
    "{\n"
    "    return zc_host_describe(api, zc_host_kernels,\n"
    "                            sizeof zc_host_kernels / sizeof *zc_host_kernels - 1);\n"
    "}\n";

char *hc_kernel_table(char *text)
{
    char *table = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&table, &size);
    if (!f) return NULL;
    fputs(head, f);
    for (char *p = text; (p = next_word(p, "__global__")); p += 10) {
        found k = find_name(p + 10);
        fflush(f);
        if (!k.name || is_template(text, p) || seen_before(table, &k)) continue;
        fprintf(f, "zc_host_entry<&::%.*s>::of(\"%.*s\", %.*s),\n", (int)k.name_size, k.name,
                (int)k.name_size, k.name, (int)k.bound_size, k.bound);
    }
    fputs(tail, f);
    fclose(f);
    blank_all(text);
    return table;
}
