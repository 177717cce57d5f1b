/* SparseLinear: what opt_sparse makes of matrices of which two of each four weights are 0 gives the
 * same numbers, and operands that do not fit are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cpu/kernel.h"
#include "op/sparse.h"
#include "passes/passes.h"
#include "runtime/alternatives.h"
#include "support/expect.h"
#include "support/graph_run.h"
#include "support/onnx_text.h"
#include "support/op_text.h"
#include "zc/zc.h"

/* The graph's rows make the product large enough; it runs with fewer. */
enum { N = 128, K = 1024, GRAPH_ROWS = 8192, ROWS = 5, VALUES_MAX = 8 };

/* Column n's weight of place k: of four neighbours so many are not 0, by turns at all places. */
static int weight(int n, int k, int most)
{
    static const int pairs[][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
    const int four = k / 4 + n * 7, kept = four % (most + 1), *at = pairs[four % 6];
    if (most > ZC_SPARSE_KEPT) return k % 4 < kept ? n % 5 + 1 : 0;
    for (int i = 0; i < kept; i++)
        if (at[i] == k % 4) return (n + k) % 7 - 8;
    return 0;
}

/* rows: is the matrix stored N x K? */
static zc_graph *model(bool rows, int most, zc_diag *diag)
{
    zc_buf b = {0};
    zc_graph *g = NULL;
    zc_buf_printf(&b, "graph \"g\" {\ninput %%x: f16[%d,%d] as \"x\"\nconst %%w: f16[%d,%d] = [",
                  GRAPH_ROWS, K, rows ? N : K, rows ? K : N);
    for (int i = 0; i < N * K; i++)
        zc_buf_printf(&b, "%s%d", i ? ", " : "",
                      rows ? weight(i / K, i % K, most) : weight(i % N, i / N, most));
    zc_buf_printf(&b, "]\nconst %%b: f16[%d] = [0", N);
    for (int i = 1; i < N; i++) zc_buf_printf(&b, ", %d", i % 9 - 4);
    zc_buf_printf(&b,
                  "]\n%%y: f16[%d,%d] = Linear(%%x, %%w, %%b) {transB = %d} @ \"product\"\noutput "
                  "%%y as \"y\"\n}\n",
                  GRAPH_ROWS, N, rows);
    expect_ok(diag, zc_graph_parse(b.data, b.len, &g, diag));
    zc_buf_fini(&b);
    return g;
}

/* The result, of rows that are always the same. */
static void compute(const zc_graph *g, double *y)
{
    static uint16_t x[ROWS * K];
    zc_tensor values[VALUES_MAX] = {{0}};
    const zc_vid in = g->top.params.data[0], out = g->top.outputs.data[0];
    for (int i = 0; i < ROWS * K; i++) zc_store_f64(ZC_F16, x, i, (i * 37 % 101 - 50) / 16.0);
    assert_true(g->values.len <= VALUES_MAX);
    values[in] = (zc_tensor){.dtype = ZC_F16, .rank = 2, .dims = {ROWS, K}, .data = x};
    graph_run("sparse", g, true, values);
    for (int i = 0; i < ROWS * N; i++) y[i] = zc_get(&values[out], i);
    values[in] = (zc_tensor){0};
    graph_run_free(g, 0, values);
}

/* Runs the pass for targets from sm to sm_most; it may tell. Is the product then sparse? */
static bool becomes(zc_graph *g, int sm, int sm_most, zc_buf *told, zc_diag *diag)
{
    const zc_rule_target target = {.cuda = true, .sm = sm, .sm_most = sm_most};
    const zc_pass_options options = {.target = &target, .told = told};
    expect_ok(diag, zc_run_pass(g, "opt_sparse", &options, diag));
    assert_int_equal(g->top.nodes.len, 1);
    return zc_node_at(g, g->top.nodes.data[0])->op == ZC_OP_SparseLinear;
}

static void same_numbers(void **state)
{
    static double plain[ROWS * N], sparse[ROWS * N];
    (void)state;
    for (int rows = 0; rows < 2; rows++) {
        zc_diag *diag = zc_diag_create();
        zc_graph *g = model(rows, ZC_SPARSE_KEPT, diag);
        compute(g, plain);
        assert_true(becomes(g, 90, 90, NULL, diag));
        compute(g, sparse);
        for (int i = 0; i < ROWS * N; i++)
            if (!(fabs(plain[i] - sparse[i]) <= 1e-3 * (1 + fabs(plain[i]))))
                fail_msg("element %d is %g, need %g", i, sparse[i], plain[i]);
        zc_graph_destroy(&g);
        zc_diag_destroy(&diag);
    }
}

/* Weights of which three in four are not 0; a target of which nothing is known beside Hopper. */
static void kept_dense(void **state)
{
    zc_diag *diag = zc_diag_create();
    (void)state;
    zc_graph *g = model(true, ZC_SPARSE_KEPT + 1, diag);
    assert_false(becomes(g, 90, 90, NULL, diag));
    zc_graph_destroy(&g);
    g = model(true, ZC_SPARSE_KEPT, diag);
    assert_false(becomes(g, 90, 100, NULL, diag));
    assert_true(becomes(g, 90, 90, NULL, diag));
    zc_graph_destroy(&g);
    zc_diag_destroy(&diag);
}

/* What --explain says of sparse weights that are multiplied as dense ones. */
static void told_why_dense(void **state)
{
    zc_buf told = {0};
    zc_diag *diag = zc_diag_create();
    (void)state;
    zc_graph *sparse = model(true, ZC_SPARSE_KEPT, diag), *few = model(false, ZC_SPARSE_KEPT, diag);
    zc_graph *dense = model(true, ZC_SPARSE_KEPT + 1, diag);
    assert_true(becomes(sparse, 90, 90, &told, diag));
    assert_false(becomes(dense, 90, 90, &told, diag));
    assert_int_equal(told.len, 0);
    zc_val(few, few->top.params.data[0])->type.dims[0] = zc_dim_const(384);
    assert_false(becomes(few, 90, 90, &told, diag));
    assert_false(becomes(few, 90, 100, &told, diag));
    assert_string_equal(told.data,
                        "Linear 'product' has two zeros in each four weights and stays dense: it "
                        "is held to gain too little (need 3 us)\n"
                        "Linear 'product' has two zeros in each four weights and stays dense: not "
                        "all targets are GPUs that are held to be faster\n");
    zc_buf_fini(&told);
    zc_graph_destroy(&sparse);
    zc_graph_destroy(&few);
    zc_graph_destroy(&dense);
    zc_diag_destroy(&diag);
}

/* A product by a matrix of zeros, of that many rows. */
static zc_graph *zeros(const char *rows, int n, int k, zc_diag *diag)
{
    zc_buf b = {0};
    zc_graph *g = NULL;
    zc_tensor w = {.dtype = ZC_F16, .rank = 2, .dims = {k, n}};
    zc_buf_printf(&b,
                  "graph \"g\" {\ninput %%x: f16[%s,%d] as \"x\"\ninput %%w: f16[%d,%d] as \"w\"\n"
                  "%%y: f16[%s,%d] = MatMul(%%x, %%w) @ \"product\"\noutput %%y as \"y\"\n}\n",
                  rows, k, k, n, rows, n);
    expect_ok(diag, zc_graph_parse(b.data, b.len, &g, diag));
    w.data = zc_calloc((size_t)n * (size_t)k, sizeof(uint16_t));
    assert_non_null(w.data);
    const zc_vid in[] = {g->top.params.data[0], zc_graph_const(g, "zeros", &w, true)};
    assert_true(in[1] && zc_graph_become(g, g->top.nodes.data[0], ZC_OP_MatMul, 2, in));
    zc_buf_fini(&b);
    return g;
}

/* Where the models of cost decide: on Hopper fewer rows than many, elsewhere any, and on all that
 * may be among the targets. Rows that are not certain: where no number of them is slower. */
static void by_cost(void **state)
{
    static const struct {
        const char *rows;
        int n, k, sm, sm_most;
        bool sparse;
    } cases[] = {{"1", 4096, 4096, 90, 90, true},    {"16", 4096, 4096, 90, 90, true},
                 {"64", 4096, 4096, 90, 90, false},  {"256", 4096, 4096, 90, 90, true},
                 {"n", 4096, 4096, 90, 90, true},    {"1", 1024, 4096, 90, 90, false},
                 {"n", 1024, 4096, 90, 90, false},   {"8", 11008, 1024, 90, 90, false},
                 {"1", 16384, 960, 90, 90, false},   {"1", 4096, 4096, 80, 80, true},
                 {"4096", 4096, 4096, 80, 80, true}, {"n", 4096, 4096, 80, 80, true},
                 {"1", 1024, 4096, 80, 80, false},   {"n", 1024, 4096, 80, 80, false},
                 {"4096", 1024, 4096, 80, 80, true}, {"4096", 1024, 960, 80, 80, false},
                 {"256", 1024, 4096, 89, 89, true},  {"256", 1024, 4096, 80, 89, false},
                 {"64", 4096, 4096, 80, 80, true},   {"64", 4096, 4096, 80, 90, false},
                 {"4096", 4096, 4096, 80, 120, true}};
    zc_diag *diag = zc_diag_create();
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++) {
        zc_graph *g = zeros(cases[i].rows, cases[i].n, cases[i].k, diag);
        if (becomes(g, cases[i].sm, cases[i].sm_most, NULL, diag) != cases[i].sparse)
            fail_msg("%s rows by %d x %d on sm_%d to sm_%d: need %s", cases[i].rows, cases[i].n,
                     cases[i].k, cases[i].sm, cases[i].sm_most,
                     cases[i].sparse ? "a sparse product" : "a dense one");
        zc_graph_destroy(&g);
    }
    zc_diag_destroy(&diag);
}

