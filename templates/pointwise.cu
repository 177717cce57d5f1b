// A pointwise operation or a fused group of them: out[i] = zc_point(in0[..], in1[..], ...), inputs broadcast.
//
// spec.h: Z_OUT (type), Z_VEC (elements a thread computes at once), Z_INPUTS(X) = X(i, type) ..., Z_ARGS(A) = A(0),
// A(1) ..., zc_point; with static shapes also Z_RANK, Z_TOTAL, Z_DIMS, Z_STRIDES and Z_WIDE (64-bit indices).
// Entries: 0 and 2 Z_VEC elements, 1 and 3 one element a thread; 2 and 3 (symbolic shapes only) have 64-bit indices.
#include "zc/device.cuh"
#include "abi/pointwise.h"
#include "spec.h"

#ifdef Z_RANK
ZC_DEV i64 dim(const zc_pointwise_params &, int d) {
    constexpr i64 dims[] = Z_DIMS;
    return dims[d];
}
ZC_DEV i64 stride(const zc_pointwise_params &, int i, int d) {
    constexpr i64 strides[][Z_RANK] = Z_STRIDES;
    return strides[i][d];
}
#define RANK(p)  Z_RANK
#define TOTAL(p) Z_TOTAL
#else
ZC_DEV i64 dim(const zc_pointwise_params &p, int d) { return p.dims[d]; }
ZC_DEV i64 stride(const zc_pointwise_params &p, int i, int d) { return p.strides[i][d]; }
#define RANK(p)  p.rank
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
#define DECLARE(i, T) INDEX off##i = 0;
    Z_INPUTS(DECLARE)
    INDEX rest = start;
#pragma unroll
    for (int d = RANK(p) - 1; d >= 0; d--) {
        const INDEX size = (INDEX)dim(p, d), outer = d ? rest / size : 0, at = d ? rest - outer * size : rest;
#define ADVANCE(i, T) off##i += at * (INDEX)stride(p, i, d);
        Z_INPUTS(ADVANCE)
        rest = outer;
    }
#define FETCH(i, T) const zc_vec<T, V> x##i = fetch<T, V>(p.in[i], off##i, RANK(p) && stride(p, i, RANK(p) - 1) != 0);
    Z_INPUTS(FETCH)
    zc_vec<Z_OUT, V> r;
#pragma unroll
    for (int v = 0; v < V; v++) {
#define ARG(i) zc_get(x##i.v[v])
        r.v[v] = zc_put<Z_OUT>(zc_point(Z_ARGS(ARG)));
    }
    *(zc_vec<Z_OUT, V> *)((Z_OUT *)p.out + start) = r;
}

#if defined(Z_RANK) && Z_WIDE
typedef u64 zc_index;
#else
typedef u32 zc_index;
#endif

ZC_KERNEL(0)(const __grid_constant__ zc_pointwise_params p) { zc_begin(); point<Z_VEC, zc_index>(p); }
ZC_KERNEL(1)(const __grid_constant__ zc_pointwise_params p) { zc_begin(); point<1, zc_index>(p); }
#ifndef Z_RANK
ZC_KERNEL(2)(const __grid_constant__ zc_pointwise_params p) { zc_begin(); point<Z_VEC, u64>(p); }
ZC_KERNEL(3)(const __grid_constant__ zc_pointwise_params p) { zc_begin(); point<1, u64>(p); }
#endif
