/* Products of 8-bit integers on Hopper (gemm_quant_sm90.cu), of matrices: gemm_sm90's pipeline,
 * configurations and model of cost. */
#include <string.h>

#include "kernels/sm90.h"

const char *const zc_config_gemm_quant_sm90[] = {ZC_SM90_BYTES_CONFIG};

/* ---- the specialisation ---- */

/* Scales and zero points that differ from item to item of a batch would leave it several axes. */
static bool by_item(zc_gen *g, const zc_matmul_form *form)
{
    for (int i = 0; i < (int)g->step->nin; i++) {
        const zc_pvalue *v = i == form->a || i == form->b ? NULL : zc_gen_in(g, i);
        if (v && v->rank > 2) return true;
    }
    return false;
}

zc_status zc_gen_quant_sm90_spec(zc_gen *g, const zc_sm90_problem *p)
{
    zc_gen_quant_factors(g, p->steps * ZC_SM90_LINE);
    zc_gen_type(g, "T", zc_gen_in_type(g, zc_quant_roles_of(g->step->op).in[ZC_GQ_A]));
    zc_gen_type(g, "STORED", zc_gen_out_type(g, 0));
    zc_gen_define(g, "INTEGERS", "1");
    zc_gen_define(g, "PAIRS", "%d", p->n % 2 == 0);
    zc_gen_define(g, "TENSOR_Y", "%d", p->piece == 0);
    return zc_gen_quant_spec(g, true);
}

zc_status zc_gen_gemm_quant_sm90(zc_gen *g)
{
    zc_matmul_form form;
    zc_matmul_sizes s;
    ZC_TRY(zc_gen_matmul_bytes(g, &form, &s));
    if (g->declined[0]) return ZC_OK;
    if (by_item(g, &form)) return zc_gen_decline(g, "scales or zero points by item of a batch");
    ZC_TRY(zc_gen_sm90_form(g, &form, &s));
    if (g->declined[0]) return ZC_OK;
    if (s.m_low < ZC_SM90_ROWS) return zc_gen_decline(g, "too few rows for tiles of 128");
    zc_sm90_problem p = {.m = s.m_high == INT64_MAX ? ZC_MM_FAR : s.m_high,
                         .n = s.n,
                         .steps = zc_ceil_div(s.k, ZC_SM90_LINE),
                         .items = zc_gen_sm90_items(g, &form),
                         .sm_count = g->sm_count,
                         .fused_tile = -1,
                         .piece = zc_sm90_byte_piece(s.n, zc_gen_out_type(g, 0)),
                         .column_words = 1,
                         .unscaled = zc_gen_out_type(g, 0) == ZC_I32};
    p.crossed = !p.piece && zc_gen_quant_crosses(g, p.steps * ZC_SM90_LINE);
    ZC_TRY(zc_gen_sm90(g, &p));
    if (g->declined[0]) return ZC_OK;
    zc_gen_dealt(g, &p);
    return zc_gen_quant_sm90_spec(g, &p);
}

/* ---- the launch ---- */

zc_status zc_sm90_put_bytes(zc_launch *l, struct zc_gemm_quant_sm90_params *p)
{
    const int64_t n = p->quant.n, m = p->product.g.m, *config = l->kernel->config;
    zc_dtype y = l->out[0].dtype;
    if (zc_sm90_byte_piece(n, y)) return ZC_OK;
    zc_tensor_box box = zc_sm90_box(p->quant.y, y, n, m, p->product.items, n, m * n);
    box.box[0] = (uint32_t)zc_sm90_byte_panel(config[ZC_SM90_TILE_N]);
    if (config[ZC_SM90_CROSSED]) {
        box.box[0] = ZC_SM90_DEPTH;
        box.box[1] = (uint32_t)zc_sm90_crossed_rows(config);
    }
    return zc_launch_tensor_map(l, &box, &p->product.y);
}

zc_status zc_launch_gemm_quant_sm90(zc_launch *l)
{
    const int64_t *config = l->kernel->config;
    zc_matmul_form form;
    zc_matmul mm;
    struct zc_gemm_quant_sm90_params p;
    zc_dim3 grid;
    memset(&p, 0, sizeof p);
    ZC_TRY(zc_matmul_quant(l, &form, &mm, &p.quant));
    if (mm.batch == 0) return ZC_OK;
    if (mm.batch_rank > 1 || mm.batch > INT32_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "product too large (got %lld items)",
                       (long long)mm.batch);
    ZC_TRY(zc_matmul_params(l, &form, &mm, 16, &p.product.g));
    ZC_TRY(zc_sm90_maps(l, &form, &mm, (int)config[ZC_SM90_TILE_M],
                        (int)(config[ZC_SM90_TILE_N] / config[ZC_SM90_CLUSTER]),
                        zc_sm90_bytes_dealt(p.quant.n, l->out[0].dtype, config), &p.product));
    ZC_TRY(zc_sm90_put_bytes(l, &p));
    ZC_TRY(zc_sm90_grid(l, &p.product, &grid));
    return zc_launch_configured(l, grid, &p, sizeof p);
}
