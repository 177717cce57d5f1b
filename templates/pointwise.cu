// A pointwise operation or a fused group of them: {y0[i], y1[i], ...} = zc_point(in0[..], in1[..], ...), inputs
// broadcast. Lines of the last axis of an input may lie apart (p.strides).
//
// spec.h: Z_OUTPUTS(X) = X(i, type) ..., Z_VEC (elements a thread computes at once), Z_COUNT (of inputs), Z_INPUTS(X) =
// X(i, type) ..., Z_ARGS(A) = A(0), A(1) ..., zc_point; with static shapes also Z_RANK, Z_TOTAL, Z_DIMS, Z_STRIDES,
// Z_PITCHED (bit i: input i may have a pitch) and Z_WIDE (64-bit indices).
// Entries: 0; of symbolic shapes 1 one element a thread, 2 the same with 64-bit indices.
#include "zc/broadcast.cuh"
#include "abi/pointwise.h"
#include "spec.h"

#if defined(Z_RANK) && defined(Z_PITCHED)
ZC_PITCHED_SHAPE(shape, Z_RANK, Z_DIMS, Z_STRIDES, zc_pointwise_params, Z_PITCHED)
#define TOTAL(p) Z_TOTAL
#elif defined(Z_RANK)
ZC_STATIC_SHAPE(shape, Z_RANK, Z_DIMS, Z_STRIDES)
#define TOTAL(p) Z_TOTAL
#else
ZC_PARAM_SHAPE(shape, zc_pointwise_params)
#define TOTAL(p) p.total
#endif

// Elements of one input: V neighbours, or one that all share.
template <class T, int V, class INDEX> ZC_DEV zc_vec<T, V> fetch(const void *in, INDEX off, bool along) {
    zc_vec<T, V> r;
    if (along) {
        r = *(const zc_vec<T, V> *)((const T *)in + off);
    } else {
#pragma unroll
        for (int v = 0; v < V; v++) r.v[v] = ((const T *)in)[off];
    }
    return r;
}

template <int V, class INDEX> ZC_DEV void point(const zc_pointwise_params &p) {
    const INDEX start = ((INDEX)blockIdx.x * blockDim.x + threadIdx.x) * V;
    if (start >= (INDEX)TOTAL(p)) return;
    const shape by = shape::of(p);
    const auto off = zc_offsets_at<Z_COUNT, INDEX>(by, start);
#define FETCH(i, T) const auto x##i = fetch<T, V>(p.in[i], off.of[i], by.rank() && by.stride(i, by.rank() - 1) != 0);
    Z_INPUTS(FETCH)
#define DECLARE(i, T) zc_vec<T, V> r##i;
    Z_OUTPUTS(DECLARE)
#pragma unroll
    for (int v = 0; v < V; v++) {
#define ARG(i) zc_get(x##i.v[v])
        const auto r = zc_point(Z_ARGS(ARG));
#define PUT(i, T) r##i.v[v] = zc_put<T>(r.y##i);
        Z_OUTPUTS(PUT)
    }
#define STORE(i, T) *(zc_vec<T, V> *)((T *)p.out[i] + start) = r##i;
    Z_OUTPUTS(STORE)
}

#if defined(Z_RANK) && Z_WIDE
typedef u64 zc_index;
#else
typedef u32 zc_index;
#endif

ZC_KERNEL(0)(const __grid_constant__ zc_pointwise_params p) { zc_begin(); point<Z_VEC, zc_index>(p); }
#ifndef Z_RANK
ZC_KERNEL(1)(const __grid_constant__ zc_pointwise_params p) { zc_begin(); point<1, u32>(p); }
ZC_KERNEL(2)(const __grid_constant__ zc_pointwise_params p) { zc_begin(); point<1, u64>(p); }
#endif
