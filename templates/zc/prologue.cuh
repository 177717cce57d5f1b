// Pointwise work on an operand when it is read: x = zc_pre_point(x, in0[..], in1[..], ...), operands broadcast to it.
//
// spec.h: Z_PRE, when there is any, with Z_PRE_COUNT (of operands), Z_PRE_INPUTS(X) = X(i, type) ..., Z_PRE_ARGS(A) = ,
// A(0), A(1) ... and zc_pre_point; with static shapes also Z_PRE_RANK, Z_PRE_DIMS and Z_PRE_STRIDES.
#pragma once
#include "zc/broadcast.cuh"
#include "abi/epilogue.h"
#include "spec.h"

#ifndef Z_PRE
template <class T> ZC_DEV auto zc_pre(const zc_fused_params &, T x, i64) { return zc_get(x); }
#else
#ifdef Z_PRE_RANK
ZC_STATIC_SHAPE(zc_pre_shape, Z_PRE_RANK, Z_PRE_DIMS, Z_PRE_STRIDES)
#else
ZC_PARAM_SHAPE(zc_pre_shape, zc_fused_params)
#endif

// x is element `at` of the operand.
template <class T> ZC_DEV auto zc_pre(const zc_fused_params &p, T x, i64 at) {
    const auto off = zc_offsets_at<Z_PRE_COUNT>(zc_pre_shape::of(p), at);
#define ZC_FETCH(i, T) const auto in##i = zc_get(((const T *)p.in[i])[off.of[i]]);
    Z_PRE_INPUTS(ZC_FETCH)
#define ZC_ARG(i) in##i
    return zc_pre_point(zc_get(x) Z_PRE_ARGS(ZC_ARG));
}
#undef ZC_FETCH
#undef ZC_ARG
#endif
