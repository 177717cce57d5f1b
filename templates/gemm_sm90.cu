// Matrix products of f16 or bf16 on Hopper: the copy engine fills a ring of stages in shared memory, products of whole
// warpgroups empty it. One warpgroup of three is the producer (one thread of it issues copies); the other two share a
// tile's rows, or with Z_PINGPONG take tiles in turn, so that one's epilogue runs under the other's products. Blocks are
// persistent; those of a cluster lie below each other and share B, each copying a part of it to all.
//
// spec.h: see zc/gemm.cuh, and the configuration: Z_TILE_M x Z_TILE_N x 64 a stage, Z_STAGES, Z_CLUSTER, Z_PINGPONG,
// Z_RASTER (rows of tiles that neighbouring blocks share columns of); Z_WGMMA (F16, BF16); Z_B_CONSTANT: B is a constant
// of the plan, so its first stages are copied before the kernel in front has ended. Entry 1: see
// zc/gemm_second.cuh.
#include "zc/gemm.cuh"
#include "zc/hopper.cuh"
#include "zc/ring.cuh"
#include "abi/gemm_sm90.h"

ZC_WGMMA(zc_product, Z_TILE_N, Z_WGMMA, !Z_TB)

template <int TILE_M, int TILE_N, int STAGES, int CLUSTER, bool PINGPONG> struct zc_gemm_sm90 {
    static constexpr int DEPTH = 64, LINE = 128, PANEL = 64 * LINE; // 64 lines
    static constexpr int BLOCKS = TILE_M / (PINGPONG ? 64 : 128);   // of 64 rows, a warpgroup
    static constexpr int A_BYTES = TILE_M * LINE, STAGE = A_BYTES + TILE_N * LINE;
    static constexpr int STAGING = 2;                               // panels a warpgroup writes its results through
    static constexpr u16 ALL = (1 << CLUSTER) - 1;
#ifdef Z_NORM
    static constexpr bool PART = true;
#else
    static constexpr bool PART = false;
#endif

    static constexpr int BARRIERS = STAGES * STAGE + (PART ? 0 : 2 * STAGING * PANEL);

    const zc_gemm_sm90_params &p;
    u32 smem;                       // the ring of stages, panels of results, barriers
    int down, across, steps, tiles; // tiles: of clusters
    int rank;

    ZC_MEMBER u32 a_of(int stage) const { return smem + stage * STAGE; }
    ZC_MEMBER u32 b_of(int stage) const { return smem + stage * STAGE + A_BYTES; }
    ZC_MEMBER u32 panel_of(int warpgroup, int buffer) const {
        return smem + STAGES * STAGE + (warpgroup * STAGING + buffer) * PANEL;
    }
    ZC_MEMBER u32 full(int stage) const { return smem + BARRIERS + stage * 8; }
    ZC_MEMBER u32 empty(int stage) const { return smem + BARRIERS + (STAGES + stage) * 8; }

    ZC_MEMBER zc_gemm_sm90(const zc_gemm_sm90_params &p, u32 smem) : p(p), smem(smem) {
        down = (int)((p.g.m + TILE_M * CLUSTER - 1) / (TILE_M * CLUSTER));
        across = (int)((p.g.n + TILE_N - 1) / TILE_N);
        steps = (int)((p.g.k + DEPTH - 1) / DEPTH);
        tiles = down * across * p.items;
        rank = CLUSTER > 1 ? (int)zc_cluster_rank() : 0;
    }

    typedef zc_ring_slot<STAGES> slot;
    struct place {
        int row, col, item;
    };
    ZC_MEMBER place place_of(int tile) const {
        const int item = tile / (down * across), at = tile - item * down * across;
        const int group = at / (Z_RASTER * across), first = group * Z_RASTER, in = at - first * across;
        const int rows = down - first < Z_RASTER ? down - first : Z_RASTER;
        return {((first + in % rows) * CLUSTER + rank) * TILE_M, in / rows * TILE_N, item};
    }
    ZC_MEMBER int first_tile() const { return blockIdx.x / CLUSTER; }
    ZC_MEMBER int tile_step() const { return gridDim.x / CLUSTER; }

    ZC_MEMBER void begin() const {
        if (threadIdx.x == 0) {
            for (int s = 0; s < STAGES; s++) {
                zc_barrier_init(full(s), 1);
                zc_barrier_init(empty(s), (PINGPONG ? 1 : 2) * CLUSTER);
            }
            zc_barrier_fence();
            zc_tensor_prefetch(&p.a);
            zc_tensor_prefetch(&p.b);
            if (!PART) zc_tensor_prefetch(&p.y);
        }
        if (CLUSTER > 1) {
            zc_sync_warp();
            zc_cluster_arrive_relaxed();
            zc_cluster_wait();
        } else {
            zc_sync();
        }
    }

    // ---- the producer ----

    // EARLY: before the kernel in front has ended.
    template <bool EARLY> ZC_MEMBER void load_b_part(u32 to, u32 barrier, int c0, int c1, int item) const {
        if (EARLY) zc_constant_load();
        if (CLUSTER > 1)
            zc_tensor_multicast(to, &p.b, barrier, ALL, c0, c1, item);
        else
            zc_tensor_load(to, &p.b, barrier, c0, c1, item);
    }
    template <bool EARLY> ZC_MEMBER void load_b(const slot &at, const place &t, int step) const {
        const u32 to = b_of(at.stage), barrier = full(at.stage);
        const int item = p.b_items > 1 ? t.item : 0;
        if constexpr (Z_TB) {
            constexpr int LINES = TILE_N / CLUSTER;
            load_b_part<EARLY>(to + rank * LINES * LINE, barrier, step * DEPTH, t.col + rank * LINES, item);
        } else {
            constexpr int LINES = DEPTH / CLUSTER;
#pragma unroll
            for (int panel = 0; panel < TILE_N / 64; panel++)
                load_b_part<EARLY>(to + panel * PANEL + rank * LINES * LINE, barrier, t.col + panel * 64,
                            step * DEPTH + rank * LINES, item);
        }
    }
    ZC_MEMBER void produce() const {
        slot at = {0, 1};
        int early = 0;
#ifdef Z_B_CONSTANT
        if (first_tile() < tiles) {
            const place t = place_of(first_tile());
            early = steps < STAGES ? steps : STAGES;
            for (int k = 0; k < early; k++) {
                zc_barrier_expect(full(k), STAGE);
                load_b<true>({k, 0}, t, k);
            }
        }
#endif
        zc_grid_wait();
        zc_grid_launch();
        for (int tile = first_tile(); tile < tiles; tile += tile_step()) {
            const place t = place_of(tile);
            for (int k = 0; k < steps; k++, at.next()) {
                if (early > 0) {
                    early--;
                } else {
                    zc_barrier_wait(empty(at.stage), at.parity);
                    zc_barrier_expect(full(at.stage), STAGE);
                    load_b<false>(at, t, k);
                }
                zc_tensor_load(a_of(at.stage), &p.a, full(at.stage), k * DEPTH, t.row, t.item);
            }
        }
        // The others may still write to this block's memory and arrive on its barriers.
        if (CLUSTER > 1)
            for (int s = 0; s < STAGES; s++, at.next()) zc_barrier_wait(empty(at.stage), at.parity);
    }

    // ---- the consumers ----

    ZC_MEMBER void release(int stage, int thread) const {
        if (CLUSTER > 1) {
            if (thread < CLUSTER) zc_barrier_arrive_remote(zc_cluster_address(empty(stage), thread));
        } else if (thread == 0) {
            zc_barrier_arrive(empty(stage));
        }
    }
    ZC_MEMBER void multiply(slot &at, int warpgroup, int thread, f32 (&sum)[BLOCKS][TILE_N / 2]) const {
        int last = -1;
        for (int k = 0; k < steps; k++, at.next()) {
            zc_barrier_wait(full(at.stage), at.parity);
            const u32 a = a_of(at.stage) + (PINGPONG ? 0 : warpgroup * BLOCKS * PANEL);
            const u32 b = b_of(at.stage);
            zc_wgmma_fence();
#pragma unroll
            for (int part = 0; part < DEPTH / 16; part++)
#pragma unroll
                for (int i = 0; i < BLOCKS; i++)
                    zc_product(sum[i], zc_wgmma_along(a + i * PANEL + part * 32),
                               Z_TB ? zc_wgmma_along(b + part * 32) : zc_wgmma_across(b + part * 16 * LINE, PANEL),
                               k || part);
            zc_wgmma_commit();
            if (last >= 0) { // one group is in flight: the products of the step before are done
                zc_wgmma_wait<1>();
                release(last, thread);
            }
            last = at.stage;
        }
        zc_wgmma_wait<0>();
        if (last >= 0) release(last, thread);
    }

    // Two neighbours of a row, as elements of the result. Below the last row any row's operands will do.
    ZC_MEMBER u32 finish(const zc_gemm_item &item, int at, int row, int col, const f32 *sum) const {
        f32 v[2];
#pragma unroll
        for (int i = 0; i < 2; i++) v[i] = zc_epilogue(zc_gemm_value(p.g, item, row, col + i, sum[i]));
        zc_fused_pair(p.g.fused, v, at * p.g.m + row, col, (int)p.g.n);
        return zc_pack(Z_T(), v[0], v[1]);
    }
    // 64 rows by 64 columns as results: by groups of 8 columns, of which the result has whole ones, two rows a thread.
    // Nothing stands between them that would keep the compiler from asking for all operands first.
    ZC_MEMBER void finish_panel(const zc_gemm_item &item, const place &t, int row, int panel, int thread,
                                const f32 *sum, u32 (&out)[16]) const {
        const int lane = thread % 32, last = (int)p.g.m - 1;
        const int top = row + thread / 32 * 16 + lane / 4, col = t.col + panel * 64;
        const int r0 = top < last ? top : last, r1 = top + 8 < last ? top + 8 : last;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int c = col + j * 8 + lane % 4 * 2;
            const f32 *const s = sum + (panel * 64 + j * 8) / 2;
            out[j * 2] = out[j * 2 + 1] = 0;
            if (col + j * 8 >= (int)p.g.n) continue;
            out[j * 2] = finish(item, t.item, r0, c, s);
            out[j * 2 + 1] = finish(item, t.item, r1, c, s + 2);
        }
    }
    ZC_MEMBER void write_panel(u32 to, int thread, const u32 (&out)[16]) const {
        const int lane = thread % 32, line = thread / 32 * 16 + lane % 16;
#pragma unroll
        for (int j = 0; j < 8; j += 2)
            zc_stmatrix_x4(to + line * LINE + ((j + lane / 16) ^ line % 8) * 16, out + j * 2);
    }
    // buffer: the panel that the store before the last one read.
    ZC_MEMBER void store(const place &t, int warpgroup, int thread, const f32 (&sum)[BLOCKS][TILE_N / 2],
                         int &buffer) const {
        const zc_gemm_item item = zc_gemm_batch(p.g, t.item);
        const int row = t.row + (PINGPONG ? 0 : warpgroup * BLOCKS * 64);
#pragma unroll
        for (int i = 0; i < BLOCKS; i++)
#pragma unroll
            for (int panel = 0; panel < TILE_N / 64; panel++, buffer ^= 1) {
                const u32 to = panel_of(warpgroup, buffer);
                u32 out[16];
                finish_panel(item, t, row + i * 64, panel, thread, sum[i], out);
                if (thread == 0) zc_bulk_wait_read<STAGING - 1>();
                zc_named_sync(1 + warpgroup, 128);
                write_panel(to, thread, out);
                zc_async_fence();
                zc_named_sync(1 + warpgroup, 128);
                if (thread == 0) {
                    zc_tensor_store(&p.y, to, t.col + panel * 64, row + i * 64, t.item);
                    zc_bulk_commit();
                }
            }
    }
    // Sums as they are, for the kernel that normalises rows.
    ZC_MEMBER void store_sums(const place &t, int warpgroup, int thread,
                              const f32 (&sum)[BLOCKS][TILE_N / 2]) const {
        const int row = t.row + (PINGPONG ? 0 : warpgroup * BLOCKS * 64) + thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
        for (int i = 0; i < BLOCKS; i++)
#pragma unroll
            for (int j = 0; j < TILE_N / 2; j += 2) {
                const i64 r = row + i * 64 + j / 2 % 2 * 8, c = t.col + j / 4 * 8 + thread % 4 * 2;
                if (r < p.g.m && c < p.g.n)
                    *(zc_vec<f32, 2> *)((f32 *)p.g.partial + r * p.g.n + c) = {sum[i][j], sum[i][j + 1]};
            }
    }
    ZC_MEMBER void consume(int warpgroup) const {
        const int thread = threadIdx.x % 128;
        slot at = {0, 0};
        int turn = 0, buffer = 0;
        zc_grid_wait();
        zc_grid_launch();
        // A parity cannot tell a phase from the one two before it: the two enter their products in turn.
        if (PINGPONG && warpgroup == 1) zc_named_arrive(3, 256);
        for (int tile = first_tile(); tile < tiles; tile += tile_step(), turn ^= PINGPONG) {
            if (PINGPONG && turn != warpgroup) {
                at.skip(steps);
                continue;
            }
            const place t = place_of(tile);
            f32 sum[BLOCKS][TILE_N / 2];
            if (PINGPONG) zc_named_sync(3 + warpgroup, 256);
            multiply(at, warpgroup, thread, sum);
            if (PINGPONG) zc_named_arrive(3 + (warpgroup ^ 1), 256);
            if (PART)
                store_sums(t, warpgroup, thread, sum);
            else
                store(t, warpgroup, thread, sum, buffer);
        }
        if (!PART && thread == 0) zc_bulk_wait<0>();
    }
};

ZC_KERNEL_OF(0, 384)(const __grid_constant__ zc_gemm_sm90_params p) {
    ZC_SWIZZLED_SMEM(smem);
    const zc_gemm_sm90<Z_TILE_M, Z_TILE_N, Z_STAGES, Z_CLUSTER, Z_PINGPONG> product(p, zc_smem_address(smem));
    product.begin();
    if (threadIdx.x < 128) {
        zc_registers_drop<40>();
        if (threadIdx.x == 0) product.produce();
    } else {
        zc_registers_take<232>();
        product.consume(threadIdx.x / 128 - 1);
    }
    if (Z_CLUSTER > 1) {
        zc_sync_warp();
        zc_cluster_arrive_relaxed();
        zc_cluster_wait();
    }
}
#include "zc/gemm_second.cuh"
