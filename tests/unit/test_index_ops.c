#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "support/op_text.h"

static void gather(void **state)
{
    (void)state;
    op_eval("Gather", "", "f32[3,2] 1 2 3 4 5 6; i64[2] -1 0", "f32[2,2] 5 6 1 2", 0);
    op_eval("Gather", "axis=1", "i8[2,3] 1 2 3 4 5 6; i32[2,1] 2 0", "i8[2,2,1] 3 1 6 4", 0);
    op_eval("Gather", "", "u4[3] 1 2 3; i64[] 2", "u4[] 3", 0);
    op_eval("Gather", "", "f32[0]; i64[0]", "f32[0]", 0);
    op_eval_fails("Gather", "", "f32[3] 1 2 3; i64[1,2] 0 -10", 1, ZC_ERR_INPUT,
                  "index 1 out of range (got -10, need [-3, 2])");
    op_eval_fails("Gather", "", "f32[3] 1 2 3; i64[1] 3", 1, ZC_ERR_MODEL,
                  "index out of range (got 3, need [-3, 2])");
}

static void gather_elements(void **state)
{
    (void)state;
    op_eval("GatherElements", "axis=1", "f32[2,2] 1 2 3 4; i64[2,2] 0 0 1 0", "f32[2,2] 1 1 4 3",
            0);
    op_eval("GatherElements", "axis=0", "f32[3,3] 1 2 3 4 5 6 7 8 9; i32[2,2] -1 1 0 2",
            "f32[2,2] 7 5 1 8", 0);
    op_eval_fails("GatherElements", "axis=0", "f32[2,1] 1 2; i64[1,1] 2", 1, ZC_ERR_INPUT,
                  "index 0 out of range (got 2, need [-2, 1])");
}

static void gather_nd(void **state)
{
    (void)state;
    op_eval("GatherND", "", "i32[2,2] 0 1 2 3; i64[2,2] 0 0 1 -1", "i32[2] 0 3", 0);
    op_eval("GatherND", "", "i32[2,2] 0 1 2 3; i64[2,1] 1 0", "i32[2,2] 2 3 0 1", 0);
    op_eval("GatherND", "batch_dims=1", "i32[2,2,2] 0 1 2 3 4 5 6 7; i64[2,1] 1 0",
            "i32[2,2] 2 3 4 5", 0);
    op_eval_fails("GatherND", "", "i32[2,2] 0 1 2 3; i64[1,2] 0 2", 1, ZC_ERR_INPUT,
                  "index 1 out of range (got 2, need [-2, 1])");
}

static void scatter_elements(void **state)
{
    (void)state;
    const char *in = "f32[1,5] 1 2 3 4 5; i64[1,2] 1 1; f32[1,2] 1.5 2.5";
    op_eval("ScatterElements", "axis=1", in, "f32[1,5] 1 2.5 3 4 5", 0);
    op_eval("ScatterElements", "axis=1 reduction=add", in, "f32[1,5] 1 6 3 4 5", 0);
    op_eval("ScatterElements", "axis=1 reduction=mul", in, "f32[1,5] 1 7.5 3 4 5", 0);
    op_eval("ScatterElements", "axis=1 reduction=max", in, "f32[1,5] 1 2.5 3 4 5", 0);
    op_eval("ScatterElements", "axis=1 reduction=min", in, "f32[1,5] 1 1.5 3 4 5", 0);
    op_eval("ScatterElements", "reduction=max", "f32[1] 1; i64[1] 0; f32[1] nan", "f32[1] nan", 0);
    op_eval("ScatterElements", "reduction=max", "u64[1] 18446744073709551615; i64[1] 0; u64[1] 1",
            "u64[1] 18446744073709551615", 0);
    op_eval("ScatterElements", "reduction=add", "i8[1] 127; i64[1] 0; i8[1] 1", "i8[1] -128", 0);
    op_eval("ScatterElements", "axis=0", "f32[3,2] 0 0 0 0 0 0; i64[2,2] 2 0 0 1; f32[2,2] 1 2 3 4",
            "f32[3,2] 3 2 0 4 1 0", 0);
    op_eval_fails("ScatterElements", "", "f32[2] 1 2; i64[1] 2; f32[1] 0", 1, ZC_ERR_MODEL,
                  "index out of range (got 2, need [-2, 1])");
}

