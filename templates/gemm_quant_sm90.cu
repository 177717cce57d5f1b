// MatMulInteger and QLinearMatMul of 8-bit integers on Hopper, B stored N x K: exact sums of a b by the pipeline of
// zc/gemm_sm90.cuh, and of rows of A and columns of B, from which zero points follow, by dot products of what lies in shared
// memory for them.
//
// spec.h: see zc/gemm_quant.cuh (Z_FLOAT is 0) and zc/gemm_tiles.cuh (Z_BYTES, Z_INTEGERS); Z_PAIRS: the result has an even number of
// columns.
#include "zc/gemm_quant.cuh"
#include "zc/gemm_tiles.cuh"
#include "abi/gemm_quant_sm90.h"

// Lines of a stage, A's rows and then B's columns, whose sums are wanted.
constexpr int ZC_GQ_FIRST = Z_ZERO_B ? 0 : Z_TILE_M, ZC_GQ_END = Z_ZERO_A ? Z_TILE_M + Z_TILE_N : Z_TILE_M;
constexpr int ZC_GQ_LINES = ZC_GQ_END > ZC_GQ_FIRST ? ZC_GQ_END - ZC_GQ_FIRST : 0;

template <class PIPE> struct zc_gemm_quant_sm90 : zc_gemm_tiles<PIPE> {
    using PIPE::p;
    using zc_gemm_tiles<PIPE>::tiles;
    typedef typename PIPE::slot slot;

    // Threads that share a tile, which of them a thread is, and what they do together.
    static constexpr int TEAM = Z_PINGPONG ? 128 : 256, EACH = ZC_GQ_LINES ? (ZC_GQ_LINES + TEAM - 1) / TEAM : 1;
    static constexpr int SHARED = (Z_PINGPONG ? 2 : 1) * (Z_TILE_M + Z_TILE_N) * 4;
    static ZC_MEMBER int member(int warpgroup, int thread) { return Z_PINGPONG ? thread : warpgroup * 128 + thread; }
    static ZC_MEMBER void meet_team(int warpgroup) { zc_named_sync(Z_PINGPONG ? 1 + warpgroup : 1, TEAM); }
    // Of each line of the team's tile.
    ZC_MEMBER u32 *sums_of(int warpgroup) const {
        return (u32 *)(this->memory + PIPE::RING) + (Z_PINGPONG ? warpgroup * (Z_TILE_M + Z_TILE_N) : 0);
    }

    const zc_gemm_quant_params &q;

    ZC_MEMBER zc_gemm_quant_sm90(const zc_gemm_quant_sm90_params &p, unsigned char *memory)
        : zc_gemm_tiles<PIPE>(p.product, memory, SHARED), q(p.quant) {}

    ZC_MEMBER u32 line_sum(const unsigned char *stage, int line, u32 sum) const {
        const bool is_signed = line < Z_TILE_M ? zc_traits<Z_A>::is_signed : zc_traits<Z_B>::is_signed;
#pragma unroll
        for (int piece = 0; piece < 8; piece++) {
            const zc_vec<u32, 4> x = *(const zc_vec<u32, 4> *)(stage + line * PIPE::LINE + (piece ^ line % 8) * 16);
#pragma unroll
            for (int i = 0; i < 4; i++) sum = zc_gq_add_bytes(x.v[i], sum, is_signed);
        }
        return sum;
    }
    ZC_MEMBER void multiply(slot &at, int warpgroup, int thread, typename PIPE::sums &sum) const {
        if constexpr (ZC_GQ_LINES == 0) {
            PIPE::multiply(at, warpgroup, thread, sum);
        } else {
            const int first = ZC_GQ_FIRST + member(warpgroup, thread);
            u32 lines[EACH] = {};
            PIPE::multiply(at, warpgroup, thread, sum, [&](int stage) {
#pragma unroll
                for (int i = 0; i < EACH; i++)
                    if (first + i * TEAM < ZC_GQ_END)
                        lines[i] = line_sum(this->memory + stage * PIPE::STAGE, first + i * TEAM, lines[i]);
                zc_named_sync(Z_PINGPONG ? 1 + warpgroup : 2 + warpgroup, 128);
            });
            meet_team(warpgroup); // all have what they need of the tile before
            u32 *const to = sums_of(warpgroup);
#pragma unroll
            for (int i = 0; i < EACH; i++)
                if (first + i * TEAM < ZC_GQ_END) to[first + i * TEAM] = lines[i];
            meet_team(warpgroup);
        }
    }

    // A row of a thread's results, and what its sums need.
    struct row {
        i64 at;
        bool is_there;
        Z_Y *y;
        u32 zero, sum;
    };
    ZC_MEMBER row row_of(const zc_gq_item &item, const zc_gemm_origin &t, int line, const u32 *lines) const {
        row r = {t.row + line, t.row + line < q.m};
        r.y = (Z_Y *)q.y + item.y + r.at * q.n;
        r.zero = r.is_there ? (u32)zc_gq_zero_a(q, item, r.at) : 0u;
        r.sum = Z_ZERO_B ? lines[line] : 0u;
        return r;
    }
    // A column's part of a result.
    struct column {
        u32 zero, turned; // turned: what A's zero point is multiplied by
        f64 scale;
    };
    ZC_MEMBER column column_of(const zc_gq_item &item, const zc_gemm_origin &t, int at, const u32 *lines) const {
        column c = {};
        if (t.col + at >= q.n) return c;
        c.zero = (u32)zc_gq_zero_b(q, item, t.col + at);
        c.turned = Z_ZERO_A ? (u32)q.k * c.zero - lines[Z_TILE_M + at] : 0u;
        c.scale = zc_gq_scale(q, item, t.row, t.col + at);
        return c;
    }
    ZC_MEMBER Z_Y result(const zc_gq_item &item, const row &r, i64 col, const column &c, i32 sum) const {
        const u32 all = (u32)sum + r.zero * c.turned - c.zero * r.sum;
#if defined(Z_Y_SCALE) && Z_ROW_SCALES
        return zc_gq_result(q, (i32)all, zc_gq_scale(q, item, r.at, col));
#else
        return zc_gq_result(q, (i32)all, c.scale);
#endif
    }
    ZC_MEMBER void save(const zc_gemm_origin &t, int warpgroup, int thread, const typename PIPE::sums &sum) const {
        const zc_gq_item item = zc_gq_batch(q, t.item);
        const u32 *const lines = sums_of(warpgroup);
        const int top = (Z_PINGPONG ? 0 : warpgroup * PIPE::BLOCKS * 64) + thread / 32 * 16 + thread % 32 / 4;
        row rows[PIPE::BLOCKS * 2];
#pragma unroll
        for (int i = 0; i < PIPE::BLOCKS * 2; i++) rows[i] = row_of(item, t, top + i / 2 * 64 + i % 2 * 8, lines);
#pragma unroll
        for (int j = 0; j < Z_TILE_N / 8; j++) {
            const int at = j * 8 + thread % 4 * 2;
            const i64 col = t.col + at;
            const column c0 = column_of(item, t, at, lines), c1 = column_of(item, t, at + 1, lines);
#pragma unroll
            for (int i = 0; i < PIPE::BLOCKS * 2; i++) {
                if (!rows[i].is_there || col >= q.n) continue;
                const i32 *const s = sum[i / 2] + j * 4 + i % 2 * 2;
                const Z_Y y0 = result(item, rows[i], col, c0, s[0]);
                if constexpr (Z_PAIRS) {
                    *(zc_vec<Z_Y, 2> *)(rows[i].y + col) = {y0, result(item, rows[i], col + 1, c1, s[1])};
                } else {
                    rows[i].y[col] = y0;
                    if (col + 1 < q.n) rows[i].y[col + 1] = result(item, rows[i], col + 1, c1, s[1]);
                }
            }
        }
    }
    ZC_MEMBER void consume(int warpgroup) const {
        const int thread = threadIdx.x % 128;
        slot at = {0, 0};
        int turn = 0;
        zc_grid_wait();
        zc_grid_launch();
        // A parity cannot tell a phase from the one two before it: the two enter their products in turn.
        if (Z_PINGPONG && warpgroup == 1) zc_named_arrive(4, 256);
        for (int tile = this->first_tile(); tile < tiles; tile += this->tile_step(), turn ^= Z_PINGPONG) {
            if (Z_PINGPONG && turn != warpgroup) {
                at.skip(this->steps);
                continue;
            }
            typename PIPE::sums sum;
            if (Z_PINGPONG) zc_named_sync(4 + warpgroup, 256);
            multiply(at, warpgroup, thread, sum);
            if (Z_PINGPONG) zc_named_arrive(4 + (warpgroup ^ 1), 256);
            save(this->place_of(tile), warpgroup, thread, sum);
        }
    }
};

ZC_KERNEL_OF(0, 384)(const __grid_constant__ zc_gemm_quant_sm90_params p) {
    ZC_SWIZZLED_SMEM(smem);
    const zc_gemm_quant_sm90<zc_gemm_pipe<Z_TILE_M, Z_TILE_N, Z_STAGES, Z_CLUSTER, 1, Z_PINGPONG, false, 0>> product(p, smem);
    product.begin([] {});
    const int warpgroup = zc_warpgroup();
    if (warpgroup == 0) {
        zc_registers_drop<24>();
        ZC_FIRST_WARP(zc_warp() == 0 && zc_elect()) product.produce();
    } else {
        zc_registers_take<240>();
        product.consume(warpgroup - 1);
    }
    product.end();
}
