// Products of one to eight rows of f16 or bf16 on Hopper by a matrix stored N x K: reading the matrix is all the work.
// A block has tiles of columns, one after another; each of its warps has a part of the summed axis, and a ring of slots
// of its own in shared memory that bulk copies fill: 16 columns of the matrix by some steps of 16 along the summed axis.
// The first ones are on their way before the kernel in front has ended, and a slot is filled again as soon as its warp
// has read it, so the memory is never waited for by one warp alone. The warp's part of A stays in registers. Columns of
// the result are the rows of the products, rows of A their columns.
//
// The warps' sums meet in shared memory, in the order of their parts. Where blocks of a cluster share the summed axis,
// each has one tile, and the first one gets the sums of the others.
//
// spec.h: see zc/gemm.cuh, Z_SUMMED (length of the summed axis), and the configuration: Z_ROWS_MOST (of A), Z_COLS (of
// a tile), Z_WARPS, Z_PARTS (blocks of a cluster), Z_STEPS (of 16, of a warp), Z_DEPTH (steps of a slot), Z_SLOTS (of a
// warp), Z_SHARES (blocks that fit on a multiprocessor); Z_B_CONSTANT: B is a constant of the plan; zc/row_moments.cuh. Entry 1: see
// zc/gemm_second.cuh.
#include "zc/row_moments.cuh"
#include "zc/gemv_ring.cuh"
#include "zc/ring.cuh"
#include "zc/hopper.cuh"
#include "abi/linear_moments.h"

#ifdef Z_B_CONSTANT
constexpr bool ZC_GEMV_CONSTANT = true;
#else
constexpr bool ZC_GEMV_CONSTANT = false;
#endif

