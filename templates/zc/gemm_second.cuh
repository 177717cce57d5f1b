// Entry 1 of the products: the sum of the parts, in their order, or rows of that sum, normalised.
#pragma once
#if defined(Z_NORM)
#include "zc/gemm_norm.cuh"
ZC_KERNEL(1)(const __grid_constant__ zc_gemm_params p) { zc_begin(); zc_gemm_norm(p); }
#elif Z_SPLIT
ZC_KERNEL(1)(const __grid_constant__ zc_gemm_params p) {
    zc_begin();
    const zc_gemm_item item = zc_gemm_batch(p, 0);
    const i64 size = p.m * p.n;
    for (i64 i = zc_thread(); i < size; i += zc_threads()) zc_gemm_save(p, item, i / p.n, i % p.n, zc_gemm_parts(p, i));
}
#endif
