// PackedLinear of many rows on Hopper: entry 2 makes floats of the codes, entry 3 normalises rows, and entry 0 multiplies them, as
// it does those of Linear and GatedLinear.
//
// spec.h: see gemm_sm90.cu and zc/packed_codes.cuh.
#include "gemm_sm90.cu"
#include "zc/packed_codes.cuh"
#include "abi/packed_dense_sm90.h"

// A thread has a piece of codes of a column at a time. What is finite stays so.
ZC_KERNEL(2)(const __grid_constant__ zc_packed_unpack_params p) {
    enum { PIECES = Z_SUMMED / ZC_PACKED_PIECE, AT_ONCE = 8 };
    zc_begin();
    for (i64 i = zc_thread(); i < p.pieces; i += zc_threads()) {
        const i64 group = i / ZC_PACKED_COLUMNS / PIECES, k = i / ZC_PACKED_COLUMNS % PIECES * ZC_PACKED_PIECE;
        const int column = (int)(i % ZC_PACKED_COLUMNS);
        const bool second = p.second && column >= ZC_PACKED_GATED;
        const i64 row = p.second ? group * ZC_PACKED_GATED + column % ZC_PACKED_GATED : group * ZC_PACKED_COLUMNS + column;
        const zc_vec<u8, ZC_PACKED_BYTES> codes = ((const zc_vec<u8, ZC_PACKED_BYTES> *)p.w)[i];
        Z_T *const to = (Z_T *)(second ? p.second : p.first) + row * Z_SUMMED + k;
        f32 scale = 0, zero = 0;
#pragma unroll
        for (int e = 0; e < ZC_PACKED_PIECE; e += AT_ONCE) {
            zc_vec<Z_T, AT_ONCE> out;
            if (e % ZC_PACKED_LEAST == 0) {
                const i64 by = zc_packed_block(group, k + e, column);
                scale = (f32)zc_load<Z_S>(p.scale, by);
                zero = zc_packed_zero(p.zero, by);
            }
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++) {
                const f32 number = zc_packed_number(zc_packed_code(codes.v, e + j));
                out.v[j] = zc_put<Z_T>(zc_within((number - zero) * scale * p.alpha, p.most));
            }
            *(zc_vec<Z_T, AT_ONCE> *)(to + e) = out;
        }
    }
}

// A warp has a row.
ZC_KERNEL(3)(const __grid_constant__ zc_packed_rows_params p) {
    enum { NEAR = 8 };
    typedef zc_vec<Z_T, NEAR> some;
    zc_begin();
    const i64 row = (i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= p.m) return;
    const some *const x = (const some *)((const Z_T *)p.x + row * Z_SUMMED), *const gain = (const some *)p.gain;
    some *const to = (some *)((Z_T *)p.to + row * Z_SUMMED);
    f32 squares = 0;
    for (int i = threadIdx.x % 32; i < Z_SUMMED / NEAR; i += 32)
#pragma unroll
        for (int j = 0; j < NEAR; j++) squares += zc_get(x[i].v[j]) * zc_get(x[i].v[j]);
#pragma unroll
    for (int by = 16; by; by /= 2) squares += zc_shfl_xor(squares, by);
    const f32 counts = zx_rsqrt(squares / Z_SUMMED + p.epsilon);
    for (int i = threadIdx.x % 32; i < Z_SUMMED / NEAR; i += 32) {
        some out;
#pragma unroll
        for (int j = 0; j < NEAR; j++) out.v[j] = zc_put<Z_T>(zc_get(x[i].v[j]) * counts * zc_get(gain[i].v[j]));
        to[i] = out;
    }
}
