/* Attention as exporters write it: each file of forms/ is a graph with one attention, which begins
 * with a line of what must become of it:
 *
 *   # one attention [causal] [lengths] [mask] [past] [turned] [packed]
 *
 * causal: it is told to be; lengths, mask, past: it has these operands, and no others of the kind;
 * turned: rotary embeddings are steps of their own, or part of it; packed: its queries, keys and
 * values are one product's result. The fused graph must give what
 * the plain one gives. usage: test_forms FOLDER */
#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "cpu/kernel.h"
#include "passes/passes.h"
#include "support/graph_run.h"

static const char *folder;

/* ---- graphs ---- */

static zc_graph *parse(const char *path, const char *text)
{
    zc_graph *g = NULL;
    zc_diag *diag = zc_diag_create();
    if (zc_graph_parse(text, strlen(text), &g, diag) != ZC_OK)
        fail_msg("%s: %s", path, zc_diag_text(diag, 0));
    zc_diag_destroy(&diag);
    return g;
}

static int count(const zc_graph *g, zc_op op)
{
    int n = 0;
    for (size_t i = 0; i < g->top.nodes.len; i++)
        n += zc_node_at(g, g->top.nodes.data[i])->op == op;
    return n;
}

static const zc_node *find_attention(const zc_graph *g)
{
    for (size_t i = 0; i < g->top.nodes.len; i++) {
        const zc_node *n = zc_node_at(g, g->top.nodes.data[i]);
        if (n->op == ZC_OP_Attention) return n;
    }
    return NULL;
}

static bool has(const char *words, const char *word)
{
    return strstr(words, word) != NULL;
}

static void check_form(const char *path, const char *words, const zc_graph *g)
{
    int found = count(g, ZC_OP_Attention);
    const zc_node *n = find_attention(g);
    if (found != 1 || count(g, ZC_OP_Softmax) || count(g, ZC_OP_MatMul))
        fail_msg("%s: %d attentions, %d softmaxes, %d products", path, found,
                 count(g, ZC_OP_Softmax), count(g, ZC_OP_MatMul));
    bool causal = ((const zc_attrs_Attention *)n->attrs)->is_causal;
    bool turned = count(g, ZC_OP_RotaryEmbedding) == 2 || zc_node_in(n, ZC_IN_Attention_cos);
    bool has_mask = zc_node_in(n, ZC_IN_Attention_mask);
    bool packed = !zc_node_in(n, ZC_IN_Attention_k);
    bool has_lengths = zc_node_in(n, ZC_IN_Attention_lengths);
    if (causal != has(words, " causal")) fail_msg("%s: causal is %d", path, causal);
    if (has_mask != has(words, " mask")) fail_msg("%s: it has %d masks", path, has_mask);
    if (has_lengths != has(words, " lengths")) fail_msg("%s: it has %d lengths", path, has_lengths);
    bool has_past = zc_node_in(n, ZC_IN_Attention_past_k);
    if (has_past != has(words, " past")) fail_msg("%s: it has %d pasts", path, has_past);
    if (turned != has(words, " turned")) fail_msg("%s: turned is %d", path, turned);
    if (packed != has(words, " packed")) fail_msg("%s: packed is %d", path, packed);
}

/* ---- computing ---- */

/* Of a dimension of an input. */
static int64_t size_of(const zc_graph *g, zc_dim d)
{
    if (zc_dim_is_const(d)) return d.k;
    return g->dims.nodes[d.e - 1].name[0] == 'b' ? 3 : 5;
}

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / (double)(1 << 23) - 1;
}

/* Lengths beyond what there is and of nothing; masks of zeros and ones, one of them all zeros. */
static double element(const zc_tensor *t, int64_t i, int turn, uint64_t *state)
{
    static const double lengths[2][3] = {{5, 2, 1}, {0, 3, 9}};
    int64_t row = t->rank > 1 ? t->dims[t->rank - 1] : 1;
    double x = uniform(state);
    if (zc_dtype_is_float(t->dtype)) return x;
    if (t->rank == 1) return lengths[turn][i % 3];
    return turn == 1 && i / row == 1 ? 0 : x > -0.4;
}

