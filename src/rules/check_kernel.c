/* Kernels of users: what their clauses say, as the attributes of a UserKernel node. */
#include <stdlib.h>
#include <string.h>

#include "op/sizes.h"
#include "rules/check.h"

enum { RESULTS_MAX = 8, PARAMS_MAX = 32, ARGS_MAX = 16, BLOCK_MAX = 1024 };

typedef struct reader {
    zc_rl_checker c;
    zc_rl_kernel *k;
    bool in_result; /* where results have no shape yet */
} reader;

static const char *keep(reader *d, zc_buf *text)
{
    const char *out =
        text->failed ? NULL : zc_arena_strdup(&d->c.r->arena, text->data ? text->data : "");
    if (!out) d->c.r->nomem = true;
    zc_buf_fini(text);
    return out;
}

/* Is the expression right, and of that type? */
static bool is_a(reader *d, zc_rl_expr *e, zc_rl_type need)
{
    size_t errors = d->c.r->errors;
    zc_rl_check_expr_is(&d->c, e, need);
    return d->c.r->errors == errors;
}

/* ---- sizes: expressions as the words of op/sizes.h ---- */

static void put_size(reader *d, zc_buf *out, const zc_rl_expr *e);

static void put_args(reader *d, zc_buf *out, const zc_rl_expr *e)
{
    for (int i = 0; i < e->args.n; i++) put_size(d, out, zc_rl_expr_at(&e->args, i));
}

static void put_call(reader *d, zc_buf *out, const zc_rl_expr *e)
{
    static const struct {
        zc_rl_function f;
        const char *word;
    } words[] = {{ZC_RF_dim, "dim "}, {ZC_RF_rank, "rank "}, {ZC_RF_size, "size "},
                 {ZC_RF_min, "min "}, {ZC_RF_max, "max "},   {ZC_RF_ceil_div, "cdiv "}};
    for (size_t i = 0; i < ZC_COUNTOF(words); i++) {
        if (e->index != (int)words[i].f) continue;
        put_args(d, out, e);
        zc_buf_puts(out, words[i].word);
        return;
    }
    zc_rl_fault(&d->c, e->loc, "a size is made of dim, rank, size, min, max and ceil_div (got %s)",
                e->text);
}

static void put_size(reader *d, zc_buf *out, const zc_rl_expr *e)
{
    int np = d->k->params.n + d->k->nresults;
    switch (e->kind) {
    case ZC_RE_INT:
        zc_buf_printf(out, "%lld ", (long long)e->i);
        return;
    case ZC_RE_NAME:
        if (e->word != ZC_RW_VAR) break;
        if (d->in_result && e->index >= d->k->params.n && e->index < np)
            zc_rl_fault(&d->c, e->loc, "a result's shape comes from operands");
        zc_buf_printf(out, e->index < np ? "%d " : "%d tune ",
                      e->index < np ? e->index : e->index - np);
        return;
    case ZC_RE_CALL:
        put_call(d, out, e);
        return;
    case ZC_RE_NEG:
        zc_buf_puts(out, "0 ");
        put_args(d, out, e);
        zc_buf_puts(out, "- ");
        return;
    case ZC_RE_ADD:
    case ZC_RE_SUB:
    case ZC_RE_MUL:
    case ZC_RE_DIV:
    case ZC_RE_MOD:
        put_args(d, out, e);
        zc_buf_printf(out, "%c ", "+-*/%"[e->kind - ZC_RE_ADD]);
        return;
    default:
        break;
    }
    zc_rl_fault(&d->c, e->loc, "a size is made of whole numbers");
}

/* What a size may be. */
typedef struct range {
    int64_t least, most;
} range;

static void put_range_fault(reader *d, const zc_rl_clause *c, zc_rl_loc loc, int64_t got,
                            zc_ints tuned, range of)
{
    zc_buf text = {0};
    zc_buf_printf(&text, "%s is %lld%s", c->word, (long long)got, tuned.n ? " with " : "");
    zc_tuning_print(d->k->attrs.tuning, tuned, &text);
    zc_buf_printf(&text, of.most == INT64_MAX ? " (need at least %lld)" : " (need %lld to %lld)",
                  (long long)of.least, (long long)of.most);
    zc_rl_fault(&d->c, loc, "%s", text.data ? text.data : "");
    zc_buf_fini(&text);
}

