/* Convolutions that the layout pass writes anew for Hopper, with weights in another order, in a
 * band or by phases, give the same numbers: small whole ones, whose sums are exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cpu/kernel.h"
#include "op/nhwc.h"
#include "passes/passes.h"
#include "support/expect.h"
#include "support/graph_run.h"

enum { VALUES_MAX = 32 };

typedef struct layout_case {
    const char *op, *attrs;
    int rank, bias; /* of x and w; elements */
    int64_t x[5], w[5];
} layout_case;

/* Else it is of f16. */
static bool is_bytes(const layout_case *c)
{
    return strcmp(c->op, "ConvInteger") == 0;
}

static unsigned seed = 7;

static int drawn(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 8) % 5) - 2;
}

static int64_t put_dims(zc_buf *b, const char *type, int rank, const int64_t *dims)
{
    int64_t n = 1;
    zc_buf_printf(b, "%s[", type);
    for (int d = 0; d < rank; d++) {
        zc_buf_printf(b, d ? ",%d" : "%d", (int)dims[d]);
        n *= dims[d];
    }
    zc_buf_puts(b, "]");
    return n;
}

static void put_const(zc_buf *b, const char *name, const char *type, int rank, const int64_t *dims)
{
    zc_buf_printf(b, "const %%%s: ", name);
    int64_t n = put_dims(b, type, rank, dims);
    zc_buf_puts(b, " = [");
    for (int64_t i = 0; i < n; i++) zc_buf_printf(b, i ? ", %d" : "%d", drawn());
    zc_buf_puts(b, "]\n");
}

/* batch: of x, as the graph has it. */
static zc_graph *graph_of(const layout_case *c, const char *batch, zc_diag *diag)
{
    zc_buf b = {0};
    zc_graph *g = NULL;
    const int64_t bias = c->bias;
    const char *type = is_bytes(c) ? "i8" : "f16";
    zc_buf_printf(&b, "graph \"g\" {\ninput %%x: %s[%s", type, batch);
    for (int d = 1; d < c->rank; d++) zc_buf_printf(&b, ",%d", (int)c->x[d]);
    zc_buf_puts(&b, "] as \"x\"\n");
    put_const(&b, "w", type, c->rank, c->w);
    if (bias) put_const(&b, "b", type, 1, &bias);
    zc_buf_printf(&b, "%%y: %s[*] = %s(%%x, %%w%s) {%s} @ \"convolution\"\n",
                  is_bytes(c) ? "i32" : "f16", c->op, bias ? ", %b" : "", c->attrs);
    zc_buf_puts(&b, "output %y as \"y\"\n}\n");
    expect_ok(diag, zc_graph_parse(b.data, b.len, &g, diag));
    zc_buf_fini(&b);
    return g;
}

/* The result, which is the caller's. */
static zc_tensor compute(const zc_graph *g, const layout_case *c)
{
    zc_tensor values[VALUES_MAX] = {{0}},
              x = {.dtype = is_bytes(c) ? ZC_I8 : ZC_F16, .rank = c->rank};
    const zc_vid in = g->top.params.data[0], out = g->top.outputs.data[0];
    for (int d = 0; d < c->rank; d++) x.dims[d] = c->x[d];
    assert_non_null(x.data = zc_calloc((size_t)zc_tensor_numel(&x), sizeof(uint16_t)));
    for (int64_t i = 0; i < zc_tensor_numel(&x); i++) zc_put(&x, i, (double)(i * 37 % 11 % 5) - 2);
    assert_true(g->values.len <= VALUES_MAX);
    values[in] = x;
    graph_run(c->attrs, g, true, values);
    const zc_tensor y = values[out];
    graph_run_free(g, out, values);
    return y;
}

static const zc_rule_target target = {.cuda = true, .sm = 90, .sm_most = 90};

static bool has(const zc_graph *g, const char *op)
{
    bool found = false;
    for (size_t i = 0; i < g->top.nodes.len; i++)
        found |= strcmp(zc_op_get(zc_node_at(g, g->top.nodes.data[i])->op)->name, op) == 0;
    return found;
}

/* Have the phases of its convolution windows of their own? */
static bool is_apart(const zc_graph *g)
{
    for (size_t i = 0; i < g->top.nodes.len; i++) {
        const zc_node *n = zc_node_at(g, g->top.nodes.data[i]);
        if (n->op == ZC_OP_ConvNhwc) return ((const zc_attrs_ConvNhwc *)n->attrs)->phases.n > 0;
    }
    return false;
}

