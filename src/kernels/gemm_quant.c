#include <math.h>

#include "kernels/matmul.h"
#include "op/nhwc.h"
#include "op/requant.h"

/* ---- the specialisation ---- */

static zc_quant_roles half_roles(zc_op op, bool second)
{
    const int *in = zc_conv_half_inputs(op, second);
    return (zc_quant_roles){{in[0], in[1], in[2], in[3], in[4], in[5]}, in[6], in[7], in[8]};
}

zc_quant_roles zc_quant_roles_of(zc_op op)
{
    switch (op) {
    case ZC_OP_QLinearMatMul:
        return (zc_quant_roles){{0, 1, 2, 3, 4, 5}, 6, 7, -1};
    case ZC_OP_QLinearConv:
        return (zc_quant_roles){{0, 1, 2, 3, 4, 5}, 6, 7, 8};
    case ZC_OP_QLinearConvPair:
    case ZC_OP_QLinearConvChain:
    case ZC_OP_QLinearConvNext:
        return half_roles(op, false);
    default: /* MatMulInteger, ConvInteger */
        return (zc_quant_roles){{0, -1, 2, 1, -1, 3}, -1, -1, -1};
    }
}

bool zc_quant_second_of(zc_op op, zc_quant_roles *out)
{
    const bool has = zc_conv_has_halves(op);
    if (has) *out = half_roles(op, true);
    return has;
}

static bool is_one(const zc_pvalue *v)
{
    zc_tensor t;
    if (!zc_gen_static(v)) return false;
    zc_gen_tensor(v, &t);
    return zc_tensor_numel(&t) == 1;
}

bool zc_gen_zero_point(const zc_gen *g, int i)
{
    const zc_pvalue *v = zc_gen_in(g, i);
    if (!v) return false;
    if (v->kind != ZC_P_CONST || !v->data) return true;
    const unsigned char *bytes = v->data;
    for (uint64_t b = 0; b < v->bytes; b++)
        if (bytes[b]) return true;
    return false;
}

/* The largest magnitude of a scale, or of what is left when 1 is divided by it; infinite where that
 * is not known. */
static double largest(const zc_gen *g, int i, bool divides)
{
    zc_tensor t;
    double most = 0;
    if (!zc_gen_constant(g, i, &t)) return INFINITY;
    for (int64_t e = 0; e < zc_tensor_numel(&t); e++) {
        const double x = zc_load_f64(t.dtype, t.data, e), by = fabs(divides ? 1 / x : x);
        if (!(by <= most)) most = by == by ? by : INFINITY;
    }
    return most;
}

static bool are_small(const zc_gen *g, const zc_quant_roles *r)
{
    const double most = largest(g, r->in[ZC_GQ_A_SCALE], false) *
                        largest(g, r->in[ZC_GQ_B_SCALE], false) * largest(g, r->y_scale, true);
    return most < 0.25; /* of a sum and a bias, each of 32 bits */
}

bool zc_gen_small_scales(zc_gen *g)
{
    const zc_quant_roles r = zc_quant_roles_of(g->step->op);
    zc_quant_roles second;
    const bool small =
        are_small(g, &r) && (!zc_quant_second_of(g->step->op, &second) || are_small(g, &second));
    zc_gen_define(g, "SMALL_SCALES", "%d", small);
    return small;
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
    const double sum = 255.0 * 255.0 * (double)depth;
    scaling s;
    int words = 1;
    if (!scaling_of(g, r, &s)) return 0;
    const int64_t biases = s.bias.rank < 0 ? 0 : zc_tensor_numel(&s.bias);
    const int64_t scales = zc_tensor_numel(&s.b), n = biases > scales ? biases : scales;
    for (int64_t i = 0; i < n; i++) {
        const double scale = element(&s.a, 0) * element(&s.b, i) / element(&s.y, 0);
        const double bias = biases ? fabs(element(&s.bias, i)) : 0;
        if (!zc_requant_is_whole(scale, sum + bias)) return 0;
        if (scale >= 0x1p-9) words = 2;
    }
    return words;
}

int zc_gen_quant_wholes(const zc_gen *g, int64_t depth)
{
    const zc_dtype y = zc_gen_plain_result(g);
    const zc_quant_roles r = zc_quant_roles_of(g->step->op);
    zc_quant_roles second;
    const int words = y == ZC_U8 || y == ZC_I8 ? words_of(g, &r, depth) : 0;
    if (!words || !zc_quant_second_of(g->step->op, &second)) return words;
    const int others = words_of(g, &second, depth);
    return others && words > others ? words : others;
}

bool zc_gen_quant_crosses(const zc_gen *g, int64_t depth)
{
    const zc_quant_roles r = zc_quant_roles_of(g->step->op);
    const zc_dtype y = zc_gen_plain_result(g);
    zc_quant_roles second;
    if (r.y_scale < 0 || (y != ZC_I8 && y != ZC_U8)) return false;
    if (zc_quant_second_of(g->step->op, &second) && !zc_gen_quant_wholes(g, depth))
        return false; /* spills */
    return is_one(zc_gen_in(g, r.in[ZC_GQ_A_SCALE])) && !zc_gen_zero_point(g, r.in[ZC_GQ_A_ZERO]) &&
           !zc_gen_zero_point(g, r.in[ZC_GQ_B_ZERO]);
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
    return constants(g, &r) && (!zc_quant_second_of(g->step->op, &second) || constants(g, &second));
}

