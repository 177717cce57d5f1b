// Products of f16 or bf16 by a matrix of which two of each four neighbours along the summed axis are stored (op/sparse.h), by sparse
// products of warps, which take as long as dense ones of half the summed axis. The instruction's first factor is the sparse one, so
// columns of the result are rows of the products, and rows of x their columns.
//
// A warp has the 64 columns of a tile of the matrix by Z_ROWS rows of x. Stored elements and places lie in shared memory as they lie in
// the plan: eight elements of each of 64 columns side by side are what ldmatrix takes without conflicts, and places are words of lanes.
// x lies there by lines of 64 places, whose pieces of 16 bytes are swizzled. Warps of a block lie side by side, below each other, or share
// the summed axis: each has one of the steps of a stage. The sums go through shared memory by eight rows, turned, so that threads finish
// neighbours of a row; those of warps that share the summed axis are added up in their order.
//
// spec.h: Z_T, Z_Y (of results), Z_BIAS (is there one), and the configuration: Z_ROWS (of a warp), Z_ACROSS, Z_DOWN and Z_SHARERS (warps
// side by side, below each other, of the same sums), Z_STAGES, Z_BESIDE (blocks on a multiprocessor).
#include "zc/gemm_place.cuh"
#include "abi/sparse_linear.h"
#include "zc/fused.cuh"
#include "spec.h"

template <int HALF> ZC_DEV void product(f16, f32 *d, const u32 *a, const u32 *b, u32 places) {
    zc_mma_sparse_m16n8k32_f16<HALF>(d, a, b, places);
}
template <int HALF> ZC_DEV void product(bf16, f32 *d, const u32 *a, const u32 *b, u32 places) {
    zc_mma_sparse_m16n8k32_bf16<HALF>(d, a, b, places);
}

