// Rows of neighbouring elements, each shared by a team: a warp, or a whole block.
//
// For kernels whose generator has chosen for rows, spec.h, in front of this, has: Z_N, a row's length; Z_TEAM, threads that
// share a row; Z_VECTOR, elements a thread takes at once, 0: as many as 16 bytes hold where a run's length is a multiple of
// that; Z_MOST: no row is longer, 0: not certain, or too long to be kept in registers; Z_EXACT: Z_MOST is the length;
// Z_SHARES: how many blocks stay on a multiprocessor, whose teams go over the rows and ask for the next one before they are
// done with one; 0: each row has a team of its own.
#pragma once
#include "zc/device.cuh"

template <bool WARP> struct zc_team {
    static ZC_MEMBER int lanes() { return WARP ? 32 : (int)blockDim.x; }
    static ZC_MEMBER int lane() { return WARP ? (int)threadIdx.x % 32 : (int)threadIdx.x; }
    static ZC_MEMBER i64 row() {
        return WARP ? (i64)blockIdx.x * (blockDim.x / 32u) + threadIdx.x / 32u : (i64)blockIdx.x;
    }
    static ZC_MEMBER i64 count() { return WARP ? (i64)gridDim.x * (blockDim.x / 32u) : (i64)gridDim.x; }
};

// The joined state of a warp or a block, in each of its threads. A block, of so many warps, needs 32 states of dynamic shared
// memory.
template <bool WARP, class S> ZC_DEV S zc_join_team(S s, int warps = (int)blockDim.x / 32) {
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2) s = s.join(s.other(mask));
    if (WARP) return s;
    ZC_DYNAMIC_SMEM(smem);
    S *parts = (S *)smem;
    zc_sync();
    if (threadIdx.x % 32u == 0) parts[threadIdx.x / 32u] = s;
    zc_sync();
    s = parts[0];
    for (int w = 1; w < warps; w++) s = s.join(parts[w]);
    return s;
}
#ifdef Z_TEAM
constexpr bool ZC_WARP_ROWS = Z_TEAM == 32;
constexpr int ZC_ROW_WARPS = 4; // of a block, when a warp has a row of its own
#ifndef Z_SHARES
#define Z_SHARES 0
#endif
constexpr bool ZC_ROWS_STAY = Z_SHARES > 0;

ZC_DEV int zc_team_lane() { return zc_team<ZC_WARP_ROWS>::lane(); }
ZC_DEV i64 zc_team_row() { return zc_team<ZC_WARP_ROWS>::row(); }
// The team's next row; p.rows or more: there is none.
ZC_DEV i64 zc_next_row(i64 row, i64 rows) { return ZC_ROWS_STAY ? row + zc_team<ZC_WARP_ROWS>::count() : rows; }
template <class S> ZC_DEV S zc_join_row(S s) {
    return zc_join_team<ZC_WARP_ROWS>(s, ZC_ROWS_STAY ? Z_TEAM / 32 : (int)blockDim.x / 32);
}

// Pieces of V elements that a thread keeps of a row; 0: too many. Of a row that may be shorter no code for each element.
template <int V> struct zc_keep {
    static constexpr i64 per = Z_TEAM * V, pieces = Z_EXACT || V > 1 ? (Z_MOST + per - 1) / per : 0;
    static constexpr int value = pieces * V <= (Z_TEAM > 512 ? 16 : 32) ? (int)pieces : 0;
};
// A thread has pieces of V columns of a row, of which it keeps some: f(k, column) for each piece that is there.
template <int V> constexpr i64 ZC_ROW_STEP = (i64)Z_TEAM * V;
template <int V> ZC_DEV i64 zc_first_column() { return (i64)zc_team_lane() * V; }
template <int V, class P, class F> ZC_DEV void zc_kept_pieces(const P &p, F f) {
    const i64 first = zc_first_column<V>();
#pragma unroll
    for (int k = 0; k < zc_keep<V>::value; k++)
        if (first + k * ZC_ROW_STEP<V> < Z_N) f(k, first + k * ZC_ROW_STEP<V>);
}

// What a team that stays has of a later row, or of all rows, is in registers as it stands in memory until it is needed: the
// compiler would take it apart when it comes, into twice as many.
template <class T, int V> ZC_DEV zc_vec<T, V> zc_needed(const zc_vec<T, V> &held) {
    if constexpr (!ZC_ROWS_STAY) return held;
    zc_vec<T, V> r;
#pragma unroll
    for (int i = 0; i < (int)sizeof r / 4; i++) ((u32 *)&r)[i] = zc_packed(((const u32 *)&held)[i]);
    return r;
}

#if Z_SHARES
#define ZC_ROW_BOUNDS(threads) __launch_bounds__(threads, Z_SHARES)
#else
#define ZC_ROW_BOUNDS(threads) __launch_bounds__(threads)
#endif
// Entry n: F<V>(params, row) of all rows, from the team's first one on.
#define ZC_ROW_KERNEL(n, F, V, P)                                                                                      \
    extern "C" __global__ void ZC_ROW_BOUNDS(ZC_WARP_ROWS ? 32 * ZC_ROW_WARPS : Z_TEAM)                                \
        ZC_CAT(ZC_NAME, _##n)(const __grid_constant__ P p) {                                                           \
        static_assert(!ZC_ROWS_STAY || zc_keep<V>::value > 0, "teams that stay keep a row in registers");              \
        zc_begin();                                                                                                    \
        if (zc_team_row() < p.rows) F<V>(p, zc_team_row());                                                            \
    }
#endif
