// What the kernels of PackedLinear share: y = x w^T + bias, the matrix's elements (code - zero) *
// scale. With Z_NORM rows of x are normalised: by the root of their mean square, times gain.
//
// spec.h: Z_T (of x and bias), Z_Y (of results), Z_S (of scales), Z_ACC (of sums), Z_BITS (4 or 8),
// Z_SIGNED and Z_E2M1 (codes: integers, or floats of 4 bits), Z_ZERO, Z_BIAS and Z_NORM (are there
// zero points, a bias, gain), Z_GATED (zc_act of a product times another, eight columns of each in
// turn), Z_SUMMED (length of the summed axis), Z_BLOCK (codes of a scale).
#pragma once
#include "zc/device.cuh"
#include "abi/packed_linear.h"
#include "zc/fused.cuh"
#include "zc/packed.cuh"
#include "spec.h"

// Codes lie in pieces of 16 bytes, those of 16 columns side by side: [N/16][K/piece][16][piece]. At least 16 share a scale.
enum { ZC_PACKED_COLUMNS = 16, ZC_PACKED_BYTES = 16, ZC_PACKED_PIECE = 8 * ZC_PACKED_BYTES / Z_BITS, ZC_PACKED_LEAST = 16 };
#if Z_SIGNED
typedef i8 zc_packed_zero_type;
#else
typedef u8 zc_packed_zero_type;
#endif

// The number that a code stands for, before zero point and scale.
ZC_DEV Z_ACC zc_packed_number(u32 code) {
    if (Z_E2M1) return (Z_ACC)zc_item<f4e2m1>::get(code);
    const u32 sign = Z_SIGNED ? 1u << (Z_BITS - 1) : 0u;
    return (Z_ACC)(i32)((code ^ sign) - sign);
}
ZC_DEV Z_ACC zc_packed_zero(const zc_packed_linear_params &p, i64 at) {
    return Z_ZERO ? (Z_ACC)((const zc_packed_zero_type *)p.zero)[at] : (Z_ACC)0;
}
enum { ZC_PACKED_GATED = 8 };
// Of a column of results, the matrix's; the results' columns.
ZC_DEV i64 zc_packed_matrix_col(i64 col) {
    return Z_GATED ? col / ZC_PACKED_GATED * ZC_PACKED_COLUMNS + col % ZC_PACKED_GATED : col;
}
ZC_DEV i64 zc_packed_cols(const zc_packed_linear_params &p) { return Z_GATED ? p.n / 2 : p.n; }
ZC_DEV Z_ACC zc_packed_gate(Z_ACC y, Z_ACC other) {
#if Z_GATED
    return (Z_ACC)zc_act(y) * other;
#else
    return y;
#endif
}
ZC_DEV Z_ACC zc_packed_bias(const zc_packed_linear_params &p, i64 col) {
    return Z_BIAS ? (Z_ACC)zc_get(((const Z_T *)p.bias)[col]) : (Z_ACC)0;
}
