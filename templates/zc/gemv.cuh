// Products with few rows (M <= ZC_GEMM_SMALL_M): reading B is all the work, so the summed axis is spread over lanes
// (B stored N x K) or over the warps of a block (B stored K x N).
#pragma once
#include "zc/gemm.cuh"

typedef zc_compute<Z_T> zc_gemm_number;

#if Z_TA
#define ZC_GEMV_A(p, a, row, k) ((a)[(k) * (p).a_ld + (row)])
#else
#define ZC_GEMV_A(p, a, row, k) ((a)[(row) * (p).a_ld + (k)])
#endif

#if Z_TB
// One warp a column; V neighbours along K a lane.
template <int ROWS, int V, bool ALIGNED> ZC_DEV void zc_gemv_lanes(const zc_gemm_params &p, const zc_gemm_item &item,
                                                                    const Z_B *b, Z_ACC *sum, i64 from, i64 to,
                                                                    i64 step) {
    for (i64 k = from; k + V <= to; k += step) {
        zc_vec<Z_B, V> x;
        zc_vec<Z_T, V> y;
        if (ALIGNED) {
            x = *(const zc_vec<Z_B, V> *)(b + k);
        } else {
#pragma unroll
            for (int v = 0; v < V; v++) x.v[v] = b[k + v];
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (r >= p.m) break;
            if (ALIGNED && !Z_TA && (p.aligned & ZC_GEMM_A_ALIGNED)) {
                y = *(const zc_vec<Z_T, V> *)(item.a + r * p.a_ld + k);
            } else {
#pragma unroll
                for (int v = 0; v < V; v++) y.v[v] = ZC_GEMV_A(p, item.a, r, k + v);
            }
#pragma unroll
            for (int v = 0; v < V; v++) sum[r] += (Z_ACC)zc_get(y.v[v]) * (Z_ACC)zc_get(x.v[v]);
        }
    }
}

template <int ROWS> ZC_DEV void zc_gemv(const zc_gemm_params &p) {
    constexpr int V = 16 / sizeof(Z_T) > 8 ? 8 : 16 / sizeof(Z_T);
    const int lane = threadIdx.x % 32;
    const i64 col = (i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (col >= p.n) return;
    for (i64 at = blockIdx.z; at < p.batch; at += gridDim.z) {
        const zc_gemm_item item = zc_gemm_batch(p, at);
        const Z_B *b = item.b + col * p.b_ld;
        Z_ACC sum[ROWS] = {};
        i64 whole = 0;
        if (p.aligned & ZC_GEMM_B_ALIGNED) {
            whole = p.k / V * V;
            zc_gemv_lanes<ROWS, V, true>(p, item, b, sum, lane * V, whole, 32 * V);
        }
        zc_gemv_lanes<ROWS, 1, false>(p, item, b, sum, whole + lane, p.k, 32);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int by = 16; by; by /= 2) sum[r] += zc_shfl_xor(sum[r], by);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (lane == r && r < p.m) zc_gemm_save(p, item, r, col, sum[r]);
    }
}
#else
// Lanes take V columns each, warps every 16th row of B; the block adds the warps' sums up.
template <int ROWS> ZC_DEV void zc_gemv(const zc_gemm_params &p) {
    constexpr int V = sizeof(Z_T) <= 2 && sizeof(Z_ACC) == 4 ? 2 : 1, WIDTH = 32 * V;
    ZC_DYNAMIC_SMEM(smem);
    Z_ACC *const part = (Z_ACC *)smem; // [warp][row][column]
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const i64 first = (i64)blockIdx.x * WIDTH, col = first + lane * V;
    const int have = (int)(p.n - col < 0 ? 0 : p.n - col < V ? p.n - col : V);
    const bool whole = have == V && (p.aligned & ZC_GEMM_B_ALIGNED);
    for (i64 at = blockIdx.z; at < p.batch; at += gridDim.z) {
        const zc_gemm_item item = zc_gemm_batch(p, at);
        Z_ACC sum[ROWS][V] = {};
#pragma unroll 4
        for (i64 k = warp; k < p.k; k += ZC_GEMV_WARPS) {
            const Z_B *b = item.b + k * p.b_ld + col;
            zc_vec<Z_B, V> x = {};
            if (whole) x = *(const zc_vec<Z_B, V> *)b;
#pragma unroll
            for (int v = 0; v < V; v++)
                if (!whole && v < have) x.v[v] = b[v];
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                if (r >= p.m) break;
                const Z_ACC y = (Z_ACC)zc_get(ZC_GEMV_A(p, item.a, r, k));
#pragma unroll
                for (int v = 0; v < V; v++) sum[r][v] += y * (Z_ACC)zc_get(x.v[v]);
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int v = 0; v < V; v++) part[(warp * ROWS + r) * WIDTH + lane * V + v] = sum[r][v];
        zc_sync();
        for (int i = threadIdx.x; i < ROWS * WIDTH; i += blockDim.x) {
            const int r = i / WIDTH, c = i % WIDTH;
            if (r >= p.m || first + c >= p.n) continue;
            Z_ACC total = 0;
            for (int w = 0; w < ZC_GEMV_WARPS; w++) total += part[(w * ROWS + r) * WIDTH + c];
            zc_gemm_save(p, item, r, first + c, total);
        }
        zc_sync();
    }
}
#endif
