/* What sessions and plans hold in memory: runs allocate only for shapes that are new, the library's
 * accounts are true, and convolution weights are there once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/session.h"
#include "support/expect.h"
#include "support/fail_alloc.h"
#include "support/onnx_text.h"
#include "support/plan_inputs.h"
#include "zc/zc.h"

static zc_plan *plan_of(const char *text)
{
    zc_buf model = {0};
    void *bytes;
    size_t len;
    zc_plan *plan;
    zc_diag *diag = zc_diag_create();
    onnx_text(text, &model);
    expect_ok(diag, zc_compile_bytes(model.data, model.len, NULL, &bytes, &len, diag));
    expect_ok(diag, zc_plan_load_bytes(bytes, len, &plan, diag));
    zc_free(bytes);
    zc_buf_fini(&model);
    zc_diag_destroy(&diag);
    return plan;
}

static zc_session *session_of(zc_plan *plan, int threads, bool reference)
{
    zc_session *s;
    assert_int_equal(
        zc_session_create(plan, ZC_SESSION_PARAMS(.threads = threads, .reference = reference), &s,
                          NULL),
        ZC_OK);
    return s;
}

/* Inputs of the dimension `n` from `seed`, and a run. */
static void run(zc_plan *plan, zc_session *s, int64_t n, unsigned seed)
{
    zc_diag *diag = zc_diag_create();
    expect_ok(diag, plan_inputs(plan, s, n, seed, diag));
    expect_ok(diag, zc_session_run(s, diag));
    zc_diag_destroy(&diag);
}

/* ---- allocations ---- */

static const char static_text[] =
    "ir 8\nopset 17\nin x 1 2,4\nout y 1 *\nout m 1 *\n"
    "init w 1 4,3 0.5,-1,2,1,0.25,-0.5,-2,1.5,1,0.125,3,-1\n"
    "node MatMul x,w h\nnode Softmax h y axis:i=1\nnode ReduceMean h m axes:is=1\n";

static const char alternating_text[] = "ir 8\nopset 17\nin x 1 n,4\nout y 1 *\nout s 7 *\n"
                                       "init w 1 4,3 0.5,-1,2,1,0.25,-0.5,-2,1.5,1,0.125,3,-1\n"
                                       "node MatMul x,w h\nnode Transpose h t perm:is=1,0\nnode "
                                       "Softmax t y axis:i=1\nnode Shape y s\n";

/* How many positives there are only a run tells; so is the size of what follows. */
static const char dynamic_text[] =
    "ir 8\nopset 17\nin x 1 n,4\nout y 1 *\nout z 7 *\n"
    "node Relu x p\nnode NonZero p z\nnode Transpose z t perm:is=1,0\nnode GatherND x,t g\n"
    "node Shape g c\nnode Expand g,c e\nnode Neg e y\n";

/* Allocations of `runs` runs over the dimensions dims[ndims], after `warm` rounds of the same. */
static long allocations(const char *text, const int64_t *dims, int ndims, int warm)
{
    zc_plan *plan = plan_of(text);
    zc_session *s = session_of(plan, 2, false);
    long counted = 0;
    for (int round = 0; round < warm + 20; round++) {
        for (int i = 0; i < ndims; i++) {
            zc_diag *diag = zc_diag_create();
            expect_ok(diag, plan_inputs(plan, s, dims[i], (unsigned)i + 1, diag));
            long before = fail_alloc_count();
            if (round >= warm) fail_alloc_at(1); /* so that its message says where */
            expect_ok(diag, zc_session_run(s, diag));
            fail_alloc_at(0);
            counted += round >= warm ? fail_alloc_count() - before : 0;
            zc_diag_destroy(&diag);
        }
    }
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_plan_destroy(&plan);
    return counted;
}

static void test_static_runs_allocate_nothing(void **state)
{
    (void)state;
    assert_int_equal(allocations(static_text, (int64_t[]){2}, 1, 1), 0);
}

/* As many shapes in rotation as are kept where nothing else is asked for. */
static void test_alternating_runs_allocate_nothing(void **state)
{
    (void)state;
    int64_t dims[64];
    for (int i = 0; i < 64; i++) dims[i] = (i * 37 + 5) % 64 + 1;
    assert_int_equal(allocations(alternating_text, dims, 64, 1), 0);
}

static void test_dynamic_runs_allocate_nothing(void **state)
{
    (void)state;
    assert_int_equal(allocations(dynamic_text, (int64_t[]){3, 9, 30, 1}, 4, 1), 0);
}

