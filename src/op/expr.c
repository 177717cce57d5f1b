/* Scalar expressions: reading and typing in one descent. Literals (and attributes) have no type
 * until they meet an operand that has one. */
#include "op/expr.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"

#define NAMES_MAX    256
#define NAME_MAX_LEN 64

typedef struct bound_name {
    const char *text;
    size_t len;
    int node;
} bound_name;

typedef struct parser {
    const char *text, *at;
    const zc_dtype *in_dtypes;
    int ninputs;
    const zc_expr_const *consts;
    int nconsts;
    zc_expr *e;
    bound_name names[NAMES_MAX];
    int nnames, depth;
    const char *subject;
    zc_diag *diag;
    zc_status status; /* sticky */
} parser;

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

/* Returns -1, so that callers can return it as "no node". */
static int fail(parser *p, const char *what)
{
    if (p->status == ZC_OK)
        p->status = zc_fail(p->diag, ZC_ERR_MODEL, p->subject, "expression, column %zu: %s",
                            (size_t)(p->at - p->text) + 1, what);
    return -1;
}

/* ---- nodes ---- */

static zc_expr_node *node(parser *p, int i)
{
    return &p->e->nodes[i];
}

static bool same_node(const zc_expr_node *a, const zc_expr_node *b)
{
    return a->op == b->op && a->dtype == b->dtype && a->input == b->input && a->i == b->i &&
           memcmp(&a->f, &b->f, sizeof a->f) == 0 && memcmp(a->arg, b->arg, sizeof a->arg) == 0;
}

static int add_node(parser *p, zc_expr_node n)
{
    for (int i = 0; i < p->e->count; i++)
        if (same_node(&p->e->nodes[i], &n)) return i;
    if (p->e->count == ZC_EXPR_MAX_NODES) return fail(p, "expression too large");
    p->e->nodes[p->e->count] = n;
    return p->e->count++;
}

static int make(parser *p, zc_expr_op op, zc_dtype dtype, int a, int b, int c)
{
    if (p->status != ZC_OK) return -1;
    return add_node(
        p, (zc_expr_node){
               .op = op, .dtype = dtype, .arg = {(int16_t)a, (int16_t)b, (int16_t)c}, .input = -1});
}

/* A literal without a type keeps its value in f and, when it is an integer, in i with input == 1.
 */
static int literal(parser *p, double f, bool is_int, int64_t i)
{
    return add_node(p, (zc_expr_node){.op = ZC_EX_CONST,
                                      .dtype = ZC_NONE,
                                      .arg = {-1, -1, -1},
                                      .input = is_int,
                                      .f = f,
                                      .i = i});
}

static bool is_literal(const parser *p, int n)
{
    return p->e->nodes[n].op == ZC_EX_CONST && p->e->nodes[n].dtype == ZC_NONE;
}

static int typed_literal(parser *p, int n, zc_dtype dtype)
{
    zc_expr_node c = *node(p, n);
    bool is_int = c.input == 1;
    c.dtype = dtype;
    c.input = -1;
    if (zc_dtype_is_float(dtype)) {
        c.i = 0;
    } else {
        if (!is_int) return fail(p, "a fraction where an integer is needed");
        if (dtype == ZC_BOOL) c.i = c.i != 0;
        c.f = 0;
    }
    return add_node(p, c);
}

static zc_dtype dtype_of(const parser *p, int n)
{
    return p->e->nodes[n].dtype;
}

/* Gives both operands one type; false (with an error) when they have different ones. */
static bool unify(parser *p, int *a, int *b)
{
    if (p->status != ZC_OK || *a < 0 || *b < 0) return false;
    if (is_literal(p, *a) && !is_literal(p, *b)) *a = typed_literal(p, *a, dtype_of(p, *b));
    if (*a < 0) return false;
    if (is_literal(p, *b) && !is_literal(p, *a)) *b = typed_literal(p, *b, dtype_of(p, *a));
    if (*b < 0) return false;
    if (dtype_of(p, *a) == dtype_of(p, *b)) return true;
    fail(p, "operands of different types");
    return false;
}

