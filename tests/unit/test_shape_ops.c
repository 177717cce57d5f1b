#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "support/op_text.h"

static void views(void **state)
{
    (void)state;
    op_eval("Identity", "", "i4[3] 1 -2 7", "i4[3] 1 -2 7", 0);
    op_eval("Reshape", "", "u16[2,3] 1 2 3 4 5 6; i64[2] 3 -1", "u16[3,2] 1 2 3 4 5 6", 0);
    op_eval("Reshape", "", "f32[0,4]; i64[2] 0 2", "f32[0,2]", 0);
    op_eval("Squeeze", "", "f32[1,2,1] 1 2; i64[1] 0", "f32[2,1] 1 2", 0);
    op_eval("Unsqueeze", "", "bool[] 1; i64[2] 1 0", "bool[1,1] 1", 0);
    op_eval("Flatten", "", "f64[2,1,2] 1 2 3 4", "f64[2,2] 1 2 3 4", 0);
    op_eval("First", "axis=1 drops=1", "f64[1,2,2] 1 2 3 4", "f64[1,2] 1 2", 0);
}

static void transpose(void **state)
{
    (void)state;
    op_eval("Transpose", "perm=1,2,0", "f32[2,2,3] 1 2 3 4 5 6 7 8 9 10 11 12",
            "f32[2,3,2] 1 7 2 8 3 9 4 10 5 11 6 12", 0);
    op_eval("Transpose", "", "i8[2,3] 1 2 3 4 5 6", "i8[3,2] 1 4 2 5 3 6", 0);
    op_eval("Transpose", "", "i4[2,3] 1 2 3 -4 5 6", "i4[3,2] 1 -4 2 5 3 6", 0);
    op_eval("Transpose", "", "f4e2m1[2,2] 0.5 -6 3 0", "f4e2m1[2,2] 0.5 3 -6 0", 0);
    op_eval("Transpose", "", "f32[0,3]", "f32[3,0]", 0);
    op_eval("Transpose", "", "f32[] 5", "f32[] 5", 0);
}

static void blocks(void **state)
{
    (void)state;
    op_eval("DepthToSpace", "blocksize=2", "f32[1,8,1,1] 0 1 2 3 4 5 6 7",
            "f32[1,2,2,2] 0 2 4 6 1 3 5 7", 0);
    op_eval("DepthToSpace", "blocksize=2 mode=CRD", "f32[1,8,1,1] 0 1 2 3 4 5 6 7",
            "f32[1,2,2,2] 0 1 2 3 4 5 6 7", 0);
    op_eval("SpaceToDepth", "blocksize=2", "u8[1,1,4,4] 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
            "u8[1,4,2,2] 0 2 8 10 1 3 9 11 4 6 12 14 5 7 13 15", 0);
}

static void concat_and_split(void **state)
{
    (void)state;
    op_eval("Concat", "axis=1", "f32[2,1] 1 2; f32[2,0]; f32[2,2] 3 4 5 6", "f32[2,3] 1 3 4 2 5 6",
            0);
    op_eval("Concat", "axis=-2", "i64[1,2] 1 2; i64[1,2] 3 4", "i64[2,2] 1 2 3 4", 0);
    op_eval("Split", "axis=1", "f32[2,3] 1 2 3 4 5 6; i64[2] 1 2", "f32[2,1] 1 4; f32[2,2] 2 3 5 6",
            0);
    op_eval("Split", "num_outputs=3", "f32[4] 1 2 3 4", "f32[2] 1 2; -; f32[0]", 0);
}

