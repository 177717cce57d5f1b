#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cuda/gpu.h"
#include "support/onnx_text.h"

/* ---- the driver ---- */

static char folder[] = "/tmp/zc-test-XXXXXX";

int gpu_group_setup(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    return setenv("ZC_CACHE_DIR", folder, 1);
}

int gpu_group_teardown(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* They are not in a GPU's own driver. */
#pragma weak zc_hostcuda_reset
#pragma weak zc_hostcuda_counts

bool gpu_is_fake(void)
{
    return zc_hostcuda_reset != NULL;
}

static void needs(bool is_there, const char *what)
{
    if (is_there) return;
    print_message("skipped: needs %s\n", what);
    skip();
}

void gpu_needs_fake(void)
{
    needs(gpu_is_fake(), "the fake driver");
}

void gpu_needs_real(void)
{
    needs(!gpu_is_fake(), "a GPU");
}

void gpu_fake(const char *name, const char *value)
{
    static const char *const names[] = {"FAIL",  "DEVICES", "MEMORY", "CC",
                                        "TRACE", "SHUFFLE", "REMARK"};
    char variable[64];
    if (name) gpu_needs_fake();
    if (!gpu_is_fake()) return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(variable, sizeof variable, "ZC_HOSTCUDA_%s", names[i]);
        unsetenv(variable);
    }
    if (name) {
        snprintf(variable, sizeof variable, "ZC_HOSTCUDA_%s", name);
        setenv(variable, value, 1);
    }
    zc_hostcuda_reset();
}

void gpu_fault(const char *call, long n, int code)
{
    char fault[96];
    snprintf(fault, sizeof fault, "%s:%ld:%d", call, n, code);
    gpu_fake("FAIL", fault);
}

void gpu_counts(hc_counts *out)
{
    memset(out, 0, sizeof *out);
    if (gpu_is_fake()) zc_hostcuda_counts(out);
}

static void enter(void)
{
    hc_context_t context;
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(cuCtxPushCurrent_v2(context), 0);
}

static void leave(void)
{
    hc_context_t context;
    assert_int_equal(cuCtxPopCurrent_v2(&context), 0);
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), 0);
}

void gpu_put(hc_ptr to, const void *from, size_t bytes)
{
    enter();
    assert_int_equal(cuMemcpyHtoD_v2(to, from, bytes), 0);
    leave();
}

void gpu_get(void *to, const void *from, size_t bytes)
{
    enter();
    assert_int_equal(cuMemcpyDtoH_v2(to, (hc_ptr)(uintptr_t)from, bytes), 0);
    leave();
}

size_t gpu_bytes_free(void)
{
    size_t available, total;
    enter();
    assert_int_equal(cuMemGetInfo_v2(&available, &total), 0);
    leave();
    return available;
}

/* ---- plans ---- */

void gpu_compile(const char *text, const char *target, bool strip, void **bytes, size_t *len)
{
    zc_buf model = {0};
    zc_diag *diag = zc_diag_create();
    /* Three kernels: the product stays beside the softmax. */
    static const char *const skip[] = {"opt_epilogue"};
    zc_compile_params params = {.size = sizeof params,
                                .skip_passes = skip,
                                .skip_pass_count = 1,
                                .targets = &target,
                                .target_count = 1,
                                .strip_sources = strip,
                                .threads = 2};
    onnx_text(text, &model);
    expect_ok(diag, zc_compile_bytes(model.data, model.len, &params, bytes, len, diag));
    zc_buf_fini(&model);
    zc_diag_destroy(&diag);
}

zc_plan *gpu_load(const void *bytes, size_t len)
{
    zc_plan *plan = NULL;
    zc_diag *diag = zc_diag_create();
    expect_ok(diag, zc_plan_load_bytes(bytes, len, &plan, diag));
    zc_diag_destroy(&diag);
    return plan;
}

zc_session *gpu_session(zc_plan *plan)
{
    zc_session *s = NULL;
    zc_diag *diag = zc_diag_create();
    expect_ok(diag, zc_session_create(
                        plan, ZC_SESSION_PARAMS(.threads = 1, .device = ZC_DEVICE_CUDA), &s, diag));
    zc_diag_destroy(&diag);
    return s;
}

