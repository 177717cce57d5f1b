// Products of many rows of f16 or bf16 on Hopper by a matrix of which two of each four neighbours along the summed axis are stored
// (op/sparse.h): sparse products of warpgroups, which take as long as dense ones of half the summed axis. The instruction's first
// factor is the sparse one, so columns of the result are rows of the products, 64 a warpgroup, and rows of x their columns.
//
// A block has one tile: one warp asks for copies of x, of stored elements as they lie, and of their places, a ring of stages of 64
// places of the summed axis; two warpgroups multiply. The sums then take the operands' place in shared memory, turned, and threads
// finish eight neighbours of a row each. Where a multiprocessor has two blocks, one finishes under the other's products. Blocks of a
// cluster may share the summed axis of a tile: each finishes a part of its rows, whose sums the others send.
//
// spec.h: Z_T, Z_Y (of results), Z_WGMMA (F16, BF16), Z_BIAS (is there one), and the configuration: Z_TILE_ROWS (of x), Z_STAGES,
// Z_SHARES (blocks on a multiprocessor), Z_PARTS (blocks of a cluster); Z_CONSTANT: the matrix is a constant of the plan.
#include "zc/cluster.cuh"
#include "abi/gemm_sparse_sm90.h"
#include "zc/fused.cuh"
#include "spec.h"

// The even and the odd 32 places of a stage: which threads' words say what is stored of them.
ZC_WGMMA_SPARSE(zc_product_first, Z_TILE_ROWS, Z_WGMMA, 0)
ZC_WGMMA_SPARSE(zc_product_second, Z_TILE_ROWS, Z_WGMMA, 1)