/* A size that no shape decides is known now, for every combination of tuning parameters. */
static void check_size(reader *d, const zc_rl_clause *c, zc_rl_loc loc, const char *size, range of)
{
    enum { COMBINATIONS_MAX = 4096 };
    const char *tuning = d->k->attrs.tuning;
    for (size_t t = 0; size && tuning && t < zc_tuning_count(tuning) && t < COMBINATIONS_MAX; t++) {
        int64_t values[ZC_RL_TUNED_MAX];
        zc_ints tuned = {d->k->ntuned, values};
        zc_sizes_env env = {.tuned = tuned};
        zc_dim v;
        int n = 0;
        bool is_known = zc_tuning_values(tuning, t, values, ZC_RL_TUNED_MAX) &&
                        zc_sizes_eval(size, &env, 1, &v, &n) && n == 1;
        if (!is_known) return;
        if (v.k >= of.least && v.k <= of.most) continue;
        put_range_fault(d, c, loc, v.k, tuned, of);
        return;
    }
}

/* 1 to `most` sizes, each with `end` behind it. */
static const char *sizes(reader *d, const zc_rl_clause *c, int most, const char *end, range of)
{
    zc_buf out = {0};
    if (c->values.n > most)
        zc_rl_fault(&d->c, c->loc, "too many values of %s (got %d, need at most %d)", c->word,
                    c->values.n, most);
    for (int i = 0; i < c->values.n; i++) {
        zc_rl_expr *e = zc_rl_expr_at(&c->values, i);
        size_t at = out.len, errors = d->c.r->errors;
        if (is_a(d, e, ZC_RT_INT)) put_size(d, &out, e);
        if (d->c.r->errors == errors && !out.failed) check_size(d, c, e->loc, out.data + at, of);
        zc_buf_puts(&out, end);
    }
    return keep(d, &out);
}

/* ---- clauses ---- */

static const char *string(reader *d, const zc_rl_clause *c)
{
    const zc_rl_expr *e = zc_rl_expr_at(&c->values, 0);
    if (c->values.n == 1 && e->kind == ZC_RE_STR) return e->text;
    zc_rl_fault(&d->c, c->loc, "%s needs one string", c->word);
    return NULL;
}

static bool is_name(const char *s)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    static const char digits[] = "0123456789";
    size_t n = strspn(s, letters);
    while (n && s[n] && (strchr(digits, s[n]) || strchr(letters, s[n]))) n++;
    return n && !s[n] && n <= ZC_RL_NAME_MAX;
}

static void clause_entry(reader *d, const zc_rl_clause *c)
{
    d->k->attrs.entry = string(d, c);
    if (d->k->attrs.entry && !is_name(d->k->attrs.entry))
        zc_rl_fault(&d->c, c->loc, "the entry is no C name");
}

/* ---- what the source includes ---- */

/* Lines joined by backslashes are one; behind a backslash compilers let blanks stand. */
static void splice(const char *s, zc_buf *out)
{
    for (; *s; s++) {
        size_t blanks = *s == '\\' ? 1 + strspn(s + 1, " \t\v\f\r") : 0;
        if (blanks && s[blanks] == '\n')
            s += blanks;
        else
            zc_buf_append(out, s, 1);
    }
    zc_buf_puts(out, "");
}

/* Behind blanks and comments. */
static const char *skip_blanks(const char *s)
{
    for (const char *end = s; end; s = end ? end + 2 : s) {
        s += strspn(s, " \t\v\f");
        end = strncmp(s, "/*", 2) == 0 ? strstr(s + 2, "*/") : NULL;
    }
    return s;
}

/* Is `at` the first of its line, but for blanks and a comment that ends there? */
static bool begins_line(const char *text, const char *at)
{
    while (at > text && strchr(" \t\v\f", at[-1])) at--;
    return at == text || at[-1] == '\n' || at[-1] == '\r' ||
           (at[-1] == '/' && at - text > 1 && at[-2] == '*');
}

/* What follows the # of a directive, or __has_, which asks whether a file is there; NULL: neither.
 */
