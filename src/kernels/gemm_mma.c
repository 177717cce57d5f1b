#include "kernels/matmul.h"

/* ---- the specialisation ---- */

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

/* ---- the launch ---- */

zc_status zc_launch_gemm_mma(zc_launch *l)
{
    zc_matmul_form form;
    zc_matmul mm;
    struct zc_gemm_params p;
    zc_dim3 grid;
    ZC_TRY(zc_matmul_form_launch(l, &form));
    ZC_TRY(zc_matmul_of(l, &form, &mm));
    zc_matmul_simplify(&form, &mm);
    if (mm.batch == 0) return ZC_OK;
    if (mm.m <= ZC_GEMM_SMALL_M) return zc_matmul_launch_small(l, &form, &mm, 2, sizeof(float));
    ZC_TRY(zc_matmul_grid(l, &mm, 128, 128, &grid));
    bool large = mm.m > 64 && mm.n > 64 && (int64_t)grid.x * grid.z >= l->sm_count;
    int side = large ? 128 : 64;
    ZC_TRY(zc_matmul_params(l, &form, &mm, 16, &p));
    ZC_TRY(zc_matmul_grid(l, &mm, side, side, &grid));
    /* Three stages of two tiles of 64 bytes a line; two threads a line. */
    const zc_matmul_tiles tiles = {.entry = large ? 0 : 1,
                                   .split_entry = large ? -1 : 5,
                                   .grid = grid,
                                   .threads = (uint32_t)side * 2,
                                   .smem = (uint32_t)(3 * 2 * 64 * side),
                                   .sum_bytes = sizeof(float)};
    return zc_matmul_launch_tiles(l, &form, &mm, &tiles, &p);
}
