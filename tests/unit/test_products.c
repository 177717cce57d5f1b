/* Fast f32 products, convolutions and poolings against their reference kernels. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/kernel.h"
#include "cpu/panels.h"
#include "cpu/simd.h"
#include "op/work.h"
#include "support/expect.h"

static unsigned seed = 7;

static zc_tensor make(int rank, const int64_t *dims)
{
    zc_tensor t = {.dtype = ZC_F32, .rank = rank};
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    int64_t n = zc_tensor_numel(&t);
    float *v = t.data = calloc((size_t)n + 1, sizeof *v);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        v[i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
    }
    return t;
}

/* Both kernels on the same operands; sums of `depth` products of numbers below 1. */
static void compare(zc_op op, const void *attrs, int n, zc_tensor *in, double depth)
{
    zc_tensor fast = {.dtype = ZC_F32}, plain = {.dtype = ZC_F32};
    zc_diag *diag = zc_diag_create();
    expect_ok(diag, zc_cpu_eval(op, attrs, n, in, 1, &fast, false, "fast", diag));
    expect_ok(diag, zc_cpu_eval(op, attrs, n, in, 1, &plain, true, "plain", diag));
    int64_t count = zc_tensor_numel(&plain);
    assert_int_equal(zc_tensor_numel(&fast), count);
    for (int64_t i = 0; i < count; i++) {
        double f = (double)((float *)fast.data)[i], p = (double)((float *)plain.data)[i];
        if (!(fabs(f - p) <= 1e-6 * sqrt(depth + 1) * 4))
            fail_msg("%s: element %lld: fast %.9g, reference %.9g", zc_op_get(op)->name,
                     (long long)i, f, p);
    }
    free(fast.data);
    free(plain.data);
    for (int i = 0; i < n; i++) free(in[i].data);
    zc_diag_destroy(&diag);
}

static void test_matmul(void **state)
{
    (void)state;
    static const struct {
        int ranks[2];
        int64_t dims[2][4];
        int64_t depth;
    } cases[] = {
        {{2, 2}, {{1, 1}, {1, 1}}, 1},
        {{2, 2}, {{33, 65}, {65, 17}}, 65},
        {{2, 2}, {{1, 300}, {300, 70}}, 300},
        {{2, 2}, {{300, 1}, {1, 70}}, 1},
        {{1, 2}, {{65}, {65, 17}}, 65},
        {{2, 1}, {{33, 65}, {65}}, 65},
        {{1, 1}, {{65}, {65}}, 65},
        {{3, 2}, {{4, 33, 65}, {65, 17}}, 65},
        {{4, 4}, {{2, 3, 31, 64}, {2, 3, 64, 33}}, 64},
        {{4, 3}, {{2, 3, 5, 7}, {3, 7, 9}}, 7},
        {{3, 3}, {{1, 5, 7}, {6, 7, 9}}, 7},
        {{2, 2}, {{0, 5}, {5, 3}}, 5},
        {{2, 2}, {{3, 0}, {0, 4}}, 0},
        {{2, 2}, {{128, 256}, {256, 200}}, 256},
    };
    zc_attrs_MatMul attrs = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        zc_tensor in[2] = {make(cases[i].ranks[0], cases[i].dims[0]),
                           make(cases[i].ranks[1], cases[i].dims[1])};
        compare(ZC_OP_MatMul, &attrs, 2, in, (double)cases[i].depth);
    }
}

static void test_gemm(void **state)
{
    (void)state;
    static const int64_t biases[][2] = {{19, 23}, {1, 23}, {19, 1}, {1, 1}};
    for (int t = 0; t < 4; t++)
        for (size_t b = 0; b < 4; b++) {
            zc_attrs_Gemm a = {
                .transA = t & 1, .transB = t >> 1, .alpha = 0.5f, .beta = 2, .set = 15};
            zc_tensor in[3] = {make(2, t & 1 ? (int64_t[]){31, 19} : (int64_t[]){19, 31}),
                               make(2, t >> 1 ? (int64_t[]){23, 31} : (int64_t[]){31, 23}),
                               make(2, biases[b])};
            compare(ZC_OP_Gemm, &a, 3, in, 31);
        }
}