static const char *directive(const char *text, const char *s)
{
    size_t mark = *s == '#' ? 1 : strncmp(s, "%:", 2) == 0 ? 2 : 0;
    if (strncmp(s, "__has_", 6) == 0) return s + 6;
    return mark && begins_line(text, s) ? skip_blanks(s + mark) : NULL;
}

/* Behind the next word that brings another file in or asks for one; NULL: there is none. What looks
 * like one within a comment or a string counts, too: to tell, the source would have to be read as
 * the compiler reads it. */
static const char *next_include(const char *text, const char *from)
{
    static const char *const words[] = {"include_next", "include", "import", "embed"};
    for (const char *s = from; *s; s++) {
        const char *word = directive(text, s);
        for (size_t i = 0; word && i < ZC_COUNTOF(words); i++)
            if (strncmp(word, words[i], strlen(words[i])) == 0) return word + strlen(words[i]);
    }
    return NULL;
}

/* zc's own header, which is part of zc's version and so of what kernels are cached by. */
static bool is_own_header(const char *s)
{
    s = skip_blanks(s);
    s += *s == '(';
    if ((*s != '"' && *s != '<') || strncmp(s + 1, "zc/", 3) != 0) return false;
    for (s++; *s && *s != '"' && *s != '>' && *s != '\n'; s++)
        if (s[0] == '.' && s[1] == '.') return false;
    return true;
}

/* Names of other files would be no part of what the plan and the cache are made of. */
static void check_includes(reader *d, const zc_rl_clause *c, const char *text)
{
    zc_buf plain = {0};
    splice(text, &plain);
    if (!plain.data) d->c.r->nomem = true;
    const char *what = plain.data;
    while (what && (what = next_include(plain.data, what)) && is_own_header(what)) what++;
    if (what)
        zc_rl_fault(&d->c, c->loc, "the source includes another file than zc's headers (%.*s)",
                    (int)strcspn(what, "\r\n") > 80 ? 80 : (int)strcspn(what, "\r\n"), what);
    zc_buf_fini(&plain);
}

/* The source under its own name for the compiler's messages. */
static const char *source_text(reader *d, const char *name, const uint8_t *data, size_t len)
{
    zc_buf text = {0};
    zc_buf_puts(&text, "#line 1 \"");
    zc_buf_escape(&text, name, strlen(name));
    zc_buf_puts(&text, "\"\n");
    if (len) zc_buf_append(&text, data, len);
    return keep(d, &text);
}

static void clause_file(reader *d, const zc_rl_clause *c)
{
    const char *name = string(d, c);
    uint8_t *data = NULL;
    size_t len = 0;
    if (!name) return;
    if (!zc_rl_is_below(name)) {
        zc_rl_fault(&d->c, c->loc, "the file must lie in the rule file's folder or below it");
        return;
    }
    zc_diag *diag = zc_diag_create();
    zc_status status =
        zc_rl_read_beside(d->c.r, d->k->file, name, ZC_RL_SOURCE_MAX, &data, &len, diag);
    if (status == ZC_ERR_NOMEM || !diag)
        d->c.r->nomem = true;
    else if (status != ZC_OK)
        zc_rl_fault(&d->c, c->loc, "%s", zc_diag_text(diag, 0));
    else if (len && memchr(data, 0, len))
        zc_rl_fault(&d->c, c->loc, "%s: a NUL byte", name);
    else
        d->k->attrs.source = source_text(d, name, data, len);
    if (status == ZC_OK && data) check_includes(d, c, (const char *)data);
    free(data);
    zc_diag_destroy(&diag);
}

static void clause_grid(reader *d, const zc_rl_clause *c)
{
    d->k->attrs.grid = sizes(d, c, 3, "", (range){1, INT64_MAX});
}
static void clause_block(reader *d, const zc_rl_clause *c)
{
    d->k->attrs.block = sizes(d, c, 1, "", (range){1, BLOCK_MAX});
}
static void clause_shared(reader *d, const zc_rl_clause *c)
{
    d->k->attrs.shared = sizes(d, c, 1, "", (range){0, INT64_MAX});
}
static void clause_args(reader *d, const zc_rl_clause *c)
{
    d->k->attrs.args = sizes(d, c, ARGS_MAX, "; ", (range){INT64_MIN, INT64_MAX});
}

