/* Memory that runs out: every allocation of every call fails once. The call says so, nothing leaks,
 * and the same session works afterwards. And calls that go on for ever: memory stays flat. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/expect.h"
#include "support/fail_alloc.h"
#include "support/process.h"
#include "support/small_model.h"
#include "support/wide_model.h"

/* A sanitizer's own memory grows. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UNDER_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#endif

/* ---- what a good run gives ---- */

typedef struct result {
    size_t bytes;
    uint64_t sum;
} result;

/* All outputs' bytes as one number. */
static result outputs(const zc_plan *plan, const zc_session *s)
{
    zc_plan_info info;
    result r = {0, UINT64_C(1469598103934665603)};
    assert_int_equal(zc_plan_info_get(plan, &info), ZC_OK);
    for (size_t i = 0; i < info.outputs; i++) {
        zc_view v;
        assert_int_equal(zc_session_output(s, i, &v, NULL), ZC_OK);
        r.bytes += v.bytes;
        for (size_t b = 0; b < v.bytes; b++)
            r.sum = (r.sum ^ ((const uint8_t *)v.data)[b]) * UINT64_C(1099511628211);
    }
    return r;
}

static void expect_result(const zc_plan *plan, const zc_session *s, result want, long n)
{
    result got = outputs(plan, s);
    if (got.bytes != want.bytes || got.sum != want.sum)
        fail_msg("after allocation %ld had failed, the results differ", n);
}

typedef struct fixture {
    void *bytes;
    size_t len;
    zc_plan *plan;
    result want; /* for inputs of seed 1 */
} fixture;

static zc_session *new_session(const fixture *f)
{
    zc_session *s = NULL;
    assert_int_equal(zc_session_create(f->plan, ZC_SESSION_PARAMS(.threads = 1), &s, NULL), ZC_OK);
    return s;
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    zc_diag *diag = zc_diag_create();
    wide_plan(&f->bytes, &f->len, diag);
    expect_ok(diag, zc_plan_load_bytes(f->bytes, f->len, &f->plan, diag));
    zc_session *s = new_session(f);
    expect_ok(diag, plan_inputs(f->plan, s, 2, 1, diag));
    expect_ok(diag, zc_session_run(s, diag));
    f->want = outputs(f->plan, s);
    assert_true(f->want.bytes > 100);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_diag_destroy(&diag);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    zc_plan_destroy(&f->plan);
    zc_free(f->bytes);
    free(f);
    return 0;
}

/* ---- one call with its n-th allocation failing ---- */

/* The status is right and, but for lack of memory for the words, has words. */
static void check_outcome(zc_status status, const zc_diag *diag, bool happened, long n)
{
    if (!happened && status != ZC_OK) fail_msg("%ld: %s", n, zc_diag_text(diag, 0));
    if (status != ZC_OK && status != ZC_ERR_NOMEM)
        fail_msg("allocation %ld: %s, %s", n, zc_status_name(status), zc_diag_text(diag, 0));
    if (status == ZC_ERR_NOMEM && zc_diag_count(diag) + zc_diag_dropped(diag) != 1)
        fail_msg("allocation %ld: %zu messages: %s, %s", n, zc_diag_count(diag),
                 zc_diag_text(diag, 0), zc_diag_text(diag, 1));
}

static void test_load(void **state)
{
    fixture *f = *state;
    long n = 1;
    for (bool more = true; more; n++) {
        zc_plan *plan = NULL;
        zc_diag *diag = zc_diag_create();
        long live = fail_alloc_live();
        fail_alloc_at(n);
        zc_status status = zc_plan_load_bytes(f->bytes, f->len, &plan, diag);
        more = fail_alloc_happened();
        fail_alloc_at(0);
        check_outcome(status, diag, more, n);
        assert_int_equal(status == ZC_OK, plan != NULL);
        zc_plan_destroy(&plan);
        zc_diag_clear(diag);
        assert_int_equal(fail_alloc_live(), live);
        zc_diag_destroy(&diag);
    }
    assert_true(n > 5);
}

