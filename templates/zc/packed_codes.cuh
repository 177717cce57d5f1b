// Matrices of codes as PackedLinear has them.
//
// spec.h: Z_S (type of scales), Z_ACC (of numbers), Z_BITS (4 or 8), Z_SIGNED and Z_E2M1 (codes: integers, or floats of 4 bits),
// Z_ZERO (are there zero points), Z_SUMMED (length of the summed axis), Z_BLOCK (codes of a scale).
#pragma once
#include "zc/device.cuh"
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
ZC_DEV u32 zc_packed_code(const u8 *piece, int i) { return Z_BITS == 8 ? piece[i] : piece[i / 2] >> i % 2 * 4 & 15u; }
// Where the scale and the zero point of place k of a column stand, one of a group of 16.
ZC_DEV i64 zc_packed_block(i64 group, i64 k, int column) {
    return (group * (Z_SUMMED / Z_BLOCK) + k / Z_BLOCK) * ZC_PACKED_COLUMNS + column;
}
ZC_DEV Z_ACC zc_packed_zero(const void *zero, i64 at) {
    return Z_ZERO ? (Z_ACC)((const zc_packed_zero_type *)zero)[at] : (Z_ACC)0;
}
// Columns of one of two matrices, beside those of the other.
enum { ZC_PACKED_GATED = 8 };