static void slice(void **state)
{
    (void)state;
    const char *x = "f32[2,4] 1 2 3 4 5 6 7 8; ";
    char in[200];
    snprintf(in, sizeof in, "%s i64[2] 1 0; i64[2] 2 3; i64[2] 0 1; i64[2] 1 2", x);
    op_eval("Slice", "", in, "f32[1,2] 5 7", 0);
    snprintf(in, sizeof in, "%s i64[1] -1; i64[1] -9223372036854775808; i64[1] 1; i64[1] -1", x);
    op_eval("Slice", "", in, "f32[2,4] 4 3 2 1 8 7 6 5", 0);
    snprintf(in, sizeof in, "%s i32[1] 9; i32[1] 0; i32[1] 1; i32[1] -3", x);
    op_eval("Slice", "", in, "f32[2,1] 4 8", 0);
    snprintf(in, sizeof in, "%s i64[1] 1; i64[1] 9; i64[1] 1; i64[1] 9223372036854775807", x);
    op_eval("Slice", "", in, "f32[2,1] 2 6", 0);
    snprintf(in, sizeof in, "%s i64[1] 3; i64[1] 0; i64[1] 1; i64[1] -9223372036854775808", x);
    op_eval("Slice", "", in, "f32[2,1] 4 8", 0);
    snprintf(in, sizeof in, "%s i64[1] 3; i64[1] 1", x);
    op_eval("Slice", "", in, "f32[0,4]", 0);
    op_eval("Slice", "", "f32[0]; i64[1] -1; i64[1] -5; -; i64[1] -1", "f32[0]", 0);
}

static void expand_and_tile(void **state)
{
    (void)state;
    op_eval("Expand", "", "f16[2,1] 1 2; i64[3] 2 1 3", "f16[2,2,3] 1 1 1 2 2 2 1 1 1 2 2 2", 0);
    op_eval("Expand", "", "i8[] 3; i64[1] 5", "i8[5] 3 3 3 3 3", 0);
    op_eval("Expand", "", "f32[1] 3; i64[1] 0", "f32[0]", 0);
    op_eval("Tile", "", "f32[1,2] 1 2; i64[2] 2 2", "f32[2,4] 1 2 1 2 1 2 1 2", 0);
    op_eval("Tile", "", "f32[1,2] 1 2; i64[2] 0 2", "f32[0,4]", 0);
}

static void pad(void **state)
{
    (void)state;
    op_eval("Pad", "", "f32[1,2] 1 2; i64[4] 1 0 0 1; f32[] 9", "f32[2,3] 9 9 9 1 2 9", 0);
    op_eval("Pad", "", "f32[4] 1 2 3 4; i64[2] -1 -2", "f32[1] 2", 0);
    op_eval("Pad", "", "f32[2] 1 2; i64[2] 3 -4; f32[] 9", "f32[1] 9", 0);
    op_eval("Pad", "", "i4[2] 1 2; i64[2] 1 0", "i4[3] 0 1 2", 0);
    op_eval("Pad", "", "f32[0]; i64[2] 1 1; f32[] 7", "f32[2] 7 7", 0);
    const char *x = "i32[2,3] 1 2 3 4 5 6; i64[4] 1 2 0 4";
    op_eval("Pad", "mode=reflect", x,
            "i32[3,9] 6 5 4 5 6 5 4 5 6 3 2 1 2 3 2 1 2 3 6 5 4 5 6 5 4 5 6", 0);
    op_eval("Pad", "mode=edge", x, "i32[3,9] 1 1 1 2 3 3 3 3 3 1 1 1 2 3 3 3 3 3 4 4 4 5 6 6 6 6 6",
            0);
    op_eval("Pad", "mode=wrap", x, "i32[3,9] 5 6 4 5 6 4 5 6 4 2 3 1 2 3 1 2 3 1 5 6 4 5 6 4 5 6 4",
            0);
    op_eval("Pad", "mode=reflect", "f32[5] 1 2 3 4 5; i64[2] -2 2", "f32[5] 3 4 5 4 3", 0);
    op_eval("Pad", "mode=reflect", "f32[1] 4; i64[2] 1 2", "f32[4] 4 4 4 4", 0);
    op_eval("Pad", "mode=edge", "f32[2,2] 1 2 3 4; i64[2] 1 0; -; i64[1] -1",
            "f32[2,3] 1 1 2 3 3 4", 0);
    op_eval_fails("Pad", "mode=edge", "f32[0]; i64[2] 1 1", 1, ZC_ERR_INPUT,
                  "axis 0 has no elements to extend");
}

