/* Operations on literals. Integers stay integers while they fit; the rest is computed in double. */
#include <math.h>

#include "base/mem.h"
#include "op/expr_parse.h"

static double value(const zc_ex_parser *p, int n)
{
    return p->e->nodes[n].f;
}

static bool is_int(const zc_ex_parser *p, int n)
{
    return p->e->nodes[n].input == 1;
}

static double extreme(double a, double b, bool max)
{
    if (isnan(a) || isnan(b)) return NAN;
    return (a > b) == max ? a : b;
}

static double modulo(double a, double b)
{
    double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static int refuse(zc_ex_parser *p)
{
    return zc_ex_fail_at(p, p->blame, "constants cannot be computed");
}

/* ---- two literals ---- */

static bool compare(zc_expr_op op, int order)
{
    switch (op) {
    case ZC_EX_EQ:
        return order == 0;
    case ZC_EX_NE:
        return order != 0;
    case ZC_EX_LT:
        return order < 0;
    case ZC_EX_LE:
        return order <= 0;
    case ZC_EX_GT:
        return order > 0;
    default:
        return order >= 0;
    }
}

static int fold_compare(zc_ex_parser *p, zc_expr_op op, int a, int b)
{
    double x = value(p, a), y = value(p, b);
    if (is_int(p, a) && is_int(p, b)) {
        int64_t i = p->e->nodes[a].i, j = p->e->nodes[b].i;
        return zc_ex_bool(p, compare(op, (i > j) - (i < j)));
    }
    if (isnan(x) || isnan(y)) return zc_ex_bool(p, op == ZC_EX_NE);
    return zc_ex_bool(p, compare(op, (x > y) - (x < y)));
}

/* false: no integer of 64 bits, or not an operation of integers. */
static bool fold_ints(zc_expr_op op, int64_t a, int64_t b, int64_t *out)
{
    switch (op) {
    case ZC_EX_ADD:
        return zc_add_i64(a, b, out);
    case ZC_EX_SUB:
        return b != INT64_MIN && zc_add_i64(a, -b, out);
    case ZC_EX_MUL:
        return zc_mul_i64(a, b, out);
    case ZC_EX_DIV:
        if (b == 0 || b == -1 || a % b != 0) return false;
        *out = a / b;
        return true;
    case ZC_EX_MOD:
        if (b == 0 || b == -1) return false;
        *out = a % b != 0 && (a % b < 0) != (b < 0) ? a % b + b : a % b;
        return true;
    case ZC_EX_MAX:
        *out = a > b ? a : b;
        return true;
    case ZC_EX_MIN:
        *out = a < b ? a : b;
        return true;
    default:
        return false;
    }
}

static double fold_floats(zc_expr_op op, double a, double b)
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
    case ZC_EX_MOD:
        return modulo(a, b);
    case ZC_EX_FMOD:
        return fmod(a, b);
    case ZC_EX_POW:
        return pow(a, b);
    case ZC_EX_MAX:
        return extreme(a, b, true);
    case ZC_EX_MIN:
        return extreme(a, b, false);
    default:
        return NAN;
    }
}

/* & | ^ << >> of whole numbers that are not negative. */
static bool fold_bits(zc_expr_op op, int64_t a, int64_t b, int64_t *out)
{
    if (a < 0 || b < 0) return false;
    switch (op) {
    case ZC_EX_BITAND:
        *out = a & b;
        return true;
    case ZC_EX_BITOR:
        *out = a | b;
        return true;
    case ZC_EX_BITXOR:
        *out = a ^ b;
        return true;
    case ZC_EX_SHL:
        *out = b < 63 ? (int64_t)((uint64_t)a << b) : 0;
        return b < 63 && *out >> b == a && *out >= 0;
    case ZC_EX_SHR:
        *out = b < 63 ? a >> b : 0;
        return true;
    default:
        return false;
    }
}

int zc_ex_fold_binary(zc_ex_parser *p, zc_expr_op op, int a, int b)
{
    int64_t i, x = p->e->nodes[a].i, y = p->e->nodes[b].i;
    bool ints = is_int(p, a) && is_int(p, b);
    if (zc_ex_is_comparison(op)) return fold_compare(p, op, a, b);
    if (ints && (fold_ints(op, x, y, &i) || fold_bits(op, x, y, &i)))
        return zc_ex_literal_int(p, i);
    double v = fold_floats(op, value(p, a), value(p, b));
    if (isnan(v) && !isnan(value(p, a)) && !isnan(value(p, b))) return refuse(p);
    if (ints && op == ZC_EX_POW && fabs(v) < 0x1p53 && v == floor(v))
        return zc_ex_literal_int(p, (int64_t)v);
    return zc_ex_literal(p, v);
}

/* ---- one literal ---- */

static double fold_function(zc_expr_op op, double a)
{
    switch (op) {
    case ZC_EX_ABS:
        return fabs(a);
    case ZC_EX_NEG:
        return -a;
    case ZC_EX_SIGN:
        return isnan(a) ? a : (a > 0) - (a < 0);
#define X(op, function)                                                                            \
    case ZC_EX_##op:                                                                               \
        return function(a);
        X(ACOS, acos)
        X(ACOSH, acosh)
        X(ASIN, asin)
        X(ASINH, asinh)
        X(ATAN, atan)
        X(ATANH, atanh)
        X(CEIL, ceil)
        X(COS, cos)
        X(COSH, cosh)
        X(ERF, erf)
        X(EXP, exp)
        X(EXPM1, expm1)
        X(FLOOR, floor)
        X(LOG, log)
        X(LOG1P, log1p)
        X(ROUND, nearbyint)
        X(SIN, sin)
        X(SINH, sinh)
        X(SQRT, sqrt)
        X(TAN, tan)
        X(TANH, tanh)
#undef X
    case ZC_EX_RSQRT:
        return 1 / sqrt(a);
    case ZC_EX_SIGMOID:
        return 1 / (1 + exp(-a));
    default:
        return NAN;
    }
}

int zc_ex_fold_unary(zc_ex_parser *p, zc_expr_op op, int a)
{
    double x = value(p, a);
    int64_t i = p->e->nodes[a].i;
    if (op == ZC_EX_ISNAN) return zc_ex_bool(p, isnan(x));
    if (op == ZC_EX_ISINF) return zc_ex_bool(p, isinf(x));
    if (is_int(p, a) && i != INT64_MIN) {
        if (op == ZC_EX_NEG) return zc_ex_literal_int(p, -i);
        if (op == ZC_EX_ABS) return zc_ex_literal_int(p, i < 0 ? -i : i);
        if (op == ZC_EX_SIGN) return zc_ex_literal_int(p, (i > 0) - (i < 0));
        if (op == ZC_EX_BITNOT) return zc_ex_literal_int(p, ~i);
    }
    double v = fold_function(op, x);
    if (isnan(v) && !isnan(x)) return refuse(p);
    return zc_ex_literal(p, v);
}
