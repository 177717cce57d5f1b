#include "cuda/matmul_problem.h"

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
