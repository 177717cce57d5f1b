#include "tune/database.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/number.h"
#include "tune/builtin.h"
#include "tune/problem.h"

static const char header[] = "# zc tuned 1";

#define SAVED_MOST 1e9 /* microseconds */
enum { FILE_MOST = 16 << 20, LINE_MOST = 4096, ENTRIES_MOST = 1 << 16, FIELDS = 8 };

void zc_tuned_init(zc_tuned *t)
{
    *t = (zc_tuned){.entries = {0}};
    zc_arena_init(&t->arena, 0);
}

void zc_tuned_fini(zc_tuned *t)
{
    ZC_VEC_FINI(&t->entries);
    zc_arena_fini(&t->arena);
}

/* ---- entries ---- */

static int by_key(const zc_tuned_entry *a, const zc_tuned_entry *b)
{
    if (a->arch != b->arch) return a->arch < b->arch ? -1 : 1;
    int order = strcmp(a->gpu, b->gpu);
    return order ? order : strcmp(a->problem, b->problem);
}

static bool is_better(const zc_tuned_entry *a, const zc_tuned_entry *b)
{
    int order = strcmp(b->day, a->day);
    if (!order && a->saved != b->saved) return a->saved > b->saved;
    if (!order) order = strcmp(a->family, b->family);
    if (!order) order = strcmp(a->config, b->config);
    if (!order) order = strcmp(a->cuda, b->cuda);
    return order < 0;
}

/* Where an entry of this key is or would be. */
static size_t place_of(const zc_tuned *t, const zc_tuned_entry *e)
{
    size_t low = 0, high = t->entries.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_key(&t->entries.data[middle], e) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool copy_entry(zc_tuned *t, const zc_tuned_entry *e, zc_tuned_entry *out)
{
    *out = *e;
    out->gpu = zc_arena_strdup(&t->arena, e->gpu);
    out->problem = zc_arena_strdup(&t->arena, e->problem);
    out->family = zc_arena_strdup(&t->arena, e->family);
    out->config = zc_arena_strdup(&t->arena, e->config);
    out->cuda = zc_arena_strdup(&t->arena, e->cuda);
    out->day = zc_arena_strdup(&t->arena, e->day);
    return out->gpu && out->problem && out->family && out->config && out->cuda && out->day;
}

zc_status zc_tuned_add(zc_tuned *t, const zc_tuned_entry *e, zc_diag *diag)
{
    zc_tuned_entry own;
    size_t at = place_of(t, e);
    bool known = at < t->entries.len && by_key(&t->entries.data[at], e) == 0;
    if (known && !is_better(e, &t->entries.data[at])) return ZC_OK;
    if (!copy_entry(t, e, &own)) return zc_fail_nomem(diag, "measurements", t->entries.len);
    if (!known) {
        if (t->entries.len == ENTRIES_MOST)
            return zc_fail(diag, ZC_ERR_LIMIT, NULL, "too many measurements (need at most %d)",
                           ENTRIES_MOST);
        if (!ZC_VEC_PUSH(&t->entries, own))
            return zc_fail_nomem(diag, "measurements", t->entries.len);
        memmove(&t->entries.data[at + 1], &t->entries.data[at],
                (t->entries.len - 1 - at) * sizeof own);
    }
    t->entries.data[at] = own;
    return ZC_OK;
}

zc_status zc_tuned_add_all(zc_tuned *t, const zc_tuned *from, zc_diag *diag)
{
    for (size_t i = 0; i < from->entries.len; i++)
        ZC_TRY(zc_tuned_add(t, &from->entries.data[i], diag));
    return ZC_OK;
}

const zc_tuned_entry *zc_tuned_find(const zc_tuned *t, int arch, const char *gpu,
                                    const char *problem)
{
    zc_tuned_entry key = {.arch = arch, .gpu = gpu, .problem = problem};
    if (gpu) {
        size_t at = place_of(t, &key);
        bool known = at < t->entries.len && by_key(&t->entries.data[at], &key) == 0;
        return known ? &t->entries.data[at] : NULL;
    }
    for (size_t i = 0; i < t->entries.len; i++)
        if (t->entries.data[i].arch == arch && strcmp(t->entries.data[i].problem, problem) == 0)
            return &t->entries.data[i];
    return NULL;
}

/* ---- reading ---- */

/* "sm_90"; 0: it is not. */
static int arch_of(const char *text)
{
    char *end;
    if (strncmp(text, "sm_", 3) != 0 || text[3] < '1' || text[3] > '9') return 0;
    long n = strtol(text + 3, &end, 10);
    return *end == '\0' && n < 1000 ? (int)n : 0;
}

/* "2026-11-23" */
static bool is_day(const char *text)
{
    static const char form[] = "dddd-dd-dd";
    size_t n = strlen(text);
    for (size_t i = 0; i < n && i < sizeof form - 1; i++)
        if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i]) return false;
    return n == sizeof form - 1;
}

