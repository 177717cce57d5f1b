/* GatedLinear by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/op_text.h"

static void values(void **state)
{
    (void)state;
    /* relu(x w^T + bias) is 3 0 and 7 0, x v^T + gate_bias 10 20 and 30 40 */
    op_eval("GatedLinear", "activation=Relu",
            "f32[2,2] 1 2 3 4; f32[2,2] 1 1 -1 0; f32[2,2] 10 0 0 10; f32[2] 0 -1; f32[2] 0 0",
            "f32[2,2] 30 0 210 0", 1e-6);
    op_eval("GatedLinear", "activation=LeakyRelu activation_params=0.5",
            "f32[1,1,2] 1 2; f32[1,2] -1 -1; f32[1,2] 2 1", "f32[1,1,1] -6", 1e-6);
    op_eval("GatedLinear", "", "f32[1,1] 3; f32[1,1] 2; f32[1,1] 5", "f32[1,1] 90", 1e-6);
}

static void shapes(void **state)
{
    (void)state;
    op_infer("GatedLinear", "activation=Swish",
             "f16[n,s,8]; f16[24,8]; f16[24,8]; f16[24]; f16[24]", "f16[n,s,24]");
    op_infer_fails("GatedLinear", "", "f16[n,8]; f16[24,8]; f16[16,8]", 1,
                   "dimensions of the two matrices");
    op_infer_fails("GatedLinear", "", "f16[n,8]; f16[8,24]; f16[8,24]", 1,
                   "inner dimensions of the product");
    op_infer_fails("GatedLinear", "", "f16[n,8]; f16[24,8]; f16[24,8]; f16[24]", 1,
                   "bias and gate_bias belong together");
    op_infer_fails("GatedLinear", "activation=Add", "f16[n,8]; f16[24,8]; f16[24,8]", 1,
                   "unknown activation (got \"Add\")");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
