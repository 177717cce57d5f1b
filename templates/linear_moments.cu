// LinearMoments, for any architecture: a warp has 64 columns of a row.
//
// spec.h: see zc/gemm.cuh and zc/row_moments.cuh.
#include "zc/row_moments.cuh"

ZC_DEV f32 product(const zc_gemm_params &p, i64 row, i64 col) {
    const Z_T *const a = (const Z_T *)p.a + row * p.a_ld, *const b = (const Z_T *)p.b + (Z_TB ? col * p.b_ld : col);
    f32 sum = 0;
    for (i64 k = 0; k < p.k; k++) sum += zc_get(a[k]) * zc_get(b[k * (Z_TB ? 1 : p.b_ld)]);
    return sum;
}

ZC_KERNEL(0)(const __grid_constant__ zc_linear_moments_params p) {
    zc_begin();
    constexpr int V = ZC_MOMENTS_PART / 32;
    const zc_gemm_item item = zc_gemm_batch(p.g, 0);
    const i64 parts = (Z_N + ZC_MOMENTS_PART - 1) / ZC_MOMENTS_PART;
    for (i64 i = zc_thread() / 32; i < p.g.m * parts; i += zc_threads() / 32) {
        const i64 row = i / parts, col = i % parts * ZC_MOMENTS_PART + threadIdx.x % 32 * V;
        zc_moments_cells<1, 32> cells;
        f32 plain[V] = {};
        cells.load_rows(p.moments, row);
        cells.join(p.moments);
        for (int e = 0; e < V && col + e < Z_N; e++) {
            zc_moments_columns_of<1> columns;
            columns.load(p.moments, col + e);
            cells.load_skip(p.moments, row, col + e);
            f32 v = cells.product(columns, 0, product(p.g, row, col + e));
            v = cells.plus_skip(columns, 0, zc_gemm_value(p.g, item, row, col + e, v));
            plain[e] = zc_get(zc_put<Z_T>(v));
            item.y[row * Z_N + col + e] = zc_put<Z_Y>(zc_fused(p.g.fused, v, row * Z_N + col + e));
        }
        zc_save_moments<V, 32>(p.moments, row, col, (int)(Z_N - col), plain);
    }
}
