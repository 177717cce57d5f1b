/* Scalar definitions: their text as the program that a Pointwise node carries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "op/expr.h"
#include "rules/check.h"

/* Bytes of a program, with the definitions that it uses put in. */
#define PROGRAM_MAX ((size_t)1 << 16)
#define PRESETS_MAX 16

/* ---- words ---- */

/* Names that zc gives to inputs by itself: x y z w, and x0, x1, ... */
static bool is_input_name(const char *s, size_t n)
{
    if (n == 1) return strchr("xyzw", *s) != NULL;
    if (*s != 'x') return false;
    for (size_t i = 1; i < n; i++)
        if (s[i] < '0' || s[i] > '9') return false;
    return true;
}

static const zc_rl_default *preset(const zc_rl_pointwise *p, int i)
{
    return p->defaults.v[i];
}

static void check_params(zc_rules *r, const zc_rl_pointwise *p)
{
    if (p->params.n > ZC_EXPR_MAX_INPUTS)
        zc_rl_error(r, p->file, p->name.loc, "too many parameters (got %d, need at most %d)",
                    p->params.n, ZC_EXPR_MAX_INPUTS);
    for (int i = 0; i < p->params.n && i < ZC_EXPR_MAX_INPUTS; i++)
        for (int j = 0; j < i; j++) {
            const zc_rl_name *n = p->params.v[i];
            if (strcmp(n->text, ((const zc_rl_name *)p->params.v[j])->text) == 0)
                zc_rl_error(r, p->file, n->loc, "a second parameter '%s'", n->text);
        }
    if (p->defaults.n > PRESETS_MAX)
        zc_rl_error(r, p->file, p->name.loc, "too many attributes (got %d, need at most %d)",
                    p->defaults.n, PRESETS_MAX);
    for (int i = 0; i < p->defaults.n; i++) {
        const zc_rl_name *n = &preset(p, i)->name;
        bool is_taken = is_input_name(n->text, strlen(n->text));
        for (int j = 0; j < p->params.n; j++)
            is_taken |= strcmp(n->text, ((const zc_rl_name *)p->params.v[j])->text) == 0;
        for (int j = 0; j < i; j++) is_taken |= strcmp(n->text, preset(p, j)->name.text) == 0;
        if (is_taken) zc_rl_error(r, p->file, n->loc, "a second parameter '%s'", n->text);
    }
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Length of the number, name, comment, or single character at s. */
static size_t piece_length(const char *s)
{
    size_t n = 1;
    if (s[0] == '/' && s[1] == '/') return strcspn(s, "\n");
    if (!is_word_char(s[0]) && !(s[0] == '.' && s[1] >= '0' && s[1] <= '9')) return 1;
    bool is_number = s[0] <= '9';
    while (is_word_char(s[n]) || (is_number && s[n] == '.') ||
           (is_number && (s[n] == '-' || s[n] == '+') && (s[n - 1] == 'e' || s[n - 1] == 'E')))
        n++;
    return n;
}

static int param_of(const zc_rl_pointwise *p, const char *s, size_t n)
{
    if (s[n] == '(') return -1;
    for (int i = 0; i < p->params.n && i < ZC_EXPR_MAX_INPUTS; i++) {
        const char *name = ((const zc_rl_name *)p->params.v[i])->text;
        if (strlen(name) == n && memcmp(name, s, n) == 0) return i;
    }
    return -1;
}

/* Where offset `at` of the text stands in the file. */
static zc_rl_loc place(const zc_rl_pointwise *p, size_t at)
{
    zc_rl_loc loc = p->text_loc;
    loc.len = 1;
    for (size_t i = 0; i < at && p->text[i]; i++) {
        loc.col = p->text[i] == '\n' ? 1 : loc.col + !zc_rl_goes_on(p->text[i]);
        loc.line += p->text[i] == '\n';
    }
    return loc;
}

/* Writes the text with parameters as x0, x1, ... and without comments. `column`: stops there and
 * returns the offset in p->text that it comes from; SIZE_MAX: writes all. */
static size_t compose(const zc_rl_pointwise *p, zc_buf *out, size_t column)
{
    size_t i = strspn(p->text, " \t\r\n");
    while (p->text[i]) {
        size_t n = piece_length(p->text + i);
        int param = param_of(p, p->text + i, n);
        if (out->len >= column) return i;
        if (param >= 0)
            zc_buf_printf(out, "x%d", param);
        else if (strchr(" \t\r\n", p->text[i]) || (n > 1 && p->text[i] == '/'))
            zc_buf_puts(out, " ");
        else
            zc_buf_append(out, p->text + i, n);
        i += n;
    }
    while (!out->failed && out->len && out->data[out->len - 1] == ' ') out->data[--out->len] = 0;
    return i;
}

/* A name of the text that would be taken for another input, or for one that zc makes. */
static void check_words(zc_rules *r, const zc_rl_pointwise *p)
{
    for (size_t i = 0, n; p->text[i]; i += n) {
        const char *s = p->text + i;
        n = piece_length(s);
        if (!is_word_char(s[0]) || s[0] <= '9') continue;
        if (is_input_name(s, n) && param_of(p, s, n) < 0)
            zc_rl_error(r, p->file, place(p, i), "'%.*s' is no parameter", (int)n, s);
        if (strncmp(s, "zc_", 3) == 0)
            zc_rl_error(r, p->file, place(p, i), "names that begin with zc_ are zc's own");
    }
}

/* ---- definitions that use others ----
 * A call of an earlier definition becomes bindings in front of its statement: the arguments, the
 * definition's attributes, its own bindings under new names, and its result. */

typedef struct expander {
    zc_rules *r;
    const zc_rl_pointwise *p;
    zc_buf before; /* bindings for the statement in work */
    int calls;
    bool bad; /* reported */
} expander;

static void complain(expander *x, const char *what, const char *name, size_t n)
{
    zc_rl_loc loc = place(x->p, strspn(x->p->text, " \t\r\n"));
    if (!x->bad) zc_rl_error(x->r, x->p->file, loc, what, (int)n, name);
    x->bad = true;
}

/* The definition that is called at s, a word of n characters; NULL: none. */
static const zc_rl_pointwise *called(expander *x, const char *s, size_t n)
{
    if (!is_word_char(s[0]) || s[0] <= '9' || s[n + strspn(s + n, " ")] != '(') return NULL;
    for (size_t i = 0; i < x->r->pointwise.len; i++) {
        const zc_rl_pointwise *d = x->r->pointwise.data[i];
        if (strlen(d->name.text) != n || memcmp(d->name.text, s, n) != 0) continue;
        if (d->expr && d != x->p) return d;
        complain(x, "'%.*s' is used before it is defined", s, n);
    }
    return NULL;
}

static bool is_constant(const char *s, size_t n)
{
    static const char *const words[] = {"inf", "nan", "true", "false"};
    for (size_t i = 0; i < ZC_COUNTOF(words); i++)
        if (strlen(words[i]) == n && memcmp(words[i], s, n) == 0) return true;
    return false;
}

/* The definition's program with all its names made new; its last statement binds the result. */
static void put_body(zc_buf *out, const zc_rl_pointwise *d, int call)
{
    const char *last = strrchr(d->expr, ';');
    for (int i = 0; i < d->defaults.n; i++)
        zc_buf_printf(out, "zc_%d_%s = %.17g; ", call, preset(d, i)->name.text,
                      preset(d, i)->value);
    last = last ? last + 1 : d->expr;
    for (const char *s = d->expr; *s;) {
        size_t n = piece_length(s);
        bool is_name = is_word_char(s[0]) && s[0] > '9' && s[n + strspn(s + n, " ")] != '(';
        if (s == last) zc_buf_printf(out, "zc_%d = ", call);
        if (is_name && !is_constant(s, n)) zc_buf_printf(out, "zc_%d_", call);
        zc_buf_append(out, s, n);
        s += n;
    }
    zc_buf_puts(out, "; ");
}

static const char *expand(expander *x, const char *s, zc_buf *out, int depth);

/* s: behind the call's (. Returns the text behind its ). */
static const char *expand_call(expander *x, const zc_rl_pointwise *d, const char *s, zc_buf *out,
                               int depth)
{
    int call = ++x->calls, n = 0;
    zc_buf bindings = {0};
    for (bool more = true; more && !x->bad; n++) {
        zc_buf argument = {0};
        s = expand(x, s, &argument, depth + 1);
        more = *s == ',';
        if (*s != ',' && *s != ')')
            complain(x, "the operands of '%.*s' do not end", d->name.text, strlen(d->name.text));
        zc_buf_printf(&bindings, "zc_%d_x%d = %s; ", call, n, argument.data ? argument.data : "");
        x->r->nomem |= argument.failed;
        zc_buf_fini(&argument);
        if (*s) s++;
    }
    if (n != d->params.n && !x->bad)
        complain(x, "wrong number of operands of '%.*s'", d->name.text, strlen(d->name.text));
    if (!x->bad) {
        zc_buf_append(&x->before, bindings.data, bindings.len);
        put_body(&x->before, d, call);
    }
    zc_buf_printf(out, "zc_%d", call);
    x->r->nomem |= bindings.failed;
    zc_buf_fini(&bindings);
    return s;
}

/* Copies up to a , or ) that closes what is around s, or to the statement's end. */
static const char *expand(expander *x, const char *s, zc_buf *out, int depth)
{
    int open = 0;
    if (depth > ZC_EXPR_MAX_DEPTH) complain(x, "nested too deep%.*s", "", 0);
    while (*s && *s != ';' && !x->bad) {
        size_t n = piece_length(s);
        const zc_rl_pointwise *d = called(x, s, n);
        if (open == 0 && (*s == ')' || (*s == ',' && depth))) break;
        open += (*s == '(') - (*s == ')');
        if (d) {
            s = expand_call(x, d, s + n + strspn(s + n, " ") + 1, out, depth);
            continue;
        }
        zc_buf_append(out, s, n);
        s += n;
        if (x->calls && out->len + x->before.len > PROGRAM_MAX) complain(x, "too long%.*s", "", 0);
    }
    return s;
}

/* All statements of text. Returns how many calls were put in; -1: reported. */
static int expand_all(zc_rules *r, const zc_rl_pointwise *p, const char *s, zc_buf *out)
{
    expander x = {.r = r, .p = p};
    zc_buf_puts(out, "");
    while (*s && !x.bad && !r->nomem) {
        zc_buf statement = {0};
        s = expand(&x, s, &statement, 0);
        if (x.before.len) zc_buf_append(out, x.before.data, x.before.len);
        if (statement.len) zc_buf_append(out, statement.data, statement.len);
        r->nomem |= statement.failed || x.before.failed || out->failed;
        if (*s) zc_buf_append(out, s++, 1);
        zc_buf_fini(&statement);
        zc_buf_fini(&x.before);
        x.before = (zc_buf){0};
        if (x.calls && out->len > PROGRAM_MAX) complain(&x, "too long%.*s", "", 0);
    }
    return x.bad ? -1 : x.calls;
}

/* ---- the whole ---- */

/* The expression's own complaint begins with its column. */
static void report(zc_rules *r, const zc_rl_pointwise *p, bool is_expanded, const char *text)
{
    static const char begin[] = "expression, column ";
    const char *rest = NULL;
    size_t column = 1;
    zc_buf head = {0};
    if (strncmp(text, begin, sizeof begin - 1) == 0) rest = strstr(text, ": ");
    if (rest && !is_expanded) column = strtoul(text + sizeof begin - 1, NULL, 10);
    zc_rl_error(r, p->file, place(p, compose(p, &head, column - 1)), "%s", rest ? rest + 2 : text);
    zc_buf_fini(&head);
}

static void parse(zc_rules *r, zc_rl_pointwise *p, const char *text, bool is_expanded, zc_expr *e,
                  zc_diag *diag)
{
    zc_dtype dtypes[ZC_EXPR_MAX_INPUTS];
    zc_expr_const presets[PRESETS_MAX];
    for (int i = 0; i < ZC_EXPR_MAX_INPUTS; i++) dtypes[i] = ZC_F32;
    for (int i = 0; i < p->defaults.n; i++)
        presets[i] = (zc_expr_const){preset(p, i)->name.text, preset(p, i)->value, false};
    if (zc_expr_parse(text, dtypes, p->params.n, presets, p->defaults.n, e, NULL, diag) != ZC_OK)
        report(r, p, is_expanded, zc_diag_text(diag, 0));
    p->expr = zc_arena_strdup(&r->arena, text);
    if (!p->expr) r->nomem = true;
}

void zc_rl_check_pointwise(zc_rules *r, zc_rl_pointwise *p)
{
    zc_buf text = {0}, whole = {0};
    size_t errors = r->errors;
    if (zc_expr_is_function(p->name.text))
        zc_rl_error(r, p->file, p->name.loc, "'%s' is a function of expressions already",
                    p->name.text);
    check_params(r, p);
    check_words(r, p);
    zc_buf_puts(&text, "");
    compose(p, &text, SIZE_MAX);
    int calls = text.failed || r->errors != errors ? -1 : expand_all(r, p, text.data, &whole);
    zc_expr *e = zc_calloc(1, sizeof *e);
    zc_diag *diag = zc_diag_create();
    if (text.failed || whole.failed || !e || !diag)
        r->nomem = true;
    else if (calls >= 0 && !r->nomem)
        parse(r, p, whole.data, calls > 0, e, diag);
    zc_diag_destroy(&diag);
    free(e);
    zc_buf_fini(&text);
    zc_buf_fini(&whole);
}

/* ---- emitting ---- */

/* What emit gives attribute i, else its default. */
static bool preset_value(const zc_rl_env *env, const zc_rl_pat *pat, int i, double *out)
{
    *out = preset(pat->pointwise, i)->value;
    for (int k = 0; k < pat->attrs.n; k++) {
        const zc_rl_attr *a = zc_rl_attr_at(&pat->attrs, k);
        if (a->field != i) continue;
        zc_rl_val v = zc_rl_eval(env, a->value);
        bool is_int = v.type == ZC_RT_INT && zc_dim_is_const(v.dim);
        if (v.type == ZC_RT_ANY && v.absent) return true;
        if (!is_int && v.type != ZC_RT_REAL) return false;
        *out = is_int ? (double)v.dim.k : v.real;
    }
    return true;
}

const char *zc_rl_pointwise_expr(const zc_rl_env *env, const zc_rl_pat *pat)
{
    const zc_rl_pointwise *p = pat->pointwise;
    zc_buf text = {0};
    bool ok = true;
    if (p->defaults.n == 0) return p->expr;
    for (int i = 0; ok && i < p->defaults.n; i++) {
        double v;
        ok = preset_value(env, pat, i, &v);
        zc_buf_printf(&text, "%s = %.17g; ", preset(p, i)->name.text, ok ? v : 0);
    }
    zc_buf_puts(&text, p->expr);
    const char *out = ok && !text.failed ? zc_arena_strdup(env->arena, text.data) : NULL;
    zc_buf_fini(&text);
    return out;
}
