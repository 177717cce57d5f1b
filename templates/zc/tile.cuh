// A plain matrix product inside a kernel of another family: one 64 x 64 tile a block of 256 threads.
#pragma once
#include "zc/device.cuh"

// done(row, col, sum) for every element of the tile at (row0, col0) of a b; a is [rows][depth], b [depth][cols], or
// with BT [cols][depth]. Sums are in T's compute type.
template <class T, bool BT, class DONE>
ZC_DEV void zc_tile_product(const void *a, const void *b, i64 rows, i64 cols, i64 depth, i64 row0, i64 col0,
                            DONE done) {
    typedef zc_compute<T> real;
    __shared__ real as[16][68], bs[16][68];
    const int t = (int)threadIdx.x, ty = t / 16, tx = t % 16;
    real sum[4][4] = {};
    for (i64 d0 = 0; d0 < depth; d0 += 16) {
        const int line = t / 4, d = t % 4 * 4;
#pragma unroll
        for (int v = 0; v < 4; v++) {
            const bool inside = d0 + d + v < depth;
            as[d + v][line] = inside && row0 + line < rows ? zc_load<T>(a, (row0 + line) * depth + d0 + d + v) : (real)0;
            if (BT)
                bs[d + v][line] =
                    inside && col0 + line < cols ? zc_load<T>(b, (col0 + line) * depth + d0 + d + v) : (real)0;
            else
                bs[ty][tx * 4 + v] = d0 + ty < depth && col0 + tx * 4 + v < cols
                                         ? zc_load<T>(b, (d0 + ty) * cols + col0 + tx * 4 + v)
                                         : (real)0;
        }
        zc_sync();
#pragma unroll
        for (int k = 0; k < 16; k++) {
            real x[4], y[4];
#pragma unroll
            for (int v = 0; v < 4; v++) {
                x[v] = as[k][ty * 4 + v];
                y[v] = bs[k][tx * 4 + v];
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sum[i][j] += x[i] * y[j];
        }
        zc_sync();
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const i64 row = row0 + ty * 4 + i, col = col0 + tx * 4 + j;
            if (row < rows && col < cols) done(row, col, sum[i][j]);
        }
}
