/* Parameters of conv_image_quant.cu. */
#ifndef ZC_ABI_CONV_IMAGE_QUANT_H
#define ZC_ABI_CONV_IMAGE_QUANT_H

#include "abi/epilogue.h"
#include "abi/window.h"

struct zc_conv_image_quant_params {
    const void *x, *w, *bias;
    const void *x_zero, *w_zero, *x_scale, *w_scale, *y_scale, *y_zero;
    void *y;
    long long bytes;               /* of x */
    int w_zero_step, w_scale_step; /* 0: one for all channels, 1: one each */
    int across, down, tiles, pad;  /* tiles of an image; of all images */
    int sides[2], before[2]; /* y's rows and columns; the pooling's padding in front of them */
    struct zc_window_params window; /* of the convolution */
    struct zc_fused_params fused;
};

#endif