static zc_session *session_for_shapes(zc_plan *plan, size_t shapes)
{
    zc_session *s;
    assert_int_equal(
        zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 1, .shapes = shapes), &s, NULL),
        ZC_OK);
    return s;
}

/* One shape more than are kept: all is planned anew, in the memory of what it replaces. */
static void test_more_shapes_than_are_kept(void **state)
{
    (void)state;
    zc_plan *plan = plan_of(alternating_text);
    for (size_t kept = 1; kept <= 8; kept += 7) {
        zc_session *s = session_for_shapes(plan, kept), *fresh;
        uint64_t held = 0;
        for (int round = 0; round < 4; round++) {
            for (int64_t n = (int64_t)kept + 1; n > 0; n--) {
                zc_view got, want;
                fresh = session_of(plan, 1, false);
                run(plan, s, n, 5);
                run(plan, fresh, n, 5);
                assert_int_equal(zc_session_output(s, 0, &got, NULL), ZC_OK);
                assert_int_equal(zc_session_output(fresh, 0, &want, NULL), ZC_OK);
                assert_int_equal(got.dims[1], n);
                assert_int_equal(got.bytes, want.bytes);
                assert_memory_equal(got.data, want.data, got.bytes);
                assert_int_equal(zc_session_destroy(&fresh), ZC_OK);
            }
            if (round == 1) held = zc_session_memory(s);
            if (round > 1) assert_int_equal(zc_session_memory(s), held);
        }
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
    }
    zc_plan_destroy(&plan);
}

/* Is what an earlier run of this shape has found still there? (A run confirms what it plans.) */
static bool is_kept(zc_plan *plan, zc_session *s, int64_t n)
{
    zc_shapes *e;
    assert_int_equal(plan_inputs(plan, s, n, 1, NULL), ZC_OK);
    assert_int_equal(zc_shapes_find(s, &e, NULL), ZC_OK);
    bool kept = e->checked;
    run(plan, s, n, 1);
    return kept;
}

/* The set that was used longest ago goes, whatever the order in which they came. */
static void test_the_oldest_shape_goes(void **state)
{
    (void)state;
    static const int64_t uses[] = {1, 2, 3, 1, 2, 4, 1, 2, 3, 3, 4, 1, 4, 3, 2};
    static const bool kept[] = {0, 0, 0, 1, 1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0};
    zc_plan *plan = plan_of(alternating_text);
    zc_session *s = session_for_shapes(plan, 3);
    for (size_t i = 0; i < ZC_COUNTOF(uses); i++)
        if (is_kept(plan, s, uses[i]) != kept[i]) fail_msg("use %zu of %d", i, (int)uses[i]);
    assert_int_equal(s->shapes.len, 3);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_plan_destroy(&plan);
}

static void test_thousands_of_shapes(void **state)
{
    (void)state;
    enum { KEPT = 2000 };
    zc_plan *plan = plan_of(alternating_text);
    zc_session *s = session_for_shapes(plan, KEPT);
    for (int64_t n = 1; n <= KEPT; n++) assert_false(is_kept(plan, s, n));
    for (int64_t n = KEPT; n > 0; n--) assert_true(is_kept(plan, s, n));
    size_t fullest = 0;
    for (size_t b = 0; b < s->shapes.nbuckets; b++) {
        size_t len = 0;
        for (const zc_shapes *e = s->shapes.buckets[b]; e; e = e->next) len++;
        if (len > fullest) fullest = len;
    }
    assert_in_range(fullest, 1, 12);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    assert_int_equal(
        zc_session_create(plan, ZC_SESSION_PARAMS(.shapes = ZC_SHAPES_MAX + 1), &s, NULL),
        ZC_ERR_ARG);
    zc_plan_destroy(&plan);
}

/* ---- convolutions ---- */

enum { CHANNELS = 64, WEIGHTS = CHANNELS * CHANNELS * 9 };

