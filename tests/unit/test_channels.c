/* Channels of bytes in pieces of 16, as Hopper's convolutions read them (opt_channels), give the
 * same bytes: small graphs, computed as they are and with the channels that are added. */
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

enum { VALUES_MAX = 96, IMAGES = 2 };

static const zc_rule_target target = {.cuda = true, .sm = 90, .sm_most = 90};

static unsigned seed = 7;

static int drawn(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 8) % 9);
}

/* ---- graphs ---- */

/* "?" stands for the elements of a constant: "const %w: i8[24,1,1,20] = ?". Those of f32 are
 * positive, those of i8 of both signs. */
static void put_elements(zc_buf *b, const char *line)
{
    const char *type = strstr(line, ": ") + 2, *dims = strchr(type, '[') + 1;
    int64_t n = 1;
    for (char *end; *dims != ']'; dims = *end == ',' ? end + 1 : end) n *= strtoll(dims, &end, 10);
    for (int64_t i = 0; i < n; i++) {
        const int v = drawn();
        zc_buf_puts(b, i ? ", " : "[");
        if (*type == 'f')
            zc_buf_printf(b, "%g", (v + 1) / 64.0);
        else
            zc_buf_printf(b, "%d", *type == 'i' ? v - 4 : v);
    }
    zc_buf_puts(b, "]");
}

static zc_graph *graph_of(const char *text, zc_diag *diag)
{
    zc_buf b = {0};
    zc_graph *g = NULL;
    zc_buf_puts(&b, "graph \"g\" {\n");
    for (const char *line = text; *line;) {
        const size_t len = strcspn(line, "\n");
        if (line[len - 1] == '?') {
            zc_buf_printf(&b, "%.*s", (int)len - 1, line);
            put_elements(&b, line);
            zc_buf_puts(&b, "\n");
        } else {
            zc_buf_printf(&b, "%.*s\n", (int)len, line);
        }
        line += len + (line[len] != 0);
    }
    zc_buf_puts(&b, "}\n");
    expect_ok(diag, zc_graph_parse(b.data, b.len, &g, diag));
    zc_buf_fini(&b);
    return g;
}

static zc_tensor input_of(const zc_graph *g, zc_vid v)
{
    const zc_type *type = &zc_val(g, v)->type;
    zc_tensor x = {.dtype = type->dtype, .rank = type->rank};
    for (int d = 0; d < x.rank; d++)
        x.dims[d] = zc_dim_is_const(type->dims[d]) ? type->dims[d].k : IMAGES;
    const int64_t n = zc_tensor_numel(&x);
    assert_non_null(x.data = zc_calloc((size_t)n, sizeof(float)));
    for (int64_t i = 0; i < n; i++) zc_put(&x, i, (double)(i * 37 % 101 % 40));
    return x;
}

/* The only result, which is the caller's. */
static zc_tensor compute(const char *name, const zc_graph *g)
{
    zc_tensor values[VALUES_MAX] = {{0}};
    const zc_vid out = g->top.outputs.data[0];
    assert_true(g->values.len <= VALUES_MAX);
    for (size_t i = 0; i < g->top.params.len; i++)
        values[g->top.params.data[i]] = input_of(g, g->top.params.data[i]);
    graph_run(name, g, true, values);
    const zc_tensor y = values[out];
    graph_run_free(g, out, values);
    return y;
}

/* Convolutions of all channels whose weights are in pieces. */
static int in_pieces(const zc_graph *g)
{
    int n = 0;
    for (size_t i = 0; i < g->top.nodes.len; i++) {
        const zc_node *node = zc_node_at(g, g->top.nodes.data[i]);
        if (node->op != ZC_OP_QLinearConv && node->op != ZC_OP_ConvInteger) continue;
        const zc_tensor *w = zc_val(g, node->in[node->op == ZC_OP_QLinearConv ? 3 : 1])->data;
        n += zc_conv_groups(node->op, node->attrs) == 1 && w->dims[w->rank - 1] % 16 == 0;
    }
    return n;
}

static int count(const zc_graph *g, zc_op op)
{
    int n = 0;
    for (size_t i = 0; i < g->top.nodes.len; i++)
        n += zc_node_at(g, g->top.nodes.data[i])->op == op;
    return n;
}

