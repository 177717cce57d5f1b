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

/* Pixels of a box, and bytes of one with its rim, which has the place of so many. */
enum { ZC_RIM_ROWS = 64, ZC_RIM_BYTES = 100 * ZC_SM90_LINE, ZC_RIM_ROOM = 13 * 1024 };

/* Has it windows of 3 x 3 pixels around each pixel? */
bool zc_conv_has_rim(const zc_window_attrs *a, const zc_tensor *w);
/* Of images [n, h, w, c]. */
int64_t zc_rim_boxes(const int64_t *dims);
/* Of images of so many pixels as `of` has, boxes of 128 bytes of channels, with a rim or without.
 */
zc_tensor_box zc_rim_box(const void *data, zc_dtype dtype, int64_t channels, int64_t pitch,
                         const zc_tensor *of, bool rim);
/* Which box of these images is which (zc/rim_box.cuh). */
void zc_rim_sides(const int64_t *dims, struct zc_gemm_sm90_params *p);

/* The configuration of a convolution with these windows and weights, of which p has the sizes;
 * declines other windows, and where patches that are gathered tap by tap are held to be faster. */
zc_status zc_gen_conv_rim(zc_gen *g, const zc_window_attrs *a, const zc_tensor *w,
                          const zc_sm90_problem *p);
/* All that a launch has beside the product's sizes and fused work: maps, order and blocks. */
zc_status zc_launch_conv_rim(zc_launch *l, const zc_tensor *weights, struct zc_gemm_sm90_params *p,
                             zc_dim3 *grid);

#endif