/* ---- results ---- */

static int64_t result_type(reader *d, zc_rl_expr *e)
{
    if (!is_a(d, e, ZC_RT_DTYPE)) return ZC_F32;
    if (e->kind == ZC_RE_NAME && e->word == ZC_RW_DTYPE) return e->index;
    const zc_rl_expr *of = e->kind == ZC_RE_CALL ? zc_rl_expr_at(&e->args, 0) : NULL;
    if (of && of->index < d->k->params.n) return -1 - of->index;
    zc_rl_fault(&d->c, e->loc, "a result has the element type of an operand, or one by name");
    return ZC_F32;
}

/* The operand whose shape is meant, or -1. */
static int operand_of(reader *d, zc_rl_expr *e)
{
    if (!is_a(d, e, ZC_RT_VALUE)) return -1;
    if (e->index < d->k->params.n) return e->index;
    zc_rl_fault(&d->c, e->loc, "a result's shape comes from operands");
    return -1;
}

static bool is_call(const zc_rl_expr *e, const char *name, int args)
{
    return e->kind == ZC_RE_CALL && strcmp(e->text, name) == 0 &&
           (args < 0 ? e->args.n >= 1 : e->args.n == args);
}

static void put_dimension(reader *d, zc_buf *out, zc_rl_expr *e)
{
    if (is_call(e, "shape", 1)) {
        zc_buf_printf(out, "%d shape ", operand_of(d, zc_rl_expr_at(&e->args, 0)));
        return;
    }
    if (is_a(d, e, ZC_RT_INT)) put_size(d, out, e);
}

/* result y = like(x); or result y = tensor(dtype, dimensions); */
static void put_result(reader *d, zc_buf *out, const zc_rl_clause *c, int i)
{
    zc_rl_expr *e = zc_rl_expr_at(&c->values, 0);
    if (is_call(e, "like", 1)) {
        int of = operand_of(d, zc_rl_expr_at(&e->args, 0));
        d->k->types[i] = -1 - of;
        zc_buf_printf(out, "%d shape ", of);
    } else if (is_call(e, "tensor", -1)) {
        d->k->types[i] = result_type(d, zc_rl_expr_at(&e->args, 0));
        for (int a = 1; a < e->args.n; a++) put_dimension(d, out, zc_rl_expr_at(&e->args, a));
    } else {
        zc_rl_fault(&d->c, c->loc, "a result is like(operand) or tensor(type, dimensions)");
    }
    zc_buf_puts(out, "; ");
}

static bool is_result(const zc_rl_clause *c)
{
    return c->result && strcmp(c->word, "result") == 0;
}

static void read_results(reader *d)
{
    zc_buf shapes = {0};
    int n = 0;
    d->in_result = true;
    for (int i = 0; i < d->k->clauses.n; i++) {
        const zc_rl_clause *c = d->k->clauses.v[i];
        if (is_result(c) && n < d->k->nresults) put_result(d, &shapes, c, n++);
    }
    d->in_result = false;
    d->k->attrs.shapes = keep(d, &shapes);
    d->k->attrs.types = (zc_ints){d->k->nresults, d->k->types};
}

/* ---- tuning parameters: NAME in {values} ---- */

static bool is_tuning_name(const char *s)
{
    return s[0] >= 'A' && s[0] <= 'Z' && strncmp(s, "Z_", 2) != 0 && strncmp(s, "ZC_", 3) != 0 &&
           strncmp(s, "TYPE_", 5) != 0 &&
           strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == strlen(s);
}

static void add_variable(reader *d, const char *name, zc_rl_loc loc, zc_rl_var_kind kind)
{
    if (zc_rl_var_find(d->c.rule, name) >= 0) {
        zc_rl_fault(&d->c, loc, "a second '%s'", name);
        return;
    }
    int var = zc_rl_var_add(&d->c, name, loc, kind);
    if (var >= 0) d->c.rule->vars[var].type = ZC_RT_INT;
}

