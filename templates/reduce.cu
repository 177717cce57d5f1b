// Reductions over any axes, and ArgMax and ArgMin.
//
// spec.h: Z_IN and Z_OUT (types; bytes, where the prologue makes floats of them or the epilogue makes them), Z_ACC (type of sums:
// f32, f64, i64, u64), Z_KIND (ZC_REDUCE_...), Z_FIRST (what a reduction over nothing starts with), Z_LAST (ArgMax, ArgMin: of
// equal elements the last).
// Entries: 0 from elements to outputs, or to states when an output is split among blocks; 1 from states to outputs, a warp
// each.
#include "zc/groups.cuh"
#include "zc/states.cuh"
#include "abi/reduce.h"
#include "spec.h"
#include "zc/fused.cuh"

typedef Z_ACC acc;

struct plain {
    acc v;
    static ZC_MEMBER plain none() { return {(acc)(Z_FIRST)}; }
    static ZC_MEMBER acc both(acc a, acc b) {
        switch (Z_KIND) {
        case ZC_REDUCE_MAX: return zx_max(a, b);
        case ZC_REDUCE_MIN: return zx_min(a, b);
        case ZC_REDUCE_PROD: return zx_mul(a, b);
        default: return zx_add(a, b);
        }
    }
    ZC_MEMBER void add(acc x, i64) {
        if (Z_KIND == ZC_REDUCE_L1) x = zx_abs(x);
        if (Z_KIND == ZC_REDUCE_L2 || Z_KIND == ZC_REDUCE_SUM_SQUARE) x = zx_mul(x, x);
        v = both(v, x);
    }
    ZC_MEMBER plain join(plain b) const { return {both(v, b.v)}; }
    ZC_MEMBER plain other(int mask) const { return {zc_shfl_xor(v, mask)}; }
    ZC_MEMBER acc finish(i64 n) const {
        if (Z_KIND == ZC_REDUCE_MEAN) return zc_traits<acc>::is_float || n ? zx_div(v, (acc)n) : (acc)0;
#ifdef Z_ROOTS
        if (Z_KIND == ZC_REDUCE_L2) return zx_sqrt(v);
        if (Z_KIND == ZC_REDUCE_LOG_SUM) return zx_log(v);
#endif
        return v;
    }
};

#if defined(Z_ARG)
struct state : zc_best<acc, Z_KIND == ZC_REDUCE_ARG_MIN, Z_LAST> {
    typedef zc_best<acc, Z_KIND == ZC_REDUCE_ARG_MIN, Z_LAST> best;
    static ZC_MEMBER state of(best b) {
        state s;
        s.v = b.v;
        s.index = b.index;
        return s;
    }
    static ZC_MEMBER state none() { return of(best::none()); }
    ZC_MEMBER void add(acc x, i64 r) { *this = of(best::join(best{x, r})); }
    ZC_MEMBER state join(state b) const { return of(best::join(b)); }
    ZC_MEMBER state other(int mask) const { return of(best::other(mask)); }
    ZC_MEMBER i64 finish(i64) const { return index; }
};
#elif defined(Z_EXPS)
struct state : zc_exps<acc> {
    static ZC_MEMBER state of(zc_exps<acc> e) {
        state s;
        s.top = e.top;
        s.sum = e.sum;
        return s;
    }
    static ZC_MEMBER state none() { return of(zc_exps<acc>::none()); }
    ZC_MEMBER void add(acc x, i64) { zc_exps<acc>::add(x); }
    ZC_MEMBER state join(state b) const { return of(zc_exps<acc>::join(b)); }
    ZC_MEMBER state other(int mask) const { return of(zc_exps<acc>::other(mask)); }
    ZC_MEMBER acc finish(i64) const { return zc_isfinite(top) ? top + zx_log(sum) : top; }
};
#else
typedef plain state;
#endif

ZC_DEV void put(const zc_reduce_params &p, i64 out, state s) {
    zc_save<Z_OUT>(p.out, out, zc_fused(p.fused, s.finish(p.elements), out));
}
ZC_DEV void leave(const zc_reduce_params &p, const zc_place &at, state s) {
    if (!at.valid || at.lane != 0) return;
    if (Z_SPLIT == 2 || (Z_SPLIT == 0 && p.states))
        ((state *)p.states)[at.out * gridDim.y + blockIdx.y] = s;
    else
        put(p, at.out, s);
}

ZC_KERNEL(0)(const __grid_constant__ zc_reduce_params p) {
    zc_begin();
    const zc_place at = zc_place_of(p.g);
    state s = state::none();
    zc_walk<Z_IN>(p.g, at, p.in, [&](Z_IN x, i64 off, i64 r) { s.add((acc)zc_pre(p.pre, x, off), r); });
    leave(p, at, zc_join_lanes(p.g, at, s));
}

#if Z_SPLIT != 1
ZC_KERNEL(1)(const __grid_constant__ zc_reduce_params p) {
    zc_begin();
    const i64 out = zc_thread() / 32;
    if (out >= p.g.outputs) return;
    state s = state::none();
    for (i64 i = threadIdx.x % 32u; i < p.splits; i += 32) s = s.join(((const state *)p.states)[out * p.splits + i]);
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2) s = s.join(s.other(mask));
    if (threadIdx.x % 32u == 0) put(p, out, s);
}
#endif
