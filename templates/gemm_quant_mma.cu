// MatMulInteger and QLinearMatMul of 8-bit integers on the tensor cores: exact sums of a b, and of rows of A and
// columns of B, from which zero points follow.
//
// spec.h: see zc/gemm_quant.cuh (Z_FLOAT is 0); Z_MMA (the instruction for these types), Z_SIDE (of
// a tile: 128 with 8 warps, 64 with 4).
#include "zc/gemm_quant.cuh"
#include "zc/mma_tile.cuh"

// B's tile is turned round on its way to shared memory, in squares of 4 x 4 bytes: a warp has 8 of them along N, 4
// along K.
template <int SIDE, int THREADS> struct turned {
    static constexpr int EACH = 2;
    u32 x[EACH][4]; // [.][k]: four columns

    static ZC_MEMBER int square(int i) { return threadIdx.x + i * THREADS; }
    static ZC_MEMBER int col(int i) { return (square(i) / 32 % (SIDE / 32) * 8 + square(i) % 8) * 4; }
    static ZC_MEMBER int depth(int i) { return (square(i) / SIDE * 4 + square(i) % 32 / 8) * 4; }
    ZC_MEMBER void fetch(unsigned char *, const u8 *from, i64 ld, i64 col0, i64 n, i64 k0, i64 k, bool aligned) {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const i64 c = col0 + col(i), left = n - c;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const i64 d = k0 + depth(i) + j;
                const u8 *at = from + d * ld + c;
                u32 r = 0;
                if (d < k && aligned && left >= 4) {
                    r = *(const u32 *)at;
                } else if (d < k) {
#pragma unroll
                    for (int v = 0; v < 4; v++)
                        if (v < left) r |= (u32)at[v] << (8 * v);
                }
                x[i][j] = r;
            }
        }
    }
    ZC_MEMBER void store(unsigned char *tile) const {
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                u32 r = 0;
#pragma unroll
                for (int j = 0; j < 4; j++) r |= (x[i][j] >> (8 * c) & 0xFFu) << (8 * j);
                *(u32 *)(tile + zc_piece_along(col(i) + c, depth(i) / 16) + depth(i) % 16) = r;
            }
    }
};

// B's tile as it stands.
template <int SIDE, int THREADS> struct straight {
    static ZC_MEMBER void fetch(unsigned char *tile, const u8 *from, i64 ld, i64 col0, i64 n, i64 k0, i64 k, bool aligned) {
        zc_tile_stage<u8, SIDE, true, THREADS>(tile, from, ld, col0, n, k0, k, aligned);
    }
    static ZC_MEMBER void store(unsigned char *) {}
};

#if Z_TB
template <int SIDE, int THREADS> using right = straight<SIDE, THREADS>;
#else
template <int SIDE, int THREADS> using right = turned<SIDE, THREADS>;
#endif

// SIDE x SIDE elements a block; a warp has ROWS x 32 of them.
template <int SIDE> struct block {
    static constexpr int WARPS = SIDE / 16, ROWS = SIDE / 2, DOWN = ROWS / 16, THREADS = WARPS * 32;
    static constexpr int DEPTH = ZC_TILE_BYTES_DEPTH, TILE = SIDE * ZC_TILE_BYTES_DEPTH;
    i32 sum[DOWN][4][4];
    u32 rows[DOWN][2], cols[4]; // this lane's share of the sums over rows of A and columns of B

    static ZC_MEMBER int warp_row() { return threadIdx.x / 32 % 2 * ROWS; }
    static ZC_MEMBER int warp_col() { return threadIdx.x / 64 * 32; }

    ZC_MEMBER void multiply(const unsigned char *tile) {
#pragma unroll
        for (int step = 0; step < 2; step++) {
            u32 a[DOWN][4], b[2][4];
#pragma unroll
            for (int i = 0; i < DOWN; i++) zc_tile_a<u8, SIDE, true>(tile, warp_row() + i * 16, step, a[i]);
#pragma unroll
            for (int j = 0; j < 2; j++) zc_tile_b<u8, SIDE, true>(tile + TILE, warp_col() + j * 16, step, b[j]);
#pragma unroll
            for (int i = 0; i < DOWN; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) Z_MMA(sum[i][j], a[i], b[j / 2] + j % 2 * 2);
#if Z_ZERO_B
#pragma unroll
            for (int i = 0; i < DOWN; i++)
#pragma unroll
                for (int r = 0; r < 4; r++)
                    rows[i][r % 2] = zc_gq_add_bytes(a[i][r], rows[i][r % 2], zc_traits<Z_A>::is_signed);
#endif
#if Z_ZERO_A
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int r = 0; r < 2; r++)
                    cols[j] = zc_gq_add_bytes(b[j / 2][j % 2 * 2 + r], cols[j], zc_traits<Z_B>::is_signed);
#endif
        }
    }
    // Four lanes share a row of A or a column of B.
    ZC_MEMBER void finish_sums() {
#pragma unroll
        for (int by = 1; by < 4; by *= 2) {
#pragma unroll
            for (int i = 0; i < DOWN * 2; i++) rows[i / 2][i % 2] += zc_shfl_xor(rows[i / 2][i % 2], by);
#pragma unroll
            for (int j = 0; j < 4; j++) cols[j] += zc_shfl_xor(cols[j], by);
        }
    }
    ZC_MEMBER void save_all(const zc_gemm_quant_params &p, const zc_gq_item &item, i64 row0, i64 col0) {
        const int lane = threadIdx.x % 32;
        finish_sums();
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int v = 0; v < 2; v++) {
                const i64 col = col0 + warp_col() + j * 8 + lane % 4 * 2 + v;
                const u32 of_column = zc_shfl(cols[j], (lane % 4 * 2 + v) * 4);
                const u32 zb = col < p.n ? (u32)zc_gq_zero_b(p, item, col) : 0u;
#pragma unroll
                for (int i = 0; i < DOWN; i++)
#pragma unroll
                    for (int half = 0; half < 2; half++) {
                        const i64 row = row0 + warp_row() + i * 16 + half * 8 + lane / 4;
                        if (row >= p.m || col >= p.n) continue;
                        const u32 za = (u32)zc_gq_zero_a(p, item, row);
                        const u32 r = (u32)sum[i][j][half * 2 + v] - za * of_column - zb * rows[i][half] +
                                      (u32)p.k * za * zb;
                        zc_gq_save(p, item, row, col, (i32)r);
                    }
            }
    }
};

