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
    double v = zc_expr_float_binary(op, value(p, a), value(p, b));
    if (isnan(v) && !isnan(value(p, a)) && !isnan(value(p, b))) return refuse(p);
    if (ints && op == ZC_EX_POW && fabs(v) < 0x1p53 && v == floor(v))
        return zc_ex_literal_int(p, (int64_t)v);
    return zc_ex_literal(p, v);
}

/* ---- one literal ---- */

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
    double v = zc_expr_float_unary(op, x);
    if (isnan(v) && !isnan(x)) return refuse(p);
    return zc_ex_literal(p, v);
}
