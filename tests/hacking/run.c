/* Compiles and runs a model of the operation that hacking.sh adds: y = 3 x by "Double", scale 3. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/expect.h"
#include "support/onnx_text.h"
#include "zc/zc.h"

static const char text[] = "opset 13\nopset com.microsoft 1\nin x 1 n\nout y 1 *\n"
                           "node Double x y domain=com.microsoft scale:f=3\n";

static void test_new_operation(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_buf model = {0};
    void *bytes;
    size_t len;
    zc_plan *plan;
    zc_session *s;
    float x[3] = {1, -2, 0.5f};
    zc_view v = {.elem = 1, .rank = 1, .dims = {3}, .data = x, .bytes = sizeof x}, y;
    onnx_text(text, &model);
    expect_ok(diag, zc_compile_bytes(model.data, model.len, NULL, &bytes, &len, diag));
    expect_ok(diag, zc_plan_load_bytes(bytes, len, &plan, diag));
    expect_ok(diag, zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 1), &s, diag));
    expect_ok(diag, zc_session_set_input(s, 0, &v, false, diag));
    expect_ok(diag, zc_session_run(s, diag));
    expect_ok(diag, zc_session_output(s, 0, &y, diag));
    assert_int_equal(y.bytes, sizeof x);
    for (int i = 0; i < 3; i++) assert_float_equal(((float *)y.data)[i], 3 * x[i], 0);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_plan_destroy(&plan);
    zc_free(bytes);
    zc_buf_fini(&model);
    zc_diag_destroy(&diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_new_operation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
