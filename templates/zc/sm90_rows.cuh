// Rows of a product's A for Hopper's copy engine, a line of 128 bytes of the summed axis a step: of a matrix, or with
// Z_PATCHES windows of images with p.by_lines such lines of channels, rounded up; their taps follow each other, and B has an
// item for each. Images have Z_SIDES sides, and their windows Z_ACROSS taps in a line (where there are two sides), Z_DOWN lines
// in a plane (three). With Z_PAIR, so many such lines of a second pair of operands come first: pixels of images, one of
// every Z_PAIR_STRIDE1 x Z_PAIR_STRIDE2.
//
// With Z_BAND_IN and Z_BAND_OUT, channels of a group that come in and go out, A's depths count from where the group of a tile's
// first column begins, at a multiple of Z_BAND_PIECE (src/op/conv_band.h).
//
// With Z_PHASE each so many columns are a phase (zc/phases.cuh), and a tile's columns are of one.
//
// With Z_RIM a tile's rows are pixels by boxes (zc/conv_rim.cuh).
//
// spec.h: Z_T (element type), and the above; Z_LINE_PARTS: pieces of 32 bytes of a line that hold factors, where no step has more (4).
#pragma once
#include "zc/hopper.cuh"
#include "zc/index.cuh"
#include "zc/phases.cuh"
#include "abi/gemm_sm90.h"
#include "spec.h"

#ifndef Z_LINE_PARTS
#define Z_LINE_PARTS 4
#endif
constexpr int ZC_LINE_DEPTH = 128 / (int)sizeof(Z_T); // elements

// Where 64 rows of a tile lie in a stage, how they leave from a panel, and which row of the result one is; beyond the last any.
#ifdef Z_RIM
#include "zc/rim_box.cuh"
#else
constexpr int ZC_ROWS_BYTES = 64 * 128;
ZC_DEV void zc_rows_store(const zc_gemm_sm90_params &, const zc_tensor_map *map, u32 panel, int col, int row, int item) {
    zc_tensor_store(map, panel, col, row, item);
}
ZC_DEV int zc_result_row(const zc_gemm_sm90_params &, int row, int last) { return row < last ? row : last; }
#endif

#if defined(Z_PATCHES) || defined(Z_PAIR)
// The pixel that is a row of the result.
struct zc_sm90_pixel {
    int at[Z_SIDES], image; // innermost side first
};
ZC_DEV zc_sm90_pixel zc_sm90_pixel_of(const zc_gemm_sm90_params &p, int row) {
    zc_sm90_pixel r;
#pragma unroll
    for (int i = 0; i < Z_SIDES; i++) {
        const int rest = (int)zc_divide((u32)row, p.by_side[i]);
        r.at[i] = row - rest * (int)p.by_side[i].d;
        row = rest;
    }
    r.image = row;
    return r;
}
#endif

// Where the depths of A begin.
#ifdef Z_BAND_IN
ZC_DEV int zc_sm90_from(int col) { return col / Z_BAND_OUT * Z_BAND_IN / Z_BAND_PIECE * Z_BAND_PIECE; }
#else
ZC_DEV int zc_sm90_from(int) { return 0; }
#endif

#ifdef Z_PHASE
ZC_DEV int zc_sm90_phase(int col) { return col / Z_PHASE; }
#else
ZC_DEV int zc_sm90_phase(int) { return 0; }
#endif

#ifdef Z_PATCHES
struct zc_sm90_first {
    const zc_gemm_sm90_params &p;
    int from;
    zc_sm90_pixel begin; // where the first row's window does, of the first phase
    zc_later later;