void zc_gen_quant_factors(zc_gen *g, int64_t depth)
{
    if (all_constants(g)) zc_gen_define(g, "SCALES_CONSTANT", "1");
    zc_gen_define(g, "WHOLES", "%d", zc_gen_quant_wholes(g, depth));
}

void zc_gen_quant_channels(zc_gen *g, int64_t depth)
{
    zc_gen_type(g, "X", zc_gen_in_type(g, ZC_IN_QLinearConv_x));
    zc_gen_type(g, "W", zc_gen_in_type(g, ZC_IN_QLinearConv_w));
    zc_gen_type(g, "Y", zc_gen_out_type(g, 0));
    zc_gen_type(g, "PLAIN", zc_gen_plain_result(g));
    zc_gen_type(g, "XS", zc_gen_in_type(g, ZC_IN_QLinearConv_x_scale));
    zc_gen_type(g, "WS", zc_gen_in_type(g, ZC_IN_QLinearConv_w_scale));
    zc_gen_type(g, "YS", zc_gen_in_type(g, ZC_IN_QLinearConv_y_scale));
    zc_gen_define(g, "W_ZERO", "%d", zc_gen_zero_point(g, ZC_IN_QLinearConv_w_zero));
    zc_gen_define(g, "HAS_BIAS", "%d", zc_gen_in(g, ZC_IN_QLinearConv_bias) != NULL);
    zc_gen_quant_factors(g, depth);
}

/* Has a result of the step a zero point? */
static bool has_zero_y(const zc_gen *g)
{
    zc_quant_roles second;
    return zc_gen_zero_point(g, zc_quant_roles_of(g->step->op).y_zero) ||
           (zc_quant_second_of(g->step->op, &second) && zc_gen_zero_point(g, second.y_zero));
}

zc_status zc_gen_quant_spec(zc_gen *g, bool b_along_k)
{
    const zc_quant_roles r = zc_quant_roles_of(g->step->op);
    zc_dtype a = zc_gen_in_type(g, r.in[ZC_GQ_A]), b = zc_gen_in_type(g, r.in[ZC_GQ_B]),
             y = zc_gen_plain_result(g);
    if (!zc_kernel_type(a) || !zc_kernel_type(b) || !zc_kernel_type(y))
        return zc_gen_decline(g, "element types %s and %s", zc_dtype_name(a), zc_dtype_name(b));
    zc_gen_type(g, "A", a);
    zc_gen_type(g, "B", b);
    zc_gen_type(g, "Y", y);
    zc_gen_define(g, "TB", "%d", b_along_k);
    zc_gen_define(g, "ZERO_A", "%d", zc_gen_zero_point(g, r.in[ZC_GQ_A_ZERO]));
    zc_gen_define(g, "ZERO_B", "%d", zc_gen_zero_point(g, r.in[ZC_GQ_B_ZERO]));
    zc_gen_define(g, "FLOAT", "%d", zc_dtype_is_float(a) || zc_dtype_is_float(b));
    if (r.bias >= 0 && zc_gen_in(g, r.bias)) zc_gen_define(g, "BIAS", "1");
    if (r.y_scale < 0) return ZC_OK;
    zc_gen_type(g, "A_SCALE", zc_gen_in_type(g, r.in[ZC_GQ_A_SCALE]));
    zc_gen_type(g, "B_SCALE", zc_gen_in_type(g, r.in[ZC_GQ_B_SCALE]));
    zc_gen_type(g, "Y_SCALE", zc_gen_in_type(g, r.y_scale));
    zc_gen_define(g, "ROW_SCALES", "%d", !is_one(zc_gen_in(g, r.in[ZC_GQ_A_SCALE])));
    zc_gen_define(g, "Y_FLOAT", "%d", zc_dtype_is_float(y));
    zc_gen_define(g, "ZERO_Y", "%d", has_zero_y(g));
    zc_gen_small_scales(g);
    return ZC_OK;
}

zc_status zc_gen_gemm_quant(zc_gen *g)
{
    zc_matmul_form form;
    ZC_TRY(zc_gen_matmul_form(g, &form));
    return g->declined[0] ? ZC_OK : zc_gen_quant_spec(g, form.b_along_k);
}

/* ---- the launch ---- */

zc_status zc_launch_gemm_quant(zc_launch *l)
{
    zc_matmul_form form;
    zc_matmul mm;
    struct zc_gemm_quant_params p;
    ZC_TRY(zc_matmul_quant(l, &form, &mm, &p));
    return mm.batch ? zc_matmul_launch_general(l, &mm, &p) : ZC_OK;
}