template <int ROWS, int COLS, int WARPS, int PARTS, int STEPS, int DEPTH, int SLOTS> struct zc_gemv_sm90
    : zc_gemv_ring<zc_gemv_sm90<ROWS, COLS, WARPS, PARTS, STEPS, DEPTH, SLOTS>, WARPS, PARTS, SLOTS, ZC_GEMV_CONSTANT> {
    typedef zc_gemv_ring<zc_gemv_sm90, WARPS, PARTS, SLOTS, ZC_GEMV_CONSTANT> ring;
    using ring::first_tile, ring::tile_step, ring::full, ring::arrived;
    using ring::prepare, ring::fill_late, ring::launch_behind, ring::refill;
    typedef zc_gemv_sums<ROWS, COLS, WARPS, PARTS> sums;
    static constexpr int STEP = 16, GROUP = 16, GROUPS = COLS / GROUP;
    static constexpr int OWN = STEPS * STEP;                // of the summed axis, a warp's
    static constexpr int PIECES = (STEPS + DEPTH - 1) / DEPTH; // of a group: what a slot holds
    static constexpr bool WHOLE = OWN * WARPS * PARTS == Z_SUMMED && STEPS % DEPTH == 0; // are all pieces full?
    static constexpr int PITCH = DEPTH * STEP * 2 + 16;     // bytes of a column in a slot: an odd number of 16
    static constexpr int SLOT = GROUP * PITCH;
    static constexpr int MEET = WARPS * SLOTS * SLOT, NORMS = MEET + sums::BYTES;
    static constexpr int BARRIERS = NORMS + ROWS * 16;
    static constexpr int NEAR = sums::NEAR, LANES = sums::LANES, PASSES = sums::PASSES;
    static constexpr int CHAINS = 2;                        // sums that do not wait for each other
    typedef typename sums::pair pair;
#ifdef Z_MOMENTS
    static_assert(!Z_KEEP || COLS == ZC_MOMENTS_PART, "a tile is a part that has moments");
#endif

    const zc_gemm_params &p;
    const zc_row_moments_params &moments;
    unsigned char *memory;
    u32 smem;
    int warp, lane, rank;
    int from, left, pieces; // of the summed axis: where this warp's part begins, how long it is, in how many pieces
    i64 tiles;
    sums met;

    ZC_MEMBER zc_gemv_sm90(const zc_linear_moments_params &all, unsigned char *memory)
        : p(all.g), moments(all.moments), memory(memory), smem(zc_smem_address(memory)) {
        warp = zc_warp();
        lane = (int)threadIdx.x % 32;
        rank = PARTS > 1 ? (int)zc_cluster_rank() : 0;
        from = (rank * WARPS + warp) * OWN;
        left = Z_SUMMED - from < OWN ? Z_SUMMED - from : OWN;
        pieces = left <= 0 ? 0 : (left + DEPTH * STEP - 1) / (DEPTH * STEP);
        tiles = (p.n + COLS - 1) / COLS;
        met = {memory + MEET, arrived(), rank};
    }
    ZC_MEMBER int slot_of(int slot) const { return (warp * SLOTS + slot) * SLOT; }
    ZC_MEMBER int groups_of(i64 tile) const {
        const i64 cols = p.n - tile * COLS;
        return cols < COLS ? (int)((cols + GROUP - 1) / GROUP) : GROUPS;
    }

    // ---- the matrix ----

    struct place { // of a piece
        i64 tile;
        int group, piece;
    };
    ZC_MEMBER bool is_there(const place &at) const { return pieces > 0 && at.tile < tiles; }
    ZC_MEMBER void next(place &at) const {
        if (++at.piece < pieces) return;
        at.piece = 0;
        if (++at.group < groups_of(at.tile)) return;
        at.group = 0;
        at.tile += tile_step();
    }
    ZC_MEMBER int length(int piece) const { // of the summed axis
        const int rest = left - piece * DEPTH * STEP;
        return WHOLE || rest > DEPTH * STEP ? DEPTH * STEP : rest;
    }
    // A lane for each column.
    template <bool EARLY> ZC_MEMBER void load(int slot, const place &at) const {
        const i64 col = at.tile * COLS + at.group * GROUP;
        const int cols = p.n - col < GROUP ? (int)(p.n - col) : GROUP, bytes = length(at.piece) * 2;
        if (lane == 0) zc_barrier_expect(full(slot), (u32)(cols * bytes));
        zc_sync_warp();
        if (lane >= cols) return;
        const Z_T *const b = (const Z_T *)p.b + (col + lane) * p.b_ld + from + at.piece * DEPTH * STEP;
        if (EARLY) zc_constant_load();
        zc_bulk_load(smem + slot_of(slot) + lane * PITCH, b, (u32)bytes, full(slot));
    }

    // ---- A ----

    // Pairs of neighbours along the summed axis, as the products want them: of row lane / 4.
    ZC_MEMBER void load_rows(u32 (&x)[STEPS][2]) const {
        const int row = lane / 4, k = from + lane % 4 * 2;
        const Z_T *const a = (const Z_T *)p.a + (row < p.m ? row * p.a_ld : 0);
#pragma unroll
        for (int i = 0; i < STEPS * 2; i++) {
            const int at = k + i * 8;
            x[i / 2][i % 2] = row < p.m && (WHOLE || at < Z_SUMMED) ? *(const u32 *)(a + at) : 0u;
        }
    }
#ifdef Z_MOMENTS
    // Of A's row and of skip's.
    ZC_MEMBER zc_row_norm *norms_of(int row) const { return (zc_row_norm *)(memory + NORMS) + row * 2; }
#endif
    ZC_MEMBER void join_moments() const {
#ifdef Z_MOMENTS
        for (int row = warp; row < p.m; row += WARPS) {
            zc_moments_cells<1, 32> cells;
            cells.load_rows(moments, row);
            cells.join(moments);
            if (lane == 0) norms_of(row)[0] = cells.norm, norms_of(row)[1] = cells.skip_norm;
        }
#endif
    }

    // ---- products ----

    ZC_MEMBER static void product(f16, f32 *d, const u32 *a, const u32 *b) { zc_mma_m16n8k16_f16(d, a, b); }
    ZC_MEMBER static void product(bf16, f32 *d, const u32 *a, const u32 *b) { zc_mma_m16n8k16_bf16(d, a, b); }
    // Of 16 columns of the matrix and one step.
    ZC_MEMBER void fetch(int slot, int step, int there, u32 (&w)[4]) const {
        zc_ldmatrix_x4(w, memory + slot_of(slot) + lane % 16 * PITCH + (step * 2 + lane / 16) * 16);
        if (!WHOLE && there - step * STEP < STEP) w[2] = w[3] = 0;
    }
    // The sums of a group, over this warp's part.
    ZC_MEMBER void multiply(const u32 (&x)[STEPS][2], zc_ring_slot<SLOTS> &at, place &ahead, f32 (&sum)[4]) const {
        f32 chain[CHAINS][4] = {};
#pragma unroll
        for (int piece = 0; piece < PIECES; piece++) {
            if (!WHOLE && piece >= pieces) break;
            const int there = length(piece);
            zc_barrier_wait(full(at.stage), at.parity);
#pragma unroll
            for (int step = 0; step < DEPTH; step++) {
                if (piece * DEPTH + step >= STEPS || (!WHOLE && step * STEP >= there)) break;
                u32 w[4];
                fetch(at.stage, step, there, w);
                product(Z_T(), chain[step % CHAINS], w, x[piece * DEPTH + step]);
            }
            refill(at.stage, ahead);
            at.next();
        }
#pragma unroll
        for (int i = 0; i < 4; i++) sum[i] = chain[0][i] + chain[1][i];
    }
    ZC_MEMBER void keep(int buffer, int group, const f32 (&sum)[4]) const {
        f32 *const to = met.of_warp(buffer, warp);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = lane % 4 * 2 + i % 2, col = group * GROUP + lane / 4 + i / 2 * 8;
            if (row < ROWS) to[row * COLS + col] = sum[i];
        }
    }

    // ---- results ----

    struct operands { // beside the sums: asked for before the products, used after them
        zc_gemm_addend<NEAR> addend;
        zc_moments_columns_of<NEAR> columns;
        zc_moments_cells<NEAR, LANES> moments[PASSES];
        zc_fused_cells<NEAR> cells[PASSES];
    };
    ZC_MEMBER bool is_mine(i64 tile, int pass) const {
        return sums::near_row(pass) < p.m && tile * COLS + sums::near_col() < p.n;
    }
    ZC_MEMBER void ask(const zc_gemm_item &of, i64 tile, operands &o) const {
        const i64 col = tile * COLS + sums::near_col();
        if (!is_mine(tile, 0)) return;
        o.addend.load(of, col);
        o.columns.load(moments, col);
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++) {
            if (!is_mine(tile, pass)) continue;
            o.moments[pass].load_skip(moments, sums::near_row(pass), col);
            o.cells[pass].load(p.fused, sums::near_row(pass), col, p.n);
        }
    }
    ZC_MEMBER void save(const zc_gemm_item &of, const operands &o, i64 col, int pass, pair &v) const {
        const int row = sums::near_row(pass);
#ifdef Z_NORM
        *(pair *)((f32 *)p.partial + row * p.n + col) = v;
#else
        f32 y[NEAR];
#pragma unroll
        for (int e = 0; e < NEAR; e++) {
            const f32 sum = o.addend.value(p, of, row, col, e, o.moments[pass].product(o.columns, e, v.v[e]));
            y[e] = zc_epilogue(o.moments[pass].plus_skip(o.columns, e, sum));
            v.v[e] = zc_get(zc_put<Z_T>(y[e]));
        }
        o.cells[pass].apply(y);
        zc_vec<Z_Y, NEAR> out;
#pragma unroll
        for (int e = 0; e < NEAR; e++) out.v[e] = zc_put<Z_Y>(y[e]);
        *(zc_vec<Z_Y, NEAR> *)(of.y + row * p.y_ld + col) = out;
#endif
    }
    ZC_MEMBER void finish(const zc_gemm_item &of, i64 tile, int buffer, operands &o) const {
        const i64 col = tile * COLS + sums::near_col();
        if (PARTS > 1) zc_barrier_wait_cluster(arrived(), 0);
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++) {
            const bool mine = is_mine(tile, pass);
            pair v = {};
            if (mine) {
                v = met.all(buffer, pass);
#ifdef Z_MOMENTS
                o.moments[pass].norm = norms_of(sums::near_row(pass))[0];
                o.moments[pass].skip_norm = norms_of(sums::near_row(pass))[1];
#endif
                save(of, o, col, pass, v);
            }
            zc_save_moments<NEAR, LANES>(moments, sums::near_row(pass), col, mine ? NEAR : 0, v.v);
        }
    }

    ZC_MEMBER void run() const {
        u32 x[STEPS][2];
        place ahead = {first_tile(), 0, 0};
        zc_ring_slot<SLOTS> at = {0, 0};
        int buffer = 0;
        prepare(ahead);
        if (PARTS > 1) zc_cluster_meet();
        zc_grid_wait();
        fill_late(ahead);
        launch_behind(ahead);
        load_rows(x);
        join_moments();
        const zc_gemm_item of = zc_gemm_batch(p, 0);
        for (i64 tile = first_tile(); tile < tiles; tile += tile_step(), buffer ^= 1) {
            operands o;
#ifndef Z_NORM
            ask(of, tile, o);
#endif
            for (int group = 0; group < groups_of(tile); group++) {
                f32 sum[4];
                multiply(x, at, ahead, sum);
                keep(buffer, group, sum);
            }
            zc_sync();
            if (PARTS > 1 && rank > 0)
                met.send(buffer);
            else
                finish(of, tile, buffer, o);
        }
        if (PARTS > 1) zc_cluster_meet(); // what this block sent has been read when the first one has it
    }
};

ZC_KERNEL_BESIDE(0, Z_WARPS * 32, Z_SHARES)(const __grid_constant__ zc_linear_moments_params p) {
    ZC_SWIZZLED_SMEM(smem);
    zc_gemv_sm90<Z_ROWS_MOST, Z_COLS, Z_WARPS, Z_PARTS, Z_STEPS, Z_DEPTH, Z_SLOTS>(p, smem).run();
}
#include "zc/gemm_second.cuh"
