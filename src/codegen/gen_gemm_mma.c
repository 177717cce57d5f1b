#include "codegen/gen_matmul.h"

/* The tensor cores' product of these elements. f32 is rounded first, so it is asked for. */
static const char *product_of(const zc_gen *g, zc_dtype dtype)
{
    if (dtype == ZC_F16) return "zc_mma_m16n8k16_f16";
    if (dtype == ZC_BF16) return "zc_mma_m16n8k16_bf16";
    return dtype == ZC_F32 && g->program->tf32 ? "zc_mma_m16n8k8_tf32" : NULL;
}

zc_status zc_gen_gemm_mma(zc_gen *g)
{
    zc_matmul_form form;
    zc_dtype dtype = zc_gen_out_type(g, 0);
    const char *product = product_of(g, dtype);
    if (!product)
        return zc_gen_decline(g, "no exact tensor core product of %s", zc_dtype_name(dtype));
    ZC_TRY(zc_gen_matmul_form(g, &form));
    if (g->declined[0]) return ZC_OK;
    zc_gen_define(g, "MMA", "%s", product);
    return zc_gen_matmul_spec(g, &form);
}
