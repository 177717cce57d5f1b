// Sums as quantised results, as the reference has them: (sum + bias) * scale rounded to f64, then to the nearest integer, even
// at ties. f64 itself is fast on the GPUs that have these products (half of f32's rate on Hopper), conversions between it and
// integers are slow: what is added here has 1 as its last digit, so that an integer is a sum's last digits. Branches are slower
// still, as they keep elements from being computed side by side: where the scales are known to be small, there is none.
#pragma once
#include "zc/device.cuh"

constexpr f64 ZC_WIDE = 4503601774854144.0;  // 2^52 + 2^31
constexpr f64 ZC_WHOLE = 6755399441055744.0; // 1.5 2^52

// v + bias, exact; more: bias - ZC_WIDE.
ZC_DEV f64 zc_wide(i32 v, f64 more) { return zc_double(0x4330000000000000ull | ((u32)v ^ 0x80000000u)) + more; }
// rint(v), or if that has more than 32 bits a number of its sign beyond all bytes; `odd` for NaN.
ZC_DEV i32 zc_rounded(f64 v, i32 odd) {
    const u64 bits = zc_bits64(v + ZC_WHOLE);
    const i32 low = (i32)(u32)bits, high = (i32)(bits >> 32) - 0x43380000;
    if (high == low >> 31) return low;
    return v > 0 ? 1 << 20 : v < 0 ? -(1 << 20) : odd;
}
// rint(total * scale) + zero, which is a result when it is saturated; for NaN 0. SMALL: the product is less than 2^31.
template <bool SMALL> ZC_DEV i32 zc_requantised(f64 total, f64 scale, i32 zero) {
    const f64 v = zc_product64(total, scale);
    return SMALL ? (i32)(u32)zc_bits64(v + ZC_WHOLE) + zero : zc_rounded(v, -zero) + zero;
}