template <int ROWS, int ACROSS, int DOWN, int SHARERS, int STAGES> struct zc_gemm_sparse_mma {
    static constexpr int SIDE = 64, GROUPS = SIDE / 16, EIGHTS = ROWS / 8; // of a tile of the matrix; products of a warp down, across
    static constexpr int THREADS = ACROSS * DOWN * SHARERS * 32;
    static constexpr int LINES = DOWN * ROWS, LINE = SIDE * 2;                              // of x, of a step; bytes
    static constexpr int PIECE = SIDE * 16, W = 4 * PIECE, PLACES = 128 * 4;                // bytes of a tile
    static constexpr int X = LINES * LINE, STEP = X + ACROSS * (W + PLACES), STAGE = SHARERS * STEP;
    static constexpr int NEAR = 4, FINISHERS = SIDE / NEAR;                                 // threads of a row
    static constexpr int PITCH = SIDE + 4, SUMS = 8 * PITCH;                                // of f32, of a warp
    static constexpr int AT_ONCE = SHARERS * 32 / FINISHERS;                                // rows that sharers finish
    static_assert(AT_ONCE <= 8 && ROWS % 8 == 0, "sharers finish eight rows");
    typedef f32 sums[EIGHTS][GROUPS][4];

    const zc_sparse_linear_params &p;
    unsigned char *memory; // stages of steps (x, stored elements, places); then warps' sums in their place
    zc_gemm_tile at;
    const u8 *x; // the first piece that this thread copies, of step 0
    int steps, lines; // lines: of the tile that there are
    int lane, across, down, sharer;

    ZC_MEMBER zc_gemm_sparse_mma(const zc_sparse_linear_params &p, unsigned char *memory)
        : p(p), memory(memory), at(zc_gemm_place(p.m, p.n, LINES, ACROSS * SIDE)) {
        const int warp = (int)threadIdx.x / 32;
        x = (const u8 *)p.x + (at.row + (int)threadIdx.x / 8) * p.k * 2 + (int)threadIdx.x % 8 * 16;
        steps = (int)(p.k / SIDE);
        lines = p.m - at.row < LINES ? (int)(p.m - at.row) : LINES;
        lane = (int)threadIdx.x % 32;
        across = warp % ACROSS;
        down = warp / ACROSS % DOWN;
        sharer = warp / (ACROSS * DOWN);
    }

    // ---- copies ----

    ZC_MEMBER static int x_piece(int line, int piece) { return line * LINE + (piece ^ line % 8) * 16; }
    // Pieces of 16 bytes of each thread, one after another by all threads.
    ZC_MEMBER static constexpr int of_thread(int pieces) { return (pieces + THREADS - 1) / THREADS; }
    // Of a step's tiles, of so many bytes each; of those beyond the last column what the last one has: nobody stores its sums.
    template <int BYTES> ZC_MEMBER void load_tiles(unsigned char *to, const void *from, int step) const {
        constexpr int PIECES = BYTES / 16, ALL = ACROSS * PIECES;
        const int first = (int)(at.col / SIDE), last = (int)(p.n / SIDE) - 1;
#pragma unroll
        for (int i = 0; i < of_thread(ALL); i++) {
            const int piece = (int)threadIdx.x + i * THREADS, own = first + piece / PIECES;
            if (ALL % THREADS && piece >= ALL) break;
            const int tile = (own < last ? own : last) * steps + step;
            zc_cp_async16(to + piece * 16, (const u8 *)from + (i64)tile * BYTES + piece % PIECES * 16, true);
        }
    }
    ZC_MEMBER void load_x(unsigned char *to, int step) const {
        constexpr int ALL = LINES * LINE / 16;
#pragma unroll
        for (int i = 0; i < of_thread(ALL); i++) {
            const int piece = (int)threadIdx.x + i * THREADS, line = piece / 8;
            if (ALL % THREADS && piece >= ALL) break;
            const bool some = line < lines;
            const u8 *const from = x + (i64)i * (THREADS / 8) * p.k * 2 + step * LINE;
            zc_cp_async16(to + x_piece(line, piece % 8), some ? from : (const u8 *)p.x, some);
        }
    }
    // Steps from `first` on, one for each sharer, as far as there are.
    ZC_MEMBER void load(int stage, int first) const {
#pragma unroll
        for (int s = 0; s < SHARERS; s++) {
            unsigned char *const to = memory + stage * STAGE + s * STEP;
            if (first + s >= steps) break;
            load_x(to, first + s);
            load_tiles<W>(to + X, p.w, first + s);
            load_tiles<PLACES>(to + X + ACROSS * W, p.places, first + s);
        }
    }

    // ---- products ----

    template <int HALF> ZC_MEMBER void multiply_half(const unsigned char *step, const u32 (&places)[GROUPS], sums &sum) const {
        const unsigned char *const tile = step + X + across * W + (HALF * 2 + lane / 16) * PIECE + lane % 16 * 16;
        u32 w[GROUPS][4];
#pragma unroll
        for (int g = 0; g < GROUPS; g++) zc_ldmatrix_x4(w[g], tile + g * 256);
#pragma unroll
        for (int e = 0; e < EIGHTS; e++) {
            u32 x[4];
            zc_ldmatrix_x4(x, step + x_piece(down * ROWS + e * 8 + lane % 8, HALF * 4 + lane / 8));
#pragma unroll
            for (int g = 0; g < GROUPS; g++) product<HALF>(Z_T(), sum[e][g], w[g], x, places[g]);
        }
    }
    ZC_MEMBER void multiply(int stage, sums &sum) const {
        const unsigned char *const step = memory + stage * STAGE + sharer * STEP;
        const u32 *const words = (const u32 *)(step + X + ACROSS * W + across * PLACES) + lane;
        u32 places[GROUPS];
#pragma unroll
        for (int g = 0; g < GROUPS; g++) places[g] = words[g * 32];
        multiply_half<0>(step, places, sum);
        multiply_half<1>(step, places, sum);
    }
    ZC_MEMBER void multiply_all(sums &sum) const {
#pragma unroll
        for (int s = 0; s < STAGES - 1; s++) {
            load(s, s * SHARERS);
            zc_cp_async_commit();
        }
        int now = 0, next = STAGES - 1;
        for (int step = 0; step < steps; step += SHARERS) {
            ZC_CP_ASYNC_WAIT(STAGES - 2);
            zc_sync();
            load(next, step + (STAGES - 1) * SHARERS);
            zc_cp_async_commit();
            if (SHARERS == 1 || step + sharer < steps) multiply(now, sum);
            now = now + 1 < STAGES ? now + 1 : 0;
            next = next + 1 < STAGES ? next + 1 : 0;
        }
        ZC_CP_ASYNC_WAIT(0);
        zc_sync(); // nobody reads operands any more
    }

    // ---- results ----

    ZC_MEMBER f32 *sums_of(int s) const { return (f32 *)memory + ((s * DOWN + down) * ACROSS + across) * SUMS; }
    ZC_MEMBER static void meet() {
        if (SHARERS > 1)
            zc_sync();
        else
            zc_sync_warp();
    }
    ZC_MEMBER void keep(const f32 (&sum)[GROUPS][4]) const {
        f32 *const to = sums_of(sharer) + lane % 4 * 2 * PITCH + lane / 4;
#pragma unroll
        for (int i = 0; i < GROUPS * 4; i++) to[i % 2 * PITCH + i / 4 * 16 + i / 2 % 2 * 8] = sum[i / 4][i % 4];
    }
    typedef zc_vec<Z_T, NEAR> neighbours;
    typedef zc_vec<f32, NEAR> near_sums;
    ZC_MEMBER void save(int line, i64 row, i64 col, const neighbours &bias) const {
        f32 y[NEAR] = {};
#pragma unroll
        for (int s = 0; s < SHARERS; s++) {
            const near_sums part = *(const near_sums *)(sums_of(s) + line * PITCH + col % SIDE);
#pragma unroll
            for (int e = 0; e < NEAR; e++) y[e] = s ? y[e] + part.v[e] : part.v[e];
        }
#pragma unroll
        for (int e = 0; e < NEAR; e++) y[e] += Z_BIAS ? zc_get(bias.v[e]) : 0.0f;
        zc_fused_near<NEAR>(p.fused, y, row, col, p.n);
        zc_vec<Z_Y, NEAR> out;
#pragma unroll
        for (int e = 0; e < NEAR; e++) out.v[e] = zc_put<Z_Y>(y[e]);
        *(zc_vec<Z_Y, NEAR> *)((Z_Y *)p.y + row * p.n + col) = out;
    }
    ZC_MEMBER void save_all(const sums &sum) const {
        const int thread = sharer * 32 + lane;
        const i64 col = at.col + across * SIDE + thread % FINISHERS * NEAR;
        neighbours bias = {};
        if (Z_BIAS && col < p.n) bias = *(const neighbours *)((const Z_T *)p.bias + col);
#pragma unroll
        for (int e = 0; e < EIGHTS; e++) {
            const i64 row = at.row + down * ROWS + e * 8;
            keep(sum[e]);
            meet();
#pragma unroll
            for (int first = 0; first < 8; first += AT_ONCE) {
                const int line = first + thread / FINISHERS;
                if (row + line < p.m && col < p.n) save(line, row + line, col, bias);
            }
            meet();
        }
    }
    ZC_MEMBER void run() const {
        sums sum = {};
        multiply_all(sum);
        save_all(sum);
    }
};

ZC_KERNEL_BESIDE(0, Z_ACROSS *Z_DOWN *Z_SHARERS * 32, Z_BESIDE)(const __grid_constant__ zc_sparse_linear_params p) {
    ZC_DYNAMIC_SMEM(smem);
    zc_begin();
    zc_gemm_sparse_mma<Z_ROWS, Z_ACROSS, Z_DOWN, Z_SHARERS, Z_STAGES>(p, smem).run();
}
