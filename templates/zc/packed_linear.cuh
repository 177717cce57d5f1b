// What the kernels of PackedLinear share: y = x w^T + bias, the matrix's elements (code - zero) *
// scale. With Z_NORM rows of x are normalised: by the root of their mean square, times gain.
//
// spec.h: see zc/packed_codes.cuh; Z_T (of x and bias), Z_Y (of results), Z_BIAS, Z_NORM and
// Z_ALPHA (are there a bias, gain, an alpha that is not 1), Z_GATED (zc_act of a product times another, eight columns of each in turn).
#pragma once
#include "zc/device.cuh"
#include "abi/packed_linear.h"
#include "zc/fused.cuh"
#include "zc/packed_codes.cuh"

// Of a column of results, the matrix's; the results' columns.
ZC_DEV i64 zc_packed_matrix_col(i64 col) {
    return Z_GATED ? col / ZC_PACKED_GATED * ZC_PACKED_COLUMNS + col % ZC_PACKED_GATED : col;
}
ZC_DEV i64 zc_packed_cols(const zc_packed_linear_params &p) { return Z_GATED ? p.n / 2 : p.n; }
ZC_DEV Z_ACC zc_packed_sum(const zc_packed_linear_params &p, Z_ACC sum) { return Z_ALPHA ? sum * (Z_ACC)p.alpha : sum; }
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
