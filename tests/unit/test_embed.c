/* What a service's author asks of the library beyond runs: what the model says of itself, runs that
 * nobody waits for, memory of the caller's, tensors of other libraries. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/dlpack_abi.h"
#include "support/custom_same.h"
#include "support/expect.h"
#include "support/onnx_text.h"
#include "support/pb.h"
#include "zc/dlpack.h"
#include "zc/zc.h"

/* ---- an operator that takes as long as the test wants ---- */

static atomic_bool holding;
static atomic_int inside;

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

static zc_status run_held(void *user, zc_custom_node *node, const zc_custom_value *in, size_t nin,
                          zc_custom_value *out, size_t nout)
{
    (void)user, (void)nin, (void)nout;
    atomic_fetch_add(&inside, 1);
    while (atomic_load(&holding) && !zc_custom_stopped(node)) nap();
    memcpy(out[0].result, in[0].data, in[0].bytes);
    return ZC_OK;
}

static const zc_custom_op hold = {sizeof hold,       "com.test", "Hold",
                                  custom_infer_same, run_held,   NULL};
static const zc_custom_op *const ops[] = {&hold};
#define OPS .custom_ops = ops, .custom_op_count = 1

/* ---- the fixture ---- */

enum { ROWS = 3, COLUMNS = 5, ELEMS = ROWS * COLUMNS };

static const char text[] = "opset 17\nopset com.test 1\nin x 1 N,5\nout y 1 *\nout same 1 *\n"
                           "node Hold x h domain=com.test\nnode Neg h y\nnode Identity y same\n";

typedef struct fixture {
    zc_plan *plan;
    zc_session *session;
    zc_diag *diag;
    float x[ELEMS];
} fixture;

static void put_pair(zc_buf *model, const char *key, const char *value)
{
    zc_buf pair = {0};
    pb_str(&pair, 1, key);
    pb_str(&pair, 2, value);
    pb_msg(model, 14, &pair);
}

static zc_plan *compile(const char *model_text, bool says, zc_diag *diag)
{
    zc_buf model = {0};
    void *bytes;
    size_t len;
    zc_plan *plan;
    onnx_text(model_text, &model);
    if (says) {
        pb_str(&model, 2, "a producer");
        pb_str(&model, 3, "1.2");
        pb_str(&model, 4, "org.example");
        pb_int(&model, 5, 42);
        pb_str(&model, 6, "what it does");
        put_pair(&model, "classes", "cat,dog");
        put_pair(&model, "", "empty");
        put_pair(&model, "classes", "second");
    }
    expect_ok(diag,
              zc_compile_bytes(model.data, model.len, ZC_COMPILE_PARAMS(OPS), &bytes, &len, diag));
    expect_ok(diag, zc_plan_load_bytes(bytes, len, &plan, diag));
    zc_buf_fini(&model);
    zc_free(bytes);
    return plan;
}

