#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/op_text.h"

static void identity_keeps_all(void **state)
{
    (void)state;
    op_infer("Identity", "", "i64[2] = batch,-1", "i64[2] = batch,-1");
    op_infer("Identity", "", "f32*", "f32*");
}

static void reshape_copies_and_infers(void **state)
{
    (void)state;
    op_infer("Reshape", "", "f32[batch,seq,768]; i64[4] = 0,0,12,64", "f32[batch,seq,12,64]");
    op_infer("Reshape", "", "f32[batch,seq,12,64]; i64[3] = batch,seq,-1", "f32[batch,seq,768]");
    op_infer("Reshape", "", "f32[batch,seq,768]; i64[2] = -1,768", "f32[batch*seq,768]");
    op_infer("Reshape", "", "f32[batch,3,h,w]; i64[3] = 0,3,-1", "f32[batch,3,h*w]");
    op_infer("Reshape", "", "f32[n*4,6]; i64[3] = n,-1,2", "f32[n,12,2]");
    op_infer("Reshape", "", "f32[n,m]; i64[2] = 2,-1", "f32[2,m*n/2]");
    op_infer("Reshape", "", "f32[1]; i64[0] =", "f32[]");
    op_infer("Reshape", "", "f32[0,3]; i64[2] = 0,-1", "f32[0,3]");
    op_infer("Reshape", "", "f32[0,4]; i64[2] = 0,2", "f32[0,2]");
    op_infer("Reshape", "allowzero=1", "f32[0,3]; i64[2] = 3,0", "f32[3,0]");
    op_infer("Reshape", "", "f32[2,n]; i64[2]", "f32[?,?]");
    op_infer("Reshape", "", "f32[2,n]; i64[?]", "f32*");
    op_infer("Reshape", "", "f32*; i64[3] = 4,-1,0", "f32[4,?,?]");
    op_infer("Reshape", "", "i64[] = n; i64[1] = 1", "i64[1] = n");
}

static void reshape_faults(void **state)
{
    (void)state;
    op_infer_fails("Reshape", "", "f32[2,3]; i64[2] = 4,-1", 1,
                   "element counts do not agree (got input [2,3] for shape [4,-1])");
    op_infer_fails("Reshape", "", "f32[2,3]; i64[2] = 2,2", 1,
                   "element counts do not agree (got input [2,3] for shape [2,2])");
    op_infer_fails("Reshape", "", "f32[n,3]; i64[3] = 0,2,2", 1,
                   "element counts do not agree (got input [n,3] for shape [n,2,2])");
    op_infer_fails("Reshape", "", "f32[2,3]; i64[2] = -1,-1", 1,
                   "two elements of the shape are -1");
    op_infer_fails("Reshape", "", "f32[2,3]; i64[2] = -2,3", 1, "is negative (got -2");
    op_infer_fails("Reshape", "", "f32[2,3]; i64[3] = 2,3,0", 1, "element 2 of the shape is 0");
    op_infer_fails("Reshape", "allowzero=1", "f32[0,3]; i64[2] = 0,-1", 1, "leaves -1 undefined");
    op_infer_fails("Reshape", "", "f32[2,3]; f32[2]", 1, "shape must be integers (got f32)");
    op_infer_fails("Reshape", "", "f32[1]; i64[17] = 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", 1,
                   "rank too large (got 17, need at most 16)");
}

static void squeeze_and_unsqueeze(void **state)
{
    (void)state;
    op_infer("Squeeze", "", "f32[1,n,1,3]; i64[2] = 0,-2", "f32[n,3]");
    op_infer("Squeeze", "", "f32[1,4,1,3]", "f32[4,3]");
    op_infer("Squeeze", "", "f32[1,n]", "f32*");
    op_infer("Squeeze", "", "f32[1,n+2]", "f32[n+2]");
    op_infer("Squeeze", "", "f32[n,3]; i64[1] = 0", "f32[3]");
    op_infer("Squeeze", "", "f32[1,n]; i64[1]", "f32[?]");
    op_infer("Squeeze", "", "i64[1] = n; i64[1] = 0", "i64[] = n");
    op_infer_fails("Squeeze", "", "f32[2,3]; i64[1] = 1", 1,
                   "axis 1 cannot be removed (got length 3");
    op_infer_fails("Squeeze", "", "f32[1,3]; i64[1] = 2", 1,
                   "axis out of range (got 2, need [-2, 1])");
    op_infer_fails("Squeeze", "", "f32[1,3]; i64[2] = 0,-2", 1, "axis 0 is given twice");

    op_infer("Unsqueeze", "", "f32[n,3]; i64[2] = 0,-1", "f32[1,n,3,1]");
    op_infer("Unsqueeze", "", "i64[] = n; i64[1] = 0", "i64[1] = n");
    op_infer("Unsqueeze", "", "f32[n]; i64[2]", "f32[?,?,?]");
    op_infer_fails("Unsqueeze", "", "f32[2]; i64[1] = 2", 1,
                   "axis out of range (got 2, need [-2, 1])");
    op_infer_fails("Unsqueeze", "", "f32[2]; i64[1] = -9223372036854775808", 1,
                   "axis out of range");
}