/* Relu(Conv(Relu(Conv(x)))), 64 channels, 3x3; `extra` adds lines. */
static zc_plan *conv_plan(const char *extra)
{
    zc_buf text = {0};
    zc_buf_puts(&text, "ir 8\nopset 17\nin x 1 1,64,h,8\nout y 1 *\n");
    for (int i = 0; i < 2; i++) {
        zc_buf_printf(&text, "init w%d 1 64,64,3,3 ", i);
        for (int k = 0; k < WEIGHTS; k++)
            zc_buf_printf(&text, "%s%d", k ? "," : "", (k * 37 + i * 11 + k / 64) % 23 - 11);
        zc_buf_puts(&text, "\n");
    }
    zc_buf_puts(&text, "node Conv x,w0 a kernel_shape:is=3,3 pads:is=1,1,1,1\nnode Relu a b\n"
                       "node Conv b,w1 c kernel_shape:is=3,3 pads:is=1,1,1,1\nnode Relu c y\n");
    zc_buf_puts(&text, extra);
    assert_false(text.failed);
    zc_plan *plan = plan_of(text.data);
    zc_buf_fini(&text);
    return plan;
}

static zc_plan_info info_of(const zc_plan *plan)
{
    zc_plan_info info;
    assert_int_equal(zc_plan_info_get(plan, &info), ZC_OK);
    return info;
}

/* The first output; the caller frees it. */
static float *result_of(zc_plan *plan, zc_session *s, int64_t n, size_t *count)
{
    zc_view v;
    run(plan, s, n, 3);
    assert_int_equal(zc_session_output(s, 0, &v, NULL), ZC_OK);
    float *copy = malloc(v.bytes);
    assert_non_null(copy);
    memcpy(copy, v.data, v.bytes);
    *count = v.bytes / sizeof *copy;
    return copy;
}

static void expect_near(const float *got, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float off = got[i] - want[i], scale = want[i] < 0 ? -want[i] : want[i];
        if (off < 0) off = -off;
        if (!(off <= 1e-3f * (scale + 1))) fail_msg("element %zu: %g, need %g", i, got[i], want[i]);
    }
}

static void test_weights_are_packed_once(void **state)
{
    (void)state;
    zc_plan *plan = conv_plan("");
    zc_session *a = session_of(plan, 1, false), *b = session_of(plan, 1, false);
    assert_int_equal(info_of(plan).packed_bytes, 0);
    run(plan, a, 8, 1);
    zc_plan_info one = info_of(plan);
    assert_in_range(one.packed_bytes, 2 * WEIGHTS * sizeof(float), 3 * WEIGHTS * sizeof(float));
    uint64_t held = zc_session_memory(a);
    run(plan, b, 8, 2);
    assert_int_equal(info_of(plan).packed_bytes, one.packed_bytes);
    assert_int_equal(zc_session_memory(b), held);
    assert_true(held < 2 * WEIGHTS * sizeof(float)); /* none of them in the session */
    assert_int_equal(zc_session_destroy(&a), ZC_OK);
    run(plan, b, 8, 2);
    assert_int_equal(zc_session_destroy(&b), ZC_OK);
    zc_plan_destroy(&plan);
}

/* The originals go, and come back for a session that computes from them. */
static void test_originals_come_back(void **state)
{
    (void)state;
    size_t n, same_n;
    zc_plan *plan = conv_plan("");
    zc_session *untouched = session_of(plan, 1, true);
    float *want = result_of(plan, untouched, 8, &n);
    assert_int_equal(zc_session_destroy(&untouched), ZC_OK);
    zc_plan_destroy(&plan);

    plan = conv_plan("");
    zc_session *fast = session_of(plan, 2, false);
    float *got = result_of(plan, fast, 8, &same_n);
    assert_int_equal(same_n, n);
    expect_near(got, want, n);
    zc_plan_info info = info_of(plan);
    assert_in_range(info.released_bytes, WEIGHTS * sizeof(float), 2 * WEIGHTS * sizeof(float));

    zc_session *reference = session_of(plan, 1, true);
    assert_int_equal(info_of(plan).released_bytes, 0);
    float *again = result_of(plan, reference, 8, &same_n);
    assert_memory_equal(again, want, n * sizeof *want);
    float *later = result_of(plan, fast, 8, &same_n);
    assert_memory_equal(later, got, n * sizeof *got);
    free(want);
    free(got);
    free(again);
    free(later);
    assert_int_equal(zc_session_destroy(&fast), ZC_OK);
    assert_int_equal(zc_session_destroy(&reference), ZC_OK);
    zc_plan_destroy(&plan);
}

/* A constant that something else reads too stays. */
static void test_shared_originals_stay(void **state)
{
    (void)state;
    zc_plan *plan = conv_plan("out w0 1 *\n");
    zc_session *s = session_of(plan, 1, false);
    run(plan, s, 8, 1);
    zc_view w;
    assert_int_equal(zc_session_output(s, 1, &w, NULL), ZC_OK);
    assert_int_equal(w.bytes, WEIGHTS * sizeof(float));
    for (int k = 0; k < WEIGHTS; k++)
        if (((const float *)w.data)[k] != (float)((k * 37 + k / 64) % 23 - 11))
            fail_msg("weight %d: %g", k, ((const float *)w.data)[k]);
    assert_in_range(info_of(plan).released_bytes, 1, WEIGHTS * sizeof(float));
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_plan_destroy(&plan);
}

