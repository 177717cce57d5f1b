// Pointwise work on a result before it is written: y = zc_fused_point(y, in0[..], in1[..], ...), operands broadcast.
//
// spec.h: Z_FUSED, when there is any, with Z_FUSED_COUNT (of operands), Z_FUSED_INPUTS(X) = X(i, type) ...,
// Z_FUSED_ARGS(A) = , A(0), A(1) ... and zc_fused_point; with static shapes also Z_FUSED_RANK, Z_FUSED_DIMS and
// Z_FUSED_STRIDES.
#pragma once
#include "zc/broadcast.cuh"
#include "abi/epilogue.h"
#include "spec.h"

#ifndef Z_FUSED
template <class V> ZC_DEV V zc_fused(const zc_fused_params &, V y, i64) { return y; }
#else
#ifdef Z_FUSED_RANK
ZC_STATIC_SHAPE(zc_fused_shape, Z_FUSED_RANK, Z_FUSED_DIMS, Z_FUSED_STRIDES)
#else
ZC_PARAM_SHAPE(zc_fused_shape, zc_fused_params)
#endif

// y is element `at` of the result.
template <class V> ZC_DEV V zc_fused(const zc_fused_params &p, V y, i64 at) {
    const auto off = zc_offsets_at<Z_FUSED_COUNT>(zc_fused_shape::of(p), at);
#define ZC_FETCH(i, T) const auto in##i = zc_get(((const T *)p.in[i])[off.of[i]]);
    Z_FUSED_INPUTS(ZC_FETCH)
#define ZC_ARG(i) in##i
    return zc_fused_point(y Z_FUSED_ARGS(ZC_ARG));
}
#undef ZC_FETCH
#undef ZC_ARG
#endif
