/* The public interface called wrongly: every call says so and nothing else happens. */
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/expect.h"
#include "support/forks.h"
#include "support/wide_model.h"

typedef struct fixture {
    zc_plan *plan; /* y[n] = x[n] + 1, k times */
    zc_session *session;
    zc_diag *diag;
    void *bytes;
    size_t len;
} fixture;

static const char loop_text[] = "opset 17\nin x 1 n\nin k 7 -\nout y 1 *\ninit one 1 1 1\n"
                                "graph B\nin i 7 -\nin g 9 -\nin v 1 n\nout g2 9 -\nout v2 1 *\n"
                                "node Identity g g2\nnode Add v,one v2\nend\n"
                                "node Loop k,_,x y body:g=B name=repeat\n";

static void compile_text(const char *text, void **bytes, size_t *len, zc_diag *diag)
{
    zc_buf model = {0};
    onnx_text(text, &model);
    expect_ok(diag, zc_compile_bytes(model.data, model.len, NULL, bytes, len, diag));
    zc_buf_fini(&model);
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->diag = zc_diag_create();
    compile_text(loop_text, &f->bytes, &f->len, f->diag);
    expect_ok(f->diag, zc_plan_load_bytes(f->bytes, f->len, &f->plan, f->diag));
    expect_ok(f->diag,
              zc_session_create(f->plan, ZC_SESSION_PARAMS(.threads = 2), &f->session, f->diag));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    assert_int_equal(zc_session_destroy(&f->session), ZC_OK);
    zc_plan_destroy(&f->plan);
    zc_diag_destroy(&f->diag);
    zc_free(f->bytes);
    free(f);
    return 0;
}

static void set_inputs(zc_session *s, float *x, int64_t n, int64_t k, zc_diag *diag)
{
    zc_view v = {.elem = 1, .rank = 1, .dims = {n}, .data = x, .bytes = (size_t)n * sizeof(float)};
    expect_ok(diag, zc_session_set_input(s, 0, &v, false, diag));
    v = (zc_view){.elem = 7, .data = &k, .bytes = sizeof k};
    expect_ok(diag, zc_session_set_input(s, 1, &v, false, diag));
}

static void check_output(const zc_session *s, const float *x, int64_t n, int64_t k, zc_diag *diag)
{
    zc_view y;
    expect_ok(diag, zc_session_output(s, 0, &y, diag));
    assert_int_equal(y.rank, 1);
    assert_int_equal(y.dims[0], n);
    for (int64_t i = 0; i < n; i++)
        assert_float_equal(((const float *)y.data)[i], x[i] + (float)k, 0);
}

static void run_and_check(fixture *f)
{
    float x[3] = {1, -2, 0.5f};
    set_inputs(f->session, x, 3, 5, f->diag);
    expect_ok(f->diag, zc_session_run(f->session, f->diag));
    check_output(f->session, x, 3, 5, f->diag);
}

/* ---- A1: NULL and sizes, everywhere ---- */

static void test_null_in_plan_calls(void **state)
{
    fixture *f = *state;
    zc_diag *d = f->diag;
    zc_plan *plan = f->plan;
    zc_plan_info info;
    zc_io_info io;
    expect_fail(d, zc_plan_load_bytes(NULL, 0, &plan, d), ZC_ERR_ARG, "data: is NULL");
    assert_null(plan);
    expect_fail(d, zc_plan_load_bytes(f->bytes, f->len, NULL, d), ZC_ERR_ARG, "out: is NULL");
    expect_fail(d, zc_plan_load_bytes(f->bytes, 0, &plan, d), ZC_ERR_FORMAT, "the file is empty");
    expect_fail(d, zc_plan_load_bytes(f->bytes, SIZE_MAX, &plan, d), ZC_ERR_NOMEM, "plan");
    expect_fail(d, zc_plan_load_file(NULL, &plan, d), ZC_ERR_ARG, "path: is NULL");
    expect_fail(d, zc_plan_load_file("x", NULL, d), ZC_ERR_ARG, "out: is NULL");
    expect_fail(d, zc_plan_load_file("", &plan, d), ZC_ERR_IO, "No such file");
    assert_int_equal(zc_plan_info_get(NULL, &info), ZC_ERR_ARG);
    assert_int_equal(zc_plan_info_get(f->plan, NULL), ZC_ERR_ARG);
    expect_fail(d, zc_plan_input(NULL, 0, &io, d), ZC_ERR_ARG, "plan: is NULL");
    expect_fail(d, zc_plan_input(f->plan, 0, NULL, d), ZC_ERR_ARG, "out: is NULL");
    expect_fail(d, zc_plan_input(f->plan, SIZE_MAX, &io, d), ZC_ERR_ARG, "i: no such input");
    expect_fail(d, zc_plan_output(NULL, 0, &io, d), ZC_ERR_ARG, "plan: is NULL");
    expect_fail(d, zc_plan_output(f->plan, 0, NULL, d), ZC_ERR_ARG, "out: is NULL");
    expect_fail(d, zc_plan_output(f->plan, SIZE_MAX, &io, d), ZC_ERR_ARG, "i: no such output");
    zc_plan_destroy(NULL);
    plan = NULL;
    zc_plan_destroy(&plan);
}

