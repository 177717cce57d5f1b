/* Kernels of users: what their clauses say, as the attributes of a UserKernel node. */
#include <stdlib.h>
#include <string.h>

#include "op/sizes.h"
#include "rules/binding/binding.h"
#include "rules/binding/parts.h"

enum { RESULTS_MAX = 8, PARAMS_MAX = 32, ARGS_MAX = 16, BLOCK_MAX = 1024 };

const char *zc_rl_keep(zc_rl_reader *d, zc_buf *text)
{
    const char *out =
        text->failed ? NULL : zc_arena_strdup(&d->c.r->arena, text->data ? text->data : "");
    if (!out) d->c.r->nomem = true;
    zc_buf_fini(text);
    return out;
}

bool zc_rl_is_a(zc_rl_reader *d, zc_rl_expr *e, zc_rl_type need)
{
    size_t errors = d->c.r->errors;
    zc_rl_check_expr_is(&d->c, e, need);
    return d->c.r->errors == errors;
}

/* ---- clauses ---- */

static const char *string(zc_rl_reader *d, const zc_rl_clause *c)
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

static void clause_entry(zc_rl_reader *d, const zc_rl_clause *c)
{
    d->k->attrs.entry = string(d, c);
    if (d->k->attrs.entry && !is_name(d->k->attrs.entry))
        zc_rl_fault(&d->c, c->loc, "the entry is no C name");
}

/* Names of other files would be no part of what the plan and the cache are made of. */
static void check_includes(zc_rl_reader *d, const zc_rl_clause *c, const char *text)
{
    enum { SHOWN = 80 };
    zc_buf what = {0};
    if (zc_rl_find_include(text, &what))
        zc_rl_fault(&d->c, c->loc, "the source includes another file than zc's headers (%.*s)",
                    SHOWN, what.data ? what.data : "");
    d->c.r->nomem |= what.failed;
    zc_buf_fini(&what);
}

/* The source under its own name for the compiler's messages. */
static const char *source_text(zc_rl_reader *d, const char *name, const uint8_t *data, size_t len)
{
    zc_buf text = {0};
    zc_buf_puts(&text, "#line 1 \"");
    zc_buf_escape(&text, name, strlen(name));
    zc_buf_puts(&text, "\"\n");
    if (len) zc_buf_append(&text, data, len);
    return zc_rl_keep(d, &text);
}

static void clause_file(zc_rl_reader *d, const zc_rl_clause *c)
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

static void clause_grid(zc_rl_reader *d, const zc_rl_clause *c)
{
    d->k->attrs.grid = zc_rl_sizes(d, c, 3, "", (zc_rl_range){1, INT64_MAX});
}
static void clause_block(zc_rl_reader *d, const zc_rl_clause *c)
{
    d->k->attrs.block = zc_rl_sizes(d, c, 1, "", (zc_rl_range){1, BLOCK_MAX});
}
static void clause_shared(zc_rl_reader *d, const zc_rl_clause *c)
{
    d->k->attrs.shared = zc_rl_sizes(d, c, 1, "", (zc_rl_range){0, INT64_MAX});
}
static void clause_args(zc_rl_reader *d, const zc_rl_clause *c)
{
    d->k->attrs.args = zc_rl_sizes(d, c, ARGS_MAX, "; ", (zc_rl_range){INT64_MIN, INT64_MAX});
}

/* ---- results ---- */

static int64_t result_type(zc_rl_reader *d, zc_rl_expr *e)
{
    if (!zc_rl_is_a(d, e, ZC_RT_DTYPE)) return ZC_F32;
    if (e->kind == ZC_RE_NAME && e->word == ZC_RW_DTYPE) return e->index;
    const zc_rl_expr *of = e->kind == ZC_RE_CALL ? zc_rl_expr_at(&e->args, 0) : NULL;
    if (of && of->index < d->k->params.n) return -1 - of->index;
    zc_rl_fault(&d->c, e->loc, "a result has the element type of an operand, or one by name");
    return ZC_F32;
}

/* The operand whose shape is meant, or -1. */
static int operand_of(zc_rl_reader *d, zc_rl_expr *e)
{
    if (!zc_rl_is_a(d, e, ZC_RT_VALUE)) return -1;
    if (e->index < d->k->params.n) return e->index;
    zc_rl_fault(&d->c, e->loc, "a result's shape comes from operands");
    return -1;
}

static bool is_call(const zc_rl_expr *e, const char *name, int args)
{
    return e->kind == ZC_RE_CALL && strcmp(e->text, name) == 0 &&
           (args < 0 ? e->args.n >= 1 : e->args.n == args);
}

