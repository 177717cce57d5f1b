/* Plan files: what zc compile writes, and every way of damaging it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/compile.h"
#include "ir/graph.h"
#include "planfile/format.h"
#include "program/build.h"
#include "support/expect.h"
#include "support/small_model.h"
#include "zc/zc.h"

typedef struct fixture {
    uint8_t *plan;
    size_t len;
    zc_diag *diag;
} fixture;

static void compile_small(void **plan, size_t *len, zc_diag *diag)
{
    zc_buf model = {0};
    small_model(&model);
    expect_ok(diag, zc_compile_bytes(model.data, model.len, NULL, plan, len, diag));
    zc_buf_fini(&model);
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    void *plan;
    f->diag = zc_diag_create();
    compile_small(&plan, &f->len, f->diag);
    f->plan = plan;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    zc_free(f->plan);
    zc_diag_destroy(&f->diag);
    free(f);
    return 0;
}

static zc_status load(const void *data, size_t len, zc_diag *diag)
{
    zc_plan *plan = NULL;
    zc_status status = zc_plan_load_bytes(data, len, &plan, diag);
    assert_int_equal(status == ZC_OK, plan != NULL);
    zc_plan_destroy(&plan);
    return status;
}

static void test_describes_itself(void **state)
{
    fixture *f = *state;
    zc_plan *plan;
    zc_plan_info info;
    zc_io_info io;
    expect_ok(f->diag, zc_plan_load_bytes(f->plan, f->len, &plan, f->diag));
    assert_int_equal(zc_plan_info_get(plan, &info), ZC_OK);
    assert_int_equal(info.inputs, 1);
    assert_int_equal(info.outputs, 2);
    assert_string_equal(info.target, "cpu");
    assert_int_equal(strlen(info.model_sha256), 64);
    expect_ok(f->diag, zc_plan_input(plan, 0, &io, f->diag));
    assert_string_equal(io.name, "x");
    assert_string_equal(zc_elem_name(io.elem), "f32");
    assert_int_equal(io.rank, 2);
    assert_int_equal(io.dims[0], -1);
    assert_string_equal(io.dim_texts[0], "n");
    assert_int_equal(io.dims[1], 4);
    expect_ok(f->diag, zc_plan_output(plan, 1, &io, f->diag));
    assert_string_equal(io.name, "s");
    expect_fail(f->diag, zc_plan_output(plan, 2, &io, f->diag), ZC_ERR_ARG,
                "no such output (got 2, need < 2)");
    zc_plan_destroy(&plan);
    assert_null(plan);
}

static void test_compiling_twice_gives_equal_bytes(void **state)
{
    fixture *f = *state;
    void *again;
    size_t len;
    compile_small(&again, &len, f->diag);
    assert_int_equal(len, f->len);
    assert_memory_equal(again, f->plan, len);
    zc_free(again);
}

static void test_every_bit_flip_is_refused(void **state)
{
    fixture *f = *state;
    for (size_t bit = 0; bit < f->len * 8; bit++) {
        f->plan[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (load(f->plan, f->len, f->diag) == ZC_OK)
            fail_msg("the flip of bit %zu is accepted", bit);
        if (zc_diag_count(f->diag) != 1)
            fail_msg("the flip of bit %zu is refused without a word", bit);
        zc_diag_clear(f->diag);
        f->plan[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    expect_ok(f->diag, load(f->plan, f->len, f->diag));
}

static void test_every_truncation_is_refused(void **state)
{
    fixture *f = *state;
    for (size_t n = 0; n < f->len; n++) {
        const char *word = n >= 8 ? "truncated plan" : "not a zc plan";
        expect_fail(f->diag, load(f->plan, n, f->diag), ZC_ERR_FORMAT, word);
    }
}

static void test_trailing_bytes_are_refused(void **state)
{
    fixture *f = *state;
    uint8_t *longer = calloc(f->len + 1, 1);
    memcpy(longer, f->plan, f->len);
    expect_fail(f->diag, load(longer, f->len + 1, f->diag), ZC_ERR_FORMAT,
                "1 bytes follow the end of the plan");
    free(longer);
}

static void test_other_versions_are_refused(void **state)
{
    fixture *f = *state;
    zc_plan_header *h = (zc_plan_header *)f->plan;
    h->major = 77;
    expect_fail(f->diag, load(f->plan, f->len, f->diag), ZC_ERR_UNSUPPORTED,
                "plan format 77.0 was written by zc 0.1.0; this zc reads 8.x");
    h->major = ZC_PLAN_MAJOR;
}

static void test_a_model_is_no_plan(void **state)
{
    fixture *f = *state;
    zc_buf model = {0};
    small_model(&model);
    expect_fail(f->diag, load(model.data, model.len, f->diag), ZC_ERR_FORMAT, "not a zc plan");
    zc_buf_fini(&model);
}

static void test_a_failed_compile_keeps_the_old_file(void **state)
{
    fixture *f = *state;
    char dir[] = "/tmp/zc-test-XXXXXX", model[64], plan[64];
    assert_non_null(mkdtemp(dir));
    snprintf(model, sizeof model, "%s/bad.onnx", dir);
    snprintf(plan, sizeof plan, "%s/out.plan", dir);
    FILE *file = fopen(model, "wb");
    fputs("this is not a model", file);
    fclose(file);
    file = fopen(plan, "wb");
    fputs("precious", file);
    fclose(file);
    assert_int_not_equal(zc_compile_file(model, plan, NULL, f->diag), ZC_OK);
    char kept[16] = {0};
    file = fopen(plan, "rb");
    assert_int_equal(fread(kept, 1, sizeof kept - 1, file), 8);
    fclose(file);
    assert_string_equal(kept, "precious");
    assert_int_equal(remove(plan), 0);
    assert_int_equal(remove(model), 0);
    assert_int_equal(rmdir(dir), 0); /* no temporary is left */
    zc_diag_clear(f->diag);
}

