/* How many kernels a run issues: what stands in front of, between and behind the large steps of
 * transformers, and what several blocks share. Results are those of the CPU. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/gpu.h"
#include "op/dtype.h"
#include "runtime/alternatives.h"
#include "support/onnx_text.h"

enum { VALUES_MAX = 1 << 16 };

typedef struct model {
    const char *name, *precision, *text;
    size_t launches;
} model;

/* Constants w[64, 64] and g[64]. */
#define WEIGHTS                                                                                    \
    "init a 1 - 0\ninit b 1 - 4096\ninit c 1 - 1\ninit by 1 - 0.125\ninit ws 7 2 64,64\n"          \
    "init gs 7 1 64\nnode Range a,b,c n\nnode Sin n q\nnode Mul q,by m\nnode Reshape m,ws w\n"     \
    "node ConstantOfShape gs o\nnode Add o,c g\n"

/* Out of attention, normalised, and the next product: one row. */
static const char step[] =
    "opset 23\nin x 1 1,1,64\nin r 1 1,1,64\nout s 1 *\nout y 1 *\n" WEIGHTS
    "node MatMul x,w p\nnode Add p,r s\nnode RMSNormalization s,g h\nnode MatMul h,w y\n";

/* Constants w[16, 16, 3, 3] and v[16, 32, 3, 3]. */
#define FILTERS                                                                                    \
    "init a 1 - 0\ninit b 1 - 2304\ninit c 1 - 1\ninit by 1 - 0.05\ninit ws 7 4 16,16,3,3\n"       \
    "node Range a,b,c n\nnode Sin n q\nnode Mul q,by m\nnode Reshape m,ws w\n"                     \
    "node Concat w,w v axis:i=1\n"
#define CONV(x, w, y) "node Conv " #x "," #w " " #y " pads:is=1,1,1,1\n"

/* Down and up again, beside what was on the way. */
static const char rung[] =
    "opset 17\nin x 1 1,16,12,12\nout y 1 *\ninit by2 1 4 1,1,2,2\n" FILTERS CONV(x, w, e)
        CONV(e, w, l) "node MaxPool l p kernel_shape:is=2,2 strides:is=2,2\n" CONV(
            p, w, d) "node Resize d,_,by2 u\nnode Concat l,u j axis:i=1\n" CONV(j, v, k)
            CONV(k, w, y);

/* Each convolution reads all in front of it. */
static const char dense[] =
    "opset 17\nin x 1 1,16,12,12\nout y 1 *\ninit s 1 32,1,1 "
    "1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5\n" FILTERS CONV(x, w, e)
        CONV(e, w, f) "node Concat e,f j axis:i=1\nnode Mul j,s g\nnode Relu g h\n" CONV(
            h, v,
            i) "node Concat e,f,i k axis:i=1\nnode Slice k,i16,i48,i1 t\n" CONV(t, v,
                                                                                y) "init i16 7 1 "
                                                                                   "16\ninit i48 7 "
                                                                                   "1 48\ninit i1 "
                                                                                   "7 1 1\n";

/* One half as it is, the other one by a convolution. */
static const char halves[] =
    "opset 17\nin x 1 1,16,12,12\nout y 1 *\n" FILTERS
    "node Concat w,w u axis:i=0\n" CONV(x, u, e) "node Split e l,r axis:i=1\n" CONV(
        r, w, d) "node Concat l,r,d j axis:i=1\n"
                 "node Concat v,w z axis:i=1\n" CONV(j, z, y);