static void test_alternating_convolutions(void **state)
{
    (void)state;
    static const int64_t rows[] = {8, 3, 16, 1};
    zc_plan *plan = conv_plan("");
    zc_session *s = session_of(plan, 2, false);
    long counted = 0;
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 4; i++) {
            assert_int_equal(plan_inputs(plan, s, rows[i], 1, NULL), ZC_OK);
            long before = fail_alloc_count();
            assert_int_equal(zc_session_run(s, NULL), ZC_OK);
            if (round) counted += fail_alloc_count() - before;
        }
    }
    assert_int_equal(counted, 0);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_plan_destroy(&plan);
}

/* Every allocation of zc's own in a first run fails once. */
static void test_convolution_without_memory(void **state)
{
    (void)state;
    long n = 1;
    for (bool more = true; more; n++) {
        zc_plan *plan = conv_plan("");
        zc_session *s = session_of(plan, 1, false);
        assert_int_equal(plan_inputs(plan, s, 4, 1, NULL), ZC_OK);
        fail_alloc_at(n);
        zc_status status = zc_session_run(s, NULL);
        more = fail_alloc_happened();
        fail_alloc_at(0);
        assert_true(status == ZC_OK || (more && status == ZC_ERR_NOMEM));
        assert_int_equal(zc_session_run(s, NULL), ZC_OK);
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
        zc_plan_destroy(&plan);
    }
    assert_true(n > 10);
}

/* ---- little address space ---- */

static size_t address_space(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu", &pages), 1);
    assert_int_equal(fclose(file), 0);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* The process's first session, of eight threads, and its first run with so much address space left.
 */
static zc_status first_run_in(zc_plan *plan, size_t mib)
{
    zc_session *s;
    struct rlimit limit = {.rlim_cur = address_space() + (mib << 20)};
    limit.rlim_max = limit.rlim_cur;
    if (setrlimit(RLIMIT_AS, &limit) != 0) return ZC_ERR_INTERNAL;
    zc_status status = zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 8), &s, NULL);
    if (status == ZC_OK) status = plan_inputs(plan, s, 64, 1, NULL);
    return status == ZC_OK ? zc_session_run(s, NULL) : status;
}

/* Products of eight threads run or are refused: where a thread's new heap takes the room in which
 * oneDNN makes its code, it would crash. */
static void test_first_product_with_little_room(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* their shadows need the address space */
#endif
    zc_plan *plan = plan_of("opset 17\nin a 1 64,64\nin b 1 64,64\nout y 1 *\nnode MatMul a,b y\n");
    int ran = 0, refused = 0;
    for (size_t mib = 16; mib <= 1216; mib += mib < 128 || mib > 160 ? 32 : 1) {
        pid_t child = fork();
        if (child == 0) _exit((int)first_run_in(plan, mib));
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status)) fail_msg("%zu MiB: signal %d", mib, WTERMSIG(status));
        zc_status ended = (zc_status)WEXITSTATUS(status);
        ran += ended == ZC_OK;
        refused += ended != ZC_OK;
        /* LIMIT: there is no room for the threads. */
        if (ended != ZC_OK && ended != ZC_ERR_NOMEM && ended != ZC_ERR_LIMIT)
            fail_msg("%zu MiB: %s", mib, zc_status_name(ended));
    }
    assert_true(ran && refused);
    zc_plan_destroy(&plan);
}

/* ---- before anything is made ---- */

