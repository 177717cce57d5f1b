/* Which kernel serves a step: by architecture, by the range of a size, chosen anew on another GPU;
 * and plans whose kernels are given other parameters than this zc's are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "cuda/gpu.h"
#include "kernels/table.h"
#include "runtime/plan.h"
#include "support/forge.h"
#include "support/onnx_text.h"

enum { DEPTH = 64, COLUMNS = 64, ROWS_MAX = 257 };

/* y[M, 64] = x[M, 64] w[64, 64] in f16. */
static const char fixed[] =
    "opset 17\nin x 10 128,64\nin w 10 64,64\nout y 10 *\nnode MatMul x,w y name=product\n";
static const char symbolic[] =
    "opset 17\nin x 10 M,64\nin w 10 64,64\nout y 10 *\nnode MatMul x,w y name=product\n";

static zc_plan *plan_with(const char *text, const zc_compile_params *params)
{
    zc_buf model = {0};
    void *bytes;
    size_t len;
    zc_diag *diag = zc_diag_create();
    onnx_text(text, &model);
    expect_ok(diag, zc_compile_bytes(model.data, model.len, params, &bytes, &len, diag));
    zc_plan *plan = gpu_load(bytes, len);
    zc_free(bytes);
    zc_buf_fini(&model);
    zc_diag_destroy(&diag);
    return plan;
}

static zc_plan *plan_of(const char *text, const char *const *targets, size_t n)
{
    return plan_with(text, ZC_COMPILE_PARAMS(.targets = targets, .target_count = n, .threads = 2));
}

/* The one GPU step's kernel for `rows` rows on a device of that compute capability (NULL: the one
 * there is), and how many were compiled there; the result must be right. */
static int run(zc_plan *plan, const char *cc, int64_t rows, char name[128])
{
    static const uint16_t small[] = {0, 0x3c00, 0x4000, 0x4200}, /* 0 to 3 */
        sums[] = {0, 0x5400, 0x5800, 0x5a00};                    /* 64 times that */
    uint16_t x[ROWS_MAX * DEPTH], w[DEPTH * COLUMNS];
    zc_view in[] =
        {{.elem = 10, .rank = 2, .dims = {rows, DEPTH}, .data = x},
         {.elem = 10, .rank = 2, .dims = {DEPTH, COLUMNS}, .data = w, .bytes = sizeof w}},
            y;
    zc_step_info step;
    zc_device_info info;
    zc_diag *diag = zc_diag_create();
    in[0].bytes = (size_t)rows * DEPTH * sizeof *x;
    for (int64_t i = 0; i < rows * DEPTH; i++) x[i] = small[i / DEPTH % 4];
    for (int i = 0; i < DEPTH * COLUMNS; i++) w[i] = small[1];
    if (cc) gpu_fake("CC", cc);
    zc_session *s = gpu_session(plan);
    for (size_t i = 0; i < 2; i++) expect_ok(diag, zc_session_set_input(s, i, &in[i], false, diag));
    expect_ok(diag, zc_session_run(s, diag));
    expect_ok(diag, zc_session_output(s, 0, &y, diag));
    assert_int_equal(y.bytes, (size_t)rows * COLUMNS * sizeof(uint16_t));
    for (int64_t i = 0; i < rows * COLUMNS; i++)
        assert_int_equal(((const uint16_t *)y.data)[i], sums[i / COLUMNS % 4]);
    expect_ok(diag, zc_session_step_fill(s, 0, (step.size = sizeof step, &step), diag));
    snprintf(name, 128, "%s", step.kernel);
    assert_int_equal(zc_session_device(s, &info), ZC_OK);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_diag_destroy(&diag);
    return (int)info.rebuilt;
}

static const char *family_of(const zc_plan *plan, const char *kernel)
{
    for (uint32_t i = 0; i < plan->program.nkernels; i++)
        if (strcmp(plan->program.kernels[i].name, kernel) == 0)
            return plan->program.kernels[i].family;
    return "none";
}