static zc_status parse_fields(char *const field[FIELDS], zc_tuned_entry *out, char *why, size_t n)
{
    char *end;
    *out = (zc_tuned_entry){.arch = arch_of(field[0]),
                            .gpu = field[1],
                            .problem = field[2],
                            .family = field[3],
                            .config = field[4],
                            .saved = zc_strtod(field[5], &end),
                            .cuda = field[6],
                            .day = field[7]};
    if (!out->arch)
        zc_snprintf(why, n, "no architecture (got '%.40s', need sm_90 or another)", field[0]);
    else if (!*out->gpu || !*out->problem || !*out->family || !*out->cuda)
        zc_snprintf(why, n, "an empty field (GPU, problem, family and CUDA's version are needed)");
    else if (end == field[5] || *end || !(fabs(out->saved) < SAVED_MOST))
        zc_snprintf(why, n, "no number of microseconds (got '%.40s')", field[5]);
    else if (!is_day(out->day))
        zc_snprintf(why, n, "no day (got '%.40s', need 2026-11-23 or another)", out->day);
    else
        return ZC_OK;
    return ZC_ERR_FORMAT;
}

static zc_status parse_line(char *line, zc_tuned_entry *out, char *why, size_t n)
{
    char *field[FIELDS] = {line};
    int count = 1;
    for (char *c = line; *c; c++) {
        if (*c == '\t') {
            if (count < FIELDS) field[count] = c + 1;
            count++;
            *c = '\0';
        } else if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            zc_snprintf(why, n, "a control character (0x%02x)", (unsigned char)*c);
            return ZC_ERR_FORMAT;
        }
    }
    if (count == FIELDS) return parse_fields(field, out, why, n);
    zc_snprintf(why, n, "fields with tabs between (got %d, need %d)", count, FIELDS);
    return ZC_ERR_FORMAT;
}

typedef zc_status adder(zc_tuned *t, const zc_tuned_entry *e, zc_diag *diag);

/* Under the normal form of its problem, whatever zc wrote it. */
static zc_status add_normal(zc_tuned *t, const zc_tuned_entry *e, zc_diag *diag)
{
    zc_buf normal = {0};
    zc_tuned_entry own = *e;
    if (zc_problem_normal(e->problem, &normal)) own.problem = normal.data;
    zc_status status = normal.failed ? zc_fail_nomem(diag, "measurements", normal.len)
                                     : zc_tuned_add(t, &own, diag);
    zc_buf_fini(&normal);
    return status;
}

static zc_status add_line(zc_tuned *t, adder *add, const char *text, size_t len, const char *name,
                          size_t number, zc_diag *diag)
{
    char line[LINE_MOST], why[160] = "";
    zc_tuned_entry e;
    if (len >= sizeof line)
        return zc_fail(diag, ZC_ERR_FORMAT, name, "line %zu is too long (need at most %d bytes)",
                       number, LINE_MOST - 1);
    memcpy(line, text, len);
    line[len] = '\0';
    if (memchr(line, '\0', len))
        return zc_fail(diag, ZC_ERR_FORMAT, name, "line %zu: a control character (0x00)", number);
    if (strcmp(line, header) == 0) return ZC_OK;
    if (number == 1)
        return zc_fail(diag, ZC_ERR_FORMAT, name,
                       "holds no measurements, or those of another zc (need the first line '%s')",
                       header);
    if (parse_line(line, &e, why, sizeof why) != ZC_OK)
        return zc_fail(diag, ZC_ERR_FORMAT, name, "line %zu: %s", number, why);
    return add(t, &e, diag);
}

static zc_status add_lines(zc_tuned *t, adder *add, const char *text, size_t len, const char *name,
                           zc_diag *diag)
{
    size_t number = 1;
    for (size_t at = 0, n; at < len || number == 1; at += n + 1, number++) {
        const char *end = memchr(text + at, '\n', len - at);
        n = end ? (size_t)(end - (text + at)) : len - at;
        ZC_TRY(add_line(t, add, text + at, n, name, number, diag));
    }
    return ZC_OK;
}

zc_status zc_tuned_parse(zc_tuned *t, const char *text, size_t len, const char *name, zc_diag *diag)
{
    return add_lines(t, add_normal, text, len, name, diag);
}

zc_status zc_tuned_read(zc_tuned *t, const char *path, zc_diag *diag)
{
    uint8_t *text;
    size_t len;
    ZC_TRY(zc_file_read(path, FILE_MOST, &text, &len, diag));
    zc_status status = zc_tuned_parse(t, (const char *)text, len, path, diag);
    free(text);
    return status;
}

/* Their problems have their normal form (tests/unit/test_tuned.c), which takes 30 ms to make. */
zc_status zc_tuned_add_builtin(zc_tuned *t, zc_diag *diag)
{
    for (const zc_tuned_file *f = zc_tuned_files; f->name; f++)
        ZC_TRY(add_lines(t, zc_tuned_add, f->text, strlen(f->text), f->name, diag));
    return ZC_OK;
}

/* ---- writing ---- */

zc_status zc_tuned_print(const zc_tuned *t, zc_buf *out, zc_diag *diag)
{
    zc_buf_printf(out, "%s\n", header);
    for (size_t i = 0; i < t->entries.len; i++) {
        const zc_tuned_entry *e = &t->entries.data[i];
        zc_buf_printf(out, "sm_%d\t%s\t%s\t%s\t%s\t%.2f\t%s\t%s\n", e->arch, e->gpu, e->problem,
                      e->family, e->config, e->saved, e->cuda, e->day);
    }
    return out->failed ? zc_fail_nomem(diag, "measurements", out->len) : ZC_OK;
}

zc_status zc_tuned_write(const zc_tuned *t, const char *path, zc_diag *diag)
{
    zc_buf text = {0};
    zc_status status = zc_tuned_print(t, &text, diag);
    if (status == ZC_OK) status = zc_file_write(path, text.data, text.len, diag);
    zc_buf_fini(&text);
    return status;
}
