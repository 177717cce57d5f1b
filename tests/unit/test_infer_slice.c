#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/op_text.h"

static void slice_whole_axis(void **state)
{
    (void)state;
    op_infer("Slice", "", "f32[n,4]; i64[1] = 0; i64[1] = 9223372036854775807; i64[1] = 0",
             "f32[n,4]");
    op_infer("Slice", "", "f32[n,4]; i32[1] = 0; i32[1] = 2147483647; i32[1] = 0", "f32[n,4]");
    op_infer("Slice", "",
             "f32[n]; i64[1] = -1; i64[1] = -9223372036854775808; i64[1] = 0; i64[1] = -1",
             "f32[n]");
    op_infer("Slice", "", "f32[n]; i64[1] = 0; i64[1] = n", "f32[n]");
}

static void slice_symbolic(void **state)
{
    (void)state;
    op_infer("Slice", "", "f32[n]; i64[1] = 1; i64[1] = 9223372036854775807", "f32[max(n-1,0)]");
    op_infer("Slice", "", "f32[n+1]; i64[1] = 1; i64[1] = 9223372036854775807", "f32[n]");
    op_infer("Slice", "", "f32[n]; i64[1] = -1; i64[1] = 9223372036854775807", "f32[min(n,1)]");
    op_infer("Slice", "", "f32[n+1]; i64[1] = -1; i64[1] = 9223372036854775807", "f32[1]");
    op_infer("Slice", "", "f32[n]; i64[1] = 0; i64[1] = -1", "f32[max(n-1,0)]");
    op_infer("Slice", "", "f32[n]; i64[1] = 0; i64[1] = 3", "f32[min(n,3)]");
    op_infer("Slice", "", "f32[512]; i64[1] = 0; i64[1] = seq", "f32[min(seq,512)]");
    op_infer("Slice", "", "f32[past+seq]; i64[1] = past; i64[1] = past+seq", "f32[seq]");
    op_infer("Slice", "", "f32[2*n]; i64[1] = 0; i64[1] = 2*n; -; i64[1] = 2", "f32[n]");
}

static void slice_unknown(void **state)
{
    (void)state;
    op_infer("Slice", "", "f32[n,4]; i64[1]; i64[1]; i64[1] = 0", "f32[?,4]");
    op_infer("Slice", "", "f32[n,4]; i64[1]; i64[1]; i64[1]", "f32[?,?]");
    op_infer("Slice", "", "f32[n,4]; i64[1] = 0; i64[1] = 2; i64[1] = 1; i64[1]", "f32[n,?]");
}

static void slice_vals(void **state)
{
    (void)state;
    op_infer("Slice", "", "i64[4] = a,b,c,d; i64[1] = 1; i64[1] = -1", "i64[2] = b,c");
    op_infer("Slice", "", "i64[3] = a,b,c; i64[1] = -1; i64[1] = -9; i64[1] = 0; i64[1] = -2",
             "i64[2] = c,a");
    op_infer("Slice", "", "i64[3] = a,b,c; i64[1] = 3; i64[1] = 9", "i64[0]");
}

static void slice_faults(void **state)
{
    (void)state;
    op_infer_fails("Slice", "", "f32[4]; i64[1] = 0; i64[1] = 1; i64[1] = 0; i64[1] = 0", 1,
                   "step of axis 0 is 0");
    op_infer_fails("Slice", "", "f32[4]; i64[1] = 0; i64[1] = 1; i64[1] = 1", 1,
                   "axis out of range (got 1, need [-1, 0])");
    op_infer_fails("Slice", "", "f32[4,4]; i64[2] = 0,0; i64[2] = 1,1; i64[2] = 0,-2", 1,
                   "given twice");
    op_infer_fails("Slice", "", "f32[4]; i64[2] = 0,0; i64[1] = 1", 1,
                   "ends has a wrong length (got 1");
    op_infer_fails("Slice", "", "f32[4]; i64[2] = 0,0; i64[2] = 1,1", 1,
                   "more axes than dimensions");
    op_infer_fails("Slice", "", "f32[4]; f32[1]; i64[1] = 1", 1,
                   "starts must be integers (got f32)");
    op_infer_fails("Slice", "", "f32[4]; i64[1,1]; i64[1] = 1", 1,
                   "starts must be a vector (got rank 2)");
}

static void pad(void **state)
{
    (void)state;
    op_infer("Pad", "", "f32[n,c,h,w]; i64[8] = 0,0,1,p,0,0,1,p", "f32[n,c,h+2,2*p+w]");
    op_infer("Pad", "mode=reflect", "f32[n,4]; i64[2] = 1,-2; -; i64[1] = -1", "f32[n,3]");
    op_infer("Pad", "", "f32[n,4]; i64[2]; -; i64[1] = 1", "f32[n,?]");
    op_infer("Pad", "", "f32[n,4]; i64[4]", "f32[?,?]");
    op_infer_fails("Pad", "", "f32[2]; i64[2] = -1,-2", 1,
                   "negative or overflowing dimension 0 (got -1)");
    op_infer_fails("Pad", "", "f32[2]; i64[3] = 1,1,1", 1, "wrong length (got 3");
    op_infer_fails("Pad", "mode=mirror", "f32[2]; i64[2] = 1,1", 1, "unknown mode (got mirror");
    op_infer_fails("Pad", "", "f32[2]; i64[2] = 1,1; i32[]", 1,
                   "differ in element type (got f32 and i32)");
    op_infer_fails("Pad", "", "f32[2]; i64[2] = 1,9223372036854775807", 1,
                   "a dimension is too large (got ");
}

static void center_crop_pad(void **state)
{
    (void)state;
    op_infer("CenterCropPad", "axes=-2,-1", "f32[3,h,w]; i64[2] = 224,s", "f32[3,224,s]");
    op_infer("CenterCropPad", "", "f32[h,w]; i64[2]", "f32[?,?]");
    op_infer_fails("CenterCropPad", "axes=0", "f32[2,2]; i64[2] = 1,1", 1,
                   "wrong length (got 2, need 1");
    op_infer_fails("CenterCropPad", "axes=2", "f32[2,2]; i64[1] = 1", 1, "axis out of range");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slice_whole_axis), cmocka_unit_test(slice_symbolic),
        cmocka_unit_test(slice_unknown),    cmocka_unit_test(slice_vals),
        cmocka_unit_test(slice_faults),     cmocka_unit_test(pad),
        cmocka_unit_test(center_crop_pad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
