/* Pointwise work at the end of a step, and at its beginning, on the CPU: the same bits as in steps
 * of their own, whichever kernels run them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "driver/compile.h"
#include "ir/graph.h"
#include "support/expect.h"
#include "zc/zc.h"

/* One operation over %a (the ReLU of x), made constants %w, %v and %k, and the work on its result
 * or its operand: over x0 and, when there is one, the extra operand. */
typedef struct example {
    const char *op, *operands, *left_out,
        *attrs;               /* left_out: of the optional operands that follow */
    const char *x, *w, *out;  /* shapes; x has 48 elements, the result MOST at most */
    const char *extra, *work; /* extra: %a, %w, %v or nothing */
} example;

enum { MOST = 768 };

static const example examples[] = {
    {"Conv", "%a, %w", ", _", "group = 1", "[1,4,4,3]", "[4,4,1,1]", "[1,4,4,3]", "%a", "x0 * x1"},
    {"Conv", "%a, %w, %v", "", "group = 1", "[1,4,4,3]", "[4,4,1,1]", "[1,4,4,3]", "",
     "max(x0, 0.25)"},
    {"ConvNhwc", "%a, %w", ", _, _", "group = 1", "[1,4,3,4]", "[4,4,1,1]", "[1,4,3,4]", "%v",
     "x0 * x1"},
    {"ConvNhwc", "%a, %w, %v, %a", "", "activation = \"Relu\"", "[1,4,3,4]", "[4,4,1,1]",
     "[1,4,3,4]", "%a", "x0 - x1"},
    {"ConvNhwc", "%a, %w", ", _, _", "group = 1", "[1,1,6,8]", "[256,8,1,4]", "[1,1,3,256]", "",
     "x0 * sigmoid(x0)"}, /* in parts of the columns */
    {"ConvTranspose", "%a, %w", ", _", "group = 1", "[1,4,4,3]", "[4,4,1,1]", "[1,4,4,3]", "%a",
     "x0 + x1"},
    {"AveragePool", "%a", "", "kernel_shape = [1,1]", "[1,4,4,3]", "[16]", "[1,4,4,3]", "%a",
     "x0 + x1"},
    {"MaxPool", "%a", "", "kernel_shape = [1,1]", "[1,4,4,3]", "[16]", "[1,4,4,3]", "%a",
     "x0 + x1"},
    {"GlobalAveragePool", "%a", "", "", "[1,4,4,3]", "[16]", "[1,4,1,1]", "", "x0 * 3"},
    {"BatchNormalization", "%a, %v, %v, %v, %v", "", "", "[3,4,4]", "[16]", "[3,4,4]", "%a",
     "x0 * x1"},
    {"InstanceNormalization", "%a, %v, %v", "", "", "[3,4,4]", "[16]", "[3,4,4]", "%a", "x0 * x1"},
    {"GroupNormalization", "%a, %v, %v", "", "num_groups = 2", "[3,4,4]", "[16]", "[3,4,4]", "",
     "x0 * sigmoid(x0)"},
    {"MsGroupNorm", "%a, %v, %v", "", "groups = 2", "[1,4,3,4]", "[16]", "[1,4,3,4]", "%v",
     "x0 + x1"},
    {"LayerNormalization", "%a, %v", ", _", "", "[3,4,4]", "[16]", "[3,4,4]", "%a", "x0 * x1"},
    {"RMSNormalization", "%a, %v", "", "", "[3,4,4]", "[16]", "[3,4,4]", "%a", "x0 * x1"},
    {"SkipLayerNormalization", "%a, %a, %v", ", _, _", "", "[3,4,4]", "[16]", "[3,4,4]", "%v",
     "x0 - x1"},
    {"SkipSimplifiedLayerNormalization", "%a, %a, %v", ", _", "", "[3,4,4]", "[16]", "[3,4,4]",
     "%a", "x0 - x1"},
    {"Softmax", "%a", "", "", "[3,4,4]", "[16]", "[3,4,4]", "%a", "x0 * x1"},
    {"LogSoftmax", "%a", "", "axis = 1", "[3,4,4]", "[16]", "[3,4,4]", "%v", "x0 * x1"},
    {"ReduceSum", "%a, %k", "", "", "[3,4,4]", "[16]", "[3,1,4]", "%v", "x0 / x1"},
    {"ReduceMax", "%a, %k", "", "", "[3,4,4]", "[16]", "[3,1,4]", "", "sqrt(x0)"},
    {"Resize", "%a, _, %s", ", _", "mode = \"linear\"", "[3,4,4]", "[16]", "[3,4,4]", "%a",
     "x0 * x1"},
    {"Attention", "%a, %a, %a", ", _, _, _, _, _, _, _, _, _, _, _, _, _", "", "[1,3,4,4]", "[16]",
     "[1,3,4,4]", "%a", "x0 * x1"},
};

