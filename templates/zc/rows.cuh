// Rows of neighbouring elements, each shared by a team: a warp, or a whole block. Z_N is the row's length; when it is
// certain Z_LANES is the number of threads that share a row, and short rows are kept in registers. Included after spec.h.
#pragma once
#include "zc/device.cuh"

template <bool WARP> struct zc_team {
    static ZC_MEMBER int lanes() { return WARP ? 32 : (int)blockDim.x; }
    static ZC_MEMBER int lane() { return WARP ? (int)threadIdx.x % 32 : (int)threadIdx.x; }
    static ZC_MEMBER i64 row() {
        return WARP ? (i64)blockIdx.x * (blockDim.x / 32u) + threadIdx.x / 32u : (i64)blockIdx.x;
    }
};

// The joined state of the team, in each of its threads. A block needs 32 states of dynamic shared memory.
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

// Pieces of V elements that a thread keeps of a row; 0: too many, or not certain.
template <int V, bool WARP> struct zc_keep {
#ifdef Z_LANES
    static constexpr i64 per = (WARP ? 32 : Z_LANES) * V, pieces = (Z_N + per - 1) / per;
    static constexpr int value = pieces * V <= (Z_LANES > 512 ? 16 : 32) ? (int)pieces : 0;
#else
    static constexpr int value = 0;
#endif
};

// Which kernels rows of this length need: a row a warp, a row a block; the others are left empty.
#ifndef Z_LANES
#define ZC_WARP_ROWS     true
#define ZC_BLOCK_ROWS    true
#define ZC_BLOCK_THREADS 1024
#else
#define ZC_WARP_ROWS     (Z_LANES == 32)
#define ZC_BLOCK_ROWS    (Z_LANES != 32)
#define ZC_BLOCK_THREADS Z_LANES
#endif
#define ZC_ROW_KERNEL(n, threads) extern "C" __global__ void __launch_bounds__(threads) ZC_CAT(ZC_NAME, _##n)
#define ZC_WARP_KERNEL(n)         ZC_ROW_KERNEL(n, 128)
#define ZC_BLOCK_KERNEL(n)        ZC_ROW_KERNEL(n, ZC_BLOCK_THREADS)
