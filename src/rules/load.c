/* Sets of rules: files in, messages out. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/number.h"
#include "rules/builtin.h"
#include "rules/front.h"

/* Messages kept; more errors are only counted. */
#define MESSAGES_MAX 1000

/* ---- life ---- */

zc_status zc_rules_create(zc_rules **out, zc_diag *diag)
{
    *out = zc_calloc(1, sizeof **out);
    if (!*out) return zc_fail_nomem(diag, "rules", sizeof **out);
    zc_arena_init(&(*out)->arena, 0);
    return ZC_OK;
}

void zc_rules_destroy(zc_rules **rp)
{
    if (!rp || !*rp) return;
    zc_rules *r = *rp;
    *rp = NULL;
    ZC_VEC_FINI(&r->files);
    ZC_VEC_FINI(&r->rules);
    ZC_VEC_FINI(&r->pointwise);
    ZC_VEC_FINI(&r->kernels);
    ZC_VEC_FINI(&r->defines);
    ZC_VEC_FINI(&r->messages);
    zc_arena_fini(&r->arena);
    free(r);
}

void *zc_rl_new(zc_rules *r, size_t size)
{
    void *p = zc_arena_alloc(&r->arena, 1, size);
    if (!p) r->nomem = true;
    return p;
}

bool zc_rl_push(zc_rules *r, zc_rl_list *list, void *item)
{
    if (list->n == list->cap) {
        int cap = list->cap ? 2 * list->cap : 4;
        void **v = list->cap < (1 << 24) ? zc_arena_alloc(&r->arena, (size_t)cap, sizeof *v) : NULL;
        if (!v) {
            r->nomem = true;
            return false;
        }
        if (list->n) memcpy(v, list->v, (size_t)list->n * sizeof *v);
        list->v = v;
        list->cap = cap;
    }
    list->v[list->n++] = item;
    return true;
}

/* ---- messages ---- */

/* Copies of what is written once say the same. */
static bool is_known(const zc_rules *r, int file, zc_rl_loc loc, const char *text)
{
    for (size_t i = r->messages.len; i-- > 0;) {
        const zc_rl_message *m = &r->messages.data[i];
        if (m->file == file && m->loc.line == loc.line && m->loc.col == loc.col &&
            strcmp(m->text, text) == 0)
            return true;
    }
    return false;
}

static void add_message(zc_rules *r, bool is_error, int file, zc_rl_loc loc, const char *text)
{
    zc_rl_message m = {.is_error = is_error, .file = file, .loc = loc};
    if (r->messages.len >= MESSAGES_MAX || is_known(r, file, loc, text)) return;
    m.text = zc_arena_strdup(&r->arena, text);
    if (!m.text || !ZC_VEC_PUSH(&r->messages, m)) r->nomem = true;
}

void zc_rl_error(zc_rules *r, int file, zc_rl_loc loc, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    zc_vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    r->errors++;
    add_message(r, true, file, loc, text);
}

void zc_rl_warn(zc_rules *r, int file, zc_rl_loc loc, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    zc_vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    add_message(r, false, file, loc, text);
}

size_t zc_rules_message_count(const zc_rules *r)
{
    return r->messages.len;
}

/* The line that loc is in, without its end. */
static const char *source_line(const zc_rl_file *f, int line, size_t *len)
{
    const char *at = f->text, *end = f->text + f->len;
    for (int i = 1; i < line && at; i++) {
        at = memchr(at, '\n', (size_t)(end - at));
        if (at) at++;
    }
    if (!at) return NULL;
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    *len = (size_t)((stop ? stop : end) - at);
    if (*len && at[*len - 1] == '\r') --*len;
    return at;
}

/* Spaces up to the column, and a caret with tildes below the word. */
static void put_caret(const char *line, size_t len, zc_rl_loc loc, zc_buf *out)
{
    enum { UNDERLINE_MAX = 100 };
    int col = 1, end = loc.col + (loc.len < UNDERLINE_MAX ? loc.len : UNDERLINE_MAX);
    zc_buf_puts(out, "    ");
    for (size_t i = 0; i < len && col < loc.col; i++) {
        if (zc_rl_goes_on(line[i])) continue;
        zc_buf_puts(out, line[i] == '\t' ? "\t" : " ");
        col++;
    }
    zc_buf_puts(out, "^");
    for (col = loc.col + 1; col < end; col++) zc_buf_puts(out, "~");
    zc_buf_puts(out, "\n");
}

static void put_place(const zc_rules *r, const zc_rl_message *m, zc_buf *out)
{
    const char *file = r->files.data[m->file].name;
    zc_buf_escape(out, file, strlen(file));
    zc_buf_printf(out, ":%d:%d: %s: ", m->loc.line, m->loc.col, m->is_error ? "error" : "warning");
    zc_buf_escape(out, m->text, strlen(m->text));
}