static void fill(const zc_graph *g, zc_vid v, int turn, uint64_t *state, zc_tensor *t)
{
    const zc_type *type = &zc_val(g, v)->type;
    size_t bytes;
    *t = (zc_tensor){.dtype = type->dtype, .rank = type->rank};
    for (int d = 0; d < t->rank; d++) t->dims[d] = size_of(g, type->dims[d]);
    assert_true(zc_tensor_bytes(t, &bytes));
    t->data = calloc(bytes, 1);
    assert_non_null(t->data);
    for (int64_t i = 0; i < zc_tensor_numel(t); i++) {
        double x = element(t, i, turn, state);
        if (zc_dtype_is_float(t->dtype))
            zc_store_f64(t->dtype, t->data, i, x);
        else
            zc_store_i64(t->dtype, t->data, i, (int64_t)x);
    }
}

/* The graph's first result; the caller frees its data. */
static zc_tensor compute(const char *path, const zc_graph *g, int turn, bool reference)
{
    uint64_t state = 7;
    zc_tensor *values = calloc(g->values.len, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < g->top.params.len; i++)
        fill(g, g->top.params.data[i], turn, &state, &values[g->top.params.data[i]]);
    graph_run(path, g, reference, values);
    const zc_vid result = g->top.outputs.data[0];
    graph_run_free(g, result, values);
    zc_tensor out = values[result];
    free(values);
    return out;
}

/* Where a query sees no key, a softmax written out has no number. */
static void compare(const char *path, const zc_tensor *plain, const zc_tensor *fused)
{
    double bound = plain->dtype == ZC_F32 ? 1e-4 : 2e-2;
    int64_t n = zc_tensor_numel(plain), numbers = 0;
    assert_int_equal(zc_tensor_numel(fused), n);
    for (int64_t i = 0; i < n; i++) {
        double a = zc_load_f64(plain->dtype, plain->data, i);
        double b = zc_load_f64(fused->dtype, fused->data, i);
        if (isnan(a)) continue;
        numbers++;
        if (!(fabs(a - b) <= bound * (1 + fabs(a))))
            fail_msg("%s: element %lld is %.9g fused, and %.9g plain", path, (long long)i, b, a);
    }
    assert_true(numbers >= n / 2);
}

static void test_form(const char *path)
{
    uint8_t *text;
    size_t len;
    assert_int_equal(zc_file_read(path, 1 << 20, &text, &len, NULL), ZC_OK);
    char words[128];
    snprintf(words, sizeof words, "%.*s", (int)strcspn((char *)text, "\n"), (char *)text);
    if (!has(words, "# one attention")) fail_msg("%s: its first line says nothing", path);
    zc_graph *plain = parse(path, (char *)text), *fused = parse(path, (char *)text);
    zc_diag *diag = zc_diag_create();
    if (zc_run_passes(fused, NULL, diag) != ZC_OK) fail_msg("%s: %s", path, zc_diag_text(diag, 0));
    check_form(path, words, fused);
    for (int turn = 0; turn < 2; turn++) {
        zc_tensor a = compute(path, plain, turn, true), b = compute(path, fused, turn, true),
                  c = compute(path, fused, turn, false);
        compare(path, &a, &b);
        compare(path, &a, &c);
        free(a.data);
        free(b.data);
        free(c.data);
    }
    zc_diag_destroy(&diag);
    zc_graph_destroy(&plain);
    zc_graph_destroy(&fused);
    free(text);
}

static void test_forms(void **state)
{
    char pattern[4096];
    glob_t files;
    snprintf(pattern, sizeof pattern, "%s/*.zir", folder);
    assert_int_equal(glob(pattern, 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) test_form(files.gl_pathv[i]);
    print_message("%zu forms\n", files.gl_pathc);
    globfree(&files);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms)};
    if (argc != 2) return 2;
    folder = argv[1];
    return cmocka_run_group_tests_name("forms", tests, NULL, NULL);
}
