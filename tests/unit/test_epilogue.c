/* Pointwise work at the end of a step, on the CPU: the same bits as the step and the work after it,
 * whichever kernels run the two. */
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

/* One operation over %a (the ReLU of x), made constants %w, %v and %k, and the work on its result:
 * over x0 and, when there is one, %e. */
typedef struct example {
    const char *op, *operands, *left_out,
        *attrs;               /* left_out: of the optional operands that follow */
    const char *x, *w, *out;  /* shapes; x has 48 elements, w 16 */
    const char *extra, *work; /* extra: %a, %w, %v or nothing */
} example;

static const example examples[] = {
    {"Conv", "%a, %w", ", _", "group = 1", "[1,4,4,3]", "[4,4,1,1]", "[1,4,4,3]", "%a", "x0 * x1"},
    {"Conv", "%a, %w, %v", "", "group = 1", "[1,4,4,3]", "[4,4,1,1]", "[1,4,4,3]", "",
     "max(x0, 0.25)"},
    {"ConvNhwc", "%a, %w", ", _, _", "group = 1", "[1,4,3,4]", "[4,4,1,1]", "[1,4,3,4]", "%v",
     "x0 * x1"},
    {"ConvNhwc", "%a, %w, %v, %a", "", "activation = \"Relu\"", "[1,4,3,4]", "[4,4,1,1]",
     "[1,4,3,4]", "%a", "x0 - x1"},
    {"ConvTranspose", "%a, %w", ", _", "group = 1", "[1,4,4,3]", "[4,4,1,1]", "[1,4,4,3]", "%a",
     "x0 + x1"},
    {"FusedConv", "%a, %w, %v, %a", "", "activation = \"Relu\"", "[1,4,4,3]", "[4,4,1,1]",
     "[1,4,4,3]", "%a", "x0 * sigmoid(x1)"},
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
    {"Attention", "%a, %a, %a", ", _, _, _, _", "", "[1,3,4,4]", "[16]", "[1,3,4,4]", "%a",
     "x0 * x1"},
};

static void put_graph(const example *e, bool fused, zc_buf *out)
{
    const char *comma = *e->extra ? ", " : "", *more = *e->attrs ? ", " : "";
    zc_buf_printf(out, "graph \"g\" {\n  input %%x: f32%s as \"x\"\n  const %%w: f32%s = [", e->x,
                  e->w);
    for (int i = 0; i < 16; i++)
        zc_buf_printf(out, "%s%g", i ? ", " : "", (i * 7 % 11 - 4) * 0.125);
    zc_buf_printf(out,
                  "]\n  const %%v: f32[4] = [1, 2, 0.5, 0.75]\n  const %%k: i64[1] = [1]\n"
                  "  const %%s: f32[3] = [1, 1, 1]\n"
                  "  %%a: f32%s = Relu(%%x) @ \"Relu_0\"\n",
                  e->x);
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

static void run(const example *e, bool fused, float y[48], size_t *n)
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
    put_graph(e, fused, &text);
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
    assert_in_range(out.bytes, sizeof(float), sizeof x);
    *n = out.bytes;
    memcpy(y, out.data, out.bytes);
    zc_session_destroy(&session);
    zc_plan_destroy(&plan);
    zc_graph_destroy(&g);
    zc_free(bytes);
    zc_buf_fini(&text);
    zc_diag_destroy(&diag);
}

static void test_same_bits_as_two_steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(examples); i++) {
        float one[48], two[48];
        size_t n, m;
        run(&examples[i], true, one, &n);
        run(&examples[i], false, two, &m);
        if (n != m || memcmp(one, two, n) != 0)
            fail_msg("%s(%s): another result than that of two steps", examples[i].op,
                     examples[i].operands);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits_as_two_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
