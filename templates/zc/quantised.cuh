// Sums as quantised results: (sum + bias) * scale rounded to the nearest integer, even at ties. f64 itself is fast on the GPUs that
// have these products (half of f32's rate on Hopper), conversions between it and integers are slow: what is added here has 1 as its
// last digit, so that an integer is a sum's last digits. Branches are slower still, as they keep elements from being computed side
// by side: where the scales are known to be small, there is none, and the product is rounded once. (The reference rounds it to f64
// first, which decides otherwise only where it is within that number's last digit of a tie.)
#pragma once
#include "zc/device.cuh"

constexpr f64 ZC_WIDE = 4503601774854144.0;  // 2^52 + 2^31
constexpr f64 ZC_WHOLE = 6755399441055744.0; // 1.5 2^52

// v + bias, exact; more: bias - ZC_WIDE.
ZC_DEV f64 zc_wide(i32 v, f64 more) { return zc_double(0x4330000000000000ull | ((u32)v ^ 0x80000000u)) + more; }
// rint(v), or if that has more than 31 bits a number of its sign beyond all bytes; `odd` for NaN.
ZC_DEV i32 zc_rounded(f64 v, i32 odd) {
    const u64 bits = zc_bits64(v + ZC_WHOLE);
    const i32 low = (i32)(u32)bits, high = (i32)(bits >> 32) - 0x43380000;
    if (high == low >> 30) return low;
    return v > 0 ? 1 << 20 : v < 0 ? -(1 << 20) : odd;
}
// rint(total * scale) + zero, which is a result when it is saturated; for NaN 0. SMALL: the product is less than 2^30.
template <bool SMALL> ZC_DEV i32 zc_requantised(f64 total, f64 scale, i32 zero) {
    if (SMALL) return (i32)(u32)zc_bits64(fma(total, scale, ZC_WHOLE)) + zero;
    return zc_rounded(zc_product64(total, scale), -zero) + zero;
}
// Sums of two bytes, y = rint(a x + (b other + c)) from the least y on. A byte in the last digits of 2^23 is a float without a
// conversion; signed bytes, which have no such place, count from -128 on.
struct zc_byte_sum {
    f32 a, b, c;
};
constexpr u32 ZC_ABOVE = 0x4B004B00u; // what stands above a byte, in both halves
template <class T> constexpr u32 ZC_TURNED = zc_traits<T>::is_signed ? 0x8080u : 0u; // counts two bytes from the least one on
template <class T> ZC_DEV f32 zc_byte_below(u32 bits) { return zc_float(bits) - (f32)(8388608 - ZC_LEAST_BYTE<T>); }
// Of two results before they are saturated to X, and two bytes of OTHER; above: ZC_ABOVE in a register.
template <class T, class X, class OTHER>
ZC_DEV u16 zc_byte_sums(const i32 (&x)[2], u32 other, const zc_byte_sum &sum, u32 above) {
    i32 y[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const f32 own = zc_byte_below<X>(zc_saturated_below(x[i] - ZC_LEAST_BYTE<X>, above));
        const f32 its = zc_byte_below<OTHER>(zc_permute(other ^ ZC_TURNED<OTHER>, above, 0x7440 + i));
        y[i] = zc_sum_rounded(own, its, sum.a, sum.b, sum.c);
    }
    return zc_saturated(u8(), y[0], y[1]) ^ ZC_TURNED<T>;
}
