/* Scalar expressions: what they compute is tested by test_pointwise; here their form and types. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "op/expr.h"
#include "support/expect.h"

static const zc_dtype floats[] = {ZC_F32, ZC_F32, ZC_F32};
static const zc_expr_const alpha = {.name = "alpha", .value = 0.25};

static zc_status parse(const char *text, const zc_dtype *dtypes, int n, zc_expr *e, zc_diag *diag)
{
    return zc_expr_parse(text, dtypes, n, &alpha, 1, e, "node", diag);
}

static void test_results(void **state)
{
    (void)state;
    static const zc_dtype mixed[] = {ZC_BOOL, ZC_I32, ZC_I32};
    static const struct {
        const char *text;
        const zc_dtype *in;
        zc_dtype result;
        int nodes;
    } cases[] = {
        {"x + y", floats, ZC_F32, 3},
        {"x + x", floats, ZC_F32, 2},
        {"alpha * x + alpha * x", floats, ZC_F32, 4}, /* equal parts are one node */
        {"2 * 3 + x", floats, ZC_F32, 3},             /* constants are computed */
        {"x < y && !(y < x)", floats, ZC_BOOL, 6},
        {"x ? y : z", mixed, ZC_I32, 4},
        {"x ? y << 2 | 1 : z & 7", mixed, ZC_I32, 10},
        {"t = x * x; u = t + 1; u / t", floats, ZC_F32, 5},
        {"f16(x)", floats, ZC_F16, 2},
        {"bool(x) ? 1.5 : y", floats, ZC_F32, 5},
        {"max(x0, max(x1, x2))", floats, ZC_F32, 5},
        {"-x - -1", floats, ZC_F32, 4},
        {"pow(x, 2)", floats, ZC_F32, 3},
        {"1e-3 * x + .5", floats, ZC_F32, 5},
    };
    zc_expr *e = calloc(1, sizeof *e);
    zc_diag *diag = zc_diag_create();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_ok(diag, parse(cases[i].text, cases[i].in, 3, e, diag));
        if (e->nodes[e->count - 1].dtype != cases[i].result || e->count != cases[i].nodes)
            fail_msg("%s: got %s and %d nodes", cases[i].text,
                     zc_dtype_name(e->nodes[e->count - 1].dtype), e->count);
        for (int n = 0; n < e->count; n++)
            for (int a = 0; a < 3; a++) assert_true(e->nodes[n].arg[a] < n);
    }
    zc_diag_destroy(&diag);
    free(e);
}

static void test_mistakes(void **state)
{
    (void)state;
    static const zc_dtype mixed[] = {ZC_F32, ZC_I32, ZC_BOOL};
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "node: expression, column 1: the expression ends too early"},
        {"x +", "column 4: the expression ends too early"},
        {"x + q", "column 5: no such name"},
        {"x + w", "column 5: no such name"},
        {"foo(x)", "column 1: no such function"},
        {"exp(x, x)", "column 1: wrong number of arguments (got 2, need 1)"},
        {"(x", "column 3: expected ')'"},
        {"x x", "column 3: text follows the expression"},
        {"x + y", "column 3: operands of different types (got f32 and i32)"},
        {"x * x + max(x, y)", "column 9: operands of different types"},
        {"y + 0.5", "column 3: a fraction where an integer is needed"},
        {"y + 3000000000", "column 3: a constant out of range (got 3000000000 for i32)"},
        {"1 + exp(y)", "column 5: an operand of a type that the operation does not take (got i32)"},
        {"x + ~x", "column 5: an operand of a type that the operation does not take (got f32)"},
        {"!x", "an operand of a type that the operation does not take"},
        {"x ? x : x", "column 3: a condition that is not bool (got f32)"},
        {"z ? 1 : 2", "a choice between two constants has no type"},
        {"t = x", "column 6: expected ';'"},
        {"1.5.2", "column 4: text follows the expression"},
        {"2x", "not a number"},
        {"x & x", "an operand of a type that the operation does not take"},
        {"sqrt(-1) + x", "column 1: constants cannot be computed"},
        {"x + inf - inf * 0", "column 15: constants cannot be computed"},
        {"y / (1 / 0)", "a fraction where an integer is needed"},
        {"0x10", "not a number"},
        {"1e + x", "column 1: not a number"},
        {"1e", "not a number"},
        {".", "column 1: not a number"},
        {"c64(x)", "column 1: no conversion to c64"},
        {"select(z, x)", "wrong number of arguments (got 2, need 3)"},
        {"max(x, x, x, x)", "column 13: too many arguments"},
        {"z ? x", "column 6: expected ':'"},
        {"x ++ x", "column 4: expected an operand"},
        {"x = 1; x = 2; x +", "column 18: the expression ends too early"},
        {"\xc3\xa4 + x", "column 1: expected an operand"},
        {"x, y", "column 2: text follows the expression"},
    };
    zc_expr *e = calloc(1, sizeof *e);
    zc_diag *diag = zc_diag_create();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_fail(diag, parse(cases[i].text, mixed, 3, e, diag), ZC_ERR_MODEL, cases[i].message);
    zc_diag_destroy(&diag);
    free(e);
}

