// What becomes of tiles of sums whose rows are those of A (templates/gemm_quant_sm90.cu): by each row and column, with zero points,
// sums of lines, and columns that lie in shared memory.
//
// Of two pairs of operands (Z_PAIR) the second product's bytes wait in the panel that the results go through, where each thread
// finds its own when it has the other product's.
//
// spec.h: see templates/gemm_quant_sm90.cu.
#pragma once
#include "zc/gemm_quant_sm90.cuh"
#include "zc/gemm_tiles.cuh"

// Lines of a stage, A's rows and then B's columns, whose sums are wanted.
constexpr int ZC_GQ_FIRST = Z_ZERO_B ? 0 : Z_TILE_M, ZC_GQ_END = Z_ZERO_A ? Z_TILE_M + Z_TILE_N : Z_TILE_M;
constexpr int ZC_GQ_LINES = ZC_GQ_END > ZC_GQ_FIRST ? ZC_GQ_END - ZC_GQ_FIRST : 0;

template <class PIPE> struct zc_gq_rows : zc_gemm_tiles<PIPE> {
    using PIPE::p;
    using zc_gemm_tiles<PIPE>::tiles;
    typedef typename PIPE::slot slot;

    // Threads that share a tile, which of them a thread is, and what they do together.
    static constexpr int TEAM = Z_PINGPONG ? 128 : PIPE::GROUPS * 128, EACH = ZC_GQ_LINES ? (ZC_GQ_LINES + TEAM - 1) / TEAM : 1;
    static constexpr int COLUMNS = (Z_TILE_N + TEAM - 1) / TEAM; // of a thread
    static constexpr int ROWS = PIPE::BLOCKS * 2;
    static ZC_MEMBER int member(int warpgroup, int thread) { return Z_PINGPONG ? thread : warpgroup * 128 + thread; }
    static ZC_MEMBER void meet_team(int warpgroup) { zc_named_sync(Z_PINGPONG ? 1 + warpgroup : 6, TEAM); }

    // Of a pair of operands each product has its columns, the second one's behind the first one's.
    static constexpr int PRODUCTS = ZC_GQ_PAIR ? 2 : 1;
    typedef zc_gq_lines<Z_TILE_M, Z_TILE_N> team_lines;
    ZC_MEMBER team_lines lines_of(int warpgroup, int product = 0) const {
        return team_lines(this->memory + PIPE::RING + PIPE::RESULTS + (Z_PINGPONG ? warpgroup : product) * team_lines::BYTES);
    }

    const zc_gemm_quant_params &q;
    const zc_gq_second &second;

    ZC_MEMBER zc_gq_rows(const zc_gemm_quant_sm90_params &p, unsigned char *memory)
        : zc_gemm_tiles<PIPE>(p.product, memory, PIPE::RESULTS + (Z_PINGPONG ? 2 : PRODUCTS) * team_lines::BYTES), q(p.quant),
          second(p.second) {}

    // ---- sums of lines ----

    ZC_MEMBER u32 line_sum(const unsigned char *stage, int line, u32 sum) const {
        const bool is_signed = line < Z_TILE_M ? zc_traits<Z_A>::is_signed : zc_traits<Z_B>::is_signed;
        return zc_gq_add_line(stage, line, sum, is_signed);
    }
    // The sums of a tap's columns.
    ZC_MEMBER void keep_tap(int tap, int first, u32 (&lines)[EACH], u32 *sums) const {
        const int corner = zc_gq_corner(tap);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int line = first + i * TEAM;
            if (line < Z_TILE_M || line >= ZC_GQ_END) continue;
            sums[corner * Z_TILE_N + line] = lines[i];
            lines[i] = 0;
        }
    }
    ZC_MEMBER void multiply(slot &at, int warpgroup, int thread, typename PIPE::sums &sum, int steps) const {
        const int first = ZC_GQ_FIRST + member(warpgroup, thread);
        u32 *const sums = lines_of(warpgroup).rows; // and columns behind them
        u32 lines[EACH] = {};
        int step = 0;
        if (ZC_GQ_EDGES) meet_team(warpgroup); // all have what they need of the tile before
        PIPE::multiply(at, warpgroup, thread, sum, steps, [&](int stage) {
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
        if constexpr (ZC_GQ_LINES > 0) {
            meet_team(warpgroup);
            constexpr int END = ZC_GQ_EDGES ? Z_TILE_M : ZC_GQ_END;
#pragma unroll
            for (int i = 0; i < EACH; i++)
                if (first + i * TEAM < END) sums[first + i * TEAM] = lines[i];
            meet_team(warpgroup);
        }
    }

    // ---- results ----

    // Asked for before the results of the tile in front, made of that before the products, and laid down behind them; not again for
    // the same ones.
    typedef zc_gq_own all_own[PRODUCTS][COLUMNS];
    typedef zc_gq_made all_made[PRODUCTS][COLUMNS];
    static constexpr bool REMAKES = ZC_GQ_LINES > 0; // columns, of every tile

    ZC_MEMBER void ask_columns(const zc_gemm_origin &t, int warpgroup, int thread, all_own &own) const {
        const zc_gq_item item = zc_gq_batch(q, t.item);
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) {
            const i64 at = t.col + zc_dealt(member(warpgroup, thread) + i * TEAM), col = at < q.n ? at : q.n - 1;
            own[0][i] = zc_gq_ask(q, item, col);
#ifdef Z_PAIR
            own[1][i] = zc_gq_ask(second, col);
#endif
        }
    }
    ZC_MEMBER void make_columns(const zc_gq_all_shared &shared, int, const all_own &own, all_made &made) const {
#pragma unroll
        for (int product = 0; product < PRODUCTS; product++)
#pragma unroll
            for (int i = 0; i < COLUMNS; i++) made[product][i] = zc_gq_make(shared[product], own[product][i]);
    }
    struct view;
    ZC_MEMBER void lay_columns(int warpgroup, int thread, const all_made &made, view &) const {
        if (ZC_GQ_LINES == 0) meet_team(warpgroup); // all have what they need of those before
#pragma unroll
        for (int product = 0; product < PRODUCTS; product++)
#pragma unroll
            for (int i = 0; i < COLUMNS; i++) {
                const int at = member(warpgroup, thread) + i * TEAM;
                if (at < Z_TILE_N) lines_of(warpgroup, product).lay(at, made[product][i], (u32)q.k);
            }
        meet_team(warpgroup);
    }

    // A row of a thread's results.
    struct row : zc_gq_row {
        int at;
    };
    // Beyond the last row any will do.
    ZC_MEMBER int known(int row) const { return zc_result_row(p, row, (int)q.m - 1); }
    ZC_MEMBER row row_of(const zc_gq_item &item, const zc_gemm_origin &t, int line, const u32 *sums) const {
        row r = {};
        r.at = t.row + line;
        const int at = known(r.at);
        r.zero = (u32)zc_gq_zero_a(q, item, at);
        r.sum = Z_ZERO_B ? sums[line] : 0u;
        if (ZC_GQ_EDGES) team_lines::put_edges(p.window, at, r);
        return r;
    }
    // A tile as the threads that finish it see it.
    struct view {
        zc_gq_item item;
        zc_gemm_origin t;
        zc_gq_columns columns;
        const zc_gq_zeros *zeros;
        const u32 *sums; // of columns
        zc_gq_shared shared;
        zc_gq_with with;
        row rows[ROWS];
    };
    ZC_MEMBER void see(const zc_gemm_origin &t, int warpgroup, int thread, view &v, int product = 0) const {
        const team_lines laid = lines_of(warpgroup, product);
        const int top = (Z_PINGPONG ? 0 : warpgroup * PIPE::BLOCKS * 64) + thread / 32 * 16 + thread % 32 / 4;
        v.item = zc_gq_batch(q, t.item);
        v.t = t;
        v.columns = laid.columns;
        v.zeros = laid.zeros;
        v.sums = laid.sums;
#pragma unroll
        for (int i = 0; i < ROWS; i++) v.rows[i] = row_of(v.item, t, top + i / 2 * 64 + i % 2 * 8, laid.rows);
    }
    // Before bytes are saturated. at: the place in the tile's products.
    ZC_MEMBER i32 result(const view &v, const row &r, int at, const zc_gq_column &c, i32 sum) const {
        const zc_gq_zeros zeros = Z_ZERO_A || Z_ZERO_B ? v.zeros[at] : zc_gq_zeros();
        const i32 all = team_lines::less_zeros(sum, r, zeros, (u32)p.g.k, v.sums + at);
#if defined(Z_Y_SCALE) && !Z_WHOLES
        if (Z_ROW_SCALES) return zc_gq_number_of(all, {zc_gq_scale(q, v.item, r.at, v.t.col + zc_dealt(at)), c.more}, v.shared);
#endif
        return zc_gq_number_of(all, c, v.shared);
    }
    // Of two neighbours, with the fused work on them, whose operands are any beyond the last row or column; tile: where these are
    // bytes that came as a tile, from the `first`th on.
    ZC_MEMBER auto results(const view &v, const row &r, int at, const zc_gq_column (&c)[2], const i32 *sum, u32 tile, int first) const {
        const i32 y[2] = {result(v, r, at, c[0], sum[0]), result(v, r, at + 1, c[1], sum[1])};
        return zc_gq_finished(y, tile, first, v.with, [&](i32(&all)[2]) {
            constexpr int NEAR = Z_PAIRS ? 2 : 1; // rows of an odd length do not all begin at pairs
            const int last = (int)q.n - NEAR;
#pragma unroll
            for (int e = 0; e < 2; e += NEAR) {
                const int col = v.t.col + zc_dealt(at) + e;
                zc_fused_near<NEAR>(p.g.fused, all + e, known(r.at), col < last ? col : last, q.n, (u16)(tile >> first * 8));
            }
        });
    }
    // By the threads, two neighbours at once where rows have whole pairs.
    ZC_MEMBER void save(const view &v, int thread, const typename PIPE::sums &sum) const {
#pragma unroll
        for (int j = 0; j < Z_TILE_N / 8; j++) {
            const int at = j * 8 + thread % 4 * 2;
            const i64 col = v.t.col + at;
            zc_gq_column c[2];
            v.columns.get(at, c);
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                if (v.rows[i].at >= q.m || col >= q.n) continue;
                Z_STORED *const to = (Z_STORED *)q.y + v.item.y + (i64)v.rows[i].at * q.n + col;
                const zc_gq_two two = zc_gq_two_of<Z_STORED, ZC_GQ_UPPER>(
                    results(v, v.rows[i], at, c, sum[i / 2] + j * 4 + i % 2 * 2, 0, 0));
                if constexpr (Z_PAIRS) {
                    *(zc_gq_two *)to = two;
                } else {
                    to[0] = two.v[0];
                    if (col + 1 < q.n) to[1] = two.v[1];
                }
            }
        }
    }
    // Bytes by the copy engine, panels of 64 rows and 128 columns, or the 64 that a tile has; what it has not of its last one lies
    // beyond the result.
    static constexpr int ACROSS = Z_TILE_N == 64 ? 64 : 128, PANELS = (Z_TILE_N + ACROSS - 1) / ACROSS;
    // Where the copy engine looks for a panel's byte, in 128 bytes of one line or two.
    template <int WIDTH> static ZC_MEMBER int place_in_panel(int line, int column) {
        return line * WIDTH + (column / 16 ^ line * WIDTH / 128 % (WIDTH / 16)) * 16 + column % 16;
    }
    // at: the fused operand's first stage; the second pair's bytes lie where the results go.
    ZC_MEMBER void finish(const view &v, int warpgroup, int thread, const typename PIPE::sums &sum, slot &at, int &buffer) const {
        if constexpr (!Z_TENSOR_Y) return save(v, thread, sum);
        const int first = Z_PINGPONG ? 0 : warpgroup * PIPE::BLOCKS;
#pragma unroll
        for (int panel = 0; panel < PANELS; panel++) {
            const int in = panel % PIPE::HELD;
            if (PIPE::EXTRA && !Z_PINGPONG && in == 0) zc_barrier_wait(this->full(at.stage), at.parity);
#pragma unroll
            for (int i = 0; i < PIPE::BLOCKS; i++) {
                const unsigned char *const tile = this->tile_panel(at.stage, first + i, in);
                this->send(&p.y, {v.t.row + (first + i) * 64, v.t.col + panel * ACROSS, v.t.item}, warpgroup, thread, buffer,
                           [&](u32 to) {
                               lay_panel<ZC_GQ_UPPER>(
                                   v, panel, i, thread, sum[i], ZC_GQ_PAIR ? this->memory + (to - this->smem) : tile, to,
                                   [&](const row &r, int at, const zc_gq_column(&c)[2], const i32 *sum, u32 other, int first) {
                                       return results(v, r, at, c, sum, other, first);
                                   });
                           });
            }
            if (PIPE::EXTRA && (in + 1 == PIPE::HELD || panel + 1 == PANELS)) { // all have read it
                this->release(at.stage, thread);
                at.next();
            }
        }
    }
    // Of 64 places at once a thread's columns, 16 side by side of each of its two lines. tile: the other operand's panel;
    // finish(row, place in the tile, columns, sums, four of the other operand's bytes, the first of a pair's): as of zc_gq_saturated.
    template <bool UPPER, class F>
    ZC_MEMBER void lay_panel(const view &v, int panel, int block, int thread, const zc_product_sum (&sum)[Z_TILE_N / 2],
                             const unsigned char *tile, u32 to, F finish) const {
        typedef zc_vec<u32, 4> piece;
        constexpr int OTHER = PIPE::EXTRA ? PIPE::LINE : ACROSS; // the other operand's panel has as wide lines
        const int line = thread / 32 * 16 + thread % 32 / 4;
        unsigned char *const laid = this->memory + (to - this->smem);
#pragma unroll
        for (int begin = 0; begin < ACROSS && panel * ACROSS + begin < Z_TILE_N; begin += 64) {
            const int place = begin + thread % 4 * 2, column = zc_dealt(place);
            piece other[2] = {}, out[2];
#pragma unroll
            for (int i = 0; i < 2; i++) // lines whose pieces have the same order
                if (PIPE::EXTRA || ZC_GQ_PAIR) other[i] = *(const piece *)(tile + place_in_panel<OTHER>(line, column) + i * 8 * OTHER);
#pragma unroll
            for (int word = 0; word < 4; word++) {
                const int at = panel * ACROSS + place + word * 16;
                zc_gq_column c[2][2];
                v.columns.get(at, c[0]);
                v.columns.get(at + 8, c[1]);
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const zc_product_sum *const own = sum + (panel * ACROSS + begin) / 2 + word * 8 + i * 2;
                    const row &r = v.rows[block * 2 + i];
                    const auto two = finish(r, at, c[0], own, other[i].v[word], 0);
                    out[i].v[word] = zc_gq_word<UPPER>(two, finish(r, at + 8, c[1], own + 4, other[i].v[word], 2));
                }
            }
#pragma unroll
            for (int i = 0; i < 2; i++) *(piece *)(laid + place_in_panel<ACROSS>(line, column) + i * 8 * ACROSS) = out[i];
        }
    }
    // What becomes of the second product of a pair: bytes in the panel that the results will go through.
#ifdef Z_PAIR
    static_assert(ZC_GQ_LINES == 0 && Z_TENSOR_Y && !Z_PINGPONG && PIPE::BLOCKS == 1 && PANELS == 1, "one panel, no zero points");

    ZC_MEMBER void keep_second(const zc_gemm_origin &t, const zc_gq_shared &shared, int warpgroup, int thread, int buffer,
                               const typename PIPE::sums &sum, view &) const {
        view v;
        v.shared = shared;
        see(t, warpgroup, thread, v, 1);
        const u32 panel = this->take_panel(warpgroup, thread, buffer);
        lay_panel<(Z_WHOLES > 0)>(v, 0, 0, thread, sum[0], this->memory + (panel - this->smem), panel,
                            [&](const row &r, int at, const zc_gq_column(&c)[2], const i32 *sum, u32, int) {
                                const i32 y[2] = {result(v, r, at, c[0], sum[0]), result(v, r, at + 1, c[1], sum[1])};
                                return zc_gq_saturated<zc_gq_other>(y);
                            });
    }
#endif
};
