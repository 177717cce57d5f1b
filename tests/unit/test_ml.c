/* ai.onnx.ml: results, and models that are refused. The expected numbers are ONNX Runtime's, or
 * follow from the specification's formula by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "support/onnx_text.h"
#include "zc/zc.h"

#define ML(ins, outs, node) "opset 17\nopset ai.onnx.ml 3\n" ins outs node " domain=ai.onnx.ml "
#define X                   "in X 1 N,2\n"
#define Y                   "out y 1 *\n"
#define LABEL               "out l 7 *\nout y 1 *\n"
/* Two trees of one branch; their leaves are nodes 1 and 2. */
#define TREES(modes)                                                                               \
    "nodes_treeids:is=0,0,0,1,1,1 nodes_nodeids:is=0,1,2,0,1,2 nodes_featureids:is=0,0,0,1,0,0 "   \
    "nodes_values:fs=0.5,0,0,-1,0,0 nodes_modes:ss=" modes                                         \
    " nodes_truenodeids:is=1,0,0,1,0,0 nodes_falsenodeids:is=2,0,0,2,0,0 "
#define LEQ_GT "BRANCH_LEQ,LEAF,LEAF,BRANCH_GT,LEAF,LEAF"
#define LEAVES(kind, ids)                                                                          \
    kind "_treeids:is=0,0,1,1 " kind "_nodeids:is=1,2,1,2 " kind "_ids:is=" ids " "

typedef struct accepted {
    const char *name, *text;
    float in[6]; /* X[3, 2] */
    int n;       /* numbers in the last output */
    float out[9];
    int64_t label[3]; /* of the output before it, when there is one */
} accepted;

#define ROWS                                                                                       \
    {                                                                                              \
        0, 0, 1, -1, 0.5f, NAN                                                                     \
    }

