// Determinants of square matrices: elimination with the largest pivot of each column, in f64.
//
// spec.h: Z_T (type).
#include "zc/device.cuh"
#include "abi/det.h"
#include "spec.h"

// A row and how good a pivot it has; a NaN on the diagonal stays where it is.
struct pivot {
    f64 size;
    i64 row;
    ZC_MEMBER pivot join(pivot b) const { return b.size > size || (b.size == size && b.row < row) ? b : *this; }
};

// The best of the block's threads. Shared memory: one pivot a warp.
ZC_DEV pivot best_of(pivot v) {
    ZC_DYNAMIC_SMEM(smem);
    pivot *parts = (pivot *)smem;
    for (int mask = 1; mask < 32; mask *= 2) v = v.join(pivot{zc_shfl_xor(v.size, mask), zc_shfl_xor(v.row, mask)});
    zc_sync();
    if (threadIdx.x % 32u == 0) parts[threadIdx.x / 32u] = v;
    zc_sync();
    v = parts[0];
    for (u32 w = 1; w < blockDim.x / 32u; w++) v = v.join(parts[w]);
    return v;
}

ZC_DEV i64 pivot_row(const f64 *a, i64 n, i64 c) {
    pivot v = {-1.0, n};
    for (i64 r = c + threadIdx.x; r < n; r += blockDim.x) {
        const f64 size = zx_abs(a[r * n + c]);
        v = v.join(pivot{zc_isnan(size) ? (r == c ? zc_inf64() : -1.0) : size, r});
    }
    return best_of(v).row;
}

ZC_DEV f64 determinant(f64 *a, i64 n) {
    f64 det = 1;
    for (i64 c = 0; c < n; c++) {
        const i64 best = pivot_row(a, n, c);
        const f64 value = a[best * n + c];
        det *= value;
        if (value == 0) return 0;
        if (best != c) {
            det = -det;
            zc_sync();
            for (i64 i = c + threadIdx.x; i < n; i += blockDim.x) {
                const f64 t = a[best * n + i];
                a[best * n + i] = a[c * n + i];
                a[c * n + i] = t;
            }
        }
        zc_sync();
        const i64 left = n - c - 1;
        for (i64 e = threadIdx.x; e < left * left; e += blockDim.x) {
            const i64 r = c + 1 + e / left, i = c + 1 + e % left;
            a[r * n + i] -= a[r * n + c] / value * a[c * n + i];
        }
        zc_sync();
    }
    return det;
}

ZC_KERNEL(0)(const __grid_constant__ zc_det_params p) {
    zc_begin();
    f64 *a = (f64 *)p.work + (i64)blockIdx.x * p.n * p.n;
    for (i64 m = blockIdx.x; m < p.count; m += gridDim.x) {
        zc_sync();
        for (i64 e = threadIdx.x; e < p.n * p.n; e += blockDim.x) a[e] = (f64)zc_load<Z_T>(p.in, m * p.n * p.n + e);
        zc_sync();
        const f64 det = determinant(a, p.n);
        if (threadIdx.x == 0) zc_save<Z_T>(p.out, m, det);
    }
}