static void test_create(void **state)
{
    fixture *f = *state;
    long n = 1;
    for (bool more = true; more; n++) {
        zc_session *s = NULL;
        zc_diag *diag = zc_diag_create();
        long live = fail_alloc_live();
        fail_alloc_at(n);
        zc_status status = zc_session_create(f->plan, ZC_SESSION_PARAMS(.threads = 1), &s, diag);
        more = fail_alloc_happened();
        fail_alloc_at(0);
        check_outcome(status, diag, more, n);
        assert_int_equal(status == ZC_OK, s != NULL);
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
        zc_diag_clear(diag);
        assert_int_equal(fail_alloc_live(), live);
        zc_diag_destroy(&diag);
    }
    assert_true(n > 10);
}

static void works_again(fixture *f, zc_session *s, long n)
{
    assert_int_equal(plan_inputs(f->plan, s, 2, 1, NULL), ZC_OK);
    assert_int_equal(zc_session_run(s, NULL), ZC_OK);
    expect_result(f->plan, s, f->want, n);
}

static void test_set_input(void **state)
{
    fixture *f = *state;
    float x[8] = {0};
    zc_view v = {.elem = 1, .rank = 2, .dims = {2, 4}, .data = x, .bytes = sizeof x};
    long n = 1;
    for (bool more = true; more; n++) {
        long live = fail_alloc_live();
        zc_session *s = new_session(f);
        zc_diag *diag = zc_diag_create();
        fail_alloc_at(n);
        zc_status status = zc_session_set_input(s, 0, &v, false, diag);
        more = fail_alloc_happened();
        fail_alloc_at(0);
        check_outcome(status, diag, more, n);
        works_again(f, s, n);
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
        zc_diag_destroy(&diag);
        assert_int_equal(fail_alloc_live(), live);
    }
    assert_int_equal(n - 1, 2); /* the copy */
}

/* `before`: runs before the one that fails; size: of the unknown dimensions in that one. */
static long fail_run(fixture *f, int before, int64_t size)
{
    long n = 1;
    for (bool more = true; more; n++) {
        long live = fail_alloc_live();
        zc_session *s = new_session(f);
        zc_diag *diag = zc_diag_create();
        for (int i = 0; i < before; i++) works_again(f, s, 0);
        assert_int_equal(plan_inputs(f->plan, s, size, 1, NULL), ZC_OK);
        fail_alloc_at(n);
        zc_status status = zc_session_run(s, diag);
        more = fail_alloc_happened();
        fail_alloc_at(0);
        check_outcome(status, diag, more, n);
        zc_diag_clear(diag);
        if (status != ZC_OK) expect_ok(diag, zc_session_run(s, diag));
        works_again(f, s, n);
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
        zc_diag_destroy(&diag);
        assert_int_equal(fail_alloc_live(), live);
    }
    return n - 1;
}

static void test_first_run(void **state)
{
    assert_true(fail_run(*state, 0, 2) > 20);
}

static void test_later_run(void **state)
{
    assert_int_equal(fail_run(*state, 2, 2), 1); /* none, though some shapes depend on values */
}

static void test_later_run_of_another_shape(void **state)
{
    assert_true(fail_run(*state, 1, 5) > 5);
}

/* ---- compiling ---- */

static void test_compile(void **state)
{
    (void)state;
    zc_buf model = {0};
    onnx_text(wide_text, &model);
    void *want;
    size_t want_len;
    assert_int_equal(zc_compile_bytes(model.data, model.len, NULL, &want, &want_len, NULL), ZC_OK);
    long n = 1;
    for (bool more = true; more; n++) {
        void *out = NULL;
        size_t len = 0;
        zc_diag *diag = zc_diag_create();
        fail_alloc_at(n);
        zc_status status = zc_compile_bytes(model.data, model.len, NULL, &out, &len, diag);
        more = fail_alloc_happened();
        fail_alloc_at(0);
        check_outcome(status, diag, more, n);
        if (status == ZC_OK) {
            assert_int_equal(len, want_len);
            assert_memory_equal(out, want, len);
        } else {
            assert_null(out);
        }
        zc_free(out);
        zc_diag_destroy(&diag);
    }
    print_message("%ld allocations of a compile failed, one by one\n", n - 1);
    assert_true(n > 500);
    zc_free(want);
    zc_buf_fini(&model);
}

