// Rows of a product that are pixels of images by boxes: each 64 rows are 8 x 8 pixels, line by line, and boxes follow each other
// in the order of their images, lines and columns. As a factor a box has its pixels' neighbours around it, 10 x 10 in lines of 128
// bytes, so that the pixels that a tap sees are 64 of these lines, eight by eight.
//
// p.by_side: boxes across and down, p.window.out: an image's sides.
#pragma once
#include "zc/hopper.cuh"
#include "zc/index.cuh"
#include "abi/gemm_sm90.h"

constexpr int ZC_RIM_SIDE = 8, ZC_RIM_PITCH = ZC_RIM_SIDE + 2; // pixels
constexpr int ZC_RIM_BYTES = ZC_RIM_PITCH * ZC_RIM_PITCH * 128; // that come
constexpr int ZC_ROWS_BYTES = 13 * 1024;                        // a box begins where its swizzle does
static_assert(ZC_RIM_BYTES <= ZC_ROWS_BYTES, "room for a box and its rim");

struct zc_rim_box { // its first pixel
    int x, y, image;
};
ZC_DEV zc_rim_box zc_rim_box_of(const zc_gemm_sm90_params &p, int row) {
    const int box = row / 64, line = (int)zc_divide((u32)box, p.by_side[0]), image = (int)zc_divide((u32)line, p.by_side[1]);
    return {(box - line * (int)p.by_side[0].d) * ZC_RIM_SIDE, (line - image * (int)p.by_side[1].d) * ZC_RIM_SIDE, image};
}
ZC_DEV void zc_rows_store(const zc_gemm_sm90_params &p, const zc_tensor_map *map, u32 panel, int col, int row, int) {
    const zc_rim_box box = zc_rim_box_of(p, row);
    zc_tensor_store(map, panel, col, box.x, box.y, box.image);
}
ZC_DEV int zc_result_row(const zc_gemm_sm90_params &p, int row, int last) {
    const zc_rim_box box = zc_rim_box_of(p, row);
    const int across = p.window.out[2], down = p.window.out[1];
    const int x = box.x + row % ZC_RIM_SIDE, y = box.y + row % 64 / ZC_RIM_SIDE;
    const int at = (box.image * down + (y < down ? y : down - 1)) * across + (x < across ? x : across - 1);
    return at < last ? at : last;
}
