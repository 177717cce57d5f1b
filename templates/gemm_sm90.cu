// Matrix products of f16, bf16, tf32 or e4m3 on Hopper: persistent blocks with the pipeline of zc/gemm_sm90.cuh. LinearMoments' skip, or
// an operand of the fused work that has the result's shape, comes by the copy engine; results leave by it, codes of 8 bits by panels
// of 128 columns, or where they are f32 or their rows do not all begin at multiples of 16 bytes, by stores of the threads. Of GatedLinear's two products a thread has
// the sums of the same places.
//
// spec.h: see zc/gemm.cuh, zc/gemm_tiles.cuh and zc/fused.cuh; Z_WHOLE (have all tiles columns for all of their width?); Z_GATED: GatedLinear; zc/row_moments.cuh; Z_PIECE: threads store results, whose rows are
// so many bytes or a multiple, 16 at most (and have no moments). Entry 1: see zc/gemm_second.cuh.
#include "zc/gelu_codes.cuh"
#include "zc/gemm.cuh"
#include "zc/gemm_tiles.cuh"
#include "zc/row_moments.cuh"
#ifdef Z_RIM
#include "zc/conv_rim.cuh"
#endif

#ifdef Z_NORM
constexpr bool ZC_GEMM_PART = true;
#else
constexpr bool ZC_GEMM_PART = false;
#endif
#ifdef Z_PIECE
constexpr int ZC_GEMM_PIECE = Z_PIECE;
#else
constexpr int ZC_GEMM_PIECE = 0; // the copy engine stores
#endif
#ifdef Z_MOMENTS
constexpr bool ZC_GEMM_SKIP = Z_SKIP, ZC_GEMM_KEEP = Z_KEEP;
#else
constexpr bool ZC_GEMM_SKIP = false, ZC_GEMM_KEEP = false;
#endif
#ifdef Z_COLUMN_SCALES
constexpr bool ZC_GEMM_SCALED = true;
#else
constexpr bool ZC_GEMM_SCALED = false;
#endif
#ifdef Z_GATED
constexpr int ZC_GEMM_MATRICES = 2; // the second product multiplies the first one's activation
#else
constexpr int ZC_GEMM_MATRICES = 1;
#endif
constexpr bool ZC_GEMM_TENSOR_Y = !ZC_GEMM_PART && !ZC_GEMM_PIECE, ZC_GEMM_CODES = ZC_GEMM_TENSOR_Y && sizeof(Z_Y) == 1;
// Threads store rows that begin within pieces of 16 bytes.
constexpr bool ZC_GEMM_RAGGED = !ZC_GEMM_PART && ZC_GEMM_PIECE && ZC_GEMM_PIECE < 16;
constexpr int ZC_GEMM_STAGING = ZC_GEMM_TENSOR_Y ? 2 : 0;
// Neighbours whose operands are read at once: rows of an odd length do not all begin at multiples of two elements.
constexpr int ZC_GEMM_NEAR = ZC_GEMM_PIECE == sizeof(Z_Y) ? 1 : 2;
typedef zc_compute<Z_Y> zc_gemm_one; // a result before it is stored: bytes are integers already
typedef decltype(zc_pack(Z_Y(), zc_gemm_one(), zc_gemm_one())) zc_gemm_two; // neighbours of a row, as elements of the result
typedef decltype(zc_pack(Z_T(), 0.0f, 0.0f)) zc_gemm_kept; // the same of what moments are of
static_assert(!(ZC_GEMM_SKIP || ZC_GEMM_KEEP) || ZC_GEMM_TENSOR_Y, "whole panels");
static_assert(ZC_GEMM_MATRICES == 1 || (ZC_GEMM_TENSOR_Y && !ZC_GEMM_SKIP && !ZC_GEMM_KEEP && !ZC_GEMM_SCALED), "whole panels, of products alone");
static_assert(!ZC_GEMM_SKIP || Z_FUSED_TILE < 0, "one operand comes by the copy engine");