static const accepted models[] = {
    {"ArrayFeatureExtractor",
     "opset 17\nopset ai.onnx.ml 3\n" X Y
     "init i 7 1 1\nnode ArrayFeatureExtractor X,i y domain=ai.onnx.ml\n",
     {1, 2, 3, 4, 5, 6},
     3,
     {2, 4, 6},
     {0}},
    {"FeatureVectorizer",
     ML(X, Y, "node FeatureVectorizer X,X y") "inputdimensions:is=1,2\n",
     {1, 2, 3, 4, 5, 6},
     9,
     {1, 1, 2, 3, 3, 4, 5, 5, 6},
     {0}},
    {"FeatureVectorizer, fewer features than said",
     ML(X, Y, "node FeatureVectorizer X y") "inputdimensions:is=3\n",
     {1, 2, 3, 4, 5, 6},
     9,
     {1, 2, 0, 3, 4, 0, 5, 6, 0},
     {0}},
    {"Binarizer",
     ML(X, Y, "node Binarizer X y") "threshold:f=0.5\n",
     ROWS,
     6,
     {0, 0, 1, 0, 0, 0},
     {0}},
    {"Scaler",
     ML(X, Y, "node Scaler X y") "offset:fs=1,2 scale:fs=2,0.5\n",
     {1, 2, 3, 4, 5, INFINITY},
     6,
     {0, 0, 4, 1, 8, INFINITY},
     {0}},
    {"Normalizer, maximum",
     ML(X, Y, "node Normalizer X y") "norm:s=MAX\n",
     {1, 4, 0, 0, -1, -2},
     6,
     {0.25f, 1, 0, 0, 1, 2},
     {0}},
    {"Normalizer, L1",
     ML(X, Y, "node Normalizer X y") "norm:s=L1\n",
     {1, -3, 0, 0, 2, 2},
     6,
     {0.25f, -0.75f, 0, 0, 0.5f, 0.5f},
     {0}},
    {"Normalizer, L2",
     ML(X, Y, "node Normalizer X y") "norm:s=L2\n",
     {3, -4, 0, 0, 0, 2},
     6,
     {0.6f, -0.8f, 0, 0, 0, 1},
     {0}},
    {"Imputer",
     ML(X, Y, "node Imputer X y") "replaced_value_float:f=nan imputed_value_floats:fs=7,8\n",
     ROWS,
     6,
     {0, 0, 1, -1, 0.5f, 8},
     {0}},
    {"OneHotEncoder",
     ML(X, Y, "node OneHotEncoder X y") "cats_int64s:is=1\n",
     {1, 2, 1.5f, 0, -1, 1},
     6,
     {1, 0, 1, 0, 0, 1},
     {0}},
    {"LabelEncoder",
     ML(X, Y, "node LabelEncoder X y") "keys_floats:fs=1,2,1 values_floats:fs=10,20,30 "
                                       "default_float:f=-5\n",
     {1, 2, 3, 2, 1, NAN},
     6,
     {10, 20, -5, 20, 10, -5},
     {0}},
    {"LinearRegressor",
     ML(X, Y, "node LinearRegressor X y") "coefficients:fs=1,2 intercepts:fs=0.5\n",
     {1, 1, 0, 0, -1, 2},
     3,
     {3.5f, 0.5f, 3.5f},
     {0}},
    {"LinearClassifier of two classes by one row",
     ML(X, LABEL, "node LinearClassifier X l,y") "coefficients:fs=1,0 intercepts:fs=0 "
                                                 "classlabels_ints:is=5,7\n",
     {2, 0, -1, 0, 0, 0},
     6,
     {-1, 2, 2, -1, 1, 0},
     {7, 5, 5}},
    {"LinearClassifier, softmax",
     ML(X, LABEL,
        "node LinearClassifier X l,y") "coefficients:fs=1,0,0,1 intercepts:fs=0,0 "
                                       "classlabels_ints:is=5,7 post_transform:s=SOFTMAX\n",
     {1, 1, 0, 100, 100, 0},
     6,
     {0.5f, 0.5f, 0, 1, 1, 0},
     {5, 7, 5}},
    {"ZipMap",
     ML(X, Y, "node ZipMap X y") "classlabels_int64s:is=1,2\n",
     {1, 2, 3, 4, 5, 6},
     6,
     {1, 2, 3, 4, 5, 6},
     {0}},
    {"trees, a sum",
     ML(X, Y, "node TreeEnsembleRegressor X y") TREES(LEQ_GT)
         LEAVES("target", "0,0,0,0") "target_weights:fs=1,2,10,20 base_values:fs=100\n",
     ROWS,
     3,
     {111, 122, 121},
     {0}},
    {"trees, an average",
     ML(X, Y, "node TreeEnsembleRegressor X y") TREES(LEQ_GT)
         LEAVES("target", "0,0,0,0") "target_weights:fs=1,2,10,20 "
                                     "aggregate_function:s=AVERAGE\n",
     ROWS,
     3,
     {5.5f, 11, 10.5f},
     {0}},
    {"trees, a minimum",
     ML(X, Y, "node TreeEnsembleRegressor X y") TREES(LEQ_GT)
         LEAVES("target", "0,0,0,0") "target_weights:fs=1,2,10,-20 "
                                     "aggregate_function:s=MIN\n",
     ROWS,
     3,
     {1, -20, -20},
     {0}},
    {"trees, NaN goes to the true side",
     ML(X, Y, "node TreeEnsembleRegressor X y") TREES(LEQ_GT)
         LEAVES("target", "0,0,0,0") "target_weights:fs=1,2,10,20 "
                                     "nodes_missing_value_tracks_true:is=1,0,0,1,0,0\n",
     {NAN, NAN, 1, NAN, NAN, -2},
     3,
     {11, 12, 21},
     {0}},
    {"trees, equal and not",
     ML(X, Y, "node TreeEnsembleRegressor X y") TREES("BRANCH_EQ,LEAF,LEAF,BRANCH_NEQ,LEAF,LEAF")
         LEAVES("target", "0,0,0,0") "target_weights:fs=1,2,10,20\n",
     {0.5f, -1, NAN, NAN, 0, 0},
     3,
     {21, 12, 12},
     {0}},
    {"trees, classes",
     ML(X, LABEL, "node TreeEnsembleClassifier X l,y") TREES(LEQ_GT) LEAVES(
         "class", "0,1,2,1") "class_weights:fs=0.5,0.25,0.25,1 classlabels_int64s:is=4,5,6\n",
     ROWS,
     9,
     {0.5f, 0, 0.25f, 0, 1.25f, 0, 0.5f, 1, 0},
     {4, 5, 5}},
    {"trees, one probability of two classes",
     ML(X, LABEL, "node TreeEnsembleClassifier X l,y") TREES(LEQ_GT)
         LEAVES("class", "0,0,0,0") "class_weights:fs=0.1,0.4,0.2,0.5 classlabels_int64s:is=4,5\n",
     ROWS,
     6,
     {0.7f, 0.3f, 0.1f, 0.9f, 0.4f, 0.6f},
     {4, 5, 5}},
    {"trees, one score of two classes",
     ML(X, LABEL, "node TreeEnsembleClassifier X l,y") TREES(LEQ_GT)
         LEAVES("class", "0,0,0,0") "class_weights:fs=-1,1,0.5,0 classlabels_int64s:is=4,5 "
                                    "post_transform:s=LOGISTIC\n",
     ROWS,
     6,
     {0.622459f, 0.377541f, 0.268941f, 0.731059f, 0.731059f, 0.268941f},
     {4, 5, 4}},
    {"SVMRegressor, RBF",
     ML(X, Y,
        "node SVMRegressor X y") "kernel_type:s=RBF kernel_params:fs=0.5,0,3 n_supports:i=2 "
                                 "support_vectors:fs=0,0,1,-1 coefficients:fs=1,2 rho:fs=0.5\n",
     {0, 0, 1, -1, 1000, 0},
     3,
     {2.235759f, 2.867879f, 0.5f},
     {0}},
    {"SVMRegressor, polynomial",
     ML(X, Y, "node SVMRegressor X y") "kernel_type:s=POLY kernel_params:fs=1,1,2 n_supports:i=1 "
                                       "support_vectors:fs=1,1 coefficients:fs=2 rho:fs=-1\n",
     {0, 0, 1, 1, -1, 0},
     3,
     {1, 17, -1},
     {0}},
    {"SVMClassifier",
     ML(X, LABEL, "node SVMClassifier X l,y") "kernel_type:s=LINEAR vectors_per_class:is=1,1 "
                                              "support_vectors:fs=1,0,-1,0 coefficients:fs=1,-1 "
                                              "rho:fs=0 classlabels_ints:is=3,9\n",
     {1, 5, -2, 0, 0, 0},
     6,
     {-2, 2, 4, -4, 0, 0},
     {3, 9, 9}},
};

