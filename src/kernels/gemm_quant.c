#include <math.h>

#include "kernels/matmul.h"

/* ---- the specialisation ---- */

zc_quant_roles zc_quant_roles_of(zc_op op)
{
    switch (op) {
    case ZC_OP_QLinearMatMul:
        return (zc_quant_roles){{0, 1, 2, 3, 4, 5}, 6, 7, -1};
    case ZC_OP_QLinearConv:
        return (zc_quant_roles){{0, 1, 2, 3, 4, 5}, 6, 7, 8};
    case ZC_OP_QLinearConvPair:
        return (zc_quant_roles){{0, 1, 2, 3, 4, 5}, 6, 7, ZC_IN_QLinearConvPair_bias};
    default: /* MatMulInteger, ConvInteger */
        return (zc_quant_roles){{0, -1, 2, 1, -1, 3}, -1, -1, -1};
    }
}

bool zc_quant_second_of(zc_op op, zc_quant_roles *out)
{
    *out = (zc_quant_roles){{8, 9, 10, 11, 12, 13}, 14, 15, ZC_IN_QLinearConvPair_second_bias};
    return op == ZC_OP_QLinearConvPair;
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
