#include "kernels/matmul.h"

/* A sum of so many products of 8-bit numbers, each less its zero point, fits 32 bits: 2^31 / 255^2.
 */
enum { MAX_DEPTH = 33025 };

zc_status zc_launch_gemm_quant_mma(zc_launch *l)
{
    zc_matmul_form form;
    zc_matmul mm;
    struct zc_gemm_quant_params p;
    zc_dim3 grid;
    ZC_TRY(zc_matmul_quant(l, &form, &mm, &p));
    if (mm.batch == 0) return ZC_OK;
    if (l->out[0].dtype != ZC_I32 && mm.k > MAX_DEPTH)
        return zc_matmul_launch_general(l, 2, &mm, &p);
    if (zc_matmul_aligned(&l->in[form.a], &mm.view[ZC_MM_A], &mm, p.a_ld, 16))
        p.aligned |= ZC_GEMM_A_ALIGNED;
    if (zc_matmul_aligned(&l->in[form.b], &mm.view[ZC_MM_B], &mm, p.b_ld, 4))
        p.aligned |= ZC_GEMM_B_ALIGNED;
    ZC_TRY(zc_matmul_grid(l, &mm, 128, 128, &grid));
    bool large = mm.m > 64 && mm.n > 64 && (int64_t)grid.x * grid.z >= l->sm_count;
    int side = large ? 128 : 64;
    ZC_TRY(zc_matmul_grid(l, &mm, side, side, &grid));
    /* Three stages of two tiles of 64 bytes a line; two threads a line. */
    return zc_launch_kernel(l, large ? 0 : 1, grid, (uint32_t)side * 2,
                            (uint32_t)(3 * 2 * 64 * side), &p, sizeof p);
}
