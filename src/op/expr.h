/* Scalar expressions: the one meaning of every pointwise operation.
 *
 * The same text is parsed here for the CPU evaluator, the CUDA generator and the rule language.
 *
 *   program := { name '=' expr ';' } expr { ',' expr }
 *   expr    := cond: expr '?' expr ':' expr; binary: || && | ^ & == != < <= > >= << >> + - * / %;
 *              unary: - ! ~; calls: f(a, b); names; numbers (2, 0.5, 1e-3, inf, nan, true, false);
 *              precedence as in C
 *   names   := x y z w (inputs 0 to 3), x0 x1 ... (inputs), attributes of the operation
 * (constants), names bound earlier in the program calls   := abs acos acosh asin asinh atan atanh
 * ceil cos cosh erf exp floor log log1p expm1 max min mod fmod pow round rsqrt sign sin sinh sqrt
 * tan tanh sigmoid isnan isinf select and conversions named after dtypes: f32(x), i64(x), bool(x),
 * u8(x), f16(x), ...
 *
 * Typing: each input has a dtype. Arithmetic happens in the operands' common domain: f64 for f64;
 * f32 for every other float type; i64 with wrapping to the dtype for signed, u64 for unsigned
 * integers; comparisons and logic give bool. A literal takes the type of the other operand. Two
 * operands of different dtypes are an error unless one is a literal or an attribute. A conversion
 * to a float type narrower than f32 rounds to it. max and min propagate NaN. Integer / truncates; x
 * % y has the divisor's sign (mod) and fmod the dividend's; division of an integer by zero gives 0.
 */
#ifndef ZC_OP_EXPR_H
#define ZC_OP_EXPR_H

#include "base/mem.h"
#include "op/dtype.h"

#define ZC_EXPR_MAX_INPUTS  32
#define ZC_EXPR_MAX_NODES   512
#define ZC_EXPR_MAX_DEPTH   64
#define ZC_EXPR_MAX_RESULTS 4

// clang-format off
#define ZC_EXPR_OPS(X)                                                                             \
    X(INPUT) X(CONST) X(CAST) X(NEG) X(NOT) X(BITNOT) X(ADD) X(SUB) X(MUL) X(DIV) X(MOD) X(FMOD)   \
    X(POW) X(MAX) X(MIN) X(AND) X(OR) X(BITAND) X(BITOR) X(BITXOR) X(SHL) X(SHR) X(EQ) X(NE)       \
    X(LT) X(LE) X(GT) X(GE) X(SELECT) X(ABS) X(ACOS) X(ACOSH) X(ASIN) X(ASINH) X(ATAN) X(ATANH)    \
    X(CEIL) X(COS) X(COSH) X(ERF) X(EXP) X(FLOOR) X(LOG) X(LOG1P) X(EXPM1) X(ROUND) X(RSQRT)       \
    X(SIGN) X(SIN) X(SINH) X(SQRT) X(TAN) X(TANH) X(SIGMOID) X(ISNAN) X(ISINF)
// clang-format on

typedef enum zc_expr_op {
#define X(n) ZC_EX_##n,
    ZC_EXPR_OPS(X)
#undef X
        ZC_EXPR_OP_COUNT
} zc_expr_op;

typedef struct zc_expr_node {
    zc_expr_op op;
    zc_dtype dtype; /* of the result */
    int16_t arg[3]; /* earlier nodes; unused ones -1 */
    int16_t input;  /* INPUT: which */
    double f;       /* CONST of a float type */
    int64_t i;      /* CONST of an integer type or bool */
} zc_expr_node;

/* Nodes in evaluation order without duplicates; with one result it is the last. */
typedef struct zc_expr {
    int count;
    int ninputs;
    int nresults;
    int16_t result[ZC_EXPR_MAX_RESULTS]; /* nodes */
    zc_expr_node nodes[ZC_EXPR_MAX_NODES];
} zc_expr;

/* A named constant (an attribute). */
typedef struct zc_expr_const {
    const char *name;
    double value;
    bool is_int;
} zc_expr_const;

/* Parses and types text, which has one result. Errors name the column. The result's dtype is
 * nodes[count-1].dtype; a bare literal result takes input 0's dtype. */
zc_status zc_expr_parse(const char *text, const zc_dtype *in_dtypes, int ninputs,
                        const zc_expr_const *consts, int nconsts, zc_expr *out, const char *subject,
                        zc_diag *diag);
/* As zc_expr_parse, with as many results as the text has. */
zc_status zc_expr_parse_results(const char *text, const zc_dtype *in_dtypes, int ninputs,
                                const zc_expr_const *consts, int nconsts, zc_expr *out,
                                const char *subject, zc_diag *diag);
/* The element type of result i. */
static inline zc_dtype zc_expr_dtype(const zc_expr *e, int i)
{
    return e->nodes[e->result[i]].dtype;
}

/* One text for all that compute the same but for names, the order of operands that may be
 * exchanged, and digits of numbers behind the sixth. As a rule it parses to an expression that is
 * written the same. false: it would be too long, or no memory. */
bool zc_expr_print(const zc_expr *e, zc_buf *out);
/* A number as it is written there. */
void zc_expr_put_number(double f, zc_buf *out);

const char *zc_expr_op_name(zc_expr_op op);
/* Does an expression call it by that name? */
bool zc_expr_is_function(const char *name);

/* An operation on floats, computed in double; NaN for one that is none. */
double zc_expr_float_unary(zc_expr_op op, double a);
double zc_expr_float_binary(zc_expr_op op, double a, double b);

#endif
