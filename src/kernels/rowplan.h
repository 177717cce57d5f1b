/* How threads share rows of neighbouring elements (templates/zc/rows.cuh). */
#ifndef ZC_KERNELS_ROWPLAN_H
#define ZC_KERNELS_ROWPLAN_H

#include "kernels/launch.h"

enum { ZC_ROW_WARPS = 4 }; /* warps, and rows, of a block when a warp has a row of its own */

/* Threads for a row of n: 32 (a warp) or a block. */
static inline int zc_row_lanes(int64_t n)
{
    return n <= 1024 ? 32 : n <= 8192 ? 256 : n <= 16384 ? 512 : 1024;
}
static inline uint32_t zc_row_block(int64_t n)
{
    return zc_row_lanes(n) == 32 ? 32 * ZC_ROW_WARPS : (uint32_t)zc_row_lanes(n);
}
static inline zc_dim3 zc_row_grid(int64_t rows, int64_t n)
{
    return (zc_dim3){zc_launch_blocks(rows, zc_row_lanes(n) == 32 ? ZC_ROW_WARPS : 1, 0), 1, 1};
}

#endif
