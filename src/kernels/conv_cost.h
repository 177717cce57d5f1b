/* What convolutions of 16 bits and of bytes are held to take on Hopper's usual chip, for passes,
 * which choose between layouts. */
#ifndef ZC_KERNELS_CONV_COST_H
#define ZC_KERNELS_CONV_COST_H

#include "op/conv_band.h"
#include "op/window.h"

enum { ZC_CONV_COST_AXES = 3 };

typedef struct zc_conv_work {
    int axes;
    zc_window_attrs window;
    bool transposed;
    int64_t images, groups, in, out;                             /* channels of a group */
    int64_t kernel[ZC_CONV_COST_AXES], sides[ZC_CONV_COST_AXES]; /* sides: of the result */
} zc_conv_work;

/* Pixels of all images of the result. */
static inline int64_t zc_conv_work_pixels(const zc_conv_work *w)
{
    return w->images * zc_dims_span(w->sides, 0, w->axes);
}

/* Microseconds beyond what a launch takes anyhow: of family conv on images channels first; of the
 * families for channels last, conv where these do not serve it. */
double zc_conv_first_us(const zc_conv_work *w);
double zc_conv_last_us(const zc_conv_work *w);

/* The same of Hopper's families for channels last, and of those of each channel by itself;
 * INFINITY: they do not serve it. */
double zc_conv_sm90_us(const zc_conv_work *w);
double zc_conv_depth_us(const zc_conv_work *w);

/* Of bytes channels last: the families without tensor cores; Hopper's tensor cores, in pieces of
 * channels, and those of each channel by itself; INFINITY: they do not serve it. */
double zc_conv_bytes_us(const zc_conv_work *w);
double zc_conv_quant_us(const zc_conv_work *w);
double zc_conv_depth_quant_us(const zc_conv_work *w);
/* Of a sum of the bytes of two of them as one step (QLinearConvPair). */
double zc_conv_pair_quant_us(const zc_conv_work *first, const zc_conv_work *second);
/* Of two of which the second one reads what the first one gives (QLinearConvChain); products of a
 * sum, of either one, that its kernel counts with. */
double zc_conv_chain_quant_us(const zc_conv_work *first, const zc_conv_work *second);
int64_t zc_conv_chain_depth(const zc_conv_work *first);
/* Of two of points, of which the second one reads the first result (QLinearConvNext). */
double zc_conv_next_quant_us(const zc_conv_work *first, const zc_conv_work *second);

#endif
