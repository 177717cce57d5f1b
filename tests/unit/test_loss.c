/* Losses, and random operations. Expected losses come from onnx's reference evaluator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/op_random.h"
#include "support/op_text.h"

static void cross_entropy(void **state)
{
    (void)state;
    op_eval("SoftmaxCrossEntropyLoss", "reduction=none",
            "f32[2,3] 0.25 0.75 0.5 -0.5 -0.375 0.75; i64[2] 1 0",
            "f32[2] 0.869338 1.726953; f32[2,3] -1.369338 -0.869338 -1.119338 -1.726953 "
            "-1.601953 -0.4769526",
            1e-5);
    op_eval("SoftmaxCrossEntropyLoss", "reduction=sum",
            "f32[2,3] -1 0.625 0.625 -0.125 -0.375 -0.5; i64[2] 1 0",
            "f32[] 1.689687; f32[2,3] -2.412053 -0.7870527 -0.7870527 -0.9026339 "
            "-1.152634 -1.277634",
            1e-5);
    op_eval("SoftmaxCrossEntropyLoss", "reduction=mean",
            "f32[2,3] -0.5 -0.125 0 0.125 1 0.625; i64[2] 1 0",
            "f32[] 1.327902; f32[2,3] -1.411892 -1.036892 -0.9118921 -1.618912 -0.7439122 "
            "-1.118912",
            1e-5);
    op_eval("SoftmaxCrossEntropyLoss", "ignore_index=-5",
            "f32[2,3,2] 0.25 1 -0.625 -0.625 0.25 -0.875 -0.875 0 -0.125 0.875 0.25 0; "
            "i64[2,2] 2 0 1 -5; f32[3] -0 -0.5 -1",
            "f32[] 0.9463468; f32[2,3,2] -0.88247 -0.3003021 -1.75747 -1.925302 -0.88247 "
            "-2.175302 -1.8241 -1.481349 -1.0741 -0.6063489 -0.6991003 -1.481349",
            1e-5);
    op_eval("SoftmaxCrossEntropyLoss", "ignore_index=-5 reduction=none",
            "f32[2,3,2] -0.625 0.375 -0.625 -0.25 -1 0.625 -0.75 -0.5 0.75 0 0.75 0.25; "
            "i64[2,2] 2 0 1 -5",
            "f32[2,2] 1.363533 1.036484 0.7989162 0", 1e-5);
}

static void likelihood(void **state)
{
    (void)state;
    op_eval("NegativeLogLikelihoodLoss", "reduction=none",
            "f32[2,3] 0.5 -0.875 0.125 0 0.75 -0.25; i64[2] 1 0; f32[3] 0.25 0.875 0.25",
            "f32[2] 0.765625 -0", 1e-5);
    op_eval("NegativeLogLikelihoodLoss", "reduction=sum",
            "f32[2,3] -0.375 -0.75 0.625 -0.25 1 0.125; i64[2] 1 0; f32[3] 0.25 0.25 "
            "0.375",
            "f32[] 0.25", 1e-5);
    op_eval("NegativeLogLikelihoodLoss", "reduction=mean",
            "f32[2,3] -0.75 -0.125 -0.5 -0.25 -0.75 0.875; i64[2] 1 0; f32[3] 0.625 0.375 "
            "0.375",
            "f32[] 0.203125", 1e-5);
    op_eval("NegativeLogLikelihoodLoss", "ignore_index=-5 reduction=mean",
            "f32[2,3,2] 0.75 0.375 -0.75 0.75 0.875 0.75 0.125 -0.75 -0.625 0.875 0.125 "
            "-0.625; i64[2,2] 2 0 1 -5",
            "f32[] -0.2083333", 1e-5);
}

static void loss_edges(void **state)
{
    (void)state;
    /* nothing to average over */
    op_eval("SoftmaxCrossEntropyLoss", "ignore_index=1", "f32[1,2] 0 0; i32[1] 1", "f32[] nan", 0);
    op_eval("SoftmaxCrossEntropyLoss", "reduction=sum ignore_index=1", "f32[1,2] 0 0; i32[1] 1",
            "f32[] 0; f32[1,2] -0.6931472 -0.6931472", 1e-6);
    op_eval("SoftmaxCrossEntropyLoss", "reduction=sum", "f32[0,2]; i64[0]", "f32[] 0", 0);
    op_eval("SoftmaxCrossEntropyLoss", "", "f32[1,2] 1000 0; i64[1] 1", "f32[] 1000", 1e-6);
    op_eval_fails("NegativeLogLikelihoodLoss", "", "f32[1,2] 0 0; i64[1] 2", 1, ZC_ERR_INPUT,
                  "label out of range (got 2, need [0, 1])");
    op_eval_fails("NegativeLogLikelihoodLoss", "ignore_index=2", "f32[1,2] 0 0; i64[1] -1", 1,
                  ZC_ERR_INPUT, "label out of range (got -1, need [0, 1])");
    op_infer("SoftmaxCrossEntropyLoss", "reduction=none", "f16[n,c,s]; i64[n,s]",
             "f16[n,s]; f16[n,c,s]");
    op_infer_fails("SoftmaxCrossEntropyLoss", "reduction=max", "f32[1,2]; i64[1]", 1,
                   "reduction must be none, sum or mean (got \"max\")");
    op_infer_fails("SoftmaxCrossEntropyLoss", "", "f32[3,2]; i64[2]", 1,
                   "dimensions of labels and scores differ (got 2 and 3)");
    op_infer_fails("SoftmaxCrossEntropyLoss", "", "f32[2,2]; i64[2]; f32[3]", 1,
                   "classes and weights differ (got 3 and 2)");
    op_infer_fails("NegativeLogLikelihoodLoss", "", "f32[2,2]; f32[2]", 1,
                   "labels must be integers");
}