static void test_architectures_choose_for_themselves(void **state)
{
    static const char *const both[] = {"sm_80", "sm_90"};
    char on_80[128], on_90[128];
    (void)state;
    gpu_needs_fake();
    zc_plan *plan = plan_of(fixed, both, 2);
    assert_int_equal(run(plan, "80", 128, on_80), 0);
    zc_plan_destroy(&plan);
    plan = plan_of(fixed, both, 2);
    assert_int_equal(run(plan, "90", 128, on_90), 0);
    assert_string_equal(family_of(plan, on_80), "gemm_mma");
    assert_string_equal(family_of(plan, on_90), "gemm_few_sm90");
    zc_plan_destroy(&plan);
}

/* Weights with two zeros in each four are one constant for both; code for sm_80 also runs where a
 * block has 99 KB of shared memory. */
static void test_sparse_weights_on_both(void **state)
{
    enum { SIDE = 1024, BLOCK = 101376 };
    static const char *const both[] = {"sm_80", "sm_90"};
    zc_buf text = {0};
    (void)state;
    zc_buf_printf(&text, "opset 17\nin x 1 4096,%d\nout y 1 *\ninit w 1 %d,%d ", SIDE, SIDE, SIDE);
    for (int i = 0; i < SIDE * SIDE; i++)
        zc_buf_puts(&text, i / SIDE % 4 < 2 ? (i ? ",1" : "1") : ",0");
    zc_buf_puts(&text, "\nnode MatMul x,w y name=product\n");
    zc_plan *plan = plan_with(
        text.data, ZC_COMPILE_PARAMS(.targets = both, .target_count = 2, .precision = "f16"));
    const zc_program *p = &plan->program;
    const zc_pstep *step = NULL;
    for (uint32_t i = 0; i < p->nsteps; i++)
        if (p->steps[i].op == ZC_OP_SparseLinear) step = &p->steps[i];
    assert_non_null(step);
    const zc_pkernel *on_80 = &p->kernels[zc_program_choice(step, 80, NULL)->kernel];
    const zc_pkernel *on_90 = &p->kernels[zc_program_choice(step, 90, NULL)->kernel];
    assert_string_equal(on_80->family, "gemm_sparse_mma");
    assert_true(on_80->smem <= BLOCK);
    assert_string_equal(on_90->family, "gemm_sparse_sm90");
    zc_plan_destroy(&plan);
    zc_buf_fini(&text);
}

/* What is chosen on the other GPU is what would have been compiled for it. */
static void test_another_gpu_gets_its_own(void **state)
{
    static const char *const targets[] = {"sm_80", "sm_90"}, *const others[] = {"90", "80"};
    char anew[128], own[128];
    (void)state;
    gpu_needs_fake();
    for (int i = 0; i < 2; i++) {
        zc_plan *plan = plan_of(fixed, &targets[i], 1);
        assert_int_equal(run(plan, others[i], 128, anew), 1);
        assert_string_equal(family_of(plan, anew), "none");
        zc_plan_destroy(&plan);
        plan = plan_of(fixed, &targets[1 - i], 1);
        assert_int_equal(run(plan, others[i], 128, own), 0);
        assert_string_equal(anew, own);
        assert_string_equal(family_of(plan, own), i ? "gemm_mma" : "gemm_few_sm90");
        zc_plan_destroy(&plan);
    }
}

/* Code runs on later chips of its generation, unless it may use what its own alone has. */
static void test_code_of_one_chip(void **state)
{
    static const struct {
        const char *target, *cc;
        int rebuilt;
    } cases[] = {{"sm_80", "86", 0}, {"sm_100", "100", 0}, {"sm_100", "103", 1}};
    char kernel[128];
    (void)state;
    gpu_needs_fake();
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++) {
        zc_plan *plan = plan_of(fixed, &cases[i].target, 1);
        assert_int_equal(run(plan, cases[i].cc, 128, kernel), cases[i].rebuilt);
        zc_plan_destroy(&plan);
    }
}

