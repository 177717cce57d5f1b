/* Words and nodes of rule files. */
#include "rules/front.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

/* ---- for the scanner ---- */

void zc_rl_advance(zc_rl_scan *s, zc_rl_loc *loc, const char *text, size_t len)
{
    *loc = (zc_rl_loc){.line = s->line, .col = s->col};
    for (size_t i = 0; i < len; i++) {
        bool ends = text[i] == '\n';
        s->col = ends ? 1 : s->col + !zc_rl_goes_on(text[i]);
        s->line += ends;
        if (s->line == loc->line) loc->len = s->col - loc->col;
    }
}

void zc_rl_bad(zc_rl_scan *s, zc_rl_loc loc, const char *what)
{
    s->bad = loc;
    zc_rl_error(s->r, s->file, loc, "%s", what);
}

static const char *keep(zc_rl_scan *s, const char *text, size_t len)
{
    const char *out = zc_arena_strndup(&s->r->arena, text, len);
    if (!out) s->r->nomem = true;
    return out;
}

static int keep_token(zc_rl_scan *s, union ZC_RL_YYSTYPE *v, int token, const char *text,
                      size_t len)
{
    v->text = keep(s, text, len);
    return v->text ? token : ZC_RL_YYEOF;
}

int zc_rl_name_token(zc_rl_scan *s, union ZC_RL_YYSTYPE *v, zc_rl_loc loc, const char *text,
                     size_t len)
{
    if (len <= ZC_RL_NAME_MAX) return keep_token(s, v, T_NAME, text, len);
    s->bad = loc;
    zc_rl_error(s->r, s->file, loc, "name too long (got %zu characters, need at most %d)", len,
                ZC_RL_NAME_MAX);
    return T_BAD;
}

static bool whole_number(const char *text, size_t len, int64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < len; i++)
        if (text[i] < '0' || text[i] > '9' || !zc_mul_i64(*out, 10, out) ||
            !zc_add_i64(*out, text[i] - '0', out))
            return false;
    return true;
}

/* In the C locale, whatever the caller's is; infinite when out of range. */
static double real_number(const char *text)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain) return 0;
    double v = strtod_l(text, NULL, plain);
    freelocale(plain);
    return v;
}

int zc_rl_number_token(zc_rl_scan *s, union ZC_RL_YYSTYPE *v, zc_rl_loc loc, const char *text,
                       size_t len)
{
    char copy[64];
    zc_rl_number n = {.is_int = whole_number(text, len, &n.i)};
    if (len >= sizeof copy) {
        s->bad = loc;
        zc_rl_error(s->r, s->file, loc, "number too long (got %zu characters, need at most %zu)",
                    len, sizeof copy - 1);
        return T_BAD;
    }
    memcpy(copy, text, len);
    copy[len] = 0;
    n.real = n.is_int ? (double)n.i : real_number(copy);
    bool is_digits = strspn(copy, "0123456789") == len;
    size_t mantissa = strcspn(copy, "eE");
    bool vanishes = n.real == 0 && strcspn(copy, "123456789") < mantissa;
    if ((is_digits && !n.is_int) || n.real - n.real != 0 || vanishes) {
        s->bad = loc;
        zc_rl_error(s->r, s->file, loc, "number out of range (got %s)", copy);
        return T_BAD;
    }
    v->number = n;
    return T_NUMBER;
}

int zc_rl_string_token(zc_rl_scan *s, union ZC_RL_YYSTYPE *v, zc_rl_loc loc, const char *text,
                       size_t len)
{
    char *out = zc_arena_strndup(&s->r->arena, text + 1, len - 2);
    size_t n = 0;
    if (!out) {
        s->r->nomem = true;
        return ZC_RL_YYEOF;
    }
    for (size_t i = 0; out[i]; i++) {
        if (out[i] == '\\') i++;
        out[n++] = out[i];
    }
    out[n] = 0;
    v->text = out;
    return T_STRING;
}

int zc_rl_text_token(zc_rl_scan *s, union ZC_RL_YYSTYPE *v, zc_rl_loc loc, const char *text,
                     size_t len)
{
    return keep_token(s, v, T_TEXT, text, len);
}

/* ---- errors ---- */

void zc_rl_syntax_error(zc_rl_scan *s, zc_rl_loc loc, const char *text)
{
    static const char head[] = "syntax error, ";
    if (s->r->nomem || (loc.line == s->bad.line && loc.col == s->bad.col)) return;
    if (strstr(text, "memory exhausted"))
        zc_rl_error(s->r, s->file, loc, "nested too deep");
    else
        zc_rl_error(s->r, s->file, loc, "%s",
                    strncmp(text, head, strlen(head)) == 0 ? text + strlen(head) : text);
}

