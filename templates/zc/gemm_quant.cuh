// What the quantised matrix products share: batches, the stores, and a kernel for all 8-bit types.
//
// spec.h: Z_A, Z_B, Z_Y (element types), Z_TB (is B stored N x K), Z_ZERO_A, Z_ZERO_B (are there zero points), Z_FLOAT
// (is A or B of floats: sums in f64; else sums are exact), and for results that are quantised again Z_A_SCALE,
// Z_B_SCALE, Z_Y_SCALE (types), Z_ROW_SCALES (has A more than one scale), Z_ZERO_Y (has the result a zero point), Z_Y_FLOAT (8-bit floats)
// and Z_SMALL_SCALES (sums of 32 bits are less than 2^30 when they are scaled); Z_BIAS: columns have one.
#pragma once
#include "zc/device.cuh"
#include "abi/gemm_quant.h"
#include "spec.h"
#include "zc/quantised.cuh"

// Element offsets of one item of the batch.
struct zc_gq_item {
    i64 at[ZC_GQ_OPERANDS];
    i64 y;
};
ZC_DEV zc_gq_item zc_gq_batch(const zc_gemm_quant_params &p, i64 item) {
    zc_gq_item r = {};
    i64 rest = item;
    for (int d = p.batch_rank - 1; d >= 0; d--) {
        const i64 outer = d ? rest / p.batch_dims[d] : 0, at = rest - outer * p.batch_dims[d];
#pragma unroll
        for (int i = 0; i < ZC_GQ_OPERANDS; i++) r.at[i] += at * p.stride[i][d];
        rest = outer;
    }
    r.y = item * p.m * p.n;
    return r;
}

#if Z_FLOAT
typedef f64 zc_gq_number;
typedef f64 zc_gq_sum;
#else
typedef i32 zc_gq_number;
typedef i64 zc_gq_sum;
#endif

ZC_DEV zc_gq_number zc_gq_zero_a(const zc_gemm_quant_params &p, const zc_gq_item &item, i64 row) {
#if Z_ZERO_A
    return (zc_gq_number)zc_load<Z_A>(p.in[ZC_GQ_A_ZERO], item.at[ZC_GQ_A_ZERO] + row * p.line[ZC_GQ_A_ZERO]);
#else
    return 0;
#endif
}
ZC_DEV zc_gq_number zc_gq_zero_b(const zc_gemm_quant_params &p, const zc_gq_item &item, i64 col) {
#if Z_ZERO_B
    return (zc_gq_number)zc_load_factor<Z_B>(p.in[ZC_GQ_B_ZERO], item.at[ZC_GQ_B_ZERO] + col * p.line[ZC_GQ_B_ZERO]);
#else
    return 0;
#endif
}

#ifdef Z_Y_SCALE
#if Z_Y_FLOAT
typedef f64 zc_gq_y_zero;
#else
typedef i32 zc_gq_y_zero;
#endif
ZC_DEV zc_gq_y_zero zc_gq_zero_y(const zc_gemm_quant_params &p) {
    return Z_ZERO_Y ? (zc_gq_y_zero)zc_load_factor<Z_Y>(p.y_zero, 0) : 0;
}
#endif

#ifdef Z_Y_SCALE
ZC_DEV f64 zc_gq_rounded(f64 scale) { return Z_Y_FLOAT ? scale : zc_requant_scale(scale); }
#endif
// What sums of a row and column are multiplied by, where results are quantised again.
ZC_DEV f64 zc_gq_scale(const zc_gemm_quant_params &p, const zc_gq_item &item, i64 row, i64 col) {
#ifdef Z_Y_SCALE
    const i64 at_a = item.at[ZC_GQ_A_SCALE] + (Z_ROW_SCALES ? row * p.line[ZC_GQ_A_SCALE] : 0);
    const f64 a = (f64)zc_load<Z_A_SCALE>(p.in[ZC_GQ_A_SCALE], at_a);
    const f64 b = (f64)zc_load<Z_B_SCALE>(p.in[ZC_GQ_B_SCALE], item.at[ZC_GQ_B_SCALE] + col * p.line[ZC_GQ_B_SCALE]);
    return zc_gq_rounded(a * b / (f64)zc_load<Z_Y_SCALE>(p.y_scale, 0));
#else
    return 1;
#endif
}
// What a column has of its own, as it stands in memory: asked for long before it is needed.
struct zc_gq_own {
#ifdef Z_Y_SCALE
    zc_compute<Z_B_SCALE> scale;
#endif
#ifdef Z_BIAS
    i32 bias;
#endif
    zc_gq_number zero;
};
ZC_DEV zc_gq_own zc_gq_ask(const zc_gemm_quant_params &p, const zc_gq_item &item, i64 col) {
    zc_gq_own own;
#ifdef Z_Y_SCALE
    const i64 at = item.at[ZC_GQ_B_SCALE] + col * p.line[ZC_GQ_B_SCALE];
    own.scale = zc_load_factor<Z_B_SCALE>(p.in[ZC_GQ_B_SCALE], at);
#endif
#ifdef Z_BIAS
    own.bias = zc_load_factor<i32>(p.bias, col);
#endif
    own.zero = zc_gq_zero_b(p, item, col);
    return own;
}
ZC_DEV i32 zc_gq_bias(const zc_gq_own &own) {
#ifdef Z_BIAS
    return own.bias;
#else
    return 0;
#endif
}
// What all columns share, where A has one scale: its own, and the result's scale and zero point.
struct zc_gq_shared {
#ifdef Z_Y_SCALE
    f64 a, y, reciprocal; // of y
    zc_gq_y_zero zero;
#endif
};
ZC_DEV zc_gq_shared zc_gq_share(const zc_gemm_quant_params &p) {
#ifdef Z_Y_SCALE
    const f64 y = (f64)zc_load_factor<Z_Y_SCALE>(p.y_scale, 0);
    return {(f64)zc_load_factor<Z_A_SCALE>(p.in[ZC_GQ_A_SCALE], 0), y, 1 / y, zc_gq_zero_y(p)};
#else
    return {};
#endif
}
ZC_DEV f64 zc_gq_scale(const zc_gq_shared &shared, const zc_gq_own &own) {
#ifdef Z_Y_SCALE
    return zc_gq_rounded(shared.a * (f64)own.scale / shared.y);
#else
    return 1;
#endif
}

