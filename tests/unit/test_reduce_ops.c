#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/fast.h"
#include "support/expect.h"
#include "support/op_text.h"

static void every_reduction(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"ReduceSum", "1 3.75", "3.5 -1.75 3"},
        {"ReduceMean", "0.333333333 1.25", "1.75 -0.875 1.5"},
        {"ReduceMax", "2 3", "3 -0.25 2"},
        {"ReduceMin", "-1.5 -0.25", "0.5 -1.5 1"},
        {"ReduceProd", "-1.5 -0.75", "1.5 0.375 2"},
        {"ReduceL1", "4 4.25", "3.5 1.75 3"},
        {"ReduceL2", "2.54950976 3.17214439", "3.04138127 1.52069063 2.23606798"},
        {"ReduceLogSum", "0 1.32175584", "1.25276297 nan 1.09861229"},
        {"ReduceLogSumExp", "2.22580205 3.16050998", "3.07888973 0.00192908135 2.31326169"},
        {"ReduceSumSquare", "6.5 10.0625", "9.25 2.3125 5"},
    };
    static const char *const types[] = {"f32", "f64", "f16", "bf16"};
    for (size_t i = 0; i < ZC_COUNTOF(rows); i++) {
        for (size_t t = 0; t < ZC_COUNTOF(types); t++) {
            char in[128], want[128];
            double tol = t < 2 ? 1e-6 : 1e-2;
            snprintf(in, sizeof in, "%s[2,3] 0.5 -1.5 2 3 -0.25 1; i64[1] 1", types[t]);
            snprintf(want, sizeof want, "%s[2,1] %s", types[t], rows[i][1]);
            op_eval(rows[i][0], "", in, want, tol);
            snprintf(in, sizeof in, "%s[2,3] 0.5 -1.5 2 3 -0.25 1; i64[1] -2", types[t]);
            snprintf(want, sizeof want, "%s[3] %s", types[t], rows[i][2]);
            op_eval(rows[i][0], "keepdims=0", in, want, tol);
        }
    }
}

static void axes(void **state)
{
    (void)state;
    op_eval("ReduceSum", "", "f32[2,2] 1 2 3 4", "f32[1,1] 10", 0);
    op_eval("ReduceSum", "keepdims=0", "f32[2,2] 1 2 3 4; i64[0]", "f32[] 10", 0);
    op_eval("ReduceSum", "noop_with_empty_axes=1", "f32[2] 1 -2", "f32[2] 1 -2", 0);
    op_eval("ReduceSumSquare", "noop_with_empty_axes=1", "f32[2] 1 -2", "f32[2] 1 4", 0);
    op_eval("ReduceL2", "", "f32[] -3", "f32[] 3", 0);
    op_eval("ReduceSum", "", "f32[2,2,2] 1 2 3 4 5 6 7 8; i64[2] 0 -1", "f32[1,2,1] 14 22", 0);
}

/* The mean of nothing is no number, over axes and over a plane. */
static void means_of_nothing(void **state)
{
    (void)state;
    op_eval("ReduceMean", "", "f32[1,2,0,3]; i64[2] 2 3", "f32[1,2,1,1] nan nan", 0);
    op_eval("GlobalAveragePool", "", "f32[1,2,0,3]", "f32[1,2,1,1] nan nan", 0);
}

static void integers(void **state)
{
    (void)state;
    op_eval("ReduceSum", "", "i64[2] 9007199254740993 2; i64[1] 0", "i64[1] 9007199254740995", 0);
    op_eval("ReduceMax", "", "u64[2] 18446744073709551615 1", "u64[1] 18446744073709551615", 0);
    op_eval("ReduceMin", "", "u64[2] 18446744073709551615 1", "u64[1] 1", 0);
    op_eval("ReduceMin", "", "i8[2] -128 3", "i8[1] -128", 0);
    op_eval("ReduceMean", "", "i32[2] -3 0", "i32[1] -1", 0);
    op_eval("ReduceL1", "", "i32[2] -3 2", "i32[1] 5", 0);
    op_eval("ReduceL2", "", "i32[2] 3 -4", "i32[1] 5", 0);
    op_eval("ReduceProd", "", "u32[2] 65536 65537", "u32[1] 65536", 0);
    op_eval("ReduceMax", "", "bool[2,2] 0 1 0 0; i64[1] 1", "bool[2,1] 1 0", 0);
    op_eval("ReduceMin", "", "bool[2,2] 1 1 0 1; i64[1] 1", "bool[2,1] 1 0", 0);
}

