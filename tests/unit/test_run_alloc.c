/* Memory that runs out in a run whose shapes are known: every allocation of the process fails once,
 * oneDNN's included. The run says so, and the next one gives the same results. Arguments: plans;
 * without any, models from lines of text that use every fast kernel of oneDNN. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/expect.h"
#include "support/onnx_text.h"
#include "zc/zc.h"

/* ---- the process's allocations ---- */

static atomic_long countdown; /* 0: off */
static atomic_long count;
static atomic_bool happened;

static bool fails(void)
{
    atomic_fetch_add(&count, 1);
    long n = atomic_load(&countdown);
    while (n > 0)
        if (atomic_compare_exchange_weak(&countdown, &n, n - 1)) break;
    if (n != 1) return false;
    atomic_store(&happened, true);
    errno = ENOMEM;
    return true;
}

static void fail_at(long n)
{
    atomic_store(&happened, false);
    atomic_store(&count, 0);
    atomic_store(&countdown, n);
}

/* glibc's own, under their other names: these take the place of all others in the process. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);

ZC_API void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}
ZC_API void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}
ZC_API void *realloc(void *p, size_t size)
{
    return fails() ? NULL : __libc_realloc(p, size);
}
ZC_API void *aligned_alloc(size_t align, size_t size)
{
    return fails() ? NULL : __libc_memalign(align, size);
}
ZC_API int posix_memalign(void **out, size_t align, size_t size)
{
    if (fails()) return ENOMEM;
    *out = __libc_memalign(align, size);
    return *out ? 0 : ENOMEM;
}

/* ---- runs ---- */

static void set_inputs(const zc_plan *plan, zc_session *s)
{
    zc_plan_info info;
    assert_int_equal(zc_plan_info_get(plan, &info), ZC_OK);
    for (size_t i = 0; i < info.inputs; i++) {
        zc_io_info io;
        assert_int_equal(zc_plan_input(plan, i, &io, NULL), ZC_OK);
        zc_view v = {.elem = io.elem, .rank = io.rank};
        size_t n = 1;
        for (int d = 0; d < io.rank; d++)
            n *= (size_t)(v.dims[d] = io.dims[d] > 0 ? io.dims[d] : 2);
        assert_true(io.elem == 1 || io.elem == 7);
        v.bytes = n * (io.elem == 1 ? sizeof(float) : sizeof(int64_t));
        v.data = calloc(1, v.bytes);
        for (size_t e = 0; e < n; e++) {
            if (io.elem == 1)
                ((float *)v.data)[e] = (float)(e % 13) / 8 - 0.5f;
            else
                ((int64_t *)v.data)[e] = 1;
        }
        assert_int_equal(zc_session_set_input(s, i, &v, false, NULL), ZC_OK);
        free((void *)(uintptr_t)v.data);
    }
}

static uint64_t sum_of_outputs(const zc_plan *plan, const zc_session *s)
{
    zc_plan_info info;
    uint64_t sum = UINT64_C(1469598103934665603);
    assert_int_equal(zc_plan_info_get(plan, &info), ZC_OK);
    for (size_t i = 0; i < info.outputs; i++) {
        zc_view v;
        assert_int_equal(zc_session_output(s, i, &v, NULL), ZC_OK);
        for (size_t b = 0; b < v.bytes; b++)
            sum = (sum ^ ((const uint8_t *)v.data)[b]) * UINT64_C(1099511628211);
    }
    return sum;
}

/* Every allocation of a run fails once; at most so many of them, evenly spread. After so many runs
 * in which one failed, whatever became of them, one that has all gives the same results. */
