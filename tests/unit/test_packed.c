/* PackedLinear: what opt_packed makes of dequantised matrices gives the same numbers, and operands
 * that do not fit are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cpu/kernel.h"
#include "passes/passes.h"
#include "support/expect.h"
#include "support/graph_run.h"
#include "support/op_text.h"

enum { N = 32, K = 128, ROWS = 3, VALUES_MAX = 32 };

static unsigned seed = 5;

/* Of a whole number from low to high. */
static int drawn(int low, int high)
{
    seed = seed * 1664525u + 1013904223u;
    return low + (int)((seed >> 8) % (unsigned)(high - low + 1));
}

typedef struct form {
    const char *type;
    int low, high;   /* codes */
    int rows, block; /* is the matrix N x K? 0: a scale a column; -1: one */
    bool zero;
} form;

static void put_const(zc_buf *b, const char *name, const char *type, int d0, int d1, int low,
                      int high, const char *after)
{
    zc_buf_printf(b, d1 ? "const %%%s: %s[%d,%d] = [" : "const %%%s: %s[%d] = [", name, type, d0,
                  d1);
    for (int i = 0; i < d0 * (d1 ? d1 : 1); i++)
        zc_buf_printf(b, "%s%d%s", i ? ", " : "", drawn(low, high), after);
    zc_buf_puts(b, "]\n");
}

/* A product by a dequantised matrix. */
static void put_model(zc_buf *b, const form *f)
{
    const int d0 = f->rows ? N : K, d1 = f->rows ? K : N;
    const int s0 = f->block > 0 ? (f->rows ? N : K / f->block) : f->block < 0 ? 1 : N;
    const int s1 = f->block > 0 ? (f->rows ? K / f->block : N) : 0;
    const int axis = f->block > 0 ? f->rows : 1 - f->rows;
    zc_buf_printf(b, "graph \"g\" {\ninput %%x: f32[%d,%d] as \"x\"\n", ROWS, K);
    put_const(b, "w", f->type, d0, d1, f->low, f->high, "");
    put_const(b, "s", "f32", s0, s1, 1, 9, ".5");
    if (f->zero) put_const(b, "z", f->type, s0, s1, f->low, f->high, "");
    put_const(b, "b", "f32", N, 0, -5, 5, "");
    zc_buf_printf(b,
                  "%%wf: f32[%d,%d] = DequantizeLinear(%%w, %%s%s) {axis = %d, block_size = %d} @ "
                  "\"dequantise\"\n",
                  d0, d1, f->zero ? ", %z" : "", axis, f->block > 0 ? f->block : 0);
    zc_buf_printf(b,
                  "%%y: f32[%d,%d] = Linear(%%x, %%wf, %%b) {transB = %d} @ \"product\"\noutput "
                  "%%y as \"y\"\n}\n",
                  ROWS, N, f->rows);
}

/* The result, of rows that are always the same. */
static void compute(const zc_graph *g, double *y)
{
    float x[ROWS * K];
    zc_tensor values[VALUES_MAX] = {{0}};
    const zc_vid in = g->top.params.data[0], out = g->top.outputs.data[0];
    for (int i = 0; i < ROWS * K; i++) x[i] = (float)(i * 37 % 101 - 50) / 16;
    assert_true(g->values.len <= VALUES_MAX);
    values[in] = (zc_tensor){.dtype = ZC_F32, .rank = 2, .dims = {ROWS, K}, .data = x};
    graph_run("packed", g, true, values);
    for (int i = 0; i < ROWS * N; i++) y[i] = zc_get(&values[out], i);
    values[in] = (zc_tensor){0};
    graph_run_free(g, 0, values);
}

static zc_graph *parse(const zc_buf *text, zc_diag *diag)
{
    zc_graph *g = NULL;
    expect_ok(diag, zc_graph_parse(text->data, text->len, &g, diag));
    return g;
}

static void check(const form *f)
{
    static const zc_rule_target target = {.cuda = true, .sm = 90, .sm_most = 90};
    const zc_pass_options options = {.precision = ZC_F16, .target = &target};
    zc_diag *diag = zc_diag_create();
    zc_buf text = {0};
    double plain[ROWS * N], packed[ROWS * N];
    put_model(&text, f);
    zc_graph *g = parse(&text, diag);
    compute(g, plain);
    expect_ok(diag, zc_run_pass(g, "opt_packed", &options, diag));
    assert_int_equal(g->top.nodes.len, 1);
    assert_int_equal(zc_node_at(g, g->top.nodes.data[0])->op, ZC_OP_PackedLinear);
    compute(g, packed);
    for (int i = 0; i < ROWS * N; i++)
        if (!(fabs(plain[i] - packed[i]) <= 1e-5 * (1 + fabs(plain[i]))))
            fail_msg("%s, block %d: element %d is %g, need %g", f->type, f->block, i, packed[i],
                     plain[i]);
    zc_graph_destroy(&g);
    zc_buf_fini(&text);
    zc_diag_destroy(&diag);
}

