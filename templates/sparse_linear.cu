// SparseLinear, for any architecture: a thread has an element of the result, and adds up what is stored of its column in the order
// of the summed axis.
//
// spec.h: Z_T (of x, w and bias), Z_Y (of results), Z_ACC (of sums), Z_BIAS (is there one).
#include "zc/device.cuh"
#include "abi/sparse_linear.h"
#include "zc/fused.cuh"
#include "spec.h"

// As op/sparse.h has them: sides of a tile, words of its places, elements of a piece.
enum { SIDE = 64, WORDS = 128, PIECE = 8, PIECES = 4 };

// What four neighbours from place k on count.
ZC_DEV Z_ACC four(const zc_sparse_linear_params &p, const Z_T *x, i64 col, i64 k) {
    const i64 tile = col / SIDE * (p.k / SIDE) + k / SIDE;
    const int row = (int)(col % SIDE), at = (int)(k % SIDE), stored = at / 2;
    const u32 word = ((const u32 *)p.places)[tile * WORDS + row / 16 * 32 + row % 8 * 4 + at / 16];
    const u32 places = word >> (row / 8 % 2 * 16 + at % 16);
    const Z_T *const w = (const Z_T *)p.w + ((tile * PIECES + stored / PIECE) * SIDE + row) * PIECE + stored % PIECE;
    return (Z_ACC)zc_get(w[0]) * (Z_ACC)zc_get(x[k + (places & 3)]) + (Z_ACC)zc_get(w[1]) * (Z_ACC)zc_get(x[k + (places >> 2 & 3)]);
}

ZC_KERNEL(0)(const __grid_constant__ zc_sparse_linear_params p) {
    zc_begin();
    for (i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x; at < p.m * p.n; at += (i64)gridDim.x * blockDim.x) {
        const i64 row = at / p.n, col = at - row * p.n;
        const Z_T *const x = (const Z_T *)p.x + row * p.k;
        Z_ACC sum = 0;
        for (i64 k = 0; k < p.k; k += 4) sum += four(p, x, col, k);
        if (Z_BIAS) sum += (Z_ACC)zc_get(((const Z_T *)p.bias)[col]);
        ((Z_Y *)p.y)[at] = zc_put<Z_Y>(zc_fused(p.fused, sum, at));
    }
}