/* ---- nothing is allocated when nothing is new ---- */

static void test_a_later_run_allocates_nothing(void **state)
{
    (void)state;
    zc_buf model = {0};
    void *bytes;
    size_t len;
    zc_plan *plan;
    zc_session *s;
    float x[8] = {1, 2, 3};
    zc_view v = {.elem = 1, .rank = 2, .dims = {2, 4}, .data = x, .bytes = sizeof x};
    small_model(&model);
    assert_int_equal(zc_compile_bytes(model.data, model.len, NULL, &bytes, &len, NULL), ZC_OK);
    assert_int_equal(zc_plan_load_bytes(bytes, len, &plan, NULL), ZC_OK);
    assert_int_equal(zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 2), &s, NULL), ZC_OK);
    assert_int_equal(zc_session_set_input(s, 0, &v, false, NULL), ZC_OK);
    assert_int_equal(zc_session_run(s, NULL), ZC_OK);
    fail_alloc_at(1);
    for (int i = 0; i < 100; i++) {
        x[0] = (float)i;
        assert_int_equal(zc_session_set_input(s, 0, &v, false, NULL), ZC_OK);
        assert_int_equal(zc_session_run(s, NULL), ZC_OK);
    }
    assert_false(fail_alloc_happened());
    fail_alloc_at(0);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_plan_destroy(&plan);
    zc_free(bytes);
    zc_buf_fini(&model);
}

/* ---- A14: loading and running for ever ---- */

static void cycle(const void *bytes, size_t len)
{
    zc_plan *plan;
    zc_session *s;
    float x[8] = {1, -1, 2, 0.5f, 3, 3, 3, 3};
    zc_view v = {.elem = 1, .rank = 2, .dims = {2, 4}, .data = x, .bytes = sizeof x};
    assert_int_equal(zc_plan_load_bytes(bytes, len, &plan, NULL), ZC_OK);
    assert_int_equal(zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 1), &s, NULL), ZC_OK);
    zc_plan_destroy(&plan);
    assert_int_equal(zc_session_set_input(s, 0, &v, false, NULL), ZC_OK);
    assert_int_equal(zc_session_run(s, NULL), ZC_OK);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

/* 100,000 cycles, or as many as fit in 20 seconds and at least 20,000. */
static void test_cycles_do_not_grow(void **state)
{
    (void)state;
    enum { WARM = 1000, ENOUGH = 20000, ALL = 100000, GROWTH_KIB = 1024 };
    zc_buf model = {0};
    void *bytes;
    size_t len;
    small_model(&model);
    assert_int_equal(zc_compile_bytes(model.data, model.len, NULL, &bytes, &len, NULL), ZC_OK);
    for (int i = 0; i < WARM; i++) cycle(bytes, len);
    long before = resident_kib();
    const double start = now();
    int done = 0;
    while (done < ALL && (done < ENOUGH || now() - start < 20)) {
        cycle(bytes, len);
        done++;
    }
    long grown = resident_kib() - before;
    print_message("%d cycles of load, create, run, destroy: %ld KiB more\n", done, grown);
#ifndef UNDER_SANITIZER
    assert_true(grown < GROWTH_KIB);
#endif
    zc_free(bytes);
    zc_buf_fini(&model);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_load),
        T(test_create),
        T(test_set_input),
        T(test_first_run),
        T(test_later_run),
        T(test_later_run_of_another_shape),
        T(test_compile),
        cmocka_unit_test(test_a_later_run_allocates_nothing),
        cmocka_unit_test(test_cycles_do_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