/* ---- typing of operations ---- */

static double fold(zc_expr_op op, double a, double b)
{
    switch (op) {
    case ZC_EX_ADD:
        return a + b;
    case ZC_EX_SUB:
        return a - b;
    case ZC_EX_MUL:
        return a * b;
    case ZC_EX_DIV:
        return a / b;
    case ZC_EX_MAX:
        return fmax(a, b);
    case ZC_EX_MIN:
        return fmin(a, b);
    case ZC_EX_POW:
        return pow(a, b);
    case ZC_EX_NE:
        return a != b;
    case ZC_EX_EQ:
        return a == b;
    case ZC_EX_LT:
        return a < b;
    case ZC_EX_LE:
        return a <= b;
    case ZC_EX_GT:
        return a > b;
    case ZC_EX_GE:
        return a >= b;
    default:
        return NAN;
    }
}

static bool is_comparison(zc_expr_op op)
{
    return op >= ZC_EX_EQ && op <= ZC_EX_GE;
}

/* Two literals: their value, or a bool constant for a comparison. */
static int fold_literals(parser *p, zc_expr_op op, int a, int b)
{
    double v = fold(op, node(p, a)->f, node(p, b)->f);
    if (is_comparison(op))
        return add_node(p, (zc_expr_node){.op = ZC_EX_CONST,
                                          .dtype = ZC_BOOL,
                                          .arg = {-1, -1, -1},
                                          .input = -1,
                                          .i = v != 0});
    bool is_int =
        node(p, a)->input == 1 && node(p, b)->input == 1 && v == floor(v) && fabs(v) < 9e15;
    if (op == ZC_EX_DIV) is_int = false;
    if (isnan(v) && !isnan(node(p, a)->f) && !isnan(node(p, b)->f))
        return fail(p, "constants cannot be computed");
    return literal(p, v, is_int, is_int ? (int64_t)v : 0);
}

typedef enum rule { ANY, NUMBER, FLOAT, INTEGER, LOGIC } rule;

static bool obeys(rule r, zc_dtype d)
{
    bool number = zc_dtype_is_float(d) || zc_dtype_is_int(d);
    switch (r) {
    case ANY:
        return number || d == ZC_BOOL;
    case NUMBER:
        return number;
    case FLOAT:
        return zc_dtype_is_float(d);
    case INTEGER:
        return zc_dtype_is_int(d) || d == ZC_BOOL;
    case LOGIC:
        return d == ZC_BOOL;
    }
    return false;
}

static rule binary_rule(zc_expr_op op)
{
    switch (op) {
    case ZC_EX_AND:
    case ZC_EX_OR:
        return LOGIC;
    case ZC_EX_BITAND:
    case ZC_EX_BITOR:
    case ZC_EX_BITXOR:
    case ZC_EX_SHL:
    case ZC_EX_SHR:
        return INTEGER;
    case ZC_EX_EQ:
    case ZC_EX_NE:
        return ANY;
    default:
        return NUMBER;
    }
}

/* pow(x, y) has x's type; the exponent may have another. */
static int power(parser *p, int a, int b)
{
    if (is_literal(p, a) && is_literal(p, b)) return fold_literals(p, ZC_EX_POW, a, b);
    if (is_literal(p, a)) a = typed_literal(p, a, dtype_of(p, b));
    if (a >= 0 && is_literal(p, b)) {
        bool whole = node(p, b)->input == 1;
        b = typed_literal(p, b,
                          whole || zc_dtype_is_float(dtype_of(p, a)) ? dtype_of(p, a) : ZC_F64);
    }
    if (a < 0 || b < 0) return -1;
    if (!obeys(NUMBER, dtype_of(p, a)) || !obeys(NUMBER, dtype_of(p, b)))
        return fail(p, "pow needs numbers");
    return make(p, ZC_EX_POW, dtype_of(p, a), a, b, -1);
}

