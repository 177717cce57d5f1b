#include "base/number.h"
#include "kernels/matmul.h"

const char *const zc_config_gemm_quant_mma[] = {"side", NULL};

/* ---- the specialisation ---- */

zc_status zc_gen_matmul_bytes(zc_gen *g, zc_matmul_form *form, zc_matmul_sizes *s)
{
    ZC_TRY(zc_gen_matmul_form(g, form));
    if (g->declined[0]) return ZC_OK;
    zc_dtype a = zc_gen_in_type(g, form->a), b = zc_gen_in_type(g, form->b);
    if (zc_dtype_is_float(a) || zc_dtype_is_float(b))
        return zc_gen_decline(g, "no exact tensor core product of %s and %s", zc_dtype_name(a),
                              zc_dtype_name(b));
    *s = zc_gen_matmul_sizes(g, form);
    if (zc_gen_out_type(g, 0) != ZC_I32 && (s->k < 0 || s->k > ZC_GQ_DEPTH_MOST))
        return zc_gen_decline(g, "sums that may not fit 32 bits");
    return ZC_OK;
}

zc_status zc_gen_gemm_quant_mma(zc_gen *g)
{
    zc_matmul_form form;
    zc_matmul_sizes s;
    ZC_TRY(zc_gen_matmul_bytes(g, &form, &s));
    if (g->declined[0]) return ZC_OK;
    zc_dtype a = zc_gen_in_type(g, form.a), b = zc_gen_in_type(g, form.b);
    if (form.b_along_k && !form.trans_b) return zc_gen_decline(g, "B is a vector");
    ZC_TRY(zc_gen_quant_spec(g, form.b_along_k));
    if (g->declined[0]) return ZC_OK;
    const char *const types = a == b ? (a == ZC_I8 ? "s8" : "u8u8") : a == ZC_I8 ? "s8u8" : "u8s8";
    int side =
        zc_gen_matmul_side(g, &s, &(zc_matmul_tiling){.small = 64, .large = 128, .least = 64});
    zc_gen_define(g, "MMA", "zc_mma_m16n8k32_%s", types);
    zc_gen_tensor_cores(g, "mma", ZC_I8);
    zc_snprintf(g->why, sizeof g->why, "mma.m16n8k32_%s", types);
    /* Three stages of two tiles of 64 bytes a line; two threads a line. */
    g->config[0] = side;
    g->threads = (uint32_t)side * 2;
    g->smem = (uint32_t)(3 * 2 * 64 * side);
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_gemm_quant_mma(zc_launch *l)
{
    zc_matmul_form form;
    zc_matmul mm;
    struct zc_gemm_quant_params p;
    zc_dim3 grid;
    int side = (int)l->kernel->config[0];
    ZC_TRY(zc_matmul_quant(l, &form, &mm, &p));
    if (mm.batch == 0) return ZC_OK;
    if (zc_matmul_aligned(&l->in[form.a], &mm.view[ZC_MM_A], &mm, p.a_ld, 16))
        p.aligned |= ZC_GEMM_A_ALIGNED;
    if (zc_matmul_aligned(&l->in[form.b], &mm.view[ZC_MM_B], &mm, p.b_ld, form.b_along_k ? 16 : 4))
        p.aligned |= ZC_GEMM_B_ALIGNED;
    ZC_TRY(zc_matmul_grid(l, &mm, side, side, &grid));
    return zc_launch_configured(l, grid, &p, sizeof p);
}
