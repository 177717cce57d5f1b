// What the kernels of PackedLinear share: y = x w^T + bias, the matrix's elements (code - zero) *
// scale. With Z_NORM rows of x are normalised: by the root of their mean square, times gain.
//
// spec.h: Z_T (of x and bias), Z_Y (of results), Z_S (of scales), Z_ACC (of sums), Z_BITS (4 or 8)
// and Z_SIGNED (codes), Z_ZERO, Z_BIAS and Z_NORM (are there zero points, a bias, gain), Z_SUMMED (length of the
// summed axis), Z_BLOCK (codes of a scale).
#pragma once
#include "zc/device.cuh"
#include "abi/packed_linear.h"
#include "zc/fused.cuh"
#include "spec.h"

// Codes lie in pieces of 16 bytes, those of 16 columns side by side: [N/16][K/piece][16][piece].
enum { ZC_PACKED_COLUMNS = 16, ZC_PACKED_BYTES = 16, ZC_PACKED_PIECE = 8 * ZC_PACKED_BYTES / Z_BITS };
#if Z_SIGNED
typedef i8 zc_packed_zero_type;
#else
typedef u8 zc_packed_zero_type;
#endif

ZC_DEV Z_ACC zc_packed_zero(const zc_packed_linear_params &p, i64 at) {
    return Z_ZERO ? (Z_ACC)((const zc_packed_zero_type *)p.zero)[at] : (Z_ACC)0;
}
ZC_DEV Z_ACC zc_packed_bias(const zc_packed_linear_params &p, i64 col) {
    return Z_BIAS ? (Z_ACC)zc_get(((const Z_T *)p.bias)[col]) : (Z_ACC)0;
}
