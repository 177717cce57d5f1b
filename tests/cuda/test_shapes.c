/* Sets of input shapes in rotation on the GPU: as many as the session keeps replay their graphs,
 * more are right all the same and leave nothing behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cuda/gpu.h"

static int setup(void **state)
{
    *state = gpu_fixture_create(true);
    return 0;
}

static int teardown(void **state)
{
    gpu_fixture_destroy(*state, true);
    return 0;
}

static zc_session *session_for_shapes(gpu_fixture *f, size_t shapes)
{
    zc_session *s = NULL;
    expect_ok(f->diag, zc_session_create(f->plan,
                                         ZC_SESSION_PARAMS(.threads = 1, .device = ZC_DEVICE_CUDA,
                                                           .shapes = shapes),
                                         &s, f->diag));
    return s;
}

/* Runs m indices into 5 rows, which must be right; returns how often the fake driver was called. */
static unsigned long run(gpu_fixture *f, zc_session *s, int64_t m)
{
    hc_counts before, after;
    gpu_rows in;
    zc_view y;
    gpu_rows_make(&in, 5, m, (unsigned)m);
    expect_ok(f->diag, gpu_rows_set(s, &in, f->diag));
    gpu_counts(&before);
    expect_ok(f->diag, zc_session_run(s, f->diag));
    gpu_counts(&after);
    expect_ok(f->diag, zc_session_output(s, 0, &y, f->diag));
    assert_true(gpu_rows_right(&in, y.data));
    return after.calls - before.calls;
}

static size_t live(void)
{
    hc_counts counts;
    gpu_counts(&counts);
    return counts.live;
}

/* A first run of a prepared shape replays a graph, as runs do for ever after. */
static void test_prepared_shapes_replay(void **state)
{
    gpu_fixture *f = *state;
    zc_session *s = session_for_shapes(f, 8);
    zc_counters prepared, after;
    zc_io_info in[2];
    zc_device_info info;
    for (size_t i = 0; i < 2; i++) {
        expect_ok(f->diag, zc_plan_input(f->plan, i, &in[i], f->diag));
        for (int d = 0; d < in[i].rank; d++)
            if (in[i].dims[d] < 0) in[i].dims[d] = in[i].elem == 7 ? 3 : 5;
    }
    expect_ok(f->diag, zc_session_prepare(s, in, 2, NULL, f->diag));
    assert_int_equal(zc_session_device(s, &info), ZC_OK);
    assert_true(info.graphs > 0);
    assert_int_equal(zc_plan_counters(f->plan, &prepared), ZC_OK);
    const unsigned long first = run(f, s, 3);
    assert_int_equal(run(f, s, 3), first);
    assert_int_equal(run(f, s, 3), first);
    assert_int_equal(zc_plan_counters(f->plan, &after), ZC_OK);
    assert_int_equal(after.captures, prepared.captures);
    unsigned long other = run(f, s, 4); /* it was not prepared */
    if (gpu_is_fake()) assert_true(other > first);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

static void test_kept_shapes_replay(void **state)
{
    gpu_fixture *f = *state;
    zc_session *s = session_for_shapes(f, 0);
    unsigned long issued = run(f, s, 40), replayed = 0;
    for (int i = 0; i < 3; i++) replayed = run(f, s, 40);
    if (gpu_is_fake()) assert_true(replayed < issued);
    /* The first round plans, the second records, the others replay. */
    for (int round = 0; round < 5; round++) {
        for (int64_t m = 40; m > 20; m--) {
            unsigned long calls = run(f, s, m);
            if (round > 1) assert_int_equal(calls, replayed);
        }
    }
    zc_counters c;
    assert_int_equal(zc_plan_counters(f->plan, &c), ZC_OK);
    assert_int_equal(c.shapes, 20);
    assert_int_equal(c.captures, 20);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

static void test_more_shapes_than_are_kept(void **state)
{
    gpu_fixture *f = *state;
    for (size_t kept = 1; kept <= 4; kept += 3) {
        zc_session *s = session_for_shapes(f, kept);
        size_t held = 0;
        for (int round = 0; round < 6; round++) {
            for (int64_t m = 20 + (int64_t)kept; m >= 20; m--) {
                /* Three times, so that a graph is recorded and must go. */
                for (int i = 0; i < 3; i++) (void)run(f, s, m);
            }
            if (round == 1) held = live();
            if (round > 1) assert_int_equal(live(), held);
        }
        zc_device_info info;
        assert_int_equal(zc_session_device(s, &info), ZC_OK);
        assert_int_equal(info.graphs, 1);
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
    }
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_prepared_shapes_replay),
        T(test_kept_shapes_replay),
        T(test_more_shapes_than_are_kept),
    };
    return cmocka_run_group_tests(tests, gpu_group_setup, gpu_group_teardown);
}
