// A product of f16 or bf16 with its rows normalised (LinearNorm) on Hopper: the pipeline of zc/gemm_sm90.cuh, the blocks of a
// cluster side by side over whole rows. A warpgroup keeps its sums, adds bias and skip, and sends of each row the sum and the
// squares about the block's own mean to the other blocks; all join them in the order of the columns, so that rows come out
// alike in each. Nothing but the results goes to memory.
//
// spec.h: see zc/gemm_sm90.cuh and zc/gemm_norm.cuh, and the configuration: Z_TILE_M, Z_TILE_N, Z_STAGES, Z_CLUSTER (blocks
// that have a row); Z_SKIP, Z_SHIFT (is there a beta), Z_SUM (is what was normalised wanted).
#include "zc/gemm_sm90.cuh"
#include "abi/linear_norm_sm90.h"

typedef zc_gemm_pipe<Z_TILE_M, Z_TILE_N, Z_STAGES, 1, Z_CLUSTER, false, Z_SKIP, Z_TILE_N / 64> zc_norm_pipe;

// Do all blocks have columns for all of their tile?
#ifdef Z_N
constexpr bool ZC_NORM_WHOLE = Z_N % Z_TILE_N == 0;
#else
constexpr bool ZC_NORM_WHOLE = false;
#endif

struct zc_row_state { // of one block's columns
    f32 sum, squares; // about their mean; with Z_RMS about 0
};

struct zc_linear_norm : zc_norm_pipe {
    static constexpr int ROWS = 64, STATES = ROWS * sizeof(zc_row_state); // of a warpgroup
    static constexpr int JOINED = RING + RESULTS + BARRIERS;              // their barriers, then the states
    static constexpr int STATES_AT = JOINED + 2 * 2 * 8;

    const zc_linear_norm_sm90_params &all;
    int tiles, first, columns; // this block's

    ZC_MEMBER zc_linear_norm(const zc_linear_norm_sm90_params &all, unsigned char *memory)
        : zc_norm_pipe(all.product, memory, RING + RESULTS), all(all) {
        tiles = (int)((p.g.m + Z_TILE_M - 1) / Z_TILE_M);
        first = rank * Z_TILE_N;
        columns = (int)p.g.n - first < Z_TILE_N ? (int)p.g.n - first : Z_TILE_N;
    }
    // For odd and even tiles, for each warpgroup.
    ZC_MEMBER u32 joined(int turn, int warpgroup) const { return smem + JOINED + (turn * 2 + warpgroup) * 8; }
    ZC_MEMBER int states_of(int turn, int warpgroup, int block) const {
        return STATES_AT + ((turn * 2 + warpgroup) * CLUSTER + block) * STATES;
    }
    ZC_MEMBER void begin() const {
        zc_norm_pipe::begin([&] {
            for (int i = 0; i < 4; i++) zc_barrier_init(joined(i / 2, i % 2), 1);
            zc_tensor_prefetch(&p.y);
        });
    }
    ZC_MEMBER void produce() const {
        zc_norm_pipe::produce(tiles, [&](int tile) { return zc_gemm_origin{tile * Z_TILE_M, first, 0}; });
    }

