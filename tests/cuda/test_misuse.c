/* Wrong pointers, threads, contexts, lifetimes and fork, with sessions on the GPU. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cuda/gpu.h"

enum { ROWS = 4, BYTES = ROWS * GPU_COLUMNS * sizeof(float) };

/* The caller's context is current in the test. */
static int setup(void **state)
{
    gpu_fixture *f = gpu_fixture_create(true);
    f->session = gpu_session(f->plan);
    assert_int_equal(cuDevicePrimaryCtxRetain(&f->context, 0), 0);
    assert_int_equal(cuCtxPushCurrent_v2(f->context), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    hc_context_t context;
    assert_int_equal(cuCtxPopCurrent_v2(&context), 0);
    gpu_fixture_destroy(*state, true);
    return 0;
}

static hc_ptr device_memory(size_t bytes)
{
    hc_ptr p;
    assert_int_equal(cuMemAlloc_v2(&p, bytes), 0);
    return p;
}

/* ---- A8: pointers ---- */

static zc_view x_view(gpu_fixture *f, void *data)
{
    return (zc_view){.elem = 1,
                     .rank = 2,
                     .dims = {f->in.n, GPU_COLUMNS},
                     .data = data,
                     .bytes = (size_t)f->in.n * GPU_COLUMNS * sizeof(float),
                     .on_device = true};
}

static void test_wrong_pointers(void **state)
{
    gpu_fixture *f = *state;
    hc_ptr p = device_memory(4096);
    void *pinned;
    assert_int_equal(cuMemHostAlloc(&pinned, 4096, 0), 0);
    _Alignas(64) char mine[BYTES];
    const struct {
        void *data;
        const char *text;
    } cases[] = {{mine, "the address is not device memory"},
                 {pinned, "the address is not device memory"},
                 {(void *)(uintptr_t)0x40, "the address is not device memory"},
                 {(void *)(uintptr_t)(p + 4), "aligned to"},
                 {(void *)(uintptr_t)(p + 4096), "the address is not device memory"}};
    /* The last may be another piece of memory on a GPU. */
    size_t ncases = sizeof cases / sizeof *cases - !gpu_is_fake();
    for (size_t i = 0; i < ncases; i++) {
        zc_view v = x_view(f, cases[i].data);
        expect_fail(f->diag, zc_session_set_input(f->session, 0, &v, true, f->diag), ZC_ERR_ARG,
                    cases[i].text);
        expect_fail(f->diag,
                    zc_session_bind_output_device(f->session, 0, cases[i].data, BYTES, f->diag),
                    ZC_ERR_ARG, cases[i].text);
    }
    zc_view v = x_view(f, (void *)(uintptr_t)p);
    expect_fail(f->diag, zc_session_set_input(f->session, 0, &v, false, f->diag), ZC_ERR_ARG,
                "device memory is always borrowed");
    v.data = NULL;
    expect_fail(f->diag, zc_session_set_input(f->session, 0, &v, true, f->diag), ZC_ERR_ARG,
                "data is NULL");
    gpu_rows_run(f->session, &f->in);
    assert_int_equal(cuMemFree_v2(p), 0);
    assert_int_equal(cuMemFreeHost(pinned), 0);
}

static void test_device_memory_on_the_cpu(void **state)
{
    gpu_fixture *f = *state;
    zc_session *s = NULL;
    hc_ptr p = device_memory(4096);
    expect_ok(f->diag, zc_session_create(f->plan, ZC_SESSION_PARAMS(.threads = 1), &s, f->diag));
    zc_view v = x_view(f, (void *)(uintptr_t)p);
    expect_fail(f->diag, zc_session_set_input(s, 0, &v, true, f->diag), ZC_ERR_ARG,
                "device memory for a session on the CPU");
    expect_fail(f->diag, zc_session_bind_output_device(s, 0, (void *)(uintptr_t)p, 4096, f->diag),
                ZC_ERR_ARG, "device memory for a session on the CPU");
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    assert_int_equal(cuMemFree_v2(p), 0);
}

static void test_bound_memory_too_small(void **state)
{
    gpu_fixture *f = *state;
    hc_ptr p = device_memory(BYTES);
    _Alignas(64) char host[BYTES];
    expect_ok(f->diag, gpu_rows_set(f->session, &f->in, f->diag));
    expect_ok(f->diag, zc_session_bind_output_device(f->session, 0, (void *)(uintptr_t)p, BYTES - 1,
                                                     f->diag));
    for (int i = 0; i < 3; i++)
        expect_fail(f->diag, zc_session_run(f->session, f->diag), ZC_ERR_ARG,
                    "bound memory is too small (got 127 bytes, need 128)");
    expect_ok(f->diag, zc_session_bind_output(f->session, 0, host, BYTES - 4, f->diag));
    expect_fail(f->diag, zc_session_run(f->session, f->diag), ZC_ERR_ARG,
                "bound memory is too small (got 124 bytes, need 128)");
    expect_ok(f->diag,
              zc_session_bind_output_device(f->session, 0, (void *)(uintptr_t)p, BYTES, f->diag));
    expect_ok(f->diag, zc_session_run(f->session, f->diag));
    assert_true(gpu_rows_right_at(&f->in, p));
    expect_ok(f->diag, zc_session_bind_output(f->session, 0, NULL, 0, f->diag));
    gpu_rows_run(f->session, &f->in);
    assert_int_equal(cuMemFree_v2(p), 0);
}

/* ---- device memory on both sides, changed between runs ---- */

static void test_bound_memory_moves(void **state)
{
    gpu_fixture *f = *state;
    hc_ptr x[2] = {device_memory(sizeof f->in.x), device_memory(sizeof f->in.x)};
    hc_ptr y[2] = {device_memory(BYTES), device_memory(BYTES)};
    static const char zeros[BYTES];
    gpu_rows in[2];
    for (unsigned i = 0; i < 2; i++) {
        gpu_rows_make(&in[i], 5, ROWS, i + 3);
        memcpy(in[i].idx, f->in.idx, sizeof in[i].idx);
        gpu_put(x[i], in[i].x, sizeof in[i].x);
    }
    expect_ok(f->diag, gpu_rows_set(f->session, &f->in, f->diag));
    for (int run = 0; run < 8; run++) {
        int a = run & 1, b = run >> 1 & 1;
        zc_view v = x_view(f, (void *)(uintptr_t)x[a]);
        expect_ok(f->diag, zc_session_set_input(f->session, 0, &v, true, f->diag));
        expect_ok(f->diag, zc_session_bind_output_device(f->session, 0, (void *)(uintptr_t)y[b],
                                                         BYTES, f->diag));
        gpu_put(y[b], zeros, sizeof zeros);
        expect_ok(f->diag, zc_session_run(f->session, f->diag));
        assert_true(gpu_rows_right_at(&in[a], y[b]));
    }
    for (int i = 0; i < 2; i++) assert_int_equal(cuMemFree_v2(x[i]) | cuMemFree_v2(y[i]), 0);
    expect_ok(f->diag, zc_session_bind_output(f->session, 0, NULL, 0, f->diag));
    gpu_rows_run(f->session, &f->in);
}

/* ---- A13: the caller's context and stream ---- */

static hc_context_t current(void)
{
    hc_context_t now = NULL;
    assert_int_equal(cuCtxGetCurrent(&now), 0);
    return now;
}

static void test_the_callers_context_stays(void **state)
{
    gpu_fixture *f = *state;
    hc_context_t none;
    for (int with = 1; with >= 0; with--) {
        hc_context_t want = with ? f->context : NULL;
        if (!with) assert_int_equal(cuCtxPopCurrent_v2(&none), 0);
        assert_ptr_equal(current(), want);
        zc_session *s = gpu_session(f->plan);
        assert_ptr_equal(current(), want);
        for (int i = 0; i < 3; i++) gpu_rows_run(s, &f->in);
        assert_ptr_equal(current(), want);
        f->in.idx[0] = 50;
        assert_int_equal(gpu_rows_set(s, &f->in, NULL), ZC_OK);
        assert_int_equal(zc_session_run(s, NULL), ZC_ERR_INPUT);
        gpu_rows_make(&f->in, 5, ROWS, 1);
        assert_ptr_equal(current(), want);
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
        assert_ptr_equal(current(), want);
    }
    assert_int_equal(cuCtxPushCurrent_v2(f->context), 0);
}

static void test_the_callers_stream(void **state)
{
    gpu_fixture *f = *state;
    hc_stream_t stream;
    zc_session *s = NULL;
    zc_device_info info;
    assert_int_equal(cuStreamCreate(&stream, 1), 0);
    expect_ok(f->diag, zc_session_create(f->plan,
                                         ZC_SESSION_PARAMS(.threads = 1, .device = ZC_DEVICE_CUDA,
                                                           .stream = stream),
                                         &s, f->diag));
    for (int i = 0; i < 3; i++) gpu_rows_run(s, &f->in);
    assert_int_equal(zc_session_device(s, &info), ZC_OK);
    assert_int_equal(info.graphs, 1);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    assert_int_equal(cuStreamSynchronize(stream), 0); /* it is still there */
    assert_int_equal(cuStreamDestroy_v2(stream), 0);
}

/* ---- threads ---- */

typedef struct worker {
    pthread_t thread;
    zc_plan *plan;
    unsigned seed;
    int wrong;
} worker;

static int one_run(zc_session *s, gpu_rows *in, int round)
{
    zc_view y;
    /* Sizes change, so that memory moves and graphs are recorded while the others run. */
    gpu_rows_make(in, 3 + round % 5, 1 + round % 7, (unsigned)round);
    if (gpu_rows_set(s, in, NULL) != ZC_OK || zc_session_run(s, NULL) != ZC_OK) return 1;
    return zc_session_output(s, 0, &y, NULL) != ZC_OK || !gpu_rows_right(in, y.data);
}

static void *many_runs(void *user)
{
    worker *w = user;
    gpu_rows in;
    zc_session *s = NULL;
    hc_stream_t stream = NULL;
    hc_context_t context;
    w->wrong = cuCtxGetCurrent(&context) != 0 || context != NULL;
    w->wrong +=
        zc_session_create(
            w->plan, ZC_SESSION_PARAMS(.threads = 1, .device = ZC_DEVICE_CUDA, .stream = stream),
            &s, NULL) != ZC_OK;
    for (int i = 0; !w->wrong && i < 60; i++) w->wrong += one_run(s, &in, i + (int)w->seed);
    w->wrong += zc_session_destroy(&s) != ZC_OK;
    w->wrong += cuCtxGetCurrent(&context) != 0 || context != NULL;
    return NULL;
}

static void test_sessions_in_threads(void **state)
{
    enum { THREADS = 4 };
    gpu_fixture *f = *state;
    worker workers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (worker){.plan = f->plan, .seed = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, many_runs, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].wrong, 0);
    }
}