/* Every element has a place of its own, and so has every four neighbours' place. */
static void places(void **state)
{
    static bool stored[N * K / 2], words[N * K / 4];
    const zc_tensor t = {.dtype = ZC_F16, .rank = 5, .dims = {N / 64, K / 64, 4, 64, 8}};
    zc_sparse s;
    (void)state;
    assert_true(zc_sparse_of(&t, &s));
    assert_int_equal(s.n, N);
    assert_int_equal(s.k, K);
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k += ZC_SPARSE_OF) {
            int shift;
            const int64_t at = zc_sparse_at(&s, n, k), word = zc_sparse_word(&s, n, k, &shift);
            assert_true(at % 2 == 0 && at + 1 < N * K / 2 && !stored[at]);
            stored[at] = true;
            assert_true(shift % 4 == 0 && shift < 32 && word < N * K / 32);
            assert_false(words[word * 8 + shift / 4]);
            words[word * 8 + shift / 4] = true;
        }
}

/* ---- pruning ---- */

enum { MODEL_ROWS = 1024, SIDE = 1024, LAST = 8 };

/* Of four neighbours along the summed axis, which is the first, two are large, in column TIED one;
 * the others are as small as `small` says, in that column all alike. */
enum { TIED = 15 };

static double model_weight(int k, int n, double small)
{
    const int four = k / 4 + n, first = four % 4, second = (first + 1 + four / 4 % 3) % 4;
    const double sign = (k * 7 + n) % 3 ? 1 : -1;
    if (k % 4 == first) return sign * (1 + n % 3) / 16;
    if (n == TIED) return small * sign / 16;
    return k % 4 == second ? sign / 16 : small * sign * (1 + k % 2) / 16;
}

