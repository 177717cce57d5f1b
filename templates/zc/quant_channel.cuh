// How the sums of a convolution's channel become bytes, where x's zero point stands for what lies beyond the image: it counts the
// same for all pixels then.
//
// spec.h: Z_X, Z_W and Z_PLAIN (types of x, weights, and y before fused work), Z_XS, Z_WS and Z_YS (of scales), Z_SMALL_SCALES,
// Z_SCALES_CONSTANT and Z_WHOLES (zc/gemm_quant.cuh), Z_HAS_BIAS, Z_W_ZERO (have weights zero points?).
#pragma once
#include "zc/quantised.cuh"

// more: see zc_wide and zc_whole. zero: of its weights.
struct alignas(Z_W_ZERO ? 8 : 16) zc_quant_channel {
#if Z_WHOLES
    zc_whole_scale<Z_WHOLES> by;
#else
    f64 scale, more;
#endif
#if Z_W_ZERO
    i32 zero;
#endif
};
// What all channels share.
struct zc_quant_shared {
    f64 x_scale, y_scale;
    i32 x_zero, y_zero;
};
template <class P> ZC_DEV zc_quant_shared zc_quant_share(const P &p) {
    return {(f64)zc_load_factor<Z_XS>(p.x_scale, 0), (f64)zc_load_factor<Z_YS>(p.y_scale, 0), (i32)zc_load_factor<Z_X>(p.x_zero, 0),
            (i32)zc_load_factor<Z_PLAIN>(p.y_zero, 0)};
}
// weights: the sum of the channel's, of so many.
template <class P> ZC_DEV zc_quant_channel zc_quant_channel_of(const P &p, const zc_quant_shared &all, i64 i, i32 weights, i32 depth) {
    const i32 zero = Z_W_ZERO ? (i32)zc_load_factor<Z_W>(p.w_zero, i * p.w_zero_step) : 0;
    const i64 more = (Z_HAS_BIAS ? (i64)zc_load_factor<i32>(p.bias, i) : 0) - all.x_zero * (weights - depth * zero);
    const f64 scale = all.x_scale * (f64)zc_load_factor<Z_WS>(p.w_scale, i * p.w_scale_step) / all.y_scale;
    zc_quant_channel c;
#if Z_WHOLES
    c.by = zc_whole_scale_of<Z_WHOLES>(scale, more, all.y_zero);
#else
    c.scale = zc_requant_scale(scale);
    c.more = (f64)more - ZC_WIDE;
#endif
#if Z_W_ZERO
    c.zero = zero;
#endif
    return c;
}
// The bytes of two sums; y_zero counts without Z_WHOLES.
ZC_DEV u16 zc_quant_two(const i32 (&sum)[2], const zc_quant_channel (&c)[2], i32 y_zero) {
#if Z_WHOLES
    return zc_upper_bytes(zc_saturated_wholes(Z_PLAIN(), zc_whole(sum[0], c[0].by), zc_whole(sum[1], c[1].by)));
#else
    i32 y[2];
#pragma unroll
    for (int e = 0; e < 2; e++) y[e] = zc_requantised<Z_SMALL_SCALES>(zc_wide(sum[e], c[e].more), c[e].scale, y_zero);
    return zc_saturated(Z_PLAIN(), y[0], y[1]);
#endif
}
