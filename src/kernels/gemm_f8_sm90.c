/* Products of factors of 8 bits on Hopper whose sums have a scale a column: gemm_sm90.cu of e4m3,
 * or of bytes, whose sums are exact. */
#include "kernels/sm90.h"
#include "op/scaled.h"

const char *const zc_config_gemm_f8_sm90[] = {ZC_SM90_CONFIG};

zc_status zc_gen_gemm_f8_sm90(zc_gen *g)
{
    zc_matmul_form form;
    zc_matmul_sizes s;
    ZC_TRY(zc_gen_sm90_form(g, &form, &s));
    if (g->declined[0]) return ZC_OK;
    if (s.m_low < ZC_SM90_ROWS_ALONE) return zc_gen_decline(g, "few rows");
    /* A thread's two rows, eight apart, are to begin alike within 16 bytes. */
    if (zc_dtype_bits(zc_gen_out_type(g, 0)) == 8 && s.n % 2)
        return zc_gen_decline(g, "results of 8 bits in rows of an odd length");
    const bool bytes = zc_dtype_is_int(zc_gen_in_type(g, form.a));
    if (bytes) zc_gen_define(g, "INTEGERS", "1");
    if (bytes && s.k > ZC_SCALED_BYTES_MOST) return zc_gen_decline(g, "sums beyond 32 bits");
    zc_sm90_problem p = {.m = s.m_high == INT64_MAX ? ZC_MM_FAR : s.m_high,
                         .n = s.n,
                         .steps = zc_ceil_div(s.k, ZC_SM90_LINE),
                         .items = 1,
                         .sm_count = g->sm_count,
                         .fused_tile = zc_sm90_in_pieces(s.n) ? zc_gen_epilogue_tile(g, 16) : -1,
                         .piece = zc_sm90_piece(s.n, zc_gen_out_type(g, 0)),
                         .scales = true,
                         .stepwise = !bytes && s.k > ZC_SM90_F8_SHORT};
    ZC_TRY(zc_gen_sm90(g, &p));
    if (g->declined[0]) return ZC_OK;
    if (!zc_sm90_sends(p.n, zc_gen_out_type(g, 0), g->config))
        zc_gen_define(g, "PIECE", "%d", p.piece);
    ZC_TRY(zc_gen_matmul_spec(g, &form));
    zc_gen_epilogue_cells(g);
    return ZC_OK;
}

zc_status zc_launch_gemm_f8_sm90(zc_launch *l)
{
    return zc_launch_gemm_sm90(l);
}
