/* Parameters of conv_chain_quant.cu: two convolutions of bytes, the second one of what the first
 * one gives, whose windows are points. */
#ifndef ZC_ABI_CONV_CHAIN_QUANT_H
#define ZC_ABI_CONV_CHAIN_QUANT_H

#include "abi/conv_pair_quant.h"
#include "abi/epilogue.h"

struct zc_conv_chain_quant_params {
    struct zc_conv_quant_half half[2]; /* the second has no x */
    void *y;
    long long pixels, n;            /* of all images; channels of y */
    struct zc_window_params window; /* of the first; of three axes, of which the first is 1 */
    struct zc_fused_params fused;
};

#endif
