// A product of f16 or bf16 with its rows normalised (LinearNorm) on Hopper: the pipeline of zc/gemm_sm90.cuh, the blocks of a
// cluster side by side over whole rows. A warpgroup keeps its sums, adds bias and skip, and sends of each row the sum and the
// squares about its part's own mean to the other blocks; all join them in the order of the columns, so that rows come out
// alike in each. Nothing but the results goes to memory.
//
// spec.h: see zc/gemm_sm90.cuh and zc/gemm_norm.cuh, and the configuration: Z_TILE_M (128; 64: the warpgroups side by side),
// Z_TILE_N, Z_STAGES, Z_CLUSTER (blocks that have a row), Z_STAGING (panels of a warpgroup's results on their way); Z_WHOLE
// (have all blocks columns for all of their width?); Z_SKIP, Z_SHIFT (is there a beta), Z_SUM (is what was normalised wanted).
#include "zc/gemm.cuh"
#include "zc/gemm_sm90.cuh"
#include "abi/linear_norm_sm90.h"

typedef zc_gemm_pipe<Z_TILE_M, Z_TILE_N, Z_STAGES, 1, Z_CLUSTER, false, Z_SKIP ? 2 : 0, Z_STAGING, Z_TILE_M == 64> zc_norm_pipe;

#if Z_ADDEND && defined(Z_ADDEND_ROW)
constexpr bool ZC_NORM_BIAS = true;
#else
constexpr bool ZC_NORM_BIAS = false;
#endif

struct zc_row_state { // of one part's columns
    f32 sum, squares; // about their mean; with Z_RMS about 0
};

struct zc_linear_norm : zc_norm_pipe {
    static constexpr bool SIDE = Z_TILE_M == 64;
    static constexpr int ROWS = 64, GROUPS = Z_TILE_M / ROWS; // groups of rows of a tile
    static constexpr int HERE = SIDE ? 2 : 1;                 // parts of a row that a block has
    static constexpr int STATES = ROWS * sizeof(zc_row_state);
    static constexpr int JOINED = RING + RESULTS + BARRIERS; // their barriers, states, and columns of each warpgroup
    static constexpr int STATES_AT = JOINED + 2 * GROUPS * 8;
    static constexpr int COLUMNS_AT = STATES_AT + 2 * GROUPS * CLUSTER * HERE * STATES;
    enum { BIAS, GAMMA, BETA, COLUMNS };

    const zc_linear_norm_sm90_params &all;

    ZC_MEMBER zc_linear_norm(const zc_linear_norm_sm90_params &all, unsigned char *memory)
        : zc_norm_pipe(all.product, memory, RING + RESULTS), all(all) {}
    ZC_MEMBER int tiles() const { return ((int)p.g.m + Z_TILE_M - 1) / Z_TILE_M; }
    // For odd and even tiles, for each group.
    ZC_MEMBER u32 joined(int turn, int group) const { return smem + JOINED + (turn * GROUPS + group) * 8; }
    static ZC_MEMBER int states_of(int turn, int group, int part) {
        return STATES_AT + ((turn * GROUPS + group) * CLUSTER * HERE + part) * STATES;
    }
    ZC_MEMBER Z_T *columns_of(int warpgroup, int which) const {
        return (Z_T *)(memory + COLUMNS_AT) + (warpgroup * COLUMNS + which) * OWN;
    }
    ZC_MEMBER void begin() const {
        zc_norm_pipe::begin([&] {
            for (int i = 0; i < 2 * GROUPS; i++) zc_barrier_init(joined(i / GROUPS, i % GROUPS), 1);
            zc_tensor_prefetch(&p.y);
        });
    }
    ZC_MEMBER void produce() const {
        zc_norm_pipe::produce(tiles(), [&](int tile) { return zc_gemm_origin{tile * Z_TILE_M, rank * Z_TILE_N, 0}; });
    }
};

// What a warpgroup does with its part of each tile's rows.
struct zc_norm_rows : zc_linear_norm {
    const int warpgroup, thread, line; // the first of the thread's two rows
    const int group, part, first;      // of rows; of a row, and its first column
    int columns;                       // that there are of OWN
    int buffer;

