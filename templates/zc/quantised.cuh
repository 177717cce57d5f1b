// Sums as quantised results. Conversions between f64 and integers are slow: what is added here has 1 as its last digit, so that
// an integer is a sum's last digits.
#pragma once
#include "zc/device.cuh"

// (f64)v.
ZC_DEV f64 zc_wide(i32 v) {
    return zc_double(0x4330000000000000ull | ((u32)v ^ 0x80000000u)) - 4503601774854144.0; // 2^52 + 2^31
}
// rint(v), or if that has more than 32 bits a number of its sign beyond all bytes; `odd` for NaN.
ZC_DEV i32 zc_rounded(f64 v, i32 odd) {
    const u64 bits = zc_bits64(v + 6755399441055744.0); // 1.5 2^52
    const i32 low = (i32)(u32)bits, high = (i32)(bits >> 32) - 0x43380000;
    if (high == low >> 31) return low;
    return v > 0 ? 1 << 20 : v < 0 ? -(1 << 20) : odd;
}
// rint(total * scale) + zero as a byte: saturates; NaN gives 0.
template <class Y> ZC_DEV Y zc_quantised(f64 total, f64 scale, i32 zero) {
    const i32 least = zc_traits<Y>::is_signed ? -128 - zero : -zero, most = least + 255;
    const i32 n = zc_rounded(zc_product64(total, scale), -zero);
    return (Y)((n < least ? least : n > most ? most : n) + zero);
}