bool zc_rules_message_print(const zc_rules *r, size_t i, zc_buf *out)
{
    enum { LINE_MAX_SHOWN = 400 };
    if (i >= r->messages.len) return false;
    const zc_rl_message *m = &r->messages.data[i];
    size_t len = 0;
    put_place(r, m, out);
    zc_buf_puts(out, "\n");
    const char *line = source_line(&r->files.data[m->file], m->loc.line, &len);
    if (!line || (size_t)m->loc.col > LINE_MAX_SHOWN) return m->is_error;
    if (len > LINE_MAX_SHOWN) len = LINE_MAX_SHOWN;
    zc_buf_puts(out, "    ");
    for (size_t k = 0; k < len; k++) {
        if (line[k] == '\t')
            zc_buf_puts(out, "\t");
        else
            zc_buf_append(out, (unsigned char)line[k] < 0x20 ? "?" : &line[k], 1);
    }
    zc_buf_puts(out, "\n");
    put_caret(line, len, m->loc, out);
    return m->is_error;
}

/* ---- reading ---- */

/* Bytes of the UTF-8 character at s, or 0. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
    size_t len = s[0] < 0x80 ? 1 : s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : s[0] >= 0xC2 ? 2 : 0;
    if (len == 0 || len > n || s[0] > 0xF4) return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    if (s[0] == 0xE0 && s[1] < 0xA0) return 0;
    if (s[0] == 0xED && s[1] > 0x9F) return 0;
    if (s[0] == 0xF0 && s[1] < 0x90) return 0;
    if (s[0] == 0xF4 && s[1] > 0x8F) return 0;
    return len;
}

/* Reports the first byte that is no text. */
static bool is_text(zc_rules *r, int file)
{
    const zc_rl_file *f = &r->files.data[file];
    zc_rl_loc loc = {.line = 1, .col = 1, .len = 1};
    for (size_t i = 0; i < f->len;) {
        const unsigned char *s = (const unsigned char *)f->text + i;
        size_t n = utf8_length(s, f->len - i);
        if (n == 0 || *s == 0) {
            zc_rl_error(r, file, loc, n ? "a NUL byte" : "a byte that is not UTF-8 (got 0x%02x)",
                        (unsigned)*s);
            return false;
        }
        loc.col = *s == '\n' ? 1 : loc.col + 1;
        loc.line += *s == '\n';
        i += n;
    }
    return true;
}

void zc_rl_parse(zc_rules *r, int file)
{
    const zc_rl_file *f = &r->files.data[file];
    zc_rl_scan s = {.r = r, .file = file, .line = 1, .col = 1};
    if (is_text(r, file) && !zc_rl_read(&s, f->text, f->len)) r->nomem = true;
}

/* Errors since message `from` as lines of diag. */
static void report(const zc_rules *r, size_t from, zc_diag *diag)
{
    for (size_t i = from; i < r->messages.len; i++) {
        const zc_rl_message *m = &r->messages.data[i];
        char place[600];
        if (!m->is_error) continue;
        snprintf(place, sizeof place, "%.500s:%d:%d", r->files.data[m->file].name, m->loc.line,
                 m->loc.col);
        zc_fail(diag, ZC_ERR_FORMAT, place, "%s", m->text);
    }
}

static int by_place(const void *a, const void *b)
{
    const zc_rl_message *x = a, *y = b;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    if (x->loc.line != y->loc.line) return x->loc.line < y->loc.line ? -1 : 1;
    return x->loc.col < y->loc.col ? -1 : x->loc.col > y->loc.col;
}

/* f: what the file is. Its number, or -1: no memory. */
static int add_source(zc_rules *r, const char *name, const char *text, size_t len, zc_rl_file f)
{
    static const char bom[] = "\xEF\xBB\xBF";
    if (len >= 3 && memcmp(text, bom, 3) == 0) {
        text += 3;
        len -= 3;
    }
    f.name = zc_arena_strdup(&r->arena, name);
    f.text = zc_arena_dup(&r->arena, text, len, 1);
    f.len = len;
    if (!f.name || !f.text || !ZC_VEC_PUSH(&r->files, f)) return -1;
    return (int)r->files.len - 1;
}

static zc_status add(zc_rules *r, const char *name, const char *text, size_t len, zc_rl_file f,
                     zc_diag *diag)
{
    size_t rules = r->rules.len, pointwise = r->pointwise.len, messages = r->messages.len;
    size_t kernels = r->kernels.len, defines = r->defines.len, errors = r->errors;
    if (len > ZC_RULES_FILE_MAX)
        return zc_fail(diag, ZC_ERR_LIMIT, name,
                       "rule file too large (got %zu bytes, need at most %zu)", len,
                       ZC_RULES_FILE_MAX);
    int file = add_source(r, name, text, len, f);
    if (file < 0) return zc_fail_nomem(diag, "rules", len);
    zc_rl_parse(r, file);
    zc_rl_check(r, rules, pointwise, kernels, defines);
    if (!r->nomem) zc_rl_check_set(r, rules);
    if (r->nomem) return zc_fail_nomem(diag, "rules", len);
    if (r->messages.len > messages)
        qsort(r->messages.data + messages, r->messages.len - messages, sizeof *r->messages.data,
              by_place);
    report(r, messages, diag);
    return r->errors == errors ? ZC_OK : ZC_ERR_FORMAT;
}