static zc_view view(const float *x, int64_t rows)
{
    return (zc_view){.elem = ZC_ELEM_F32,
                     .rank = 2,
                     .dims = {rows, COLUMNS},
                     .data = x,
                     .bytes = (size_t)(rows * COLUMNS) * sizeof *x};
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->diag = zc_diag_create();
    f->plan = compile(text, true, f->diag);
    expect_ok(f->diag, zc_session_create(f->plan, ZC_SESSION_PARAMS(OPS, .threads = 2), &f->session,
                                         f->diag));
    for (int i = 0; i < ELEMS; i++) f->x[i] = (float)i - 4;
    const zc_view x = view(f->x, ROWS);
    expect_ok(f->diag, zc_session_set_input(f->session, 0, &x, false, f->diag));
    atomic_store(&holding, false);
    atomic_store(&inside, 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    assert_int_equal(zc_session_destroy(&f->session), ZC_OK);
    zc_plan_destroy(&f->plan);
    zc_diag_destroy(&f->diag);
    free(f);
    return 0;
}

static void check_result(const fixture *f)
{
    zc_view y;
    expect_ok(f->diag, zc_session_output(f->session, 0, &y, f->diag));
    assert_int_equal(y.bytes, sizeof f->x);
    for (int i = 0; i < ELEMS; i++) assert_true(((const float *)y.data)[i] == -f->x[i]);
}

/* ---- what the model says ---- */

static void test_model_info(void **state)
{
    fixture *f = *state;
    zc_model_info info;
    const char *key, *value;
    assert_int_equal(zc_plan_model(f->plan, &info), ZC_OK);
    assert_string_equal(info.producer, "a producer");
    assert_string_equal(info.producer_version, "1.2");
    assert_string_equal(info.domain, "org.example");
    assert_string_equal(info.doc, "what it does");
    assert_int_equal(info.version, 42);
    assert_int_equal(info.pairs, 3);
    expect_ok(f->diag, zc_plan_model_pair(f->plan, 1, &key, &value, f->diag));
    assert_string_equal(key, "");
    assert_string_equal(value, "empty");
    assert_string_equal(zc_plan_model_value(f->plan, "classes"), "cat,dog");
    assert_null(zc_plan_model_value(f->plan, "Classes"));
    assert_null(zc_plan_model_value(f->plan, NULL));
    assert_null(zc_plan_model_value(NULL, "classes"));
    expect_fail(f->diag, zc_plan_model_pair(f->plan, 3, &key, &value, f->diag), ZC_ERR_ARG,
                "no such pair (got 3, need < 3)");
    expect_fail(f->diag, zc_plan_model_pair(f->plan, 0, NULL, &value, f->diag), ZC_ERR_ARG, "key");
    assert_int_equal(zc_plan_model(NULL, &info), ZC_ERR_ARG);
    zc_plan *silent = compile("opset 17\nin x 1 2\nout y 1 *\nnode Neg x y\n", false, f->diag);
    assert_int_equal(zc_plan_model(silent, &info), ZC_OK);
    assert_string_equal(info.producer, "");
    assert_int_equal(info.pairs, 0);
    zc_plan_destroy(&silent);
}

/* ---- runs that nobody waits for ---- */

static void begin_held(fixture *f, int before)
{
    atomic_store(&holding, true);
    expect_ok(f->diag, zc_session_enqueue(f->session, f->diag));
    while (atomic_load(&inside) == before) nap();
}

static void test_enqueue(void **state)
{
    fixture *f = *state;
    const zc_view x = view(f->x, ROWS);
    bool done = true;
    expect_ok(f->diag, zc_session_wait(f->session, f->diag)); /* nothing to wait for */
    begin_held(f, 0);
    expect_ok(f->diag, zc_session_poll(f->session, &done, f->diag));
    assert_false(done);
    expect_fail(f->diag, zc_session_set_input(f->session, 0, &x, false, f->diag), ZC_ERR_BUSY, "");
    expect_fail(f->diag, zc_session_enqueue(f->session, f->diag), ZC_ERR_BUSY, "");
    zc_session *s = f->session;
    assert_int_equal(zc_session_destroy(&s), ZC_ERR_BUSY);
    assert_true(zc_session_memory(f->session) > 0);
    atomic_store(&holding, false);
    expect_ok(f->diag, zc_session_wait(f->session, f->diag));
    check_result(f);
    expect_ok(f->diag, zc_session_poll(f->session, &done, f->diag));
    assert_true(done);
    for (int i = 0; i < 200; i++) {
        expect_ok(f->diag, zc_session_enqueue(f->session, f->diag));
        for (done = false; i % 2 && !done;)
            expect_ok(f->diag, zc_session_poll(f->session, &done, f->diag));
        expect_ok(f->diag, zc_session_wait(f->session, f->diag));
        check_result(f);
    }
    expect_fail(f->diag, zc_session_poll(f->session, NULL, f->diag), ZC_ERR_ARG, "done");
}

static void test_enqueued_failures(void **state)
{
    fixture *f = *state;
    bool done;
    zc_session *s = NULL;
    expect_ok(f->diag, zc_session_create(f->plan, ZC_SESSION_PARAMS(OPS), &s, f->diag));
    expect_fail(f->diag, zc_session_enqueue(s, f->diag), ZC_ERR_INPUT, "x: has no value");
    expect_ok(f->diag, zc_session_wait(s, f->diag));
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    float *aligned = aligned_alloc(64, 64);
    expect_ok(f->diag, zc_session_bind_output(f->session, 0, aligned, 8, f->diag));
    expect_ok(f->diag, zc_session_enqueue(f->session, f->diag));
    zc_status status = ZC_OK;
    for (done = false; !done;) status = zc_session_poll(f->session, &done, f->diag);
    expect_fail(f->diag, status, ZC_ERR_ARG, "bound memory is too small");
    expect_ok(f->diag, zc_session_wait(f->session, f->diag)); /* it has been said */
    expect_ok(f->diag, zc_session_bind_output(f->session, 0, NULL, 0, f->diag));
    free(aligned);
}

static void test_enqueued_run_ends_early(void **state)
{
    fixture *f = *state;
    begin_held(f, 0);
    zc_session_cancel(f->session);
    expect_fail(f->diag, zc_session_wait(f->session, f->diag), ZC_ERR_CANCELLED, "cancelled");
    atomic_store(&holding, false);
    expect_ok(f->diag, zc_session_enqueue(f->session, f->diag));
    expect_ok(f->diag, zc_session_wait(f->session, f->diag));
    check_result(f);
    zc_session *s = NULL;
    const zc_view x = view(f->x, ROWS);
    expect_ok(f->diag,
              zc_session_create(f->plan, ZC_SESSION_PARAMS(OPS, .timeout_ms = 20), &s, f->diag));
    expect_ok(f->diag, zc_session_set_input(s, 0, &x, false, f->diag));
    atomic_store(&holding, true);
    expect_ok(f->diag, zc_session_enqueue(s, f->diag));
    expect_fail(f->diag, zc_session_wait(s, f->diag), ZC_ERR_TIMEOUT, "20 ms");
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

static void *wait_for(void *session)
{
    return (void *)(intptr_t)zc_session_wait(session, NULL);
}

static void test_waits_of_other_threads(void **state)
{
    fixture *f = *state;
    pthread_t threads[3];
    begin_held(f, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for, f->session), 0);
    pid_t child = fork();
    if (child == 0) {
        bool done;
        _exit(zc_session_wait(f->session, NULL) == ZC_ERR_FORKED &&
                      zc_session_poll(f->session, &done, NULL) == ZC_ERR_FORKED
                  ? 0
                  : 1);
    }
    int code;
    assert_true(waitpid(child, &code, 0) == child && WIFEXITED(code) && !WEXITSTATUS(code));
    atomic_store(&holding, false);
    for (int i = 0; i < 3; i++) {
        void *status;
        pthread_join(threads[i], &status);
        assert_int_equal((intptr_t)status, ZC_OK);
    }
    check_result(f);
}

/* ---- memory of the caller's ---- */

typedef struct arena {
    atomic_long allocations, bytes,
        left; /* left: allocations until the first that fails; -1: none */
    bool wrong;
} arena;

static void *arena_alloc(void *user, size_t bytes, size_t align)
{
    arena *a = user;
    if (atomic_load(&a->left) == 0) return NULL;
    if (atomic_load(&a->left) > 0) atomic_fetch_sub(&a->left, 1);
    atomic_fetch_add(&a->allocations, 1);
    atomic_fetch_add(&a->bytes, (long)bytes);
    a->wrong |= align != 64;
    return aligned_alloc(align, bytes);
}

static void arena_free(void *user, void *p, size_t bytes)
{
    arena *a = user;
    a->wrong |= !p;
    atomic_fetch_sub(&a->bytes, (long)bytes);
    free(p);
}

static zc_status run_rows(fixture *f, zc_session *s, int64_t rows, zc_diag *diag)
{
    const zc_view x = view(f->x, rows);
    ZC_TRY(zc_session_set_input(s, 0, &x, false, diag));
    return zc_session_run(s, diag);
}

static void test_allocator(void **state)
{
    fixture *f = *state;
    arena a = {.left = -1};
    const zc_allocator own = {arena_alloc, arena_free, &a};
    zc_session *s = NULL;
    expect_ok(f->diag,
              zc_session_create(f->plan, ZC_SESSION_PARAMS(OPS, .allocator = &own), &s, f->diag));
    for (int64_t rows = 1; rows <= ROWS; rows++) expect_ok(f->diag, run_rows(f, s, rows, f->diag));
    assert_true(atomic_load(&a.allocations) >= 3); /* input, results, working memory, scratch */
    const long warm = atomic_load(&a.allocations);
    for (int i = 0; i < 20; i++) expect_ok(f->diag, run_rows(f, s, 1 + i % ROWS, f->diag));
    assert_int_equal(atomic_load(&a.allocations), warm);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    assert_int_equal(atomic_load(&a.bytes), 0);
    for (long n = 0;; n++) {
        atomic_store(&a.left, n);
        expect_ok(f->diag, zc_session_create(f->plan, ZC_SESSION_PARAMS(OPS, .allocator = &own), &s,
                                             f->diag));
        zc_status status = run_rows(f, s, ROWS, f->diag);
        if (status == ZC_ERR_NOMEM) {
            expect_fail(f->diag, status, ZC_ERR_NOMEM, "out of memory");
            atomic_store(&a.left, -1);
            expect_ok(f->diag, run_rows(f, s, ROWS, f->diag));
        }
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
        assert_int_equal(atomic_load(&a.bytes), 0);
        if (status == ZC_OK) break;
        assert_true(n < 100);
    }
    assert_false(a.wrong);
    zc_allocator half = own;
    half.free = NULL;
    expect_fail(f->diag,
                zc_session_create(f->plan, ZC_SESSION_PARAMS(OPS, .allocator = &half), &s, f->diag),
                ZC_ERR_ARG, "allocator: its function `free` is NULL");
}

/* ---- tensors of other libraries ---- */

typedef struct DLManagedTensorVersioned managed;

static int deleted;

static void delete_one(managed *self)
{
    deleted++;
    self->manager_ctx = NULL;
}

/* shape[2] and strides[2] at numbers. */
static managed tensor(float *data, int64_t *numbers)
{
    return (managed){.major = 1,
                     .deleter = delete_one,
                     .tensor = {.data = data,
                                .device_type = ZC_DL_CPU,
                                .ndim = 2,
                                .code = 2,
                                .bits = 32,
                                .lanes = 1,
                                .shape = numbers,
                                .strides = numbers + 2}};
}

static void test_dlpack_in(void **state)
{
    fixture *f = *state;
    int64_t dense[] = {ROWS, COLUMNS, COLUMNS, 1}, turned[] = {ROWS, COLUMNS, 1, ROWS};
    float transposed[ELEMS], shifted[ELEMS + 1];
    managed m = tensor(f->x, dense), t = tensor(transposed, turned);
    deleted = 0;
    expect_ok(f->diag, zc_session_set_input_dlpack(f->session, 0, &m, f->diag));
    assert_int_equal(deleted, 0);
    f->x[2] = 77; /* it is read where it is */
    expect_ok(f->diag, zc_session_run(f->session, f->diag));
    check_result(f);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) transposed[c * ROWS + r] = f->x[r * COLUMNS + c];
    expect_ok(f->diag, zc_session_set_input_dlpack(f->session, 0, &t, f->diag));
    assert_int_equal(deleted, 2); /* the one before, and the copied one */
    expect_ok(f->diag, zc_session_run(f->session, f->diag));
    check_result(f);
    /* Not aligned, behind an offset, without strides. */
    memcpy((char *)shifted + 2, f->x, sizeof f->x);
    m = tensor(shifted, dense);
    m.tensor.byte_offset = 2;
    m.tensor.strides = NULL;
    expect_ok(f->diag, zc_session_set_input_dlpack(f->session, 0, &m, f->diag));
    assert_int_equal(deleted, 3);
    expect_ok(f->diag, zc_session_run(f->session, f->diag));
    check_result(f);
    /* The last one goes with the session; a deleter may be missing. */
    m = tensor(f->x, dense);
    m.deleter = NULL;
    expect_ok(f->diag, zc_session_set_input_dlpack(f->session, 0, &m, f->diag));
    managed last = tensor(f->x, dense);
    expect_ok(f->diag, zc_session_set_input_dlpack(f->session, 0, &last, f->diag));
    zc_session *s = f->session;
    f->session = NULL;
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    assert_int_equal(deleted, 4);
}