/* What an expression without inputs comes to, in the type that it is converted to. */
static void test_constants(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double f;
        int64_t i;
    } cases[] = {
        {"f64(2 * 3 - 1)", 5, 0},
        {"f64(7 / 2)", 3.5, 0},
        {"i32(6 / 2)", 0, 3},
        {"i32(2.7)", 0, 2},
        {"i32(-2.7)", 0, -2},
        {"u8(300)", 0, 44},
        {"u8(-1)", 0, 255},
        {"i64(9223372036854775807)", 0, INT64_MAX},
        {"i64(9007199254740993 + 1)", 0, 9007199254740994},
        {"i64(4611686018427387904 * 2)", 0, INT64_MAX}, /* a float from here on, saturated */
        {"f64(0.1)", 0.1, 0},
        {"f32(0.1)", (double)0.1f, 0},
        {"f16(0.1)", 0.0999755859375, 0},
        {"f64(.5e+2)", 50, 0},
        {"f64(max(nan, 1))", NAN, 0},
        {"f64(min(1, nan))", NAN, 0},
        {"f64(max(2, -3) + min(2, -3))", -1, 0},
        {"f64(-7 % 3)", 2, 0},
        {"f64(fmod(-7, 3))", -1, 0},
        {"f64(pow(2, -1))", 0.5, 0},
        {"i32(pow(3, 4))", 0, 81},
        {"i32(1 << 4 | 3)", 0, 19},
        {"i32(255 >> 4 & 6 ^ 1)", 0, 7},
        {"i32(~0)", 0, -1},
        {"f64(sqrt(2) * sqrt(2))", 2.0000000000000004, 0},
        {"f64(sign(-3) * abs(-2))", -2, 0},
        {"f64(log(1) + exp(0) + floor(-0.5) + ceil(0.5) + round(2.5))", 3, 0},
        {"bool(1 < 2 ? true : false)", 0, 1},
        {"bool(1 == 1.0)", 0, 1},
        {"bool(nan == nan)", 0, 0},
        {"bool(nan != nan)", 0, 1},
        {"bool(isnan(nan) && !isinf(-inf))", 0, 0},
    };
    zc_expr *e = calloc(1, sizeof *e);
    zc_diag *diag = zc_diag_create();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_ok(diag, parse(cases[i].text, NULL, 0, e, diag));
        const zc_expr_node *n = &e->nodes[0];
        bool same = isnan(cases[i].f) ? isnan(n->f) : n->f == cases[i].f && n->i == cases[i].i;
        if (e->count != 1 || n->op != ZC_EX_CONST || !same)
            fail_msg("%s: got %d nodes, %.17g, %lld", cases[i].text, e->count, n->f,
                     (long long)n->i);
    }
    expect_fail(diag, parse("1 + 2", NULL, 0, e, diag), ZC_ERR_MODEL, "the result has no type");
    zc_diag_destroy(&diag);
    free(e);
}

