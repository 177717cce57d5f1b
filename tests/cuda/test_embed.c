/* Sessions on a GPU: the caller's operators, which run on the CPU between kernels, polling, and
 * tensors of other libraries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cuda/gpu.h"
#include "runtime/dlpack_abi.h"
#include "support/custom_same.h"
#include "support/onnx_text.h"
#include "zc/dlpack.h"

enum { ROWS = 4, COLUMNS = 8, COUNT = ROWS * COLUMNS };

static zc_session *cancelled; /* by the next run of Half */

static zc_status run_half(void *user, zc_custom_node *node, const zc_custom_value *in, size_t nin,
                          zc_custom_value *out, size_t nout)
{
    const float *x = in[0].data;
    float *y = out[0].result;
    (void)node, (void)nin, (void)nout;
    ++*(int *)user;
    if (cancelled) zc_session_cancel(cancelled);
    for (size_t i = 0; i < in[0].bytes / sizeof *x; i++) y[i] = x[i] / 2;
    return ZC_OK;
}

static int runs;
static const zc_custom_op half = {sizeof half,       "com.test", "Half",
                                  custom_infer_same, run_half,   &runs};
static const zc_custom_op *const ops[] = {&half};

typedef struct fixture {
    zc_plan *plan;
    zc_session *session;
    zc_diag *diag;
    hc_context_t context;
    float x[COUNT];
} fixture;

static int setup(void **state)
{
    static const char *const targets[] = {"sm_90"};
    fixture *f = calloc(1, sizeof *f);
    zc_buf model = {0};
    void *bytes;
    size_t len;
    gpu_fake(NULL, NULL);
    f->diag = zc_diag_create();
    onnx_text("opset 17\nopset com.test 1\nin x 1 n,8\nout y 1 *\ninit w 1 8 1,2,3,4,5,6,7,8\n"
              "node Add x,w a\nnode Half a h domain=com.test\nnode Mul h,w y\n",
              &model);
    expect_ok(f->diag, zc_compile_bytes(model.data, model.len,
                                        ZC_COMPILE_PARAMS(.targets = targets, .target_count = 1,
                                                          .custom_ops = ops, .custom_op_count = 1),
                                        &bytes, &len, f->diag));
    zc_buf_fini(&model);
    f->plan = gpu_load(bytes, len);
    zc_free(bytes);
    expect_ok(f->diag, zc_session_create(f->plan,
                                         ZC_SESSION_PARAMS(.device = ZC_DEVICE_CUDA,
                                                           .custom_ops = ops, .custom_op_count = 1),
                                         &f->session, f->diag));
    for (int i = 0; i < COUNT; i++) f->x[i] = (float)(i * 7 % 10);
    assert_int_equal(cuDevicePrimaryCtxRetain(&f->context, 0), 0);
    assert_int_equal(cuCtxPushCurrent_v2(f->context), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    assert_int_equal(zc_session_destroy(&f->session), ZC_OK);
    zc_plan_destroy(&f->plan);
    assert_int_equal(cuCtxPopCurrent_v2(&f->context), 0);
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), 0);
    zc_diag_destroy(&f->diag);
    free(f);
    return 0;
}

static void set_input(const fixture *f, zc_session *s)
{
    const zc_view x = {.elem = ZC_ELEM_F32,
                       .rank = 2,
                       .dims = {ROWS, COLUMNS},
                       .data = f->x,
                       .bytes = sizeof f->x};
    expect_ok(f->diag, zc_session_set_input(s, 0, &x, false, f->diag));
}

static void check(const fixture *f, const float *y)
{
    for (int i = 0; i < COUNT; i++) {
        const float w = (float)(1 + i % COLUMNS);
        assert_true(y[i] == (f->x[i] + w) / 2 * w);
    }
}

static void check_result(const fixture *f)
{
    zc_view y;
    expect_ok(f->diag, zc_session_output(f->session, 0, &y, f->diag));
    assert_int_equal(y.bytes, sizeof f->x);
    check(f, y.data);
}

