#include "cuda/matmul_problem.h"

/* Bytes of the four tiles of square<side> in gemm_simt.cu. */
static uint32_t tile_bytes(int side, int number)
{
    int vector = number == 8 ? 2 : 4, lines = 16 * side, depth = ZC_GEMM_THREADS * vector / lines;
    return (uint32_t)(4 * depth * (lines + 16 / number) * number);
}

enum { PART_MIN = 128 }; /* shorter parts of the summed axis cost more than they bring */

/* Into how many parts the summed axis goes, so that every multiprocessor has about two blocks. */
static int64_t splits_for(const zc_launch *l, const zc_matmul *mm, zc_dim3 grid)
{
    int64_t wanted = 2 * (int64_t)l->sm_count / grid.x, most = mm->k / PART_MIN;
    if (mm->batch != 1 || wanted < 2 || most < 2) return 1;
    if (wanted > most) wanted = most;
    return wanted < ZC_GEMM_SPLITS ? wanted : ZC_GEMM_SPLITS;
}

/* Few tiles and a long sum: parts of it side by side, then added in order. */
static zc_status launch_split(zc_launch *l, const zc_matmul *mm, zc_dim3 grid, uint32_t smem,
                              size_t sum, int64_t splits, struct zc_gemm_params *p)
{
    size_t bytes;
    int64_t elements;
    if (!zc_mul_i64(mm->m, mm->n, &elements) ||
        !zc_mul_size((size_t)elements, (size_t)splits * sum, &bytes))
        return zc_fail_nomem(l->diag, "partial sums", 0);
    ZC_TRY(zc_launch_scratch(l, bytes, &p->partial));
    p->split_k = ((mm->k - 1) / splits / PART_MIN + 1) * PART_MIN;
    p->splits = (mm->k - 1) / p->split_k + 1;
    grid.y = (uint32_t)p->splits;
    ZC_TRY(zc_launch_kernel(l, 5, grid, ZC_GEMM_THREADS, smem, p, sizeof *p));
    zc_dim3 flat = {zc_launch_blocks(elements, ZC_GEMM_THREADS, 8 * l->sm_count), 1, 1};
    return zc_launch_kernel(l, 6, flat, ZC_GEMM_THREADS, 0, p, sizeof *p);
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
    int64_t splits = large ? 1 : splits_for(l, &mm, grid);
    if (splits > 1)
        return launch_split(l, &mm, grid, tile_bytes(side, number), (size_t)sum, splits, &p);
    return zc_launch_kernel(l, large ? 0 : 1, grid, ZC_GEMM_THREADS, tile_bytes(side, number), &p,
                            sizeof p);
}
