/* Scalar expressions: the grammar, read and typed in one descent. */
#include "op/expr.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "op/expr_parse.h"

typedef zc_ex_parser parser;

static int parse_ternary(parser *p);

const char *zc_expr_op_name(zc_expr_op op)
{
    static const char *const names[] = {
#define X(n) #n,
        ZC_EXPR_OPS(X)
#undef X
    };
    return (unsigned)op < ZC_COUNTOF(names) ? names[op] : "?";
}

static int fail(parser *p, const char *what)
{
    return zc_ex_fail_at(p, p->at, "%s", what);
}

/* ---- names ---- */

/* x, y, z, w, x0, x1, ...; -1: another name. */
static int input_index(const char *s, size_t n)
{
    static const char letters[] = "xyzw";
    if (n == 1) {
        const char *c = strchr(letters, s[0]);
        return c ? (int)(c - letters) : -1;
    }
    if (n > 4 || s[0] != 'x') return -1;
    int i = 0;
    for (size_t k = 1; k < n; k++) {
        if (!zc_ex_is_digit(s[k])) return -1;
        i = 10 * i + (s[k] - '0');
    }
    return i;
}

static int attribute(parser *p, const zc_expr_const *c)
{
    bool whole = c->is_int || (c->value == floor(c->value) && fabs(c->value) < 0x1p53);
    return whole ? zc_ex_literal_int(p, (int64_t)c->value) : zc_ex_literal(p, c->value);
}

static int named(parser *p, const char *s, size_t n)
{
    for (int i = p->nnames - 1; i >= 0; i--)
        if (p->names[i].len == n && memcmp(p->names[i].text, s, n) == 0) return p->names[i].node;
    for (int i = 0; i < p->nconsts; i++)
        if (zc_ex_is_word(s, n, p->consts[i].name)) return attribute(p, &p->consts[i]);
    int input = input_index(s, n);
    if (input >= 0 && input < p->ninputs) return zc_ex_input(p, input);
    if (zc_ex_is_word(s, n, "inf")) return zc_ex_literal(p, INFINITY);
    if (zc_ex_is_word(s, n, "nan")) return zc_ex_literal(p, NAN);
    if (zc_ex_is_word(s, n, "true")) return zc_ex_bool(p, true);
    if (zc_ex_is_word(s, n, "false")) return zc_ex_bool(p, false);
    return zc_ex_fail_at(p, s, "no such name");
}

/* ---- calls ---- */

static const struct {
    const char *name;
    zc_expr_op op;
    int arity;
} calls[] = {
    {"abs", ZC_EX_ABS, 1},     {"acos", ZC_EX_ACOS, 1},   {"acosh", ZC_EX_ACOSH, 1},
    {"asin", ZC_EX_ASIN, 1},   {"asinh", ZC_EX_ASINH, 1}, {"atan", ZC_EX_ATAN, 1},
    {"atanh", ZC_EX_ATANH, 1}, {"ceil", ZC_EX_CEIL, 1},   {"cos", ZC_EX_COS, 1},
    {"cosh", ZC_EX_COSH, 1},   {"erf", ZC_EX_ERF, 1},     {"exp", ZC_EX_EXP, 1},
    {"expm1", ZC_EX_EXPM1, 1}, {"floor", ZC_EX_FLOOR, 1}, {"log", ZC_EX_LOG, 1},
    {"log1p", ZC_EX_LOG1P, 1}, {"round", ZC_EX_ROUND, 1}, {"rsqrt", ZC_EX_RSQRT, 1},
    {"sign", ZC_EX_SIGN, 1},   {"sin", ZC_EX_SIN, 1},     {"sinh", ZC_EX_SINH, 1},
    {"sqrt", ZC_EX_SQRT, 1},   {"tan", ZC_EX_TAN, 1},     {"tanh", ZC_EX_TANH, 1},
    {"isnan", ZC_EX_ISNAN, 1}, {"isinf", ZC_EX_ISINF, 1}, {"sigmoid", ZC_EX_SIGMOID, 1},
    {"max", ZC_EX_MAX, 2},     {"min", ZC_EX_MIN, 2},     {"mod", ZC_EX_MOD, 2},
    {"fmod", ZC_EX_FMOD, 2},   {"pow", ZC_EX_POW, 2},     {"select", ZC_EX_SELECT, 3},
};

const char *zc_ex_function(zc_expr_op op)
{
    for (size_t i = 0; i < ZC_COUNTOF(calls); i++)
        if (calls[i].op == op) return calls[i].name;
    return NULL;
}

/* The count, at most 3, or -1. */
static int arguments(parser *p, int args[3])
{
    int n = 0;
    do {
        if (n == 3) return fail(p, "too many arguments");
        args[n++] = parse_ternary(p);
    } while (zc_ex_take(p, ","));
    return zc_ex_take(p, ")") ? n : fail(p, "expected ')'");
}

/* The dtype that a conversion is named after, or ZC_NONE. */
static zc_dtype conversion(const char *s, size_t n)
{
    char name[32];
    if (n >= sizeof name) return ZC_NONE;
    memcpy(name, s, n);
    name[n] = 0;
    return zc_dtype_parse(name);
}