template <class PIPE> struct zc_gemm_sm90 : zc_gemm_tiles<PIPE> {
    using PIPE::p;
    using zc_gemm_tiles<PIPE>::tiles;
    typedef typename PIPE::slot slot;

    // Where threads store: elements of 16 bytes, and of a panel's row as it is laid down.
    static constexpr int PER = 16 / sizeof(Z_Y), ROW = 64 + PER;
    static constexpr int LAID = ZC_GEMM_TENSOR_Y || ZC_GEMM_PART ? 0 : PIPE::GROUPS * 64 * ROW * (int)sizeof(Z_Y);
    static constexpr int RESULTS = PIPE::RESULTS + LAID;
    typedef zc_vec<Z_Y, PER> piece;

    // Threads that share a tile, and its columns' scales and biases in shared memory.
    static constexpr int TEAM = Z_PINGPONG ? 128 : PIPE::GROUPS * 128;
    static constexpr int COLUMNS = ZC_GEMM_SCALED ? (Z_PINGPONG ? 2 : 1) * 2 * Z_TILE_N * (int)sizeof(f32) : 0;

    ZC_MEMBER zc_gemm_sm90(const zc_gemm_sm90_params &p, unsigned char *memory)
        : zc_gemm_tiles<PIPE>(p, memory, RESULTS + COLUMNS) {}

    // Of one column, asked for before the products, and laid down behind them where the item then has them.
    struct column_terms {
        f32 scale, bias;
    };
    ZC_MEMBER void ask_terms(const zc_gemm_item &item, const zc_gemm_origin &t, int warpgroup, int thread,
                             column_terms &terms) const {
        static_assert(!ZC_GEMM_SCALED || Z_TILE_N <= TEAM, "a thread has one");
        const int at = t.col + (Z_PINGPONG ? thread : warpgroup * 128 + thread), last = (int)p.g.n - 1;
        terms.scale = item.scale[at < last ? at : last];
        terms.bias = Z_ADDEND ? zc_get(item.c[at < last ? at : last]) : 0.0f;
    }
    ZC_MEMBER void lay_terms(const zc_gemm_origin &t, int warpgroup, int thread, const column_terms &terms,
                             zc_gemm_item &item) const {
        f32 *const laid = (f32 *)(this->memory + PIPE::RING + RESULTS) + (Z_PINGPONG ? warpgroup * 2 * Z_TILE_N : 0);
        const int barrier = Z_PINGPONG ? 1 + warpgroup : 5, at = Z_PINGPONG ? thread : warpgroup * 128 + thread;
        zc_named_sync(barrier, TEAM); // all have read those of the tile before
        if (at < Z_TILE_N) {
            laid[at] = terms.scale;
            laid[Z_TILE_N + at] = terms.bias;
        }
        zc_named_sync(barrier, TEAM);
        item.scale = laid - t.col;
        item.c = (const Z_C *)(laid + Z_TILE_N - t.col);
    }

    // A thread's two rows of each block of 64, which four threads share.
    typedef zc_moments_cells<ZC_GEMM_NEAR, 4> row_moments;
    typedef row_moments block_moments[2];

    ZC_MEMBER void ask(const zc_gemm_origin &t, int warpgroup, int thread, block_moments (&moments)[PIPE::BLOCKS]) const {
        const int first = Z_PINGPONG ? 0 : warpgroup * PIPE::BLOCKS, last = (int)p.g.m - 1;
#pragma unroll
        for (int i = 0; i < PIPE::BLOCKS * 2; i++) {
            const int row = t.row + (first + i / 2) * 64 + thread / 32 * 16 + thread % 32 / 4 + i % 2 * 8;
            moments[i / 2][i % 2].load_rows(p.moments, row < last ? row : last);
        }
    }
    ZC_MEMBER void join(block_moments (&moments)[PIPE::BLOCKS]) const {
#pragma unroll
        for (int i = 0; i < PIPE::BLOCKS * 2; i++) moments[i / 2][i % 2].join(p.moments);
    }
    // What the rows of a tile share, of this thread's pairs of columns, one in each group of 8.
    typedef zc_gemm_addend<ZC_GEMM_NEAR> pair_addends[2 / ZC_GEMM_NEAR];
    typedef pair_addends addends[Z_TILE_N / 8];

    // The first of the neighbours that element e of a group's pair is read with; beyond the last column any will do.
    ZC_MEMBER int column_of(int first, int group, int e) const {
        const int at = first + group * 8 + e, right = (int)p.g.n - ZC_GEMM_NEAR;
        return Z_WHOLE || at < right ? at : right;
    }
    // Groups of a tile's results; those of a second matrix stand behind them.
    static constexpr int RESULT_GROUPS = PIPE::RESULT_N / 8;
    // Of groups [group, group + count) of the tile whose first column is col.
    ZC_MEMBER void ask_addends(const zc_gemm_item &item, int col, int group, int count, int thread, addends &out) const {
        const int first = col + thread % 4 * 2;
        zc_gemm_item of = item;
#pragma unroll
        for (int matrix = 0; matrix < ZC_GEMM_MATRICES; matrix++, of.c = (const Z_C *)p.second_c)
#pragma unroll
            for (int j = group; j < group + count; j++)
#pragma unroll
                for (int e = 0; e < 2; e += ZC_GEMM_NEAR)
                    out[matrix * RESULT_GROUPS + j][e / ZC_GEMM_NEAR].load(of, column_of(first, j, e));
    }
    // v: of neighbours, before the fused work. A second matrix's addends and sums stand behind the first's.
    ZC_MEMBER void finish_near(const zc_gemm_item &item, int row, int col, const row_moments &moments,
                               const zc_gemm_addend<ZC_GEMM_NEAR> *addend, const zc_product_sum *sum, u32 tile, f32 *v) const {
        constexpr int N = ZC_GEMM_NEAR;
        zc_moments_columns_of<N> columns;
        columns.load(p.moments, col);
        f32 s[N];
#pragma unroll
        for (int e = 0; e < N; e++) s[e] = moments.product(columns, e, (f32)sum[e]);
        zc_gemm_near<N>(p.g, item, *addend, row, col, s, v);
        if constexpr (ZC_GEMM_MATRICES > 1) {
            const zc_product_sum *const gate = sum + PIPE::RESULT_N / 2;
#pragma unroll
            for (int e = 0; e < N; e++) v[e] *= addend[RESULT_GROUPS * 2 / N].value(p.g, item, row, col, e, (f32)gate[e]);
        }
        if constexpr (ZC_GEMM_SKIP) {
            const zc_vec<Z_T, 2> skip = zc_unpack<Z_T>(tile);
#pragma unroll
            for (int e = 0; e < N; e++) v[e] = moments.plus(columns, e, v[e], zc_get(skip.v[e]));
        }
    }
    // col: of the first of each of them that are read at once; whole: what the result's moments are of.
    ZC_MEMBER zc_gemm_two finish(const zc_gemm_item &item, int at, int row, const int *col, const row_moments &moments,
                                 const pair_addends &addend, const zc_product_sum *sum, u32 tile, zc_gemm_kept &whole) const {
        f32 v[2];
#pragma unroll
        for (int e = 0; e < 2; e += ZC_GEMM_NEAR)
            finish_near(item, row, col[e], moments, addend + e / ZC_GEMM_NEAR, sum + e, tile, v + e);
        if constexpr (ZC_GEMM_KEEP) whole = zc_pack(Z_T(), v[0], v[1]);
#ifdef Z_FUSED_PAIR
        return Z_FUSED_PAIR(v[0], v[1]);
#else
        zc_gemm_one y[2];
#pragma unroll
        for (int e = 0; e < 2; e += ZC_GEMM_NEAR)
            zc_fused_near_to<ZC_GEMM_NEAR>(p.g.fused, v + e, y + e, at * p.g.m + row, col[e], (int)p.g.n, tile);
        return zc_pack(Z_Y(), y[0], y[1]);
#endif
    }
    // Of a row's part, of which this thread and its three neighbours have pairs in each group of 8 columns.
    ZC_MEMBER void keep(int row, int col, const zc_gemm_kept (&whole)[8]) const {
        const int left = (int)p.g.n - col, groups = row < p.g.m && left > 0 ? (left < 64 ? left / 8 : 8) : 0;
        f32 v[16];
#pragma unroll
        for (int e = 0; e < 16; e++) v[e] = zc_get(zc_unpack<Z_T>(whole[e / 2]).v[e % 2]);
        zc_save_moments<16, 4>(p.moments, row, col, groups * 2, v);
    }
    // A thread's COUNT pairs of 64 rows as results, from column `first` of the tile on: by groups of 8 columns, two rows a
    // thread; tile: the operand's. No branch stands between them, so that the compiler asks for all operands first; beyond the
    // last row or column any will do.
    template <int COUNT>
    ZC_MEMBER void finish_pairs(const zc_gemm_item &item, const zc_gemm_origin &t, int row, int first, int thread,
                                const block_moments &moments, const addends &addend, const zc_product_sum *sum, const u32 *tile,
                                zc_gemm_two (&out)[COUNT]) const {
        zc_gemm_kept whole[2][COUNT / 2];
        const int last = (int)p.g.m - 1;
        const int top = row + thread / 32 * 16 + thread % 32 / 4, col = t.col + first + thread % 4 * 2;
        const int r0 = zc_result_row(p, top, last), r1 = zc_result_row(p, top + 8, last);
#pragma unroll
        for (int j = 0; j < COUNT / 2; j++) {
            int c[2];
#pragma unroll
            for (int e = 0; e < 2; e += ZC_GEMM_NEAR) c[e] = column_of(col, j, e);
            const zc_product_sum *const s = sum + (first + j * 8) / 2;
            const pair_addends &a = addend[first / 8 + j];
            out[j * 2] = finish(item, t.item, r0, c, moments[0], a, s, tile[j * 2], whole[0][j]);
            out[j * 2 + 1] = finish(item, t.item, r1, c, moments[1], a, s + 2, tile[j * 2 + 1], whole[1][j]);
        }
        if constexpr (ZC_GEMM_KEEP) {
#pragma unroll
            for (int r = 0; r < 2; r++) keep(top + r * 8, t.col + first, whole[r]);
        }
    }
    // A panel's results by two groups of columns at once, for want of registers; stage, in: where the operand's panel lies.
    ZC_MEMBER void send_pieces(const zc_gemm_item &item, const zc_gemm_origin &t, int row, int panel, int block, int stage, int in,
                               int warpgroup, int thread, const block_moments &moments, const addends &addend, const zc_product_sum *sum,
                               int &buffer) const {
        const int first = PIPE::panel_begin(panel);
        this->send(&p.y, {row, t.col + first, t.item}, warpgroup, thread, buffer, [&](u32 to) {
#pragma unroll
            for (int j = 0; j < 8; j += 2) {
                u32 tile[4] = {};
                zc_gemm_two out[4];
                if (PIPE::EXTRA) this->read_piece(stage, block, in, thread, j, tile);
                finish_pairs(item, t, row, first + j * 8, thread, moments, addend, sum, tile, out);
                this->write_piece(to, thread, j, out);
            }
        });
    }
    // Codes by panels of 64 rows.
    static constexpr int CODE_COLUMNS = 128; // of a panel
    ZC_MEMBER void send_codes(const zc_gemm_item &item, const zc_gemm_origin &t, int warpgroup, int thread,
                              const block_moments (&moments)[PIPE::BLOCKS], addends &addend, const typename PIPE::sums &sum,
                              int &buffer) const {
        static_assert(!PIPE::EXTRA && Z_TILE_N % CODE_COLUMNS == 0, "whole panels, and no operand by the copy engine");
        const int top = t.row + (Z_PINGPONG ? 0 : warpgroup * PIPE::BLOCKS * 64);
#pragma unroll
        for (int first = 0; first < Z_TILE_N; first += CODE_COLUMNS) {
            if (LATE) ask_addends(item, t.col, first / 8, CODE_COLUMNS / 8, thread, addend);
#pragma unroll
            for (int i = 0; i < PIPE::BLOCKS; i++)
                this->send(&p.y, {top + i * 64, t.col + first, t.item}, warpgroup, thread, buffer, [&](u32 to) {
                    lay_codes(item, t, top + i * 64, first, thread, moments[i], addend, sum[i], this->memory + (to - this->smem));
                });
        }
    }
    ZC_MEMBER void lay_codes(const zc_gemm_item &item, const zc_gemm_origin &t, int row, int first, int thread,
                             const block_moments &moments, const addends &addend, const zc_product_sum *sum,
                             unsigned char *panel) const {
        const int line = thread / 32 * 16 + thread % 32 / 4;
        const u32 tile[4] = {};
#pragma unroll
        for (int group = 0; group < CODE_COLUMNS / 8; group += 2) {
            zc_gemm_two out[4];
            finish_pairs(item, t, row, first + group * 8, thread, moments, addend, sum, tile, out);
#pragma unroll
            for (int j = 0; j < 4; j++) { // two rows, eight apart, whose pieces have the same order
                const int at = (j / 2) * 8 + thread % 4 * 2;
                *(zc_gemm_two *)(panel + (line + j % 2 * 8) * PIPE::LINE + (group / 2 ^ line % 8) * 16 + at) = out[j];
            }
        }
    }
    // Each warp lays its 16 rows of a panel down in shared memory, some columns at once for the sake of registers, and stores
    // them by pieces of 16 bytes: a row lies as far behind a piece's begin as it does in memory. What it has of a last piece
    // waits for the tile's next panel, so that only what a tile ends with is stored by elements.
    static constexpr int AT_ONCE = 4; // pairs

    // In this order the two rows of a thread, which begin alike, are neighbours.
    static ZC_MEMBER int row_of(int line) { return line / 2 + line % 2 * 8; }
    // Elements between the piece that a row begins in and its first.
    static ZC_MEMBER int phase_of(const Z_Y *row) {
        return ZC_GEMM_RAGGED ? (int)((u32)(u64)row / sizeof(Z_Y) % PER) : 0;
    }
    // to: a thread's first column of its first row.
    static ZC_MEMBER void lay_down(Z_Y *to, const zc_gemm_two (&out)[AT_ONCE]) {
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            Z_Y *const pair = to + i % 2 * ROW + i / 2 * 8;
            if constexpr (ZC_GEMM_NEAR == 2) {
                *(zc_gemm_two *)pair = out[i];
            } else {
                const zc_vec<Z_Y, 2> two = zc_unpack<Z_Y>(out[i]);
                pair[0] = two.v[0];
                pair[1] = two.v[1];
            }
        }
    }
    // The whole pieces of a panel's `rows` rows of `cols` columns; first: the tile's first panel, whose first piece never counts
    // as whole.
    ZC_MEMBER void store_pieces(const Z_Y *laid, Z_Y *y, int lane, int rows, int cols, bool first) const {
        constexpr int ACROSS = 64 / PER, DOWN = 32 / ACROSS;
        const int line = lane / ACROSS, at = lane % ACROSS * PER;
        const bool some = !ZC_GEMM_RAGGED || !first || at;
        Z_Y *to = y + row_of(line) * p.g.y_ld;
#pragma unroll
        for (int i = 0; i < 16; i += DOWN, to += DOWN / 2 * p.g.y_ld) {
            const piece v = *(const piece *)(laid + (i + line) * ROW + at);
            const int phase = phase_of(to);
            if (row_of(i + line) < rows && at + PER <= phase + cols && some) *zc_aligned<piece>(to - phase + at) = v;
        }
    }
    // The rest; last: no panel goes on with these rows.
    ZC_MEMBER void store_ends(const Z_Y *laid, Z_Y *y, int lane, int rows, int cols, bool first, bool last) const {
#pragma unroll
        for (int i = lane; i < 16 * PER; i += 32) {
            const int line = i / PER, row = row_of(line), head = i % PER;
            Z_Y *const to = y + row * p.g.y_ld;
            const int phase = phase_of(to), end = phase + cols, tail = end / PER * PER + head;
            if (row >= rows) continue;
            if (first && head >= phase && head < end) to[head - phase] = laid[line * ROW + head];
            if (last && tail < end && (!first || tail >= PER)) to[tail - phase] = laid[line * ROW + tail];
        }
    }
    ZC_MEMBER void save(const zc_gemm_item &item, const zc_gemm_origin &t, int row, int panel, int warpgroup, int thread,
                        const block_moments &moments, const addends &addend, const zc_product_sum *sum, const u32 (&tile)[16]) const {
        const int lane = thread % 32, warp = thread / 32, top = row + warp * 16, column = PIPE::panel_begin(panel);
        const int rows = (int)p.g.m - top, left = (int)p.g.n - t.col - column, cols = left < 64 ? left : 64;
        if (cols <= 0) return;
        Z_Y *const y = item.y + top * p.g.y_ld + t.col + column;
        Z_Y *const laid = (Z_Y *)(this->memory + PIPE::RING + PIPE::RESULTS) + (warpgroup * 64 + warp * 16) * ROW;
        Z_Y *const own = laid + lane / 4 * 2 * ROW + phase_of(y + lane / 4 * p.g.y_ld) + lane % 4 * 2;
        zc_sync_warp();
        if (ZC_GEMM_RAGGED && panel && lane < 16)
            *(piece *)(laid + lane * ROW) = *(const piece *)(laid + lane * ROW + 64);
#pragma unroll
        for (int first = 0; first < 16; first += AT_ONCE) {
            zc_gemm_two out[AT_ONCE];
            zc_sync_warp();
            finish_pairs(item, t, row, column + first * 4, thread, moments, addend, sum, tile + first, out);
            lay_down(own + first * 4, out);
        }
        zc_sync_warp();
        const bool begins = panel == 0, ends = panel + 1 == PIPE::PANELS || left <= 64;
        store_pieces(laid, y, lane, rows, cols, begins);
        if (ZC_GEMM_RAGGED && (begins || ends)) store_ends(laid, y, lane, rows, cols, begins, ends);
    }
    // at: the operand's first stage.
    ZC_MEMBER void store(const zc_gemm_item &item, const zc_gemm_origin &t, int warpgroup, int thread,
                         const block_moments (&moments)[PIPE::BLOCKS], addends &addend, const typename PIPE::sums &sum,
                         slot &at, int &buffer) const {
        const int first = Z_PINGPONG ? 0 : warpgroup * PIPE::BLOCKS;
#pragma unroll
        for (int panel = 0; panel < PIPE::PANELS; panel++) {
            const int in = panel % PIPE::HELD, column = PIPE::panel_begin(panel);
            if (LATE) ask_addends(item, t.col, column / 8, 8, thread, addend);
            if (PIPE::EXTRA && !Z_PINGPONG && in == 0) zc_barrier_wait(this->full(at.stage), at.parity);
#pragma unroll
            for (int i = 0; i < PIPE::BLOCKS; i++) {
                const int row = t.row + (first + i) * 64;
                if constexpr (LATE && ZC_GEMM_TENSOR_Y) {
                    send_pieces(item, t, row, panel, first + i, at.stage, in, warpgroup, thread, moments[i], addend, sum[i], buffer);
                    continue;
                }
                u32 tile[16] = {};
                if (PIPE::EXTRA) this->read_tile(at.stage, first + i, in, thread, tile);
                if constexpr (ZC_GEMM_TENSOR_Y) {
                    zc_gemm_two out[16];
                    finish_pairs(item, t, row, column, thread, moments[i], addend, sum[i], tile, out);
                    this->send_panel(&p.y, {row, t.col + column, t.item}, warpgroup, thread, out, buffer);
                } else {
                    save(item, t, row, panel, warpgroup, thread, moments[i], addend, sum[i], tile);
                }
            }
            if (PIPE::EXTRA && (in + 1 == PIPE::HELD || panel + 1 == PIPE::PANELS)) {
                if (!ZC_GEMM_TENSOR_Y) zc_named_sync(1 + warpgroup, 128); // all have read; send_panel() has seen to it
                this->release(at.stage, thread);
                at.next();
            }
        }
    }
    // The same of rows whose panels share pieces, and so come one after the other.
    ZC_MEMBER void store_ragged(const zc_gemm_item &item, const zc_gemm_origin &t, int warpgroup, int thread,
                                const block_moments (&moments)[PIPE::BLOCKS], addends &addend,
                                const typename PIPE::sums &sum) const {
        static_assert(!PIPE::EXTRA, "no operand comes by the copy engine");
        static_assert(PIPE::PANELS * 64 == Z_TILE_N, "panels do not overlap");
        const u32 tile[16] = {};
        const int row = t.row + (Z_PINGPONG ? 0 : warpgroup * PIPE::BLOCKS * 64);
#pragma unroll
        for (int i = 0; i < PIPE::BLOCKS; i++)
#pragma unroll
            for (int panel = 0; panel < PIPE::PANELS; panel++) {
                if (LATE) ask_addends(item, t.col, PIPE::panel_begin(panel) / 8, 8, thread, addend);
                save(item, t, row + i * 64, panel, warpgroup, thread, moments[i], addend, sum[i], tile);
            }
    }
    // Sums as they are, for the kernel that normalises rows.
    ZC_MEMBER void store_sums(const zc_gemm_origin &t, int warpgroup, int thread, const typename PIPE::sums &sum) const {
        const int row = t.row + (Z_PINGPONG ? 0 : warpgroup * PIPE::BLOCKS * 64) + thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
        for (int i = 0; i < PIPE::BLOCKS; i++)
#pragma unroll
            for (int j = 0; j < Z_TILE_N / 2; j += 2) {
                const i64 r = row + i * 64 + j / 2 % 2 * 8, c = t.col + j / 4 * 8 + thread % 4 * 2;
                if (r < p.g.m && c < p.g.n)
                    *(zc_vec<f32, 2> *)((f32 *)p.g.partial + r * p.g.n + c) = {(f32)sum[i][j], (f32)sum[i][j + 1]};
            }
    }
    // What was asked for arrives under the products where there are registers for it; in turn it does so before them anyhow.
    static constexpr bool JOINED_LATE = !Z_PINGPONG && PIPE::BLOCKS == 1;
    // Sums leave few registers: what results need is asked for behind them, under the other warpgroup's products.
    static constexpr bool LATE = ZC_GEMM_SCALED || (Z_PINGPONG && PIPE::BLOCKS * Z_TILE_N > 256);
    static_assert(!ZC_GEMM_KEEP || (!LATE && Z_TILE_N % 64 == 0), "moments are of whole panels");
    ZC_MEMBER void consume(int warpgroup) const {
        const int thread = threadIdx.x % 128;
        slot at = {};
        int turn = 0, buffer = 0;
        zc_grid_wait();
        zc_grid_launch();
        // A parity cannot tell a phase from the one two before it: the two enter their products in turn.
        if (Z_PINGPONG && warpgroup == 1) zc_named_arrive(3, 256);
        for (int tile = this->first_tile(); tile < tiles; tile += this->tile_step(), turn ^= Z_PINGPONG) {
            if (Z_PINGPONG && turn != warpgroup) {
                this->pass(at);
                continue;
            }
            const zc_gemm_origin t = this->place_of(tile);
            typename PIPE::sums sum;
            block_moments moments[PIPE::BLOCKS];
            addends addend;
            zc_gemm_item item = zc_gemm_item_at(p.g, t.item);
            column_terms terms;
            if constexpr (ZC_GEMM_SCALED) ask_terms(item, t, warpgroup, thread, terms);
            ask(t, warpgroup, thread, moments);
            if (!LATE && !PIPE::SENT) ask_addends(item, t.col, 0, RESULT_GROUPS, thread, addend);
            if (!JOINED_LATE) join(moments);
            if (Z_PINGPONG) zc_named_sync(3 + warpgroup, 256);
            this->multiply(at, warpgroup, thread, sum);
            if constexpr (PIPE::SENT > 0) { // operands arrive under the exchange of sums
                ask_addends(item, t.col, 0, RESULT_GROUPS, thread, addend);
                if (!this->join_parts(at, warpgroup, thread, sum)) break;
            }
            if (JOINED_LATE) join(moments);
            if (Z_PINGPONG) {
                this->await_tile(at);
                zc_named_arrive(3 + (warpgroup ^ 1), 256);
            }
            if constexpr (ZC_GEMM_SCALED) lay_terms(t, warpgroup, thread, terms, item);
            if constexpr (ZC_GEMM_PART)
                store_sums(t, warpgroup, thread, sum);
            else if constexpr (ZC_GEMM_CODES)
                send_codes(item, t, warpgroup, thread, moments, addend, sum, buffer);
            else if constexpr (ZC_GEMM_RAGGED)
                store_ragged(item, t, warpgroup, thread, moments, addend, sum);
            else
                store(item, t, warpgroup, thread, moments, addend, sum, at, buffer);
        }
        if (ZC_GEMM_TENSOR_Y && thread == 0) zc_bulk_wait<0>();
    }
};