typedef struct refused {
    const char *name, *text, *says;
} refused;

#define REGRESSOR ML(X, Y, "node TreeEnsembleRegressor X y name=t")
#define TABLES(trues, falses)                                                                      \
    "nodes_treeids:is=0,0,0 nodes_nodeids:is=0,1,2 nodes_featureids:is=0,0,0 "                     \
    "nodes_values:fs=0,0,0 "                                                                       \
    "nodes_modes:ss=BRANCH_LEQ,BRANCH_LEQ,LEAF nodes_truenodeids:is=" trues                        \
    " nodes_falsenodeids:is=" falses " target_treeids:is=0 target_nodeids:is=2 target_ids:is=0 "   \
    "target_weights:fs=1\n"

static const refused hostile[] = {
    {"features of fewer inputs",
     ML(X, Y, "node FeatureVectorizer X,X y name=f") "inputdimensions:is=1\n",
     "f: inputdimensions has a wrong length (got 1, need 2, one an input)"},
    {"a negative number of features",
     ML(X, Y, "node FeatureVectorizer X y name=f") "inputdimensions:is=-1\n",
     "f: inputdimensions[0] out of range (got -1, "},
    {"a cycle", REGRESSOR TABLES("1,0,0", "2,2,0"),
     "t: node 1 of tree 0 leads back to node 0: a cycle"},
    {"a node that leads to itself", REGRESSOR TABLES("1,1,0", "2,2,0"),
     "t: node 1 of tree 0 leads back to node 1: a cycle"},
    {"a branch to nowhere", REGRESSOR TABLES("1,7,0", "2,2,0"),
     "t: tree 0 has no node 7, which is named"},
    {"a feature that does not exist",
     REGRESSOR "nodes_treeids:is=0,0 nodes_nodeids:is=0,1 nodes_featureids:is=2,0 "
               "nodes_values:fs=0,0 nodes_modes:ss=BRANCH_LT,LEAF nodes_truenodeids:is=1,0 "
               "nodes_falsenodeids:is=1,0\n",
     "t: node 0 of tree 0: feature out of range (got 2, need [0, 1])"},
    {"a target that does not exist",
     REGRESSOR TREES(LEQ_GT) LEAVES("target", "0,0,-1,0") "target_weights:fs=1,2,3,4\n",
     "t: weight 2: target out of range (got -1, need [0, 0])"},
    {"lists of two lengths",
     REGRESSOR "nodes_treeids:is=0,0 nodes_nodeids:is=0 nodes_modes:ss=LEAF\n",
     "t: attribute 'nodes_nodeids' has a wrong length (got 1, need 2)"},
    {"a node given twice",
     REGRESSOR "nodes_treeids:is=0,0 nodes_nodeids:is=3,3 nodes_featureids:is=0,0 "
               "nodes_values:fs=0,0 nodes_modes:ss=LEAF,LEAF nodes_truenodeids:is=0,0 "
               "nodes_falsenodeids:is=0,0\n",
     "t: node 3 of tree 0 is given twice"},
    {"targets without end", REGRESSOR TREES(LEQ_GT) "n_targets:i=9223372036854775807\n",
     "n_targets out of range"},
    {"PROBIT", REGRESSOR TREES(LEQ_GT) "post_transform:s=PROBIT\n",
     "post_transform (got PROBIT, need NONE, LOGISTIC, SOFTMAX or SOFTMAX_ZERO)"},
    {"coefficients that do not fit",
     ML(X, Y, "node LinearRegressor X y name=t") "coefficients:fs=1,2,3\n",
     "t: LinearRegressor: 3 coefficients and 0 intercepts do not fit"},
    {"vectors that do not fit",
     ML(X, LABEL, "node SVMClassifier X l,y name=t") "vectors_per_class:is=1,9000000000 "
                                                     "coefficients:fs=1,2 rho:fs=1 "
                                                     "classlabels_ints:is=1,2\n",
     "t: vectors_per_class: number of class 1 out of range (got 9000000000)"},
    {"strings as keys",
     ML(X, Y, "node LabelEncoder X y name=t") "keys_strings:ss=a values_int64s:is=1\n",
     "t: LabelEncoder: only numbers become numbers"},
};