static void test_plan_memory(void **state)
{
    (void)state;
    zc_plan *plan = conv_plan("");
    zc_io_info in;
    zc_memory_info small, large;
    zc_diag *diag = zc_diag_create();
    assert_int_equal(zc_plan_input(plan, 0, &in, NULL), ZC_OK);
    assert_int_equal(in.dims[2], -1);
    assert_int_equal(zc_plan_memory(plan, &in, 1, &small, diag), ZC_ERR_INPUT);
    assert_string_equal(zc_diag_text(diag, 0), "x: dimension 2 has no size (got -1)");
    assert_int_equal(zc_plan_memory(plan, &in, 0, &small, NULL), ZC_ERR_ARG);
    assert_int_equal(zc_plan_memory(plan, NULL, 1, &small, NULL), ZC_ERR_ARG);
    assert_int_equal(zc_plan_memory(NULL, &in, 1, &small, NULL), ZC_ERR_ARG);
    zc_diag_clear(diag);
    in.dims[2] = INT64_MAX / 2;
    assert_int_equal(zc_plan_memory(plan, &in, 1, &small, NULL), ZC_ERR_INPUT);
    in.dims[2] = 8;
    expect_ok(diag, zc_plan_memory(plan, &in, 1, &small, diag));
    in.dims[2] = 16;
    expect_ok(diag, zc_plan_memory(plan, &in, 1, &large, diag));
    /* Two planes live at once: a convolution's input and result. */
    const uint64_t plane = 64 * 8 * 8 * sizeof(float);
    assert_int_equal(small.result_bytes, plane);
    assert_int_equal(large.result_bytes, 2 * plane);
    assert_int_equal(large.arena_bytes, 2 * small.arena_bytes);
    assert_in_range(small.arena_bytes, plane, 3 * plane);
    assert_int_equal(small.weight_bytes, info_of(plan).weight_bytes);
    assert_int_equal(small.device_weight_bytes, 0);

    /* It is what a session then takes. */
    zc_session *s = session_of(plan, 1, false);
    uint64_t before = zc_session_memory(s);
    run(plan, s, 8, 1);
    assert_in_range(zc_session_memory(s) - before, small.arena_bytes + small.result_bytes,
                    small.arena_bytes + small.result_bytes + 2 * plane + 262144);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_diag_destroy(&diag);
    zc_plan_destroy(&plan);
}

/* ---- plans in their files' pages ---- */

/* Kilobytes of this process's mappings of the file, by the name of a line of smaps. */
static long mapped_kib(const char *path, const char *what)
{
    char line[512];
    long sum = 0, kib;
    bool inside = false;
    FILE *f = fopen("/proc/self/smaps", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        if (strchr(line, '-') && strchr(line, '-') < strchr(line, ' '))
            inside = strstr(line, path) != NULL;
        else if (inside && strncmp(line, what, strlen(what)) == 0 &&
                 sscanf(line + strlen(what), ": %ld", &kib) == 1)
            sum += kib;
    }
    fclose(f);
    return sum;
}

enum { WEIGHT_ROWS = 100, WEIGHT_COLUMNS = 1000, WEIGHT_KIB = 100 * 1000 * 4 / 1024 };

/* A product with weights of its own, which take most of the plan. */
static void write_product(zc_buf *text)
{
    zc_buf_printf(text, "ir 8\nopset 17\nin x 1 1,%d\nout y 1 *\nnode MatMul x,w y\n", WEIGHT_ROWS);
    zc_buf_printf(text, "init w 1 %d,%d ", WEIGHT_ROWS, WEIGHT_COLUMNS);
    for (int i = 0; i < WEIGHT_ROWS * WEIGHT_COLUMNS; i++)
        zc_buf_printf(text, "%s%d", i ? "," : "", i % 97);
    zc_buf_puts(text, "\n");
}

static void write_plan(const char *text, char *path)
{
    zc_buf model = {0};
    void *bytes;
    size_t len;
    onnx_text(text, &model);
    assert_int_equal(zc_compile_bytes(model.data, model.len, NULL, &bytes, &len, NULL), ZC_OK);
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, bytes, len) == (ssize_t)len && close(fd) == 0);
    zc_free(bytes);
    zc_buf_fini(&model);
}

/* Another process has the plan in use, too: the weights' pages are one for both. */
static int child_with_plan(const char *path, int ready, int done)
{
    zc_plan *plan;
    char byte = 0;
    if (zc_plan_map_file(path, &plan, NULL) != ZC_OK) return 1;
    run(plan, session_of(plan, 1, false), 1, 1);
    if (write(ready, &byte, 1) != 1 || read(done, &byte, 1) != 1) return 2;
    return 0;
}

