/* What convolutions on Hopper share: patches of channels-last images, which the copy engine gathers
 * as rows of a product with weights [Cout][taps][Cin]. */
#ifndef ZC_KERNELS_CONV_PATCHES_H
#define ZC_KERNELS_CONV_PATCHES_H

#include "kernels/sm90.h"
#include "kernels/window.h"

enum { ZC_CONV_FEW_PIXELS = 4096 };

/* Do windows of one pixel see each of them, so that pixels are rows of a matrix? Over so many axes.
 */
bool zc_conv_is_product(const zc_window_attrs *a, int axes, const int64_t *kernel);
/* Can the copy engine gather it? */
bool zc_conv_window_fits(const zc_window_attrs *a, int axes, const int64_t *kernel);

/* The second pair of operands of ConvPair and QLinearConvPair: inputs, and their windows, which are
 * points. false: there is none. */
typedef struct zc_conv_second {
    int x, w;
    zc_window_attrs a;
} zc_conv_second;
bool zc_conv_second_of(zc_op op, const void *attrs, zc_conv_second *out);

/* Pixels of the result: the most of the range that is asked for. */
int64_t zc_gen_conv_pixels(zc_gen *g);
/* How much of a line of so many bytes of channels has factors, where that is not all of it. */
void zc_gen_line_parts(zc_gen *g, int64_t bytes);
/* Steps of the second pair, of pixels of whole pieces of so many channels, which the header then
 * has; 0: there is none; -1: it is not taken. */
int64_t zc_gen_conv_second(zc_gen *g, int64_t piece);
/* How patches come to the product; w is [Cout][taps ...][Cin]. */
void zc_gen_patches(zc_gen *g, const zc_window_attrs *a, const zc_tensor *w);
/* Where their channels begin, where those weights are a band. */
void zc_gen_band(zc_gen *g, int weights);

/* Patches of x, `tile` at once, or its pixels as rows; pitch: from pixel to pixel. */
zc_tensor_box zc_conv_patches(const zc_tensor *x, int64_t pitch, const zc_window *w, bool product,
                              int64_t pixels, int tile);
/* Weights [Cout][taps ...][Cin], so many channels of a tap at once, or these dealt out
 * (zc_sm90_deal). */
zc_tensor_box zc_conv_weights_box(const zc_tensor *weights, int channels, int dealt);
/* Why two convolutions of bytes are not one kernel's, whose header says but once what operands are
 * (a zero point has the type of what it belongs to); NULL: they are. */
const char *zc_gen_conv_not_two(const zc_gen *g, const zc_quant_roles *a, const zc_quant_roles *b);
/* What becomes of sums of a convolution of bytes, and of one that a step has beside it. */
zc_status zc_launch_conv_quant(zc_launch *l, const zc_quant_roles *r,
                               struct zc_gemm_quant_params *q);
zc_status zc_launch_conv_quant_second(zc_launch *l, const zc_quant_roles *r,
                                      struct zc_gq_second *s);
/* Do input 0, these weights, the bias in input `bias` (-1: none) and the result fit each other? */
zc_status zc_launch_conv_check(zc_launch *l, const zc_tensor *w, int bias);
/* The weights' windows of input 0. */
zc_status zc_launch_conv_window(zc_launch *l, const zc_tensor *w, zc_window *window,
                                struct zc_window_params *out);
/* The maps of input 0 and the weights, of which a tile has so many lines, and which pixel a row is.
 */
zc_status zc_launch_conv_maps(zc_launch *l, const zc_tensor *weights, const zc_window *w,
                              int pixels, int channels, int dealt, struct zc_gemm_sm90_params *p);
/* The same of the second pair, where there is one. */
zc_status zc_launch_conv_second(zc_launch *l, int pixels, int channels, int dealt,
                                struct zc_gemm_sm90_params *p);

#endif