static void test_dlpack_refused(void **state)
{
    fixture *f = *state;
    int64_t dense[] = {ROWS, COLUMNS, COLUMNS, 1}, negative[] = {-1, COLUMNS, COLUMNS, 1};
    struct {
        managed m;
        zc_status status;
        const char *text;
    } cases[] = {
        {tensor(f->x, dense), ZC_ERR_UNSUPPORTED, "DLPack's version (got 2.0, need 1.x)"},
        {tensor(f->x, dense), ZC_ERR_UNSUPPORTED, "device of type 4"},
        {tensor(f->x, dense), ZC_ERR_ARG, "device memory for a session on the CPU"},
        {tensor(f->x, dense), ZC_ERR_UNSUPPORTED, "code 2, 32 bits, 4 lanes"},
        {tensor(f->x, dense), ZC_ERR_INPUT, "wrong element type (got i32, need f32)"},
        {tensor(f->x, dense), ZC_ERR_INPUT, "rank out of range (got 17"},
        {tensor(f->x, dense), ZC_ERR_INPUT, "wrong number of dimensions (got 1, need 2)"},
        {tensor(f->x, negative), ZC_ERR_INPUT, "a dimension is negative"},
        {tensor(NULL, dense), ZC_ERR_ARG, "data is NULL"},
    };
    cases[0].m.major = 2;
    cases[1].m.tensor.device_type = 4;
    cases[2].m.tensor.device_type = ZC_DL_CUDA;
    cases[3].m.tensor.lanes = 4;
    cases[4].m.tensor.code = 0;
    cases[5].m.tensor.ndim = 17;
    cases[6].m.tensor.ndim = 1;
    cases[6].m.tensor.shape = dense + 1;
    cases[6].m.tensor.strides = NULL;
    deleted = 0;
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++)
        expect_fail(f->diag, zc_session_set_input_dlpack(f->session, 0, &cases[i].m, f->diag),
                    cases[i].status, cases[i].text);
    assert_int_equal(deleted, 0); /* they are still the caller's */
    managed m = tensor(f->x, dense);
    expect_fail(f->diag, zc_session_set_input_dlpack(f->session, 1, &m, f->diag), ZC_ERR_ARG,
                "no such input");
    expect_fail(f->diag, zc_session_set_input_dlpack(f->session, 0, NULL, f->diag), ZC_ERR_ARG,
                "NULL");
    expect_ok(f->diag, zc_session_run(f->session, f->diag)); /* with the input of before */
    check_result(f);
}

