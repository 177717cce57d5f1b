// QLinearConvNext, for any architecture: a block for each pixel, whose bytes of the first result wait in shared memory.
//
// spec.h: Z_X, Z_W, Z_H (the types of operands and of what the first convolution gives), Z_G (of the first result), Z_V and Z_Y (of
// the second one's weights and result), with a residual Z_RESIDUAL (its type) and zx_sum, and zc/conv_quant_half.cuh.
#include "zc/conv_quant_half.cuh"
#include "abi/conv_next_quant.h"

typedef zc_quant_conv<Z_X, Z_W, Z_H> first_convolution;
typedef zc_quant_conv<Z_G, Z_V, Z_Y> second_convolution;

// The first result, of h at that place.
ZC_DEV Z_G summed(const zc_conv_next_quant_params &p, i32 h, i64 at) {
#ifdef Z_RESIDUAL
    return (Z_G)zx_sum(h, (i32)((const Z_RESIDUAL *)p.residual)[at]);
#else
    return (Z_G)h;
#endif
}

ZC_KERNEL(0)(const __grid_constant__ zc_conv_next_quant_params p) {
    ZC_DYNAMIC_SMEM(smem);
    Z_G *const g = (Z_G *)smem;
    zc_begin();
    for (i64 pixel = blockIdx.x; pixel < p.pixels; pixel += gridDim.x) {
        for (i64 c = threadIdx.x; c < p.half[1].channels; c += blockDim.x) {
            const first_convolution first(p.half[0], c);
            const i64 k = first.h.channels, at = pixel * p.half[1].channels + c;
            g[c] = summed(p, first.result(first.sum((const Z_X *)first.h.x + pixel * k, c * k)), at);
            ((Z_G *)p.g)[at] = g[c];
        }
        zc_sync();
        for (i64 n = threadIdx.x; n < p.n; n += blockDim.x) {
            const second_convolution second(p.half[1], n);
            ((Z_Y *)p.y)[pixel * p.n + n] = (Z_Y)second.result(second.sum(g, n * second.h.channels));
        }
        zc_sync();
    }
}