/* ---- include ---- */

static bool has_file(const zc_rules *r, const char *name, int like)
{
    for (size_t i = 0; i < r->files.len; i++)
        if (strcmp(r->files.data[i].name, name) == 0 &&
            r->files.data[i].is_builtin == r->files.data[like].is_builtin)
            return true;
    return false;
}

/* The file's number; -1: it is not to be read, or was. */
static int open_included(zc_rl_scan *s, const char *name, zc_rl_loc loc)
{
    zc_rules *r = s->r;
    uint8_t *data = NULL;
    size_t len = 0;
    int file = -1;
    char *path = zc_rl_path_beside(r, s->file, name);
    zc_diag *diag = zc_diag_create();
    if (!path || !diag) r->nomem = true;
    if (!r->nomem && !has_file(r, path, s->file)) {
        zc_status status =
            zc_rl_read_beside(r, s->file, name, ZC_RULES_FILE_MAX, &data, &len, diag);
        if (status != ZC_OK) zc_rl_error(r, s->file, loc, "%s", zc_diag_text(diag, 0));
        if (status == ZC_OK)
            file = add_source(r, path, data ? (const char *)data : "", len, r->files.data[s->file]);
        r->nomem |= status == ZC_ERR_NOMEM || (status == ZC_OK && file < 0);
    }
    zc_diag_destroy(&diag);
    free(data);
    free(path);
    return file;
}

void zc_rl_include(zc_rl_scan *s, const char *name, zc_rl_loc loc)
{
    enum { FILES_MAX = 64 };
    if (s->r->nomem) return;
    if (!zc_rl_is_below(name))
        zc_rl_error(s->r, s->file, loc, "the file must lie in the rule file's folder or below it");
    else if (s->r->files.len >= FILES_MAX)
        zc_rl_error(s->r, s->file, loc, "too many files (need at most %d)", FILES_MAX);
    else {
        int file = open_included(s, name, loc);
        if (file >= 0) zc_rl_parse(s->r, file);
    }
}

void zc_rules_set_reader(zc_rules *r, zc_rules_read_fn read, void *user)
{
    r->read = read;
    r->read_user = user;
}

zc_status zc_rules_add_text(zc_rules *r, const char *name, const char *text, size_t len,
                            zc_diag *diag)
{
    return add(r, name, text, len, (zc_rl_file){.is_builtin = false}, diag);
}

zc_status zc_rules_add_file(zc_rules *r, const char *path, zc_diag *diag)
{
    uint8_t *data;
    size_t len;
    ZC_TRY(zc_file_read(path, ZC_RULES_FILE_MAX, &data, &len, diag));
    zc_status status =
        add(r, path, (const char *)data, len, (zc_rl_file){.is_on_disk = true}, diag);
    free(data);
    return status;
}

zc_status zc_rules_add_builtin(zc_rules *r, zc_diag *diag)
{
    for (const zc_builtin_file *f = zc_builtin_rules; f->name; f++)
        ZC_TRY(add(r, f->name, f->text, strlen(f->text), (zc_rl_file){.is_builtin = true}, diag));
    return ZC_OK;
}

/* ---- looking ---- */

size_t zc_rules_count(const zc_rules *r)
{
    return r->rules.len;
}

zc_rule_info zc_rules_at(const zc_rules *r, size_t i)
{
    const zc_rl_rule *rule = r->rules.data[i];
    const zc_rl_file *f = &r->files.data[rule->file];
    return (zc_rule_info){.name = rule->name.text,
                          .file = f->name,
                          .line = rule->name.loc.line,
                          .kind = rule->kind,
                          .priority = rule->priority,
                          .unchecked = rule->unchecked,
                          .is_builtin = f->is_builtin,
                          .is_disabled = rule->disabled,
                          .nodes = rule->nsure};
}

static const char *rule_name(const void *ctx, int i)
{
    const zc_rules *r = ctx;
    return (size_t)i < r->rules.len ? r->rules.data[i]->name.text : NULL;
}

zc_status zc_rules_disable(zc_rules *r, const char *name, zc_diag *diag)
{
    for (size_t i = 0; i < r->rules.len; i++) {
        if (strcmp(r->rules.data[i]->name.text, name) != 0) continue;
        r->rules.data[i]->disabled = true;
        return ZC_OK;
    }
    zc_buf hint = {0};
    zc_rl_suggest(&hint, name, rule_name, r);
    zc_status status =
        zc_fail(diag, ZC_ERR_ARG, name, "no such rule%s", hint.data ? hint.data : "");
    zc_buf_fini(&hint);
    return status;
}