static void test_null_in_session_calls(void **state)
{
    fixture *f = *state;
    zc_diag *d = f->diag;
    zc_session *s = f->session, *none;
    zc_view v;
    float out[16] = {0};
    expect_fail(d, zc_session_create(NULL, NULL, &none, d), ZC_ERR_ARG, "plan: is NULL");
    assert_null(none);
    expect_fail(d, zc_session_create(f->plan, NULL, NULL, d), ZC_ERR_ARG, "out: is NULL");
    expect_fail(d, zc_session_set_input(NULL, 0, &v, false, d), ZC_ERR_ARG, "session: is NULL");
    expect_fail(d, zc_session_set_input(s, 0, NULL, false, d), ZC_ERR_ARG, "x: value is NULL");
    expect_fail(d, zc_session_set_input(s, SIZE_MAX, &v, false, d), ZC_ERR_ARG,
                "i: no such input (got 18446744073709551615, need < 2)");
    expect_fail(d, zc_session_bind_output(NULL, 0, out, 64, d), ZC_ERR_ARG, "session: is NULL");
    expect_fail(d, zc_session_bind_output(s, 9, NULL, 0, d), ZC_ERR_ARG,
                "i: no such output (got 9, need < 1)");
    expect_fail(d, zc_session_run(NULL, d), ZC_ERR_ARG, "session: is NULL");
    expect_fail(d, zc_session_run(s, d), ZC_ERR_INPUT, "x: has no value");
    expect_fail(d, zc_session_output(NULL, 0, &v, d), ZC_ERR_ARG, "session: is NULL");
    expect_fail(d, zc_session_output(s, 0, NULL, d), ZC_ERR_ARG, "out: is NULL");
    expect_fail(d, zc_session_output(s, 7, &v, d), ZC_ERR_ARG,
                "i: no such output (got 7, need < 1)");
    expect_fail(d, zc_session_output(s, 0, &v, d), ZC_ERR_ARG, "y: no run has given a result");
    assert_int_equal(zc_session_memory(NULL), 0);
    zc_session_cancel(NULL);
    assert_int_equal(zc_session_destroy(NULL), ZC_OK);
    none = NULL;
    assert_int_equal(zc_session_destroy(&none), ZC_OK);
    run_and_check(f);
}

static void test_null_in_compile_calls(void **state)
{
    fixture *f = *state;
    zc_diag *d = f->diag;
    void *out;
    size_t len;
    zc_buf model = {0};
    onnx_text(loop_text, &model);
    expect_fail(d, zc_compile_file(NULL, "p", NULL, d), ZC_ERR_ARG, "model_path: is NULL");
    expect_fail(d, zc_compile_file("m", NULL, NULL, d), ZC_ERR_ARG, "plan_path: is NULL");
    expect_fail(d, zc_compile_bytes(NULL, 4, NULL, &out, &len, d), ZC_ERR_ARG, "model: is NULL");
    expect_fail(d, zc_compile_bytes("m", 1, NULL, NULL, &len, d), ZC_ERR_ARG, "out: is NULL");
    expect_fail(d, zc_compile_bytes("m", 1, NULL, &out, NULL, d), ZC_ERR_ARG, "out_len: is NULL");
    expect_fail(d, zc_compile_bytes("", 0, NULL, &out, &len, d), ZC_ERR_FORMAT, "empty");
    const zc_fixed_dim unnamed = {.value = 3};
    const zc_fixed_shape nameless = {.rank = 1, .dims = {3}};
    const char *const no_pass = NULL;
    const struct {
        const zc_compile_params *params;
        const char *text;
    } cases[] = {
        {ZC_COMPILE_PARAMS(.dim_count = 1), "dims: is NULL"},
        {ZC_COMPILE_PARAMS(.dims = &unnamed, .dim_count = 1), "dims: a name is NULL"},
        {ZC_COMPILE_PARAMS(.shape_count = 1), "shapes: is NULL"},
        {ZC_COMPILE_PARAMS(.shapes = &nameless, .shape_count = 1), "shapes: a name is NULL"},
        {ZC_COMPILE_PARAMS(.skip_pass_count = 1), "skip_passes: is NULL"},
        {ZC_COMPILE_PARAMS(.skip_passes = &no_pass, .skip_pass_count = 1),
         "skip_passes: a name is NULL"},
    };
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++)
        expect_fail(d, zc_compile_bytes(model.data, model.len, cases[i].params, &out, &len, d),
                    ZC_ERR_ARG, cases[i].text);
    zc_buf_fini(&model);
    zc_free(NULL);
}

static void test_null_in_diag_calls(void **state)
{
    (void)state;
    zc_diag *none = NULL;
    zc_diag_destroy(NULL);
    zc_diag_destroy(&none);
    zc_diag_clear(NULL);
    assert_int_equal(zc_diag_count(NULL), 0);
    assert_int_equal(zc_diag_dropped(NULL), 0);
    assert_int_equal(zc_diag_status(NULL, 0), ZC_OK);
    assert_string_equal(zc_diag_text(NULL, 0), "");
    for (int i = -2; i < 100; i++) assert_true(*zc_status_name((zc_status)i) != '\0');
    static const int elems[] = {-1, 0, 8, 27, 999, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < ZC_COUNTOF(elems); i++)
        assert_string_equal(zc_elem_name(elems[i]), "none");
    assert_int_equal(zc_elem_parse(NULL), 0);
    assert_int_equal(zc_elem_parse("f33"), 0);
}