static zc_status compile(const char *text, zc_plan **plan, zc_diag *diag)
{
    zc_buf model = {0};
    void *bytes = NULL;
    size_t len = 0;
    onnx_text(text, &model);
    zc_status status = zc_compile_bytes(model.data, model.len, NULL, &bytes, &len, diag);
    zc_buf_fini(&model);
    if (status == ZC_OK) status = zc_plan_load_bytes(bytes, len, plan, diag);
    zc_free(bytes);
    return status;
}

static bool is_near(float got, float want)
{
    if (isnan(want) || isinf(want)) return isnan(want) ? isnan(got) : got == want;
    return fabsf(got - want) <= 1e-5f * (1 + fabsf(want));
}

static int check_outputs(const accepted *a, const zc_session *s, size_t outputs)
{
    zc_view y, l;
    int failures = 0;
    if (zc_session_output(s, outputs - 1, &y, NULL) != ZC_OK) return 1;
    if (y.elem != 1 || y.bytes != (size_t)a->n * sizeof(float)) {
        print_error("%s: %zu bytes of type %d\n", a->name, y.bytes, (int)y.elem);
        return 1;
    }
    for (int i = 0; i < a->n; i++) {
        float got = ((const float *)y.data)[i];
        if (is_near(got, a->out[i])) continue;
        print_error("%s: [%d] is %g, need %g\n", a->name, i, (double)got, (double)a->out[i]);
        failures++;
    }
    if (outputs == 1) return failures;
    if (zc_session_output(s, 0, &l, NULL) != ZC_OK || l.bytes != sizeof a->label) return 1;
    if (memcmp(l.data, a->label, sizeof a->label) == 0) return failures;
    for (int i = 0; i < 3; i++)
        print_error("%s: label %lld\n", a->name, (long long)((const int64_t *)l.data)[i]);
    return 1;
}

static int check(const accepted *a, bool reference, zc_diag *diag)
{
    zc_plan *plan = NULL;
    zc_session *s = NULL;
    zc_plan_info info;
    zc_view x = {.elem = 1, .rank = 2, .dims = {3, 2}, .data = a->in, .bytes = sizeof a->in};
    zc_status status = compile(a->text, &plan, diag);
    if (status == ZC_OK)
        status = zc_session_create(plan, ZC_SESSION_PARAMS(.reference = reference), &s, diag);
    if (status == ZC_OK) status = zc_session_set_input(s, 0, &x, false, diag);
    if (status == ZC_OK) status = zc_session_run(s, diag);
    if (status == ZC_OK) status = zc_plan_info_get(plan, &info);
    int failures = status == ZC_OK ? check_outputs(a, s, info.outputs) : 1;
    if (status != ZC_OK) print_error("%s: %s\n", a->name, zc_diag_text(diag, 0));
    (void)zc_session_destroy(&s);
    zc_plan_destroy(&plan);
    zc_diag_clear(diag);
    return failures;
}

static void test_results(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    int failures = 0;
    for (size_t i = 0; i < 2 * ZC_COUNTOF(models); i++)
        failures += check(&models[i / 2], i % 2 != 0, diag);
    zc_diag_destroy(&diag);
    assert_int_equal(failures, 0);
}

static void test_refused(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    int failures = 0;
    for (size_t i = 0; i < ZC_COUNTOF(hostile); i++) {
        zc_plan *plan = NULL;
        zc_status status = compile(hostile[i].text, &plan, diag);
        if (status == ZC_OK || !strstr(zc_diag_text(diag, 0), hostile[i].says)) {
            print_error("%s: %s, \"%s\"\n", hostile[i].name, zc_status_name(status),
                        zc_diag_text(diag, 0));
            failures++;
        }
        zc_plan_destroy(&plan);
        zc_diag_clear(diag);
    }
    zc_diag_destroy(&diag);
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_results),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
