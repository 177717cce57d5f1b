// Softmax, LogSoftmax, Hardmax and LpNormalization along one axis. The result may overwrite the input.
//
// spec.h: Z_X (type of what is read), Z_T (the same, or what the prologue makes of bytes), Z_Y (of the result, which may be
// codes of 8 bits), Z_ACC (of sums), Z_KIND (ZC_AXIS_...), Z_TEAM: 0 for any axis (zc/groups.cuh), else for rows of neighbours
// (zc/rows.cuh).
// Entries: 0, and for rows of an uncertain length 1, which takes one element at once.
#include "zc/groups.cuh"
#include "zc/states.cuh"
#include "abi/softmax.h"
#include "spec.h"

#include "zc/fused.cuh"

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

#if Z_TEAM == 0
struct results {
    const zc_softmax_params &p;
    state s;
    template <int V> ZC_MEMBER void operator()(const zc_vec<Z_T, V> &run, i64 off, i64 r) {
        zc_vec<Z_Y, V> y;
#pragma unroll
        for (int k = 0; k < V; k++)
            y.v[k] = zc_put<Z_Y>(zc_fused(p.fused, s.result((acc)zc_pre(p.pre, run.v[k], off + k), r + k), off + k));
        *(zc_vec<Z_Y, V> *)((Z_Y *)p.out + off) = y;
    }
};

ZC_KERNEL(0)(const __grid_constant__ zc_softmax_params p) {
    zc_begin();
    const zc_place at = zc_place_of(p.g);
    state s = state::none();
    zc_walk<Z_T>(p.g, at, p.in, [&](Z_T x, i64 off, i64 r) { s.add((acc)zc_pre(p.pre, x, off), r); });
    s = zc_join_lanes(p.g, at, s);
    s = SETTLED(s);
    zc_walk_runs<Z_T, ZC_ALL_WORK>(p.g, at, p.in, results{p, s});
}
#else
#include "zc/rows.cuh"

template <int V> ZC_DEV void put(const zc_softmax_params &p, i64 i, const acc *v) {
    zc_vec<Z_Y, V> r;
#pragma unroll
    for (int k = 0; k < V; k++) r.v[k] = zc_put<Z_Y>(zc_fused(p.fused, v[k], i + k));
    *(zc_vec<Z_Y, V> *)((Z_Y *)p.out + i) = r;
}
template <int V> ZC_DEV void get(const zc_softmax_params &p, i64 i, acc *v) {
    const zc_vec<Z_X, V> x = *(const zc_vec<Z_X, V> *)((const Z_X *)p.in + i);
#pragma unroll
    for (int k = 0; k < V; k++) v[k] = zc_pre(p.pre, x.v[k], i + k);
}

// Quotients by one divisor; of 16 bits all but what is tiny is rounded as by a division.
ZC_DEV f64 part_of(f64 x, f64 sum) { return x / sum; }
ZC_DEV f32 part_of(f32 x, f32 sum) {
    if (sizeof(Z_T) > 2) return x / sum;
    const f32 high = 1.0f / sum;
    return zc_divided<true>(x, sum, high, fmaf(-high, sum, 1.0f) * high);
}

// The state of elements in registers; softmax's become their exponentials.
template <int COUNT> ZC_DEV state state_of(acc *v) {
#ifdef Z_EXPS
    zc_top<acc> top = zc_top<acc>::none();
#pragma unroll
    for (int i = 0; i < COUNT; i++) top.v = zc_larger(top.v, v[i]);
    top = zc_join_row(top);
    const acc m = top.v == -zc_inf_of(top.v) ? (acc)0 : top.v;
    zc_sum<acc> sum = zc_sum<acc>::none();
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const acc e = zx_exp(v[i] - m);
        if (Z_KIND == ZC_AXIS_SOFTMAX) v[i] = e;
        sum.v += e;
    }
    sum = zc_join_row(sum);
    return {{m, sum.v}};
#else
    state s = state::none();
#pragma unroll
    for (int i = 0; i < COUNT; i++) s.add(v[i], 0);
    return zc_join_row(s);
#endif
}

// What is in registers, normalised.
template <int COUNT> ZC_DEV void normalise(const state &s, acc *v) {
#ifdef Z_EXPS
    if (Z_KIND == ZC_AXIS_SOFTMAX) {
        const acc sum = s.e.sum == (acc)0 ? (acc)1 : s.e.sum; // masked everywhere: no weights
#pragma unroll
        for (int i = 0; i < COUNT; i++) v[i] = part_of(v[i], sum);
        return;
    }
#endif
#pragma unroll
    for (int i = 0; i < COUNT; i++) v[i] = s.result(v[i], 0);
}

template <int V> ZC_DEV void row_in_registers(const zc_softmax_params &p, i64 row) {
    constexpr int COUNT = zc_keep<V>::value * V;
    acc v[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++) v[i] = NOTHING;
    zc_kept_pieces<V>(p, [&](int k, i64 j) { get<V>(p, row * Z_N + j, v + k * V); });
    normalise<COUNT>(state_of<COUNT>(v), v);
    zc_kept_pieces<V>(p, [&](int k, i64 j) { put<V>(p, row * Z_N + j, v + k * V); });
}

template <int V> ZC_DEV void row_in_memory(const zc_softmax_params &p, i64 row) {
    const i64 first = zc_first_column<V>();
    acc v[V];
    state s = state::none();
    for (i64 j = first; j < Z_N; j += ZC_ROW_STEP<V>) {
        get<V>(p, row * Z_N + j, v);
#pragma unroll
        for (int k = 0; k < V; k++) s.add(v[k], 0);
    }
    s = zc_join_row(s);
    s = SETTLED(s);
    for (i64 j = first; j < Z_N; j += ZC_ROW_STEP<V>) {
        get<V>(p, row * Z_N + j, v);
#pragma unroll
        for (int k = 0; k < V; k++) v[k] = s.result(v[k], 0);
        put<V>(p, row * Z_N + j, v);
    }
}

template <int V> ZC_DEV void one_row(const zc_softmax_params &p, i64 row) {
    if constexpr (zc_keep<V>::value > 0)
        row_in_registers<V>(p, row);
    else
        row_in_memory<V>(p, row);
}

ZC_ROW_KERNEL(0, one_row, (Z_VECTOR ? Z_VECTOR : 16 / (int)sizeof(Z_T)), zc_softmax_params)
#if Z_VECTOR == 0
ZC_ROW_KERNEL(1, one_row, 1, zc_softmax_params)
#endif
#endif