static void test_ranges_of_a_size(void **state)
{
    static const char *const target[] = {"sm_90"};
    static const struct {
        int64_t rows;
        int same; /* as which of the others */
        const char *family;
    } sizes[] = {{1, 0, "gemm_few_sm90"},   {2, 0, "gemm_few_sm90"},  {8, 0, "gemm_few_sm90"},
                 {9, 0, "gemm_few_sm90"},   {64, 0, "gemm_few_sm90"}, {65, 5, "gemm_few_sm90"},
                 {256, 5, "gemm_few_sm90"}, {257, 7, "gemm_sm90"}};
    enum { COUNT = ZC_COUNTOF(sizes) };
    char names[COUNT][128];
    (void)state;
    gpu_fake(NULL, NULL);
    zc_plan *plan = plan_of(symbolic, target, 1);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(run(plan, NULL, sizes[i].rows, names[i]), 0);
        assert_string_equal(family_of(plan, names[i]), sizes[i].family);
        for (int j = 0; j < i; j++)
            assert_int_equal(strcmp(names[i], names[j]) == 0, sizes[i].same == sizes[j].same);
    }
    zc_plan_destroy(&plan);
}

/* The tile of the product's kernel for sm_90, in the words of its header; "" when it has none. */
static const char *tile_of(const zc_plan *plan, char out[64])
{
    const zc_program *p = &plan->program;
    out[0] = '\0';
    for (uint32_t i = 0; i < p->nkernels; i++)
        if (strcmp(p->kernels[i].family, "gemm_few_sm90") == 0)
            snprintf(out, 64, "#define Z_TILE_ROWS %d\n#define Z_GROUPS %d\n#define Z_PARTS %d\n",
                     (int)p->kernels[i].config[0], (int)p->kernels[i].config[1],
                     (int)p->kernels[i].config[2]);
    return out;
}

/* Compiled while the compiler remarks this on every source with that text. */
static zc_plan *plan_with_remark(const char *text, const char *remark)
{
    static const char *const target[] = {"sm_90"};
    char fault[256];
    snprintf(fault, sizeof fault, "%s:%s", text, remark);
    gpu_fake("REMARK", fault);
    zc_plan *plan = plan_of(fixed, target, 1);
    gpu_fake(NULL, NULL);
    return plan;
}

/* Where shapes are certain, a kernel has the entries that its launch function issues, here tiles.
 */
static void test_entries_that_are_issued(void **state)
{
    static const char *const target[] = {"sm_80"}, *const heights[] = {"40", "M"};
    static const int64_t wanted[][2] = {{1 << 5, 108}, {0, 0}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char text[128];
        snprintf(text, sizeof text, "opset 17\nin x 1 %s,72\nout y 1 *\nnode Transpose x y\n",
                 heights[i]);
        zc_plan *plan = plan_of(text, target, 1);
        const zc_pkernel *k = &plan->program.kernels[0];
        assert_string_equal(k->family, "move");
        assert_int_equal(k->nconfig, 2);
        assert_memory_equal(k->config, wanted[i], sizeof wanted[i]);
        zc_plan_destroy(&plan);
    }
}