/* ---- A7: sizes of structs ---- */

static zc_status try_params(fixture *f, const zc_session_params *sp, const zc_compile_params *cp)
{
    zc_session *s = NULL;
    void *out = NULL;
    size_t len;
    zc_buf model = {0};
    zc_status status = ZC_OK;
    onnx_text(loop_text, &model);
    if (sp) status = zc_session_create(f->plan, sp, &s, f->diag);
    if (cp) status = zc_compile_bytes(model.data, model.len, cp, &out, &len, f->diag);
    assert_int_equal(s || out, status == ZC_OK);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_free(out);
    zc_buf_fini(&model);
    return status;
}

/* Sizes that no version's struct has, in the first word of the parameters. */
static void test_wrong_sizes(void **state)
{
    fixture *f = *state;
    const size_t sizes[] = {0, 1, 4, 8, 32, sizeof(zc_session_params) + 1, 1 << 20, SIZE_MAX};
    for (size_t i = 0; i < ZC_COUNTOF(sizes); i++) {
        zc_session_params sp = {.size = sizes[i]};
        zc_compile_params cp = {.size = sizes[i]};
        zc_plan_info info = {.size = sizes[i]};
        zc_io_info io = {.size = sizes[i]};
        zc_step_info step = {.size = sizes[i]};
        zc_device_info device = {.size = sizes[i]};
        static const char text[] = "size is wrong (got ";
        expect_fail(f->diag, try_params(f, &sp, NULL), ZC_ERR_ARG, text);
        expect_fail(f->diag, try_params(f, NULL, &cp), ZC_ERR_ARG, text);
        assert_int_equal(zc_plan_info_fill(f->plan, &info), ZC_ERR_ARG);
        expect_fail(f->diag, zc_plan_input_fill(f->plan, 0, &io, f->diag), ZC_ERR_ARG, text);
        expect_fail(f->diag, zc_plan_output_fill(f->plan, 0, &io, f->diag), ZC_ERR_ARG, text);
        expect_fail(f->diag, zc_session_step_fill(f->session, 0, &step, f->diag), ZC_ERR_ARG, text);
        assert_int_equal(zc_session_device_fill(f->session, &device), ZC_ERR_ARG);
    }
}

/* The structs of the first version, byte for byte behind what it did not have. */
static void test_old_callers(void **state)
{
    fixture *f = *state;
    zc_session_params sp;
    zc_compile_params cp;
    memset(&sp, 0xEE, sizeof sp);
    memset(&cp, 0xEE, sizeof cp);
    const size_t sp_size = offsetof(zc_session_params, timeout_ms) + sizeof sp.timeout_ms;
    const size_t cp_size = offsetof(zc_compile_params, progress_user) + sizeof(void *);
    memset(&sp, 0, sp_size);
    memset(&cp, 0, cp_size);
    sp.size = sp_size;
    cp.size = cp_size;
    expect_ok(f->diag, try_params(f, &sp, NULL));
    expect_ok(f->diag, try_params(f, NULL, &cp));
    struct {
        zc_device_info info;
        char guard[16];
    } at;
    memset(&at, 0xEE, sizeof at);
    at.info.size = (offsetof(zc_device_info, lost) + 8) & ~(size_t)7;
    assert_int_equal(zc_session_device_fill(f->session, &at.info), ZC_OK);
    assert_string_equal(at.info.name, "cpu");
    assert_false(at.info.lost);
    for (size_t i = at.info.size; i < sizeof at; i++)
        assert_int_equal(((unsigned char *)&at)[i], 0xEE);
}

/* What this library does not know must be 0 where the caller tells, and reads 0 where it asks. */
static void test_new_callers(void **state)
{
    fixture *f = *state;
    struct {
        zc_session_params p;
        char more[64];
    } sp = {.p = {.size = sizeof sp, .threads = 1}};
    struct {
        zc_compile_params p;
        char more[64];
    } cp = {.p = {.size = sizeof cp}};
    struct {
        zc_io_info p;
        char more[16];
    } io;
    expect_ok(f->diag, try_params(f, &sp.p, NULL));
    expect_ok(f->diag, try_params(f, NULL, &cp.p));
    sp.more[63] = cp.more[0] = 1;
    expect_fail(f->diag, try_params(f, &sp.p, NULL), ZC_ERR_UNSUPPORTED,
                "params: a field is set that zc " ZC_VERSION " does not know (at byte ");
    expect_fail(f->diag, try_params(f, NULL, &cp.p), ZC_ERR_UNSUPPORTED,
                "params: a field is set that zc " ZC_VERSION " does not know (at byte ");
    memset(&io, 0xEE, sizeof io);
    io.p.size = sizeof io;
    expect_ok(f->diag, zc_plan_input_fill(f->plan, 0, &io.p, f->diag));
    assert_int_equal(io.p.size, sizeof io);
    assert_string_equal(io.p.name, "x");
    for (size_t i = 0; i < sizeof io.more; i++) assert_int_equal(io.more[i], 0);
}

