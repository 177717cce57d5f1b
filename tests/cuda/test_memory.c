/* Device memory that runs out: the message has the MiB that were needed and free, and the session
 * works when memory is there again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cuda/gpu.h"

#define MIB ((size_t)1 << 20)

static int setup(void **state)
{
    *state = gpu_fixture_create(true);
    return 0;
}

static int teardown(void **state)
{
    gpu_fixture_destroy(*state, false);
    return 0;
}

/* A device of 64 MiB. */
static gpu_fixture *with_little_memory(void **state)
{
    gpu_fake("MEMORY", "67108864");
    return *state;
}

/* Another program's memory: all but `leave` bytes. */
static hc_ptr take_all_but(gpu_fixture *f, size_t leave)
{
    size_t available, total;
    hc_ptr p;
    assert_int_equal(cuInit(0), 0);
    assert_int_equal(cuDevicePrimaryCtxRetain(&f->context, 0), 0);
    assert_int_equal(cuCtxPushCurrent_v2(f->context), 0);
    assert_int_equal(cuMemGetInfo_v2(&available, &total), 0);
    assert_int_equal(cuMemAlloc_v2(&p, available - leave), 0);
    return p;
}

static void give_back(gpu_fixture *f, hc_ptr p)
{
    assert_int_equal(cuMemFree_v2(p), 0);
    assert_int_equal(cuCtxPopCurrent_v2(&f->context), 0);
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), 0);
}

static zc_status try_create(gpu_fixture *f, zc_session **s)
{
    return zc_session_create(f->plan, ZC_SESSION_PARAMS(.threads = 1, .device = ZC_DEVICE_CUDA), s,
                             f->diag);
}

static void test_constants_do_not_fit(void **state)
{
    gpu_fixture *f = with_little_memory(state);
    zc_session *s = NULL;
    hc_ptr hog = take_all_but(f, 16);
    expect_fail(f->diag, try_create(f, &s), ZC_ERR_NOMEM,
                "the model's constants: not enough memory on hostcuda sm_90 (need 1 MiB, 0 MiB of "
                "64 MiB are free)");
    assert_null(s);
    give_back(f, hog);
    s = gpu_session(f->plan);
    gpu_rows_run(s, &f->in);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

/* Calls of loading and creating that take memory; the fake refuses each once. */
static void test_loading_and_creating(void **state)
{
    static const struct {
        const char *call, *text;
    } cases[] = {
        {"cuModuleLoadData", "not enough memory on hostcuda sm_90 (need 1 MiB, "},
        {"cuMemAlloc_v2", "not enough memory on hostcuda sm_90 (need 1 MiB, "},
        {"cuStreamCreate",
         "cuStreamCreate: not enough memory on hostcuda sm_90 (16383 MiB of 16384 MiB are free)"},
        {"cuMemHostAlloc",
         "fault word: not enough memory on hostcuda sm_90 (16383 MiB of 16384 MiB are free)"},
        {"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY (2)"}};
    gpu_fixture *f = *state;
    gpu_needs_fake();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        zc_session *s = NULL;
        zc_plan_destroy(&f->plan);
        gpu_fault(cases[i].call, 1, 2);
        f->plan = gpu_load(f->bytes, f->len);
        expect_fail(f->diag, try_create(f, &s), ZC_ERR_NOMEM, cases[i].text);
        assert_null(s);
        s = gpu_session(f->plan);
        gpu_rows_run(s, &f->in);
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
    }
}

