// Entry 2 of the convolutions on Hopper whose channels the copy engine cannot address: patches as rows of a matrix, and
// weights as rows of the same length.
//
// spec.h: Z_GATHER (channels), Z_TAPS, Z_ACROSS (of them in a line), Z_ROW (elements of a row: Z_TAPS * Z_GATHER, rounded up
// to 8).
#pragma once
#ifdef Z_GATHER
#include "zc/device.cuh"
#include "abi/gemm_sm90.h"

struct zc_gather_window {
    i64 image;
    int x, y;
};
ZC_DEV u16 zc_gather_patch(const zc_conv_gather_params &p, const zc_gather_window &at, int k) {
    const int tap = k / Z_GATHER, down = tap / Z_ACROSS, right = tap - down * Z_ACROSS;
    const int x = at.x + right * p.window.dilation[2], y = at.y + down * p.window.dilation[1];
    const bool inside = k < Z_TAPS * Z_GATHER && (u32)x < (u32)p.window.in[2] && (u32)y < (u32)p.window.in[1];
    const i64 pixel = (at.image * p.window.in[1] + y) * p.window.in[2] + x;
    return inside ? ((const u16 *)p.x)[pixel * Z_GATHER + (k - tap * Z_GATHER)] : (u16)0;
}
ZC_KERNEL(2)(const __grid_constant__ zc_conv_gather_params p) {
    zc_begin();
    constexpr int PIECES = Z_ROW / 8;
    const zc_window_params &w = p.window;
    for (i64 i = zc_thread(); i < (p.pixels + p.channels) * PIECES; i += zc_threads()) {
        const i64 row = i / PIECES, line = row / w.out[2], image = line / w.out[1], channel = row - p.pixels;
        const int k = (int)(i - row * PIECES) * 8;
        const zc_gather_window at = {image, (int)(row - line * w.out[2]) * w.stride[2] - w.begin[2],
                                     (int)(line - image * w.out[1]) * w.stride[1] - w.begin[1]};
        zc_vec<u16, 8> v;
#pragma unroll
        for (int e = 0; e < 8; e++) {
            if (channel < 0)
                v.v[e] = zc_gather_patch(p, at, k + e);
            else
                v.v[e] = k + e < Z_TAPS * Z_GATHER ? ((const u16 *)p.w)[channel * (Z_TAPS * Z_GATHER) + k + e] : (u16)0;
        }
        *(zc_vec<u16, 8> *)((u16 *)(channel < 0 ? p.rows : p.weights) + (channel < 0 ? row : channel) * Z_ROW + k) = v;
    }
}
#endif
