/* Pointwise operations: the block evaluator against the reference kernel, and the elementary
 * functions against libm. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/kernel.h"
#include "cpu/vmath.h"
#include "support/expect.h"

static unsigned seed = 1;

static double uniform(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (double)(seed >> 8) / (1 << 24);
}

/* Mostly ordinary, sometimes a number that formulas trip over. */
static double sample(void)
{
    static const double edges[] = {0,   -0.0, 1,    -1,    0.5,  INFINITY, -INFINITY,
                                   NAN, 88.8, -104, 1e-40, 1e30, -1e30};
    double u = uniform();
    if (u < 0.05) return edges[(size_t)(u * 20 * (sizeof edges / sizeof *edges))];
    return (uniform() - 0.5) * 8;
}

static zc_tensor make(zc_dtype dtype, int rank, const int64_t *dims)
{
    zc_tensor t = {.dtype = dtype, .rank = rank};
    size_t bytes;
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    assert_true(zc_tensor_bytes(&t, &bytes));
    t.data = calloc(bytes + 1, 1);
    for (int64_t i = 0; i < zc_tensor_numel(&t); i++) {
        if (zc_dtype_is_float(dtype))
            zc_store_f64(dtype, t.data, i, sample());
        else
            zc_store_i64(dtype, t.data, i,
                         dtype == ZC_BOOL ? uniform() < 0.5 : (int64_t)(uniform() * 200) - 100);
    }
    return t;
}

/* Equal, both NaN, or within the tolerance of one rounding to the dtype and a few of f32. */
static bool agree(zc_dtype dtype, double a, double b)
{
    double unit = dtype == ZC_BF16 ? 0x1p-7 : dtype == ZC_F16 ? 0x1p-10 : 0x1p-20;
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    if (a == b) return true;
    return fabs(a - b) <= unit * fmax(fabs(a), fabs(b)) + 3e-7;
}

static void compare(const char *expr, int n, const zc_tensor *in, zc_dtype result)
{
    zc_attrs_Pointwise attrs = {.expr = expr, .set = 1};
    zc_tensor fast = {.dtype = result}, plain = {.dtype = result};
    zc_diag *diag = zc_diag_create();
    expect_ok(diag, zc_cpu_eval(ZC_OP_Pointwise, &attrs, n, in, 1, &fast, false, "fast", diag));
    expect_ok(diag, zc_cpu_eval(ZC_OP_Pointwise, &attrs, n, in, 1, &plain, true, "plain", diag));
    assert_int_equal(zc_tensor_numel(&fast), zc_tensor_numel(&plain));
    for (int64_t i = 0; i < zc_tensor_numel(&fast); i++) {
        double f = zc_load_f64(result, fast.data, i), p = zc_load_f64(result, plain.data, i);
        if (!agree(result, f, p))
            fail_msg("%s: element %lld: fast %.9g, reference %.9g", expr, (long long)i, f, p);
    }
    free(fast.data);
    free(plain.data);
    zc_diag_destroy(&diag);
}

static const char *const float_texts[] = {
    "x0 + x1",
    "x0 * x1 - x0",
    "max(x0, x1) + min(x0, x1)",
    "0.5 * x0 * (1 + erf(x0 * 0.7071067811865476))",
    "x0 * sigmoid(max(x1, -50))",
    "tanh(x0) + x1",
    "x0 > x1 ? x0 : expm1(min(x0, 3))",
    "max(x0, 0) + log1p(exp(-abs(x0))) + 0 * x1",
    "isnan(x0) || x1 != x1 ? 0 : sign(x0)",
    "round(x0) + floor(x1) + ceil(x0)",
    "t = abs(x0) + 1; sqrt(t) * rsqrt(t) + log(t) + x1",
};

static void test_blocks_match_the_reference(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 2, 31, 32, 33, 255, 256, 257, 1025, 10000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        zc_tensor in[2] = {make(ZC_F32, 1, &sizes[s]), make(ZC_F32, 1, &sizes[s])};
        for (size_t t = 0; t < sizeof float_texts / sizeof *float_texts; t++)
            compare(float_texts[t], 2, in, ZC_F32);
        compare("x0 < x1", 2, in, ZC_BOOL);
        compare("!(x0 < x1) && x0 == x0", 2, in, ZC_BOOL);
        free(in[0].data);
        free(in[1].data);
    }
}

