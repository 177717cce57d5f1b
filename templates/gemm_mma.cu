// Matrix products on the tensor cores, sums in f32: y = epilogue(alpha * a b + beta * c). Factors are f16, bf16, or f32
// that is rounded to tf32.
//
// spec.h: see zc/gemm.cuh; Z_MMA is the product of a warp (zc/ptx.cuh). Tiles of 128 x 128 have 8 warps, of 64 x 64 4.
#include "zc/gemm.cuh"
#if Z_ROWS
#include "zc/gemv.cuh"
#else
#include "zc/mma_tile.cuh"

// What the product takes: rounded, where elements have more digits.
template <int N> ZC_DEV void to_factors(u32 (&r)[N]) {
    if constexpr (sizeof(Z_T) == 4) {
#pragma unroll
        for (int i = 0; i < N; i++) r[i] = zc_f32_to_tf32(zc_float(r[i]));
    }
}

// SIDE x SIDE elements a block; a warp has ROWS x 32 of them.
struct block {
    static constexpr int SIDE = Z_SIDE;
    static constexpr int WARPS = SIDE / 16, ROWS = SIDE / 2, DOWN = ROWS / 16, THREADS = WARPS * 32;
    static constexpr int DEPTH = ZC_TILE_BYTES_DEPTH / (int)sizeof(Z_T);
    static constexpr int TILE = SIDE * ZC_TILE_BYTES_DEPTH;

    static ZC_MEMBER int warp_row() { return threadIdx.x / 32 % 2 * ROWS; }
    static ZC_MEMBER int warp_col() { return threadIdx.x / 64 * 32; }

    static ZC_MEMBER void stage(const zc_gemm_params &p, const zc_gemm_item &item, const zc_gemm_tile &at, i64 k,
                                unsigned char *to) {
        zc_tile_stage<Z_T, SIDE, !Z_TA, THREADS>(to, item.a, p.a_ld, at.row, p.m, k, p.k,
                                                 p.aligned & ZC_GEMM_A_ALIGNED);
        zc_tile_stage<Z_T, SIDE, Z_TB, THREADS>(to + TILE, item.b, p.b_ld, at.col, p.n, k, p.k,
                                                p.aligned & ZC_GEMM_B_ALIGNED);
    }
    static ZC_MEMBER void multiply(const unsigned char *tile, f32 (&sum)[DOWN][4][4]) {
#pragma unroll
        for (int step = 0; step < 2; step++) {
            u32 a[DOWN][4], b[2][4];
#pragma unroll
            for (int i = 0; i < DOWN; i++) {
                zc_tile_a<Z_T, SIDE, !Z_TA>(tile, warp_row() + i * 16, step, a[i]);
                to_factors(a[i]);
            }
#pragma unroll
            for (int j = 0; j < 2; j++) {
                zc_tile_b<Z_T, SIDE, Z_TB>(tile + TILE, warp_col() + j * 16, step, b[j]);
                to_factors(b[j]);
            }
#pragma unroll
            for (int i = 0; i < DOWN; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) Z_MMA(sum[i][j], a[i], b[j / 2] + j % 2 * 2);
        }
    }
    // Two neighbours of a row.
    static ZC_MEMBER void save(const zc_gemm_params &p, const zc_gemm_item &item, i64 row, i64 col, const f32 *sum) {
        if (row >= p.m || col >= p.n) return;
        if (zc_gemm_is_part(p)) {
#pragma unroll
            for (int v = 0; v < 2; v++)
                if (col + v < p.n) zc_gemm_save_part(p, row, col + v, sum[v]);
            return;
        }
        if (p.aligned & ZC_GEMM_Y_ALIGNED) {
            zc_vec<Z_Y, 2> pair;
#pragma unroll
            for (int v = 0; v < 2; v++) pair.v[v] = zc_gemm_finish(p, item, row, col + v, sum[v]);
            *(zc_vec<Z_Y, 2> *)(item.y + row * p.y_ld + col) = pair;
            return;
        }
#pragma unroll
        for (int v = 0; v < 2; v++)
            if (col + v < p.n) zc_gemm_save(p, item, row, col + v, sum[v]);
    }
    static ZC_MEMBER void save_all(const zc_gemm_params &p, const zc_gemm_item &item, const zc_gemm_tile &at,
                                   f32 (&sum)[DOWN][4][4]) {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < DOWN; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int half = 0; half < 2; half++)
                    save(p, item, at.row + warp_row() + i * 16 + half * 8 + lane / 4,
                         at.col + warp_col() + j * 8 + lane % 4 * 2, sum[i][j] + half * 2);
    }
};

// Parts are multiples of DEPTH long, but the last.
ZC_DEV void product(const zc_gemm_params &p) {
    typedef block bl;
    ZC_DYNAMIC_SMEM(smem);
    const zc_gemm_tile at = zc_gemm_place(p.m, p.n, Z_SIDE, Z_SIDE);
    const i64 begin = zc_gemm_begin(p), end = zc_gemm_end(p, begin);
    const i64 tiles = (end - begin + bl::DEPTH - 1) / bl::DEPTH;
    for (i64 i = blockIdx.z; i < p.batch; i += gridDim.z) {
        const zc_gemm_item item = zc_gemm_batch(p, i);
        f32 sum[bl::DOWN][4][4] = {};
#pragma unroll
        for (int s = 0; s < ZC_TILE_STAGES - 1; s++) {
            if (s < tiles) bl::stage(p, item, at, begin + s * bl::DEPTH, smem + s * 2 * bl::TILE);
            zc_cp_async_commit();
        }
        int now = 0, next = ZC_TILE_STAGES - 1;
        for (i64 t = 0; t < tiles; t++) {
            ZC_CP_ASYNC_WAIT(ZC_TILE_STAGES - 2);
            zc_sync();
            if (t + ZC_TILE_STAGES - 1 < tiles)
                bl::stage(p, item, at, begin + (t + ZC_TILE_STAGES - 1) * bl::DEPTH, smem + next * 2 * bl::TILE);
            zc_cp_async_commit();
            bl::multiply(smem + now * 2 * bl::TILE, sum);
            now = now + 1 < ZC_TILE_STAGES ? now + 1 : 0;
            next = next + 1 < ZC_TILE_STAGES ? next + 1 : 0;
        }
        bl::save_all(p, item, at, sum);
        ZC_CP_ASYNC_WAIT(0);
        zc_sync();
    }
}

#endif

#if Z_ROWS
ZC_KERNEL(0)(const __grid_constant__ zc_gemm_params p) { zc_begin(); zc_gemv<Z_ROWS>(p); }
#else
ZC_KERNEL(0)(const __grid_constant__ zc_gemm_params p) { zc_begin(); product(p); }
#endif
#include "zc/gemm_second.cuh"
