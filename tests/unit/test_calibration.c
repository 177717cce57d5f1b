/* Histograms of tensors, what follows from them, and the text that keeps them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "driver/thresholds.h"
#include "precision/calibration.h"
#include "support/expect.h"

enum { N = 20000 };
static const char hash[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/* Sums of twelve uniform numbers: nearly normal, of variance 1. */
static float normal_like(uint64_t *state)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        sum += (double)(*state >> 33) / (double)(UINT64_C(1) << 31);
    }
    return (float)(sum - 6);
}

static void fill(float *x, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) x[i] = normal_like(&seed);
}

static zc_tensor vector(float *x, int64_t n)
{
    return (zc_tensor){.dtype = ZC_F32, .rank = 1, .dims = {n}, .data = x};
}

static void begin(zc_calibration *c)
{
    zc_calibration_init(c);
    memcpy(c->model, hash, sizeof hash);
}

static char *print(const zc_calibration *c)
{
    zc_buf text = {0};
    assert_int_equal(zc_calibration_print(c, &text, NULL), ZC_OK);
    zc_buf_append(&text, "", 1);
    assert_false(text.failed);
    return text.data;
}

static void expect_same_text(const zc_calibration *a, const zc_calibration *b)
{
    char *x = print(a), *y = print(b);
    assert_string_equal(x, y);
    free(x);
    free(y);
}

/* Two halves, each by itself, and added in either order, are the whole. */
static void test_merge_is_exact(void **state)
{
    static float x[N];
    zc_calibration whole, parts[2], sums[2];
    zc_tensor all = vector(x, N), halves[] = {vector(x, N / 3), vector(x + N / 3, N - N / 3)};
    (void)state;
    fill(x, N, 1);
    x[7] = 0;
    x[8] = -0.0f;
    begin(&whole);
    assert_int_equal(zc_calibration_add(&whole, "x", &all, NULL), ZC_OK);
    for (int i = 0; i < 2; i++) {
        begin(&parts[i]);
        assert_int_equal(zc_calibration_add(&parts[i], "x", &halves[i], NULL), ZC_OK);
    }
    for (int i = 0; i < 2; i++) {
        zc_calibration_init(&sums[i]);
        assert_int_equal(zc_calibration_merge(&sums[i], &parts[i], NULL), ZC_OK);
        assert_int_equal(zc_calibration_merge(&sums[i], &parts[1 - i], NULL), ZC_OK);
        expect_same_text(&whole, &sums[i]);
        zc_calibration_fini(&sums[i]);
    }
    assert_int_equal(whole.activations.data[0].count, N);
    zc_calibration_fini(&parts[0]);
    zc_calibration_fini(&parts[1]);
    zc_calibration_fini(&whole);
}

static float threshold_of(float *x, int64_t n, zc_calibration_method method)
{
    zc_calibration c;
    zc_tensor t = vector(x, n);
    zc_calibration_init(&c);
    assert_int_equal(zc_calibration_add(&c, "x", &t, NULL), ZC_OK);
    const zc_activation *a = &c.activations.data[0];
    float out = zc_histogram_threshold(&a->bins, fmaxf(a->greatest, -a->least), method);
    zc_calibration_fini(&c);
    return out;
}

/* The mean square error of 8 bits with this threshold, element by element. */
static double square_error(const float *x, int n, double threshold)
{
    double sum = 0, step = threshold / 127;
    for (int i = 0; i < n; i++) {
        double q = fmin(127, fmax(-127, nearbyint((double)x[i] / step)));
        sum += pow((double)x[i] - q * step, 2);
    }
    return sum / n;
}

static void test_thresholds(void **state)
{
    static float x[N];
    (void)state;
    fill(x, N, 2);
    x[100] = -50; /* one outlier: 0.005% of all */
    assert_true(threshold_of(x, N, ZC_CALIBRATION_minmax) == 50);
    float percentile = threshold_of(x, N, ZC_CALIBRATION_percentile);
    assert_true(percentile > 3.5f && percentile < 4.8f);
    float entropy = threshold_of(x, N, ZC_CALIBRATION_entropy);
    assert_true(entropy > 2 && entropy < 10);
    float mse = threshold_of(x, N, ZC_CALIBRATION_mse);
    double error = square_error(x, N, mse);
    for (double t = 1; t <= 50; t += 0.5) assert_true(error <= 1.05 * square_error(x, N, t));
}