static const example prologues[] = {
    {"ReduceSum", "%a, %k", "", "", "[3,4,4]", "[16]", "[3,1,4]", "%v", "x0 / x1"},
    {"ReduceLogSumExp", "%a", ", _", "keepdims = 0", "[3,4,4]", "[16]", "[]", "%v", "x0 * x1"},
    {"ReduceMax", "%a, %k", "", "", "[3,4,4]", "[16]", "[3,1,4]", "", "abs(x0 - 2)"},
    {"Softmax", "%a", "", "", "[3,4,4]", "[16]", "[3,4,4]", "%v", "x0 * 0.5 + x1"},
    {"LogSoftmax", "%a", "", "axis = 1", "[3,4,4]", "[16]", "[3,4,4]", "%x", "x0 * x1"},
    {"LpNormalization", "%a", "", "p = 1", "[3,4,4]", "[16]", "[3,4,4]", "", "x0 + 1"},
    {"LayerNormalization", "%a, %v", ", _", "", "[3,4,4]", "[16]", "[3,4,4]", "%x", "x0 * x1"},
    {"RMSNormalization", "%a, %v", "", "", "[3,4,4]", "[16]", "[3,4,4]", "", "x0 * sigmoid(x0)"},
    {"SkipLayerNormalization", "%a, %x, %v", ", _, _", "", "[3,4,4]", "[16]", "[3,4,4]", "%v",
     "x0 - x1"},
    {"BatchNormalization", "%a, %v, %v, %v, %v", "", "", "[3,4,4]", "[16]", "[3,4,4]", "%x",
     "x0 * x1"},
    {"GroupNormalization", "%a, %v, %v", "", "num_groups = 2", "[3,4,4]", "[16]", "[3,4,4]", "%v",
     "x0 + x1"},
};

/* Of a shape "[3,4,4]". */
static long elements(const char *shape)
{
    long n = 1;
    for (const char *at = shape + 1; *at && *at != ']';) {
        char *end;
        n *= strtol(at, &end, 10);
        at = *end == ',' ? end + 1 : end;
    }
    return n;
}

/* What comes before the operation and its work. */
static void put_operands(const example *e, zc_buf *out)
{
    zc_buf_printf(out, "graph \"g\" {\n  input %%x: f32%s as \"x\"\n  const %%w: f32%s = [", e->x,
                  e->w);
    for (long i = 0, n = elements(e->w); i < n; i++)
        zc_buf_printf(out, "%s%g", i ? ", " : "", (double)(i * 7 % 11 - 4) * 0.125);
    zc_buf_printf(out,
                  "]\n  const %%v: f32[4] = [1, 2, 0.5, 0.75]\n  const %%k: i64[1] = [1]\n"
                  "  const %%s: f32[3] = [1, 1, 1]\n"
                  "  %%a: f32%s = Relu(%%x) @ \"Relu_0\"\n",
                  e->x);
}

static void put_prologue(const example *e, bool fused, zc_buf *out)
{
    const char *comma = *e->extra ? ", " : "", *more = *e->attrs ? ", " : "";
    put_operands(e, out);
    if (fused)
        zc_buf_printf(out,
                      "  %%y: f32%s = %s(%s%s%s%s) {%s%sprologue = \"%s\", prologue_inputs = %d} "
                      "@ \"Op_2\"\n",
                      e->out, e->op, e->operands, *e->extra ? e->left_out : "", comma, e->extra,
                      e->attrs, more, e->work, *e->extra != 0);
    else
        zc_buf_printf(out,
                      "  %%t: f32%s = Pointwise(%%a%s%s) {expr = \"%s\"} @ \"Work_1\"\n"
                      "  %%y: f32%s = %s(%%t%s)%s%s%s @ \"Op_2\"\n",
                      e->x, comma, e->extra, e->work, e->out, e->op, e->operands + 2,
                      *e->attrs ? " {" : "", e->attrs, *e->attrs ? "}" : "");
    zc_buf_puts(out, "  output %y as \"y\"\n}\n");
}

static void put_graph(const example *e, bool fused, zc_buf *out)
{
    const char *comma = *e->extra ? ", " : "", *more = *e->attrs ? ", " : "";
    put_operands(e, out);
    if (fused)
        zc_buf_printf(out, "  %%y: f32%s = %s(%s%s%s%s) {%s%sepilogue = \"%s\"} @ \"Op_1\"\n",
                      e->out, e->op, e->operands, *e->extra ? e->left_out : "", comma, e->extra,
                      e->attrs, more, e->work);
    else
        zc_buf_printf(out,
                      "  %%t: f32%s = %s(%s)%s%s%s @ \"Op_1\"\n  %%y: f32%s = Pointwise(%%t%s%s) "
                      "{expr = \"%s\"} @ \"Work_2\"\n",
                      e->out, e->op, e->operands, *e->attrs ? " {" : "", e->attrs,
                      *e->attrs ? "}" : "", e->out, comma, e->extra, e->work);
    zc_buf_puts(out, "  output %y as \"y\"\n}\n");
}

typedef void (*putter)(const example *e, bool fused, zc_buf *out);

