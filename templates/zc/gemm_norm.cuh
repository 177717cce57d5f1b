// Rows of a product, normalised: v = alpha * sum + bias + skip, y = (v - mean) / sqrt(variance + epsilon) * gamma + beta,
// or with Z_RMS v / rms * gamma + beta. One block a row.
//
// spec.h: Z_NORM; Z_N, the length of a row, where it is certain; Z_RMS.
#pragma once
#include "zc/gemm.cuh"

#ifdef Z_NORM
#include "zc/rows.cuh"
#include "zc/states.cuh"

ZC_DEV Z_SCALE zc_gemm_norm_value(const zc_gemm_params &p, const zc_gemm_item &item, i64 row, i64 col) {
    Z_SCALE v = zc_gemm_value(p, item, row, col, zc_gemm_parts(p, row * p.n + col));
    if (p.norm.skip) v += (Z_SCALE)zc_get(((const Z_T *)p.norm.skip)[row * p.n + col]);
    return v;
}

ZC_DEV void zc_gemm_norm_save(const zc_gemm_params &p, i64 row, i64 col, Z_SCALE v, Z_SCALE mean, Z_SCALE inv) {
    const Z_SCALE gamma = zc_get(((const Z_T *)p.norm.gamma)[col]);
    const Z_SCALE beta = p.norm.beta ? (Z_SCALE)zc_get(((const Z_T *)p.norm.beta)[col]) : (Z_SCALE)0;
    if (p.norm.sum) ((Z_T *)p.norm.sum)[row * p.n + col] = zc_put<Z_T>(v);
    if (p.y) ((Z_T *)p.y)[row * p.n + col] = zc_put<Z_T>((v - mean) * inv * gamma + beta);
}

// A thread keeps KEEP elements of the row; 0: it computes them again each time.
#if defined(Z_N) && Z_N <= 32 * 256
constexpr int ZC_NORM_KEEP = (Z_N + ZC_GEMM_NORM - 1) / ZC_GEMM_NORM;
#else
constexpr int ZC_NORM_KEEP = 0;
#endif

template <class F> ZC_DEV void zc_gemm_norm_each(const zc_gemm_params &p, const zc_gemm_item &item, i64 row,
                                                 const Z_SCALE *kept, F f) {
    if constexpr (ZC_NORM_KEEP > 0) {
#pragma unroll
        for (int k = 0; k < ZC_NORM_KEEP; k++) {
            const i64 col = threadIdx.x + k * ZC_GEMM_NORM;
            if (col < p.n) f(col, kept[k]);
        }
    } else {
        for (i64 col = threadIdx.x; col < p.n; col += ZC_GEMM_NORM) f(col, zc_gemm_norm_value(p, item, row, col));
    }
}

ZC_DEV void zc_gemm_norm_row(const zc_gemm_params &p) {
    const zc_gemm_item item = zc_gemm_batch(p, 0);
    const i64 row = blockIdx.x;
    Z_SCALE kept[ZC_NORM_KEEP > 0 ? ZC_NORM_KEEP : 1];
    if constexpr (ZC_NORM_KEEP > 0) {
#pragma unroll
        for (int k = 0; k < ZC_NORM_KEEP; k++) {
            const i64 col = threadIdx.x + k * ZC_GEMM_NORM;
            kept[k] = col < p.n ? zc_gemm_norm_value(p, item, row, col) : (Z_SCALE)0;
        }
    }
    zc_sum<Z_SCALE> sum = zc_sum<Z_SCALE>::none(), squares = zc_sum<Z_SCALE>::none();
#ifdef Z_RMS
    const Z_SCALE mean = 0;
#else
    zc_gemm_norm_each(p, item, row, kept, [&](i64, Z_SCALE v) { sum.v += v; });
    const Z_SCALE mean = zc_join_team<false>(sum).v / (Z_SCALE)p.n;
#endif
    zc_gemm_norm_each(p, item, row, kept, [&](i64, Z_SCALE v) { squares.v += (v - mean) * (v - mean); });
    const Z_SCALE inv = (Z_SCALE)1 / zx_sqrt(zc_join_team<false>(squares).v / (Z_SCALE)p.n + (Z_SCALE)p.norm.epsilon);
    zc_gemm_norm_each(p, item, row, kept, [&](i64 col, Z_SCALE v) { zc_gemm_norm_save(p, row, col, v, mean, inv); });
}
#endif
