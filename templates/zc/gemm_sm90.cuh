// The pipeline of products of f16, bf16, tf32 or bytes on Hopper: the copy engine fills a ring of stages in shared memory, products of
// whole warpgroups empty it. One warpgroup is the producer (one thread of it issues copies); the others, two, or three where a
// tile has 192 rows, share a tile's rows, or with SIDE its columns, or with PINGPONG take tiles in turn, so that one's epilogue
// runs under the other's products. The blocks of a cluster lie below each other (DOWN) and share B, each copying a part of it
// to all; or side by side (ACROSS) and share A, which they copy to all by turns; or they have the same tile, which is a block's
// only one, each a part of the summed axis (PARTS), and exchange sums. Behind a tile's last step, EXTRA stages bring the tile of p.tile, an operand of the
// result's shape (TILED: the bytes of its elements; 0: there is none), in panels of 128 bytes a row; where a tile's width is no
// multiple of 64 columns, the last panel of these overlaps the one before it, as results' do.
// B is one matrix, or MATRICES side by side, whose products have the same places in the tile: TILE_N columns are RESULT_N of each.
// Lines of B that are stored across the summed axis come in panels of 64 columns, the last of which may have more than the tile.
//
// spec.h: Z_T, Z_TB (zc/gemm.cuh), and Z_WGMMA (F16, BF16; with Z_ALONG TF32, E4M3, or where sums are Z_INTEGERS S8, S8U8, U8S8, U8, and
// Z_TB then is 1); Z_PRODUCT_N: columns of a product where a warpgroup has more than one (else it is Z_TILE_N); Z_STEPWISE: the
// tensor cores' sums, which keep some 14 digits of e4m3's products, are those of two steps, and are added up in f32 (only without PINGPONG); Z_ODD_STEPS: one is left over; Z_B_CONSTANT: B is a constant of the plan, so its first stages are copied before the kernel in front
// has ended; Z_DEALT: B's columns are dealt out by so many (p.b's axes: abi/gemm_sm90.h); Z_CROSSED: the tensor cores' rows are B's
// columns, and theirs are A's rows, Z_PRODUCT_N of a warpgroup; what zc/sm90_rows.cuh needs.
#pragma once
#include "zc/cluster.cuh"
#include "zc/ring.cuh"
#include "zc/sm90_rows.cuh"

#ifndef Z_PRODUCT_N
#define Z_PRODUCT_N Z_TILE_N
#endif
#if Z_CROSSED
constexpr bool ZC_CROSSED = true;
ZC_WGMMA_ALONG(zc_product, Z_PRODUCT_N, ZC_WGMMA_TURNED(Z_WGMMA))
#else
constexpr bool ZC_CROSSED = false;
#ifdef Z_ALONG
ZC_WGMMA_ALONG(zc_product, Z_PRODUCT_N, Z_WGMMA)
#else
ZC_WGMMA(zc_product, Z_PRODUCT_N, Z_WGMMA, !Z_TB)
#endif
#endif
#ifdef Z_INTEGERS
typedef i32 zc_product_sum;
#else
typedef f32 zc_product_sum;
#endif
#ifdef Z_STEPWISE
ZC_WGMMA_HELD_ALONG(zc_product_held, Z_PRODUCT_N, Z_WGMMA)
constexpr bool ZC_STEPWISE = true, ZC_ODD_STEPS = Z_ODD_STEPS;
#else
constexpr bool ZC_STEPWISE = false, ZC_ODD_STEPS = false;
#endif

struct zc_gemm_origin { // of a tile
    int row, col, item;
};

// Which of a tile's columns has place `at` of its products. A thread has pairs of neighbours, 8 places apart; where columns are
// dealt out, those of its pairs lie side by side.
#ifdef Z_DEALT
constexpr int ZC_DEALT = Z_DEALT, ZC_HAND = Z_DEALT / 4; // columns, and of them a thread's
ZC_DEV int zc_dealt(int at) { return at / ZC_DEALT * ZC_DEALT + at % 8 / 2 * ZC_HAND + at % ZC_DEALT / 8 * 2 + at % 2; }
#else
constexpr int ZC_DEALT = 0, ZC_HAND = 0;
ZC_DEV int zc_dealt(int at) { return at; }
#endif