/* Nothing tells a run what m is: neither input has a dimension that is m alone. */
static void test_dimension_without_value(void **state)
{
    static const char text[] = "graph \"g\" {\n"
                               "  input %x: f32[n,n+1] as \"x\"\n"
                               "  input %y: f32[3,2*m] as \"why\"\n"
                               "  %z: f32[3,2*m] = Relu(%y) @ \"Relu_0\"\n"
                               "  output %z as \"z\"\n}\n";
    fixture *f = *state;
    zc_graph *g = NULL;
    zc_arena arena;
    zc_program program;
    zc_arena_init(&arena, 0);
    expect_ok(f->diag, zc_graph_parse(text, sizeof text - 1, &g, f->diag));
    expect_fail(f->diag, zc_program_build(g, &arena, &program, f->diag), ZC_ERR_MODEL,
                "why: dimension 1 is 2*m, but no input has a dimension that is one of its symbols "
                "alone");
    zc_graph_destroy(&g);
    zc_arena_fini(&arena);
}

/* Pointwise work at the end of a step comes back from the plan: its text, and its operands behind
 * those of the operation, some of which are left out. */
static void test_epilogues_come_back(void **state)
{
    static const char text[] =
        "graph \"g\" {\n"
        "  input %x: f32[n,1,1,2] as \"x\"\n"
        "  input %r: f32[n,1,1,1] as \"r\"\n"
        "  const %w: f32[1,1,1,2] = [1, 10]\n"
        "  const %axes: i64[1] = [1]\n"
        "  %c: f32[n,1,1,1] = Conv(%x, %w, _, %r) {epilogue = \"x0 * x1\"} @ \"Conv_0\"\n"
        "  %s: f32[n,1,1,1] = ReduceSum(%c, %axes, %r) {epilogue = \"max(x0, x1) + 0.5\"} @ "
        "\"Sum_1\"\n"
        "  output %s as \"s\"\n}\n";
    fixture *f = *state;
    float x[] = {1, 2, 3, 4}, r[] = {2, -1};
    zc_view in[] = {{.elem = zc_elem_parse("f32"),
                     .rank = 4,
                     .dims = {2, 1, 1, 2},
                     .data = x,
                     .bytes = sizeof x},
                    {.elem = zc_elem_parse("f32"),
                     .rank = 4,
                     .dims = {2, 1, 1, 1},
                     .data = r,
                     .bytes = sizeof r}};
    zc_graph *g = NULL;
    zc_plan *plan = NULL;
    zc_session *session = NULL;
    zc_view out;
    void *bytes;
    size_t len;
    expect_ok(f->diag, zc_graph_parse(text, sizeof text - 1, &g, f->diag));
    expect_ok(f->diag, zc_compile_graph(g, NULL, &bytes, &len, f->diag));
    zc_graph_destroy(&g);
    expect_ok(f->diag, zc_plan_load_bytes(bytes, len, &plan, f->diag));
    expect_ok(f->diag, zc_session_create(plan, NULL, &session, f->diag));
    for (size_t i = 0; i < 2; i++)
        expect_ok(f->diag, zc_session_set_input(session, i, &in[i], false, f->diag));
    expect_ok(f->diag, zc_session_run(session, f->diag));
    expect_ok(f->diag, zc_session_output(session, 0, &out, f->diag));
    assert_int_equal(out.bytes, 2 * sizeof(float));
    assert_true(((const float *)out.data)[0] == 42.5f);
    assert_true(((const float *)out.data)[1] == -0.5f);
    zc_session_destroy(&session);
    zc_plan_destroy(&plan);
    zc_free(bytes);
}

