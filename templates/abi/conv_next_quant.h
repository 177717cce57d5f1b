/* Parameters of conv_next_quant.cu: two convolutions of bytes, both of points, the second one of
 * the first result. */
#ifndef ZC_ABI_CONV_NEXT_QUANT_H
#define ZC_ABI_CONV_NEXT_QUANT_H

#include "abi/conv_pair_quant.h"

struct zc_conv_next_quant_params {
    struct zc_conv_quant_half half[2]; /* the second has no x */
    const void *residual;              /* NULL: none */
    void *g, *y;
    long long pixels, n; /* of all images; channels of y */
};

#endif