bool zc_expr_is_function(const char *name)
{
    for (size_t i = 0; i < ZC_COUNTOF(calls); i++)
        if (strcmp(calls[i].name, name) == 0) return true;
    return zc_dtype_parse(name) != ZC_NONE;
}

static int call(parser *p, const char *s, size_t len)
{
    int args[3] = {-1, -1, -1}, need = 1;
    size_t f = 0;
    while (f < ZC_COUNTOF(calls) && !zc_ex_is_word(s, len, calls[f].name)) f++;
    zc_dtype to = f == ZC_COUNTOF(calls) ? conversion(s, len) : ZC_NONE;
    if (f < ZC_COUNTOF(calls))
        need = calls[f].arity;
    else if (to == ZC_NONE)
        return zc_ex_fail_at(p, s, "no such function");
    int n = arguments(p, args);
    if (n < 0) return -1;
    if (n != need)
        return zc_ex_fail_at(p, s, "wrong number of arguments (got %d, need %d)", n, need);
    p->blame = s;
    if (to != ZC_NONE) return zc_ex_convert(p, to, args[0]);
    if (n == 3) return zc_ex_select(p, args[0], args[1], args[2]);
    if (n == 2) return zc_ex_binary(p, calls[f].op, args[0], args[1]);
    return zc_ex_unary(p, calls[f].op, args[0]);
}

/* ---- grammar ---- */

static int parse_primary(parser *p)
{
    zc_ex_skip_space(p);
    if (p->status != ZC_OK) return -1;
    p->blame = p->at;
    if (zc_ex_take(p, "(")) {
        int r = parse_ternary(p);
        return zc_ex_take(p, ")") ? r : fail(p, "expected ')'");
    }
    if (zc_ex_is_digit(*p->at) || *p->at == '.') return zc_ex_number(p);
    const char *s = p->at;
    size_t n = zc_ex_name_length(s);
    if (n == 0) return fail(p, *s ? "expected an operand" : "the expression ends too early");
    p->at += n;
    return zc_ex_take(p, "(") ? call(p, s, n) : named(p, s, n);
}

static int parse_unary(parser *p)
{
    static const struct {
        const char *sign;
        zc_expr_op op;
    } unary_signs[] = {{"-", ZC_EX_NEG}, {"!", ZC_EX_NOT}, {"~", ZC_EX_BITNOT}};
    if (++p->depth > ZC_EXPR_MAX_DEPTH) return fail(p, "nested too deep");
    zc_ex_skip_space(p);
    const char *at = p->at;
    int r = -1;
    size_t s = 0;
    while (s < ZC_COUNTOF(unary_signs) && !zc_ex_take(p, unary_signs[s].sign)) s++;
    if (s < ZC_COUNTOF(unary_signs)) {
        r = parse_unary(p);
        p->blame = at;
        r = zc_ex_unary(p, unary_signs[s].op, r);
    } else {
        r = parse_primary(p);
    }
    p->depth--;
    return r;
}

/* By level, the loosest first. */
static const struct {
    const char *sign;
    const char *not_before; /* characters that would make it another sign */
    zc_expr_op op;
    int level;
} signs[] = {
    {"||", "", ZC_EX_OR, 1},    {"&&", "", ZC_EX_AND, 2},    {"|", "|", ZC_EX_BITOR, 3},
    {"^", "", ZC_EX_BITXOR, 4}, {"&", "&", ZC_EX_BITAND, 5}, {"==", "", ZC_EX_EQ, 6},
    {"!=", "", ZC_EX_NE, 6},    {"<=", "", ZC_EX_LE, 7},     {">=", "", ZC_EX_GE, 7},
    {"<", "<=", ZC_EX_LT, 7},   {">", ">=", ZC_EX_GT, 7},    {"<<", "", ZC_EX_SHL, 8},
    {">>", "", ZC_EX_SHR, 8},   {"+", "", ZC_EX_ADD, 9},     {"-", "", ZC_EX_SUB, 9},
    {"*", "", ZC_EX_MUL, 10},   {"/", "", ZC_EX_DIV, 10},    {"%", "", ZC_EX_MOD, 10},
};

const char *zc_ex_sign(zc_expr_op op)
{
    for (size_t i = 0; i < ZC_COUNTOF(signs); i++)
        if (signs[i].op == op) return signs[i].sign;
    return NULL;
}

/* The sign at p of this level or above; -1: none. */
static int sign_at(const parser *p, int level)
{
    for (int i = 0; i < (int)ZC_COUNTOF(signs); i++) {
        if (signs[i].level < level || *p->at != *signs[i].sign) continue;
        size_t n = strlen(signs[i].sign);
        if (strncmp(p->at, signs[i].sign, n) != 0) continue;
        if (p->at[n] && strchr(signs[i].not_before, p->at[n])) continue;
        return i;
    }
    return -1;
}

