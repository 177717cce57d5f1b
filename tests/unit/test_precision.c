/* Models compiled to f16 and bf16 against the same models in f32. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "passes/passes.h"
#include "support/expect.h"
#include "support/fail_alloc.h"
#include "support/onnx_text.h"
#include "support/plan_inputs.h"
#include "zc/zc.h"

enum { OUT_MAX = 256 };

typedef struct result {
    float y[OUT_MAX];
    size_t n;
} result;

static zc_status compile(const char *text, const char *precision, void **plan, size_t *len,
                         zc_diag *diag)
{
    zc_buf model = {0};
    onnx_text(text, &model);
    zc_status status = zc_compile_bytes(model.data, model.len,
                                        ZC_COMPILE_PARAMS(.precision = precision), plan, len, diag);
    zc_buf_fini(&model);
    return status;
}

/* The first output, which is f32 whatever the precision. */
static void run(const char *text, const char *precision, result *out, zc_diag *diag)
{
    void *bytes;
    size_t len;
    zc_plan *plan;
    zc_session *session;
    zc_view y;
    expect_ok(diag, compile(text, precision, &bytes, &len, diag));
    expect_ok(diag, zc_plan_load_bytes(bytes, len, &plan, diag));
    expect_ok(diag, zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 1), &session, diag));
    expect_ok(diag, plan_inputs(plan, session, 3, 1, diag));
    expect_ok(diag, zc_session_run(session, diag));
    expect_ok(diag, zc_session_output(session, 0, &y, diag));
    assert_int_equal(y.elem, ZC_F32);
    assert_in_range(y.bytes, sizeof(float), sizeof out->y);
    out->n = y.bytes / sizeof(float);
    memcpy(out->y, y.data, y.bytes);
    assert_int_equal(zc_session_destroy(&session), ZC_OK);
    zc_plan_destroy(&plan);
    zc_free(bytes);
}

/* Compares; returns the number of elements that are not bit-equal. */
static size_t compare(const result *want, const result *got, float tolerance)
{
    float largest = 0;
    size_t differ = 0;
    assert_int_equal(want->n, got->n);
    for (size_t i = 0; i < want->n; i++) largest = fmaxf(largest, fabsf(want->y[i]));
    for (size_t i = 0; i < want->n; i++) {
        differ += want->y[i] != got->y[i];
        if (!(fabsf(want->y[i] - got->y[i]) <= tolerance * largest))
            fail_msg("element %zu: got %g, need %g", i, (double)got->y[i], (double)want->y[i]);
    }
    return differ;
}

/* The second: what can only differ when something was lowered. */
static const struct {
    const char *text;
    bool rounds;
} models[] = {
    /* a row whose scores are all masked by the lowest f32 */
    {"in x 1 2,4\nout y 1 *\ninit w 1 4,4 .1,.2,.3,.4,.5,.6,.7,.8,.9,.1,.2,.3,.4,.5,.6,.7\n"
     "init m 1 2,4 -3.4e38,-3.4e38,-3.4e38,-3.4e38,0,0,-3.4e38,0\n"
     "node MatMul x,w s\nnode Add s,m t\nnode Softmax t p\nnode MatMul p,w y",
     true},
    /* the same mask made from integers and added twice */
    {"in x 1 2,4\nin k 7 4\nout y 1 *\ninit w 1 4,4 "
     ".1,.2,.3,.4,.5,.6,.7,.8,.9,.1,.2,.3,.4,.5,.6,.7\n"
     "init four 1 - 4\ninit low 1 - -1e30\nnode Cast k f to:i=1\nnode Equal f,four e\n"
     "node Cast e g to:i=1\nnode Mul g,low m\nnode MatMul x,w s\nnode Add s,m t\nnode Add t,m u\n"
     "node Softmax u p\nnode MatMul p,w y",
     true},
    /* angles of thousands of radians */
    {"in x 1 2,2\nin k 7 2,1\nout y 1 *\ninit w 1 2,2 .1,.2,.3,.4\ninit big 7 - 1237\n"
     "init freq 1 1,2 1,.01\nnode Mul k,big p\nnode Cast p q to:i=1\nnode MatMul q,freq a\n"
     "node Sin a s\nnode MatMul x,w h\nnode Mul h,s y",
     true},
    /* a normalization whose squares and epsilon f16 cannot hold */
    {"in x 1 2,4\nout y 1 *\ninit w 1 4,4 100,20,30,40,50,60,70,80,90,10,20,30,40,50,60,700\n"
     "init two 1 - 2\ninit eps 1 - 1e-12\ninit ax 7 1 1\nnode MatMul x,w h\nnode Pow h,two s\n"
     "node ReduceMean s,ax m\nnode Add m,eps e\nnode Sqrt e r\nnode Div h,r y",
     true},
    /* weights beyond f16 */
    {"in x 1 2,2\nout y 1 *\ninit w 1 2,2 1e6,2e6,3e6,-4e6\ninit v 1 2,2 1,2,3,4\n"
     "init tiny 1 - 1e-7\nnode MatMul x,w a\nnode Mul a,tiny b\nnode MatMul b,v y",
     false},
    /* a loop that carries its state, a branch, both with captured weights */
    {"graph body\nin i 7 -\nin c 9 -\nin s 1 2,2\nout d 9 -\nout t 1 2,2\nout u 1 2,2\n"
     "node MatMul s,w u\nnode Add s,u t\nnode Identity c d\nend\n"
     "in x 1 2,2\nout y 1 *\ninit w 1 2,2 .1,.2,-.3,.4\ninit n 7 - 3\ninit go 9 - 1\n"
     "node Loop n,go,x last,all body:g=body\nnode MatMul last,w z\nnode Add all,z y",
     true},
    {"graph a\nout p 1 2,2\nnode MatMul h,w p\nend\ngraph b\nout q 1 2,2\nnode Relu h q\nend\n"
     "in x 1 2,2\nout y 1 *\ninit w 1 2,2 .1,.2,-.3,.4\ninit zero 1 - 0\nnode MatMul x,w h\n"
     "node ReduceMax x m keepdims:i=0\nnode Greater m,zero c\n"
     "node If c r then_branch:g=a else_branch:g=b\nnode MatMul r,w y",
     true},
    /* convolutions, pooling, resizing with f32 scales */
    {"in x 1 1,2,4,4\nout y 1 *\ninit w 1 2,2,1,1 .1,.2,-.3,.4\ninit b 1 2 .3,.7\n"
     "init s 1 4 1,1,2,1.5\nnode Conv x,w,b c\nnode Relu c d\n"
     "node MaxPool d e kernel_shape:is=2,2\nnode Resize e,_,s y mode:s=linear",
     true},
    /* moved and not computed: exact */
    {"in x 1 2,4\nout y 1 *\nnode Transpose x y", false},
};

