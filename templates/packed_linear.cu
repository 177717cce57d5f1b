// PackedLinear, for any architecture: a warp has four rows by one column, its lanes share the
// summed axis by pieces of codes, and add their sums up in a fixed order.
//
// spec.h: see zc/packed_linear.cuh.
#include "zc/packed_linear.cuh"

enum { ROWS = 4 };

ZC_DEV Z_ACC of_lanes(Z_ACC sum) {
#pragma unroll
    for (int by = 16; by; by /= 2) sum += zc_shfl_xor(sum, by);
    return sum;
}

// What a row counts where it is normalised, by all lanes of a warp.
ZC_DEV Z_ACC row_scale(const zc_packed_linear_params &p, i64 row) {
    if (!Z_NORM) return 1;
    const Z_T *const x = (const Z_T *)p.x + row * Z_SUMMED;
    Z_ACC sum = 0;
    for (i64 k = threadIdx.x % 32; k < Z_SUMMED; k += 32) sum += (Z_ACC)zc_get(x[k]) * (Z_ACC)zc_get(x[k]);
    return zx_rsqrt(of_lanes(sum) / Z_SUMMED + (Z_ACC)p.epsilon);
}

ZC_DEV Z_ACC element(const zc_packed_linear_params &p, Z_T x, Z_ACC counts, i64 k) {
    if (!Z_NORM) return (Z_ACC)zc_get(x);
    return (Z_ACC)zc_through<Z_T>((Z_ACC)zc_get(x) * counts * (Z_ACC)zc_get(((const Z_T *)p.gain)[k]));
}

ZC_DEV void multiply(const zc_packed_linear_params &p, i64 row, i64 col, int rows, Z_ACC (&sum)[ROWS]) {
    const i64 group = col / ZC_PACKED_COLUMNS, column = col % ZC_PACKED_COLUMNS;
    const Z_T *const x = (const Z_T *)p.x + row * Z_SUMMED;
    Z_ACC counts[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) counts[r] = r < rows ? row_scale(p, row + r) : (Z_ACC)0;
    for (i64 piece = threadIdx.x % 32; piece < Z_SUMMED / ZC_PACKED_PIECE; piece += 32) {
        const i64 k = piece * ZC_PACKED_PIECE, at = (group * (Z_SUMMED / ZC_PACKED_PIECE) + piece);
        const u8 *const codes = (const u8 *)p.w + (at * ZC_PACKED_COLUMNS + column) * ZC_PACKED_BYTES;
        Z_ACC scale = 0, zero = 0;
        for (int i = 0; i < ZC_PACKED_PIECE; i++) {
            if (i % ZC_PACKED_LEAST == 0) {
                const i64 by = zc_packed_block(group, k + i, column);
                scale = (Z_ACC)zc_load<Z_S>(p.scale, by);
                zero = zc_packed_zero(p.zero, by);
            }
            const Z_ACC w = (zc_packed_number(zc_packed_code(codes, i)) - zero) * scale;
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                if (r < rows) sum[r] += element(p, x[r * Z_SUMMED + k + i], counts[r], k + i) * w;
        }
    }
}

ZC_KERNEL(0)(const __grid_constant__ zc_packed_linear_params p) {
    zc_begin();
    const i64 col = (i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (col >= zc_packed_cols(p)) return;
    for (i64 row = (i64)blockIdx.y * ROWS; row < p.m; row += (i64)gridDim.y * ROWS) {
        Z_ACC sum[ROWS] = {}, second[ROWS] = {};
        const int rows = p.m - row < ROWS ? (int)(p.m - row) : ROWS;
        multiply(p, row, zc_packed_matrix_col(col), rows, sum);
        if (Z_GATED) multiply(p, row, zc_packed_matrix_col(col) + ZC_PACKED_GATED, rows, second);
#pragma unroll
        for (int r = 0; r < ROWS; r++) sum[r] = zc_packed_gate(zc_packed_sum(p, of_lanes(sum[r])) + zc_packed_bias(p, col), Z_GATED ? zc_packed_sum(p, of_lanes(second[r])) : (Z_ACC)0);
        const int lane = threadIdx.x % 32;
        Z_ACC mine = sum[0];
#pragma unroll
        for (int r = 1; r < ROWS; r++)
            if (lane == r) mine = sum[r];
        if (lane >= ROWS || row + lane >= p.m) continue;
        const i64 at = (row + lane) * zc_packed_cols(p) + col;
        ((Z_Y *)p.y)[at] = zc_put<Z_Y>(zc_fused(p.fused, mine, at));
    }
}
