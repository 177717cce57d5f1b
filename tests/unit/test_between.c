/* Graphs between quantisations: passes change no bit of what they make, of products and of f16 no
 * byte by more than one; of bf16 none is more than one from what f32 makes of the same numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "driver/compile.h"
#include "ir/graph.h"
#include "passes/passes.h"
#include "support/expect.h"
#include "zc/zc.h"

enum { ELEMENTS = 96 };

/* %a and %b are f32[2,3,4,4] of bytes with different quanta; each makes %y: u8. */
static const char *const examples[] = {
    "  %p: f32[2,3,3,3] = MaxPool(%a) {kernel_shape = [2, 2]} @ \"pool\"\n"
    "  %t: f32[2,3,3,3] = Transpose(%p) {perm = [0, 2, 3, 1]} @ \"turn\"\n"
    "  %y: u8[2,3,3,3] = QuantizeLinear(%t, %s, %z) @ \"q\"\n",
    "  %p: f32[2,3,4,4] = MaxPool(%a) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]} @ \"pool\"\n"
    "  %y: u8[2,3,4,4] = QuantizeLinear(%p, %u, %n) @ \"q\"\n",
    "  %t: f32[2,6,4,4] = Concat(%a, %b) {axis = 1} @ \"join\"\n"
    "  %y: u8[2,6,4,4] = QuantizeLinear(%t, %s, %z) @ \"q\"\n",
    "  %t: f32[2,3,4,8] = Concat(%b, %a) {axis = -1} @ \"join\"\n"
    "  %y: u8[2,3,4,8] = QuantizeLinear(%t, %u, %n) @ \"q\"\n",
    "  %t: f32[2,3,4,4] = Add(%a, %b) @ \"sum\"\n"
    "  %r: f32[2,3,4,4] = Relu(%t) @ \"positive\"\n"
    "  %y: u8[2,3,4,4] = QuantizeLinear(%r, %u, %n) @ \"q\"\n",
    "  %t: f32[2,3,4,4] = Mul(%a, %b) @ \"product\"\n"
    "  %r: f32[2,3,4,4] = Relu(%t) @ \"positive\"\n"
    "  %y: u8[2,3,4,4] = QuantizeLinear(%r, %u, %z) @ \"q\"\n",
    "  %t: f32[2,3,4,4] = HardSwish(%a) @ \"swish\"\n"
    "  %m: u8[2,3,4,4] = QuantizeLinear(%t, %u, %z) @ \"q\"\n"
    "  %f: f32[2,3,4,4] = DequantizeLinear(%m, %u, %z) @ \"real\"\n"
    "  %r: f32[2,3,4,4] = Sub(%f, %b) @ \"difference\"\n"
    "  %y: u8[2,3,4,4] = QuantizeLinear(%r, %s, %z) @ \"q2\"\n",
    "  %t: f32[2,3,4,2] = Slice(%a, %i, %j, %k) @ \"part\"\n"
    "  %y: u8[2,3,4,2] = QuantizeLinear(%t, %s, %z) @ \"q\"\n",
    "  %t: f32[2,3,1,1] = GlobalAveragePool(%a) @ \"mean\"\n"
    "  %y: u8[2,3,1,1] = QuantizeLinear(%t, %u, %z) @ \"q\"\n",
};

