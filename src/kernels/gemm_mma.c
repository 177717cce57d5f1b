#include "base/number.h"
#include "kernels/matmul.h"

const char *const zc_config_gemm_mma[] = {"rows", "side", "split", NULL};

/* ---- the specialisation ---- */

/* The tensor cores' product of these elements. f32 is rounded first, so it is asked for. */
static const char *product_of(const zc_gen *g, zc_dtype dtype)
{
    if (dtype == ZC_F16) return "m16n8k16_f16";
    if (dtype == ZC_BF16) return "m16n8k16_bf16";
    return dtype == ZC_F32 && zc_gen_rounds_factors(g) ? "m16n8k8_tf32" : NULL;
}

zc_status zc_gen_gemm_mma(zc_gen *g)
{
    zc_matmul_form form;
    zc_dtype dtype = zc_gen_plain_result(g);
    const char *product = product_of(g, dtype);
    if (!product)
        return zc_gen_decline(g, "no exact tensor core product of %s", zc_dtype_name(dtype));
    ZC_TRY(zc_gen_matmul_form(g, &form));
    if (g->declined[0]) return ZC_OK;
    static const zc_matmul_tiling tiling = {
        .small = 64, .large = 128, .least = 64, .sum_bytes = sizeof(float)};
    zc_gen_matmul_tiles(g, &form, &tiling);
    int side = (int)g->config[ZC_MM_SIDE];
    if (side) { /* three stages of two tiles of 64 bytes a line; two threads a line */
        zc_gen_define(g, "MMA", "zc_mma_%s", product);
        zc_gen_tensor_cores(g, "mma", dtype);
        zc_snprintf(g->why, sizeof g->why, "mma.%s", product);
        g->threads = (uint32_t)side * 2;
        g->smem = (uint32_t)(3 * 2 * 64 * side);
    }
    return zc_gen_matmul_spec(g, &form);
}

/* ---- the launch ---- */

zc_status zc_launch_gemm_mma(zc_launch *l)
{
    return zc_matmul_launch(l, 16, sizeof(float));
}
