/* usage: test_accuracy MODELS: what types of 8 and 4 bits do to the models that were trained here,
 * on what was held out: rows of bytes, inputs and then the class, in MODEL/held_out.npy. Ranges are
 * those of MODEL/calibration.npy, which was trained on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "io/npy.h"
#include "runtime/alternatives.h"
#include "support/expect.h"
#include "zc/zc.h"

/* Rows of a run; the most by which the accuracy may be off, and all errors at the outputs that it
 * comes from. */
enum { BATCH = 20, SAMPLES_MAX = 8, INPUTS_MAX = 64 };
#define POINTS    0.6
#define MAX_ERROR 10

typedef struct model {
    const char *name;
    zc_elem elem; /* of the input; f32: bytes over 16 */
    int32_t rank;
    int64_t dims[4];
    int inputs, classes;
    size_t right; /* rows, in f32 */
} model;

static const model digits = {.name = "digits",
                             .elem = ZC_ELEM_F32,
                             .rank = 4,
                             .dims = {BATCH, 1, 8, 8},
                             .inputs = 64,
                             .classes = 10,
                             .right = 356},
                   lines = {.name = "lines",
                            .elem = ZC_ELEM_I64,
                            .rank = 2,
                            .dims = {BATCH, 32},
                            .inputs = 32,
                            .classes = 5,
                            .right = 473};

static const char *models;

/* ---- rows ---- */

static void path_of(const model *m, const char *file, char *out, size_t size)
{
    snprintf(out, size, "%s/%s/%s", models, m->name, file);
}

static zc_tensor read_rows(const model *m, const char *file)
{
    char path[4096];
    zc_tensor t;
    zc_diag *diag = zc_diag_create();
    path_of(m, file, path, sizeof path);
    expect_ok(diag, zc_npy_read(path, &t, diag));
    assert_true(t.dtype == ZC_U8 && t.rank == 2 && t.dims[1] == m->inputs + 1);
    zc_diag_destroy(&diag);
    return t;
}

static const uint8_t *row(const zc_tensor *t, int64_t i)
{
    return (const uint8_t *)t->data + i * t->dims[1];
}

typedef union batch {
    float f32[BATCH * INPUTS_MAX];
    int64_t i64[BATCH * INPUTS_MAX];
} batch;

/* The input of BATCH rows from `first` on. */
static zc_view view_of(const model *m, const zc_tensor *rows, int64_t first, batch *b)
{
    const bool floats = m->elem == ZC_ELEM_F32;
    zc_view v = {.elem = m->elem, .rank = m->rank, .data = b};
    memcpy(v.dims, m->dims, sizeof m->dims);
    v.bytes = (size_t)(BATCH * m->inputs) * (floats ? sizeof *b->f32 : sizeof *b->i64);
    for (int i = 0; i < BATCH * m->inputs; i++) {
        const uint8_t x = row(rows, first + i / m->inputs)[i % m->inputs];
        if (floats)
            b->f32[i] = (float)x / 16;
        else
            b->i64[i] = x;
    }
    return v;
}

/* ---- plans ---- */

static zc_plan *compile(const model *m, const zc_compile_params *p)
{
    char path[4096], file[64];
    uint8_t *onnx;
    void *bytes;
    size_t onnx_len, len;
    zc_plan *plan = NULL;
    zc_diag *diag = zc_diag_create();
    snprintf(file, sizeof file, "%s.onnx", m->name);
    path_of(m, file, path, sizeof path);
    expect_ok(diag, zc_file_read(path, 1 << 20, &onnx, &onnx_len, diag));
    expect_ok(diag, zc_compile_bytes(onnx, onnx_len, p, &bytes, &len, diag));
    expect_ok(diag, zc_plan_load_bytes(bytes, len, &plan, diag));
    zc_free(bytes);
    free(onnx);
    zc_diag_destroy(&diag);
    return plan;
}

typedef struct narrow {
    const char *type;
    size_t parts;       /* that are to be of it */
    const char *target; /* NULL: the CPU, which runs plans for others, too */
} narrow;

