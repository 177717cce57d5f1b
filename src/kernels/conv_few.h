/* Convolutions of few pixels on Hopper (zc/conv_few.cuh), of 16 bits and of bytes: tiles and parts,
 * by a model of their cost. */
#ifndef ZC_KERNELS_CONV_FEW_H
#define ZC_KERNELS_CONV_FEW_H

#include "kernels/conv_patches.h"

enum { ZC_FEW_PIXELS, ZC_FEW_WARPGROUPS, ZC_FEW_PARTS, ZC_FEW_STEPS };
#define ZC_FEW_CONFIG "pixels", "warpgroups", "parts", "steps", NULL

/* The configuration; declines many pixels, and where larger tiles are held to be faster. */
zc_status zc_gen_conv_few(zc_gen *g, const zc_sm90_problem *p);
/* Microseconds beyond what a launch takes anyhow, by few pixels or larger tiles. */
double zc_conv_few_or_tall_us(const zc_sm90_problem *p);
/* Channels of a tile. */
int zc_conv_few_channels(const int64_t *config);
/* The order of the tiles, of a product whose sizes are set, and its blocks. */
zc_status zc_conv_few_grid(zc_launch *l, struct zc_gemm_sm90_params *p, zc_dim3 *grid);

#endif
