/* Weights as codes of 4 and 8 bits: the forms that are chosen, the numbers they stand for, and what
 * becomes of products, also of those whose factors are both bytes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cpu/kernel.h"
#include "passes/codes.h"
#include "passes/passes.h"
#include "support/expect.h"
#include "support/fail_alloc.h"
#include "support/graph_run.h"

enum { N = 16, K = 128, ODD = 48, ROWS = 3, VALUES_MAX = 32 };

static unsigned seed = 3;

static float drawn(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (float)(seed >> 8) / (1 << 23) - 1;
}

/* Weight k of a column. */
typedef float weight_fn(int k);

static float whole(int k)
{
    return (float)(k % 15 - 7) * 0.5f;
}

static float any(int k)
{
    (void)k;
    return drawn();
}

static float cut(int k)
{
    return fmaxf(fminf(any(k), 0.5f), -0.5f);
}

static float positive(int k)
{
    return 1 + fabsf(any(k));
}

static float stepped(int k)
{
    return any(k) * (k / 32 % 4 ? 0.1f : 1);
}

static float outlying(int k)
{
    return k % 32 == 5 ? 1.6f : any(k);
}

/* A product of `rows` rows by N columns of such weights, which are lines of the constant or not. */
static zc_graph *product(weight_fn *weight, int rows, int k, bool lines, zc_diag *diag)
{
    zc_buf b = {0};
    zc_graph *g = NULL;
    float w[N][K];
    for (int c = 0; c < N; c++)
        for (int i = 0; i < k; i++) w[c][i] = weight(i);
    zc_buf_printf(&b, "graph \"g\" {\ninput %%x: f32[%d,%d] as \"x\"\nconst %%w: f32[%d,%d] = [",
                  rows, k, lines ? N : k, lines ? k : N);
    for (int i = 0; i < N * k; i++)
        zc_buf_printf(&b, "%s%.9g", i ? ", " : "",
                      (double)(lines ? w[i / k][i % k] : w[i % N][i / N]));
    zc_buf_printf(
        &b,
        "]\n%%y: f32[%d,%d] = Linear(%%x, %%w) {transB = %d} @ \"product\"\noutput %%y as "
        "\"y\"\n}\n",
        rows, N, lines);
    expect_ok(diag, zc_graph_parse(b.data, b.len, &g, diag));
    zc_buf_fini(&b);
    return g;
}

/* The squared error that the weights have as codes of the form that is chosen; bits 0: e2m1. */
static double coded(weight_fn *weight, int k, bool lines, int bits, int64_t group,
                    zc_code_form *form)
{
    zc_diag *diag = zc_diag_create();
    zc_graph *g = product(weight, ROWS, k, lines, diag);
    zc_scalable s;
    zc_coded c;
    double sum = 0;
    assert_true(zc_codable_of(g, zc_node_at(g, g->top.nodes.data[0]), &s));
    if (bits)
        assert_true(zc_code_form_of(g, &s, bits, group, form));
    else
        *form = zc_code_form_of_floats(g, &s);
    assert_true(zc_code_weights(g, &s, form, &c));
    const float *w = zc_val(g, s.w)->data->data, *y = zc_val(g, c.floats)->data->data;
    for (int i = 0; i < N * k; i++) sum += pow((double)w[i] - (double)y[i], 2);
    zc_graph_destroy(&g);
    zc_diag_destroy(&diag);
    return sum;
}

static void test_whole_numbers_are_exact(void **state)
{
    static const int64_t groups[] = {32, 64, 128};
    zc_code_form form;
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(groups); i++)
        for (int lines = 0; lines < 2; lines++) {
            assert_true(coded(whole, K, lines, 4, groups[i], &form) == 0);
            assert_int_equal(form.group, groups[i]);
        }
    assert_true(coded(whole, K, true, 4, 0, &form) == 0);
    assert_true(form.group == 128 && !form.has_zeros);
}

static void test_forms(void **state)
{
    zc_code_form form;
    (void)state;
    (void)coded(positive, K, true, 4, 0, &form);
    assert_true(form.has_zeros);
    (void)coded(stepped, K, false, 4, 0, &form);
    assert_int_equal(form.group, 32);
    (void)coded(any, K, false, 4, 0, &form);
    assert_int_equal(form.group, 128);
    (void)coded(any, ODD, false, 4, 0, &form); /* no group divides it */
    assert_int_equal(form.group, ODD);
    (void)coded(any, ODD, false, 4, 32, &form);
    assert_int_equal(form.group, ODD);
}

static float of_e2m1(int k)
{
    static const float numbers[] = {0, 0.5f, -1, 1.5f, 2, -3, 4, -6};
    return numbers[k % 8] * (k / 32 % 2 ? 0.25f : 16);
}

