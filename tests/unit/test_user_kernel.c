/* User kernels without rules: sizes as texts, and meanings that are damaged, as a plan may have
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/kernel.h"
#include "op/sizes.h"

/* ---- sizes ---- */

static bool sizes(const char *text, int most, int64_t *out, int *n)
{
    const zc_type types[] = {{ZC_F32, 2, {{.k = 6}, {.k = 5}}}, {ZC_F32, 0, {{0}}}};
    const int64_t tuned[] = {4, 100};
    zc_sizes_env env = {.types = types, .ntypes = 2, .tuned = {2, tuned}};
    zc_dim v[ZC_SIZES_MAX];
    if (!zc_sizes_eval(text, &env, most, v, n)) return false;
    for (int i = 0; i < *n; i++) out[i] = v[i].k;
    return true;
}

static void test_sizes(void **state)
{
    static const struct {
        const char *text;
        int n;
        int64_t v[3];
    } good[] = {{"", 0, {0}},
                {"12", 1, {12}},
                {"-12", 1, {-12}},
                {"0 size", 1, {30}},
                {"1 size", 1, {1}},
                {"0 rank 1 rank", 2, {2, 0}},
                {"0 0 dim 0 -1 dim 0 1 dim", 3, {6, 5, 5}},
                {"0 shape 7", 3, {6, 5, 7}},
                {"0 size 0 tune cdiv", 1, {8}},
                {"0 size 1 tune cdiv", 1, {1}},
                {" 7  2 / 7 2 % -7 2 / ", 3, {3, 1, -4}},
                {"3 4 + 5 * 2 - 1 tune min 9 max", 1, {33}},
                {"1 2 ; 3", 2, {1, 2}}};
    for (size_t i = 0; i < ZC_COUNTOF(good); i++) {
        int64_t v[ZC_SIZES_MAX];
        int n;
        if (!sizes(good[i].text, 3, v, &n)) fail_msg("%s: refused", good[i].text);
        assert_int_equal(n, good[i].n);
        for (int k = 0; k < n; k++) assert_int_equal(v[k], good[i].v[k]);
    }
}

static void test_bad_sizes(void **state)
{
    static const char *const bad[] = {"+",
                                      "1 +",
                                      "dim",
                                      "0 dim",
                                      "2 size",
                                      "-1 size",
                                      "0 2 dim",
                                      "0 -3 dim",
                                      "1 0 dim",
                                      "2 tune",
                                      "-1 tune",
                                      "1 0 /",
                                      "1 0 %",
                                      "1 0 cdiv",
                                      "9223372036854775807 1 +",
                                      "9223372036854775808",
                                      "-",
                                      "1 -",
                                      "x",
                                      "1x",
                                      "1 2 3 4",
                                      "9223372036854775807 2 * 0 *",
                                      "size size"};
    for (size_t i = 0; i < ZC_COUNTOF(bad); i++) {
        int64_t v[ZC_SIZES_MAX];
        int n;
        if (sizes(bad[i], 3, v, &n)) fail_msg("%s: accepted", bad[i]);
    }
    int n;
    zc_dim v[1];
    assert_null(zc_sizes_eval(NULL, &(zc_sizes_env){.ntypes = 0}, 1, v, &n));
    char deep[4 * ZC_SIZES_MAX] = "";
    for (int i = 0; i <= ZC_SIZES_MAX; i++) strcat(deep, "1 ");
    int64_t out[ZC_SIZES_MAX];
    assert_false(sizes(deep, ZC_SIZES_MAX, out, &n));
}

/* Symbols: the same texts give expressions. */
static void test_symbolic_sizes(void **state)
{
    zc_dims dims;
    zc_dims_init(&dims);
    zc_dim n = zc_dim_input(&dims, "n"), v[2];
    zc_type type = {ZC_F32, 2, {n, zc_dim_const(3)}};
    zc_sizes_env env = {.dims = &dims, .types = &type, .ntypes = 1};
    int count;
    assert_non_null(zc_sizes_eval("0 size 0 0 dim 1 +", &env, 2, v, &count));
    assert_int_equal(count, 2);
    assert_true(zc_dim_eq(v[0], zc_dim_mul(&dims, n, zc_dim_const(3))));
    assert_true(zc_dim_eq(v[1], zc_dim_add(&dims, n, zc_dim_const(1))));
    zc_dims_fini(&dims);
}

/* ---- meanings ---- */

static zc_status run(const char *meaning, const char *shapes, int64_t type, float *out,
                     zc_diag *diag)
{
    float x[2] = {1, -2}, y[2] = {3, 5};
    zc_tensor in[] = {{.dtype = ZC_F32, .rank = 1, .dims = {2}, .data = x},
                      {.dtype = ZC_F32, .rank = 1, .dims = {2}, .data = y}};
    zc_tensor result = {.dtype = ZC_F32};
    zc_attrs_UserKernel a = {.name = "K",
                             .origin = "k.zcr:1",
                             .types = {1, &type},
                             .shapes = shapes,
                             .meaning = meaning};
    zc_status status = zc_cpu_eval(ZC_OP_UserKernel, &a, 2, in, 1, &result, true, "node", diag);
    if (status == ZC_OK && out) memcpy(out, result.data, 2 * sizeof *out);
    free(result.data);
    return status;
}