// STAGING: panels behind the ring that each warpgroup's results go through; B_STAGES: of a ring of B's own (zc/conv_rim.cuh).
template <int TILE_M, int TILE_N, int STAGES, int DOWN, int ACROSS, bool PINGPONG, int TILED, int STAGING, bool SIDE = false,
          int PARTS = 1, int MATRICES = 1, int GROUPS_ = TILE_M == 192 ? 3 : 2, int B_STAGES = 0>
struct zc_gemm_pipe {
    static constexpr int DEPTH = ZC_LINE_DEPTH, LINE = 128, PANEL = 64 * LINE;       // 64 lines
    static constexpr int GROUPS = GROUPS_, THREADS = (GROUPS + 1) * 128;               // GROUPS: that multiply
    // Crossed, a warpgroup has blocks of 64 columns, and of these all rows or a part.
    static constexpr int TEAM = PINGPONG ? 1 : GROUPS, BESIDE = TILE_N / 64 < TEAM ? TILE_N / 64 : TEAM, BELOW = TEAM / BESIDE;
    static constexpr int BLOCKS = ZC_CROSSED ? TILE_N / 64 / BESIDE : TILE_M / (PINGPONG || SIDE ? 64 : GROUPS * 64); // of 64 rows, a warpgroup
    static constexpr int OWN = ZC_CROSSED ? TILE_M / BELOW : SIDE ? TILE_N / 2 : TILE_N; // columns, a warpgroup
    static constexpr int PIECES = OWN / Z_PRODUCT_N;                      // of them
    static constexpr int B_PART = TILE_N / DOWN, B_COPIES = B_PART > 256 || MATRICES > DOWN ? 2 : 1; // lines of B along the summed axis
    static constexpr int RESULT_N = TILE_N / MATRICES, PANELS = (RESULT_N + 63) / 64; // of results
    static constexpr int B_LINES = Z_TB ? TILE_N : PANELS * 64;
    static_assert(MATRICES == 1 || (MATRICES == 2 && Z_TB), "a copy for each matrix");
    static constexpr int A_BYTES = TILE_M / 64 * ZC_ROWS_BYTES, STAGE = A_BYTES + (B_STAGES ? 0 : B_LINES * LINE);
    static constexpr int CLUSTER = DOWN * ACROSS;
    static constexpr int TILE_COLUMNS = TILED ? LINE / TILED : 64; // of a panel of p.tile
    static constexpr int TILE_PANELS = (RESULT_N + TILE_COLUMNS - 1) / TILE_COLUMNS, HELD = STAGE / A_BYTES; // HELD: in a stage
    static constexpr int EXTRA = TILED ? (TILE_PANELS + HELD - 1) / HELD : 0;
    static constexpr u16 ALL = (1 << CLUSTER) - 1;
    static constexpr int SENT = PARTS > 1 ? 64 * TILE_N * 4 : 0; // sums of a warpgroup
    static constexpr int RING = STAGES * STAGE + B_STAGES * B_LINES * LINE, RESULTS = GROUPS * STAGING * PANEL + SENT;
    static constexpr int BARRIERS = 2 * STAGES * 8 + (PARTS > 1 ? 8 : 0);
    static_assert(PARTS == 1 || (PARTS == 2 && BLOCKS == 1 && OWN == TILE_N && !PINGPONG), "a warpgroup for each part");
    static_assert(!ZC_CROSSED || (TILE_N % (BESIDE * 64) == 0 && BESIDE * BELOW == TEAM && Z_TB && !SIDE && PARTS == 1 && MATRICES == 1),
                  "whole blocks of columns");
    static_assert(PARTS == 1 || (CLUSTER == 1 && SENT <= STAGE && EXTRA < STAGES), "a stage for the sums");
    static_assert(GROUPS == 2 || (PARTS == 1 && !PINGPONG && !SIDE), "more than two warpgroups share rows");

