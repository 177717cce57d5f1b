/* Runs that end early, within a step: by zc_session_params.timeout_ms and by zc_session_cancel. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/expect.h"
#include "support/onnx_text.h"
#include "zc/zc.h"

/* Each takes several times LIMIT_MS in one step. */
static const struct {
    const char *name, *text;
} models[] = {
    {"product", "opset 17\nin x 1 3000,1500\nout y 1 *\ninit s 7 2 1500,3000\n"
                "node ConstantOfShape s w value:t=1/1/0.01\nnode MatMul x,w y\n"},
    {"convolution", "opset 17\nin x 1 1,64,224,224\nout y 1 *\ninit s 7 4 96,64,3,3\n"
                    "node ConstantOfShape s w value:t=1/1/0.01\nnode Conv x,w y pads:is=1,1,1,1\n"},
    {"convolution of images", "opset 17\nin x 1 40,64,28,28\nout y 1 *\ninit s 7 4 192,64,3,3\n"
                              "node ConstantOfShape s w value:t=1/1/0.01\nnode Conv x,w y\n"},
    {"grouped convolution",
     "opset 17\nin x 1 1,64,224,224\nout y 1 *\ninit s 7 4 128,32,3,3\n"
     "node ConstantOfShape s w value:t=1/1/0.01\nnode Conv x,w y group:i=2\n"},
    {"attention", "opset 23\nin x 1 1,8,1600,64\nout y 1 *\nnode Attention x,x,x y\n"},
    {"recurrent", "opset 17\nin x 1 6000,1,128\nout y 1 *\n"
                  "init s 7 3 1,1024,128\nnode ConstantOfShape s w value:t=1/1/0.05\n"
                  "init t 7 3 1,1024,256\nnode ConstantOfShape t r value:t=1/1/0.06\n"
                  "node LSTM x,w,r y hidden_size:i=256\n"},
    {"pointwise", "opset 17\nin x 1 4000,4000\nout y 1 *\nnode Erf x e\nnode Tan e y\n"},
    {"softmax", "opset 17\nin x 1 10000,4000\nout y 1 *\nnode Softmax x y\n"},
    {"einsum", "opset 17\nin x 1 50,60,70\nout y 1 *\n"
               "node Einsum x,x,x y equation:s=abc,abd,abe->cde\n"},
    {"pooling", "opset 17\nin x 1 1,32,400,400\nout y 1 *\nnode AveragePool x y "
                "kernel_shape:is=9,9\n"},
    {"integers", "opset 17\nin x 7 400,400\nout y 7 *\nnode MatMul x,x y\n"},
};

/* Kernels are ten times slower and more under a sanitizer. */
#ifdef __SANITIZE_ADDRESS__
enum { LIMIT_MS = 10, PATIENCE_MS = 300 };
#else
enum { LIMIT_MS = 10, PATIENCE_MS = 10 };
#endif

typedef struct fixture {
    zc_plan *plan;
    zc_session *session;
    zc_diag *diag;
} fixture;

static void begin(fixture *f, const char *text, uint32_t timeout_ms)
{
    zc_buf model = {0};
    void *bytes;
    size_t len;
    zc_io_info io;
    f->diag = zc_diag_create();
    onnx_text(text, &model);
    expect_ok(f->diag, zc_compile_bytes(model.data, model.len, NULL, &bytes, &len, f->diag));
    expect_ok(f->diag, zc_plan_load_bytes(bytes, len, &f->plan, f->diag));
    expect_ok(f->diag,
              zc_session_create(f->plan, ZC_SESSION_PARAMS(.threads = 1, .timeout_ms = timeout_ms),
                                &f->session, f->diag));
    expect_ok(f->diag, zc_plan_input(f->plan, 0, &io, f->diag));
    zc_view v = {.elem = io.elem, .rank = io.rank, .bytes = (size_t)io.bytes};
    memcpy(v.dims, io.dims, sizeof v.dims);
    v.data = calloc(1, v.bytes);
    expect_ok(f->diag, zc_session_set_input(f->session, 0, &v, false, f->diag));
    free((void *)(uintptr_t)v.data);
    zc_free(bytes);
    zc_buf_fini(&model);
}

static void end(fixture *f)
{
    assert_int_equal(zc_session_destroy(&f->session), ZC_OK);
    zc_plan_destroy(&f->plan);
    zc_diag_destroy(&f->diag);
}

/* Of this thread alone, so that a busy machine does not count. */
static double cpu_ms(clockid_t clock)
{
    struct timespec t;
    assert_int_equal(clock_gettime(clock, &t), 0);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void test_limit(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(models); i++) {
        fixture f;
        double least = 1e9;
        begin(&f, models[i].text, LIMIT_MS);
        for (int run = 0; run < 4; run++) { /* the first one generates code */
            const double before = cpu_ms(CLOCK_THREAD_CPUTIME_ID);
            zc_status status = zc_session_run(f.session, f.diag);
            const double took = cpu_ms(CLOCK_THREAD_CPUTIME_ID) - before;
            if (took < least) least = took;
            if (status != ZC_ERR_TIMEOUT)
                fail_msg("%s: %s after %g ms", models[i].name, zc_status_name(status), took);
            expect_fail(f.diag, status, ZC_ERR_TIMEOUT, "not done within 10 ms");
            zc_view y;
            assert_int_equal(zc_session_output(f.session, 0, &y, NULL), ZC_ERR_ARG);
        }
        print_message("%s: %.1f ms\n", models[i].name, least);
        if (least > LIMIT_MS + PATIENCE_MS) fail_msg("%s: %g ms", models[i].name, least);
        end(&f);
    }
}

typedef struct runner {
    fixture *f;
    zc_status status;
    double end;
} runner;

static void *run(void *arg)
{
    runner *r = arg;
    r->status = zc_session_run(r->f->session, r->f->diag);
    r->end = cpu_ms(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

static void test_cancel(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(models); i++) {
        fixture f;
        double least = 1e9;
        int cancelled = 0;
        begin(&f, models[i].text, 0);
        for (int times = 0; times < 4; times++) {
            runner r = {.f = &f};
            pthread_t thread;
            clockid_t clock;
            assert_int_equal(pthread_create(&thread, NULL, run, &r), 0);
            assert_int_equal(pthread_getcpuclockid(thread, &clock), 0);
            while (cpu_ms(clock) < 5) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            const double asked = cpu_ms(clock);
            zc_session_cancel(f.session);
            pthread_join(thread, NULL);
            cancelled += r.status == ZC_ERR_CANCELLED;
            if (r.status == ZC_ERR_CANCELLED && r.end - asked < least) least = r.end - asked;
            zc_diag_clear(f.diag);
        }
        print_message("%s: %.1f ms\n", models[i].name, least);
        assert_true(cancelled >= 3);
        if (least > PATIENCE_MS) fail_msg("%s: %g ms", models[i].name, least);
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
