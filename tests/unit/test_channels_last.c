/* Operations that passes make of several, channels last: by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/op_text.h"

static void squeeze_excite(void **state)
{
    (void)state;
    /* means 2 and 4, h = relu(2 * 0.5 + 4 * 0.25 + 1) = 3, factors of 3 and 0 */
    op_eval("SqueezeExcite", "activation=Relu gate=HardSigmoid gate_params=0.25,0.5",
            "f32[1,2,2] 1 2 3 6; f32[1,2] 0.5 0.25; f32[1,2] 1 -1; f32[1] 1; f32[2] 0 3",
            "f32[1,2,2] 1 1 3 3", 1e-6);
    /* each image has its own mean, which is what the products give: 1 and 3 */
    op_eval("SqueezeExcite", "gate=Tanh", "f32[2,1,1,1] 1 3; f32[2,1] 1 2; f32[2,1] 3 -1; -; -",
            "f32[2,1,1,1] 0.7615942 2.985164", 1e-6);
    op_eval("SqueezeExcite", "", "f32[1,1,2] 1 2; f32[1,2] 0 0; f32[1,2] 5 5", "f32[1,1,2] 0.5 1",
            1e-6);
    op_infer("SqueezeExcite", "", "f16[n,h,w,8]; f16[2,8]; f16[2,8]; -; f16[8]", "f16[n,h,w,8]");
    op_infer_fails("SqueezeExcite", "", "f32[1,2,8]; f32[2,8]; f32[8,2]", 1, "w2");
    op_infer_fails("SqueezeExcite", "", "f32[1,2,8]; f32[2,4]; f32[2,4]", 1,
                   "columns of w1 and channels");
    op_infer_fails("SqueezeExcite", "gate=Add", "f32[1,2,8]; f32[2,8]; f32[2,8]", 1,
                   "unknown activation (got \"Add\")");
    op_infer_fails("SqueezeExcite", "", "f32[1,2,8]; f16[2,8]; f32[2,8]", 1, "f16");
}

static void conv_pair(void **state)
{
    (void)state;
    /* 2 x + 10 z + 0.5, of every second z */
    op_eval("ConvPair", "second_strides=2,2",
            "f32[1,2,2,1] 1 2 3 4; f32[1,1,1,1] 2; f32[1,3,3,1] 1 2 3 4 5 6 7 8 9; "
            "f32[1,1,1,1] 10; f32[1] 0.5",
            "f32[1,2,2,1] 12.5 34.5 76.5 98.5", 1e-6);
    /* taps before channels */
    op_eval("ConvPair", "",
            "f32[1,2,1,2] 1 2 3 4; f32[1,2,1,2] 1 10 100 1000; f32[1,1,1,1] 5; f32[1,1,1,1] 1",
            "f32[1,1,1,1] 4326", 1e-6);
    op_infer("ConvPair", "pads=1,1,1,1 second_strides=2,2",
             "f16[n,7,7,8]; f16[16,3,3,8]; f16[n,14,14,4]; f16[16,1,1,4]; f16[16]",
             "f16[n,7,7,16]");
    op_infer_fails("ConvPair", "", "f32[1,2,2,1]; f32[1,1,1,1]; f32[1,3,3,1]; f32[1,2,2,1]", 1,
                   "windows are not points");
    op_infer_fails("ConvPair", "", "f32[1,2,2,1]; f32[1,1,1,1]; f32[1,3,3,1]; f32[1,1,1,1]", 1,
                   "dimensions of both convolutions");
}