static void test_meaning(void **state)
{
    float out[2];
    assert_int_equal(
        run("Mul 1 x0 x1 { } ; Add 1 t0 #3fe0000000000000 { } ; = t1", "0 shape ;", -1, out, NULL),
        ZC_OK);
    assert_true(out[0] == 3.5f && out[1] == -9.5f);
    assert_int_equal(run("Split 2 x0 _ { axis 0 num_outputs 2 } ; Concat 1 t1 t0 { axis 0 } ; = t2",
                         "2", -1, out, NULL),
                     ZC_OK);
    assert_true(out[0] == -2 && out[1] == 1);
    assert_int_equal(
        run("Pointwise 1 x0 { expr \"x0 > 0 ? x0 : -x0\" } ; = t0", "0 shape", -1, out, NULL),
        ZC_OK);
    assert_true(out[0] == 1 && out[1] == 2);
    assert_int_equal(run("Reshape 1 x1 [ 1 2 ] { } ; Transpose 1 t0 { perm [ 1 0 ] } ; Reshape 1 "
                         "t1 [ 2 ] { } ; = t2",
                         "0 shape", -1, out, NULL),
                     ZC_OK);
    assert_true(out[0] == 3 && out[1] == 5);
    assert_int_equal(run("= x1", "0 shape", -1, out, NULL), ZC_OK);
    assert_true(out[0] == 3 && out[1] == 5);
}

static void expect(const char *meaning, const char *shapes, int64_t type, const char *want)
{
    zc_diag *diag = zc_diag_create();
    zc_status status = run(meaning, shapes, type, NULL, diag);
    if (status == ZC_OK || !strstr(zc_diag_text(diag, 0), want))
        fail_msg("%s: got %s, need %s", meaning ? meaning : "NULL", zc_diag_text(diag, 0), want);
    zc_diag_destroy(&diag);
}

static void test_bad_meaning(void **state)
{
    static const char *const damaged[] = {NULL,
                                          "",
                                          "Mul",
                                          "Mul 1",
                                          "Mul 0 x0 x1 { } ; = t0",
                                          "Mul 9 x0 x1 { } ; = t0",
                                          "Nul 1 x0 x1 { } ; = t0",
                                          "Mul 1 x2 x1 { } ; = t0",
                                          "Mul 1 t0 x1 { } ; = t0",
                                          "Mul 1 x-1 x1 { } ; = t0",
                                          "Mul 1 x0 #zz { } ; = t0",
                                          "Mul 1 x0 x1 { ; = t0",
                                          "Mul 1 x0 x1 { } = t0",
                                          "Mul 1 x0 x1 { } ; = t1",
                                          "Mul 1 x0 x1 { } ; =",
                                          "Softmax 1 x0 { axes 1 } ; = t0",
                                          "Softmax 1 x0 { axis x } ; = t0",
                                          "Softmax 1 x0 { axis",
                                          "If 1 x0 { } ; = t0",
                                          "UserKernel 1 x0 { } ; = t0",
                                          "Pointwise 1 x0 { expr \"x0 } ; = t0",
                                          "Reshape 1 x0 [ 2 { } ; = t0",
                                          "Mul 1 x0 x1 { } ; Mul 1 t0 t1 { } ; = t1",
                                          "Mul 1 x0 "
                                          "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                                          "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx { } ; = t0"};
    for (size_t i = 0; i < ZC_COUNTOF(damaged); i++)
        expect(damaged[i], "0 shape", -1, "the kernel's meaning is damaged at");
    expect("Mul 1 x0 x1 { } ; = t0", "3", -1,
           "another type than its result (got f32[2], need f32[3])");
    expect("Mul 1 x0 x1 { } ; = t0", "0 shape", ZC_F16, "(got f32[2], need f16[2])");
    expect("Pointwise 1 x0 { expr \"x0 +\" } ; = t0", "0 shape", -1, "expression, column");
    expect("= x0", "0 shape", -3, "result 0 has no element type (got -3)");
    expect("= x0", "0 shape", 9999, "result 0 has no element type (got 9999)");
    expect("= x0", "5 shape", -1, "kernel K (k.zcr:1): result 0 has no shape for these operands");
    expect("= x0", "0 3 -", -1, "negative or overflowing dimension");
    expect("= x0", NULL, -1, "has no shape");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),          cmocka_unit_test(test_bad_sizes),
        cmocka_unit_test(test_symbolic_sizes), cmocka_unit_test(test_meaning),
        cmocka_unit_test(test_bad_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