/* However many zeros there are beside. */
static void test_entropy_of_a_relu(void **state)
{
    static float x[2 * N];
    (void)state;
    fill(x, N, 3);
    for (int i = 0; i < N; i++) x[i] = fabsf(x[i]);
    assert_true(threshold_of(x, N, ZC_CALIBRATION_entropy) > 2);
    assert_true(threshold_of(x, N, ZC_CALIBRATION_entropy) ==
                threshold_of(x, 2 * N, ZC_CALIBRATION_entropy));
}

static void test_no_spread(void **state)
{
    float zeros[4] = {0}, same[4] = {3, 3, 3, 3};
    (void)state;
    for (int m = 0; m < ZC_CALIBRATION_METHOD_COUNT; m++) {
        assert_true(threshold_of(zeros, 4, (zc_calibration_method)m) == 0);
        float t = threshold_of(same, 4, (zc_calibration_method)m);
        assert_true(t > 2.8f && t <= 3);
    }
}

static void test_channels(void **state)
{
    float w[2][3][2] = {{{1, -2}, {3, 4}, {0, 0}}, {{-5, 6}, {7, 0}, {0, 8}}};
    static const float first[] = {4, 8}, second[] = {6, 7, 8};
    zc_tensor t = {.dtype = ZC_F32, .rank = 3, .dims = {2, 3, 2}, .data = w};
    zc_calibration c;
    (void)state;
    begin(&c);
    assert_int_equal(zc_calibration_add_weight(&c, "b", &t, 1, NULL), ZC_OK);
    assert_int_equal(zc_calibration_add_weight(&c, "a", &t, 0, NULL), ZC_OK);
    assert_int_equal(zc_calibration_add_weight(&c, "a", &t, 2, NULL), ZC_OK);
    assert_int_equal(c.weights.len, 2);
    assert_memory_equal(c.weights.data[0].thresholds, first, sizeof first);
    assert_memory_equal(c.weights.data[1].thresholds, second, sizeof second);
    zc_calibration_fini(&c);
}

static void test_not_finite(void **state)
{
    float x[3] = {1, NAN, 2};
    zc_tensor t = vector(x, 3);
    zc_calibration c;
    zc_diag *diag = zc_diag_create();
    (void)state;
    begin(&c);
    expect_fail(diag, zc_calibration_add(&c, "sum", &t, diag), ZC_ERR_INPUT,
                "sum: element 1 is NaN");
    assert_int_equal(c.activations.len, 0);
    x[1] = -INFINITY; /* as in masks */
    expect_ok(diag, zc_calibration_add(&c, "sum", &t, diag));
    const zc_activation *a = &c.activations.data[0];
    assert_true(a->count == 2 && a->infinite == 1 && a->least == 1 && a->greatest == 2);
    zc_calibration_fini(&c);
    zc_diag_destroy(&diag);
}

/* What a line may be, behind those of the header and the model. */
static void test_bad_lines(void **state)
{
    static const struct {
        const char *line, *need;
    } cases[] = {
        {"activation\tx\t1\t0\t1\t1\t1\t2032:1\n", NULL},
        {"activation\tx\t1\t0\t2\t1\t1\t2032:1\n", "x: line 3: the range is none"},
        {"activation\tx\t1\t0\tnan\t1\t1\t2032:1\n", "x: line 3: the range is none"},
        {"activation\tx\t1\t0\t1\t1\t-1\t2032:1\n", "x: line 3: the threshold is none"},
        {"activation\tx\t-1\t0\t1\t1\t1\t2032:1\n", "x: line 3: the count is no number"},
        {"activation\tx\t2\t0\t1\t1\t1\t2032:1\n", "x: line 3: the histogram has not all elements"},
        {"activation\tx\t1\t0\t1\t1\t1\t2032:2\n", "x: line 3: the histogram is damaged"},
        {"activation\tx\t1\t0\t1\t1\t1\t8192:1\n", "x: line 3: the histogram is damaged"},
        {"activation\tx\t1\t0\t1\t1\t1\t4080:1\n", "elements that are not finite"},
        {"activation\tx\t2\t0\t1\t1\t1\t2032:1 2032:1\n",
         "x: line 3: the histogram is not in order"},
        {"activation\tx\t0\t0\t0\t0\t0\t\nactivation\tx\t0\t0\t0\t0\t0\t\n",
         "the names are not in order"},
        {"weight\tw\t0\t1 2 nan\n", "w: line 3: a threshold is none"},
        {"weight\tw\t99\t1\n", "w: line 3: the axis is none"},
        {"weight\tw\t0\t1\nactivation\tx\t0\t0\t0\t0\t0\t\n",
         "line 4: is no line of a calibration"},
        {"activation\tx\t0\t0\t0\t0\t0", "the last line has no end"},
        {"a\tb\tc\td\te\tf\tg\th\ti\n", "too many fields"},
    };
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++) {
        zc_calibration c;
        zc_buf text = {0};
        zc_diag *diag = zc_diag_create();
        zc_buf_printf(&text, "# zc calibration 1\nmodel\t%s\t1\tmse\n%s", hash, cases[i].line);
        zc_calibration_init(&c);
        zc_status status = zc_calibration_parse(&c, text.data, text.len, "file", diag);
        if (cases[i].need)
            expect_fail(diag, status, ZC_ERR_FORMAT, cases[i].need);
        else
            expect_ok(diag, status);
        zc_calibration_fini(&c);
        zc_buf_fini(&text);
        zc_diag_destroy(&diag);
    }
}

