/* What operations of scalar expressions give for floats, in double. */
#include <math.h>

#include "op/expr.h"

double zc_expr_float_unary(zc_expr_op op, double a)
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

static double extreme(double a, double b, bool max)
{
    if (isnan(a) || isnan(b)) return NAN;
    return max ? (a > b ? a : b) : (a < b ? a : b);
}

static double modulo(double a, double b)
{
    double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double zc_expr_float_binary(zc_expr_op op, double a, double b)
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
