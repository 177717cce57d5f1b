// Normalisation by the mean and the variance of groups of elements: y = (x - mean) / sqrt(variance + eps) * scale +
// bias, scale and bias by channel. y may overwrite x.
//
// spec.h: Z_X (type of x and y), Z_S (of scale and bias), Z_STAT (of batch normalisation's statistics), Z_ACC (of
// sums), Z_CHANNELS and Z_INNER; Z_SILU: y * sigmoid(y); Z_PLAIN: (x - mean) / (sqrt(variance) + 1e-9) instead;
// Z_RUNNING: new running statistics.
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
    return (i64)((u64)off / (u64)Z_INNER % (u64)Z_CHANNELS);
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

ZC_DEV acc scaled(const zc_moments_params &p, acc d, acc inv, i64 channel) {
#ifdef Z_PLAIN
    return d * inv;
#else
    const acc v = d * ((acc)zc_load<Z_S>(p.scale, channel) * inv) + (acc)zc_load<Z_S>(p.bias, channel);
#ifdef Z_SILU
    return v / ((acc)1 + zx_exp(-v));
#else
    return v;
#endif
#endif
}

// Element `at` of the result, d from the mean.
ZC_DEV void put(const zc_moments_params &p, i64 at, acc d, acc inv, i64 channel) {
    zc_save<Z_X>(p.y, at, zc_fused(p.fused, scaled(p, d, inv, channel), at));
}

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
    zc_walk<Z_X>(p.g, at, p.x, [&](Z_X x, i64 off, i64) {
        put(p, off, (acc)zc_pre(p.pre, x, off) - m.mean, inv, channel_of(p, off));
    });
}

ZC_KERNEL(0)(const __grid_constant__ zc_moments_params p) {
    zc_begin();
    const zc_place at = zc_place_of(p.g);
    apply(p, at, moments_of(p, at));
}

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
    for (i64 s = at.lane; at.valid && s < p.splits; s += p.g.lanes)
        m = m.join(((const moments *)p.states)[at.out * p.splits + s]);
    apply(p, at, zc_join_lanes(p.g, at, m));
}

#ifdef Z_GIVEN
ZC_KERNEL(3)(const __grid_constant__ zc_moments_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        const i64 c = channel_of(p, i);
        const acc inv = (acc)1 / zx_sqrt((acc)zc_load<Z_STAT>(p.var, c) + (acc)p.eps);
        put(p, i, (acc)zc_pre(p.pre, ((const Z_X *)p.x)[i], i) - (acc)zc_load<Z_STAT>(p.mean, c), inv, c);
    }
}
#endif