    ZC_MEMBER zc_norm_rows(const zc_linear_norm &of, int warpgroup)
        : zc_linear_norm(of), warpgroup(warpgroup), thread(threadIdx.x % 128), line(thread / 32 * 16 + thread % 32 / 4),
          group(SIDE ? 0 : warpgroup), part(rank * HERE + (SIDE ? warpgroup : 0)), first(part * OWN), buffer(0) {
        const int left = (int)p.g.n - first;
        columns = Z_WHOLE || left >= OWN ? OWN : left > 0 ? left : 0;
    }
    // What all rows share comes while the first products run.
    ZC_MEMBER void copy_columns(int which, const void *from) const {
        for (int i = thread; i < OWN; i += 128)
            if (Z_WHOLE || i < columns) columns_of(warpgroup, which)[i] = ((const Z_T *)from)[first + i];
    }
    ZC_MEMBER void load_columns() const {
        if (ZC_NORM_BIAS) copy_columns(BIAS, p.g.c);
        copy_columns(GAMMA, p.g.norm.gamma);
        if (Z_SHIFT) copy_columns(BETA, p.g.norm.beta);
        zc_named_sync(1 + warpgroup, 128);
    }
    ZC_MEMBER zc_vec<Z_T, 2> columns_at(int which, int at) const {
        return *(const zc_vec<Z_T, 2> *)(columns_of(warpgroup, which) + at);
    }
    static ZC_MEMBER f32 *sum_at(sums &sum, int at) { return sum[at / Z_PRODUCT_N] + at % Z_PRODUCT_N / 2; }