    const zc_gemm_sm90_params &p;
    unsigned char *memory;
    u32 smem, barriers; // memory; the ring's barriers in it
    int steps, rank, part, begins; // part: its first step

    typedef zc_ring_slot<STAGES> slot;
    static constexpr int APART = ZC_STEPWISE ? 1 : PIECES;     // of a block, arrays of sums
    typedef zc_product_sum sums[BLOCKS * APART][OWN / APART / 2]; // of a warpgroup's tile

    ZC_MEMBER zc_gemm_pipe(const zc_gemm_sm90_params &p, unsigned char *memory, int barriers)
        : p(p), memory(memory), smem(zc_smem_address(memory)), barriers(smem + barriers) {
        const int all = zc_sm90_rows::steps(p);
        part = PARTS > 1 ? (int)zc_cluster_rank() : 0;
        begins = part * all / PARTS;
        steps = (part + 1) * all / PARTS - begins;
        rank = CLUSTER > 1 ? (int)zc_cluster_rank() : 0;
    }
    static ZC_MEMBER bool produces() { return zc_warp() == 0; }
    // The first column of a panel.
    static ZC_MEMBER constexpr int panel_begin(int panel) { return panel * 64 < RESULT_N - 64 ? panel * 64 : RESULT_N - 64; }
    static ZC_MEMBER constexpr int tile_begin(int panel) { return TILE_COLUMNS == 64 ? panel_begin(panel) : panel * TILE_COLUMNS; }
    ZC_MEMBER u32 a_of(int stage) const { return smem + stage * STAGE; }
    ZC_MEMBER u32 b_of(int stage) const { return smem + stage * STAGE + A_BYTES; }
    ZC_MEMBER u32 full(int stage) const { return barriers + stage * 8; }
    ZC_MEMBER u32 empty(int stage) const { return barriers + (STAGES + stage) * 8; }
    ZC_MEMBER u32 received() const { return barriers + 2 * STAGES * 8; }
    ZC_MEMBER u32 panel_of(int warpgroup, int buffer) const { return smem + RING + (warpgroup * STAGING + buffer) * PANEL; }

    ZC_MEMBER int first_tile() const { return blockIdx.x / (CLUSTER * PARTS); }
    ZC_MEMBER int tile_step() const { return gridDim.x / (CLUSTER * PARTS); }

    // own: initialises the kernel's other barriers.
    template <class F> ZC_MEMBER void begin(F own) const {
        if (threadIdx.x == 0) {
            for (int s = 0; s < STAGES; s++) {
                zc_barrier_init(full(s), 1);
                zc_barrier_init(empty(s), (PINGPONG ? 1 : GROUPS) * CLUSTER);
            }
            if (PARTS > 1) zc_barrier_init(received(), 1);
            own();
            zc_barrier_fence();
            if (PARTS > 1) zc_barrier_expect(received(), SENT);
            zc_tensor_prefetch(&p.a);
            zc_tensor_prefetch(&p.b);
        }
        zc_meet<CLUSTER * PARTS>();
    }
    ZC_MEMBER void end() const {
        if (CLUSTER * PARTS > 1) zc_cluster_meet();
    }

    // ---- the producer ----