static int binary(parser *p, zc_expr_op op, int a, int b)
{
    if (p->status != ZC_OK || a < 0 || b < 0) return -1;
    if (op == ZC_EX_POW) return power(p, a, b);
    if (is_literal(p, a) && is_literal(p, b)) return fold_literals(p, op, a, b);
    if (!unify(p, &a, &b)) return -1;
    zc_dtype d = dtype_of(p, a);
    if (!obeys(binary_rule(op), d))
        return fail(p, "operands of a type that the operation does not take");
    return make(p, op, is_comparison(op) ? ZC_BOOL : d, a, b, -1);
}

static int unary(parser *p, zc_expr_op op, int a)
{
    if (p->status != ZC_OK || a < 0) return -1;
    if (is_literal(p, a)) {
        const zc_expr_node n = *node(p, a);
        if (op == ZC_EX_NEG) return literal(p, -n.f, n.input == 1, n.input == 1 ? -n.i : 0);
        if (op == ZC_EX_SQRT) return literal(p, sqrt(n.f), false, 0);
        if (op == ZC_EX_EXP) return literal(p, exp(n.f), false, 0);
        return fail(p, "a constant where an input is needed");
    }
    zc_dtype d = dtype_of(p, a);
    rule r = FLOAT;
    if (op == ZC_EX_NEG || op == ZC_EX_ABS || op == ZC_EX_SIGN) r = NUMBER;
    if (op == ZC_EX_NOT) r = LOGIC;
    if (op == ZC_EX_BITNOT) r = INTEGER;
    if (!obeys(r, d)) return fail(p, "an operand of a type that the operation does not take");
    bool asks = op == ZC_EX_ISNAN || op == ZC_EX_ISINF;
    return make(p, op, asks ? ZC_BOOL : d, a, -1, -1);
}

static int choose(parser *p, int c, int a, int b)
{
    if (p->status != ZC_OK || c < 0 || a < 0 || b < 0) return -1;
    if (dtype_of(p, c) != ZC_BOOL) return fail(p, "a condition that is not bool");
    if (is_literal(p, a) && is_literal(p, b))
        return fail(p, "a choice between two constants has no type");
    if (!unify(p, &a, &b)) return -1;
    return make(p, ZC_EX_SELECT, dtype_of(p, a), c, a, b);
}

static int convert(parser *p, zc_dtype to, int a)
{
    if (p->status != ZC_OK || a < 0) return -1;
    if (is_literal(p, a)) return typed_literal(p, a, to);
    return dtype_of(p, a) == to ? a : make(p, ZC_EX_CAST, to, a, -1, -1);
}

/* ---- words ---- */

static void skip_space(parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r') p->at++;
}

static bool take(parser *p, const char *word)
{
    skip_space(p);
    size_t n = strlen(word);
    if (p->status != ZC_OK || strncmp(p->at, word, n) != 0) return false;
    p->at += n;
    return true;
}

static size_t name_length(const char *s)
{
    size_t n = 0;
    if (!isalpha((unsigned char)s[0]) && s[0] != '_') return 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '_') n++;
    return n;
}

static bool is_word(const char *s, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(s, word, n) == 0;
}

static int number(parser *p)
{
    char *end;
    double f = strtod(p->at, &end);
    size_t n = (size_t)(end - p->at);
    if (n == 0 || name_length(end)) return fail(p, "not a number");
    bool is_int = strspn(p->at, "0123456789") >= n && n < 19;
    int r = literal(p, f, is_int, is_int ? (int64_t)strtoll(p->at, NULL, 10) : 0);
    p->at = end;
    return r;
}

/* x, y, z, w, x0, x1, ... */
static int input_index(const char *s, size_t n)
{
    static const char letters[] = "xyzw";
    if (n == 1) {
        const char *c = strchr(letters, s[0]);
        return c && *c ? (int)(c - letters) : -1;
    }
    if (n > 4 || s[0] != 'x') return -1;
    int i = 0;
    for (size_t k = 1; k < n; k++) {
        if (!isdigit((unsigned char)s[k])) return -1;
        i = 10 * i + (s[k] - '0');
    }
    return i;
}

