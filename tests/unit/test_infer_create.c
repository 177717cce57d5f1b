#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/op_text.h"

static void shape_and_size(void **state)
{
    (void)state;
    op_infer("Shape", "", "f32[b,seq,768]", "i64[3] = b,seq,768");
    op_infer("Shape", "start=1", "f32[b,seq,768]", "i64[2] = seq,768");
    op_infer("Shape", "start=-2 end=-1", "f32[b,seq,768]", "i64[1] = seq");
    op_infer("Shape", "start=2 end=1", "f32[b,seq,768]", "i64[0]");
    op_infer("Shape", "start=-9223372036854775808", "f32[b]", "i64[1] = b");
    op_infer("Shape", "", "f32*", "i64[?]");
    op_infer("Size", "", "f32[b,seq,2]", "i64[] = 2*b*seq");
    op_infer("Size", "", "f32[]", "i64[] = 1");
    op_infer("Size", "", "f32*", "i64[]");
}

static void constant_of_shape(void **state)
{
    (void)state;
    op_infer("ConstantOfShape", "", "i64[2] = n,3", "f32[n,3]");
    op_infer("ConstantOfShape", "value=i64[1]:-1", "i64[1] = 3", "i64[3] = -1,-1,-1");
    op_infer("ConstantOfShape", "value=i64[1]:7", "i64[1] = n", "i64[n]");
    op_infer("ConstantOfShape", "value=bool[1]:1", "i64[0] =", "bool[] = 1");
    op_infer("ConstantOfShape", "", "i64[2]", "f32[?,?]");
    op_infer("ConstantOfShape", "", "i64[?]", "f32*");
    op_infer_fails("ConstantOfShape", "", "i64[1] = -1", 1, "negative or overflowing dimension 0");
    op_infer_fails("ConstantOfShape", "value=f32[2]:1,2", "i64[1] = 1", 1,
                   "needs one element (got 2)");
}

static void range(void **state)
{
    (void)state;
    op_infer("Range", "", "i64[] = 0; i64[] = n; i64[] = 1", "i64[n]");
    op_infer("Range", "", "i64[] = past; i64[] = past+seq; i64[] = 1", "i64[seq]");
    op_infer("Range", "", "i64[] = n; i64[] = 0; i64[] = -2", "i64[cdiv(n,2)]");
    op_infer("Range", "", "i64[] = 1; i64[] = n; i64[] = 1", "i64[max(n-1,0)]");
    op_infer("Range", "", "i32[] = 10; i32[] = 4; i32[] = -2", "i32[3] = 10,8,6");
    op_infer("Range", "", "i64[] = n; i64[] = n+3; i64[] = 1", "i64[3] = n,n+1,n+2");
    op_infer("Range", "", "i64[] = 3; i64[] = 1; i64[] = 1", "i64[0]");
    op_infer("Range", "", "i64[] = 0; i64[] = 9; i64[]", "i64[?]");
    op_infer("Range", "", "f32[]; f32[]; f32[]", "f32[?]");
    op_infer_fails("Range", "", "i64[] = 0; i64[] = n; i64[] = 0", 1, "delta is 0");
    op_infer_fails("Range", "",
                   "i64[] = -9223372036854775808; i64[] = 9223372036854775807; i64[] = 1", 1,
                   "too many elements");
    op_infer_fails("Range", "", "i64[2] = 0,1; i64[] = 3; i64[] = 1", 1,
                   "start must be one number (got shape [2])");
}

static void patterns(void **state)
{
    (void)state;
    op_infer("EyeLike", "dtype=f16", "i32[n,m]", "f16[n,m]");
    op_infer("EyeLike", "", "i32[n,m]", "i32[n,m]");
    op_infer_fails("EyeLike", "", "f32[2]", 1, "wrong rank (got 1, need 2)");
    op_infer("Trilu", "", "f32[b,s,s]; i64[] = 1", "f32[b,s,s]");
    op_infer_fails("Trilu", "", "f32[s]", 1, "wrong rank (got 1");
}

static void blocks(void **state)
{
    (void)state;
    op_infer("DepthToSpace", "blocksize=2", "f32[n,4*c,h,w]", "f32[n,c,2*h,2*w]");
    op_infer("SpaceToDepth", "blocksize=2", "f32[n,c,2*h,6]", "f32[n,4*c,h,3]");
    op_infer_fails("DepthToSpace", "blocksize=2", "f32[1,6,2,2]", 1,
                   "axis 1 is no multiple of 4 (got 6)");
    op_infer_fails("DepthToSpace", "", "f32[1,4,2,2]", 1, "blocksize out of range (got 0");
    op_infer_fails("DepthToSpace", "blocksize=4611686018427387904", "f32[1,4,2,2]", 1,
                   "out of range");
    op_infer_fails("DepthToSpace", "blocksize=2 mode=RCD", "f32[1,4,2,2]", 1,
                   "unknown mode (got RCD");
    op_infer_fails("SpaceToDepth", "blocksize=-1", "f32[1,4,2,2]", 1,
                   "blocksize out of range (got -1");
    op_infer("ReverseSequence", "", "f32[t,b,4]; i64[b]", "f32[t,b,4]");
    op_infer_fails("ReverseSequence", "time_axis=1", "f32[2,3]; i64[3]", 1, "must be 0 and 1");
    op_infer_fails("ReverseSequence", "", "f32[2,3]; i64[2]", 1, "(got 2 and 3)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shape_and_size), cmocka_unit_test(constant_of_shape),
        cmocka_unit_test(range),          cmocka_unit_test(patterns),
        cmocka_unit_test(blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
