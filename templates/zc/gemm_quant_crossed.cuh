// What becomes of tiles of sums whose rows are columns of B (Z_CROSSED): no zero points, and bytes that leave by the copy engine. A
// thread has two neighbouring columns of 64 and many rows, so that what its columns need stays in registers.
//
// Of two pairs of operands (Z_PAIR) the second product's bytes wait in registers.
//
// spec.h: see templates/gemm_quant_sm90.cu.
#pragma once
#include "zc/gemm_tiles.cuh"
#include "zc/turned_bytes.cuh"

template <class PIPE> struct zc_gq_crossed : zc_gemm_tiles<PIPE> {
    using PIPE::p;
    typedef typename PIPE::slot slot;

    static constexpr int BLOCKS = PIPE::BLOCKS, ROWS = PIPE::OWN; // of a warpgroup: blocks of 64 columns
    static constexpr int PRODUCTS = ZC_GQ_PAIR ? 2 : 1, PAIRS = BLOCKS * PRODUCTS; // of columns, of a thread
    static constexpr bool REMAKES = false;
    static_assert(!Z_ZERO_A && !Z_ZERO_B && Z_TENSOR_Y && PIPE::EXTRA <= 1, "no sums of lines; whole panels");
    static_assert(!ZC_GQ_PAIR || BLOCKS == 1, "a lane for each factor of four");

    const zc_gemm_quant_params &q;
    const zc_gq_second &second;

    ZC_MEMBER zc_gq_crossed(const zc_gemm_quant_sm90_params &p, unsigned char *memory)
        : zc_gemm_tiles<PIPE>(p.product, memory, PIPE::RESULTS), q(p.quant), second(p.second) {}

    ZC_MEMBER void multiply(slot &at, int warpgroup, int thread, typename PIPE::sums &sum, int steps) const {
        PIPE::multiply(at, warpgroup, thread, sum, steps, [](int) {});
    }

    // ---- columns: of each four lanes, which have the same ones, every lane makes and keeps one of those of two products or blocks ----

    typedef zc_gq_own all_own;
    typedef zc_gq_column all_made;

    static ZC_MEMBER int made_by(int thread) { return thread % 4 / 2 % PAIRS; } // which pair's
    // A thread's first column of a block of the warpgroup.
    static ZC_MEMBER int column_of(int warpgroup, int thread, int block) {
        return (PIPE::beside(warpgroup) * BLOCKS + block) * 64 + zc_turned_column(thread);
    }
    ZC_MEMBER void ask_columns(const zc_gemm_origin &t, int warpgroup, int thread, all_own &own) const {
        const i64 at = t.col + column_of(warpgroup, thread, made_by(thread) % BLOCKS) + thread % 2, col = at < q.n ? at : q.n - 1;
#ifdef Z_PAIR
        if (made_by(thread)) {
            own = zc_gq_ask(second, col);
            return;
        }
#endif
        own = zc_gq_ask(q, zc_gq_batch(q, t.item), col);
    }
    ZC_MEMBER void make_columns(const zc_gq_all_shared &shared, int thread, const all_own &own, all_made &made) const {
        zc_gq_shared its = shared[0];
        if (ZC_GQ_PAIR && made_by(thread)) its = shared[PRODUCTS - 1];
        made = zc_gq_make(its, own).column;
    }
    // A tile as its threads see it.
    struct view {
        zc_gemm_origin t;
        zc_gq_column made;
        zc_gq_shared shared;
        zc_gq_with with;
#ifdef Z_PAIR
        u32 kept[ROWS / 8];
#endif
    };
    static ZC_MEMBER zc_gq_column of_lane(const zc_gq_column &made, int lane) {
        constexpr int WORDS = sizeof(zc_gq_column) / 4;
        const auto words = __builtin_bit_cast(zc_vec<u32, WORDS>, made);
        zc_vec<u32, WORDS> out;
#pragma unroll
        for (int i = 0; i < WORDS; i++) out.v[i] = zc_shfl(words.v[i], lane);
        return __builtin_bit_cast(zc_gq_column, out);
    }
    ZC_MEMBER void lay_columns(int, int, const all_made &made, view &v) const { v.made = made; }
    struct pair {
        zc_gq_column of[2];
        ZC_MEMBER pair(const view &v, int thread, int number)
            : of{of_lane(v.made, thread % 32 / 4 * 4 + number * 2), of_lane(v.made, thread % 32 / 4 * 4 + number * 2 + 1)} {}
    };

    // ---- results ----

    ZC_MEMBER void see(const zc_gemm_origin &t, int, int, view &v) const {
        v.t = t;
        if (ZC_GQ_PAIR) v.with = zc_gq_with_of(p.g.fused); // is not kept: registers
    }

    // With the fused work on them, whose operands are any beyond the last row or column; other: of a tile's bytes that came, from
    // the `first`th on.
    ZC_MEMBER auto result(const view &v, const zc_turned_numbers &n, int row, int column, u32 other, int first) const {
        return zc_gq_finished(n.y, other, first, v.with, [&](i32(&all)[2]) {
            const int col = v.t.col + column, at = v.t.row + row, last = (int)q.m - 1;
            zc_fused_near<2>(p.g.fused, all, at < last ? at : last, col < q.n ? col : (int)q.n - 2, q.n, (u16)(other >> first * 8));
        });
    }
    ZC_MEMBER void lay_panel(const view &v, int block, int warpgroup, int thread, const i32 (&sum)[ROWS / 2], int stage, u32 to) const {
        const int column = column_of(warpgroup, thread, block), top = PIPE::below(warpgroup) * ROWS, warp = thread / 32;
        const unsigned char *const tile = this->tile_panel(stage, 0, column / PIPE::LINE);
        const pair columns(v, thread, block);
        zc_turned_lay<ROWS, (PIPE::EXTRA > 0), ZC_GQ_UPPER>(
            [&](int row) { return tile + (top + row) * PIPE::LINE + (column / 16 % 8 ^ row % 8) * 16; },
            [&](int row) { return to + row * 64 + (warp ^ row / 2 % 4) * 16; },
            [&](int place, int second, u32 other, int first) {
#ifdef Z_PAIR
                other = v.kept[place];
#endif
                const zc_turned_numbers n(v.shared, columns.of, sum + place * 4 + second);
                return result(v, n, top + place * 8 + thread % 4 * 2 + second, column, other, first);
            });
    }
#ifdef Z_PAIR
    ZC_MEMBER void keep_second(const zc_gemm_origin &, const zc_gq_shared &shared, int, int thread, int,
                               const typename PIPE::sums &sum, view &v) const {
        const pair columns(v, thread, 1);
#pragma unroll
        for (int i = 0; i < ROWS / 8; i++) {
            const i32 *const own = sum[0] + i * 4;
            v.kept[i] = zc_gq_word<(Z_WHOLES > 0)>(zc_gq_saturated<zc_gq_other>(zc_turned_numbers(shared, columns.of, own).y),
                                                   zc_gq_saturated<zc_gq_other>(zc_turned_numbers(shared, columns.of, own + 1).y));
        }
    }
#endif
    // at: the fused operand's stage.
    ZC_MEMBER void finish(const view &v, int warpgroup, int thread, const typename PIPE::sums &sum, slot &at, int &buffer) const {
        if (PIPE::EXTRA && !Z_PINGPONG) zc_barrier_wait(this->full(at.stage), at.parity);
#pragma unroll
        for (int block = 0; block < BLOCKS; block++)
            this->send(&p.y, {v.t.row + PIPE::below(warpgroup) * ROWS, v.t.col + (PIPE::beside(warpgroup) * BLOCKS + block) * 64, v.t.item},
                       warpgroup, thread, buffer, [&](u32 to) { lay_panel(v, block, warpgroup, thread, sum[block], at.stage, to); });
        if (PIPE::EXTRA) { // all have read it
            this->release(at.stage, thread);
            at.next();
        }
    }
};