static void empty_sets(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{"ReduceSum", "0"},          {"ReduceMean", "nan"},
                                          {"ReduceMax", "-inf"},       {"ReduceMin", "inf"},
                                          {"ReduceProd", "1"},         {"ReduceL1", "0"},
                                          {"ReduceL2", "0"},           {"ReduceLogSum", "-inf"},
                                          {"ReduceLogSumExp", "-inf"}, {"ReduceSumSquare", "0"}};
    for (size_t i = 0; i < ZC_COUNTOF(rows); i++) {
        char want[64];
        snprintf(want, sizeof want, "f32[2,1] %s %s", rows[i][1], rows[i][1]);
        op_eval(rows[i][0], "", "f32[2,0]; i64[1] 1", want, 0);
        op_eval(rows[i][0], "", "f32[2,0]; i64[1] 0", "f32[1,0]", 0);
    }
    op_eval("ReduceMax", "", "i32[0]", "i32[1] -2147483648", 0);
    op_eval("ReduceMin", "", "u8[0]", "u8[1] 255", 0);
    op_eval("ReduceMin", "", "bool[0]", "bool[1] 1", 0);
    op_eval("ReduceMean", "", "i32[0]", "i32[1] 0", 0);
}

static void extremes_and_nan(void **state)
{
    (void)state;
    op_eval("ReduceMax", "", "f32[3] 1 nan 2", "f32[1] nan", 0);
    op_eval("ReduceMin", "", "f32[3] nan 1 2", "f32[1] nan", 0);
    op_eval("ReduceLogSumExp", "", "f32[2] 1000 1000", "f32[1] 1000.69315", 1e-6);
    op_eval("ReduceLogSumExp", "", "f32[2] -inf -inf", "f32[1] -inf", 0);
    op_eval("ReduceLogSumExp", "", "f32[2] inf 0", "f32[1] inf", 0);
    op_eval("ReduceSum", "", "f32[3] 3e38 3e38 -3e38", "f32[1] 3e38", 1e-6);
}

/* ---- the fast kernel against the reference on shapes that take each of its ways ---- */

static const zc_op all[] = {ZC_OP_ReduceSum,      ZC_OP_ReduceMean,   ZC_OP_ReduceMax,
                            ZC_OP_ReduceMin,      ZC_OP_ReduceProd,   ZC_OP_ReduceL1,
                            ZC_OP_ReduceL2,       ZC_OP_ReduceLogSum, ZC_OP_ReduceLogSumExp,
                            ZC_OP_ReduceSumSquare};

/* The last 4 digits of a product of this and that, around 1. */
static void fill(float *x, int64_t n)
{
    uint32_t v = 12345;
    for (int64_t i = 0; i < n; i++) {
        v = v * 1664525u + 1013904223u;
        x[i] = 1.0f + (float)(v >> 20) * 1e-8f;
    }
}

/* The operation's default attributes; the caller frees them. */
static void *default_attrs(zc_op op)
{
    void *attrs = zc_calloc(1, zc_op_get(op)->attrs_size);
    assert_non_null(attrs);
    zc_attrs_default(zc_op_get(op), attrs);
    return attrs;
}

static void reduce(zc_op op, const zc_tensor *x, zc_tensor *axes_in, bool reference, zc_tensor *out)
{
    zc_diag *diag = zc_diag_create();
    const zc_tensor in[2] = {*x, *axes_in};
    void *attrs = default_attrs(op);
    *out = (zc_tensor){.dtype = ZC_F32};
    expect_ok(diag, zc_cpu_eval(op, attrs, 2, in, 1, out, reference, "node", diag));
    free(attrs);
    zc_diag_destroy(&diag);
}

