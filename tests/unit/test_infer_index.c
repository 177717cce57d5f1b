#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/op_text.h"

static void gather(void **state)
{
    (void)state;
    op_infer("Gather", "", "f32[30522,768]; i64[b,s]", "f32[b,s,768]");
    op_infer("Gather", "axis=-1", "f32[n,4]; i64[] = 0", "f32[n]");
    op_infer("Gather", "", "i64[3] = b,s,768; i64[] = 1", "i64[] = s");
    op_infer("Gather", "", "i64[3] = b,s,768; i64[2] = -1,0", "i64[2] = 768,b");
    op_infer("Gather", "", "i64[3] = b,s,768; i64[1]", "i64[1]");
    op_infer_fails("Gather", "", "f32[3]; i64[1] = 3", 1,
                   "index out of range (got 3, need [-3, 2])");
    op_infer_fails("Gather", "", "f32[3]; i64[1] = -4", 1,
                   "index out of range (got -4, need [-3, 2])");
    op_infer_fails("Gather", "axis=1", "f32[3]; i64[1] = 0", 1, "axis out of range (got 1");
    op_infer_fails("Gather", "", "f32[3]; f32[1]", 1, "indices must be integers (got f32)");
    op_infer_fails("Gather", "", "f32[1,1,1,1,1,1,1,1,1]; i64[1,1,1,1,1,1,1,1,1]", 1,
                   "rank too large");
}

static void gather_others(void **state)
{
    (void)state;
    op_infer("GatherElements", "axis=1", "f32[n,9]; i64[n,k]", "f32[n,k]");
    op_infer_fails("GatherElements", "", "f32[3,3]; i64[1,4]", 1, "indices exceed the data");
    op_infer_fails("GatherElements", "", "f32[3,3]; i64[1]", 1, "wrong rank (got 1, need 2)");
    op_infer("GatherND", "batch_dims=1", "f32[b,5,6,7]; i64[b,k,2]", "f32[b,k,7]");
    op_infer("GatherND", "", "f32[5,6]; i64[k,n]", "f32*");
    op_infer_fails("GatherND", "", "f32[5,6]; i64[4,3]", 1, "wrong length (got 3, need 1 to 2)");
    op_infer_fails("GatherND", "batch_dims=2", "f32[5,6]; i64[5,6,1]", 1,
                   "batch_dims out of range");
    op_infer_fails("GatherND", "batch_dims=1", "f32[5,6]; i64[4,1]", 1, "(got 5 and 4)");
}

static void scatter(void **state)
{
    (void)state;
    op_infer("ScatterElements", "axis=1", "f32[n,9]; i64[n,2]; f32[n,2]", "f32[n,9]");
    op_infer_fails("ScatterElements", "reduction=avg", "f32[3]; i64[1]; f32[1]", 1,
                   "unknown reduction (got avg, need none, add, mul, max or min)");
    op_infer_fails("ScatterElements", "", "f32[3]; i64[1]; f32[2]", 1, "(got 1 and 2)");
    op_infer_fails("ScatterElements", "", "f32[3]; i64[1]; f16[1]", 1, "differ in element type");
    op_infer("ScatterND", "", "f32[n,9]; i64[k,1]; f32[k,9]", "f32[n,9]");
    op_infer_fails("ScatterND", "", "f32[4,9]; i64[2,1]; f32[2,8]", 1, "(got 8 and 9)");
    op_infer_fails("ScatterND", "", "f32[4,9]; i64[2,3]; f32[2]", 1, "wrong length (got 3");
    op_infer("TensorScatter", "", "f32[b,8,max_seq,64]; f32[b,8,seq,64]; i64[b]",
             "f32[b,8,max_seq,64]");
    op_infer_fails("TensorScatter", "axis=0", "f32[2,4]; f32[2,1]", 1, "axis is the batch axis");
    op_infer_fails("TensorScatter", "axis=1", "f32[2,4]; f32[2,5]", 1, "longer than the cache");
    op_infer_fails("TensorScatter", "mode=ring", "f32[2,4,1]; f32[2,1,1]", 1,
                   "unknown mode (got ring");
}