/* ---- the model ---- */

const char gpu_rows_text[] =
    "opset 17\nin x 1 N,8\nin idx 7 M\nout y 1 *\ninit w 1 8 1,2,3,4,5,6,7,8\n"
    "node Gather x,idx g axis:i=0 name=pick\nnode Softmax g p axis:i=1 name=norm\n"
    "node Mul p,w y name=scale\n";

void gpu_rows_make(gpu_rows *in, int64_t n, int64_t m, unsigned seed)
{
    in->n = n;
    in->m = m;
    for (int64_t i = 0; i < n * GPU_COLUMNS; i++)
        in->x[i] = (float)((seed * 7 + (unsigned)i * 5) % 11) / 4 - 1;
    for (int64_t i = 0; i < m; i++) in->idx[i] = (i * 3 + seed) % n;
}

zc_status gpu_rows_set(zc_session *s, gpu_rows *in, zc_diag *diag)
{
    zc_view x = {.elem = 1,
                 .rank = 2,
                 .dims = {in->n, GPU_COLUMNS},
                 .data = in->x,
                 .bytes = (size_t)in->n * GPU_COLUMNS * sizeof *in->x};
    zc_view idx = {.elem = 7,
                   .rank = 1,
                   .dims = {in->m},
                   .data = in->idx,
                   .bytes = (size_t)in->m * sizeof *in->idx};
    ZC_TRY(zc_session_set_input(s, 0, &x, false, diag));
    return zc_session_set_input(s, 1, &idx, false, diag);
}

bool gpu_rows_right(const gpu_rows *in, const float *y)
{
    for (int64_t r = 0; r < in->m; r++) {
        const float *x = in->x + in->idx[r] * GPU_COLUMNS;
        double sum = 0;
        for (int c = 0; c < GPU_COLUMNS; c++) sum += exp(x[c]);
        for (int c = 0; c < GPU_COLUMNS; c++) {
            double want = exp(x[c]) / sum * (c + 1);
            if (!(fabs(y[r * GPU_COLUMNS + c] - want) <= 1e-5 * want)) return false;
        }
    }
    return true;
}

bool gpu_rows_right_at(const gpu_rows *in, hc_ptr y)
{
    float copy[GPU_ROWS_MAX * GPU_COLUMNS];
    gpu_get(copy, (const void *)(uintptr_t)y, (size_t)in->m * GPU_COLUMNS * sizeof *copy);
    return gpu_rows_right(in, copy);
}

void gpu_rows_run(zc_session *s, gpu_rows *in)
{
    zc_diag *diag = zc_diag_create();
    zc_view y;
    expect_ok(diag, gpu_rows_set(s, in, diag));
    expect_ok(diag, zc_session_run(s, diag));
    expect_ok(diag, zc_session_output(s, 0, &y, diag));
    assert_int_equal(y.bytes, (size_t)in->m * GPU_COLUMNS * sizeof(float));
    assert_false(y.on_device);
    assert_true(gpu_rows_right(in, y.data));
    zc_diag_destroy(&diag);
}

/* ---- fixture ---- */

gpu_fixture *gpu_fixture_create(bool strip)
{
    gpu_fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    gpu_fake(NULL, NULL);
    f->diag = zc_diag_create();
    gpu_compile(gpu_rows_text, "sm_90", strip, &f->bytes, &f->len);
    f->plan = gpu_load(f->bytes, f->len);
    gpu_rows_make(&f->in, 5, 4, 1);
    return f;
}

void gpu_fixture_destroy(gpu_fixture *f, bool idle)
{
    hc_counts counts;
    assert_int_equal(zc_session_destroy(&f->session), ZC_OK);
    zc_plan_destroy(&f->plan);
    gpu_counts(&counts);
    if (idle) assert_int_equal(counts.live, 0);
    if (idle) assert_int_equal(counts.device_bytes, 0);
    zc_diag_destroy(&f->diag);
    zc_free(f->bytes);
    free(f);
    gpu_fake(NULL, NULL);
}