static void center_crop_pad(void **state)
{
    (void)state;
    op_eval("CenterCropPad", "", "f32[5] 1 2 3 4 5; i64[1] 2", "f32[2] 2 3", 0);
    op_eval("CenterCropPad", "axes=1", "f32[1,2] 1 2; i64[1] 5", "f32[1,5] 0 1 2 0 0", 0);
    op_eval("CenterCropPad", "", "f32[2,2] 1 2 3 4; i64[2] 1 4", "f32[1,4] 0 1 2 0", 0);
}

static void reverse_sequence(void **state)
{
    (void)state;
    op_eval("ReverseSequence", "time_axis=1 batch_axis=0",
            "f32[3,3] 1 2 3 4 5 6 7 8 9; i64[3] 1 2 3", "f32[3,3] 1 2 3 5 4 6 9 8 7", 0);
    op_eval("ReverseSequence", "", "f32[3,2] 1 2 3 4 5 6; i64[2] 3 0", "f32[3,2] 5 2 3 4 1 6", 0);
    op_eval_fails("ReverseSequence", "", "f32[2,1] 1 2; i64[1] 3", 1, ZC_ERR_INPUT,
                  "sequence length 0 out of range (got 3, need [0, 2])");
}

static void makers(void **state)
{
    (void)state;
    op_eval("Shape", "start=-2", "f16[2,0,4]", "i64[2] 0 4", 0);
    op_eval("Size", "", "u8[2,3] 0 0 0 0 0 0", "i64[] 6", 0);
    op_eval("ConstantOfShape", "value=i16[1]:-3", "i64[2] 2 2", "i16[2,2] -3 -3 -3 -3", 0);
    op_eval("ConstantOfShape", "value=u4[1]:9", "i64[1] 3", "u4[3] 9 9 9", 0);
    op_eval("ConstantOfShape", "", "i64[0]", "f32[] 0", 0);
    op_eval("Range", "", "f32[] 1; f32[] 2; f32[] 0.3", "f32[4] 1 1.3 1.6 1.9", 1e-7);
    op_eval("Range", "", "i16[] 10; i16[] 4; i16[] -2", "i16[3] 10 8 6", 0);
    /* f16 has no odd numbers from 2048 on: computed in f32, rounded once */
    op_eval("Range", "", "f16[] 2048; f16[] 2052; f16[] 1", "f16[4] 2048 2048 2050 2052", 0);
    op_eval_fails("Range", "", "f32[] 0; f32[] 1; f32[] 0", 1, ZC_ERR_MODEL, "no such range");
    op_eval("EyeLike", "k=1 dtype=f16", "i8[2,3] 0 0 0 0 0 0", "f16[2,3] 0 1 0 0 0 1", 0);
    op_eval("EyeLike", "k=-9223372036854775808", "f32[2,2] 1 1 1 1", "f32[2,2] 0 0 0 0", 0);
    op_eval("Trilu", "", "f32[2,3] 1 2 3 4 5 6; i64[] 1", "f32[2,3] 0 2 3 0 0 6", 0);
    op_eval("Trilu", "upper=0", "f32[2,3] 1 2 3 4 5 6", "f32[2,3] 1 0 0 4 5 0", 0);
    op_eval("Trilu", "upper=0", "f32[1,2] 1 2; i64[] 9223372036854775807", "f32[1,2] 1 2", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views),
        cmocka_unit_test(transpose),
        cmocka_unit_test(blocks),
        cmocka_unit_test(concat_and_split),
        cmocka_unit_test(slice),
        cmocka_unit_test(expand_and_tile),
        cmocka_unit_test(pad),
        cmocka_unit_test(center_crop_pad),
        cmocka_unit_test(reverse_sequence),
        cmocka_unit_test(makers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