/* Logic with a constant leaves no operation behind. */
static void test_constant_conditions(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int nodes;
        zc_expr_op last;
    } cases[] = {
        {"x > y && alpha != 0", 3, ZC_EX_GT},  {"x > y && alpha == 0", 1, ZC_EX_CONST},
        {"x > y || alpha == 0", 3, ZC_EX_GT},  {"true || x > y", 1, ZC_EX_CONST},
        {"alpha < 1 ? x : y", 1, ZC_EX_INPUT}, {"!(alpha < 1) ? x : y", 1, ZC_EX_INPUT},
    };
    zc_expr *e = calloc(1, sizeof *e);
    zc_diag *diag = zc_diag_create();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_ok(diag, parse(cases[i].text, floats, 2, e, diag));
        if (e->count != cases[i].nodes || e->nodes[e->count - 1].op != cases[i].last)
            fail_msg("%s: got %d nodes, %s last", cases[i].text, e->count,
                     zc_expr_op_name(e->nodes[e->count - 1].op));
    }
    zc_diag_destroy(&diag);
    free(e);
}

/* A literal in the domain of its operand, whatever the operand's own width. */
static void test_literals_round(void **state)
{
    (void)state;
    static const zc_dtype doubles[] = {ZC_F64}, halves[] = {ZC_F16};
    zc_expr *e = calloc(1, sizeof *e);
    assert_int_equal(parse("x * 0.1", floats, 1, e, NULL), ZC_OK);
    assert_true(e->nodes[1].f == (double)0.1f);
    assert_int_equal(parse("x * 0.1", doubles, 1, e, NULL), ZC_OK);
    assert_true(e->nodes[1].f == 0.1);
    assert_int_equal(parse("x * 0.1", halves, 1, e, NULL), ZC_OK);
    assert_true(e->nodes[1].f == (double)0.1f);
    assert_int_equal(parse("7", halves, 1, e, NULL), ZC_OK);
    assert_int_equal(e->nodes[0].dtype, ZC_F16);
    free(e);
}

/* n times `open`, x, n times `close`. */
static char *nested(const char *open, const char *close, int n)
{
    zc_buf b = {0};
    for (int i = 0; i < n; i++) zc_buf_puts(&b, open);
    zc_buf_puts(&b, "x");
    for (int i = 0; i < n; i++) zc_buf_puts(&b, close);
    return b.data;
}

static void test_limits(void **state)
{
    (void)state;
    static const struct {
        const char *open, *close, *message;
    } cases[] = {
        {"(", ")", "nested too deep"},    {"-", "", "nested too deep"},
        {"exp(", ")", "nested too deep"}, {"true ? x : ", "", "nested too deep"},
        {"", " + exp(x) * x", NULL}, /* long, but the parts are equal */
    };
    zc_expr *e = calloc(1, sizeof *e);
    zc_diag *diag = zc_diag_create();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = nested(cases[i].open, cases[i].close, cases[i].message ? 100000 : 400);
        zc_status status = parse(text, floats, 1, e, diag);
        if (cases[i].message)
            expect_fail(diag, status, ZC_ERR_MODEL, cases[i].message);
        else
            expect_ok(diag, status);
        free(text);
    }
    char *digits = nested("", "0", 10000);
    digits[0] = '1';
    expect_fail(diag, parse(digits, floats, 1, e, diag), ZC_ERR_MODEL,
                "column 1: number too long (got 10001 characters, need at most 63)");
    free(digits);
    char *name = nested("", "x", 10000);
    expect_fail(diag, parse(name, floats, 1, e, diag), ZC_ERR_MODEL, "column 1: no such name");
    free(name);
    char *large = nested("", " + x * 0.5 - 1", 100000);
    expect_fail(diag, parse(large, floats, 1, e, diag), ZC_ERR_MODEL,
                "expression too large (got more than 512 operations)");
    free(large);
    zc_diag_destroy(&diag);
    free(e);
}

static void test_several(void **state)
{
    (void)state;
    static const zc_dtype in[] = {ZC_F32, ZC_I32};
    zc_expr *e = calloc(1, sizeof *e);
    zc_diag *diag = zc_diag_create();
    const char *text = "t = x * x; t + 1, y, t, t > 2";
    expect_ok(diag, zc_expr_parse_results(text, in, 2, NULL, 0, e, "node", diag));
    assert_int_equal(e->nresults, 4);
    assert_int_equal(zc_expr_dtype(e, 0), ZC_F32);
    assert_int_equal(zc_expr_dtype(e, 1), ZC_I32);
    assert_int_equal(e->nodes[e->result[2]].op, ZC_EX_MUL);
    assert_int_equal(zc_expr_dtype(e, 3), ZC_BOOL);
    expect_fail(diag, zc_expr_parse_results("x, x, x, x, x", in, 2, NULL, 0, e, "node", diag),
                ZC_ERR_MODEL, "column 11: too many results");
    expect_fail(diag, zc_expr_parse_results("x, ", in, 2, NULL, 0, e, "node", diag), ZC_ERR_MODEL,
                "column 4: the expression ends too early");
    zc_diag_destroy(&diag);
    free(e);
}