static void test_mapped_weights_are_shared(void **state)
{
    (void)state;
    char path[] = "/tmp/zc_mapped_XXXXXX", byte = 0;
    int ready[2], done[2], status;
    zc_buf text = {0};
    zc_plan *plan;
    zc_view y;
    write_product(&text);
    write_plan(text.data, path);
    zc_buf_fini(&text);
    assert_true(pipe(ready) == 0 && pipe(done) == 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(60);
        _exit(child_with_plan(path, ready[1], done[0]));
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(zc_plan_map_file(path, &plan, NULL), ZC_OK);
    zc_session *s = session_of(plan, 1, false);
    run(plan, s, 1, 1);
    assert_int_equal(zc_session_output(s, 0, &y, NULL), ZC_OK);
    assert_int_equal(y.dims[1], 1000);
    /* Dirty: the file was written a moment ago. */
    assert_in_range(mapped_kib(path, "Shared_Clean") + mapped_kib(path, "Shared_Dirty"), WEIGHT_KIB,
                    WEIGHT_KIB + 64);
    assert_in_range(mapped_kib(path, "Private_Clean") + mapped_kib(path, "Private_Dirty"), 0, 64);
    assert_in_range(mapped_kib(path, "Pss"), 1, WEIGHT_KIB / 2 + 64);
    assert_int_equal(write(done[1], &byte, 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_plan_destroy(&plan);
    assert_int_equal(mapped_kib(path, "Size"), 0);
    assert_int_equal(unlink(path), 0);
    for (int i = 0; i < 2; i++) assert_true(close(ready[i]) == 0 && close(done[i]) == 0);
}

/* Convolutions pack their weights, whose originals cannot be written back to the file. */
static void test_mapped_convolution(void **state)
{
    (void)state;
    char path[] = "/tmp/zc_mapped_XXXXXX";
    zc_plan *plan;
    zc_view fast, plain;
    zc_diag *diag = zc_diag_create();
    write_plan("ir 8\nopset 17\nin x 1 1,8,12,12\nout y 1 *\ninit s 7 4 64,8,3,3\n"
               "node ConstantOfShape s w value:t=1/1/0.01\nnode Conv x,w y\n",
               path);
    expect_ok(diag, zc_plan_map_file(path, &plan, diag));
    zc_session *s = session_of(plan, 1, false), *reference;
    run(plan, s, 1, 1);
    assert_int_equal(info_of(plan).released_bytes, 0);
    reference = session_of(plan, 1, true); /* reads the originals */
    run(plan, reference, 1, 1);
    expect_ok(diag, zc_session_output(s, 0, &fast, diag));
    expect_ok(diag, zc_session_output(reference, 0, &plain, diag));
    for (size_t i = 0; i < fast.bytes / sizeof(float); i++)
        assert_float_equal(((const float *)fast.data)[i], ((const float *)plain.data)[i], 1e-4);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    assert_int_equal(zc_session_destroy(&reference), ZC_OK);
    zc_plan_destroy(&plan);
    /* What is no plan, and files that are none. */
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(zc_plan_map_file(path, &plan, NULL), ZC_ERR_FORMAT);
    assert_int_equal(truncate(path, 0), 0);
    expect_fail(diag, zc_plan_map_file(path, &plan, diag), ZC_ERR_FORMAT, "the file is empty");
    assert_int_equal(unlink(path), 0);
    expect_fail(diag, zc_plan_map_file(path, &plan, diag), ZC_ERR_IO, "No such file");
    expect_fail(diag, zc_plan_map_file("/tmp", &plan, diag), ZC_ERR_IO, "/tmp");
    expect_fail(diag, zc_plan_map_file(NULL, &plan, diag), ZC_ERR_ARG, "path: is NULL");
    assert_int_equal(zc_plan_map_file(path, NULL, NULL), ZC_ERR_ARG);
    zc_diag_destroy(&diag);
}

/* ---- shapes ahead of time ---- */

static zc_io_info shape_of(const zc_plan *plan, int64_t n)
{
    zc_io_info in;
    assert_int_equal(zc_plan_input(plan, 0, &in, NULL), ZC_OK);
    for (int d = 0; d < in.rank; d++)
        if (in.dims[d] < 0) in.dims[d] = n;
    return in;
}

/* A first run of a prepared shape allocates nothing, whatever other shapes were prepared. */
static void test_prepared_runs_allocate_nothing(void **state)
{
    (void)state;
    zc_plan *plan = plan_of(alternating_text);
    zc_session *s = session_of(plan, 2, false);
    zc_diag *diag = zc_diag_create();
    for (int64_t n = 1; n <= 5; n++) {
        zc_io_info in = shape_of(plan, n);
        expect_ok(diag, zc_session_prepare(s, &in, 1, NULL, diag));
    }
    for (int64_t n = 5; n > 0; n--) {
        expect_ok(diag, plan_inputs(plan, s, n, 1, diag));
        fail_alloc_at(1);
        expect_ok(diag, zc_session_run(s, diag));
        assert_false(fail_alloc_happened());
        fail_alloc_at(0);
    }
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_plan_destroy(&plan);
    zc_diag_destroy(&diag);
}

static void test_prepare_tells_sizes(void **state)
{
    (void)state;
    zc_plan *plan = plan_of(alternating_text);
    zc_session *s = session_of(plan, 1, false);
    zc_diag *diag = zc_diag_create();
    zc_io_info in = shape_of(plan, 6), out;
    zc_memory_info told, foretold;
    assert_int_equal(in.bytes, -1);
    expect_fail(diag, zc_session_output_info(s, 0, &out, diag), ZC_ERR_ARG,
                "y: neither a run nor zc_session_prepare has given the inputs shapes");
    expect_ok(diag, zc_session_prepare(s, &in, 1, &told, diag));
    expect_ok(diag, zc_plan_memory(plan, &in, 1, &foretold, diag));
    assert_memory_equal(&told, &foretold, sizeof told);
    expect_ok(diag, zc_session_output_info(s, 0, &out, diag));
    assert_string_equal(out.name, "y");
    assert_int_equal(out.dims[0], 3);
    assert_int_equal(out.dims[1], 6);
    assert_int_equal(out.bytes, 3 * 6 * sizeof(float));
    assert_string_equal(out.dim_texts[1], "n");
    expect_ok(diag, zc_session_output_info(s, 1, &out, diag));
    assert_int_equal(out.bytes, 2 * sizeof(int64_t));
    run(plan, s, 2, 1); /* a run tells, too */
    expect_ok(diag, zc_session_output_info(s, 0, &out, diag));
    assert_int_equal(out.dims[1], 2);
    expect_fail(diag, zc_session_output_info(s, 2, &out, diag), ZC_ERR_ARG, "no such output");
    assert_int_equal(zc_session_output_info(s, 0, NULL, NULL), ZC_ERR_ARG);
    assert_int_equal(zc_session_output_info(NULL, 0, &out, NULL), ZC_ERR_ARG);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_plan_destroy(&plan);

    /* Values decide the number of columns, not the number of rows. */
    plan = plan_of(dynamic_text);
    s = session_of(plan, 1, false);
    in = shape_of(plan, 3);
    expect_ok(diag, zc_session_prepare(s, &in, 1, NULL, diag));
    expect_ok(diag, zc_session_output_info(s, 1, &out, diag));
    assert_int_equal(out.dims[1], -1);
    assert_int_equal(out.bytes, -1);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_plan_destroy(&plan);
    zc_diag_destroy(&diag);
}

/* What was set is set, results are gone, and the next run is right. */
static void test_prepare_keeps_inputs(void **state)
{
    (void)state;
    zc_plan *plan = plan_of(static_text);
    zc_session *s = session_of(plan, 1, false);
    zc_diag *diag = zc_diag_create();
    zc_io_info in = shape_of(plan, 2);
    float want[6];
    zc_view y;
    assert_int_equal(in.bytes, 8 * sizeof(float));
    run(plan, s, 2, 1);
    expect_ok(diag, zc_session_output(s, 0, &y, diag));
    memcpy(want, y.data, sizeof want);
    expect_ok(diag, zc_session_prepare(s, &in, 1, NULL, diag));
    expect_fail(diag, zc_session_output(s, 0, &y, diag), ZC_ERR_ARG, "no run has given a result");
    expect_ok(diag, zc_session_run(s, diag));
    expect_ok(diag, zc_session_output(s, 0, &y, diag));
    assert_memory_equal(y.data, want, sizeof want);
    /* Refused shapes change nothing. */
    in.dims[0] = 3;
    expect_fail(diag, zc_session_prepare(s, &in, 1, NULL, diag), ZC_ERR_INPUT,
                "x: wrong size of dimension 0 (got 3, need 2)");
    in.dims[0] = -1;
    expect_fail(diag, zc_session_prepare(s, &in, 1, NULL, diag), ZC_ERR_INPUT, "has no size");
    expect_fail(diag, zc_session_prepare(s, &in, 2, NULL, diag), ZC_ERR_ARG,
                "inputs: wrong number of inputs (got 2, need 1)");
    expect_fail(diag, zc_session_prepare(s, NULL, 1, NULL, diag), ZC_ERR_ARG, "number of inputs");
    assert_int_equal(zc_session_prepare(NULL, &in, 1, NULL, NULL), ZC_ERR_ARG);
    expect_ok(diag, zc_session_run(s, diag));
    expect_ok(diag, zc_session_output(s, 0, &y, diag));
    assert_memory_equal(y.data, want, sizeof want);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);

    /* A session that no input was set on still has none. */
    s = session_of(plan, 1, false);
    in = shape_of(plan, 2);
    expect_ok(diag, zc_session_prepare(s, &in, 1, NULL, diag));
    expect_fail(diag, zc_session_run(s, diag), ZC_ERR_INPUT, "x: has no value");
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_plan_destroy(&plan);
    zc_diag_destroy(&diag);
}

/* Zeros are no shape that 8 elements can have. */
static void test_prepare_where_zeros_are_refused(void **state)
{
    (void)state;
    zc_plan *plan = plan_of("ir 8\nopset 17\nin x 1 2,4\nin to 7 1\nout y 1 *\n"
                            "node Neg x n\nnode Reshape n,to y\n");
    zc_session *s = session_of(plan, 1, false);
    zc_diag *diag = zc_diag_create();
    zc_io_info in[2];
    const int64_t eight = 8;
    zc_view to = {.elem = 7, .rank = 1, .dims = {1}, .data = &eight, .bytes = sizeof eight};
    float x[8] = {1, 2};
    zc_view xv = {.elem = 1, .rank = 2, .dims = {2, 4}, .data = x, .bytes = sizeof x};
    for (size_t i = 0; i < 2; i++) assert_int_equal(zc_plan_input(plan, i, &in[i], NULL), ZC_OK);
    assert_int_equal(zc_session_prepare(s, in, 2, NULL, diag), ZC_OK);
    assert_int_equal(zc_diag_count(diag), 1);
    assert_int_equal(zc_diag_status(diag, 0), ZC_OK); /* a warning */
    assert_non_null(strstr(zc_diag_text(diag, 0), "warmed up in part, since zeros are no inputs"));
    zc_diag_clear(diag);
    expect_ok(diag, zc_session_set_input(s, 0, &xv, false, diag));
    expect_ok(diag, zc_session_set_input(s, 1, &to, false, diag));
    expect_ok(diag, zc_session_run(s, diag));
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_plan_destroy(&plan);
    zc_diag_destroy(&diag);
}

/* Each allocation of it fails in turn: a status, and the session goes on. */
static void test_prepare_without_memory(void **state)
{
    (void)state;
    zc_plan *plan = plan_of(alternating_text);
    zc_diag *diag = zc_diag_create();
    int refused = 0;
    bool failed = true;
    for (long n = 1; failed; n++) {
        zc_session *s = session_of(plan, 1, false);
        zc_io_info in = shape_of(plan, 7);
        fail_alloc_at(n);
        zc_status status = zc_session_prepare(s, &in, 1, NULL, diag);
        failed = fail_alloc_happened();
        fail_alloc_at(0);
        assert_true(status == ZC_OK || (failed && status == ZC_ERR_NOMEM));
        refused += status != ZC_OK;
        zc_diag_clear(diag);
        run(plan, s, 7, 1);
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
    }
    assert_true(refused > 5);
    zc_diag_destroy(&diag);
    zc_plan_destroy(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: later, this process has oneDNN's code. */
        cmocka_unit_test(test_first_product_with_little_room),
        cmocka_unit_test(test_static_runs_allocate_nothing),
        cmocka_unit_test(test_alternating_runs_allocate_nothing),
        cmocka_unit_test(test_dynamic_runs_allocate_nothing),
        cmocka_unit_test(test_more_shapes_than_are_kept),
        cmocka_unit_test(test_the_oldest_shape_goes),
        cmocka_unit_test(test_thousands_of_shapes),
        cmocka_unit_test(test_weights_are_packed_once),
        cmocka_unit_test(test_originals_come_back),
        cmocka_unit_test(test_shared_originals_stay),
        cmocka_unit_test(test_alternating_convolutions),
        cmocka_unit_test(test_convolution_without_memory),
        cmocka_unit_test(test_plan_memory),
        cmocka_unit_test(test_mapped_weights_are_shared),
        cmocka_unit_test(test_mapped_convolution),
        cmocka_unit_test(test_prepared_runs_allocate_nothing),
        cmocka_unit_test(test_prepare_tells_sizes),
        cmocka_unit_test(test_prepare_keeps_inputs),
        cmocka_unit_test(test_prepare_where_zeros_are_refused),
        cmocka_unit_test(test_prepare_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