zc_rl_loc zc_rl_span(zc_rl_loc first, zc_rl_loc last)
{
    if (last.line == first.line && last.col + last.len > first.col)
        first.len = last.col + last.len - first.col;
    return first;
}

/* ---- lists ---- */

zc_rl_list *zc_rl_append(zc_rl_scan *s, zc_rl_list *list, void *item)
{
    if (!list) list = zc_rl_new(s->r, sizeof *list);
    if (list && item) zc_rl_push(s->r, list, item);
    return list;
}

static zc_rl_list copy_list(const zc_rl_list *list)
{
    return list ? *list : (zc_rl_list){0};
}

zc_rl_name *zc_rl_make_name(zc_rl_scan *s, const char *text, zc_rl_loc loc)
{
    zc_rl_name *n = zc_rl_new(s->r, sizeof *n);
    if (n) *n = (zc_rl_name){text, loc};
    return n;
}

zc_rl_number zc_rl_negate(zc_rl_number n)
{
    n.real = -n.real;
    n.i = -n.i;
    return n;
}

zc_rl_number zc_rl_priority(zc_rl_scan *s, zc_rl_number n, zc_rl_loc loc)
{
    enum { MOST = 1000000 };
    if (n.is_int && n.i >= -MOST && n.i <= MOST) return n;
    zc_rl_error(s->r, s->file, loc, "not a priority (need a whole number from -%d to %d)", MOST,
                MOST);
    return (zc_rl_number){.is_int = true};
}

/* ---- expressions ---- */

static zc_rl_expr *make_expr(zc_rl_scan *s, zc_rl_loc loc, zc_rl_expr_kind kind)
{
    zc_rl_expr *e = zc_rl_new(s->r, sizeof *e);
    if (e) *e = (zc_rl_expr){.kind = kind, .loc = loc, .depth = 1, .index = -1, .list = -1};
    return e;
}

/* One level above the deepest argument; what is too deep loses its arguments. */
static void measure(zc_rl_scan *s, zc_rl_expr *e)
{
    for (int i = 0; i < e->args.n; i++)
        if (zc_rl_expr_at(&e->args, i)->depth >= e->depth)
            e->depth = zc_rl_expr_at(&e->args, i)->depth + 1;
    if (e->depth <= ZC_RL_DEPTH_MAX) return;
    if (e->depth == ZC_RL_DEPTH_MAX + 1)
        zc_rl_error(s->r, s->file, e->loc, "nested too deep (need at most %d levels)",
                    ZC_RL_DEPTH_MAX);
    e->kind = ZC_RE_INT;
    e->depth = 1;
    e->args.n = 0;
}

zc_rl_expr *zc_rl_make_literal(zc_rl_scan *s, zc_rl_loc loc, zc_rl_number n)
{
    zc_rl_expr *e = make_expr(s, loc, n.is_int ? ZC_RE_INT : ZC_RE_REAL);
    if (!e) return NULL;
    e->real = n.real;
    e->i = n.i;
    return e;
}

zc_rl_expr *zc_rl_make_word(zc_rl_scan *s, zc_rl_loc loc, zc_rl_expr_kind kind, const char *text,
                            const zc_rl_list *args)
{
    zc_rl_expr *e = make_expr(s, loc, kind);
    if (!e) return NULL;
    e->text = text;
    e->args = copy_list(args);
    measure(s, e);
    return e;
}

zc_rl_expr *zc_rl_make_list(zc_rl_scan *s, zc_rl_loc loc, const zc_rl_list *items)
{
    zc_rl_expr *e = make_expr(s, loc, ZC_RE_LIST);
    if (!e) return NULL;
    e->args = copy_list(items);
    if (e->args.n > ZC_RL_LIST_MAX) {
        zc_rl_error(s->r, s->file, loc, "list too long (got %d, need at most %d)", e->args.n,
                    ZC_RL_LIST_MAX);
        e->args.n = ZC_RL_LIST_MAX;
    }
    measure(s, e);
    return e;
}

zc_rl_expr *zc_rl_make_op(zc_rl_scan *s, zc_rl_loc loc, zc_rl_expr_kind kind, zc_rl_expr *a,
                          zc_rl_expr *b)
{
    zc_rl_expr *e = make_expr(s, loc, kind);
    if (!e) return NULL;
    if (a) zc_rl_push(s->r, &e->args, a);
    if (b) zc_rl_push(s->r, &e->args, b);
    measure(s, e);
    return e;
}

/* ---- patterns ---- */

