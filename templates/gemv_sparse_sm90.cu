// Products of few rows of f16 or bf16 on Hopper by a matrix of which two of each four neighbours along the summed axis are stored
// (op/sparse.h): reading what is stored is all the work. The tiles of gemm_sparse_sm90.cu are read here by one warp each: a tile's
// pieces of eight elements are what ldmatrix wants, and its places are words as a sparse product of a warp takes them, so nothing is
// unpacked or turned. Columns of the result are the rows of the products, rows of x their columns.
//
// A block has 64 columns, or such after one another, and up to 16 rows; each of its warps has a part of the summed axis, for which its
// part of x stays in registers, and a ring of slots of its own in shared memory: a tile each, by two bulk copies. The first ones are on
// their way before the kernel in front has ended. The warps' sums meet in shared memory, in the order of their parts. Where blocks of a
// cluster share the summed axis, each has 64 columns once, and the first one gets the sums of the others.
//
// spec.h: Z_T (of x, w and bias), Z_Y (of results), Z_BIAS (is there one), Z_SUMMED (length of the summed axis), and the configuration:
// Z_ROWS (of a block), Z_WARPS, Z_PARTS (blocks of a cluster), Z_STEPS (tiles of a warp along the summed axis), Z_SLOTS (of a warp),
// Z_SHARES (blocks that fit on a multiprocessor); Z_CONSTANT: the matrix is a constant of the plan.
#include "zc/gemv_ring.cuh"
#include "zc/ring.cuh"
#include "abi/sparse_linear.h"
#include "zc/fused.cuh"
#include "spec.h"

template <int HALF> ZC_DEV void product(f16, f32 *d, const u32 *a, const u32 *b, u32 places) {
    zc_mma_sparse_m16n8k32_f16<HALF>(d, a, b, places);
}
template <int HALF> ZC_DEV void product(bf16, f32 *d, const u32 *a, const u32 *b, u32 places) {
    zc_mma_sparse_m16n8k32_bf16<HALF>(d, a, b, places);
}

#ifdef Z_CONSTANT
constexpr bool ZC_GEMV_CONSTANT = true;
#else
constexpr bool ZC_GEMV_CONSTANT = false;
#endif

