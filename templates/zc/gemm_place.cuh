// Which tile of a product a block has.
#pragma once
#include "zc/device.cuh"

// First row and column of this block's tile: eight tiles below each other before the next ones to the right, so that
// neighbouring blocks share operands in the cache.
struct zc_gemm_tile {
    i64 row, col;
};
ZC_DEV zc_gemm_tile zc_gemm_place(i64 m, i64 n, int height, int width) {
    const i64 down = (m + height - 1) / height, across = (n + width - 1) / width;
    const i64 group = blockIdx.x / (8 * across), at = blockIdx.x - group * 8 * across;
    const i64 rows = down - group * 8 < 8 ? down - group * 8 : 8;
    return {(group * 8 + at % rows) * height, at / rows * width};
}
