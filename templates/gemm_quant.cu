// MatMulInteger and QLinearMatMul for all 8-bit types. spec.h: see zc/gemm_quant.cuh.
#include "zc/gemm_quant.cuh"

ZC_KERNEL(0)(const __grid_constant__ zc_gemm_quant_params p) { zc_begin(); zc_gq_general(p); }