template <int SIDE> ZC_DEV void product(const zc_gemm_quant_params &p) {
    typedef block<SIDE> bl;
    ZC_DYNAMIC_SMEM(smem);
    const i64 across = (p.n + SIDE - 1) / SIDE, row = blockIdx.x / across * SIDE, col = blockIdx.x % across * SIDE;
    const i64 tiles = (p.k + bl::DEPTH - 1) / bl::DEPTH;
    const bool a_aligned = p.aligned & ZC_GEMM_A_ALIGNED, b_aligned = p.aligned & ZC_GEMM_B_ALIGNED;
    for (i64 i = blockIdx.z; i < p.batch; i += gridDim.z) {
        const zc_gq_item item = zc_gq_batch(p, i);
        const u8 *const a = (const u8 *)p.in[ZC_GQ_A] + item.at[ZC_GQ_A];
        const u8 *const b = (const u8 *)p.in[ZC_GQ_B] + item.at[ZC_GQ_B];
        right<SIDE, bl::THREADS> columns;
        bl own = {};
#pragma unroll
        for (int s = 0; s < ZC_TILE_STAGES - 1; s++) {
            unsigned char *const to = smem + s * 2 * bl::TILE;
            if (s < tiles) {
                zc_tile_stage<u8, SIDE, true, bl::THREADS>(to, a, p.a_ld, row, p.m, s * bl::DEPTH, p.k, a_aligned);
                columns.fetch(to + bl::TILE, b, p.b_ld, col, p.n, s * bl::DEPTH, p.k, b_aligned);
                columns.store(to + bl::TILE);
            }
            zc_cp_async_commit();
        }
        int now = 0, next = ZC_TILE_STAGES - 1;
        for (i64 t = 0; t < tiles; t++) {
            const i64 k = (t + ZC_TILE_STAGES - 1) * bl::DEPTH;
            unsigned char *const to = smem + next * 2 * bl::TILE;
            ZC_CP_ASYNC_WAIT(ZC_TILE_STAGES - 2);
            zc_sync();
            if (k < p.k) {
                zc_tile_stage<u8, SIDE, true, bl::THREADS>(to, a, p.a_ld, row, p.m, k, p.k, a_aligned);
                columns.fetch(to + bl::TILE, b, p.b_ld, col, p.n, k, p.k, b_aligned);
            }
            zc_cp_async_commit();
            own.multiply(smem + now * 2 * bl::TILE);
            if (k < p.k) columns.store(to + bl::TILE);
            now = now + 1 < ZC_TILE_STAGES ? now + 1 : 0;
            next = next + 1 < ZC_TILE_STAGES ? next + 1 : 0;
        }
        own.save_all(p, item, row, col);
        ZC_CP_ASYNC_WAIT(0);
        zc_sync();
    }
}

ZC_KERNEL(0)(const __grid_constant__ zc_gemm_quant_params p) { zc_begin(); product<Z_SIDE>(p); }
