/* Parameters of gemm_sm90.cu: a product whose operands the copy engine brings. */
#ifndef ZC_ABI_GEMM_SM90_H
#define ZC_ABI_GEMM_SM90_H

#include "abi/divisor.h"
#include "abi/gemm.h"
#include "abi/linear_moments.h"
#include "abi/tensor_map.h"
#include "abi/window.h"

/* The tiles of a result in the order in which blocks take them: those of a group of lines of tiles,
 * column by column, before the next group's, and an item's before the next one's. */
struct zc_gemm_order {
    int down, across;                             /* of an item; down: of clusters */
    struct zc_divisor by_item, by_group, by_rest; /* tiles of an item, of a group; lines of the
                                                     last group where it has fewer */
};

struct zc_gemm_sm90_params {
    zc_tensor_map a, b, y, tile; /* innermost first: [k, m, batch], [k, n, batch] or [n, k, batch],
                                    [n, m, batch]; an operand of the result's shape. Columns that
                                    are dealt out: [k, 2, n / hand, hand / 2, batch], or crossed:
                                    [k, 8, 2, n / 16, batch] */
    zc_tensor_map second_a, second_b; /* of ConvPair: [d, w, h, images], [d, n, 1]; of GatedLinear
                                         only B, as b; of QLinearConvNext the second result, as y,
                                         and its weights */
    const void *second_c;             /* of GatedLinear, as c */
    struct zc_gemm_params g;
    struct zc_gemm_order order;
    int items, b_items; /* of the batch; b_items 1: all items share B */
    struct zc_window_params
        window; /* of convolutions: A's rows are patches of [c, sides ...,
                   images], or boxes, as y's and tile's are, B is [c, n, taps] */
    struct zc_divisor by_side[ZC_WINDOW_DIMS]; /* of an image of its result, innermost first, or of
                                                  its boxes (zc/rim_box.cuh) */
    struct zc_divisor by_lines;                /* of 128 bytes, which hold a tap's channels */
    struct zc_row_moments_params moments;      /* of LinearMoments */
};

#endif
