// QLinearConvPair, for any architecture: a thread for each element of the result.
//
// spec.h: Z_X0, Z_W0, Z_Y0 and Z_X1, Z_W1, Z_Y1 (of both convolutions: the types of operands and of the result), Z_Y, zx_sum, what
// is made of both results, and zc/conv_quant_half.cuh.
#include "zc/conv_quant_half.cuh"

typedef zc_quant_conv<Z_X0, Z_W0, Z_Y0> first_convolution;
typedef zc_quant_conv<Z_X1, Z_W1, Z_Y1> second_convolution;

ZC_DEV i64 point_sum(const zc_conv_pair_quant_params &p, const zc_quant_pixel &y, const second_convolution &c) {
    const i64 line = y.image * p.second_in[0] + y.at[0] * p.second_stride[0];
    const i64 at = line * p.second_in[1] + y.at[1] * p.second_stride[1];
    return c.sum((const Z_X1 *)c.h.x + at * c.h.channels, c.n * c.h.channels);
}

ZC_KERNEL(0)(const __grid_constant__ zc_conv_pair_quant_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        const i64 n = i % p.n;
        const zc_quant_pixel y = zc_quant_pixel_of(p.window, i / p.n);
        const first_convolution first(p.half[0], n);
        const second_convolution second(p.half[1], n);
        const i32 x0 = first.result(first.window_sum(p.window, y)), x1 = second.result(point_sum(p, y, second));
        ((Z_Y *)p.y)[i] = (Z_Y)zx_sum(x0, x1);
    }
}