static void packs(void **state)
{
    (void)state;
    static const form types[] = {{.type = "i4", .low = -8, .high = 7},
                                 {.type = "u4", .low = 0, .high = 15},
                                 {.type = "i8", .low = -128, .high = 127},
                                 {.type = "u8", .low = 0, .high = 255}};
    static const int blocks[] = {-1, 0, 16, 32, 64, 128};
    for (size_t t = 0; t < ZC_COUNTOF(types); t++)
        for (size_t b = 0; b < ZC_COUNTOF(blocks); b++)
            for (int way = 0; way < 4; way++) {
                form f = types[t];
                f.block = blocks[b];
                f.rows = way % 2;
                f.zero = way / 2;
                check(&f);
            }
}

/* Rows that are not certain, of which both factors are bytes: these are multiplied. */
static void codes_of_both(void **state)
{
    static const zc_rule_target target = {.cuda = true, .sm = 90, .sm_most = 90};
    const zc_pass_options options = {.precision = ZC_F16, .target = &target};
    zc_diag *diag = zc_diag_create();
    zc_buf text = {0};
    int scaled = 0;
    (void)state;
    zc_buf_puts(&text, "graph \"g\" {\ninput %x: f32[n,2,32] as \"x\"\nconst %q: f32[] = [0.5]\n");
    put_const(&text, "w", "i8", 32, 16, -128, 127, "");
    put_const(&text, "s", "f32", 16, 0, 1, 9, ".5");
    zc_buf_puts(&text, "const %z: u8[] = [7]\n%c: u8[n,2,32] = QuantizeLinear(%x, %q, %z) @ \"c\"\n"
                       "%d: f32[n,2,32] = DequantizeLinear(%c, %q, %z) @ \"d\"\n"
                       "%f: f32[32,16] = DequantizeLinear(%w, %s) {axis = 1} @ \"f\"\n"
                       "%y: f32[n,2,16] = MatMul(%d, %f) @ \"y\"\noutput %y as \"y\"\n}\n");
    zc_graph *g = parse(&text, diag);
    expect_ok(diag, zc_run_passes(g, &options, diag));
    for (size_t i = 0; i < g->top.nodes.len; i++) {
        const zc_op op = zc_node_at(g, g->top.nodes.data[i])->op;
        assert_int_not_equal(op, ZC_OP_PackedLinear);
        scaled += op == ZC_OP_ScaledLinear;
    }
    assert_int_equal(scaled, 1);
    zc_graph_destroy(&g);
    zc_buf_fini(&text);
    zc_diag_destroy(&diag);
}

/* FP4 in blocks, by scales that are powers of two (MXFP4) or not: numbers of the codes are whole
 * halves, so that the sums of both roads are exact but for what scales round. */
static void fp4_of(const char *scale, const char *zero, bool packs)
{
    static const zc_rule_target target = {.cuda = true, .sm = 90, .sm_most = 90};
    const zc_pass_options options = {.precision = ZC_F16, .target = &target};
    static const double numbers[] = {0, 0.5, -1, 1.5, 2, -3, 4, -6};
    zc_diag *diag = zc_diag_create();
    zc_buf text = {0};
    double plain[ROWS * N], codes[ROWS * N];
    zc_buf_printf(&text, "graph \"g\" {\ninput %%x: f32[%d,%d] as \"x\"\n", ROWS, K);
    zc_buf_printf(&text, "const %%w: f4e2m1[%d,%d] = [0", N, K);
    for (int i = 1; i < N * K; i++) zc_buf_printf(&text, ", %g", numbers[drawn(0, 7)]);
    zc_buf_printf(&text, "]\nconst %%s: %s", scale);
    for (int i = 1; i < N * 4; i++) zc_buf_printf(&text, ", %d", 1 << drawn(0, 3));
    zc_buf_puts(&text, "]\n");
    if (*zero) {
        zc_buf_printf(&text, "const %%z: f4e2m1[%d,4] = [%s", N, zero);
        for (int i = 1; i < N * 4; i++) zc_buf_puts(&text, ", 0");
        zc_buf_puts(&text, "]\n");
    }
    zc_buf_printf(&text,
                  "%%wf: f32[%d,%d] = DequantizeLinear(%%w, %%s%s) {axis = 1, block_size = "
                  "32, output_dtype = 1} @ \"d\"\n%%y: f32[%d,%d] = Linear(%%x, %%wf) {transB "
                  "= 1} @ \"y\"\noutput %%y as \"y\"\n}\n",
                  N, K, *zero ? ", %z" : "", ROWS, N);
    zc_graph *g = parse(&text, diag);
    compute(g, plain);
    expect_ok(diag, zc_run_pass(g, "opt_packed", &options, diag));
    expect_ok(diag, zc_run_pass(g, "opt_fold", &options, diag));
    assert_int_equal(g->top.nodes.len, 1);
    const zc_node *product = zc_node_at(g, g->top.nodes.data[0]);
    assert_int_equal(product->op, packs ? ZC_OP_PackedLinear : ZC_OP_Linear);
    if (packs) assert_int_equal(zc_val(g, product->in[1])->type.dtype, ZC_F4E2M1);
    compute(g, codes);
    for (int i = 0; i < ROWS * N; i++)
        assert_true(fabs(codes[i] - plain[i]) <= 1e-5 * (1 + fabs(plain[i])));
    zc_graph_destroy(&g);
    zc_buf_fini(&text);
    zc_diag_destroy(&diag);
}