static void test_code_that_spills_is_refused(void **state)
{
    static const char *const
        target[] = {"sm_90"},
        *const remarks[] = {
            "ptxas         .     16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n",
            "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
            "serialized\n"};
    static const char lean[] =
        "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n";
    char best[64], other[64], name[128];
    const char *cache = getenv("ZC_CACHE_DIR");
    char *kept = strdup(cache);
    (void)state;
    gpu_needs_fake();
    setenv("ZC_CACHE_DIR", "/dev/null", 1); /* what is kept was not refused */
    gpu_fake(NULL, NULL);
    zc_plan *plan = plan_of(fixed, target, 1);
    assert_string_not_equal(tile_of(plan, best), "");
    zc_plan_destroy(&plan);
    plan = plan_with_remark(best, lean);
    assert_string_equal(tile_of(plan, other), best);
    zc_plan_destroy(&plan);
    for (int i = 0; i < 2; i++) {
        plan = plan_with_remark(best, remarks[i]);
        assert_string_not_equal(tile_of(plan, other), best);
        assert_string_not_equal(other, "");
        assert_non_null(strstr(plan->program.steps[0].choices[0].why, "refused: "));
        assert_int_equal(run(plan, "90", 128, name), 0);
        zc_plan_destroy(&plan);
    }
    plan = plan_with_remark("Z_WGMMA", remarks[0]); /* every configuration */
    assert_string_equal(tile_of(plan, other), "");
    assert_int_equal(run(plan, "90", 128, name), 0);
    assert_string_equal(family_of(plan, name), "gemm_mma");
    zc_plan_destroy(&plan);
    setenv("ZC_CACHE_DIR", kept, 1);
    free(kept);
}

/* Whoever takes it all the same leaves nothing that another would find. */
static void test_code_that_spills_is_not_kept(void **state)
{
    static const char *const target[] = {"sm_90"};
    static const char spills[] =
        "ptxas         .     16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n";
    static const int arch = 90;
    char best[64], other[64], fault[256], folder[] = "/tmp/zc-choices-XXXXXX";
    const zc_codegen_build_params takes_all = {.archs = &arch, .narchs = 1};
    char *kept = strdup(getenv("ZC_CACHE_DIR"));
    zc_diag *diag = zc_diag_create();
    zc_arena arena = {0};
    (void)state;
    gpu_needs_fake();
    setenv("ZC_CACHE_DIR", "/dev/null", 1);
    zc_plan *plan = plan_of(fixed, target, 1);
    assert_string_not_equal(tile_of(plan, best), "");
    assert_non_null(mkdtemp(folder));
    setenv("ZC_CACHE_DIR", folder, 1);
    snprintf(fault, sizeof fault, "%s:%s", best, spills);
    gpu_fake("REMARK", fault);
    zc_program all = plan->program;
    expect_ok(diag, zc_codegen_build(&all, &takes_all, &arena, diag));
    gpu_fake(NULL, NULL);
    zc_arena_fini(&arena);
    zc_plan_destroy(&plan);
    plan = plan_with_remark(best, spills);
    assert_string_not_equal(tile_of(plan, other), best);
    zc_plan_destroy(&plan);
    zc_diag_destroy(&diag);
    setenv("ZC_CACHE_DIR", kept, 1);
    free(kept);
    char remove[64];
    snprintf(remove, sizeof remove, "rm -rf %s", folder);
    assert_int_equal(system(remove), 0);
}

static void test_other_parameters_are_refused(void **state)
{
    static const char *const target[] = {"sm_80"};
    static const char want[] = "was compiled by zc " ZC_VERSION " for parameters that this zc lays "
                               "out otherwise (family gemm_mma): compile the model again";
    zc_session *s;
    zc_diag *diag = zc_diag_create();
    (void)state;
    gpu_needs_fake();
    zc_plan *plan = plan_of(fixed, target, 1);
    size_t len = plan->len;
    uint8_t *bytes = malloc(len);
    assert_non_null(bytes);
    memcpy(bytes, plan->bytes, len);
    zc_plan_destroy(&plan);
    ((zc_plan_kernel *)(bytes + forge_table(bytes)[ZC_PLAN_KERN].offset))->abi ^= 1;
    forge_seal(bytes, len);
    plan = gpu_load(bytes, len);
    gpu_fake("CC", "80");
    expect_fail(diag,
                zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 1, .device = ZC_DEVICE_CUDA),
                                  &s, diag),
                ZC_ERR_UNSUPPORTED, want);
    assert_null(s);
    zc_plan_destroy(&plan);
    zc_diag_destroy(&diag);
    free(bytes);
}

