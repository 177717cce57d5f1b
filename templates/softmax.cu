// Softmax, LogSoftmax, Hardmax and LpNormalization along one axis. The result may overwrite the input.
//
// spec.h: Z_T (type), Z_ACC (type of sums), Z_KIND (ZC_AXIS_...), Z_N and Z_LANES (see zc/rows.cuh).
// Entries: 0 any axis; 1 to 4, not Hardmax: rows of neighbours; 1 and 2 a row a warp, 3 and 4 a row a block; 1 and 3
// take 16 bytes at once.
#include "zc/groups.cuh"
#include "zc/states.cuh"
#include "abi/softmax.h"
#include "spec.h"

#include "zc/fused.cuh"
#include "zc/rows.cuh"

typedef Z_ACC acc;

#if defined(Z_HARD)
struct state {
    typedef zc_best<acc, false, false> best;
    best b;
    static ZC_MEMBER state none() { return {best::none()}; }
    ZC_MEMBER void add(acc x, i64 r) { b = b.join(best{x, r}); }
    ZC_MEMBER state join(state o) const { return {b.join(o.b)}; }
    ZC_MEMBER state other(int mask) const { return {b.other(mask)}; }
    ZC_MEMBER bool result(acc, i64 r) const { return r == b.index; }
};
#elif defined(Z_NORM)
struct state {
    acc v;
    static ZC_MEMBER state none() { return {(acc)0}; }
    ZC_MEMBER void add(acc x, i64) { v += Z_KIND == ZC_AXIS_L1 ? zx_abs(x) : x * x; }
    ZC_MEMBER state join(state o) const { return {v + o.v}; }
    ZC_MEMBER state other(int mask) const { return {zc_shfl_xor(v, mask)}; }
    ZC_MEMBER acc result(acc x, i64) const {
        const acc norm = Z_KIND == ZC_AXIS_L1 ? v : zx_sqrt(v);
        return norm == (acc)0 ? (acc)0 : x / norm;
    }
};
#else
struct state {
    zc_exps<acc> e;
    static ZC_MEMBER state none() { return {zc_exps<acc>::none()}; }
    ZC_MEMBER void add(acc x, i64) { e.add(x); }
    ZC_MEMBER state join(state o) const { return {e.join(o.e)}; }
    ZC_MEMBER state other(int mask) const { return {e.other(mask)}; }
    // What result needs: a row that is masked everywhere has no weights, an infinite element no defined ones.
    ZC_MEMBER state settled() const {
        const acc inf = zc_inf_of(e.top);
        if (e.top == -inf) return {{(acc)0, (acc)0}};
        return {{e.top, e.top < inf ? e.sum : zc_nan_of(e.sum)}};
    }
    ZC_MEMBER acc result(acc x, i64) const {
        if (Z_KIND == ZC_AXIS_LOG_SOFTMAX) return (x - e.top) - zx_log(e.sum);
        return e.sum == (acc)0 ? (acc)0 : zx_exp(x - e.top) / e.sum;
    }
};
#endif
// NOTHING: an element that does not change the state.
#ifdef Z_EXPS
#define SETTLED(s) s.settled()
#define NOTHING    -zc_inf_of((acc)0)
#else
#define SETTLED(s) s
#define NOTHING    (acc)0
#endif

ZC_KERNEL(0)(const __grid_constant__ zc_softmax_params p) {
    zc_begin();
    const zc_place at = zc_place_of(p.g);
    state s = state::none();
    zc_walk<Z_T>(p.g, at, p.in, [&](Z_T x, i64 off, i64 r) { s.add((acc)zc_pre(p.pre, x, off), r); });
    s = zc_join_lanes(p.g, at, s);
    s = SETTLED(s);
    zc_walk<Z_T>(p.g, at, p.in, [&](Z_T x, i64 off, i64 r) {
        zc_save<Z_T>(p.out, off, zc_fused(p.fused, s.result((acc)zc_pre(p.pre, x, off), r), off));
    });
}

#ifndef Z_HARD
template <int V> ZC_DEV void put(const zc_softmax_params &p, i64 i, const acc *v) {
    zc_vec<Z_T, V> r;
#pragma unroll
    for (int k = 0; k < V; k++) r.v[k] = zc_put<Z_T>(zc_fused(p.fused, v[k], i + k));
    *(zc_vec<Z_T, V> *)((Z_T *)p.out + i) = r;
}
template <int V> ZC_DEV void get(const zc_softmax_params &p, i64 i, acc *v) {
    const zc_vec<Z_T, V> x = *(const zc_vec<Z_T, V> *)((const Z_T *)p.in + i);
#pragma unroll
    for (int k = 0; k < V; k++) v[k] = zc_pre(p.pre, x.v[k], i + k);
}