    ZC_MEMBER zc_sm90_first(const zc_gemm_sm90_params &p, int row, int col, int)
        : p(p), from(zc_sm90_from(col)), begin(zc_sm90_pixel_of(p, row)), later(zc_later_of(zc_sm90_phase(col))) {
#pragma unroll
        for (int i = 0; i < Z_SIDES; i++) begin.at[i] = begin.at[i] * p.window.stride[2 - i] - p.window.begin[2 - i];
    }
    static ZC_MEMBER int tap_of(const zc_gemm_sm90_params &p, int step) { return (int)zc_divide((u32)step, p.by_lines); }
    static ZC_MEMBER int steps(const zc_gemm_sm90_params &p) { return p.b_items * (int)p.by_lines.d; }
    static ZC_MEMBER int depth(const zc_gemm_sm90_params &p, int step) {
        return (step - tap_of(p, step) * (int)p.by_lines.d) * ZC_LINE_DEPTH;
    }
    static ZC_MEMBER int b_item(const zc_gemm_sm90_params &p, int, int step) { return tap_of(p, step); }
    static ZC_MEMBER const zc_tensor_map *b(const zc_gemm_sm90_params &p, int) { return &p.b; }
    ZC_MEMBER void load(u32 to, u32 barrier, int step) const {
        const int tap = tap_of(p, step);
        u16 away[Z_SIDES];
#if Z_SIDES == 1
        away[0] = (u16)(later.by(2) + tap * p.window.dilation[2]);
#else
        const int line = tap / Z_ACROSS;
        away[0] = (u16)(later.by(2) + (tap - line * Z_ACROSS) * p.window.dilation[2]);
#if Z_SIDES == 2
        away[1] = (u16)(later.by(1) + line * p.window.dilation[1]);
#else
        away[1] = (u16)(later.by(1) + line % Z_DOWN * p.window.dilation[1]);
        away[2] = (u16)(later.by(0) + line / Z_DOWN * p.window.dilation[0]);
#endif
#endif
        zc_patches_load(to, &p.a, barrier, from + depth(p, step), begin.at, begin.image, away);
    }
};
#else
struct zc_sm90_first {
    const zc_gemm_sm90_params &p;
    int from, row, item;

    ZC_MEMBER zc_sm90_first(const zc_gemm_sm90_params &p, int row, int col, int item)
        : p(p), from(zc_sm90_from(col)), row(row), item(item) {}
    static ZC_MEMBER int steps(const zc_gemm_sm90_params &p) {
        return (int)((p.g.k + ZC_LINE_DEPTH - 1) / ZC_LINE_DEPTH);
    }
    static ZC_MEMBER int depth(const zc_gemm_sm90_params &, int step) { return step * ZC_LINE_DEPTH; }
    static ZC_MEMBER int b_item(const zc_gemm_sm90_params &p, int item, int) { return p.b_items > 1 ? item : 0; }
    static ZC_MEMBER const zc_tensor_map *b(const zc_gemm_sm90_params &p, int) { return &p.b; }
    ZC_MEMBER void load(u32 to, u32 barrier, int step) const {
        zc_tensor_load(to, &p.a, barrier, from + depth(p, step), row, item);
    }
};
#endif
#ifndef Z_PAIR
typedef zc_sm90_first zc_sm90_rows;
#else
struct zc_sm90_rows {
    zc_sm90_first first;
    zc_sm90_pixel other; // the first row's of the second pair

    ZC_MEMBER zc_sm90_rows(const zc_gemm_sm90_params &p, int row, int col, int item)
        : first(p, row, col, item), other(zc_sm90_pixel_of(p, row)) {
        other.at[0] *= Z_PAIR_STRIDE2;
        other.at[1] *= Z_PAIR_STRIDE1;
    }
    // Steps of the first pair, from 0 on; negative: of the second.
    static ZC_MEMBER int behind(int step) { return step - Z_PAIR; }
    static ZC_MEMBER int steps(const zc_gemm_sm90_params &p) { return Z_PAIR + zc_sm90_first::steps(p); }
    static ZC_MEMBER int depth(const zc_gemm_sm90_params &p, int step) {
        const int s = behind(step);
        return s < 0 ? step * ZC_LINE_DEPTH : zc_sm90_first::depth(p, s);
    }
    static ZC_MEMBER int b_item(const zc_gemm_sm90_params &p, int item, int step) {
        const int s = behind(step);
        return s < 0 ? 0 : zc_sm90_first::b_item(p, item, s);
    }
    static ZC_MEMBER const zc_tensor_map *b(const zc_gemm_sm90_params &p, int step) {
        return behind(step) < 0 ? &p.second_b : &p.b;
    }
    ZC_MEMBER void load(u32 to, u32 barrier, int step) const {
        const u16 point[Z_SIDES] = {};
        const int s = behind(step);
        if (s < 0)
            zc_patches_load(to, &first.p.second_a, barrier, depth(first.p, step), other.at, other.image, point);
        else
            first.load(to, barrier, s);
    }
};
#endif