/* Inputs of the caller's size, one after the other. */
static void test_arrays_of_new_callers(void **state)
{
    fixture *f = *state;
    struct {
        zc_io_info p;
        char more[24];
    } in[2];
    zc_io_info own[2];
    zc_memory_info want, got = {.size = sizeof got};
    for (size_t i = 0; i < 2; i++) {
        in[i].p.size = sizeof in[i];
        expect_ok(f->diag, zc_plan_input_fill(f->plan, i, &in[i].p, f->diag));
        expect_ok(f->diag, zc_plan_input(f->plan, i, &own[i], f->diag));
    }
    in[0].p.dims[0] = own[0].dims[0] = 100;
    expect_ok(f->diag, zc_plan_memory(f->plan, own, 2, &want, f->diag));
    expect_ok(f->diag, zc_plan_memory_fill(f->plan, &in[0].p, 2, &got, f->diag));
    assert_memory_equal(&got, &want, sizeof want);
    own[1].size += 8;
    expect_fail(f->diag, zc_plan_memory(f->plan, own, 2, &got, f->diag), ZC_ERR_ARG,
                "inputs: sizes differ (got ");
    own[0].size = 3;
    expect_fail(f->diag, zc_plan_memory(f->plan, own, 2, &got, f->diag), ZC_ERR_ARG,
                "inputs: size is wrong (got 3, need at least ");
}

static void test_versions(void **state)
{
    (void)state;
    assert_string_equal(zc_version(), ZC_VERSION);
    assert_int_equal(zc_version_number(), ZC_VERSION_NUMBER);
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", ZC_VERSION_MAJOR, ZC_VERSION_MINOR, ZC_VERSION_PATCH);
    assert_string_equal(zc_version(), text);
}

static void test_numbers_of_threads(void **state)
{
    fixture *f = *state;
    static const int threads[] = {-1, -3, 1025, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < ZC_COUNTOF(threads); i++) {
        zc_session_params sp = {.size = sizeof sp, .threads = threads[i]};
        zc_compile_params cp = {.size = sizeof cp, .threads = threads[i]};
        static const char text[] = "threads: out of range (got ";
        expect_fail(f->diag, try_params(f, &sp, NULL), ZC_ERR_ARG, text);
        expect_fail(f->diag, try_params(f, NULL, &cp), ZC_ERR_ARG, text);
    }
}

/* ---- files in messages ---- */

static void write_bytes(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static void expect_text(fixture *f, zc_status status, const char *text)
{
    assert_int_not_equal(status, ZC_OK);
    assert_string_equal(zc_diag_text(f->diag, 0), text);
    zc_diag_clear(f->diag);
}

/* A message names the file that it is about, once, and no file that an earlier call was about. */
static void test_files_in_messages(void **state)
{
    fixture *f = *state;
    char dir[] = "/tmp/zc-test-XXXXXX", good[64], bad[64], none[64], model[64], made[64], want[256];
    assert_non_null(mkdtemp(dir));
    snprintf(good, sizeof good, "%s/good", dir);
    snprintf(bad, sizeof bad, "%s/bad", dir);
    snprintf(none, sizeof none, "%s/none", dir);
    snprintf(model, sizeof model, "%s/model", dir);
    snprintf(made, sizeof made, "%s/made", dir);
    zc_buf onnx = {0};
    onnx_text(loop_text, &onnx);
    write_bytes(model, onnx.data, onnx.len);
    zc_buf_fini(&onnx);
    write_bytes(good, f->bytes, f->len);
    write_bytes(bad, "", 0);
    zc_plan *plan, *broken;
    zc_session *s;
    zc_threads *threads;
    void *out;
    size_t len;
    for (int round = 0; round < 2; round++) {
        expect_ok(f->diag, zc_plan_load_file(good, &plan, f->diag));
        expect_text(f, zc_plan_load_bytes("", 0, &broken, f->diag),
                    "not a zc plan (the file is empty)");
        snprintf(want, sizeof want, "%s: not a zc plan (the file is empty)", bad);
        expect_text(f, zc_plan_load_file(bad, &broken, f->diag), want);
        snprintf(want, sizeof want, "%s: cannot open (No such file or directory)", none);
        expect_text(f, zc_plan_load_file(none, &broken, f->diag), want);
        expect_text(f, zc_compile_file(none, bad, NULL, f->diag), want);
        expect_ok(f->diag, zc_compile_file(model, made, NULL, f->diag));
        expect_text(f, zc_threads_create(ZC_THREADS_PARAMS(.threads = -1), &threads, f->diag),
                    "threads: out of range (got -1, need 0 to 1024)");
        snprintf(want, sizeof want, "%s: the output is the model itself", model);
        expect_text(f, zc_compile_file(model, model, NULL, f->diag), want);
        expect_text(f,
                    zc_compile_bytes("x", 1, ZC_COMPILE_PARAMS(.threads = -1), &out, &len, f->diag),
                    "threads: out of range (got -1, need 0 to 1024)");
        expect_ok(f->diag, zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 1), &s, f->diag));
        expect_text(f, zc_session_run(f->session, f->diag), "x: has no value");
        snprintf(want, sizeof want, "%s: x: has no value", good);
        expect_text(f, zc_session_run(s, f->diag), want);
        expect_text(f, zc_session_run(f->session, f->diag), "x: has no value");
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
        zc_plan_destroy(&plan);
    }
    assert_int_equal(unlink(good) | unlink(bad) | unlink(model) | unlink(made) | rmdir(dir), 0);
}

/* ---- where it runs ---- */