static bool is_banded(const zc_graph *g)
{
    for (size_t i = 0; i < g->top.nodes.len; i++) {
        const zc_node *n = zc_node_at(g, g->top.nodes.data[i]);
        if (zc_conv_banded(n->op, n->attrs)) return zc_conv_channels_last(n->op, n->attrs);
    }
    return false;
}

/* Any number of images is worth turning. True: phases have windows of their own. */
static bool check(const layout_case *c)
{
    const zc_pass_options options = {.target = &target};
    zc_diag *diag = zc_diag_create();
    zc_graph *g = graph_of(c, "n", diag);
    zc_tensor plain = compute(g, c);
    expect_ok(diag, zc_run_pass(g, "opt_layout", &options, diag));
    if (is_bytes(c))
        assert_true(is_banded(g));
    else
        assert_false(has(g, c->op));
    zc_tensor turned = compute(g, c);
    assert_int_equal(zc_tensor_numel(&turned), zc_tensor_numel(&plain));
    for (int64_t i = 0; i < zc_tensor_numel(&plain); i++)
        if (zc_get(&plain, i) != zc_get(&turned, i))
            fail_msg("%s {%s}: element %d is %g, need %g", c->op, c->attrs, (int)i,
                     zc_get(&turned, i), zc_get(&plain, i));
    free(plain.data);
    free(turned.data);
    const bool apart = is_apart(g);
    zc_graph_destroy(&g);
    zc_diag_destroy(&diag);
    return apart;
}

static void sides(void **state)
{
    (void)state;
    static const layout_case cases[] = {
        {"Conv", "dilations = [2], pads = [4,0]", 3, 16, {2, 8, 9}, {16, 8, 3}},
        {"Conv", "strides = [3], pads = [1,2], group = 8", 3, 8, {2, 8, 11}, {8, 1, 4}},
        {"Conv", "pads = [1,0,2,0,1,1], strides = [1,2,1]", 5, 8, {2, 8, 3, 5, 4}, {8, 8, 2, 2, 3}},
        {"Conv", "group = 8", 5, 8, {1, 8, 3, 4, 5}, {8, 1, 3, 2, 1}}};
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++) check(&cases[i]);
}

/* Widths that tiles are multiples of, that lie across them, and of which several hold no piece. */
static void bands(void **state)
{
    (void)state;
    static const layout_case cases[] = {
        {"Conv", "group = 10, pads = [1,1,1,1]", 4, 160, {1, 160, 3, 4}, {160, 16, 3, 3}},
        {"Conv", "group = 7, strides = [2,1]", 4, 168, {2, 168, 3, 3}, {168, 24, 2, 1}},
        {"Conv", "group = 12", 4, 144, {1, 144, 2, 3}, {144, 12, 1, 1}},
        {"Conv", "group = 18", 4, 144, {1, 72, 2, 3}, {144, 4, 1, 2}},
        {"Conv", "group = 24", 3, 48, {2, 24, 5}, {48, 1, 2}},
        {"Conv", "group = 2", 4, 224, {1, 224, 2, 2}, {224, 112, 1, 1}},
        {"Conv", "group = 2", 5, 16, {1, 16, 2, 2, 3}, {16, 8, 1, 2, 2}}};
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++) check(&cases[i]);
}

/* The same of bytes, at multiples of 16. */
static void byte_bands(void **state)
{
    (void)state;
    static const layout_case cases[] = {
        {"ConvInteger", "group = 4, pads = [1,1,1,1]", 4, 0, {2, 64, 3, 4}, {64, 16, 3, 3}},
        {"ConvInteger", "group = 32, strides = [2,1]", 4, 0, {1, 128, 3, 3}, {256, 4, 2, 1}},
        {"ConvInteger", "group = 7", 4, 0, {1, 336, 2, 3}, {168, 48, 1, 2}},
        {"ConvInteger", "group = 10", 3, 0, {1, 240, 5}, {240, 24, 2}},
        {"ConvInteger", "group = 17", 4, 0, {1, 272, 2, 2}, {289, 16, 1, 1}}};
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++) check(&cases[i]);
}