/* Products, of which integers are another way to sum. */
static const char *const products[] = {
    "  %t: f32[2,3,4,4] = MatMul(%a, %b) @ \"product\"\n"
    "  %y: u8[2,3,4,4] = QuantizeLinear(%t, %cv, %z) @ \"q\"\n",
    "  %m: f32[2,3,4,4] = Transpose(%b) {perm = [0, 1, 3, 2]} @ \"turned\"\n"
    "  %t: f32[2,3,4,4] = MatMul(%a, %m) @ \"product\"\n"
    "  %y: u8[2,3,4,4] = QuantizeLinear(%t, %cv, %z) @ \"q\"\n",
    "  %t: f32[2,3,4,6] = MatMul(%a, %wf) @ \"product\"\n"
    "  %r: f32[2,3,4,6] = Add(%t, %cd) @ \"bias\"\n"
    "  %y: u8[2,3,4,6] = QuantizeLinear(%r, %s, %z) @ \"q\"\n",
    "  %t: f32[2,4,3,4] = Conv(%a, %ef, %cf) @ \"conv\"\n"
    "  %y: u8[2,4,3,4] = QuantizeLinear(%t, %s, %z) @ \"q\"\n",
    "  %g: f32[4] = DequantizeLinear(%ch, %cl) {axis = 0} @ \"bias\"\n"
    "  %t: f32[2,4,3,4] = Conv(%b, %ef, %g) @ \"conv\"\n"
    "  %y: u8[2,4,3,4] = QuantizeLinear(%t, %s, %z) @ \"q\"\n",
    "  %v: f32[6,4] = DequantizeLinear(%cu, %cm) {axis = 0} @ \"weights\"\n"
    "  %m: f32[4,6] = Transpose(%v) {perm = [1, 0]} @ \"turned\"\n"
    "  %t: f32[2,3,4,6] = MatMul(%a, %m) @ \"product\"\n"
    "  %y: u8[2,3,4,6] = QuantizeLinear(%t, %s, %z) @ \"q\"\n",
    /* As networks are trained: weights quantised in the graph, biases and residuals of floats. */
    "  %v: i8[4,3,1,1] = QuantizeLinear(%cg, %cl) {axis = 0, output_dtype = 3} @ \"codes\"\n"
    "  %vf: f32[4,3,1,1] = DequantizeLinear(%v, %cl) {axis = 0} @ \"weights\"\n"
    "  %t: f32[2,4,4,4] = Conv(%a, %vf, %cf) @ \"conv\"\n"
    "  %r: f32[2,4,4,4] = Relu(%t) @ \"positive\"\n"
    "  %m: i8[2,4,4,4] = QuantizeLinear(%r, %u, %cn) @ \"q\"\n"
    "  %f: f32[2,4,4,4] = DequantizeLinear(%m, %u, %cn) @ \"real\"\n"
    "  %c: f32[2,4,4,4] = Conv(%f, %hf) {group = 4, pads = [1, 1, 1, 1]} @ \"second\"\n"
    "  %e: f32[2,4,4,4] = Add(%c, %r) @ \"sum\"\n"
    "  %y: u8[2,4,4,4] = QuantizeLinear(%e, %cv, %z) @ \"again\"\n",
};

/* In front of the examples; the second text has the type that they have. All numbers are bf16's. */
static const char *const head[] = {
    "graph \"between\" {\n  input %in: f32[2,3,4,4] as \"x\"\n",
    "  const %s: f32[] = [0.30078125]\n  const %u: f32[] = [0.169921875]\n  const %cv: f32[] = "
    "[7]\n"
    "  const %cd: f32[6] = [1, 2, -3, 4, 5, 6]\n  const %cf: f32[4] = [1, 2, -3, 4]\n"
    "  const %cl: f32[4] = [0.010009765625, 0.0050048828125, 0.0034027099609375, "
    "0.01190185546875]\n"
    "  const %cm: f32[6] = [0.0625, 0.03125, 0.02001953125, 0.06982421875, 0.050048828125, "
    "0.0400390625]\n"
    "  const %n: u8[] = [0]\n  const %z: u8[] = [113]\n"
    "  const %i: i64[1] = [1]\n  const %j: i64[1] = [3]\n  const %k: i64[1] = [3]\n"
    "  const %cw: i8[4,6] = [1, -2, 3, 40, 5, 6, -70, 8, 9, 10, 11, 12, 13, 14, -15, 16, 17, 18, "
    "19, 20, -21, 22, 23, 24]\n"
    "  const %ce: i8[4,3,2,1] = [1, -2, 3, 4, 5, 6, 7, -8, 9, 10, 11, 12, 1, 2, 3, 4, 5, -6, 7, 8, "
    "9, 10, 11, -12]\n"
    "  const %cu: i8[6,4] = [1, -2, 3, 40, 5, 6, -70, 8, 9, 10, 11, 12, 13, 14, -15, 16, 17, 18, "
    "19, 20, -21, 22, 23, 24]\n"
    "  const %ch: i32[4] = [100, -200, 300, 4]\n"
    "  const %cg: f32[4,3,1,1] = [0.5, -0.25, 1, 0.125, 0.0625, -1, 0.75, 0.5, -0.5, 0.25, 1, -1]\n"
    "  const %cn: i8[] = [0]\n"
    "  const %cx: i8[4,1,3,3] = [1, -2, 3, 4, 5, 6, 7, -8, 9, 10, 11, 12, 1, 2, 3, 4, 5, -6, 7, 8, "
    "9, 10, 11, -12, 5, 4, 3, 2, 1, 0, -1, -2, -3, -4, -5, -6]\n"
    "  %x: f32[2,3,4,4] = Cast(%in) {to = f32} @ \"cast\"\n"
    "  %q: u8[2,3,4,4] = QuantizeLinear(%x, %s, %z) @ \"qa\"\n"
    "  %a: f32[2,3,4,4] = DequantizeLinear(%q, %s, %z) @ \"a\"\n"
    "  %o: u8[2,3,4,4] = QuantizeLinear(%x, %u, %n) @ \"qb\"\n"
    "  %b: f32[2,3,4,4] = DequantizeLinear(%o, %u, %n) @ \"b\"\n"
    "  %wf: f32[4,6] = DequantizeLinear(%cw, %cm) {axis = 1} @ \"w\"\n"
    "  %ef: f32[4,3,2,1] = DequantizeLinear(%ce, %cl) {axis = 0} @ \"e\"\n"
    "  %hf: f32[4,1,3,3] = DequantizeLinear(%cx, %cl) {axis = 0} @ \"h\"\n"};

