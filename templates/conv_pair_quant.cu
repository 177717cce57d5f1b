// QLinearConvPair, for any architecture: a thread for each element of the result.
//
// spec.h: Z_X0, Z_W0, Z_Y0 and Z_X1, Z_W1, Z_Y1 (of both convolutions: the types of operands and of the result), Z_XS, Z_WS and
// Z_YS (of scales), Z_Y, and zx_sum, what is made of both results.
#include "zc/device.cuh"
#include "abi/conv_pair_quant.h"
#include "spec.h"
#include "zc/quantised.cuh"

struct pixel {
    i64 image, at[2];
};

template <class X, class W, class Y> struct convolution {
    const zc_conv_quant_half &h;
    const i64 n;
    const i32 x_zero, w_zero;

    ZC_MEMBER convolution(const zc_conv_quant_half &half, i64 channel)
        : h(half), n(channel), x_zero((i32)((const X *)half.x_zero)[0]),
          w_zero((i32)((const W *)half.w_zero)[channel * half.w_zero_step]) {}
    // Of a pixel's channels, which begin at element `at`, with weights from `w` on.
    ZC_MEMBER i64 sum(i64 at, i64 w) const {
        i64 all = 0;
        for (i64 c = 0; c < h.channels; c++) all += ((i32)((const X *)h.x)[at + c] - x_zero) * ((i32)((const W *)h.w)[w + c] - w_zero);
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

typedef convolution<Z_X0, Z_W0, Z_Y0> first_convolution;
typedef convolution<Z_X1, Z_W1, Z_Y1> second_convolution;

ZC_DEV i64 window_sum(const zc_conv_pair_quant_params &p, const pixel &y, const first_convolution &c) {
    const zc_window_params &of = p.window;
    i64 all = 0;
    for (int t = 0; t < of.kernel[1]; t++)
        for (int u = 0; u < of.kernel[2]; u++) {
            const i64 row = y.at[0] * of.stride[1] - of.begin[1] + (i64)t * of.dilation[1];
            const i64 col = y.at[1] * of.stride[2] - of.begin[2] + (i64)u * of.dilation[2];
            if (row < 0 || row >= of.in[1] || col < 0 || col >= of.in[2]) continue;
            const i64 tap = (c.n * of.kernel[1] + t) * of.kernel[2] + u;
            all += c.sum(((y.image * of.in[1] + row) * of.in[2] + col) * c.h.channels, tap * c.h.channels);
        }
    return all;
}
ZC_DEV i64 point_sum(const zc_conv_pair_quant_params &p, const pixel &y, const second_convolution &c) {
    const i64 line = y.image * p.second_in[0] + y.at[0] * p.second_stride[0];
    const i64 at = line * p.second_in[1] + y.at[1] * p.second_stride[1];
    return c.sum(at * c.h.channels, c.n * c.h.channels);
}

ZC_KERNEL(0)(const __grid_constant__ zc_conv_pair_quant_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        const i64 n = i % p.n, at = i / p.n, line = at / p.window.out[2];
        const pixel y = {line / p.window.out[1], {line % p.window.out[1], at % p.window.out[2]}};
        const first_convolution first(p.half[0], n);
        const second_convolution second(p.half[1], n);
        ((Z_Y *)p.y)[i] = (Z_Y)zx_sum(first.result(window_sum(p, y, first)), second.result(point_sum(p, y, second)));
    }
}