static zc_graph *padded(const char *name, const char *text, zc_diag *diag)
{
    const zc_pass_options options = {.target = &target};
    zc_graph *g = graph_of(text, diag);
    zc_tensor plain = compute(name, g);
    expect_ok(diag, zc_run_pass(g, "opt_channels", &options, diag));
    zc_tensor y = compute(name, g);
    assert_int_equal(zc_tensor_numel(&y), zc_tensor_numel(&plain));
    assert_int_equal(y.rank, plain.rank);
    double first = zc_get(&plain, 0), spread = 0;
    for (int64_t i = 0; i < zc_tensor_numel(&plain); i++) {
        spread = zc_get(&plain, i) == first ? spread : 1;
        if (zc_get(&plain, i) != zc_get(&y, i))
            fail_msg("%s: element %d is %g, need %g", name, (int)i, zc_get(&y, i),
                     zc_get(&plain, i));
    }
    assert_true(spread > 0); /* else it would compare nothing */
    free(plain.data);
    free(y.data);
    return g;
}

#define QUANTA                                                                                     \
    "const %s: f32[] = [0.25]\n"                                                                   \
    "const %z: u8[] = [3]\n"                                                                       \
    "const %zero: i8[] = [0]\n"                                                                    \
    "const %two: i8[] = [2]\n"
#define LAST "channels_last = 1, taps_first = 1"

/* ---- tests ---- */

/* Borders, zero points of images and of weights, for all and by channel; each channel by itself. */
static void chains(void **state)
{
    static const char text[] =
        "input %x: u8[n,3,4,16] as \"x\"\n" QUANTA "const %w0: i8[20,1,1,16] = ?\n"
        "const %s0: f32[20] = ?\n"
        "const %z0: i8[20] = ?\n"
        "const %b0: i32[20] = ?\n"
        "const %w1: i8[20,3,3,1] = ?\n"
        "const %w2: i8[7,3,3,20] = ?\n"
        "const %z2: i8[7] = ?\n"
        "const %w3: i8[5,1,1,7] = ?\n"
        "%a: u8[n,3,4,20] = QLinearConv(%x, %s, %z, %w0, %s0, %z0, %s, %z, %b0) {" LAST
        "} @ \"a\"\n"
        "%b: u8[n,3,4,20] = QLinearConv(%a, %s, %z, %w1, %s0, %two, %s, %z, %b0) {" LAST
        ", group = 20, pads = [1,1,1,1]} @ \"b\"\n"
        "%c: u8[n,3,4,20] = MaxPoolNhwc(%b) {kernel_shape = [1,1]} @ \"c\"\n"
        "%d: u8[n,3,4,7] = QLinearConv(%c, %s, %z, %w2, %s, %z2, %s, %z) {" LAST
        ", pads = [1,1,1,1]} @ \"d\"\n"
        "%e: i32[n,3,4,5] = ConvInteger(%d, %w3, %z, %two) {" LAST "} @ \"e\"\n"
        "output %e as \"e\"\n";
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_graph *g = padded("chains", text, diag);
    assert_int_equal(in_pieces(g), 3);
    assert_int_equal(count(g, ZC_OP_Slice) + count(g, ZC_OP_Pad), 0);
    zc_graph_destroy(&g);
    zc_diag_destroy(&diag);
}

#define SHUFFLE_NET(constants)                                                                     \
    "input %x: u8[n,2,3,16] as \"x\"\n" QUANTA "const %w0: i8[10,1,1,16] = ?\n"                    \
    "const %w1: i8[10,1,1,10] = ?\n"                                                               \
    "const %five: i64[5] = [0, 0, 0, 2, 10]\n"                                                     \
    "const %four: i64[4] = [0, 0, 0, 20]\n"                                                        \
    "const %halves: i64[2] = [10, 10]\n" constants                                                 \
    "%a: u8[n,2,3,10] = QLinearConv(%x, %s, %z, %w0, %s, %zero, %s, %z) {" LAST "} @ \"a\"\n"      \
    "%b: u8[n,2,3,10] = QLinearConv(%a, %s, %z, %w1, %s, %two, %s, %z) {" LAST "} @ \"b\"\n"       \
    "%c: u8[n,2,3,20] = Concat(%a, %b) {axis = 3} @ \"c\"\n"                                       \
    "%d: u8[n,2,3,2,10] = Reshape(%c, %five) @ \"d\"\n"                                            \
    "%e: u8[n,2,3,10,2] = Transpose(%d) {perm = [0,1,2,4,3]} @ \"e\"\n"                            \
    "%f: u8[n,2,3,20] = Reshape(%e, %four) @ \"f\"\n"                                              \
    "%g: u8[n,2,3,10], %h: u8[n,2,3,10] = Split(%f, %halves) {axis = 3} @ \"g\"\n"                 \
    "%i: u8[n,2,3,10] = QLinearConv(%h, %s, %z, %w1, %s, %two, %s, %z) {" LAST "} @ \"i\"\n"