/* ---- lifetimes ---- */

static void test_plan_destroyed_first(void **state)
{
    gpu_fixture *f = *state;
    hc_counts counts;
    zc_plan *plan = gpu_load(f->bytes, f->len);
    zc_session *a = gpu_session(plan), *b = gpu_session(plan);
    zc_plan_destroy(&plan);
    for (int i = 0; i < 3; i++) gpu_rows_run(a, &f->in);
    assert_int_equal(zc_session_destroy(&a), ZC_OK);
    for (int i = 0; i < 3; i++) gpu_rows_run(b, &f->in);
    gpu_counts(&counts);
    size_t live = counts.live;
    assert_int_equal(zc_session_destroy(&b), ZC_OK);
    gpu_counts(&counts);
    if (gpu_is_fake()) assert_true(counts.live < live);
}

/* ---- A9: fork ---- */

/* In the child: the parent's sessions and its place on the GPU are refused without a call to the
 * driver. */
static int child(gpu_fixture *f)
{
    hc_counts before, after;
    zc_session *s = NULL, *mine = f->session;
    gpu_counts(&before);
    if (zc_session_run(f->session, NULL) != ZC_ERR_FORKED) return 1;
    if (gpu_rows_set(f->session, &f->in, NULL) != ZC_ERR_FORKED) return 2;
    if (zc_session_destroy(&mine) != ZC_ERR_FORKED) return 3;
    if (zc_session_create(f->plan, ZC_SESSION_PARAMS(.threads = 1, .device = ZC_DEVICE_CUDA), &s,
                          NULL) != ZC_ERR_FORKED)
        return 4;
    gpu_counts(&after);
    if (after.calls != before.calls) return 5;
    if (zc_session_create(f->plan, ZC_SESSION_PARAMS(.threads = 1), &s, NULL) != ZC_OK) return 6;
    if (one_run(s, &f->in, 1)) return 7;
    if (zc_session_destroy(&s) != ZC_OK) return 8;
    zc_plan_destroy(&f->plan);
    gpu_counts(&after);
    return after.calls == before.calls ? 0 : 9;
}

