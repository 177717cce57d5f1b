// Normalisation by the mean and the variance of groups of elements: y = (x - mean) / sqrt(variance + eps) * scale +
// bias, scale and bias by channel. y may overwrite x.
//
// spec.h: Z_X (type of x and y), Z_S (of scale and bias), Z_STAT (of batch normalisation's statistics), Z_ACC (of
// sums); Z_SILU: y * sigmoid(y); Z_PLAIN: (x - mean) / (sqrt(variance) + 1e-9) instead; Z_GIVEN: statistics are given;
// Z_RUNNING: new running statistics; Z_RUN: the channels of elements that are taken at once, ZC_MOMENTS_...
// Entries: 0 a group within one block; 1 and 2 groups that are split among blocks: statistics, result; 3 given
// statistics.
#include "zc/groups.cuh"
#include "zc/states.cuh"
#include "abi/moments.h"
#include "spec.h"
#include "zc/fused.cuh"

typedef Z_ACC acc;
typedef zc_moments<acc> moments;

ZC_DEV i64 channel_of(const zc_moments_params &p, i64 off) {
    u64 channel = zc_divide((u64)off, p.inner);
    return (i64)zc_split(&channel, p.channels);
}

// In each thread of the output: of the elements that the block sees.
ZC_DEV moments moments_of(const zc_moments_params &p, const zc_place &at) {
    zc_sum<acc> sum = zc_sum<acc>::none(), squares = zc_sum<acc>::none();
    const acc n = (acc)(at.end > at.begin ? at.end - at.begin : 0);
    zc_walk<Z_X>(p.g, at, p.x, [&](Z_X x, i64 off, i64) { sum.v += (acc)zc_pre(p.pre, x, off); });
    const acc mean = zc_join_lanes(p.g, at, sum).v / n;
    zc_walk<Z_X>(p.g, at, p.x, [&](Z_X x, i64 off, i64) {
        const acc d = (acc)zc_pre(p.pre, x, off) - mean;
        squares.v += d * d;
    });
    return {n, mean, zc_join_lanes(p.g, at, squares).v};
}

#ifndef Z_PLAIN
// v: what `data` holds for the channels of V elements from `at` on.
template <int V> ZC_DEV void by_channel(const zc_moments_params &p, const void *data, i64 at, acc *v) {
    const Z_S *from = (const Z_S *)data;
#pragma unroll
    for (int k = 0; k < V; k++) {
        if (Z_RUN == ZC_MOMENTS_SAME && k)
            v[k] = v[0];
        else
            v[k] = (acc)zc_get(from[Z_RUN == ZC_MOMENTS_NEXT ? channel_of(p, at) + k : channel_of(p, at + k)]);
    }
}
#endif

struct results {
    const zc_moments_params &p;
    acc mean, inv;
    template <int V> ZC_MEMBER void operator()(const zc_vec<Z_X, V> &x, i64 at, i64) {
        zc_vec<Z_X, V> y;
        acc scale[V], bias[V];
#ifndef Z_PLAIN
        by_channel<V>(p, p.scale, at, scale);
        by_channel<V>(p, p.bias, at, bias);
#endif
#pragma unroll
        for (int k = 0; k < V; k++) {
            const acc d = (acc)zc_pre(p.pre, x.v[k], at + k) - mean;
#ifdef Z_PLAIN
            const acc v = d * inv;
#else
            acc v = d * (scale[k] * inv) + bias[k];
#ifdef Z_SILU
            v = v / ((acc)1 + zx_exp(-v));
#endif
#endif
            y.v[k] = zc_put<Z_X>(zc_fused(p.fused, v, at + k));
        }
        *(zc_vec<Z_X, V> *)((Z_X *)p.y + at) = y;
    }
};

ZC_DEV void apply(const zc_moments_params &p, const zc_place &at, moments m) {
    const acc var = m.m2 / m.n;
#ifdef Z_PLAIN
    const acc inv = (acc)1 / (zx_sqrt(var) + (acc)1e-9);
#else
    const acc inv = (acc)1 / zx_sqrt(var + (acc)p.eps);
#endif
#ifdef Z_RUNNING
    if (at.valid && at.lane == 0 && blockIdx.y == 0) {
        const acc keep = (acc)p.momentum, more = (acc)1 - keep;
        if (p.mean_out) zc_save<Z_STAT>(p.mean_out, at.out, (acc)zc_load<Z_STAT>(p.mean, at.out) * keep + m.mean * more);
        if (p.var_out) zc_save<Z_STAT>(p.var_out, at.out, (acc)zc_load<Z_STAT>(p.var, at.out) * keep + var * more);
    }
    if (!p.y) return;
#endif
    zc_walk_runs<Z_X, ZC_ALL_WORK>(p.g, at, p.x, results{p, m.mean, inv});
}

#ifdef Z_GIVEN
ZC_KERNEL(3)(const __grid_constant__ zc_moments_params p) {
    zc_begin();
    typedef zc_vec<Z_X, Z_VECTOR> run;
    for (i64 i = zc_thread() * Z_VECTOR; i < p.total; i += zc_threads() * Z_VECTOR) {
        const i64 c = channel_of(p, i);
        const acc inv = (acc)1 / zx_sqrt((acc)zc_load<Z_STAT>(p.var, c) + (acc)p.eps);
        results{p, (acc)zc_load<Z_STAT>(p.mean, c), inv}(*(const run *)((const Z_X *)p.x + i), i, 0);
    }
}
#else
#if Z_SPLIT != 2
ZC_KERNEL(0)(const __grid_constant__ zc_moments_params p) {
    zc_begin();
    const zc_place at = zc_place_of(p.g);
    apply(p, at, moments_of(p, at));
}
#endif

#if Z_SPLIT != 1
ZC_KERNEL(1)(const __grid_constant__ zc_moments_params p) {
    zc_begin();
    const zc_place at = zc_place_of(p.g);
    const moments m = moments_of(p, at);
    if (at.valid && at.lane == 0) ((moments *)p.states)[at.out * p.splits + blockIdx.y] = m;
}

ZC_KERNEL(2)(const __grid_constant__ zc_moments_params p) {
    zc_begin();
    const zc_place at = zc_place_of(p.g);
    moments m = moments::none();
    for (i64 s = at.lane; at.valid && s < p.splits; s += zc_lanes(p.g))
        m = m.join(((const moments *)p.states)[at.out * p.splits + s]);
    apply(p, at, zc_join_lanes(p.g, at, m));
}
#endif
#endif