static void check_taken(const fixture *f, const managed *m, float factor)
{
    assert_true(m->major == 1 && m->tensor.ndim == 2 && m->tensor.device_type == ZC_DL_CPU);
    assert_true(m->tensor.code == 2 && m->tensor.bits == 32 && m->tensor.lanes == 1);
    assert_true(m->tensor.shape[0] == ROWS && m->tensor.shape[1] == COLUMNS);
    assert_true(m->tensor.strides[0] == COLUMNS && m->tensor.strides[1] == 1);
    for (int i = 0; i < ELEMS; i++)
        assert_true(((const float *)m->tensor.data)[i] == -f->x[i] * factor);
}

static void test_dlpack_out(void **state)
{
    fixture *f = *state;
    managed *first, *same, *second;
    zc_view y;
    float *bound = aligned_alloc(64, 64);
    expect_fail(f->diag, zc_session_take_output_dlpack(f->session, 0, &first, f->diag), ZC_ERR_ARG,
                "no run has given a result");
    expect_ok(f->diag, zc_session_run(f->session, f->diag));
    expect_ok(f->diag, zc_session_take_output_dlpack(f->session, 0, &first, f->diag));
    expect_fail(f->diag, zc_session_output(f->session, 0, &y, f->diag), ZC_ERR_ARG, "no run");
    expect_ok(f->diag, zc_session_take_output_dlpack(f->session, 1, &same, f->diag));
    assert_true(first->tensor.data != same->tensor.data);
    for (int i = 0; i < ELEMS; i++) f->x[i] *= 2;
    expect_ok(f->diag, run_rows(f, f->session, ROWS, f->diag));
    check_result(f);
    expect_ok(f->diag, zc_session_take_output_dlpack(f->session, 0, &second, f->diag));
    check_taken(f, second, 1);
    check_taken(f, first, 0.5f);
    check_taken(f, same, 0.5f);
    ((float *)first->tensor.data)[0] = 1; /* nobody else's */
    first->deleter(first);
    expect_ok(f->diag, zc_session_bind_output(f->session, 0, bound, 64, f->diag));
    expect_ok(f->diag, zc_session_run(f->session, f->diag));
    expect_fail(f->diag, zc_session_take_output_dlpack(f->session, 0, &first, f->diag), ZC_ERR_ARG,
                "is bound to the caller's memory");
    assert_null(first);
    zc_session *s = f->session;
    f->session = NULL;
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    check_taken(f, second, 1);
    second->deleter(second);
    same->deleter(same);
    free(bound);
}

/* With the caller's allocator, taken results are its memory, to the end. */
static void test_dlpack_out_of_allocator(void **state)
{
    fixture *f = *state;
    arena a = {.left = -1};
    const zc_allocator own = {arena_alloc, arena_free, &a};
    zc_session *s = NULL;
    managed *m;
    expect_ok(f->diag,
              zc_session_create(f->plan, ZC_SESSION_PARAMS(OPS, .allocator = &own), &s, f->diag));
    expect_ok(f->diag, run_rows(f, s, ROWS, f->diag));
    const uint64_t before = zc_session_memory(s);
    expect_ok(f->diag, zc_session_take_output_dlpack(s, 0, &m, f->diag));
    assert_true(zc_session_memory(s) <= before);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    assert_true(atomic_load(&a.bytes) >= (long)sizeof f->x);
    check_taken(f, m, 1);
    m->deleter(m);
    assert_int_equal(atomic_load(&a.bytes), 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_model_info),
        T(test_enqueue),
        T(test_enqueued_failures),
        T(test_enqueued_run_ends_early),
        T(test_waits_of_other_threads),
        T(test_allocator),
        T(test_dlpack_in),
        T(test_dlpack_refused),
        T(test_dlpack_out),
        T(test_dlpack_out_of_allocator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