// The state of elements in registers; softmax's become their exponentials.
template <bool WARP, int COUNT> ZC_DEV state state_of(acc *v) {
#ifdef Z_EXPS
    zc_top<acc> top = zc_top<acc>::none();
#pragma unroll
    for (int i = 0; i < COUNT; i++) top.v = zx_max(top.v, v[i]);
    top = zc_join_team<WARP>(top);
    const acc m = top.v == -zc_inf_of(top.v) ? (acc)0 : top.v;
    zc_sum<acc> sum = zc_sum<acc>::none();
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const acc e = zx_exp(v[i] - m);
        if (Z_KIND == ZC_AXIS_SOFTMAX) v[i] = e;
        sum.v += e;
    }
    sum = zc_join_team<WARP>(sum);
    return {{m, sum.v}};
#else
    state s = state::none();
#pragma unroll
    for (int i = 0; i < COUNT; i++) s.add(v[i], 0);
    return zc_join_team<WARP>(s);
#endif
}

template <int V, bool WARP> ZC_DEV void row_in_registers(const zc_softmax_params &p, i64 row) {
    typedef zc_team<WARP> team;
    constexpr int KEEP = zc_keep<V, WARP>::value;
    acc v[KEEP * V];
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        const i64 j = ((i64)k * team::lanes() + team::lane()) * V;
#pragma unroll
        for (int i = 0; i < V; i++) v[k * V + i] = NOTHING;
        if (j < Z_N) get<V>(p, row * Z_N + j, v + k * V);
    }
    const state s = state_of<WARP, KEEP * V>(v);
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        const i64 j = ((i64)k * team::lanes() + team::lane()) * V;
#pragma unroll
        for (int i = 0; i < V; i++) {
            acc &x = v[k * V + i];
#ifdef Z_EXPS
            if (Z_KIND == ZC_AXIS_SOFTMAX)
                x = s.e.sum == (acc)0 ? (acc)0 : x / s.e.sum;
            else
#endif
                x = s.result(x, 0);
        }
        if (j < Z_N) put<V>(p, row * Z_N + j, v + k * V);
    }
}

template <int V, bool WARP> ZC_DEV void row_in_memory(const zc_softmax_params &p, i64 row) {
    typedef zc_team<WARP> team;
    const i64 step = (i64)team::lanes() * V, first = (i64)team::lane() * V;
    acc v[V];
    state s = state::none();
    for (i64 j = first; j < Z_N; j += step) {
        get<V>(p, row * Z_N + j, v);
#pragma unroll
        for (int k = 0; k < V; k++) s.add(v[k], 0);
    }
    s = zc_join_team<WARP>(s);
    s = SETTLED(s);
    for (i64 j = first; j < Z_N; j += step) {
        get<V>(p, row * Z_N + j, v);
#pragma unroll
        for (int k = 0; k < V; k++) v[k] = s.result(v[k], 0);
        put<V>(p, row * Z_N + j, v);
    }
}

template <int V, bool WARP> ZC_DEV void one_row(const zc_softmax_params &p) {
    const i64 row = zc_team<WARP>::row();
    if (row >= p.rows) return;
    if constexpr (zc_keep<V, WARP>::value > 0)
        row_in_registers<V, WARP>(p, row);
    else
        row_in_memory<V, WARP>(p, row);
}

constexpr int wide = 16 / (int)sizeof(Z_T);
ZC_WARP_KERNEL(1)(const __grid_constant__ zc_softmax_params p) {
    zc_begin();
    if constexpr (ZC_WARP_ROWS) one_row<wide, true>(p);
}
ZC_WARP_KERNEL(2)(const __grid_constant__ zc_softmax_params p) {
    zc_begin();
    if constexpr (ZC_WARP_ROWS) one_row<1, true>(p);
}
ZC_BLOCK_KERNEL(3)(const __grid_constant__ zc_softmax_params p) {
    zc_begin();
    if constexpr (ZC_BLOCK_ROWS) one_row<wide, false>(p);
}
ZC_BLOCK_KERNEL(4)(const __grid_constant__ zc_softmax_params p) {
    zc_begin();
    if constexpr (ZC_BLOCK_ROWS) one_row<1, false>(p);
}
#endif
