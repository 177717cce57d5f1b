// MatMulInteger, QLinearMatMul, ConvInteger and QLinearConv of 8-bit integers on Hopper, B stored N x K: exact sums of a b by the
// pipeline of zc/gemm_sm90.cuh, and of rows of A and columns of B, from which zero points follow, by dot products of what lies in
// shared memory for them. Bytes leave by the copy engine, and a fused operand of bytes (a residual) comes by it; other results are
// stored by the threads.
//
// spec.h: see zc/gemm_quant.cuh (Z_FLOAT is 0), zc/gemm_tiles.cuh (Z_BYTES, Z_INTEGERS) and zc/sm90_rows.cuh; Z_PAIRS: the result has an
// even number of columns; Z_STORED: the type of results behind fused work (zc/fused.cuh); Z_TENSOR_Y: the copy engine stores; Z_EDGES: with Z_ZERO_A, windows of Z_DOWN x Z_ACROSS taps, of Z_TAP_STEPS steps each, reach
// beyond images, where the copy engine puts zeros in the place of zero points.
#include "zc/gemm_quant.cuh"
#include "zc/gemm_tiles.cuh"
#include "zc/fused.cuh"
#include "abi/gemm_quant_sm90.h"

// Lines of a stage, A's rows and then B's columns, whose sums are wanted.
constexpr int ZC_GQ_FIRST = Z_ZERO_B ? 0 : Z_TILE_M, ZC_GQ_END = Z_ZERO_A ? Z_TILE_M + Z_TILE_N : Z_TILE_M;
constexpr int ZC_GQ_LINES = ZC_GQ_END > ZC_GQ_FIRST ? ZC_GQ_END - ZC_GQ_FIRST : 0;
// Words of each column: its sum, or of the taps above and to the left of each corner between taps.
#ifdef Z_EDGES
constexpr bool ZC_GQ_EDGES = true;
constexpr int ZC_GQ_SIDE_X = Z_ACROSS + 1, ZC_GQ_CORNERS = (Z_DOWN + 1) * ZC_GQ_SIDE_X, ZC_GQ_TAP_STEPS = Z_TAP_STEPS;
#else
constexpr bool ZC_GQ_EDGES = false;
constexpr int ZC_GQ_SIDE_X = 1, ZC_GQ_CORNERS = 1, ZC_GQ_TAP_STEPS = 1;
#endif

// Fused work that is one sum of bytes, of which the copy engine brings the other.
#if defined(Z_FUSED_SUM) && Z_FUSED_TILE == 0
#define ZC_GQ_SUM
#define ZC_GQ_TYPE(i, T) typedef T zc_gq_other;
Z_FUSED_INPUTS(ZC_GQ_TYPE)
#undef ZC_GQ_TYPE
#endif

// A column's part of a result; more: see zc_wide.
struct zc_gq_column {
    f64 scale, more;
};
// Of zero points, where there are any: its own, and what A's is multiplied by.
struct zc_gq_zeros {
    u32 own, turned;
};