static void scatter_nd(void **state)
{
    (void)state;
    op_eval("ScatterND", "", "f32[4] 1 2 3 4; i64[3,1] 3 0 3; f32[3] 5 6 7", "f32[4] 6 2 3 7", 0);
    op_eval("ScatterND", "reduction=add", "i32[2,2] 1 2 3 4; i64[2,1] -1 1; i32[2,2] 1 2 3 4",
            "i32[2,2] 1 2 7 10", 0);
    op_eval("ScatterND", "", "f32[2] 1 2; i64[0,1]; f32[0]", "f32[2] 1 2", 0);
    op_eval_fails("ScatterND", "", "f32[2,2] 1 2 3 4; i64[1,2] 0 -3; f32[1] 0", 1, ZC_ERR_INPUT,
                  "index 1 out of range (got -3, need [-2, 1])");
}

static void tensor_scatter(void **state)
{
    (void)state;
    op_eval("TensorScatter", "axis=1", "f32[2,3] 1 2 3 4 5 6; f32[2,2] 7 8 9 10; i64[2] 1 0",
            "f32[2,3] 1 7 8 9 10 6", 0);
    op_eval("TensorScatter", "axis=1", "f32[1,3] 1 2 3; f32[1,1] 9", "f32[1,3] 9 2 3", 0);
    op_eval("TensorScatter", "axis=1 mode=circular", "f32[1,3] 1 2 3; f32[1,2] 8 9; i64[1] -1",
            "f32[1,3] 9 2 8", 0);
    op_eval_fails("TensorScatter", "axis=1", "f32[1,3] 1 2 3; f32[1,2] 8 9; i64[1] 2", 1,
                  ZC_ERR_INPUT, "write index 0 out of range (got 2, need [0, 1])");
}

static void one_hot(void **state)
{
    (void)state;
    op_eval("OneHot", "", "i64[4] 0 -1 3 -4; i64[] 3; f32[2] 2 5",
            "f32[4,3] 5 2 2 2 2 5 2 2 2 2 2 2", 0);
    op_eval("OneHot", "axis=0", "f32[2] 1.7 0; f32[1] 2; bool[2] 0 1", "bool[2,2] 0 1 1 0", 0);
    op_eval("OneHot", "", "i64[1] 0; i64[] 0; f32[2] 0 1", "f32[1,0]", 0);
}

static void select_elements(void **state)
{
    (void)state;
    op_eval("NonZero", "", "f32[2,2] 1 0 -0.0 nan", "i64[2,2] 0 1 0 1", 0);
    op_eval("NonZero", "", "bool[2] 0 0", "i64[1,0]", 0);
    op_eval("NonZero", "", "f32[] 3", "i64[0,1]", 0);
    op_eval("Compress", "axis=1", "f32[2,3] 1 2 3 4 5 6; bool[2] 0 1", "f32[2,1] 2 5", 0);
    op_eval("Compress", "", "f32[2,2] 1 2 3 4; bool[4] 1 0 0 1", "f32[2] 1 4", 0);
    op_eval_fails("Compress", "", "f32[1] 1; bool[2] 1 1", 1, ZC_ERR_INPUT,
                  "selects beyond the data (got 1, need [0, 0])");
}

static void unique(void **state)
{
    (void)state;
    op_eval("Unique", "", "i32[6] 2 1 1 3 4 3",
            "i32[4] 1 2 3 4; i64[4] 1 0 3 4; i64[6] 1 0 0 2 3 2; i64[4] 2 1 2 1", 0);
    op_eval("Unique", "sorted=0", "f32[6] 2 1 1 3 4 3",
            "f32[4] 2 1 3 4; i64[4] 0 1 3 4; i64[6] 0 1 1 2 3 2; i64[4] 1 2 2 1", 0);
    op_eval("Unique", "axis=0", "i8[3,2] 1 0 1 0 -2 3", "i8[2,2] -2 3 1 0; -; i64[3] 1 1 0", 0);
    op_eval("Unique", "", "f32[4] nan 0 nan -0.0", "f32[2] 0 nan; -; -; i64[2] 2 2", 0);
    op_eval("Unique", "", "f32[0]", "f32[0]; i64[0]; i64[0]; i64[0]", 0);
}

static void topk(void **state)
{
    (void)state;
    op_eval("TopK", "", "f32[2,4] 3 1 3 2 0 -1 5 0; i64[1] 3",
            "f32[2,3] 3 3 2 5 0 0; i64[2,3] 0 2 3 2 0 3", 0);
    op_eval("TopK", "axis=0 largest=0", "i32[3,2] 3 1 1 2 2 0; i64[1] 2",
            "i32[2,2] 1 0 2 1; i64[2,2] 1 2 2 0", 0);
    op_eval("TopK", "", "f32[3] 1 nan -inf; i64[1] 3", "f32[3] nan 1 -inf; i64[3] 1 0 2", 0);
    op_eval("TopK", "", "u64[2] 18446744073709551615 1; i64[1] 1", "u64[1] 18446744073709551615",
            0);
    op_eval("TopK", "", "f32[2] 1 2; i64[1] 0", "f32[0]; i64[0]", 0);
}

