/* What zc bench says of times that are made here. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/bench.h"
#include "cli/stats.h"

enum { N = 600 };

static uint64_t state;

static double uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-53;
}

/* About normal: mean 0, deviation 1. */
static double normal(void)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += uniform();
    return sum;
}

static void fill(double *v, size_t n, double mean, double noise)
{
    for (size_t i = 0; i < n; i++) v[i] = mean * (1 + noise * normal());
}

static bench_summary summary_of(double *v, size_t n)
{
    bench_times t = {.v = v, .n = n, .runs = n, .stride = 1};
    bench_summary s;
    assert_true(bench_summarise(&t, &s));
    return s;
}

static void test_percentiles(void **unused)
{
    double v[1001];
    for (size_t i = 0; i < 1001; i++) v[i] = (double)((i * 10) % 1001);
    bench_summary s = summary_of(v, 1001);
    assert_float_equal(s.p50, 500, 1e-9);
    assert_float_equal(s.p90, 900, 1e-9);
    assert_float_equal(s.p99, 990, 1e-9);
    assert_float_equal(s.p999, 999, 1e-9);
    assert_float_equal(s.min, 0, 0);
    assert_float_equal(s.max, 1000, 0);
    assert_true(s.low < s.p50 && s.p50 < s.high && s.low > 460 && s.high < 540);
    assert_int_equal(s.outliers, 0);
    v[3] = 5000;
    assert_int_equal(summary_of(v, 1001).outliers, 1);
}

static void test_few(void **unused)
{
    double v[] = {3, 1, 2};
    for (size_t n = 1; n <= 3; n++) {
        bench_summary s = summary_of(v, n);
        assert_true(s.min <= s.low && s.low <= s.p50 && s.p50 <= s.high && s.high <= s.max);
        assert_float_equal(s.drift, 0, 0);
        assert_float_equal(s.modes[0], 0, 0);
    }
}

static void test_drift(void **unused)
{
    double v[N];
    state = 1;
    fill(v, N, 1, 0.02);
    assert_float_equal(summary_of(v, N).drift, 0, 0);
    for (size_t i = 0; i < N; i++) v[i] *= 1 + 0.06 * (double)i / N;
    assert_float_equal(summary_of(v, N).drift, 0.04, 0.01);
    for (size_t i = 0; i < N; i++) v[i] = 2 - v[i];
    assert_true(summary_of(v, N).drift < -0.02);
}

static void test_modes(void **unused)
{
    double v[N];
    state = 2;
    fill(v, N, 1, 0.02);
    assert_float_equal(summary_of(v, N).modes[0], 0, 0);
    for (size_t i = 0; i < N; i++) v[i] = 1 + uniform();
    assert_float_equal(summary_of(v, N).modes[0], 0, 0);
    for (size_t i = 0; i < N; i++) v[i] = -log(1 - uniform());
    assert_float_equal(summary_of(v, N).modes[0], 0, 0);
    for (size_t i = 0; i < N; i++) v[i] = (i % 3 ? 1 : 1.3) * (1 + 0.02 * normal());
    bench_summary s = summary_of(v, N);
    assert_float_equal(s.modes[0], 1, 0.01);
    assert_float_equal(s.modes[1], 1.3, 0.01);
}

/* Of 1000 pairs of equal samples about one in a hundred is blamed; 5 % more is always found. */
static void test_chance(void **unused)
{
    double a[N], b[N];
    int blamed = 0, found = 0;
    state = 3;
    for (int round = 0; round < 1000; round++) {
        fill(a, N, 1, 0.03);
        fill(b, N, 1, 0.03);
        blamed += cli_chance(a, N, b, N, (cli_limit){.factor = 1}) < CLI_CHANCE;
        for (size_t i = 0; i < N; i++) b[i] *= 1.05;
        found += cli_chance(a, N, b, N, (cli_limit){.factor = 1.03}) < CLI_CHANCE;
        assert_true(cli_chance(a, N, b, N, (cli_limit){.factor = 1.2}) > 0.9);
    }
    assert_true(blamed <= 20);
    assert_int_equal(found, 1000);
}