/* Where nothing was measured every operation still has a row for all GPUs. */
static void test_last_rows_are_open(void **state)
{
    (void)state;
    for (int op = 0; op < ZC_OP_COUNT; op++) {
        int last = -1;
        for (int i = 0, family; (family = zc_family_of((zc_op)op, i)) >= 0; i++) last = family;
        if (last < 0) continue;
        assert_false(zc_family_offered((zc_op)op, last));
        assert_true(zc_family_serves(last, 0) && zc_family_serves(last, 999));
    }
}

/* Two products that are scaled by numbers nobody writes, as networks learn them, and one by a half.
 */
static void test_learned_numbers_share_a_kernel(void **state)
{
    static const char text[] =
        "opset 17\nin x 1 128,64\nin w 1 64,64\ninit a 1 1 1.137\ninit b 1 1 -2.291\ninit c 1 1 "
        "0.5\n"
        "out p 1 *\nout q 1 *\nout r 1 *\n"
        "node MatMul x,w x1\nnode Mul x1,a p\nnode MatMul p,w x2\nnode Mul x2,b q\n"
        "node MatMul q,w x3\nnode Mul x3,c r\n";
    static const char *const target = "sm_90";
    float ones[128 * DEPTH], product = 1;
    const float factors[] = {1.137f, -2.291f, 0.5f};
    zc_diag *diag = zc_diag_create();
    (void)state;
    zc_plan *plan = plan_of(text, &target, 1);
    assert_int_equal(plan->program.nsteps, 3);
    assert_int_equal(plan->program.nkernels, 2);
    const zc_pstep *steps = plan->program.steps;
    assert_int_equal(steps[0].choices[0].kernel, steps[1].choices[0].kernel);
    assert_true(steps[0].choices[0].literals[0] == factors[0]);
    assert_int_equal(steps[2].choices[0].nliterals, 0);
    for (int i = 0; i < 128 * DEPTH; i++) ones[i] = 1;
    const zc_view in[] = {
        {.elem = 1, .rank = 2, .dims = {128, DEPTH}, .data = ones, .bytes = sizeof ones},
        {.elem = 1, .rank = 2, .dims = {DEPTH, COLUMNS}, .data = ones, .bytes = sizeof ones / 2}};
    zc_session *s = gpu_session(plan);
    for (size_t i = 0; i < 2; i++) expect_ok(diag, zc_session_set_input(s, i, &in[i], false, diag));
    expect_ok(diag, zc_session_run(s, diag));
    for (size_t i = 0; i < 3; i++) {
        zc_view y;
        expect_ok(diag, zc_session_output(s, i, &y, diag));
        product *= DEPTH * factors[i];
        for (int e = 0; e < 128 * COLUMNS; e++)
            assert_true(fabsf(((const float *)y.data)[e] / product - 1) < 1e-6F);
    }
    zc_session_destroy(&s);
    zc_plan_destroy(&plan);
    zc_diag_destroy(&diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_architectures_choose_for_themselves),
        cmocka_unit_test(test_sparse_weights_on_both),
        cmocka_unit_test(test_another_gpu_gets_its_own),
        cmocka_unit_test(test_code_of_one_chip),
        cmocka_unit_test(test_ranges_of_a_size),
        cmocka_unit_test(test_entries_that_are_issued),
        cmocka_unit_test(test_code_that_spills_is_refused),
        cmocka_unit_test(test_code_that_spills_is_not_kept),
        cmocka_unit_test(test_other_parameters_are_refused),
        cmocka_unit_test(test_last_rows_are_open),
        cmocka_unit_test(test_learned_numbers_share_a_kernel),
    };
    return cmocka_run_group_tests_name("choices", tests, gpu_group_setup, gpu_group_teardown);
}