static void arg_extremes(void **state)
{
    (void)state;
    const char *x = "f32[2,4] 3 1 3 2 -1 nan 7 nan";
    op_eval("ArgMax", "axis=1", x, "i64[2,1] 0 1", 0);
    op_eval("ArgMax", "axis=1 select_last_index=1", x, "i64[2,1] 2 3", 0);
    op_eval("ArgMin", "axis=1 keepdims=0", x, "i64[2] 1 1", 0);
    op_eval("ArgMin", "axis=0", "i8[3,2] 1 -5 1 4 0 -5", "i64[1,2] 2 0", 0);
    op_eval("ArgMin", "axis=0 select_last_index=1", "f16[3] 1 1 2", "i64[1] 1", 0);
    op_eval("Hardmax", "", "f32[2,3] 1 3 3 -1 -2 -3", "f32[2,3] 0 1 0 1 0 0", 0);
    op_eval_fails("ArgMax", "", "f32[0]", 1, ZC_ERR_INPUT, "an axis of length 0 has no extreme");
}

static void running(void **state)
{
    (void)state;
    op_eval("CumSum", "", "f32[2,3] 1 2 3 4 5 6; i64[] 1", "f32[2,3] 1 3 6 4 9 15", 0);
    op_eval("CumSum", "reverse=1", "i32[2,3] 1 2 3 4 5 6; i32[] -1", "i32[2,3] 6 5 3 15 11 6", 0);
    op_eval("CumSum", "exclusive=1", "f32[2,2] 1 2 3 4; i64[1] 0", "f32[2,2] 0 0 1 2", 0);
    op_eval("CumProd", "", "f32[4] 1 2 3 4; i64[] 0", "f32[4] 1 2 6 24", 0);
    op_eval("CumProd", "exclusive=1 reverse=1", "i64[3] 2 3 4; i64[] 0", "i64[3] 12 4 1", 0);
}

#define TREE(nodes, targets, roots)                                                                \
    "f32[1,1] 0; i32[3,4] " nodes "; f32[3] 0 0 0; i32[2] " targets "; f32[2] 5 7; i32[1] " roots

/* Tables of a plan that somebody wrote: walks end, and nothing beside the tables is read. */
static void trees(void **state)
{
    static const char *const broken[] = {
        TREE("0 0 0 2 6 0 0 1 6 0 1 1", "0 0", "0"), /* leads to itself */
        TREE("0 0 1 2 0 0 0 2 6 0 0 1", "0 0", "0"), /* and back */
        TREE("0 0 3 2 6 0 0 1 6 0 1 1", "0 0", "0"), /* beyond the table */
        TREE("0 1 1 2 6 0 0 1 6 0 1 1", "0 0", "0"), /* no such feature */
        TREE("0 -1 1 2 6 0 0 1 6 0 1 1", "0 0", "0"),
        TREE("0 0 1 2 6 0 1 2 6 0 1 1", "0 0", "0"), /* more weights than there are */
        TREE("0 0 1 2 6 0 -1 1 6 0 1 1", "0 0", "0"),
        TREE("0 0 1 2 6 0 0 2147483647 6 0 1 1", "0 0", "0"),
        TREE("0 0 1 2 6 0 0 1 6 0 1 1", "1 0", "0"), /* no such target */
        TREE("0 0 1 2 6 0 0 1 6 0 1 1", "0 0", "3"), /* no such root */
        TREE("0 0 1 2 6 0 0 1 6 0 1 1", "0 0", "-1"),
    };
    (void)state;
    op_eval("TreeEnsemble", "", TREE("0 0 1 2 6 0 0 1 6 0 1 1", "0 0", "0"), "f32[1,1] 5", 0);
    op_eval("TreeEnsemble", "", TREE("1 0 1 2 6 0 0 1 6 0 1 1", "0 0", "0"), "f32[1,1] 7", 0);
    for (size_t i = 0; i < ZC_COUNTOF(broken); i++)
        op_eval_fails("TreeEnsemble", "", broken[i], 1, ZC_ERR_INPUT,
                      "a tree leads to a node, feature or target that does not exist");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gather),       cmocka_unit_test(gather_elements),
        cmocka_unit_test(gather_nd),    cmocka_unit_test(scatter_elements),
        cmocka_unit_test(scatter_nd),   cmocka_unit_test(tensor_scatter),
        cmocka_unit_test(one_hot),      cmocka_unit_test(select_elements),
        cmocka_unit_test(unique),       cmocka_unit_test(topk),
        cmocka_unit_test(arg_extremes), cmocka_unit_test(running),
        cmocka_unit_test(trees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
