/* Operations in rules against the op table; scalar definitions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "op/expr.h"
#include "rules/check.h"

/* ---- names ---- */

static const char *op_name(const void *ctx, int i)
{
    const zc_rules *r = ctx;
    if (i < ZC_OP_COUNT - 1) return zc_op_get((zc_op)(i + 1))->name;
    i -= ZC_OP_COUNT - 1;
    return (size_t)i < r->pointwise.len ? r->pointwise.data[i]->name.text : NULL;
}

static const char *field_name(const void *ctx, int i)
{
    const zc_op_info *info = ctx;
    return i < info->field_count ? info->fields[i].name : NULL;
}

static bool find_op(zc_rl_checker *c, zc_rl_pat *p)
{
    zc_buf hint = {0};
    p->op = zc_op_find(p->text, strlen(p->text));
    if (p->op != ZC_OP_NONE) return true;
    p->pointwise = zc_rl_find_pointwise(c->r, p->text);
    if (p->pointwise && c->in_emit) {
        p->op = ZC_OP_Pointwise;
        return true;
    }
    if (p->pointwise) {
        zc_rl_fault(c, p->loc, "'%s' is a definition, which can be emitted but not matched",
                    p->text);
        return false;
    }
    zc_rl_suggest(&hint, p->text, op_name, c->r);
    zc_rl_fault(c, p->loc, "no such operation '%s'%s", p->text, hint.data ? hint.data : "");
    zc_buf_fini(&hint);
    return false;
}

/* ---- arity ---- */

static void check_arity(zc_rl_checker *c, const zc_rl_pat *p)
{
    const zc_op_info *info = zc_op_get(p->op);
    int least = p->pointwise ? p->pointwise->params.n : info->min_in;
    int most = p->pointwise ? p->pointwise->params.n : info->max_in;
    if (p->rest && c->in_emit) {
        zc_rl_fault(c, p->loc, "'...' stands in match only");
        return;
    }
    if (p->args.n <= most && (p->args.n >= least || p->rest)) return;
    if (least == most)
        zc_rl_fault(c, p->loc, "wrong number of operands of %s (got %d, need %d)", p->text,
                    p->args.n, most);
    else if (most >= ZC_VARIADIC)
        zc_rl_fault(c, p->loc, "wrong number of operands of %s (got %d, need at least %d)", p->text,
                    p->args.n, least);
    else
        zc_rl_fault(c, p->loc, "wrong number of operands of %s (got %d, need %d to %d)", p->text,
                    p->args.n, least, most);
}

static void check_regions(zc_rl_checker *c, const zc_rl_pat *p)
{
    if (zc_op_get(p->op)->flags & ZC_OPF_REGIONS)
        zc_rl_fault(c, p->loc, "%s holds graphs, which rules cannot say", p->text);
    if (!c->in_emit && p->op == ZC_OP_Pointwise)
        zc_rl_fault(c, p->loc, "Pointwise nodes are made after the rules ran");
    if (c->in_emit && (zc_op_get(p->op)->flags & ZC_OPF_RANDOM))
        zc_rl_fault(c, p->loc, "%s is random, which no check can compare", p->text);
}

/* ---- attributes ---- */

/* match: `field = name` with a name that is nothing yet binds it. */
static bool is_capture(const zc_rl_checker *c, const zc_rl_attr *a)
{
    if (c->in_emit || !a->assign || a->value->kind != ZC_RE_NAME) return false;
    if (zc_dtype_parse(a->value->text) != ZC_NONE) return false;
    int var = zc_rl_var_find(c->rule, a->value->text);
    return var < 0 || c->rule->vars[var].kind == ZC_RV_ATTR;
}

static void capture(zc_rl_checker *c, zc_rl_attr *a, zc_rl_type type)
{
    const char *name = a->value->text;
    int var = zc_rl_var_find(c->rule, name);
    a->is_capture = true;
    if (var < 0) {
        var = zc_rl_var_add(c, name, a->value->loc, ZC_RV_ATTR);
        if (var >= 0) c->rule->vars[var].type = type;
        if (var >= 0) c->rule->vars[var].maybe = c->optional > 0;
    } else {
        c->rule->vars[var].uses++;
        if (c->rule->vars[var].type != (int)type)
            zc_rl_fault(c, a->value->loc, "'%s' is %s elsewhere (got %s)", name,
                        zc_rl_type_name((zc_rl_type)c->rule->vars[var].type),
                        zc_rl_type_name(type));
    }
    a->var = var;
}

static void check_attr_value(zc_rl_checker *c, zc_rl_attr *a, zc_rl_type type)
{
    bool is_set = a->op == ZC_RE_IN;
    if (type == ZC_RT_TENSOR) {
        zc_rl_fault(c, a->name.loc, "attributes that are tensors cannot be said in rules");
        return;
    }
    if (!is_set) {
        zc_rl_check_expr_is(c, a->value, type);
        return;
    }
    for (int i = 0; i < a->value->args.n; i++)
        zc_rl_check_expr_is(c, zc_rl_expr_at(&a->value->args, i), type);
}

