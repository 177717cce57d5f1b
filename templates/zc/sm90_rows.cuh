// Rows of a product's A for Hopper's copy engine, a line of 128 bytes of the summed axis a step: of a matrix, or with
// Z_PATCHES windows of images with p.by_lines such lines of channels, rounded up; their taps follow each other, Z_ACROSS in a
// line, and B has an item for each. With Z_PAIR, so many such lines of a second pair of operands follow: pixels of images, one of
// every Z_PAIR_STRIDE1 x Z_PAIR_STRIDE2.
//
// spec.h: Z_T (element type), and the above.
#pragma once
#include "zc/hopper.cuh"
#include "zc/index.cuh"
#include "abi/gemm_sm90.h"
#include "spec.h"

constexpr int ZC_LINE_DEPTH = 128 / (int)sizeof(Z_T); // elements

#if defined(Z_PATCHES) || defined(Z_PAIR)
// The pixel that is a row of the result.
struct zc_sm90_pixel {
    int x, y, image;
};
ZC_DEV zc_sm90_pixel zc_sm90_pixel_of(const zc_gemm_sm90_params &p, int row) {
    const int line = (int)zc_divide((u32)row, p.by_line), image = (int)zc_divide((u32)line, p.by_plane);
    return {row - line * (int)p.by_line.d, line - image * (int)p.by_plane.d, image};
}
#endif

#ifdef Z_PATCHES
struct zc_sm90_first {
    const zc_gemm_sm90_params &p;
    int x, y, image; // where the first row's window begins

    ZC_MEMBER zc_sm90_first(const zc_gemm_sm90_params &p, int row, int) : p(p) {
        const zc_window_params &w = p.window;
        const zc_sm90_pixel at = zc_sm90_pixel_of(p, row);
        x = at.x * w.stride[2] - w.begin[2];
        y = at.y * w.stride[1] - w.begin[1];
        image = at.image;
    }
    static ZC_MEMBER int tap_of(const zc_gemm_sm90_params &p, int step) { return (int)zc_divide((u32)step, p.by_lines); }
    static ZC_MEMBER int steps(const zc_gemm_sm90_params &p) { return p.b_items * (int)p.by_lines.d; }
    static ZC_MEMBER int depth(const zc_gemm_sm90_params &p, int step) {
        return (step - tap_of(p, step) * (int)p.by_lines.d) * ZC_LINE_DEPTH;
    }
    static ZC_MEMBER int b_item(const zc_gemm_sm90_params &p, int, int step) { return tap_of(p, step); }
    static ZC_MEMBER const zc_tensor_map *b(const zc_gemm_sm90_params &p, int) { return &p.b; }
    ZC_MEMBER void load(u32 to, u32 barrier, int step) const {
        const int tap = tap_of(p, step), down = tap / Z_ACROSS, right = tap - down * Z_ACROSS;
        zc_patches_load(to, &p.a, barrier, depth(p, step), x, y, image, (u16)(right * p.window.dilation[2]),
                        (u16)(down * p.window.dilation[1]));
    }
};
#else
struct zc_sm90_first {
    const zc_gemm_sm90_params &p;
    int row, item;

    ZC_MEMBER zc_sm90_first(const zc_gemm_sm90_params &p, int row, int item) : p(p), row(row), item(item) {}
    static ZC_MEMBER int steps(const zc_gemm_sm90_params &p) {
        return (int)((p.g.k + ZC_LINE_DEPTH - 1) / ZC_LINE_DEPTH);
    }
    static ZC_MEMBER int depth(const zc_gemm_sm90_params &, int step) { return step * ZC_LINE_DEPTH; }
    static ZC_MEMBER int b_item(const zc_gemm_sm90_params &p, int item, int) { return p.b_items > 1 ? item : 0; }
    static ZC_MEMBER const zc_tensor_map *b(const zc_gemm_sm90_params &p, int) { return &p.b; }
    ZC_MEMBER void load(u32 to, u32 barrier, int step) const {
        zc_tensor_load(to, &p.a, barrier, depth(p, step), row, item);
    }
};
#endif
#ifndef Z_PAIR
typedef zc_sm90_first zc_sm90_rows;
#else
struct zc_sm90_rows {
    zc_sm90_first first;
    int x, y, image; // the first row's pixel of the second pair

    ZC_MEMBER zc_sm90_rows(const zc_gemm_sm90_params &p, int row, int item) : first(p, row, item) {
        const zc_sm90_pixel at = zc_sm90_pixel_of(p, row);
        x = at.x * Z_PAIR_STRIDE2;
        y = at.y * Z_PAIR_STRIDE1;
        image = at.image;
    }
    // Steps of the second pair, from 0 on; negative: of the first.
    static ZC_MEMBER int second(const zc_gemm_sm90_params &p, int step) { return step - zc_sm90_first::steps(p); }
    static ZC_MEMBER int steps(const zc_gemm_sm90_params &p) { return zc_sm90_first::steps(p) + Z_PAIR; }
    static ZC_MEMBER int depth(const zc_gemm_sm90_params &p, int step) {
        const int s = second(p, step);
        return s < 0 ? zc_sm90_first::depth(p, step) : s * ZC_LINE_DEPTH;
    }
    static ZC_MEMBER int b_item(const zc_gemm_sm90_params &p, int item, int step) {
        return second(p, step) < 0 ? zc_sm90_first::b_item(p, item, step) : 0;
    }
    static ZC_MEMBER const zc_tensor_map *b(const zc_gemm_sm90_params &p, int step) {
        return second(p, step) < 0 ? &p.b : &p.second_b;
    }
    ZC_MEMBER void load(u32 to, u32 barrier, int step) const {
        if (second(first.p, step) < 0)
            first.load(to, barrier, step);
        else
            zc_patches_load(to, &first.p.second_a, barrier, depth(first.p, step), x, y, image, 0, 0);
    }
};
#endif
