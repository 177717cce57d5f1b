/* What every fast kernel owes (op_fast): the reference kernel's numbers, NaN and infinity included,
 * and the same bits on any number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "support/op_text.h"

typedef struct fast_case {
    const char *op, *attrs, *in;
    int nout;
    double tol;
} fast_case;

static void check(const fast_case *cases, size_t n, unsigned specials)
{
    for (size_t i = 0; i < n; i++)
        op_fast(cases[i].op, cases[i].attrs, cases[i].in, cases[i].nout, specials, cases[i].tol);
}
#define CHECK(cases, specials) check(cases, ZC_COUNTOF(cases), specials)

static void products(void **state)
{
    (void)state;
    static const fast_case cases[] = {
        {"MatMul", "", "f32[1,64] ~; f32[64,300] ~", 1, 1e-4},
        {"MatMul", "", "f32[64,300] ~; f32[300,1] ~", 1, 1e-4},
        {"MatMul", "", "f32[7,500] ~; f32[500,900] ~", 1, 1e-4},
        {"MatMul", "", "f32[130,400] ~; f32[400,210] ~", 1, 1e-4},
        {"MatMul", "", "f32[300,500] ~; f32[500,40] ~", 1, 1e-4},
        {"MatMul", "", "f32[3,50,70] ~; f32[3,70,90] ~", 1, 1e-4},
        {"MatMul", "", "f32[2,60,400] ~; f32[2,400,70] ~", 1, 1e-4},
        {"MatMul", "", "f32[2,9,33] ~; f32[33,17] ~", 1, 1e-4},
        {"Gemm", "transB=1", "f32[40,700] ~; f32[200,700] ~; f32[200] ~", 1, 1e-4},
        {"Gemm", "transA=1 alpha=0.5", "f32[800,33] ~; f32[800,64] ~; f32[33,1] ~", 1, 1e-4},
        {"Gemm", "transA=1 transB=1 beta=2", "f32[390,70] ~; f32[50,390] ~; f32[70,50] ~", 1, 1e-4},
        {"Linear", "transB=1", "f32[2,65,384] ~; f32[96,384] ~; f32[96] ~", 1, 1e-4},
        {"Linear", "", "f32[1,197,192] ~; f32[192,576] ~; f32[576] ~", 1, 1e-4},
        {"FusedMatMul", "transB=1 alpha=0.125", "f32[2,3,70,64] ~; f32[2,3,80,64] ~", 1, 1e-4},
    };
    CHECK(cases, 0);
    static const fast_case odd[] = {
        {"MatMul", "", "f32[1,64] ~; f32[64,30] ~", 1, 1e-4},
        {"MatMul", "", "f32[2,9,33] ~; f32[2,33,17] ~", 1, 1e-4},
        {"Gemm", "transB=1", "f32[40,50] ~; f32[60,50] ~; f32[60] ~", 1, 1e-4},
    };
    CHECK(odd, ~0u);
}

/* Weights stay finite: whether a kernel multiplies them by padding, which is 0, is its own choice.
 */
#define WEIGHTS 2u

static void convolutions(void **state)
{
    (void)state;
    static const fast_case cases[] = {
        {"Conv", "", "f32[1,16,14,14] ~; f32[33,16,1,1] ~; f32[33] ~", 1, 1e-4},
        {"Conv", "pads=1,1,1,1", "f32[2,24,9,11] ~; f32[40,24,1,1] ~; f32[40] ~", 1, 1e-4},
        {"Conv", "pads=1,0,2,1 strides=2,1", "f32[1,20,31,29] ~; f32[64,20,3,3] ~", 1, 1e-4},
        {"Conv", "pads=1,1,1,1 dilations=2,1 group=2",
         "f32[1,16,40,20] ~; f32[96,8,3,2] ~; f32[96] ~", 1, 1e-4},
        {"Conv", "pads=1,1,1,1 group=6", "f32[2,6,20,11] ~; f32[6,1,3,3] ~; f32[6] ~", 1, 1e-4},
        {"Conv", "pads=3,3", "f32[2,8,300] ~; f32[64,8,7] ~; f32[64] ~", 1, 1e-4},
        {"Conv", "pads=3,3,3,3 strides=2,2", "f32[1,3,40,48] ~; f32[32,3,7,7] ~", 1, 1e-4},
        {"ConvTranspose", "strides=2,2", "f32[1,20,9,11] ~; f32[20,24,2,2] ~; f32[24] ~", 1, 1e-4},
        {"ConvTranspose", "strides=2,1 pads=1,2,0,1 output_padding=1,0 dilations=1,2",
         "f32[2,8,7,19] ~; f32[8,5,4,3] ~", 1, 1e-4},
        {"ConvTranspose", "strides=3 group=4", "f32[1,16,50] ~; f32[16,3,5] ~; f32[12] ~", 1, 1e-4},
        {"ConvTranspose", "strides=2,2 pads=1,1,1,1",
         "f32[2,40,9,70] ~; f32[40,19,4,4] ~; f32[19] ~", 1, 1e-4},
        {"ConvTranspose", "strides=2,1 pads=1,2,0,1 output_padding=1,0 dilations=1,2",
         "f32[2,32,7,19] ~; f32[32,5,4,3] ~", 1, 1e-4},
    };
    CHECK(cases, ~WEIGHTS);
}