static void test_after_fork(void **state)
{
    gpu_fixture *f = *state;
    int status;
    gpu_rows_run(f->session, &f->in);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(child(f));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    gpu_rows_run(f->session, &f->in);
}

/* In the child of a process one of whose threads is making the plan ready for a GPU. */
static int child_of_a_maker(zc_plan *plan)
{
    zc_session *s = NULL;
    zc_device_info info;
    alarm(20);
    if (zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 1, .device = ZC_DEVICE_CUDA), &s,
                          NULL) != ZC_ERR_FORKED)
        return 1;
    if (zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 1, .device = ZC_DEVICE_AUTO), &s,
                          NULL) != ZC_OK)
        return 2;
    if (zc_session_device(s, &info) != ZC_OK || !info.fallback || !strstr(info.fallback, "fork()"))
        return 3;
    return zc_session_destroy(&s) == ZC_OK ? 0 : 4;
}

typedef struct maker {
    zc_plan *plan;
    atomic_bool done;
    zc_status status;
} maker;

static void *make_session(void *arg)
{
    maker *m = arg;
    zc_session *s = NULL;
    m->status = zc_session_create(
        m->plan, ZC_SESSION_PARAMS(.threads = 1, .device = ZC_DEVICE_CUDA), &s, NULL);
    atomic_store(&m->done, true);
    (void)zc_session_destroy(&s);
    return NULL;
}

