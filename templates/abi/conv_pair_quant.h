/* Parameters of conv_pair_quant.cu: two convolutions of bytes of pixels whose channels lie side by
 * side. */
#ifndef ZC_ABI_CONV_PAIR_QUANT_H
#define ZC_ABI_CONV_PAIR_QUANT_H

#include "abi/window.h"

/* One of the two. */
struct zc_conv_quant_half {
    const void *x, *x_scale, *x_zero, *w, *w_scale, *w_zero, *y_scale, *y_zero;
    const int *bias;    /* NULL: none */
    long long channels; /* of x */
    int w_scale_step, w_zero_step;
};

struct zc_conv_pair_quant_params {
    struct zc_conv_quant_half half[2];
    void *y;
    long long total, n; /* elements of y; its channels */
    long long second_in[2], second_stride[2];
    struct zc_window_params window; /* of the first; of three axes, of which the first is 1 */
};

#endif