static void flatten(void **state)
{
    (void)state;
    op_infer("Flatten", "", "f32[n,3,h]", "f32[n,3*h]");
    op_infer("Flatten", "axis=0", "f32[n,3]", "f32[1,3*n]");
    op_infer("Flatten", "axis=-1", "f32[2,3,4]", "f32[6,4]");
    op_infer("Flatten", "axis=3", "f32[2,3,4]", "f32[24,1]");
    op_infer("First", "axis=1", "f32[1,n,h]", "f32[1,1,h]");
    op_infer("First", "axis=1 drops=1", "f32[1,n,h]", "f32[1,h]");
    op_infer_fails("First", "axis=1", "f32[b,n,h]", 1,
                   "axis 0, in front of axis 1, must be certain to be 1");
    op_infer_fails("First", "axis=1", "f32[1,0,h]", 1, "axis 1 has no rows");
    op_infer_fails("First", "axis=2", "f32[1,3]", 1, "axis out of range (got 2, need [0, 2))");
    op_infer_fails("Flatten", "axis=4", "f32[2,3,4]", 1, "axis out of range (got 4, need [-3, 3])");
}

static void transpose(void **state)
{
    (void)state;
    op_infer("Transpose", "perm=0,2,1,3", "f32[b,s,12,64]", "f32[b,12,s,64]");
    op_infer("Transpose", "", "f32[a,b,c]", "f32[c,b,a]");
    op_infer("Transpose", "", "i64[2] = n,3", "i64[2] = n,3");
    op_infer_fails("Transpose", "perm=0,0", "f32[2,3]", 1, "perm is no permutation (got 0 at 1");
    op_infer_fails("Transpose", "perm=0,2", "f32[2,3]", 1, "perm is no permutation (got 2 at 1");
    op_infer_fails("Transpose", "perm=0", "f32[2,3]", 1, "wrong length (got 1, need the rank 2)");
}

static void concat(void **state)
{
    (void)state;
    op_infer("Concat", "axis=1", "f32[b,past,64]; f32[b,seq,64]", "f32[b,past+seq,64]");
    op_infer("Concat", "axis=-1", "f32[n,2]; f32[4,m]", "f32[4,m+2]");
    op_infer("Concat", "axis=0", "i64[1] = b; i64[2] = -1,768", "i64[3] = b,-1,768");
    op_infer("Concat", "axis=0", "i64[1] = b; i64[2]", "i64[3]");
    op_infer_fails("Concat", "axis=1", "f32[2,3]; f32[4,3]", 1,
                   "inputs differ in another axis than 1 (got [2,3] and, input 1, [4,3])");
    op_infer_fails("Concat", "axis=1", "f32[2,3]; f32[2]", 1, "wrong rank (got 1, need 2)");
    op_infer_fails("Concat", "axis=2", "f32[2,3]; f32[2,3]", 1, "axis out of range");
    op_infer_fails("Concat", "", "f32[2,3]; f32[2,3]", 1, "attribute axis is missing");
    op_infer_fails("Concat", "axis=0", "f32[2]; i64[2]", 1,
                   "differ in element type (got f32 and i64)");
}

static void split(void **state)
{
    (void)state;
    op_infer("Split", "axis=1 num_outputs=3", "f32[n,7]", "f32[n,3]; f32[n,3]; f32[n,1]");
    op_infer("Split", "axis=-1", "f32[n,3*m]; i64[2] = m,2*m", "f32[n,m]; f32[n,2*m]");
    op_infer("Split", "axis=0 num_outputs=2", "f32[2*n]", "f32[n]; f32[n]");
    op_infer("Split", "num_outputs=2", "i64[4] = a,b,c,4", "i64[2] = a,b; i64[2] = c,4");
    op_infer("Split", "axis=0", "f32[n]; i64[2]", "f32[?]; f32[?]");
    op_infer_fails("Split", "", "f32[4]; i64[2] = 1,2", 2, "(got 3 and 4)");
    op_infer_fails("Split", "", "f32[4]; i64[2] = -1,5", 2,
                   "part 0 has a negative length (got -1)");
    op_infer_fails("Split", "", "f32[4]; i64[3] = 1,1,2", 2,
                   "wrong length (got 3, need 2 outputs)");
    op_infer_fails("Split", "num_outputs=4", "f32[5]", 4, "an axis of length 5 has no 4 parts");
    op_infer_fails("Split", "num_outputs=2", "f32[6]", 3, "num_outputs differs");
}

static void expand_and_tile(void **state)
{
    (void)state;
    op_infer("Expand", "", "f32[1,3]; i64[3] = b,n,1", "f32[b,n,3]");
    op_infer("Expand", "", "i64[1] = n; i64[1] = 3", "i64[3] = n,n,n");
    op_infer("Expand", "", "i64[1,min(seq,64)]; i64[2] = batch,seq", "i64[batch,seq]");
    op_infer("Expand", "", "f32[1,3]; i64[3]", "f32[?,?,?]");
    op_infer_fails("Expand", "", "f32[2,3]; i64[1] = 4", 1, "do not broadcast");
    op_infer_fails("Expand", "", "f32[2,3]; i64[1] = -1", 1, "is negative (got -1)");

    op_infer("Tile", "", "f32[n,3]; i64[2] = 2,m", "f32[2*n,3*m]");
    op_infer("Tile", "", "i64[2] = n,1; i64[1] = 2", "i64[4] = n,1,n,1");
    op_infer_fails("Tile", "", "f32[2,3]; i64[1] = 2", 1, "wrong length (got 1, need the rank 2)");
    op_infer_fails("Tile", "", "f32[2]; i64[1] = -1", 1, "repeat 0 is negative (got -1)");
    op_infer_fails("Tile", "", "f32[4194304]; i64[1] = 9223372036854775807", 1,
                   "a dimension is too large (got ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identity_keeps_all),
        cmocka_unit_test(reshape_copies_and_infers),
        cmocka_unit_test(reshape_faults),
        cmocka_unit_test(squeeze_and_unsqueeze),
        cmocka_unit_test(flatten),
        cmocka_unit_test(transpose),
        cmocka_unit_test(concat),
        cmocka_unit_test(split),
        cmocka_unit_test(expand_and_tile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
