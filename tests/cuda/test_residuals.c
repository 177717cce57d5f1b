/* Residuals of quantised networks: each pair of bytes there is, beside what the graph says of it.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/gpu.h"
#include "support/onnx_text.h"

enum { CHANNELS = 16, SIDE = 64, PAIRS = CHANNELS * SIDE * SIDE }; /* 65,536 */

/* y = quantised(x scaled + r scaled), both by way of convolutions that give them as they are. */
typedef struct residual {
    int x, r, y;        /* element types: 2 u8, 3 i8 */
    float xs, rs, ys;   /* scales */
    int xz, rz, yz;     /* zero points */
    bool relu, r_first; /* r_first: in the sum */
} residual;

static void put_model(const residual *m, zc_buf *b)
{
    zc_buf_printf(b, "opset 17\nin x %d 1,%d,%d,%d\nin r %d 1,%d,%d,%d\nout y %d *\n", m->x,
                  CHANNELS, SIDE, SIDE, m->r, CHANNELS, SIDE, SIDE, m->y);
    zc_buf_printf(b, "init one 1 - 1\ninit xn %d - 0\ninit rn %d - 0\ninit wz 3 - 0\n", m->x, m->r);
    zc_buf_printf(b, "init xs 1 - %.9g\ninit rs 1 - %.9g\ninit ys 1 - %.9g\n", (double)m->xs,
                  (double)m->rs, (double)m->ys);
    zc_buf_printf(b, "init xz %d - %d\ninit rz %d - %d\ninit yz %d - %d\n", m->x, m->xz, m->r,
                  m->rz, m->y, m->yz);
    zc_buf_printf(b, "init w 3 %d,%d,1,1 ", CHANNELS, CHANNELS);
    for (int i = 0; i < CHANNELS * CHANNELS; i++)
        zc_buf_printf(b, "%s%d", i ? "," : "", i / CHANNELS == i % CHANNELS);
    for (int i = 0; i < 2; i++) {
        const char n = "xr"[i];
        zc_buf_printf(b, "\nnode QLinearConv %c,one,%cn,w,one,wz,one,%cn %cq\n", n, n, n, n);
        zc_buf_printf(b, "node DequantizeLinear %cq,%cs,%cz %cf\n", n, n, n, n);
    }
    zc_buf_printf(b, "node Add %s c\n", m->r_first ? "rf,xf" : "xf,rf");
    zc_buf_puts(b, m->relu ? "node Relu c d\nnode QuantizeLinear d,ys,yz y\n"
                           : "node QuantizeLinear c,ys,yz y\n");
}

static zc_plan *plan_of(const residual *m)
{
    zc_buf text = {0}, model = {0};
    zc_diag *diag = zc_diag_create();
    const char *target = "sm_90";
    zc_compile_params params = {
        .size = sizeof params, .targets = &target, .target_count = 1, .threads = 2};
    void *bytes;
    size_t len;
    put_model(m, &text);
    onnx_text(text.data, &model);
    expect_ok(diag, zc_compile_bytes(model.data, model.len, &params, &bytes, &len, diag));
    zc_plan *plan = gpu_load(bytes, len);
    zc_free(bytes);
    zc_buf_fini(&model);
    zc_buf_fini(&text);
    zc_diag_destroy(&diag);
    return plan;
}

static int number_of(int type, int code)
{
    return type == 3 ? (int8_t)code : code;
}

static unsigned char byte_of(const residual *m, int x, int r)
{
    const float a = ((float)number_of(m->x, x) - (float)m->xz) * m->xs;
    const float b = ((float)number_of(m->r, r) - (float)m->rz) * m->rs;
    const float sum = a + b, kept = m->relu && sum < 0 ? 0 : sum;
    const int v = (int)rintf(kept / m->ys) + m->yz, least = m->y == 3 ? -128 : 0;
    return (unsigned char)(v < least ? least : v > least + 255 ? least + 255 : v);
}

static void test_every_pair(void **state)
{
    (void)state;
    static const residual models[] = {
        /* In another order of the sum some pairs are off by one. */
        {3, 2, 3, 0.0739917383f, 0.0267115533f, 0.0769734606f, 4, 0, -1, false, true},
        {2, 2, 2, 0.0237f, 0.0216f, 0.0316f, 0, 3, 0, true, false},
        {2, 2, 2, 0.0237f, 0.0216f, 0.0316f, 0, 3, 0, true, true},
        {2, 3, 2, 0.018949f, 0.030312f, 0.028423f, 115, 3, 0, true, false},
        {3, 3, 3, 0.018949f, 0.030312f, 0.028423f, -5, 9, 7, false, true},
        /* No sum has these, as there are hundreds of ties. */
        {2, 2, 2, 0.0184f, 0.0301f, 0.0282f, 115, 3, 0, true, false},
        {2, 2, 2, 0.0184f, 0.0301f, 0.0282f, 115, 3, 20, true, true},
    };
    static unsigned char x[PAIRS], r[PAIRS];
    zc_diag *diag = zc_diag_create();
    for (int i = 0; i < PAIRS; i++) {
        x[i] = (unsigned char)(i / 256);
        r[i] = (unsigned char)(i % 256);
    }
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        zc_plan *plan = plan_of(&models[m]);
        zc_session *s = gpu_session(plan);
        zc_view y, in = {.elem = models[m].x,
                         .rank = 4,
                         .dims = {1, CHANNELS, SIDE, SIDE},
                         .data = x,
                         .bytes = sizeof x};
        expect_ok(diag, zc_session_set_input(s, 0, &in, false, diag));
        in.elem = models[m].r;
        in.data = r;
        expect_ok(diag, zc_session_set_input(s, 1, &in, false, diag));
        expect_ok(diag, zc_session_run(s, diag));
        expect_ok(diag, zc_session_output(s, 0, &y, diag));
        const unsigned char *got = y.data;
        for (int i = 0; i < PAIRS; i++) {
            const unsigned char need = byte_of(&models[m], x[i], r[i]);
            if (got[i] != need)
                fail_msg("model %zu, %d and %d: got %d, need %d", m, x[i], r[i], got[i], need);
        }
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
        zc_plan_destroy(&plan);
    }
    zc_diag_destroy(&diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pair),
    };
    return cmocka_run_group_tests(tests, gpu_group_setup, gpu_group_teardown);
}