static void fast_agrees_with_reference(void **state)
{
    (void)state;
    static const struct {
        int rank;
        int64_t dims[4];
        int naxes;
        int64_t axes[3];
    } cases[] = {
        {2, {3, 40000}, 1, {1}},
        {2, {40000, 3}, 1, {0}},
        {1, {200003}, 1, {0}},
        {2, {700, 300}, 1, {0}},
        {2, {9, 5}, 1, {1}},
        {3, {4, 600, 7}, 1, {1}},
        {4, {3, 5, 70, 40}, 2, {0, 2}},
        {4, {3, 50, 7, 40}, 2, {1, 3}},
        {4, {40, 2, 3, 900}, 2, {0, 3}},
        {3, {2, 3, 4}, 0, {0}},
        {3, {300, 1, 513}, 1, {0}},
        {4, {1, 7, 1, 17}, 3, {0, 2, 3}},
    };
    for (size_t c = 0; c < ZC_COUNTOF(cases); c++) {
        zc_tensor x = {.dtype = ZC_F32, .rank = cases[c].rank};
        zc_tensor axes_in = {.dtype = ZC_I64, .rank = 1, .dims = {cases[c].naxes}};
        int64_t list[3];
        memcpy(x.dims, cases[c].dims, sizeof cases[c].dims);
        memcpy(list, cases[c].axes, sizeof list);
        axes_in.data = list;
        int64_t n = zc_tensor_numel(&x);
        x.data = zc_calloc((size_t)n, sizeof(float));
        assert_non_null(x.data);
        fill(x.data, n);
        for (size_t i = 0; i < ZC_COUNTOF(all); i++) {
            zc_tensor fast, slow;
            reduce(all[i], &x, &axes_in, false, &fast);
            reduce(all[i], &x, &axes_in, true, &slow);
            assert_int_equal(zc_tensor_numel(&fast), zc_tensor_numel(&slow));
            for (int64_t o = 0; o < zc_tensor_numel(&slow); o++) {
                double a = zc_get(&fast, o), b = zc_get(&slow, o);
                if (!(fabs(a - b) <= 1e-6 * fabs(b)))
                    fail_msg("case %zu, %s: %.9g, need %.9g", c, zc_op_get(all[i])->name, a, b);
            }
            free(fast.data);
            free(slow.data);
        }
        free(x.data);
    }
}

/* The bits of the fast kernel's result with that many threads. */
static void reduce_on_threads(zc_op op, const zc_tensor *x, int threads, float *result, int64_t n)
{
    void *attrs = default_attrs(op);
    zc_pool *pool = NULL;
    zc_scratch scratch = {0};
    zc_tensor out = {.dtype = ZC_F32, .rank = 1, .dims = {n}, .data = result};
    const zc_tensor in[2] = {*x, {.dtype = ZC_NONE}};
    assert_int_equal(zc_pool_create(threads, &pool, NULL), ZC_OK);
    zc_kctx k = {.op = op,
                 .info = zc_op_get(op),
                 .attrs = attrs,
                 .nin = 2,
                 .nout = 1,
                 .in = in,
                 .out = &out,
                 .scratch = &scratch,
                 .pool = pool};
    assert_int_equal(zc_fast_reduce_f32(&k), ZC_OK);
    free(attrs);
    zc_scratch_fini(&scratch);
    zc_pool_destroy(&pool);
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    zc_tensor x = {.dtype = ZC_F32, .rank = 2, .dims = {300, 1999}};
    x.data = zc_calloc((size_t)zc_tensor_numel(&x), sizeof(float));
    assert_non_null(x.data);
    fill(x.data, zc_tensor_numel(&x));
    for (size_t i = 0; i < ZC_COUNTOF(all); i++) {
        float one, many;
        reduce_on_threads(all[i], &x, 1, &one, 1);
        for (int threads = 2; threads <= 5; threads++) {
            reduce_on_threads(all[i], &x, threads, &many, 1);
            assert_memory_equal(&one, &many, sizeof one);
        }
    }
    free(x.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reduction),
        cmocka_unit_test(axes),
        cmocka_unit_test(means_of_nothing),
        cmocka_unit_test(integers),
        cmocka_unit_test(empty_sets),
        cmocka_unit_test(extremes_and_nan),
        cmocka_unit_test(fast_agrees_with_reference),
        cmocka_unit_test(threads_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