static void one_hot(void **state)
{
    (void)state;
    op_infer("OneHot", "", "i64[n]; i64[] = 5; f32[2]", "f32[n,5]");
    op_infer("OneHot", "axis=0", "i64[n]; i64[1] = d; f32[2]", "f32[d,n]");
    op_infer("OneHot", "", "i64[n]; f32[]; i8[2]", "i8[n,?]");
    op_infer_fails("OneHot", "", "i64[n]; i64[] = 5; f32[3]", 1, "two elements");
    op_infer_fails("OneHot", "axis=2", "i64[n]; i64[] = 5; f32[2]", 1, "axis out of range");
    op_infer_fails("OneHot", "", "i64[n]; i64[] = -5; f32[2]", 1, "depth is negative");
}

static void searches(void **state)
{
    (void)state;
    op_infer("NonZero", "", "f32[n,m]", "i64[2,?]");
    op_infer("Compress", "axis=1", "f32[n,4]; bool[4]", "f32[n,?]");
    op_infer("Compress", "", "f32[n,4]; bool[4]", "f32[?]");
    op_infer_fails("Compress", "", "f32[4]; i64[4]", 1, "must be bool (got i64)");
    op_infer("Unique", "axis=0", "f32[n,4]", "f32[?,4]; i64[?]; i64[n]; i64[?]");
    op_infer("Unique", "", "f32[n,4]", "f32[?]; i64[?]; i64[4*n]; i64[?]");
    op_infer("TopK", "axis=0", "f32[n,4]; i64[1] = k", "f32[k,4]; i64[k,4]");
    op_infer_fails("TopK", "", "f32[4]; i64[1] = 5", 2, "K out of range (got 5, axis 0 of [4])");
    op_infer_fails("TopK", "", "f32[4]; i64[1] = -1", 2, "K out of range (got -1");
    op_infer_fails("TopK", "", "f32[4]; i64[1,1]", 2, "K must be one number (got shape [1,1])");
    op_infer("ArgMax", "axis=1", "f32[n,4]", "i64[n,1]");
    op_infer("ArgMin", "axis=-1 keepdims=0", "f32[n,4]", "i64[n]");
    op_infer_fails("ArgMax", "axis=2", "f32[n,4]", 1, "axis out of range (got 2, need [-2, 1])");
    op_infer("CumSum", "", "f32[n,4]; i32[] = -1", "f32[n,4]");
    op_infer_fails("CumSum", "", "f32[n,4]; i64[] = 2", 1, "axis out of range (got 2");
    op_infer_fails("Hardmax", "axis=-3", "f32[n,4]", 1, "axis out of range (got -3");
}

static void reductions(void **state)
{
    (void)state;
    op_infer("ReduceMean", "", "f32[b,s,768]; i64[1] = -1", "f32[b,s,1]");
    op_infer("ReduceMax", "keepdims=0", "f32[b,c,h,w]; i64[2] = 2,3", "f32[b,c]");
    op_infer("ReduceSum", "", "f32[b,s]", "f32[1,1]");
    op_infer("ReduceSum", "noop_with_empty_axes=1", "f32[b,s]; i64[0] =", "f32[b,s]");
    op_infer("ReduceSum", "keepdims=0", "f32[b,s]; i64[0] =", "f32[]");
    op_infer("ReduceSum", "", "f32[b,s]; i64[1]", "f32[?,?]");
    op_infer("ReduceSum", "keepdims=0", "f32[b,s]; i64[1]", "f32[?]");
    op_infer("ReduceProd", "keepdims=0", "i64[3] = b,s,4", "i64[] = 4*b*s");
    op_infer("ReduceSum", "", "i64[2] = b,s", "i64[1] = b+s");
    op_infer("ReduceMax", "keepdims=0", "i64[2] = b,s", "i64[] = max(b,s)");
    op_infer("ReduceMin", "keepdims=0", "i64[1] = b; i64[1] = 0", "i64[] = b");
    op_infer("ReduceL1", "keepdims=0", "i64[2] = b,s", "i64[]");
    op_infer_fails("ReduceSum", "", "f32[2]; i64[1] = 1", 1,
                   "axis out of range (got 1, need [-1, 0])");
    op_infer_fails("ReduceSum", "", "f32[2,2]; i64[2] = 1,-1", 1, "axis 1 is given twice");
    op_infer_fails("ReduceSum", "", "bool[2]", 1, "ReduceSum does not take bool");
    op_infer_fails("ReduceMean", "", "f32[2]; f32[1]", 1, "axes must be integers (got f32)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gather),  cmocka_unit_test(gather_others), cmocka_unit_test(scatter),
        cmocka_unit_test(one_hot), cmocka_unit_test(searches),      cmocka_unit_test(reductions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