static void test_auto_says_why_not_the_gpu(void **state)
{
    fixture *f = *state;
    zc_session *s;
    zc_device_info info;
    expect_ok(f->diag,
              zc_session_create(f->plan, ZC_SESSION_PARAMS(.threads = 1, .device = ZC_DEVICE_AUTO),
                                &s, f->diag));
    assert_int_equal(zc_session_device(s, &info), ZC_OK);
    assert_int_equal(info.kind, ZC_DEVICE_CPU);
    assert_string_equal(
        info.fallback,
        "the plan was compiled for the CPU alone (compile with --target sm_90 or the like)");
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    assert_int_equal(zc_session_device(f->session, &info), ZC_OK);
    assert_null(info.fallback);
}

/* ---- A3: wrong types and sizes ---- */

static void test_wrong_views(void **state)
{
    fixture *f = *state;
    float x[4] = {0};
    const struct {
        zc_view v;
        zc_status status;
        const char *text;
    } cases[] = {
        {{.elem = 999, .rank = 1, .dims = {4}, .data = x, .bytes = 16},
         ZC_ERR_INPUT,
         "x: wrong element type (got none, need f32)"},
        {{.elem = -1, .rank = 1, .dims = {4}, .data = x, .bytes = 16},
         ZC_ERR_INPUT,
         "x: wrong element type (got none, need f32)"},
        {{.elem = 1, .rank = -1, .dims = {4}, .data = x, .bytes = 16},
         ZC_ERR_INPUT,
         "x: wrong number of dimensions (got -1, need 1)"},
        {{.elem = 1, .rank = INT32_MAX, .dims = {4}, .data = x, .bytes = 16},
         ZC_ERR_INPUT,
         "x: wrong number of dimensions (got 2147483647, need 1)"},
        {{.elem = 1, .rank = 1, .dims = {INT64_MIN}, .data = x, .bytes = 16},
         ZC_ERR_INPUT,
         "x: dimension 0 is negative"},
        {{.elem = 1, .rank = 1, .dims = {INT64_MAX}, .data = x, .bytes = 16},
         ZC_ERR_INPUT,
         "x: too large"},
        {{.elem = 1, .rank = 1, .dims = {4}, .data = x, .bytes = 15},
         ZC_ERR_INPUT,
         "x: wrong number of bytes (got 15, need 16)"},
        {{.elem = 1, .rank = 1, .dims = {4}, .data = x, .bytes = SIZE_MAX},
         ZC_ERR_INPUT,
         "x: wrong number of bytes (got 18446744073709551615, need 16)"},
        {{.elem = 1, .rank = 1, .dims = {4}, .data = NULL, .bytes = 16},
         ZC_ERR_ARG,
         "x: data is NULL"},
    };
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++)
        expect_fail(f->diag, zc_session_set_input(f->session, 0, &cases[i].v, false, f->diag),
                    cases[i].status, cases[i].text);
    zc_view odd = {.elem = 1, .rank = 1, .dims = {1}, .data = (char *)x + 1, .bytes = 4};
    expect_fail(f->diag, zc_session_set_input(f->session, 0, &odd, true, f->diag), ZC_ERR_ARG,
                "x: borrowed data is not aligned to its element size");
    expect_ok(f->diag, zc_session_set_input(f->session, 0, &odd, false, f->diag));
    run_and_check(f);
}

/* Nothing is written to bound memory that is too small for a result of unforeseen size. */
static void test_bound_output_too_small(void **state)
{
    fixture *f = *state;
    float x[32] = {0}, *y = aligned_alloc(64, 128);
    assert_non_null(y);
    for (int i = 0; i < 32; i++) y[i] = 77;
    expect_ok(f->diag, zc_session_bind_output(f->session, 0, y, 8, f->diag));
    set_inputs(f->session, x, 32, 1, f->diag);
    expect_fail(f->diag, zc_session_run(f->session, f->diag), ZC_ERR_ARG,
                "y: bound memory is too small (got 8 bytes, need 128)");
    for (int i = 0; i < 32; i++) assert_float_equal(y[i], 77, 0);
    expect_fail(f->diag, zc_session_bind_output(f->session, 0, (char *)y + 1, 64, f->diag),
                ZC_ERR_ARG, "y: bound memory is not aligned to 64 bytes");
    expect_ok(f->diag, zc_session_bind_output(f->session, 0, y, 128, f->diag));
    expect_ok(f->diag, zc_session_run(f->session, f->diag));
    for (int i = 0; i < 32; i++) assert_float_equal(y[i], 1, 0);
    expect_ok(f->diag, zc_session_bind_output(f->session, 0, NULL, 0, f->diag));
    run_and_check(f);
    free(y);
}

/* ---- A6: who owns an input ---- */

static void test_inputs_are_copied(void **state)
{
    fixture *f = *state;
    float *x = malloc(3 * sizeof *x), same[3] = {1, 2, 3};
    assert_non_null(x);
    memcpy(x, same, sizeof same);
    set_inputs(f->session, x, 3, 2, f->diag);
    memset(x, 0xFF, 3 * sizeof *x);
    free(x);
    expect_ok(f->diag, zc_session_run(f->session, f->diag));
    check_output(f->session, same, 3, 2, f->diag);
    expect_ok(f->diag, zc_session_run(f->session, f->diag));
    check_output(f->session, same, 3, 2, f->diag);
    zc_view v = {.elem = 1, .rank = 1, .dims = {3}, .data = same, .bytes = sizeof same};
    expect_ok(f->diag, zc_session_set_input(f->session, 0, &v, true, f->diag));
    same[1] = 40;
    expect_ok(f->diag, zc_session_run(f->session, f->diag));
    check_output(f->session, same, 3, 2, f->diag);
    assert_float_equal(same[1], 40, 0);
}