template <int ROWS, int STAGES, int PARTS> struct zc_gemm_sparse_sm90 {
    static constexpr int SIDE = 64, LINE = 128, GROUPS = 2, COLS = GROUPS * SIDE, NEAR = 8;
    static constexpr int THREADS = GROUPS * 128;           // that multiply; one more warp asks for copies
    static constexpr int PIECE = SIDE * 16, W = 4 * PIECE; // bytes: eight stored elements of each row; a warpgroup's of a stage
    static constexpr int WORDS = 128, PLACES = WORDS * 4;
    static constexpr int X = ROWS * LINE, STAGE = X + GROUPS * (W + PLACES);
    static constexpr int PITCH = COLS + 4, SUMS = ROWS * PITCH * 4; // of f32
    static constexpr int SHARE = ROWS / PARTS, SENT = SUMS / PARTS; // rows that a block finishes; bytes of their sums
    static constexpr int RECEIVED = STAGES * STAGE > SUMS ? STAGES * STAGE : SUMS;
    static constexpr int BARRIERS = RECEIVED + (PARTS - 1) * SENT;
    static constexpr int ACROSS = COLS / NEAR, DOWN = THREADS / ACROSS; // threads of a row, rows at once
    enum { CONSUMERS = 1 };                                             // named barrier
    static_assert(ROWS % PARTS == 0 && STAGE % 1024 == 0, "whole shares, and swizzled lines of x");

    const zc_gemm_sparse_sm90_params &p;
    unsigned char *memory; // stages (x, stored elements, places), then the sums in their place; sums of other parts; barriers
    u32 smem;
    int rank, first, steps; // first: of the block's steps
    int row, col;           // of the tile

    ZC_MEMBER u32 x_of(int stage) const { return smem + stage * STAGE; }
    ZC_MEMBER static int w_of(int stage, int group) { return stage * STAGE + X + group * W; }
    ZC_MEMBER static int places_of(int stage, int group) { return stage * STAGE + X + GROUPS * W + group * PLACES; }
    ZC_MEMBER u32 full(int stage) const { return smem + BARRIERS + stage * 8; }
    ZC_MEMBER u32 empty(int stage) const { return smem + BARRIERS + (STAGES + stage) * 8; }
    ZC_MEMBER u32 arrived() const { return smem + BARRIERS + 2 * STAGES * 8; } // what other parts sent
    // Where part `to` finds what part `from` sent it.
    ZC_MEMBER static int received(int from, int to) { return RECEIVED + (from < to ? from : from - 1) * SENT; }

    // Eight tiles below each other before the next ones to the right, so that neighbours share operands in the cache.
    ZC_MEMBER zc_gemm_sparse_sm90(const zc_gemm_sparse_sm90_params &p, unsigned char *memory)
        : p(p), memory(memory), smem(zc_smem_address(memory)) {
        const int tile = (int)blockIdx.x / PARTS, group = tile / (8 * p.across), at = tile - group * 8 * p.across;
        const int lines = p.down - group * 8 < 8 ? p.down - group * 8 : 8;
        rank = PARTS > 1 ? (int)zc_cluster_rank() : 0;
        first = first_of(rank);
        steps = first_of(rank + 1) - first;
        row = (group * 8 + at % lines) * ROWS;
        col = at / lines * COLS;
    }

    ZC_MEMBER int first_of(int part) const { return (int)(p.g.k / SIDE * part / PARTS); }

    // ---- the warp that asks for copies ----

    // Of a warpgroup beyond the last columns what the one before it has: nobody stores its sums.
    template <bool EARLY> ZC_MEMBER void load_w(int stage, int step) const {
        const int last = (int)(p.g.n / SIDE) - 1;
#pragma unroll
        for (int group = 0; group < GROUPS; group++) {
            const int own = col / SIDE + group;
            const i64 tile = (own < last ? own : last) * (p.g.k / SIDE) + first + step;
            if (EARLY) zc_constant_load();
            zc_bulk_load(smem + w_of(stage, group), (const u8 *)p.g.w + tile * W, W, full(stage));
            if (EARLY) zc_constant_load();
            zc_bulk_load(smem + places_of(stage, group), (const u8 *)p.g.places + tile * PLACES, PLACES, full(stage));
        }
    }
    ZC_MEMBER void load_x(int stage, int step) const { zc_tensor_load(x_of(stage), &p.x, full(stage), (first + step) * SIDE, row); }
    ZC_MEMBER int first_steps() const { return steps < STAGES ? steps : STAGES; }
    ZC_MEMBER void prepare() const {
        for (int stage = 0; stage < STAGES; stage++) {
            zc_barrier_init(full(stage), 1);
            zc_barrier_init(empty(stage), GROUPS);
        }
        if (PARTS > 1) zc_barrier_init(arrived(), 1);
        zc_barrier_fence();
        if (PARTS > 1) zc_barrier_expect(arrived(), (PARTS - 1) * SENT);
        for (int step = 0; step < first_steps(); step++) {
            zc_barrier_expect(full(step), STAGE);
#ifdef Z_CONSTANT
            load_w<true>(step, step);
#endif
        }
        zc_tensor_prefetch(&p.x);
    }
    ZC_MEMBER void produce() const {
        for (int step = 0; step < first_steps(); step++) {
#ifndef Z_CONSTANT
            load_w<false>(step, step);
#endif
            load_x(step, step);
        }
        int stage = 0;
        u32 parity = 0;
        for (int step = STAGES; step < steps; step++) {
            zc_barrier_wait(empty(stage), parity);
            zc_barrier_expect(full(stage), STAGE);
            load_w<false>(stage, step);
            load_x(stage, step);
            if (++stage == STAGES) stage = 0, parity ^= 1;
        }
    }

    // ---- the others ----

    struct slot {
        int stage, before; // before: of the step in front
        u32 parity;
        ZC_MEMBER void next() {
            before = stage;
            if (++stage == STAGES) stage = 0, parity ^= 1;
        }
    };
    ZC_MEMBER void step_of(slot &at, int step, int group, int thread, u32 &places, f32 (&sum)[ROWS / 2]) const {
        zc_barrier_wait(full(at.stage), at.parity);
        const u32 w = smem + w_of(at.stage, group), x = x_of(at.stage);
        places = ((const u32 *)(memory + places_of(at.stage, group)))[thread];
        zc_wgmma_fence();
        zc_product_first(sum, zc_wgmma_windows(w, 0, PIECE), zc_wgmma_along(x), places, step > 0);
        zc_product_second(sum, zc_wgmma_windows(w, 2 * PIECE, PIECE), zc_wgmma_along(x, 64), places, true);
        zc_wgmma_commit();
        if (step > 0) {
            zc_wgmma_wait<1>(); // one group is in flight: the products of the step before are done
            if (thread == 0) zc_barrier_arrive(empty(at.before));
        }
        at.next();
    }
    // Places are in two registers in turn: those of the step before must not change.
    ZC_MEMBER void multiply(int group, int thread, f32 (&sum)[ROWS / 2]) const {
        slot at = {0, 0, 0};
        u32 even, odd;
        for (int step = 0; step < steps; step += 2) {
            step_of(at, step, group, thread, even, sum);
            if (step + 1 < steps) step_of(at, step + 1, group, thread, odd, sum);
        }
        zc_wgmma_wait<0>();
    }
    // A line for each row of the result, once nobody reads operands any more.
    ZC_MEMBER void keep(int group, int thread, const f32 (&sum)[ROWS / 2]) const {
        f32 *const lines = (f32 *)memory;
        const int c = group * SIDE + thread / 32 * 16 + thread % 32 / 4, r = thread % 4 * 2;
        zc_named_sync(CONSUMERS, THREADS); // warps wait for their own products alone
#pragma unroll
        for (int i = 0; i < ROWS / 2; i++) lines[(i / 4 * 8 + r + i % 2) * PITCH + c + i / 2 % 2 * 8] = sum[i];
        if (PARTS > 1) zc_async_fence();
        zc_named_sync(CONSUMERS, THREADS);
    }
    ZC_MEMBER void exchange() const {
        const int to = (int)threadIdx.x;
        if (to < PARTS && to != rank)
            zc_bulk_send(zc_cluster_address(smem + received(rank, to), to), smem + to * SENT, SENT, zc_cluster_address(arrived(), to));
        zc_barrier_wait_cluster(arrived(), 0);
    }
    // NEAR neighbours of a row of this block's share: all parts' sums, in their order.
    ZC_MEMBER void add_up(int r, int c, f32 (&y)[NEAR]) const {
        typedef zc_vec<f32, 4> four;
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            const int at = part == rank ? rank * SENT : received(part, rank);
            const four *const from = (const four *)((const f32 *)(memory + at) + r * PITCH + c);
#pragma unroll
            for (int e = 0; e < NEAR; e++) y[e] = part ? y[e] + from[e / 4].v[e % 4] : from[e / 4].v[e % 4];
        }
    }
    typedef zc_vec<Z_T, NEAR> neighbours;
    ZC_MEMBER void save(int r, int c, const neighbours &bias) const {
        typedef zc_vec<decltype(zc_pack(Z_Y(), 0.0f, 0.0f)), 8 / sizeof(Z_Y)> piece; // 16 bytes
        constexpr int PER = 16 / sizeof(Z_Y);
        const int to = row + rank * SHARE + r;
        zc_fused_cells<NEAR> cells;
        cells.load(p.g.fused, to, col + c, p.g.n);
        f32 y[NEAR];
        add_up(r, c, y);
#pragma unroll
        for (int e = 0; e < NEAR; e++) y[e] += Z_BIAS ? zc_get(bias.v[e]) : 0.0f;
        cells.apply(y);
#pragma unroll
        for (int at = 0; at < NEAR; at += PER) {
            piece out;
#pragma unroll
            for (int e = 0; e < PER / 2; e++) out.v[e] = zc_pack(Z_Y(), y[at + e * 2], y[at + e * 2 + 1]);
            *(piece *)((Z_Y *)p.g.y + to * p.g.n + col + c + at) = out;
        }
    }
    ZC_MEMBER void consume() const {
        const int group = zc_warpgroup(), thread = (int)threadIdx.x % 128, c = (int)threadIdx.x % ACROSS * NEAR;
        neighbours bias = {};
        f32 sum[ROWS / 2];
        if (Z_BIAS && col + c < p.g.n) bias = *(const neighbours *)((const Z_T *)p.g.bias + col + c);
        multiply(group, thread, sum);
        keep(group, thread, sum);
        if (PARTS > 1) exchange();
        if (col + c >= p.g.n) return;
#pragma unroll 4
        for (int r = (int)threadIdx.x / ACROSS; r < SHARE; r += DOWN)
            if (row + rank * SHARE + r < p.g.m) save(r, c, bias);
    }
};

ZC_KERNEL_BESIDE(0, 288, Z_SHARES)(const __grid_constant__ zc_gemm_sparse_sm90_params p) {
    ZC_SWIZZLED_SMEM(smem);
    const zc_gemm_sparse_sm90<Z_TILE_ROWS, Z_STAGES, Z_PARTS> product(p, smem);
    const bool producer = threadIdx.x >= product.THREADS;
    if (threadIdx.x == product.THREADS) product.prepare();
    zc_meet<Z_PARTS>();
    zc_wait();
    zc_grid_launch();
    if (!producer)
        product.consume();
    else if (threadIdx.x == product.THREADS)
        product.produce();
    if (Z_PARTS > 1) zc_cluster_meet(); // what this block sent has been read when its partners have it
}