static void fp4(void **state)
{
    (void)state;
    op_eval("DequantizeLinear", "axis=1 block_size=2 output_dtype=1",
            "f4e2m1[1,4] 0.5 -6 3 1; f8e8m0[1,2] 0.5 4", "f32[1,4] 0.25 -3 12 4", 0);
    op_eval("DequantizeLinear", "axis=0 block_size=2", "f4e2m1[2,2] 0.5 -6 3 1; f16[1,2] 0.75 3",
            "f16[2,2] 0.375 -18 2.25 3", 0);
    fp4_of("f8e8m0[32,4] = [0.5", "", true);
    fp4_of("f32[32,4] = [0.3", "", true);
    fp4_of("f32[32,4] = [0.3", "0", true);
    fp4_of("f32[32,4] = [0.3", "1.5", false); /* a zero point that is none */
    fp4_of("f32[32,4] = [1e30", "", false);   /* sums times that may be infinite */
}

/* NVFP4: scales of blocks of 16 are e4m3, and count what one for all says. */
static void nvfp4(void **state)
{
    static const zc_rule_target target = {.cuda = true, .sm = 90, .sm_most = 90};
    const zc_pass_options options = {.precision = ZC_F16, .target = &target};
    zc_diag *diag = zc_diag_create();
    zc_buf text = {0};
    double plain[ROWS * N], codes[ROWS * N];
    (void)state;
    zc_buf_printf(&text, "graph \"g\" {\ninput %%x: f32[%d,%d] as \"x\"\n", ROWS, K);
    put_const(&text, "w", "f4e2m1", N, K, -4, 4, "");
    put_const(&text, "c", "f8e4m3fn", N, K / 16, 1, 15, "");
    zc_buf_printf(&text,
                  "const %%all: f32[] = [0.07]\n"
                  "%%s: f32[%d,%d] = DequantizeLinear(%%c, %%all) @ \"scales\"\n"
                  "%%f: f32[%d,%d] = DequantizeLinear(%%w, %%s) {axis = 1, block_size = 16} @ "
                  "\"f\"\n%%y: f32[%d,%d] = Linear(%%x, %%f) {transB = 1} @ \"y\"\n"
                  "output %%y as \"y\"\n}\n",
                  N, K / 16, N, K, ROWS, N);
    zc_graph *g = parse(&text, diag);
    compute(g, plain);
    expect_ok(diag, zc_run_pass(g, "opt_packed", &options, diag));
    expect_ok(diag, zc_run_pass(g, "opt_dce", &options, diag));
    assert_int_equal(g->top.nodes.len, 1);
    const zc_node *product = zc_node_at(g, g->top.nodes.data[0]);
    assert_int_equal(product->op, ZC_OP_PackedLinear);
    assert_int_equal(zc_val(g, product->in[2])->type.dtype, ZC_F8E4M3FN);
    compute(g, codes);
    for (int i = 0; i < ROWS * N; i++)
        assert_true(fabs(codes[i] - plain[i]) <= 1e-5 * (1 + fabs(plain[i])));
    zc_graph_destroy(&g);
    zc_buf_fini(&text);
    zc_diag_destroy(&diag);
}