    // EARLY: before the kernel in front has ended.
    template <bool EARLY, class... AT>
    ZC_MEMBER void load_b_part(u32 to, const zc_tensor_map *b, u32 barrier, AT... at) const {
        if (EARLY) zc_constant_load();
        if constexpr (DOWN > 1)
            zc_tensor_multicast(to, b, barrier, ALL, at...);
        else
            zc_tensor_load(to, b, barrier, at...);
    }
    template <bool EARLY> ZC_MEMBER void load_b(int stage, const zc_gemm_origin &t, int step) const {
        const u32 to = b_of(stage), barrier = full(stage);
        const int item = zc_sm90_rows::b_item(p, t.item, step), depth = zc_sm90_rows::depth(p, step);
        const zc_tensor_map *const b = zc_sm90_rows::b(p, step), *const second = MATRICES > 1 ? &p.second_b : b;
        const int share = DOWN > 1 ? rank : 0;
        if constexpr (ZC_CROSSED) {
            const int line = share * B_PART;
            load_b_part<EARLY>(to + line * LINE, b, barrier, depth, 0, 0, (t.col + line) / ZC_WGMMA_TURNED_ROWS, item);
        } else if constexpr (ZC_DEALT > 0) {
            static_assert(MATRICES == 1 && B_PART % ZC_DEALT == 0, "whole hands");
#pragma unroll
            for (int i = 0; i < B_PART; i += ZC_DEALT) {
                const int line = share * B_PART + i;
                load_b_part<EARLY>(to + line * LINE, b, barrier, depth, 0, (t.col + line) / ZC_HAND, 0, item);
            }
        } else if constexpr (Z_TB) {
            constexpr int LINES = B_PART / B_COPIES;
#pragma unroll
            for (int i = 0; i < B_COPIES; i++) {
                const int line = share * B_PART + i * LINES;
                load_b_part<EARLY>(to + line * LINE, line < RESULT_N ? b : second, barrier, depth, t.col + line % RESULT_N, item);
            }
        } else {
            constexpr int LINES = DEPTH / DOWN;
#pragma unroll
            for (int panel = 0; panel < PANELS; panel++)
                load_b_part<EARLY>(to + panel * PANEL + share * LINES * LINE, b, barrier, t.col + panel * 64,
                                   depth + share * LINES, item);
        }
    }
    ZC_MEMBER void load_a(int stage, const zc_gemm_origin &t, const zc_sm90_rows &rows, int step) const {
        if (ACROSS == 1)
            rows.load(a_of(stage), full(stage), step);
        else if (step % ACROSS == rank)
            zc_tensor_multicast(a_of(stage), &p.a, full(stage), ALL, step * DEPTH, t.row, t.item);
    }
    ZC_MEMBER void load_tile(slot &at, const zc_gemm_origin &t) const {
#pragma unroll
        for (int first = 0; first < EXTRA * HELD; first += HELD, at.next()) {
            const int n = TILE_PANELS - first < HELD ? TILE_PANELS - first : HELD;
            zc_barrier_wait(empty(at.stage), at.parity);
            zc_barrier_expect(full(at.stage), n * A_BYTES);
            for (int i = 0; i < n; i++)
                zc_tensor_load(a_of(at.stage) + i * A_BYTES, &p.tile, full(at.stage), t.col + tile_begin(first + i),
                               t.row, t.item);
        }
    }
    // Tiles first, first + step ... below tiles; place_of(tile).
    template <class F> ZC_MEMBER void produce(int tiles, F place_of) const {
        slot at = {0, 1};
        int early = 0;
#ifdef Z_B_CONSTANT
        if (first_tile() < tiles) {
            const zc_gemm_origin t = place_of(first_tile());
            early = steps < STAGES ? steps : STAGES;
            for (int k = 0; k < early; k++) {
                zc_barrier_expect(full(k), STAGE);
                load_b<true>(k, t, begins + k);
            }
        }
#endif
        zc_grid_wait();
        zc_grid_launch();
        for (int tile = first_tile(); tile < tiles; tile += tile_step()) {
            const zc_gemm_origin t = place_of(tile);
            const zc_sm90_rows rows(p, t.row, t.col, t.item);
            for (int k = 0; k < steps; k++, at.next()) {
                if (early > 0) {
                    early--;
                } else {
                    zc_barrier_wait(empty(at.stage), at.parity);
                    zc_barrier_expect(full(at.stage), STAGE);
                    load_b<false>(at.stage, t, begins + k);
                }
                load_a(at.stage, t, rows, begins + k);
            }
            load_tile(at, t);
        }
        // The others may still write to this block's memory and arrive on its barriers.
        if (CLUSTER > 1)
            for (int s = 0; s < STAGES; s++, at.next()) zc_barrier_wait(empty(at.stage), at.parity);
    }