/* e2m1 by a power of two for each 32: its own numbers are exact; of uniform ones within [-1, 1], by
 * 1/4 or, where 0.75 and more become 0.75, 1/8, the error is within what these steps make. */
static void test_floats(void **state)
{
    zc_code_form form;
    (void)state;
    for (int lines = 0; lines < 2; lines++) {
        assert_true(coded(of_e2m1, K, lines, 0, 0, &form) == 0);
        assert_true(form.is_float && form.group == 32);
        const double each = coded(any, K, lines, 0, 0, &form) / (N * K);
        assert_true(each > 0.5 * pow(0.25, 2) / 12 && each < 1.5 * pow(0.25, 2) / 12);
    }
    (void)coded(any, ODD, true, 0, 0, &form);
    assert_int_equal(form.group, ODD);
}

/* Uniform numbers within [-1, 1] in steps of 2 / 15 are off by a twelfth of a step's square each;
 * 8 bits halve the step four times. */
static void test_errors(void **state)
{
    zc_code_form form;
    const double each = pow(2.0 / 15, 2) / 12, n = N * K;
    (void)state;
    for (int lines = 0; lines < 2; lines++) {
        const double four = coded(any, K, lines, 4, 0, &form) / n;
        const double eight = coded(any, K, lines, 8, 0, &form) / n;
        assert_true(four > 0.8 * each && four < 1.1 * each);
        assert_true(eight > 0.8 * each / 289 && eight < 1.1 * each / 289);
    }
}

/* Steps that reach from the least to the greatest would be 2.6 / 15 wide. */
static void test_ranges_are_cut(void **state)
{
    zc_code_form form;
    (void)state;
    const double whole_range = pow(2.6 / 15, 2) / 12 * N * K;
    assert_true(coded(outlying, K, true, 4, 32, &form) < 0.97 * whole_range);
}

/* ---- what becomes of products ---- */

typedef struct lowering {
    zc_precision_type type;
    const zc_pass_options *options; /* but for zc_mixed */
    int rows;
    bool lines;
    zc_weight_limits_fn *limits;
} lowering;

static zc_status half(void *user, const char *name, const zc_weights *w, float *out, zc_diag *diag)
{
    (void)user, (void)name, (void)diag;
    for (int64_t c = 0; c < w->columns; c++) out[c] = 0.5f;
    return ZC_OK;
}

static zc_status lower(zc_graph *g, const lowering *l, zc_diag *diag)
{
    zc_arena arena;
    const zc_part_spans spans = {{{-1, 1}}};
    zc_mixed m = {.codes = true, .spans = &spans, .limits = l->limits, .arena = &arena};
    zc_pass_options options = *l->options;
    options.mixed = &m;
    zc_arena_init(&arena, 0);
    zc_status status = zc_run_pass(g, "lower_precision", &options, diag);
    m.types = &l->type;
    if (status == ZC_OK) status = zc_run_pass(g, "lower_precision", &options, diag);
    ZC_VEC_FINI(&m.parts);
    ZC_VEC_FINI(&m.edges);
    zc_arena_fini(&arena);
    return status;
}

static size_t nodes_of(const zc_graph *g, zc_op op)
{
    size_t n = 0;
    for (size_t i = 0; i < g->top.nodes.len; i++)
        n += zc_node_at(g, g->top.nodes.data[i])->op == op;
    return n;
}

/* The result, and how many steps read codes. */
static size_t run(const lowering *l, double *y)
{
    zc_diag *diag = zc_diag_create();
    seed = 3;
    zc_graph *g =
        product(l->type == ZC_PRECISION_f32 && l->limits ? cut : any, l->rows, K, l->lines, diag);
    float x[ROWS * K];
    zc_tensor values[VALUES_MAX] = {{0}};
    for (int i = 0; i < l->rows * K; i++) x[i] = (float)(i * 37 % 101 - 50) / 64;
    expect_ok(diag, lower(g, l, diag));
    expect_ok(diag, zc_run_pass(g, "opt_dce", NULL, diag));
    const zc_vid in = g->top.params.data[0], out = g->top.outputs.data[0];
    assert_true(g->values.len <= VALUES_MAX);
    values[in] = (zc_tensor){.dtype = ZC_F32, .rank = 2, .dims = {l->rows, K}, .data = x};
    graph_run("codes", g, true, values);
    for (int i = 0; i < l->rows * N; i++) y[i] = zc_get(&values[out], i);
    values[in] = (zc_tensor){0};
    graph_run_free(g, 0, values);
    const size_t packed = nodes_of(g, ZC_OP_PackedLinear) + nodes_of(g, ZC_OP_ScaledLinear);
    assert_int_equal(packed + nodes_of(g, ZC_OP_Linear) + nodes_of(g, ZC_OP_MatMulInteger), 1);
    assert_int_equal(nodes_of(g, ZC_OP_DequantizeLinear), 0);
    zc_graph_destroy(&g);
    zc_diag_destroy(&diag);
    return packed;
}