/* One product of two matrices, of whose halves one gates the other, with the same numbers. */
static void gates(void **state)
{
    static const zc_rule_target target = {.cuda = true, .sm = 90, .sm_most = 90};
    const zc_pass_options options = {.precision = ZC_F16, .target = &target};
    (void)state;
    for (int second = 0; second < 2; second++) {
        zc_diag *diag = zc_diag_create();
        zc_buf text = {0};
        double plain[ROWS * N], gated[ROWS * N];
        zc_buf_printf(&text, "graph \"g\" {\ninput %%x: f32[%d,%d] as \"x\"\n", ROWS, K);
        put_const(&text, "w", "u4", 2 * N, K, 0, 15, "");
        put_const(&text, "s", "f32", 2 * N, K / 32, 1, 9, ".5");
        put_const(&text, "z", "u4", 2 * N, K / 32, 0, 15, "");
        zc_buf_printf(&text,
                      "%%f: f32[%d,%d] = DequantizeLinear(%%w, %%s, %%z) {axis = 1, block_size = "
                      "32} @ \"f\"\n%%p: f32[%d,%d] = Linear(%%x, %%f) {transB = 1} @ \"p\"\n"
                      "%%g: f32[%d,%d], %%u: f32[%d,%d] = Split(%%p) {axis = 1, num_outputs = 2} @ "
                      "\"split\"\n%%a: f32[%d,%d] = Sigmoid(%%%s) @ \"a\"\n"
                      "%%y: f32[%d,%d] = Mul(%%%s, %%a) @ \"y\"\noutput %%y as \"y\"\n}\n",
                      2 * N, K, ROWS, 2 * N, ROWS, N, ROWS, N, ROWS, N, second ? "u" : "g", ROWS, N,
                      second ? "g" : "u");
        zc_graph *g = parse(&text, diag);
        compute(g, plain);
        expect_ok(diag, zc_run_pass(g, "opt_packed", &options, diag));
        expect_ok(diag, zc_run_pass(g, "opt_gate", &options, diag));
        assert_int_equal(g->top.nodes.len, 1);
        assert_int_equal(zc_node_at(g, g->top.nodes.data[0])->op, ZC_OP_PackedLinear);
        compute(g, gated);
        for (int i = 0; i < ROWS * N; i++)
            assert_true(fabs(gated[i] - plain[i]) <= 1e-4 * (1 + fabs(plain[i])));
        zc_graph_destroy(&g);
        zc_buf_fini(&text);
        zc_diag_destroy(&diag);
    }
}

static void shapes(void **state)
{
    (void)state;
    op_infer("PackedLinear", "", "f16[n,s,64]; i4[3,2,16,32]; f16[3,2,16]", "f16[n,s,48]");
    op_infer("PackedLinear", "", "f16[n,64]; f4e2m1[3,2,16,32]; f8e8m0[3,2,16]", "f16[n,48]");
    op_infer("PackedLinear", "", "f16[n,96]; u4[3,3,16,32]; f16[3,6,16]; u8[3,6,16]", "f16[n,48]");
    op_infer("PackedLinear", "", "bf16[n,32]; u8[1,2,16,16]; f32[1,1,16]; u8[1,1,16]; bf16[16]",
             "bf16[n,16]");
    static const struct {
        const char *in, *why;
    } refused[] = {
        {"f16[n,64]; i4[48,64]; f16[3,2,16]", "codes are not in pieces"},
        {"f16[n,64]; i4[0,2,16,32]; f16[0,2,16]", "codes are not in pieces"},
        {"f16[n,64]; i4[m,2,16,32]; f16[3,2,16]", "codes are not in pieces"},
        {"f16[n,64]; i4[4611686018427387904,2,16,32]; f16[3,2,16]", "codes are not in pieces"},
        {"f16[n,65]; i4[3,2,16,32]; f16[3,2,16]", "inner dimensions of the product"},
        {"f16[n,96]; i4[3,3,16,32]; f16[3,4,16]", "blocks that divide 6"},
        {"f16[n,64]; i4[3,2,16,32]; f16[3,0,16]", "blocks that divide 4"},
        {"f16[n,64]; i4[3,2,16,32]; f16[2,2,16]", "input 2 does not fit the codes"},
        {"f16[n,64]; i4[3,2,16,32]; f16[3,2,16]; i8[3,1,16]", "blocks of scale and zero point"},
        {"f16[n,64]; i4[3,2,16,32]; f16[3,2,16]; u8[3,2,16]", "element type of input 3"},
        {"f16[n,64]; i4[3,2,16,32]; bf16[3,2,16]", "element type of the scales"},
        {"f16[n,64]; i2[3,2,16,32]; f16[3,2,16]", "element type of the codes"},
        {"f16[n,64]; f4e2m1[3,2,16,32]; f16[3,2,16]; i8[3,2,16]", "codes that have none"},
        {"f16[n,64]; f4e2m1[3,2,16,32]; f8e5m2[3,2,16]", "element type of the scales"},
        {"f16[n,64]; i4[3,2,16,32]; f16[3,2,16]; -; f16[47]", "length of scale or bias"},
    };
    for (size_t i = 0; i < ZC_COUNTOF(refused); i++)
        op_infer_fails("PackedLinear", "", refused[i].in, 1, refused[i].why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(packs), cmocka_unit_test(codes_of_both),
                                       cmocka_unit_test(fp4),   cmocka_unit_test(nvfp4),
                                       cmocka_unit_test(gates), cmocka_unit_test(shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