/* Is it one of the two greatest of its four, of equal ones the first? */
static bool stays(int k, int n, double small)
{
    const double own = fabs(model_weight(k, n, small));
    int before = 0;
    for (int i = k / 4 * 4; i < k / 4 * 4 + 4; i++) {
        const double other = fabs(model_weight(i, n, small));
        before += other > own || (other == own && i < k);
    }
    return before < ZC_SPARSE_KEPT;
}

static void put_matrix(zc_buf *text, const char *name, int n, double small)
{
    zc_buf_printf(text, "init %s 1 %d,%d ", name, SIDE, n);
    for (int i = 0; i < SIDE * n; i++)
        zc_buf_printf(text, "%s%.9g", i ? "," : "", model_weight(i / n, i % n, small));
    zc_buf_puts(text, "\n");
}

static zc_plan *compile(const zc_compile_params *params, zc_diag *diag)
{
    zc_buf text = {0}, model = {0};
    void *bytes = NULL;
    size_t len;
    zc_plan *plan = NULL;
    zc_buf_printf(&text, "opset 17\nin x 1 %d,%d\nout y 1 %d,%d\n", MODEL_ROWS, SIDE, MODEL_ROWS,
                  LAST);
    put_matrix(&text, "w0", SIDE, 1e-4);
    put_matrix(&text, "w1", SIDE, 0.4);
    put_matrix(&text, "w2", LAST, 1e-4);
    zc_buf_puts(&text, "node MatMul x,w0 h0 name=harmless\nnode Tanh h0 t0\n"
                       "node MatMul t0,w1 h1 name=harmful\nnode Tanh h1 t1\n"
                       "node MatMul t1,w2 y name=last\n");
    onnx_text(text.data, &model);
    expect_ok(diag, zc_compile_bytes(model.data, model.len, params, &bytes, &len, diag));
    expect_ok(diag, zc_plan_load_bytes(bytes, len, &plan, diag));
    zc_buf_fini(&text);
    zc_buf_fini(&model);
    zc_free(bytes);
    return plan;
}