static void dropout(void **state)
{
    (void)state;
    op_eval("Dropout", "", "f32[2,2] 1 2 3 4", "f32[2,2] 1 2 3 4; bool[2,2] 1 1 1 1", 0);
    op_eval("Dropout", "", "f32[2] 1 2; f32[] 0.9; bool[] 0", "f32[2] 1 2; bool[2] 1 1", 0);
    op_eval("Dropout", "seed=3", "f16[2] 1 2; f32[] 0; bool[] 1", "f16[2] 1 2; bool[2] 1 1", 0);
    op_eval_fails("Dropout", "", "f32[2] 1 2; f32[] 1; bool[] 1", 1, ZC_ERR_INPUT,
                  "ratio out of range (got 1, need [0, 1))");
    op_infer_fails("Dropout", "", "f32[2]; f32[2]", 1, "ratio differ (got 2 and 1)");
    op_infer_fails("Dropout", "", "f32[2]; f32[]; i32[]", 1,
                   "training_mode must be bool (got i32)");
}

typedef struct stats {
    double mean, var, least, most;
} stats;

static stats stats_of(const zc_tensor *t)
{
    int64_t n = zc_tensor_numel(t);
    stats s = {.least = INFINITY, .most = -(double)INFINITY};
    for (int64_t i = 0; i < n; i++) {
        double v = zc_get(t, i);
        s.mean += v / (double)n;
        s.var += v * v / (double)n;
        s.least = fmin(s.least, v);
        s.most = fmax(s.most, v);
    }
    s.var -= s.mean * s.mean;
    return s;
}

static zc_tensor draw(zc_op op, const void *attrs, int nin, const zc_tensor *in, const char *node)
{
    zc_diag *diag = zc_diag_create();
    zc_tensor out = {.dtype = ZC_F32};
    expect_ok(diag, zc_cpu_eval(op, attrs, nin, in, 1, &out, false, node, diag));
    zc_diag_destroy(&diag);
    return out;
}

/* Same seed, same numbers; another seed or, without one, another node, other numbers. */
static void seeds(void **state)
{
    (void)state;
    const int64_t dims[] = {4};
    zc_attrs_RandomUniform a;
    zc_attrs_default(zc_op_get(ZC_OP_RandomUniform), &a);
    a.shape = (zc_ints){1, dims};
    zc_tensor t[5];
    t[0] = draw(ZC_OP_RandomUniform, &a, 0, NULL, "one");
    t[1] = draw(ZC_OP_RandomUniform, &a, 0, NULL, "one");
    t[2] = draw(ZC_OP_RandomUniform, &a, 0, NULL, "two");
    a.set |= 1 << ZC_AT_RandomUniform_seed;
    a.seed = 5;
    t[3] = draw(ZC_OP_RandomUniform, &a, 0, NULL, "one");
    t[4] = draw(ZC_OP_RandomUniform, &a, 0, NULL, "two");
    assert_memory_equal(t[0].data, t[1].data, 16);
    assert_memory_not_equal(t[0].data, t[2].data, 16);
    assert_memory_not_equal(t[0].data, t[3].data, 16);
    assert_memory_equal(t[3].data, t[4].data, 16);
    free_tensors(t, 5);
}

