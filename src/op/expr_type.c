/* Nodes of scalar expressions and their types. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "op/expr_parse.h"

int zc_ex_fail_at(zc_ex_parser *p, const char *where, const char *fmt, ...)
{
    char what[256];
    va_list args;
    if (p->status != ZC_OK) return -1;
    va_start(args, fmt);
    zc_vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    p->status = zc_fail(p->diag, ZC_ERR_MODEL, p->subject, "expression, column %zu: %s",
                        (size_t)(where - p->text) + 1, what);
    return -1;
}

/* ---- nodes ---- */

/* 0.0 and -0.0 differ, a NaN is itself. */
static uint64_t bits(double f)
{
    uint64_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static bool same_node(const zc_expr_node *a, const zc_expr_node *b)
{
    return a->op == b->op && a->dtype == b->dtype && a->input == b->input && a->i == b->i &&
           bits(a->f) == bits(b->f) && memcmp(a->arg, b->arg, sizeof a->arg) == 0;
}

static int add_node(zc_ex_parser *p, zc_expr_node n)
{
    if (p->status != ZC_OK) return -1;
    for (int i = 0; i < p->e->count; i++)
        if (same_node(&p->e->nodes[i], &n)) return i;
    if (p->e->count == ZC_EXPR_MAX_NODES)
        return zc_ex_fail_at(p, p->blame, "expression too large (got more than %d operations)",
                             ZC_EXPR_MAX_NODES);
    p->e->nodes[p->e->count] = n;
    return p->e->count++;
}

static int make(zc_ex_parser *p, zc_expr_op op, zc_dtype dtype, int a, int b, int c)
{
    const zc_expr_node n = {
        .op = op, .dtype = dtype, .arg = {(int16_t)a, (int16_t)b, (int16_t)c}, .input = -1};
    return add_node(p, n);
}

static int constant(zc_ex_parser *p, zc_dtype dtype, int input, double f, int64_t i)
{
    const zc_expr_node n = {.op = ZC_EX_CONST,
                            .dtype = dtype,
                            .arg = {-1, -1, -1},
                            .input = (int16_t)input,
                            .f = f,
                            .i = i};
    return add_node(p, n);
}

int zc_ex_literal(zc_ex_parser *p, double v)
{
    return constant(p, ZC_NONE, 0, v, 0);
}

int zc_ex_literal_int(zc_ex_parser *p, int64_t v)
{
    return constant(p, ZC_NONE, 1, (double)v, v);
}

int zc_ex_bool(zc_ex_parser *p, bool v)
{
    return constant(p, ZC_BOOL, -1, 0, v);
}

int zc_ex_input(zc_ex_parser *p, int input)
{
    const zc_expr_node n = {.op = ZC_EX_INPUT,
                            .dtype = p->in_dtypes[input],
                            .arg = {-1, -1, -1},
                            .input = (int16_t)input};
    return add_node(p, n);
}

bool zc_ex_is_literal(const zc_ex_parser *p, int n)
{
    return p->e->nodes[n].op == ZC_EX_CONST && p->e->nodes[n].dtype == ZC_NONE;
}

static zc_dtype dtype_of(const zc_ex_parser *p, int n)
{
    return p->e->nodes[n].dtype;
}

/* ---- literals take a type ---- */

/* Does v keep its value in an element of this type? */
static bool fits(zc_dtype dtype, int64_t v)
{
    int64_t slot = 0;
    if (zc_dtype_bits(dtype) == 64 && zc_dtype_class(dtype) == ZC_CLASS_UINT) return v >= 0;
    zc_store_i64(dtype, &slot, 0, v);
    return zc_load_i64(dtype, &slot, 0) == v;
}

int zc_ex_settle(zc_ex_parser *p, int n, zc_dtype dtype)
{
    if (p->status != ZC_OK || n < 0 || !zc_ex_is_literal(p, n)) return n;
    const zc_expr_node c = p->e->nodes[n];
    /* A float literal is a number of the domain it is computed in. */
    if (zc_dtype_is_float(dtype))
        return constant(p, dtype, -1, dtype == ZC_F64 ? c.f : (double)(float)c.f, 0);
    if (c.input != 1) return zc_ex_fail_at(p, p->blame, "a fraction where an integer is needed");
    if (dtype == ZC_BOOL) return zc_ex_bool(p, c.i != 0);
    if (!fits(dtype, c.i))
        return zc_ex_fail_at(p, p->blame, "a constant out of range (got %lld for %s)",
                             (long long)c.i, zc_dtype_name(dtype));
    return constant(p, dtype, -1, 0, c.i);
}

/* Gives both operands one type; false (with an error) when they have different ones. */
static bool unify(zc_ex_parser *p, int *a, int *b)
{
    if (p->status != ZC_OK || *a < 0 || *b < 0) return false;
    *a = zc_ex_settle(p, *a, dtype_of(p, *b));
    if (*a >= 0) *b = zc_ex_settle(p, *b, dtype_of(p, *a));
    if (*a < 0 || *b < 0) return false;
    if (dtype_of(p, *a) == dtype_of(p, *b)) return true;
    zc_ex_fail_at(p, p->blame, "operands of different types (got %s and %s)",
                  zc_dtype_name(dtype_of(p, *a)), zc_dtype_name(dtype_of(p, *b)));
    return false;
}

/* ---- operations ---- */

bool zc_ex_is_comparison(zc_expr_op op)
{
    return op >= ZC_EX_EQ && op <= ZC_EX_GE;
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

static rule rule_of(zc_expr_op op)
{
    switch (op) {
    case ZC_EX_AND:
    case ZC_EX_OR:
    case ZC_EX_NOT:
        return LOGIC;
    case ZC_EX_BITAND:
    case ZC_EX_BITOR:
    case ZC_EX_BITXOR:
    case ZC_EX_BITNOT:
    case ZC_EX_SHL:
    case ZC_EX_SHR:
        return INTEGER;
    case ZC_EX_EQ:
    case ZC_EX_NE:
        return ANY;
    case ZC_EX_NEG:
    case ZC_EX_ABS:
    case ZC_EX_SIGN:
        return NUMBER;
    default:
        return zc_ex_is_comparison(op) || (op >= ZC_EX_ADD && op <= ZC_EX_MIN) ? NUMBER : FLOAT;
    }
}

static bool check(zc_ex_parser *p, zc_expr_op op, int n)
{
    if (obeys(rule_of(op), dtype_of(p, n))) return true;
    zc_ex_fail_at(p, p->blame, "an operand of a type that the operation does not take (got %s)",
                  zc_dtype_name(dtype_of(p, n)));
    return false;
}

int zc_ex_unary(zc_ex_parser *p, zc_expr_op op, int a)
{
    if (p->status != ZC_OK || a < 0) return -1;
    if (op == ZC_EX_NOT && p->e->nodes[a].op == ZC_EX_CONST && dtype_of(p, a) == ZC_BOOL)
        return zc_ex_bool(p, !p->e->nodes[a].i);
    if (zc_ex_is_literal(p, a) && op != ZC_EX_NOT) return zc_ex_fold_unary(p, op, a);
    if (!check(p, op, a)) return -1;
    bool asks = op == ZC_EX_ISNAN || op == ZC_EX_ISINF;
    return make(p, op, asks ? ZC_BOOL : dtype_of(p, a), a, -1, -1);
}

/* pow(x, y) has x's type; the exponent may have another. */
static int power(zc_ex_parser *p, int a, int b)
{
    a = zc_ex_settle(p, a, dtype_of(p, b));
    if (a >= 0 && zc_ex_is_literal(p, b)) {
        bool whole = p->e->nodes[b].input == 1;
        b = zc_ex_settle(p, b,
                         whole || zc_dtype_is_float(dtype_of(p, a)) ? dtype_of(p, a) : ZC_F64);
    }
    if (a < 0 || b < 0 || !check(p, ZC_EX_POW, a) || !check(p, ZC_EX_POW, b)) return -1;
    return make(p, ZC_EX_POW, dtype_of(p, a), a, b, -1);
}

/* x && true is x, x && false is false; likewise ||. -1: neither operand is a constant. */
static int simplify_logic(zc_ex_parser *p, zc_expr_op op, int a, int b)
{
    for (int side = 0; side < 2; side++) {
        int c = side ? b : a, other = side ? a : b;
        if (p->e->nodes[c].op != ZC_EX_CONST) continue;
        bool decides = (p->e->nodes[c].i != 0) == (op == ZC_EX_OR);
        return decides ? c : other;
    }
    return -1;
}

int zc_ex_binary(zc_ex_parser *p, zc_expr_op op, int a, int b)
{
    if (p->status != ZC_OK || a < 0 || b < 0) return -1;
    bool logic = op == ZC_EX_AND || op == ZC_EX_OR;
    if (zc_ex_is_literal(p, a) && zc_ex_is_literal(p, b) && !logic)
        return zc_ex_fold_binary(p, op, a, b);
    if (op == ZC_EX_POW) return power(p, a, b);
    if (!unify(p, &a, &b) || !check(p, op, a)) return -1;
    int simple = logic ? simplify_logic(p, op, a, b) : -1;
    if (simple >= 0) return simple;
    return make(p, op, zc_ex_is_comparison(op) ? ZC_BOOL : dtype_of(p, a), a, b, -1);
}

int zc_ex_select(zc_ex_parser *p, int c, int a, int b)
{
    if (p->status != ZC_OK || c < 0 || a < 0 || b < 0) return -1;
    if (dtype_of(p, c) != ZC_BOOL)
        return zc_ex_fail_at(p, p->blame, "a condition that is not bool (got %s)",
                             zc_dtype_name(dtype_of(p, c)));
    if (zc_ex_is_literal(p, a) && zc_ex_is_literal(p, b))
        return zc_ex_fail_at(p, p->blame, "a choice between two constants has no type");
    if (!unify(p, &a, &b)) return -1;
    if (p->e->nodes[c].op == ZC_EX_CONST) return p->e->nodes[c].i ? a : b;
    return make(p, ZC_EX_SELECT, dtype_of(p, a), c, a, b);
}

/* A literal through the storage of the type, as any other value. */
static int convert_literal(zc_ex_parser *p, zc_dtype to, const zc_expr_node *c)
{
    int64_t slot = 0;
    if (c->input == 1)
        zc_store_i64(to, &slot, 0, c->i);
    else
        zc_store_f64(to, &slot, 0, c->f);
    if (zc_dtype_is_float(to)) return constant(p, to, -1, zc_load_f64(to, &slot, 0), 0);
    return constant(p, to, -1, 0, zc_load_i64(to, &slot, 0));
}

int zc_ex_convert(zc_ex_parser *p, zc_dtype to, int a)
{
    if (p->status != ZC_OK || a < 0) return -1;
    if (!obeys(ANY, to))
        return zc_ex_fail_at(p, p->blame, "no conversion to %s", zc_dtype_name(to));
    if (zc_ex_is_literal(p, a)) {
        const zc_expr_node c = p->e->nodes[a];
        return convert_literal(p, to, &c);
    }
    if (!check(p, ZC_EX_EQ, a)) return -1; /* any number or bool */
    return dtype_of(p, a) == to ? a : make(p, ZC_EX_CAST, to, a, -1, -1);
}