static int named(parser *p, const char *s, size_t n)
{
    for (int i = p->nnames - 1; i >= 0; i--)
        if (p->names[i].len == n && memcmp(p->names[i].text, s, n) == 0) return p->names[i].node;
    for (int i = 0; i < p->nconsts; i++)
        if (is_word(s, n, p->consts[i].name)) {
            const zc_expr_const *c = &p->consts[i];
            bool whole = c->is_int || (c->value == floor(c->value) && fabs(c->value) < 9e15);
            return literal(p, c->value, whole, whole ? (int64_t)c->value : 0);
        }
    int in = input_index(s, n);
    if (in >= 0 && in < p->ninputs)
        return add_node(p, (zc_expr_node){.op = ZC_EX_INPUT,
                                          .dtype = p->in_dtypes[in],
                                          .arg = {-1, -1, -1},
                                          .input = (int16_t)in});
    if (is_word(s, n, "inf")) return literal(p, INFINITY, false, 0);
    if (is_word(s, n, "nan")) return literal(p, NAN, false, 0);
    if (is_word(s, n, "true") || is_word(s, n, "false"))
        return add_node(p, (zc_expr_node){.op = ZC_EX_CONST,
                                          .dtype = ZC_BOOL,
                                          .arg = {-1, -1, -1},
                                          .input = -1,
                                          .i = s[0] == 't'});
    p->at = s;
    return fail(p, "no such name");
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

static int arguments(parser *p, int args[3])
{
    int n = 0;
    do {
        if (n == 3) return fail(p, "too many arguments");
        args[n++] = parse_ternary(p);
    } while (take(p, ","));
    return take(p, ")") ? n : fail(p, "expected ')'");
}

static int call(parser *p, const char *s, size_t len)
{
    int args[3] = {-1, -1, -1};
    int n = arguments(p, args);
    if (n < 0) return -1;
    for (size_t i = 0; i < ZC_COUNTOF(calls); i++) {
        if (!is_word(s, len, calls[i].name)) continue;
        if (n != calls[i].arity) return fail(p, "wrong number of arguments");
        if (n == 3) return choose(p, args[0], args[1], args[2]);
        return n == 2 ? binary(p, calls[i].op, args[0], args[1]) : unary(p, calls[i].op, args[0]);
    }
    char name[NAME_MAX_LEN];
    snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : sizeof name - 1), s);
    zc_dtype to = zc_dtype_parse(name);
    if (to != ZC_NONE && n == 1) return convert(p, to, args[0]);
    p->at = s;
    return fail(p, "no such function");
}

/* ---- grammar ---- */

static int parse_primary(parser *p)
{
    skip_space(p);
    if (p->status != ZC_OK) return -1;
    if (take(p, "(")) {
        int r = parse_ternary(p);
        return take(p, ")") ? r : fail(p, "expected ')'");
    }
    if (isdigit((unsigned char)*p->at) || *p->at == '.') return number(p);
    const char *s = p->at;
    size_t n = name_length(s);
    if (n == 0) return fail(p, *s ? "expected an operand" : "the expression ends too early");
    p->at += n;
    return take(p, "(") ? call(p, s, n) : named(p, s, n);
}

static int parse_unary(parser *p)
{
    if (++p->depth > ZC_EXPR_MAX_DEPTH) return fail(p, "nested too deep");
    int r;
    if (take(p, "-"))
        r = unary(p, ZC_EX_NEG, parse_unary(p));
    else if (take(p, "!"))
        r = unary(p, ZC_EX_NOT, parse_unary(p));
    else if (take(p, "~"))
        r = unary(p, ZC_EX_BITNOT, parse_unary(p));
    else
        r = parse_primary(p);
    p->depth--;
    return r;
}

/* Longer signs first where one begins another. */
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
#define LEVEL_MAX 10