/* Constants with the same bytes and shape are one. */
static void test_equal_constants_are_one(void **state)
{
    static const char text[] = "graph \"g\" {\n"
                               "  input %x: f32[2,2] as \"x\"\n"
                               "  const %a: f32[2,2] = [1, 2, 3, 4]\n"
                               "  const %same: f32[2,2] = [1, 2, 3, 4]\n"
                               "  const %other: f32[2,2] = [1, 2, 3, 5]\n"
                               "  const %tall: f32[1,2,2] = [1, 2, 3, 4]\n"
                               "  %p: f32[2,2] = Add(%x, %a) @ \"p\"\n"
                               "  %q: f32[2,2] = Mul(%p, %same) @ \"q\"\n"
                               "  %r: f32[2,2] = Mul(%q, %other) @ \"r\"\n"
                               "  %s: f32[1,2,2] = Mul(%r, %tall) @ \"s\"\n"
                               "  output %s as \"s\"\n}\n";
    fixture *f = *state;
    zc_graph *g = NULL;
    zc_arena arena;
    zc_program p;
    size_t constants = 0;
    zc_arena_init(&arena, 0);
    expect_ok(f->diag, zc_graph_parse(text, sizeof text - 1, &g, f->diag));
    expect_ok(f->diag, zc_program_build(g, &arena, &p, f->diag));
    for (uint32_t v = 0; v < p.nvalues; v++) constants += p.values[v].kind == ZC_P_CONST;
    assert_int_equal(constants, 3);
    assert_int_equal(p.nsteps, 4);
    assert_int_equal(p.steps[0].in[1], p.steps[1].in[1]);
    assert_int_not_equal(p.steps[0].in[1], p.steps[2].in[1]);
    assert_int_not_equal(p.steps[0].in[1], p.steps[3].in[1]);
    zc_graph_destroy(&g);
    zc_arena_fini(&arena);
}

/* What no run would take is no plan. */
static void test_a_plan_that_cannot_run_is_refused(void **state)
{
    static const char text[] =
        "graph \"g\" {\n"
        "  input %x: f32[n,2] as \"x\"\n"
        "  const %s: f32[2] = [1, 2]\n"
        "  %y: f32[n,2] = LayerNormalization(%x, %s) {epilogue = \"tanh(x0)\"} @ \"Norm_0\"\n"
        "  output %y as \"y\"\n}\n";
    fixture *f = *state;
    zc_graph *g = NULL;
    void *bytes;
    size_t len;
    expect_ok(f->diag, zc_graph_parse(text, sizeof text - 1, &g, f->diag));
    zc_node *norm = zc_node_at(g, 1);
    zc_vid out[] = {norm->out[0], 0};
    norm->out = out;
    norm->nout = 2;
    expect_fail(f->diag, zc_compile_graph(g, NULL, &bytes, &len, f->diag), ZC_ERR_MODEL,
                "Norm_0: an epilogue needs a node of one result");
    zc_graph_destroy(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_describes_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(test_compiling_twice_gives_equal_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_bit_flip_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_truncation_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_trailing_bytes_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_versions_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_model_is_no_plan, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_failed_compile_keeps_the_old_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dimension_without_value, setup, teardown),
        cmocka_unit_test_setup_teardown(test_epilogues_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_equal_constants_are_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_plan_that_cannot_run_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