    // For the groups of 8 columns of a panel: f(group, this thread's first column in the part, are they in the row, its two
    // rows' pairs of sums). Nothing branches, so that the compiler asks for all operands first.
    template <class F> ZC_MEMBER void each_group(int panel, sums &sum, F f) const {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int at = panel * 64 + j * 8;
            f(j, at + thread % 4 * 2, Z_WHOLE || at < columns, sum_at(sum, at));
        }
    }
    // alpha * product + bias + skip, in place.
    ZC_MEMBER void add_operands(int row, sums &sum, slot &at) const {
        static_assert(!SIDE || EXTRA <= 1, "skip lies in one stage");
        constexpr int OWN_PANELS = OWN / 64;
        const int first_panel = SIDE ? warpgroup * OWN_PANELS : 0;
        zc_gemm_item item = zc_gemm_batch(p.g, 0);
        if (ZC_NORM_BIAS) item.c = columns_of(warpgroup, BIAS);
        const int right = (int)p.g.n - 2 - first; // beyond it any column will do
#pragma unroll
        for (int panel = 0; panel < OWN_PANELS; panel++) {
            if (EXTRA && panel % HELD == 0) zc_barrier_wait(full(at.stage), at.parity);
            each_group(panel, sum, [&](int j, int col, bool, f32 *s) {
                if (!Z_WHOLE && !ZC_NORM_BIAS && col > right) col = right;
                zc_gemm_addend<2> addend;
                addend.load(item, ZC_NORM_BIAS ? col : first + col);
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    const int at_row = row + r * 8 < (int)p.g.m ? row + r * 8 : (int)p.g.m - 1;
                    zc_gemm_near<2>(p.g, item, addend, at_row, first + col, s + r * 2, s + r * 2);
                    if (!EXTRA) continue;
                    const zc_vec<Z_T, 2> pair = pair_of_tile(at.stage, group, first_panel + panel % HELD, line + r * 8, j, thread);
                    s[r * 2] += zc_get(pair.v[0]);
                    s[r * 2 + 1] += zc_get(pair.v[1]);
                }
            });
            if (EXTRA && (panel % HELD + 1 == HELD || panel + 1 == OWN_PANELS)) {
                zc_named_sync(1 + warpgroup, 128);
                release(at.stage, thread);
                at.next();
            }
        }
    }
    static ZC_MEMBER f32 over_row(f32 v) { // four threads have a row
        v += zc_shfl_xor(v, 1);
        return v + zc_shfl_xor(v, 2);
    }
    // Of the thread's row r, over this part's columns.
    ZC_MEMBER zc_row_state state_of(int r, sums &sum) const {
        zc_row_state s = {0, 0};
#ifndef Z_RMS
#pragma unroll
        for (int panel = 0; panel < OWN / 64; panel++)
            each_group(panel, sum, [&](int, int, bool in, f32 *v) { s.sum += in ? v[r * 2] + v[r * 2 + 1] : 0; });
        s.sum = over_row(s.sum);
#endif
        const f32 mean = columns > 0 ? s.sum * (1.0f / (f32)columns) : 0.0f;
#pragma unroll
        for (int panel = 0; panel < OWN / 64; panel++)
            each_group(panel, sum, [&](int, int, bool in, f32 *v) {
                const f32 a = v[r * 2] - mean, b = v[r * 2 + 1] - mean;
                s.squares += in ? a * a + b * b : 0;
            });
        s.squares = over_row(s.squares);
        return s;
    }
    // Puts the states of 64 rows where all blocks of the cluster find them, and waits for the others'.
    ZC_MEMBER void exchange(int turn, u32 parity, const zc_row_state (&own)[2]) const {
        const int place = states_of(turn, group, part);
        if (thread % 4 == 0)
#pragma unroll
            for (int r = 0; r < 2; r++) ((zc_row_state *)(memory + place))[line + r * 8] = own[r];
        if (CLUSTER > 1) zc_async_fence();
        if (SIDE)
            zc_named_sync(3, 256);
        else
            zc_named_sync(1 + warpgroup, 128);
        if (CLUSTER == 1) return;
        const u32 barrier = joined(turn, group), from = smem + place;
        if (thread == 0 && (!SIDE || warpgroup == 0)) zc_barrier_expect(barrier, (CLUSTER - 1) * HERE * STATES);
        if (thread < CLUSTER && thread != rank)
            zc_bulk_send(zc_cluster_address(from, thread), from, STATES, zc_cluster_address(barrier, thread));
        zc_barrier_wait_cluster(barrier, parity);
    }
    // Of whole rows: an element's norm is scale * v + shift.
    struct norm {
        f32 scale, shift;
    };
    ZC_MEMBER norm norm_of(int turn, int at) const {
        const f32 per_n = 1.0f / (f32)p.g.n;
        f32 sum = 0, squares = 0;
        zc_row_state s[CLUSTER * HERE];
#pragma unroll
        for (int b = 0; b < CLUSTER * HERE; b++) {
            s[b] = ((const zc_row_state *)(memory + states_of(turn, group, b)))[at];
            sum += s[b].sum;
        }
        const f32 mean = sum * per_n;
#pragma unroll
        for (int b = 0; b < CLUSTER * HERE; b++) {
            const int left = (int)p.g.n - b * OWN, count = Z_WHOLE || left > OWN ? OWN : left;
            if (!Z_WHOLE && count <= 0) continue;
            const f32 off = s[b].sum * (1.0f / (f32)count) - mean;
            squares += s[b].squares + (f32)count * off * off;
        }
        const f32 scale = zc_rsqrt_approx(squares * per_n + p.g.norm.epsilon);
        return {scale, -mean * scale};
    }
    // f(panel, out), for each panel of the part.
    template <class F> ZC_MEMBER void send(const zc_tensor_map *map, int row, F f) {
#pragma unroll
        for (int panel = 0; panel < OWN / 64; panel++) {
            u32 out[16];
            f(panel, out);
            send_panel(map, {row, first + panel * 64, 0}, warpgroup, thread, out, buffer);
        }
    }
    ZC_MEMBER void send_sums(int row, sums &sum) {
        send(&all.sum, row, [&](int panel, u32(&out)[16]) {
            each_group(panel, sum, [&](int j, int, bool, f32 *v) {
#pragma unroll
                for (int r = 0; r < 2; r++) out[j * 2 + r] = zc_pack(Z_T(), v[r * 2], v[r * 2 + 1]);
            });
        });
    }
    ZC_MEMBER void send_norms(int row, sums &sum, const norm (&by)[2]) {
        send(&p.y, row, [&](int panel, u32(&out)[16]) {
            each_group(panel, sum, [&](int j, int at, bool, f32 *v) {
                const zc_vec<Z_T, 2> g = columns_at(GAMMA, at);
                zc_vec<Z_T, 2> b = {};
                if (Z_SHIFT) b = columns_at(BETA, at);
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    f32 y[2];
#pragma unroll
                    for (int e = 0; e < 2; e++)
                        y[e] = (v[r * 2 + e] * by[r].scale + by[r].shift) * zc_get(g.v[e]) + (Z_SHIFT ? zc_get(b.v[e]) : 0);
                    out[j * 2 + r] = zc_pack(Z_T(), y[0], y[1]);
                }
            });
        });
    }
    ZC_MEMBER void consume() {
        slot at = {0, 0};
        u32 turn = 0;
        zc_grid_wait();
        zc_grid_launch();
        load_columns();
        for (int tile = first_tile(); tile * Z_TILE_M < (int)p.g.m; tile += tile_step(), turn++) {
            const int row = tile * Z_TILE_M + group * ROWS;
            sums sum;
            multiply(at, warpgroup, thread, sum);
            add_operands(row + line, sum, at);
            if (Z_SUM) send_sums(row, sum);
            const zc_row_state own[2] = {state_of(0, sum), state_of(1, sum)};
            exchange(turn % 2, turn / 2 % 2, own);
            const norm by[2] = {norm_of(turn % 2, line), norm_of(turn % 2, line + 8)};
            send_norms(row, sum, by);
        }
        if (thread == 0) zc_bulk_wait<0>();
    }
};

ZC_KERNEL_OF(0, 384)(const __grid_constant__ zc_linear_norm_sm90_params p) {
    ZC_SWIZZLED_SMEM(smem);
    const zc_linear_norm rows(p, smem);
    rows.begin();
    const int warpgroup = zc_warpgroup();
    if (warpgroup == 0) {
        zc_registers_drop<24>();
        ZC_FIRST_WARP(zc_warp() == 0 && zc_elect()) rows.produce();
    } else {
        zc_registers_take<240>();
        zc_norm_rows(rows, warpgroup - 1).consume();
    }
    rows.end();
}
