// Entry 1 of the products: rows of their sums, normalised.
#pragma once
#if defined(Z_NORM)
#include "zc/gemm_norm.cuh"
ZC_KERNEL(1)(const __grid_constant__ zc_gemm_params p) { zc_begin(); zc_gemm_norm(p); }
#endif