static void read_tuned(reader *d, zc_buf *out, const zc_rl_expr *e)
{
    const zc_rl_expr *name = e->kind == ZC_RE_IN ? zc_rl_expr_at(&e->args, 0) : NULL;
    const zc_rl_expr *set = name ? zc_rl_expr_at(&e->args, 1) : NULL;
    if (!name || name->kind != ZC_RE_NAME || !is_tuning_name(name->text)) {
        zc_rl_fault(&d->c, e->loc, "a tuning parameter is NAME in {values}, in capital letters");
        return;
    }
    if (d->k->ntuned == ZC_RL_TUNED_MAX) {
        zc_rl_fault(&d->c, e->loc, "too many tuning parameters (need at most %d)", ZC_RL_TUNED_MAX);
        return;
    }
    if (!set->args.n) {
        zc_rl_fault(&d->c, e->loc, "tuning parameter '%s' has no value", name->text);
        return;
    }
    add_variable(d, name->text, name->loc, ZC_RV_ATTR);
    zc_buf_printf(out, "%s%s=", out->len ? " " : "", name->text);
    for (int i = 0; i < set->args.n; i++) {
        const zc_rl_expr *v = zc_rl_expr_at(&set->args, i);
        int64_t n = v->kind == ZC_RE_INT ? v->i : 1;
        if (v->kind != ZC_RE_INT) zc_rl_fault(&d->c, v->loc, "tuning parameters are whole numbers");
        zc_buf_printf(out, "%s%lld", i ? "," : "", (long long)n);
        if (i == 0) d->k->tuned[d->k->ntuned++] = n;
    }
}

static void clause_tune(reader *d, const zc_rl_clause *c)
{
    zc_buf out = {0};
    for (int i = 0; i < c->values.n; i++) read_tuned(d, &out, zc_rl_expr_at(&c->values, i));
    d->k->attrs.tuning = keep(d, &out);
    d->k->attrs.tuned = (zc_ints){d->k->ntuned, d->k->tuned};
}

/* tune first: the others name its parameters. */
static const struct {
    const char *word;
    void (*read)(reader *d, const zc_rl_clause *c);
    bool may_miss;
} rows[] = {{"tune", clause_tune, true},    {"file", clause_file, false},
            {"entry", clause_entry, false}, {"grid", clause_grid, false},
            {"block", clause_block, false}, {"shared", clause_shared, true},
            {"args", clause_args, true}};

static void read_clauses(reader *d, size_t row)
{
    bool found = false;
    for (int i = 0; i < d->k->clauses.n; i++) {
        const zc_rl_clause *c = d->k->clauses.v[i];
        if (c->result || strcmp(c->word, rows[row].word) != 0) continue;
        if (found) zc_rl_fault(&d->c, c->loc, "a second %s", c->word);
        found = true;
        rows[row].read(d, c);
    }
    if (!found && !rows[row].may_miss)
        zc_rl_fault(&d->c, d->k->name.loc, "kernel '%s' has no %s", d->k->name.text,
                    rows[row].word);
}

static const char *clause_word(const void *ctx, int i)
{
    return i < (int)ZC_COUNTOF(rows) ? rows[i].word : i == (int)ZC_COUNTOF(rows) ? "result" : NULL;
}

static void check_words(reader *d)
{
    for (int i = 0; i < d->k->clauses.n; i++) {
        const zc_rl_clause *c = d->k->clauses.v[i];
        bool known = is_result(c);
        for (size_t r = 0; r < ZC_COUNTOF(rows); r++)
            known |= !c->result && strcmp(c->word, rows[r].word) == 0;
        if (known) continue;
        zc_buf hint = {0};
        zc_rl_suggest(&hint, c->word, clause_word, NULL);
        zc_rl_fault(&d->c, c->loc, "'%s' is no part of a kernel%s", c->word,
                    hint.data ? hint.data : "");
        zc_buf_fini(&hint);
    }
}

/* ---- names ---- */

