// Rows of neighbouring elements, each shared by a team: a warp, or a whole block.
//
// For kernels whose generator has chosen for rows, spec.h, in front of this, has: Z_N, a row's length; Z_TEAM, threads that
// share a row; Z_VECTOR, elements a thread takes at once, 0: as many as 16 bytes hold where a run's length is a multiple of
// that; Z_MOST: no row is longer, 0: not certain, or too long to be kept in registers; Z_EXACT: Z_MOST is the length.
#pragma once
#include "zc/device.cuh"

template <bool WARP> struct zc_team {
    static ZC_MEMBER int lanes() { return WARP ? 32 : (int)blockDim.x; }
    static ZC_MEMBER int lane() { return WARP ? (int)threadIdx.x % 32 : (int)threadIdx.x; }
    static ZC_MEMBER i64 row() {
        return WARP ? (i64)blockIdx.x * (blockDim.x / 32u) + threadIdx.x / 32u : (i64)blockIdx.x;
    }
};

// The joined state of a warp or a block, in each of its threads. A block needs 32 states of dynamic shared memory.
template <bool WARP, class S> ZC_DEV S zc_join_team(S s) {
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2) s = s.join(s.other(mask));
    if (WARP) return s;
    ZC_DYNAMIC_SMEM(smem);
    S *parts = (S *)smem;
    const int warps = (int)blockDim.x / 32;
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

ZC_DEV int zc_team_lane() { return zc_team<ZC_WARP_ROWS>::lane(); }
ZC_DEV i64 zc_team_row() { return zc_team<ZC_WARP_ROWS>::row(); }
template <class S> ZC_DEV S zc_join_row(S s) { return zc_join_team<ZC_WARP_ROWS>(s); }

// Pieces of V elements that a thread keeps of a row; 0: too many. Of a row that may be shorter no code for each element.
template <int V> struct zc_keep {
    static constexpr i64 per = Z_TEAM * V, pieces = Z_EXACT || V > 1 ? (Z_MOST + per - 1) / per : 0;
    static constexpr int value = pieces * V <= (Z_TEAM > 512 ? 16 : 32) ? (int)pieces : 0;
};

// Entry n: F<V>(params) of all rows.
#define ZC_ROW_KERNEL(n, F, V, P)                                                                                      \
    extern "C" __global__ void __launch_bounds__(ZC_WARP_ROWS ? 32 * ZC_ROW_WARPS : Z_TEAM)                            \
        ZC_CAT(ZC_NAME, _##n)(const __grid_constant__ P p) {                                                           \
        zc_begin();                                                                                                    \
        if (zc_team_row() < p.rows) F<V>(p, zc_team_row());                                                            \
    }
#endif
