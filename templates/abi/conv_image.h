/* Parameters of conv_image.cu. */
#ifndef ZC_ABI_CONV_IMAGE_H
#define ZC_ABI_CONV_IMAGE_H

#include "abi/epilogue.h"
#include "abi/window.h"

struct zc_conv_image_params {
    const void *x, *w, *bias;
    void *y;
    int across, down, tiles, pad; /* tiles of an image; of all images */
    int sides[2], before[2];      /* y's rows and columns; the pooling's padding in front of them */
    struct zc_window_params window; /* of the convolution */
    struct zc_fused_params fused;
};

#endif