    // For the groups of 8 columns of a panel: f(group, this thread's first column in it, are they in the row, its two rows'
    // pairs of sums). The column is one of the row's in any case, and nothing branches, so that the compiler asks for all
    // operands first.
    template <class F> ZC_MEMBER void each_group(int panel, int thread, f32 (&sum)[Z_TILE_N / 2], F f) const {
        const int right = (int)p.g.n - 2;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int at = panel * 64 + j * 8, col = first + at + thread % 4 * 2;
            f(j, ZC_NORM_WHOLE || col < right ? col : right, ZC_NORM_WHOLE || at < columns, sum + at / 2);
        }
    }
    // alpha * product + bias + skip, in place.
    ZC_MEMBER void add_operands(int row, int warpgroup, int thread, f32 (&sum)[Z_TILE_N / 2], slot &at) const {
        const zc_gemm_item item = zc_gemm_batch(p.g, 0);
#pragma unroll
        for (int panel = 0; panel < PANELS; panel++) {
            u32 skip[16];
            if (EXTRA && panel % HELD == 0) zc_barrier_wait(full(at.stage), at.parity);
            if (EXTRA) read_tile(at.stage, warpgroup, panel % HELD, thread, skip);
            each_group(panel, thread, sum, [&](int j, int col, bool, f32 *s) {
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    const int at_row = row + r * 8 < (int)p.g.m ? row + r * 8 : (int)p.g.m - 1;
                    zc_gemm_near<2>(p.g, item, at_row, col, s + r * 2, s + r * 2);
                    if (!EXTRA) continue;
                    const zc_vec<Z_T, 2> pair = zc_unpack<Z_T>(skip[j * 2 + r]);
                    s[r * 2] += zc_get(pair.v[0]);
                    s[r * 2 + 1] += zc_get(pair.v[1]);
                }
            });
            if (EXTRA && (panel % HELD + 1 == HELD || panel + 1 == PANELS)) {
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
    // Of the thread's row r, over this block's columns.
    ZC_MEMBER zc_row_state state_of(int r, int thread, f32 (&sum)[Z_TILE_N / 2]) const {
        zc_row_state s = {0, 0};
#ifndef Z_RMS
#pragma unroll
        for (int panel = 0; panel < PANELS; panel++)
            each_group(panel, thread, sum,
                       [&](int, int, bool in, f32 *v) { s.sum += in ? v[r * 2] + v[r * 2 + 1] : 0; });
        s.sum = over_row(s.sum);
#endif
        const f32 mean = s.sum / (f32)columns;
#pragma unroll
        for (int panel = 0; panel < PANELS; panel++)
            each_group(panel, thread, sum, [&](int, int, bool in, f32 *v) {
                const f32 a = v[r * 2] - mean, b = v[r * 2 + 1] - mean;
                s.squares += in ? a * a + b * b : 0;
            });
        s.squares = over_row(s.squares);
        return s;
    }
    // Puts the states of 64 rows where all blocks of the cluster find them, and waits for the others'.
    ZC_MEMBER void exchange(int turn, u32 parity, int warpgroup, int thread, const zc_row_state (&own)[2]) const {
        const int place = states_of(turn, warpgroup, rank), line = thread / 32 * 16 + thread % 32 / 4;
        if (thread % 4 == 0)
#pragma unroll
            for (int r = 0; r < 2; r++) ((zc_row_state *)(memory + place))[line + r * 8] = own[r];
        if (CLUSTER > 1) zc_async_fence();
        zc_named_sync(1 + warpgroup, 128);
        if (CLUSTER == 1) return;
        const u32 barrier = joined(turn, warpgroup), from = smem + place;
        if (thread == 0) zc_barrier_expect(barrier, (CLUSTER - 1) * STATES);
        if (thread < CLUSTER && thread != rank)
            zc_bulk_send(zc_cluster_address(from, thread), from, STATES, zc_cluster_address(barrier, thread));
        zc_barrier_wait_cluster(barrier, parity);
    }
    // Of whole rows: an element's norm is scale * v + shift.
    struct norm {
        f32 scale, shift;
    };
    ZC_MEMBER norm norm_of(int turn, int warpgroup, int line) const {
        const f32 n = (f32)p.g.n;
        f32 sum = 0, squares = 0;
        zc_row_state s[CLUSTER];
#pragma unroll
        for (int b = 0; b < CLUSTER; b++) {
            s[b] = ((const zc_row_state *)(memory + states_of(turn, warpgroup, b)))[line];
            sum += s[b].sum;
        }
        const f32 mean = sum / n;
#pragma unroll
        for (int b = 0; b < CLUSTER; b++) {
            const int left = (int)p.g.n - b * Z_TILE_N;
            const f32 count = (f32)(left < Z_TILE_N ? left : Z_TILE_N), off = s[b].sum / count - mean;
            squares += s[b].squares + count * off * off;
        }
        const f32 scale = 1.0f / sqrtf(squares / n + p.g.norm.epsilon);
        return {scale, -mean * scale};
    }
    // Panels of the warpgroup's rows, f(panel, out), when those before have been read.
    template <class F> ZC_MEMBER void send(const zc_tensor_map *map, int row, int warpgroup, int thread, F f) const {
        if (thread == 0) zc_bulk_wait_read<0>();
        zc_named_sync(1 + warpgroup, 128);
#pragma unroll
        for (int panel = 0; panel < PANELS; panel++) {
            u32 out[16];
            f(panel, out);
            write_panel(panel_of(warpgroup, panel), thread, out);
        }
        zc_async_fence();
        zc_named_sync(1 + warpgroup, 128);
        if (thread != 0) return;
        for (int panel = 0; panel < PANELS; panel++)
            zc_tensor_store(map, panel_of(warpgroup, panel), first + panel * 64, row, 0);
        zc_bulk_commit();
    }
    ZC_MEMBER void send_sums(int row, int warpgroup, int thread, f32 (&sum)[Z_TILE_N / 2]) const {
        send(&all.sum, row, warpgroup, thread, [&](int panel, u32(&out)[16]) {
            each_group(panel, thread, sum, [&](int j, int, bool, f32 *v) {
#pragma unroll
                for (int r = 0; r < 2; r++) out[j * 2 + r] = zc_pack(Z_T(), v[r * 2], v[r * 2 + 1]);
            });
        });
    }
    ZC_MEMBER void send_norms(int row, int warpgroup, int thread, f32 (&sum)[Z_TILE_N / 2], const norm (&by)[2]) const {
        const Z_T *const gamma = (const Z_T *)p.g.norm.gamma, *const beta = (const Z_T *)p.g.norm.beta;
        send(&p.y, row, warpgroup, thread, [&](int panel, u32(&out)[16]) {
            each_group(panel, thread, sum, [&](int j, int col, bool, f32 *v) {
                const zc_vec<Z_T, 2> g = *(const zc_vec<Z_T, 2> *)(gamma + col);
                zc_vec<Z_T, 2> b = {};
                if (Z_SHIFT) b = *(const zc_vec<Z_T, 2> *)(beta + col);
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
    ZC_MEMBER void consume(int warpgroup) const {
        const int thread = threadIdx.x % 128, line = thread / 32 * 16 + thread % 32 / 4;
        slot at = {0, 0};
        int turn = 0;
        u32 parity = 0;
        zc_grid_wait();
        zc_grid_launch();
        for (int tile = first_tile(); tile < tiles; tile += tile_step()) {
            const int row = tile * Z_TILE_M + warpgroup * ROWS;
            f32 sum[1][Z_TILE_N / 2];
            multiply(at, warpgroup, thread, sum);
            add_operands(row + line, warpgroup, thread, sum[0], at);
            if (Z_SUM) send_sums(row, warpgroup, thread, sum[0]);
            const zc_row_state own[2] = {state_of(0, thread, sum[0]), state_of(1, thread, sum[0])};
            exchange(turn, parity, warpgroup, thread, own);
            const norm by[2] = {norm_of(turn, warpgroup, line), norm_of(turn, warpgroup, line + 8)};
            send_norms(row, warpgroup, thread, sum[0], by);
            parity ^= turn;
            turn ^= 1;
        }
        if (thread == 0) zc_bulk_wait<0>();
    }
};

ZC_KERNEL_OF(0, 384)(const __grid_constant__ zc_linear_norm_sm90_params p) {
    ZC_SWIZZLED_SMEM(smem);
    const zc_linear_norm rows(p, smem);
    rows.begin();
    const int warpgroup = rows.role();
    if (warpgroup == 0) {
        zc_registers_drop<24>();
        if (rows.issues()) rows.produce();
    } else {
        zc_registers_take<240>();
        rows.consume(warpgroup - 1);
    }
    rows.end();
}
