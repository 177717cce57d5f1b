/* Parameters of conv_pair.cu: two convolutions of pixels whose channels lie side by side. */
#ifndef ZC_ABI_CONV_PAIR_H
#define ZC_ABI_CONV_PAIR_H

#include "abi/epilogue.h"
#include "abi/window.h"

struct zc_conv_pair_params {
    const void *x, *w, *z, *v, *bias;
    void *y;
    long long total, n, channels, second_channels; /* elements of y; its channels, x's and z's */
    long long second_in[2], second_stride[2];
    struct zc_window_params window; /* of x; of three axes, of which the first is 1 */
    struct zc_fused_params fused;
};

#endif