static void qlinear_conv_pair(void **state)
{
#define FIRST  "f32[] 1; u8[] 0; i8[1,1,1,1] 2; f32[] 1; i8[] 0; f32[] 1; i8[] 0; "
#define SECOND "f32[] 1; u8[] 0; i8[1,1,1,1] 10; f32[] 1; i8[] 0; f32[] 2; u8[] 1"
#define OTHERS "f32[]; u8[]; i8[1,1,1,1]; f32[]; i8[]; f32[]; i8[]"
#define SUM    "sum=u8(round(f32(x0)+f32(x1)*2))"
    (void)state;
    /* 2 x + 2 (5 z + 1), of every second z; with biases of 1, and 4 that is 2 of a byte */
    op_eval("QLinearConvPair", "second_strides=2,2 " SUM,
            "u8[1,2,2,1] 1 2 3 4; " FIRST "u8[1,3,3,1] 1 2 3 4 5 6 7 8 9; " SECOND,
            "u8[1,2,2,1] 14 36 78 100", 0);
    op_eval("QLinearConvPair", "second_strides=2,2 " SUM,
            "u8[1,2,2,1] 1 2 3 4; " FIRST "u8[1,3,3,1] 1 2 3 4 5 6 7 8 9; " SECOND
            "; i32[1] 1; i32[1] 4",
            "u8[1,2,2,1] 19 41 83 105", 0);
    op_infer("QLinearConvPair", "pads=1,1,1,1 second_strides=2,2 sum=i8(x0)",
             "u8[n,7,7,8]; f32[]; u8[]; i8[16,3,3,8]; f32[16]; i8[]; f32[]; i8[]; "
             "u8[n,14,14,4]; f32[]; u8[]; i8[16,1,1,4]; f32[16]; i8[]; f32[]; u8[]",
             "i8[n,7,7,16]");
    op_infer_fails("QLinearConvPair", SUM,
                   "u8[1,2,2,1]; " OTHERS
                   "; u8[1,3,3,1]; f32[]; u8[]; i8[1,2,2,1]; f32[]; i8[]; f32[]; u8[]",
                   1, "windows are not points");
    op_infer_fails("QLinearConvPair", SUM, "u8[1,2,2,1]; " OTHERS "; u8[1,3,3,1]; " OTHERS, 1,
                   "dimensions of both convolutions");
    op_infer_fails("QLinearConvPair", "sum=f32(x0)+f32(x1)",
                   "u8[1,2,2,1]; " OTHERS "; u8[1,2,2,1]; " OTHERS, 1, "the sum gives f32");
#undef SUM
#undef OTHERS
#undef SECOND
#undef FIRST
}

static void qlinear_conv_chain(void **state)
{
#define FIRST  "f32[] 1; u8[] 0; i8[2,1,1,1] 2 3; f32[] 1; i8[] 0; f32[] 1; u8[] 4; "
#define SECOND "i8[1,1,1,2] 10 1; f32[] 1; i8[] 0; f32[] 2; u8[] 1"
#define OTHERS "f32[]; u8[]; i8[16,3,3,8]; f32[16]; i8[]; f32[]; i8[]; "
    (void)state;
    /* h = 2 x + 4 and 3 x + 4, which count from 4 on: (20 x + 3 x) / 2 + 1; with biases of 1 and 4
     */
    op_eval("QLinearConvChain", "", "u8[1,2,2,1] 2 4 6 8; " FIRST SECOND, "u8[1,2,2,1] 24 47 70 93",
            0);
    op_eval("QLinearConvChain", "", "u8[1,2,2,1] 2 4 6 8; " FIRST SECOND "; i32[2] 1 0; i32[1] 4",
            "u8[1,2,2,1] 31 54 77 100", 0);
    op_infer("QLinearConvChain", "pads=1,1,1,1 strides=2,2",
             "u8[n,7,7,8]; " OTHERS "i8[32,1,1,16]; f32[32]; i8[]; f32[]; u8[]", "u8[n,4,4,32]");
    op_infer_fails("QLinearConvChain", "",
                   "u8[n,7,7,8]; " OTHERS "i8[32,2,1,16]; f32[32]; i8[]; f32[]; u8[]", 1,
                   "windows are not points");
    op_infer_fails("QLinearConvChain", "",
                   "u8[n,7,7,8]; " OTHERS "i8[32,1,1,8]; f32[32]; i8[]; f32[]; u8[]", 1,
                   "input channels and weight channels");
#undef OTHERS
#undef SECOND
#undef FIRST
}

