/* What the launch functions of the quantised matrix products share. */
#include <string.h>

#include "kernels/matmul.h"

zc_status zc_matmul_quant(zc_launch *l, zc_matmul_form *form, zc_matmul *mm,
                          struct zc_gemm_quant_params *p)
{
    const zc_quant_roles r = zc_quant_roles_of(l->op);
    memset(p, 0, sizeof *p);
    ZC_TRY(zc_matmul_form_launch(l, form));
    ZC_TRY(zc_matmul_of(l, form, mm));
    for (int v = 0; v < ZC_GQ_OPERANDS; v++) {
        int i = r.in[v];
        if (i < 0) continue;
        if (v != ZC_MM_A && v != ZC_MM_B) ZC_TRY(zc_matmul_param(l, form, i, v, mm));
        p->in[v] = zc_launch_in(l, i);
    }
    zc_matmul_simplify(form, mm);
    if (r.y_scale >= 0) {
        p->y_scale = l->in[r.y_scale].data;
        p->y_zero = l->in[r.y_zero].data;
    }
    p->y = l->out[0].data;
    p->m = mm->m;
    p->n = mm->n;
    p->k = mm->k;
    p->batch = mm->batch;
    p->a_ld = mm->view[ZC_MM_A].line;
    p->b_ld = form->b_along_k ? mm->view[ZC_MM_B].line : mm->view[ZC_MM_B].depth;
    p->batch_rank = mm->batch_rank;
    for (int v = 0; v < ZC_GQ_OPERANDS; v++) {
        p->line[v] = mm->view[v].line;
        for (int d = 0; d < mm->batch_rank; d++) p->stride[v][d] = mm->view[v].batch[d];
    }
    for (int d = 0; d < mm->batch_rank; d++) p->batch_dims[d] = mm->batch_dims[d];
    return ZC_OK;
}

zc_status zc_matmul_launch_general(zc_launch *l, const zc_matmul *mm,
                                   const struct zc_gemm_quant_params *p)
{
    zc_dim3 grid;
    int b = zc_quant_roles_of(l->op).in[ZC_GQ_B];
    bool floats = zc_dtype_is_float(l->in[0].dtype) || zc_dtype_is_float(l->in[b].dtype);
    uint32_t number = floats ? sizeof(double) : sizeof(int32_t);
    ZC_TRY(zc_matmul_grid(l, mm, ZC_GQ_SIDE, ZC_GQ_SIDE, &grid));
    return zc_launch_kernel(l, 0, grid, ZC_GQ_SIDE * ZC_GQ_SIDE,
                            2 * ZC_GQ_SIDE * (ZC_GQ_SIDE + 1) * number, p, sizeof *p);
}