template <class PIPE> struct zc_gemm_quant_sm90 : zc_gemm_tiles<PIPE> {
    using PIPE::p;
    using zc_gemm_tiles<PIPE>::tiles;
    typedef typename PIPE::slot slot;

    // Threads that share a tile, which of them a thread is, and what they do together.
    static constexpr int TEAM = Z_PINGPONG ? 128 : PIPE::GROUPS * 128, EACH = ZC_GQ_LINES ? (ZC_GQ_LINES + TEAM - 1) / TEAM : 1;
    static constexpr int COLUMNS = (Z_TILE_N + TEAM - 1) / TEAM; // of a thread
    static constexpr int ROWS = PIPE::BLOCKS * 2;
    static ZC_MEMBER int member(int warpgroup, int thread) { return Z_PINGPONG ? thread : warpgroup * 128 + thread; }
    static ZC_MEMBER void meet_team(int warpgroup) { zc_named_sync(Z_PINGPONG ? 1 + warpgroup : 6, TEAM); }

    // What a team has in shared memory beside the ring: columns, sums of A's rows, and ZC_GQ_CORNERS rows of sums of columns.
    static constexpr int SHARED =
        Z_TILE_N * (int)(sizeof(zc_gq_column) + sizeof(zc_gq_zeros)) + (Z_TILE_M + ZC_GQ_CORNERS * Z_TILE_N) * 4;
    ZC_MEMBER zc_gq_column *columns_of(int warpgroup) const {
        return (zc_gq_column *)(this->memory + PIPE::RING + PIPE::RESULTS + (Z_PINGPONG ? warpgroup * SHARED : 0));
    }
    ZC_MEMBER zc_gq_zeros *zeros_of(int warpgroup) const { return (zc_gq_zeros *)(columns_of(warpgroup) + Z_TILE_N); }
    ZC_MEMBER u32 *sums_of(int warpgroup) const { return (u32 *)(zeros_of(warpgroup) + Z_TILE_N); }

    const zc_gemm_quant_params &q;

    ZC_MEMBER zc_gemm_quant_sm90(const zc_gemm_quant_sm90_params &p, unsigned char *memory)
        : zc_gemm_tiles<PIPE>(p.product, memory, PIPE::RESULTS + (Z_PINGPONG ? 2 : 1) * SHARED), q(p.quant) {}

    // ---- sums of lines ----

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
    // The sums of a tap's columns go to the corner below it and to its right.
    ZC_MEMBER void keep_tap(int tap, int first, u32 (&lines)[EACH], u32 *sums) const {
        const int corner = (tap / (ZC_GQ_SIDE_X - 1) + 1) * ZC_GQ_SIDE_X + tap % (ZC_GQ_SIDE_X - 1) + 1;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int line = first + i * TEAM;
            if (line < Z_TILE_M || line >= ZC_GQ_END) continue;
            sums[corner * Z_TILE_N + line] = lines[i];
            lines[i] = 0;
        }
    }
    ZC_MEMBER void multiply(slot &at, int warpgroup, int thread, typename PIPE::sums &sum) const {
        const int first = ZC_GQ_FIRST + member(warpgroup, thread);
        u32 *const sums = sums_of(warpgroup);
        u32 lines[EACH] = {};
        int step = 0;
        if (ZC_GQ_EDGES) meet_team(warpgroup); // all have what they need of the tile before
        PIPE::multiply(at, warpgroup, thread, sum, [&](int stage) {
            if constexpr (ZC_GQ_LINES > 0) {
#pragma unroll
                for (int i = 0; i < EACH; i++)
                    if (first + i * TEAM < ZC_GQ_END)
                        lines[i] = line_sum(this->memory + stage * PIPE::STAGE, first + i * TEAM, lines[i]);
                if constexpr (ZC_GQ_EDGES)
                    if (++step % ZC_GQ_TAP_STEPS == 0) keep_tap(step / ZC_GQ_TAP_STEPS - 1, first, lines, sums);
                zc_named_sync(1 + warpgroup, 128);
            }
        });
        meet_team(warpgroup);
        if constexpr (ZC_GQ_LINES > 0) {
            constexpr int END = ZC_GQ_EDGES ? Z_TILE_M : ZC_GQ_END;
#pragma unroll
            for (int i = 0; i < EACH; i++)
                if (first + i * TEAM < END) sums[first + i * TEAM] = lines[i];
            meet_team(warpgroup);
        }
    }
    // Sums of taps become those of all taps above and to the left.
    static ZC_MEMBER void add_up(u32 *sums) {
        for (int corner = 0; corner < ZC_GQ_CORNERS; corner++) {
            u32 *const to = sums + corner * Z_TILE_N;
            const bool inside = corner >= ZC_GQ_SIDE_X && corner % ZC_GQ_SIDE_X;
            *to = inside ? *to + to[-Z_TILE_N] + to[-ZC_GQ_SIDE_X * Z_TILE_N] - to[-(ZC_GQ_SIDE_X + 1) * Z_TILE_N] : 0u;
        }
    }

    // ---- results ----

    // Asked for before the results of the tile in front, made of that before the products, and laid down behind them.
    ZC_MEMBER void ask_columns(const zc_gemm_origin &t, int member, zc_gq_own (&own)[COLUMNS]) const {
        const zc_gq_item item = zc_gq_batch(q, t.item);
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) {
            const i64 at = t.col + member + i * TEAM;
            own[i] = zc_gq_ask(q, item, at < q.n ? at : q.n - 1);
        }
    }
    struct made_column {
        zc_gq_column column;
        u32 zero;
    };
    ZC_MEMBER void make_columns(const zc_gq_shared &shared, const zc_gq_own (&own)[COLUMNS], made_column (&made)[COLUMNS]) const {
#pragma unroll
        for (int i = 0; i < COLUMNS; i++)
            made[i] = {{zc_gq_scale(shared, own[i]), zc_gq_bias(own[i]) - ZC_WIDE}, (u32)own[i].zero};
    }
    ZC_MEMBER void lay_columns(int warpgroup, int thread, const made_column (&made)[COLUMNS]) const {
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) {
            const int at = member(warpgroup, thread) + i * TEAM;
            if (at >= Z_TILE_N) break;
            u32 *const sums = sums_of(warpgroup) + Z_TILE_M + at;
            if (ZC_GQ_EDGES) add_up(sums);
            columns_of(warpgroup)[at] = made[i].column;
            if (Z_ZERO_A || Z_ZERO_B)
                zeros_of(warpgroup)[at] = {made[i].zero, Z_ZERO_A && !ZC_GQ_EDGES ? (u32)q.k * made[i].zero - *sums : 0u};
        }
        meet_team(warpgroup);
    }

    // Taps of a window, from where it begins on, that lie below `end`.
    static ZC_MEMBER int taps_below(int end, int begin, int dilation, int taps) {
        const int n = (end - begin + dilation - 1) / dilation;
        return n < 0 ? 0 : n < taps ? n : taps;
    }
    // A row of a thread's results, and what its sums need. first, last: corners of the taps on the image, above and below; left,
    // right: how far behind them.
    struct row {
        int at;
        u32 zero, sum;
        int first, last, left, right;
    };
    ZC_MEMBER void put_edges(int pixel, row &r) const {
        const zc_window_params &w = p.window;
        const int line = pixel / w.out[2], y = line % w.out[1] * w.stride[1] - w.begin[1];
        const int x = (pixel - line * w.out[2]) * w.stride[2] - w.begin[2];
        r.first = taps_below(0, y, w.dilation[1], w.kernel[1]) * ZC_GQ_SIDE_X * Z_TILE_N;
        r.last = taps_below(w.in[1], y, w.dilation[1], w.kernel[1]) * ZC_GQ_SIDE_X * Z_TILE_N;
        r.left = taps_below(0, x, w.dilation[2], w.kernel[2]) * Z_TILE_N;
        r.right = taps_below(w.in[2], x, w.dilation[2], w.kernel[2]) * Z_TILE_N;
    }
    // Beyond the last row any will do.
    ZC_MEMBER int known(int row) const { return row < q.m ? row : (int)q.m - 1; }
    ZC_MEMBER row row_of(const zc_gq_item &item, const zc_gemm_origin &t, int line, const u32 *sums) const {
        row r = {t.row + line};
        const int at = known(r.at);
        r.zero = (u32)zc_gq_zero_a(q, item, at);
        r.sum = Z_ZERO_B ? sums[line] : 0u;
        if (ZC_GQ_EDGES) put_edges(at, r);
        return r;
    }
    // What the row's zero point is multiplied by: -(w - zero) of the taps on the image.
    ZC_MEMBER u32 turned_of(const row &r, const zc_gq_zeros &zeros, const u32 *sums) const {
        if (!ZC_GQ_EDGES) return zeros.turned;
        const u32 all = sums[r.last + r.right] - sums[r.first + r.right] - sums[r.last + r.left] + sums[r.first + r.left];
        const int taps = (r.last - r.first) / (ZC_GQ_SIDE_X * Z_TILE_N) * ((r.right - r.left) / Z_TILE_N);
        return (Z_ZERO_B ? (u32)p.g.k * taps * zeros.own : 0u) - all;
    }
    // A tile as the threads that finish it see it.
    struct view {
        zc_gq_item item;
        zc_gemm_origin t;
        const zc_gq_column *columns;
        const zc_gq_zeros *zeros;
        const u32 *sums; // of columns
        zc_gq_shared shared;
        u32 above; // ZC_ABOVE
        row rows[ROWS];
    };
    ZC_MEMBER void see(const zc_gemm_origin &t, const zc_gq_shared &shared, int warpgroup, int thread, view &v) const {
        const u32 *const sums = sums_of(warpgroup);
        const int top = (Z_PINGPONG ? 0 : warpgroup * PIPE::BLOCKS * 64) + thread / 32 * 16 + thread % 32 / 4;
        v.item = zc_gq_batch(q, t.item);
        v.t = t;
        v.shared = shared;
        v.above = zc_kept(ZC_ABOVE);
        v.columns = columns_of(warpgroup);
        v.zeros = zeros_of(warpgroup);
        v.sums = sums + Z_TILE_M;
#pragma unroll
        for (int i = 0; i < ROWS; i++) v.rows[i] = row_of(v.item, t, top + i / 2 * 64 + i % 2 * 8, sums);
    }
    // Before bytes are saturated. at: the column in the tile.
    ZC_MEMBER i32 result(const view &v, const row &r, int at, const zc_gq_column &c, i32 sum) const {
        const zc_gq_zeros zeros = Z_ZERO_A || Z_ZERO_B ? v.zeros[at] : zc_gq_zeros();
        const u32 turned = Z_ZERO_A ? turned_of(r, zeros, v.sums + at) : 0u;
        const i32 all = (i32)((u32)sum + r.zero * turned - zeros.own * r.sum);
#ifdef Z_Y_SCALE
        const f64 scale = Z_ROW_SCALES ? zc_gq_scale(q, v.item, r.at, v.t.col + at) : c.scale;
        return zc_gq_requantised(all, c.more, scale, v.shared.zero);
#else
        return all;
#endif
    }
    // Of two neighbours, with the fused work on them, whose operands are any beyond the last row or column.