static void distributions(void **state)
{
    (void)state;
    const int64_t dims[] = {100, 200};
    zc_attrs_RandomUniform uniform;
    zc_attrs_RandomNormal normal;
    zc_attrs_default(zc_op_get(ZC_OP_RandomUniform), &uniform);
    zc_attrs_default(zc_op_get(ZC_OP_RandomNormal), &normal);
    uniform.shape = normal.shape = (zc_ints){2, dims};
    uniform.low = -1;
    uniform.high = 3;
    normal.mean = 5;
    normal.scale = 2;
    zc_tensor t = draw(ZC_OP_RandomUniform, &uniform, 0, NULL, "u");
    stats s = stats_of(&t);
    assert_true(s.least >= -1 && s.least < -0.99 && s.most <= 3 && s.most > 2.99);
    assert_true(fabs(s.mean - 1) < 0.05 && fabs(s.var - 16.0 / 12) < 0.05);
    free(t.data);
    t = draw(ZC_OP_RandomNormal, &normal, 0, NULL, "n");
    s = stats_of(&t);
    assert_true(fabs(s.mean - 5) < 0.06 && fabs(s.var - 4) < 0.15);
    assert_true(s.least < 0 && s.most > 10);
    free(t.data);
}

static void dropout_training(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_attrs_Dropout a = {.seed = 0};
    float ratio = 0.25f;
    uint8_t training = 1;
    zc_tensor in[] = {RANDOM(1, 1, 20000), {ZC_F32, 0, {0}, &ratio}, {ZC_BOOL, 0, {0}, &training}};
    zc_tensor out[] = {{.dtype = ZC_F32}, {.dtype = ZC_BOOL}};
    expect_ok(diag, zc_cpu_eval(ZC_OP_Dropout, &a, 3, in, 2, out, false, "d", diag));
    int kept = 0;
    for (int i = 0; i < 20000; i++) {
        bool keep = ((uint8_t *)out[1].data)[i];
        float y = ((float *)out[0].data)[i], x = ((float *)in[0].data)[i];
        assert_true(keep ? fabsf(y - x / 0.75f) <= 1e-6f * fabsf(x) + 1e-30f : y == 0);
        kept += keep;
    }
    assert_in_range(kept, 14700, 15300);
    free_tensors(out, 2);
    free(in[0].data);
    zc_diag_destroy(&diag);
}

static void draws(void **state)
{
    (void)state;
    op_eval("Bernoulli", "", "f32[3] 0 1 0", "f32[3] 0 1 0", 0);
    op_eval("Bernoulli", "dtype=bool seed=2", "f64[2] 1 0", "bool[2] 1 0", 0);
    op_eval("Multinomial", "sample_size=3", "f32[2,3] -inf 0 -inf 0 -1e30 -inf",
            "i32[2,3] 1 1 1 0 0 0", 0);
    op_eval("Multinomial", "dtype=i64 seed=1", "f16[0,3]", "i64[0,1]", 0);
    op_eval_fails("Multinomial", "", "f32[1,2] -inf -inf", 1, ZC_ERR_INPUT,
                  "row 0 has no class of positive weight");
    op_eval_fails("Multinomial", "", "f32[1,0]", 1, ZC_ERR_INPUT, "there are no classes");
    op_infer("RandomNormalLike", "dtype=f16", "f32[n,3]", "f16[n,3]");
    op_infer("RandomUniform", "shape=2,3", "", "f32[2,3]");
    op_infer_fails("RandomUniform", "shape=2,-3", "", 1,
                   "negative or overflowing dimension 1 (got -3)");
    op_infer_fails("RandomUniformLike", "", "i32[2]", 1, "dtype must be a float type (got i32)");
    op_infer_fails("Multinomial", "sample_size=0", "f32[1,2]", 1,
                   "sample_size out of range (got 0, need at least 1)");
    op_infer_fails("Multinomial", "dtype=f32", "f32[1,2]", 1, "dtype must be i32 or i64 (got f32)");
}

/* Frequencies follow the weights 1, 2, 5. */
static void multinomial_frequencies(void **state)
{
    (void)state;
    float logs[] = {0, 0.6931472f, 1.6094379f};
    zc_tensor in = {ZC_F32, 2, {1, 3}, logs};
    zc_attrs_Multinomial a = {.dtype = ZC_I32, .sample_size = 8000};
    zc_tensor t = draw(ZC_OP_Multinomial, &a, 1, &in, "m");
    int count[3] = {0};
    for (int i = 0; i < 8000; i++) count[((int32_t *)t.data)[i]]++;
    assert_in_range(count[0], 900, 1100);
    assert_in_range(count[1], 1880, 2120);
    assert_in_range(count[2], 4850, 5150);
    free(t.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cross_entropy),
        cmocka_unit_test(likelihood),
        cmocka_unit_test(loss_edges),
        cmocka_unit_test(dropout),
        cmocka_unit_test(seeds),
        cmocka_unit_test(distributions),
        cmocka_unit_test(dropout_training),
        cmocka_unit_test(draws),
        cmocka_unit_test(multinomial_frequencies),
    };
    return cmocka_run_group_tests_name("loss", tests, NULL, NULL);
}
