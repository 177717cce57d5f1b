// Where the sums of a tile of few rows meet: each warp of a block has a part of the summed axis, and so has each block of a
// cluster. NEAR columns are finished by one thread.
#pragma once
#include "zc/cluster.cuh"

template <int ROWS, int COLS, int WARPS, int PARTS> struct zc_gemv_sums {
    static constexpr int THREADS = WARPS * 32, NEAR = 2, LANES = COLS / NEAR;
    static constexpr int PASSES = (ROWS * LANES + THREADS - 1) / THREADS;
    static constexpr int SUMS = ROWS * COLS, SENT = SUMS * 4; // of a tile; bytes of them
    static constexpr int RECEIVED = 2 * WARPS * SENT;         // behind f32[2][warps][rows][columns]
    static constexpr int BYTES = RECEIVED + (PARTS > 1 ? PARTS * SENT : 0);
    typedef zc_vec<f32, NEAR> pair;

    unsigned char *memory; // BYTES
    u32 arrived;           // the barrier of the first block of a cluster that counts what others send
    int rank;

    ZC_MEMBER static int near_row(int pass) { return ((int)threadIdx.x + pass * THREADS) / LANES; }
    ZC_MEMBER static int near_col() { return (int)threadIdx.x % LANES * NEAR; }
    ZC_MEMBER static int near(int pass) { return near_row(pass) * COLS + near_col(); }
    ZC_MEMBER f32 *of_warp(int buffer, int warp) const { return (f32 *)memory + (buffer * WARPS + warp) * SUMS; }
    ZC_MEMBER f32 *of_part(int part) const { return (f32 *)(memory + RECEIVED + part * SENT); }
    ZC_MEMBER static void add(pair &to, const f32 *from) {
        const pair x = *(const pair *)from;
#pragma unroll
        for (int e = 0; e < NEAR; e++) to.v[e] += x.v[e];
    }
    // beyond: of columns so far behind.
    ZC_MEMBER pair of_warps(int buffer, int pass, int beyond = 0) const {
        pair sum = {};
#pragma unroll
        for (int w = 0; w < WARPS; w++) add(sum, of_warp(buffer, w) + near(pass) + beyond);
        return sum;
    }
    // In the order of the parts; what the others sent is there.
    ZC_MEMBER pair all(int buffer, int pass, int beyond = 0) const {
        pair sum = of_warps(buffer, pass, beyond);
#pragma unroll
        for (int part = 1; part < PARTS; part++) add(sum, of_part(part) + near(pass) + beyond);
        return sum;
    }
    ZC_MEMBER void send(int buffer) const {
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++)
            if (near_row(pass) < ROWS) *(pair *)(of_part(0) + near(pass)) = of_warps(buffer, pass);
        zc_async_fence();
        zc_sync();
        if (threadIdx.x == 0)
            zc_bulk_send(zc_cluster_address(zc_smem_address(of_part(rank)), 0), zc_smem_address(of_part(0)), SENT,
                         zc_cluster_address(arrived, 0));
    }
};