#ifdef Z_Y_SCALE
#if Z_Y_FLOAT
template <class SUM> ZC_DEV Z_Y zc_gq_quantised(SUM sum, f64 scale, f64 zero) {
    return zc_mini<Z_Y>((f32)((f64)sum * scale + zero), true);
}
#else
ZC_DEV i32 zc_gq_requantised(i32 sum, f64 more, f64 scale, i32 zero) {
    return zc_requantised<Z_SMALL_SCALES>(zc_wide(sum, more), scale, zero);
}
ZC_DEV Z_Y zc_gq_quantised(i32 sum, f64 scale, i32 zero) {
    return (Z_Y)zc_saturated(Z_Y(), zc_gq_requantised(sum, -ZC_WIDE, scale, zero), 0);
}
ZC_DEV Z_Y zc_gq_quantised(zc_gq_sum sum, f64 scale, i32 zero) {
    return (Z_Y)zc_saturated(Z_Y(), zc_requantised<false>((f64)sum, scale, zero), 0);
}
#endif
template <class SUM> ZC_DEV Z_Y zc_gq_result(const zc_gemm_quant_params &p, SUM sum, f64 scale) {
    return zc_gq_quantised(sum, scale, zc_gq_zero_y(p));
}
#else
template <class SUM> ZC_DEV Z_Y zc_gq_result(const zc_gemm_quant_params &, SUM sum, f64) { return zc_put<Z_Y>(sum); } // wraps
#endif
template <class SUM>
ZC_DEV void zc_gq_save(const zc_gemm_quant_params &p, const zc_gq_item &item, i64 row, i64 col, SUM sum) {
    ((Z_Y *)p.y)[item.y + row * p.n + col] = zc_gq_result(p, sum, zc_gq_scale(p, item, row, col));
}

// Adds the four bytes of x to sum.
ZC_DEV u32 zc_gq_add_bytes(u32 x, u32 sum, bool is_signed) {
    return is_signed ? (u32)zc_dp4a((i32)x, 0x01010101, (i32)sum) : zc_dp4a_uu(x, 0x01010101u, sum);
}

// One element a thread, operands through tiles in shared memory.
ZC_DEV void zc_gq_general(const zc_gemm_quant_params &p) {
    constexpr int SIDE = ZC_GQ_SIDE, LD = SIDE + 1;
    ZC_DYNAMIC_SMEM(smem);
    zc_gq_number *const a = (zc_gq_number *)smem, *const b = a + SIDE * LD; // [line][depth]
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    const i64 across = (p.n + SIDE - 1) / SIDE;
    const i64 row0 = blockIdx.x / across * SIDE, col0 = blockIdx.x % across * SIDE;
    const i64 row = row0 + y, col = col0 + x;
    for (i64 i = blockIdx.z; i < p.batch; i += gridDim.z) {
        const zc_gq_item item = zc_gq_batch(p, i);
        const i64 b_line = col0 + (Z_TB ? y : x);
        const zc_gq_number za = row < p.m ? zc_gq_zero_a(p, item, row) : 0;
        const zc_gq_number zb = b_line < p.n ? zc_gq_zero_b(p, item, b_line) : 0;
        zc_gq_sum sum = 0;
        for (i64 k = 0; k < p.k; k += SIDE) {
            const i64 b_depth = k + (Z_TB ? x : y);
            const i64 from_a = item.at[ZC_GQ_A] + row * p.a_ld + k + x;
            const i64 from_b = item.at[ZC_GQ_B] + (Z_TB ? b_line * p.b_ld + b_depth : b_depth * p.b_ld + b_line);
            a[y * LD + x] = row < p.m && k + x < p.k ? (zc_gq_number)zc_load<Z_A>(p.in[ZC_GQ_A], from_a) - za : 0;
            b[Z_TB ? y * LD + x : x * LD + y] =
                b_line < p.n && b_depth < p.k ? (zc_gq_number)zc_load<Z_B>(p.in[ZC_GQ_B], from_b) - zb : 0;
            zc_sync();
#pragma unroll
            for (int d = 0; d < SIDE; d++) sum += (zc_gq_sum)(a[y * LD + d] * b[x * LD + d]);
            zc_sync();
        }
        if (row < p.m && col < p.n) zc_gq_save(p, item, row, col, sum);
    }
}
