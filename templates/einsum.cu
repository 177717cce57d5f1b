// A general contraction: out[outer] = sum over inner of the product of all inputs.
//
// spec.h: Z_T (element type), Z_ACC (type of products and sums; of integers unsigned, so that they wrap), Z_NIN.
// Entries: 0 one thread an element; 1 one block an element.
#include "zc/device.cuh"
#include "abi/einsum.h"
#include "spec.h"

struct offsets {
    i64 at[Z_NIN];
};

ZC_DEV void add_outer(const zc_einsum_params &p, i64 rest, offsets &off) {
    for (int d = p.outer_rank - 1; d >= 0; d--) {
        const i64 outer = d ? rest / p.outer[d] : 0, at = rest - outer * p.outer[d];
#pragma unroll
        for (int i = 0; i < Z_NIN; i++) off.at[i] += at * p.outer_stride[i][d];
        rest = outer;
    }
}
ZC_DEV void add_row(const zc_einsum_params &p, i64 rest, offsets &off) {
    for (int d = p.inner_rank - 2; d >= 0; d--) {
        const i64 outer = d ? rest / p.inner[d] : 0, at = rest - outer * p.inner[d];
#pragma unroll
        for (int i = 0; i < Z_NIN; i++) off.at[i] += at * p.inner_stride[i][d];
        rest = outer;
    }
}

// Rows `row`, `row` + row_step, ... of the inner loops; in each the terms `term`, `term` + term_step, ...
ZC_DEV Z_ACC sum_terms(const zc_einsum_params &p, const offsets &start, i64 row, i64 row_step, i64 term,
                       i64 term_step) {
    const int last = p.inner_rank - 1;
    Z_ACC sum = 0;
    for (; row < p.rows; row += row_step) {
        offsets off = start;
        add_row(p, row, off);
        Z_ACC part = 0;
        for (i64 t = term; t < p.inner[last]; t += term_step) {
            Z_ACC product = (Z_ACC)zc_load<Z_T>(p.in[0], off.at[0] + t * p.inner_stride[0][last]);
#pragma unroll
            for (int i = 1; i < Z_NIN; i++)
                product *= (Z_ACC)zc_load<Z_T>(p.in[i], off.at[i] + t * p.inner_stride[i][last]);
            part += product;
        }
        sum += part;
    }
    return sum;
}

ZC_KERNEL(0)(const __grid_constant__ zc_einsum_params p) {
    zc_begin();
    for (i64 at = zc_thread(); at < p.total; at += zc_threads()) {
        offsets off = {};
        add_outer(p, at, off);
        zc_save<Z_T>(p.out, at, sum_terms(p, off, 0, 1, 0, 1));
    }
}

ZC_KERNEL(1)(const __grid_constant__ zc_einsum_params p) {
    zc_begin();
    ZC_DYNAMIC_SMEM(smem);
    Z_ACC *const part = (Z_ACC *)smem; // one a warp
    const bool split_terms = p.inner[p.inner_rank - 1] >= blockDim.x;
    for (i64 at = blockIdx.x; at < p.total; at += gridDim.x) {
        offsets off = {};
        add_outer(p, at, off);
        Z_ACC sum = split_terms ? sum_terms(p, off, 0, 1, threadIdx.x, blockDim.x)
                                : sum_terms(p, off, threadIdx.x, blockDim.x, 0, 1);
#pragma unroll
        for (int by = 16; by; by /= 2) sum += zc_shfl_xor(sum, by);
        if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
        zc_sync();
        if (threadIdx.x == 0) {
            for (int w = 1; w < (int)blockDim.x / 32; w++) sum += part[w];
            zc_save<Z_T>(p.out, at, sum);
        }
        zc_sync();
    }
}