/* x, w, bias, residual; also after an activation, which the library would compute. */
#define NHWC(attrs, x, w, channels, y)                                                             \
    {"ConvNhwc", attrs, x "; " w, 1, 1e-4}, {"ConvNhwc", attrs, x "; " w "; " channels, 1, 1e-4},  \
        {"ConvNhwc", attrs " activation=Relu", x "; " w "; " channels, 1, 1e-4},                   \
        {"ConvNhwc", attrs " activation=Relu", x "; " w "; " channels "; " y, 1, 1e-4},

static void channels_last_convolutions(void **state)
{
    (void)state;
    static const fast_case cases[] = {
        NHWC("", "f32[1,14,13,16] ~", "f32[33,16,1,1] ~", "f32[33] ~", "f32[1,14,13,33] ~")
            NHWC("strides=2,2", "f32[1,14,13,64] ~", "f32[48,64,1,1] ~", "f32[48] ~",
                 "f32[1,7,7,48] ~") NHWC("pads=1,1,1,1", "f32[2,9,11,24] ~", "f32[40,24,1,1] ~",
                                         "f32[40] ~", "f32[2,11,13,40] ~")
                NHWC("pads=2,0,0,0", "f32[1,9,11,128] ~", "f32[64,128,1,1] ~", "f32[64] ~",
                     "f32[1,11,11,64] ~") NHWC("pads=0,0,3,0 strides=2,1", "f32[1,9,11,96] ~",
                                               "f32[32,96,1,1] ~", "f32[32] ~", "f32[1,6,11,32] ~")
                    NHWC("pads=1,1,1,1", "f32[1,17,19,64] ~", "f32[32,64,3,3] ~", "f32[32] ~",
                         "f32[1,17,19,32] ~")
                        NHWC("pads=1,1,1,1 strides=2,2", "f32[2,12,12,20] ~", "f32[24,20,3,3] ~",
                             "f32[24] ~", "f32[2,6,6,24] ~")
                            NHWC("pads=3,3,3,3 strides=2,2", "f32[1,40,44,3] ~", "f32[64,3,7,7] ~",
                                 "f32[64] ~", "f32[1,20,22,64] ~")
                                NHWC("pads=2,2,2,2 dilations=2,2", "f32[1,7,7,80] ~",
                                     "f32[100,80,3,3] ~", "f32[100] ~", "f32[1,7,7,100] ~")
                                    NHWC("pads=5,0,5,0", "f32[1,8,8,16] ~", "f32[16,16,3,3] ~",
                                         "f32[16] ~", "f32[1,16,6,16] ~")
                                        NHWC("", "f32[1,7,7,512] ~", "f32[64,512,1,1] ~",
                                             "f32[64] ~", "f32[1,7,7,64] ~")
                                            NHWC("", "f32[1,3,1,300] ~", "f32[16,300,3,1] ~",
                                                 "f32[16] ~", "f32[1,1,1,16] ~")};
    CHECK(cases, 0);
    static const fast_case odd[] = {
        {"ConvNhwc", "pads=1,1,1,1 activation=Relu",
         "f32[1,7,6,20] ~; f32[24,20,3,3] ~; f32[24] ~; f32[1,7,6,24] ~", 1, 1e-4},
        {"ConvNhwc", "activation=Relu",
         "f32[1,7,7,40] ~; f32[33,40,1,1] ~; f32[33] ~; f32[1,7,7,33] ~", 1, 1e-4},
        {"ConvNhwc", "pads=1,1,1,1 strides=2,2", "f32[2,9,9,3] ~; f32[16,3,3,3] ~; f32[16] ~", 1,
         1e-4},
        {"ConvNhwc", "pads=1,1,1,1 group=21", "f32[1,9,9,21] ~; f32[21,1,3,3] ~; f32[21] ~", 1,
         1e-4},
        {"ConvNhwc", "pads=2,2,2,2 strides=2,2 group=200 activation=Relu",
         "f32[2,13,17,200] ~; f32[200,1,5,5] ~; f32[200] ~", 1, 1e-4},
        {"ConvNhwc", "pads=1,1,1,1 group=6", "f32[1,9,9,24] ~; f32[48,4,3,3] ~; f32[48] ~", 1,
         1e-4},
        {"ConvNhwc", "group=3", "f32[1,9,9,51] ~; f32[51,17,1,1] ~", 1, 1e-4},
        /* rows of windows in one stretch, which the input's borders cut on either side */
        {"ConvNhwc", "pads=1,19,1,19", "f32[1,6,30,8] ~; f32[8,8,3,39] ~; f32[8] ~", 1, 1e-4},
        {"ConvNhwc", "pads=2,1,2,1 strides=1,2 dilations=2,1",
         "f32[2,9,7,16] ~; f32[32,16,3,3] ~; f32[32] ~", 1, 1e-4},
        {"ConvNhwc", "pads=1,3,1,3", "f32[1,5,3,16] ~; f32[16,16,3,7] ~", 1, 1e-4},
        /* parts of the columns */
        {"ConvNhwc", "pads=1,1,1,1 activation=Relu",
         "f32[1,5,5,128] ~; f32[264,128,3,3] ~; f32[264] ~; f32[1,5,5,264] ~", 1, 1e-4},
        /* several filters a channel */
        {"ConvNhwc", "pads=3,3,3,3 strides=2,2 group=12 activation=Relu",
         "f32[2,9,9,12] ~; f32[36,1,7,7] ~; f32[36] ~; f32[2,5,5,36] ~", 1, 1e-4},
    };
    CHECK(odd, ~WEIGHTS);
}