#ifdef Z_FUSED
    typedef zc_vec<Z_STORED, 2> two_results;
#else
    typedef decltype(zc_saturated(Z_Y(), 0, 0)) two_results;
#endif
    ZC_MEMBER two_results results(const view &v, const row &r, int at, const zc_gq_column (&c)[2], const i32 *sum, u16 tile) const {
        const i32 y[2] = {result(v, r, at, c[0], sum[0]), result(v, r, at + 1, c[1], sum[1])};
#ifdef ZC_GQ_SUM
        return zc_unpack<Z_STORED>(zc_byte_sums<Z_STORED, Z_Y, zc_gq_other>(y, tile, Z_FUSED_SUM(p.g.fused), v.above));
#elif defined(Z_FUSED)
        constexpr int NEAR = Z_PAIRS ? 2 : 1; // rows of an odd length do not all begin at pairs
        const int last = (int)q.n - NEAR;
        const auto two = zc_unpack<Z_Y>(zc_saturated(Z_Y(), y[0], y[1]));
        i32 all[2] = {two.v[0], two.v[1]};
#pragma unroll
        for (int e = 0; e < 2; e += NEAR) {
            const int col = v.t.col + at + e;
            zc_fused_near<NEAR>(p.g.fused, all + e, known(r.at), col < last ? col : last, q.n, tile);
        }
        return {(Z_STORED)all[0], (Z_STORED)all[1]};
#else
        return zc_saturated(Z_Y(), y[0], y[1]);
#endif
    }
    // By the threads, two neighbours at once where rows have whole pairs.
    ZC_MEMBER void save(const view &v, int thread, const typename PIPE::sums &sum) const {
#pragma unroll
        for (int j = 0; j < Z_TILE_N / 8; j++) {
            const int at = j * 8 + thread % 4 * 2;
            const i64 col = v.t.col + at;
            const zc_gq_column c[2] = {v.columns[at], v.columns[at + 1]};
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                if (v.rows[i].at >= q.m || col >= q.n) continue;
                Z_STORED *const to = (Z_STORED *)q.y + v.item.y + (i64)v.rows[i].at * q.n + col;
                const two_results y = results(v, v.rows[i], at, c, sum[i / 2] + j * 4 + i % 2 * 2, 0);
                if constexpr (Z_PAIRS) {
                    *(two_results *)to = y;
                } else {
                    const auto two = zc_unpack<Z_STORED>(y);
                    to[0] = two.v[0];
                    if (col + 1 < q.n) to[1] = two.v[1];
                }
            }
        }
    }
    // Bytes by the copy engine, panels of 64 rows and 128 columns; what a tile has not of its last one lies beyond the result.
    static constexpr int ACROSS = 128, PANELS = (Z_TILE_N + ACROSS - 1) / ACROSS;
    // at: the fused operand's first stage.
    ZC_MEMBER void send_all(const view &v, int warpgroup, int thread, const typename PIPE::sums &sum, slot &at, int &buffer) const {
        const int first = Z_PINGPONG ? 0 : warpgroup * PIPE::BLOCKS;
#pragma unroll
        for (int panel = 0; panel < PANELS; panel++) {
            const int in = panel % PIPE::HELD;
            if (PIPE::EXTRA && !Z_PINGPONG && in == 0) zc_barrier_wait(this->full(at.stage), at.parity);
#pragma unroll
            for (int i = 0; i < PIPE::BLOCKS; i++) {
                const unsigned char *const tile = this->tile_panel(at.stage, first + i, in);
                this->send(&p.y, {v.t.row + (first + i) * 64, v.t.col + panel * ACROSS, v.t.item}, warpgroup, thread, buffer,
                           [&](u32 to) { lay_panel(v, panel, i, thread, sum[i], tile, to); });
            }
            if (PIPE::EXTRA && (in + 1 == PIPE::HELD || panel + 1 == PANELS)) { // all have read it
                this->release(at.stage, thread);
                at.next();
            }
        }
    }
    // tile: the fused operand's panel.
    ZC_MEMBER void lay_panel(const view &v, int panel, int block, int thread, const zc_product_sum (&sum)[Z_TILE_N / 2],
                             const unsigned char *tile, u32 to) const {
        constexpr int TOGETHER = 4; // groups of 8 columns, read before any is written, so that results are computed side by side
        const int line = thread / 32 * 16 + thread % 32 / 4;
        unsigned char *const laid = this->memory + (to - this->smem);
#pragma unroll
        for (int group = 0; group < ACROSS / 8; group += TOGETHER) {
            if (panel * ACROSS + group * 8 >= Z_TILE_N) break;
            two_results out[TOGETHER][2];
            int place[TOGETHER]; // of a row's pair, and of that in the one 8 lines below, whose pieces have the same order
#pragma unroll
            for (int j = 0; j < TOGETHER; j++) {
                const int in = (group + j) * 8 + thread % 4 * 2, at = panel * ACROSS + in;
                const zc_gq_column c[2] = {v.columns[at], v.columns[at + 1]};
                place[j] = line * PIPE::LINE + (in / 16 ^ line % 8) * 16 + in % 16;
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const u16 pair = PIPE::EXTRA ? *(const u16 *)(tile + place[j] + i * 8 * PIPE::LINE) : 0;
                    out[j][i] = results(v, v.rows[block * 2 + i], at, c, sum + (panel * ACROSS / 8 + group + j) * 4 + i * 2, pair);
                }
            }
#pragma unroll
            for (int j = 0; j < TOGETHER; j++)
#pragma unroll
                for (int i = 0; i < 2; i++) *(two_results *)(laid + place[j] + i * 8 * PIPE::LINE) = out[j][i];
        }
    }
    ZC_MEMBER void consume(int warpgroup) const {
        const int thread = threadIdx.x % 128;
        const int mine = member(warpgroup, thread), step = this->tile_step() * (Z_PINGPONG ? 2 : 1); // to its next tile
        slot at = {0, 0};
        int turn = 0, buffer = 0;
        zc_gq_own own[COLUMNS];
        zc_grid_wait();
        zc_grid_launch();
        const zc_gq_shared shared = zc_gq_share(q);
        zc_gemm_origin place = this->place_of(this->first_tile() + (Z_PINGPONG ? warpgroup * this->tile_step() : 0));
        ask_columns(place, mine, own);
        // A parity cannot tell a phase from the one two before it: the two enter their products in turn.
        if (Z_PINGPONG && warpgroup == 1) zc_named_arrive(4, 256);
        for (int tile = this->first_tile(); tile < tiles; tile += this->tile_step(), turn ^= Z_PINGPONG) {
            if (Z_PINGPONG && turn != warpgroup) {
                at.skip(this->steps + PIPE::EXTRA);
                continue;
            }
            const zc_gemm_origin t = place;
            made_column columns[COLUMNS];
            make_columns(shared, own, columns);
            typename PIPE::sums sum;
            if (Z_PINGPONG) zc_named_sync(4 + warpgroup, 256);
            multiply(at, warpgroup, thread, sum);
            if (Z_PINGPONG) {
                this->await_tile(at);
                zc_named_arrive(4 + (warpgroup ^ 1), 256);
            }
            lay_columns(warpgroup, thread, columns);
            if (tile + step < tiles) {
                place = this->place_of(tile + step);
                ask_columns(place, mine, own);
            }
            view v;
            see(t, shared, warpgroup, thread, v);
            if constexpr (Z_TENSOR_Y)
                send_all(v, warpgroup, thread, sum, at, buffer);
            else
                save(v, thread, sum);
        }
        if (Z_TENSOR_Y && thread == 0) zc_bulk_wait<0>();
    }
};