static void run(const example *e, putter put, bool fused, float y[MOST], size_t *n)
{
    zc_diag *diag = zc_diag_create();
    zc_buf text = {0};
    zc_graph *g = NULL;
    zc_plan *plan = NULL;
    zc_session *session = NULL;
    zc_view in = {.elem = zc_elem_parse("f32")}, out;
    zc_io_info io;
    float x[48];
    void *bytes;
    size_t len;
    put(e, fused, &text);
    expect_ok(diag, zc_graph_parse(text.data, text.len, &g, diag));
    expect_ok(diag, zc_compile_graph(g, NULL, &bytes, &len, diag));
    expect_ok(diag, zc_plan_load_bytes(bytes, len, &plan, diag));
    expect_ok(diag, zc_plan_input(plan, 0, &io, diag));
    in.rank = io.rank;
    memcpy(in.dims, io.dims, sizeof in.dims);
    for (int i = 0; i < 48; i++) x[i] = (float)(i * 13 % 29 - 9) * 0.25f;
    in.data = x;
    in.bytes = sizeof x;
    expect_ok(diag, zc_session_create(plan, NULL, &session, diag));
    expect_ok(diag, zc_session_set_input(session, 0, &in, false, diag));
    expect_ok(diag, zc_session_run(session, diag));
    expect_ok(diag, zc_session_output(session, 0, &out, diag));
    assert_in_range(out.bytes, sizeof(float), MOST * sizeof *y);
    *n = out.bytes;
    memcpy(y, out.data, out.bytes);
    zc_session_destroy(&session);
    zc_plan_destroy(&plan);
    zc_graph_destroy(&g);
    zc_free(bytes);
    zc_buf_fini(&text);
    zc_diag_destroy(&diag);
}

static void expect_same_bits(const example *list, size_t count, putter put)
{
    for (size_t i = 0; i < count; i++) {
        float one[MOST], two[MOST];
        size_t n, m;
        run(&list[i], put, true, one, &n);
        run(&list[i], put, false, two, &m);
        if (n != m || memcmp(one, two, n) != 0)
            fail_msg("%s(%s): another result than that of two steps", list[i].op, list[i].operands);
    }
}

static void test_epilogues(void **state)
{
    (void)state;
    expect_same_bits(examples, ZC_COUNTOF(examples), put_graph);
}

static void test_prologues(void **state)
{
    (void)state;
    expect_same_bits(prologues, ZC_COUNTOF(prologues), put_prologue);
}

static void expect_refused(const char *node, const char *message)
{
    zc_diag *diag = zc_diag_create();
    zc_buf text = {0};
    zc_graph *g = NULL;
    zc_buf_printf(&text,
                  "graph \"g\" {\n  input %%x: f32[3,4] as \"x\"\n  input %%b: bool[3,4] as \"b\"\n"
                  "  input %%l: f32[2,3,4] as \"l\"\n  input %%h: f16[3,4] as \"h\"\n"
                  "  input %%k: f16[4,4] as \"k\"\n  %%y: f32[3,4] = %s @ \"Op_0\"\n"
                  "  output %%y as \"y\"\n}\n",
                  node);
    expect_fail(diag, zc_graph_parse(text.data, text.len, &g, diag), ZC_ERR_MODEL, message);
    zc_graph_destroy(&g);
    zc_buf_fini(&text);
    zc_diag_destroy(&diag);
}

/* What no pass makes, but a file may say. */
static void test_mistakes(void **state)
{
    (void)state;
    expect_refused("Softmax(%x) {prologue = \"x0 +\"}", "column 5: the expression ends too early");
    expect_refused("Softmax(%x) {prologue = \"x0 > 0\"}",
                   "the prologue changes the element type (got bool, need f32)");
    expect_refused("Softmax(%x) {prologue = \"x0, x0\"}", "text follows the expression");
    expect_refused("Softmax(%x) {prologue = \"x0 + x1\"}", "no such name");
    expect_refused("Softmax(%x) {prologue = \"x0 + x1\", prologue_inputs = 1}",
                   "the prologue has a wrong number of inputs (got 0, need 1)");
    expect_refused("Softmax(%x, %x) {prologue = \"x0\"}", "wrong number of inputs");
    expect_refused("Softmax(%x, _) {prologue = \"x0 + x1\", prologue_inputs = 1}",
                   "prologue input 1 is left out");
    expect_refused("Softmax(%x, %l) {prologue = \"x0 + x1\", prologue_inputs = 1}",
                   "input 1 is larger than the operand");
    expect_refused("Softmax(%x, %x) {prologue = \"x0\", prologue_inputs = -9}",
                   "wrong number of inputs");
    expect_refused("Softmax(%x, %b) {epilogue = \"x1\"}",
                   "the epilogue changes the element type (got bool, need f32)");
    expect_refused("MatMul(%h, %k) {epilogue = \"x0 > 0\"}",
                   "the epilogue changes the element type (got bool, need f16)");
    expect_refused("MatMul(%h, %k, %h) {epilogue = \"f32(x0 + x1)\"}",
                   "operands of different types (got f32 and f16)");
    expect_refused("Softmax(%h) {epilogue = \"f32(x0)\"}",
                   "the epilogue changes the element type (got f32, need f16)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_epilogues),
        cmocka_unit_test(test_prologues),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