static void test_close_to_f32(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    for (size_t i = 0; i < ZC_COUNTOF(models); i++) {
        zc_buf text = {0};
        result exact, f32, f16, bf16;
        zc_buf_printf(&text, "opset 19\n%s\n", models[i].text);
        run(text.data, NULL, &exact, diag);
        run(text.data, "f32", &f32, diag);
        run(text.data, "f16", &f16, diag);
        run(text.data, "bf16", &bf16, diag);
        assert_int_equal(compare(&exact, &f32, 0), 0);
        size_t rounded = compare(&exact, &f16, 4e-3f) + compare(&exact, &bf16, 2e-2f);
        if (models[i].rounds) assert_int_not_equal(rounded, 0);
        zc_buf_fini(&text);
    }
    zc_diag_destroy(&diag);
}

static size_t plan_size(const char *text, const char *precision, zc_diag *diag)
{
    void *bytes;
    size_t len;
    expect_ok(diag, compile(text, precision, &bytes, &len, diag));
    zc_free(bytes);
    return len;
}

static void test_weights_take_half(void **state)
{
    (void)state;
    enum { N = 64 };
    zc_diag *diag = zc_diag_create();
    zc_buf text = {0};
    zc_buf_printf(&text, "opset 19\nin x 1 2,%d\nout y 1 *\nnode MatMul x,w y\ninit w 1 %d,%d 0", N,
                  N, N);
    for (int i = 1; i < N * N; i++) zc_buf_printf(&text, ",%d", i % 100);
    zc_buf_puts(&text, "\n");
    size_t f32 = plan_size(text.data, NULL, diag), f16 = plan_size(text.data, "f16", diag);
    assert_in_range(f32 - f16, N * N * 2 - 2048, N * N * 2);
    zc_buf_fini(&text);
    zc_diag_destroy(&diag);
}

static const char graph_text[] = "graph \"g\" {\n"
                                 "input %x: f32[n,2] as \"x\"\n"
                                 "input %k: i64[n,1] as \"k\"\n"
                                 "const %w: f32[2,2] = [1, 2, 3, 4]\n"
                                 "const %eps: f32[] = [1e-12]\n"
                                 "const %n: i64[] = [2]\n"
                                 "%h: f32[n,2] = MatMul(%x, %w) @ \"a\"\n"
                                 "%p: f32[n,1] = Cast(%k) {to = f32} @ \"b\"\n"
                                 "%m: f32[n,2] = Mul(%h, %p) @ \"c\"\n"
                                 "%e: f32[n,2] = Add(%m, %eps) @ \"d\"\n"
                                 "%r: f32[n,2], %s: f32[?0,n,2] = Loop(%n, _, %e) @ \"e\" (%i: "
                                 "i64[], %go: bool[], %c: f32[n,2]) {\n"
                                 "%v: f32[n,2] = MatMul(%c, %w) @ \"f\"\n"
                                 "yield %go, %v, %v\n"
                                 "}\n"
                                 "output %r as \"r\"\n"
                                 "output %s as \"s\"\n"
                                 "}\n";

/* The pass fails as it should at its n-th allocation, and nothing leaks; false: it had fewer. */
static bool fails_at(long n)
{
    zc_diag *diag = zc_diag_create();
    zc_graph *g = NULL;
    long live = fail_alloc_live();
    expect_ok(diag, zc_graph_parse(graph_text, sizeof graph_text - 1, &g, diag));
    const zc_pass_options options = {.precision = ZC_F16};
    fail_alloc_at(n);
    zc_status status = zc_run_pass(g, "lower_precision", &options, diag);
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

static void test_unknown_precision(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    static const char *const names[] = {"f8", "i32", ""};
    for (size_t i = 0; i < ZC_COUNTOF(names); i++) {
        void *bytes = NULL;
        size_t len = 0;
        expect_fail(
            diag,
            compile("opset 19\nin x 1 2\nout y 1 *\nnode Relu x y\n", names[i], &bytes, &len, diag),
            ZC_ERR_ARG, "is no precision (need f32, tf32, f16, bf16 or auto)");
        assert_null(bytes);
    }
    zc_diag_destroy(&diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_close_to_f32),
        cmocka_unit_test(test_weights_take_half),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_unknown_precision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