static void check(const char *name, zc_plan *plan, int threads, long most, long together)
{
    zc_session *s = NULL;
    zc_diag *diag = zc_diag_create();
    expect_ok(diag, zc_session_create(plan, ZC_SESSION_PARAMS(.threads = threads), &s, diag));
    set_inputs(plan, s);
    for (int i = 0; i < 2; i++) expect_ok(diag, zc_session_run(s, diag));
    const uint64_t want = sum_of_outputs(plan, s);
    fail_at(0);
    expect_ok(diag, zc_session_run(s, diag));
    const long all = atomic_load(&count), step = all / most + 1;
    long failed = 0, tried = 0;
    for (long n = 1; n <= all; n += step) {
        fail_at(n);
        zc_status status = zc_session_run(s, diag);
        bool did = atomic_load(&happened);
        fail_at(0);
        if (did ? status != ZC_ERR_NOMEM && status != ZC_OK : status != ZC_OK)
            fail_msg("%s: allocation %ld: %s, %s", name, n, zc_status_name(status),
                     zc_diag_text(diag, 0));
        failed += status == ZC_ERR_NOMEM;
        zc_diag_clear(diag);
        if (++tried % together && n + step <= all) continue;
        expect_ok(diag, zc_session_run(s, diag));
        assert_true(sum_of_outputs(plan, s) == want);
    }
    assert_true(all == 0 || failed > 0);
    print_message("%s, %d threads: %ld allocations a run; %ld runs failed\n", name, threads, all,
                  failed);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_diag_destroy(&diag);
}

/* ---- models ---- */

static const struct {
    const char *name, *text;
} models[] = {
    {"convolution", "opset 17\nin x 1 1,3,20,20\nout y 1 *\n"
                    "init s1 7 4 32,3,3,3\nnode ConstantOfShape s1 w1 value:t=1/1/0.01\n"
                    "init s2 7 4 16,32,1,1\nnode ConstantOfShape s2 w2 value:t=1/1/0.02\n"
                    "node Conv x,w1 c pads:is=1,1,1,1\nnode Relu c r\nnode Conv r,w2 y\n"},
    {"grouped convolution", "opset 17\nin x 1 1,8,20,20\nout y 1 *\n"
                            "init s3 7 4 16,4,3,3\nnode ConstantOfShape s3 w value:t=1/1/0.03\n"
                            "node Conv x,w y group:i=2\n"},
    {"product",
     "opset 17\nin x 1 90,200\nout y 1 *\n"
     "init s4 7 2 200,400\nnode ConstantOfShape s4 w value:t=1/1/0.04\nnode MatMul x,w y\n"},
    {"small products",
     "opset 17\nin x 1 4,3,5,16\nin z 1 4,3,16,7\nout y 1 *\nnode MatMul x,z y\n"},
    {"recurrent", "opset 17\nin x 1 5,2,24\nout y 1 *\n"
                  "init s5 7 3 1,128,24\nnode ConstantOfShape s5 w value:t=1/1/0.05\n"
                  "init s6 7 3 1,128,32\nnode ConstantOfShape s6 r value:t=1/1/0.06\n"
                  "node LSTM x,w,r y hidden_size:i=32\n"},
};

static void test_models(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(models); i++) {
        zc_buf model = {0};
        void *bytes;
        size_t len;
        zc_plan *plan;
        onnx_text(models[i].text, &model);
        assert_int_equal(zc_compile_bytes(model.data, model.len, NULL, &bytes, &len, NULL), ZC_OK);
        assert_int_equal(zc_plan_load_bytes(bytes, len, &plan, NULL), ZC_OK);
        for (int threads = 1; threads <= 2; threads++)
            check(models[i].name, plan, threads, 1000, 1);
        zc_plan_destroy(&plan);
        zc_free(bytes);
        zc_buf_fini(&model);
    }
}

static char **plans;

/* Of each plan's allocations, so many fail. */
static long tries(void)
{
    const char *text = getenv("ZC_TEST_ALLOCATIONS");
    return text && atol(text) > 0 ? atol(text) : 100;
}

static void test_plans(void **state)
{
    (void)state;
    for (char **path = plans; *path; path++) {
        zc_plan *plan;
        assert_int_equal(zc_plan_load_file(*path, &plan, NULL), ZC_OK);
        check(*path, plan, 1, tries(), 4);
        zc_plan_destroy(&plan);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest of_models[] = {cmocka_unit_test(test_models)};
    const struct CMUnitTest of_plans[] = {cmocka_unit_test(test_plans)};
    plans = argv + 1;
    return argc > 1 ? cmocka_run_group_tests(of_plans, NULL, NULL)
                    : cmocka_run_group_tests(of_models, NULL, NULL);
}