/* ---- A2, A4: two threads, one session ---- */

typedef struct runner {
    zc_session *session;
    zc_diag *diag;
    zc_status status;
    atomic_bool ended;
} runner;

static void *run_once(void *arg)
{
    runner *r = arg;
    /* The other thread's question whether the run is under way makes the session busy, too. */
    do {
        zc_diag_clear(r->diag);
        r->status = zc_session_run(r->session, r->diag);
    } while (r->status == ZC_ERR_BUSY);
    atomic_store(&r->ended, true);
    return NULL;
}

static void doze(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

/* Starts a run that only a cancel ends, and returns when it is under way. */
static void start_endless(fixture *f, runner *r, pthread_t *thread)
{
    static float x[3];
    set_inputs(f->session, x, 3, INT64_MAX, f->diag);
    *r = (runner){.session = f->session, .diag = zc_diag_create()};
    assert_int_equal(pthread_create(thread, NULL, run_once, r), 0);
    while (zc_session_bind_output(f->session, 0, NULL, 0, NULL) != ZC_ERR_BUSY) doze(100);
}

static void stop_endless(runner *r, pthread_t thread)
{
    zc_session_cancel(r->session);
    pthread_join(thread, NULL);
    expect_fail(r->diag, r->status, ZC_ERR_CANCELLED, "cancelled");
    zc_diag_destroy(&r->diag);
}

static void test_calls_while_running_are_busy(void **state)
{
    static const char busy[] = "session: is in use by another thread";
    fixture *f = *state;
    zc_diag *d = f->diag;
    zc_session *s = f->session;
    zc_view v = {0};
    runner r;
    pthread_t thread;
    start_endless(f, &r, &thread);
    expect_fail(d, zc_session_run(s, d), ZC_ERR_BUSY, busy);
    expect_fail(d, zc_session_set_input(s, 0, &v, false, d), ZC_ERR_BUSY, busy);
    expect_fail(d, zc_session_bind_output(s, 0, NULL, 0, d), ZC_ERR_BUSY, busy);
    expect_fail(d, zc_session_output(s, 0, &v, d), ZC_ERR_BUSY, busy);
    zc_step_info step;
    zc_device_info device;
    expect_fail(d, zc_session_step(s, 0, &step, d), ZC_ERR_BUSY, busy);
    assert_int_equal(zc_session_device(s, &device), ZC_ERR_BUSY);
    assert_int_equal(zc_session_destroy(&s), ZC_ERR_BUSY);
    assert_ptr_equal(s, f->session);
    assert_false(atomic_load(&r.ended));
    stop_endless(&r, thread);
    run_and_check(f);
}

static void test_plan_destroyed_while_running(void **state)
{
    fixture *f = *state;
    runner r;
    pthread_t thread;
    start_endless(f, &r, &thread);
    zc_plan_destroy(&f->plan);
    assert_null(f->plan);
    doze(1000);
    assert_false(atomic_load(&r.ended));
    stop_endless(&r, thread);
    run_and_check(f);
}

/* A cancelled run ends soon, says where, and the session works as before. */
static void test_cancel_from_another_thread(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 20; i++) {
        runner r;
        pthread_t thread;
        start_endless(f, &r, &thread);
        doze(i * 50);
        struct timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        stop_endless(&r, thread);
        clock_gettime(CLOCK_MONOTONIC, &after);
        assert_true(after.tv_sec - before.tv_sec < 2);
        run_and_check(f);
    }
}

/* Nobody runs: there is nothing to cancel, now or later. */
static void test_cancel_without_a_run(void **state)
{
    fixture *f = *state;
    zc_session_cancel(f->session);
    run_and_check(f);
    zc_session_cancel(f->session);
    run_and_check(f);
}

typedef struct racer {
    zc_session *session;
    long ok, busy, other;
} racer;

static void *race(void *arg)
{
    racer *r = arg;
    for (int i = 0; i < 3000; i++) {
        zc_status status = zc_session_run(r->session, NULL);
        r->ok += status == ZC_OK;
        r->busy += status == ZC_ERR_BUSY;
        r->other += status != ZC_OK && status != ZC_ERR_BUSY;
    }
    return NULL;
}

static void test_two_threads_race(void **state)
{
    fixture *f = *state;
    float x[3] = {1, 2, 3};
    set_inputs(f->session, x, 3, 4, f->diag);
    racer racers[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        racers[i] = (racer){.session = f->session};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    long ok = 0;
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(racers[i].other, 0);
        assert_int_equal(racers[i].ok + racers[i].busy, 3000);
        ok += racers[i].ok;
    }
    assert_true(ok > 0);
    check_output(f->session, x, 3, 4, f->diag);
    run_and_check(f);
}

/* Asks for the memory while others run. */
typedef struct monitor {
    zc_session *session;
    uint64_t least, most;
    atomic_bool stop;
} monitor;