static void test_first_run(void **state)
{
    gpu_fixture *f = with_little_memory(state);
    zc_session *s = gpu_session(f->plan);
    hc_ptr hog = take_all_but(f, 64);
    expect_ok(f->diag, gpu_rows_set(s, &f->in, f->diag));
    for (int i = 0; i < 3; i++)
        expect_fail(f->diag, zc_session_run(s, f->diag), ZC_ERR_NOMEM,
                    "not enough memory on hostcuda sm_90 (need 1 MiB, 0 MiB of 64 MiB are free)");
    give_back(f, hog);
    for (int i = 0; i < 3; i++) gpu_rows_run(s, &f->in);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

/* Without the memory for a graph, the kernels are issued one by one, and the session tells. */
static void test_graph(void **state)
{
    gpu_fixture *f = *state;
    zc_device_info info;
    gpu_needs_fake();
    zc_plan_destroy(&f->plan);
    gpu_fault("cuGraphInstantiateWithFlags", 1, 2);
    f->plan = gpu_load(f->bytes, f->len);
    zc_session *s = gpu_session(f->plan);
    for (int i = 0; i < 4; i++) gpu_rows_run(s, &f->in);
    assert_int_equal(zc_session_device(s, &info), ZC_OK);
    assert_int_equal(info.graphs, 0);
    assert_true(info.launches >= 2);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    s = gpu_session(f->plan);
    for (int i = 0; i < 4; i++) gpu_rows_run(s, &f->in);
    assert_int_equal(zc_session_device(s, &info), ZC_OK);
    assert_int_equal(info.graphs, 1);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

/* ---- shapes that fit after one that did not ---- */

/* Sums of rows, of columns, of all: the last needs scratch memory. */
static const char sums_text[] =
    "opset 18\nin x 1 N,K\nout all 1 *\nout top 1 *\ninit k 7 1 1\n"
    "node Relu x r name=relu\nnode ReduceSum r all keepdims:i=0 name=sum\n"
    "node TopK r,k top,_ axis:i=1 name=best\n";

static zc_status sums_run(zc_session *s, int64_t n, int64_t k, zc_diag *diag)
{
    size_t bytes = (size_t)(n * k) * sizeof(float);
    float *x = malloc(bytes ? bytes : 1);
    zc_view v = {.elem = 1, .rank = 2, .dims = {n, k}, .data = x, .bytes = bytes};
    for (int64_t i = 0; i < n * k; i++) x[i] = i == 7 ? 3 : 1;
    zc_status status = zc_session_set_input(s, 0, &v, false, diag);
    free(x);
    if (status == ZC_OK) status = zc_session_run(s, diag);
    if (status != ZC_OK) return status;
    assert_int_equal(zc_session_output(s, 0, &v, diag), ZC_OK);
    assert_true(*(float *)v.data == (float)(n * k + 2));
    assert_int_equal(zc_session_output(s, 1, &v, diag), ZC_OK);
    assert_true(*(float *)v.data == 3);
    return ZC_OK;
}

static void test_smaller_shapes_work_again(void **state)
{
    gpu_fixture *f = with_little_memory(state);
    zc_free(f->bytes);
    zc_plan_destroy(&f->plan);
    gpu_compile(sums_text, "sm_90", true, &f->bytes, &f->len);
    f->plan = gpu_load(f->bytes, f->len);
    zc_session *s = gpu_session(f->plan);
    for (int i = 0; i < 3; i++) expect_ok(f->diag, sums_run(s, 4, 3000, f->diag));
    int failed = 0;
    /* From hardly anything up: the run fails at every allocation it makes, in turn. */
    for (size_t leave = 0; leave < 8 * MIB; leave += leave < MIB ? 96 << 10 : MIB / 2) {
        hc_ptr hog = take_all_but(f, leave);
        zc_status status = sums_run(s, 16, 50000, f->diag);
        give_back(f, hog);
        if (status != ZC_OK) {
            failed++;
            expect_fail(f->diag, status, ZC_ERR_NOMEM, "MiB of 64 MiB are free)");
        }
        for (int i = 0; i < 2; i++) expect_ok(f->diag, sums_run(s, 4, 3000, f->diag));
        expect_ok(f->diag, sums_run(s, 1, 20, f->diag));
        if (status == ZC_OK) break;
    }
    assert_true(failed >= 3);
    expect_ok(f->diag, sums_run(s, 16, 50000, f->diag));
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_constants_do_not_fit),
        T(test_loading_and_creating),
        T(test_first_run),
        T(test_graph),
        T(test_smaller_shapes_work_again),
    };
    return cmocka_run_group_tests(tests, gpu_group_setup, gpu_group_teardown);
}