/* All parts that may be of the type are. as NULL: f32. */
static zc_plan *compile_as(const model *m, const narrow *as)
{
    static batch inputs[SAMPLES_MAX];
    zc_view samples[SAMPLES_MAX];
    const zc_fixed_dim dim = {.name = "batch", .value = BATCH};
    const zc_tensor rows = read_rows(m, "calibration.npy");
    size_t n = 0;
    for (; n < SAMPLES_MAX && (int64_t)(n + 1) * BATCH <= rows.dims[0]; n++)
        samples[n] = view_of(m, &rows, (int64_t)n * BATCH, &inputs[n]);
    zc_compile_params p = {.size = sizeof p, .dims = &dim, .dim_count = 1};
    if (as) {
        p.precision = "auto";
        p.max_error = MAX_ERROR;
        p.allow = &as->type;
        p.allow_count = 1;
        p.samples = samples;
        p.sample_count = n;
        p.targets = &as->target;
        p.target_count = as->target != NULL;
    }
    zc_plan *plan = compile(m, &p);
    free(rows.data);
    return plan;
}

static size_t parts_of(const zc_plan *plan, const char *type)
{
    const zc_program *p = zc_plan_program(plan);
    const size_t n = strlen(type);
    size_t parts = 0;
    for (uint32_t i = 0; i < p->nprecision; i++)
        parts += strncmp(p->precision[i], type, n) == 0 && p->precision[i][n] == ' ';
    return parts;
}

/* ---- accuracy ---- */

static size_t right_in(const model *m, const zc_tensor *rows, int64_t first, const float *y)
{
    size_t right = 0;
    for (int i = 0; i < BATCH; i++, y += m->classes) {
        int best = 0;
        for (int c = 1; c < m->classes; c++)
            if (y[c] > y[best]) best = c;
        right += best == row(rows, first + i)[m->inputs];
    }
    return right;
}

/* Of the rows that were held out, a whole number of batches. */
static size_t right_of(const model *m, zc_plan *plan, const zc_tensor *rows)
{
    static batch input;
    size_t right = 0;
    zc_session *s;
    zc_view y;
    zc_diag *diag = zc_diag_create();
    assert_int_equal(rows->dims[0] % BATCH, 0);
    expect_ok(diag, zc_session_create(plan, NULL, &s, diag));
    for (int64_t i = 0; i < rows->dims[0]; i += BATCH) {
        const zc_view x = view_of(m, rows, i, &input);
        expect_ok(diag, zc_session_set_input(s, 0, &x, true, diag));
        expect_ok(diag, zc_session_run(s, diag));
        expect_ok(diag, zc_session_output(s, 0, &y, diag));
        assert_int_equal(y.bytes, (size_t)(BATCH * m->classes) * sizeof(float));
        right += right_in(m, rows, i, y.data);
    }
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_diag_destroy(&diag);
    return right;
}

static void check(const model *m, const narrow *types, size_t count)
{
    const zc_tensor rows = read_rows(m, "held_out.npy");
    zc_plan *plan = compile_as(m, NULL);
    const size_t exact = right_of(m, plan, &rows);
    const double most = POINTS / 100 * (double)rows.dims[0];
    zc_plan_destroy(&plan);
    print_message("%s: f32 %zu of %lld\n", m->name, exact, (long long)rows.dims[0]);
    assert_int_equal(exact, m->right);
    for (size_t i = 0; i < count; i++) {
        if (types[i].target && !getenv("ZC_NVRTC")) {
            print_message("%s: %s for %s skipped: needs ZC_NVRTC\n", m->name, types[i].type,
                          types[i].target);
            continue;
        }
        plan = compile_as(m, &types[i]);
        const size_t right = right_of(m, plan, &rows), parts = parts_of(plan, types[i].type);
        print_message("%s: %s %zu, %zu parts\n", m->name, types[i].type, right, parts);
        if (right + most < exact || right > exact + most || parts != types[i].parts)
            fail_msg("%s, %s: %zu right and %zu parts, need %zu and %zu", m->name, types[i].type,
                     right, parts, exact, types[i].parts);
        zc_plan_destroy(&plan);
    }
    free(rows.data);
}

static void test_digits(void **state)
{
    static const narrow types[] = {
        {"int8", 2, NULL}, {"fp8", 2, NULL}, {"w8", 4, NULL}, {"int4", 4, NULL}, {"fp4", 4, NULL}};
    (void)state;
    check(&digits, types, ZC_COUNTOF(types));
}

static void test_lines(void **state)
{
    /* On the CPU sums of 64 products are too short for int8. */
    static const narrow types[] = {{"fp8", 8, NULL},
                                   {"w8", 9, NULL},
                                   {"int4", 9, NULL},
                                   {"fp4", 9, NULL},
                                   {"int8", 8, "sm_90"}};
    (void)state;
    check(&lines, types, ZC_COUNTOF(types));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_lines),
    };
    if (argc != 2) return 1;
    models = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