    // ---- the consumers ----

    // Goes by the stages of another warpgroup's tile.
    ZC_MEMBER void pass(slot &at) const { at.skip(steps + EXTRA); }
    ZC_MEMBER void release(int stage, int thread) const {
        if (CLUSTER > 1) {
            if (thread < CLUSTER) zc_barrier_arrive_remote(zc_cluster_address(empty(stage), thread));
        } else if (thread == 0) {
            zc_barrier_arrive(empty(stage));
        }
    }
    ZC_MEMBER void multiply(slot &at, int warpgroup, int thread, sums &sum) const {
        if constexpr (ZC_STEPWISE)
            multiply_stepwise(at, warpgroup, thread, sum);
        else
            multiply(at, warpgroup, thread, sum, steps, [](int) {});
    }
    static ZC_MEMBER int beside(int warpgroup) { return PINGPONG ? 0 : warpgroup % BESIDE; }
    static ZC_MEMBER int below(int warpgroup) { return PINGPONG ? 0 : warpgroup / BESIDE; }
    // The factors of product i of a stage, from its `part`th 32 bytes on: of block i / PIECES and piece i % PIECES.
    ZC_MEMBER u64 a_part(int stage, int warpgroup, int i, int part) const {
        if (ZC_CROSSED) return zc_wgmma_along(b_of(stage) + beside(warpgroup) * BLOCKS * PANEL, i * PANEL + part * 32);
        const u32 a = a_of(stage) + (PINGPONG || SIDE ? 0 : warpgroup * BLOCKS * PANEL);
        return zc_wgmma_along(a, i / PIECES * PANEL + part * 32);
    }
    ZC_MEMBER u64 b_part(int stage, int warpgroup, int i, int part) const {
        if (ZC_CROSSED) return zc_wgmma_along(a_of(stage) + below(warpgroup) * OWN * LINE, part * 32);
        const u32 b = b_of(stage) + (SIDE ? warpgroup * OWN * LINE : 0);
        const int piece = i % PIECES * Z_PRODUCT_N * LINE;
        return Z_TB ? zc_wgmma_along(b, piece + part * 32) : zc_wgmma_across(b, piece + part * 16 * LINE, PANEL);
    }
    // So many steps. read(stage): under its products; all threads have read when it returns.
    template <class F> ZC_MEMBER void multiply(slot &at, int warpgroup, int thread, sums &sum, int count, F read) const {
        int last = -1;
        for (int k = 0; k < count; k++, at.next()) {
            zc_barrier_wait(full(at.stage), at.parity);
            zc_wgmma_fence();
#pragma unroll
            for (int part = 0; part < Z_LINE_PARTS; part++)
#pragma unroll
                for (int i = 0; i < BLOCKS * PIECES; i++)
                    zc_product(sum[i], a_part(at.stage, warpgroup, i, part), b_part(at.stage, warpgroup, i, part),
                               k || part);
            zc_wgmma_commit();
            read(at.stage);
            if (last >= 0) { // one group is in flight: the products of the step before are done
                zc_wgmma_wait<1>();
                release(last, thread);
            }
            last = at.stage;
        }
        zc_wgmma_wait<0>();
        if (last >= 0) release(last, thread);
    }
    // The same with the sums of two steps apart: one product runs while those of another are added up. Half of the products end
    // their sums with one step and begin anew, the other half with the next, so that two sets of registers do for all, and a
    // stage is free when its step is done. A step of a block's rows of A is read once, into registers: shared memory, which gives
    // every product its columns of B and takes what comes, has no cycles left to give A to each.
    //
    // It relies on the tensor cores' 14 digits, which the tests' tensor cores do not have: each of eight sums of 32 products may
    // cut off 2^-14 of what the two steps have come to, and of those there are many in a long product, whose errors differ in sign.
    static constexpr int PRODUCTS = BLOCKS * PIECES, HALF = PRODUCTS / 2;
    typedef zc_product_sum step_sums[2][Z_PRODUCT_N / 2];

