/* GatedLinear on any architecture (gated_linear.cu); on Hopper it is gemm_sm90.c's. */
#include "abi/gated_linear.h"
#include "kernels/matmul.h"

zc_status zc_gen_gated_linear(zc_gen *g)
{
    zc_dtype dtype = zc_gen_out_type(g, 0);
    zc_matmul_form form;
    if (dtype == ZC_F64) return zc_gen_decline(g, "element type %s", zc_dtype_name(dtype));
    ZC_TRY(zc_gen_matmul_form(g, &form));
    return g->declined[0] ? ZC_OK : zc_gen_matmul_spec(g, &form);
}

zc_status zc_launch_gated_linear(zc_launch *l)
{
    enum { BLOCK = 128 };
    struct zc_gated_linear_params p;
    zc_matmul_form form;
    zc_matmul mm;
    ZC_TRY(zc_matmul_form_launch(l, &form));
    ZC_TRY(zc_matmul_of(l, &form, &mm));
    if (mm.batch == 0) return ZC_OK;
    ZC_TRY(zc_matmul_params(l, &form, &mm, 16, &p.g));
    p.gate = l->in[form.gate].data;
    p.gate_c = zc_launch_in(l, form.gate_c);
    zc_dim3 grid = {zc_launch_blocks(mm.m * mm.n, BLOCK, 16 * l->sm_count), 1, 1};
    return zc_launch_kernel(l, 0, grid, BLOCK, 0, &p, sizeof p);
}