zc_rl_kinds zc_rl_kind_of(zc_rl_scan *s, zc_rl_loc loc, const char *text)
{
    if (strcmp(text, "const") == 0) return (zc_rl_kinds){.flags = ZC_RC_CONST};
    if (strcmp(text, "scalar") == 0) return (zc_rl_kinds){.flags = ZC_RC_SCALAR};
    if (strcmp(text, "shared") == 0) return (zc_rl_kinds){.flags = ZC_RC_SHARED};
    zc_dtype d = zc_dtype_parse(text);
    if (d == ZC_NONE)
        zc_rl_error(s->r, s->file, loc,
                    "'%s' is no kind of value (need const, scalar, shared or an element type)",
                    text);
    return (zc_rl_kinds){.dtype = d};
}

zc_rl_kinds zc_rl_join_kinds(zc_rl_scan *s, zc_rl_loc loc, zc_rl_kinds a, zc_rl_kinds b)
{
    if (a.dtype != ZC_NONE && b.dtype != ZC_NONE)
        zc_rl_error(s->r, s->file, loc, "a value has one element type (got %s and %s)",
                    zc_dtype_name(a.dtype), zc_dtype_name(b.dtype));
    return (zc_rl_kinds){.flags = a.flags | b.flags, .dtype = b.dtype ? b.dtype : a.dtype};
}

zc_rl_pat *zc_rl_make_pat(zc_rl_scan *s, zc_rl_loc loc, zc_rl_pat_kind kind)
{
    zc_rl_pat *p = zc_rl_new(s->r, sizeof *p);
    if (p)
        *p = (zc_rl_pat){.kind = kind,
                         .loc = loc,
                         .depth = 1,
                         .least = 1,
                         .most = 1,
                         .var = -1,
                         .node = -1,
                         .like = -1};
    return p;
}

zc_rl_pat *zc_rl_make_value(zc_rl_scan *s, zc_rl_loc loc, const char *text, zc_rl_kinds kinds)
{
    zc_rl_pat *p = zc_rl_make_pat(s, loc, ZC_RP_NAME);
    if (!p) return NULL;
    p->text = text;
    p->flags = kinds.flags;
    p->dtype = kinds.dtype;
    return p;
}

zc_rl_pat *zc_rl_add_dots(zc_rl_pat *p)
{
    if (p) p->spread = true;
    return p;
}

zc_rl_times zc_rl_make_times(zc_rl_scan *s, zc_rl_loc loc, zc_rl_number least, zc_rl_number most)
{
    if (least.is_int && most.is_int && least.i >= 1 && least.i <= most.i && most.i > 1 &&
        most.i <= ZC_RL_REPEAT_MAX)
        return (zc_rl_times){(int)least.i, (int)most.i};
    zc_rl_error(s->r, s->file, loc, "no number of repetitions (need *least..most, from 1 to %d)",
                ZC_RL_REPEAT_MAX);
    return (zc_rl_times){1, 2};
}

zc_rl_pat *zc_rl_make_number(zc_rl_scan *s, zc_rl_loc loc, zc_rl_number n, zc_rl_number tolerance)
{
    zc_rl_pat *p = zc_rl_make_pat(s, loc, ZC_RP_NUM);
    if (!p) return NULL;
    p->num = n.real;
    p->is_int = n.is_int;
    p->tol = tolerance.real;
    return p;
}

zc_rl_pat *zc_rl_make_computed(zc_rl_scan *s, zc_rl_loc loc, zc_rl_expr *e)
{
    zc_rl_pat *p = zc_rl_make_pat(s, loc, ZC_RP_NUM);
    if (p) p->computed = e;
    return p;
}

zc_rl_pat *zc_rl_make_vector(zc_rl_scan *s, zc_rl_loc loc, const zc_rl_list *items)
{
    zc_rl_pat *p = zc_rl_make_pat(s, loc, ZC_RP_LIST);
    if (p) p->args = copy_list(items);
    return p;
}

static void measure_pat(zc_rl_scan *s, zc_rl_pat *p)
{
    if (p->args.n > ZC_RL_LIST_MAX) {
        zc_rl_error(s->r, s->file, p->loc, "too many operands (got %d, need at most %d)", p->args.n,
                    ZC_RL_LIST_MAX);
        p->args.n = ZC_RL_LIST_MAX;
    }
    for (int i = 0; i < p->args.n; i++)
        if (zc_rl_pat_at(&p->args, i)->depth >= p->depth)
            p->depth = zc_rl_pat_at(&p->args, i)->depth + 1;
    if (p->depth <= ZC_RL_NODES_MAX) return;
    zc_rl_error(s->r, s->file, p->loc, "nested too deep (need at most %d levels)", ZC_RL_NODES_MAX);
    p->depth = 1;
    p->args.n = 0;
}

