// Pointwise work on a result before it is written: y = zc_fused_point(y, in0[..], in1[..], ...), operands broadcast.
//
// spec.h: Z_FUSED, when there is any, with Z_FUSED_INPUTS(X) = X(i, type) ..., Z_FUSED_ARGS(A) = , A(0), A(1) ... and
// zc_fused_point; with static shapes also Z_FUSED_RANK, Z_FUSED_DIMS and Z_FUSED_STRIDES.
#pragma once
#include "zc/device.cuh"
#include "abi/epilogue.h"
#include "spec.h"

#ifndef Z_FUSED
template <class V> ZC_DEV V zc_fused(const zc_fused_params &, V y, i64) { return y; }
#else
#ifdef Z_FUSED_RANK
ZC_DEV i64 zc_fused_dim(const zc_fused_params &, int d) {
    constexpr i64 dims[] = Z_FUSED_DIMS;
    return dims[d];
}
ZC_DEV i64 zc_fused_stride(const zc_fused_params &, int i, int d) {
    constexpr i64 strides[][Z_FUSED_RANK] = Z_FUSED_STRIDES;
    return strides[i][d];
}
#else
#define Z_FUSED_RANK p.rank
ZC_DEV i64 zc_fused_dim(const zc_fused_params &p, int d) { return p.dims[d]; }
ZC_DEV i64 zc_fused_stride(const zc_fused_params &p, int i, int d) { return p.strides[i][d]; }
#endif

// y is element `at` of the result.
template <class V> ZC_DEV V zc_fused(const zc_fused_params &p, V y, i64 at) {
#define ZC_DECLARE(i, T) i64 off##i = 0;
    Z_FUSED_INPUTS(ZC_DECLARE)
#pragma unroll
    for (int d = Z_FUSED_RANK - 1; d >= 0; d--) {
        const i64 size = zc_fused_dim(p, d), outer = d ? at / size : 0, along = d ? at - outer * size : at;
#define ZC_ADVANCE(i, T) off##i += along * zc_fused_stride(p, i, d);
        Z_FUSED_INPUTS(ZC_ADVANCE)
        at = outer;
    }
#define ZC_FETCH(i, T) const auto in##i = zc_get(((const T *)p.in[i])[off##i]);
    Z_FUSED_INPUTS(ZC_FETCH)
#define ZC_ARG(i) in##i
    return zc_fused_point(y Z_FUSED_ARGS(ZC_ARG));
}
#undef ZC_DECLARE
#undef ZC_ADVANCE
#undef ZC_FETCH
#undef ZC_ARG
#endif