static void put_dimension(zc_rl_reader *d, zc_buf *out, zc_rl_expr *e)
{
    if (is_call(e, "shape", 1)) {
        zc_buf_printf(out, "%d shape ", operand_of(d, zc_rl_expr_at(&e->args, 0)));
        return;
    }
    if (zc_rl_is_a(d, e, ZC_RT_INT)) zc_rl_put_size(d, out, e);
}

/* result y = like(x); or result y = tensor(dtype, dimensions); */
static void put_result(zc_rl_reader *d, zc_buf *out, const zc_rl_clause *c, int i)
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

static void read_results(zc_rl_reader *d)
{
    zc_buf shapes = {0};
    int n = 0;
    d->in_result = true;
    for (int i = 0; i < d->k->clauses.n; i++) {
        const zc_rl_clause *c = d->k->clauses.v[i];
        if (is_result(c) && n < d->k->nresults) put_result(d, &shapes, c, n++);
    }
    d->in_result = false;
    d->k->attrs.shapes = zc_rl_keep(d, &shapes);
    d->k->attrs.types = (zc_ints){d->k->nresults, d->k->types};
}

/* ---- tuning parameters: NAME in {values} ---- */

static bool is_tuning_name(const char *s)
{
    return s[0] >= 'A' && s[0] <= 'Z' && strncmp(s, "Z_", 2) != 0 && strncmp(s, "ZC_", 3) != 0 &&
           strncmp(s, "TYPE_", 5) != 0 &&
           strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == strlen(s);
}

static void add_variable(zc_rl_reader *d, const char *name, zc_rl_loc loc, zc_rl_var_kind kind)
{
    if (zc_rl_var_find(d->c.rule, name) >= 0) {
        zc_rl_fault(&d->c, loc, "a second '%s'", name);
        return;
    }
    int var = zc_rl_var_add(&d->c, name, loc, kind);
    if (var >= 0) d->c.rule->vars[var].type = ZC_RT_INT;
}

static void read_tuned(zc_rl_reader *d, zc_buf *out, const zc_rl_expr *e)
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

static void clause_tune(zc_rl_reader *d, const zc_rl_clause *c)
{
    zc_buf out = {0};
    for (int i = 0; i < c->values.n; i++) read_tuned(d, &out, zc_rl_expr_at(&c->values, i));
    d->k->attrs.tuning = zc_rl_keep(d, &out);
    d->k->attrs.tuned = (zc_ints){d->k->ntuned, d->k->tuned};
}

/* tune first: the others name its parameters. */
static const struct {
    const char *word;
    void (*read)(zc_rl_reader *d, const zc_rl_clause *c);
    bool may_miss;
} rows[] = {{"tune", clause_tune, true},    {"file", clause_file, false},
            {"entry", clause_entry, false}, {"grid", clause_grid, false},
            {"block", clause_block, false}, {"shared", clause_shared, true},
            {"args", clause_args, true}};

static void read_clauses(zc_rl_reader *d, size_t row)
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

static void check_words(zc_rl_reader *d)
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

static void add_operands(zc_rl_reader *d)
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
    d->k->attrs.params = zc_rl_keep(d, &names);
}

/* ---- the entry ---- */

static bool is_clause(const zc_rl_clause *c, const char *word)
{
    return !c->result && strcmp(c->word, word) == 0;
}

static void check_entry(zc_rl_reader *d)
{
    const char *entry = d->k->attrs.entry, *source = d->k->attrs.source;
    if (!entry || !source) return;
    bool nomem = false, has = zc_rl_has_function(strchr(source, '\n'), entry, &nomem);
    d->c.r->nomem |= nomem;
    for (int i = 0; !has && i < d->k->clauses.n; i++)
        if (is_clause(d->k->clauses.v[i], "entry"))
            zc_rl_fault(&d->c, ((const zc_rl_clause *)d->k->clauses.v[i])->loc,
                        "the source has no function '%s'", entry);
}

/* ---- the meaning ---- */

static void check_meaning(zc_rl_reader *d)
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
static const char *origin(zc_rl_reader *d)
{
    zc_buf text = {0};
    zc_buf_printf(&text, "%s:%d", d->c.r->files.data[d->k->file].name, d->k->name.loc.line);
    return zc_rl_keep(d, &text);
}

void zc_rl_check_kernel(zc_rules *r, zc_rl_kernel *k)
{
    zc_rl_reader d = {.c = {.r = r, .rule = &k->body, .file = k->file}, .k = k};
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