    ZC_MEMBER void multiply_stepwise(slot &at, int warpgroup, int thread, sums &sum) const {
        static_assert(!PINGPONG && !SIDE && (PRODUCTS == 2 || PRODUCTS == 4), "two warpgroups, and two products of each at work");
        step_sums step;
#pragma unroll
        for (int i = 0; i < BLOCKS; i++)
#pragma unroll
            for (int e = 0; e < OWN / 2; e++) sum[i][e] = 0;
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int e = 0; e < Z_PRODUCT_N / 2; e++) step[i][e] = 0;
        if constexpr (ZC_ODD_STEPS) multiply_step<0>(at, warpgroup, thread, step, sum);
        for (int k = 0; k < steps / 2; k++) {
            multiply_step<HALF>(at, warpgroup, thread, step, sum);
            multiply_step<0>(at, warpgroup, thread, step, sum);
        }
#pragma unroll
        for (int i = HALF; i < PRODUCTS; i++) add_step(i, step, sum);
    }
    // ENDS: the first product whose sums end with this step.
    template <int ENDS>
    ZC_MEMBER void multiply_step(slot &at, int warpgroup, int thread, step_sums &step, sums &sum) const {
        u32 rows[Z_LINE_PARTS][4];
        zc_barrier_wait(full(at.stage), at.parity);
#pragma unroll
        for (int n = 0; n < PRODUCTS; n++) {
            const int i = (ENDS + n) % PRODUCTS;
            if (n % PIECES == 0) {
                if (n) zc_wgmma_wait<0>(); // the registers are free
#pragma unroll
                for (int part = 0; part < Z_LINE_PARTS; part++)
                    read_piece(at.stage, warpgroup * BLOCKS + i / PIECES, 0, thread, part * 2, rows[part]);
            }
            zc_wgmma_fence();
#pragma unroll
            for (int part = 0; part < Z_LINE_PARTS; part++)
                zc_product_held(step[i % 2], rows[part], b_part(at.stage, warpgroup, i, part), n < HALF || part);
            zc_wgmma_commit();
            if (n == 0 || n > HALF) continue;
            zc_wgmma_wait<1>();
            add_step(ENDS + n - 1, step, sum);
        }
        zc_wgmma_wait<0>();
        release(at.stage, thread);
        at.next();
    }
    // What product i has summed.
    static ZC_MEMBER void add_step(int i, const step_sums &step, sums &sum) {
#pragma unroll
        for (int e = 0; e < Z_PRODUCT_N / 2; e++) sum[i / PIECES][i % PIECES * Z_PRODUCT_N / 2 + e] += step[i % 2][e];
    }

    // The stages of p.tile are there, and so their phases known, before the other one's turn.
    ZC_MEMBER void await_tile(slot at) const {
        static_assert(!PINGPONG || EXTRA <= STAGES, "all of them have room");
#pragma unroll
        for (int i = 0; i < EXTRA; i++, at.next()) zc_barrier_wait(full(at.stage), at.parity);
    }

    // ---- parts of the summed axis ----

    // Each block finishes the rows of the warpgroup of its part's number: false in the other one, whose sums go to the other
    // block. They are laid down in the stage that comes after the operand's, which nobody fills any more.
    ZC_MEMBER bool join_parts(slot at, int warpgroup, int thread, sums &sum) const {
        typedef zc_vec<f32, 4> four;
        constexpr int PIECES_OF_SUMS = TILE_N / 8;
        zc_named_sync(3, 256); // all products have read their operands
        if (warpgroup == part) {
            const four *const from = (const four *)(memory + RING + RESULTS - SENT) + thread;
            zc_barrier_wait_cluster(received(), 0);
#pragma unroll
            for (int i = 0; i < PIECES_OF_SUMS; i++) {
                const four more = from[i * 128];
#pragma unroll
                for (int e = 0; e < 4; e++) sum[0][i * 4 + e] += more.v[e];
            }
            return true;
        }
        at.skip(EXTRA);
        four *const to = (four *)(memory + at.stage * STAGE) + thread;
#pragma unroll
        for (int i = 0; i < PIECES_OF_SUMS; i++)
            to[i * 128] = {sum[0][i * 4], sum[0][i * 4 + 1], sum[0][i * 4 + 2], sum[0][i * 4 + 3]};
        zc_async_fence();
        zc_named_sync(1 + warpgroup, 128);
        if (thread == 0)
            zc_bulk_send(zc_cluster_address(smem + RING + RESULTS - SENT, warpgroup), a_of(at.stage), SENT,
                         zc_cluster_address(received(), warpgroup));
        return false;
    }

    // ---- panels: 64 rows by 64 columns as pairs of elements, for each group of 8 columns two rows a thread ----

    static ZC_MEMBER u32 piece_of(int thread, int group) { // 16 bytes of two groups, of which a warp moves 32
        const int lane = thread % 32, line = thread / 32 * 16 + lane % 16;
        return line * LINE + ((group + lane / 16) ^ line % 8) * 16;
    }
    // Of p.tile, rows [64 block, 64 block + 64) of the tile; panel: in the stage.
    ZC_MEMBER const unsigned char *tile_panel(int stage, int block, int panel) const {
        return memory + stage * STAGE + panel * A_BYTES + block * ZC_ROWS_BYTES;
    }
    // Two groups.
    ZC_MEMBER void read_piece(int stage, int block, int panel, int thread, int group, u32 *out) const {
        zc_ldmatrix_x4(out, tile_panel(stage, block, panel) + piece_of(thread, group));
    }
    ZC_MEMBER void read_tile(int stage, int block, int panel, int thread, u32 (&out)[16]) const {
#pragma unroll
        for (int j = 0; j < 8; j += 2) read_piece(stage, block, panel, thread, j, out + j * 2);
    }
    // The same of one line and group, for who has no four registers in a row to spare.
    ZC_MEMBER zc_vec<Z_T, 2> pair_of_tile(int stage, int block, int panel, int line, int group, int thread) const {
        return *(const zc_vec<Z_T, 2> *)(tile_panel(stage, block, panel) + line * LINE + (group ^ line % 8) * 16 + thread % 4 * 4);
    }
    static ZC_MEMBER void write_piece(u32 panel, int thread, int group, const u32 *v) {
        zc_stmatrix_x4(panel + piece_of(thread, group), v);
    }
    // The warpgroup's next panel, from which the copy engine has read what went through it.
    ZC_MEMBER u32 take_panel(int warpgroup, int thread, int buffer) const {
        if (thread == 0) zc_bulk_wait_read<STAGING - 1>();
        zc_named_sync(1 + warpgroup, 128);
        return panel_of(warpgroup, buffer);
    }
    // Out of shared memory by the copy engine; lay_down(panel) writes it there; buffer: what the panel before the last left.
    template <class F>
    ZC_MEMBER void send(const zc_tensor_map *map, const zc_gemm_origin &to, int warpgroup, int thread, int &buffer, F lay_down) const {
        const u32 panel = take_panel(warpgroup, thread, buffer);
        lay_down(panel);
        zc_async_fence();
        zc_named_sync(1 + warpgroup, 128);
        if (thread == 0) {
            zc_rows_store(p, map, panel, to.col, to.row, to.item);
            zc_bulk_commit();
        }
        buffer = STAGING == 1 ? 0 : buffer ^ 1;
    }
    ZC_MEMBER void send_panel(const zc_tensor_map *map, const zc_gemm_origin &to, int warpgroup, int thread,
                              const u32 (&out)[16], int &buffer) const {
        send(map, to, warpgroup, thread, buffer, [&](u32 panel) {
#pragma unroll
            for (int j = 0; j < 8; j += 2) write_piece(panel, thread, j, out + j * 2);
        });
    }
};
