// Products of few rows of f16 or bf16 on Hopper by a matrix of codes of 4 or 8 bits: reading the
// codes is all the work. A block has tiles of columns, one after another, and up to 16 rows; each
// of its warps has a part of the summed axis and a ring of slots of its own in shared memory: 16
// columns of the matrix, over all of the warp's part, with their scales and zero points, by one
// bulk copy each. The first ones are on their way before the kernel in front has ended. Columns of
// the result are the rows of the products, rows of x their columns; the warp's part of x stays in
// registers, normalised where that is asked for: of one row as bytes (zc/packed_digits.cuh), of more as it is (zc/packed_floats.cuh).
//
// The warps' sums meet in shared memory, in the order of their parts. Where blocks of a cluster
// share the summed axis, each has one tile, and the first one gets the sums of the others.
//
// spec.h: see zc/packed_linear.cuh, and the configuration: Z_ROWS (of a block), Z_COLS (of a tile),
// Z_WARPS, Z_PARTS (blocks of a cluster), Z_STEPS (of two pieces, of a warp), Z_SLOTS (of a warp),
// Z_SCALES (of a column, in a slot), Z_SHARES (blocks that fit on a multiprocessor); Z_CONSTANT:
// the matrix is a constant of the plan.
#include "zc/packed_linear.cuh"
#include "zc/gemv_ring.cuh"
#include "zc/ring.cuh"
#include "zc/hopper.cuh"
#if Z_ROWS == 1
#include "zc/packed_digits.cuh"
template <int, int STEPS> using factors = zc_packed_digits<STEPS>;
#else
#include "zc/packed_floats.cuh"
template <int ROWS, int STEPS> using factors = zc_packed_floats<ROWS, STEPS>;
#endif

#ifdef Z_CONSTANT
constexpr bool ZC_GEMV_CONSTANT = true;
#else
constexpr bool ZC_GEMV_CONSTANT = false;
#endif

