/* Every call of the driver fails once, with each of several codes: loading a plan, creating a
 * session, inputs, runs with and without a graph, results on either side, destruction. The call
 * says so; nothing crashes, hangs or leaks; after a passing fault the session works, after one that
 * breaks the device every call says so at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "cuda/gpu.h"

/* A hang ends the program. */
enum { SECONDS = 500, RUNS = 3, ROWS = 4 };

typedef struct fixture {
    void *bytes;
    size_t len;
} fixture;

/* One sequence of calls. */
typedef struct life {
    const char *what; /* the call that failed; NULL: none */
    zc_status status;
    char text[512];
    zc_plan *plan;
    zc_session *session;
    hc_ptr device; /* memory for the result of the last run */
    gpu_rows in;
    bool bound;
} life;

static const int codes[] = {2, 1, 999, 700, 719};

static bool breaks(int code)
{
    return code == 999 || code == 700 || code == 719;
}

static bool step(life *l, const char *what, zc_status status, zc_diag *diag)
{
    if (status == ZC_OK) {
        if (zc_diag_count(diag)) fail_msg("%s: ok, but says: %s", what, zc_diag_text(diag, 0));
        return true;
    }
    l->what = what;
    l->status = status;
    if (zc_diag_count(diag) != 1) fail_msg("%s: %zu messages", what, zc_diag_count(diag));
    snprintf(l->text, sizeof l->text, "%s", zc_diag_text(diag, 0));
    zc_diag_clear(diag);
    return false;
}

static void check_result(life *l)
{
    zc_view v;
    float back[ROWS * GPU_COLUMNS];
    assert_int_equal(zc_session_output(l->session, 0, &v, NULL), ZC_OK);
    assert_int_equal(v.on_device, l->bound);
    if (v.on_device) {
        assert_int_equal((uintptr_t)v.data, (uintptr_t)l->device);
        memcpy(back, v.data, sizeof back); /* the fake's device memory is host memory */
        v.data = back;
    }
    assert_true(gpu_rows_right(&l->in, v.data));
}

static bool run(life *l, zc_diag *diag)
{
    if (!step(l, "run", zc_session_run(l->session, diag), diag)) return false;
    check_result(l);
    return true;
}

static bool work(life *l, zc_diag *diag)
{
    if (!step(l, "set_input", gpu_rows_set(l->session, &l->in, diag), diag)) return false;
    for (int i = 0; i < RUNS; i++)
        if (!run(l, diag)) return false;
    zc_status bound = zc_session_bind_output_device(l->session, 0, (void *)(uintptr_t)l->device,
                                                    ROWS * GPU_COLUMNS * sizeof(float), diag);
    if (!step(l, "bind_output_device", bound, diag)) return false;
    l->bound = true;
    return run(l, diag);
}

static bool create(life *l, zc_diag *diag)
{
    zc_status status = zc_session_create(
        l->plan, ZC_SESSION_PARAMS(.threads = 1, .device = ZC_DEVICE_CUDA), &l->session, diag);
    return step(l, "create", status, diag);
}

/* ---- after the fault ---- */

static void expect_lost(zc_status status, const char *what)
{
    if (status != ZC_ERR_DEVICE_LOST)
        fail_msg("%s after the device was lost: %s", what, zc_status_name(status));
}

/* No call reaches the driver any more. */
static void every_call_says_lost(life *l)
{
    hc_counts before, after;
    zc_device_info info;
    zc_view view;
    zc_session *another = NULL;
    gpu_counts(&before);
    expect_lost(gpu_rows_set(l->session, &l->in, NULL), "set_input");
    expect_lost(zc_session_bind_output(l->session, 0, NULL, 0, NULL), "bind_output");
    expect_lost(zc_session_bind_output_device(l->session, 0, NULL, 0, NULL), "bind_output_device");
    expect_lost(zc_session_run(l->session, NULL), "run");
    expect_lost(zc_session_enqueue(l->session, NULL), "enqueue");
    expect_lost(zc_session_wait(l->session, NULL), "wait");
    expect_lost(zc_session_output(l->session, 0, &view, NULL), "output");
    expect_lost(
        zc_session_create(l->plan, ZC_SESSION_PARAMS(.device = ZC_DEVICE_CUDA), &another, NULL),
        "create");
    assert_null(another);
    assert_int_equal(zc_session_device(l->session, &info), ZC_OK);
    assert_true(info.lost);
    assert_int_equal(zc_session_destroy(&l->session), ZC_OK);
    assert_null(l->session);
    zc_plan_destroy(&l->plan);
    gpu_counts(&after);
    assert_int_equal(after.calls, before.calls);
}

static void check_words(const life *l, int code, const char *call)
{
    char number[16];
    zc_status want = breaks(code) ? ZC_ERR_DEVICE_LOST : code == 2 ? ZC_ERR_NOMEM : ZC_ERR_DEVICE;
    if (l->status != want &&
        !(code == 1 && l->status == ZC_ERR_ARG && strcmp(call, "cuPointerGetAttribute") == 0))
        fail_msg("%s failed with %d in %s: %s: %s", call, code, l->what, zc_status_name(l->status),
                 l->text);
    snprintf(number, sizeof number, "(%d)", code);
    if (!strstr(l->text, number) && !strstr(l->text, "not enough memory on hostcuda sm_90 (") &&
        !strstr(l->text, "not device memory"))
        fail_msg("%s failed with %d: the message does not say so: %s", call, code, l->text);
}

