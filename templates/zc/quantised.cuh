// Sums as quantised results: (sum + bias) * scale rounded to the nearest integer, even at ties. f64 itself is fast on the GPUs that
// have these products (half of f32's rate on Hopper), conversions between it and integers are slow: what is added here has 1 as its
// last digit, so that an integer is a sum's last digits. Branches are slower still, as they keep elements from being computed side
// by side: where the scales are known to be small, there is none, and the product is rounded once. (The reference rounds it to f64
// first, which decides otherwise only where it is within that number's last digit of a tie.)
#pragma once
#include "zc/device.cuh"

// Scales, zero points and biases. Constants of the plan (Z_SCALES_CONSTANT) may be read before the kernel in front has ended.
#ifdef Z_SCALES_CONSTANT
constexpr bool ZC_SCALES_CONSTANT = true;
#else
constexpr bool ZC_SCALES_CONSTANT = false;
#endif
template <class T> ZC_DEV zc_compute<T> zc_load_factor(const void *p, i64 at) {
    if constexpr (ZC_SCALES_CONSTANT) return zc_load_constant<T>(p, at);
    return zc_load<T>(p, at);
}

constexpr f64 ZC_WIDE = 4503601774854144.0;  // 2^52 + 2^31
constexpr f64 ZC_WHOLE = 6755399441055744.0; // 1.5 2^52

// See op/requant.h.
constexpr f64 ZC_REQUANT_ONE = 1099511627776.0; // 2^40
ZC_DEV f64 zc_requant_scale(f64 scale) {
    const f64 units = scale * ZC_REQUANT_ONE;
    if (!(units >= 65536.0 && units < ZC_REQUANT_ONE / 4) || (units == (f64)(i64)units && (i64)units % 256 == 0)) return scale;
    return (f64)((i64)units | 1) / ZC_REQUANT_ONE;
}

// x / y, rounded to nearest, of normal numbers whose quotient is one, without branches: a quotient that is off by less than its
// last digit is rounded as the exact one is by what is left of it (Markstein), and the first one is off by less than two.
ZC_DEV f64 zc_quotient(f64 x, f64 y, f64 reciprocal) {
    f64 q = x * reciprocal;
#pragma unroll
    for (int i = 0; i < 2; i++) q = fma(fma(-q, y, x), reciprocal, q);
    return q;
}
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
// The same by whole numbers, where all scales are odd multiples of 2^-40: 256ths of a result, in the upper half of
// sum * scale + more. WORDS: of scales, 2 where some have more than 31 bits.
template <int WORDS> struct zc_whole_scale {
    zc_vec<i32, WORDS> scale;
    i64 more;
};
// Of a scale that is not rounded yet.
template <int WORDS> ZC_DEV zc_whole_scale<WORDS> zc_whole_scale_of(f64 scale, i64 bias, i32 zero) {
    const i64 all = (i64)(scale * ZC_REQUANT_ONE) | 1;
    zc_whole_scale<WORDS> s;
    s.scale.v[0] = (i32)all;
    if (WORDS == 2) s.scale.v[WORDS - 1] = (i32)((all - (i32)all) >> 32);
    s.more = bias * all + ((i64)zero << 40) + (1ll << 39);
    return s;
}
template <int WORDS> ZC_DEV i32 zc_whole(i32 sum, const zc_whole_scale<WORDS> &s) {
    const i32 low = (i32)((sum * (i64)s.scale.v[0] + s.more) >> 32);
    return WORDS == 2 ? sum * s.scale.v[WORDS - 1] + low : low;
}
// Two such results, saturated to T: the second and the last byte.
ZC_DEV u32 zc_saturated_wholes(u8, i32 a, i32 b) { return zc_saturated_u16x2(a, b); }
ZC_DEV u32 zc_saturated_wholes(i8, i32 a, i32 b) { return zc_saturated_s16x2(a, b); }
ZC_DEV u16 zc_upper_bytes(u32 two) { return (u16)zc_permute(two, 0, 0x4431); }
ZC_DEV u32 zc_upper_bytes(u32 low, u32 high) { return zc_permute(low, high, 0x7531); }

// Sums of two bytes, y = rint(a x + (b other + c)) from the least y on. A byte in the last digits of 2^23 is a float without a
// conversion; signed bytes, which have no such place, count from -128 on.
struct zc_byte_sum {
    f32 a, b, c;
};
constexpr u32 ZC_ABOVE = 0x4B004B00u; // what stands above a byte, in both halves
template <class T> constexpr u32 ZC_TURNED = zc_traits<T>::is_signed ? 0x80808080u : 0u; // counts bytes from the least one on
template <class T> ZC_DEV f32 zc_byte_below(u32 bits) { return zc_float(bits) - (f32)(8388608 - ZC_LEAST_BYTE<T>); }
// Of two results before they are saturated to X, and two bytes of OTHER, from the `first`th on; above: ZC_ABOVE in a register.
template <class T, class X, class OTHER>
ZC_DEV u16 zc_byte_sums(const i32 (&x)[2], u32 other, int first, const zc_byte_sum &sum, u32 above) {
    i32 y[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const f32 own = zc_byte_below<X>(zc_saturated_below(x[i] - ZC_LEAST_BYTE<X>, above));
        const f32 its = zc_byte_below<OTHER>(zc_permute(other ^ ZC_TURNED<OTHER>, above, 0x7440 + first + i));
        y[i] = zc_sum_rounded(own, its, sum.a, sum.b, sum.c);
    }
    return zc_saturated(u8(), y[0], y[1]) ^ (u16)ZC_TURNED<T>;
}
// The same sum by whole numbers (zc_affine's), in units of 2^-24: digits of 16 bits of both factors, and of the addend.
struct zc_whole_sum {
    u32 high, low;
    i32 above;
    u32 below;
};
template <class T, class X, class OTHER> ZC_DEV zc_whole_sum zc_whole_sum_of(const zc_byte_sum &sum) {
    constexpr f32 ONE = 16777216.0f;
    const i32 a = (i32)rintf(sum.a * ONE), b = (i32)rintf(sum.b * ONE);
    const i64 c = (i64)rint(((f64)sum.c + (0.5 + ZC_LEAST_BYTE<T>)) * (f64)ONE);
    const i64 all = c + (i64)a * ZC_LEAST_BYTE<X> + (i64)b * ZC_LEAST_BYTE<OTHER>;
    return {zc_permute((u32)a, (u32)b, 0x7632), zc_permute((u32)a, (u32)b, 0x5410), (i32)(all >> 16), (u32)all & 0xFFFFu};
}
// both: two bytes x, from the least one on, each with its other one behind it. The result is as of zc_saturated_wholes.
template <class T> ZC_DEV u32 zc_whole_sums(u32 both, const zc_whole_sum &sum) {
    const i32 first = zc_dp2a_low_su((i32)sum.high, both, sum.above) + (i32)(zc_dp2a_low_uu(sum.low, both, sum.below) >> 16);
    const i32 second = zc_dp2a_high_su((i32)sum.high, both, sum.above) + (i32)(zc_dp2a_high_uu(sum.low, both, sum.below) >> 16);
    return zc_saturated_wholes(T(), first, second);
}