zc_rl_pat *zc_rl_make_alt(zc_rl_scan *s, zc_rl_loc loc, const zc_rl_list *items)
{
    if (items && items->n == 1) return items->v[0];
    zc_rl_pat *p = zc_rl_make_pat(s, loc, ZC_RP_ALT);
    if (!p) return NULL;
    p->args = copy_list(items);
    measure_pat(s, p);
    return p;
}

zc_rl_pat *zc_rl_make_call(zc_rl_scan *s, zc_rl_loc loc, const char *text, const zc_rl_list *args,
                           const zc_rl_braces *braces, zc_rl_times times)
{
    zc_rl_pat *p = zc_rl_make_pat(s, loc, ZC_RP_NODE);
    if (!p) return NULL;
    p->text = text;
    p->args = copy_list(args);
    p->optional = times.least == 0;
    p->least = times.least;
    p->most = times.most;
    if (braces) {
        p->attrs = braces->attrs;
        p->any_attrs = braces->any;
    }
    measure_pat(s, p);
    return p;
}

zc_rl_attr *zc_rl_make_attr(zc_rl_scan *s, const zc_rl_name *name, int op, zc_rl_expr *value)
{
    zc_rl_attr *a = zc_rl_new(s->r, sizeof *a);
    if (!a || !name) return NULL;
    *a = (zc_rl_attr){.name = *name,
                      .op = op < 0 ? ZC_RE_EQ : (zc_rl_expr_kind)op,
                      .assign = op < 0,
                      .value = value,
                      .var = -1,
                      .field = -1};
    return a;
}

zc_rl_braces *zc_rl_add_attr(zc_rl_scan *s, zc_rl_braces *b, zc_rl_attr *attr)
{
    if (!b) b = zc_rl_new(s->r, sizeof *b);
    if (!b) return NULL;
    if (attr)
        zc_rl_push(s->r, &b->attrs, attr);
    else
        b->any = true;
    return b;
}

/* ---- definitions ---- */

zc_rl_stmt *zc_rl_make_stmt(zc_rl_scan *s, zc_rl_loc loc, const zc_rl_list *outs, zc_rl_pat *pat)
{
    zc_rl_stmt *st = zc_rl_new(s->r, sizeof *st);
    if (st) *st = (zc_rl_stmt){.loc = loc, .outs = copy_list(outs), .pat = pat};
    return st;
}

static const char *kind_word(const void *ctx, int i)
{
    return i + 1 < ZC_RULE_KIND_COUNT ? zc_rule_kind_name((zc_rule_kind)(i + 1)) : NULL;
}

int zc_rl_rule_kind(zc_rl_scan *s, const char *text, zc_rl_loc loc)
{
    for (int i = 0; kind_word(NULL, i); i++)
        if (strcmp(text, kind_word(NULL, i)) == 0) return i + 1;
    zc_buf hint = {0};
    zc_rl_suggest(&hint, text, kind_word, NULL);
    zc_rl_error(s->r, s->file, loc, "'%s' is no kind of rule%s", text, hint.data ? hint.data : "");
    zc_buf_fini(&hint);
    return ZC_RULE_KIND_NONE;
}

const char *zc_rl_reason(zc_rl_scan *s, const char *text, zc_rl_loc loc)
{
    enum { LENGTH_MAX = 100 };
    size_t n = text ? strlen(text) : 0;
    if (n == strspn(text ? text : "", " \t"))
        zc_rl_error(s->r, s->file, loc, "a rule that is not to be checked needs a reason");
    else if (n > LENGTH_MAX)
        zc_rl_error(s->r, s->file, loc, "the reason is too long (got %zu bytes, need at most %d)",
                    n, LENGTH_MAX);
    return text;
}

zc_rl_rule *zc_rl_make_rule(zc_rl_scan *s, const zc_rl_name *name, int kind, zc_rl_number priority,
                            const char *unchecked, const zc_rl_list *match, const zc_rl_list *where,
                            const zc_rl_list *emit)
{
    zc_rl_rule *rule = zc_rl_new(s->r, sizeof *rule);
    if (!rule || !name) return NULL;
    *rule = (zc_rl_rule){.name = *name,
                         .kind = (zc_rule_kind)kind,
                         .priority = priority.i,
                         .unchecked = unchecked,
                         .file = s->file,
                         .match = copy_list(match),
                         .where = copy_list(where),
                         .emit = copy_list(emit)};
    return rule;
}

