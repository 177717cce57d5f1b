// QLinearConvChain, for any architecture: a block for each pixel, whose bytes of the first convolution wait in shared memory.
//
// spec.h: Z_X, Z_W, Z_H (the types of operands and of the result of the first convolution), Z_V and Z_PLAIN (of the second one's
// weights and result), Z_Y, zc/conv_quant_half.cuh and zc/fused.cuh.
#include "zc/conv_quant_half.cuh"
#include "zc/fused.cuh"
#include "abi/conv_chain_quant.h"

typedef zc_quant_conv<Z_X, Z_W, Z_H> first_convolution;
typedef zc_quant_conv<Z_H, Z_V, Z_PLAIN> second_convolution;

ZC_KERNEL(0)(const __grid_constant__ zc_conv_chain_quant_params p) {
    ZC_DYNAMIC_SMEM(smem);
    Z_H *const h = (Z_H *)smem;
    zc_begin();
    for (i64 pixel = blockIdx.x; pixel < p.pixels; pixel += gridDim.x) {
        const zc_quant_pixel y = zc_quant_pixel_of(p.window, pixel);
        for (i64 c = threadIdx.x; c < p.half[1].channels; c += blockDim.x) {
            const first_convolution first(p.half[0], c);
            h[c] = (Z_H)first.result(first.window_sum(p.window, y));
        }
        zc_sync();
        for (i64 n = threadIdx.x; n < p.n; n += blockDim.x) {
            const second_convolution second(p.half[1], n);
            const i64 at = pixel * p.n + n;
            ((Z_Y *)p.y)[at] = (Z_Y)zc_fused(p.fused, (Z_PLAIN)second.result(second.sum(h, n * second.h.channels)), at);
        }
        zc_sync();
    }
}