static void *watch_memory(void *arg)
{
    monitor *m = arg;
    m->least = UINT64_MAX;
    do {
        uint64_t now = zc_session_memory(m->session);
        if (now < m->least) m->least = now;
        if (now > m->most) m->most = now;
    } while (!atomic_load(&m->stop));
    return NULL;
}

static void test_memory_from_a_monitor(void **state)
{
    fixture *f = *state;
    static float x[4096];
    monitor m = {.session = f->session};
    pthread_t thread;
    uint64_t before = zc_session_memory(f->session);
    assert_int_equal(pthread_create(&thread, NULL, watch_memory, &m), 0);
    for (int64_t n = 1; n <= 4096; n *= 2) {
        set_inputs(f->session, x, n, 3, f->diag);
        expect_ok(f->diag, zc_session_run(f->session, f->diag));
        check_output(f->session, x, n, 3, f->diag);
    }
    uint64_t after = zc_session_memory(f->session);
    atomic_store(&m.stop, true);
    pthread_join(thread, NULL);
    assert_true(after > before);
    assert_in_range(m.least, before, after);
    assert_in_range(m.most, before, after);
}

/* ---- A9, A12: processes ---- */

static int child_code(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status)) fail_msg("the child died of signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* Calls of the forked child, which has no worker threads; 0 when all say so. */
static int calls_after_fork(zc_session *s)
{
    zc_view v = {0};
    alarm(10);
    if (zc_session_run(s, NULL) != ZC_ERR_FORKED) return 1;
    if (zc_session_set_input(s, 0, &v, false, NULL) != ZC_ERR_FORKED) return 2;
    if (zc_session_bind_output(s, 0, NULL, 0, NULL) != ZC_ERR_FORKED) return 3;
    if (zc_session_output(s, 0, &v, NULL) != ZC_ERR_FORKED) return 4;
    zc_session *mine = s;
    if (zc_session_destroy(&mine) != ZC_ERR_FORKED || mine != s) return 5;
    return 0;
}

static void test_after_fork(void **state)
{
    fixture *f = *state;
    run_and_check(f);
    pid_t child = fork();
    if (child == 0) _exit(calls_after_fork(f->session));
    assert_int_equal(child_code(child), 0);
    run_and_check(f);
}

/* The child may load and run plans of its own. */
static int new_session_after_fork(fixture *f)
{
    zc_session *s = NULL;
    float x[2] = {1, 2};
    alarm(10);
    if (zc_session_create(f->plan, ZC_SESSION_PARAMS(.threads = 2), &s, NULL) != ZC_OK) return 1;
    set_inputs(s, x, 2, 3, NULL);
    if (zc_session_run(s, NULL) != ZC_OK) return 2;
    check_output(s, x, 2, 3, NULL);
    return zc_session_destroy(&s) == ZC_OK ? 0 : 3;
}

static void test_new_session_in_a_forked_child(void **state)
{
    fixture *f = *state;
    need_forks();
    pid_t child = fork();
    if (child == 0) _exit(new_session_after_fork(f));
    assert_int_equal(child_code(child), 0);
}

/* ---- A10: callbacks ---- */

typedef struct watcher {
    int calls, stop_at;
    zc_status inner;
} watcher;

static bool watch(void *user, const char *stage, size_t done, size_t total)
{
    watcher *w = user;
    assert_true(*stage && done < total);
    if (w->calls++ == 0) {
        zc_buf model = {0};
        void *out = NULL;
        size_t len;
        onnx_text(loop_text, &model);
        w->inner = zc_compile_bytes(model.data, model.len, NULL, &out, &len, NULL);
        zc_free(out);
        zc_buf_fini(&model);
    }
    return w->calls != w->stop_at;
}

static void test_progress_callback(void **state)
{
    fixture *f = *state;
    zc_buf model = {0};
    onnx_text(loop_text, &model);
    for (int stop = 0; stop < 4; stop++) {
        watcher w = {.stop_at = stop, .inner = ZC_ERR_INTERNAL};
        void *out;
        size_t len;
        zc_status status = zc_compile_bytes(
            model.data, model.len, ZC_COMPILE_PARAMS(.progress = watch, .progress_user = &w), &out,
            &len, f->diag);
        assert_int_equal(w.inner, ZC_OK);
        if (stop) {
            expect_fail(f->diag, status, ZC_ERR_CANCELLED, "cancelled before");
            assert_null(out);
            continue;
        }
        expect_ok(f->diag, status);
        assert_int_equal(w.calls, 3);
        assert_int_equal(len, f->len);
        assert_memory_equal(out, f->bytes, len);
        zc_free(out);
    }
    zc_buf_fini(&model);
}

/* ---- A13: what belongs to the caller ---- */

enum { SIGNALS = 32 };

typedef struct surroundings {
    char locale[256];
    locale_t thread_locale;
    struct sigaction actions[SIGNALS];
    sigset_t blocked;
    int rounding;
    mode_t mask;
    char dir[512];
} surroundings;

static void look(surroundings *s)
{
    memset(s, 0, sizeof *s);
    snprintf(s->locale, sizeof s->locale, "%s", setlocale(LC_ALL, NULL));
    s->thread_locale = uselocale((locale_t)0);
    for (int i = 1; i < SIGNALS; i++) sigaction(i, NULL, &s->actions[i]);
    pthread_sigmask(SIG_BLOCK, NULL, &s->blocked);
    s->rounding = fegetround();
    s->mask = umask(0);
    umask(s->mask);
    assert_non_null(getcwd(s->dir, sizeof s->dir));
}

static void expect_same(const surroundings *a, const surroundings *b)
{
    assert_string_equal(a->locale, b->locale);
    assert_ptr_equal(a->thread_locale, b->thread_locale);
    for (int i = 1; i < SIGNALS; i++) {
        assert_ptr_equal(a->actions[i].sa_handler, b->actions[i].sa_handler);
        assert_int_equal(a->actions[i].sa_flags, b->actions[i].sa_flags);
        assert_int_equal(sigismember(&a->blocked, i), sigismember(&b->blocked, i));
    }
    assert_int_equal(a->rounding, b->rounding);
    assert_int_equal(a->mask, b->mask);
    assert_string_equal(a->dir, b->dir);
}

/* A locale with a decimal comma, when this system has one. */
static bool comma_locale(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8",
                                        "fr_FR.utf8"};
    for (size_t i = 0; i < ZC_COUNTOF(names); i++)
        if (setlocale(LC_ALL, names[i])) return true;
    print_message("no locale with a decimal comma here: checked in the C locale\n");
    return false;
}

