/* Scalar expressions: what they compute is tested by test_pointwise; here their form and types. */
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
        {"exp(x, x)", "column 10: wrong number of arguments"},
        {"(x", "column 3: expected ')'"},
        {"x x", "column 3: text follows the expression"},
        {"x + y", "operands of different types"},
        {"y + 0.5", "a fraction where an integer is needed"},
        {"exp(y)", "an operand of a type that the operation does not take"},
        {"!x", "an operand of a type that the operation does not take"},
        {"x ? x : x", "a condition that is not bool"},
        {"z ? 1 : 2", "a choice between two constants has no type"},
        {"t = x", "column 6: expected ';'"},
        {"1.5.2", "column 4: text follows the expression"},
        {"2x", "not a number"},
        {"x & x", "operands of a type that the operation does not take"},
    };
    zc_expr *e = calloc(1, sizeof *e);
    zc_diag *diag = zc_diag_create();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_fail(diag, parse(cases[i].text, mixed, 3, e, diag), ZC_ERR_MODEL, cases[i].message);
    zc_diag_destroy(&diag);
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
    char *large = nested("", " + x * 0.5 - 1", 100000);
    expect_fail(diag, parse(large, floats, 1, e, diag), ZC_ERR_MODEL, "expression too large");
    free(large);
    zc_diag_destroy(&diag);
    free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