static const model models[] = {
    {"a prompt behind a cache: rows of queries, keys and values, then attention", NULL,
     "opset 17\nopset com.microsoft 1\nin q 10 1,20,64\nin k 10 1,20,32\nin v 10 1,20,32\n"
     "in pk 10 1,2,8,16\nin pv 10 1,2,8,16\nin c 10 64,8\nin s 10 64,8\nout y 10 *\n"
     "out k1 10 *\nout v1 10 *\ninit last 6 1 27\ninit total 6 - 28\n"
     "node GroupQueryAttention q,k,v,pk,pv,last,total,c,s y,k1,v1 domain=com.microsoft "
     "num_heads:i=4 kv_num_heads:i=2 do_rotary:i=1\n",
     2},
    {"a row that its tensor begins with: the product reads it where it is", NULL,
     "opset 17\nin x 10 1,40,64\nin g 10 64\nin b 10 64\nin w 10 64,64\nout n 10 *\nout y 10 *\n"
     "init i 7 - 0\nnode LayerNormalization x,g,b n\nnode Gather n,i r axis:i=1\n"
     "node MatMul r,w y\n",
     2},
    {"such a row as a result, of a result and of the plan's own memory", NULL,
     "opset 17\nin x 10 1,40,64\nin g 10 64\nin b 10 64\nout n 10 *\nout r 10 *\nout t 10 *\n"
     "init i 7 1 0\nnode LayerNormalization x,g,b n\nnode Softmax x s axis:i=1\n"
     "node Gather n,i r axis:i=1\nnode Gather s,i t axis:i=1\n",
     2},
    {"a norm as a result of f32: no Cast behind it", NULL,
     "opset 17\nin x 10 1,40,64\nin g 10 64\nin b 10 64\nout y 1 *\n"
     "node LayerNormalization x,g,b n\nnode Cast n y to:i=1\n",
     1},
    {"parts of a tensor, apart and joined again: a kernel each", NULL,
     "opset 17\nin x 10 1,40,64\nout y 10 *\ninit i 7 3 8,2,30\n"
     "node Split x,i a,b,c axis:i=1\nnode Concat c,b,a y axis:i=1\n",
     2},
    {"a row, normalised within the products", "f16", step, 5},
    {"a query whose keys blocks share: the last puts their results together", NULL,
     "opset 23\nin q 1 1,2,1,16\nin k 1 1,2,600,16\nin v 1 1,2,600,16\nout y 1 *\n"
     "node Attention q,k,v y\n",
     1},
    {"channels beside those that they come from: written where they are read", "f16", rung, 11},
    {"more and more channels: each written once", "f16", dense, 7},
    {"channels apart and joined again: written once, read where they are", "f16", halves, 5},
    {"the range of all elements, bytes by it, and numbers again", NULL,
     "opset 17\nin x 1 30,1000\nout y 1 *\n"
     "node DynamicQuantizeLinear x q,s,z\nnode DequantizeLinear q,s,z y\n",
     3},
};

static zc_plan *plan_of(const model *m)
{
    static const char *const targets[] = {"sm_90"};
    zc_buf text = {0};
    void *bytes;
    size_t len;
    zc_diag *diag = zc_diag_create();
    onnx_text(m->text, &text);
    expect_ok(diag, zc_compile_bytes(text.data, text.len,
                                     ZC_COMPILE_PARAMS(.targets = targets, .target_count = 1,
                                                       .precision = m->precision, .threads = 2),
                                     &bytes, &len, diag));
    zc_plan *plan = gpu_load(bytes, len);
    zc_free(bytes);
    zc_buf_fini(&text);
    zc_diag_destroy(&diag);
    return plan;
}

/* Numbers in [-1, 1], the same for each input i. */
static void set_inputs(zc_plan *plan, zc_session *s, zc_diag *diag)
{
    static uint16_t half[VALUES_MAX];
    static float single[VALUES_MAX];
    zc_plan_info info;
    zc_io_info io;
    assert_int_equal(zc_plan_info_get(plan, &info), ZC_OK);
    for (size_t i = 0; i < info.inputs; i++) {
        expect_ok(diag, zc_plan_input(plan, i, &io, diag));
        bool is_half = io.elem == ZC_ELEM_F16;
        zc_view v = {.elem = io.elem,
                     .rank = io.rank,
                     .data = is_half ? (const void *)half : single,
                     .bytes = (size_t)io.bytes};
        for (int d = 0; d < io.rank; d++) v.dims[d] = io.dims[d];
        assert_true(io.bytes > 0 && io.bytes <= (int64_t)sizeof half);
        for (size_t e = 0; e < VALUES_MAX; e++) {
            single[e] = (float)((e * 37 + i * 11) % 65) / 32 - 1;
            half[e] = zc_f32_to_f16(single[e]);
        }
        expect_ok(diag, zc_session_set_input(s, i, &v, false, diag));
    }
}