/* What signs of this level and above join. */
static int parse_level(parser *p, int level)
{
    int a = parse_unary(p);
    while (p->status == ZC_OK) {
        zc_ex_skip_space(p);
        const char *at = p->at;
        int s = sign_at(p, level);
        if (s < 0) break;
        p->at += strlen(signs[s].sign);
        int b = parse_level(p, signs[s].level + 1);
        p->blame = at;
        a = zc_ex_binary(p, signs[s].op, a, b);
    }
    return a;
}

static int parse_ternary(parser *p)
{
    if (++p->depth > ZC_EXPR_MAX_DEPTH) return fail(p, "nested too deep");
    int r = parse_level(p, 1);
    const char *at = p->at;
    if (zc_ex_take(p, "?")) {
        int a = parse_ternary(p);
        if (!zc_ex_take(p, ":")) return fail(p, "expected ':'");
        int b = parse_ternary(p);
        p->blame = at;
        r = zc_ex_select(p, r, a, b);
    }
    p->depth--;
    return r;
}

/* "name = expr ;" when a single '=' follows the name. */
static bool at_binding(parser *p, const char **name, size_t *len)
{
    zc_ex_skip_space(p);
    *name = p->at;
    *len = zc_ex_name_length(p->at);
    const char *s = p->at + *len;
    while (*s == ' ') s++;
    if (*len == 0 || s[0] != '=' || s[1] == '=') return false;
    p->at = s + 1;
    return true;
}

/* A result without a type takes that of input 0. */
static int parse_result(parser *p)
{
    int r = parse_ternary(p);
    if (p->status != ZC_OK || !zc_ex_is_literal(p, r)) return r;
    if (p->ninputs == 0) return zc_ex_fail_at(p, p->text, "the result has no type");
    return zc_ex_settle(p, r, p->in_dtypes[0]);
}

static void parse_program(parser *p, int most)
{
    const char *name;
    size_t len;
    while (p->status == ZC_OK && at_binding(p, &name, &len)) {
        int n = parse_ternary(p);
        if (!zc_ex_take(p, ";")) {
            fail(p, "expected ';'");
            return;
        }
        if (p->nnames == ZC_EX_MAX_NAMES) {
            fail(p, "too many names");
            return;
        }
        p->names[p->nnames++] = (zc_ex_name){name, len, n};
    }
    do p->e->result[p->e->nresults++] = (int16_t)parse_result(p);
    while (p->e->nresults < most && zc_ex_take(p, ","));
    zc_ex_skip_space(p);
    if (p->status == ZC_OK && *p->at)
        fail(p, *p->at == ',' && most > 1 ? "too many results" : "text follows the expression");
}

/* Drops nodes that no result needs: one result is the last then. */
static void finish(zc_expr *e)
{
    bool used[ZC_EXPR_MAX_NODES] = {false};
    int16_t moved[ZC_EXPR_MAX_NODES];
    int count = 0, last = 0;
    for (int r = 0; r < e->nresults; r++) {
        used[e->result[r]] = true;
        if (e->result[r] > last) last = e->result[r];
    }
    for (int i = last; i >= 0; i--)
        for (int a = 0; used[i] && a < 3; a++)
            if (e->nodes[i].arg[a] >= 0) used[e->nodes[i].arg[a]] = true;
    for (int i = 0; i <= last; i++) {
        if (!used[i]) continue;
        zc_expr_node n = e->nodes[i];
        for (int a = 0; a < 3; a++)
            if (n.arg[a] >= 0) n.arg[a] = moved[n.arg[a]];
        moved[i] = (int16_t)count;
        e->nodes[count++] = n;
    }
    e->count = count;
    for (int r = 0; r < e->nresults; r++) e->result[r] = moved[e->result[r]];
}

static zc_status parse(const char *text, const zc_dtype *in_dtypes, int ninputs,
                       const zc_expr_const *consts, int nconsts, int most, zc_expr *out,
                       const char *subject, zc_diag *diag)
{
    parser p = {.text = text,
                .at = text,
                .blame = text,
                .in_dtypes = in_dtypes,
                .ninputs = ninputs,
                .consts = consts,
                .nconsts = nconsts,
                .e = out,
                .subject = subject,
                .diag = diag};
    out->count = out->nresults = 0;
    out->ninputs = ninputs;
    parse_program(&p, most);
    if (p.status != ZC_OK) return p.status;
    finish(out);
    return ZC_OK;
}

zc_status zc_expr_parse(const char *text, const zc_dtype *in_dtypes, int ninputs,
                        const zc_expr_const *consts, int nconsts, zc_expr *out, const char *subject,
                        zc_diag *diag)
{
    return parse(text, in_dtypes, ninputs, consts, nconsts, 1, out, subject, diag);
}

zc_status zc_expr_parse_results(const char *text, const zc_dtype *in_dtypes, int ninputs,
                                const zc_expr_const *consts, int nconsts, zc_expr *out,
                                const char *subject, zc_diag *diag)
{
    return parse(text, in_dtypes, ninputs, consts, nconsts, ZC_EXPR_MAX_RESULTS, out, subject,
                 diag);
}