/* Forks while another thread is in zc_session_create: a GPU that the plan has no code for, so that
 * this takes a while. */
static void test_fork_while_a_session_is_made(void **state)
{
    gpu_fixture *f = *state;
    int during = 0;
    char cache[256], objects[256];
    const char *kept = getenv("ZC_HOSTCUDA_CACHE");
    snprintf(cache, sizeof cache, "%s", getenv("ZC_CACHE_DIR"));
    snprintf(objects, sizeof objects, "%s", kept ? kept : "");
    zc_free(f->bytes);
    gpu_compile(gpu_rows_text, "sm_80", false, &f->bytes, &f->len);
    setenv("ZC_CACHE_DIR", "/dev/null",
           1); /* every kernel is compiled, also by the fake compiler */
    setenv("ZC_HOSTCUDA_CACHE", "", 1);
    for (int i = 0; i < 5; i++) {
        maker m = {.plan = gpu_load(f->bytes, f->len)};
        pthread_t thread;
        int status;
        assert_int_equal(pthread_create(&thread, NULL, make_session, &m), 0);
        usleep(5000 * (unsigned)(i + 1));
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) _exit(child_of_a_maker(m.plan));
        during += !atomic_load(&m.done);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        pthread_join(thread, NULL);
        assert_int_equal(m.status, ZC_OK);
        zc_plan_destroy(&m.plan);
    }
    setenv("ZC_CACHE_DIR", cache, 1);
    setenv("ZC_HOSTCUDA_CACHE", objects, 1);
    assert_true(during > 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_wrong_pointers),
        T(test_device_memory_on_the_cpu),
        T(test_bound_memory_too_small),
        T(test_bound_memory_moves),
        T(test_the_callers_context_stays),
        T(test_the_callers_stream),
        T(test_sessions_in_threads),
        T(test_plan_destroyed_first),
        T(test_after_fork),
        T(test_fork_while_a_session_is_made),
    };
    return cmocka_run_group_tests(tests, gpu_group_setup, gpu_group_teardown);
}
