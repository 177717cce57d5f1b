/* Products of 8-bit integers on Hopper (gemm_quant_sm90.cu), of matrices: gemm_sm90's pipeline,
 * configurations and model of cost. */
#include <math.h>
#include <string.h>

#include "kernels/sm90.h"
#include "op/requant.h"

const char *const zc_config_gemm_quant_sm90[] = {ZC_SM90_CONFIG};

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

/* What sums become bytes by. */
typedef struct scaling {
    zc_tensor a, b, y, bias; /* scales, and a bias of rank -1 where there is none */
} scaling;

/* false: not all of it is known, or rows have scales of their own. */
static bool scaling_of(const zc_gen *g, const zc_quant_roles *r, scaling *s)
{
    const bool biased = r->bias >= 0 && zc_gen_in(g, r->bias);
    s->bias.rank = -1;
    return r->y_scale >= 0 && zc_gen_constant(g, r->in[ZC_GQ_A_SCALE], &s->a) &&
           zc_gen_constant(g, r->in[ZC_GQ_B_SCALE], &s->b) &&
           zc_gen_constant(g, r->y_scale, &s->y) &&
           (!biased || zc_gen_constant(g, r->bias, &s->bias)) && zc_tensor_numel(&s->a) == 1;
}

/* Element i, or the only one. */
static double element(const zc_tensor *t, int64_t i)
{
    return zc_load_f64(t->dtype, t->data, zc_tensor_numel(t) > 1 ? i : 0);
}

/* Whether sums of so many products become bytes by whole numbers (op/requant.h): 0, no; 2: some
 * scales have more than 31 bits. */
static int words_of(const zc_gen *g, const zc_quant_roles *r, int64_t depth)
{
    const double sum = 255.0 * 255.0 * (double)depth, most = 0x1p21; /* far below 2^23: no sum of
                                                                       256ths exceeds 32 bits */
    scaling s;
    int words = 1;
    if (!scaling_of(g, r, &s)) return 0;
    const int64_t biases = s.bias.rank < 0 ? 0 : zc_tensor_numel(&s.bias);
    const int64_t scales = zc_tensor_numel(&s.b), n = biases > scales ? biases : scales;
    for (int64_t i = 0; i < n; i++) {
        const double scale = element(&s.a, 0) * element(&s.b, i) / element(&s.y, 0);
        const double bias = biases ? fabs(element(&s.bias, i)) : 0;
        if (!(scale >= ZC_REQUANT_LEAST && scale < ZC_REQUANT_END) || zc_requant_ties(scale) ||
            scale * (sum + bias) >= most)
            return 0;
        if (scale >= 0x1p-9) words = 2;
    }
    return words;
}

/* The same of both convolutions, where there are two. */
static int wholes(const zc_gen *g, int64_t depth)
{
    const zc_dtype y = zc_gen_plain_result(g);
    const zc_quant_roles r = zc_quant_roles_of(g->step->op);
    zc_quant_roles second;
    const int words = y == ZC_U8 || y == ZC_I8 ? words_of(g, &r, depth) : 0;
    if (!words || !zc_quant_second_of(g->step->op, &second)) return words;
    const int others = words_of(g, &second, depth);
    return others && words > others ? words : others;
}

static bool constant(const zc_gen *g, int i)
{
    const zc_pvalue *v = i < 0 ? NULL : zc_gen_in(g, i);
    return !v || v->kind == ZC_P_CONST;
}

/* Are scales, zero points and biases constants of the plan? */
static bool constants(const zc_gen *g, const zc_quant_roles *r)
{
    bool all = constant(g, r->y_scale) && constant(g, r->y_zero) && constant(g, r->bias);
    for (int v = 0; v < ZC_GQ_OPERANDS; v++)
        all = all && (v == ZC_GQ_A || v == ZC_GQ_B || constant(g, r->in[v]));
    return all;
}

static bool all_constants(const zc_gen *g)
{
    const zc_quant_roles r = zc_quant_roles_of(g->step->op);
    zc_quant_roles second;
    return constants(g, &r) &&
           (!zc_quant_second_of(g->step->op, &second) || constants(g, &second));
}

zc_status zc_gen_quant_sm90_spec(zc_gen *g, const zc_sm90_problem *p)
{
    if (all_constants(g)) zc_gen_define(g, "SCALES_CONSTANT", "1");
    zc_gen_define(g, "WHOLES", "%d", wholes(g, p->steps * ZC_SM90_LINE));
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
    ZC_TRY(zc_gen_sm90(g, &p));
    return g->declined[0] ? ZC_OK : zc_gen_quant_sm90_spec(g, &p);
}

/* ---- the launch ---- */

zc_status zc_sm90_put_bytes(zc_launch *l, struct zc_gemm_quant_sm90_params *p)
{
    zc_dtype y = l->out[0].dtype;
    if (zc_sm90_byte_piece(p->quant.n, y)) return ZC_OK;
    return zc_sm90_like_y(l, &p->product, p->quant.y, y, p->quant.n, 64, &p->product.y);
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
                        (int)(config[ZC_SM90_TILE_N] / config[ZC_SM90_CLUSTER]), &p.product));
    ZC_TRY(zc_sm90_put_bytes(l, &p));
    ZC_TRY(zc_sm90_grid(l, &p.product, &grid));
    return zc_launch_configured(l, grid, &p, sizeof p);
}