static void add_operands(reader *d)
{
    zc_buf names = {0};
    if (d->k->params.n > PARAMS_MAX) {
        zc_rl_fault(&d->c, d->k->name.loc, "too many operands (got %d, need at most %d)",
                    d->k->params.n, PARAMS_MAX);
        d->k->params.n = PARAMS_MAX;
    }
    for (int i = 0; i < d->k->params.n; i++) {
        const zc_rl_name *n = d->k->params.v[i];
        add_variable(d, n->text, n->loc, ZC_RV_VALUE);
        zc_buf_printf(&names, "%s%s", i ? " " : "", n->text);
    }
    for (int i = 0; i < d->k->clauses.n; i++) {
        const zc_rl_clause *c = d->k->clauses.v[i];
        if (!is_result(c)) continue;
        if (d->k->nresults == RESULTS_MAX) {
            zc_rl_fault(&d->c, c->loc, "too many results (need at most %d)", RESULTS_MAX);
            break;
        }
        add_variable(d, c->result->text, c->result->loc, ZC_RV_VALUE);
        zc_buf_printf(&names, " %s", c->result->text);
        d->k->nresults++;
    }
    if (d->k->nresults == 0)
        zc_rl_fault(&d->c, d->k->name.loc, "kernel '%s' has no result", d->k->name.text);
    d->k->attrs.params = keep(d, &names);
}

/* ---- the entry ---- */

static bool is_clause(const zc_rl_clause *c, const char *word)
{
    return !c->result && strcmp(c->word, word) == 0;
}

static bool has_word(const char *text, const char *word)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    size_t n = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || !strchr(letters, at[-1])) && (!at[n] || !strchr(letters, at[n])))
            return true;
    return false;
}

static void check_entry(reader *d)
{
    zc_buf plain = {0};
    const char *entry = d->k->attrs.entry, *source = d->k->attrs.source;
    if (!entry || !source) return;
    splice(strchr(source, '\n'), &plain);
    bool makes_names = plain.data && strstr(plain.data, "##");
    if (plain.failed) d->c.r->nomem = true;
    if (!plain.failed && !makes_names && !has_word(plain.data, entry))
        for (int i = 0; i < d->k->clauses.n; i++)
            if (is_clause(d->k->clauses.v[i], "entry"))
                zc_rl_fault(&d->c, ((const zc_rl_clause *)d->k->clauses.v[i])->loc,
                            "the source has no function '%s'", entry);
    zc_buf_fini(&plain);
}

/* ---- the meaning ---- */

static void check_meaning(reader *d)
{
    zc_rl_kernel *k = d->k;
    if (k->scalar) {
        zc_rl_check_pointwise(d->c.r, k->scalar);
        if (k->nresults != 1)
            zc_rl_fault(&d->c, k->scalar->text_loc, "an expression is the meaning of one result");
        return;
    }
    if (k->body.emit.n == 0) {
        zc_rl_fault(&d->c, k->name.loc, "kernel '%s' has no meaning", k->name.text);
        return;
    }
    d->c.in_kernel = true;
    for (int i = 0; i < k->nresults; i++) {
        k->body.vars[k->params.n + i].is_output = true;
        k->body.vars[k->params.n + i].in_match = false;
    }
    zc_rl_check_emit(&d->c);
    for (int i = 0; i < k->nresults; i++) {
        const zc_rl_var *v = &k->body.vars[k->params.n + i];
        if (v->emit < 0) zc_rl_fault(&d->c, v->loc, "the meaning does not define '%s'", v->name);
    }
}

/* "file.zcr:3" */
static const char *origin(reader *d)
{
    zc_buf text = {0};
    zc_buf_printf(&text, "%s:%d", d->c.r->files.data[d->k->file].name, d->k->name.loc.line);
    return keep(d, &text);
}

void zc_rl_check_kernel(zc_rules *r, zc_rl_kernel *k)
{
    reader d = {.c = {.r = r, .rule = &k->body, .file = k->file}, .k = k};
    if (!zc_rl_alloc_rule(r, &k->body)) return;
    k->attrs = (zc_attrs_UserKernel){
        .name = k->name.text, .origin = origin(&d), .shared = "0", .args = "", .tuning = ""};
    if (k->body.emit.n > ZC_RL_STMTS_MAX) {
        zc_rl_fault(&d.c, k->name.loc, "meaning too long (need at most %d statements)",
                    ZC_RL_STMTS_MAX);
        return;
    }
    check_words(&d);
    add_operands(&d);
    for (size_t i = 0; i < ZC_COUNTOF(rows); i++) read_clauses(&d, i);
    read_results(&d);
    check_entry(&d);
    check_meaning(&d);
}