static void assert_printed(const char *text, const zc_dtype *in, int n, const char *need)
{
    zc_expr *e = calloc(1, sizeof *e);
    zc_diag *diag = zc_diag_create();
    zc_buf printed = {0};
    expect_ok(diag, zc_expr_parse_results(text, in, n, NULL, 0, e, "node", diag));
    assert_true(zc_expr_print(e, &printed));
    assert_string_equal(printed.data, need);
    zc_buf_fini(&printed);
    zc_diag_destroy(&diag);
    free(e);
}

/* The same in other words has one text, which stays what it is. */
static void test_printed(void **state)
{
    static const zc_dtype in[] = {ZC_F16, ZC_F16, ZC_I32, ZC_BOOL};
    static const struct {
        const char *text, *need;
    } cases[] = {
        {"t0_t0 = x1 + x0; max(t0_t0, 0)", "max(x0 + x1, 0)"},
        {"max(0.0, x + y)", "max(x0 + x1, 0)"},
        {"x + (y + 1) + x * 0.3333333333", "(x0 * 0.333333) + x0 + x1 + 1"},
        {"max(1, max(y, x))", "max(max(x0, x1), 1)"},
        {"2 * x * 3", "x0 * 2 * 3"},
        {"x - (y - x)", "x0 - (x1 - x0)"},
        {"y / x", "x1 / x0"},
        {"-x * 2 + -0.0", "(-(x0) * 2) + 0"},
        {"x + (-inf) + y", "x0 + x1 + -inf"},
        {"x > y ? x : 0", "select(x0 > x1, x0, 0)"},
        {"w && x == y", "(x0 == x1) && x3"},
        {"y != x && !w", "!(x3) && (x0 != x1)"},
        {"w ? f16(1) : f16(0)", "select(x3, f16(1), f16(0))"},
        {"x + f16(1) * f16(2)", "(f16(1) * f16(2)) + x0"},
        {"exp(f16(1)) * x", "exp(f16(1)) * x0"},
        {"pow(x, 2) + pow(2, x)", "pow(2, x0) + pow(x0, 2)"},
        {"f32(x) * f32(y)", "f32(x0) * f32(x1)"},
        {"(z << 2) + z % 7 | ~z", "((x2 % 7) + (x2 << 2)) | ~(x2)"},
        {"2", "f16(2)"},
        {"3.4e38", "f16(inf)"},
        {"0.123456789", "f16(0.123474)"},
        {"x + y, y + x, z", "x0 + x1, x0 + x1, x2"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_printed(cases[i].text, in, 4, cases[i].need);
        assert_printed(cases[i].need, in, 4, cases[i].need);
    }
}

/* Each name stands for twice the one before: written out it would be far too long. */
static void test_printed_too_long(void **state)
{
    char text[4096] = "a0 = exp(x); ";
    zc_expr *e = calloc(1, sizeof *e);
    zc_diag *diag = zc_diag_create();
    zc_buf printed = {0};
    (void)state;
    for (int i = 1; i < 60; i++) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "a%d = exp(a%d) / a%d; ", i, i - 1, i - 1);
    }
    strcat(text, "a59");
    expect_ok(diag, zc_expr_parse(text, floats, 1, NULL, 0, e, "node", diag));
    assert_false(zc_expr_print(e, &printed));
    zc_buf_fini(&printed);
    zc_diag_destroy(&diag);
    free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results),          cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_constants),        cmocka_unit_test(test_constant_conditions),
        cmocka_unit_test(test_literals_round),   cmocka_unit_test(test_limits),
        cmocka_unit_test(test_several),          cmocka_unit_test(test_printed),
        cmocka_unit_test(test_printed_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
