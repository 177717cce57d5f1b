#include "cuda/matmul_problem.h"

zc_status zc_launch_gemm_quant(zc_launch *l)
{
    zc_matmul_form form;
    zc_matmul mm;
    struct zc_gemm_quant_params p;
    ZC_TRY(zc_matmul_quant(l, &form, &mm, &p));
    return mm.batch ? zc_matmul_launch_general(l, 0, &mm, &p) : ZC_OK;
}
