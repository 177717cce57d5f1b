// Gelu as codes of 8 bits, in f16: half as many instructions as in f32, as two neighbours are computed at once, and tensor cores that
// are at work leave few to others. 0.7 % of i8's codes and 0.6 % of e4m3's are others than by exact numbers, where rounding the
// exact Gelu to f16 makes that 0.4 and 0.15 % (normal numbers with a deviation of 1.2, whose codes reach 2.5).
#pragma once
#include "zc/device.cuh"

ZC_DEV constexpr u32 zc_twice(u32 half) { return half * 0x00010001u; }
// An integer of at most 11 bits as f16.
ZC_DEV constexpr u32 zc_whole_f16(i32 v) {
    u32 digits = v < 0 ? (u32)-v : (u32)v, exponent = 25;
    for (; digits && digits < 1024; digits <<= 1) exponent--;
    return (v < 0 ? 0x8000u : 0u) + (digits ? exponent * 1024 + digits - 1024 : 0u);
}
// Codes of a pair of f16, which was divided by their scale already; NaN is 0.
template <class T> ZC_DEV u16 zc_codes_of_halves(T, u32 pair, i32 zero) {
    const i32 least = zc_traits<T>::is_signed ? -128 : 0;
    const u32 within = zc_within_f16x2(pair, zc_twice(zc_whole_f16(least - zero)), zc_twice(zc_whole_f16(least + 255 - zero)));
    // From 1024 on a half's last digit counts 1, and its last byte is that of the sum.
    const u32 whole = zc_fma_f16x2(within, zc_twice(zc_whole_f16(1)), zc_twice(zc_whole_f16(1536 + zero)));
    return (u16)zc_permute(whole & zc_numbers_f16x2(pair), 0, 0x4420);
}
ZC_DEV u16 zc_codes_of_halves(f8e4m3fn type, u32 pair, i32) {
#ifdef ZC_HAS_E4M3
    return zc_f16x2_to_e4m3x2(pair);
#else
    return zc_pack(type, zc_f16_to_f32((u16)pair), zc_f16_to_f32((u16)(pair >> 16)));
#endif
}
// Of two neighbours; reciprocal: of the scale, in f16. The polynomial is fitted to log2(erfc(-x / sqrt(2)) / 2) on [-5.2, 0], as
// zq_gelu's, and falls beyond.
template <class T> ZC_DEV u16 zq_gelu_codes(f32 a, f32 b, u32 reciprocal, i32 zero) {
    const u32 c[] = {0xBC00, 0x3C98, 0xB779, 0x29E6, 0x1D5A, 0x0C50};
    const u32 x = zc_f32x2_to_f16x2(a, b), below = zc_smaller_f16x2(x, zc_twice(0x7BFF)) | 0x80008000u; // -|x|, finite where x is inf
    u32 e = zc_twice(c[5]);
#pragma unroll
    for (int i = 4; i >= 0; i--) e = zc_fma_f16x2(e, below, zc_twice(c[i]));
    const u32 y = zc_fma_f16x2(below, zc_exp2_f16x2(e), zc_larger_f16x2(x, 0));
    return zc_codes_of_halves(T(), zc_fma_f16x2(y, zc_twice(reciprocal), 0x80008000u), zero);
}
