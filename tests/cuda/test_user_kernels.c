/* Kernels that rule files bring along, through the library: checked and tuned as by the command
 * line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cuda/gpu.h"
#include "planfile/program.h"
#include "runtime/plan.h"
#include "support/onnx_text.h"

static const char model[] = "opset 17\nin x 1 5,3\nout y 1 *\ninit g 1 3 2,-1,0.5\n"
                            "node Mul x,g t\nnode Abs t y\n";

/* A kernel that computes |x * g|, where the tuning parameters say that it does. */
static const char source[] =
    "extern \"C\" __global__ void scaled(const TYPE_x *x, const TYPE_g *g, TYPE_y *y, long long n, "
    "int row)\n"
    "{\n"
    "    long long i = (long long)blockIdx.x * BLOCK + threadIdx.x;\n"
    "    float s = %s;\n"
    "    if (i < n) y[i] = zc_put<TYPE_y>(s * fabs(zc_get(x[i]) * zc_get(g[i %% row])));\n"
    "}\n";
static const char rule[] =
    "kernel Scaled(x, g) {\n"
    "  file \"scaled.cu\"; entry \"scaled\"; result y = like(x);\n"
    "  tune BLOCK in {32, 64}, WAY in {1, 2, 3}; grid ceil_div(size(x), BLOCK); block BLOCK;\n"
    "  args size(x), dim(x, -1);\n"
    "  meaning = abs(x * g);\n"
    "}\n"
    "rule scaled priority 9 {\n"
    "  match y = Abs(Mul(x, g: const)); where rank(g) == 1, rank(x) >= 1, dim(g, 0) == dim(x, "
    "-1), dtype(x) in {f32, f16, bf16};\n"
    "  emit y = Scaled(x, g);\n"
    "}\n";

static void put(const char *name, const char *format, const char *part)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", getenv("ZC_CACHE_DIR"), name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    /* The formats are this file's own. */
    char text[2048];
    size_t n = 0;
    for (const char *s = format; *s && n + strlen(part) + 2 < sizeof text; s++) {
        if (strncmp(s, "%s", 2) == 0)
            n += (size_t)sprintf(text + n, "%s", part), s++;
        else if (strncmp(s, "%%", 2) == 0)
            text[n++] = '%', s++;
        else
            text[n++] = *s;
    }
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* What the kernel's result is multiplied by: 1 where it is right. */
static zc_status compile(const char *factor, const char *target, bool tune, bool force,
                         zc_plan **plan, zc_diag *diag)
{
    char path[256];
    const char *rules = path;
    zc_buf bytes = {0};
    void *out = NULL;
    size_t len = 0;
    *plan = NULL;
    snprintf(path, sizeof path, "%s/scaled.zcr", getenv("ZC_CACHE_DIR"));
    put("scaled.zcr", rule, "");
    put("scaled.cu", source, factor);
    onnx_text(model, &bytes);
    zc_status status = zc_compile_bytes(
        bytes.data, bytes.len,
        ZC_COMPILE_PARAMS(.targets = &target, .target_count = target ? 1 : 0, .rules = &rules,
                          .rule_count = 1, .tune = tune, .force_rules = force, .threads = 1),
        &out, &len, diag);
    if (status == ZC_OK) *plan = gpu_load(out, len);
    zc_free(out);
    zc_buf_fini(&bytes);
    return status;
}

static const zc_attrs_UserKernel *kernel_of(const zc_plan *plan)
{
    const zc_program *p = &plan->program;
    for (uint32_t i = 0; i < p->nsteps; i++)
        if (p->steps[i].op == ZC_OP_UserKernel) return p->steps[i].attrs;
    fail_msg("no user kernel in the plan");
    return NULL;
}

static void test_wrong_kernel_is_refused(void **state)
{
    zc_plan *plan;
    zc_diag *diag = zc_diag_create();
    (void)state;
    gpu_fake(NULL, NULL);
    expect_fail(diag, compile("2", "sm_90", false, false, &plan, diag), ZC_ERR_ACCURACY,
                "rule 'scaled' (line 7) is refused");
    expect_ok(diag, compile("2", "sm_90", false, true, &plan, diag));
    zc_plan_destroy(&plan);
    expect_ok(diag, compile("1", "sm_90", false, false, &plan, diag));
    assert_int_equal(kernel_of(plan)->tuned.v[0], 32);
    assert_int_equal(kernel_of(plan)->tuned.v[1], 1);
    zc_plan_destroy(&plan);
    /* For the CPU alone it is never run. */
    expect_ok(diag, compile("2", NULL, false, false, &plan, diag));
    zc_plan_destroy(&plan);
    zc_diag_destroy(&diag);
}

/* The fake device is no faster with one than with another: what is certain is which are left. */
static void test_tuning_takes_right_ones_only(void **state)
{
    zc_plan *plan;
    zc_diag *diag = zc_diag_create();
    (void)state;
    gpu_fake(NULL, NULL);
    expect_ok(diag, compile("WAY == 1 && BLOCK == 32 ? 1 : 2", "sm_90", true, false, &plan, diag));
    assert_int_equal(kernel_of(plan)->tuned.v[0], 32);
    assert_int_equal(kernel_of(plan)->tuned.v[1], 1);
    zc_plan_destroy(&plan);
    expect_ok(diag, compile("WAY < 3 ? 1 : 2", "sm_90", true, false, &plan, diag));
    assert_true(kernel_of(plan)->tuned.v[1] < 3);
    zc_plan_destroy(&plan);
    /* Forced, the samples are not looked at; what is measured is. */
    expect_ok(diag, compile("WAY == 2 ? 1 : 2", "sm_90", true, true, &plan, diag));
    assert_int_equal(kernel_of(plan)->tuned.v[1], 2);
    zc_plan_destroy(&plan);
    expect_fail(diag, compile("3", "sm_90", true, true, &plan, diag), ZC_ERR_ACCURACY,
                "with every combination");
    zc_diag_destroy(&diag);
}

static void test_tuning_needs_a_gpu(void **state)
{
    zc_plan *plan;
    zc_diag *diag = zc_diag_create();
    (void)state;
    gpu_fake(NULL, NULL);
    expect_fail(diag, compile("1", "cpu", true, false, &plan, diag), ZC_ERR_ARG,
                "tuning needs a GPU among the targets");
    zc_diag_destroy(&diag);
}

static void test_tuning_without_a_gpu(void **state)
{
    zc_plan *plan;
    (void)state;
    gpu_needs_fake();
    zc_diag *diag = zc_diag_create();
    gpu_fake("DEVICES", "0");
    expect_fail(diag, compile("1", "sm_90", true, false, &plan, diag), ZC_ERR_DEVICE, "");
    gpu_fake(NULL, NULL);
    zc_diag_destroy(&diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_kernel_is_refused),
        cmocka_unit_test(test_tuning_takes_right_ones_only),
        cmocka_unit_test(test_tuning_needs_a_gpu),
        cmocka_unit_test(test_tuning_without_a_gpu),
    };
    return cmocka_run_group_tests(tests, gpu_group_setup, gpu_group_teardown);
}