/* Windows as long as strides, longer and shorter; results cut at the beginning and at the end. */
static void phases(void **state)
{
    (void)state;
    static const layout_case cases[] = {
        {"ConvTranspose", "strides = [2,2]", 4, 4, {2, 8, 3, 4}, {8, 4, 2, 2}},
        {"ConvTranspose", "strides = [2,2], pads = [1,1,1,1]", 4, 4, {2, 8, 3, 4}, {8, 4, 4, 4}},
        {"ConvTranspose", "strides = [2,2], pads = [1,1,1,1]", 4, 2, {1, 8, 3, 4}, {8, 2, 3, 3}},
        {"ConvTranspose",
         "strides = [2,2], pads = [1,1,1,1], output_padding = [1,1]",
         4,
         2,
         {1, 8, 3, 4},
         {8, 2, 3, 3}},
        {"ConvTranspose", "strides = [3,2], pads = [0,3,2,0]", 4, 4, {1, 8, 4, 5}, {8, 4, 5, 4}},
        {"ConvTranspose", "pads = [1,0,0,1]", 4, 8, {1, 8, 4, 3}, {8, 8, 3, 2}},
        {"ConvTranspose", "strides = [8], pads = [4,4]", 3, 3, {2, 8, 5}, {8, 3, 16}},
        {"ConvTranspose", "strides = [5]", 3, 8, {2, 8, 3}, {8, 8, 3}},
        {"ConvTranspose", "strides = [4], pads = [5,0]", 3, 2, {1, 16, 4}, {16, 2, 6}},
        {"ConvTranspose",
         "strides = [2,1,2], pads = [1,0,0,1,0,1]",
         5,
         2,
         {1, 8, 2, 2, 3},
         {8, 2, 4, 1, 3}}};
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++) assert_false(check(&cases[i]));
}

/* Channels that fill tiles: taps of all phases, where none meets a weight that is zero; one of two
 * sides whose phases begin at one place; results cut, and single taps. */
static void phases_apart(void **state)
{
    (void)state;
    static const layout_case cases[] = {
        {"ConvTranspose", "strides = [2,2], pads = [1,1,1,1]", 4, 64, {2, 8, 3, 4}, {8, 64, 4, 4}},
        {"ConvTranspose",
         "strides = [3,2], pads = [2,0,3,1]",
         4,
         128,
         {1, 8, 4, 5},
         {8, 128, 6, 4}},
        {"ConvTranspose", "strides = [8], pads = [4,4]", 3, 128, {2, 8, 5}, {8, 128, 16}},
        {"ConvTranspose", "strides = [4], pads = [5,0]", 3, 128, {1, 8, 4}, {8, 128, 8}},
        {"ConvTranspose", "strides = [4], pads = [1,1]", 3, 128, {1, 8, 4}, {8, 128, 4}},
        {"ConvTranspose",
         "strides = [2,1,2], pads = [1,0,0,1,0,1], output_padding = [1,0,0]",
         5,
         128,
         {1, 8, 2, 2, 3},
         {8, 128, 4, 1, 2}}};
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++)
        if (!check(&cases[i])) fail_msg("{%s}: all phases have one window", cases[i].attrs);
}

/* Phases with two taps and with one, channels that fill no tile, and no zeros to leave out. */
static void phases_together(void **state)
{
    (void)state;
    static const layout_case cases[] = {
        {"ConvTranspose", "strides = [2,2], pads = [1,1,1,1]", 4, 64, {1, 8, 3, 4}, {8, 64, 3, 3}},
        {"ConvTranspose", "strides = [2,2], pads = [1,1,1,1]", 4, 32, {1, 8, 3, 4}, {8, 32, 4, 4}},
        {"ConvTranspose", "strides = [2,2]", 4, 64, {1, 8, 3, 4}, {8, 64, 4, 4}}};
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++) assert_false(check(&cases[i]));
}

/* One that is not worth its transposes is left, and said to be. */
static void left(void **state)
{
    (void)state;
    static const layout_case small = {"Conv", "group = 8", 3, 8, {1, 8, 16}, {8, 1, 5}},
                             large = {"Conv", "pads = [1,1,1,1]", 4,
                                      128,    {8, 128, 28, 28},   {128, 128, 3, 3}};
    const layout_case *const cases[] = {&small, &large};
    for (int i = 0; i < 2; i++) {
        zc_buf told = {0};
        const zc_pass_options options = {.target = &target, .told = &told};
        zc_diag *diag = zc_diag_create();
        zc_graph *g = graph_of(cases[i], i ? "8" : "1", diag);
        expect_ok(diag, zc_run_pass(g, "opt_layout", &options, diag));
        assert_int_equal(has(g, "Conv"), i == 0);
        if (i == 0)
            assert_non_null(strstr(told.data,
                                   "Conv 'convolution' stays channels first: there its "
                                   "region (convolutions: 1) takes 1.2 us; channels last"));
        else
            assert_int_equal(told.len, 0);
        zc_buf_fini(&told);
        zc_graph_destroy(&g);
        zc_diag_destroy(&diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sides),  cmocka_unit_test(bands),        cmocka_unit_test(byte_bands),
        cmocka_unit_test(phases), cmocka_unit_test(phases_apart), cmocka_unit_test(phases_together),
        cmocka_unit_test(left),
    };
    return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