void zc_rl_add_rule(zc_rl_scan *s, zc_rl_rule *rule)
{
    if (!rule || s->r->nomem) return;
    if (s->r->rules.len < ZC_RL_RULES_MAX)
        s->r->nomem |= !ZC_VEC_PUSH(&s->r->rules, rule);
    else if (s->r->rules.len == ZC_RL_RULES_MAX)
        zc_rl_error(s->r, s->file, rule->name.loc, "too many rules (need at most %d)",
                    ZC_RL_RULES_MAX);
}

void zc_rl_add_define(zc_rl_scan *s, const zc_rl_name *name, const zc_rl_list *params,
                      const zc_rl_list *exprs, const zc_rl_list *body)
{
    zc_rl_define *d = zc_rl_new(s->r, sizeof *d);
    if (!d || !name) return;
    *d = (zc_rl_define){.name = *name,
                        .params = copy_list(params),
                        .is_pattern = body != NULL,
                        .exprs = copy_list(exprs),
                        .body = copy_list(body),
                        .file = s->file};
    if (s->r->defines.len >= ZC_RL_RULES_MAX)
        zc_rl_error(s->r, s->file, name->loc, "too many definitions (need at most %d)",
                    ZC_RL_RULES_MAX);
    else
        s->r->nomem |= !ZC_VEC_PUSH(&s->r->defines, d);
}

zc_rl_default *zc_rl_make_default(zc_rl_scan *s, const zc_rl_name *name, zc_rl_number value)
{
    zc_rl_default *d = zc_rl_new(s->r, sizeof *d);
    if (!d || !name) return NULL;
    *d = (zc_rl_default){.name = *name, .value = value.real};
    return d;
}

void zc_rl_add_pointwise(zc_rl_scan *s, const zc_rl_name *name, const zc_rl_list *params,
                         const zc_rl_list *defaults, const char *text, zc_rl_loc loc)
{
    zc_rl_pointwise *p = zc_rl_new(s->r, sizeof *p);
    if (!p || !name) return;
    *p = (zc_rl_pointwise){.name = *name,
                           .params = copy_list(params),
                           .defaults = copy_list(defaults),
                           .text = text,
                           .text_loc = loc,
                           .file = s->file};
    if (s->r->pointwise.len >= ZC_RL_RULES_MAX)
        zc_rl_error(s->r, s->file, name->loc, "too many definitions (need at most %d)",
                    ZC_RL_RULES_MAX);
    else
        s->r->nomem |= !ZC_VEC_PUSH(&s->r->pointwise, p);
}

/* ---- kernels ---- */

zc_rl_clause *zc_rl_make_clause(zc_rl_scan *s, zc_rl_loc loc, const char *word,
                                const zc_rl_name *result, const zc_rl_list *values)
{
    zc_rl_clause *c = zc_rl_new(s->r, sizeof *c);
    if (c)
        *c =
            (zc_rl_clause){.loc = loc, .word = word, .result = result, .values = copy_list(values)};
    return c;
}

zc_rl_kernel *zc_rl_make_kernel(zc_rl_scan *s, const zc_rl_name *name, const zc_rl_list *params)
{
    zc_rl_kernel *k = zc_rl_new(s->r, sizeof *k);
    if (!k || !name) return NULL;
    memset(k, 0, sizeof *k);
    k->name = *name;
    k->params = copy_list(params);
    k->file = k->body.file = s->file;
    k->body.name = *name;
    return k;
}

void zc_rl_set_meaning(zc_rl_scan *s, zc_rl_kernel *k, zc_rl_loc loc, const char *text,
                       const zc_rl_list *statements)
{
    if (!k) return;
    if (k->scalar || k->body.emit.n) zc_rl_error(s->r, s->file, loc, "a second meaning");
    k->body.emit = copy_list(statements);
    if (!text) return;
    k->scalar = zc_rl_new(s->r, sizeof *k->scalar);
    if (k->scalar)
        *k->scalar = (zc_rl_pointwise){
            .name = k->name, .params = k->params, .text = text, .text_loc = loc, .file = s->file};
}

void zc_rl_add_clause(zc_rl_scan *s, zc_rl_kernel *k, zc_rl_clause *clause)
{
    if (k && clause) zc_rl_push(s->r, &k->clauses, clause);
}

void zc_rl_add_kernel(zc_rl_scan *s, zc_rl_kernel *k)
{
    if (!k || s->r->nomem) return;
    if (s->r->kernels.len >= ZC_RL_RULES_MAX)
        zc_rl_error(s->r, s->file, k->name.loc, "too many definitions (need at most %d)",
                    ZC_RL_RULES_MAX);
    else
        s->r->nomem |= !ZC_VEC_PUSH(&s->r->kernels, k);
}
