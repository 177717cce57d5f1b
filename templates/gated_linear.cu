// GatedLinear, for any architecture: a thread for each element of the result.
//
// spec.h: see zc/gemm.cuh.
#include "zc/gemm.cuh"
#include "abi/gated_linear.h"

ZC_DEV f32 product(const zc_gemm_params &p, i64 row, const Z_T *b) {
    const Z_T *const a = (const Z_T *)p.a + row * p.a_ld;
    f32 sum = 0;
    for (i64 k = 0; k < p.k; k++) sum += zc_get(a[k]) * zc_get(b[k]);
    return sum;
}

ZC_KERNEL(0)(const __grid_constant__ zc_gated_linear_params p) {
    zc_begin();
    const zc_gemm_item item = zc_gemm_batch(p.g, 0);
    zc_gemm_item gate = item;
    gate.c = (const Z_C *)p.gate_c;
    for (i64 i = zc_thread(); i < p.g.m * p.g.n; i += zc_threads()) {
        const i64 row = i / p.g.n, col = i - row * p.g.n, line = col * p.g.b_ld;
        const f32 first = zc_gemm_value(p.g, item, row, col, product(p.g, row, item.b + line));
        const f32 second = zc_gemm_value(p.g, gate, row, col, product(p.g, row, (const Z_T *)p.gate + line));
        item.y[row * p.g.y_ld + col] = zc_put<Z_Y>(zc_epilogue(first) * second);
    }
}
