#include "kernels/matmul.h"

/* ---- the specialisation ---- */

zc_status zc_gen_gemm_simt(zc_gen *g)
{
    zc_matmul_form form;
    zc_dtype dtype = zc_gen_out_type(g, 0);
    ZC_TRY(zc_gen_matmul_form(g, &form));
    if (g->declined[0]) return ZC_OK;
    if (!zc_gen_plain_type(dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(dtype));
    if (form.activation && !zc_dtype_is_float(dtype))
        return zc_gen_decline(g, "activation of element type %s", zc_dtype_name(dtype));
    return zc_gen_matmul_spec(g, &form);
}

/* ---- the launch ---- */

/* Bytes of the four tiles of square<side> in gemm_simt.cu. */
static uint32_t tile_bytes(int side, int number)
{
    int vector = number == 8 ? 2 : 4, lines = 16 * side, depth = ZC_GEMM_THREADS * vector / lines;
    return (uint32_t)(4 * depth * (lines + 16 / number) * number);
}

zc_status zc_launch_gemm_simt(zc_launch *l)
{
    zc_matmul_form form;
    zc_matmul mm;
    struct zc_gemm_params p;
    zc_dim3 grid;
    zc_dtype dtype = l->out[0].dtype;
    ZC_TRY(zc_matmul_form_launch(l, &form));
    ZC_TRY(zc_matmul_of(l, &form, &mm));
    zc_matmul_simplify(&form, &mm);
    if (mm.batch == 0) return ZC_OK;
    int bytes = (int)zc_dtype_bits(dtype) / 8, number = bytes == 8 ? 8 : 4;
    int sum = zc_matmul_scales_ints(&form, dtype) ? 8 : number, side = sum == 8 ? 4 : 8;
    if (mm.m <= ZC_GEMM_SMALL_M) return zc_matmul_launch_small(l, &form, &mm, 2, (size_t)sum);
    ZC_TRY(zc_matmul_grid(l, &mm, 16 * side, 16 * side, &grid));
    bool large = (int64_t)grid.x * grid.z >= l->sm_count;
    if (!large) side /= 2;
    ZC_TRY(zc_matmul_params(l, &form, &mm, (number == 8 ? 2 : 4) * bytes, &p));
    ZC_TRY(zc_matmul_grid(l, &mm, 16 * side, 16 * side, &grid));
    const zc_matmul_tiles tiles = {.entry = large ? 0 : 1,
                                   .split_entry = large ? -1 : 5,
                                   .grid = grid,
                                   .threads = ZC_GEMM_THREADS,
                                   .smem = tile_bytes(side, number),
                                   .sum_bytes = (size_t)sum};
    return zc_matmul_launch_tiles(l, &form, &mm, &tiles, &p);
}