template <int ROWS, int WARPS, int PARTS, int STEPS, int SLOTS> struct zc_gemv_sparse
    : zc_gemv_ring<zc_gemv_sparse<ROWS, WARPS, PARTS, STEPS, SLOTS>, WARPS, PARTS, SLOTS, ZC_GEMV_CONSTANT> {
    typedef zc_gemv_ring<zc_gemv_sparse, WARPS, PARTS, SLOTS, ZC_GEMV_CONSTANT> ring;
    using ring::first_tile, ring::tile_step, ring::full, ring::arrived;
    using ring::prepare, ring::fill_late, ring::launch_behind, ring::refill;
    static constexpr int SIDE = 64, GROUPS = SIDE / 16, HALVES = 2; // of a tile: columns and places; products down and along
    static constexpr int PIECE = SIDE * 16, W = 4 * PIECE, PLACES = 128 * 4, SLOT = W + PLACES; // bytes
    static constexpr int TILES = (ROWS + 7) / 8;                                                // of eight rows of x
    static constexpr int ALL = Z_SUMMED / SIDE;                                                 // steps of the summed axis
    static constexpr bool WHOLE = STEPS * WARPS * PARTS == ALL;                                 // is every warp's part full?
    typedef zc_gemv_sums<ROWS, SIDE, WARPS, PARTS> tile_sums;
    static constexpr int MEET = WARPS * SLOTS * SLOT, BARRIERS = MEET + tile_sums::BYTES;
    static constexpr int NEAR = tile_sums::NEAR, PASSES = tile_sums::PASSES;
    typedef typename tile_sums::pair pair;
    typedef u32 factors[TILES][STEPS][HALVES][4];
    typedef f32 sums[TILES][GROUPS][4];

    const zc_sparse_linear_params &p;
    unsigned char *memory; // slots, sums, barriers
    u32 smem;
    int warp, lane, rank;
    int from, steps; // of the summed axis: where this warp's part begins, how long it is
    i64 tiles, row0; // tiles: of columns
    int rows;
    tile_sums met;

    ZC_MEMBER zc_gemv_sparse(const zc_sparse_linear_params &p, unsigned char *memory)
        : p(p), memory(memory), smem(zc_smem_address(memory)) {
        warp = zc_warp();
        lane = (int)threadIdx.x % 32;
        rank = PARTS > 1 ? (int)zc_cluster_rank() : 0;
        from = part_of(rank * WARPS + warp);
        steps = WHOLE ? STEPS : part_of(rank * WARPS + warp + 1) - from;
        tiles = p.n / SIDE;
        row0 = (i64)blockIdx.y * ROWS;
        rows = p.m - row0 < ROWS ? (int)(p.m - row0) : ROWS;
        met = {memory + MEET, arrived(), rank};
    }
    // Where a warp's part begins: none has more than one step less than another.
    ZC_MEMBER static int part_of(int sharer) { return WHOLE ? sharer * STEPS : sharer * ALL / (WARPS * PARTS); }
    ZC_MEMBER int slot_of(int slot) const { return (warp * SLOTS + slot) * SLOT; }

    // ---- the matrix ----

    struct place {
        i64 tile;
        int step;
    };
    ZC_MEMBER bool is_there(const place &at) const { return at.tile < tiles; }
    ZC_MEMBER void next(place &at) const {
        if (++at.step < steps) return;
        at.step = 0;
        at.tile += tile_step();
    }
    template <bool EARLY> ZC_MEMBER static void copy(u32 to, const void *data, i64 at, int bytes, u32 barrier) {
        if (EARLY) zc_constant_load();
        zc_bulk_load(to, (const u8 *)data + at * bytes, (u32)bytes, barrier);
    }
    template <bool EARLY> ZC_MEMBER void load(int slot, const place &at) const {
        if (lane) return;
        const i64 tile = at.tile * ALL + from + at.step;
        zc_barrier_expect(full(slot), SLOT);
        copy<EARLY>(smem + slot_of(slot), p.w, tile, W, full(slot));
        copy<EARLY>(smem + slot_of(slot) + W, p.places, tile, PLACES, full(slot));
    }

    // ---- x ----

    // Pairs of neighbours along the summed axis, as the products want them: of row lane / 4.
    ZC_MEMBER void load_rows(factors &x) const {
#pragma unroll
        for (int t = 0; t < TILES; t++) {
            const int row = t * 8 + lane / 4;
            const Z_T *const of = (const Z_T *)p.x + (row0 + (row < rows ? row : 0)) * Z_SUMMED + from * SIDE + lane % 4 * 2;
#pragma unroll
            for (int i = 0; i < STEPS * HALVES * 4; i++) {
                const int step = i / (HALVES * 4);
                const bool there = row < rows && (WHOLE || step < steps);
                x[t][step][i / 4 % HALVES][i % 4] = there ? *(const u32 *)(of + i * 8) : 0u;
            }
        }
    }

    // ---- products ----

    template <int HALF> ZC_MEMBER void multiply_half(const factors &x, int step, int slot, const u32 (&places)[GROUPS], sums &sum) const {
        const unsigned char *const at = memory + slot_of(slot) + (HALF * 2 + lane / 16) * PIECE + lane % 16 * 16;
#pragma unroll
        for (int g = 0; g < GROUPS; g++) {
            u32 w[4];
            zc_ldmatrix_x4(w, at + g * 256);
#pragma unroll
            for (int t = 0; t < TILES; t++) product<HALF>(Z_T(), sum[t][g], w, x[t][step][HALF], places[g]);
        }
    }
    // Over this warp's part.
    ZC_MEMBER void multiply(const factors &x, zc_ring_slot<SLOTS> &at, place &ahead, sums &sum) const {
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            if (!WHOLE && step >= steps) break;
            u32 places[GROUPS];
            zc_barrier_wait(full(at.stage), at.parity);
#pragma unroll
            for (int g = 0; g < GROUPS; g++) places[g] = ((const u32 *)(memory + slot_of(at.stage) + W))[g * 32 + lane];
            multiply_half<0>(x, step, at.stage, places, sum);
            multiply_half<1>(x, step, at.stage, places, sum);
            refill(at.stage, ahead);
            at.next();
        }
    }
    ZC_MEMBER void keep(int buffer, const sums &sum) const {
        f32 *const to = met.of_warp(buffer, warp);
#pragma unroll
        for (int i = 0; i < TILES * GROUPS * 4; i++) {
            const int row = i / (GROUPS * 4) * 8 + lane % 4 * 2 + i % 2, group = i / 4 % GROUPS;
            const int col = group * 16 + lane / 4 + i % 4 / 2 * 8;
            if (row < ROWS) to[row * SIDE + col] = sum[i / (GROUPS * 4)][group][i % 4];
        }
    }

    // ---- results ----

    struct operands { // beside the sums: asked for before the products, used after them
        f32 bias[NEAR];
        zc_fused_cells<NEAR> cells[PASSES];
    };
    ZC_MEMBER bool is_mine(int pass) const { return tile_sums::near_row(pass) < rows; }
    ZC_MEMBER void ask(i64 col, operands &o) const {
#pragma unroll
        for (int e = 0; e < NEAR; e++) o.bias[e] = Z_BIAS ? zc_get(((const Z_T *)p.bias)[col + e]) : 0.0f;
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++)
            if (is_mine(pass)) o.cells[pass].load(p.fused, row0 + tile_sums::near_row(pass), col, p.n);
    }
    ZC_MEMBER void save(const operands &o, i64 col, int pass, const pair &sum) const {
        f32 y[NEAR];
#pragma unroll
        for (int e = 0; e < NEAR; e++) y[e] = sum.v[e] + o.bias[e];
        o.cells[pass].apply(y);
        zc_vec<Z_Y, NEAR> out;
#pragma unroll
        for (int e = 0; e < NEAR; e++) out.v[e] = zc_put<Z_Y>(y[e]);
        *(zc_vec<Z_Y, NEAR> *)((Z_Y *)p.y + (row0 + tile_sums::near_row(pass)) * p.n + col) = out;
    }
    ZC_MEMBER void finish(i64 col, int buffer, const operands &o) const {
        if (PARTS > 1) zc_barrier_wait_cluster(arrived(), 0);
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++)
            if (is_mine(pass)) save(o, col, pass, met.all(buffer, pass));
    }

    ZC_MEMBER void run() const {
        factors x;
        place ahead = {first_tile(), 0};
        zc_ring_slot<SLOTS> at = {0, 0};
        int buffer = 0;
        prepare(ahead);
        if (PARTS > 1) zc_cluster_meet();
        zc_grid_wait();
        fill_late(ahead);
        launch_behind(ahead);
        load_rows(x);
        for (i64 tile = first_tile(); tile < tiles; tile += tile_step(), buffer ^= 1) {
            const i64 col = tile * SIDE + tile_sums::near_col();
            operands o;
            sums sum = {};
            ask(col, o);
            multiply(x, at, ahead, sum);
            keep(buffer, sum);
            zc_sync();
            if (PARTS > 1 && rank > 0)
                met.send(buffer);
            else
                finish(col, buffer, o);
        }
        if (PARTS > 1) zc_cluster_meet(); // what this block sent has been read when the first one has it
    }
};

ZC_KERNEL_BESIDE(0, Z_WARPS * 32, Z_SHARES)(const __grid_constant__ zc_sparse_linear_params p) {
    ZC_SWIZZLED_SMEM(smem);
    zc_gemv_sparse<Z_ROWS, Z_WARPS, Z_PARTS, Z_STEPS, Z_SLOTS>(p, smem).run();
}