/* The text, with `type` for f32. */
static void put_typed(const char *text, const char *type, zc_buf *out)
{
    for (const char *at; (at = strstr(text, "f32")) != NULL; text = at + 3) {
        zc_buf_append(out, text, (size_t)(at - text));
        zc_buf_puts(out, type);
    }
    zc_buf_puts(out, text);
}

static void put_graph(const char *example, const char *type, zc_buf *out)
{
    zc_buf_puts(out, head[0]);
    put_typed(head[1], type, out);
    put_typed(example, type, out);
    zc_buf_puts(out, "  output %y as \"y\"\n}\n");
}

static size_t run(const char *example, const char *type, bool plain, uint8_t y[2 * ELEMENTS])
{
    zc_diag *diag = zc_diag_create();
    zc_buf text = {0};
    zc_graph *g = NULL;
    zc_plan *plan = NULL;
    zc_session *session = NULL;
    float x[ELEMENTS];
    zc_view in = {.elem = zc_elem_parse("f32"), .data = x, .bytes = sizeof x}, out;
    zc_io_info io;
    void *bytes;
    size_t len;
    put_graph(example, type, &text);
    expect_ok(diag, zc_graph_parse(text.data, text.len, &g, diag));
    if (!plain) expect_ok(diag, zc_run_passes(g, NULL, diag));
    expect_ok(diag, zc_compile_graph(g, NULL, &bytes, &len, diag));
    expect_ok(diag, zc_plan_load_bytes(bytes, len, &plan, diag));
    expect_ok(diag, zc_plan_input(plan, 0, &io, diag));
    in.rank = io.rank;
    memcpy(in.dims, io.dims, sizeof in.dims);
    for (int i = 0; i < ELEMENTS; i++) x[i] = (float)(i * 37 % 97 - 48);
    x[5] = INFINITY;
    x[50] = NAN;
    expect_ok(diag, zc_session_create(plan, NULL, &session, diag));
    expect_ok(diag, zc_session_set_input(session, 0, &in, false, diag));
    expect_ok(diag, zc_session_run(session, diag));
    expect_ok(diag, zc_session_output(session, 0, &out, diag));
    const size_t n = out.bytes;
    assert_in_range(n, 6, 2 * ELEMENTS);
    memcpy(y, out.data, n);
    zc_session_destroy(&session);
    zc_plan_destroy(&plan);
    zc_graph_destroy(&g);
    zc_free(bytes);
    zc_buf_fini(&text);
    zc_diag_destroy(&diag);
    return n;
}

static void test_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(examples); i++) {
        uint8_t fused[2 * ELEMENTS], plain[2 * ELEMENTS];
        const size_t n = run(examples[i], "f32", false, fused);
        assert_int_equal(run(examples[i], "f32", true, plain), n);
        if (memcmp(fused, plain, n) != 0)
            fail_msg("other bytes than without passes:\n%s", examples[i]);
    }
}

/* exact: by the plain kernels. */
static void expect_near(const char *example, const char *type, const char *exact)
{
    uint8_t fused[2 * ELEMENTS], plain[2 * ELEMENTS];
    const size_t n = run(example, type, false, fused);
    assert_int_equal(run(example, exact, true, plain), n);
    for (size_t i = 0; i < n; i++)
        if (abs(fused[i] - plain[i]) > 1)
            fail_msg("%s, byte %d (got %d, need %d) of:\n%s", type, (int)i, fused[i], plain[i],
                     example);
}

static void expect_all_near(const char *type, const char *exact)
{
    for (size_t i = 0; i < ZC_COUNTOF(examples); i++) expect_near(examples[i], type, exact);
    for (size_t i = 0; i < ZC_COUNTOF(products); i++) expect_near(products[i], type, exact);
}

static void test_f32(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(products); i++) expect_near(products[i], "f32", "f32");
}

static void test_f16(void **state)
{
    (void)state;
    expect_all_near("f16", "f16");
}

static void test_bf16(void **state)
{
    (void)state;
    expect_all_near("bf16", "f32");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits), cmocka_unit_test(test_f32),
                                       cmocka_unit_test(test_f16), cmocka_unit_test(test_bf16)};
    return cmocka_run_group_tests_name("between", tests, NULL, NULL);
}