template <int ROWS, int COLS, int WARPS, int PARTS, int STEPS, int SLOTS> struct gemv_packed
    : zc_gemv_ring<gemv_packed<ROWS, COLS, WARPS, PARTS, STEPS, SLOTS>, WARPS, PARTS, SLOTS, ZC_GEMV_CONSTANT> {
    typedef zc_gemv_ring<gemv_packed, WARPS, PARTS, SLOTS, ZC_GEMV_CONSTANT> ring;
    using ring::first_tile, ring::tile_step, ring::full, ring::arrived;
    using ring::prepare, ring::fill_late, ring::launch_behind, ring::refill;
    typedef factors<ROWS, STEPS> row_factors;
    typedef typename row_factors::slot slot_codes;
    static constexpr int GROUP = ZC_PACKED_COLUMNS, GROUPS = COLS / GROUP;
    static constexpr int STEP = slot_codes::STEP, STEP_BYTES = slot_codes::STEP_BYTES, OWN = slot_codes::OWN;
    static constexpr bool WHOLE = OWN * WARPS * PARTS == Z_SUMMED; // is every warp's part full?
    static constexpr int SCALE = slot_codes::SCALE, ZERO = slot_codes::ZERO, SLOT = slot_codes::BYTES;
    typedef zc_gemv_sums<ROWS, COLS, WARPS, PARTS> tile_sums;
    static constexpr int MEET = WARPS * SLOTS * SLOT, TURNED = MEET + tile_sums::BYTES;
    static constexpr int BARRIERS = TURNED + WARPS * row_factors::BYTES;
    static constexpr int NEAR = tile_sums::NEAR, LANES = tile_sums::LANES, PASSES = tile_sums::PASSES;
    typedef typename tile_sums::pair pair;
    typedef typename row_factors::sums sums;

    const zc_packed_linear_params &p;
    unsigned char *memory;
    u32 smem;
    int warp, lane, rank;
    int from, left;  // of the summed axis: where this warp's part begins, how long it is
    i64 tiles, row0; // of the block
    int rows;
    tile_sums met;

    ZC_MEMBER gemv_packed(const zc_packed_linear_params &p, unsigned char *memory)
        : p(p),
          memory(memory),
          smem(zc_smem_address(memory)) {
        warp = zc_warp();
        lane = (int)threadIdx.x % 32;
        rank = PARTS > 1 ? (int)zc_cluster_rank() : 0;
        from = (rank * WARPS + warp) * OWN;
        left = WHOLE || Z_SUMMED - from > OWN ? OWN : Z_SUMMED - from;
        tiles = (p.n + COLS - 1) / COLS;
        row0 = (i64)blockIdx.y * ROWS;
        rows = p.m - row0 < ROWS ? (int)(p.m - row0) : ROWS;
        met = {memory + MEET, arrived(), rank};
    }
    ZC_MEMBER int slot_of(int slot) const { return (warp * SLOTS + slot) * SLOT; }
    ZC_MEMBER int groups_of(i64 tile) const {
        const i64 cols = p.n - tile * COLS;
        return cols < COLS ? (int)(cols / GROUP) : GROUPS;
    }

    // ---- the matrix ----

    struct place {
        i64 tile;
        int group;
    };
    ZC_MEMBER bool is_there(const place &at) const { return at.tile < tiles; }
    ZC_MEMBER void next(place &at) const {
        if (++at.group < groups_of(at.tile)) return;
        at.group = 0;
        at.tile += tile_step();
    }
    template <bool EARLY> ZC_MEMBER static void copy(u32 to, const void *data, i64 at, int bytes, u32 barrier) {
        if (EARLY) zc_constant_load();
        zc_bulk_load(to, (const u8 *)data + at, (u32)bytes, barrier);
    }
    template <bool EARLY> ZC_MEMBER void load(int slot, const place &at) const {
        if (lane) return;
        const i64 group = at.tile * GROUPS + at.group;
        const int codes = left / STEP * STEP_BYTES, first = from / Z_BLOCK;
        const int scales = ((from + left - 1) / Z_BLOCK - first + 1) * GROUP, bytes = scales * (int)sizeof(Z_S);
        const i64 scale = (group * (Z_SUMMED / Z_BLOCK) + first) * GROUP;
        const u32 to = smem + slot_of(slot);
        zc_barrier_expect(full(slot), (u32)(codes + bytes + Z_ZERO * scales));
        copy<EARLY>(to, p.w, (group * (Z_SUMMED / STEP) + from / STEP) * STEP_BYTES, codes, full(slot));
        copy<EARLY>(to + SCALE, p.scale, scale * (i64)sizeof(Z_S), bytes, full(slot));
        if (Z_ZERO) copy<EARLY>(to + ZERO, p.zero, scale, scales, full(slot));
    }

    // ---- products ----

    // The sums of a group, over this warp's part.
    ZC_MEMBER void multiply(const row_factors &x, zc_ring_slot<SLOTS> &at, place &ahead, sums &sum) const {
        const slot_codes w = {memory + slot_of(at.stage), from, lane};
        zc_barrier_wait(full(at.stage), at.parity);
        x.template multiply<WHOLE>(p, w, sum);
        refill(at.stage, ahead);
        at.next();
    }
    // ---- results ----

    struct operands { // beside the sums: asked for before the products, used after them
        f32 bias[NEAR];
        zc_fused_cells<NEAR> cells[PASSES];
    };
    // Of two matrices the columns of the first are finished with those of the second.
    ZC_MEMBER static i64 matrix_col(i64 tile) { return tile * COLS + tile_sums::near_col(); }
    ZC_MEMBER static i64 result_col(i64 tile) {
        const i64 col = matrix_col(tile);
        return Z_GATED ? col / GROUP * ZC_PACKED_GATED + col % ZC_PACKED_GATED : col;
    }
    ZC_MEMBER bool is_mine(i64 tile, int pass) const {
        const bool first = !Z_GATED || tile_sums::near_col() % GROUP < ZC_PACKED_GATED;
        return first && tile_sums::near_row(pass) < rows && matrix_col(tile) < p.n;
    }
    ZC_MEMBER void ask(i64 tile, operands &o) const {
        const i64 col = result_col(tile);
        if (!is_mine(tile, 0)) return;
#pragma unroll
        for (int e = 0; e < NEAR; e++) o.bias[e] = zc_packed_bias(p, col + e);
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++)
            if (is_mine(tile, pass))
                o.cells[pass].load(p.fused, row0 + tile_sums::near_row(pass), col, zc_packed_cols(p));
    }
    ZC_MEMBER void save(const operands &o, i64 col, int pass, const pair &sum, const pair &second) const {
        f32 y[NEAR];
#pragma unroll
        for (int e = 0; e < NEAR; e++) y[e] = zc_packed_gate(zc_packed_sum(p, sum.v[e]) + o.bias[e], zc_packed_sum(p, second.v[e]));
        o.cells[pass].apply(y);
        zc_vec<Z_Y, NEAR> out;
#pragma unroll
        for (int e = 0; e < NEAR; e++) out.v[e] = zc_put<Z_Y>(y[e]);
        const i64 row = row0 + tile_sums::near_row(pass);
        *(zc_vec<Z_Y, NEAR> *)((Z_Y *)p.y + row * zc_packed_cols(p) + col) = out;
    }
    ZC_MEMBER void finish(i64 tile, int buffer, const operands &o) const {
        if (PARTS > 1) zc_barrier_wait_cluster(arrived(), 0);
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++) {
            if (!is_mine(tile, pass)) continue;
            pair second = {};
            if (Z_GATED) second = met.all(buffer, pass, ZC_PACKED_GATED);
            save(o, result_col(tile), pass, met.all(buffer, pass), second);
        }
    }

    ZC_MEMBER void run() const {
        row_factors x;
        place ahead = {first_tile(), 0};
        zc_ring_slot<SLOTS> at = {0, 0};
        int buffer = 0;
        x.lane = lane;
        x.left = left;
        prepare(ahead);
        if constexpr (ZC_GEMV_CONSTANT) x.template load_gain<true>(p, from);
        if (PARTS > 1) zc_cluster_meet();
        zc_grid_wait();
        fill_late(ahead);
        if constexpr (!ZC_GEMV_CONSTANT) x.template load_gain<false>(p, from);
        launch_behind(ahead);
        x.load(p, from, row0, rows, warp, met.of_warp(1, 0), memory + TURNED + warp * row_factors::BYTES);
        for (i64 tile = first_tile(); tile < tiles; tile += tile_step(), buffer ^= 1) {
            operands o;
            ask(tile, o);
            for (int group = 0; group < groups_of(tile); group++) {
                sums sum = {};
                multiply(x, at, ahead, sum);
                x.keep(sum, met.of_warp(buffer, warp) + group * GROUP, COLS);
            }
            zc_sync();
            if (PARTS > 1 && rank > 0)
                met.send(buffer);
            else
                finish(tile, buffer, o);
        }
        if (PARTS > 1) zc_cluster_meet(); // what this block sent has been read when the first one has it
    }
};

ZC_KERNEL_BESIDE(0, Z_WARPS * 32, Z_SHARES)(const __grid_constant__ zc_packed_linear_params p) {
    ZC_SWIZZLED_SMEM(smem);
    gemv_packed<Z_ROWS, Z_COLS, Z_WARPS, Z_PARTS, Z_STEPS, Z_SLOTS>(p, smem).run();
}