static void qlinear_conv_next(void **state)
{
#define FIRST  "f32[] 1; u8[] 0; i8[2,1,1,1] 2 3; f32[] 1; i8[] 0; f32[] 1; u8[] 4; "
#define SECOND "i8[1,1,1,2] 10 1; f32[] 1; i8[] 0; f32[] 2; u8[] 1; f32[] 1; u8[] 4"
#define OTHERS "f32[]; u8[]; i8[16,1,1,8]; f32[16]; i8[]; f32[]; i8[]; "
#define SUM    "sum=u8(round(f32(x0)+f32(x1)*2))"
    (void)state;
    /* h = 2 x + 4 and 3 x + 4, which count from 4 on: (20 x + 3 x) / 2 + 1; with biases of 1 and 4;
     * with twice the residual */
    op_eval("QLinearConvNext", "", "u8[1,2,1,1] 2 4; " FIRST SECOND,
            "u8[1,2,1,2] 8 10 12 16; u8[1,2,1,1] 24 47", 0);
    op_eval("QLinearConvNext", "", "u8[1,2,1,1] 2 4; " FIRST SECOND "; i32[2] 1 0; i32[1] 4",
            "u8[1,2,1,2] 9 10 13 16; u8[1,2,1,1] 31 54", 0);
    op_eval("QLinearConvNext", SUM, "u8[1,2,1,1] 2 4; " FIRST SECOND "; -; -; i8[1,2,1,2] 1 0 0 -2",
            "u8[1,2,1,2] 10 10 12 12; u8[1,2,1,1] 34 45", 0);
    op_infer("QLinearConvNext", "sum=u8(x1)",
             "u8[n,7,7,8]; " OTHERS "i8[32,1,1,16]; f32[32]; i8[]; f32[]; i8[]; f32[]; u8[]; -; -; "
             "u8[n,7,7,16]",
             "u8[n,7,7,16]; i8[n,7,7,32]");
    op_infer_fails("QLinearConvNext", "",
                   "u8[n,7,7,8]; " OTHERS "i8[32,1,1,16]; f32[32]; i8[]; f32[]; u8[]; f32[]; u8[]",
                   2, "u8");
    op_infer_fails("QLinearConvNext", "",
                   "u8[n,7,7,8]; " OTHERS "i8[32,1,2,16]; f32[32]; i8[]; f32[]; u8[]; f32[]; i8[]",
                   2, "second convolution's windows are not points");
    op_infer_fails("QLinearConvNext", SUM,
                   "u8[n,7,7,8]; " OTHERS "i8[32,1,1,16]; f32[32]; i8[]; f32[]; u8[]; f32[]; u8[]",
                   2, "need each other");
    op_infer_fails("QLinearConvNext", SUM,
                   "u8[n,7,7,8]; " OTHERS "i8[32,1,1,16]; f32[32]; i8[]; f32[]; u8[]; f32[]; u8[]; "
                   "-; -; u8[n,7,6,16]",
                   2, "the residual has a wrong shape");
#undef SUM
#undef OTHERS
#undef SECOND
#undef FIRST
}

static void conv_image(void **state)
{
    (void)state;
    /* -x, of which the largest in windows of 2 x 2 that begin before the first: padding is no 0 */
    op_eval("ConvImage", "pool_shape=2,2 pool_strides=2,2 pool_pads=1,1,0,0",
            "f32[1,1,3,3] 1 2 3 4 5 6 7 8 9; f32[1,1,1,1] -1", "f32[1,2,2,1] -1 -2 -4 -5", 1e-6);
    op_eval("ConvImage", "pool_shape=1,2", "f32[1,1,1,3] nan 1 2; f16[1,1,1,1] 1",
            "f16[1,1,2,1] nan 2", 0);
    op_infer("ConvImage",
             "pads=3,3,3,3 strides=2,2 pool_shape=3,3 pool_pads=1,1,1,1 pool_strides=2,2",
             "f32[n,3,224,230]; f16[64,7,7,3]; f16[64]", "f16[n,56,58,64]");
    op_infer("ConvImage", "strides=2,2 pool_shape=3,3 pool_strides=2,2 pool_ceil_mode=1",
             "f32[n,3,224,224]; f16[64,3,3,3]", "f16[n,55,55,64]");
    op_infer("ConvImage", "pool_shape=3,3 pool_auto_pad=SAME_UPPER pool_strides=2,2",
             "f32[n,3,9,9]; f16[8,1,1,3]", "f16[n,5,5,8]");
    op_infer_fails("ConvImage", "pool_shape=3", "f32[n,3,9,9]; f16[8,1,1,3]", 1, "kernel_shape");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(squeeze_excite),    cmocka_unit_test(conv_pair),
        cmocka_unit_test(qlinear_conv_pair), cmocka_unit_test(qlinear_conv_chain),
        cmocka_unit_test(qlinear_conv_next), cmocka_unit_test(conv_image),
    };
    return cmocka_run_group_tests_name("channels_last", tests, NULL, NULL);
}