static void test_operator_between_kernels(void **state)
{
    fixture *f = *state;
    zc_device_info device;
    set_input(f, f->session);
    runs = 0;
    for (int i = 0; i < 3; i++) { /* found, recorded, replayed */
        expect_ok(f->diag, zc_session_run(f->session, f->diag));
        check_result(f);
    }
    assert_int_equal(runs, 3);
    assert_int_equal(zc_session_device(f->session, &device), ZC_OK);
    assert_int_equal(device.gpu_steps, 2);
    assert_int_equal(device.cpu_steps, 1);
    expect_ok(f->diag, zc_session_enqueue(f->session, f->diag));
    for (bool done = false; !done;) expect_ok(f->diag, zc_session_poll(f->session, &done, f->diag));
    check_result(f);
}

/* A run that is cancelled between two of its steps gives nothing; the next does. */
static void test_cancel_between_kernels(void **state)
{
    fixture *f = *state;
    zc_view y;
    set_input(f, f->session);
    for (int i = 0; i < 3; i++) {
        cancelled = f->session;
        zc_status status = zc_session_run(f->session, f->diag);
        cancelled = NULL;
        expect_fail(f->diag, status, ZC_ERR_CANCELLED, "");
        expect_fail(f->diag, zc_session_output(f->session, 0, &y, f->diag), ZC_ERR_ARG,
                    "y: no run has given a result");
        expect_ok(f->diag, zc_session_run(f->session, f->diag));
        check_result(f);
    }
}

/* Runs on the stream count once they are waited for. */
static void test_counters(void **state)
{
    fixture *f = *state;
    zc_counters c;
    set_input(f, f->session);
    expect_ok(f->diag, zc_session_run(f->session, f->diag));
    for (int i = 0; i < 3; i++) expect_ok(f->diag, zc_session_enqueue(f->session, f->diag));
    assert_int_equal(zc_plan_counters(f->plan, &c), ZC_OK);
    assert_int_equal(c.runs, 1);
    expect_ok(f->diag, zc_session_wait(f->session, f->diag));
    assert_int_equal(zc_plan_counters(f->plan, &c), ZC_OK);
    assert_int_equal(c.runs, 4);
    assert_int_equal(c.shapes, 1);
}

/* ---- device memory of the caller's ---- */

typedef struct pool {
    int held, given, refuse; /* pieces; refuse: number `given` that is refused, or 0 */
    size_t bytes;
    uintptr_t shift;
} pool;

static void *pool_alloc(void *user, size_t bytes, size_t align)
{
    pool *p = user;
    hc_ptr at;
    assert_int_equal(align, 256);
    assert_true(bytes > 0);
    if (++p->given == p->refuse || cuMemAlloc_v2(&at, bytes + 256) != 0) return NULL;
    p->held++;
    p->bytes += bytes;
    return (void *)((uintptr_t)at + p->shift);
}

static void pool_free(void *user, void *at, size_t bytes)
{
    pool *p = user;
    assert_non_null(at);
    p->held--;
    p->bytes -= bytes;
    assert_int_equal(cuMemFree_v2((hc_ptr)((uintptr_t)at - p->shift)), 0);
}

static zc_session *pooled_session(fixture *f, pool *p)
{
    zc_session *s;
    const zc_allocator own = {pool_alloc, pool_free, p};
    expect_ok(f->diag,
              zc_session_create(f->plan,
                                ZC_SESSION_PARAMS(.device = ZC_DEVICE_CUDA, .custom_ops = ops,
                                                  .custom_op_count = 1, .device_allocator = &own),
                                &s, f->diag));
    set_input(f, s);
    return s;
}

