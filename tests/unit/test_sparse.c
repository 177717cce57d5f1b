/* SparseLinear: what opt_sparse makes of matrices of which two of each four weights are 0 gives the
 * same numbers, and operands that do not fit are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cpu/kernel.h"
#include "op/sparse.h"
#include "passes/passes.h"
#include "support/expect.h"
#include "support/graph_run.h"
#include "support/op_text.h"

enum { N = 128, K = 256, ROWS = 385, VALUES_MAX = 8 };

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
                  ROWS, K, rows ? N : K, rows ? K : N);
    for (int i = 0; i < N * K; i++)
        zc_buf_printf(&b, "%s%d", i ? ", " : "",
                      rows ? weight(i / K, i % K, most) : weight(i % N, i / N, most));
    zc_buf_printf(&b, "]\nconst %%b: f16[%d] = [0", N);
    for (int i = 1; i < N; i++) zc_buf_printf(&b, ", %d", i % 9 - 4);
    zc_buf_printf(&b,
                  "]\n%%y: f16[%d,%d] = Linear(%%x, %%w, %%b) {transB = %d} @ \"product\"\noutput "
                  "%%y as \"y\"\n}\n",
                  ROWS, N, rows);
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

/* Runs the pass; is the product then sparse? */
static bool becomes(zc_graph *g, int sm, zc_diag *diag)
{
    const zc_rule_target target = {.cuda = true, .sm = sm, .sm_most = 90};
    const zc_pass_options options = {.target = &target};
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
        assert_true(becomes(g, 90, diag));
        compute(g, sparse);
        for (int i = 0; i < ROWS * N; i++)
            if (!(fabs(plain[i] - sparse[i]) <= 1e-3 * (1 + fabs(plain[i]))))
                fail_msg("element %d is %g, need %g", i, sparse[i], plain[i]);
        zc_graph_destroy(&g);
        zc_diag_destroy(&diag);
    }
}

/* Weights of which three in four are not 0; a target beside Hopper. */
static void kept_dense(void **state)
{
    zc_diag *diag = zc_diag_create();
    (void)state;
    zc_graph *g = model(true, ZC_SPARSE_KEPT + 1, diag);
    assert_false(becomes(g, 90, diag));
    zc_graph_destroy(&g);
    g = model(true, ZC_SPARSE_KEPT, diag);
    assert_false(becomes(g, 80, diag));
    assert_true(becomes(g, 90, diag));
    zc_graph_destroy(&g);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_numbers), cmocka_unit_test(kept_dense),
                                       cmocka_unit_test(places), cmocka_unit_test(shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
