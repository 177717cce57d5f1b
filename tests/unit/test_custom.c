/* Operators of the caller's: shapes, attributes, results, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/expect.h"
#include "support/onnx_text.h"
#include "zc/zc.h"

/* ---- operators ---- */

/* y = x*factor + shifts[column], with the attributes as floats, ints and a text. */
static zc_status infer_like_first(void *user, zc_custom_node *node, const zc_custom_value *in,
                                  size_t nin, zc_custom_value *out, size_t nout)
{
    (void)user;
    if (nin != 1 || nout != 1) return zc_custom_fail(node, ZC_ERR_MODEL, "needs one of each");
    out[0].elem = in[0].elem;
    out[0].rank = in[0].rank;
    memcpy(out[0].dims, in[0].dims, sizeof in[0].dims);
    return ZC_OK;
}

typedef struct job {
    const zc_custom_value *in, *out;
    const float *shifts;
    size_t nshifts;
    float factor;
} job;

static void scale_part(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const float *x = j->in->data;
    float *y = j->out->result;
    for (int64_t i = begin; i < end; i++)
        y[i] = x[i] * j->factor + j->shifts[(size_t)i % j->nshifts];
}

static zc_status run_scale(void *user, zc_custom_node *node, const zc_custom_value *in, size_t nin,
                           zc_custom_value *out, size_t nout)
{
    job j = {.in = in, .out = out, .factor = 1};
    const char *mode;
    const int64_t *twos;
    size_t len, ntwos;
    int64_t times;
    ++*(int *)user;
    if (!zc_custom_float(node, "factor", &j.factor) || !zc_custom_int(node, "times", &times) ||
        !zc_custom_floats(node, "shifts", &j.shifts, &j.nshifts) ||
        !zc_custom_text(node, "mode", &mode, &len) ||
        !zc_custom_ints(node, "twos", &twos, &ntwos) || nin != 1 || nout != 1)
        return zc_custom_fail(node, ZC_ERR_MODEL, "lacks an attribute");
    if (times != -3 || len != 6 || memcmp(mode, "linear", 6) != 0 || ntwos != 2 || twos[1] != 22)
        return zc_custom_fail(node, ZC_ERR_MODEL, "has other attributes");
    if (zc_custom_int(node, "factor", &times) || zc_custom_int(node, "absent", &times))
        return ZC_ERR_INTERNAL;
    if (in[0].bytes != out[0].bytes || (uintptr_t)out[0].result % 64) return ZC_ERR_INTERNAL;
    zc_custom_parallel(node, (int64_t)(in[0].bytes / sizeof(float)), 16, scale_part, &j);
    return zc_custom_stopped(node) ? ZC_ERR_CANCELLED : ZC_OK;
}

static int scale_runs;
static const zc_custom_op scale = {sizeof scale,     "com.test", "Scale",
                                   infer_like_first, run_scale,  &scale_runs};

/* The positive elements: how many depends on them. */
static int64_t positives(const zc_custom_value *in)
{
    const float *x = in->data;
    int64_t n = 0;
    for (size_t i = 0; i < in->bytes / sizeof *x; i++) n += x[i] > 0;
    return n;
}

static zc_status infer_positive(void *user, zc_custom_node *node, const zc_custom_value *in,
                                size_t nin, zc_custom_value *out, size_t nout)
{
    (void)user, (void)node, (void)nin, (void)nout;
    out[0].elem = ZC_ELEM_F32;
    out[0].rank = 1;
    out[0].dims[0] = in[0].data ? positives(in) : ZC_CUSTOM_DIM_NEW;
    return ZC_OK;
}

static zc_status run_positive(void *user, zc_custom_node *node, const zc_custom_value *in,
                              size_t nin, zc_custom_value *out, size_t nout)
{
    const float *x = in[0].data;
    float *y = out[0].result;
    (void)user, (void)node, (void)nin, (void)nout;
    for (size_t i = 0, n = 0; i < in->bytes / sizeof *x; i++)
        if (x[i] > 0) y[n++] = x[i];
    return ZC_OK;
}

