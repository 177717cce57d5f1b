// ConvPair, for any architecture: a thread for each element of the result.
//
// spec.h: Z_X (the type of all operands), Z_HAS_BIAS; zc/fused.cuh.
#include "zc/device.cuh"
#include "abi/conv_pair.h"
#include "spec.h"
#include "zc/fused.cuh"

ZC_DEV f32 product(const Z_X *x, const Z_X *w, i64 channels) {
    f32 sum = 0;
    for (i64 c = 0; c < channels; c++) sum += zc_get(x[c]) * zc_get(w[c]);
    return sum;
}

struct pixel {
    i64 image, at[2];
};

// x's window of the pixel, with weights [taps][channels].
ZC_DEV f32 window_product(const zc_conv_pair_params &p, const pixel &y, const Z_X *w) {
    const zc_window_params &of = p.window;
    f32 sum = 0;
    for (int t = 0; t < of.kernel[1]; t++)
        for (int u = 0; u < of.kernel[2]; u++, w += p.channels) {
            const i64 r = y.at[0] * of.stride[1] - of.begin[1] + (i64)t * of.dilation[1];
            const i64 c = y.at[1] * of.stride[2] - of.begin[2] + (i64)u * of.dilation[2];
            if (r < 0 || r >= of.in[1] || c < 0 || c >= of.in[2]) continue;
            sum += product((const Z_X *)p.x + ((y.image * of.in[1] + r) * of.in[2] + c) * p.channels, w, p.channels);
        }
    return sum;
}
ZC_DEV f32 point_product(const zc_conv_pair_params &p, const pixel &y, const Z_X *v) {
    const i64 line = y.image * p.second_in[0] + y.at[0] * p.second_stride[0];
    const i64 at = line * p.second_in[1] + y.at[1] * p.second_stride[1];
    return product((const Z_X *)p.z + at * p.second_channels, v, p.second_channels);
}

ZC_KERNEL(0)(const __grid_constant__ zc_conv_pair_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        const i64 n = i % p.n, at = i / p.n, line = at / p.window.out[2];
        const pixel y = {line / p.window.out[1], {line % p.window.out[1], at % p.window.out[2]}};
        f32 sum = window_product(p, y, (const Z_X *)p.w + n * p.window.kernel[1] * p.window.kernel[2] * p.channels);
        sum += point_product(p, y, (const Z_X *)p.v + n * p.second_channels);
        if (Z_HAS_BIAS) sum += zc_get(((const Z_X *)p.bias)[n]);
        ((Z_X *)p.y)[i] = zc_put<Z_X>(zc_fused(p.fused, sum, i));
    }
}