static void test_the_callers_surroundings_stay(void **state)
{
    fixture *f = *state;
    surroundings before, after;
    void *plan, *again;
    size_t len, again_len;
    wide_plan(&plan, &len, f->diag);
    char old[256];
    snprintf(old, sizeof old, "%s", setlocale(LC_ALL, NULL));
    (void)comma_locale();
    void (*handler)(int) = signal(SIGUSR2, SIG_IGN);
    look(&before);
    wide_plan(&again, &again_len, f->diag);
    run_and_check(f);
    zc_session *s;
    expect_ok(f->diag, zc_session_create(f->plan, NULL, &s, f->diag));
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    look(&after);
    expect_same(&before, &after);
    setlocale(LC_ALL, old);
    signal(SIGUSR2, handler);
    assert_int_equal(len, again_len);
    assert_memory_equal(plan, again, len);
    zc_free(plan);
    zc_free(again);
}

/* Pointwise work, attention, convolution and rows: kernels with large frames. */
static const char frames_text[] =
    "opset 23\nin x 1 1,8,40,40\nout y 1 *\ninit s 7 4 8,8,3,3\n"
    "node ConstantOfShape s w value:t=1/1/0.01\nnode Sin x i\nnode Exp i e\nnode Mul i,e p\n"
    "node Attention p,p,p a\nnode Conv a,w c pads:is=1,1,1,1\nnode Softmax c y axis:i=3\n";

static zc_status live(const zc_buf *model)
{
    static float x[8 * 40 * 40];
    const zc_view v = {.elem = 1, .rank = 4, .dims = {1, 8, 40, 40}, .data = x, .bytes = sizeof x};
    void *bytes = NULL;
    size_t len;
    zc_plan *plan = NULL;
    zc_session *s = NULL;
    zc_status status = zc_compile_bytes(model->data, model->len, NULL, &bytes, &len, NULL);
    if (status == ZC_OK) status = zc_plan_load_bytes(bytes, len, &plan, NULL);
    if (status == ZC_OK)
        status = zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 1), &s, NULL);
    if (status == ZC_OK) status = zc_session_set_input(s, 0, &v, false, NULL);
    if (status == ZC_OK) status = zc_session_run(s, NULL);
    zc_session_destroy(&s);
    zc_plan_destroy(&plan);
    zc_free(bytes);
    return status;
}

static void *live_in_thread(void *model)
{
    return (void *)(intptr_t)live(model);
}

/* As much stack as zc/rt.h says that a call takes. */
static void test_little_stack(void **state)
{
    zc_buf model = {0};
    pthread_attr_t attr;
    pthread_t thread;
    void *status;
    (void)state;
    onnx_text(frames_text, &model);
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, (size_t)256 << 10), 0);
    assert_int_equal(pthread_create(&thread, &attr, live_in_thread, &model), 0);
    assert_int_equal(pthread_join(thread, &status), 0);
    pthread_attr_destroy(&attr);
    zc_buf_fini(&model);
    assert_int_equal((intptr_t)status, ZC_OK);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_null_in_plan_calls),
        T(test_null_in_session_calls),
        T(test_null_in_compile_calls),
        T(test_null_in_diag_calls),
        T(test_wrong_sizes),
        T(test_old_callers),
        T(test_new_callers),
        T(test_arrays_of_new_callers),
        T(test_versions),
        T(test_numbers_of_threads),
        T(test_files_in_messages),
        T(test_auto_says_why_not_the_gpu),
        T(test_wrong_views),
        T(test_bound_output_too_small),
        T(test_inputs_are_copied),
        T(test_calls_while_running_are_busy),
        T(test_plan_destroyed_while_running),
        T(test_cancel_from_another_thread),
        T(test_cancel_without_a_run),
        T(test_two_threads_race),
        T(test_memory_from_a_monitor),
        T(test_after_fork),
        T(test_new_session_in_a_forked_child),
        T(test_progress_callback),
        T(test_the_callers_surroundings_stay),
        T(test_little_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