/* What the report says of the part of that name. */
static void expect_line(const zc_plan *plan, const char *name, const char *type, const char *why)
{
    const zc_program *p = zc_plan_program(plan);
    for (uint32_t i = 0; i < p->nprecision; i++) {
        const char *line = p->precision[i];
        if (!strstr(line, name)) continue;
        if (strncmp(line, type, strlen(type)) != 0 || !strstr(line, why))
            fail_msg("%s: got \"%s\", need %s and \"%s\"", name, line, type, why);
        return;
    }
    fail_msg("no line tells of %s", name);
}

/* The constant that the step of that name multiplies by. */
static const float *matrix_of(const zc_plan *plan, const char *name)
{
    const zc_program *p = zc_plan_program(plan);
    for (uint32_t i = 0; i < p->nsteps; i++)
        if (p->steps[i].op == ZC_OP_Linear && strcmp(p->steps[i].name, name) == 0)
            return p->values[p->steps[i].in[1]].data;
    fail_msg("no product is called %s", name);
    return NULL;
}

/* On the CPU, where it is not faster, to see what it does: `f32` allows any speed. The part whose
 * small weights are nothing is pruned to what its large ones were, the other is not. */
static void prunes_within_a_bound(void **state)
{
    static float x[MODEL_ROWS * SIDE];
    static const char *const f32[] = {"f32"};
    const zc_view sample = {
        .elem = ZC_ELEM_F32, .rank = 2, .dims = {MODEL_ROWS, SIDE}, .data = x, .bytes = sizeof x};
    zc_diag *diag = zc_diag_create();
    (void)state;
    for (int i = 0; i < MODEL_ROWS * SIDE; i++) x[i] = (float)(i * 37 % 1009 - 504) / 512;
    zc_plan *plan = compile(ZC_COMPILE_PARAMS(.precision = "auto", .max_error = 1e-2,
                                              .sparsify = "2:4", .allow = f32, .allow_count = 1,
                                              .samples = &sample, .sample_count = 1),
                            diag);
    expect_line(plan, "harmless", "sparse", "two of each four weights of 'w0' pruned");
    expect_line(plan, "harmful", "f32", "raised from sparse");
    expect_line(plan, "last", "f32", "makes an output");
    const float *w = matrix_of(plan, "harmless"), *kept = matrix_of(plan, "harmful");
    for (int i = 0; i < SIDE * SIDE; i++) {
        const float was = (float)model_weight(i / SIDE, i % SIDE, 1e-4);
        assert_true(w[i] == (stays(i / SIDE, i % SIDE, 1e-4) ? was : 0));
        assert_true(kept[i] == (float)model_weight(i / SIDE, i % SIDE, 0.4));
    }
    zc_plan_destroy(&plan);
    zc_diag_destroy(&diag);
}

static void shapes(void **state)
{
    (void)state;
    op_infer("SparseLinear", "", "f16[n,s,128]; f16[3,2,4,64,8]; u32[3,2,128]", "f16[n,s,192]");
    op_infer("SparseLinear", "", "bf16[n,64]; bf16[1,1,4,64,8]; u32[1,1,128]; bf16[64]",
             "bf16[n,64]");
    static const struct {
        const char *in, *why;
    } refused[] = {
        {"f16[n,64]; f16[64,32]; u32[1,1,128]", "stored elements are not in tiles"},
        {"f16[n,64]; f16[m,1,4,64,8]; u32[1,1,128]", "stored elements are not in tiles"},
        {"f16[n,64]; f16[1,1,4,32,8]; u32[1,1,128]", "stored elements are not in tiles"},
        {"f16[n,64]; f16[4611686018427387904,1,4,64,8]; u32[1,1,128]",
         "stored elements are not in tiles"},
        {"f16[n,32]; f16[1,1,4,64,8]; u32[1,1,128]", "inner dimensions of the product"},
        {"f16[n,64]; f16[1,1,4,64,8]; u32[1,2,128]", "tiles of stored elements and of places"},
        {"f16[n,64]; f16[1,1,4,64,8]; u32[1,128]", "rank"},
        {"f16[n,64]; bf16[1,1,4,64,8]; u32[1,1,128]", "element type of input 1"},
        {"f16[n,64]; f16[1,1,4,64,8]; i32[1,1,128]", "element type of input 2"},
        {"f16[n,64]; f16[1,1,4,64,8]; u32[1,1,128]; f16[63]", "length of scale or bias"},
    };
    for (size_t i = 0; i < ZC_COUNTOF(refused); i++)
        op_infer_fails("SparseLinear", "", refused[i].in, 1, refused[i].why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_numbers),   cmocka_unit_test(kept_dense),
        cmocka_unit_test(told_why_dense), cmocka_unit_test(by_cost),
        cmocka_unit_test(places),         cmocka_unit_test(prunes_within_a_bound),
        cmocka_unit_test(shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
