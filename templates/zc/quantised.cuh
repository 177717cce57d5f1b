// Sums as quantised results, as the reference has them: (sum + bias) * scale rounded to f64, then to the nearest integer, even
// at ties. f64 is slow, and conversions between it and integers are: what is added here has 1 as its last digit, so that an
// integer is a sum's last digits. Where f32 leaves no doubt, its result is the same (zc_quick); elements are computed side by
// side, without a branch for each.
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
// rint(total * scale) + zero, which is a result when it is saturated; for NaN 0.
ZC_DEV i32 zc_requantised(f64 total, f64 scale, i32 zero) { return zc_rounded(zc_product64(total, scale), -zero) + zero; }

// A scale in f32, for sums that are at most `most` with their bias; NaN, by which nothing is sure, where they or what they make
// may be too large for zc_quick.
ZC_DEV f32 zc_quick_scale(f64 scale, f64 most) {
    return most < 2147483648.0 && most * (scale < 0 ? -scale : scale) < 4194304.0 ? (f32)scale : zc_nan32();
}
// The same of a sum with its bias. A sum and a scale as f32 are off by 2^-24 of them, so that a product below 384, beyond which all
// bytes are saturated, is off by 384 2^-23; what lies farther than that from a tie is rounded as it should be. Else it is not sure.
ZC_DEV i32 zc_quick(i32 sum, f32 scale, i32 zero, bool &sure) {
    const f32 v = (f32)sum, whole = fmaf(v, scale, 12582912.0f); // 1.5 2^23, whose last digit counts 1
    sure = fabsf(fmaf(v, scale, 12582912.0f - whole)) <= 0.5f - 0x1.9p-15f && sure;
    return (i32)(zc_bits(whole) - 0x4B400000u) + zero;
}