static const zc_custom_op positive = {sizeof positive, "com.test",   "Positive",
                                      infer_positive,  run_positive, NULL};

/* Its user says what goes wrong: in infer (-) or in run (+). */
static zc_status infer_wrong(void *user, zc_custom_node *node, const zc_custom_value *in,
                             size_t nin, zc_custom_value *out, size_t nout)
{
    const int what = *(int *)user;
    ZC_TRY(infer_like_first(NULL, node, in, nin, out, nout));
    if (what == -1) return zc_custom_fail(node, ZC_ERR_INPUT, "does not like it");
    if (what == -2) return ZC_ERR_LIMIT;
    if (what == -3) out[0].elem = 99;
    if (what == -4) out[0].rank = 17;
    if (what == -5) out[0].dims[0] = -1000;
    return ZC_OK;
}

static zc_status run_wrong(void *user, zc_custom_node *node, const zc_custom_value *in, size_t nin,
                           zc_custom_value *out, size_t nout)
{
    (void)in, (void)nin, (void)out, (void)nout;
    if (*(int *)user == 1) return zc_custom_fail(node, ZC_ERR_INPUT, "cannot\n");
    return *(int *)user == 2 ? ZC_ERR_LIMIT : ZC_OK;
}

static int wrong_how;
static const zc_custom_op wrong = {sizeof wrong, "com.test", "Wrong",
                                   infer_wrong,  run_wrong,  &wrong_how};
static const zc_custom_op relu = {sizeof relu, "", "Relu", infer_like_first, run_wrong, &wrong_how};

static const zc_custom_op *const all[] = {&scale, &positive, &wrong};

/* ---- models ---- */

#define ATTRIBUTES                                                                                 \
    " domain=com.test factor:f=0.5 times:i=-3 shifts:fs=1,2,3,4 mode:s=linear twos:is=11,22"

static zc_status compile(const char *text, const zc_custom_op *const *ops, size_t n, zc_plan **plan,
                         zc_diag *diag)
{
    zc_buf model = {0};
    void *bytes;
    size_t len;
    onnx_text(text, &model);
    zc_status status = zc_compile_bytes(model.data, model.len,
                                        ZC_COMPILE_PARAMS(.custom_ops = ops, .custom_op_count = n),
                                        &bytes, &len, diag);
    zc_buf_fini(&model);
    *plan = NULL;
    if (status != ZC_OK) return status;
    status = zc_plan_load_bytes(bytes, len, plan, diag);
    zc_free(bytes);
    return status;
}

static zc_session *session(zc_plan *plan, zc_diag *diag)
{
    zc_session *s = NULL;
    expect_ok(diag,
              zc_session_create(plan, ZC_SESSION_PARAMS(.custom_ops = all, .custom_op_count = 3),
                                &s, diag));
    return s;
}

static zc_status run_rows(zc_session *s, const float *x, int64_t rows, zc_view *y, zc_diag *diag)
{
    const zc_view v = {.elem = ZC_ELEM_F32,
                       .rank = 2,
                       .dims = {rows, 4},
                       .data = x,
                       .bytes = (size_t)rows * 4 * sizeof *x};
    ZC_TRY(zc_session_set_input(s, 0, &v, false, diag));
    ZC_TRY(zc_session_run(s, diag));
    return zc_session_output(s, 0, y, diag);
}

static const char scale_text[] =
    "opset 17\nopset com.test 1\nin x 1 N,4\nout y 1 *\n"
    "node Relu x a\nnode Scale a b name=scaled" ATTRIBUTES "\nnode Neg b y\n";

