// Rows of a product's A for Hopper's copy engine, a line of 128 bytes of the summed axis a step: of a matrix, or with
// Z_PATCHES windows of images with Z_BLOCKS such lines of channels, rounded up; their taps follow each other, Z_ACROSS in a
// line, and B has an item for each.
//
// spec.h: Z_T (element type), and the above.
#pragma once
#include "zc/hopper.cuh"
#include "abi/gemm_sm90.h"
#include "spec.h"

constexpr int ZC_LINE_DEPTH = 128 / (int)sizeof(Z_T); // elements

#ifdef Z_PATCHES
struct zc_sm90_rows {
    const zc_gemm_sm90_params &p;
    int x, y, image; // where the first row's window begins

    ZC_MEMBER zc_sm90_rows(const zc_gemm_sm90_params &p, int row, int) : p(p) {
        const zc_window_params &w = p.window;
        const int line = row / w.out[2];
        image = line / w.out[1];
        x = (row - line * w.out[2]) * w.stride[2] - w.begin[2];
        y = (line - image * w.out[1]) * w.stride[1] - w.begin[1];
    }
    static ZC_MEMBER int steps(const zc_gemm_sm90_params &p) { return p.b_items * Z_BLOCKS; }
    static ZC_MEMBER int depth(int step) { return step % Z_BLOCKS * ZC_LINE_DEPTH; }
    static ZC_MEMBER int b_item(const zc_gemm_sm90_params &, int, int step) { return step / Z_BLOCKS; }
    ZC_MEMBER void load(u32 to, u32 barrier, int step) const {
        const int tap = step / Z_BLOCKS, down = tap / Z_ACROSS, right = tap - down * Z_ACROSS;
        zc_patches_load(to, &p.a, barrier, depth(step), x, y, image, (u16)(right * p.window.dilation[2]),
                        (u16)(down * p.window.dilation[1]));
    }
};
#else
struct zc_sm90_rows {
    const zc_gemm_sm90_params &p;
    int row, item;

    ZC_MEMBER zc_sm90_rows(const zc_gemm_sm90_params &p, int row, int item) : p(p), row(row), item(item) {}
    static ZC_MEMBER int steps(const zc_gemm_sm90_params &p) {
        return (int)((p.g.k + ZC_LINE_DEPTH - 1) / ZC_LINE_DEPTH);
    }
    static ZC_MEMBER int depth(int step) { return step * ZC_LINE_DEPTH; }
    static ZC_MEMBER int b_item(const zc_gemm_sm90_params &p, int item, int) { return p.b_items > 1 ? item : 0; }
    ZC_MEMBER void load(u32 to, u32 barrier, int step) const {
        zc_tensor_load(to, &p.a, barrier, depth(step), row, item);
    }
};
#endif