static void test_device_allocator(void **state)
{
    fixture *f = *state;
    pool p = {0};
    zc_view y;
    zc_device_info device;
    zc_session *s = pooled_session(f, &p);
    for (int i = 0; i < 3; i++) expect_ok(f->diag, zc_session_run(s, f->diag));
    expect_ok(f->diag, zc_session_output(s, 0, &y, f->diag));
    check(f, y.data);
    assert_true(p.held > 0);
    assert_int_equal(zc_session_device(s, &device), ZC_OK);
    assert_int_equal(device.memory, p.bytes); /* all of it is the pool's */
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    assert_int_equal(p.held, 0);
    assert_int_equal(p.bytes, 0);
}

static void test_device_allocator_that_refuses(void **state)
{
    fixture *f = *state;
    pool all = {0};
    zc_session *s = pooled_session(f, &all);
    expect_ok(f->diag, zc_session_run(s, f->diag));
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    assert_true(all.given > 0);
    for (int i = 1; i <= all.given; i++) {
        pool p = {.refuse = i};
        s = pooled_session(f, &p);
        expect_fail(f->diag, zc_session_run(s, f->diag), ZC_ERR_NOMEM,
                    "device_allocator has no more (need ");
        expect_ok(f->diag, zc_session_run(s, f->diag));
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
        assert_int_equal(p.held, 0);
    }
}

static void test_device_allocator_misaligned(void **state)
{
    fixture *f = *state;
    pool p = {.shift = 16};
    zc_session *s = pooled_session(f, &p);
    expect_fail(f->diag, zc_session_run(s, f->diag), ZC_ERR_ARG,
                "device_allocator: gave memory that is not aligned");
    assert_int_equal(p.held, 0);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

static int deleted;

static void delete_one(struct DLManagedTensorVersioned *self)
{
    (void)self;
    deleted++;
}

static void test_dlpack(void **state)
{
    fixture *f = *state;
    int64_t shape[] = {ROWS, COLUMNS}, turned[] = {1, ROWS};
    hc_ptr memory;
    struct DLManagedTensorVersioned *y;
    struct DLManagedTensorVersioned m = {.major = 1,
                                         .deleter = delete_one,
                                         .tensor = {.device_type = ZC_DL_CUDA,
                                                    .ndim = 2,
                                                    .code = 2,
                                                    .bits = 32,
                                                    .lanes = 1,
                                                    .shape = shape}};
    assert_int_equal(cuMemAlloc_v2(&memory, sizeof f->x), 0);
    gpu_put(memory, f->x, sizeof f->x);
    m.tensor.data = (void *)(uintptr_t)memory;
    deleted = 0;
    m.tensor.device_id = 1;
    expect_fail(f->diag, zc_session_set_input_dlpack(f->session, 0, &m, f->diag), ZC_ERR_ARG,
                "a tensor on another GPU (got 1, need 0)");
    m.tensor.device_id = 0;
    m.tensor.strides = turned;
    expect_fail(f->diag, zc_session_set_input_dlpack(f->session, 0, &m, f->diag),
                ZC_ERR_UNSUPPORTED, "device memory with gaps");
    m.tensor.strides = NULL;
    expect_ok(f->diag, zc_session_set_input_dlpack(f->session, 0, &m, f->diag));
    for (int i = 0; i < 3; i++) {
        expect_ok(f->diag, zc_session_run(f->session, f->diag));
        expect_ok(f->diag, zc_session_take_output_dlpack(f->session, 0, &y, f->diag));
        check(f, y->tensor.data);
        y->deleter(y);
    }
    zc_session *s = f->session;
    f->session = NULL;
    assert_int_equal(deleted, 0);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    assert_int_equal(deleted, 1);
    assert_int_equal(cuMemFree_v2(memory), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_counters, setup, teardown),
        cmocka_unit_test_setup_teardown(test_operator_between_kernels, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cancel_between_kernels, setup, teardown),
        cmocka_unit_test_setup_teardown(test_device_allocator, setup, teardown),
        cmocka_unit_test_setup_teardown(test_device_allocator_that_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_device_allocator_misaligned, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dlpack, setup, teardown),
    };
    return cmocka_run_group_tests(tests, gpu_group_setup, gpu_group_teardown);
}