static void expect_near(const double *y, const double *need, double within)
{
    for (int i = 0; i < ROWS * N; i++)
        if (!(fabs(y[i] - need[i]) <= within))
            fail_msg("element %d is %g, need %g", i, y[i], need[i]);
}

static const zc_rule_target hopper = {.cuda = true, .sm = 90, .sm_most = 90},
                            ampere = {.cuda = true, .sm = 80, .sm_most = 80};

/* On Hopper codes, elsewhere the same numbers as floats; both near the exact result. */
static void test_products(void **state)
{
    static const char *const skip = "opt_packed";
    static const zc_pass_options on_hopper = {.target = &hopper}, on_ampere = {.target = &ampere},
                                 on_cpu = {.target = NULL},
                                 skipped = {.target = &hopper, .skip = &skip, .skip_count = 1};
    static const struct {
        zc_precision_type type;
        double within;
    } types[] = {{ZC_PRECISION_int4, 0.7}, {ZC_PRECISION_w8, 0.06}, {ZC_PRECISION_fp4, 1.2}};
    (void)state;
    for (size_t way = 0; way < 2 * ZC_COUNTOF(types); way++) {
        lowering l = {.type = ZC_PRECISION_f32, .options = &on_cpu, .rows = ROWS, .lines = way % 2};
        double exact[ROWS * N], y[ROWS * N], codes[ROWS * N];
        assert_int_equal(run(&l, exact), 0);
        l.type = types[way / 2].type;
        l.options = &on_hopper;
        assert_int_equal(run(&l, codes), 1);
        expect_near(codes, exact, types[way / 2].within);
        static const zc_pass_options *const others[] = {&on_cpu, &on_ampere, &skipped};
        for (size_t i = 0; i < ZC_COUNTOF(others); i++) {
            l.options = others[i];
            assert_int_equal(run(&l, y), 0);
            expect_near(y, codes, 5e-3);
        }
    }
}

/* On Hopper the product of both factors' bytes gives f16. */
static void test_bytes(void **state)
{
    static const zc_pass_options on_hopper = {.target = &hopper}, on_cpu = {.target = NULL};
    (void)state;
    for (int lines = 0; lines < 2; lines++) {
        lowering l = {.type = ZC_PRECISION_f32, .options = &on_cpu, .rows = ROWS, .lines = lines};
        double exact[ROWS * N], y[ROWS * N], bytes[ROWS * N];
        assert_int_equal(run(&l, exact), 0);
        l.type = ZC_PRECISION_int8;
        assert_int_equal(run(&l, bytes), 0);
        l.options = &on_hopper;
        assert_int_equal(run(&l, y), 1);
        expect_near(y, exact, 0.1);
        expect_near(y, bytes, 5e-3);
        for (int i = 0; i < ROWS * N; i++)
            assert_true((double)zc_f16_to_f32(zc_f32_to_f16((float)y[i])) == y[i]);
    }
}

/* Larger weights are as large as the limit. */
static void test_limits(void **state)
{
    static const zc_pass_options on_hopper = {.target = &hopper}, on_cpu = {.target = NULL};
    (void)state;
    for (int lines = 0; lines < 2; lines++) {
        lowering l = {.type = ZC_PRECISION_f32,
                      .options = &on_cpu,
                      .rows = ROWS,
                      .lines = lines,
                      .limits = half};
        double need[ROWS * N], y[ROWS * N];
        assert_int_equal(run(&l, need), 0);
        l.type = ZC_PRECISION_int8;
        assert_int_equal(run(&l, y), 0);
        expect_near(y, need, 0.1);
        l.options = &on_hopper;
        assert_int_equal(run(&l, y), 1);
        expect_near(y, need, 0.1);
    }
}

static bool fails_at(long n)
{
    static const zc_pass_options options = {.target = &hopper};
    const lowering l = {.type = ZC_PRECISION_int4, .options = &options, .rows = 1};
    zc_diag *diag = zc_diag_create();
    long live = fail_alloc_live();
    zc_graph *g = product(any, l.rows, K, l.lines, diag);
    fail_alloc_at(n);
    zc_status status = lower(g, &l, diag);
    bool happened = fail_alloc_happened();
    fail_alloc_at(0);
    assert_int_equal(status, happened ? ZC_ERR_NOMEM : ZC_OK);
    zc_graph_destroy(&g);
    zc_diag_clear(diag);
    assert_int_equal(fail_alloc_live(), live);
    zc_diag_destroy(&diag);
    return happened;
}

static void test_no_memory(void **state)
{
    (void)state;
    long n = 1;
    while (fails_at(n)) n++;
    assert_true(n > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_numbers_are_exact),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_ranges_are_cut),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