static bool take_sign(parser *p, int level, zc_expr_op *op)
{
    skip_space(p);
    for (size_t i = 0; i < ZC_COUNTOF(signs); i++) {
        size_t n = strlen(signs[i].sign);
        if (signs[i].level != level || strncmp(p->at, signs[i].sign, n) != 0) continue;
        if (p->at[n] && strchr(signs[i].not_before, p->at[n])) continue;
        p->at += n;
        *op = signs[i].op;
        return true;
    }
    return false;
}

static int parse_level(parser *p, int level)
{
    if (level > LEVEL_MAX) return parse_unary(p);
    int a = parse_level(p, level + 1);
    zc_expr_op op;
    while (p->status == ZC_OK && take_sign(p, level, &op))
        a = binary(p, op, a, parse_level(p, level + 1));
    return a;
}

static int parse_ternary(parser *p)
{
    if (++p->depth > ZC_EXPR_MAX_DEPTH) return fail(p, "nested too deep");
    int r = parse_level(p, 1);
    if (take(p, "?")) {
        int a = parse_ternary(p);
        if (!take(p, ":")) return fail(p, "expected ':'");
        r = choose(p, r, a, parse_ternary(p));
    }
    p->depth--;
    return r;
}

/* "name = expr ;" when a single '=' follows the name. */
static bool at_binding(parser *p, const char **name, size_t *len)
{
    skip_space(p);
    *name = p->at;
    *len = name_length(p->at);
    const char *s = p->at + *len;
    while (*s == ' ') s++;
    if (*len == 0 || s[0] != '=' || s[1] == '=') return false;
    p->at = s + 1;
    return true;
}

static int parse_program(parser *p)
{
    const char *name;
    size_t len;
    while (p->status == ZC_OK && at_binding(p, &name, &len)) {
        int n = parse_ternary(p);
        if (!take(p, ";")) return fail(p, "expected ';'");
        if (p->nnames == NAMES_MAX) return fail(p, "too many names");
        p->names[p->nnames++] = (bound_name){name, len, n};
    }
    int r = parse_ternary(p);
    skip_space(p);
    return *p->at && p->status == ZC_OK ? fail(p, "text follows the expression") : r;
}

/* Drops nodes that the result does not need and makes it the last. */
static void finish(zc_expr *e, int result)
{
    bool used[ZC_EXPR_MAX_NODES] = {false};
    int16_t moved[ZC_EXPR_MAX_NODES];
    int count = 0;
    used[result] = true;
    for (int i = result; i >= 0; i--)
        for (int a = 0; used[i] && a < 3; a++)
            if (e->nodes[i].arg[a] >= 0) used[e->nodes[i].arg[a]] = true;
    for (int i = 0; i <= result; i++) {
        if (!used[i]) continue;
        zc_expr_node n = e->nodes[i];
        for (int a = 0; a < 3; a++)
            if (n.arg[a] >= 0) n.arg[a] = moved[n.arg[a]];
        moved[i] = (int16_t)count;
        e->nodes[count++] = n;
    }
    e->count = count;
}

zc_status zc_expr_parse(const char *text, const zc_dtype *in_dtypes, int ninputs,
                        const zc_expr_const *consts, int nconsts, zc_expr *out, const char *subject,
                        zc_diag *diag)
{
    parser p = {.text = text,
                .at = text,
                .in_dtypes = in_dtypes,
                .ninputs = ninputs,
                .consts = consts,
                .nconsts = nconsts,
                .e = out,
                .subject = subject,
                .diag = diag};
    out->count = 0;
    out->ninputs = ninputs;
    int r = parse_program(&p);
    if (p.status == ZC_OK && r >= 0 && is_literal(&p, r)) {
        if (ninputs > 0)
            r = typed_literal(&p, r, in_dtypes[0]);
        else
            fail(&p, "the result has no type");
    }
    if (p.status != ZC_OK) return p.status;
    finish(out, r);
    return ZC_OK;
}
