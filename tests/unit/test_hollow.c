/* Constants without bytes: what a weightless import has in place of weights goes through folding.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "passes/passes.h"

/* The graph, with constants "h..." made hollow. */
static zc_graph *hollow_graph(const char *text)
{
    zc_graph *g = NULL;
    zc_diag *diag = zc_diag_create();
    if (zc_graph_parse(text, strlen(text), &g, diag) != ZC_OK)
        fail_msg("%s", zc_diag_text(diag, 0));
    zc_diag_destroy(&diag);
    for (zc_vid v = 1, n = (zc_vid)g->values.len; v < n; v++) {
        if (zc_val(g, v)->kind != ZC_VALUE_CONST || *zc_val(g, v)->name != 'h') continue;
        zc_vid h = zc_graph_hollow(g, NULL, &zc_val(g, v)->type);
        assert_true(zc_graph_is_hollow(g, h));
        zc_graph_forward(g, v, h);
    }
    zc_graph_resolve(g);
    return g;
}

static const zc_node *node_of(const zc_graph *g, zc_op op)
{
    for (size_t n = 1; n < g->nodes.len; n++)
        if (g->nodes.data[n].op == op) return &g->nodes.data[n];
    return NULL;
}

static void test_fold(void **state)
{
    zc_graph *g =
        hollow_graph("graph \"g\" {\n  input %x: f32[2,3] as \"x\"\n"
                     "  const %hw: f32[4,3] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]\n"
                     "  %t: f32[3,4] = Transpose(%hw) {perm = [1, 0]} @ \"t\"\n"
                     "  %o: f32[2,4] = MatMul(%x, %t) @ \"o\"\n  output %o as \"o\"\n}\n");
    assert_int_equal(zc_run_pass(g, "opt_fold", NULL, NULL), ZC_OK);
    assert_null(node_of(g, ZC_OP_Transpose));
    zc_vid w = node_of(g, ZC_OP_MatMul)->in[1];
    assert_true(zc_graph_is_hollow(g, w));
    assert_int_equal(zc_val(g, w)->data->dims[0], 3);
    assert_int_equal(zc_val(g, w)->data->dims[1], 4);
    zc_graph_destroy(&g);
}

static void test_fold_batchnorm(void **state)
{
    zc_graph *g =
        hollow_graph("graph \"g\" {\n  input %x: f32[1,1,2,2] as \"x\"\n"
                     "  const %hw: f32[2,1,1,1] = [1, 2]\n  const %s: f32[2] = [1, 1]\n"
                     "  %c: f32[1,2,2,2] = Conv(%x, %hw) @ \"c\"\n"
                     "  %o: f32[1,2,2,2] = BatchNormalization(%c, %s, %s, %s, %s) @ \"b\"\n"
                     "  output %o as \"o\"\n}\n");
    assert_int_equal(zc_run_pass(g, "opt_fold_batchnorm", NULL, NULL), ZC_OK);
    assert_null(node_of(g, ZC_OP_BatchNormalization));
    const zc_node *conv = node_of(g, ZC_OP_Conv);
    assert_int_equal(conv->nin, 3);
    assert_true(zc_graph_is_hollow(g, conv->in[1]));
    assert_true(zc_graph_is_hollow(g, conv->in[2]));
    assert_int_equal(zc_val(g, conv->in[2])->data->dims[0], 2);
    zc_graph_destroy(&g);
}

/* Rules join them too; what says that a constant has a value does not hold. */
static void test_rules(void **state)
{
    static const char text[] = "rule join { match q = MatMul(x, a: const); k = MatMul(x, b: const);"
                               " where dim(a, 1) > 0; emit w = Concat(a, b) { axis = 1 };"
                               " q, k = Split(MatMul(x, w), _) { axis = -1, num_outputs = 2 }; }"
                               "rule never { match o = Add(x, 1.0); emit o = Neg(x); }";
    zc_rules *r = NULL;
    size_t changes = 0;
    zc_graph *g = hollow_graph("graph \"g\" {\n  input %x: f32[2,2] as \"x\"\n"
                               "  const %ha: f32[2,2] = [1, 2, 3, 4]\n"
                               "  const %hb: f32[2,2] = [1, 2, 3, 4]\n  const %hc: f32[] = [1]\n"
                               "  %q: f32[2,2] = MatMul(%x, %ha) @ \"q\"\n"
                               "  %k: f32[2,2] = MatMul(%x, %hb) @ \"k\"\n"
                               "  %m: f32[2,2] = Mul(%q, %k) @ \"m\"\n"
                               "  %o: f32[2,2] = Add(%m, %hc) @ \"o\"\n  output %o as \"o\"\n}\n");
    assert_int_equal(zc_rules_create(&r, NULL), ZC_OK);
    assert_int_equal(zc_rules_add_text(r, "t.zcr", text, strlen(text), NULL), ZC_OK);
    assert_int_equal(zc_rules_apply(r, g, NULL, NULL, &changes, NULL), ZC_OK);
    assert_int_equal(changes, 1);
    zc_vid w = node_of(g, ZC_OP_MatMul)->in[1];
    assert_true(zc_graph_is_hollow(g, w));
    assert_int_equal(zc_val(g, w)->data->dims[1], 4);
    assert_null(node_of(g, ZC_OP_Concat));
    zc_rules_destroy(&r);
    zc_graph_destroy(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_fold_batchnorm),
        cmocka_unit_test(test_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
