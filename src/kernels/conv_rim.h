/* Convolutions of 3 x 3 pixels on Hopper that copy a tile's pixels once, with a rim
 * (zc/conv_rim.cuh), of 16 bits and of bytes: tiles and stages, by a model of their cost. */
#ifndef ZC_KERNELS_CONV_RIM_H
#define ZC_KERNELS_CONV_RIM_H

#include "kernels/conv_patches.h"

/* Behind the numbers of gemm_sm90.cu, of the same template. */
enum { ZC_RIM_TAP_STAGES = ZC_SM90_PARTS + 1, ZC_RIM_STAYS };
#define ZC_RIM_CONFIG                                                                              \
    "tile_m", "tile_n", "stages", "cluster", "pingpong", "raster", "fused_tile", "parts",          \
        "tap_stages", "stays", NULL

/* The configuration of a convolution with these windows and weights, of which p has the sizes;
 * declines other windows, and where patches that are gathered tap by tap are held to be faster. */
zc_status zc_gen_conv_rim(zc_gen *g, const zc_window_attrs *a, const zc_tensor *w,
                          const zc_sm90_problem *p);
/* All that a launch has beside the product's sizes and fused work: maps, order and blocks. */
zc_status zc_launch_conv_rim(zc_launch *l, const zc_tensor *weights, struct zc_gemm_sm90_params *p,
                             zc_dim3 *grid);

#endif
