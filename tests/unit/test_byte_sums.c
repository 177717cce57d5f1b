/* Sums of bytes that stand for what a graph computes of them: the same byte for every pair. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/gen.h"
#include "op/requant.h"
#include "support/expect.h"

static bool sum_of(const char *text, const zc_dtype *in, int n, zc_affine *out)
{
    zc_expr *e = malloc(sizeof *e);
    assert_non_null(e);
    zc_status status = zc_expr_parse(text, in, n, NULL, 0, e, "node", NULL);
    bool is = status == ZC_OK && zc_gen_is_sum(e, out);
    free(e);
    assert_int_equal(status, ZC_OK);
    return is;
}

static int code_of(const zc_affine *sum, const float *x)
{
    float v = fmaf(sum->factor[1], x[sum->x[1]], sum->addend);
    v = rintf(fmaf(sum->factor[0], x[sum->x[0]], v));
    return v < 0 ? 0 : v > 255 ? 255 : (int)v;
}

static int whole_code_of(const zc_affine *sum, const float *x)
{
    const long long a = llrint((double)sum->factor[0] * 0x1p24),
                    b = llrint(sum->factor[1] * 0x1p24),
                    c = llrint(((double)sum->addend + 0.5) * 0x1p24);
    const long long v = (a * (int)x[sum->x[0]] + b * (int)x[sum->x[1]] + c) >> 24;
    return v < 0 ? 0 : v > 255 ? 255 : (int)v;
}

/* What the texts say, in f32. */
static float residual(float x, float y)
{
    float sum = (x - 115) * 0.018949f + (y - 3) * 0.030312f;
    return rintf((sum > 0 ? sum : 0) / 0.028423f);
}

static float difference(float x, float y)
{
    return rintf(((y + 7) * 0.11f - (x - 20) * 0.07f) / 0.13f) + -9;
}

static float six(float x, float y)
{
    float sum = x * 0.0517f + y * 0.0313f;
    sum = sum > 0 ? sum : 0;
    return rintf((sum < 6 ? sum : 6) / 0.0235291f);
}

/* One sum in two lies on a tie. */
static float ties(float x, float y)
{
    (void)y;
    return rintf((x - 3) * 0.5f / 1.0f) + -2;
}

static const zc_dtype u8u8[] = {ZC_U8, ZC_U8}, i8u8[] = {ZC_I8, ZC_U8}, i8i8[] = {ZC_I8, ZC_I8};

static void test_every_pair(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const zc_dtype *in;
        int n, least; /* of the result */
        bool whole;
        float (*is)(float, float);
    } cases[] = {
        {"u8(round(max((f32(x0) - 115) * 0.018949 + (f32(x1) - 3) * 0.030312, 0) / 0.028423))",
         u8u8, 2, 0, true, residual},
        /* of f16, as if nothing was rounded to it */
        {"u8(round(f32(max(f16((f32(x0) - 115) * f32(0.018949)) + f16((f32(x1) - 3) * 0.030312), "
         "0)) / f32(0.028423)))",
         u8u8, 2, 0, true, residual},
        {"i8(round(((f32(x1) + 7) * 0.11 - (f32(x0) - 20) * 0.07) / 0.13) + -9)", i8u8, 2, -128,
         true, difference},
        {"u8(round(min(max(f32(x0) * 0.0517 + f32(x1) * 0.0313, 0), 6) / 0.0235291))", i8i8, 2, 0,
         true, six},
        {"i8(round((f32(x0) - 3) * 0.5 / 1) + -2)", u8u8, 1, -128, false,
         ties}, /* ties go to even bytes */
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        zc_affine sum;
        const int first = cases[c].in[0] == ZC_I8 ? -128 : 0,
                  second = cases[c].in[1] == ZC_I8 ? -128 : 0;
        if (!sum_of(cases[c].text, cases[c].in, cases[c].n, &sum))
            fail_msg("no sum: %s", cases[c].text);
        assert_int_equal(sum.x[0], 0); /* kernels multiply the result first, as is proven here */
        assert_int_equal(sum.x[1], cases[c].n - 1);
        assert_int_equal(sum.whole, cases[c].whole);
        for (int i = 0; i < 256 * 256; i++) {
            const float x[] = {(float)(first + i / 256), (float)(second + i % 256)};
            float is = cases[c].is(x[0], x[1]) - (float)cases[c].least;
            const int code = is < 0 ? 0 : is > 255 ? 255 : (int)is;
            assert_int_equal(code_of(&sum, x), code);
            if (sum.whole) assert_int_equal(whole_code_of(&sum, x), code);
        }
    }
}

static void test_no_sum(void **state)
{
    (void)state;
    static const zc_dtype three[] = {ZC_U8, ZC_U8, ZC_U8}, floats[] = {ZC_U8, ZC_F32};
    static const struct {
        const char *text;
        const zc_dtype *in;
        int n;
    } cases[] = {
        {"u8(round(max(f32(x0) * 0.02 + f32(x1) * -0.03, 0) / 0.028) + 5)", u8u8,
         2}, /* the bound is 5 */
        {"u8(round(max(f32(x0) * 0.02 + f32(x1) * -0.03, 1) / 0.028))", u8u8, 2},
        /* Hundreds of ties, of which f32 makes some one byte and some another. */
        {"u8(round(max((f32(x0) - 115) * 0.0184 + (f32(x1) - 3) * 0.0301, 0) / 0.0282))", u8u8, 2},
        {"u8(round(f32(x0) * f32(x1) / 200))", u8u8, 2},
        {"u8(round((f32(x0) + f32(x1) + f32(x2)) / 3))", three, 3},
        {"u8(round((f32(x0) + x1) / 3))", floats, 2},
        {"u8(round(abs(f32(x0) - f32(x1)) / 3))", u8u8, 2},
        {"u8(round((f32(x0) * 1e30 * 1e30 + f32(x1)) / 3))", u8u8, 2}, /* infinite */
        {"f32(x0) * 0.5 + f32(x1)", u8u8, 2},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        zc_affine sum;
        if (sum_of(cases[c].text, cases[c].in, cases[c].n, &sum))
            fail_msg("a sum: %s", cases[c].text);
    }
}

/* Scales that sums may be ties of stay; others are odd multiples of 2^-40, near. */
static void test_scales(void **state)
{
    (void)state;
    static const double stay[] = {0x1p-8, 0x1.8p-10, 0x1p-2, 0.3, 7, 0, -0.01, 0x1p-25, 3e-9};
    for (size_t i = 0; i < sizeof stay / sizeof *stay; i++)
        assert_true(zc_requant_scale(stay[i]) == stay[i]);
    assert_true(isnan(zc_requant_scale(NAN)));
    for (double scale = 1.3e-7; scale < 0.25; scale *= 1.37) {
        const double is = zc_requant_scale(scale), units = is * 0x1p40;
        assert_true(fabs(is - scale) <= 0x1p-40);
        assert_true(units == floor(units) && units / 2 != floor(units / 2));
        assert_false(zc_requant_ties(is));
        assert_true(zc_requant_scale(is) == is);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_every_pair),
        cmocka_unit_test(test_no_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