static void test_broadcasting(void **state)
{
    (void)state;
    static const struct {
        int ranks[2];
        int64_t dims[2][4];
    } cases[] = {
        {{2, 1}, {{37, 65}, {65}}},
        {{2, 2}, {{37, 65}, {37, 1}}},
        {{2, 0}, {{37, 65}, {0}}},
        {{0, 2}, {{0}, {37, 65}}},
        {{4, 4}, {{2, 3, 4, 5}, {1, 3, 1, 5}}},
        {{4, 4}, {{2, 1, 4, 1}, {1, 3, 1, 5}}},
        {{3, 2}, {{3, 1, 257}, {300, 1}}},
        {{1, 4}, {{1}, {1, 1, 1, 300}}},
        {{2, 1}, {{5, 700}, {700}}},
        {{2, 2}, {{0, 5}, {1, 5}}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        zc_tensor in[2] = {make(ZC_F32, cases[c].ranks[0], cases[c].dims[0]),
                           make(ZC_F32, cases[c].ranks[1], cases[c].dims[1])};
        compare("x0 - 2 * x1", 2, in, ZC_F32);
        compare("x0 <= x1", 2, in, ZC_BOOL);
        free(in[0].data);
        free(in[1].data);
    }
}

/* Several results are those of as many expressions, whichever kernel computes them. */
static void test_several_results(void **state)
{
    (void)state;
    static const int64_t dims[] = {37, 65};
    static const char *const alone[] = {"(x0 + x1) * 2", "x0 > x1", "f16(max(x0, x1))", "x0"};
    static const zc_dtype types[] = {ZC_F32, ZC_BOOL, ZC_F16, ZC_F32};
    zc_attrs_Pointwise all = {.expr = "t = x0 + x1; t * 2, x0 > x1, f16(max(x0, x1)), x0"};
    zc_tensor in[2] = {make(ZC_F32, 2, dims), make(ZC_F32, 1, dims + 1)};
    zc_diag *diag = zc_diag_create();
    for (int reference = 0; reference < 2; reference++) {
        zc_tensor out[4], one = {.dtype = ZC_F32};
        for (int i = 0; i < 4; i++) out[i] = (zc_tensor){.dtype = i == 3 ? ZC_NONE : ZC_F32};
        expect_ok(diag, zc_cpu_eval(ZC_OP_Pointwise, &all, 2, in, 4, out, reference, "all", diag));
        for (int i = 0; i < 3; i++) {
            zc_attrs_Pointwise single = {.expr = alone[i]};
            size_t bytes;
            one = (zc_tensor){.dtype = ZC_F32};
            expect_ok(diag, zc_cpu_eval(ZC_OP_Pointwise, &single, 2, in, 1, &one, reference, "one",
                                        diag));
            assert_int_equal(out[i].dtype, types[i]);
            assert_true(zc_tensor_bytes(&one, &bytes));
            assert_memory_equal(out[i].data, one.data, bytes);
            free(one.data);
            free(out[i].data);
        }
        assert_null(out[3].data);
    }
    zc_tensor two[2] = {{.dtype = ZC_F32}, {.dtype = ZC_F32}};
    zc_status status = zc_cpu_eval(ZC_OP_Pointwise, &all, 2, in, 2, two, false, "node", diag);
    expect_fail(diag, status, ZC_ERR_MODEL,
                "node: the expression has a wrong number of results (got 4, need 2)");
    free(in[0].data);
    free(in[1].data);
    zc_diag_destroy(&diag);
}

static void test_other_types(void **state)
{
    (void)state;
    static const int64_t n = 777;
    static const zc_dtype halves[] = {ZC_F16, ZC_BF16};
    for (size_t d = 0; d < 2; d++) {
        zc_tensor in[2] = {make(halves[d], 1, &n), make(halves[d], 1, &n)};
        compare("x0 * x1 + x0", 2, in, halves[d]);
        compare("f32(x0) * 3", 2, in, ZC_F32);
        free(in[0].data);
        free(in[1].data);
    }
    static const zc_dtype ints[] = {ZC_I8, ZC_U8, ZC_I16, ZC_I32, ZC_U32, ZC_I64, ZC_U64};
    for (size_t d = 0; d < sizeof ints / sizeof *ints; d++) {
        zc_tensor in[2] = {make(ints[d], 1, &n), make(ints[d], 1, &n)};
        compare("x0 * x1 + x0", 2, in, ints[d]);
        compare("x0 / x1 + x0 % x1", 2, in, ints[d]);
        compare("x0 > x1", 2, in, ZC_BOOL);
        free(in[0].data);
        free(in[1].data);
    }
}

static int64_t int_result(const char *expr, zc_dtype dtype, int64_t x, int64_t y)
{
    int64_t a = x, b = y, r;
    zc_tensor in[2] = {{.dtype = dtype, .data = &a}, {.dtype = dtype, .data = &b}},
              out = {.dtype = dtype};
    zc_attrs_Pointwise attrs = {.expr = expr, .set = 1};
    zc_diag *diag = zc_diag_create();
    expect_ok(diag, zc_cpu_eval(ZC_OP_Pointwise, &attrs, 2, in, 1, &out, false, "int", diag));
    r = zc_load_i64(dtype, out.data, 0);
    free(out.data);
    zc_diag_destroy(&diag);
    return r;
}

static void test_integer_rules(void **state)
{
    (void)state;
    assert_int_equal(int_result("x / y", ZC_I32, -7, 2), -3);
    assert_int_equal(int_result("x % y", ZC_I32, -7, 2), 1);
    assert_int_equal(int_result("x % y", ZC_I32, 7, -2), -1);
    assert_int_equal(int_result("fmod(x, y)", ZC_I32, -7, 2), -1);
    assert_int_equal(int_result("x / y", ZC_I32, 5, 0), 0);
    assert_int_equal(int_result("x % y", ZC_I64, 5, 0), 0);
    assert_int_equal(int_result("x / y", ZC_I64, INT64_MIN, -1), INT64_MIN);
    assert_int_equal(int_result("x + y", ZC_I8, 127, 1), -128);
    assert_int_equal(int_result("x - y", ZC_U8, 1, 2), 255);
    assert_int_equal(int_result("x << y", ZC_U8, 255, 4), 240);
    assert_int_equal(int_result("x >> y", ZC_U8, 240, 9), 0);
    assert_int_equal(int_result("pow(x, y)", ZC_I32, 3, 4), 81);
    assert_int_equal(int_result("~x", ZC_I16, 0, 0), -1);
}

/* ---- elementary functions ---- */

/* Distance in units of the last place of the right value. */
static double ulps(float got, double want)
{
    if (isnan(want)) return isnan(got) ? 0 : INFINITY;
    if (isinf((float)want)) return got == (float)want ? 0 : INFINITY;
    double unit = ldexp(1, (fabs(want) < 1.2e-38 ? -126 : ilogb(want)) - 23);
    return fabs((double)got - want) / unit;
}

static double worst_ulps(const char *name, float (*got)(float), double (*want)(double), double low,
                         double high)
{
    double worst = 0, at = 0;
    static const float edges[] = {0,      -0.0f,   INFINITY, -INFINITY, NAN,  1,   -1,
                                  1e-30f, -1e-30f, 1e-40f,   89,        -105, 0.5f};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        double u = ulps(got(edges[i]), want((double)edges[i]));
        if (u > worst) worst = u, at = (double)edges[i];
    }
    for (int i = 0; i < 400000; i++) {
        float x = (float)(low + (high - low) * uniform());
        double u = ulps(got(x), want((double)x));
        if (u > worst) worst = u, at = (double)x;
    }
    print_message("%-8s worst %.2f ulp at %.9g\n", name, worst, at);
    return worst;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static void test_elementary_functions(void **state)
{
    (void)state;
    assert_true(worst_ulps("exp", zc_vm_exp, exp, -104, 89) <= 1);
    assert_true(worst_ulps("expm1", zc_vm_expm1, expm1, -20, 20) <= 4);
    assert_true(worst_ulps("log", zc_vm_log, log, 0, 1000) <= 2);
    assert_true(worst_ulps("log1p", zc_vm_log1p, log1p, -0.99, 100) <= 4);
    assert_true(worst_ulps("tanh", zc_vm_tanh, tanh, -10, 10) <= 4);
    assert_true(worst_ulps("erf", zc_vm_erf, erf, -5, 5) <= 8);
    assert_true(worst_ulps("sigmoid", zc_vm_sigmoid, sigmoid, -80, 80) <= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_match_the_reference),
        cmocka_unit_test(test_broadcasting),
        cmocka_unit_test(test_several_results),
        cmocka_unit_test(test_other_types),
        cmocka_unit_test(test_integer_rules),
        cmocka_unit_test(test_elementary_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