/* Neighbouring runs that are alike are no proof: a machine that is slower now and then. */
static void test_stretches(void **unused)
{
    double a[N], b[N];
    int blamed = 0;
    state = 4;
    for (int round = 0; round < 500; round++) {
        for (size_t i = 0; i < N; i += 20) {
            fill(a + i, 20, 1 + 0.03 * normal(), 0.001);
            fill(b + i, 20, 1 + 0.03 * normal(), 0.001);
        }
        blamed += cli_chance(a, N, b, N, (cli_limit){.factor = 1}) < CLI_CHANCE;
    }
    assert_true(blamed <= 15);
}

enum { STEPS = 60, STEP_RUNS = 200 };

/* Steps of 20 to 1200 us: neighbouring runs are alike within 1 %, stretches of them within half of
 * it. */
static void fill_steps(double (*v)[STEP_RUNS], double slower)
{
    for (size_t s = 0; s < STEPS; s++)
        for (size_t i = 0; i < STEP_RUNS; i += 10)
            fill(v[s] + i, 10, slower * (double)(20 + 20 * s) * (1 + 0.005 * normal()), 0.01);
}

static size_t judge(double (*was)[STEP_RUNS], double (*is)[STEP_RUNS], bool alone,
                    bench_pair *pairs)
{
    size_t blamed = 0;
    for (size_t s = 0; s < STEPS; s++)
        pairs[s] = (bench_pair){.was = was[s], .is = is[s], .was_n = STEP_RUNS, .is_n = STEP_RUNS};
    assert_true(bench_judge_steps(pairs, STEPS, 1.03, alone));
    for (size_t s = 0; s < STEPS; s++) blamed += pairs[s].slower;
    return blamed;
}

/* One slower step of many is found each time, and none is blamed in 99 of 100 calls: also where all
 * became slower together, which is the whole run's to tell. */
static void test_steps(void **unused)
{
    static double was[STEPS][STEP_RUNS], is[STEPS][STEP_RUNS];
    bench_pair pairs[STEPS];
    int blamed = 0, found = 0, shared = 0;
    state = 5;
    for (int round = 0; round < 200; round++) {
        fill_steps(was, 1);
        fill_steps(is, 1);
        blamed += judge(was, is, true, pairs) > 0;
        for (size_t i = 0; i < STEP_RUNS; i++) is[40][i] *= 1.05;
        found += judge(was, is, true, pairs) == 1 && pairs[40].slower;
        fill_steps(is, 1.2);
        shared += judge(was, is, true, pairs) > 0;
        assert_true(judge(was, is, false, pairs) > STEPS / 2);
    }
    assert_true(blamed <= 2);
    assert_true(shared <= 2);
    assert_int_equal(found, 200);
}

/* What two processes differ by is nobody's fault. */
static void test_short_steps(void **unused)
{
    double was[STEP_RUNS], is[STEP_RUNS];
    state = 6;
    fill(was, STEP_RUNS, 20, 0.001);
    fill(is, STEP_RUNS, 24.5, 0.001);
    bench_pair one = {.was = was, .is = is, .was_n = STEP_RUNS, .is_n = STEP_RUNS};
    assert_true(bench_judge_steps(&one, 1, 1.03, false));
    assert_false(one.slower);
    fill(is, STEP_RUNS, 25.5, 0.001);
    assert_true(bench_judge_steps(&one, 1, 1.03, false));
    assert_true(one.slower);
    assert_true(bench_judge_steps(&one, 1, 1.03, true));
    assert_true(one.slower);
    assert_true(bench_judge_steps(NULL, 0, 1.03, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_percentiles), cmocka_unit_test(test_few),
        cmocka_unit_test(test_drift),       cmocka_unit_test(test_modes),
        cmocka_unit_test(test_chance),      cmocka_unit_test(test_stretches),
        cmocka_unit_test(test_steps),       cmocka_unit_test(test_short_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