/* ---- what compiling takes ---- */

static void expect_span(const zc_calibration *c, const char *name, double low, double high)
{
    zc_span s = {-7, 7};
    assert_int_equal(zc_thresholds_span(c, name, &s, NULL), ZC_OK);
    assert_true(s.low == low && s.high == high);
}

static void test_spans(void **state)
{
    static float x[N];
    float infinite[] = {-INFINITY, 1};
    const zc_tensor a = vector(x, N), b = vector(infinite, 2);
    zc_calibration c;
    (void)state;
    fill(x, N, 4);
    x[100] = -50;
    begin(&c);
    assert_int_equal(zc_calibration_add(&c, "a\n", &a, NULL), ZC_OK);
    assert_int_equal(zc_calibration_add(&c, "b", &b, NULL), ZC_OK);
    const double greatest = (double)c.activations.data[0].greatest;
    expect_span(&c, "a\n", -50, greatest);
    expect_span(&c, "b", -INFINITY, INFINITY);
    expect_span(&c, "made by a pass", -7, 7);
    c.method = ZC_CALIBRATION_mse;
    const double cut = (double)threshold_of(x, N, c.method);
    assert_true(cut < 48);
    expect_span(&c, "a\n", -cut, fmin(greatest, cut));
    zc_calibration_fini(&c);
}

static void test_limits(void **state)
{
    static const char text[] = "\nweight\tshort\t0\t1\nweight\tw\t0\t0.5 4\nweight\tzero\t0\t1 0\n";
    const float x[] = {1, -2, 3, 4};
    const zc_weights rows = {.x = x, .columns = 2, .depth = 2, .along_k = true},
                     columns = {.x = x, .columns = 2, .depth = 2};
    float out[2];
    zc_buf all = {0};
    zc_calibration c;
    zc_diag *diag = zc_diag_create();
    (void)state;
    zc_buf_printf(&all, "# zc calibration 1\nmodel\t%s\t1\tminmax%s", hash, text);
    zc_calibration_init(&c);
    expect_ok(diag, zc_calibration_parse(&c, all.data, all.len, "file", diag));
    expect_ok(diag, zc_thresholds_limits(&c, "w", &rows, out, diag));
    assert_true(out[0] == 0.5f && out[1] == 4);
    expect_ok(diag, zc_thresholds_limits(&c, "folded", &rows, out, diag));
    assert_true(out[0] == 2 && out[1] == 4);
    expect_ok(diag, zc_thresholds_limits(&c, "folded", &columns, out, diag));
    assert_true(out[0] == 3 && out[1] == 4);
    expect_fail(diag, zc_thresholds_limits(&c, "short", &rows, out, diag), ZC_ERR_INPUT,
                "short: the calibration has 1 channels of it (need 2)");
    expect_fail(diag, zc_thresholds_limits(&c, "zero", &rows, out, diag), ZC_ERR_INPUT,
                "zero: the calibration's threshold of channel 1 is 0, its weights are not");
    zc_calibration_fini(&c);
    zc_buf_fini(&all);
    zc_diag_destroy(&diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merge_is_exact),
        cmocka_unit_test(test_thresholds),
        cmocka_unit_test(test_no_spread),
        cmocka_unit_test(test_channels),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_entropy_of_a_relu),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
