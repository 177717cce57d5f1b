/* Loads and runs for ever: what the driver holds and what this process takes stay as they are.
 * ZC_TEST_CYCLES=100000 makes so many cycles instead of as many as fit in a few seconds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cuda/gpu.h"
#include "support/process.h"

/* A sanitizer's own memory grows. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UNDER_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#endif

enum { WARM = 1000, SECONDS = 5, GROWTH_KIB = 1024, DEVICE_GROWTH = 8 << 20, ALL = 1000000000 };

/* Load, create, three runs of two sizes, destroy. */
static void load_and_run(gpu_fixture *f, int i)
{
    gpu_rows in;
    zc_plan *plan = gpu_load(f->bytes, f->len);
    zc_session *s = gpu_session(plan);
    zc_plan_destroy(&plan);
    gpu_rows_make(&in, 3, 2, (unsigned)i);
    gpu_rows_run(s, &in);
    gpu_rows_run(s, &in);
    gpu_rows_make(&in, 4, 1 + i % 3, (unsigned)i);
    gpu_rows_run(s, &in);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

/* One session for ever, with more sizes than it keeps graphs for. */
static void run_only(gpu_fixture *f, int i)
{
    gpu_rows in;
    gpu_rows_make(&in, 3 + i % 4, 1 + i % 5, (unsigned)i);
    gpu_rows_run(f->session, &in);
}

/* A session for ever on a plan. */
static void create_and_run(gpu_fixture *f, int i)
{
    gpu_rows in;
    zc_session *s = gpu_session(f->plan);
    gpu_rows_make(&in, 3, 2, (unsigned)i);
    gpu_rows_run(s, &in);
    gpu_rows_run(s, &in);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

/* Runs that fail leave nothing either. */
static void fail_and_run(gpu_fixture *f, int i)
{
    gpu_rows in;
    gpu_rows_make(&in, 3, 2, (unsigned)i);
    in.idx[1] = 3;
    assert_int_equal(gpu_rows_set(f->session, &in, NULL), ZC_OK);
    assert_int_equal(zc_session_run(f->session, NULL), ZC_ERR_INPUT);
    in.idx[1] = 2;
    gpu_rows_run(f->session, &in);
}

static void many(gpu_fixture *f, const char *what, void (*cycle)(gpu_fixture *f, int i))
{
    hc_counts before, after;
    const char *wanted = getenv("ZC_TEST_CYCLES");
    int all = wanted && atoi(wanted) > 0 ? atoi(wanted) : ALL, done = 0;
    for (int i = 0; i < WARM; i++) cycle(f, i);
    gpu_counts(&before);
    const size_t available = gpu_bytes_free();
    long resident = resident_kib();
    const double start = now();
    /* Whole rounds of sizes, so that the same are held at the end. */
    for (; done < all && (wanted || now() - start < SECONDS); done += 60)
        for (int i = 0; i < 60; i++) cycle(f, WARM + 20 + i);
    for (int i = 0; i < WARM; i++) cycle(f, i);
    gpu_counts(&after);
    long grown = resident_kib() - resident;
    const long taken = (long)((int64_t)available - (int64_t)gpu_bytes_free());
    print_message("%s: %d cycles, %ld KiB more, %ld of the device\n", what, done, grown,
                  taken / 1024);
    assert_true(taken < DEVICE_GROWTH); /* a GPU's driver takes memory in large pieces */
    assert_int_equal(after.device_bytes, before.device_bytes);
    assert_int_equal(after.live, before.live);
    assert_true(done >= 60);
#ifndef UNDER_SANITIZER
    assert_true(grown < GROWTH_KIB);
#endif
}

static int setup(void **state)
{
    gpu_fixture *f = gpu_fixture_create(true);
    f->session = gpu_session(f->plan);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    gpu_fixture_destroy(*state, true);
    return 0;
}

static void test_load_and_run(void **state)
{
    many(*state, "load, create, run, destroy", load_and_run);
}

static void test_create_and_run(void **state)
{
    many(*state, "create, run, destroy", create_and_run);
}

static void test_run(void **state)
{
    many(*state, "run", run_only);
}

static void test_fail_and_run(void **state)
{
    many(*state, "failing run, run", fail_and_run);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {T(test_load_and_run), T(test_create_and_run), T(test_run),
                                       T(test_fail_and_run)};
    return cmocka_run_group_tests(tests, gpu_group_setup, gpu_group_teardown);
}
