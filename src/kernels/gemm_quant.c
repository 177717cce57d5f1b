#include "kernels/matmul.h"

/* ---- the specialisation ---- */

static bool is_qlinear(const zc_gen *g)
{
    return g->step->op == ZC_OP_QLinearMatMul;
}

static bool is_one(const zc_pvalue *v)
{
    zc_tensor t;
    if (!zc_gen_static(v)) return false;
    zc_gen_tensor(v, &t);
    return zc_tensor_numel(&t) == 1;
}

zc_status zc_gen_matmul_quant(zc_gen *g, const zc_matmul_form *form)
{
    bool q = is_qlinear(g);
    zc_dtype a = zc_gen_in_type(g, form->a), b = zc_gen_in_type(g, form->b),
             y = zc_gen_out_type(g, 0);
    if (!zc_kernel_type(a) || !zc_kernel_type(b) || !zc_kernel_type(y))
        return zc_gen_decline(g, "element types %s and %s", zc_dtype_name(a), zc_dtype_name(b));
    zc_gen_type(g, "A", a);
    zc_gen_type(g, "B", b);
    zc_gen_type(g, "Y", y);
    zc_gen_define(g, "TB", "%d", form->b_along_k);
    zc_gen_define(g, "ZERO_A", "%d", zc_gen_in(g, 2) != NULL);
    zc_gen_define(g, "ZERO_B", "%d", zc_gen_in(g, q ? 5 : 3) != NULL);
    zc_gen_define(g, "FLOAT", "%d", zc_dtype_is_float(a) || zc_dtype_is_float(b));
    if (!q) return ZC_OK;
    zc_gen_type(g, "A_SCALE", zc_gen_in_type(g, 1));
    zc_gen_type(g, "B_SCALE", zc_gen_in_type(g, 4));
    zc_gen_type(g, "Y_SCALE", zc_gen_in_type(g, 6));
    zc_gen_define(g, "ROW_SCALES", "%d", !is_one(zc_gen_in(g, 1)));
    zc_gen_define(g, "Y_FLOAT", "%d", zc_dtype_is_float(y));
    return ZC_OK;
}

zc_status zc_gen_gemm_quant(zc_gen *g)
{
    zc_matmul_form form;
    ZC_TRY(zc_gen_matmul_form(g, &form));
    return g->declined[0] ? ZC_OK : zc_gen_matmul_quant(g, &form);
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
