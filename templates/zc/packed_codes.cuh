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
// Columns of one of two matrices, beside those of the other.
enum { ZC_PACKED_GATED = 8 };