static void check_attr(zc_rl_checker *c, const zc_op_info *info, zc_rl_attr *a)
{
    a->field = zc_attr_find(info, a->name.text, strlen(a->name.text));
    if (a->field < 0) {
        zc_buf hint = {0};
        zc_rl_suggest(&hint, a->name.text, field_name, info);
        zc_rl_fault(c, a->name.loc, "%s has no attribute '%s'%s", info->name, a->name.text,
                    hint.data ? hint.data : "");
        zc_buf_fini(&hint);
        return;
    }
    if (c->in_emit && !a->assign)
        zc_rl_fault(c, a->name.loc, "an attribute is given with '=' in emit");
    zc_rl_type type = zc_rl_attr_type(info->fields[a->field].kind);
    if (is_capture(c, a))
        capture(c, a, type);
    else
        check_attr_value(c, a, type);
}

bool zc_rl_check_op(zc_rl_checker *c, zc_rl_pat *p)
{
    if (!find_op(c, p)) return false;
    check_arity(c, p);
    check_regions(c, p);
    if (p->any_attrs && c->in_emit) zc_rl_fault(c, p->loc, "'...' stands in match only");
    if (p->optional && c->in_emit) zc_rl_fault(c, p->loc, "'?' stands in match only");
    if (p->pointwise && p->attrs.n) {
        zc_rl_fault(c, p->loc, "'%s' has no attributes", p->text);
        return true;
    }
    for (int i = 0; i < p->attrs.n; i++) {
        zc_rl_attr *a = zc_rl_attr_at(&p->attrs, i);
        check_attr(c, zc_op_get(p->op), a);
        for (int j = 0; c->in_emit && a->field >= 0 && j < i; j++)
            if (zc_rl_attr_at(&p->attrs, j)->field == a->field)
                zc_rl_fault(c, a->name.loc, "attribute '%s' is given twice", a->name.text);
    }
    return true;
}

/* ---- scalar definitions ---- */

/* Names that zc gives to inputs by itself: x y z w, and x0, x1, ... */
static bool is_input_name(const char *s, size_t n)
{
    if (n == 1) return strchr("xyzw", *s) != NULL;
    if (*s != 'x') return false;
    for (size_t i = 1; i < n; i++)
        if (s[i] < '0' || s[i] > '9') return false;
    return true;
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
        loc.col = p->text[i] == '\n' ? 1 : loc.col + 1;
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

/* A name of the text that would be taken for another input. */
static void check_words(zc_rules *r, const zc_rl_pointwise *p)
{
    for (size_t i = 0, n; p->text[i]; i += n) {
        n = piece_length(p->text + i);
        bool is_name = is_word_char(p->text[i]) && p->text[i] > '9';
        if (is_name && is_input_name(p->text + i, n) && param_of(p, p->text + i, n) < 0)
            zc_rl_error(r, p->file, place(p, i), "'%.*s' is no parameter", (int)n, p->text + i);
    }
}

/* The expression's own complaint begins with its column. */
static void report(zc_rules *r, const zc_rl_pointwise *p, const char *text)
{
    size_t column = 0;
    int at = 0;
    zc_buf head = {0};
    if (sscanf(text, "expression, column %zu: %n", &column, &at) != 1 || at == 0) column = 1;
    zc_rl_error(r, p->file, place(p, compose(p, &head, column - 1)), "%s", text + at);
    zc_buf_fini(&head);
}

static void parse(zc_rules *r, zc_rl_pointwise *p, const char *text, zc_expr *e, zc_diag *diag)
{
    zc_dtype dtypes[ZC_EXPR_MAX_INPUTS];
    for (int i = 0; i < ZC_EXPR_MAX_INPUTS; i++) dtypes[i] = ZC_F32;
    if (zc_expr_parse(text, dtypes, p->params.n, NULL, 0, e, NULL, diag) != ZC_OK)
        report(r, p, zc_diag_text(diag, 0));
    p->expr = zc_arena_strdup(&r->arena, text);
    if (!p->expr) r->nomem = true;
}

void zc_rl_check_pointwise(zc_rules *r, zc_rl_pointwise *p)
{
    zc_buf text = {0};
    size_t errors = r->errors;
    check_params(r, p);
    check_words(r, p);
    zc_buf_puts(&text, "");
    compose(p, &text, SIZE_MAX);
    zc_expr *e = zc_calloc(1, sizeof *e);
    zc_diag *diag = zc_diag_create();
    if (text.failed || !e || !diag)
        r->nomem = true;
    else if (r->errors == errors)
        parse(r, p, text.data, e, diag);
    zc_diag_destroy(&diag);
    free(e);
    zc_buf_fini(&text);
}