#ifdef Z_RIM
typedef zc_rim_pipe<Z_TILE_M, Z_TILE_N, Z_STAGES, Z_TAP_STAGES, Z_PINGPONG, Z_FUSED_TILE >= 0 ? 2 : 0, ZC_GEMM_STAGING, 2>
    zc_product_pipe;
#else
typedef zc_gemm_pipe<Z_TILE_M, Z_TILE_N, Z_STAGES, Z_CLUSTER, 1, Z_PINGPONG,
                     ZC_GEMM_SKIP || Z_FUSED_TILE >= 0 ? 2 : 0,
                     ZC_GEMM_STAGING, false, Z_PARTS, ZC_GEMM_MATRICES>
    zc_product_pipe;
#endif

ZC_KERNEL_OF(0, zc_product_pipe::THREADS)(const __grid_constant__ zc_gemm_sm90_params p) {
    ZC_SWIZZLED_SMEM(smem);
    const zc_gemm_sm90<zc_product_pipe> product(p, smem);
    // Registers of a thread; of all warpgroups there are 504 or 512. A part's steps take some more.
    constexpr int PRODUCER = Z_PARTS > 1 ? 40 : 24, GROUPS = zc_product_pipe::GROUPS;
    constexpr int CONSUMER = GROUPS == 3 ? (512 - PRODUCER) / 3 / 8 * 8 : (504 - PRODUCER) / 2;
    product.begin([&] {
        if (ZC_GEMM_TENSOR_Y) zc_tensor_prefetch(&p.y);
    });
    const int warpgroup = zc_warpgroup();
    if (warpgroup == 0) {
        zc_registers_drop<PRODUCER>();
        ZC_FIRST_WARP(product.produces() && zc_elect()) product.produce();
    } else {
        zc_registers_take<CONSUMER>();
        product.consume(warpgroup - 1);
    }
    product.end();
}
#include "zc/gemm_second.cuh"