/* A passing fault is forgotten: the same session goes on. */
static void works_again(life *l, zc_diag *diag)
{
    if (!l->session && !create(l, diag)) fail_msg("create after a passing fault: %s", l->text);
    if (!work(l, diag)) fail_msg("%s after a passing fault: %s", l->what, l->text);
}

static void end(life *l)
{
    assert_int_equal(zc_session_destroy(&l->session), ZC_OK);
    zc_plan_destroy(&l->plan);
}

/* Calls that give something back: where one fails, what it was for is lost. */
static bool gives_back(const char *call)
{
    static const char *const names[] = {
        "cuMemFree_v2",       "cuMemFreeHost",       "cuStreamDestroy_v2",
        "cuGraphExecDestroy", "cuGraphDestroy",      "cuModuleUnload",
        "cuEventDestroy_v2",  "cuCtxPushCurrent_v2", "cuDevicePrimaryCtxRelease_v2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], call) == 0) return true;
    return false;
}

/* ---- one fault ---- */

typedef struct start {
    hc_context_t context; /* the caller's */
    hc_counts counts;
} start;

/* The test's own hold on the driver: what is alive now must be all that is alive at the end. */
static void begin(life *l, start *s)
{
    *l = (life){0};
    assert_int_equal(cuInit(0), 0);
    assert_int_equal(cuDevicePrimaryCtxRetain(&s->context, 0), 0);
    assert_int_equal(cuCtxPushCurrent_v2(s->context), 0);
    assert_int_equal(cuMemAlloc_v2(&l->device, ROWS * GPU_COLUMNS * sizeof(float)), 0);
    gpu_rows_make(&l->in, 5, ROWS, 1);
    gpu_counts(&s->counts);
}

/* The caller's context is current as before, however the calls ended. */
static void check_context(const start *s, const char *call)
{
    hc_context_t now = NULL;
    if (strcmp(call, "cuCtxPopCurrent_v2") == 0) assert_int_equal(cuCtxPopCurrent_v2(&now), 0);
    assert_int_equal(cuCtxGetCurrent(&now), 0);
    assert_ptr_equal(now, s->context);
    assert_int_equal(cuCtxPopCurrent_v2(&now), 0);
    assert_int_equal(cuCtxGetCurrent(&now), 0);
    assert_null(now);
}

/* Contexts that failed calls left current would stay so. */
static void no_context(void)
{
    hc_context_t one;
    gpu_fake(NULL, NULL);
    assert_int_equal(cuInit(0), 0);
    while (cuCtxPopCurrent_v2(&one) == 0) {
    }
}

/* False: fewer than n calls are made. */
static bool one_fault(const fixture *f, long n, int code)
{
    life l;
    start s;
    hc_counts now;
    zc_diag *diag = zc_diag_create();
    gpu_fault("*", n, code);
    begin(&l, &s);
    l.plan = gpu_load(f->bytes, f->len);
    bool good = create(&l, diag) && work(&l, diag);
    gpu_counts(&now);
    bool hit = now.failed[0] != '\0';
    if (!good && !hit) fail_msg("%s failed by itself: %s", l.what, l.text);
    if (!good) check_words(&l, code, now.failed);
    if (hit && breaks(code)) {
        if (good) expect_lost(zc_session_run(l.session, NULL), "run");
        if (l.session) every_call_says_lost(&l);
    } else if (hit) {
        works_again(&l, diag);
    }
    end(&l);
    gpu_counts(&now);
    if (now.failed[0] && !breaks(code)) {
        if (now.live != s.counts.live && !gives_back(now.failed))
            fail_msg("%s failed with %d as call %ld: %zu things stay in the driver", now.failed,
                     code, n, now.live - s.counts.live);
        check_context(&s, now.failed);
    }
    no_context();
    zc_diag_destroy(&diag);
    return now.failed[0] != '\0';
}

static void sweep(const fixture *f, int code)
{
    enum { OWN = 4 }; /* calls of begin */
    long n = OWN + 1;
    alarm(SECONDS);
    while (one_fault(f, n, code)) n++;
    alarm(0);
    print_message("code %d: %ld calls failed, one by one\n", code, n - OWN - 1);
    assert_true(n > 60);
}

static void all_codes(const char *text)
{
    fixture f;
    gpu_needs_fake();
    gpu_fake(NULL, NULL);
    gpu_compile(text, "sm_90", true, &f.bytes, &f.len);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) sweep(&f, codes[i]);
    zc_free(f.bytes);
    gpu_fake(NULL, NULL);
}

static void test_every_call_fails(void **state)
{
    (void)state;
    all_codes(gpu_rows_text);
}

/* The same model by way of steps that learn their shapes as they go, and of one on the CPU. */
static void test_every_call_fails_with_shapes_from_values(void **state)
{
    (void)state;
    all_codes(
        "opset 17\nin x 1 N,8\nin idx 7 M\nout y 1 *\ninit w 1 8 1,2,3,4,5,6,7,8\ninit zero 1 1 0\n"
        "node Gather x,idx g axis:i=0 name=pick\nnode Softmax g p axis:i=1 name=norm\n"
        "node Greater p,zero some name=some\nnode NonZero some nz name=which\n"
        "node Transpose nz at perm:is=1,0 name=turn\nnode GatherND p,at flat name=take\n"
        "node Shape p s\nnode Reshape flat,s q name=back\nnode Mul q,w y name=scale\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_call_fails),
        cmocka_unit_test(test_every_call_fails_with_shapes_from_values),
    };
    return cmocka_run_group_tests(tests, gpu_group_setup, gpu_group_teardown);
}