static void poolings(void **state)
{
    (void)state;
    static const fast_case cases[] = {
        {"MaxPool", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1", "f32[2,5,33,31] ~", 1, 0},
        {"MaxPool", "kernel_shape=4", "f32[2,5,133] ~", 1, 0},
        {"MaxPoolNhwc", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1", "f32[2,33,31,5] ~", 1, 0},
        {"AveragePool", "kernel_shape=3,2 pads=1,0,1,1", "f32[2,5,33,31] ~", 1, 1e-5},
        {"AveragePoolNhwc", "kernel_shape=3,2 strides=2,1 pads=1,0,1,1", "f32[2,33,31,5] ~", 1,
         1e-5},
        {"AveragePoolNhwc",
         "kernel_shape=3,3 strides=2,2 pads=1,1,1,1 count_include_pad=1 ceil_mode=1",
         "f32[2,33,32,40] ~", 1, 1e-5},
        {"AveragePool", "kernel_shape=2 dilations=3 pads=1,1", "f32[2,5,2] ~", 1,
         0}, /* of padding alone */
        {"AveragePoolNhwc", "kernel_shape=1,2 dilations=1,3 pads=0,1,0,1", "f32[2,5,2,4] ~", 1, 0},
        {"GlobalAveragePool", "", "f32[2,50,14,14] ~", 1, 1e-5},
        {"AveragePool", "kernel_shape=3,3 pads=1,1,1,1 count_include_pad=1", "f32[2,5,33,31] ~", 1,
         1e-5},
        {"GlobalMaxPool", "", "f32[2,50,14,13] ~", 1, 0},
        {"LRN", "size=5 alpha=0.3", "f32[2,9,20,20] ~", 1, 1e-5},
        {"LRN", "size=4 beta=0.6 bias=2", "f32[1,3,7,5] ~", 1, 1e-5},
        {"Resize", "mode=nearest", "f32[2,5,14,9] ~; -; f32[4] 1 1 2 2", 1, 0},
        {"Resize", "mode=linear", "f32[2,5,14,9] ~; -; f32[4] 1 1 2 3.5", 1, 1e-5},
        {"Resize", "mode=linear coordinate_transformation_mode=align_corners",
         "f32[1,7,14,9] ~; -; -; i64[4] 1 7 29 5", 1, 1e-5},
        {"Resize", "mode=cubic", "f32[1,2,14,9] ~; -; -; i64[4] 1 2 20 31", 1, 1e-4},
        {"Resize", "mode=linear antialias=1", "f32[1,2,14,9] ~; -; -; i64[4] 1 2 5 4", 1, 1e-4},
    };
    CHECK(cases, 1u);
}

/* What NaN gives here has tests of its own. */
static void rows(void **state)
{
    (void)state;
    static const fast_case cases[] = {
        {"Softmax", "axis=-1", "f32[40,1000] ~", 1, 1e-5},
        {"Softmax", "axis=1", "f32[3,200,70] ~", 1, 1e-5},
        {"LayerNormalization", "", "f32[300,768] ~; f32[768] ~; f32[768] ~", 1, 1e-4},
        {"RMSNormalization", "", "f32[300,768] ~; f32[768] ~", 1, 1e-4},
        {"SkipLayerNormalization", "", "f32[2,50,768] ~; f32[2,50,768] ~; f32[768] ~; f32[768] ~",
         1, 1e-4},
        {"InstanceNormalization", "", "f32[2,7,40,40] ~; f32[7] ~; f32[7] ~", 1, 1e-4},
        {"GroupNormalization", "num_groups=4", "f32[2,8,40,40] ~; f32[8] ~; f32[8] ~", 1, 1e-4},
        {"MsGroupNorm", "groups=4", "f32[2,40,40,8] ~; f32[8] ~; f32[8] ~", 1, 1e-4},
        {"LinearNorm", "", "f32[60,256] ~; f32[256,384] ~; -; -; f32[384] ~; f32[384] ~", 1, 1e-4},
        {"ReduceSum", "keepdims=0", "f32[300,700] ~", 1, 1e-3},
        {"ReduceMean", "keepdims=0", "f32[300,700] ~; i64[1] 0", 1, 1e-4},
        {"ReduceL2", "", "f32[3,300,700] ~; i64[2] 1 2", 1, 1e-4},
    };
    CHECK(cases, 0);
}

static void attentions(void **state)
{
    (void)state;
    static const fast_case cases[] = {
        {"Attention", "is_causal=1", "f32[2,3,70,64] ~; f32[2,3,70,64] ~; f32[2,3,70,64] ~", 1,
         1e-4},
        {"Attention", "", "f32[1,1,5,64] ~; f32[1,1,600,64] ~; f32[1,1,600,64] ~", 1, 1e-4},
        {"Attention", "q_num_heads=4 kv_num_heads=4", "f32[1,130,384] ~", 1, 1e-4},
        {"Attention", "q_num_heads=4 kv_num_heads=4",
         "f32[1,130,128] ~; f32[1,130,128] ~; f32[1,130,128] ~", 1, 1e-4},
    };
    CHECK(cases, 0);
}

static void recurrent(void **state)
{
    (void)state;
    static const fast_case cases[] = {
        {"LSTM", "hidden_size=96", "f32[4,3,80] ~; f32[1,384,80] ~; f32[1,384,96] ~", 1, 1e-3},
        {"LSTM", "hidden_size=130 direction=bidirectional",
         "f32[4,1,300] ~; f32[2,520,300] ~; f32[2,520,130] ~", 1, 1e-3},
        {"LSTM", "hidden_size=33", "f32[5,2,8] ~; f32[1,132,8] ~; f32[1,132,33] ~; f32[1,264] ~", 2,
         1e-3},
        {"LSTM", "hidden_size=33 clip=0.5",
         "f32[5,2,8] ~; f32[1,132,8] ~; f32[1,132,33] ~; f32[1,264] ~", 2, 1e-3},
        {"GRU", "hidden_size=33", "f32[5,2,8] ~; f32[1,99,8] ~; f32[1,99,33] ~; f32[1,198] ~", 2,
         1e-3},
        {"GRU", "hidden_size=33 linear_before_reset=1 direction=bidirectional",
         "f32[5,2,8] ~; f32[2,99,8] ~; f32[2,99,33] ~; f32[2,198] ~", 2, 1e-3},
        {"GRU", "hidden_size=96", "f32[4,3,80] ~; f32[1,288,80] ~; f32[1,288,96] ~", 1, 1e-3},
        {"RNN", "hidden_size=96", "f32[4,3,80] ~; f32[1,96,80] ~; f32[1,96,96] ~", 1, 1e-3},
    };
    CHECK(cases, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(convolutions),
        cmocka_unit_test(channels_last_convolutions),
        cmocka_unit_test(poolings),
        cmocka_unit_test(rows),
        cmocka_unit_test(attentions),
        cmocka_unit_test(recurrent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