static void test_results(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_plan *plan;
    zc_io_info io;
    zc_step_info step;
    float x[400];
    expect_ok(diag, compile(scale_text, all, 3, &plan, diag));
    expect_ok(diag, zc_plan_output(plan, 0, &io, diag));
    assert_string_equal(io.dim_texts[0], "N"); /* known from the input, though not yet */
    assert_int_equal(io.dims[1], 4);
    zc_session *s = session(plan, diag);
    for (int i = 0; i < 400; i++) x[i] = (float)(i % 7) - 3;
    scale_runs = 0;
    for (int64_t rows = 1; rows <= 100; rows += 33) {
        zc_view y;
        expect_ok(diag, run_rows(s, x, rows, &y, diag));
        assert_int_equal(y.dims[0], rows);
        for (int64_t i = 0; i < 4 * rows; i++) {
            const float want = -((x[i] > 0 ? x[i] : 0) * 0.5f + (float)(1 + i % 4));
            assert_true(((const float *)y.data)[i] == want);
        }
    }
    assert_int_equal(scale_runs, 4);
    bool found = false;
    for (size_t i = 0; zc_session_step(s, i, &step, NULL) == ZC_OK; i++)
        found |= strcmp(step.op, "Scale") == 0 && strcmp(step.name, "scaled") == 0;
    assert_true(found);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_plan_destroy(&plan);
    zc_diag_destroy(&diag);
}

static void test_sizes_that_values_decide(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_plan *plan;
    zc_view y;
    const float x[8] = {1, -1, 2, -2, 3, -3, -4, 4};
    expect_ok(diag, compile("opset 17\nopset com.test 1\nin x 1 N,4\nout y 1 *\n"
                            "node Positive x p domain=com.test\nnode Neg p y\n",
                            all, 3, &plan, diag));
    zc_session *s = session(plan, diag);
    expect_ok(diag, run_rows(s, x, 1, &y, diag));
    assert_int_equal(y.dims[0], 2);
    expect_ok(diag, run_rows(s, x, 2, &y, diag));
    assert_int_equal(y.dims[0], 4);
    assert_true(((const float *)y.data)[3] == -4);
    expect_ok(diag, run_rows(s, x + 4, 1, &y, diag));
    assert_int_equal(y.dims[0], 2);
    assert_true(((const float *)y.data)[0] == -3);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_plan_destroy(&plan);
    zc_diag_destroy(&diag);
}

static void test_unknown_operators(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_plan *plan;
    zc_session *s = NULL;
    expect_fail(diag, compile(scale_text, all + 1, 2, &plan, diag), ZC_ERR_UNSUPPORTED, "Scale");
    expect_ok(diag, compile(scale_text, all, 1, &plan, diag));
    expect_fail(diag, zc_session_create(plan, NULL, &s, diag), ZC_ERR_UNSUPPORTED,
                "scaled: needs the operator com.test.Scale");
    assert_null(s);
    expect_fail(diag,
                zc_session_create(
                    plan, ZC_SESSION_PARAMS(.custom_ops = all + 1, .custom_op_count = 2), &s, diag),
                ZC_ERR_UNSUPPORTED, "com.test.Scale");
    zc_plan_destroy(&plan);
    zc_diag_destroy(&diag);
}

/* The same model and operators give the same plan. */
static void test_attributes_in_the_plan(void **state)
{
    (void)state;
    zc_buf model = {0};
    void *plans[2];
    size_t len[2];
    onnx_text(scale_text, &model);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            zc_compile_bytes(model.data, model.len,
                             ZC_COMPILE_PARAMS(.custom_ops = all, .custom_op_count = 3), &plans[i],
                             &len[i], NULL),
            ZC_OK);
    assert_true(len[0] == len[1] && memcmp(plans[0], plans[1], len[0]) == 0);
    for (int i = 0; i < 2; i++) zc_free(plans[i]);
    zc_buf_fini(&model);
}

static void test_wrong_lists(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_plan *plan;
    zc_custom_op op = scale;
    const zc_custom_op *const one[] = {&op}, *const twice[] = {&scale, &op}, *const none[] = {NULL};
    expect_fail(diag, compile(scale_text, NULL, 1, &plan, diag), ZC_ERR_ARG, "custom_ops: is NULL");
    expect_fail(diag, compile(scale_text, none, 1, &plan, diag), ZC_ERR_ARG, "is NULL");
    expect_fail(diag, compile(scale_text, twice, 2, &plan, diag), ZC_ERR_ARG, "given twice");
    op.size = 8;
    expect_fail(diag, compile(scale_text, one, 1, &plan, diag), ZC_ERR_ARG, "size is wrong");
    op = scale;
    op.run = NULL;
    expect_fail(diag, compile(scale_text, one, 1, &plan, diag), ZC_ERR_ARG, "`run` is NULL");
    op = scale;
    op.infer = NULL;
    expect_fail(diag, compile(scale_text, one, 1, &plan, diag), ZC_ERR_ARG, "`infer` is NULL");
    op = scale;
    op.name = "";
    expect_fail(diag, compile(scale_text, one, 1, &plan, diag), ZC_ERR_ARG, "has no name");
    zc_diag_destroy(&diag);
}