// What is done with sums takes longer than products: four warpgroups hide each other's waits where a tile has rows for them.
constexpr int ZC_GQ_GROUPS = Z_TILE_M / 64 > 2 ? 4 : 2;
typedef zc_gemm_pipe<Z_TILE_M, Z_TILE_N, Z_STAGES, Z_CLUSTER, 1, Z_PINGPONG, Z_FUSED_TILE >= 0,
                     Z_TENSOR_Y ? 4 / ZC_GQ_GROUPS : 0, false, 1, 1, ZC_GQ_GROUPS>
    zc_gq_pipe;

ZC_KERNEL_OF(0, zc_gq_pipe::THREADS)(const __grid_constant__ zc_gemm_quant_sm90_params p) {
    ZC_SWIZZLED_SMEM(smem);
    const zc_gemm_quant_sm90<zc_gq_pipe> product(p, smem);
    product.begin([&] {
        if (Z_TENSOR_Y) zc_tensor_prefetch(&p.product.y);
    });
    const int warpgroup = zc_warpgroup();
    if (warpgroup == 0) {
        zc_registers_drop<24>();
        ZC_FIRST_WARP(zc_warp() == 0 && zc_elect()) product.produce();
    } else {
        zc_registers_take<ZC_GQ_GROUPS == 4 ? 112 : 240>();
        product.consume(warpgroup - 1);
    }
    product.end();
}