static void test_linear(void **state)
{
    (void)state;
    for (int trans = 0; trans < 2; trans++) {
        zc_attrs_Linear a = {.transB = trans, .alpha = 1, .set = 3};
        zc_tensor in[3] = {make(3, (int64_t[]){2, 17, 40}),
                           make(2, trans ? (int64_t[]){70, 40} : (int64_t[]){40, 70}),
                           make(1, (int64_t[]){70})};
        compare(ZC_OP_Linear, &a, 3, in, 40);
    }
}

static void test_conv(void **state)
{
    (void)state;
    static const struct {
        int64_t n, c, h, w, oc, group, k, stride, dilation, pads[4];
    } cases[] = {
        {1, 3, 17, 19, 8, 1, 3, 1, 1, {1, 1, 1, 1}},
        {2, 4, 9, 9, 6, 2, 3, 2, 1, {0, 1, 2, 0}},
        {1, 16, 14, 14, 33, 1, 1, 1, 1, {0, 0, 0, 0}},
        {1, 16, 14, 14, 32, 1, 1, 2, 1, {0, 0, 0, 0}},
        {1, 6, 20, 11, 6, 6, 3, 1, 1, {1, 1, 1, 1}},
        {1, 6, 20, 11, 12, 6, 5, 2, 1, {2, 2, 2, 2}},
        {1, 2, 15, 15, 3, 1, 3, 1, 3, {3, 3, 3, 3}},
        {1, 1, 5, 5, 1, 1, 5, 1, 1, {4, 4, 4, 4}},
        {3, 3, 7, 1, 4, 1, 1, 3, 1, {0, 0, 0, 0}},
        {0, 3, 7, 7, 4, 1, 3, 1, 1, {1, 1, 1, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t strides[2] = {cases[i].stride, cases[i].stride},
                dilations[2] = {cases[i].dilation, cases[i].dilation};
        zc_attrs_Conv a = {.auto_pad = "NOTSET",
                           .group = cases[i].group,
                           .strides = {2, strides},
                           .dilations = {2, dilations},
                           .pads = {4, cases[i].pads},
                           .set = ~UINT64_C(0)};
        int64_t k[2] = {cases[i].k, cases[i].k};
        a.kernel_shape = (zc_ints){2, k};
        zc_tensor in[3] = {
            make(4, (int64_t[]){cases[i].n, cases[i].c, cases[i].h, cases[i].w}),
            make(4, (int64_t[]){cases[i].oc, cases[i].c / cases[i].group, k[0], k[1]}),
            make(1, (int64_t[]){cases[i].oc})};
        compare(ZC_OP_Conv, &a, 3, in, (double)(cases[i].c * k[0] * k[1]));
    }
}

static void test_conv_of_one_axis(void **state)
{
    (void)state;
    zc_attrs_Conv a = {.auto_pad = "SAME_UPPER", .group = 1, .set = 1};
    zc_tensor in[2] = {make(3, (int64_t[]){2, 5, 50}), make(3, (int64_t[]){7, 5, 4})};
    compare(ZC_OP_Conv, &a, 2, in, 20);
}

static void test_pools(void **state)
{
    (void)state;
    static const int64_t kernel[2] = {3, 2}, strides[2] = {2, 1}, pads[4] = {1, 0, 1, 1},
                         dilations[2] = {1, 2};
    for (int ceil_mode = 0; ceil_mode < 2; ceil_mode++) {
        zc_attrs_MaxPool m = {.auto_pad = "NOTSET",
                              .kernel_shape = {2, kernel},
                              .strides = {2, strides},
                              .pads = {4, pads},
                              .dilations = {2, dilations},
                              .ceil_mode = ceil_mode,
                              .set = ~UINT64_C(0)};
        zc_tensor x = make(4, (int64_t[]){2, 3, 12, 9});
        compare(ZC_OP_MaxPool, &m, 1, &x, 0);
        for (int count = 0; count < 2; count++) {
            zc_attrs_AveragePool p = {.auto_pad = "NOTSET",
                                      .kernel_shape = {2, kernel},
                                      .strides = {2, strides},
                                      .pads = {4, pads},
                                      .dilations = {2, dilations},
                                      .ceil_mode = ceil_mode,
                                      .count_include_pad = count,
                                      .set = ~UINT64_C(0)};
            x = make(4, (int64_t[]){2, 3, 12, 9});
            compare(ZC_OP_AveragePool, &p, 1, &x, 6);
        }
    }
    zc_attrs_GlobalAveragePool none = {0};
    zc_tensor x = make(4, (int64_t[]){2, 3, 7, 7});
    compare(ZC_OP_GlobalAveragePool, &none, 1, &x, 1);
}

/* m rows of two taps by all columns, and again by rows and panels one at a time: the same bits. */
static void multiply_panels(int64_t m, int64_t depth, int64_t n)
{
    enum { TAPS = 2 };
    const int64_t panels = zc_panels_of(n), width = panels * ZC_PANEL;
    zc_tensor x = make(2, (int64_t[]){TAPS * m, depth});
    zc_tensor w = make(3, (int64_t[]){panels, TAPS * depth, ZC_PANEL});
    zc_tensor bias = make(1, (int64_t[]){width}), more = make(2, (int64_t[]){m, n});
    zc_tensor whole = make(2, (int64_t[]){m, n}), parts = make(2, (int64_t[]){m, n});
    const float *a = x.data, *b = w.data, *rows[TAPS * ZC_PANEL_BLOCK];
    for (int64_t t = 0; t < TAPS; t++)
        for (int64_t r = 0; r < m; r++) rows[t * ZC_PANEL_BLOCK + r] = a + (t * m + r) * depth;
    zc_panel_product p = {.w = b,
                          .n = n,
                          .depth = depth,
                          .taps = TAPS,
                          .bias = bias.data,
                          .residual = more.data,
                          .relu = true,
                          .y = whole.data,
                          .ldy = n};
    zc_panels_multiply(&p, m, rows, 0, 0, panels);
    for (int64_t r = 0; r < m; r++)
        for (int64_t i = 0; i < panels; i++) {
            p.y = (float *)parts.data + r * n;
            p.residual = (float *)more.data + r * n;
            zc_panels_multiply(&p, 1, rows + r, 0, i, i + 1);
        }
    assert_memory_equal(whole.data, parts.data, (size_t)(m * n) * sizeof(float));
    for (int64_t i = 0; i < m * n; i++) {
        const int64_t r = i / n, c = i % n;
        const float *column = b + c / ZC_PANEL * TAPS * depth * ZC_PANEL + c % ZC_PANEL;
        double sum = (double)((float *)bias.data)[c] + (double)((float *)more.data)[i];
        for (int64_t d = 0; d < TAPS * depth; d++)
            sum += (double)rows[d / depth * ZC_PANEL_BLOCK + r][d % depth] *
                   (double)column[d * ZC_PANEL];
        sum = sum > 0 ? sum : 0;
        assert_true(fabs(sum - (double)((float *)whole.data)[i]) < 1e-5 * (double)depth);
    }
    zc_tensor all[] = {x, w, bias, more, whole, parts};
    for (size_t i = 0; i < ZC_COUNTOF(all); i++) free(all[i].data);
}

static void test_panels(void **state)
{
    (void)state;
    if (zc_simd_level() < ZC_SIMD_AVX2) skip(); /* the processor has no AVX2 */
    multiply_panels(1, 1, 1);
    multiply_panels(5, 30, 8);
    multiply_panels(47, 64, 33);
    multiply_panels(ZC_PANEL_BLOCK, 7, 16);
}

/* Profiles compare with tensor cores what of a sparse matrix is stored. */
static void test_sparse_work(void **state)
{
    enum { ROWS = 5, N = 128, K = 256 };
    const zc_tensor in[] = {{.dtype = ZC_F16, .rank = 2, .dims = {ROWS, K}},
                            {.dtype = ZC_F16, .rank = 5, .dims = {N / 64, K / 64, 4, 64, 8}},
                            {.dtype = ZC_U32, .rank = 3, .dims = {N / 64, K / 64, 128}}};
    const zc_tensor out = {.dtype = ZC_F16, .rank = 2, .dims = {ROWS, N}};
    (void)state;
    const zc_work w = zc_work_of(zc_op_get(ZC_OP_SparseLinear), NULL, 3, in, 1, &out);
    assert_true(w.operations == (double)ROWS * N * K);
    assert_true(w.bytes_in == 2.0 * ROWS * K + 2.0 * N * K * 9 / 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul),           cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_linear),           cmocka_unit_test(test_conv),
        cmocka_unit_test(test_conv_of_one_axis), cmocka_unit_test(test_pools),
        cmocka_unit_test(test_panels),           cmocka_unit_test(test_sparse_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