static const char wrong_text[] = "opset 17\nopset com.test 1\nin x 1 N,4\nout y 1 *\n"
                                 "node Wrong x y name=w domain=com.test\n";

static void test_functions_that_fail(void **state)
{
    (void)state;
    static const struct {
        zc_status status;
        const char *text;
    } faults[] = {{ZC_ERR_INPUT, "w: does not like it"},
                  {ZC_ERR_LIMIT, "w: `infer` of operator Wrong fails"},
                  {ZC_ERR_MODEL, "no element type (got 99)"},
                  {ZC_ERR_MODEL, "no rank (got 17)"},
                  {ZC_ERR_MODEL, "a size that is none"}};
    zc_diag *diag = zc_diag_create();
    zc_plan *plan;
    zc_view y;
    const float x[4] = {0};
    for (int i = 0; i < (int)ZC_COUNTOF(faults); i++) {
        wrong_how = -1 - i;
        expect_fail(diag, compile(wrong_text, all, 3, &plan, diag), faults[i].status,
                    faults[i].text);
    }
    wrong_how = 0;
    expect_ok(diag, compile(wrong_text, all, 3, &plan, diag));
    zc_session *s = session(plan, diag);
    wrong_how = 1;
    expect_fail(diag, run_rows(s, x, 1, &y, diag), ZC_ERR_INPUT, "w: cannot\\x0A");
    wrong_how = 2;
    expect_fail(diag, run_rows(s, x, 1, &y, diag), ZC_ERR_LIMIT,
                "w: `run` of operator Wrong fails");
    wrong_how = 0;
    expect_ok(diag, run_rows(s, x, 1, &y, diag));
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_plan_destroy(&plan);
    expect_fail(diag,
                compile("opset 17\nopset com.test 1\nin x 1 N,4\nout y 1 *\n"
                        "node Wrong x y name=w domain=com.test t:t=1/1/0.5\n",
                        all, 3, &plan, diag),
                ZC_ERR_UNSUPPORTED, "attribute 't'");
    zc_diag_destroy(&diag);
}

/* The caller's come before zc's own, and before functions of the model. */
static void test_before_others(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_plan *plan;
    zc_session *s = NULL;
    const zc_custom_op *const ops[] = {&relu, &positive};
    wrong_how = 0;
    expect_ok(diag, compile("opset 17\nopset com.test 1\nin x 1 N,4\nout y 1 *\n"
                            "func com.test Positive a b\nopset 17\nnode Abs a b\nend\n"
                            "node Relu x r\nnode Positive r y domain=com.test\n",
                            ops, 2, &plan, diag));
    expect_fail(diag, zc_session_create(plan, NULL, &s, diag), ZC_ERR_UNSUPPORTED,
                "needs the operator Relu");
    expect_fail(diag,
                zc_session_create(plan, ZC_SESSION_PARAMS(.custom_ops = ops, .custom_op_count = 1),
                                  &s, diag),
                ZC_ERR_UNSUPPORTED, "needs the operator com.test.Positive");
    zc_plan_destroy(&plan);
    zc_diag_destroy(&diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results),           cmocka_unit_test(test_sizes_that_values_decide),
        cmocka_unit_test(test_unknown_operators), cmocka_unit_test(test_attributes_in_the_plan),
        cmocka_unit_test(test_wrong_lists),       cmocka_unit_test(test_functions_that_fail),
        cmocka_unit_test(test_before_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
