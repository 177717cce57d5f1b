/* NaN and infinity through operations, by what their specifications say: the reference kernels, and
 * the fast ones for the same operands. How fast kernels agree at every place of every operand is
 * what tests/kernels asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "support/op_text.h"

typedef struct row {
    const char *op, *attrs, *in, *want;
} row;

static void run(const row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        op_eval(rows[i].op, rows[i].attrs, rows[i].in, rows[i].want, 1e-6);
}

static void greatest_and_least(void **state)
{
    (void)state;
    static const row rows[] = {
        {"ReduceMax", "keepdims=0", "f32[3] 1 nan 2; i64[1] 0", "f32[] nan"},
        {"ReduceMin", "keepdims=0", "f32[3] nan 1 2; i64[1] 0", "f32[] nan"},
        {"ReduceMax", "keepdims=0", "f32[3] -inf -inf nan; i64[1] 0", "f32[] nan"},
        {"ReduceMax", "keepdims=0", "f32[3] -inf inf 1; i64[1] 0", "f32[] inf"},
        {"ReduceMean", "keepdims=0", "f32[3] 1 inf -inf; i64[1] 0", "f32[] nan"},
        {"ReduceLogSumExp", "keepdims=0", "f32[3] 1 nan 2; i64[1] 0", "f32[] nan"},
        {"ReduceLogSumExp", "keepdims=0", "f32[3] 1 inf 2; i64[1] 0", "f32[] inf"},
        {"ReduceLogSumExp", "keepdims=0", "f32[2] -inf -inf; i64[1] 0", "f32[] -inf"},
        {"Max", "", "f32[4] nan 1 inf -inf; f32[4] 1 nan 1 1", "f32[4] nan nan inf 1"},
        {"Min", "", "f32[4] nan 1 inf -inf; f32[4] 1 nan 1 1", "f32[4] nan nan 1 -inf"},
        {"ArgMax", "keepdims=0", "f32[4] 1 nan inf nan", "i64[] 1"},
        {"ArgMin", "keepdims=0", "f32[4] 1 -inf 3 nan", "i64[] 3"},
        {"MaxPool", "kernel_shape=2", "f32[1,1,4] 1 nan -inf -inf", "f32[1,1,3] nan nan -inf"},
        {"AveragePool", "kernel_shape=2", "f32[1,1,4] 1 nan inf -inf", "f32[1,1,3] nan nan nan"},
        {"GlobalMaxPool", "", "f32[1,1,3] nan 3 inf", "f32[1,1,1] nan"},
        {"MaxRoiPool", "pooled_shape=1,1", "f32[1,1,2,2] 1 nan 3 4; f32[1,5] 0 0 0 1 1",
         "f32[1,1,1,1] nan"},
        {"RoiAlign", "mode=max sampling_ratio=2",
         "f32[1,1,2,2] nan 2 3 4; f32[1,4] 0 0 1 1; i64[1] 0", "f32[1,1,1,1] nan"},
    };
    run(rows, ZC_COUNTOF(rows));
}

static void bounds(void **state)
{
    (void)state;
    static const row rows[] = {
        {"Relu", "", "f32[3] nan inf -inf", "f32[3] nan inf 0"},
        {"Clip", "", "f32[3] nan inf -inf; f32[] -1; f32[] 1", "f32[3] nan 1 -1"},
        {"LeakyRelu", "", "f32[3] nan inf -inf", "f32[3] nan inf -inf"},
        {"HardSigmoid", "", "f32[3] nan inf -inf", "f32[3] nan 1 0"},
        {"HardSwish", "", "f32[3] nan inf -inf", "f32[3] nan inf nan"}, /* -inf * 0 */
        {"Sigmoid", "", "f32[3] nan inf -inf", "f32[3] nan 1 0"},
        {"Sign", "", "f32[3] nan inf -inf", "f32[3] nan 1 -1"},
        {"ThresholdedRelu", "", "f32[3] nan inf -inf", "f32[3] 0 inf 0"}, /* not above alpha: 0 */
        {"Shrink", "", "f32[3] nan inf -inf", "f32[3] 0 inf -inf"},       /* otherwise: 0 */
    };
    run(rows, ZC_COUNTOF(rows));
}

/* What a type without NaN or infinity holds for them. */
static void narrow_types(void **state)
{
    (void)state;
    static const row rows[] = {
        {"Cast", "to=f4e2m1", "f32[5] nan -nan inf -inf 0.5", "f4e2m1[5] 6 6 6 -6 0.5"},
        {"Cast", "to=f4e2m1", "f16[2] nan -nan", "f4e2m1[2] 6 6"},
        {"Cast", "to=f4e2m1", "f64[2] nan -nan", "f4e2m1[2] 6 6"},
        {"Cast", "to=i32", "f32[1] nan", "i32[1] 0"},
        {"Cast", "to=bool", "f32[2] nan inf", "bool[2] 1 1"},
        {"QuantizeLinear", "", "f32[3] nan inf -inf; f32[] 1; u8[] 3", "u8[3] 0 255 0"},
        {"DynamicQuantizeLinear", "", "f32[3] 1 nan 2", "u8[3] 0 0 0; f32[] nan; u8[] 0"},
        {"DynamicQuantizeLinear", "", "f32[3] 1 inf 2", "u8[3] 0 0 0; f32[] inf; u8[] 0"},
    };
    run(rows, ZC_COUNTOF(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greatest_and_least),
        cmocka_unit_test(bounds),
        cmocka_unit_test(narrow_types),
    };
    return cmocka_run_group_tests_name("not_finite", tests, NULL, NULL);
}