/* Halves that are joined, exchanged and parted: the second one is found in the whole, the first
 * one, which more than a convolution reads, is cut out. */
static void shuffled(void **state)
{
    static const char text[] = SHUFFLE_NET(
        "const %w2: i8[6,1,1,20] = ?\n") "%j: u8[n,2,3,20] = Concat(%g, %i) {axis = -1} @ \"j\"\n"
                                         "%k: u8[n,2,3,6] = QLinearConv(%j, %s, %z, %w2, %s, %two, "
                                         "%s, %z) {" LAST "} @ \"k\"\n"
                                         "output %k as \"k\"\n";
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_graph *g = padded("shuffled", text, diag);
    assert_int_equal(in_pieces(g), 4);
    assert_int_equal(count(g, ZC_OP_Split), 0);
    assert_int_equal(count(g, ZC_OP_Slice), 1);
    zc_graph_destroy(&g);
    zc_diag_destroy(&diag);
}

/* A second half that is read channel by channel, and a result that is not in pieces. */
static void cut(void **state)
{
    static const char text[] = SHUFFLE_NET(
        "const %w2: i8[10,3,1,1] = ?\n"
        "const %w3: i8[40,1,1,20] = ?\n"
        "const %one: i64[1] = [5]\n"
        "const %most: i64[1] = [15]\n"
        "const %axis: i64[1] = [3]\n") "%j: u8[n,2,3,10] = QLinearConv(%h, %s, %z, %w2, %s, %two, "
                                       "%s, %z) {" LAST ", group = 10, pads = [1,0,1,0]} @ \"j\"\n"
                                       "%k: u8[n,2,3,20] = Concat(%j, %i) {axis = 3} @ \"k\"\n"
                                       "%l: u8[n,2,3,40] = QLinearConv(%k, %s, %z, %w3, %s, %two, "
                                       "%s, %z) {" LAST "} @ \"l\"\n"
                                       "%m: u8[n,2,3,10] = Slice(%f, %one, %most, %axis) @ \"m\"\n"
                                       "%p: u8[n,2,3,10] = QLinearConv(%m, %s, %z, %w1, %s, %two, "
                                       "%s, %z) {" LAST "} @ \"p\"\n"
                                       "%q: u8[n,2,3,90] = Concat(%g, %h, %l, %c, %p) {axis = 3} @ "
                                       "\"q\"\n"
                                       "output %q as \"q\"\n";
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_graph *g = padded("cut", text, diag);
    assert_int_equal(in_pieces(g), 5);
    assert_int_equal(count(g, ZC_OP_Gather), 1); /* %c has others between its halves */
    zc_graph_destroy(&g);
    zc_diag_destroy(&diag);
}

/* Floats between quantisations: a residual, constants by channel, numbers by channel and another
 * plane that are made elsewhere. */
static void floats(void **state)
{
    static const char text[] =
        "input %x: u8[n,2,3,16] as \"x\"\n"
        "input %y: f32[n,2,3,20] as \"y\"\n"
        "input %v: f32[n,1,1,20] as \"v\"\n" QUANTA "const %w0: i8[20,1,1,16] = ?\n"
        "const %w1: i8[20,1,1,20] = ?\n"
        "const %t: f32[1,1,1,20] = ?\n"
        "const %u: f32[20] = ?\n"
        "%a: u8[n,2,3,20] = QLinearConv(%x, %s, %z, %w0, %s, %zero, %s, %z) {" LAST "} @ \"a\"\n"
        "%b: u8[n,2,3,20] = QLinearConv(%a, %s, %z, %w1, %s, %zero, %s, %z) {" LAST "} @ \"b\"\n"
        "%c: f32[n,2,3,20] = DequantizeLinear(%a, %s, %z) @ \"c\"\n"
        "%d: f32[n,2,3,20] = DequantizeLinear(%b, %s, %z) @ \"d\"\n"
        "%e: f32[n,2,3,20] = Add(%c, %d) @ \"e\"\n"
        "%f: f32[n,2,3,20] = Mul(%e, %t) @ \"f\"\n"
        "%g: f32[n,2,3,20] = Add(%f, %u) @ \"g\"\n"
        "%h: f32[n,2,3,20] = Mul(%g, %v) @ \"h\"\n"
        "%i: f32[n,2,3,20] = Sub(%h, %y) @ \"i\"\n"
        "%j: u8[n,2,3,20] = QuantizeLinear(%i, %s, %z) @ \"j\"\n"
        "%k: u8[n,2,3,20] = QLinearConv(%j, %s, %z, %w1, %s, %two, %s, %z) {" LAST "} @ \"k\"\n"
        "output %k as \"k\"\n";
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_graph *g = padded("floats", text, diag);
    assert_int_equal(in_pieces(g), 3);
    assert_int_equal(count(g, ZC_OP_Pad), 2);
    zc_graph_destroy(&g);
    zc_diag_destroy(&diag);
}