static zc_session *run_on(zc_plan *plan, zc_device_kind device, zc_diag *diag)
{
    zc_session *s = NULL;
    expect_ok(diag,
              zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 1, .device = device), &s, diag));
    set_inputs(plan, s, diag);
    for (int n = 0; n < 3; n++) expect_ok(diag, zc_session_run(s, diag));
    return s;
}

static float at(const zc_view *v, size_t i)
{
    return v->elem == ZC_ELEM_F16 ? zc_f16_to_f32(((const uint16_t *)v->data)[i])
                                  : ((const float *)v->data)[i];
}

static void same_results(zc_plan *plan, zc_session *a, zc_session *b, zc_diag *diag)
{
    zc_plan_info info;
    assert_int_equal(zc_plan_info_get(plan, &info), ZC_OK);
    for (size_t i = 0; i < info.outputs; i++) {
        zc_view x, y;
        expect_ok(diag, zc_session_output(a, i, &x, diag));
        expect_ok(diag, zc_session_output(b, i, &y, diag));
        assert_int_equal(x.bytes, y.bytes);
        assert_true(x.bytes > 0);
        size_t n = x.bytes / (x.elem == ZC_ELEM_F16 ? 2 : 4);
        for (size_t e = 0; e < n; e++)
            if (!(fabsf(at(&x, e) - at(&y, e)) <= 1e-2f * (1 + fabsf(at(&y, e)))))
                fail_msg("result %zu, element %zu: got %g, need %g", i, e, (double)at(&x, e),
                         (double)at(&y, e));
    }
}

/* A session whose kernels are forced, here those that it has, has no tensors within others: the
 * bits are the same. */
static void same_bits_alone(zc_plan *plan, zc_session *s, zc_diag *diag)
{
    zc_view v;
    expect_ok(diag, zc_session_output(s, 0, &v, diag));
    void *within = malloc(v.bytes);
    memcpy(within, v.data, v.bytes);
    uint32_t one = 0;
    while (zc_plan_program(plan)->steps[one].nchoices != 1) one++;
    expect_ok(diag, zc_session_force(s, one, 0, diag));
    for (int n = 0; n < 2; n++) expect_ok(diag, zc_session_run(s, diag));
    expect_ok(diag, zc_session_output(s, 0, &v, diag));
    assert_memory_equal(within, v.data, v.bytes);
    free(within);
}

static void test_launches(void **state)
{
    (void)state;
    gpu_fake(NULL, NULL);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        zc_device_info device;
        zc_diag *diag = zc_diag_create();
        zc_plan *plan = plan_of(&models[i]);
        zc_session *gpu = run_on(plan, ZC_DEVICE_CUDA, diag);
        zc_session *cpu = run_on(plan, ZC_DEVICE_CPU, diag);
        assert_int_equal(zc_session_device(gpu, &device), ZC_OK);
        if (device.launches != models[i].launches || device.cpu_steps)
            fail_msg("%s: got %zu launches and %zu steps on the CPU, need %zu and 0",
                     models[i].name, (size_t)device.launches, (size_t)device.cpu_steps,
                     models[i].launches);
        same_results(plan, gpu, cpu, diag);
        same_bits_alone(plan, gpu, diag);
        assert_int_equal(zc_session_destroy(&gpu), ZC_OK);
        assert_int_equal(zc_session_destroy(&cpu), ZC_OK);
        zc_plan_destroy(&plan);
        zc_diag_destroy(&diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_launches)};
    return cmocka_run_group_tests_name("launches", tests, gpu_group_setup, gpu_group_teardown);
}
