// One of the two convolutions of bytes that a step has, for any architecture, one element of the result at a time.
//
// spec.h: Z_XS, Z_WS and Z_YS (types of scales).
#pragma once
#include "zc/device.cuh"
#include "abi/conv_pair_quant.h"
#include "spec.h"
#include "zc/quantised.cuh"

struct zc_quant_pixel {
    i64 image, at[2];
};
// A pixel of all images of a window's result.
ZC_DEV zc_quant_pixel zc_quant_pixel_of(const zc_window_params &of, i64 at) {
    const i64 line = at / of.out[2];
    return {line / of.out[1], {line % of.out[1], at % of.out[2]}};
}

template <class X, class W, class Y> struct zc_quant_conv {
    const zc_conv_quant_half &h;
    const i64 n;
    const i32 x_zero, w_zero;

    ZC_MEMBER zc_quant_conv(const zc_conv_quant_half &half, i64 channel)
        : h(half), n(channel), x_zero((i32)((const X *)half.x_zero)[0]),
          w_zero((i32)((const W *)half.w_zero)[channel * half.w_zero_step]) {}
    // Of a pixel's channels, with weights from `w` on.
    ZC_MEMBER i64 sum(const X *x, i64 w) const {
        i64 all = 0;
        for (i64 c = 0; c < h.channels; c++) all += ((i32)x[c] - x_zero) * ((i32)((const W *)h.w)[w + c] - w_zero);
        return all;
    }
    ZC_MEMBER i64 window_sum(const zc_window_params &of, const zc_quant_pixel &y) const {
        i64 all = 0;
        for (int t = 0; t < of.kernel[1]; t++)
            for (int u = 0; u < of.kernel[2]; u++) {
                const i64 row = y.at[0] * of.stride[1] - of.begin[1] + (i64)t * of.dilation[1];
                const i64 col = y.at[1] * of.stride[2] - of.begin[2] + (i64)u * of.dilation[2];
                if (row < 0 || row >= of.in[1] || col < 0 || col >= of.in[2]) continue;
                const i64 tap = (n * of.kernel[1] + t) * of.kernel[2] + u;
                all += sum((const X *)h.x + ((y.image * of.in[1] + row) * of.in[2] + col) * h.channels, tap * h.channels);
            }
        return all;
    }
    ZC_MEMBER i32 result(i64 all) const {
        if (h.bias) all += h.bias[n];
        const f64 both = (f64)zc_load<Z_XS>(h.x_scale, 0) * (f64)zc_load<Z_WS>(h.w_scale, n * h.w_scale_step);
        const f64 scale = zc_requant_scale(both / (f64)zc_load<Z_YS>(h.y_scale, 0));
        const i32 whole = zc_requantised<false>((f64)all, scale, (i32)((const Y *)h.y_zero)[0]);
        return (i32)(Y)zc_saturated(Y(), whole, 0);
    }
};