/* What looks at all elements must not see others: its bytes are padded behind it. */
static void dynamic(void **state)
{
    static const char text[] =
        "input %x: u8[n,2,3,16] as \"x\"\n" QUANTA "const %w0: i8[20,1,1,16] = ?\n"
        "const %w1: i8[6,1,1,20] = ?\n"
        "%a: u8[n,2,3,20] = QLinearConv(%x, %s, %z, %w0, %s, %zero, %s, %z) {" LAST "} @ \"a\"\n"
        "%b: f32[n,2,3,20] = DequantizeLinear(%a, %s, %z) @ \"b\"\n"
        "%c: u8[n,2,3,20], %cs: f32[], %cz: u8[] = DynamicQuantizeLinear(%b) @ \"c\"\n"
        "%d: i32[n,2,3,6] = ConvInteger(%c, %w1, %cz) {" LAST "} @ \"d\"\n"
        "output %d as \"d\"\n";
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_graph *g = padded("dynamic", text, diag);
    assert_int_equal(in_pieces(g), 2);
    assert_int_equal(count(g, ZC_OP_Pad), 1);
    assert_int_equal(count(g, ZC_OP_Slice), 0);
    zc_graph_destroy(&g);
    zc_diag_destroy(&diag);
}

/* One small convolution is not worth a launch, and said not to be; a large one is. */
static void weighed(void **state)
{
    (void)state;
    static const char *const sides[] = {"1,4,4", "8,112,112"};
    for (int i = 0; i < 2; i++) {
        zc_buf told = {0}, text = {0};
        const zc_pass_options options = {.target = &target, .told = &told};
        zc_diag *diag = zc_diag_create();
        zc_buf_printf(&text, "input %%x: u8[%s,40] as \"x\"\n", sides[i]);
        zc_buf_puts(&text, QUANTA "const %w: i8[256,1,1,40] = ?\n");
        zc_buf_printf(&text, "%%a: u8[%s,256]", sides[i]);
        zc_buf_puts(&text, " = QLinearConv(%x, %s, %z, %w, %s, %zero, %s, %z) {" LAST
                           "} @ \"one\"\noutput %a as \"a\"\n");
        zc_graph *g = graph_of(text.data, diag);
        expect_ok(diag, zc_run_pass(g, "opt_channels", &options, diag));
        assert_int_equal(in_pieces(g), i);
        assert_int_equal(count(g, ZC_OP_Pad), i);
        if (i == 0)
            assert_non_null(strstr(told.data, "QLinearConv 'one' is not on tensor cores: with 40 "
                                              "channels in pieces of 16 its region would take"));
        else
            assert_int_equal(told.len, 0);
        zc_buf_fini(&told);
        zc_buf_fini(&text);
        zc_graph_destroy(&g);
        zc_diag_destroy(&diag);
    }
}

/* What is not certain of an image's channels its weights say, but nothing can be put behind them.
 */
static void uncertain(void **state)
{
    static const char text[] =
        "input %x: u8[n,2,3,c] as \"x\"\n" QUANTA "const %w: i8[16,1,1,20] = ?\n"
        "%a: i32[n,2,3,16] = ConvInteger(%x, %w, %z, %zero) {" LAST
        "} @ \"a\"\noutput %a as \"a\"\n";
    const zc_pass_options options = {.target = &target};
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_graph *g = graph_of(text, diag);
    expect_ok(diag, zc_run_pass(g, "opt_channels", &options, diag));
    assert_int_equal(in_pieces(g), 0);
    assert_int_equal(g->top.nodes.len, 1);
    zc_graph_destroy(&g);
    zc_diag_destroy(&diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains),    cmocka_unit_test(shuffled), cmocka_unit_test(cut),
        cmocka_unit_test(floats),    cmocka_unit_test(dynamic),  cmocka_unit_test(weighed),
        cmocka_unit_test(uncertain),
    };
    return cmocka_run_group_tests_name("channels", tests, NULL, NULL);
}
