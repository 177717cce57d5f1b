#include "codegen/gen_matmul.h"

/* Products of these types keep their accuracy on the tensor cores. f32 would be rounded to tf32
 * first, so it is not among them. */
static bool has_tensor_cores(zc_dtype dtype)
{
    return dtype == ZC_F16 || dtype == ZC_BF16;
}

zc_status zc_gen_gemm_mma(zc_gen *g)
{
    zc_matmul_form form;
    zc_dtype dtype = zc_gen_out_type(g, 0);
    if (!has_tensor_cores(dtype))
        return zc_gen_decline(g, "no exact tensor core product of %s", zc_dtype_name(dtype));
    ZC_TRY(zc_gen_matmul_form(g, &form));
    if (g->declined[0]) return ZC_OK;
    zc_gen_define(g, "BF16", "%d", dtype == ZC_BF16);
    return zc_gen_matmul_spec(g, &form);
}
